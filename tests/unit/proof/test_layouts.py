"""When a fact and a tile are said to place elements by one injective rule, counted element by element."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import Family, box_of, span
from isam.proof.context import Context, Var
from isam.proof.facts import Facts
from isam.proof.induction import survives
from isam.proof.layout import strides_as
from isam.proof.legal import Legality
from isam.proof.progressions import progressions, put_back
from isam.proof.sets import Isl
from isam.proof.state import State, Target
from isam.schedule.tree import Bound, Loop, Place, Seq, Tile
from tests.corpus import CASES
from tests.pipeline import compiled
from tests.unit.proof.handmade import op, tiny_matmul
from tests.unit.proof.test_prover import inside, points

SIZE = 4  # bytes of an element


def facts() -> Facts:
    buffer = SimpleNamespace(bytes=SIZE, home=None)
    return Facts(SimpleNamespace(buffers={"a": buffer}), Isl())  # type: ignore[arg-type]


def tile(fs: Facts, strides: tuple[int, ...], start: tuple[Affine, ...], shape: tuple[int, ...]) -> Target:
    """A tile of ``a`` where the rule ``strides . element`` puts it."""
    at = sum((x * k for x, k in zip(start, strides, strict=True)), Affine())
    return fs.sought(fs.make("a", ("m", ""), None, at, strides, box_of(start, shape)))


def counted(strides: tuple[int, ...], boxes: list[list[range]]) -> bool:
    """Whether no byte belongs to two elements of the boxes."""
    at: dict[int, tuple[int, ...]] = {}
    for box in boxes:
        for e in product(*box):
            low = sum(k * x for k, x in zip(strides, e, strict=True))
            for byte in range(low, low + SIZE):
                if at.setdefault(byte, e) != e:
                    return False
    return True


def said(strides, shape, most: int | None, width: int) -> bool:
    """Of a fact about ``[0, n)`` in each dimension and a tile of ``width`` columns from ``g <= most`` on."""
    fs, g = facts(), Affine.of("g")
    f = fs.make("a", ("m", ""), None, Affine(), strides, box_of((Affine(),) * len(shape), shape))
    ctx = Context((Var("g", (Bound(Affine()),), () if most is None else (Bound(Affine((), most)),)),))
    t = tile(fs, strides, (*(Affine(),) * (len(shape) - 1), g), (*(1,) * (len(shape) - 1), width))
    return fs.layout.same_layout(f, t, ctx)


@pytest.mark.parametrize(("most", "alike"), [(0, True), (2, True), (3, True), (4, False), (9, False), (None, False)])
def test_columns_up_to_the_end_of_a_row(most: int | None, alike: bool):
    assert said((4 * SIZE, SIZE), (3, 2), most, 1) is alike


def test_never_where_a_byte_belongs_to_two_elements():
    rng, yes = random.Random(7), 0
    for _ in range(600):
        strides = tuple(rng.choice([1, 2, 3, 4, 6, 8, 12]) * SIZE // rng.choice([1, 1, 1, 2]) for _ in range(2))
        shape, most, width = (rng.randint(1, 3), rng.randint(1, 3)), rng.randint(0, 4), rng.randint(1, 2)
        if said(strides, shape, most, width):
            yes += 1
            whole = [range(n) for n in shape]
            assert all(counted(strides, [whole, [range(1), range(g, g + width)]]) for g in range(most + 1))
    assert yes > 100


@pytest.mark.parametrize(("strides", "shape", "alike"), [
    ((1, 4), (1, 3), True), ((4, 1), (3, 1), True), ((0, 4), (1, 2), True), ((4, 4), (2, 1), True),
    ((3, 16), (1, 2), True), ((3, 16), (2, 2), False), ((8, 4), (3, 2), True), ((4, 4), (2, 2), False),
])  # fmt: skip
def test_what_counts_of_a_dimension_is_how_wide_it_is(strides: tuple[int, ...], shape: tuple[int, ...], alike: bool):
    assert said(strides, shape, 0, 1) is alike
    assert counted(strides, [[range(n) for n in shape]]) is alike


@pytest.mark.parametrize("spot", [("m", "a"), ("m", ""), ("sp", "W")])
def test_strides_of_the_own_place_never_meet(spot: tuple[str, str]):
    """Wherever a tile lies, and whatever is known of how wide it is."""
    fs, g = facts(), Affine.of("g")
    own = SimpleNamespace(bytes=SIZE, home=Place("m", "a", Affine(), (4 * SIZE, SIZE)))
    fs.legality.buffers["a"] = own  # type: ignore[index]
    ctx = Context((Var("g", (Bound(Affine()),), ()),))
    for strides, alike in (((4 * SIZE, SIZE), True), ((SIZE, SIZE), False)):
        f = fs.make("a", spot, None, Affine(), strides, box_of((Affine(), Affine()), (2, 2)))
        at = g * strides[1]
        t = fs.sought(fs.make("a", spot, None, at, strides, box_of((Affine(), g), (1, 2))))
        assert fs.layout.same_layout(f, t, ctx) is alike
        every = fs.make("a", spot, None, Affine(), strides, f.box, (Var("q", (Bound(Affine()),), (Bound(Affine()),)),))
        assert not fs.layout.same_layout(every, t, ctx)  # of many tiles nothing is said


def test_a_fact_of_one_element_has_the_strides_that_are_asked_for():
    fs, v = facts(), Affine.of("v")
    over = (Var("v", (Bound(Affine()),), (Bound(Affine((), 3)),)),)
    for at, shape, some in product((Affine(), Affine((), 2), v), product((1, 2), repeat=2), ((), over)):
        f = fs.make("a", ("m", ""), None, Affine(), (8, 4), box_of((at, Affine()), shape), some)
        t = tile(fs, (64, 32), (Affine(), Affine()), (2, 2))
        own = tuple(b if n == 1 and not some else a for a, b, n in zip((8, 4), (64, 32), shape, strict=True))
        assert strides_as(f, t) == own


def test_what_has_holes_does_not_outlive_an_iteration():
    fs, v = facts(), Affine.of("v")
    row = fs.make("a", ("m", ""), None, v * 8, (8, 4), ((v, v + 1), (Affine(), Affine((), 2))))
    over = span(Loop("v", (Bound(Affine()),), (Bound(Affine((), 4)),), 1, Seq()))
    ctx = Context((over.desc,))
    assert survives(row, "v", over, [], fs, ctx, "w")
    hole = fs.hole(((v, v + 1), (Affine(), Affine((), 1))))
    assert not survives(fs.with_holes(row, frozenset([hole])), "v", over, [], fs, ctx, "w")


@pytest.mark.parametrize("width", [8, 11])
def test_gates_stored_in_one_iteration_and_read_in_the_last(width: int):
    """Rows 0 to 3 are spilled in every iteration over the gates; the last one reads what all have left."""
    from isam.system.load import load_system

    compiled(CASES["lstm_step"].load(), {"B": 7, "X": 5, "H": width}, load_system("host-avx2"), check=True)


@pytest.mark.parametrize(("rows", "known"), [(3, True), (2, False)])
def test_a_box_brought_again_fills_holes_of_any_kind(rows: int, known: bool):
    """Every second row of a copy is out of date; all of it, or only two rows, are brought again."""
    fs, ctx, state = facts(), Context(), State()
    whole = fs.make("a", ("m", ""), None, Affine(), (8, 4), box_of((Affine(), Affine()), (3, 2)))
    v = Var("v", (Bound(Affine()),), (Bound(Affine((), 2)),), 2, Affine())
    odd = fs.hole(((Affine.of("v"), Affine.of("v") + 1), (Affine(), Affine((), 2))), (v,))
    state.put(fs.with_holes(whole, frozenset([odd])))
    assert not fs.holds(state, part(fs, 3), ctx)
    fs.write(state, part(fs, rows), False, ctx)
    assert fs.holds(state, part(fs, 3), ctx) is known


def part(fs: Facts, rows: int) -> Target:
    """The first rows of ``a``, where the fact above says they lie."""
    box = box_of((Affine(), Affine()), (rows, 2))
    ends = Affine(), Affine((), 8 * rows)
    return Target("a", ("m", ""), None, Affine(), (8, 4), box, (), box, *ends, (rows > 1, True), fs.hole(box))


def test_the_cells_of_a_tile_are_those_of_its_bytes():
    s = tiny_matmul()
    k = replace(s.kernel, buffers=tuple(replace(b, dtype="i8") for b in s.kernel.buffers))
    fs = Facts(Legality(replace(s, kernel=k, cover=replace(s.cover, kernel=k, original=k))), Isl())
    for rows, columns, row, at, cell in product((1, 2, 3), (1, 2, 8), (-60, 8, 31, 63, 64, 65), (0, 1, 63), (2, 4)):
        held = fs.target(op("A", part_of_a(rows, columns), Place("ra", "", Affine((), at), (row, 1), cell)))
        counted = {cell + (at + row * i + j) // 64 for i in range(rows) for j in range(columns)}
        assert held.cells == (min(counted), max(counted)), (rows, columns, row, at)


def part_of_a(rows: int, columns: int) -> Tile:
    return Tile("A", (Affine(), Affine()), (rows, columns), (1, 1))


def test_elements_and_bytes_of_tiles_with_steps_by_counting():
    s = tiny_matmul(24, 24, 24)
    fs, rng, several = Facts(Legality(s), Isl()), random.Random(8), 0
    for _ in range(200):
        start, shape, steps = ([rng.randint(*of) for _ in range(2)] for of in ((0, 9), (1, 4), (1, 3)))
        strides, at = (rng.choice([-96, -8, 8, 96]), rng.choice([-4, 4, 12])), rng.randint(0, 40) * 4
        t = fs.target(op("A", Tile("A", tuple(map(Affine.lift, start)), tuple(shape), tuple(steps)),
                         Place("sp", "", Affine((), at), strides)))  # fmt: skip
        ranges = [range(lo, lo + n * k, k) for lo, n, k in zip(start, shape, steps, strict=True)]
        assert inside(Family(t.box, t.over), {}) == set(product(*ranges))
        assert inside(Family(t.hole.box, t.hole.over), {}) == set(product(*ranges))
        assert t.hull == tuple((Affine.lift(r[0]), Affine.lift(r[-1] + 1)) for r in ranges)
        first = [sum(k * x for k, x in zip(strides, e, strict=True)) for e in product(*(range(0, n * k, k)
                 for n, k in zip(shape, steps, strict=True)))]  # fmt: skip
        assert (t.low, t.high) == (Affine.lift(at + min(first)), Affine.lift(at + max(first) + SIZE))
        for env in points(Context(t.over)):
            lo = [a.evaluate(env) for a, _ in t.box]
            assert t.offset.evaluate(env) == at + sum(k * (x - y) for k, x, y in zip(strides, lo, start, strict=True))
        several += len(t.over) > 0
    assert several > 100


@pytest.mark.parametrize("seed", range(40))
def test_a_progression_says_what_its_facts_say(seed: int):
    """Neither an element more nor another place, whatever stands beside, in cells or with holes."""
    fs, rng, found = facts(), random.Random(seed), 0
    for _ in range(20):
        far, step, width = rng.choice([-8, 4, 8, 32]), rng.choice([1, 2, 4]), rng.randint(1, 2)
        rows = [(n * step, 64 * (n // rng.randint(3, 9)) + n * far) for n in range(rng.randint(2, 6))]
        rows += [(rng.randint(0, 30), 4 * rng.randint(0, 90)) for _ in range(2)]
        some = []
        for x, at in rows:
            box = ((Affine.lift(x), Affine.lift(x + width)), (Affine(), Affine.lift(2)))
            cells = (at // 64, at // 64) if rng.random() < 0.1 else None
            f = fs.make("a", ("m", ""), cells, Affine.lift(at), (far, SIZE), box)
            some.append(fs.with_holes(f, frozenset([fs.hole(box)])) if rng.random() < 0.1 else f)
        plain = [f for f in some if f.cells is None and not f.holes]
        told = {p for f in plain for p in places(f.offset, f.strides, f.box, ())}
        for f, shape in progressions(some):
            offset, box = put_back(shape)
            found += 1
            assert places(offset, f.strides, box, shape.over) <= told
    assert found


def places(offset: Affine, strides: tuple[int, ...], box, over) -> set:
    """(element, byte) that a fact is about."""
    out = set()
    for env in points(Context(over)):
        ranges = [range(lo.evaluate(env), hi.evaluate(env)) for lo, hi in box]
        first = [r[0] for r in ranges]
        for e in product(*ranges):
            out.add((e, offset.evaluate(env) + sum(k * (x - y) for k, x, y in zip(strides, e, first, strict=True))))
    return out
