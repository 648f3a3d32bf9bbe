"""The small prover, boxes and isl questions against enumeration: what is proved is true, what must be proved is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.ir.text import parse_kernel
from isam.proof.bounds import proved
from isam.proof.boxes import (
    ONCE,
    TWICE,
    UNKNOWN,
    Family,
    box_of,
    contains,
    covered,
    disjoint,
    earlier,
    empty,
    hull,
    joined,
    lifted,
    merge,
    minus,
    span,
)
from isam.proof.context import Context, Var, last_value, loop_var, of_sizes, runs_surely
from isam.proof.sets import Isl
from isam.schedule.tree import Bound, Loop, Seq
from tests.pipeline import compiled, simulated

V = Affine.of


def bounds(*values: Affine | int | Bound) -> tuple[Bound, ...]:
    return tuple(v if isinstance(v, Bound) else Bound(Affine.lift(v)) for v in values)


def chain(rng: random.Random) -> Context:
    """Three nested variables with bounds over the outer ones."""
    out: list[Var] = []
    for i, name in enumerate("abc"):
        outer = [V(n) for n in "abc"[:i]]
        lo = Affine((), rng.randint(-2, 2)) + (rng.choice(outer) if outer and rng.random() < 0.5 else 0)
        step = rng.choice([1, 1, 2, 3])
        his = [lo + rng.randint(0, 5)]
        if outer and rng.random() < 0.4:
            his.append(rng.choice(outer) + rng.randint(0, 4))
        hi = (*bounds(*his), *((Bound(lo * 2 + 7, 2),) if rng.random() < 0.3 else ()))
        out.append(Var(name, bounds(lo), hi, step, lo))
    return Context(tuple(out))


def values_of(v: Var, env: dict[str, int]) -> list[int]:
    low = [b.expr.evaluate(env) for b in v.lo]
    high = [b.expr.evaluate(env) for b in v.hi]
    inside = (
        x
        for x in range(-30, 31)
        if all(b.div * x >= n for b, n in zip(v.lo, low, strict=True))
        and all(b.div * x <= n for b, n in zip(v.hi, high, strict=True))
    )
    return [x for x in inside if v.origin is None or (x - v.origin.evaluate(env)) % v.step == 0]


def points(ctx: Context) -> list[dict[str, int]]:
    return values(ctx.vars)


def values(chain: Sequence[Var]) -> list[dict[str, int]]:
    """All values of the variables, by trying."""
    found: list[dict[str, int]] = [{}]
    for v in chain:
        found = [{**p, v.name: x} for p in found for x in values_of(v, p)]
    return found


@pytest.mark.parametrize("seed", range(300))
def test_bounds_that_are_reached_leave_no_value_out(seed):
    """Variables that step over their bounds have those that they reach, and the same values."""
    rng = random.Random(seed)
    steps = [rng.choice([2, 3, 4, 6]) for _ in range(3)]
    given: list[Var] = []
    for i, (name, step) in enumerate(zip("abc", steps, strict=True)):
        outer = Affine.from_terms({n: rng.choice([-2, -1, 0, 1, 2]) for n in "abc"[:i]}, rng.randint(-2, 2))
        lo = rng.choice([Affine((), rng.randint(-2, 2)), outer])
        his = [outer + rng.randint(0, 9), *([lo + rng.randint(0, 9)] if rng.random() < 0.5 else [])]
        halved = bounds(Bound(outer + 9, 2)) if rng.random() < 0.3 else ()
        given.append(Var(name, bounds(lo), (*bounds(*his), *halved), step, rng.choice([lo, lo, None])))
    ctx = Context(tuple(given))
    assert points(ctx) == values(given)


def test_a_bound_that_depends_on_a_loop_around():
    """``w`` is 8 more than a multiple of 16, so that ``d`` ends 16 before ``984 - w``; where it may be anything, it
    does not."""
    low, high = bounds(920), bounds(999)
    for origin, last in ((Affine((), 920), 968), (None, 983), (Affine((), 921), 968 + 1)):
        w = Var("w", low, high, 16, origin)
        d = Var("d", bounds(0), bounds(983 - V("w")), 16, Affine())
        assert Context((w, d)).upper(V("d") + V("w")) == last
        assert Context((w,)).with_var(d).upper(V("d") + V("w")) == last


BANDS = {
    "strip": ("A: f32[N, B]", "A[i, d] * x[i + d]", "i + d < N", "d < B"),
    "filter": ("A: f32[B]", "A[d] * x[i - d]", "i - d >= 0", "d < B"),
    "band": ("A: f32[N, 2*B+1]", "A[i, d] * x[i + d - B]", "0 <= i + d - B, i + d - B < N", "d < 2*B+1"),
}  # fmt: skip


@pytest.mark.parametrize("on", ["host-avx512", "host-avx2"])
@pytest.mark.parametrize(("what", "n", "b"), [("strip", 1000, 81), ("strip", 4096, 40), ("filter", 4000, 65),
                                              ("band", 1023, 40), ("band", 4096, 32)])  # fmt: skip
def test_bands_are_proved(what, n, b, on):
    """Loops inside end where loops around have got to."""
    matrix, term, where, axis = BANDS[what]
    kernel = parse_kernel(f"""kernel band(N, B)
  in  {matrix}
  in  x: f32[N]
  out y: f32[N]
  forall i < N
    y[i] = 0
  forall i < N, {axis} where {where}
    y[i] += {term}
""")
    compiled(kernel, {"N": n, "B": b}, simulated(on), check=True)


def affine(rng: random.Random, names: str = "abc") -> Affine:
    return Affine.from_terms({n: rng.choice([-3, -2, -1, 0, 0, 1, 1, 2, 4]) for n in names}, rng.randint(-6, 12))


@pytest.mark.parametrize("seed", range(60))
def test_lower_bounds_and_remainders_are_true(seed):
    rng = random.Random(seed)
    ctx = chain(rng)
    values = points(ctx)
    isl = Isl()
    for _ in range(30):
        e = affine(rng)
        low = ctx.lower(e)
        if values and low is not None:
            assert low <= min(e.evaluate(p) for p in values)
        true = all(e.evaluate(p) >= 0 for p in values)
        if ctx.nonneg(e):
            assert true
        assert isl.nonneg(e, ctx) == true
        for n in (2, 3, 4):
            rest = ctx.remainder(n, e)
            if rest is not None:
                assert all(e.evaluate(p) % n == rest for p in values)


def test_lower_bounds_are_found_where_they_matter():
    ctx = Context(
        (Var("m", bounds(0), bounds(986), 14, Affine()), Var("n", bounds(V("m")), bounds(V("m") + 13), 1, V("m")))
    )
    assert ctx.lower(Affine((), 999) - V("n")) == 6, "m ends at 980"
    assert ctx.nonneg(V("n") - V("m"))
    assert not ctx.nonneg(V("m") - V("n"))
    assert ctx.divides(14, V("m"))
    assert ctx.remainder(7, V("m", 3) + 5) == 5
    assert ctx.remainder(2, V("n")) is None
    for most, rest in ((512, 0), (1000, None)):  # of steps that are never made nothing follows
        assert Context((Var("j", bounds(512), bounds(most), 488, Affine((), 512)),)).remainder(256, V("j")) == rest


def test_what_bounds_do_not_say_steps_may():
    ctx = Context((Var("v", bounds(0), bounds(Bound(Affine((), 21), 2)), 4, Affine()),))
    assert not ctx.nonneg(V("v", -1) + 8)
    assert proved(V("v", -1) + 8, ctx, Isl())
    assert not proved(V("v", -1) + 7, ctx, Isl())
    assert not proved(Affine((), -1), ctx, Isl())


def box(*sides):
    return tuple((Affine.lift(a), Affine.lift(b)) for a, b in sides)


def inside(f: Family, env: dict[str, int]) -> set[tuple[int, ...]]:
    """All points of a family by trying."""
    found: set[tuple[int, ...]] = set()
    envs = [env]
    for v in f.over:
        envs = [{**e, v.name: x} for e in envs for x in values_of(v, e)]
    for e in envs:
        found |= set(product(*(range(lo.evaluate(e), hi.evaluate(e)) for lo, hi in f.box)))
    return found


@pytest.mark.parametrize("seed", range(60))
def test_boxes_against_enumeration(seed):
    rng = random.Random(seed)
    ctx = chain(rng)
    envs = points(ctx)[:12]
    side = lambda: (s := affine(rng), s + rng.randint(0, 6))  # noqa: E731
    made = [tuple(side() for _ in range(2)) for _ in range(5)]
    made += [
        tuple((lo + (3 if d == 0 else 0), hi + (3 if d == 0 else 0)) for d, (lo, hi) in enumerate(b)) for b in made[:3]
    ]
    isl = Isl()
    for one, two in product(made, made):
        a, b = Family(one), Family(two)
        true = all(not (inside(a, e) & inside(b, e)) for e in points(ctx))
        if disjoint(one, two, ctx):
            assert true
        assert isl.parted(a, b, ctx) == true
        parts = minus(one, two, ctx)
        for e in envs:
            if parts is not None:
                assert set().union(*(inside(Family(p), e) for p in parts)) == inside(a, e) - inside(b, e)
            j = joined(one, two)
            if j is not None and inside(a, e) and inside(b, e):
                assert inside(Family(j), e) == inside(a, e) | inside(b, e)
    for target in made:
        some = [Family(b) for b in rng.sample(made, 3)]
        true = all(inside(Family(target), e) <= set().union(*(inside(f, e) for f in some)) for e in points(ctx))
        if covered(target, some, ctx):
            assert true
        assert isl.covers(target, some, ctx, (), ("x", "y")) == true


@pytest.mark.parametrize("seed", range(20))
def test_boxes_whose_sides_move_apart(seed):
    """Of unlike bounds: what is called empty, apart or within is so for all values."""
    rng, said = random.Random(seed), set()
    for _ in range(12):
        ctx = chain(rng)
        envs = points(ctx)
        one, two = (tuple((affine(rng, "ab"), affine(rng, "bc")) for _ in range(2)) for _ in range(2))
        two = two if rng.random() < 0.5 else tuple((lo - rng.randint(0, 2), hi + rng.randint(0, 2)) for lo, hi in one)
        a, b = ([inside(Family(x), e) for e in envs] for x in (one, two))
        if empty(one, ctx):
            assert not any(a)
        if disjoint(one, two, ctx):
            assert not any(x & y for x, y in zip(a, b, strict=True))
        if contains(two, one, ctx):
            assert all(x <= y for x, y in zip(a, b, strict=True))
        said |= {("empty", empty(one, ctx)), ("apart", disjoint(one, two, ctx)), ("in", contains(two, one, ctx))}
    assert len(said) == 6


@pytest.mark.parametrize("seed", range(60))
def test_families_with_variables_against_enumeration(seed):
    """Boxes that repeat at a step hold a moving target only where every value of the variables says so."""
    rng, proved = random.Random(seed), 0
    for _ in range(20):
        ctx = chain(rng)
        lo, step = rng.randint(-2, 2), rng.choice([1, 1, 2, 3])
        v = Var("v", bounds(lo), bounds(lo + rng.randint(0, 9)), step, Affine.lift(lo))
        k = rng.choice([1, 1, 2, 3, -1])
        begin = V("v", k) + rng.choice([Affine(), V("a"), V("a", 2)]) + rng.randint(-1, 1)
        f = Family(((begin, begin + rng.randint(1, 4)), (Affine.lift(0), Affine.lift(4))), (v,))
        start = V(rng.choice("abc"), rng.choice([1, 1, 2])) + rng.randint(-1, 2)
        target = ((start, start + rng.randint(1, 2)), (Affine.lift(rng.randint(0, 1)), Affine.lift(rng.randint(2, 4))))
        if covered(target, [f], ctx):
            proved += 1
            assert all(inside(Family(target), e) <= inside(f, e) for e in points(ctx)), (f, target, ctx)
    assert seed or proved


def test_a_repeated_box_holds_what_begins_with_one_of_them():
    ctx = Context((Var("i", bounds(0), bounds(9), 1, Affine()), Var("j", bounds(0), bounds(18), 2, Affine())))
    twos = Family(box((V("v", 2), V("v", 2) + 1)), (Var("v", bounds(0), bounds(9), 1, Affine()),))
    assert covered(box((V("j"), V("j") + 1)), [twos], ctx) is False  # j / 2 is no affine number of its variables
    assert covered(box((V("i", 2), V("i", 2) + 1)), [twos], ctx)
    assert not covered(box((V("i"), V("i") + 1)), [twos], ctx)
    assert not covered(box((V("i", 2), V("i", 2) + 2)), [twos], ctx)
    evens = Family(box((V("v"), V("v") + 2)), (Var("v", bounds(0), bounds(18), 2, Affine()),))
    assert covered(box((V("j"), V("j") + 1)), [evens], ctx)
    assert not covered(box((V("i"), V("i") + 2)), [evens], ctx)


def test_boxes_that_touch_are_one_box():
    for d in range(3):
        one, two = ([[0, 2], [3, 6], [1, 5]] for _ in range(2))
        two[d] = [one[d][1], one[d][1] + 4]
        both = [list(s) for s in one]
        both[d] = [one[d][0], two[d][1]]
        for a, b in ((one, two), (two, one)):
            assert joined(box(*a), box(*b)) == box(*both)
    assert joined(box((0, 2)), box((3, 4))) is None
    assert joined(box((0, 2)), box((0, 2))) is None
    assert joined(box((0, 2), (0, 2)), box((2, 4), (2, 4))) is None


@pytest.mark.parametrize("seed", range(80))
def test_lifted_families_against_enumeration(seed):
    rng = random.Random(seed)
    lo, step = rng.randint(-3, 3), rng.choice([1, 2, 3])
    hi = lo + rng.randint(1, 12)
    his = bounds(hi) if rng.random() < 0.7 else bounds(hi, hi + rng.randint(-2, 2))
    loop = Loop("v", bounds(lo), his, step, Seq())
    values = range(lo, min(int(b.expr) for b in his), step)
    f = Family(
        tuple(
            (s := Affine.of("v", rng.choice([0, 1, 1, 2, -1])) + rng.randint(0, 3), s + rng.randint(1, 3))
            for _ in range(2)
        )
    )
    g, again = lifted(f, span(loop), "~1")
    each = [inside(f, {"v": x}) for x in values]
    assert inside(g, {}) == set().union(*each) if again != TWICE or values else True
    if again == ONCE:
        assert sum(map(len, each)) == len(set().union(*each))
    around = hull(f.box, span(loop))
    if around is not None and values:
        assert inside(Family(around), {}) >= set().union(*each)
        ends = [
            (min(lo.evaluate({"v": x}) for x in values), max(hi.evaluate({"v": x}) for x in values)) for lo, hi in f.box
        ]
        assert around == box(*ends)  # the smallest
    for i, now in enumerate(values):
        before, _ = lifted(f, earlier(loop), "~2")
        assert inside(before, {"v": now}) == set().union(*each[:i])
    once = Isl().exactly_once([g], [again], g.box, (), ("x", "y"), Context())[0] if not g.over else None
    if once:
        assert sum(map(len, each)) == len(set().union(*each))


def test_the_box_around_a_tile_is_the_smallest():
    for start, n, k in product((-3, 0, 5), (1, 2, 4), (1, 2, 3)):
        at = range(start, start + n * k, k)
        assert box_of((Affine.lift(start),), (n,), (k,)) == box((at[0], at[-1] + 1))
        assert box_of((Affine.lift(start),), (n,)) == box((start, start + n))


def test_merging_keeps_multiplicity():
    parts = [Family(box((i, i + 1), (j, j + 2))) for i in range(3) for j in (0, 2)]
    assert merge(parts) == [Family(box((0, 3), (0, 4)))]
    assert len(merge([*parts, parts[0]])) == 2
    two = [Family(box((0, 1), (0, 1))), Family(box((0, 2), (1, 2)))]
    assert merge([*two, Family(box((1, 2), (0, 1)))]) == [Family(box((0, 2), (0, 2)))]  # only together one touches two


def test_coverage_counts():
    isl, ctx, whole = Isl(), Context(), box((0, 8))
    halves = [Family(box((0, 4))), Family(box((4, 8)))]
    assert isl.exactly_once(halves, [ONCE, ONCE], whole, (), ("i",), ctx)[0]
    assert "never" in isl.exactly_once(halves[:1], [ONCE], whole, (), ("i",), ctx)[1]
    assert "twice" in isl.exactly_once([*halves, halves[0]], [ONCE] * 3, whole, (), ("i",), ctx)[1]
    assert "more than once" in isl.exactly_once(halves, [ONCE, TWICE], whole, (), ("i",), ctx)[1]
    for step, once in ((1, False), (2, True), (3, False)):
        v = Var("v", bounds(0), bounds(4), step, Affine())
        f = Family(box((V("v"), V("v") + 2)), (v,))
        assert isl.exactly_once([f], [UNKNOWN], box((0, 6)), (), ("i",), ctx)[0] is once
    assert "outside" in isl.exactly_once([*halves, Family(box((8, 9)))], [ONCE] * 3, whole, (), ("i",), ctx)[1]


def test_layouts_that_share_bytes_clash():
    isl, ctx = Isl(), Context()
    panel = Var("j", bounds(0), bounds(8), 8, Affine())
    one = (box((0, 5), (V("j"), V("j") + 8)), V("j", 20), (32, 4), (panel,))
    assert isl.no_clash(one, one, (4, 4), True, ctx)
    shifted = (one[0], one[1] + 4, one[2], one[3])
    assert not isl.no_clash(one, shifted, (4, 4), True, ctx)
    assert not isl.no_clash(one, one, (4, 4), False, ctx)
    assert isl.no_clash(one, (one[0], one[1] + 4096, one[2], one[3]), (4, 4), False, ctx)
    overlapping = (one[0], V("j", 16), one[2], one[3])
    assert not isl.no_clash(overlapping, overlapping, (4, 4), True, ctx)


@pytest.mark.parametrize(("lo", "hi", "step", "last"), [(0, 10, 4, 8), (0, 12, 4, 8), (3, 4, 5, 3), (-4, 5, 3, 2)])
def test_last_values(lo, hi, step, last):
    loop = Loop("v", bounds(lo), bounds(hi), step, Seq())
    assert last_value(loop) == Affine((), last)
    assert max(p["v"] for p in points(Context((loop_var(loop),)))) == last


def test_run_time_trips():
    ctx = of_sizes([Sym("T", 0), Sym("S", 1)])
    assert not runs_surely(Loop("t", bounds(0), bounds(V("T")), 1, Seq()), ctx)
    assert runs_surely(Loop("t", bounds(0), bounds(V("S")), 1, Seq()), ctx)
    assert not runs_surely(Loop("t", bounds(3), bounds(3), 1, Seq()), ctx)
    assert runs_surely(Loop("t", bounds(3), bounds(4), 1, Seq()), ctx)
    assert last_value(Loop("t", bounds(0), bounds(V("T")), 1, Seq())) == V("T") - 1
    assert last_value(Loop("t", bounds(0), bounds(V("T")), 2, Seq())) is None
