"""The order that the language prescribes, as numbers, against a count of every point in its turn."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Kernel, Recurrence, Statement
from isam.proof.prescribed import MOST, Prescribed, counted, mask, told_apart, writes
from tests.unit.proof.handmade_machines import acc, buf, dom, kern

SHAPE = (4, 5)


def statement(rng: random.Random) -> Statement:
    """Of two or three axes, one of which its index may leave out, some under a condition."""
    d = dom(i=rng.choice((4, 4, 3)), j=rng.choice((5, 5, 2)), k=rng.randint(1, 3))
    i, j, k = (Affine.of(n) for n in "ijk")
    where = rng.choice([(), (), (), (i - j,), (j - 1, 3 - i), (k - 1,), (i + k - 2,), (i * -1 + 1,)])
    index = rng.choice([(i, j), (i, j), (i, j), (i, Affine()), (i * -1 + 3, j), (Affine((), 1), j)])
    axes = d.axes if rng.random() < 0.5 or any("k" in w.names for w in where) else d.axes[:2]
    return Statement(type(d)(axes, where), acc("y", *index), "add", (acc("x"),), True)


def points(s: Statement, env: dict[str, int]) -> list[dict[str, int]]:
    names = [a.name for a in s.domain.axes]
    every = ({**env, **dict(zip(names, p, strict=True))}
             for p in product(*(range(int(a.extent.substitute(env))) for a in s.domain.axes)))  # fmt: skip
    return [p for p in every if all(w.evaluate(p) >= 0 for w in s.domain.where)]


def by_hand(s: Statement, env: dict[str, int], shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape, np.int32)
    for p in points(s, env):
        out[tuple(r.evaluate(p) for r in s.dest.index)] += 1
    return out.ravel()


@pytest.mark.parametrize("seed", range(60))
def test_how_often_elements_are_written(seed: int) -> None:
    rng = random.Random(seed)
    s = statement(rng)
    assert writes(s, {}, SHAPE).tolist() == by_hand(s, {}, SHAPE).tolist()
    named = {n for e in (*s.dest.index, *s.domain.where) for n in e.names}
    assert told_apart(s) == int(np.prod([int(a.extent) for a in s.domain.axes if a.name in named]))
    inside, grids = mask(s, {})
    assert inside.shape == tuple(int(a.extent) for a in s.domain.axes)
    found = [dict(zip((a.name for a in s.domain.axes), map(int, p), strict=True)) for p in np.argwhere(inside)]
    assert found == points(s, {})
    assert list(grids) == [a.name for a in s.domain.axes]


def test_extents_of_other_loops() -> None:
    """Triangles: an extent that a loop around gives, also of nothing."""
    t = Affine.of("t")
    s = Statement(dom(i=t, j=5), acc("y", "i", "j"), "copy", (acc("x"),))
    for n in range(5):
        assert writes(s, {"t": n}, SHAPE).tolist() == by_hand(s, {"t": n}, SHAPE).tolist()
    where = Statement(dom(i=4, j=5), acc("y", "i", "j"), "copy", (acc("x"),))
    where = Statement(type(where.domain)(where.domain.axes, (Affine.of("i") - t,)), where.dest, "copy", where.sources)
    beside = Statement(dom(i=4, j=5, k=t - 1), acc("y", "i", "j"), "copy", (acc("x"),))
    for n in range(5):
        assert writes(beside, {"t": n}, SHAPE).tolist() == by_hand(beside, {"t": n}, SHAPE).tolist()
    for n in range(-1, 3):
        assert told_apart(Statement(dom(i=n, j=5, k=0), acc("y", "i", "j"), "copy", (acc("x"),))) == max(0, n) * 5
    for n in range(5):
        assert writes(where, {"t": n}, SHAPE).tolist() == by_hand(where, {"t": n}, SHAPE).tolist()


def body(rng: random.Random, names: tuple[str, ...], deep: int) -> tuple[Statement | Recurrence, ...]:
    """Statements on four buffers, with loops in them."""
    out: list[Statement | Recurrence] = []
    for _ in range(rng.choice((1, 2))):
        if deep and rng.random() < 0.5:
            name = "tuv"[len(names)]
            out.append(Recurrence(Axis(name, Affine((), rng.randint(1, 3))), body(rng, (*names, name), deep - 1)))
            continue
        d, row = dom(i=3), Affine.of("i")
        at = Affine.of(rng.choice(names)) if names and rng.random() < 0.5 else Affine((), rng.randint(0, 2))
        dest, other = (rng.choice("abc") for _ in range(2))
        out.append(Statement(d, acc(dest, at, row), "add", (acc(other, 0, row),), rng.random() < 0.5))
    return tuple(out)


@pytest.mark.parametrize("seed", range(30))
def test_versions_before_every_statement(seed: int) -> None:
    rng = random.Random(seed)
    k: Kernel = kern("k", [buf(n, "inout", 3, 3) for n in "abc"], list(body(rng, (), 3)))
    skip = frozenset(i for i in range(len(k.statements)) if rng.random() < 0.2)
    made = Prescribed(k, skip)
    assert made.shapes == dict.fromkeys("abc", (3, 3))
    held = {s.dest.buffer for i, s in enumerate(k.statements) if i not in skip}
    total = {b: np.zeros(9, np.int32) for b in held}
    before: dict[object, dict[str, list[int]]] = {}
    adds: dict[object, list[int]] = {}

    def run(items: tuple[object, ...], at: int, env: dict[str, int]) -> int:
        for it in items:
            if isinstance(it, Recurrence):
                begin = at
                for t in range(int(it.axis.extent)):
                    at = run(it.body, begin, {**env, it.axis.name: t})
                continue
            assert isinstance(it, Statement)
            key = at, tuple(env.values())
            used = {it.dest.buffer, *(a.buffer for a in it.reads)} & held
            before[key] = {b: total[b].tolist() for b in used}
            if at not in skip:
                n = by_hand(it, env, (3, 3))
                adds[key] = n.tolist()
                total[it.dest.buffer] += n
            at += 1
        return at

    run(k.body, 0, {})
    assert {key: {b: a.tolist() for b, a in x.items()} for key, x in made.before.items()} == before
    assert {key: a.tolist() for key, a in made.adds.items()} == adds
    assert {b: a.tolist() for b, a in made.total.items()} == {b: a.tolist() for b, a in total.items()}


def test_as_many_writes_as_are_counted() -> None:
    assert counted(np.array([MOST, 0])).tolist() == [MOST, 0]
    assert counted(np.zeros(0, np.int64)).tolist() == []
    with pytest.raises(MemoryError, match=f"an element that {MOST + 1} points write, more than {MOST}"):
        counted(np.array([0, MOST + 1]))
