"""The table of the compiled walk, piece by piece, against plain lists: runs, pairs, what is written already."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from isam.proof import flat_walk as w
from isam.proof.flat import Replay
from isam.proof.flat_step import Shape, compile_step
from isam.proof.flat_table import Numbers, Table, Words, lines
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, distinct
from tests.unit.proof.handmade import tiny_matmul
from tests.unit.proof.test_flat_tables import replace_permits


def test_words_are_kept_however_many_they_are() -> None:
    for first, sizes in product((0, 1), ((3, 0, 5), (4095, 1, 1), (4096, 4096, 1), (1, 9000, 1), (5000, 4000, 9000))):
        words, said, places = Words(first), [0] * first, []
        for k, n in enumerate(sizes):
            places.append(words.add([k + 1] * n))
            said += [k + 1] * n
        assert words.n == len(said)
        assert words.array[: words.n].tolist() == said
        assert places == [first + sum(sizes[:k]) for k in range(len(sizes))]


@pytest.mark.parametrize("seed", range(3))
def test_lists_as_runs(seed: int) -> None:
    """Runs of one length, in which both go on by their steps, are the lists; as long as the first one, or of one."""
    choose, said = random.Random(seed), set()
    for _ in range(400):
        length, count, by, on = (
            choose.randint(1, 4),
            choose.randint(1, 3),
            choose.choice((1, 2, -1)),
            choose.choice((1, 2)),
        )
        addr = [s + i * by for s in choose.sample(range(0, 90, 9), count) for i in range(length)]
        elem = [s + i * on for s in choose.sample(range(0, 90, 9), count) for i in range(length)]
        for a in (addr, elem):
            if choose.random() < 0.25:
                a[choose.randrange(len(a))] += choose.choice((1, -1))
        some = choose.choice((len(addr), len(addr), choose.randint(1, len(addr))))
        addr, elem = addr[:some], elem[:some]
        n, step, other = lines(np.array(addr), np.array(elem))
        assert len(addr) % n == 0
        assert (
            n > 1
            or len(addr) == 1
            or (step, other) == (1, 1)
            or (addr[1] - addr[0], elem[1] - elem[0]) == (step, other)
        )
        for at in range(0, len(addr), n):
            assert addr[at : at + n] == [addr[at] + i * step for i in range(n)]
            assert elem[at : at + n] == [elem[at] + i * other for i in range(n)]
        steps = [(addr[i + 1] - addr[i], elem[i + 1] - elem[i]) for i in range(len(addr) - 1)]
        longest = next((i for i, s in enumerate(steps) if s != steps[0]), len(steps)) + 1
        even = len(addr) % longest == 0 and all(s == steps[0] for i, s in enumerate(steps) if (i + 1) % longest)
        assert n == (longest if even else 1)
        said.add((n > 1, n == longest))
    assert said == {(False, True), (False, False), (True, True)}


def made() -> tuple[Table, Shape, Replay]:
    """The table of products in order, and the shape of a step that adds to them."""
    s = replace_permits(tiny_matmul())
    r = Replay(s, {}, Findings())
    r.phase = "call"
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.nest == 1)
    step = compile_step(issue, r, Findings())
    assert step is not None
    return Table(r), step.shape, r


def test_what_is_written_twice_is_left_alone() -> None:
    """Buffers or statements that a step names twice; what it does not write at all."""
    t, shape, _ = made()
    (e,) = shape.effects
    at = [10 * (i + 1) for i, _ in enumerate(shape.accesses)]
    zero = next(i for (i, name) in t.numbers.before if i != e.statement and name == "C")
    first = replace(e, statement=zero, accumulate=False, times=1, ordered=None,
                    axes=e.axes[:2], extents=e.extents[:2], cells=e.cells[:2])  # fmt: skip

    def rows(effects: list[Any], **edits: Any) -> Any:
        accesses = [replace(a, **edits) if i == e.accesses else a for i, a in enumerate(shape.accesses)]
        return t._effects(replace(shape, accesses=accesses, effects=effects), at)

    assert len(rows([e])) == 1
    assert rows([e], writes=False) is None
    assert rows([e, e]) is None
    for one, two in ((first, e), (e, first), (replace(first, times=3), e)):
        both = rows([one, two])
        assert [row[:3] for row in both] == [[at[e.accesses], 0, one.times], [at[e.accesses], one.times, two.times]]
    twice = [replace(a, writes=True, operand=shape.accesses[e.accesses].operand) for a in shape.accesses]
    assert t._effects(replace(shape, accesses=twice), at) is None


def test_tiles_that_may_be_one() -> None:
    """Pairs of what is written and every other operand: whether they may be the same tile used element by element."""
    t, shape, _ = made()
    a, b = shape.accesses[:2]
    names = a.operand.name, b.operand.name
    for one, two, alike, free in product((False, True), repeat=4):
        other = a.pattern if alike else a.pattern._replace(addr=a.pattern.addr + 1)
        some = [replace(a, writes=one), replace(b, writes=two, pattern=other)]
        pointwise = frozenset({names, names[::-1]} if free else ())
        made_ = t._pairs(replace(shape, accesses=some, pointwise=pointwise), [5, 7])
        want = [[5, 7, alike and free]] * one + [[7, 5, alike and free]] * two
        assert [[x, y, bool(z)] for x, y, z in made_] == want


def test_no_operand_is_aligned_to_nothing() -> None:
    t, shape, _ = made()
    for align in (0, 1, 16):
        (at,) = t._accesses(replace(shape, accesses=[replace(shape.accesses[0], align=align)]))
        assert t.words.array[at + w.ALIGN] == max(1, align)


def test_every_sum_in_order_has_its_own_ranks() -> None:
    """Of several statements each as many as there are elements, one behind the other."""
    _, _, r = made()
    i, s = next((i, s) for i, s in enumerate(r.kernel.statements) if s.reduces)
    more = len(r.kernel.statements)
    r.kernel = replace(r.kernel, body=(*r.kernel.body, s, s))
    r.done |= {more: r.done[i].copy(), more + 1: r.done[i].copy()}
    r.ranks.clear()
    numbers, size = Numbers(r), r.space.current.size
    assert numbers.terms == {i: 0, more: size, more + 1: 2 * size}
    for k, j in enumerate((i, more, more + 1)):
        assert r.ranks[j].size == size
        r.ranks[j][:] = k
    assert numbers.seen[:-1].tolist() == [k for k in range(3) for _ in range(size)]
