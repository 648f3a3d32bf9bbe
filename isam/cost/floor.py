"""The time that no schedule of a cover can beat on a machine: compute and compulsory traffic (SCH-13).

Sound, not tight: every call is as large as its instruction takes, units that can run an instruction share its calls
without loss, every edge out of home or back to it is always busy, every element is moved once.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from isam.cost.steps import ASSUMED
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel
from isam.schedule.tree import Schedule
from isam.system.graph import System


@dataclass(frozen=True, slots=True)
class Floor:
    """Seconds: ``compute`` on the units, ``load`` from home memory, ``store`` to it."""

    compute: float
    load: float
    store: float

    @property
    def seconds(self) -> float:
        return max(self.compute, self.load, self.store)

    @property
    def name(self) -> str:
        """Which of them binds."""
        return max(("compute", "load", "store"), key=lambda n: getattr(self, n))


def floor(schedule: Schedule) -> Floor:
    """The lower bounds of a schedule's call part. Run-time trips count as nothing."""
    kernel, system = schedule.cover.kernel, schedule.system
    loads, stores = _traffic(kernel)
    moved = {o.buffer for m in schedule.cover.mappings for o in m.operands if _away(system, m.instruction, o.operand)}
    return Floor(
        _compute(schedule),
        _over(system, sum(n for b, n in loads.items() if b in moved), out=True),
        _over(system, sum(n for b, n in stores.items() if b in moved), out=False),
    )


def _away(system: System, instruction: Instruction, operand: str) -> bool:
    return system.home not in system.homes(instruction, operand)


def _compute(schedule: Schedule) -> float:
    """Per set of units, what only they can run, shared among them; the longest."""
    busy: dict[frozenset[str], float] = {}
    for nest in schedule.nests:
        m = schedule.cover.mappings[nest.mapping]
        units = schedule.system.units_of(m.instruction.name)
        played, calls = {k: i for i, k in m.axes}, 1
        mean: dict[str, float] = {}  # extent of an instruction's axis in a call
        for axis, extent in nest.axes:
            n = extent.const if extent.is_constant else 0
            most = m.instruction.span(played[axis]).most if axis in played else 1
            cuts = -(-n // most) if most else min(1, n)
            calls *= cuts
            if axis in played:
                mean[played[axis]] = n / max(1, cuts)
        cost = m.instruction.cost
        cycles = cost.issue if cost.issue is not None else ASSUMED
        cycles += cost.further(m.instruction.sizes_of(mean)) if cost.per else 0.0
        who = frozenset(u.name for u in units)
        busy[who] = busy.get(who, 0.0) + calls * cycles / max(u.clock for u in units)
    return max((sum(t for w, t in busy.items() if w <= who) / len(who) for who in busy), default=0.0)


def _traffic(kernel: Kernel) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes per argument that must leave home memory, and that must come back to it."""
    loads: dict[str, int] = {}
    stores: dict[str, int] = {}
    for s in kernel.statements:
        extents = {a.name: a.extent.const if a.extent.is_constant else 1 for a in s.domain.axes}
        if s.domain.where or 0 in extents.values():
            continue
        for a in dict.fromkeys((*s.reads, s.dest)):
            b = kernel.buffer(a.buffer)
            n = _elements(a, extents) * size_of(b.dtype) if b.role != "temp" else 0
            if a != s.dest and b.role in ("in", "const", "inout"):
                loads[a.buffer] = max(n, loads.get(a.buffer, 0))
            if a == s.dest and b.role in ("out", "inout"):
                stores[a.buffer] = max(n, stores.get(a.buffer, 0))
    return loads, stores


def _elements(a: Access, extents: dict[str, int]) -> int:
    """Distinct elements that an access surely touches: rows that share an axis with an earlier one count as one."""
    seen: set[str] = set()
    count = 1
    for row in a.index:
        if not seen & set(row.names):
            count *= _values(row, extents)
        seen |= set(row.names)
    return count


def _values(row: Affine, extents: dict[str, int]) -> int:
    """Distinct values of an affine expression: all multiples in its range where steps leave no gap, else one axis's."""
    terms = sorted((abs(c), extents.get(n, 1)) for n, c in row.terms)
    if not terms:
        return 1
    unit, reach = gcd(*(c for c, _ in terms)), 0
    for c, n in terms:
        if c > reach + unit:
            return max(n for _, n in terms)
        reach += c * (n - 1)
    return reach // unit + 1


def _over(system: System, size: int, *, out: bool) -> float:
    """Seconds for so many bytes over all edges out of home memory (or back to it) at once; 0 where one has no stated
    bandwidth."""
    rates: dict[tuple[str, str], float] = {}
    for m in system.moves:
        if (m.source if out else m.target) == system.home:
            bandwidth = system.instructions[m.by].cost.bandwidth
            if bandwidth is None:
                return 0.0
            edge, rate = (m.source, m.target), bandwidth * system.units[m.issuer].clock
            rates[edge] = max(rate, rates.get(edge, 0.0))
    return size / sum(rates.values()) if rates else 0.0


