"""Whole steps of the compiled walk, run as Python: what is right is executed, what is wrong changes nothing."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from isam.ir.affine import Affine
from isam.proof import flat_walk as w
from tests.unit.proof.test_flat_walk import JUNK, laid, memory


@dataclass
class Whole:
    """A step of three operands, of which the first is read and written, the second, elsewhere, read, the third written;
    two statements write the first and the third."""

    choose: random.Random
    m: w.Memory = field(init=False)

    def __post_init__(self) -> None:
        self.ops, runs = [], [JUNK]
        for k in range(3):
            o = laid(self.choose, len(runs), 2 * k, 150 * k, begin=40 * (k // 2))
            for name, v in {w.ALIGN: 1, w.UNIT: 2, w.WIDE: 1, w.SIZE: 150, w.READS: k < 2, w.WRITES: k != 1}.items():
                o.words[name] = v
            self.ops.append(o)
            runs += o.runs
        self.bytes = [2 * (o.at - o.words[w.ORIGIN]) for o in self.ops]
        points = len(runs)
        m = self.m = memory(runs=[*runs, 0, 1], value=[JUNK] * 16, state=[0] * 6, mark=[0] * 500)
        m.token, m.version = [-1] * 500, [JUNK] * 500
        m.current = [self.choose.randint(0, 3) for _ in range(120)]
        m.want, m.done, m.seen = [*m.current, *[9] * 120, *[JUNK] * 9], [0] * 40, []
        for o in self.ops[:2]:
            for where, e, q in o.tokens:
                m.token[where], m.version[where] = e * o.parts + q, m.current[e]
        table: list[int] = [JUNK]

        def put(values: list[int]) -> int:
            at = len(table)
            table.extend(values)
            return at

        accesses = put([3, *(x for o in self.ops for x in o.words)])
        at = [accesses + 1 + w.ACCESS * k for k in range(3)]
        time = put([6, 4])  # of a counter that is 0
        readers = put([2, *(x for k in (0, 1) for x in (at[k], 0, 1, time))])
        pairs = put([4, *(x for i, j in ((0, 1), (0, 2), (2, 0), (2, 1)) for x in (at[i], at[j], 0))])
        boxes = [put([10 * k, 1, 7, 1, 1]) for k in range(2)]
        effects = put([2, *(x for k, o in enumerate((0, 2)) for x in (
            at[o], 0, 1, 0, 120, 1, time, boxes[k], points, 2, 1, -1, 0, JUNK, k))])  # fmt: skip
        numbers = [x for o, byte in zip(self.ops, self.bytes, strict=True) for x in (o.base, byte)]
        self.forms = len(table) + 5
        self.at = put([accesses, readers, pairs, effects, 8, *(x for n in (*numbers, 0, 3) for x in (n, 0))])
        put([2, 6, 0, 7, 5])
        m.table = table

    def state(self) -> list[list[int]]:
        return [list(a) for a in (self.m.token, self.m.version, self.m.current, self.m.done)]

    def put(self, value: int, of: int) -> None:
        self.m.table[self.forms + 2 * of] = value


@pytest.mark.parametrize("seed", range(8))
def test_a_step_that_is_right_is_executed(seed: int) -> None:
    x = Whole(random.Random(seed))
    token, version, current, done = x.state()
    assert w.step(x.m, x.at) == 1
    for k in (0, 2):
        for e in x.ops[k].elements:
            current[e] += 1
    for k in (0, 2):
        for where, e, q in x.ops[k].tokens:
            token[where], version[where] = e * x.ops[k].parts + q, current[e]
    for k in (0, 1):
        for d in (0, 1):
            done[10 * k + 3 + d] = 1
    assert x.state() == [token, version, current, done]


@pytest.mark.parametrize("seed", range(8))
def test_a_step_that_is_wrong_changes_nothing(seed: int) -> None:
    def wrong(x: Whole) -> None:
        before = x.state()
        assert w.step(x.m, x.at) == 0
        assert x.state() == before

    for k in range(3):
        x, o = Whole(random.Random(seed)), len(Whole(random.Random(seed)).ops[k].tokens)
        x.m.token[x.ops[k].tokens[seed % o][0]] += 1
        if k < 2:
            wrong(x)  # it does not lie there
        else:
            assert w.step(x.m, x.at) == 1
        x = Whole(random.Random(seed))
        x.put(-1 if seed % 2 else -400, 2 * k + 1)
        wrong(x)  # an odd byte, or one outside
        x = Whole(random.Random(seed))
        x.m.want[x.ops[k].elements[0]] += 1
        wrong(x)  # not its turn: of a reader, or of a statement
    for of, value in ((6, 1), (6, -1), (7, 6), (7, -1)):
        x = Whole(random.Random(seed))
        x.put(value, of)
        wrong(x)  # a point outside
    for k, j in ((0, 1), (0, 2), (1, 2)):
        x = Whole(random.Random(seed))
        a, b = x.ops[k], x.ops[j]
        words = x.m.table.index(3, 1) + 1 + w.ACCESS * j
        x.m.table[words + w.ORIGIN] += a.tokens[0][0] - b.tokens[0][0]  # both at one address
        if j == 1:
            far = a.tokens[0][0] - b.tokens[0][0]
            for where, e, q in b.tokens:
                x.m.token[where + far], x.m.version[where + far] = e * b.parts + q, x.m.current[e]
            for where, e, q in a.tokens:
                x.m.token[where], x.m.version[where] = e * a.parts + q, x.m.current[e]
        wrong(x)


def test_how_large_numbers_may_be() -> None:
    names = [f"n{i:02}" for i in range(17)]
    for n, c, const, right in ((16, 1, 0, True), (17, 1, 0, False), (1, w.MOST, 0, True), (1, w.MOST + 1, 0, False),
                               (2, -w.MOST, w.FARTHEST, True), (1, -w.MOST - 1, 0, False), (1, 1, -w.FARTHEST, True),
                               (1, 1, w.FARTHEST + 1, False), (1, 1, -w.FARTHEST - 1, False), (0, 0, w.FARTHEST, True),
                               (0, 0, w.FARTHEST + 1, False), (0, 0, -w.FARTHEST - 1, False)):  # fmt: skip
        assert w.fits(Affine.from_terms([(name, c) for name in names[:n]], const)) is right
    assert not w.fits(Affine.of("a") + Affine.of("b", w.MOST + 1))
