"""Schedules made by hand, that both checkers must accept: the raw material of the planted faults."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import PERMITS_DEFAULT, Access, Axis, Kernel, Literal, Recurrence, Statement, Sym
from isam.ir.mapping import Cover, Mapping, OperandMap
from isam.schedule.tree import Bound, Issue, Loop, Nest, Node, Operand, Place, Schedule, Seq, Slot, Tile
from isam.scheduler.waits import with_waits
from isam.system.graph import System
from tests.unit.proof.handmade_machines import V, acc, buf, dom, kern, lit, matmul, tiny, vec


# places and steps ----------------------------------------------------------------------------------------------------
def natural(shape: tuple[int, ...], size: int = 4) -> tuple[int, ...]:
    out: list[int] = []
    for n in reversed(shape):
        out.append(size)
        size *= n
    return tuple(reversed(out))


def home(kernel: Kernel, memory: str, name: str, base: str = "") -> Place:
    b = kernel.buffer(name)
    rest = tuple(int(d) for d in b.shape[1:])
    return Place(memory, base or name, lit(0), natural((1, *rest)) if b.shape else ())


def tile(buffer: str, start: list, shape: list[int]) -> Tile:
    return Tile(buffer, tuple(lit(s) for s in start), tuple(shape), (1,) * len(shape))


def at_home(place: Place, t: Tile) -> Place:
    off = lit(0)
    for s, k in zip(t.start, place.strides, strict=True):
        off = off + s * k
    return Place(place.memory, place.base, off, place.strides)


def cell(memory: str, number: int, shape: list[int], size: int = 4) -> Place:
    return Place(memory, "", lit(0), natural(tuple(shape), size), number)


def op(name: str, t: Tile, p: Place, dims: tuple[int | None, ...] | None = None) -> Operand:
    return Operand(name, t, p, tuple(range(len(t.shape))) if dims is None else dims)


def move(unit: str, by: str, t: Tile, source: Place, target: Place) -> Issue:
    return Issue(unit, by, (("M", t.shape[0]), ("N", t.shape[1])), (op("S", t, source), op("D", t, target)))


def loop(var: str, lo: int | Affine, hi: int | Affine, step: int, body: Node, **parts: Node) -> Loop:
    return Loop(var, (Bound(lit(lo)),), (Bound(lit(hi)),), step, body, **parts)


def seq(*nodes: Node) -> Seq:
    return Seq(tuple(nodes))


# tiny: C through registers -------------------------------------------------------------------------------------------
def mapping_of(
    system: System,
    name: str,
    statements: tuple[int, ...],
    operands: list[tuple[str, Access]],
    axes: dict[str, str],
    outer: tuple[str, ...],
) -> Mapping:
    oms = tuple(OperandMap(o, a.buffer, a.index, tuple(range(len(a.index))), (1,) * len(a.index)) for o, a in operands)
    return Mapping(system.instructions[name], statements, oms, tuple(axes.items()), outer)


def tiny_matmul(m: int = 8, n: int = 8, k: int = 12, peeled: bool = False) -> Schedule:
    """Loops m, n, k in steps of 4; C stays in ``ra`` over k; A and B come through the scratchpad."""
    s, kernel = tiny(), matmul(m, n, k)
    homes = {b: home(kernel, "dram", b) for b in "ABC"}
    zero = mapping_of(s, "zero4", (0,), [("C", acc("C", "i", "j"))], {"i": "i", "j": "j"}, ())
    mm = mapping_of(
        s,
        "mm4",
        (1, 2),
        [("A", acc("A", "i", "k")), ("B", acc("B", "k", "j")), ("C", acc("C", "i", "j"))],
        {"i": "i", "j": "j", "k": "k"},
        (),
    )
    nests = (Nest(0, (("i", lit(m)), ("j", lit(n)))), Nest(1, (("i", lit(m)), ("j", lit(n)), ("k", lit(k)))))
    ta, tb, tc = tile("A", ["m", "p"], [4, 4]), tile("B", ["p", "n"], [4, 4]), tile("C", ["m", "n"], [4, 4])
    sa, sb, sc = (Place("sp", "", lit(o), (16, 4)) for o in (0, 64, 128))
    ra, rb, rc = cell("ra", 1, [4, 4]), cell("rb", 0, [4, 4]), cell("ra", 0, [4, 4])
    size = (("M", 4), ("N", 4))
    init = Issue("mm", "zero4", size, (op("C", tc, rc),), 0, (("i", V("m")), ("j", V("n"))))
    step = Issue(
        "mm",
        "mm4",
        (*size, ("K", 4)),
        (op("A", ta, ra), op("B", tb, rb), op("C", tc, rc)),
        1,
        (("i", V("m")), ("j", V("n")), ("k", V("p"))),
    )
    body = seq(
        move("dma", "copy", ta, at_home(homes["A"], ta), sa),
        move("dma", "copy", ta, sa, ra),
        move("dma", "copy", tb, at_home(homes["B"], tb), sb),
        move("dma", "copy", tb, sb, rb),
        step,
    )
    out = seq(move("dma", "copy", tc, rc, sc), move("dma", "copy", tc, sc, at_home(homes["C"], tc)))
    inner = (
        loop("p", 0, k, 4, body, first=seq(init, *body.children), exit=out)
        if peeled
        else loop("p", 0, k, 4, body, enter=init, exit=out)
    )
    call = loop("m", 0, m, 4, loop("n", 0, n, 4, inner))
    cover = Cover(kernel, kernel, (zero, mm))
    return with_waits(Schedule(kernel, s, cover, nests, Seq(), call, (), homes))


def ended(peeled: bool) -> Schedule:
    """Like :func:`tiny_matmul`, but C is stored by the last iteration of the loop over K."""
    s = tiny_matmul(8, 4, 12, peeled)
    assert isinstance(s.call, Loop)
    columns = s.call.body
    assert isinstance(columns, Loop)
    inner = columns.body
    assert isinstance(inner, Loop)
    last = replace(inner, exit=Seq(), last=seq(inner.body, inner.exit))
    return with_waits(replace(s, call=replace(s.call, body=replace(columns, body=last))))


# vec: packed, register blocked, ragged -------------------------------------------------------------------------------
def vec_steps(kernel: Kernel, s: System) -> tuple[tuple[Mapping, ...], tuple[Nest, ...]]:
    m, n, k = (int(kernel.buffer("C").shape[0]), int(kernel.buffer("C").shape[1]), int(kernel.buffer("A").shape[1]))
    zero = mapping_of(s, "vzero", (0,), [("C", acc("C", "i", "j"))], {"i": "j"}, ("i",))
    fma = mapping_of(
        s,
        "fma",
        (1, 2),
        [("a", acc("A", "i", "k")), ("B", acc("B", "k", "j")), ("C", acc("C", "i", "j"))],
        {"j": "j"},
        ("i", "k"),
    )
    return (zero, fma), (
        Nest(0, (("i", lit(m)), ("j", lit(n)))),
        Nest(1, (("i", lit(m)), ("j", lit(n)), ("k", lit(k)))),
    )


def vec_block(kernel: Kernel, homes: dict[str, Place], panel: Place, rows: int, init: bool) -> Loop:
    """Registers C[m:+rows, j:+8], two vectors wide; B from the panel at (p, j)."""

    def vector(b: str, i: Affine, j: Affine) -> Tile:
        return tile(b, [i, j], [1, 4])

    def reg(number: int) -> Place:
        return Place("v", "", lit(0), (16, 4), number)

    start, stop, body = [], [], []
    for q in range(2):
        tb = vector("B", V("p"), V("j") + 4 * q)
        body.append(
            move("cpu", "vmove", tb, Place("ram", panel.base, panel.offset + 16 * q, panel.strides), reg(6 + q))
        )
    for r in range(rows):
        for q in range(2):
            tc = vector("C", V("m") + r, V("j") + 4 * q)
            where = at_home(homes["C"], tc)
            c = Operand("C", tc, reg(2 * r + q), (1,))
            point = (("i", V("m") + r), ("j", V("j") + 4 * q))
            start.append(
                Issue("cpu", "vzero", (("N", 4),), (c,), 0, point)
                if init
                else move("cpu", "vmove", tc, where, reg(2 * r + q))
            )
            ta = tile("A", [V("m") + r, "p"], [1, 1])
            tb = vector("B", V("p"), V("j") + 4 * q)
            ops = (Operand("a", ta, at_home(homes["A"], ta), ()), Operand("B", tb, reg(6 + q), (1,)), c)
            body.append(Issue("cpu", "fma", (("N", 4),), ops, 1, (*point, ("k", V("p")))))
            stop.append(move("cpu", "vmove", tc, reg(2 * r + q), where))
    return loop("p", V("kb"), V("kb") + 5, 1, seq(*body), enter=seq(*start), exit=seq(*stop))


def vec_matmul(
    m: int = 7, n: int = 16, k: int = 10, bound: bool = False, permits: frozenset[str] = PERMITS_DEFAULT
) -> Schedule:
    """K in blocks of 5: the first block zeroes C, the second loads it. B is packed in panels of 8 columns, in ``call``
    per block of K, or in ``bind`` as a whole. M in blocks of 3 and a ragged rest."""
    s, kernel = vec(), matmul(m, n, k, bound, permits)
    homes = {b: home(kernel, "ram", b) for b in "ABC"}
    mappings, nests = vec_steps(kernel, s)
    depth = k if bound else 5
    origin = lit(0) if bound else V("kb") * -32
    panel = Place("ram", "P", V("j", 4 * depth) + V("p", 32) + origin, (32, 4))
    tb = tile("B", ["p", "j"], [1, 8])
    pack = move("cpu", "pack", tb, at_home(homes["B"], tb), panel)
    lo, hi = (0, k) if bound else (V("kb"), V("kb") + 5)
    packing = loop("j", 0, n, 8, loop("p", lo, hi, 1, pack))

    def block(init: bool) -> Node:
        full = loop("m", 0, m - m % 3, 3, loop("j", 0, n, 8, vec_block(kernel, homes, panel, 3, init)))
        rest = loop("m", m - m % 3, m, m % 3, loop("j", 0, n, 8, vec_block(kernel, homes, panel, m % 3, init)))
        work = seq(full, rest) if m % 3 else full
        return work if bound else seq(packing, work)

    call = loop("kb", 0, k, 5, block(False), first=block(True))
    slot = Slot("P", "ram", 4 * depth * n, bound=bound)
    bind = packing if bound else Seq()
    return with_waits(Schedule(kernel, s, Cover(kernel, kernel, mappings), nests, bind, call, (slot,), homes))


# a recurrence with run-time trip -------------------------------------------------------------------------------------
def running_sum(n: int = 8) -> Schedule:
    """``h += x[t]; y[t] = max(h, 0)`` over a run-time T; h stays in registers between steps."""
    s = vec()
    sym = Sym("T")
    d = dom(j=n)
    kernel = kern(
        "running",
        [buf("x", "in", "T", n), buf("h", "inout", n), buf("y", "out", "T", n)],
        [
            Recurrence(
                Axis("t", V("T")),
                (
                    Statement(d, acc("h", "j"), "add", (acc("x", "t", "j"),), True),
                    Statement(d, acc("y", "t", "j"), "max", (acc("h", "j"), Literal(0))),
                ),
            )
        ],
        (sym,),
        PERMITS_DEFAULT,
    )
    homes = {b: home(kernel, "ram", b) for b in ("x", "h", "y")}
    add = mapping_of(s, "vadd", (0,), [("X", acc("x", "t", "j")), ("Y", acc("h", "j"))], {"j": "j"}, ("t",))
    top = mapping_of(s, "vmax", (1,), [("X", acc("h", "j")), ("Y", acc("y", "t", "j"))], {"j": "j"}, ("t",))
    axes = (("t", V("T")), ("j", lit(n)))
    enter, body, leave = [], [], []
    for q in range(0, n, 4):
        th, tx, ty = tile("h", [q], [4]), tile("x", ["u", q], [1, 4]), tile("y", ["u", q], [1, 4])
        rh, rx, ry = (
            Place("v", "", lit(0), (4,), q // 4),
            Place("v", "", lit(0), (16, 4), 4),
            Place("v", "", lit(0), (16, 4), 5),
        )
        hh = at_home(homes["h"], th)
        one = (("M", 1), ("N", 4))
        point = (("t", V("u")), ("j", lit(q)))
        enter.append(Issue("cpu", "vmove", one, (op("S", th, hh, (None, 0)), op("D", th, rh, (None, 0)))))
        leave.append(Issue("cpu", "vmove", one, (op("S", th, rh, (None, 0)), op("D", th, hh, (None, 0)))))
        body += [
            move("cpu", "vmove", tx, at_home(homes["x"], tx), rx),
            Issue("cpu", "vadd", (("N", 4),), (op("X", tx, rx, (1,)), op("Y", th, rh)), 0, point),
            Issue("cpu", "vmax", (("N", 4),), (op("X", th, rh), op("Y", ty, ry, (1,))), 1, point),
            move("cpu", "vmove", ty, ry, at_home(homes["y"], ty)),
        ]
    call = loop("u", 0, V("T"), 1, seq(*body), enter=seq(*enter), exit=seq(*leave))
    nests = Nest(0, axes), Nest(1, axes)
    return with_waits(Schedule(kernel, s, Cover(kernel, kernel, (add, top)), nests, Seq(), call, (), homes))
