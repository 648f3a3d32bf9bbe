"""What a step says by itself (unit, instruction, sizes, shapes, places), wrong in one thing, and where it is found."""

# ruff: noqa: E501  (tables: a fault is one entry)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Literal, Statement, Sym
from isam.ir.mapping import Cover
from isam.proof.flat import Replay, check_flat
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.semantics import Pair
from isam.proof.signature import Judge
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Nest, Operand, Place, Schedule, Seq, Slot, distinct
from isam.system.groups import Ports
from tests.unit.proof.handmade import home, mapping_of, op, seq, tile, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import acc, buf, dom, kern, lit, vec
from tests.unit.proof.test_forged import steps
from tests.unit.proof.verdicts import on_record

Edit = Callable[[Issue], Issue]


def of(s: Schedule, instruction: str, edit: Edit) -> Schedule:
    return replace(s, call=steps(s.call, lambda i: edit(i) if i.instruction == instruction else i))


def operand(name: str, **to: Any) -> Edit:
    def one(o: Operand) -> Operand:
        if o.name != name:
            return o
        place = {k: v for k, v in to.items() if k in ("memory", "base", "strides", "cell", "offset")}
        t = {k: v for k, v in to.items() if k in ("buffer", "shape", "steps", "start")}
        rest = {k: v for k, v in to.items() if k == "dims"}
        return replace(o, tile=o.tile._replace(**t), place=replace(o.place, **place), **rest)

    return lambda i: replace(i, operands=tuple(map(one, i.operands)))


def retyped(s: Schedule, buffer: str, dtype: str) -> Schedule:
    k = s.cover.kernel
    new = replace(k, buffers=tuple(replace(b, dtype=dtype) if b.name == buffer else b for b in k.buffers))
    return replace(s, kernel=new, cover=replace(s.cover, kernel=new, original=new))


def ported(ports: Ports) -> Schedule:
    s = vec_matmul()
    memories = {n: replace(m, ports=ports) if n == "v" else m for n, m in s.system.memories.items()}
    return replace(s, system=replace(s.system, memories=memories))


def unlinked() -> Schedule:
    s = tiny_matmul()
    return replace(s, system=replace(s.system, moves=s.system.moves[1:]))


def conditional(where: Affine | None) -> Schedule:
    """The product's sum is taken under a condition, or over an axis that is longer than that of its products."""
    s = tiny_matmul()
    old = s.system.instructions["mm4"]
    *rest, last = old.body.body
    i, *others = last.domain.axes
    domain = replace(last.domain, where=(where,)) if where is not None else replace(
        last.domain, axes=(replace(i, extent=i.extent + 1), *others))  # fmt: skip
    new = replace(old, body=replace(old.body, body=(*rest, replace(last, domain=domain))))
    mappings = tuple(replace(m, instruction=new) if m.instruction == old else m for m in s.cover.mappings)
    system = replace(s.system, instructions={**s.system.instructions, "mm4": new})
    return replace(s, system=system, cover=replace(s.cover, mappings=mappings))


def slotted(**to: Any) -> Schedule:
    s = vec_matmul()
    return replace(s, workspace=tuple(replace(w, **to) for w in s.workspace))


def no_axis() -> Schedule:
    s = vec_matmul()
    mappings = tuple(replace(m, axes=(("j", "i"), ("k", "i"))) if m.instruction.name == "fma" else m
                     for m in s.cover.mappings)  # fmt: skip
    return replace(s, cover=replace(s.cover, mappings=mappings))


def widened(value: float = 0.5, n: int = 4, **to: Any) -> Schedule:
    """``C = max(A, 0.5)``: the number lies in a slot of its own."""
    s = vec()
    ins = replace(s.instructions["vmax"], body=kern("vmax", [buf("X", "in", "N"), buf("L", "in"), buf("Y", "out", "N")], [
        Statement(dom(j="N"), acc("Y", "j"), "max", (acc("X", "j"), acc("L")))], s.instructions["vmax"].syms),
        operands={**s.instructions["vmax"].operands, "L": replace(s.instructions["vmax"].operands["X"], homes=("ram",))})  # fmt: skip
    s = replace(s, instructions={**s.instructions, "vmax": ins})
    k = kern("top", [buf("A", "in", n), buf("C", "out", n)], [
        Statement(dom(i=n), acc("C", "i"), "max", (acc("A", "i"), Literal(0.5)))])  # fmt: skip
    m = mapping_of(s, "vmax", (0,), [("X", acc("A", "i")), ("Y", acc("C", "i"))], {"j": "i"}, ())
    m = replace(m, operands=(*m.operands, replace(m.operands[0], operand="L", buffer="", index=(), dims=(), steps=(),
                                                  literal=value)))  # fmt: skip
    slot = Slot("half", "ram", 4, 64, False, "f32", 0.5)
    slot = replace(slot, **to)
    homes = {b: home(k, "ram", b) for b in ("A", "C")}
    whole, reg = tile("A", [0], [n]), Place("v", "", lit(0), (4,), 0)
    out, other = tile("C", [0], [n]), Place("v", "", lit(0), (4,), 1)
    one = (("M", 1), ("N", n))
    number = op("L", tile("half", [], []), Place("ram", "half", lit(0), ()))
    call = seq(
        Issue("cpu", "vmove", one, (op("S", whole, homes["A"], (None, 0)), op("D", whole, reg, (None, 0)))),
        Issue("cpu", "vmax", (("N", n),), (op("X", whole, reg), number, op("Y", out, other)), 0, (("i", lit(0)),)),
        Issue("cpu", "vmove", one, (op("S", out, other, (None, 0)), op("D", out, homes["C"], (None, 0)))),
    )
    return Schedule(k, s, Cover(k, k, (m,)), (Nest(0, (("i", lit(n)),)),), Seq(), call, (slot,), homes)


WRONG: dict[str, tuple[Callable[[], Schedule], tuple[int, str]]] = {
    "no such instruction": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, instruction="mm5")), (10, "instruction")),
    "no such unit": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, unit="mn")), (10, "unit")),
    "a unit that cannot": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, unit="dma")), (10, "unit")),
    "a size that it has not": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, sizes=(*i.sizes, ("Q", 1)))), (9, "sizes")),
    "a size missing": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, sizes=i.sizes[:-1])), (9, "sizes")),
    "a size of nothing": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, sizes=(*i.sizes[:-1], ("K", 0)))), (9, "sizes")),
    "an operand that it has not": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, operands=(*i.operands, i.operands[0]))), (3, "operands")),
    "an operand missing": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, operands=i.operands[1:])), (3, "operands")),
    "no such buffer": (lambda: of(tiny_matmul(), "mm4", operand("A", buffer="Z")), (7, "buffer")),
    "a rank too many": (lambda: of(tiny_matmul(), "mm4", operand("A", shape=(4, 4, 1))), (7, "rank")),
    "strides of another rank": (lambda: of(tiny_matmul(), "mm4", operand("A", strides=(16,))), (7, "rank")),
    "another type": (lambda: retyped(vec_matmul(), "B", "i32"), (3, "dtype")),
    "dimensions that are none": (lambda: of(tiny_matmul(), "mm4", operand("A", dims=(0, 2))), (2, "dims")),
    "a dimension twice": (lambda: of(tiny_matmul(), "mm4", operand("A", dims=(0, 0))), (2, "dims")),
    "a dimension before the first": (lambda: of(tiny_matmul(), "mm4", operand("A", dims=(0, -1))), (2, "dims")),
    "wide where nothing plays": (lambda: of(vec_matmul(), "fma", operand("C", shape=(2, 4))), (2, "shape")),
    "another shape": (lambda: of(tiny_matmul(), "mm4", operand("A", shape=(4, 3))), (2, "shape")),
    "no steps": (lambda: of(vec_matmul(), "fma", operand("C", steps=(0, 1))), (2, "shape")),
    "no such memory": (lambda: of(tiny_matmul(), "mm4", operand("A", memory="rc")), (9, "memory")),
    "a memory that it cannot reach": (lambda: of(tiny_matmul(), "mm4", operand("A", memory="sp", cell=None)), (9, "home")),
    "no cell": (lambda: of(tiny_matmul(), "mm4", operand("A", cell=None)), (9, "cell")),
    "a cell of bytes": (lambda: of(vec_matmul(), "fma", operand("a", cell=1)), (9, "cell")),
    "a base that is none": (lambda: of(vec_matmul(), "fma", operand("a", base="Q")), (9, "base")),
    "no base at home": (lambda: of(vec_matmul(), "fma", operand("a", base="")), (9, "base")),
    "a temporary for a base": (lambda: of(vec_matmul(), "fma", operand("a", base="T")), (9, "base")),
    "a base of another memory": (lambda: of(vec_matmul(), "fma", operand("C", base="A")), (9, "base")),
    "a slot of another memory": (lambda: of(vec_matmul(), "fma", operand("C", base="P")), (9, "base")),
    "an input written": (lambda: of(vec_matmul(), "pack", operand("D", base="B")), (8, "read-only")),
    "written into another": (lambda: of(vec_matmul(), "pack", operand("D", base="C")), (8, "foreign")),
    "two in one file": (lambda: of(tiny_matmul(), "mm4", operand("B", memory="ra", cell=2)), (9, "apart")),
    "too many reads": (lambda: ported(Ports(read=1)), (9, "ports")),
    "too many writes": (lambda: ported(Ports(write=0)), (9, "ports")),
    "a step of no nest that computes": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, nest=None)), (10, "move")),
    "a move to nowhere": (lambda: unlinked(), (10, "edge")),
    "a move to another buffer": (lambda: of(tiny_matmul(), "copy", operand("D", buffer="B")), (2, "move")),
    "a move that turns": (lambda: of(tiny_matmul(), "copy", operand("D", dims=(1, 0), strides=(4, 16))), (2, "move")),
    "no such nest": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, nest=2)), (1, "nest")),
    "a nest before the first": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, nest=-1)), (1, "nest")),
    "another's nest": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, nest=0)), (3, "instruction")),
    "an axis too many": (lambda: of(tiny_matmul(), "mm4", lambda i: replace(i, point=(*i.point, ("z", lit(0))))), (1, "point")),
    "one axis for two": (no_axis, (2, "axes")),
    "a condition on the instruction": (lambda: conditional(Affine.of("i") - "j"), (3, "domain")),
    "an axis of another extent, which is another axis": (lambda: conditional(None), (2, "axes")),
    "another element": (lambda: of(vec_matmul(), "fma", operand("a", dims=(), start=(Affine.of("m"), Affine.of("p", 1, 1)))), (2, "address")),
    "the other buffer": (lambda: of(vec_matmul(), "fma", operand("a", buffer="C")), (2, "buffer")),
    "another number": (lambda: widened(literal=0.25), (2, "literal")),
    "a mapping of another number": (lambda: widened(0.25), (3, "operation")),
    "no number at all": (lambda: widened(literal=None), (7, "buffer")),
    "a slot with a name twice": (lambda: slotted(name="C"), (9, "slot")),
    "a slot among registers": (lambda: slotted(memory="v"), (9, "slot")),
    "a slot of less than nothing": (lambda: slotted(bytes=-4), (9, "slot")),
    "a slot aligned to nothing": (lambda: slotted(align=0), (9, "slot")),
    "a slot beyond the memory": (lambda: slotted(bytes=1 << 24), (9, "capacity")),
    "a number's slot too small": (lambda: widened(bytes=2), (9, "home")),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_it_is_refused_under_its_obligation(what: str) -> None:
    make, expected = WRONG[what]
    s = make()
    found = check_points(s), check_flat(s, {y.name: 2 for y in s.cover.kernel.syms})
    assert expected in {(v.obligation, v.kind) for v in found[0]}, found[0]
    assert found[1]
    on_record(f"signature: {what}", [v for some in found for v in some])


def test_the_number_in_its_slot_is_accepted() -> None:
    assert check_points(widened()) == check_flat(widened()) == []


def test_memory_is_counted_to_the_byte() -> None:
    def within(n: int) -> Schedule:
        s = widened()
        ram = replace(s.system.memories["ram"], capacity=n)
        return replace(s, system=replace(s.system, memories={**s.system.memories, "ram": ram}))

    assert check_points(within(4 * 4 + 4 * 4 + 64)) == []
    assert {v.kind for v in check_points(within(4 * 4 + 4 * 4 + 63))} == {"capacity"}


def test_a_single_point_left_out_is_found() -> None:
    s = widened(n=1)
    assert check_points(s) == check_flat(s) == []
    less = steps(s.call, lambda i: i if i.is_move else Seq())
    assert "coverage" in {v.kind for v in check_flat(replace(s, call=less))}
    assert "coverage" in {v.kind for v in check_points(replace(s, call=less))}


def test_rows_of_a_memory_are_kept_to_the_byte() -> None:
    """The last dimension lies in one row, along the others it goes whole rows: for all small operands."""
    place = tiny_matmul().call  # any operand will do
    one = next(n for n in distinct(place) if isinstance(n, Issue)).operands[0]
    row, size, said = 32, 4, set()
    for shape, strides, every, dims in product([(1, 8), (2, 8), (2, 7), (2, 1), (1, 1), (3, 4), (1, 9)],
                                               [(32, 4), (64, 4), (16, 4), (32, 5), (32, 8), (4, 32), (32, -4), (0, 0)],
                                               [(1, 1), (1, 2), (2, 1)], [(0, 1), (1, 0), (None, 1), (1,)]):  # fmt: skip
        o = replace(one, dims=dims, tile=one.tile._replace(shape=shape, steps=every),
                    place=replace(one.place, strides=strides))  # fmt: skip
        bad: list[tuple[int, str, str]] = []
        Judge._rows(o, row, size, bad)
        wrong = 0
        for d in dims:
            if d is None or shape[d] == 1:
                continue
            far = strides[d] * every[d]
            ends = [far * k for k in range(shape[d])]
            wrong += (far <= 0 or ends[-1] + size > row) if d == dims[-1] else any(x % row for x in ends)
        assert [(n, kind) for n, kind, _ in bad] == [(9, "row")] * wrong, (shape, strides, every, dims)
        said.add(wrong)
    assert said == {0, 1, 2}


def faults(s: Schedule, instruction: str) -> set[tuple[int, str]]:
    """What steps say by themselves, without a look at what they compute of the loop variables."""
    lg = Legality(s)
    some = (n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == instruction)
    return {(number, kind) for n in some for number, kind, _ in lg.signature(n).faults}


def test_a_base_is_needed_and_no_temporary_is_one() -> None:
    s = vec_matmul()
    assert faults(s, "fma") == set()
    assert faults(of(s, "fma", operand("a", base="")), "fma") == {(9, "base")}
    stored = replace(s, homes={**s.homes, "T": home(s.cover.kernel, "ram", "T")})
    assert faults(of(stored, "fma", operand("a", base="T")), "fma") == {(9, "base")}


def test_what_is_read_may_be_read_again_and_what_is_written_not() -> None:
    """An index of two axes says the same element at several points: of an operand that is read there is no harm."""
    s = tiny_matmul()
    judge = Legality(s).judge
    x = Operand("X", tile("A", [0, 0], [4, 4]), Place("sp", "", lit(0), (16, 4)), (0, 1))
    i, j, k = map(Affine.of, "ijk")
    axes, extents = {"i": "i", "j": "j", "k": "k"}, {"i": 2, "j": 3, "k": 4}
    for own, same, whole in (((i + j, k), True, False), ((i, k), True, True), ((i * 2, k), True, False),
                             ((i + j, j), False, False), ((j, j), True, False)):  # fmt: skip
        kernel = acc("A", *own) if same else acc("A", i, k)
        for writes in (False, True):
            bad: list[tuple[int, str, str]] = []
            judge._pair(Pair("X", acc("X", *own), kernel, 0, writes), x, axes, extents, bad)
            found = {(number, kind) for number, kind, _ in bad}
            assert found == ({(3, "write")} if writes and not whole else set()) | (set() if same else {(2, "access")})


def test_where_a_step_begins() -> None:
    """A move carries elements to the places of the same; in an argument's own memory each has one address."""
    s = tiny_matmul()
    lg = Legality(s)
    copy = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "copy")
    i = next(k for k, o in enumerate(copy.operands) if o.place.base)
    for k, further, where, found in ((0, 0, 0, set()), (1 - i, 4, 0, {(2, "move")}), (i, 0, 16, {(2, "address")}),
                                     (i, 0, -4, {(2, "address")})):  # fmt: skip
        o = copy.operands[k]
        first, *rest = o.tile.start
        o = replace(o, tile=o.tile._replace(start=(first + further, *rest)),
                    place=replace(o.place, offset=o.place.offset + where))  # fmt: skip
        out, edited = Findings(), replace(copy, operands=tuple(o if n == k else x for n, x in enumerate(copy.operands)))
        assert lg.step(edited, out) == (not found)
        assert {(v.obligation, v.kind) for v in out.found} == found


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_a_number_lies_in_its_slot_or_has_no_place(size: int) -> None:
    replay, out = Replay(widened(bytes=size), {}, Findings()), Findings()
    replay.space.put_home("half", out)
    assert [(v.obligation, v.kind) for v in out.found] == ([] if size >= 4 else [(9, "home")])


def test_sizes_within_their_limits() -> None:
    s = tiny_matmul()
    mm, judge = s.system.instructions["mm4"], Legality(s).judge
    one = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "mm4")
    for lo, hi, by, n in product((0, 2), (None, 4, 5), (1, 2), range(-1, 7)):
        ins = replace(mm, body=replace(mm.body, syms=(Sym("M", lo, hi, by),)))
        bad: list[tuple[int, str, str]] = []
        assert judge._sizes(ins, replace(one, sizes=(("M", n),)), bad) == {"M": n}
        fits = n in range(max(lo, 1), 9 if hi is None else hi + 1) and n in range(0, 9, by)
        assert [(number, kind) for number, kind, _ in bad] == ([] if fits else [(9, "sizes")]), (lo, hi, by, n)


def test_a_tile_has_the_shape_of_its_operand() -> None:
    """Each element of the operand is one of the tile, and all are taken; neighbours lie as far as the contract says."""
    s, said = tiny_matmul(), set()
    mm, judge = s.system.instructions["mm4"], Legality(s).judge
    some = product(((0, 1), (1, 0), (None, 1), (0, None), (0, 0), (0, 2), (0,), (-1, 0)), ((2, 3), (1, 3), (2, 1), (0, 3)),
                   ((1, 1), (2, 1), (1, 0)), ((2, 3), (3, 2), (1, 3), (1, 1)), ((None, None), (None, 1), (4, 1)))  # fmt: skip
    for dims, shape, by, (m, k), want in some:
        ins = replace(mm, operands={**mm.operands, "A": replace(mm.operands["A"], strides=want)})
        o = Operand("A", tile("A", [0, 0], list(shape))._replace(steps=by), Place("ra", "", lit(0), (16, 4), 0), dims)
        bad: list[tuple[int, str, str]] = []
        judge._shape(ins, o, {"M": m, "N": 1, "K": k}, bad)
        found = {(number, kind) for number, kind, _ in bad}
        said |= found
        if len(dims) != 2 or len({d for d in dims if d is not None}) < 2 - dims.count(None) or {-1, 2} & {*dims}:
            assert found == {(2, "dims")}
            continue
        each = [*product(range(m), range(k))]
        at = [tuple(by[p] * x[dims.index(p)] if p in dims else 0 for p in (0, 1)) for x in each]
        there = [*product(*([n * step for n in range(count)] for count, step in zip(shape, by, strict=True)))]
        whole = sorted(at) == sorted(there) and len(set(at)) == len(at) > 0 and min(by) > 0
        far = [d is not None and n == shape[d] > 1 and w is not None and (16, 4)[d] * by[d] != 4 * w
               for d, n, w in zip(dims, (m, k), want, strict=True)]  # fmt: skip
        assert found == ({(9, "stride")} if any(far) else set()) | (set() if whole else {(2, "shape")}), (dims, shape, by)
    assert said == {(2, "dims"), (2, "shape"), (9, "stride")}
