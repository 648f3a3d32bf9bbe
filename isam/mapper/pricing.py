"""What a mapping costs: the figures that the default rule compares (SEL-2).

Dynamic calls come first, bytes second. Decided here: a call counts one plus the cycles it keeps its unit busy, where
its description states them, so that a slow call does not pass for a fast one. An operand whose stride contract the
kernel's C-contiguous buffers do not meet, or of whose tile no two elements lie side by side, is moved as it lies where
the machine has moves of elements so far apart, each call of which counts its cycles; else it is repacked: that counts
one call per element of each distinct tile, two where several calls take each and all are more than a cache keeps near,
and half a call on top for each tile that is written (the result of a sum once), so that unit-stride mappings win; on
machines with caches that is divided by what a line holds for rows along which the steps of a recurrent loop go;
constants, and what they determine, are made and packed ahead of the call and count bytes only. Bytes include another
line of 64 for each separate run of memory that a tile consists of, two where the next one lies a page away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from isam.caches import LINE, NEAR, PAGE
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dataflow import determined, levels, mask_of, rows_apart
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction, packed
from isam.ir.kernel import OPEN_SIZE, Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.ir.mapping import OperandMap
from isam.ir.spacing import TOGETHER, Spacing
from isam.mapper.dataflow import pattern_of
from isam.mapper.match import normal

SCATTERED = 0.5  # what a call that writes an operand against its stride contract counts on top
GUARD_FACTOR = 1.2  # a condition on a mapped axis cuts blocks into pieces
AHEAD = 1 / 1024  # price of what is done once, when constants are bound


@dataclass(frozen=True, slots=True)
class PricedMapping:
    """A mapping with its place and price. ``mask``: the statements it carries out; ``calls``: dynamic calls
    weighed by their issue cycles, repacking included; ``bytes``: what the calls touch."""

    mapping: Mapped
    mask: int
    calls: float
    bytes: float

    @property
    def price(self) -> tuple[float, float]:
        return self.calls, self.bytes


def number(e: Affine) -> int:
    """An extent as a number: sizes still open count as ``OPEN_SIZE``."""
    return max(0, e.const + sum(c * OPEN_SIZE for _, c in e.terms) if e.terms else e.const)


def _contiguous_strides(shape: Sequence[Affine]) -> list[int]:
    out, run = [0] * len(shape), 1
    for d in range(len(shape) - 1, -1, -1):
        out[d], run = run, run * max(1, number(shape[d]))
    return out


def trips(kernel: Kernel) -> list[int]:
    """Of each statement, how often the recurrent loops around it carry it out; of sizes of run time, as is usual."""
    out = [1] * len(kernel.statements)
    sizes = kernel.usual(OPEN_SIZE) if kernel.follow else {}
    for level in levels(kernel):
        around = math.prod(number(r.axis.extent.substitute(sizes)) for r in level.recurrences)
        for i, _ in enumerate(kernel.statements):
            if level.own >> i & 1:
                out[i] = around
    return out


def _parts(own: str, extent: int, tile: int) -> list[tuple[str, int, float]]:
    """What calls take of an axis: for the instruction's name of it, how much and in which share of them."""
    whole, rest = divmod(extent, max(1, tile))
    count = max(1, whole + bool(rest))
    return [(own, n, k / count) for n, k in ((tile, whole), (rest, 1)) if n and k] or [(own, tile, 1.0)]


class Pricing:
    """Prices mappings of one kernel."""

    def __init__(self, kernel: Kernel, spacing: Spacing = TOGETHER):
        self.kernel, self.spacing = kernel, spacing
        self._strides: dict[str, list[int]] = {}
        self._extents: dict[tuple[int, ...], dict[str, int]] = {}  # by statements
        self._taken: dict[tuple[str, tuple[tuple[str, str], ...], tuple[int, ...]], dict[str, int]] = {}  # see ``tile``
        self.ahead = determined(kernel)
        self.fixed = self.ahead | {b.name for b in kernel.buffers if b.role == "const"}
        self.trips = trips(kernel)
        self.apart = rows_apart(kernel) if spacing.cached else frozenset[str]()

    def extents(self, mapping: Mapped) -> dict[str, int]:
        """Extents of the axes of the mapping's statements."""
        known = self._extents.get(mapping.statements)
        if known is None:
            statements = (self.kernel.statements[i] for i in mapping.statements)
            known = {a.name: number(a.extent) for s in statements for a in s.domain.axes}
            self._extents[mapping.statements] = known
        return known

    def tile(self, mapping: Mapped) -> dict[str, int]:
        """What one full call takes along each mapped kernel axis."""
        key = (mapping.instruction.name, mapping.axes, mapping.statements)
        known = self._taken.get(key)
        if known is None:
            known = self._taken[key] = self._tile(mapping)
        return known

    def _tile(self, mapping: Mapped) -> dict[str, int]:
        extents, pattern = self.extents(mapping), pattern_of(mapping.instruction, normal(mapping.instruction.body))
        spans = dict(zip(pattern.axis_names, pattern.spans, strict=True))
        sizes = ((k, extents.get(k, 1), spans[i]) for i, k in mapping.axes)
        return {k: span.cut(n) or n for k, n, span in sizes}

    def candidate(self, mapping: Mapped) -> PricedMapping:
        """The mapping with its price."""
        statements = [self.kernel.statements[i] for i in mapping.statements]
        extents, tile = self.extents(mapping), self.tile(mapping)
        counts = {k: -(-extents.get(k, 1) // max(1, t)) for k, t in tile.items()}
        counts.update((k, extents.get(k, 1)) for k in mapping.outer if k not in mapping.loops)
        calls = float(math.prod(counts.values())) * GUARD_FACTOR ** min(2, len(mapping.guards))
        touched, packing, scattered = 0.0, 0.0, 0.0
        written = {s.dest.buffer for s in statements}
        for operand in mapping.operands:
            if not operand.buffer:
                continue
            elements, tiles, width = self._tiles(operand, tile, counts)
            run, far = self._run(operand, tile)
            runs = -(-elements // max(1, run)) * (2 if far else 1)
            touched += calls * (elements * width + LINE * runs)
            breach = self.breach(mapping.instruction, operand, tile)
            if run < min(2, elements) or breach is not None:
                touched += elements * tiles * width
                beside = self._beside(mapping, operand, width)
                if operand.buffer not in self.fixed:
                    kept = tiles < calls and elements * tiles * width > NEAR  # laid out ahead of many calls
                    laid = elements * tiles * (2 if kept else 1) / beside
                    each = breach and self.spaced(mapping.instruction, operand, breach[2], operand.buffer in written)
                    packing += laid if each is None else min(laid, calls * each)
                if operand.buffer in written:
                    scattered = SCATTERED * min(calls, tiles) / beside  # a sum's result is written when it is done
        slots = 1.0 + self._cycles(mapping, tile)
        calls = (calls + scattered) * slots + packing
        weight = self.trips[mapping.statements[0]] * (AHEAD if written <= self.ahead else 1.0)
        return PricedMapping(mapping, mask_of(mapping.statements), calls * weight, touched * weight)

    def _cycles(self, mapping: Mapped, tile: Mapping[str, int]) -> float:
        """Stated cycles of a call, on average: what is left at an axis' end may take a narrow form."""
        i, extents = mapping.instruction, self.extents(mapping)
        if not i.cost.per and not i.cost.narrow:
            return i.cost.issue or 0.0
        parts = [_parts(own, extents.get(axis, 1), tile.get(axis, 1)) for own, axis in mapping.axes]
        total = 0.0
        for some in product(*parts):
            sizes = i.sizes_of({own: n for own, n, _ in some})
            form = i.cost.form(sizes)
            issue = i.cost.issue or 0.0 if form is None else form.issue
            total += (issue + i.cost.further(sizes)) * math.prod(share for *_, share in some)
        return total

    def _tiles(self, o: OperandMap, tile: Mapping[str, int], counts: Mapping[str, int]) -> tuple[int, int, int]:
        """Elements of the operand in one call, how many distinct tiles of it there are, bytes of an element."""
        used = {n for row in o.index for n in row.names}
        dtype = self.kernel.buffer(o.buffer).dtype
        elements = math.prod(t for a, t in tile.items() if a in used)
        return elements, math.prod(c for a, c in counts.items() if a in used), 1 if dtype == ANY else size_of(dtype)

    def _run(self, o: OperandMap, tile: Mapping[str, int]) -> tuple[int, bool]:
        """How many elements of one tile of a C-contiguous buffer lie side by side, and whether the next ones are pages
        away."""
        buffer = self.kernel.buffer(o.buffer)
        run, inside, step, far = 1, True, 1 if buffer.dtype == ANY else size_of(buffer.dtype), False
        for row, size in zip(reversed(o.index), reversed(buffer.shape), strict=True):
            along = math.prod(t for a, t in tile.items() if row.coefficient(a))
            if inside:
                run *= along
                inside = along >= number(size)
            elif along > 1:
                far = step >= PAGE
                break
            step *= max(1, number(size))
        return run, far

    def _beside(self, mapping: Mapped, o: OperandMap, width: int) -> int:
        """Of how many steps of a recurrent loop around what they take of an operand lies in one line of a cache: rows
        that calls cross, and steps go along, may be taken some at a time (``isam.scheduler.interchange``)."""
        loops = self.apart.intersection(mapping.loops) if o.index else ()
        steps = (abs(o.index[-1].coefficient(loop)) for loop in loops)
        step = min((c for c in steps if c), default=0)
        return max(1, LINE // (step * width)) if step else 1

    def spaced(self, instruction: Instruction, o: OperandMap, step: int, writes: bool) -> float | None:
        """Cycles of a move that takes the operand as it lies, its elements ``step`` apart; None: there is none."""
        return self.spacing.cycles(instruction.contract(o.operand).homes, step, writes) if len(o.dims) == 1 else None

    def breach(self, instruction: Instruction, o: OperandMap, tile: Mapping[str, int]) -> tuple[int, int, int] | None:
        """Where the operand's stride contract does not hold in a C-contiguous buffer: the buffer's dimension, the
        stride needed and the stride there is, in elements. How far apart rows are in the memory that an operand is
        brought to says nothing of where it comes from."""
        strides = self._strides.get(o.buffer)
        if strides is None:
            strides = self._strides[o.buffer] = _contiguous_strides(self.kernel.buffer(o.buffer).shape)
        contract = instruction.contract(o.operand)
        gapless = packed(instruction.operand(o.operand).shape)
        for needed, own, dim, step in zip(contract.strides, gapless, o.dims, o.steps, strict=False):
            if needed is None or dim is None or dim < 0 or (contract.homes and needed not in (1, own)):
                continue
            along = math.prod(t for a, t in tile.items() if o.index[dim].coefficient(a))
            if along > 1 and step * strides[dim] != needed:
                return dim, needed, step * strides[dim]
        return None
