"""Products of bytes for an instruction that sums products of words: AVX2 without AVX-VNNI."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.compiler.offers.widened import widened
from isam.compiler.stages import new_job, run_stages
from isam.ir.interp import run
from isam.ir.text import parse_kernel
from isam.runtime.linking import Target
from isam.system.load import load_system
from tests.laws.judges import random_numbers
from tests.subjects import of_job
from tests.unit.test_expanded import IMAGE, PADDED, PRODUCT, SIZES, ZEROS

HAS = frozenset({"avx2", "fma", "f16c"})
GRAM = """kernel g(M, K)
  in  A: i8[M, K]
  out C: i32[M, M]
  forall i < M, j < M
    C[i, j] = 0
  forall i < M, j < M, k < K
    C[i, j] += i32(A[i, k]) * i32(A[j, k])
"""


def made(text: str, sizes: dict[str, int] = SIZES, more: frozenset[str] = frozenset()) -> Any:
    """The job, proved; the rewritten kernel is worth what the original is."""
    system = replace(load_system("host-avx2"), target=Target("x86_64-unknown-linux-gnu", "x86-64-v3", HAS | more))
    kernel = parse_kernel(text)
    job = run_stages(new_job(kernel, system, sizes, None), until="prove")
    assert job.certificate is not None
    concrete = kernel.with_sizes(sizes)
    arrays = random_numbers(concrete, 3)
    got, want = run(job.cover.kernel, arrays), run(concrete, arrays)
    assert all((got[name] == want[name]).all() for name in want)
    return job


def laws(job: Any) -> list[str]:
    return [s.split(" ")[0] for s in job.cover.steps]


def names(job: Any) -> set[str]:
    return {m.instruction.name for m in job.cover.mappings if m.instruction.name.startswith(("dot", "fma"))}


@pytest.mark.parametrize(("a", "b", "widens"), [
    ("i8", "i8", 2), ("u8", "i8", 2), ("i8", "u8", 2), ("u8", "u8", 2), ("i16", "u8", 1), ("i8", "i16", 1),
    ("i16", "i16", 0),
])  # fmt: skip
def test_bytes_are_made_words_ahead(a: str, b: str, widens: int) -> None:
    job = made(PRODUCT.format(a=a, b=b, role="const"))
    assert names(job) == {"dot2_i16"}
    assert laws(job) == ["split-cast"] * widens


def test_a_constant_factor_is_made_words_when_it_is_bound() -> None:
    job = made(PRODUCT.format(a="u8", b="i8", role="const"))
    words = next(s.dest.buffer for s in job.cover.kernel.statements if s.op == "cast" and s.sources[0].buffer == "B")
    assert words in {d.context["buffer"] for d in job.trace.decisions if d.point == "bind" and d.chosen}


def test_an_array_that_is_both_factors_is_made_words_once() -> None:
    job = made(GRAM, {"M": 24, "K": 40})
    assert names(job) == {"dot2_i16"}
    assert sum(s.op == "cast" and s.sources[0].buffer == "A" for s in job.cover.kernel.statements) == 1


@pytest.mark.parametrize("text", [ZEROS.format(a="u8"), ZEROS.format(a="i8")])
def test_zero_points_leave_the_sum(text: str) -> None:
    job = made(text, {"M": 48, "N": 64, "K": 96})
    assert "dot2_i16" in names(job)
    assert {"expand", "split-cast"} <= set(laws(job))


def test_windows_take_them_along_the_channels() -> None:
    assert names(made(PADDED, IMAGE)) == {"dot2_i16"}


@pytest.mark.parametrize(("text", "sizes", "more"), [
    (PRODUCT.format(a="i8", b="i8", role="in"), {"M": 40, "N": 64, "K": 1}, ()),  # nothing to sum in a lane
    (PRODUCT.format(a="i8", b="i8", role="in"), {"M": 1, "N": 64, "K": 64}, ()),  # each byte is read once
    (PRODUCT.format(a="i8", b="i8", role="in").replace("i32", "i64"), SIZES, ()),
    (PRODUCT.format(a="u8", b="i8", role="const"), SIZES, ("avxvnni",)),
])  # fmt: skip
def test_bytes_stay_where_that_pays_nothing(text: str, sizes: dict[str, int], more: tuple[str, ...]) -> None:
    job = made(text, sizes, frozenset(more))
    assert "split-cast" not in laws(job)
    assert "dot2_i16" not in names(job)


@pytest.mark.parametrize("system", ["host-avx512", "host-generic", "host-neon", "host-amx", "neoverse-n1"])
def test_elsewhere_nothing_is_widened(system: str) -> None:
    from tests.pipeline import compiled, simulated

    job = compiled(parse_kernel(PRODUCT.format(a="u8", b="i8", role="const")), SIZES, simulated(system))
    assert widened(of_job(job)) == ((),)
