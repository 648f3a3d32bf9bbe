"""What the flat checker makes of steps before it runs them: groups that no step cuts, by carrying all steps out; and
places, patterns, effects and refusals of every step, on record."""

from __future__ import annotations

from dataclasses import fields, replace
from math import gcd
from typing import Any

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.proof import flat
from isam.proof.flat import Replay
from isam.proof.flat_step import compile_step, highest_addresses
from isam.proof.flat_units import Finder, Units, coarse
from isam.proof.geometry import resolve
from isam.proof.legal import Legality
from isam.proof.prescribed import Prescribed
from isam.proof.violation import Findings
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Bound, Issue, Loop, Node, Place, Schedule, Seq, Slot, distinct
from tests.unit.proof import test_dealt, test_registers
from tests.unit.proof.handmade import at_home, loop, move, tile, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.orders import carried_out
from tests.unit.proof.test_flat_compiled import planted, trips
from tests.unit.proof.test_instances import relu
from tests.unit.proof.test_mutants import SMALL
from tests.unit.proof.test_points import MADE
from tests.unit.proof.verdicts import on_record

SOME = {
    **MADE, "dealt": test_dealt.good, "registers": test_registers.good, "slots": relu,
    "rows of slots": lambda: relu(taken=1),
    "wide": lambda: tiny_matmul(16, 24, 20), "odd": lambda: vec_matmul(5, 24, 15, bound=True),
}  # fmt: skip


def plain(x: Any) -> Any:
    """As something whose text says all."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, tuple | list):
        return [plain(y) for y in x]
    return sorted(x) if isinstance(x, frozenset) else x


def shown(s: Schedule, sizes: dict[str, int]) -> list[Any]:
    """Everything that is made of a schedule before its first step."""
    out = Findings()
    r = Replay(s, sizes, out)
    said: list[Any] = [*out.found, highest_addresses(s, sizes)]
    if not r.ready:
        return said
    said += [sorted(r.space.units.wide.items()), sorted(r.space.units.group.items()), r.space.units.cells]
    said += [sorted(r.space.regions.items()), r.space.origin, r.space.shapes, r.extents]
    for r.phase, tree in (("bind", s.bind), ("call", s.call)):
        r.shapes.clear()
        for n in distinct(tree):
            if isinstance(n, Issue):
                found = Findings()
                step = compile_step(n, r, found)
                said += [*map(str, found.found)]
                if step is not None:
                    said.append(step.forms)
                    said += [plain([getattr(a, f.name) for f in fields(a) if f.name != "operand"])
                             for a in (*step.shape.accesses, *step.shape.effects)]  # fmt: skip
                    said.append(plain(step.shape.pointwise))
    return said


@pytest.mark.parametrize("name", SOME)
def test_what_is_made_of_steps(name: str) -> None:
    s = SOME[name]()
    on_record(f"shapes: {name}", [x for t in trips(s) for x in shown(s, t)])


@pytest.mark.parametrize("name", SMALL)
def test_what_is_made_of_planted_faults(name: str) -> None:
    found = [x for what, s in planted(SMALL[name](), 2, 3) for x in (what, *shown(s, trips(s)[0]))]
    on_record(f"shapes: faults in {name}", found)


# groups ---------------------------------------------------------------------------------------------------------------
def finder(s: Schedule, sizes: dict[str, int], fine: bool = False) -> Finder:
    lg = Legality(s)
    kernel = s.cover.kernel.with_sizes(sizes)
    skip = frozenset(i for n, _ in enumerate(s.nests) for i in lg.semantics(n).contracted)
    return Finder(lg, kernel, Prescribed(kernel, skip), sizes, fine)


def largest(s: Schedule, f: Finder, units: Units) -> dict[Any, int]:
    """Of every place, the bytes of the largest group of elements that lies there."""
    out: dict[Any, int] = {}
    places = [(o.tile.buffer, o.place) for t in (s.bind, s.call) for n in distinct(t) if isinstance(n, Issue)
              for o in n.operands]  # fmt: skip
    for name, p in [*places, *((b.name, b.home) for b in f.legality.buffers.values() if b.home is not None)]:
        spot = resolve(s.system, p.memory), p.base
        out[spot] = max(out.get(spot, 0), f.legality.buffers[name].bytes * units.wide[name])
    return out


def met(s: Schedule, sizes: dict[str, int], f: Finder, units: Units) -> tuple[dict[Any, int], dict[Any, int]]:
    """Of points per statement and axis, and of bytes per place: the greatest number that all steps keep to."""
    lg, points, bytes_ = f.legality, dict[Any, int](), dict[Any, int]()
    for i, st in enumerate(f.kernel.statements):
        axes = [int(a.extent.substitute(sizes)) for a in lg.outer[i]] + [int(a.extent) for a in st.domain.axes]
        points.update({(i, k): n if not st.domain.where else 1 for k, n in enumerate(axes)})
    for n, env in (*carried_out(s.bind, dict(sizes)), *carried_out(s.call, dict(sizes))):
        for o in n.operands:
            b, wide = lg.buffers[o.tile.buffer], units.wide[o.tile.buffer]
            if b.shape:
                assert o.tile.start[-1].evaluate(env) % wide == o.tile.shape[-1] % wide == 0
                assert wide == 1 or (o.tile.steps[-1], o.place.strides[-1]) == (1, b.bytes)
            spot = resolve(s.system, o.place.memory), o.place.base
            far = [k * m for k, m, c in zip(o.place.strides, o.tile.steps, o.tile.shape, strict=True) if c > 1]
            far = far[:-1] if wide > 1 and o.tile.shape[-1] > 1 else far
            bytes_[spot] = gcd(bytes_.get(spot, 0), o.place.offset.evaluate(env), b.bytes * wide, *far)
        if n.nest is not None:
            sig = lg.signature(n)
            played = {k: sig.extents[i] for i, k in s.cover.mappings[s.nests[n.nest].mapping].axes}
            at = {name: e.evaluate(env) for name, e in n.point}
            for _, i, _ in sig.semantics.effects:
                names = (*(a.name for a in lg.outer[i]), *f.kernel.statements[i].domain.names)
                for k, name in enumerate(names):
                    points[i, k] = gcd(points[i, k], played.get(name, 1), at.get(name, 1))
    return points, bytes_


@pytest.mark.parametrize("name", SOME)
def test_no_step_cuts_a_group(name: str) -> None:
    s = SOME[name]()
    for sizes in trips(s):
        f = finder(s, sizes)
        units = f.find()
        points, bytes_ = met(s, sizes, f, units)
        found = {(i, k): c for i, cs in units.cells.items() for k, c in enumerate(cs)}
        assert not any(n % found[k] for k, n in points.items())
        assert 0 in sizes.values() or found == {k: max(1, n) for k, n in points.items()}
        lies = largest(s, f, units)
        for spot, most in bytes_.items():
            group, parts = units.group[spot]
            assert most % group == 0
            assert parts == max(1, lies[spot] // group)
        one = finder(s, sizes, fine=True).find()
        assert set(one.wide.values()) == {1}
        assert {c for cs in one.cells.values() for c in cs} == {1}
        assert len({g for g, _ in one.group.values()}) == 1


def units_of(edit: Any = None, **change: Any) -> Units:
    s = replace(tiny_matmul(16, 16, 16), **change)
    return finder(edit(s) if edit else s, {}).find()


def test_what_makes_groups_smaller() -> None:
    """Each kind of number that a group has to divide."""
    base = tiny_matmul(16, 16, 16)
    whole = units_of()
    assert (whole.wide["A"], whole.group["sp", ""], whole.group["dram", "A"]) == (4, (16, 1), (16, 1))
    a = base.homes["A"]

    def with_move(t: Any, there: Place, own: Place) -> Units:
        return units_of(call=Seq((move("dma", "copy", t, there, own), base.call)))

    sp = Place("sp", "", lit(512), (64, 4))
    for t, wide in ((tile("A", [0, 0], [1, 2]), 2), (tile("A", [0, 2], [1, 4]), 2), (tile("A", [0, 1], [1, 4]), 1),
                    (tile("A", [0, 0], [1, 1]), 1), (tile("A", [0, 0], [4, 4])._replace(steps=(1, 2)), 1),
                    (tile("A", [0, 0], [4, 4])._replace(steps=(2, 1)), 4), (tile("A", [3, 0], [1, 8]), 4)):  # fmt: skip
        assert with_move(t, at_home(a, t), sp).wide == {**whole.wide, "A": wide}
    t = tile("A", [0, 0], [2, 4])
    assert with_move(t, a, replace(sp, strides=(64, 8))).wide["A"] == 1
    for own, group in ((sp, 16), (replace(sp, strides=(24, 4)), 8), (replace(sp, offset=lit(516)), 4),
                       (replace(sp, offset=Affine.of("q", 8)), 1), (replace(sp, strides=(20, 4)), 4)):  # fmt: skip
        got = with_move(t, a, own)
        assert got.group["sp", ""][0] == (group if group > 1 else 8 if own.offset.terms else 1)
        assert got.group["dram", "A"] == whole.group["dram", "A"]
    one = with_move(tile("A", [0, 0], [1, 4]), a, replace(sp, strides=(24, 4)))
    assert one.group["sp", ""][0] == 16  # of one row nothing lies between rows
    w = move("dma", "copy", t, a, replace(sp, base="W", offset=lit(0)))
    slot = units_of(workspace=(Slot("W", "sp", 40),), call=Seq((w, base.call)))
    assert slot.group["sp", "W"][0] == 8
    assert slot.group["sp", ""][0] == 16
    padded = units_of(homes={**base.homes, "A": replace(a, strides=(72, 4))})
    assert (padded.wide["A"], padded.group["dram", "A"][0]) == (4, 8)
    far = units_of(homes={**base.homes, "A": replace(a, offset=lit(4))})
    assert far.group["dram", "A"][0] == 4


def test_points_that_are_counted_together() -> None:
    """Of each axis, what divides the extent, every length and every start; conditions and elements count one by one."""
    base = tiny_matmul(16, 16, 16)
    assert units_of().cells == {0: (4, 4), 1: (16, 16, 16), 2: (4, 4, 4)}
    inner = next(n for n in distinct(base.call) if isinstance(n, Issue) and n.nest == 1)
    for at, size, cells in ((2, 4, 2), (8, 4, 4), (0, 2, 2), (0, 3, 1), (3, 4, 1), (6, 2, 2)):
        point = (("i", lit(at)), ("j", lit(0)), ("k", lit(0)))
        extra = replace(inner, point=point, sizes=(("M", size), ("N", 4), ("K", 4)),
                        operands=tuple(replace(o, tile=o.tile._replace(shape=(size if o.name in "AC" else 4, 4)))
                                       for o in inner.operands))  # fmt: skip
        got = units_of(call=Seq((base.call, extra))).cells
        assert got == {0: (4, 4), 1: (16, 16, 16), 2: (cells, 4, 4)}, (at, size)
    wrong = replace(inner, operands=inner.operands[:2])
    assert units_of(call=Seq((base.call, wrong))).cells == units_of().cells  # it is refused, and never run
    none = finder(replace(tiny_matmul(0, 8, 12), call=Seq()), {}).find().cells
    assert none == {0: (1, 8), 1: (1, 8, 12), 2: (1, 8, 12)}
    vec = vec_matmul(4, 16, 10)  # a step is at one point of the axes that it does not play
    fma = next(n for n in distinct(vec.call) if isinstance(n, Issue) and n.nest == 1)
    for row, depth in ((2, 4), (0, 0), (2, 5)):
        one = replace(fma, point=(("i", lit(row)), ("j", lit(8)), ("k", lit(depth))))
        assert finder(replace(vec, call=one), {}).find().cells[2] == (1, 4, 1)


def test_versions_of_groups() -> None:
    s = tiny_matmul(8, 8, 8)
    f = finder(s, {})
    p, was = f.prescribed, finder(s, {}).prescribed
    coarse(p, f.kernel, {"A": 4, "B": 2, "C": 4})
    for key, versions in was.before.items():
        for name, a in versions.items():
            assert p.before[key][name].tolist() == a[:: {"A": 4, "B": 2, "C": 4}[name]].tolist()
    assert {k: a.tolist() for k, a in p.adds.items()} == {k: a[::4].tolist() for k, a in was.adds.items()}


def test_points_are_counted_before_there_are_counters_for_them() -> None:
    """Of 8 x 8 x 8 products that add to 64 elements: as elements and in boxes of 4 x 4 x 4 few, one by one too many."""
    s = tiny_matmul(8, 8, 8)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(flat, "POINTS", 300)
        assert sum(a.size for a in Replay(s, {}, Findings()).done.values()) < 300
        with pytest.raises(MemoryError, match="statement instances to tell apart"):
            Replay(s, {}, Findings(), fine=True)


# refusals -------------------------------------------------------------------------------------------------------------
def first_step(s: Schedule, phase: str, n: Issue) -> list[tuple[int, str, str]]:
    r, out = Replay(s, {}, Findings()), Findings()
    r.phase = phase
    assert (compile_step(n, r, out) is None) == bool(out.found)
    return [(v.obligation, v.kind, v.message) for v in out.found]


def test_steps_that_are_refused_whatever_the_state() -> None:
    s = vec_matmul(4, 16, 10, bound=True)
    pack = next(n for n in distinct(s.bind) if isinstance(n, Issue))
    kept = "operand D writes the slot 'P', which is kept from bind on"
    assert first_step(s, "bind", pack) == []
    assert first_step(s, "call", pack) == [(8, "base", kept)]
    load = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.operands[0].tile.buffer == "B")
    assert first_step(s, "call", load) == first_step(s, "bind", load) == []
    zero = next(n for n in distinct(s.call) if isinstance(n, Issue) and any(o.tile.buffer == "A" for o in n.operands))
    assert first_step(s, "call", zero) == []
    assert first_step(s, "bind", zero) == [(8, "bind", "'A' is not there when constants are bound")]
    t = tiny_matmul()
    dma = next(n for n in distinct(t.call) if isinstance(n, Issue) and n.operands[-1].place.memory == "sp")
    lost = replace(dma, operands=(dma.operands[0], replace(dma.operands[1], place=Place("dram", "Q", lit(0), (16, 4)))))
    assert [k for *_, k in first_step(t, "call", lost)] != []


def test_highest_addresses() -> None:
    """Of memories without names: one past the last byte of any operand, with room, where the loops are known."""
    s = tiny_matmul(8, 8, 8)
    t = tile("A", [0, 0], [2, 4])

    def tops(n: Node, sizes: dict[str, int] | None = None) -> dict[tuple[str, str], int]:
        return highest_addresses(replace(s, call=n), sizes or {})

    def at(offset: Affine | int, steps: tuple[int, int] = (1, 1), cell: int | None = None) -> Issue:
        there = Place("sp", "", lit(offset), (64, 4), cell)
        return move("dma", "copy", t._replace(steps=steps), s.homes["A"], there)

    reach = 2 * 64 + 4 * 4 + 16
    assert tops(at(40)) == {("sp", ""): 40 + reach}
    assert tops(at(40, (2, 3))) == {("sp", ""): 40 + 4 * 64 + 3 * 16 + 16}
    assert tops(Seq((at(40), at(4), at(12)))) == {("sp", ""): 40 + reach}
    v = Affine.of("v")
    assert tops(loop("v", 1, 9, 2, at(v * 8))) == {("sp", ""): 64 + reach}  # the limit of the loop, not its last value
    assert tops(loop("v", 1, 9, 2, at(v * -8 + 100))) == {("sp", ""): 92 + reach}
    assert (
        tops(loop("v", 0, 8, 1, at(0), exit=at(v)))
        == tops(loop("v", 0, 8, 1, at(0), enter=at(v)))
        == {("sp", ""): reach}
    )
    assert tops(at(Affine.of("N") * 4), {"N": 5}) == {("sp", ""): 20 + reach}
    assert tops(at(v)) == {}
    assert tops(at(0, cell=1)) == {}
    w = Affine.of("w")
    assert tops(loop("v", 0, 4, 1, loop("w", v * 2, v * 2 + 3, 1, at(w)))) == {("sp", ""): 8 + reach}
    unknown = Loop("v", (Bound(Affine.of("Q")),), (Bound(lit(9)),), 1, at(v))
    assert tops(unknown) == {("sp", ""): reach}
    halves = Loop("v", (Bound(lit(3), 2),), (Bound(lit(21), 2), Bound(lit(100))), 1, at(v))
    assert tops(halves) == {("sp", ""): 9 + reach}
    late = Loop("v", (Bound(lit(5), 2), Bound(lit(1))), (Bound(lit(9)),), 1, at(v * -8 + 100))
    assert tops(late) == {("sp", ""): 84 + reach}
    within = loop("v", 0, 4, 1, loop("w", v, 9, 1, at(w * -8 + 100)))
    assert tops(within) == {("sp", ""): 100 + reach}
    back = at(40)
    a, b = back.operands
    back = replace(back, operands=(a, replace(b, place=replace(b.place, strides=(-64, 4)))))
    assert tops(back) == {("sp", ""): 40 + 4 * 4 + 16}
    assert highest_addresses(replace(s, bind=at(400), call=at(3)), {}) == {("sp", ""): 400 + reach}


@pytest.mark.parametrize("permits", ["exact", "reassociate"])
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_only_sums_of_floats_have_an_order(dtype: str, permits: str) -> None:
    s = from_json(to_json(vec_matmul(2, 8, 10, permits=frozenset({permits}))).replace("f32", dtype))
    assert flat.check_flat(s) == []
    r = Replay(s, {}, Findings())
    r.phase = "call"
    made = [compile_step(n, r, Findings()) for n in distinct(s.call) if isinstance(n, Issue) and n.nest is not None]
    effects = [e for x in made if x is not None for e in x.shape.effects]
    assert {e.ordered is not None for e in effects if e.accumulate} == {(dtype, permits) == ("f32", "exact")}
