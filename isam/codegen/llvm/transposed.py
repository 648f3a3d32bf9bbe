"""Rows to columns, a square of words at a time.

Vectors that go across rows, a word of each row in a lane, are gathered and scattered word by word. Where a sequence of
calls has several that go across the same rows at neighbouring places, these are read or written together: whole rows in
memory, turned by shuffles between registers. What is read is read with the first of the calls, what is written with the
last: nothing in between may touch it.

A loop that only copies rows to columns has such a call, or a few, in every iteration: as many iterations as take all
neighbours that a register has lanes for are carried out as one, inside of the loops in its body. Their order does not
show: all are of one buffer and go from one place to another, where each element has its own spot. A loop whose
iterations are calls in a row (steps along rows) has as many of them one after the other.

Words have 32 or 64 bits. Narrower ones would be turned as well, but shuffles of them take LLVM longer than they save.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from isam.classes import dataclass
from isam.codegen.llvm import vectors
from isam.codegen.llvm.irtext import Function
from isam.codegen.llvm.template import move
from isam.codegen.llvm.verbs import Verb
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.liveness import Cell
from isam.schedule.tree import Issue, Loop, Node, Operand, Seq, distinct, leaves

if TYPE_CHECKING:
    from isam.codegen.llvm.lower import Lowering

WORDS = (4, 8)  # bytes
QUAD = 4  # words: what the first shuffles stay within
FEW = 2  # so many words apart are no more work one by one
LONG = 512  # calls: no more are carried out as one iteration
ZERO = "zeroinitializer"


class Side(NamedTuple):
    """Words of so many bytes in memory, each in one of ``rows`` rows, ``apart`` bytes from one to the next."""

    operand: Operand
    word: int
    rows: int
    apart: int

    @property
    def element(self) -> str:
        return f"i{8 * self.word}"


class Across(NamedTuple):
    """A call that moves words which lie apart in memory, and the register cell that has them side by side."""

    side: Side
    register: Operand
    cell: Cell
    reads: bool
    dtype: str


@dataclass
class Square:
    """Calls across the same rows, by their place in a sequence, neighbour by neighbour. ``values``: of those that have
    been carried out."""

    calls: dict[int, Across]
    values: dict[int, str] = field(default_factory=dict)

    @property
    def first(self) -> Across:
        return next(iter(self.calls.values()))

    def read(self, fn: Function, pointer: str, lanes: vectors.Lanes) -> None:
        """``pointer``: to the word in the first row that the first neighbour takes."""
        side, count = self.first.side, len(self.calls)
        rows = [vectors.row(fn, fn.gep(pointer, r * side.apart), side.element, count, lanes, size_of(self.first.dtype))
                for r in range(side.rows)]  # fmt: skip
        columns = _square(fn, rows + [ZERO] * (lanes.count - side.rows), side.element, lanes.count)
        self.values = dict(zip(self.calls, columns, strict=False))

    def write(self, fn: Function, pointer: str, lanes: vectors.Lanes) -> None:
        side, count = self.first.side, len(self.calls)
        columns = [self.values[i] for i in self.calls]
        rows = _square(fn, columns + [ZERO] * (lanes.count - count), side.element, lanes.count)
        for r in range(side.rows):
            at = fn.gep(pointer, r * side.apart)
            vectors.put_row(fn, rows[r], at, side.element, count, lanes, size_of(self.first.dtype))


def squares(low: Lowering, calls: Sequence[Node]) -> dict[int, Square]:
    """Which of the calls of a sequence are carried out together, by their place in it."""
    if low.lanes < QUAD or low.lanes & (low.lanes - 1) or len(calls) < QUAD:
        return {}
    alike: dict[tuple[object, ...], dict[int, int]] = {}  # where in the rows: which call
    found: dict[int, Across] = {}
    for i, c in enumerate(calls):
        a = across(low, c) if isinstance(c, Issue) else None
        if a is not None:
            found[i] = a
            o = a.side.operand
            rows = (a.reads, o.place.base, o.place.offset.terms, *a.side[1:], a.cell[0], a.dtype)
            alike.setdefault(rows, {}).setdefault(o.place.offset.const, i)
    out: dict[int, Square] = {}
    for places in alike.values():
        word = found[next(iter(places.values()))].side.word
        for run in _runs(places, word, low.lanes):
            a = found[run[0]]
            distinct_words = a.reads or abs(a.side.apart) >= len(run) * word
            if distinct_words and not touched(low, calls, run, found):
                out |= dict.fromkeys(run, Square({i: found[i] for i in run}))
    return out


def _runs(places: dict[int, int], word: int, lanes: int) -> Iterator[list[int]]:
    """Calls at neighbouring places, no more at a time than there are lanes."""
    run: list[int] = []
    for at in sorted(places):
        if at - word not in places or len(run) == lanes:
            if len(run) >= QUAD:
                yield run
            run = []
        run.append(places[at])
    if len(run) >= QUAD:
        yield run


def touched(low: Lowering, calls: Sequence[Node], run: list[int], found: dict[int, Across]) -> bool:
    """Whether anything between the first and the last of some calls touches what they do, where that is in vain then:
    writes what a later one of them reads, which comes first; reads what an earlier one of them writes, which goes last;
    writes what any of them does. (Of two squares that write, the one that ends later is written later, and what of it
    stands after all of the other comes after that.)"""
    a, known = found[run[0]], {n: frozenset(_bytes(found[n])) for n in run}
    for i in set(range(min(run), max(run))).difference(run):
        c = calls[i]
        if not isinstance(c, Issue):
            return True
        theirs = [o for o in c.operands if o.place.base == a.side.operand.place.base and low.flow.cell(o) is None]
        if not theirs or (a.reads and all(low.flow.formal(c, o).role == "in" for o in theirs)):
            continue
        other = found.get(i)
        if other is None or other.side.operand.place.offset.terms != a.side.operand.place.offset.terms:
            return True
        both = frozenset(_bytes(other))
        if any(not known[n].isdisjoint(both) for n in run if (n > i if a.reads else n < i or not other.reads)):
            return True
    return False


def _bytes(a: Across) -> Iterator[int]:
    """Those that a call touches, from where the variables of its address are 0."""
    for r in range(a.side.rows):
        begin = a.side.operand.place.offset.const + r * a.side.apart
        yield from range(begin, begin + a.side.word)


def across(low: Lowering, issue: Issue) -> Across | None:
    """What a call moves across rows, if that is all it does."""
    verb = carried(low, issue)
    if verb is None or issue.prefetch is not None:
        return None
    memory, register = issue.operands[::-1] if verb.stores else issue.operands
    cell, side = low.flow.cell(register), _side(low, issue, memory)
    if cell is None or side is None or low.flow.cell(memory) is not None:
        return None
    dtype = low.dtype(issue, memory)
    whole = low.schedule.system.memories[cell[0]].elements(dtype) * size_of(dtype) == low.lanes * side.word
    if not verb.stores and len(memory.dims) == 1 and 0 < side.apart <= QUAD * side.word:  # as vectors: fewer shuffles
        return None
    if side.apart == side.word or not FEW < side.rows <= low.lanes or not whole:
        return None
    return Across(side, register, cell, not verb.stores, dtype)


def carried(low: Lowering, issue: Issue) -> Verb | None:
    """The verb by which a call moves a whole vector, if that is all it does."""
    instruction = low.schedule.system.instructions[issue.instruction]
    template = instruction.emission.get("llvm")
    return move(template) if issue.is_move and instruction.fill is None and isinstance(template, str) else None


def _side(low: Lowering, issue: Issue, o: Operand) -> Side | None:
    """None where an operand is no row of words."""
    shape, element = [1 if d is None else o.tile.shape[d] for d in o.dims], size_of(low.dtype(issue, o))
    steps = [0 if d is None else o.place.strides[d] * o.tile.steps[d] for d in o.dims]
    word = element * shape[1] if len(shape) == 2 and steps[1] == element else element if len(shape) == 1 else 0
    return Side(o, word, shape[0], steps[0]) if word in WORDS else None


def together(low: Lowering, loop: Loop, handing_on: bool = False) -> tuple[Node, int] | None:
    """Several iterations of a loop as one, and how many, where it copies rows to columns or has calls in a row, some of
    them across rows: those that take all neighbours that a square has. ``handing_on``: registers that an iteration sets
    are read after it."""
    copies = _copies(low, loop) if _plain(loop) and not handing_on else None
    return copies or (_steps(low, loop) if _alike(loop) else None)


def _steps(low: Lowering, loop: Loop) -> tuple[Node, int] | None:
    """The same of a loop whose iterations are calls in a row: their order stays, and so does what each leaves to the
    next one and to what comes after the loop."""
    body = list(leaves(loop.body))
    calls = [c for c in body if isinstance(c, Issue) and c.prefetch is None]
    if len(calls) < len(body):
        return None
    found = (across(low, c) for c in calls)
    words = min((n for a in found if a is not None for n in _words(low, loop, a)), default=low.lanes)
    times = low.lanes // words
    if times == 1 or times * len(calls) > LONG:
        return None
    steps = Seq(tuple(_later(c, loop, n) for n in range(times) for c in calls))
    return (steps, times) if squares(low, steps.children) else None


def _copies(low: Lowering, loop: Loop) -> tuple[Node, int] | None:
    """The same of a loop that only copies, whatever loops are inside."""
    moved = set(_moved(low, loop, loop.body))
    times = low.lanes // moved.pop() if len(moved) == 1 else 1
    if times == 1:
        return None
    copies = _several(loop, loop.body, times)
    inside = list(distinct(copies))
    ends = {(low.flow.formal(n, o).role == "in", o.tile.buffer, o.place.base) for n in inside if isinstance(n, Issue)
            for o in n.operands if low.flow.cell(o) is None}  # fmt: skip
    if len(ends) != 2 or not any(squares(low, n.children) for n in inside if isinstance(n, Seq)):
        return None
    return copies, times  # from one place, to one


def _moved(low: Lowering, loop: Loop, body: Node) -> list[int]:
    """How many words an iteration moves each copy on by; none where something else is done."""
    out: list[int] = []
    rest = list(leaves(body))
    while rest:
        part, words = rest.pop(0), []
        if isinstance(part, Loop) and _plain(part) and not any(loop.var in b.expr.names for b in part.lo + part.hi):
            words = _moved(low, loop, part.body)
        elif isinstance(part, Issue) and rest and isinstance(store := rest.pop(0), Issue):
            words = _on(low, loop, part, store)
        if not words:
            return []
        out += words
    return out


def _several(loop: Loop, body: Node, times: int) -> Node:
    """So many iterations of a loop, inside of the loops in its body."""
    out: list[Node] = []
    for inner, part in groupby(leaves(body), lambda n: isinstance(n, Loop)):
        if inner:
            out += (replace(n, body=_several(loop, n.body, times)) for n in part if isinstance(n, Loop))
        else:
            calls = [n for n in part if isinstance(n, Issue)]
            out += (_later(c, loop, n) for n in range(times) for c in calls)
    return Seq(tuple(out))


def _on(low: Lowering, loop: Loop, load: Issue, store: Issue) -> list[int]:
    """How many words the next iteration is further on, where a load and a store copy words that are apart on one side;
    else nothing."""
    verb, other = carried(low, load), carried(low, store)
    if verb is None or other is None or verb.holds != other.holds or verb.stores or not other.stores:
        return []
    (source, loaded), (stored, target) = load.operands, store.operands
    found = across(low, load) or across(low, store)
    if found is None or low.flow.cell(loaded) != low.flow.cell(stored) or source.place.base == target.place.base:
        return []
    if not source.tile == loaded.tile == stored.tile == target.tile or source.dims != target.dims:
        return []
    return _words(low, loop, found)


def _words(low: Lowering, loop: Loop, a: Across) -> list[int]:
    """How many words the next iteration is further on, or back, if that is within a square."""
    on = abs(dict(a.side.operand.place.offset.terms).get(loop.var, 0) * loop.step)
    return [on // a.side.word] if a.side.word <= on <= low.lanes * a.side.word else []


def _later(issue: Issue, loop: Loop, iterations: int) -> Issue:
    """A call as it is so many iterations later."""
    then = {loop.var: Affine.of(loop.var) + iterations * loop.step}
    return replace(issue, operands=tuple(replace(
        o, tile=o.tile._replace(start=tuple(s.substitute(then) for s in o.tile.start)),
        place=replace(o.place, offset=o.place.offset.substitute(then))) for o in issue.operands))  # fmt: skip


def _plain(loop: Loop) -> bool:
    """It is nothing but iterations that all do the same."""
    return _alike(loop) and not (*leaves(loop.enter), *leaves(loop.exit))


def _alike(loop: Loop) -> bool:
    """It begins and ends where it is known to, and does in every iteration the same."""
    alike = loop.first is loop.last is loop.serpentine is loop.deal is None
    return alike and bool(loop.trip) and len(loop.lo) == 1 and loop.lo[0].div == 1


def _square(fn: Function, rows: list[str], element: str, lanes: int) -> list[str]:
    """Columns of a square of rows: first within quads, of one row with the next, of two with the next two; then quads,
    every other one of one half with every other one of the other half, until all have come together."""

    def shuffle(a: str, b: str, order: list[int]) -> str:
        if a == b == ZERO:
            return a
        text = ", ".join(f"i32 {i}" for i in order)
        return fn.op(f"shufflevector <{lanes} x {element}> {a}, <{lanes} x {element}> {b}, <{lanes} x i32> <{text}>")

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
