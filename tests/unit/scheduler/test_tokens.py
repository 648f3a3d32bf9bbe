"""Waits: streams that run apart, in any order that the waits allow, compute what the tree's order computes (SCH-8)."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from isam.codegen.simulator import SimulationFault, residues
from isam.codegen.simulator.streams import simulate_apart
from isam.ir import oracle
from isam.proof.races import check_races
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, Wait, distinct
from tests.corpus import CASES
from tests.pipeline import compiled, simulated

TOY = simulated("toy")
NAMES = ("matmul", "softmax", "conv2d/stride=2", "layer_norm", "sepconv", "lower_triangle", "transpose", "matmul_i8")
T = 4


def made(name: str, at: int = 0) -> tuple[Schedule, dict, dict, dict]:
    """A schedule on `toy`, its arguments, run-time sizes and what the oracle says."""
    case = CASES[name]
    kernel = case.load()
    job = compiled(kernel, case.small[at], TOY)
    assert job.schedule is not None
    late = {s.name: T for s in job.schedule.kernel.syms}
    concrete = kernel.with_sizes({**case.small[at], **late})
    arrays = oracle.inputs(concrete, {}, 3)
    return job.schedule, arrays, late, oracle.run_modular(concrete, arrays, {}, 3)


def right(schedule, arrays, late, want, **order) -> bool:
    try:
        got = simulate_apart(schedule, arrays, residues(3), late, **order)
    except SimulationFault:
        return False
    return all(np.array_equal(got[n], want[n]) for n in want)


@pytest.mark.parametrize("name", [*NAMES, "rnn", "gru"])
def test_any_order_that_the_waits_allow_is_right(name):
    for at in range(min(2, len(CASES[name].small))):
        schedule, arrays, late, want = made(name, at)
        assert not check_races(schedule, late)
        for order in ({"seed": 1}, {"seed": 2}, {"eager": "dma"}, {"eager": "vec"}, {"eager": "mm"}):
            assert right(schedule, arrays, late, want, **order), (name, order)


def changed(node: Node, issue: Issue, after: tuple[Wait, ...]) -> Node:
    """The tree with other waits of one call."""
    if node is issue:
        return replace(issue, after=after)
    if isinstance(node, Seq):
        return Seq(tuple(changed(c, issue, after) for c in node.children))
    if isinstance(node, Loop):
        parts = {n: getattr(node, n) for n in ("enter", "first", "body", "last", "exit")}
        return replace(node, **{n: changed(p, issue, after) for n, p in parts.items() if p is not None})
    return node


@pytest.mark.parametrize("name", NAMES)
def test_a_wait_too_few_is_a_race_or_was_implied_by_the_others(name):
    """Waits are left out or weakened one by one: where the judge finds no race, no order may be wrong; where some order
    is wrong, the judge must have found a race."""
    schedule, arrays, late, want = made(name)
    rng, races, wrong = random.Random(name), 0, 0
    issues = [n for n in distinct(schedule.call) if isinstance(n, Issue) and n.after]
    for issue in rng.sample(issues, min(32, len(issues))):
        at = rng.randrange(len(issue.after))
        w = issue.after[at]
        weaker = () if rng.random() < 0.5 else (Wait(w.stream, w.lag + 1),)
        after = (*issue.after[:at], *weaker, *issue.after[at + 1 :])
        mutant = replace(schedule, call=changed(schedule.call, issue, after))
        found = bool(check_races(mutant, late, 1))
        races += found
        if found and wrong:  # whatever orders compute, nothing more follows from it
            continue
        orders = ({"seed": 4}, {"eager": "dma"}, {"eager": issue.unit})
        bad = not all(right(mutant, arrays, late, want, **o) for o in orders)
        assert found or not bad, f"{name}: {issue} without {w}"
        wrong += bad
    assert races >= 3
    assert wrong >= 1


def test_without_any_wait_every_schedule_races():
    for name in NAMES:
        schedule, _, late, _ = made(name)
        bare = schedule.call
        for issue in [n for n in distinct(schedule.call) if isinstance(n, Issue)]:
            bare = changed(bare, issue, ()) if issue.after else bare
        assert check_races(replace(schedule, call=bare), late, 1), name


def test_one_unit_needs_no_waits():
    job = compiled(CASES["matmul"].load(), CASES["matmul"].small[0], simulated("host-generic"))
    assert job.schedule is not None
    assert not any(n.after for n in distinct(job.schedule.call) if isinstance(n, Issue))
