"""What the compiled walk is given: the code of trees and the table of their steps, on record; and what it is not."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof import flat_program
from isam.proof import flat_walk as w
from isam.proof.context import Context, loop_var
from isam.proof.digits import _Distance
from isam.proof.flat import Replay
from isam.proof.flat_program import Program
from isam.proof.flat_step import compile_step
from isam.proof.flat_table import ROOM, Table
from isam.proof.registers import at_start
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Schedule, distinct
from tests.unit.proof.handmade import loop, running_sum, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_flat_compiled import trips
from tests.unit.proof.test_flat_shapes import SOME
from tests.unit.proof.test_instances import relu
from tests.unit.proof.verdicts import on_record

EXACT = {n: lambda n=n: replace_permits(SOME[n]()) for n in ("tiny", "vec")}


def replace_permits(s: Schedule) -> Schedule:
    k = replace(s.cover.kernel, permits=frozenset({"exact"}))
    return replace(s, kernel=k, cover=replace(s.cover, kernel=k, original=k))


def program(s: Schedule, sizes: dict[str, int]) -> Program:
    """Of the call, as it is before it is run; nothing is compiled."""
    replay = Replay(s, sizes, Findings(), compiled=True)
    replay.phase, replay.held = "call", at_start(s)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(flat_program, "walk", lambda: None)
        return Program(replay)


def shown(s: Schedule, sizes: dict[str, int]) -> list[Any]:
    p, said = program(s, sizes), []
    scope = frozenset(sizes)
    for n in (s.call, *(n for n in distinct(s.call) if isinstance(n, Loop))):
        said.append(p.takes(n, dict(sizes)))
        if said[-1]:
            said.append(p._routine(n, scope))
    p._prepare()
    t = p.table
    said += [p.code.array[: p.code.n].tolist(), t.words.array[: t.words.n].tolist(), t.runs.array[: t.runs.n].tolist()]
    said += [sorted(t.slots.items()), p.where.tolist(), [n.instruction for n in p.steps], len(p.groups)]
    said += [sorted(p.places), p.after.shape, p.mark.size]
    numbers = t.numbers
    said += [numbers.want.tolist(), numbers.done.size, numbers.seen.tolist(), numbers.points, numbers.terms]
    return [*said, sorted(numbers.before.items()), sorted(numbers.adds.items())]


@pytest.mark.parametrize("name", SOME)
def test_code_and_table(name: str) -> None:
    s = SOME[name]()
    on_record(f"table: {name}", [x for t in trips(s) for x in shown(s, t)])


@pytest.mark.parametrize("name", EXACT)
def test_code_and_table_of_ordered_terms(name: str) -> None:
    s = EXACT[name]()
    on_record(f"table: {name} in order", shown(s, {}))


def test_numbers_that_do_not_fit_are_left_to_the_slow_execution() -> None:
    s = tiny_matmul()
    p = program(s, {})
    n = next(n for n in distinct(s.call) if isinstance(n, Issue))
    step = compile_step(n, p.replay, Findings())
    assert step is not None
    assert p.table.step(step) > 0
    for far, fits in ((Affine.of("m", w.MOST), True), (Affine.of("m", w.MOST + 1), False),
                      (Affine.of("m") + w.FARTHEST, True), (Affine.of("m") + (w.FARTHEST + 1), False)):  # fmt: skip
        assert (p.table.step(replace(step, forms=[far, *step.forms[1:]])) == w.ALONE) is not fits
    assert p.table.step(replace(step, forms=[lit(0)] * ROOM)) > 0
    assert p.table.step(replace(step, forms=[lit(0)] * (ROOM + 1))) == w.ALONE


@pytest.mark.parametrize("change", [{"var": "n"}, {"step": 0}, {"step": w.MOST + 1}, {"lo": ()}, {"hi": ()},
                                    {"lo": (Bound(Affine.of("zz")),)}, {"hi": (Bound(lit(9), w.MOST + 1),)},
                                    {"hi": (Bound(lit(9), 0),)},
                                    {"hi": (Bound(Affine.of("n", w.MOST + 1)),)}])  # fmt: skip
def test_loops_that_are_left_to_the_slow_execution(change: dict[str, Any]) -> None:
    p = program(tiny_matmul(), {})
    good = loop("v", 0, 8, 2, seq())
    for n, taken in ((good, True), (replace(good, step=w.MOST), True), (replace(good, **change), False)):
        assert p.takes(n, {"n": 3}) is taken
    assert p.takes(good, {"n": w.LARGEST})
    assert not p.takes(good, {"n": w.LARGEST + 1})
    assert not p.takes(seq(), {"n": -w.LARGEST - 1})


# other judges ---------------------------------------------------------------------------------------------------------
def test_what_instances_have_set_is_not_known_after_their_turn() -> None:
    s = relu()
    r = Replay(s, {}, Findings())
    dealt = next(n for n in distinct(s.call) if isinstance(n, Loop) and n.deal is not None)
    held: Any = {"r": (1, "mm"), "q": (2, "other"), "p": (3, "")}
    r.held = dict(held)
    r._empty(replace(dealt, deal=None))
    assert r.held == held
    r._empty(dealt)
    assert r.held == {"q": (2, "other"), "p": (3, "")}


def test_a_context_has_every_variable_once() -> None:
    ctx = Context()
    for value in (None, lit(3), lit(5)):
        var = loop_var(loop("v", 0, 8, 1, seq()))
        ctx = ctx.with_var(var) if value is None else ctx.at(var, value)
        assert [v.name for v in ctx.vars] == ["v"]
        v = ctx.var("v")
        assert v is not None
        assert (v.origin, v.lo[0].expr) == ((lit(0), lit(0)) if value is None else (value, value))
        assert ctx.lower(Affine.of("v")) == (0 if value is None else value.const)


def test_distances_that_are_never_met() -> None:
    """Without digits exactly; with digits only where no sum of them comes near."""
    for const, low, high in product(range(-3, 4), range(-2, 2), range(-2, 3)):
        if low <= high:
            assert _Distance(const, []).avoids(low, high) is not (low <= const <= high)
    rng, yes = random.Random(1), 0
    for _ in range(400):
        digits = [(rng.choice((1, 2, 4, 6, 8, 16, -4, -8)), rng.choice((0, 1, 2, 3))) for _ in range(rng.randint(1, 3))]
        const, low = rng.randint(-20, 20), rng.randint(-4, 0)
        high = low + rng.randint(0, 5)
        sums = {const + sum(k * d for (k, _), d in zip(digits, ds, strict=True))
                for ds in product(*(range(m + 1) for _, m in digits))}  # fmt: skip
        if _Distance(const, list(digits)).avoids(low, high):
            yes += 1
            assert not any(low <= x <= high for x in sums)
    assert yes > 60


def test_what_is_added_one_by_one_has_its_order_by_versions() -> None:
    s = replace_permits(running_sum())
    r = Replay(s, {"T": 3}, Findings())
    r.phase = "call"
    t = Table(r)
    made = [compile_step(n, r, Findings()) for n in distinct(s.call) if isinstance(n, Issue)]
    assert any(e.accumulate for x in made if x is not None for e in x.shape.effects)
    assert all(x is not None and t.step(x) > 0 for x in made)
