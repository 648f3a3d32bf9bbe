"""Choices of rows and identifications of axes against trying everything."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access
from isam.mapper.dataflow import Form
from isam.mapper.linking import unify
from isam.mapper.rows import base_of, choices, step_between

NAMES = "abcd"


def form(rows: list[dict[int, int]], rests: list[int] | None = None) -> Form:
    index = [Affine.from_terms([(NAMES[a], c) for a, c in row.items()], rest)
             for row, rest in zip(rows, rests or [0] * len(rows), strict=True)]  # fmt: skip
    return Form(Access("x", tuple(index)), {n: i for i, n in enumerate(NAMES)}, len(NAMES))


def row(rng: random.Random, axes: int) -> dict[int, int]:
    some = rng.sample(range(axes), min(axes, rng.choice((0, 1, 1, 1, 2, 3))))
    return {a: rng.choice((1, 1, 1, 2, 3, -1, 4)) for a in some}


def step(need: dict[int, int], got: dict[int, int], strided: bool) -> int:
    for k in (1,) if not strided else (1, -1, 2, -2, 3, -3, 4, -4, 6):
        if {a: c * k for a, c in need.items()} == got:
            return k
    return 0


@pytest.mark.parametrize("part", range(4))
def test_choices_of_rows(part: int) -> None:
    rng, seen = random.Random(part), 0
    for _ in range(400):
        have = [row(rng, 4) for _ in range(rng.randint(0, 4))]
        names = dict(zip(rng.sample(range(4), k := rng.randint(0, 4)), rng.sample(range(4), k), strict=True))
        mine = [{names[a]: c for a, c in r.items() if a in names} for r in have]
        want = [dict(r) for r in rng.sample(mine, rng.randint(0, len(mine)))]
        for r in want:
            if r and rng.random() < 0.3:
                r[rng.choice(list(r))] = rng.choice((1, 2, 6))
        if rng.random() < 0.2:
            want.append({})
        for strided in (False, True):
            brute = []
            for dims in permutations(range(len(have)), len(want)):
                steps = tuple(step(n, mine[r], strided) for n, r in zip(want, dims, strict=True))
                if all(steps) and not any(m for r, m in enumerate(mine) if r not in dims):
                    brute.append((dims, steps))
            found = list(choices(form(want), form(have), names, strided))
            assert found == brute, (have, names, want, strided)
            seen += len(found)
    assert seen > 300


@pytest.mark.parametrize("strided", [False, True])
def test_the_factor_between_two_rows(strided: bool) -> None:
    rows: list[dict[int, int]] = [{}, {0: 1}, {0: 2}, {0: 3}, {0: 6}, {1: 2}]
    rows += [{0: 1, 1: 1}, {0: 2, 1: 2}, {0: 2, 1: 4}, {0: -2, 1: -2}]
    for need, got in product(rows, repeat=2):
        assert step_between(need, got, strided) == step(need, got, strided), (need, got)


def test_where_an_operand_begins() -> None:
    have = form([{0: 1, 2: 5}, {1: 2}, {3: 1, 2: -1}], [7, 9, 4])
    classes, owner = [10, 11, 12, 13], {10: 0, 11: 1}
    own = (Affine((), 3), Affine((), 1))
    assert base_of(own, have, (1, 0), (2, 1), classes, owner) == (
        (((12, 5),), Affine((), 6)), ((), Affine((), 3)), (((12, -1), (13, 1)), Affine((), 4)))  # fmt: skip


@pytest.mark.parametrize("part", range(4))
def test_axes_that_a_buffer_identifies(part: int) -> None:
    rng, seen = random.Random(part), 0
    for _ in range(300):
        n, classes = rng.randint(1, 3), [Affine((), rng.choice((4, 4, 5))) for _ in range(4)]
        hidden = rng.sample(range(4), n)
        extents = {a: classes[hidden[a]] if rng.random() < 0.9 else Affine((), 4) for a in range(n)}
        local, known = [], []
        for _ in range(rng.randint(1, 3)):
            r = row(rng, n)
            rest = Affine((), rng.randint(0, 1))
            local.append((tuple(sorted(r.items())), rest))
            seen_as = {hidden[a]: c for a, c in r.items()}
            if rng.random() < 0.15:
                seen_as[rng.randrange(4)] = 1
            known.append((tuple(sorted(seen_as.items())), rest if rng.random() < 0.95 else rest + 1))
        fixed = [hidden[a] if rng.random() < 0.2 else -1 for a in range(n)]
        open_axes = [a for a in range(n) if fixed[a] < 0 and any(a == x for r, _ in local for x, _ in r)]
        brute = set()
        for chosen in permutations(range(4), len(open_axes)):
            now = list(fixed)
            for a, k in zip(open_axes, chosen, strict=True):
                now[a] = k
            used = [k for k in now if k >= 0]
            both = zip(known, local, strict=True)
            rows = all(k[1] == h[1] and dict(k[0]) == {now[a]: c for a, c in h[0]} for k, h in both)
            if rows and len(set(used)) == len(used) and all(classes[now[a]] == extents[a] for a in open_axes):
                brute.add(tuple(now))
        found = [tuple(x) for x in unify(known, local, classes, extents, fixed)]
        assert len(found) == len(set(found))
        assert set(found) == brute, (known, local, fixed)
        seen += len(found)
    assert seen > 60
