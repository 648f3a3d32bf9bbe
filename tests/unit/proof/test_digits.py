"""The cheap argument that layouts never clash says yes only where isl does."""

from __future__ import annotations

import random

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.digits import one_system
from isam.proof.sets import Isl
from isam.schedule.tree import Bound

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
