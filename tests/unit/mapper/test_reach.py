"""One instruction, one kernel: it fits as it is, after the shortest chain of steps, or nothing leads there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.mapper.goals import within_reach
from isam.mapper.match import match
from isam.mapper.pricing import Pricing
from isam.mapper.search import DEFAULT, Budget, reach
from tests.unit.mapper.catalogue import instruction, kernel, named
from tests.unit.mapper.test_search import GEMM, GEMV, ROW, VNNI, ZERO


def test_what_fits_needs_no_step():
    r = reach(named("conv"), GEMM)
    assert r
    assert r.complete
    assert r.states == 1
    assert len(r.paths) == 1
    assert r.direct == tuple(match(named("conv"), GEMM))
    assert r.near == ()


def test_the_shortest_chain_is_found_because_of_what_is_missing():
    trace = Trace(Approach())
    r = reach(GEMV, GEMM, trace)
    assert r
    assert not r.direct
    assert r.complete
    first, second = r.paths[0].steps
    assert first.transform.law == second.transform.law == "add-unit-axis"
    assert first.because.kind == "axis-missing"
    assert not reach(GEMV, GEMM, budget=Budget(depth=1, blind=0))
    assert oracle.equal(GEMV, r.paths[0].kernel, {}, 1)
    assert r.blind_expansions == 0
    assert any("axis-missing" in d.label for d in trace.decisions)


def test_chains_of_several_steps():
    """Without the laws that make do with a padded call: the packed operand is reached in three steps."""
    r = reach(ROW, VNNI, transforms=[t for t in DEFAULT if t.law != "add-unit-axis"])
    assert [s.transform.law for s in r.paths[0].steps] == ["split-axis", "split-dimension", "split-dimension"]
    assert len({len(p.steps) for p in r.paths}) == 1
    for p in r.paths:
        assert oracle.equal(ROW, p.kernel, {}, 1)


def test_nothing_leads_there_and_the_search_knows_that_it_has_tried_everything():
    r = reach(kernel("e(N)\n in a: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = erf(a[i])"), instruction("vadd"))
    assert not r
    assert r.complete
    assert r.ended == ""
    assert r.near[0].kind == "operation"


def test_an_operation_that_no_law_makes_is_not_searched_for():
    gate = kernel("g(N)\n in a: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = sigmoid(a[i])")
    body = "one(N)\n in S: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = {}(S[i])"
    erf, tanh = (replace(instruction("relu"), body=kernel(body.format(f))) for f in ("erf", "tanh"))
    r = reach(gate, erf)
    assert (bool(r), r.states, r.complete) == (False, 1, True)
    assert within_reach(frozenset({"sigmoid"}), DEFAULT) >= {"tanh", "exp", "mul", "add", "neg"}
    assert [p.label() for p in reach(gate, tanh).paths] == ["sigmoid-by-tanh (statement 0)"]


@pytest.mark.parametrize("budget", [Budget(states=0), Budget(states=1), Budget(work=0, blind=0), Budget(depth=0)])
def test_the_kernel_itself_is_always_looked_at_and_the_budget_is_told(budget):
    assert reach(named("conv"), GEMM, budget=budget).direct
    r = reach(GEMV, GEMM, budget=budget)
    assert not r
    assert not r.complete
    assert r.states == 1
    assert r.near


def test_the_matcher_s_own_budget_is_told_too():
    r = reach(named("conv"), GEMM, pairs=3)
    assert not r.complete
    assert r.ended == "matching"


def test_one_statement_or_one_buffer_may_be_asked_for():
    two = kernel("two(N)\n in a: f32[N]\n out y: f32[N]\n out z: f32[N]\n forall i < N\n  y[i] = 0\n  z[i] = 0")
    both = {m.statements for m in reach(two, ZERO).direct}
    assert both == {(0,), (1,)}
    assert {m.statements for m in reach(two, ZERO, statement=1).direct} == {(1,)}
    assert {m.statements for m in reach(two, ZERO, buffer="y").direct} == {(0,)}
    assert not reach(two, ZERO, buffer="a")


def test_a_kernel_must_grant_what_an_instruction_takes():
    fused = replace(GEMM, body=replace(GEMM.body, permits=frozenset({"contract"})))
    assert reach(named("conv"), fused)
    r = reach(replace(named("conv"), permits=frozenset({"exact"})), fused)
    assert not r
    assert r.complete
    assert "permits contract" in r.near[0].need


def test_a_name_that_stands_for_two_axes_of_an_instruction():
    body = ("two(M)\n in x: f32[3]\n out y: f32[3]\n in u: f32[M]\n out v: f32[M]\n forall i < 3\n"
            "  y[i] = exp(x[i])\n forall i < M\n  v[i] = tanh(u[i])")  # fmt: skip
    two = replace(instruction("relu"), name="two", body=kernel(body))
    both = kernel("k()\n in a: f32[3]\n out b: f32[3]\n in c: f32[4]\n out d: f32[4]\n forall i < 3\n"
                  "  b[i] = exp(a[i])\n forall j < 4\n  d[j] = tanh(c[j])")  # fmt: skip
    (m,) = reach(both, two).direct
    assert dict(m.axes) == {"i": "i", "i2": "j"}
    assert Pricing(both).tile(m) == {"i": 3, "j": 4}
