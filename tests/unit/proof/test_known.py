"""What facts say, element by element: of families and of tiles with steps, what is overwritten, filled and joined."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import Family
from isam.proof.facts import Facts
from isam.proof.induction import implied
from isam.proof.legal import Legality
from isam.proof.progressions import progressions, put_back, shape_of
from isam.proof.sets import Isl
from isam.proof.state import Fact, Hole, State, Target
from isam.schedule.tree import Operand, Place, Tile
from tests.unit.proof.handmade import tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_facts import CELL, CTX, ENVS, Bytes, shown
from tests.unit.proof.test_prover import box, inside, values_of
from tests.unit.proof.test_witness import var
from tests.unit.proof.verdicts import on_record

V = Affine.of
Env = dict[str, int]
Point = tuple[int, ...]


def judge(cuts: bool = False) -> Facts:
    return Facts(Legality(tiny_matmul(8, 8, 8)), Isl(), cuts)


def elements(f: Fact | Hole | Target, env: Env) -> set[Point]:
    return inside(Family(f.box, f.over), env)


def told(f: Fact, env: Env) -> set[tuple[Point, int]]:
    """Which elements it says lie at which bytes."""
    out = set[tuple[Point, int]]()
    envs = [env]
    for v in f.over:
        envs = [{**e, v.name: x} for e in envs for x in values_of(v, e)]
    for e in envs:
        out |= {(p, f.address(map(Affine.lift, p)).evaluate(e)) for p in inside(Family(f.box), e)}
    gone = set[Point]().union(*(elements(h, env) for h in f.holes))
    return {(p, at) for p, at in out if p not in gone}


def all_told(state: Iterable[Fact], env: Env) -> set[tuple[str, Point, int]]:
    return {(f.buffer, p, at) for f in state for p, at in told(f, env)}


# operands -------------------------------------------------------------------------------------------------------------
def test_where_operands_lie() -> None:
    """First and last byte, cells, elements and their addresses, of tiles with steps and in every direction, too."""
    fs, choose = judge(), random.Random(1)
    for _ in range(120):
        shape, steps = (tuple(choose.choice(some) for _ in range(2)) for some in ((1, 2, 3), (1, 1, 2, 3)))
        start = tuple(choose.choice((lit(0), lit(1), V("v"), V("v", 2))) for _ in range(2))
        strides = choose.choice(((32, 4), (16, 4), (4, 16), (-16, 4), (8, -32), (64, 4)))
        number = choose.choice((None, None, 0, 2))
        offset = choose.choice((lit(0), lit(64), lit(100), V("v", 16) + 8))
        place = Place("sp" if number is None else "ra", "", offset, strides, number)
        o = Operand("D", Tile("A", start, shape, steps), place, (0, 1))
        t, f = fs.target(o), fs.sought
        assert fs.target(o) is t
        assert fs.target(Operand(*[getattr(o, n) for n in ("name", "tile", "place", "dims")])) is t
        for env in ENVS:
            places = Bytes(env).places(o)
            at = [byte for _, (_, _, byte) in places]
            assert elements(t, env) == {e for e, _ in places}
            fact = fs.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over)
            assert told(fact, env) == {(e, byte) for e, (_, _, byte) in places}
            assert (t.low.evaluate(env), t.high.evaluate(env)) == (min(at), max(at) + 4)
            assert elements(t, env) <= inside(Family(t.hull), env)
            ends = [(min(x), max(x) + 1) for x in zip(*(e for e, _ in places), strict=True)]
            assert [(lo.evaluate(env), hi.evaluate(env)) for lo, hi in t.hull] == ends
            if number is not None and not offset.terms:
                assert t.cells == (min(at) // CELL, (max(at) + 3) // CELL)
            elif number is not None:
                assert t.cells == (number, number)
        again = f(fact)
        assert (again.wide, t.wide) == (tuple(n > 1 and k == 1 for n, k in zip(shape, steps, strict=True)),
                                        tuple(n > 1 for n in shape))  # fmt: skip


# reading --------------------------------------------------------------------------------------------------------------
def some_fact(choose: random.Random, fs: Facts) -> Fact:
    """Rows of A by one rule or another: some or all, every second, those of a variable; with holes."""
    over = ()
    if (kind := choose.random()) < 0.5:
        step = choose.choice((1, 2))
        last = choose.choice((lit(3), lit(6), V("v")))
        over = (var("u", 0, last, step, 0),)
        row = (V("u", choose.choice((1, 1, 2))) + choose.choice((0, 0, 1)), choose.choice((1, 1, 2)))
    else:
        row = (choose.choice((lit(0), lit(0), lit(2), V("v"), V("v", 2))), choose.choice((1, 2, 4, 8)))
    column = (choose.choice((lit(0), lit(0), lit(2), V("v"))), choose.choice((4, 4, 2, 1)))
    sides = tuple((lo, lo + n) for lo, n in (row, column))
    strides = choose.choice(((32, 4), (32, 4), (32, 4), (4, 32)))
    at = row[0] * strides[0] + column[0] * strides[1] + choose.choice((0, 0, 0, 0, 64))
    if over and choose.random() < 0.2:
        at = at + V("u", 32)
    if not over and row[1] == 1:
        strides = (choose.choice((strides[0], 4096)), strides[1])
    f = fs.make("A", ("sp", ""), None, at, strides, sides, over)
    if kind > 0.35 and choose.random() < 0.4:
        w = var("w", 0, 6, choose.choice((1, 2)), 0)
        hole = choose.choice((fs.hole(box((0, 1), (0, 8))), fs.hole(box((0, 8), (2, 3))), fs.hole(((V("v"), V("v") + 1),
                             *box((0, 8)))), fs.hole(((V("w"), V("w") + 1), *box((0, 1))), (w,))))  # fmt: skip
        f = fs.with_holes(f, frozenset((hole,)))
    return f


def some_tile(choose: random.Random) -> Operand:
    shape, steps = (choose.choice((1, 1, 2, 4)), choose.choice((1, 2, 4))), (choose.choice((1, 1, 2)), 1)
    start = (choose.choice((lit(0), lit(1), V("v"), V("v", 2))), choose.choice((lit(0), lit(2), V("v"))))
    strides = choose.choice(((32, 4), (32, 4), (32, 4), (4, 32)))
    at = start[0] * strides[0] + start[1] * strides[1] + choose.choice((0, 0, 0, 64))
    return Operand("S", Tile("A", start, shape, steps), Place("sp", "", at, strides), (0, 1))


@pytest.mark.parametrize("seed", range(6))
def test_tiles_that_facts_hold(seed: int) -> None:
    """What is held is there, whatever the variable's value; how much is, on record."""
    choose, said, count = random.Random(seed), list[bool](), Counter[tuple[bool, bool]]()
    for _ in range(150):
        fs, state = judge(), State()
        for _ in range(choose.choice((1, 1, 2, 3))):
            f = some_fact(choose, fs)
            other = choose.random() < 0.15
            state.put(fs.make("B", f.spot, f.cells, f.offset, f.strides, f.box, f.over) if other else f)
        o = some_tile(choose)
        got = fs.holds(state, fs.target(o), CTX)
        true = all({(e, at) for e, (_, _, at) in Bytes(env).places(o)} <=
                   {(p, at) for b, p, at in all_told(state, env) if b == "A"} for env in ENVS)  # fmt: skip
        assert true or not got
        said.append(got)
        count[got, true] += 1
        f = some_fact(choose, fs)
        if implied(state, f, fs, CTX):
            assert all(all_told([f], env) <= all_told(state, env) for env in ENVS)
            said.append(True)
    assert count[True, True] > 4
    on_record(f"said: held {seed}", said)


def test_rows_by_themselves_and_together() -> None:
    """The stride of a row that is one says nothing; boxes that touch only together, and one of two without holes."""
    fs = judge()
    for by, pitch in ((32, 4096), (32, 32), (64, 4096)):
        state = State()
        for n in (0, 1):
            row = fs.make("A", ("sp", ""), None, lit(by * n), (pitch, 4), box((n, n + 1), (0, 4)))
            state.put(fs.with_holes(row, frozenset((fs.hole(box((7, 8), (0, 4))),))))
        t = Operand("S", Tile("A", (lit(0), lit(0)), (2, 4), (1, 1)), Place("sp", "", lit(0), (32, 4)), (0, 1))
        assert fs.holds(state, fs.target(t), CTX) is (by == 32)

    def of(*sides: tuple[int, int]) -> Fact:
        return fs.make("A", ("sp", ""), None, lit(sides[0][0] * 32 + sides[1][0] * 4), (32, 4), box(*sides))

    state, two = State(), [of((0, 1), (0, 1)), of((0, 2), (1, 2))]
    for some in (two, two[::-1]):
        state = State()
        for f in some:
            state.put(f)
        fs.merge_into(state, of((1, 2), (0, 1)), some, CTX)
        assert set(state) == {of((0, 2), (0, 2))}
    whole, part = of((0, 4), (0, 4)), of((0, 2), (0, 2))
    holed = fs.with_holes(of((0, 3), (0, 3)), frozenset((fs.hole(box((2, 3), (0, 3))),)))
    for around in ([whole, holed], [holed, whole]):
        state = State()
        for f in around:
            state.put(f)
        assert fs.fill(state, around, part, CTX) is True
        assert fs.fill(state, [holed], part, CTX) is False


def test_variables_of_one_name_are_not_one() -> None:
    """Of two families of numbers in one line every second place is said, of the one the others."""
    for shift, right in ((0, True), (1, False)):
        fs, state, u = judge(), State(), V("u")
        one, two = (
            fs.make("A", ("sp", ""), None, u * 8 + 4 * n, (4,), ((u + n, u + n + 1),), (var("u", 0, last, 1, 0),))
            for n, last in ((0, 3), (shift, 2))
        )
        state.put(one)
        assert implied(state, two, fs, CTX) <= right
        assert not implied(State(), two, fs, CTX)
        assert (all_told([two], {}) <= all_told([one], {})) is right
    fs, state, u = judge(), State(), V("u")
    state.put(fs.make("A", ("sp", ""), None, u * 8, (4,), ((u, u + 1),), (var("u", 0, 3, 1, 0),)))
    second = fs.make("A", ("sp", ""), None, u * 4 + 4, (4,), ((u + 1, u + 2),), (var("u", 0, 0, 1, 0),))
    assert not implied(state, second, fs, CTX)
    assert fs.home("T") is None


@pytest.mark.parametrize("seed", range(2))
def test_families_without_a_common_element(seed: int) -> None:
    """Said of all that have none where one has variables of its own, of boxes where their bounds say so."""
    choose, count = random.Random(seed), Counter[bool]()
    for _ in range(60):
        fs = judge()
        f, g = (some_fact(choose, fs) for _ in range(2))
        for one, two in product((f, fs.hole(f.box, f.over)), (fs.hole(g.box, g.over), fs.sought(g).hole)):
            true = all(not elements(one, env) & elements(two, env) for env in ENVS)
            got = fs.parted(one, two, CTX)
            assert true or not got
            assert got or not true or not (f.over or g.over)
            count[got] += 1
    assert min(count.values()) > 20


# writing --------------------------------------------------------------------------------------------------------------
def numbered(choose: random.Random, fs: Facts, holes: float = 0.5) -> Fact:
    """A box of numbers by the one rule, with up to two holes, some of which reach beyond it or have steps."""
    sides = box(*((lo := choose.randint(0, 4), lo + choose.randint(1, 4)) for _ in range(2)))
    f = fs.make("A", ("sp", ""), None, sides[0][0] * 32 + sides[1][0] * 4, (32, 4), sides)
    made = list[Hole]()
    while choose.random() < holes and len(made) < 2:
        at = box(*((lo := choose.randint(0, 6), lo + choose.randint(1, 3)) for _ in range(2)))
        w = var("w", 0, 4, 2, 0)
        made.append(fs.hole(((V("w"), V("w") + 1), at[1]), (w,)) if choose.random() < 0.3 else fs.hole(at))
    return fs.with_holes(f, frozenset(made))


def test_holes_end_where_their_fact_ends() -> None:
    fs, choose = judge(), random.Random(2)
    for _ in range(300):
        f = numbered(choose, fs, 0.8)
        cut = fs._within(f, CTX)
        gone = set[Point]().union(*(elements(h, {}) for h in f.holes))
        assert elements(f, {}) - set[Point]().union(*(elements(h, {}) for h in cut)) == elements(f, {}) - gone
        for h in cut:
            assert elements(h, {})
            assert h.over or elements(h, {}) <= elements(f, {})


def test_holes_that_are_filled() -> None:
    """All of what was filled goes, of every hole that it meets, and nothing else; of a hole with steps, or by a tile
    with steps, nothing goes but it itself."""
    fs, choose, met = judge(), random.Random(3), 0
    for _ in range(900):
        f, g = (numbered(choose, fs, 0.9) for _ in range(2))
        filled = choose.choice([*f.holes, *g.holes, fs.hole(g.box)])
        after = fs._filled(f.holes, filled, CTX)
        others = {h for h in f.holes - {filled} if filled.over or h.over}
        want = set[Point]().union(*(elements(h, {}) - elements(filled, {}) for h in f.holes - others))
        assert set[Point]().union(*(elements(h, {}) for h in set(after) - others)) == want
        assert others <= set(after)
        met += filled in f.holes and any(elements(h, {}) & elements(filled, {}) for h in f.holes - {filled} - others)
    assert met > 3


@pytest.mark.parametrize("cuts", [False, True])
def test_facts_that_are_joined(cuts: bool) -> None:
    """Together they say what they said apart, in fewer facts where they touch; what lies around a part has no holes in
    it, and says so of itself."""
    fs, choose, fewer = judge(cuts), random.Random(4), 0
    for _ in range(300):
        state, some = State(), [numbered(choose, fs, 0.3) for _ in range(choose.choice((1, 2, 3)))]
        for f in some:
            state.put(f)
        new, before = numbered(choose, fs, 0.3), all_told(state, {})
        given = list(some)
        fs.merge_into(state, new, given, CTX)
        assert given == some
        assert all_told(state, {}) == before | all_told([new], {})
        fewer += len(list(state)) <= len(set(some))
        around = [f for f in state if elements(new, {}) <= elements(f, {})]
        whole = fs.fill(state, around, fs.changed(new, holes=()), CTX)
        assert whole is any(not f.holes for f in state if elements(new, {}) <= elements(f, {}))
        now = all_told(state, {})
        stepped = any(h.over for f in some for h in f.holes) or any(h.over for h in new.holes)
        assert now <= before | all_told([fs.changed(new, holes=())], {})
        assert stepped or not around or all_told([fs.changed(new, holes=())], {}) <= now
    assert fewer > 5


def test_what_becomes_stale() -> None:
    """The elements that have a new version; of facts in cells, or about families that no one rule lays, everything."""
    fs, choose = judge(), random.Random(5)
    for _ in range(120):
        f = some_fact(choose, fs) if choose.random() < 0.5 else numbered(choose, fs)
        if choose.random() < 0.1:
            f = fs.with_holes(fs.make("A", ("ra", ""), (1, 1), f.offset, f.strides, f.box, f.over), f.holes)
        o, state = some_tile(choose), State()
        state.put(f)
        t = fs.target(o)
        fs.stale(state, f, t, CTX)
        for env in ENVS:
            had, have = told(f, env), told(next(iter(state), f), env)
            left = {(p, at) for p, at in had if p not in elements(t, env)}
            if list(state):
                assert have == left
        held = not (t.over or f.over) and all(elements(f, e) <= elements(t, e) for e in ENVS)
        whole = f.cells is not None or not f.one_rule or held
        untouched = all(not elements(f, e) & elements(t, e) for e in ENVS)
        if not list(state):
            assert whole or untouched
        elif whole:
            assert list(state) == [f]


# progressions ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_facts_at_equal_distances(seed: int) -> None:
    """What is made of them says what they say and no more; how much is made, on record."""
    choose, made = random.Random(seed), list[str]()
    for _ in range(80):
        fs, some = judge(), list[Fact]()
        for _ in range(choose.choice((1, 1, 2))):
            rank = choose.choice((1, 2, 3))
            strides, by = (256, 32, 4)[-rank:], choose.randrange(rank)
            step, count, far = choose.choice((1, 2, -1)), choose.choice((1, 2, 3, 4)), choose.choice((0, 0, 0, 4, 8))
            over = (var("u", 0, choose.choice((4, 8)), choose.choice((2, 4)), 0),) if choose.random() < 0.5 else ()
            own, along = choose.randrange(rank), choose.choice((1, 1, 2))
            for k in range(count):
                lo = [lit(4) for _ in range(rank)]
                lo[by] = lo[by] + step * k
                lo[own] = lo[own] + (V("u", along) if over else 0)
                at = sum((a * s for a, s in zip(lo, strides, strict=True)), lit(0)) + far * k
                some.append(fs.make("A", ("sp", ""), None, at, strides, tuple((a, a + 2) for a in lo), over))
        choose.shuffle(some)
        for f, s in progressions(some):
            offset, sides = put_back(s)
            g = fs.make(f.buffer, f.spot, None, offset, f.strides, sides, s.over)
            assert told(g, {}) <= {(p, at) for _, p, at in all_told(some, {})}
            made.append(f"{len(told(g, {}))} {offset} {sides}")
    assert len(made) > 20
    on_record(f"said: progressions {seed}", made)


def test_facts_between_those_of_a_variable() -> None:
    """They are members of one family where they lie as its next ones would, and not where they only seem to."""
    fs = judge()
    for along, right in ((1, True), (2, False)):
        over, lo = (var("u", 0, 6, 2, 0),), V("u", along)
        some = [fs.make("A", ("sp", ""), None, (lo + n) * 4 + 4 * (along - 1) * n, (4,), ((lo + n, lo + n + 1),), over)
                for n in (0, 1)]  # fmt: skip
        ((f, s),) = progressions(some)
        offset, sides = put_back(s)
        made = fs.make(f.buffer, f.spot, None, offset, f.strides, sides, s.over)
        assert told(made, {}) == {(p, at) for _, p, at in all_told(some, {})}
        assert (len(s.over) == 1) is right


def test_facts_that_make_no_progression() -> None:
    fs, v = judge(), V("v")
    rows = fs.make("A", ("sp", ""), None, lit(0), (32, 4), ((v, v + 1), *box((0, 8))))
    assert shape_of(rows) is not None
    assert shape_of(fs.with_holes(rows, frozenset((fs.hole(rows.box),)))) is None
    assert shape_of(fs.make("A", ("ra", ""), (0, 0), lit(0), (32, 4), rows.box)) is None
    for sides in (((lit(0), v), (v, v + 1)), ((v, v + 1), (lit(0), v)), ((lit(0), v), (lit(0), v))):
        assert shape_of(fs.make("A", ("sp", ""), None, lit(0), (32, 4), sides)) is None
    assert shown(State()) == []
