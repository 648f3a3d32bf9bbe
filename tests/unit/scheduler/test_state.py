"""Tiles, stages and what happened in an iteration: by brute force over their elements."""

from __future__ import annotations

from itertools import product

import numpy as np

from isam.ir.affine import Affine
from isam.schedule.tree import Place, Tile
from isam.scheduler.near import Near
from isam.scheduler.places import Var, remainder, within
from isam.scheduler.state import STAGED, Copy, MachineState, Since, StageLayout
from isam.scheduler.tiles import disjoint, encloses
from isam.system.load import load_system


def tile(start, shape, steps=None, buffer="A"):
    lifted = tuple(Affine.lift(s) for s in start)
    return Tile(buffer, lifted, tuple(shape), tuple(steps or [1] * len(shape)))


def elements(t, values):
    sides = [
        [s.evaluate(values) + i * k for i in range(n)] for s, n, k in zip(t.start, t.shape, t.steps, strict=True)
    ]
    return set(product(*sides))


def test_disjoint_and_encloses_never_claim_what_elements_deny():
    rng = np.random.default_rng(7)
    claims = 0
    for _ in range(600):
        ranges = {"i": (0, int(rng.integers(0, 4))), "j": (2, 5)}
        a, b = (
            tile(
                [Affine.of("i", int(rng.integers(-2, 3)), int(rng.integers(0, 6)))
                 + Affine.of("j", int(rng.integers(0, 2)))
                 for _ in range(2)],
                rng.integers(1, 4, 2).tolist(),
                rng.integers(1, 3, 2).tolist(),
            )
            for _ in range(2)
        )  # fmt: skip
        points = [{"i": i, "j": j} for i in range(ranges["i"][1] + 1) for j in range(2, 6)]
        if disjoint(a, b, ranges):
            claims += 1
            assert all(not elements(a, p) & elements(b, p) for p in points), (a, b)
        if encloses(a, b, ranges):
            claims += 1
            assert all(elements(b, p) <= elements(a, p) for p in points), (a, b)
    assert claims > 50


def test_elements_between_each_other_are_disjoint():
    """Wherever both begin, as long as one is never a whole number of steps behind the other."""
    ranges = {"i": (0, 9), "j": (0, 9)}

    def every(step: int, name: str = "i", by: int = 6, first: int = 0, shape: int = 8):
        return tile([Affine.of(name, by, first)], [shape], [step])

    assert disjoint(every(2), every(2, first=1), ranges)
    assert disjoint(every(2), every(2, "j", first=1), ranges)
    assert disjoint(every(6), every(9, "j", first=2), ranges)  # both are multiples of three, and two more
    assert disjoint(every(2), every(9, first=1, shape=1), ranges)
    assert not disjoint(every(2), every(2, first=2), ranges)
    assert not disjoint(every(4), every(4, "j", first=2), ranges)  # 6 * i and 6 * j + 2
    assert not disjoint(every(2), every(3, first=1), ranges)
    assert not disjoint(every(2), every(1, first=1), ranges)


def test_unknown_variables_are_not_disjoint():
    assert not disjoint(tile(["n"], [4]), tile([0], [4]), {})


def test_remainder_is_a_remainder_for_every_value():
    variables = {"j0": Var(Affine((), 32), 64), "j1": Var(Affine.of("j0"), 16)}
    e = Affine.of("j1", 3, 5)
    assert remainder(e, 16, variables) is not None
    r = remainder(e, 16, variables)
    for t, u in product(range(4), range(4)):
        assert (e.evaluate({"j1": 32 + 64 * t + 16 * u}) - r) % 16 == 0
    assert remainder(Affine.of("j1"), 32, variables) is None
    assert remainder(Affine.of("j1") - "n", 16, variables) is None


def test_what_loops_begin_at_is_told_from_them_whatever_its_steps():
    """A part that is dealt out: its panels are counted from where it begins, in steps of another length."""
    part = {"j0": Var(Affine((), 576), 128, 128), "j1": Var(Affine.of("j0", 1, 96), 48, 48)}
    assert remainder(Affine.of("j1") - "j0", 48, part) == 96
    assert remainder(Affine.of("j1"), 48, part) is None
    once = {**part, "j0": Var(Affine((), 576), 128, 0)}
    assert remainder(Affine.of("j1"), 48, once) == 96 + 576


def test_a_packed_panel_keeps_elements_apart():
    """A 5 x 40 box in panels of 16 columns: every element has an address of its own, panels are contiguous."""
    layout = StageLayout((4 * 16, 4 * 5), (1, 16), (0, 4))
    box = tile([0, 0], [5, 40])
    copy = Copy(Place("ram", "P", Affine(), ()), False, 5 * 48 * 4, layout)
    seen = {}
    for k in range(5):
        for j in range(40):
            place = within(box, copy, tile([k, j], [1, 1]), {})
            assert place is not None
            seen[place.offset.const] = (k, j)
    assert len(seen) == 200
    assert [seen[4 * i] for i in range(16)] == [(0, j) for j in range(16)]
    assert within(box, copy, tile([0, 8], [1, 16]), {}) is None, "straddles two panels"


def test_since_fetches_only_what_was_there_from_the_begin():
    key, other = ("ra", tile([0], [4]), None), ("ra", tile([8], [4]), None)
    since = Since()
    since.write(tile([2], [2]))
    since.fetch(key, {})
    since.fetch(other, {})
    assert list(since.fetched) == [other]
    later = Since()
    later.fetch(("ra", tile([3], [1]), None), {})
    since.then(later, {})
    assert list(since.fetched) == [other]


def test_room_is_found_around_what_lies_there():
    toy = load_system("toy")
    state = MachineState(toy)
    ra = toy.memories["ra"]
    for cell in (0, 2):
        place = Place("ra", "", Affine(), (4,), cell=cell)
        state.put(("ra", tile([cell * 16], [16]), None), Copy(place, False, 1))
    assert state.find_room(ra, 1) == 1
    assert state.find_room(ra, 2) == 3
    assert state.find_room(ra, ra.cells) is None
    sp = toy.memories["sp"]
    state.put(("sp", tile([0], [3]), None), Copy(Place("sp", "", Affine(), (4,)), False, 12))
    assert state.find_room(sp, 4) == 16, "aligned"
    boxed = Copy(Place("sp", "", Affine((), 64), (4,)), False, 64, ahead=32)  # what is filled lies before the tile, too
    state.put(("sp", tile([9], [3]), None), boxed)
    assert sorted((first, n) for first, n, _ in state.used("sp")) == [(0, 12), (32, 64)]
    assert state.find_room(sp, 32) == 96
    state.next["ra"] = 4
    assert state.find_room(ra, 1) == 4, "behind what came last"
    assert state.find_room(ra, ra.cells - 3) == 3, "else the lowest"


def test_a_stage_is_found_by_what_it_holds():
    state = MachineState(load_system("toy"))
    box = tile([0, 0], [8, 8])
    layout = StageLayout((32, 4), (1, 1), (0, 0))
    state.put(("sp", box, STAGED), Copy(Place("sp", "", Affine(), ()), False, 256, layout))
    assert list(state.stages_around(tile([4, 4], [4, 4]), {})) == [("sp", box, STAGED)]
    assert not list(state.stages_around(tile([5, 4], [4, 4]), {}))


def test_tiles_that_may_meet_are_those_that_a_look_at_each_finds():
    """Of several kinds, some with loop variables; what is dropped is not found, a copy is its own."""
    rng, met = np.random.default_rng(3), 0
    ranges = {"i": (0, 3), "j": (2, 5)}

    def some():
        first = Affine.of("i", int(rng.integers(0, 2)), 4 * int(rng.integers(0, 9)))
        return tile([first, int(rng.integers(40))], rng.integers(0, 5, 2).tolist(), rng.integers(1, 3, 2).tolist())

    near, have = Near(), {}
    for n in range(1200):
        t = some()
        if n % 3 == 2:
            gone = list(have)[int(rng.integers(len(have)))]
            del have[gone]
            near.drop(gone)
        have[t] = None
        near.put(t)
        before, near = near, near.copy()
        if n % 10 == 0:
            asked = some()
            want = {t for t in have if not disjoint(t, asked, ranges)}
            found = list(near.meeting(asked, ranges))
            assert len(found) == len(want)
            assert set(found) == want
            met += len(want)
            far = tile([Affine.of("n"), 0], [1, 1])  # of which nothing is known
            assert set(near.meeting(far, ranges)) == {t for t in have if not disjoint(t, far, ranges)}
            before.put(asked)
            assert asked in have or asked not in near.meeting(asked, ranges)
    assert met > 300


def test_copies_that_meet_come_as_they_were_put_there():
    state, tiles = MachineState(load_system("toy")), [tile([0], [n]) for n in (4, 2, 3, 1)]
    keys = [(m, t, None) for t in tiles for m in ("ra", "sp")]
    for n, key in enumerate(keys):
        state.put(key, Copy(Place(key[0], "", Affine((), 64 * n), (4,)), False, 1))
    state.mark(keys[2], True)
    state.drop(keys[0])
    state.put(keys[0], Copy(Place("ra", "", Affine(), (4,)), False, 1))
    assert state.meeting(tile([0], [1]), {}) == [*keys[1:], keys[0]]
    assert state.copy().meeting(tile([2], [1]), {}) == [keys[1], keys[4], keys[5], keys[0]]
    assert state.meeting(tile([4], [4]), {}) == state.meeting(tile([0], [4], buffer="B"), {}) == []
