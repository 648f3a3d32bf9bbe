"""What conditions leave out needs no cover: against enumeration, and with how much work it is shown."""

from __future__ import annotations

import random

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof import counted
from isam.proof.boxes import Box, Family, covered, dim
from isam.proof.context import Context, Var
from isam.proof.guards import covered_where
from isam.proof.points import check_points
from isam.proof.sets import BUDGET, OUT, Isl
from isam.schedule.tree import Bound
from tests.pipeline import compiled, simulated
from tests.unit.proof.test_prover import V, bounds, points
from tests.unit.proof.test_sets import NAMES, around, family, times

STENCIL = """
kernel stencil(T, N)
  inout x: f32[N, N]
  temp  y: f32[N, N]
  loop t < T
    forall i < N, j < N where 1 <= i < N - 1, 1 <= j < N - 1
      y[i, j] = 0.2 * (x[i, j] + x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])
    forall i < N, j < N where 1 <= i < N - 1, 1 <= j < N - 1
      x[i, j] = y[i, j]
"""
SOLVE = """
kernel solve(N, M)
  const L: f32[N, N]
  inout X: f32[N, M]
  loop k < N
    forall i < N, j < M where k < i
      X[i, j] += -(L[i, k] * X[k, j])
"""

SOME_STEPS = """
kernel some_steps(M, N, S)
  in    e: i32[S]
  in    x: f32[M, N]
  inout y: f32[M, N]
  loop q < S
    loop j < N
      loop g < 3
        forall i < M
          y[i, j] += x[i, j]
        forall i < M where j >= 1
          y[i, j] max= x[i, j]
        forall i < M where q >= 1, j <= N - 2
          y[i, j] max= x[i, j + 1]
"""

SUMS = """
kernel sums(M, K)
  permits nothing
  in    x: f32[M, K]
  inout y: f32[M]
  forall i < M, k < K
    y[i] += x[i, k]
"""


def condition(rng: random.Random) -> Affine:
    """On one coordinate, on both, or with a variable around."""
    one = Affine.of(rng.choice(NAMES), rng.choice([1, -1, 2, -2, 3]), rng.randint(-2, 4))
    more = rng.choice([Affine(), Affine(), V("x"), V("y", -1), V("a"), V("a", -1)])
    return one + more


def admitted(target: Box, where: list[Affine]) -> Family:
    """The points that the conditions admit, each a box."""
    (left, right), (low, high) = target
    los, his = [*bounds(low)], [*bounds(high - 1)]
    for w in where:
        rest = w.substitute({"x": V("v"), "y": Affine()})
        if c := w.coefficient("y"):
            (los if c > 0 else his).append(Bound(-rest if c > 0 else rest, abs(c)))
    own = Var("v", bounds(left), bounds(right - 1)), Var("w", tuple(los), tuple(his))
    return Family(((V("v"), V("v") + 1), (V("w"), V("w") + 1)), own)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_of_a_box_is_in_families(seed: int) -> None:
    """Shown only where it is so; counted exactly."""
    rng = random.Random(seed)
    shown = more = 0
    for _ in range(40):
        ctx = around(rng)
        lo, high = V("a", rng.choice([0, 1]), rng.randint(-1, 1)), rng.randint(1, 3)
        target: Box = ((lo, lo + high), (Affine.lift(0), Affine.lift(rng.randint(1, 3))))
        some = [family(rng, ctx) for _ in range(rng.choice([1, 2]))]
        where = [condition(rng) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.6:
            some.append(admitted(target, where))
        want = True
        for env in points(ctx):
            have = set().union(*(times(f, env) for f in some))
            for p in times(Family(target), env):
                at = {**env, **dict(zip(NAMES, p, strict=True))}
                want = want and (p in have or any(w.evaluate(at) < 0 for w in where))
        said = covered_where(target, some, ctx, where, NAMES)
        assert want or not said
        shown, more = shown + said, more + (said and not covered(target, some, ctx))
        ge = [w.substitute({"x": V(dim(0)), "y": V(dim(1))}) for w in where]
        if not any(w.coefficient("a") for w in where):
            assert counted.contained(target, some, ctx.vars, ge) is want
    assert shown >= 5
    assert more >= 5


@pytest.mark.parametrize(("text", "sizes"), [(STENCIL, {"T": 3, "N": 24}), (SOLVE, {"N": 33, "M": 24}),
                                              (SOME_STEPS, {"M": 11, "N": 6}),
                                              (SOME_STEPS, {"M": 11, "N": 6, "S": 2})])  # fmt: skip
def test_guards_in_loops_are_not_counted(text: str, sizes: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Points of every iteration, laid out for each step and each access again, took longer than all else together."""
    asked: list[Box] = []
    real = counted.contained
    monkeypatch.setattr(counted, "contained", lambda *q: asked.append(q[0]) or real(*q))
    schedule = compiled(parse_kernel(text), sizes, simulated("host-avx512")).schedule
    assert schedule is not None
    assert check_points(schedule) == []
    assert not asked


def test_a_dimension_that_all_families_hold_whole_is_one_cell_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many heads as there may be: the triangle of each is the same question."""
    cells: list[int] = []
    real = counted._laid
    monkeypatch.setattr(counted, "_laid", lambda b, lines: cells.append(real(b, lines).size) or real(b, lines))
    below = (V(dim(1)) - V(dim(2)),)
    side = Var("i", bounds(0), bounds(7))
    rows = Family(((Affine(), Affine.lift(64)), (V("i"), V("i") + 1), (Affine(), V("i") + 1)), (side,))
    heads = Var("h", bounds(0), bounds(63))
    target: Box = ((V("h"), V("h") + 1), (Affine(), Affine.lift(8)), (Affine(), Affine.lift(8)))
    assert counted.contained(target, [rows], (heads,), below)
    assert max(cells) == 8 * 8
    lost = Family(((Affine(), Affine.lift(63)), *rows.box[1:]), rows.over)
    assert counted.contained(target, [lost], (heads,), below) is False


def test_a_loop_that_runs_once_or_not_at_all_holds_what_it_does_where_it_runs() -> None:
    ctx = Context().with_var(Var("j", bounds(0), bounds(5)))
    guard = Var("g", bounds(0), (*bounds(0), *bounds(V("j") - 1)))
    some = [Family(((V("j"), V("j") + 1), (Affine(), Affine.lift(8))), (guard,))]
    target: Box = ((V("j"), V("j") + 1), (Affine.lift(2), Affine.lift(4)))
    for least, shown in ((0, False), (1, True), (2, True)):
        assert covered_where(target, some, ctx, [V("x") - least], NAMES) is shown
        assert covered(target, some, ctx.given(V("j") - least)) is shown
    assert covered_where(target, [], ctx.given(1 - V("j")), [V("x") - 2], NAMES) is False
    assert covered_where(((Affine(), Affine.lift(1)), target[1]), [], ctx, [V("x") - 1], NAMES)


def test_loops_that_families_do_not_name_are_not_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of their iterations would be the same boxes once more; an iteration in which a box is has no two ends."""
    boxes: list[int] = []
    wide: list[int] = []
    laid, ends = counted._laid, counted._wide
    monkeypatch.setattr(counted, "_laid", lambda b, lines: boxes.append(b.shape[-1]) or laid(b, lines))
    monkeypatch.setattr(counted, "_wide", lambda at: wide.append(len(ends(at))) or ends(at))
    loops = Var("j", bounds(0), bounds(7)), Var("i", bounds(0), bounds(V("j", 6)))
    done = [Family(((Affine(), V("j")), (Affine(), Affine.lift(3)))),
            Family(((V("j"), V("j") + 1), (V("v"), V("v") + 1)), (Var("v", bounds(0), bounds(2)),))]  # fmt: skip
    target: Box = ((Affine(), V("j") + 1), (Affine(), Affine.lift(3)))
    assert counted.contained(target, done, loops, [])
    assert boxes[-1] <= 8 + 3 * 8
    assert max(wide) <= 2
    assert counted.contained(target, done[:1], loops, []) is False


def test_the_order_of_steps_is_judged_within_a_budget() -> None:
    """What is left when it is spent is told at its step; what else there is to judge is judged."""
    schedule = compiled(parse_kernel(SOME_STEPS), {"M": 11, "N": 6}, simulated("host-avx512")).schedule
    assert schedule is not None
    enough = Isl()
    assert check_points(schedule, enough) == []
    took = BUDGET - enough.left
    assert 0 < took < BUDGET // 100
    assert check_points(schedule, Isl(left=took)) == []
    for least in (took // 2, took // 4):
        found = check_points(schedule, Isl(left=least))
        assert {(v.obligation, v.kind) for v in found} <= {(4, "budget"), (5, "budget")}
        assert found
        assert all("y[" in v.step and OUT in v.message for v in found)
    sums = compiled(parse_kernel(SUMS), {"M": 8, "K": 9}, simulated("host-avx512")).schedule
    assert sums is not None
    enough = Isl()
    assert check_points(sums, enough) == []
    found = check_points(sums, Isl(left=BUDGET - enough.left - 1))
    assert (3, "budget") in {(v.obligation, v.kind) for v in found}
