"""Copies that turn rows into columns, a square of words at a time.

Every iteration of such a loop moves words of 32 bits that lie apart from each other on one side and together on the
other, and on the first side the next iteration moves their neighbours. As many iterations as a register has lanes are
carried out at once: rows are loaded, turned by shuffles between registers, and stored. The same words are read and
written. Their order does not show: all are of one buffer and go from one place to another, where each has its own spot.
Narrower words would be turned as well, but shuffles of them take LLVM longer than they save.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isam.codegen.llvm import tiles
from isam.codegen.llvm.irtext import Function
from isam.codegen.llvm.template import move
from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Loop, Node, Operand, leaves

if TYPE_CHECKING:
    from isam.codegen.llvm.lower import Lowering

WORD = 4  # bytes
QUAD = 4  # words: what the first shuffles stay within
FEW = 2  # so many words apart are no more work one by one
MOVES = (("load", "store"), ("groups", "store_groups"))


class Side(NamedTuple):
    """Where words lie on one side: ``lane`` bytes from one of an iteration to the next, ``iteration`` bytes from those
    of one iteration to those of the next."""

    operand: Operand
    lane: int
    iteration: int


class Turn(NamedTuple):
    """What every iteration copies: so many words, whose addresses are multiples of ``align`` bytes."""

    source: Side
    target: Side
    words: int
    align: int

    @property
    def gathers(self) -> bool:
        """Words lie apart where they come from, else where they go."""
        return self.source.lane != WORD


class Inner(NamedTuple):
    """A loop inside, and what each of its iterations copies."""

    loop: Loop
    parts: Parts


Parts = tuple["Turn | Inner", ...]


def turns(low: Lowering, loop: Loop) -> Parts:
    """What each iteration copies from rows to columns, where the loop does nothing else, all of one buffer and from one
    place to another; else nothing."""
    if low.lanes < QUAD or low.lanes & (low.lanes - 1) or not _plain(loop):
        return ()
    parts = _parts(low, loop, loop.body)
    return parts if len(_ways(parts)) == 1 else ()


def _parts(low: Lowering, loop: Loop, body: Node) -> Parts:
    """Nothing where something else is done."""
    out: list[Turn | Inner] = []
    rest = list(leaves(body))
    while rest:
        part = rest.pop(0)
        found: Turn | Inner | None = None
        if isinstance(part, Loop) and _plain(part) and not any(loop.var in b.expr.names for b in part.lo + part.hi):
            inner = _parts(low, loop, part.body)
            found = Inner(part, inner) if inner else None
        elif isinstance(part, Issue) and rest and isinstance(store := rest.pop(0), Issue):
            found = _turn(low, loop, part, store)
        if found is None:
            return ()
        out.append(found)
    return tuple(out)


def _plain(loop: Loop) -> bool:
    """It begins and ends where it is known to, and does in every iteration the same."""
    alike = loop.first is loop.last is loop.serpentine is loop.deal is None and not (
        *leaves(loop.enter), *leaves(loop.exit))  # fmt: skip
    return alike and bool(loop.trip) and len(loop.lo) == 1 and loop.lo[0].div == 1


def _ways(parts: Parts) -> set[tuple[str, str, str]]:
    """Of which buffers, from where, to where."""
    out: set[tuple[str, str, str]] = set()
    for p in parts:
        if isinstance(p, Inner):
            out |= _ways(p.parts)
        else:
            source, target = p.source.operand, p.target.operand
            out.add((source.tile.buffer, source.place.base, target.place.base))
    return out


def _turn(low: Lowering, loop: Loop, load: Issue, store: Issue) -> Turn | None:
    """What a load and a store copy, if that is words apart whose neighbours the next iteration copies."""
    if (_how(low, load), _how(low, store)) not in MOVES or load.prefetch is not None or store.prefetch is not None:
        return None
    (source, loaded), (stored, target) = load.operands, store.operands
    cell = low.flow.cell(loaded)
    if cell is None or cell != low.flow.cell(stored) or not source.tile == loaded.tile == stored.tile == target.tile:
        return None
    if source.place.base == target.place.base or source.dims != target.dims:
        return None
    registers, element = low.schedule.system.memories[cell[0]], size_of(low.dtype(load, source))
    shape = [1 if d is None else source.tile.shape[d] for d in source.dims]
    begin, end = _side(loop, source, shape, element), _side(loop, target, shape, element)
    if begin is None or end is None or not FEW < shape[0] <= low.lanes or low.lanes * WORD > (registers.cell or 0):
        return None
    turn = Turn(begin, end, shape[0], element)
    apart, together = (turn.source, turn.target) if turn.gathers else (turn.target, turn.source)
    return turn if together.lane == WORD == apart.iteration != apart.lane else None


def _how(low: Lowering, issue: Issue) -> str:
    instruction = low.schedule.system.instructions[issue.instruction]
    template = instruction.emission.get("llvm")
    return move(template) if issue.is_move and instruction.fill is None and isinstance(template, str) else ""


def _side(loop: Loop, o: Operand, shape: list[int], element: int) -> Side | None:
    """None where an operand is no row of words."""
    steps = [0 if d is None else o.place.strides[d] * o.tile.steps[d] for d in o.dims]
    grouped = len(shape) == 2 and shape[1] * element == WORD and steps[1] == element
    if not grouped and (len(shape) != 1 or element != WORD):
        return None
    return Side(o, steps[0], dict(o.place.offset.terms).get(loop.var, 0) * loop.step)


def emit(fn: Function, turn: Turn, source: str, target: str, lanes: int) -> None:
    """As many iterations as there are lanes, from the one on for which the operands' first words are given."""
    if turn.gathers:
        rows, columns, between_rows, between_columns = turn.words, lanes, turn.source.lane, turn.target.iteration
    else:
        rows, columns, between_rows, between_columns = lanes, turn.words, turn.source.iteration, turn.target.lane
    read = [tiles.row(fn, fn.gep(source, r * between_rows), "i32", columns, lanes, turn.align) for r in range(rows)]
    turned = _square(fn, read + ["poison"] * (lanes - rows), lanes)
    for c in range(columns):
        tiles.put_row(fn, turned[c], fn.gep(target, c * between_columns), "i32", rows, lanes, turn.align)


def _square(fn: Function, rows: list[str], lanes: int) -> list[str]:
    """Columns of a square of rows: first within quads, of one row with the next, of two with the next two; then quads,
    every other one of one half with every other one of the other half, until all have come together."""

    def shuffle(a: str, b: str, order: list[int]) -> str:
        if a == b == "poison":
            return a
        text = ", ".join(f"i32 {i}" for i in order)
        return fn.op(f"shufflevector <{lanes} x i32> {a}, <{lanes} x i32> {b}, <{lanes} x i32> <{text}>")

    def woven(a: str, b: str, grain: int, half: int) -> str:
        """Of every quad, one half of both: so many words of one, so many of the other."""
        order = [q + half * 2 + i for q in range(0, lanes, QUAD) for i in range(2)]
        both = [i + k * lanes + j for i in order[:: grain] for k in range(2) for j in range(grain)]
        return shuffle(a, b, both)

    def parted(a: str, b: str, odd: int) -> str:
        """Every other quad of both."""
        quads = range(odd * QUAD, 2 * lanes, 2 * QUAD)
        return shuffle(a, b, [q + i for q in quads for i in range(QUAD)])

    def gathered(parts: list[str]) -> list[str]:
        if len(parts) == 1:
            return parts
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
        even, odd = (gathered([parted(a, b, k) for a, b in pairs]) for k in range(2))
        return [x for pair in zip(even, odd, strict=True) for x in pair]

    quads: list[list[str]] = []
    for r in range(0, lanes, QUAD):
        a, b, c, d = rows[r : r + QUAD]
        quads.append([])
        for half in range(2):
            first, second = woven(a, b, 1, half), woven(c, d, 1, half)
            quads[-1] += [woven(first, second, 2, 0), woven(first, second, 2, 1)]
    columns = [gathered([q[c] for q in quads]) for c in range(QUAD)]
    return [columns[c % QUAD][c // QUAD] for c in range(lanes)]
