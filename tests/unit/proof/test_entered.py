"""What is known of loops around one that runs: each condition on an inner variable says something of those outside."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse
from isam.proof.certificate import executed
from isam.proof.context import Context, Var
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.sets import Isl
from isam.proof.tree import check_tree
from isam.schedule.tree import Bound
from tests.pipeline import kept

V = Affine.of
ROWS = """kernel rows(N)
  inout D: f32[N, N]
  loop r < N
    loop j < N
      forall z < 1 where {0}
        {1}
"""
READ = {
    "the row before": ("j < r", "D[r, j] max= D[r - 1, j]"),
    "the row behind, upwards": ("j > N - 1 - r", "D[N - 1 - r, j] max= D[N - r, j]"),
    "from the diagonal on": ("j >= N - r", "D[N - 1 - r, j] max= D[N - r, j]"),
    "said besides": ("j < r, r >= 1", "D[r, j] max= D[r - 1, j]"),
}


def box(**most: int) -> Context:
    return Context(tuple(Var(n, (Bound(Affine()),), (Bound(Affine((), m)),)) for n, m in most.items()))


def test_a_bound_of_one_variable_bounds_those_outside():
    ctx = box(r=9, i=9, j=9).given(V("r") - "j" - 2)
    assert (ctx.lower(V("r")), ctx.upper(V("j"))) == (2, 7)
    ctx = ctx.given(V("j") - V("i", 2))
    assert (ctx.upper(V("i")), ctx.lower(V("r") - V("i", 2))) == (3, 2)
    assert box(r=9, j=9).given(Affine((), 8) - "r" - "j").upper(V("r")) == 8


def points(ctx: Context) -> Iterator[dict[str, int]]:
    found: list[dict[str, int]] = [{}]
    for v in ctx.vars:
        found = [
            {**p, v.name: n}
            for p in found
            for n in range(-20, 21)
            if all(n * b.div >= b.expr.evaluate(p) for b in v.lo) and all(n * b.div <= b.expr.evaluate(p) for b in v.hi)
        ]
    return iter(found)


@pytest.mark.parametrize("seed", range(20))
def test_no_point_is_lost(seed: int):
    """Whatever is given, the points are those of the box at which all of it holds."""
    choose = random.Random(seed)
    whole = box(r=4, i=5, j=3)
    given = [
        Affine((), choose.randint(-2, 4)) + sum((V(n, choose.choice((-2, -1, 0, 1, 2))) for n in "rij"), Affine())
        for _ in range(choose.randint(1, 3))
    ]
    ctx = whole
    for e in given:
        ctx = ctx.given(e)
    want = [p for p in points(whole) if all(e.evaluate(p) >= 0 for e in given)]
    assert [*points(ctx)] == want
    for e in (V("r"), V("i") - "r", V("j") + "i"):
        assert not want or (ctx.lower(e) or -99) <= min(e.evaluate(p) for p in want)


@pytest.mark.parametrize("name", READ)
def test_what_a_row_reads_of_the_next_is_known_to_lie_there(name: str):
    """In the first step nothing is read, which only the condition on the inner axis tells."""
    s = kept(parse(ROWS.format(*READ[name])), "host-generic", N=60).schedule
    assert s is not None
    isl, lg = Isl(), Legality(s)
    assert not [*check_points(s, isl, lg), *check_tree(s, isl, lg)]


def test_many_steps_are_counted_before_they_are_executed(monkeypatch: pytest.MonkeyPatch):
    """What they would have to find is written down for every step of the loops: gigabytes here."""
    s = kept(parse(ROWS.format(*READ["the row before"])), "host-generic", N=300).schedule
    assert s is not None
    monkeypatch.setattr("isam.proof.flat.check_flat", lambda *_: pytest.fail("executed"))
    assert executed(s) is None
