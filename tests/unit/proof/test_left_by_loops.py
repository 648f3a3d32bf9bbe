"""What loops leave, element by element: what outlives an iteration, what all leave, what two states say."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import span
from isam.proof.context import Context
from isam.proof.facts import Facts
from isam.proof.induction import forget, meet, survives
from isam.proof.legal import Legality
from isam.proof.quantified import generalised
from isam.proof.sets import Isl
from isam.proof.state import Fact, Hole, State
from isam.proof.writes import Writes
from isam.schedule.tree import Issue, Loop, Operand, Place, Seq, Tile
from tests.unit.proof.handmade import loop, seq
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_facts import CTX, ENVS, Bytes, apart, operand
from tests.unit.proof.test_known import all_told, judge, numbered, some_fact, told
from tests.unit.proof.test_prover import bounds, box
from tests.unit.proof.test_witness import var
from tests.unit.proof.trees import Steps
from tests.unit.proof.trees import schedule as steps_of
from tests.unit.proof.verdicts import on_record

V = Affine.of


@pytest.mark.parametrize("seed", range(8))
def test_what_outlives_later_iterations(seed: int) -> None:
    """What is said to lie there from an earlier iteration on does, whatever later ones write; how much, on record."""
    choose, said, count = random.Random(seed), list[bool](), Counter[tuple[bool, bool]]()
    for _ in range(120):
        lg = Steps(Legality(steps_of(Seq())))
        fs = Facts(lg, Isl())  # type: ignore[arg-type]
        mine, writes = operand(choose), list[tuple[Operand, bool]]()
        if not apart(mine) or mine.place.cell is not None:
            continue
        for _ in range(choose.choice((1, 2))):
            o = mine if choose.random() < 0.2 else operand(choose)
            if apart(o):
                writes.append((o, choose.random() < 0.5))
        body = seq(*(Issue("dma", "any", (), (o,), 0 if compute else None) for o, compute in writes))
        n, t = loop("v", 0, 4, 1, body), fs.target(mine)
        f = fs.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over)
        got = survives(f, "v", span(n), Writes(lg, fs).of(body), fs, Context((span(n).desc,)), "w")  # type: ignore[arg-type]
        true = True
        for first in range(4):
            memory = Bytes({"v": first})
            memory.write(mine, False)
            for later in range(first + 1, 4):
                memory.env = {"v": later}
                for o, compute in writes:
                    memory.write(o, compute)
                memory.env = {"v": first}
                true = true and memory.holds(mine)
        assert true or not got, (mine, writes)
        said.append(got)
        count[got, true] += 1
    assert count[True, True] > 10
    assert 3 * count[False, True] < count[True, True] + count[False, False] + count[False, True]
    on_record(f"left by loops: outlives {seed}", said)


def test_elements_that_later_iterations_do_not_compute() -> None:
    """Rows between those that are made anew elsewhere, in steps or by a loop whose ends are not known."""
    lg = Steps(Legality(steps_of(Seq())))
    fs = Facts(lg, Isl())  # type: ignore[arg-type]

    def rows(first: Affine | int, many: int, step: int, at: int, column: Affine | int = 0, wide: int = 4) -> Operand:
        t = Tile("A", (lit(first), lit(column)), (many, wide), (step, 1))
        return Operand("D", t, Place("sp", "", lit(at) + lit(column) * 4 + lit(first) * 32, (32, 4)), (0, 1))

    def stays(mine: Operand, body: Issue | Loop) -> bool:
        n, t = loop("v", 0, 4, 1, body), fs.target(mine)
        f = fs.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over)
        return survives(f, "v", span(n), Writes(lg, fs).of(body), fs, Context((span(n).desc,)), "w")  # type: ignore[arg-type]

    def new(o: Operand) -> Issue:
        return Issue("dma", "any", (), (o,), 0)

    cases = [((0, 2, 2), (1, 1, 1), True), ((1, 1, 1), (0, 2, 2), True), ((0, 2, 2), (2, 1, 1), False),
             ((2, 1, 1), (0, 2, 2), False), ((0, 2, 2), (1, 2, 2), True)]  # fmt: skip
    for mine, theirs, right in cases:
        assert stays(rows(*mine, 0, V("v"), 1), new(rows(*theirs, 4096))) is right
    for first, right in ((0, True), (1, False), (2, False), (3, True)):
        between = Loop("x", bounds(0, 1), bounds(3), 1, new(rows(V("x"), 1, 1, 4096)))
        assert stays(rows(first, 1, 1, 0, V("v"), 1), between) is right


def test_the_one_value_of_a_loop_that_is_not_affine() -> None:
    fs, v = judge(), V("v")
    f = fs.make("A", ("sp", ""), None, v * 64, (32, 4), ((v, v + 1), *box((0, 8))))
    g = generalised(f, span(Loop("v", bounds(0, 1), bounds(2), 1, Seq())), fs, lambda: "^1")
    assert told(g, {}) == told(f, {"v": 1})


@pytest.mark.parametrize("seed", range(4))
def test_what_all_iterations_leave(seed: int) -> None:
    """Together what each of them leaves, wherever the loop begins; also where its one value is not affine."""
    choose, said = random.Random(seed), list[str]()
    for _ in range(60):
        fs, lo, step, trip = judge(), choose.choice((0, 0, 1)), choose.choice((1, 1, 2)), choose.choice((1, 2, 3))
        n = Loop("v", bounds(lo), bounds(lo + step * trip), step, Seq())
        if choose.random() < 0.2:
            n, lo, step, trip = Loop("v", bounds(0, 1), bounds(trip + 1), 1, Seq()), 1, 1, trip
        f = (h := some_fact(choose, fs)).bare or h
        numbers = iter(range(9))
        g = generalised(f, span(n), fs, lambda numbers=numbers: f"^{next(numbers)}")
        each = [told(f, {"v": x}) for x in range(lo, lo + step * trip, step)]
        assert told(g, {}) == set().union(*each)
        said.append(f"{len(g.over)} {g.offset} {g.box}")
    on_record(f"left by loops: all {seed}", said)


def test_what_stays_when_a_variable_goes() -> None:
    """Facts that do not mention it; their holes over all its values, as they are where they do not either."""
    fs, v = judge(), V("v")
    n, m = loop("v", 0, 6, 2, Seq()), Loop("v", bounds(0), bounds(V("n"), V("m")), 2, Seq())
    whole, moving = (fs.make("A", ("sp", ""), None, at, (32, 4), sides) for at, sides in (
        (lit(0), box((0, 8), (0, 8))), (v * 32, ((v, v + 1), *box((0, 8))))))  # fmt: skip
    w = var("w", 0, 4, 2, 0)
    still, own = fs.hole(box((1, 2), (0, 8))), fs.hole(((V("w"), V("w") + 1), *box((0, 1))), (w,))
    row, both = fs.hole(((v, v + 2), *box((0, 8)))), fs.hole(((v + "w", v + V("w") + 1), *box((0, 1))), (w,))

    def after(over: Loop, *holes: Hole) -> set[Fact]:
        state = State()
        for f in (moving, fs.with_holes(whole, frozenset(holes))):
            state.put(f)
        return set(forget(state, "v", span(over), fs))

    assert after(n) == after(m) == {whole}
    for some in ((still,), (own,), (still, own)):
        assert after(n, *some) == after(m, *some) == {fs.with_holes(whole, frozenset(some))}
    wide = fs.hole(box((0, 6), (0, 8)))
    assert after(n, row) == {fs.with_holes(whole, frozenset((wide,)))}
    assert after(n, row, still) == {fs.with_holes(whole, frozenset((wide, still)))}
    assert after(n, both) == {fs.with_holes(whole, frozenset((fs.hole(box((0, 9), (0, 1))),)))}
    assert after(m, row) == after(m, row, still) == set()


@pytest.mark.parametrize("cuts", [False, True])
def test_what_two_states_say(cuts: bool) -> None:
    """Of a state and itself the state; else what both say; all of it where boxes lie within boxes."""
    fs, choose = judge(cuts), random.Random(6)
    for _ in range(60):
        one, two = State(), State()
        for state, many in ((one, 2), (two, 2)):
            for _ in range(choose.randint(1, many)):
                state.put(numbered(choose, fs, 0.3))
        one.put(some_fact(choose, fs))
        assert set(meet(one, one, fs, CTX)) == set(one)
        both = meet(one, two, fs, CTX)
        for env in ENVS:
            assert all_told(both, env) <= all_told(one, env) & all_told(two, env)
    part, whole = (fs.make("A", ("sp", ""), None, lit(0), (32, 4), box((0, n), (0, 8))) for n in (2, 4))
    holed = fs.with_holes(whole, frozenset((fs.hole(box((3, 4), (0, 8))),)))
    near = fs.with_holes(whole, frozenset((fs.hole(box((1, 2), (0, 8))),)))
    for f, want in ((holed, part), (near, fs.with_holes(part, near.holes)), (whole, part)):
        one, two = State(), State()
        one.put(part)
        two.put(f)
        assert set(meet(one, two, fs, CTX, both=False)) == {want}
