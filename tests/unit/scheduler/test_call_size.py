"""Calls smaller than the instruction takes, where memories do not hold the largest (MAP-6, SCH-6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.approach.choice import Approach, Choice
from isam.compiler import Refused
from isam.frontend.einsum import einsum
from isam.schedule.tree import Issue, distinct
from isam.scheduler.nests import nests_of
from isam.scheduler.plan import Group
from isam.scheduler.plans.hierarchy import orders
from isam.system.load import load_system
from tests.machines.small import instruction, small
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


# a call begins the sum: what it takes of the sum's axis is all of it
NEW = """
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def beginning(pad: str, strides: str = "free"):
    """A machine whose products overwrite, and whose second factor lies in cells of its own behind a pad."""
    fields = "homes: {A: [pad], B: [w], C: [pad]}", f"strides: {{B: [{strides}, 1]}}", "cost: {issue: 16 cycles}"
    memories = {"pad": f"capacity: {pad}", "w": "cells: 2, cell: 4 KiB"}
    mm = instruction("mm(M <= 16, N <= 16, K <= 64)", NEW, *fields)
    return small("beginning", memories, ("dram <-> pad", "pad -> w"), mm)


@pytest.mark.parametrize("pad", ["8 KiB", "16 KiB"])
def test_blocks_have_all_of_an_axis_that_is_not_cut(pad):
    sizes = {"M": 64, "K": 64, "N": 64}
    job = compiled(PRODUCT, sizes, beginning(pad), check=True)
    assert job.schedule is not None
    (nest,) = nests_of(job.schedule.cover, job.system)
    assert nest.uncut == {"k"}
    found = [dict(o) for o in orders(Group((nest,)))]
    assert any("m" in o for o in found)
    assert not any("k" in o for o in found), "a loop over parts of the sum: each would begin it again"
    judge(PRODUCT, sizes, job)


def test_rows_that_cannot_lie_as_far_apart_as_they_have_to_are_refused():
    """No call of part of the sum instead, of one row each."""
    with pytest.raises(Refused, match=r"operand B needs strides \(16, 1\)"):
        compiled(PRODUCT, {"M": 16, "K": 8, "N": 8}, beginning("16 KiB", "16"), check=True)
