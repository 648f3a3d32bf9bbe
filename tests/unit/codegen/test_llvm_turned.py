"""Copies from rows to columns: turned a square at a time where they are nothing else, word by word where they are."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.codegen.llvm import to_ir, turned
from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.lower import Lowering
from isam.ir.affine import Affine
from isam.schedule.tree import (
    Bound,
    Issue,
    Loop,
    Node,
    Operand,
    Prefetch,
    Schedule,
    Seq,
    Serpentine,
    distinct,
    leaves,
    mapped,
)
from tests.pipeline import compiled, simulated
from tests.systems.test_groups import product

NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "u8": np.uint8, "i8": np.int8}
_SHUFFLE = re.compile(r"(%\w+) = shufflevector <\d+ x \w+> (\S+), <\d+ x \w+> (\S+), <\d+ x i32> <([^>]*)>")


def scheduled(on: str, sizes: dict[str, int], a: str = "f32", b: str = "f32") -> Schedule:
    schedule = compiled(product(a, b, turned=True), sizes, simulated(on)).schedule
    assert schedule is not None
    return schedule


def lowering(schedule: Schedule) -> Lowering:
    return Lowering(schedule, Module())


def ir(schedule: Schedule) -> str:
    return to_ir(schedule)[0]


def flat(parts: turned.Parts) -> list[turned.Turn]:
    return [t for p in parts for t in (flat(p.parts) if isinstance(p, turned.Inner) else [p])]


def found(schedule: Schedule) -> list[tuple[Loop, list[turned.Turn]]]:
    low = lowering(schedule)
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    return [(n, t) for n in loops if (t := flat(turned.turns(low, n)))]


@pytest.mark.parametrize("lanes", [4, 8, 16, 32])
@pytest.mark.parametrize("missing", [0, 1, 3])
def test_columns_of_a_square(lanes, missing):
    """The shuffles, carried out on the names of words, make columns of rows; log2(lanes) of them for each column."""
    fn = Function(Module(), "square", [])
    rows = [f"%r{i}" if i < lanes - missing else "poison" for i in range(lanes)]
    columns = turned._square(fn, rows, lanes)
    values = {r: [(i, c) for c in range(lanes)] for i, r in enumerate(rows) if r != "poison"}
    values["poison"] = [None] * lanes
    count = 0
    for line in fn.text().splitlines():
        if m := _SHUFFLE.search(line):
            both = values[m[2]] + values[m[3]]
            values[m[1]] = [both[int(i.split()[1])] for i in m[4].split(", ")]
            count += 1
    assert [values[c] for c in columns] == [
        [(r, c) if r < lanes - missing else None for r in range(lanes)] for c in range(lanes)]  # fmt: skip
    most = lanes * (lanes.bit_length() - 1)
    assert count <= most
    assert missing or count == most


@pytest.mark.parametrize("dtypes", [("f32", "f32"), ("bf16", "bf16"), ("u8", "i8")])
@pytest.mark.parametrize("sizes", [(40, 40, 40), (33, 70, 100), (24, 100, 37), (64, 16, 16), (19, 65, 68)])
def test_products_by_columns(dtypes, sizes):
    """What is computed, exactly, on whatever this CPU is."""
    f = isam.compile(product(*dtypes, turned=True), sizes=dict(zip("MNK", sizes, strict=True)))
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 7, s).astype(NUMPY[d]) for s, d in zip([sizes[::2], sizes[1:]], dtypes, strict=True))
    assert np.array_equal(f(a, b), a.astype(np.int64) @ b.astype(np.int64).T)


@pytest.mark.parametrize(("on", "dtypes", "gathers"), [
    ("host-avx512", ("f32", "f32"), False), ("host-avx512", ("bf16", "bf16"), True),
    ("host-avx512", ("u8", "i8"), True), ("host-avx2", ("f32", "f32"), False),
    ("host-neon", ("f32", "f32"), False)])  # fmt: skip
def test_both_ways_are_found(on, dtypes, gathers):
    """Words apart where they go, and groups apart where they come from: no gather, no scatter, no word alone is left of
    whole blocks."""
    schedule = scheduled(on, {"M": 64, "N": 64, "K": 64}, *dtypes)
    turns = [t for _, ts in found(schedule) for t in ts]
    assert {t.gathers for t in turns} == {gathers}
    text = ir(schedule)
    assert "masked.gather" not in text
    assert "masked.scatter" not in text
    assert "shufflevector" in text


def test_a_rest_is_copied_as_before():
    """37 iterations are two squares of 16 and five that gather: all of 100 columns, the last block of them of four."""
    schedule = scheduled("host-avx512", {"M": 24, "N": 100, "K": 74}, "bf16", "bf16")
    assert {t.words for _, ts in found(schedule) for t in ts} >= {16}
    assert "masked.gather" in ir(schedule)


def test_bytes_go_alone():
    """Shuffles of which would not pay."""
    assert not found(scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "u8", "u8"))


def test_fewer_iterations_than_lanes_go_alone():
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 30}, "bf16", "bf16")
    assert found(schedule)
    assert "masked.gather" in ir(schedule)


def other(loop: Loop, change) -> Loop:
    return replace(loop, body=Seq(tuple(change(p) for p in leaves(loop.body))))


def in_memory(issue: Issue, change) -> Issue:
    return replace(issue, operands=tuple(change(o) if o.place.base else o for o in issue.operands))


def strided(o: Operand, dimension: int, step: int) -> Operand:
    strides = tuple(step if d == dimension else k for d, k in enumerate(o.place.strides))
    return replace(o, place=replace(o.place, strides=strides))


def elsewhere(o: Operand, base: str) -> Operand:
    return replace(o, place=replace(o.place, base=base))


def farther(o: Operand, var: str) -> Operand:
    """Twice as far on in every iteration."""
    more = Affine.of(var) * dict(o.place.offset.terms).get(var, 0)
    return replace(o, place=replace(o.place, offset=o.place.offset + more))


def test_what_is_no_such_copy():
    """Each condition, missed by itself."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "bf16", "bf16")
    low = lowering(schedule)
    loop = found(schedule)[0][0]
    load, store = (p for p in leaves(loop.body) if isinstance(p, Issue))
    near, var = Prefetch(Affine((), 4096), "l1"), Affine.of(loop.var)

    def inner(*low: Affine) -> Loop:
        high = Bound((low[0] if low else Affine()) + 4)
        return Loop("z", tuple(map(Bound, low)), (high,), 1, Seq((load, store)))

    turned_not = {
        "back and forth": replace(loop, serpentine=Serpentine("t", 1)),
        "within one place": other(
            loop, lambda p: in_memory(p, lambda o: elsewhere(o, load.operands[0].place.base))),
        "two places": replace(loop, body=Seq((load, store, load, in_memory(store, lambda o: elsewhere(o, "other"))))),
        "asks a cache": other(loop, lambda p: replace(p, prefetch=near) if p is load else p),
        "no neighbours": other(
            loop, lambda p: in_memory(p, lambda o: farther(o, loop.var)) if p is load else p),
        "a load alone": replace(loop, body=load),
        "a store first": replace(loop, body=Seq((store, load))),
        "a loop inside": replace(loop, body=Seq((load, replace(loop, body=store)))),
        "another tile": other(loop, lambda p: replace(p, operands=tuple(
            replace(o, tile=o.tile._replace(buffer="A")) for o in p.operands)) if p is store else p),
        "nothing": replace(loop, body=Seq(())),
        "other lanes": other(loop, lambda p: in_memory(p, lambda o: replace(o, dims=o.dims[::-1]))
                             if p is store else p),
        "two words": other(loop, lambda p: replace(p, operands=tuple(
            replace(o, tile=o.tile._replace(shape=(1, 2, 2))) for o in p.operands))),
        "another register": other(loop, lambda p: replace(p, operands=tuple(
            replace(o, place=replace(o.place, cell=1)) if o.place.cell is not None else o for o in p.operands))
            if p is store else p),
        "groups in pieces": other(loop, lambda p: in_memory(p, lambda o: strided(o, 1, 4))),
        "a first one": replace(loop, first=loop.body),
        "something before": replace(loop, enter=load),
        "a loop that begins elsewhere every time": replace(loop, body=inner(var)),
        "a loop with two bounds": replace(loop, body=inner(Affine(), Affine())),
    }  # fmt: skip
    assert turned.turns(low, loop)
    assert turned.turns(low, replace(loop, body=inner(Affine())))
    for what, changed in turned_not.items():
        assert not turned.turns(low, changed), what


def test_rows_on_both_sides_are_no_columns():
    """Words that lie together where they come from and where they go."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64})
    loop = found(schedule)[0][0]
    store = [p for p in leaves(loop.body) if isinstance(p, Issue)][1]
    flat_rows = other(loop, lambda p: in_memory(p, lambda o: strided(o, 1, 4))
                      if p.instruction == store.instruction else p)  # fmt: skip
    assert turned.turns(lowering(schedule), loop)
    assert not turned.turns(lowering(schedule), flat_rows)


def test_squares_have_room_in_registers():
    """Registers of half as many bytes hold no row of as many words."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "bf16", "bf16")
    loop, system = found(schedule)[0][0], schedule.system
    half = replace(system.memories["g"], cell=32)
    narrow = replace(schedule, system=replace(system, memories={**system.memories, "g": half}))
    assert turned.turns(lowering(schedule), loop)
    assert not turned.turns(lowering(narrow), loop)


@pytest.mark.parametrize(("dtypes", "align"), [(("f32", "f32"), "4"), (("bf16", "bf16"), "2"), (("u8", "i8"), "1")])
def test_what_is_said_of_addresses(dtypes, align):
    """Rows of groups lie where their elements may lie; ragged rows are read under a mask, whole."""
    text = ir(scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, *dtypes))
    assert set(re.findall(r"load <16 x i32>, ptr \S+, align (\d+)", text)) == {align}
    text = ir(scheduled("host-avx512", {"M": 64, "N": 64, "K": 37}))
    assert "masked.load.v16i32" in text


def test_registers_that_live_on_hold_the_last_word():
    """Where the copy's register is read after the loop, it goes word by word, which leaves it as it has to be."""
    schedule = scheduled("host-avx512", {"M": 64, "N": 64, "K": 64}, "bf16", "bf16")
    loop = found(schedule)[0][0]
    _, store = (p for p in leaves(loop.body) if isinstance(p, Issue))
    first = {loop.var: Affine()}
    after = replace(store, operands=tuple(replace(
        o, tile=o.tile._replace(start=tuple(s.substitute(first) for s in o.tile.start)),
        place=replace(o.place, offset=o.place.offset.substitute(first))) for o in store.operands))  # fmt: skip

    def read_after(n: Node) -> Node:
        return Seq((loop, after)) if n is loop else mapped(n, read_after)

    assert "masked.gather" not in ir(schedule)
    assert "masked.gather" in ir(replace(schedule, call=read_after(schedule.call)))
