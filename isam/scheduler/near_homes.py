"""Temporaries at home in a near memory: groups hand them on in a slot there, whatever loops they are made in (SCH-10).

A slot lies at the end of its memory; the groups work in what is left of that. Where each instance has such a memory, a
slot of it is for the part that this instance makes and reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from isam.approach.choice import NOTHING, Choice, Trace
from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.ir.kernel import Buffer, Kernel
from isam.scheduler.move import home_place, paths
from isam.scheduler.nests import Nest, Use, sizes_of
from isam.scheduler.plan import Group
from isam.scheduler.stays import MOST, smaller
from isam.system.graph import Memory, System

PROMOTED = "at home near"
Parts = tuple[tuple[int, int], ...]  # dimensions that are dealt out, and elements of the largest part of each


@dataclass(frozen=True, slots=True)
class NearHome:
    """A ``memory`` that a temporary is at home in: all of it, or of each instance of the memory its part."""

    memory: Memory
    parts: Parts = ()

    def room(self, buffer: Buffer) -> int:
        """Bytes of the slot."""
        grain = max(1, self.memory.align)
        return -(-max(1, prod(_shape(buffer, self.parts)) * size_of(buffer.dtype)) // grain) * grain


def near_homes(kernel: Kernel, groups: Sequence[Group], system: System, apart: Collection[str]) -> dict[str, NearHome]:
    """Per temporary that several groups touch, but for those ``apart``, the memory that can be its home: the first one
    with room where all calls find it, or from which moves lead to where they do. Memories that are there once."""
    able = [m for m in system.memories.values() if m.scratchpad and m.cells is None and m.name not in system.filled]
    once = [m for m in able if system.replica_of(m.name) is None]
    whole: dict[str, Parts] = {b.name: () for b in kernel.buffers if b.role == "temp" and b.name not in apart}
    return homes_in(once, kernel, groups, system, whole)


def wanted_near(trace: Trace, groups: Sequence[Group], near: Collection[str], taken: tuple[int, int]) -> bool:
    """Whether the Approach wants temporaries to be at home ``near``, which saves bytes, whatever calls it takes;
    ``taken``: calls without and with that."""
    context = {"nests": [[n.number for n in g.nests] for g in groups], "buffers": sorted(near)}
    return trace.choose(Choice("promote", (NOTHING, PROMOTED), context, tuple(map(float, taken)))) == PROMOTED


def homes_in(
    memories: Sequence[Memory], kernel: Kernel, groups: Sequence[Group], system: System, parts: Mapping[str, Parts]
) -> dict[str, NearHome]:
    """The same, in some memories. ``parts``: of each temporary asked about what one instance has of it."""
    uses: dict[str, list[tuple[int, Nest, Use]]] = {}
    for at, group in enumerate(groups):
        for nest, u in ((n, u) for n in group.nests for u in n.uses):
            uses.setdefault(u.buffer, []).append((at, nest, u))
    left = {m.name: int(MOST * m.capacity) for m in memories}
    out: dict[str, NearHome] = {}
    for b in kernel.buffers if memories else ():
        mine = uses.get(b.name, [])
        several = len({at for at, _, _ in mine}) > 1
        if b.name not in parts or not several or not all(d.is_constant for d in b.shape):
            continue
        found = (NearHome(m, parts[b.name]) for m in memories)
        fit = (h for h in found if h.room(b) <= left[h.memory.name])
        home = next((h for h in fit if all(_suits(b, n, u, h, system) for _, n, u in mine)), None)
        if home is not None:
            out[b.name] = home
            left[home.memory.name] -= home.room(b)
    return out


def less_near(system: System, kernel: Kernel, near: Mapping[str, NearHome]) -> System:
    """The machine with what is left of its memories."""
    for name, home in near.items():
        system = smaller(system, home.memory.name, home.room(kernel.buffer(name)))
    return system


def _shape(buffer: Buffer, parts: Parts) -> tuple[int, ...]:
    """What there is room for."""
    return tuple(dict(parts).get(d, int(n)) for d, n in enumerate(buffer.shape))


def _suits(buffer: Buffer, nest: Nest, use: Use, home: NearHome, system: System) -> bool:
    """Whether an operand of whatever call of a nest begins where an access to a memory may, and lies there or is
    brought from there and back without passing by home."""
    memory = home.memory
    strides = home_place(buffer.name, memory.name, _shape(buffer, home.parts), buffer.dtype).strides
    if memory.row and not _in_rows(buffer, nest, use, memory.row):
        return False
    for row, stride in zip(use.index, strides, strict=True):
        begin = row.const + sum(c * nest.origin.get(a, 0) for a, c in row.terms)
        steps = [begin, *(c * _step(nest, a) for a, c in row.terms)]
        if any(n * stride % max(1, memory.align) for n in steps):
            return False

    def leads(source: str, target: str) -> bool:
        found = paths(system, source, target, use.dtype)
        return bool(found) and all(system.home not in w.memories for w in found)

    other = [h for h in use.homes if h != memory.name]
    there = all(leads(memory.name, h) or h in system.closed for h in other) or not use.reads  # begun in a closed one
    back = all(leads(h, memory.name) for h in other) or not use.writes
    return system.home not in use.homes and there and back


def _in_rows(buffer: Buffer, nest: Nest, use: Use, row: int) -> bool:
    """Whether calls find an operand along its last dimension within a row, which the buffer's last one lies along: what
    is at home somewhere has no gaps, so that takes whole rows."""
    last, size = len(buffer.shape) - 1, size_of(buffer.dtype)
    if prod(int(n) for n in buffer.shape[:last]) > 1 and int(buffer.shape[last]) * size % row:
        return False
    sizes = sizes_of(nest, {a: nest.unit(a) for a in nest.axes})
    shape = [e.evaluate(sizes) if e.terms else e.const for e in use.extents]
    for at, (d, n, step) in enumerate(zip(use.dims, shape, use.steps, strict=True)):
        inner = at == len(shape) - 1
        if n > 1 and ((d == last) != inner or (inner and n * step * size > row)):
            return False
    return True


def _step(nest: Nest, axis: str) -> int:
    """How far the beginnings of two calls lie apart along an axis; 0: there is only one."""
    extent, mapped = nest.extents.get(axis), nest.mapped.get(axis)
    whole = extent.const if extent is not None and extent.is_constant else None
    step = 1 if mapped is None else mapped.limit
    return 0 if step is None or (whole is not None and whole <= step) else step
