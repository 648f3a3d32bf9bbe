"""Where tiles lie within what they take of a memory: how much that is, strides, and places within a staged box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import FAR
from isam.schedule.tree import Place, Tile
from isam.scheduler.state import Copy, Form
from isam.system.graph import COUNTED, Memory


def bytes_of(tile: Tile, dtype: str) -> int:
    n = size_of(dtype)
    for s in tile.shape:
        n *= s
    return n


def units_needed(memory: Memory, tile: Tile, dtype: str, form: Form = None) -> int:
    """Cells (whole) or bytes that the tile takes. A register takes its lanes whatever the tile's size."""
    n = bytes_of(tile, dtype) if memory.kind == COUNTED else lying(memory, tile, dtype, form)[1]
    if memory.row:
        return -(-n // memory.row) * memory.row
    if memory.cells is None:
        return max(1, n)
    if memory.lanes:
        n = max(n, memory.elements(dtype) * size_of(dtype))
    return max(1, -(-n // (memory.cell or 1)))


def order_of(tile: Tile, form: Form) -> list[int]:
    """The dimensions from the outermost to the innermost: those in ``form`` last and in its order."""
    return [d for d in range(len(tile.shape)) if d not in (form or ())] + [d for d in form or () if d is not None]


def suits_rows(row: int, dims: Sequence[int | None], tile: Tile, strides: Sequence[int], size: int) -> bool:
    """Whether an operand that begins with a row of so many bytes lies as rows demand: along its last dimension within
    one, along the others in whole rows."""
    for i, d in enumerate(dims):
        if d is None or tile.shape[d] <= 1:
            continue
        step = strides[d] * tile.steps[d]
        if i < len(dims) - 1 and step % row:
            return False
        if i == len(dims) - 1 and not 0 < step <= (row - size) // (tile.shape[d] - 1):
            return False
    return True


def packed(memory: Memory, tile: Tile, dtype: str, at: int, form: Form = None) -> Place:
    """The place of a tile alone, as it is :func:`lying` there."""
    strides, _ = lying(memory, tile, dtype, form)
    if memory.cells is not None:
        return Place(memory.name, "", Affine(), strides, cell=at)
    return Place(memory.name, "", Affine((), at), strides)


def lying(memory: Memory, tile: Tile, dtype: str, form: Form = None) -> tuple[tuple[int, ...], int]:
    """The strides of a tile alone, and the bytes that it takes: row-major, the dimensions in ``form`` last and in its
    order, without gaps but to the end of a row, where the memory has rows. Strides count elements of the buffer, of
    which the tile's own lie some apart: where its bytes cannot be dealt out to these, there are gaps, too."""
    order = order_of(tile, form)
    strides, n = [0] * len(tile.shape), size_of(dtype)
    for d in reversed(order):
        step = tile.steps[d]
        if tile.shape[d] > 1:
            grain = step if memory.row is None or d == order[-1] else lcm(step, memory.row)
            n = -(-n // grain) * grain
        strides[d] = n // step if n % step == 0 else n
        n *= max(1, tile.shape[d])
        if memory.row and d == order[-1]:
            n = -(-n // memory.row) * memory.row
    return tuple(strides), n


@dataclass(frozen=True, slots=True)
class Var:
    """A loop variable in scope: its values are ``lo + step * t``, at most ``lo + width``."""

    lo: Affine
    step: int
    width: int = FAR


def remainder(e: Affine, block: int, variables: Mapping[str, Var]) -> int | None:
    """``c`` such that ``e - c`` is a multiple of ``block`` for all values of the loop variables, or None. ``variables``
    has those inside after those around them, at which they may begin."""
    for name in reversed([*variables]):
        if (c := e.coefficient(name)) % block:
            var = variables[name]
            if var.width and (c * var.step) % block:
                return None
            e = e + (var.lo - name) * c
    return None if any(c % block for _, c in e.terms) else e.const


def _inside(diff: Affine, n: int, block: int, variables: Mapping[str, Var]) -> Affine | None:
    """How far ``diff`` lies inside its block of a cut dimension, where that is a number or a loop variable that runs
    inside one block; None when ``n`` elements from there may straddle two blocks."""
    rest = remainder(diff, block, variables)
    if rest is not None:
        return Affine((), rest % block) if rest % block + n <= block else None
    for name, c in diff.terms:
        var = variables.get(name)
        if c == 1 and var is not None and var.width < block:
            rest = remainder(diff.substitute({name: var.lo}), block, variables)
            if rest is not None and rest % block + var.width + n <= block:
                return Affine.of(name) - var.lo + rest % block
    return None


def offsets(stage: Tile, copy: Copy, tile: Tile, variables: Mapping[str, Var]) -> list[int | None]:
    """How far into a block of each dimension that is cut a tile in a staged box begins; None where that differs."""
    assert copy.stage is not None
    return [remainder(t - s, block, variables)
            for s, t, block in zip(stage.start, tile.start, copy.stage.blocks, strict=True) if block > 1]  # fmt: skip


def within(stage: Tile, copy: Copy, tile: Tile, variables: Mapping[str, Var]) -> Place | None:
    """The place of ``tile`` inside a staged box, or None when it straddles two blocks of a cut dimension."""
    layout = copy.stage
    assert layout is not None
    offset = copy.place.offset
    for s, t, count, step, c, block, inner in zip(
        stage.start, tile.start, tile.shape, tile.steps, layout.coefficients, layout.blocks, layout.inner, strict=True
    ):
        diff, n = t - s, (count - 1) * step + 1
        if block <= 1:
            offset = offset + diff * c
            continue
        rest = _inside(diff, n, block, variables)
        if rest is None:
            return None
        offset = offset + (diff - rest) * c + rest * inner
    strides = tuple(i if b > 1 else c for c, b, i in zip(layout.coefficients, layout.blocks, layout.inner, strict=True))
    place = copy.place
    return Place(place.memory, place.base, offset, strides, place.cell)
