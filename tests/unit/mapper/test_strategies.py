"""Strategies walk the same space in another order: the same answers where they reach its end, never better than the
exhaustive one, never worse than their flag says, and always the same way."""

from __future__ import annotations

from itertools import pairwise

import pytest

from isam import registry
from isam.approach.choice import Approach, Choice, Trace
from isam.approach.shipped.replay import Replay
from isam.approach.shipped.strategies import Beam, BestFirst, Exhaustive, MonteCarlo, Random
from isam.compiler import as_approach
from isam.diagnostics import IsamError
from isam.ir import oracle
from isam.ir.text import parse, parse_instruction
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.search import DEFAULT, Budget, find, reach
from isam.mapper.seen import Histories
from tests.paper.test_tr3 import DOT, GEMM_ACC, ONE_PER_CHANNEL, offered
from tests.paper.test_tr3 import ZERO as ZERO_TEXT
from tests.unit.mapper.catalogue import instruction, named
from tests.unit.mapper.test_search import COPY, GEMM, GEMV, ROW, VNNI, ZERO

NAMES = ("first-fit", "greedy", "best-first", "beam", "mcts", "random")
ALL = [*NAMES, "best-first:3", "beam:1", "mcts:3", "random:1", "random:2", "random:3"]
WIDE = Budget(states=400, work=20_000, blind=0, further=400)


SIGMOID = parse("""kernel gate()
  in a: f32[9]
  in b: f32[9]
  out y: f32[9]
  forall i < 9
    y[i] = sigmoid(a[i] - b[i])
""")
ELEMENTWISE = [
    parse_instruction(f"instruction {n}(N)\n  in A: f32[N]\n  in B: f32[N]\n  in c: f32\n  out D: f32[N]\n"
                      f"  forall i < N\n    D[i] = {what}\n")
    for n, what in {"plus": "A[i] + B[i]", "plus_one": "A[i] + c[]", "times": "A[i] * c[]", "minus": "-A[i]",
                    "inverse": "1 / A[i]", "tanh": "tanh(A[i])", "exp": "exp(A[i])"}.items()
]  # fmt: skip


def approach(name: str) -> Approach:
    found = as_approach(name)
    assert found is not None
    return found


def kernels(paths) -> set[tuple[int, ...]]:
    h = Histories()
    return {(len(p.steps), *h.key(p.kernel)) for p in paths}


def same(a, b) -> bool:
    h = Histories()
    one, two = ({(len(p.steps), *h.key(p.kernel)) for p in r.paths} for r in (a, b))
    return one == two


SMALL = {
    "gemv on gemm": (GEMV, GEMM, DEFAULT),
    "row on vnni": (ROW, VNNI, [t for t in DEFAULT if t.law != "add-unit-axis"]),
    "conv on gemm": (named("conv"), GEMM, DEFAULT),
    "softmax on vadd": (named("softmax"), instruction("vadd"), DEFAULT),
}


@pytest.mark.parametrize("case", SMALL)
@pytest.mark.parametrize("name", ALL)
def test_every_strategy_reaches_the_same_set(case, name):
    kernel, instr, transforms = SMALL[case]
    judge = reach(kernel, instr, Trace(Exhaustive()), WIDE, transforms=transforms)
    assert judge.complete
    r = reach(kernel, instr, Trace(approach(name)), WIDE, transforms=transforms)
    assert r.complete
    assert same(r, judge)
    for p in r.paths if not r.direct else ():
        assert oracle.equal(kernel, p.kernel, {}, 1)


@pytest.mark.parametrize("name", ALL)
def test_no_strategy_beats_the_exhaustive_one_and_flags_are_true(name):
    kernel, machine = SIGMOID, ELEMENTWISE
    judge = find(kernel, Demand(machine), Trace(Exhaustive()), WIDE)
    assert judge.complete
    assert judge
    every = kernels(judge.paths)
    assert len(every) > 1
    r = find(kernel, Demand(machine), Trace(approach(name)), Budget())
    assert r.paths[0].price >= judge.paths[0].price
    assert r.states <= judge.states
    if r.complete:
        assert r.paths[0].price == judge.paths[0].price
    wide = find(kernel, Demand(machine), Trace(approach(name)), WIDE)
    assert wide.complete
    assert same(wide, judge)


@pytest.mark.parametrize("name", [*ALL, "exhaustive"])
def test_the_same_decisions_twice_and_from_a_recording(name):
    machine = [GEMM, ZERO, COPY]
    traces = [Trace(approach(name)) for _ in range(2)]
    first, second = (cover(GEMV, Demand(machine), t) for t in traces)
    assert first
    assert first == second
    assert traces[0].to_json() == traces[1].to_json()
    again = Trace.replaying(traces[0].to_json())
    assert cover(GEMV, Demand(machine), again) == first
    assert again.to_json() == traces[0].to_json()


def test_replay_as_an_approach_follows_what_it_can():
    machine = [GEMM, ZERO, COPY]
    recorded = Trace(Random(5))
    first = cover(GEMV, Demand(machine), recorded)
    followed = Trace(Replay(recorded.to_json()))
    assert cover(GEMV, Demand(machine), followed) == first
    assert [d.label for d in followed.decisions] == [d.label for d in recorded.decisions]
    elsewhere = parse(ONE_PER_CHANNEL)
    c = cover(elsewhere, Demand(offered(GEMM_ACC, DOT, ZERO_TEXT)), Trace(Replay(recorded)))
    assert c
    assert oracle.equal(elsewhere, c.kernel, {}, 1)


def test_the_exhaustive_one_does_not_stop_at_the_first():
    kernel, machine = SIGMOID, ELEMENTWISE
    eager = find(kernel, Demand(machine), Trace(approach("greedy")), Budget(states=400, further=0))
    assert eager.ended == "approach"
    assert not eager.complete
    all_of_it = find(kernel, Demand(machine), Trace(Exhaustive()), Budget(states=400, further=0))
    assert all_of_it.complete
    assert all_of_it.states > eager.states


def test_strategies_see_states_and_may_not_change_them():
    seen = []

    class Watching(Beam):
        def search(self, choice: Choice):
            seen.append([(s.number, s.parent, s.look.distance) for s in choice.context.get("_states", ())])
            return super().search(choice)

    reach(GEMV, GEMM, Trace(Watching()))
    assert seen[0] == [(0, None, seen[0][0][2])]
    assert 0 < seen[0][0][2] < 1
    assert all(a == b[: len(a)] for a, b in pairwise(seen))


def test_names_and_arguments():
    assert {"first-fit", "greedy", "best-first", "beam", "mcts", "exhaustive", "random", "replay"} <= set(
        registry.names("isam.approaches")
    )
    assert approach("beam:8").width == 8
    assert approach("best-first:0.5").weight == 0.5
    assert (approach("mcts:7").seed, approach("random:7").seed) == (7, 7)
    assert isinstance(approach("mcts"), MonteCarlo)
    assert isinstance(approach("best-first"), BestFirst)


@pytest.mark.parametrize("name", ["beam:wide", "best-first:nan", "best-first:inf", "greedy:1",
                                   "exhaustive:2", "replay", "replay:/nowhere/at/all"])
def test_arguments_that_make_no_sense_are_refused(name):
    with pytest.raises(IsamError):
        as_approach(name)
