"""The walk itself: what counts as the same kernel, cycles, growth, budgets, the clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir.dataflow import order_of
from isam.ir.hashing import structural_hash
from isam.ir.kernel import Kernel, Statement
from isam.ir.text import parse
from isam.mapper.demand import Demand
from isam.mapper.goals import Covered, Used
from isam.mapper.search import DEFAULT, Budget, find, reach
from isam.mapper.seen import Histories
from isam.mapper.space import asked_by, explore
from isam.transforms import ALL
from isam.transforms.law import Rewrite, Site, Transform
from tests.corpus import CASES
from tests.unit.mapper.catalogue import instruction, named
from tests.unit.mapper.test_search import COPY, GEMM, GEMV, ROW, VNNI, ZERO

HEAD = "kernel k(N)\n  in a: f32[N]\n  in b: f32[N]\n  out y: f32[N]\n  out z: f32[N]\n"


def body(*lines: str, loop: str = "forall i < N") -> Kernel:
    return parse(HEAD + "".join(f"  {loop}\n    {line}\n" for line in lines))


BASE = body("t[i] = a[i] + b[i]", "u[i] = a[i] * b[i]", "y[i] = t[i] - u[i]", "z[i] = 0")
SAME = {
    "other names": body("p[i] = a[i] + b[i]", "q[i] = a[i] * b[i]", "y[i] = p[i] - q[i]", "z[i] = 0"),
    "another order": body("z[i] = 0", "u[i] = a[i] * b[i]", "t[i] = a[i] + b[i]", "y[i] = t[i] - u[i]"),
    "exchanged operands": body("t[i] = b[i] + a[i]", "u[i] = a[i] * b[i]", "y[i] = t[i] - u[i]", "z[i] = 0"),
    "another axis": parse(str(BASE).replace("forall i", "forall j").replace("[i]", "[j]")),
}
OTHER = {
    "operands that do not commute": body("t[i] = a[i] + b[i]", "u[i] = a[i] * b[i]", "y[i] = u[i] - t[i]", "z[i] = 0"),
    "another argument": body("t[i] = a[i] + a[i]", "u[i] = a[i] * b[i]", "y[i] = t[i] - u[i]", "z[i] = 0"),
    "another number": body("t[i] = a[i] + b[i]", "u[i] = a[i] * b[i]", "y[i] = t[i] - u[i]", "z[i] = 1"),
    "one temporary for two": body("t[i] = a[i] + b[i]", "y[i] = t[i] - t[i]", "z[i] = 0"),
    "two temporaries for one": body("t[i] = a[i] + b[i]", "u[i] = a[i] + b[i]", "y[i] = t[i] - u[i]", "z[i] = 0"),
    "outputs exchanged": body("t[i] = a[i] + b[i]", "u[i] = a[i] * b[i]", "z[i] = t[i] - u[i]", "y[i] = 0"),
    "a statement more": body("t[i] = a[i] + b[i]", "u[i] = a[i] * b[i]", "y[i] = t[i] - u[i]", "z[i] = 0", "z[i] = 0"),
    "a smaller domain": body("t[i] = a[i] + b[i]", "u[i] = a[i] * b[i]", "y[i] = t[i] - u[i]", "z[i] = 0",
                             loop="forall i < N where i <= 3"),
    "fewer liberties": replace(BASE, permits=frozenset({"exact"})),
}  # fmt: skip


@pytest.mark.parametrize("how", SAME)
def test_kernels_of_one_dataflow_are_the_same(how):
    h = Histories()
    assert h.key(BASE) == h.key(SAME[how])


def test_kernels_that_differ_are_different():
    h = Histories()
    keys = {how: h.key(k) for how, k in {"base": BASE, **OTHER}.items()}
    assert len(set(keys.values())) == len(keys)


def test_the_order_of_statements_that_depend_on_each_other_counts():
    h = Histories()
    one = body("y[i] = a[i]", "z[i] = y[i] + b[i]", "y[i] = b[i]")
    two = body("y[i] = a[i]", "y[i] = b[i]", "z[i] = y[i] + b[i]")
    assert h.key(one) != h.key(two)


def test_a_recurrent_loop_is_not_its_body_once():
    h = Histories()
    text = "kernel k(T, N)\n  in a: f32[N]\n  inout y: f32[N]\n{}forall i < N\n{}  y[i] = y[i] * a[i]\n"
    loop = parse(text.format("  loop t < T\n    ", "    "))
    once = parse(text.format("  ", "  "))
    assert h.key(loop) != h.key(once)
    assert h.key(loop) == h.key(parse(str(loop)))


@pytest.mark.parametrize("name", sorted(CASES))
def test_reordering_what_is_independent_keeps_every_kernel_of_the_corpus(name):
    kernel, h = CASES[name].load(), Histories()
    items = kernel.body
    order = order_of(kernel.statements) if all(isinstance(s, Statement) for s in items) else None
    for n, (first, second) in enumerate(pairwise(items)):
        swapped = replace(kernel, body=(*items[:n], second, first, *items[n + 2 :]))
        free = order is not None and not order.after[n] >> (n + 1) & 1
        same = structural_hash(swapped) == structural_hash(kernel)
        if order is not None:
            assert (h.key(swapped) == h.key(kernel)) == (free or same), (name, n)


class Turn(Transform):
    """Renames nothing, changes nothing that counts: exchanges the first two statements."""

    law, equation, kinds = "turn", "a; b => b; a", frozenset({"axis-missing", "operation"})

    def sites(self, kernel):
        return (Site.of(at=0),)

    def apply(self, kernel, site):
        from isam.transforms.law import Correspondence

        a, b, *rest = kernel.body
        n = len(kernel.statements)
        return Rewrite(replace(kernel, body=(b, a, *rest)), Correspondence(((1,), (0,), *((i,) for i in range(2, n)))))


def test_laws_that_undo_each_other_do_not_run_in_circles():
    back = next(t for t in ALL if t.law == "remove-unit-axis")

    class Remove(type(back)):
        kinds = frozenset({"axis-missing", "extra-dependence", "operation"})
        sites_for = Transform.sites_for

    add = next(t for t in ALL if t.law == "add-unit-axis")
    done = reach(named("softmax"), GEMM, transforms=[add, Remove()], budget=Budget(states=500, blind=0, depth=50))
    assert done.complete
    assert done.states < 50


def test_a_law_without_effect_ends_at_once():
    two = body("y[i] = a[i] + b[i]", "z[i] = a[i] * b[i]")
    r = reach(two, GEMM, transforms=[Turn()])
    assert (bool(r), r.states, r.complete) == (False, 1, True)


def test_a_law_that_grows_answers_a_demand_once_on_a_path():
    """Each new axis of one element would ask for another: without the rule the path has no end."""
    kernel = CASES["sepconv"].load()
    r = find(kernel, Demand([GEMM, COPY]), Trace(Approach()), Budget(states=300, work=10_000, depth=40))
    assert r.ended != "depth"
    for case in (GEMV, named("softmax"), kernel):
        for p in reach(case, GEMM, budget=Budget(states=200, blind=0, depth=12)).paths:
            assert len(p.steps) <= 7


def test_growing_laws_take_no_blind_steps():
    seen = set()

    class Watch(Approach):
        def search(self, choice):
            steps = [o.step for o in choice.options if hasattr(o, "step")]
            seen.update(t.transform.law for t in steps if t.because is None)
            return choice.options[0]

    chain = body("y[i] = exp(a[i]) * b[i] * a[i]", "z[i] = 0")
    reach(chain, instruction("square"), Trace(Watch()), Budget(blind=5))
    grow = {t.law for t in ALL if t.grows}
    assert seen
    assert not seen & grow


@pytest.mark.parametrize(("field", "ended"), [("states", "states"), ("work", "work"), ("depth", "depth")])
@pytest.mark.parametrize("amount", [0, 1])
def test_every_budget_is_told(field, ended, amount):
    r = find(GEMV, Demand([GEMM, ZERO, COPY]), Trace(Approach()), Budget(**{field: amount}))
    assert (bool(r), r.complete, r.ended) == (False, False, ended)
    assert r.states <= 1 + (field == "depth") * 12
    assert r.uncovered is not None


@pytest.mark.parametrize("amount", [0, 1])
def test_pairs_and_blind_steps_have_budgets(amount):
    r = reach(GEMV, VNNI, budget=Budget(pairs=amount, blind=0))
    assert (r.ended, r.states) == ("pairs", 1 + amount)
    text = "kernel c()\n  in a: f32[6]\n  in b: f32[6]\n  in c: f32[6]\n  out y: f32[6]\n  forall i < 6\n" \
           "    y[i] = a[i] * b[i] * c[i] * b[i]\n"  # fmt: skip
    r = reach(parse(text), instruction("square"), budget=Budget(blind=amount))
    assert r.blind_expansions == amount
    assert (r.complete, r.ended) == ((True, "") if amount == 0 else (False, "blind"))


def test_the_clock_ends_a_search_and_a_recording_ends_it_there_again():
    ticks = iter(range(1000))
    trace = Trace(Approach())
    goal = Used(GEMM)
    done = explore(GEMV, goal, trace, Budget(seconds=2.5), DEFAULT, clock=lambda: float(next(ticks)))
    assert (done.complete, done.ended) == (False, "time")
    assert trace.decisions[-1].label == "stop: out of time"
    again = Trace.replaying(trace.to_json())
    repeated = explore(GEMV, goal, again, Budget(seconds=1e9), DEFAULT)
    assert repeated.ended == "time"
    assert len(repeated.states) == len(done.states)
    assert again.to_json() == trace.to_json()


def test_no_instruction_at_all():
    r = find(GEMV, Demand([]), Trace(Approach()))
    assert (bool(r), r.complete, r.blind_expansions) == (False, True, 0)
    assert r.uncovered is not None
    assert len(r.uncovered.gaps) == len(GEMV.statements)


def test_a_conversion_into_what_no_instruction_has_is_no_hope():
    """a - b is a + (-b); that helps only where there is a negation, or a product to negate with."""
    kernel = body("y[i] = a[i] - b[i]", "z[i] = rsqrt(a[i])")
    vadd, vmul = instruction("vadd"), instruction("vmul")
    r = find(kernel, Demand([vadd, vmul]), Trace(Approach()))
    assert (bool(r), r.states, r.complete) == (False, 1, True)
    double = instruction("scale")
    r = find(body("y[i] = a[i] - b[i]", "z[i] = a[i] * b[i]"), Demand([vadd, vmul, double]), Trace(Approach()))
    assert [s.transform.law for s in r.paths[0].steps] == ["sub-by-add", "neg-by-mul"]
    assert not find(body("y[i] = a[i] - b[i]", "z[i] = a[i] + b[i]"), Demand([vadd]), Trace(Approach()))


def test_instructions_that_would_do_are_looked_for_once(monkeypatch):
    from isam.mapper import uncovered

    asked = []
    monkeypatch.setattr(uncovered, "would_do", lambda kernel, statement: asked.append(kernel) or ())
    r = find(GEMV, Demand([GEMM, COPY]), Trace(Approach()), Budget(blind=0))
    assert r.states > 1
    assert all(k is GEMV for k in asked)
    assert asked
    asked.clear()
    no = find(ROW, Demand([VNNI, ZERO]), Trace(Approach()), Budget(blind=0)).uncovered
    assert no is not None
    assert no.nearest is not None
    assert {id(k) for k in asked} == {id(ROW), id(no.nearest[1].kernel)}, "and for the nearest"


def test_the_nearest_rewriting_says_what_is_still_missing():
    """An instruction that takes four terms at a time alone: sums rounded up would do, but for the copies."""
    r = find(ROW, Demand([VNNI, ZERO]), Trace(Approach()), Budget(blind=0))
    assert r.uncovered is not None
    assert r.uncovered.nearest is not None
    steps, left = r.uncovered.nearest
    assert {s.partition(" ")[0] for s in steps} == {"add-unit-axis", "round-up-sum"}
    assert {left.kernel.statements[g.statement].op for g in left.gaps} == {"copy"}
    assert f"rewritten by {' then '.join(steps)}, this alone is left:" in str(r.uncovered)
    assert find(ROW, Demand([VNNI, ZERO, *(i for g in left.gaps for i in g.remedies[:1])]), Trace(Approach()))
    assert find(ROW, Demand([]), Trace(Approach())).uncovered.nearest is None, "nothing helps"  # type: ignore[union-attr]


def test_requiring_what_is_not_there_or_cannot_be_used_is_told():
    absent = find(GEMV, Demand([GEMM, ZERO, COPY], require=["nothing"]), Trace(Approach()))
    assert not absent
    assert "'nothing' was required" in str(absent.uncovered)
    demand = Demand([GEMM, ZERO, COPY, instruction("softmax_row")], require=["softmax_row"])
    unfit = find(GEMV, demand, Trace(Approach()))
    assert not unfit
    assert "'softmax_row' was required" in str(unfit.uncovered)


def test_what_was_asked_survives_the_names_that_answers_invent():
    goal = Covered(GEMV, Demand([GEMM, ZERO, COPY]), DEFAULT)
    done = explore(GEMV, goal, Trace(Approach()), Budget(), DEFAULT)
    for s in done.states:
        grown = [t for t in s.steps if t.transform.grows and t.because is not None and t.because.instruction]
        assert len(s.asked) == len(grown)
    first = done.states[1].steps[0]
    assert asked_by(first, done.states[0].back) in done.states[1].asked
