"""Element-wise kernels written by hand: correct on padded problems, legal, without races."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.gru.elementwise import OPS, Grid, Op, grids, written
from benchmarks.gru.experiment import split
from benchmarks.gru.library import Kernels, callers
from isam.codegen.simulator import residues, simulate
from isam.codegen.simulator.streams import simulate_apart
from isam.cost.timeline import timeline
from isam.ir import oracle
from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Node, Schedule, Seq, Wait, children
from isam.system.load import load_system

MACHINE = replace(load_system("casestudy"), backend="simulator")
GRIDS = (Grid(1, 2, 2, 5), Grid(2, 3, 1, 1), Grid(1, 2, 1, 11, single=True))


@pytest.mark.parametrize("grid", GRIDS, ids=["tall", "dealt both ways", "one row"])
@pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
def test_it_computes_the_operation_in_every_order_of_streams(op: Op, grid: Grid) -> None:
    schedule = written(op, grid, MACHINE)
    arrays = oracle.inputs(schedule.kernel, {}, 0)
    want = oracle.run_modular(schedule.kernel, arrays, {}, 0)["D"]
    np.testing.assert_array_equal(simulate(schedule, arrays, residues(0))["D"], want)
    for order in ({"seed": 1}, {"eager": "ld"}, {"eager": "xc"}, {"eager": "vec"}):
        np.testing.assert_array_equal(simulate_apart(schedule, arrays, residues(0), **order)["D"], want)
    assert not check_races(schedule, {})
    assert not check_flat(schedule)
    assert not check_points(schedule)
    assert not check_tree(schedule)


@pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
def test_one_more_call_behind_is_a_race(op: Op) -> None:
    """Of every kind of wait: of which unit, on which stream."""
    schedule = written(op, Grid(1, 1, 2, 6), MACHINE)
    waits = [(n, c.unit, w) for n, c in enumerate(calls(schedule.call)) for w in c.after]
    needed = {(unit, w.stream) for n, unit, w in waits if check_races(weakened(schedule, n, w), {}, 1)}
    assert needed == {(unit, w.stream) for _, unit, w in waits}


def calls(node: Node) -> list[Issue]:
    return [node] if isinstance(node, Issue) else [c for part in children(node) for c in calls(part)]


def weakened(schedule: Schedule, at: int, wait: Wait) -> Schedule:
    """One more call may be behind."""
    chosen = calls(schedule.call)[at]

    def visit(node: Node) -> Node:
        if node is chosen:
            after = tuple(replace(w, lag=w.lag + 1) if w is wait else w for w in chosen.after)
            return replace(chosen, after=after)
        if isinstance(node, Seq):
            return Seq(tuple(map(visit, node.children)))
        return node if isinstance(node, Issue) else replace(node, body=visit(node.body))

    return replace(schedule, call=visit(schedule.call))


@pytest.mark.parametrize(("m", "n"), [(1, 512), (1, 8448), (16, 2048), (32, 512), (64, 512), (64, 8448)])
def test_grids_hold_the_problem_and_fit_the_machine(m: int, n: int) -> None:
    for grid in grids(m, n):
        assert grid.down * grid.across <= MACHINE.replicas["cluster"].count
        assert m <= grid.size[0]
        assert n <= grid.size[1]
        assert timeline(written(OPS[0], grid, MACHINE)).seconds > 0


def test_callers_are_the_sum_of_their_kernels() -> None:
    kernels = Kernels(MACHINE)
    quick, plain = callers(3, 1, 64, kernels)
    assert quick.seconds <= plain.seconds
    assert {plain.launches, quick.launches} == {3 * (6 + 3 + 11), 2 + 3 * (1 + 9)}
    assert plain.bytes > quick.bytes > 0
    assert kernels.each(OPS[0], 1, 64)[0] < plain.elementwise < plain.seconds


def test_the_parts_of_the_gain_add_up() -> None:
    row = {"isam": {n: {"seconds": s} for n, s in (("apart", 9.0), ("fused", 7.5), ("staying", 4.0), ("all", 3.0))},
           "library": [{"caller": "gates side by side, inputs at once", "seconds": 6.0},
                       {"caller": "gate by gate, inputs step by step", "seconds": 12.0}]}  # fmt: skip
    assert split(row) == {"launches": 3.0, "fusion": 1.5, "staying": 3.5, "hoisting": 1.0, "in all": 9.0, "caller": 6.0}
    del row["isam"]["apart"]
    assert split(row)["launches"] + split(row)["fusion"] == 4.5
