"""Routes between memories and the move instructions that can carry a tile along them (SCH-4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import combinations, permutations

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access
from isam.ir.span import Span
from isam.once import once
from isam.schedule.fills import reach
from isam.schedule.tree import Issue, Operand, Place, Tile
from isam.scheduler.state import Form
from isam.system.graph import COUNTED, Move, System


@dataclass(frozen=True)
class Carrier:
    """A move edge with its instruction taken apart: per instruction axis how much of it a call takes and the dimensions
    of source and destination operand it indexes."""

    move: Move
    instruction: Instruction
    source: str
    target: str
    axes: tuple[str, ...]
    spans: tuple[Span, ...]
    source_axes: tuple[int, ...]  # for each source operand dimension, the axis that indexes it
    target_axes: tuple[int, ...]


def carriers(system: System, source: str, target: str) -> tuple[Carrier, ...]:
    """What can move data over one edge, in description order."""
    out = []
    for m in system.moves_by_edge.get((source, target), ()):
        ins = system.instructions[m.by]
        st = ins.copied
        assert st is not None
        axes = st.domain.names
        src = st.sources[0]
        assert isinstance(src, Access)
        at = {a: i for i, a in enumerate(axes)}
        out.append(
            Carrier(
                m,
                ins,
                src.buffer,
                st.dest.buffer,
                axes,
                tuple(map(ins.span, axes)),
                tuple(at[r.names[0]] for r in src.index),
                tuple(at[r.names[0]] for r in st.dest.index),
            )
        )
    return tuple(out)


@dataclass(frozen=True)
class Path:
    """An option at ``route``: memories from a source to a target, both included."""

    memories: tuple[str, ...]

    def label(self) -> str:
        return " -> ".join(self.memories)


LONGER = 2  # edges that a way may have more than the shortest
WAYS = 8  # between two memories, the shortest first


def moves_of(system: System, source: str, target: str, dtype: str) -> list[Move]:
    """The moves along an edge that elements of a type can take, in description order."""
    return [m for m in system.moves_by_edge.get((source, target), ()) if _takes(system.instructions[m.by], dtype)]


@once
def _known_ways(system: System) -> dict[tuple[str, str, str], tuple[Path, ...]]:
    """Filled in as they are asked for."""
    return {}


def paths(system: System, source: str, target: str, dtype: str) -> tuple[Path, ...]:
    """Ways from source to target that moves of this type lead along, the shortest first: registers that a compiler
    allocates and home lie on the shortest only. At least one edge each."""
    known, key = _known_ways(system), (source, target, dtype)
    if key not in known:
        known[key] = _ways(system, source, target, dtype)
    return known[key]


def _ways(system: System, source: str, target: str, dtype: str) -> tuple[Path, ...]:
    edges: dict[str, list[str]] = {}
    for a, b in system.moves_by_edge:
        if moves_of(system, a, b, dtype):
            edges.setdefault(a, []).append(b)
    shortest = _shortest(edges, source, target)
    if shortest is None:
        return ()
    found, todo = [Path(shortest)], deque[tuple[str, ...]]([(source,)])
    while todo and len(found) < WAYS:
        here = todo.popleft()
        for b in edges.get(here[-1], ()):
            path = (*here, b)
            if b == target and path != shortest:
                found.append(Path(path))
            elif b != target and b not in here and len(path) < len(shortest) + LONGER and system.memories[b].local:
                todo.append(path)
    return tuple(found[:WAYS])


def _takes(instruction: Instruction, dtype: str) -> bool:
    return dtype == ANY or all(b.dtype in (ANY, dtype) for b in instruction.body.arguments)


def _shortest(edges: dict[str, list[str]], source: str, target: str) -> tuple[str, ...] | None:
    came: dict[str, str] = {}
    todo = deque([source])
    while todo:
        here = todo.popleft()
        for b in edges.get(here, ()):
            if b not in came:
                came[b] = here
                if b == target:
                    path = [b]
                    while len(path) == 1 or path[-1] != source:
                        path.append(came[path[-1]])
                    return tuple(reversed(path))
                todo.append(b)
    return None


def assignments(c: Carrier, tile: Tile, form: Form, registers: bool) -> list[tuple[int | None, ...]]:
    """Ways to let the instruction's axes run over the tile's dimensions: per axis a buffer dimension or None (unit)."""
    if registers and form is not None:
        return [tuple(form)] if len(form) == len(c.axes) else []
    long = [d for d, n in enumerate(tile.shape) if n > 1]
    if len(long) > len(c.axes):
        return []
    spare: list[int | None] = [None] * (len(c.axes) - len(long))
    if c.instruction.fill is None:
        return list(dict.fromkeys(permutations((*spare, *long))))
    unit = [d for d, n in enumerate(tile.shape) if n <= 1]  # along which what is filled goes on
    some = combinations(unit, min(len(spare), len(unit)))
    return list(dict.fromkeys(p for u in some for p in permutations((*spare[len(u) :], *u, *long))))


def chunk(c: Carrier, dims: tuple[int | None, ...], tile: Tile) -> tuple[int, ...] | None:
    """The largest part of the tile that calls of one size, and one of what is left, carry under this assignment, per
    buffer dimension; None where no calls do."""
    shape = [1] * len(tile.shape)
    for d, span in zip(dims, c.spans, strict=True):
        n = 1 if d is None else tile.shape[d]
        part = span.cut(n)
        if part is None or (d is None and part != 1):
            return None
        if d is not None:
            shape[d] = part
    return tuple(shape)


@dataclass(frozen=True)
class FilledBox:
    """What a move that fills writes with a tile, as its operand lies: the tile begins ``ahead`` bytes from its begin,
    its elements lie so many bytes apart (``strides``, per dimension of the buffer), ``bytes`` are all of it."""

    ahead: int
    strides: tuple[int, ...]
    bytes: int


def lies_in_order(c: Carrier, dims: tuple[int | None, ...], order: Sequence[int]) -> bool:
    """Whether the dimensions of what a move leaves are the last of a tile's, from the outermost to the innermost."""
    own = [d for a in c.target_axes if (d := dims[a]) is not None]
    return own == list(order[len(order) - len(own) :])


def filled_box(c: Carrier, dims: tuple[int | None, ...], tile: Tile, size: int) -> FilledBox | None:
    """The box that a tile takes where one call brings it; None: it cannot."""
    fill, contract = c.instruction.fill, c.instruction.contract(c.target).strides
    if fill is None or chunk(c, dims, tile) != tile.shape:
        return None
    sizes, strides, ahead, end, row = move_sizes(c, dims, tile), [0] * len(tile.shape), 0, size, size
    for n, at, need, a in reversed(list(zip(fill.box, fill.at, contract, c.target_axes, strict=True))):
        step, d, count = row if need is None else need * size, dims[a], n.evaluate(sizes)
        if step < 0 or (d is None and need is None and count > 1):
            return None
        if d is not None:
            strides[d] = step
        ahead, end, row = ahead + at * step, end + (count - 1) * step, max(row, count * step)
    return FilledBox(ahead, tuple(s or row for s in strides), end)


def takes(c: Carrier) -> str:
    """How much one call carries, in words."""
    spans = ", ".join(f"{s} along {a}" for a, s in zip(c.axes, c.spans, strict=True))
    return f"{c.instruction.name} takes {spans or 'a number'}"


def contract_met(c: Carrier, dims: tuple[int | None, ...], tile: Tile, source: Place, target: Place, size: int) -> bool:
    """Whether both ends lie as the instruction's contract demands (a stride of a unit dimension does not matter)."""
    for name, operand_axes, place in ((c.source, c.source_axes, source), (c.target, c.target_axes, target)):
        if place.memory and place.cell is not None and not place.strides:
            continue
        for axis, need in zip(operand_axes, c.instruction.contract(name).strides, strict=True):
            d = dims[axis]
            if need is None or d is None or tile.shape[d] <= 1:
                continue
            if place.strides[d] * tile.steps[d] != need * size:
                return False
    return True


def admits(c: Carrier, dtype: str) -> bool:
    return all(c.instruction.operand(n).dtype in (ANY, dtype) for n in (c.source, c.target))


def move_sizes(c: Carrier, dims: tuple[int | None, ...], tile: Tile) -> dict[str, int]:
    """The sizes with which a call carries a tile."""
    taken = [1 if d is None else tile.shape[d] for d in dims]
    return {s.sym: s.size(n) for s, n in zip(c.spans, taken, strict=True) if s.sym is not None}


def fits_beside(c: Carrier, dims: tuple[int | None, ...], tile: Tile, target: Place, size: int,
                free: tuple[int, int] | None) -> bool:  # fmt: skip
    """Whether all that a move fills beside a tile is free: ``free`` are the bytes that there are for it, from its first
    element."""
    fill = c.instruction.fill
    if fill is None:
        return True
    sizes = move_sizes(c, dims, tile)
    found = reach(c.instruction, Operand(c.target, tile, target, tuple(dims[a] for a in c.target_axes)), sizes, size)
    whole = [n.evaluate(sizes) for n in fill.box] == [n.evaluate(sizes) for n in fill.part]
    return found is not None and (whole or (free is not None and free[0] <= found[0] and found[1] <= free[1]))


def make_issue(c: Carrier, dims: tuple[int | None, ...], tile: Tile, source: Place, target: Place) -> Issue:
    """The call that moves the tile."""
    sizes = tuple(move_sizes(c, dims, tile).items())
    ops = {
        c.source: Operand(c.source, tile, source, tuple(dims[a] for a in c.source_axes)),
        c.target: Operand(c.target, tile, target, tuple(dims[a] for a in c.target_axes)),
    }
    order = [b.name for b in c.instruction.body.arguments]
    return Issue(c.move.issuer, c.instruction.name, sizes, tuple(ops[n] for n in order))


def form_of(system: System, memory: str, tile: Tile, dims: tuple[int | None, ...],
            strides: tuple[int | None, ...] = ()) -> Form:  # fmt: skip
    """How an operand lies in a memory: registers remember along which dimension, rows which dimension
    lies within them; elsewhere only an order of dimensions that differs from the buffer's own matters: the operand's,
    or where its contract fixes ``strides`` the one in which these fall."""
    m = system.memories[memory]
    if m.kind == COUNTED:
        return dims
    if m.row:  # which one lies within the rows
        inner = dims[-1] if dims else None
        return None if inner in (None, len(tile.shape) - 1) else (inner,)
    if memory in system.filled and None not in dims:
        return dims  # in a box it matters which dimension is which, also of one element
    if len(strides) == len(dims):  # free ones outermost
        fall = sorted(zip(strides, dims, strict=True), key=lambda s: (s[0] is not None, -(s[0] or 0)))
        dims = tuple(d for _, d in fall)
    long = [d for d in dims if d is not None and tile.shape[d] > 1]
    return tuple(long) if long != sorted(long) else None


def sub_place(place: Place, tile: Tile, part: Tile) -> Place:
    """The place of a part of a tile that lies with plain strides."""
    if part.start == tile.start:
        return place
    offset = place.offset
    for s, t, k in zip(tile.start, part.start, place.strides, strict=True):
        offset = offset + (t - s) * k
    return Place(place.memory, place.base, offset, place.strides, place.cell)


def home_place(base: str, memory: str, shape: tuple[int, ...], dtype: str,
               apart: Callable[[int, int], int] | None = None) -> Place:  # fmt: skip
    """A whole C-contiguous buffer in home memory; ``apart``: how many bytes lie between the begins of so many parts of
    so many bytes each, where that is more than these."""
    strides, n = [], size_of(dtype)
    for s in reversed(shape):
        n = apart(s, n) if apart else n
        strides.append(n)
        n *= max(1, s)
    return Place(memory, base, Affine(), tuple(reversed(strides)))
