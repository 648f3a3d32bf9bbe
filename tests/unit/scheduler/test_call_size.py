"""Calls smaller than the instruction takes, where memories do not hold the largest (MAP-6, SCH-6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.approach.choice import Approach, Choice
from isam.compiler import Refused
from isam.frontend.einsum import einsum
from isam.schedule.tree import Issue, distinct
from isam.system.load import load_system
from tests.pipeline import compiled, judge

PRODUCT = einsum("mk,kn->mn")
SIZES = {"M": 9, "K": 10, "N": 7}


def machine(**changes: int):
    """`toy` with other capacities: bytes of the scratchpad, cells of the register files."""
    toy = load_system("toy")
    memories = dict(toy.memories)
    for name, n in changes.items():
        m = memories[name]
        cells = None if m.cells is None else n
        memories[name] = replace(m, cells=cells, capacity=n * (m.cell or 1), align=4 if cells is None else m.align)
    return replace(toy, memories=memories, backend="simulator")


def products(job) -> set[tuple[tuple[str, int], ...]]:
    return {n.sizes for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.instruction == "mm4_f32"}


@pytest.mark.parametrize("scratchpad", [4, 8, 16, 48, 60, 64])
def test_a_scratchpad_smaller_than_a_tile(scratchpad):
    job = compiled(PRODUCT, SIZES, machine(sp=scratchpad), check=True)
    judge(PRODUCT, SIZES, job)


@pytest.mark.parametrize("cell", [4, 8, 16, 32, 48])
def test_register_files_smaller_than_three_tiles_take_smaller_calls(cell):
    toy = machine()
    small = {n: replace(toy.memories[n], cells=4, cell=cell, capacity=4 * cell) for n in ("ra", "rb")}
    toy = replace(toy, memories={**toy.memories, **small})
    job = compiled(PRODUCT, SIZES, toy, check=True)
    judge(PRODUCT, SIZES, job)


def test_the_approach_takes_the_size():
    class Thin(Approach):
        seen: tuple[str, ...] = ()

        def tail(self, choice: Choice):
            Thin.seen += tuple(o.label() for o in choice.options)
            return choice.options[-1]

    toy = machine()
    small = {n: replace(toy.memories[n], cells=2, cell=32, capacity=64) for n in ("ra", "rb")}
    toy = replace(toy, memories={**toy.memories, **small})
    job = compiled(PRODUCT, SIZES, toy, Thin(), check=True)
    judge(PRODUCT, SIZES, job)
    assert len(Thin.seen) > 1


def test_where_no_call_fits_it_says_what_is_lacking():
    with pytest.raises(Refused) as no:
        compiled(PRODUCT, SIZES, machine(ra=1, rb=1))
    assert "'r" in str(no.value)
