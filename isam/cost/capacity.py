"""What must come and go because near memory is small: an I/O bound for contractions (SCH-13).

Theorem (the argument of Hong and Kung 1981 with the inequality of Loomis and Whitney, as Irony, Toledo and Tiskin 2004
have it; segments of ``2 S`` loads after Smith, Lowery, Langou and van de Geijn 2019). Let ``F`` multiplications be
``C[c] += A[a] * B[b]``, where every axis is in exactly two of the three indices or in all three, and every row of an
index is one axis. On a memory of ``S`` elements, from which elements of C that were begun may be put away and brought
back but are never doubled, loads and first touches of C come to at least ``2 F / sqrt(S) - 2 S``: in a segment of
``2 S`` of them at most ``3 S`` elements are seen, and ``|a| + |b| + |c| <= 3 S`` allows ``sqrt(|a| |b| |c|)`` or
``S sqrt(S)`` multiplications at most. Every element of C that was touched first is stored at least once, so loads and
stores together are no fewer. With ``n`` memories of ``S`` each that do not speak to each other the sum is
``2 F / sqrt(S) - 2 n S``.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt

from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping, OperandMap
from isam.schedule.tree import Schedule
from isam.system.graph import System


def capacity_traffic(schedule: Schedule, kernel: Kernel) -> Iterator[tuple[frozenset[str], int, str]]:
    """Sets of memories around the units with the bytes that at least go in and out of them, and how those were counted:
    everything before home, and the memories from which an instruction takes its operands."""
    system = schedule.system
    away = frozenset(m.name for m in system.memories.values() if m.fetched)
    for m in schedule.cover.mappings:
        got = _contraction(m, kernel, system)
        own = frozenset(h for o in m.operands for h in system.homes(m.instruction, o.operand))
        for near in dict.fromkeys((away, own)) if got is not None and own <= away else ():
            assert got is not None
            (times, width), (size, copies) = got, _held(system, near)
            held = size // width
            least = 2 * times / sqrt(held) - 2 * copies * held if held else 0.0
            if least > 0:
                many = f"{copies} times " if copies > 1 else ""
                yield near, int(least * width), f"{times} products with {many}{held} elements near (Hong and Kung)"


def _held(system: System, near: frozenset[str]) -> tuple[int, int]:
    """Bytes of these memories: of one instance and how many of those there are, if they are all one replica's."""
    groups = {system.replica_of(m) for m in near}
    copies = {g: system.replicas[g].count if g else 1 for g in groups}
    size = {m: system.memories[m].capacity for m in near}
    if len(groups) == 1:
        return sum(size.values()), next(iter(copies.values()))
    return sum(n * copies[system.replica_of(m)] for m, n in size.items()), 1


def _contraction(m: Mapping, kernel: Kernel, system: System) -> tuple[int, int] | None:
    """The number of multiplications and the bytes of the smallest element; None where the theorem does not apply."""
    sums = [kernel.statements[i] for i in m.statements if kernel.statements[i].accumulate]
    products = [kernel.statements[i] for i in m.statements if kernel.statements[i].op == "mul"]
    if len(sums) != 1 or len(products) != 1 or sums[0].op != "add" or m.guards or m.loops or sums[0].domain.where:
        return None
    result, terms = sums[0].dest, [o for o in m.operands if o.buffer != sums[0].dest.buffer]
    c = [o for o in m.operands if o.buffer == result.buffer]
    inputs = [kernel.buffer(o.buffer) for o in terms if o.buffer in {b.name for b in kernel.buffers}]
    if len(terms) != 2 or len(c) != 1 or len(inputs) != 2 or inputs[0].name == inputs[1].name:
        return None
    out = kernel.buffer(result.buffer)
    if any(b.role not in ("in", "const") for b in inputs) or out.role not in ("out", "inout"):
        return None
    if any(system.home in system.homes(m.instruction, o.operand) for o in m.operands):
        return None
    extents = {a.name: a.extent.const for a in sums[0].domain.axes}
    if not _plain([*terms, *c], {n for n, e in extents.items() if e > 1}):
        return None
    return prod(extents.values()), min(size_of(b.dtype) for b in (*inputs, out))


def _plain(operands: list[OperandMap], axes: set[str]) -> bool:
    """Whether every row is one axis, with no axis twice, and every axis is in two indices or in three."""
    seen: dict[str, int] = dict.fromkeys(axes, 0)
    for o in operands:
        mine = [n for row in o.index for n, _ in row.terms if n in axes]
        if len(set(mine)) != len(mine) or any(len([n for n in row.names if n in axes]) > 1 for row in o.index):
            return False
        for n in mine:
            seen[n] += 1
    return all(k >= 2 for k in seen.values())
