"""Which instructions could carry out which statements, and what each way would cost (SEL-1, SEL-2).

The cost of a mapping is what the default rule compares: dynamic calls first, bytes second. Decided here: a call counts
one plus the cycles it keeps its unit busy, where its description states them, so that a slow call does not pass for a
fast one. An operand whose stride contract the kernel's C-contiguous buffers do not meet is repacked: that counts one
call per element of each distinct tile, and half as many calls again when it is written, so that unit-stride mappings
win; constants are packed ahead of the call and count bytes only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isam.ir.affine import Affine
from isam.ir.dataflow import Order, levels, mask_of
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.ir.mapping import OperandMap
from isam.ir.mismatch import Mismatch

RUNTIME_TRIP = 1000  # a recurrent trip that is only known at run time counts as this
SCATTERED = 1.5  # calls that write an operand against its stride contract count as this many
GUARD_FACTOR = 1.2  # a condition on a mapped axis cuts blocks into pieces
PER_INSTRUCTION = 64  # mappings looked at per instruction and region


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mapping with its place and price. ``mask``: the statements it carries out; ``calls``: dynamic calls, moves for
    weighed by their issue cycles, repacking included; ``bytes``: what the calls touch."""

    mapping: Mapped
    mask: int
    calls: float
    bytes: float

    @property
    def price(self) -> tuple[float, float]:
        return self.calls, self.bytes


def number(e: Affine) -> int:
    """An extent as a number: sizes still open count as ``RUNTIME_TRIP``."""
    return max(0, e.const + sum(c * RUNTIME_TRIP for _, c in e.terms))


def limits(instruction: Instruction) -> dict[str, int | None]:
    """The most elements one call covers along each instruction axis; None: any number."""
    highest = {s.name: s.hi for s in instruction.syms}
    out: dict[str, int | None] = {}
    for s in instruction.body.statements:
        for a in s.domain.axes:
            open_ended = any(c < 0 or highest.get(n) is None for n, c in a.extent.terms)
            out[a.name] = None if open_ended else a.extent.const + sum(c * (highest[n] or 0) for n, c in a.extent.terms)
    return out


def fixed_axes(instruction: Instruction) -> frozenset[str]:
    """Instruction axes of which a call takes exactly one number of elements, neither more nor less."""
    loose = {s.name for s in instruction.syms if s.hi is None or s.lo < s.hi}
    axes = (a for s in instruction.body.statements for a in s.domain.axes)
    return frozenset(a.name for a in axes if not loose & set(a.extent.names))


def _contiguous_strides(shape: Sequence[Affine]) -> list[int]:
    out, run = [0] * len(shape), 1
    for d in range(len(shape) - 1, -1, -1):
        out[d], run = run, run * max(1, number(shape[d]))
    return out


class Pricing:
    """Prices mappings of one kernel."""

    def __init__(self, kernel: Kernel, penalties: Mapping[str, float] | None = None):
        self.kernel = kernel
        self.penalties = penalties or {}
        self._known: dict[str, dict[str, int | None]] = {}
        self.trips = [1] * len(kernel.statements)
        for level in levels(kernel):
            around = math.prod(number(r.axis.extent) for r in level.recurrences)
            for i, _ in enumerate(kernel.statements):
                if level.own >> i & 1:
                    self.trips[i] = around

    def _limits(self, instruction: Instruction) -> dict[str, int | None]:
        if instruction.name not in self._known:
            self._known[instruction.name] = limits(instruction)
        return self._known[instruction.name]

    def candidate(self, mapping: Mapped) -> Candidate:
        """The mapping with its price."""
        statements = [self.kernel.statements[i] for i in mapping.statements]
        extents = {a.name: number(a.extent) for s in statements for a in s.domain.axes}
        size = self._limits(mapping.instruction)
        tile = {k: _tile(extents.get(k, 1), size.get(i)) for i, k in mapping.axes}
        counts = {k: -(-extents.get(k, 1) // max(1, t)) for k, t in tile.items()}
        counts.update((k, extents.get(k, 1)) for k in mapping.outer if k not in mapping.loops)
        calls = float(math.prod(counts.values())) * GUARD_FACTOR ** min(2, len(mapping.guards))
        fixed = fixed_axes(mapping.instruction) if any(size.values()) else frozenset[str]()
        short = [k for i, k in mapping.axes if i in fixed and extents.get(k, 1) % max(1, size[i] or 1)]
        touched, packing, scattered = 0.0, 0.0, 1.0
        written = {s.dest.buffer for s in statements}
        for operand in mapping.operands:
            if not operand.buffer:
                continue
            elements, tiles, width = self._tiles(operand, tile, counts)
            touched += elements * calls * width
            padded = any(operand.index[d].coefficient(a) for d in operand.dims for a in short)
            if padded or not self._native(mapping.instruction, operand, tile):
                touched += elements * tiles * width
                if self.kernel.buffer(operand.buffer).role != "const":
                    packing += elements * tiles
                if operand.buffer in written:
                    scattered = SCATTERED
        slots = 1.0 + (mapping.instruction.cost.issue or 0.0)
        calls = calls * slots * scattered + packing
        weight = self.penalties.get(mapping.instruction.name, 1.0) * self.trips[mapping.statements[0]]
        return Candidate(mapping, mask_of(mapping.statements), calls * weight, touched * weight)

    def _tiles(self, o: OperandMap, tile: Mapping[str, int], counts: Mapping[str, int]) -> tuple[int, int, int]:
        """Elements of the operand in one call, how many distinct tiles of it there are, bytes of an element."""
        used = {n for row in o.index for n in row.names}
        dtype = self.kernel.buffer(o.buffer).dtype
        elements = math.prod(t for a, t in tile.items() if a in used)
        return elements, math.prod(c for a, c in counts.items() if a in used), 1 if dtype == ANY else size_of(dtype)

    def _native(self, instruction: Instruction, o: OperandMap, tile: Mapping[str, int]) -> bool:
        """Does the operand's stride contract hold where it lies in a C-contiguous buffer?"""
        shape = self.kernel.buffer(o.buffer).shape
        strides = _contiguous_strides(shape)
        for needed, dim, step in zip(instruction.contract(o.operand).strides, o.dims, o.steps, strict=False):
            if needed is None or dim is None or dim < 0:
                continue
            along = math.prod(t for a, t in tile.items() if o.index[dim].coefficient(a))
            if along > 1 and step * strides[dim] != needed:
                return False
        return True


def _tile(extent: int, limit: int | None) -> int:
    return extent if limit is None else min(extent, limit)


def present(instruction: Instruction, operations: frozenset[tuple[str, bool, str]]) -> bool:
    """Does the kernel have every operation of the instruction, each on its dtype? The cheap filter; an accumulation may
    be played by a plain statement and the other way round, so that flag does not count."""
    return _plain(instruction.signature) <= _plain(operations) | _any(operations)


def _plain(operations: frozenset[tuple[str, bool, str]]) -> set[tuple[str, str]]:
    return {(o, d) for o, _, d in operations}


def _any(operations: frozenset[tuple[str, bool, str]]) -> set[tuple[str, str]]:
    return {(o, ANY) for o, _, _ in operations}


def _reachable(mapping: Mapped, kernel: Kernel) -> bool:
    """Whether each operand's steps can be had: never backwards in memory; an operand that is brought to another memory
    lies there without gaps, at byte strides per buffer element: the step must divide an element's size."""
    near = {o for o, c in mapping.instruction.operands.items() if c.homes}
    for o in mapping.operands:
        size = size_of(kernel.buffer(o.buffer).dtype) if o.buffer else 1
        if any(step != 1 and (step < 1 or (o.operand in near and size % step)) for step in o.steps):
            return False
    return True


def gather(
    kernel: Kernel,
    instructions: Iterable[Instruction],
    order: Order,
    pricing: Pricing,
) -> tuple[list[Candidate], bool]:
    """Every schedulable candidate, one per orbit (the cheapest), best first; and whether some enumeration was cut."""
    from isam.mapper import match

    operations = kernel.operations
    own = [level.own for level in levels(kernel)]
    best: dict[tuple[str, str, int], Candidate] = {}
    cut = False
    for instruction in instructions:
        if not present(instruction, operations):
            continue
        found = match(kernel, instruction, strided=True, normalise=False)
        if isinstance(found, Mismatch):
            continue
        count: dict[int, int] = {}
        for mapping in found:
            mask = mask_of(mapping.statements)
            count[mask] = count.get(mask, 0) + 1
            if count[mask] > PER_INSTRUCTION:
                cut = True
                continue
            if not any(mask & ~o == 0 for o in own) or not order.is_convex(mask):
                continue
            if not _reachable(mapping, kernel):
                continue
            c = pricing.candidate(mapping)
            key = (instruction.name, mapping.orbit or str(mapping), mask)
            if key not in best or c.price < best[key].price:
                best[key] = c
        cut = cut or not getattr(found, "complete", True)
    return sorted(best.values(), key=lambda c: c.price), cut
