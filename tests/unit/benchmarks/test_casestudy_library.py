"""The hand-written library: correct on padded problems, legal, without races, and near the machine's bounds."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.casestudy import library, problem, tilings
from benchmarks.casestudy.experiment import without_traffic
from benchmarks.casestudy.library import Part, Tiling, written
from benchmarks.casestudy.tilings import TILINGS, best, choose
from isam.codegen.simulator import residues, simulate
from isam.codegen.simulator.fault import SimulationFault
from isam.codegen.simulator.streams import simulate_apart
from isam.cost.timeline import timeline
from isam.ir import oracle
from isam.ir.kernel import Kernel
from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Node, Schedule, Seq, Wait, distinct
from isam.system.load import load_system

MACHINE = replace(load_system("casestudy"), backend="simulator")
SQUARE, SMALL, THIN = TILINGS
PARTS = {
    "square": Part(SQUARE, 1, 1, 1, 1, 2, 64, False),
    "square, two panels of two blocks": Part(SQUARE, 1, 1, 2, 2, 2, 64, True),
    "square, streamed": Part(SQUARE, 1, 1, 2, 1, 4, 64, False),
    "small": Part(SMALL, 2, 1, 2, 2, 4, 64, True),
    "small, many chunks": Part(SMALL, 1, 2, 1, 3, 6, 64, True),
    "small, streamed": Part(SMALL, 1, 1, 2, 2, 6, 64, False),
    "thin": Part(THIN, 1, 3, 1, 3, 2, 64, True),
    "thin, one block": Part(THIN, 2, 2, 1, 1, 4, 128, False),
    "thin, panels": Part(THIN, 1, 1, 3, 2, 8, 64, True),
}
each = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())


made = cache(lambda part: written(part, MACHINE))


@cache
def asked(kernel: Kernel):
    """Arguments, and what the oracle makes of them."""
    arrays = oracle.inputs(kernel, {}, 0)
    return arrays, oracle.run_modular(kernel, arrays, {}, 0)["C"]


def equal(schedule: Schedule, run=simulate, **how) -> None:
    """Raises where the schedule and the oracle differ, or the strict machine refuses a step."""
    arrays, want = asked(schedule.kernel)
    np.testing.assert_array_equal(run(schedule, arrays, residues(0), **how)["C"], want)


@each
def test_it_computes_the_product(part):
    equal(made(part))


@each
def test_it_executes_every_point_once_and_in_order(part):
    assert not check_points(made(part))


@each
def test_the_slow_judge_accepts_it(part):
    assert not check_flat(made(part))


@pytest.mark.parametrize("name", ["square", "square, two panels of two blocks", "square, streamed", "small",
                                  "small, streamed", "thin, one block"])  # fmt: skip
def test_the_judge_of_trees_accepts_it(name):
    """Not more than two blocks in a row: it does not follow that the block before goes out a whole block later."""
    assert not check_tree(made(PARTS[name]))


@each
def test_there_are_no_races(part):
    assert not check_races(made(part))


ORDERS = ("", "xa", "pair", "ld", "xb", "st")


@pytest.mark.parametrize(("name", "eager"), [
    (p, e) for n, p in enumerate(PARTS) for m, e in enumerate(ORDERS) if (n + m) % 2 == 0])  # fmt: skip
def test_units_may_run_apart(name, eager):
    """Three of six orders on each part, in turn."""
    equal(made(PARTS[name]), simulate_apart, seed=len(eager), eager=eager)


def mapped(node: Node, change) -> Node:
    if isinstance(node, Issue):
        return change(node)
    if isinstance(node, Seq):
        return Seq(tuple(mapped(c, change) for c in node.children))
    parts = {f: mapped(getattr(node, f), change) for f in ("enter", "body", "exit")}
    peeled = {f: mapped(p, change) for f in ("first", "last") if (p := getattr(node, f)) is not None}
    return replace(node, **parts, **peeled)


WAITS = [("xa", "ld"), ("xb", "ld"), ("xa", "pair"), ("xb", "pair"), ("mx0", "xa"), ("mx0", "xb"), ("mx0", "pair"),
         ("mx0", "xc"), ("mx0", "xd"), ("xc", "pair"), ("xd", "pair"), ("xc", "st"), ("xd", "st"), ("st", "xc"),
         ("st", "xd"), ("ld", "xa"), ("ld", "xb")]  # fmt: skip


@pytest.mark.parametrize(("unit", "stream"), WAITS)
def test_every_wait_is_needed_and_none_is_too_loose(unit, stream):
    """One call more that may be behind: a race."""
    schedule = made(PARTS["square, two panels of two blocks"])

    def looser(issue: Issue) -> Issue:
        def one(w: Wait) -> Wait:
            return replace(w, lag=w.lag + 1) if (issue.unit, w.stream) == (unit, stream) else w

        return replace(issue, after=tuple(map(one, issue.after)))

    assert check_races(replace(schedule, call=mapped(schedule.call, looser)), most=1)


def test_a_wrong_address_is_refused():
    schedule = written(PARTS["thin"], MACHINE)

    def shifted(issue: Issue) -> Issue:
        if issue.unit != "xb":
            return issue
        source, target = issue.operands
        place = replace(source.place, offset=source.place.offset + 64)
        return replace(issue, operands=(replace(source, place=place), target))

    with pytest.raises(SimulationFault):
        equal(replace(schedule, call=mapped(schedule.call, shifted)))


@pytest.mark.parametrize(("size", "far"), [
    ((4096, 4096, 4096), 1.06), ((3072, 3072, 2048), 1.06), ((1536, 3072, 2048), 1.10),
])  # fmt: skip
def test_it_is_near_the_machine_s_peak_on_the_sizes_it_is_made_for(size, far):
    """The matrix units never wait for anything but main memory, at the begin and at the end."""
    part, schedule, time = best(*size, MACHINE)
    assert part.tiling == SQUARE
    work = 2 * np.prod(size, dtype=float) / (24 * 2 * 32 * 32 * 2 * 1.1e9)
    padded = np.prod(part.size, dtype=float) / np.prod(size, dtype=float)
    assert 1 <= timeline(without_traffic(schedule)).seconds / (work * padded) <= 1.01
    assert 1 <= time.seconds / work <= far


def test_one_row_is_near_the_bandwidth_of_main_memory():
    part, _, time = best(1, 24 * 256, 4096, MACHINE)
    assert part.tiling != SQUARE
    assert part.panels == 1  # each element of B is brought once
    assert 1 <= time.seconds * 1228.8e9 / (2 * 24 * 256 * 4096) <= 1.25


@pytest.mark.parametrize("size", [(1, 1, 1), (33, 65, 129), (257, 31, 7), (97, 1013, 509), (40, 40, 20000)])
@pytest.mark.parametrize("tiling", TILINGS, ids=lambda t: t.name)
def test_any_size_is_padded_to_whole_blocks_that_fit(size: tuple[int, int, int], tiling: Tiling):
    part = choose(tiling, *size)
    assert all(have >= want for have, want in zip(part.size, size, strict=True))
    assert part.down * part.across <= 24
    assert part.room <= MACHINE.memories["sp"].capacity
    assert part.chunks % 2 == 0
    assert part.length % 64 == 0


def test_both_units_of_each_pair_have_the_same_calls():
    schedule = written(PARTS["small"], MACHINE)
    time = timeline(schedule)
    assert time.units["mx0"].calls == time.units["mx1"].calls == time.clusters["pair"].calls
    assert all(n.joined == (n.unit == "mx1") for n in distinct(schedule.call) if isinstance(n, Issue))


def test_the_library_knows_neither_scheduler_nor_mapper():
    for module in (library, problem, tilings):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        names = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not [n for n in names if n.startswith(("isam.scheduler", "isam.mapper", "isam.compiler"))]
