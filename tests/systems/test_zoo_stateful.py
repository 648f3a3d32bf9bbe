"""Machines whose instructions have state, compiled for the simulator: weights at home in an array, preload and compute.

Those of the zoo have no back end; here the simulator is theirs.
"""

from __future__ import annotations

import pytest

from benchmarks.gemmini import PRODUCT
from isam.ir.text import parse
from isam.system.check import check
from tests.pipeline import compiled, judge, simulated

HALVES = str(PRODUCT).replace("i8", "bf16").replace("i32", "f32")


@pytest.mark.parametrize("sizes", [(16, 16, 16), (32, 48, 40), (5, 7, 3), (64, 16, 16), (32, 16, 48)])
def test_weights_are_preloaded_once_for_several_rows_that_meet_them(sizes: tuple[int, int, int]) -> None:
    machine = simulated("gemmini")
    assert check(machine) == []
    m, n, k = sizes
    kernel, known = PRODUCT, {"M": m, "N": n, "K": k}
    job = compiled(kernel, known, machine, check=True)
    figures = judge(kernel, known, job)
    tiles, rows = -(-n // 16) * -(-k // 16), -(-m // 16)
    computes = sum(calls for name, calls in figures.calls.items() if name.startswith("compute_"))
    assert computes == tiles * rows
    assert figures.calls["preload"] == tiles or tiles < figures.calls["preload"] < computes  # not once per product


@pytest.mark.parametrize("sizes", [(32, 32, 32), (64, 48, 40), (3, 5, 7)])
def test_every_operand_of_a_product_in_another_register_file(sizes: tuple[int, int, int]) -> None:
    known = dict(zip("MNK", sizes, strict=True))
    kernel = parse(HALVES)
    job = compiled(kernel, known, simulated("arrays"), check=True)
    judge(kernel, known, job)
    assert all(m.instruction.name.startswith(("mm32_", "v_zero", "v_fill")) for m in job.cover.mappings)
