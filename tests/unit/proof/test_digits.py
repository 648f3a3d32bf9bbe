"""The cheap arguments that layouts never clash say yes only where isl, or going through all bytes, does."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.digits import _Distance, never_meet, one_system
from isam.proof.sets import Isl
from isam.schedule.tree import Bound
from tests.unit.proof.verdicts import on_record

SIZE = (4, 4)


def var(name, lo, hi, step=1):
    return Var(name, (Bound(Affine.lift(lo)),), (Bound(Affine.lift(hi)),), step, Affine.lift(lo))


CTX = Context((var("j", 0, 192, 64), var("k", 0, 31), var("m", 0, 31)))


def panel(column, row="k", width=64, depth=32, over=(), shift=0, pitch=0):
    """Rows of a panel of ``width`` columns that begins at ``column``: packed one after the other, or every ``pitch``
    bytes."""
    at = Affine.lift(column)
    box = ((Affine.lift(row), Affine.lift(row) + 1), (at, at + width))
    pitch = pitch or 4 * width
    return box, at * (4 * depth) + Affine.lift(row) * pitch + shift, (pitch, 4), over


def test_panels_of_one_layout_do_not_clash():
    w = var("w", "j", 192, 64)
    for one, two in (
        (panel("j"), panel(Affine.of("w"), "m", over=(w,))),
        (panel("j"), panel("j", "m")),
        (panel(0), panel(64, "m")),
    ):
        assert one_system(one, two, SIZE, CTX)
        assert Isl()._no_clash(one, two, SIZE, True, CTX)


def test_what_overlaps_is_not_called_apart():
    w = var("w", "j", 192, 64)
    for two in (
        panel(Affine.of("w"), "m", over=(w,), shift=4),  # one element further
        panel(Affine.of("w"), "m", depth=31, over=(w,)),  # another distance from panel to panel
        panel(Affine.of("w") + 1, "m", over=(w,)),  # another column, by the same rule
    ):
        assert not one_system(panel("j"), two, SIZE, CTX)
    for pitch in (4, 8, 252, 255):  # rows reach into the next
        assert not one_system(panel(0, pitch=pitch), panel(0, "m", pitch=pitch), SIZE, CTX)
        assert not Isl()._no_clash(panel(0, pitch=pitch), panel(0, "m", pitch=pitch), SIZE, True, CTX)
    for one, two in ((64, 1), (1, 64), (3, 64)):  # also where one of them takes few columns
        wide, few = panel(0, width=one, pitch=8), panel(0, "m", width=two, pitch=8)
        assert not one_system(wide, few, SIZE, CTX)
        assert not Isl()._no_clash(wide, few, SIZE, True, CTX)
    assert one_system(panel(0, pitch=260), panel(0, "m", pitch=260), SIZE, CTX)
    shallow = (panel("j", depth=16), panel(Affine.of("w"), "m", depth=16, over=(w,)))  # panels reach into each other
    assert not one_system(*shallow, SIZE, CTX)
    assert not Isl()._no_clash(*shallow, SIZE, True, CTX)


def test_it_never_says_more_than_isl():
    rng = random.Random(5)
    yes = 0
    for _ in range(150):
        w = var("w", rng.choice(["j", 0]), rng.choice([64, 192]), rng.choice([16, 64]))
        width, depth = rng.choice([16, 64]), rng.choice([8, 16, 32, 33])
        one = panel(rng.choice(["j", 0, 64]), rng.choice(["k", 3]), width, depth)
        two = panel(rng.choice(["w", "j", 128]), rng.choice(["m", "k", 5]), width, depth, (w,), rng.choice([0, 0, 4]))
        if one_system(one, two, SIZE, CTX):
            yes += 1
            assert Isl()._no_clash(one, two, SIZE, True, CTX)
    assert yes > 15


def test_answers_do_not_depend_on_names():
    isl = Isl()
    one = panel("j", depth=31)
    for name in ("w", "v", "u"):
        over = (var(name, "j", 192, 64),)
        assert not isl.no_clash(one, panel(Affine.of(name), "m", depth=16, over=over), SIZE, True, CTX)
    assert isl.queries == 1


def column(at, by, shift, over):
    """16 columns of 144 rows, 144 rows of 16 bytes for each."""
    return ((Affine(), Affine((), 144)), (at, at + 16)), at * by + shift, (16, 1), over


def test_columns_that_are_brought_four_at_a_time_meet_only_their_like():
    """Blocks of 64 columns, each in its own place of a memory: in an earlier iteration of ``j``, and in this one."""
    i, j = var("i", 0, 192), var("j", 0, 192)
    for a, b in product(range(4), repeat=2):
        v, w = var("v", "i", Affine.of("i", 1, 192), 64), var("w", "j", Affine.of("j", 1, 192), 64)
        one = column(Affine.of("v", 1, 16 * a), 144, Affine.of("i", -144), (v,))
        two = column(Affine.of("w", 1, 16 * b), 144, Affine.of("j", -144), (w,))
        assert never_meet(one, two, (1, 1), Context((i, j))) is (a != b)
        assert never_meet(one, two, (2, 1), Context((i, j))) is ((b - a) % 4 > 1)  # a byte more: neighbours touch


def all_bytes(layout, size, env):
    """Every byte that a layout has for some values of its own variables."""
    box, offset, strides, over = layout
    out = set()
    values = [range(v.lo[0].expr.evaluate(env), v.hi[0].expr.evaluate(env) + 1, v.step) for v in over]
    for chosen in product(*values):
        here = {**env, **dict(zip((v.name for v in over), chosen, strict=True))}
        sides = [range(hi.evaluate(here) - lo.evaluate(here)) for lo, hi in box]
        for e in product(*sides):
            at = offset.evaluate(here) + sum(k * x for k, x in zip(strides, e, strict=True))
            out |= set(range(at, at + size))
    return out


@pytest.mark.parametrize("seed", range(5))
def test_never_where_a_byte_is_shared(seed):
    rng, ctx, yes, no = random.Random(seed), Context((var("i", 0, 3), var("j", 2, 8, 3))), 0, 0
    for _ in range(300):
        layouts, size = [], (rng.choice([1, 2, 4]), rng.choice([1, 2, 4]))
        for name in "vw":
            over = (var(name, rng.choice(["i", 0, 1]), 5, rng.choice([1, 2])),) if rng.random() < 0.7 else ()
            names = ["i", "j", *(v.name for v in over)]
            box = tuple((Affine.lift(rng.choice(names)), Affine.lift(rng.choice(names))) for _ in range(2))
            box = tuple((lo, lo + rng.randint(1, 3)) for lo, _ in box)
            terms = [(n, rng.choice([0, 4, 8, 12, 64, -8])) for n in names]
            offset = Affine.from_terms(terms, rng.randint(-9, 9))
            layouts.append((box, offset, (rng.choice([8, 16, 24, -8]), rng.choice([1, 4, 5])), over))
        if never_meet(*layouts, size, ctx):
            yes += 1
            for i, j in product(range(4), (2, 5, 8)):
                env = {"i": i, "j": j}
                assert not all_bytes(layouts[0], size[0], env) & all_bytes(layouts[1], size[1], env)
        else:
            no += 1
    assert yes > 20
    assert no > 20


def test_a_variable_of_one_layout_is_no_other_of_its_name():
    over = (var("w", 0, 192, 64),)
    ctx = Context((var("w", 0, 255),))
    one, two = panel(0, over=over), panel(Affine.of("w"), shift=1 << 20)
    assert never_meet(one, panel(0, shift=1 << 20), (4, 4), ctx)
    assert not never_meet(one, two, (4, 4), ctx)
    assert not never_meet(two, one, (4, 4), ctx)


def test_two_variables_of_one_name_are_not_told_apart():
    low, high = var("w", 0, 192, 64), var("w", 256, 448, 64)
    one, two = panel(Affine.of("w"), over=(low,)), panel(Affine.of("w"), over=(high,))
    assert never_meet(one, panel(Affine.of("v"), over=(replace(high, name="v"),)), (4, 4), Context())
    assert not never_meet(one, two, (4, 4), Context())
    assert not one_system(one, two, (4, 4), Context())


def test_what_has_no_limit_meets_unless_its_strides_keep_it_away():
    free = Var("n", (Bound(Affine()),), (), 1, Affine())
    box = ((Affine(), Affine((), 1)), (Affine(), Affine((), 4)))
    for at, by, meet in ((0, 64, True), (16, 64, False), (8, 64, True), (48, 64, False), (16, 1, True), (4, 24, True)):
        one = box, Affine.of("n", by), (64, 4), ()
        two = box, Affine.lift(at), (64, 4), ()
        below = replace(free, lo=(), hi=free.lo)
        for ctx in (Context((free,)), Context((below,)), Context()):  # of which nothing is known, in the last
            assert never_meet(one, two, (4, 4), ctx) is not meet
            assert never_meet(two, one, (4, 4), ctx) is not meet


def test_what_has_no_values_meets_nothing():
    cell, none = ((Affine(), Affine((), 1)),), var("v", 1, 0)
    for shift in range(-24, 24):
        one, two = (cell, Affine.of("v", 4), (4,), (none,)), (cell, Affine((), shift), (4,), ())
        assert never_meet(one, two, SIZE, Context()) or abs(4 - shift) < 4  # as if it had its first


def test_what_nothing_is_known_of_cancels():
    """A loop begins at a number of which nothing is known, and goes in steps from there."""
    cell, start = ((Affine(), Affine((), 1)),), Affine.of("a")
    ctx = Context((Var("v", (Bound(start),), (), 8, start),))
    for shift, meet in ((0, True), (3, True), (4, False), (5, True), (8, True), (12, False)):
        one, two = (cell, Affine.of("v"), (4,), ()), (cell, start + shift, (4,), ())
        assert never_meet(one, two, SIZE, ctx) is never_meet(two, one, SIZE, ctx) is not meet


def test_bounds_that_speak_of_another_variable_of_that_name():
    """``v`` of one layout is its ``w``, not that of the other."""
    own, other = var("w", 0, 0), var("w", 1000, 1000)
    cell = ((Affine.of("v"), Affine.of("v") + 1),)
    one = cell, Affine.of("v"), (4,), (own, var("v", "w", "w"))
    two = ((Affine(), Affine((), 1)),), Affine(), (4,), (other,)
    assert not never_meet(one, two, (4, 4), Context())
    assert never_meet((cell, Affine.of("v"), (4,), (other, var("v", "w", "w"))), (*two[:3], ()), (4, 4), Context())


def test_a_side_without_an_end_is_met_somewhere():
    ctx = Context((Var("n", (Bound(Affine((), 1)),), (), 1, Affine((), 1)),))
    one = ((Affine(), Affine.of("n")),), Affine(), (4,), ()
    two = ((Affine(), Affine((), 1)),), Affine((), 400), (4,), ()
    assert not never_meet(one, two, (4, 4), ctx)
    assert (
        never_meet(one, (two[0], Affine((), -4), (4,), ()), (4, 4), ctx) is False
    )  # known of limits on both sides only


def clashes(one, two, size, env) -> bool:
    """Whether two different elements share a byte."""
    held: list[list[tuple[tuple[int, ...], range]]] = []
    for (box, offset, strides, _), n in zip((one, two), size, strict=True):
        sides = [range(lo.evaluate(env), hi.evaluate(env)) for lo, hi in box]
        at, low = offset.evaluate(env), [lo.evaluate(env) for lo, _ in box]
        first = {e: at + sum(k * (x - y) for k, x, y in zip(strides, e, low, strict=True)) for e in product(*sides)}
        held.append([(e, range(b, b + n)) for e, b in first.items()])
    return any(e != f and a.start < b.stop and b.start < a.stop for (e, a), (f, b) in product(*held))


def test_different_elements_share_no_byte():
    """Tiles by one rule, or blocks of columns each at a place of its own: also where those are one place."""
    rng, yes, said = random.Random(9), 0, 0
    ctx = Context((var("i", 0, 2),))
    for _ in range(1500):
        strides, width = (rng.choice([8, 16, 32, 64]), 4), rng.choice([1, 2, 4])
        far, layouts = rng.choice([-4, 0, 0, 4, 16, 28, 60]), []
        for _ in range(2):
            row, column = Affine.of("i", rng.choice([0, 0, 1])) + rng.randint(0, 2), rng.choice([0, 0, 1, 2]) * width
            box = ((row, row + rng.randint(1, 2)), (Affine.lift(column), Affine.lift(column + width)))
            offset = row * strides[0] + column * (4 + far) - column * rng.choice([0, 0, 0, 4])
            layouts.append((box, offset, strides, ()))
        clash = any(clashes(*layouts, SIZE, {"i": i}) for i in range(3))
        told = one_system(*layouts, SIZE, ctx)
        assert not (told and clash), layouts
        assert not (Isl().no_clash(*layouts, SIZE, True, ctx) and clash), layouts
        yes, said = yes + (not clash), said + told
    assert said > 100
    assert yes > said


def test_blocks_of_columns_at_one_place():
    rows, more = ((Affine(), Affine((), 2)), (Affine((), 1), Affine((), 2)))
    one = (rows, (Affine(), Affine((), 4))), Affine(), (64, 4), ()
    for column, at, right in ((0, 64, True), (8, 96, True), (8, 64, False), (16, 64, False)):
        two = (more, (Affine((), column), Affine((), column + 4))), Affine((), at), (64, 4), ()
        assert one_system(one, two, SIZE, Context()) is Isl().no_clash(one, two, SIZE, True, Context()) is right
        assert Isl()._no_clash(one, two, SIZE, True, Context()) is right


def test_neighbours_by_the_byte():
    """Columns of one element, as near as they may be; of another pitch, they are not told apart."""
    for apart, right in ((4, True), (3, False), (-4, True), (-3, False), (1, False), (0, False)):
        one, two = (((Affine((), n), Affine((), n + 1)),) for n in range(2))
        a, b = (one, Affine(), (4,), ()), (two, Affine((), apart), (4,), ())
        assert one_system(a, b, SIZE, Context()) is right
        assert clashes(a, b, SIZE, {}) is not right
        assert not one_system(a, (two, Affine((), apart), (8,), ()), SIZE, Context())
    none = (((Affine((), n), Affine((), n)),) for n in range(2))
    assert not one_system(*((box, Affine(), (8,), ()) for box in none), SIZE, Context())  # of none nothing is said


def test_bounds_that_speak_of_a_variable_outside():
    """``z`` is bounded by a ``v`` outside, not by that of a layout."""
    ctx, own = Context((var("v", 0, 10), Var("z", (Bound(Affine.of("v")),), (Bound(Affine.of("v")),)))), var("v", 0, 0)
    z, cell = Affine.of("z"), ((Affine(), Affine((), 1)),)
    for over in ((own,), (replace(own, name="w"),)):
        assert not never_meet((cell, z * 4, (4,), ()), (cell, Affine((), 40), (4,), over), SIZE, ctx)
        assert not one_system(((*cell, (z, z + 1)), z * 4, (8, 4), ()),
                              (((Affine(), Affine((), 2)), *cell), Affine(), (8, 4), over), SIZE, ctx)  # fmt: skip


def test_columns_of_which_it_is_not_known_how_many():
    n = Affine.of("n")
    one, two = (((Affine(), Affine((), 1)), (at, at + n + 1)) for at in (Affine(), Affine((), 8)))
    ctx = Context((var("n", 0, 12),))
    for at in (32, 36, 40, 64, 200):
        a, b = (one, Affine(), (400, 4), ()), (two, Affine((), at), (400, 4), ())
        clash = any(clashes(a, b, SIZE, {"n": k}) for k in range(13))
        assert clash is (at in (36, 40))
        assert not (one_system(a, b, SIZE, ctx) and clash)
    free = Context((Var("n", (Bound(Affine()),), ()),))  # nor how many at the most
    few = ((Affine(), Affine((), 1)), (Affine(), Affine((), 8)))
    for a, b in product((one, few), repeat=2):
        a, b = ((x, Affine(), (40, 4), ()) for x in (a, b))
        assert one_system(a, b, SIZE, free) is (few in (a[0], b[0]) and a[0] == b[0])


def test_a_variable_that_others_speak_of():
    """One that is of one layout and outside, too, is two; also where only a bound speaks of it."""
    row, next_, w = ((Affine(), Affine((), 1)),), ((Affine((), 1), Affine((), 2)),), Affine.of("w")
    own = var("w", 0, 5)
    for ctx, bounded in ((Context((var("w", 0, 5),)), ()), (Context(), (var("v", "w", "w"),)),
                         (Context((var("w", 0, 5), var("v", "w", "w"))), ())):  # fmt: skip
        outer = w if not ctx.vars[1:] and not bounded else Affine.of("v")
        one = row, w * 4, (4,), (own,)
        two = next_, outer * 4 + 4, (4,), bounded
        for a, b in ((one, two), (two, one)):
            assert not one_system(a, b, SIZE, ctx)
            assert not never_meet(a, b, SIZE, ctx)
    far = Context((var("w", 100, 105),))  # no other of its name is in its place
    assert one_system((row, Affine(), (400,), ()), (next_, Affine((), 400), (400,), (own,)), SIZE, far)


def test_a_digit_of_one_value_has_no_stride():
    d = _Distance(0, [])
    for stride, least, most in ((4, 0, None), (9, 1, 1)):
        d.add(stride, least, most)
    assert [d.avoids(low, 4) for low in (1, 2)] == [False, True]


def test_numbers_that_are_avoided():
    """Sums of strides times digits that are never in a range: nearly always that is seen."""
    rng, said = random.Random(1), []
    for _ in range(500):
        d, digits = _Distance(0, []), []
        d.const = const = rng.randint(-9, 9)
        for _ in range(rng.randint(0, 3)):
            stride, least = rng.choice([0, 1, 2, -3, 4, 8, -12, 24]), rng.randint(-2, 2)
            most = least + rng.choice([0, 1, 1, 3])
            known = rng.random()
            d.add(stride, None if known < 0.1 else least, None if known > 0.9 else most)
            wide = range(least if known >= 0.1 else -40, (most if known <= 0.9 else 40) + 1)
            digits.append([stride * x for x in wide])
        low = rng.randint(-6, 6)
        high = low + rng.randint(0, 5)
        met = any(low <= const + sum(some) <= high for some in product(*digits))
        avoids = d.avoids(low, high)
        assert not (avoids and met)
        said.append((avoids, met))
    count = Counter(said)
    assert min(count[True, False], count[False, True]) > 100 > 5 * count[False, False]
    on_record("digits: avoided", said)
