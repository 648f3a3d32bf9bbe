"""Every function of the compiled walk, run as Python, against plain lists of what it speaks of."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import product

import pytest

from isam.proof import flat_walk as w

JUNK = 10**6  # what stands where nothing should look


def memory(**arrays: list[int]) -> w.Memory:
    """Everything that is not given is junk."""
    return w.Memory(**{k: arrays.get(k, [JUNK] * 8) for k in w.Memory.__dataclass_fields__})


@dataclass
class Laid:
    """One operand: its words in the table, and all its tokens as (address, element, part)."""

    words: list[int]
    tokens: list[tuple[int, int, int]]
    parts: int
    runs: list[int]
    base: int
    at: int

    @property
    def elements(self) -> list[int]:
        return [e for _, e, q in self.tokens if q == 0]


def laid(choose: random.Random, runs_at: int, row: int, origin: int = 0, plain: bool = False, begin: int = 0) -> Laid:
    """An operand whose tokens lie apart, ``row`` and the one behind it being those of its numbers. ``plain``: side by
    side, one token each. ``begin``: of its elements."""
    parts = 1 if plain else choose.choice((1, 2, 3))
    split = choose.randint(1, parts)
    length, count = choose.randint(1, 3), choose.randint(1, 3)
    by, on = (1, 1) if plain else (choose.choice((1, split, split + 1)), choose.choice((1, 2)))
    by = max(by, split if length > 1 else 1) * choose.choice((1, 1, -1))
    starts = choose.sample(range(-20 if origin else 0, 60, 3 * max(3, abs(by))), count)
    elems = choose.sample(range(0, 24, 6), count)
    base, at = begin + choose.randint(0, 5), origin + choose.randint(30, 35)
    each = [(s + i * by + q, e + i * on, q) for s, e in zip(starts, elems, strict=True)
            for i in range(length) for q in range(split)]  # fmt: skip
    words = [JUNK] * w.ACCESS
    fields = {w.ROW: row, w.LOW: min(a for a, *_ in each), w.HIGH: max(a for a, *_ in each), w.RUNS: runs_at,
              w.COUNT: count, w.LENGTH: length, w.ADDR: by, w.ELEM: on, w.SPLIT: split, w.PARTS: parts,
              w.ORIGIN: origin, w.CELL: 0}  # fmt: skip
    for k, v in fields.items():
        words[k] = v
    tokens = [(at + a, base + e, q) for a, e, q in each]
    return Laid(words, tokens, parts, [x for pair in zip(starts, elems, strict=True) for x in pair], base, at)


@dataclass
class World:
    """A memory with one operand that lies where it says, and room for more in the table."""

    choose: random.Random
    plain: bool = False
    cell: int = 0
    a: int = field(init=False)

    def __post_init__(self) -> None:
        lead, first = self.choose.randint(1, 4), self.choose.randint(1, 3)
        row, origin = self.choose.randint(1, 3), self.choose.choice((0, 12)) if self.cell else 0
        self.one = laid(self.choose, first, row, origin, self.plain)
        self.one.words[w.CELL] = self.cell
        self.a = lead
        self.m = memory(table=[*[JUNK] * lead, *self.one.words], runs=[*[JUNK] * first, *self.one.runs],
                        value=[*[JUNK] * row, self.one.base, self.one.at, *[JUNK] * 4])  # fmt: skip
        self.m.token, self.m.version = [-1] * 160, [JUNK] * 160
        self.m.current = [self.choose.randint(0, 3) for _ in range(64)]
        for where, e, q in self.one.tokens:
            self.m.token[where], self.m.version[where] = e * self.one.parts + q, self.m.current[e]

    def words(self, values: list[int]) -> int:
        """Where they are in the table."""
        at = len(self.m.table)
        self.m.table += values
        return at

    def values(self, values: list[int]) -> int:
        at = len(self.m.value)
        self.m.value += values
        return at

    def time(self) -> tuple[list[int], int]:
        """Counters of loops and their strides as words, and what they come to."""
        rows, strides = [self.choose.randint(0, 3) for _ in range(2)], [self.choose.choice((4, 8)) for _ in range(2)]
        first = self.values(rows)
        words = [x for i, k in enumerate(strides) for x in (first + i, k)]
        return words, sum(r * k for r, k in zip(rows, strides, strict=True))


def worlds(plain: tuple[bool, ...] = (False, True), many: int = 30) -> list[World]:
    return [World(random.Random(f"{p} {seed}"), p) for p in plain for seed in range(many if p else 8 * many)]


def test_sums() -> None:
    m = memory(env=[5, 7, 11], table=[JUNK, 3, 2, 0, 10, 2, -4, JUNK], value=[3, 4, 6])
    assert w.form(m, 1) == 3 + 5 * 10 - 11 * 4
    m.table = [JUNK, 2, 10, 0, 7, JUNK]
    assert w.linear(m, 1, 2) == 6 * 10 + 3 * 7
    assert w.linear(m, 1, 1) == 60
    assert w.linear(m, 1, 0) == 0


def test_an_operand_lies_where_it_says_in_every_token() -> None:
    for x in worlds():
        assert w.holds(x.m, x.a)
        mine = {where for where, *_ in x.one.tokens}
        for where in range(160):
            for array in (x.m.token, x.m.version):
                was, array[where] = array[where], array[where] + 1
                assert bool(w.holds(x.m, x.a)) == (where not in mine)
                array[where] = was
        for e in range(64):
            x.m.current[e] += 1
            assert bool(w.holds(x.m, x.a)) == (e not in x.one.elements)
            x.m.current[e] -= 1


def test_elements_that_are_said_to_lie_at_one_address_do_not() -> None:
    """Nor do they when they lie side by side; what is written there is the last of them alone."""
    words = [JUNK] * w.ACCESS
    for k, v in {w.ROW: 0, w.RUNS: 0, w.COUNT: 1, w.LENGTH: 3, w.ADDR: 0, w.ELEM: 1, w.SPLIT: 1, w.PARTS: 1, w.LOW: 0,
                 w.HIGH: 0, w.ORIGIN: 0, w.CELL: 0}.items():  # fmt: skip
        words[k] = v
    m = memory(table=words, runs=[0, 0], value=[5, 10], token=[-1] * 20, version=[0] * 20, current=[0] * 20)
    m.token[10:13] = [5, 6, 7]
    assert not w.holds(m, 0)
    m.token[10:13] = [-1] * 3
    assert w.write(m, 0)
    assert m.token[10:13] == [7, -1, -1]


def test_every_element_is_read_in_its_turn() -> None:
    for x in worlds():
        words, time = x.time()
        first = x.choose.randint(0, 3)
        x.m.want = [JUNK] * (first + time) + x.m.current
        r = x.words([x.a, first, 2, x.words(words)])
        assert w.in_order(x.m, r)
        for e in range(64):
            for by in (1, -1):
                x.m.current[e] += by
                assert bool(w.in_order(x.m, r)) == (e not in x.one.elements)
                x.m.current[e] -= by


def effect(x: World, accumulates: int, ordered: bool) -> tuple[int, int, int, int, int]:
    """An effect that may be carried out; times, versions already written, first and last rank of its terms."""
    words, time = x.time()
    already, times, adds = x.choose.randint(0, 2), x.choose.randint(1, 3), 7
    low, shift = x.choose.randint(0, 3), 70
    x.m.want = [JUNK] * (low + time) + [n + already for n in x.m.current] + [JUNK] * (shift - 64 - low)
    x.m.want += [adds + e % 5 for e in range(64)]
    extents = [(2, 3), (3, 5)]
    at = x.values([1, 2])
    first, last = 1 * 5 + 2, (1 + 2 - 1) * 5 + 2 + 3 - 1
    seen = x.choose.randint(0, 3)
    x.m.seen = [JUNK] * seen + [first - 1] * 64
    order = x.words([y for i, (n, full) in enumerate(extents) for y in (at + i, n, full)]) if ordered else JUNK
    points = x.choose.randint(1, 4)
    axes = x.values([8, 6])
    box = x.words([points, 2, axes, 4, 10, axes + 1, 2, 1])
    x.m.runs += [0, 10]
    runs = len(x.m.runs) - 2
    f = x.words([x.a, already, times, low, shift, 2, x.words(words), box, runs, 2, 3,
                 seen if ordered else -1, 2 if ordered else 0, order, accumulates])  # fmt: skip
    x.m.done = [x.choose.choice((0, 1, 254, 255)) for _ in range(64)]
    x.points = {points + 8 // 4 * 10 + 6 // 2 * 1 + r + i for r in (0, 10) for i in range(3)}  # type: ignore[attr-defined]
    x.seen = seen  # type: ignore[attr-defined]
    return f, already, times, first, last


def test_what_is_written_overlaps_no_other_operand_but_the_same_one() -> None:
    said = set()
    for seed, same in product(range(150), (0, 1)):
        choose = random.Random(seed)
        first, row = choose.randint(1, 3), choose.randint(1, 3)
        a = laid(choose, first, row)
        alike = choose.random() < 0.3
        b = laid(choose, first + len(a.runs), row + 3, origin=choose.choice((0, 30)))
        if alike:
            b.words = [row + 3 if k == w.ROW else v for k, v in enumerate(a.words)]
            b.at, b.base, b.tokens = a.at, a.base + choose.choice((0, 0, 1)), a.tokens
        lead = choose.randint(1, 3)
        table = [*[JUNK] * lead, *a.words, *b.words, *[JUNK] * lead, lead, lead + w.ACCESS, same]
        pair = len(table) - 3
        m = memory(table=table, runs=[*[JUNK] * first, *a.runs, *b.runs], state=[0] * 6,
                   value=[*[JUNK] * row, a.base, a.at, JUNK, b.base, b.at], mark=[0] * 500)  # fmt: skip
        met = bool({x for x, *_ in a.tokens} & {x for x, *_ in b.tokens})
        for _ in range(2):
            assert bool(w.apart(m, pair)) == (not met or bool(same and (a.at, a.base) == (b.at, b.base)))
        said.add((alike, met, bool(same and (a.at, a.base) == (b.at, b.base))))
    assert {(False, True, False), (False, False, False), (True, True, False), (True, True, True)} <= said


@pytest.mark.parametrize(("accumulates", "ordered"), [*product((0, 1), (False, True))])
def test_a_statement_may_write_what_is_prescribed(accumulates: int, ordered: bool) -> None:
    for x in worlds(many=6):
        f, _, times, first, last = effect(x, accumulates, ordered)
        assert w.rank(x.m, f, 0) == (first if ordered else 0)
        assert w.rank(x.m, f, 1) == (last if ordered else 0)
        assert w.allowed(x.m, f)
        for e in range(64):
            mine = e in x.one.elements
            most = 7 + e % 5 - times
            for by in (-1, 1, most, most + 1):
                x.m.current[e] += by
                right = 0 <= by <= most if accumulates else by == 0
                assert bool(w.allowed(x.m, f)) == (right or not mine), by
                x.m.current[e] -= by
            if ordered:
                at = x.seen + e  # type: ignore[attr-defined]
                x.m.seen[at] += 1
                assert bool(w.allowed(x.m, f)) == (not mine)
                x.m.seen[at] -= 1


@pytest.mark.parametrize("ordered", [False, True])
def test_a_statement_is_counted(ordered: bool) -> None:
    for x in worlds(many=6):
        f, _, times, first, last = effect(x, 1, ordered)
        current, seen, done = list(x.m.current), list(x.m.seen), list(x.m.done)
        assert w.carry_out(x.m, f)
        for e in x.one.elements:
            current[e] += times
            if ordered:
                seen[x.seen + e] = last  # type: ignore[attr-defined]
        assert (x.m.current, x.m.seen) == (current, seen)
        counted = {p for p in range(64) if x.m.done[p] != done[p] or done[p] == 255}
        assert all(x.m.done[p] == min(255, done[p] + (p in x.points)) for p in range(64))  # type: ignore[attr-defined]
        assert counted & x.points or all(done[p] == 255 for p in x.points)  # type: ignore[attr-defined]
        assert first <= last


@pytest.mark.parametrize("cell", [0, 1, 5, 8])
def test_what_is_written_lies_there_and_nothing_else_in_its_cells(cell: int) -> None:
    for plain, seed in product((False, True), range(8)):
        x = World(random.Random(seed), plain, cell)
        token, version = [900 + i for i in range(160)], [500 + i for i in range(160)]
        x.m.token, x.m.version = list(token), list(version)
        assert w.write(x.m, x.a)
        origin, used = x.one.words[w.ORIGIN], [where for where, *_ in x.one.tokens]
        if cell:
            first, last = (min(used) - origin) // cell, (max(used) - origin) // cell
            token[origin + first * cell : origin + (last + 1) * cell] = [-1] * ((last + 1 - first) * cell)
        for where, e, q in x.one.tokens:
            token[where], version[where] = e * x.one.parts + q, x.m.current[e]
        assert x.m.token[:160] == token[:160]
        assert x.m.version == version


def test_numbers_of_a_step() -> None:
    """Several forms, ranges and operands: each at both ends of what is allowed, and one beyond."""
    said = set()
    for seed in range(60):
        choose = random.Random(seed)
        accesses, forms, ranges, wanted, inside = [], [], [], [], True
        for k in range(2):
            wide, unit, align = choose.choice((1, 2)), choose.choice((2, 4)), choose.choice((1, 4, 8))
            lowest, highest, origin, size = choose.choice((0, -1)), choose.choice((0, 2)), 50 * k, choose.choice((4, 6))
            first, byte = choose.choice((2, 3, 4, 0)), choose.choice((0, unit, 2 * unit, 8, 12, 16, 3, -unit))
            env = choose.randint(1, 3)
            last = first + choose.choice((0, 0, 1, -1)) if choose.random() < 0.8 else first + 2
            forms += [[first - env, 1, k, 1], [byte - 2 * env, 1, k, 2]]
            ranges.append((2 * k, last))
            words = [JUNK] * w.ACCESS
            for name, v in {w.ROW: 2 * k, w.ALIGN: align, w.UNIT: unit, w.WIDE: wide, w.LOW: lowest, w.HIGH: highest,
                            w.ORIGIN: origin, w.SIZE: size}.items():  # fmt: skip
                words[name] = v
            accesses += words
            inside = inside and 0 <= first <= last and first % wide == 0 and byte % unit == 0 and byte % align == 0
            inside = inside and byte // unit + lowest >= 0 and byte // unit + highest < size
            wanted += [first // wide, origin + byte // unit]
            envs = [env] if not k else [*envs, env]  # noqa: F821
        lead = choose.randint(1, 3)
        table = [*[JUNK] * lead, 4, *(x for f in forms for x in f), 2, *(x for r in ranges for x in r), 2, *accesses]
        m = memory(table=table, env=envs, value=[JUNK] * 8)
        assert bool(w.located(m, lead, len(table) - len(accesses) - 1)) == inside
        said.add(inside)
        if inside:
            assert m.value[:4] == wanted
    assert said == {True, False}


def test_iterations_of_a_loop() -> None:
    """Bounds on both sides, several of each, with divisors, against trying."""
    said = set()
    for seed in range(200):
        choose = random.Random(seed)
        env = [choose.randint(-5, 5), choose.randint(0, 3)]
        sides, words, begin = [], [], choose.randint(1, 3)
        for shift in (-4, 4):
            side = [(choose.choice((1, 1, 2, 3)), choose.randint(-6, 6) + shift, choose.choice((0, 1, -1, 2)))
                    for _ in range(choose.randint(1, 3))]  # fmt: skip
            sides.append(side)
            words += [len(side), *(x for div, const, c in side for x in (div, const, 1, 0, c))]
        by, needs = choose.choice((1, 2, 3)), choose.choice((0, 1, 2))
        lo = [(div, const + c * env[0]) for div, const, c in sides[0]]
        hi = [(div, const + c * env[0]) for div, const, c in sides[1]]
        least = next(v for v in range(-60, 60) if all(v * div >= n for div, n in lo))
        most = next(v for v in range(60, -60, -1) if all(v * div <= n for div, n in hi))
        trip = len(range(least, most, by))
        m = memory(code=[*[JUNK] * 9, w.LOOP, 0, 1, by, needs, 0, begin], table=[*[JUNK] * begin, *words], env=env,
                   low=[JUNK] * 3, high=[JUNK] * 3)  # fmt: skip
        assert w.begin(m, 9) == (-1 if 0 < trip < needs else trip)
        assert (m.low, m.high) == ([JUNK, least, JUNK], [JUNK, most, JUNK])
        said.add((0 < trip < needs, trip == 0, trip == needs > 0))
    assert {(True, False, False), (False, True, False), (False, False, True)} <= said


@pytest.mark.parametrize(("low", "high", "small"), [
    (-w.LARGEST, w.LARGEST, True), (-w.LARGEST - 1, 0, False), (0, w.LARGEST + 1, False),
    (w.LARGEST - 1, w.LARGEST, True)])  # fmt: skip
def test_numbers_that_64_bits_may_not_hold_are_left_alone(low: int, high: int, small: bool) -> None:
    m = memory(code=[w.LOOP, 0, 0, 1, 0, 0, 0], table=[1, 1, low, 0, 1, 1, high, 0], env=[], low=[0], high=[0])
    assert w.begin(m, 0) == (high - low if small else -1)
