"""Random moves and results in a small memory: what is said to lie somewhere, current, does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.context import Context
from isam.proof.facts import Facts
from isam.proof.induction import meet
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.state import State
from isam.schedule.tree import Operand, Place, Tile
from tests.unit.proof.handmade import tiny_matmul
from tests.unit.proof.verdicts import on_record

ROWS, COLUMNS, SIZE = 4, 4, 4
Element = tuple[str, int, int]


class Memory:
    """What lies in every byte, and how often every element was written."""

    def __init__(self) -> None:
        self.bytes: dict[tuple[str, int], tuple[Element, int, int]] = {}
        self.current: dict[Element, int] = {}

    def copy(self) -> Memory:
        new = Memory()
        new.bytes, new.current = dict(self.bytes), dict(self.current)
        return new

    def write(self, o: Operand, compute: bool) -> None:
        cells = {(w, at // 64) for _, w, at in elements(o)} if o.place.cell is not None else set()
        for w, c in cells:
            for at in range(64 * c, 64 * c + 64):
                self.bytes.pop((w, at), None)
        for e, w, at in elements(o):
            self.current[e] = self.current.get(e, 0) + compute
            for q in range(SIZE):
                self.bytes[w, at + q] = e, q, self.current[e]

    def holds(self, o: Operand) -> bool:
        return all(self.bytes.get((w, at + q)) == (e, q, self.current.get(e, 0))
                   for e, w, at in elements(o) for q in range(SIZE))  # fmt: skip


def elements(o: Operand) -> Iterator[tuple[Element, str, int]]:
    """Each with its first byte."""
    p, t = o.place, o.tile
    begin = p.offset.const + (0 if p.cell is None else 64 * p.cell)
    for r, c in product(*(range(n) for n in t.shape)):
        at = begin + r * t.steps[0] * p.strides[0] + c * t.steps[1] * p.strides[1]
        yield (t.buffer, t.start[0].const + r * t.steps[0], t.start[1].const + c * t.steps[1]), p.memory, at


RULES = ((16, 4), 0), ((16, 4), 64), ((16, 4), 32), ((4, 16), 0), ((-16, 4), 48), ((32, 4), 0)


class Draw:
    """Tiles by one or two rules, so that tiles meet."""

    def __init__(self, choose: random.Random):
        self.choose, self.rules = choose, choose.sample(RULES, choose.choice((1, 2, 2)))
        self.buffers, self.cells, self.steps = (
            choose.choice(("A", "AAB")),
            choose.choice((0, 0.3)),
            choose.choice((1, 2)),
        )

    def __call__(self) -> Operand:
        choose, sides = self.choose, (ROWS, COLUMNS)
        steps = tuple(choose.choice((1, 1, 1, self.steps)) for _ in range(2))
        shape = tuple(choose.randint(1, (n - 1) // k + 1) for n, k in zip(sides, steps, strict=True))
        start = tuple(choose.randint(0, n - 1 - (m - 1) * k) for n, m, k in zip(sides, shape, steps, strict=True))
        tile = Tile(choose.choice(self.buffers), tuple(map(Affine.lift, start)), shape, steps)
        if choose.random() < self.cells:
            return Operand("X", tile, Place("ra", "", Affine(), (16, 4), choose.randint(0, 1)), (0, 1))
        return self.elsewhere(Operand("X", tile, Place("sp", "", Affine(), (16, 4)), (0, 1)))

    def elsewhere(self, o: Operand) -> Operand:
        """The same tile by one of the rules."""
        strides, base = self.choose.choice(self.rules)
        at = base + sum(s.const * k for s, k in zip(o.tile.start, strides, strict=True))
        return replace(o, place=Place("sp", "", Affine((), at), strides))


def facts(cuts: bool) -> Facts:
    return Facts(Legality(tiny_matmul()), Isl(), cuts)


def split(o: Operand, choose: random.Random) -> Operand:
    """A part of a tile where that lies."""
    start, shape = list(o.tile.start), list(o.tile.shape)
    offset = o.place.offset
    for d in range(2):
        first = choose.randrange(shape[d])
        shape[d] = choose.randint(1, shape[d] - first)
        start[d] = start[d] + first * o.tile.steps[d]
        offset = offset + first * o.tile.steps[d] * o.place.strides[d]
    return replace(
        o, tile=o.tile._replace(start=tuple(start), shape=tuple(shape)), place=replace(o.place, offset=offset)
    )


@pytest.mark.parametrize(("seed", "cuts"), [*product(range(10), (False, True))])
def test_what_is_known_is_so(seed: int, cuts: bool) -> None:
    yes = no = missed = lost = 0
    said: list[object] = []
    for part in range(16):
        choose, fs, ctx = random.Random(f"{seed} {part}"), facts(cuts), Context()
        state, memory, used, drawn = State(), Memory(), list[Operand](), Draw(choose)
        for _ in range(choose.randint(3, 12)):
            o = drawn() if not used or choose.random() < 0.6 else split(choose.choice(used), choose)
            used.append(o)
            if choose.random() < 0.3:
                o = used[-1] = drawn.elsewhere(choose.choice(used))
            compute = choose.random() < 0.4
            fs.write(state, fs.target(o), compute, ctx)
            memory.write(o, compute)
            lost += not fs.holds(state, fs.target(o), ctx)
            for probe in [*used, *(split(choose.choice(used), choose) for _ in range(4)), drawn()]:
                known, true = fs.holds(state, fs.target(probe), ctx), memory.holds(probe)
                assert true or not known, (probe, used)
                said.append(known)
                yes, no, missed = yes + known, no + (not true), missed + (true and not known)
    assert min(yes, no) > 100
    assert lost < 2  # only what is written into a fact of which every other element is out of date
    assert missed * (5 if cuts else 3) < yes
    on_record(f"known: {seed}{', cut' if cuts else ''}", said)


@pytest.mark.parametrize(("seed", "cuts"), [*product(range(6), (False, True))])
def test_what_two_ways_have_in_common(seed: int, cuts: bool) -> None:
    yes, said = 0, list[object]()
    for part in range(16):
        choose, fs, ctx = random.Random(f"{seed} {part}"), facts(cuts), Context()
        state, memory, used, drawn = State(), Memory(), list[Operand](), Draw(choose)
        ways = []
        for way in range(3):
            if way:
                state, memory = ways[0][0].copy(), ways[0][1].copy()
            for _ in range(choose.randint(1, 4)):
                o = drawn() if not used or choose.random() < 0.5 else split(choose.choice(used), choose)
                used.append(o)
                if way == 0 or choose.random() < 0.7:  # else it is of the other way alone
                    fs.write(state, fs.target(o), False, ctx)
                    memory.write(o, False)
            ways.append((state, memory))
        both = meet(ways[1][0], ways[2][0], fs, ctx)
        only = meet(ways[1][0], ways[2][0], fs, ctx, both=False)
        for probe in [*used, *(split(choose.choice(used), choose) for _ in range(8))]:
            for state in (both, only):
                known = fs.holds(state, fs.target(probe), ctx)
                assert not known or all(m.holds(probe) for _, m in ways[1:])
                said.append(known)
                yes += known
    assert yes > 60
    on_record(f"common: {seed}{', cut' if cuts else ''}", said)
