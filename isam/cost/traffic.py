"""What must travel from home memory and back to it, and through what (SCH-13)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import gcd

from isam.classes import dataclass
from isam.cost.paths import least_path
from isam.cost.steps import Edge
from isam.ir.affine import Affine
from isam.ir.counting import admitted
from isam.ir.dtype import size_of
from isam.ir.kernel import Access, Domain, Kernel, Recurrence
from isam.schedule.tree import Schedule
from isam.system.graph import System

STANDING = 4  # axes of which several places are tried


@dataclass(frozen=True, slots=True)
class Flow:
    """``bytes`` of ``buffer`` that must get from one of ``source`` to one of ``targets``; ``load``: from home."""

    bytes: int
    source: frozenset[str]
    targets: frozenset[str]
    buffer: str
    load: bool


@dataclass(frozen=True)
class Way:
    """Something that bytes go through at ``rate`` (bytes per second, all instances together). ``edges``: the moves that
    do."""

    name: str
    rate: float
    edges: frozenset[Edge]
    system: System

    def least(self, source: frozenset[str], targets: frozenset[str]) -> int:
        """How often an element goes through it at least on its way."""
        steps = ((a, b, int((a, b) in self.edges)) for a, b in self.system.moves_by_edge)
        return int(least_path(steps, source, targets) or 0)


def ways(system: System) -> Iterator[Way]:
    """Every unit that alone issues some moves, every edge, every link, the channels by which a memory is attached to a
    mesh, everything out of home and everything into it. Of edges whose bandwidth is not stated nothing is said."""
    rates, home = _rates(system), system.home
    for u in sorted({m.issuer for m in system.moves}):
        edges = frozenset(e for e, ms in system.moves_by_edge.items() if {m.issuer for m in ms} == {u})
        if edges and all(rates[e] for e in edges):
            yield Way(f"unit {u}", max(rates[e] for e in edges), edges, system)
    for e in sorted(rates):
        if rates[e]:
            yield Way(f"edge {e[0]} -> {e[1]}", rates[e], frozenset((e,)), system)
    for k in system.links.values():
        yield Way(f"link {k.name}", k.bandwidth, frozenset(k.edges), system)
    ends = {(m, at, inward): None for e in system.moves_by_edge for m, at, inward in system.crossings(*e)}
    for m, at, inward in ends:
        edges = frozenset(e for e in system.moves_by_edge if (m, at, inward) in system.crossings(*e))
        rate = m.bandwidth * len(dict(m.ports)[at])
        yield Way(f"mesh {m.name} {'out of' if inward else 'into'} {at}", rate, edges, system)
    for n, name in enumerate(("out of", "into")):
        edges = frozenset(e for e in rates if e[n] == home and e[1 - n] != home)
        yield from everything(system, edges, f"{name} {home}")


def everything(system: System, edges: frozenset[Edge], name: str) -> Iterator[Way]:
    """Several edges as one way, as fast as all of them together."""
    rates = _rates(system)
    if len(edges) > 1 and all(rates[e] for e in edges):
        yield Way(f"everything {name}", sum(rates[e] for e in edges), edges, system)


def crossing(system: System, near: frozenset[str]) -> frozenset[Edge]:
    """The edges into and out of a set of memories."""
    return frozenset(e for e in system.moves_by_edge if (e[0] in near) != (e[1] in near))


def _rates(system: System) -> dict[Edge, float]:
    """Bytes per second over each edge, all who issue moves on it together; 0 where that is not stated."""
    rates: dict[Edge, float] = {}
    for edge, moves in system.moves_by_edge.items():
        stated = [(system.instructions[m.by].cost.bandwidth, m.issuer) for m in moves]
        rates[edge] = sum(_rate(system, r, u) for r, u in stated) if all(r for r, _ in stated) else 0.0
    return rates


def _rate(system: System, bandwidth: float | None, issuer: str) -> float:
    """Bytes per second of all instances of a unit."""
    group = system.replica_of(issuer)
    return (bandwidth or 0.0) * system.units[issuer].clock * (system.replicas[group].count if group else 1)


def flows(schedule: Schedule, kernel: Kernel, ahead: frozenset[int]) -> list[Flow]:
    """What every schedule of the cover moves: arguments that are used away from home, each element once. Constants that
    are kept elsewhere from bind on need not come again; ``ahead``: statements that are carried out then."""
    system, home = schedule.system, frozenset((schedule.system.home,))
    kept = any(s.bound and s.memory != system.home for s in schedule.workspace)
    loads, stores = _compulsory(kernel, ahead)
    out: list[Flow] = []
    for name in dict.fromkeys((*loads, *stores)):
        places = [frozenset(system.homes(m.instruction, o.operand)) for m in schedule.cover.mappings
                  for o in m.operands if o.buffer == name]  # fmt: skip
        if not places or any(system.home in p for p in places):
            continue
        near = frozenset().union(*places)
        if loads.get(name) and not (kept and kernel.buffer(name).role == "const"):
            out.append(Flow(loads[name], home, near, name, True))
        if stores.get(name):
            out.append(Flow(stores[name], near, home, name, False))
    return out


def _compulsory(kernel: Kernel, ahead: frozenset[int]) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes per argument that must leave home memory, and that must come back to it, over all steps of the loops."""
    loads: dict[str, int] = {}
    stores: dict[str, int] = {}
    for i, (s, steps) in enumerate(zip(kernel.statements, _steps(kernel.body, {}), strict=True)):
        own = {a.name: a.extent.const for a in s.domain.axes}
        if i in ahead or min({**steps, **own}.values(), default=1) <= 0:
            continue
        for a in dict.fromkeys((*s.reads, s.dest)):
            b = kernel.buffer(a.buffer)
            updated = a != s.dest and b.role == "inout"  # a step may read what one before it has written
            extents = own if updated else {**steps, **own}
            if b.role == "temp" or not _tied(s.domain) <= {*extents}:
                continue
            n = _touched(a, extents, s.domain) * size_of(b.dtype)
            if a != s.dest and b.role in ("in", "const", "inout"):
                loads[a.buffer] = max(n, loads.get(a.buffer, 0))
            if a == s.dest and b.role in ("out", "inout"):
                stores[a.buffer] = max(n, stores.get(a.buffer, 0))
    return loads, stores


def _steps(body: tuple, around: dict[str, int]) -> Iterator[dict[str, int]]:
    """Of every statement, the loops around it and how many steps those take."""
    for it in body:
        if isinstance(it, Recurrence):
            yield from _steps(it.body, {**around, it.axis.name: it.axis.extent.const})
        else:
            yield around


def _tied(domain: Domain) -> set[str]:
    return {n for w in domain.where for n in w.names}


def _touched(a: Access, extents: dict[str, int], domain: Domain) -> int:
    """Distinct elements that an access surely touches. Under conditions: with one axis of each row running, all others
    standing at their begin, middle or end, as many as the conditions then admit."""
    if not domain.where:
        return _elements(a, extents)
    running: set[str] = set()
    for row in a.index:
        own = [n for n in row.names if n in extents]
        if own and not running & set(own):
            running.add(max(own, key=extents.__getitem__))
    standing = sorted(_tied(domain) - running)[:STANDING]
    box = {n: extents[n] if n in running else 1 for n in extents}
    return max(_admitted(box, dict(zip(standing, at, strict=True)), domain)
               for at in product(*({0, extents[n] // 2, extents[n] - 1} for n in standing)))  # fmt: skip


def _admitted(box: dict[str, int], at: dict[str, int], domain: Domain) -> int:
    return admitted(box, [w.substitute(at) for w in domain.where]) or 0


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
