"""Arrays in three dataflows: cycles equal the closed forms that SCALE-Sim prints, for every size tried."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path

import pytest

from benchmarks.gemmini import PRODUCT
from isam.cost.timeline import timeline
from isam.system.graph import System
from isam.system.load import load_system
from tests.pipeline import compiled, judge

FOLDER = Path(load_system("systolic").source).parent
CASES = [(r, c, flow) for r, c in ((32, 32), (8, 8), (16, 64), (128, 32)) for flow in ("ws", "os", "is")]
SIZES = 17  # of each: 204 in all


def closed_form(flow: str, r: int, c: int, m: int, n: int, k: int) -> int:
    """The number of the last cycle, counted from 0."""
    if flow == "ws":
        return ceil(k / r) * ceil(n / c) * (2 * r + c + m - 2) - 1
    if flow == "os":
        return ceil(m / r) * ceil(n / c) * (r + c + k - 2) - 1
    return ceil(k / r) * ceil(m / c) * (2 * r + c + n - 2) - 1


@cache
def array(r: int, c: int, folder: Path) -> System:
    """An array of r rows and c columns: the shipped description with another list."""
    text = (FOLDER / "systolic.yaml").read_text()
    own = f"{{R: {r}, C: {c}, fixed: {2 * r + c - 2}, out: {r + c - 2}}}"
    assert "{R: 32, C: 32, fixed: 94, out: 62}" in text
    (folder / "array.yaml").write_text((FOLDER / "array.yaml").read_text())
    path = folder / f"array_{r}_{c}.yaml"
    path.write_text(text.replace("{R: 32, C: 32, fixed: 94, out: 62}", own))
    return load_system(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("arrays")


def test_the_shipped_one_is_among_them(folder: Path) -> None:
    mine, shipped = array(32, 32, folder), load_system("systolic")
    assert mine.instructions == shipped.instructions


def as_written(machine: System) -> System:
    """Rows of every operand lie contiguous: the product cannot be taken for its transpose."""
    own = {n: replace(i, operands={}) for n, i in machine.instructions.items()}
    return replace(machine, instructions=own)


def cycles(machine: System, m: int, n: int, k: int) -> int:
    job = compiled(PRODUCT, {"M": m, "N": n, "K": k}, machine)
    assert job.schedule is not None
    return round(timeline(job.schedule).seconds * machine.units["pe"].clock)


@pytest.mark.parametrize(("r", "c", "flow"), CASES)
def test_cycles_are_those_of_the_closed_forms(r: int, c: int, flow: str, folder: Path) -> None:
    """Exactly, for the product as it is written; left free, the transpose is taken where its form is smaller."""
    free = array(r, c, folder).restricted([f"{flow}_i8", "zero_i32"])
    fixed = as_written(free)
    rng = random.Random(f"{r} {c} {flow}")
    for at in range(SIZES):
        m, n, k = (rng.choice([1, 7, 31, 32, 33, 100, 128, 255, 300, 512]) for _ in range(3))
        form = closed_form(flow, r, c, m, n, k)
        assert cycles(fixed, m, n, k) - 1 == form, (m, n, k)
        if at < 3:
            assert cycles(free, m, n, k) - 1 == min(form, closed_form(flow, r, c, n, m, k)), (m, n, k)


@pytest.mark.parametrize("flow", ["ws", "os", "is"])
def test_every_dataflow_computes_the_product(flow: str, folder: Path) -> None:
    machine = array(8, 8, folder).restricted([f"{flow}_i8", "zero_i32"])
    sizes = {"M": 11, "N": 19, "K": 21}
    judge(PRODUCT, sizes, compiled(PRODUCT, sizes, machine, check=True))
