"""Temporaries at home in a near memory: groups hand them on in a slot there, whatever loops they are made in (SCH-10).

A slot lies at the end of its memory; the groups work in what is left of that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from isam.ir.dtype import size_of
from isam.ir.kernel import Buffer, Kernel
from isam.scheduler.move import home_place, ways
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group
from isam.scheduler.stays import MOST
from isam.system.graph import MANAGED, Memory, System


def near_homes(kernel: Kernel, groups: Sequence[Group], system: System, apart: Collection[str]) -> dict[str, Memory]:
    """Per temporary that several groups touch, but for those ``apart``, the memory that can be its home: the first one
    with room where all calls find it, or from which moves lead to where they do."""
    uses: dict[str, list[tuple[int, Nest, Use]]] = {}
    for at, group in enumerate(groups):
        for nest, u in ((n, u) for n in group.nests for u in n.uses):
            uses.setdefault(u.buffer, []).append((at, nest, u))
    able = [m for m in system.memories.values() if _able(m, system)]
    left = {m.name: int(MOST * m.capacity) for m in able}
    out: dict[str, Memory] = {}
    for b in kernel.buffers if able else ():
        mine = uses.get(b.name, [])
        several = len({at for at, _, _ in mine}) > 1
        if b.role != "temp" or not several or b.name in apart or not all(d.is_constant for d in b.shape):
            continue
        fit = (m for m in able if room(b, m) <= left[m.name] and all(_suits(b, n, u, m, system) for _, n, u in mine))
        memory = next(fit, None)
        if memory is not None:
            out[b.name] = memory
            left[memory.name] -= room(b, memory)
    return out


def room(buffer: Buffer, memory: Memory) -> int:
    """Bytes of a slot for all of a temporary."""
    grain = max(1, memory.align)
    return -(-max(1, prod(int(d) for d in buffer.shape) * size_of(buffer.dtype)) // grain) * grain


def _able(m: Memory, system: System) -> bool:
    """Whether a memory can be home to something: it has addresses, and is there once."""
    addressed = m.kind == MANAGED and m.cells is None and not m.row
    return addressed and m.name not in {system.home, *system.filled} and system.replica_of(m.name) is None


def _suits(buffer: Buffer, nest: Nest, use: Use, memory: Memory, system: System) -> bool:
    """Whether an operand of whatever call of a nest begins where an access to a memory may, and lies there or is
    brought from there and back without passing by home."""
    strides = home_place(buffer.name, memory.name, tuple(int(d) for d in buffer.shape), buffer.dtype).strides
    for row, stride in zip(use.index, strides, strict=True):
        begin = row.const + sum(c * nest.origin.get(a, 0) for a, c in row.terms)
        steps = [begin, *(c * _step(nest, a) for a, c in row.terms)]
        if any(n * stride % max(1, memory.align) for n in steps):
            return False

    def leads(source: str, target: str) -> bool:
        found = ways(system, source, target, use.dtype)
        return bool(found) and all(system.home not in w.memories for w in found)

    other = [h for h in use.homes if h != memory.name]
    there = all(leads(memory.name, h) for h in other) or not use.reads
    back = all(leads(h, memory.name) for h in other) or not use.writes
    return system.home not in use.homes and there and back


def _step(nest: Nest, axis: str) -> int:
    """How far the beginnings of two calls lie apart along an axis; 0: there is only one."""
    extent, mapped = nest.extents.get(axis), nest.mapped.get(axis)
    whole = extent.const if extent is not None and extent.is_constant else None
    step = 1 if mapped is None else mapped.limit
    return 0 if step is None or (whole is not None and whole <= step) else step
