"""What a drawing of a machine shows: the memories and units of each replica, and what joins them, a row each."""

from __future__ import annotations

from isam.classes import dataclass
from isam.system.draw import edges, shared, touched
from isam.system.graph import CACHED, Memory, System, Unit
from isam.system.groups import Link
from isam.system.show import few


@dataclass(frozen=True, slots=True)
class Row:
    """The memories that are joined, and how: ``e`` by an arrow from the first to the last (``both``: and back), ``k``
    the same over a link, ``w`` as what a unit works on, ``c`` as caches in front of the first."""

    kind: str
    memories: tuple[str, ...]
    label: str
    both: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """What is there once (``name`` is empty), or is in one replica: its memories, and its units and links with their
    rows; None stands for rows that are nobody's."""

    name: str
    count: int
    memories: list[Memory]
    units: list[tuple[Unit | Link | None, list[Row]]]


def blocks(system: System) -> list[Block]:
    """What is there once, then each replica; memories by how many moves they are away from home."""
    depth = _depth(system)
    order = sorted(system.memories.values(), key=lambda m: (not m.home, depth.get(m.name, 1)))
    out: list[Block] = []
    for name, count in (("", 1), *((r.name, r.count) for r in system.replicas.values())):
        units = [u for u in system.units.values() if (system.replica_of(u.name) or "") == name]
        memories = [m for m in order if (system.replica_of(m.name) or "") == name]
        out.append(Block(name, count, memories, [(u, _rows(system, u)) for u in units]))
    for k in system.links.values():  # whatever shares it, it is there once
        rows = [Row("k", (e.source, e.target), e.label, e.both) for e in shared(system, k)]
        out[0].units.append((k, rows))
    for of, caches in _caches(system).items():
        home = next((b for b in out[1:] if any(m.name in caches for m in b.memories)), out[0])
        home.units.insert(0, (None, [Row("c", (of, *caches), f"cached: {of}")]))
    return out


def _depth(system: System) -> dict[str, int]:
    """How many moves, or levels of cache, a memory is away from home."""
    depth = {m.name: 0 for m in system.memories.values() if m.home}
    todo = list(depth)
    near: dict[str, list[str]] = {}
    for a, b in [*((m.source, m.target) for m in system.moves),
                 *((m.of, m.name) for m in system.memories.values() if m.of)]:  # fmt: skip
        near.setdefault(a, []).append(b)
    for name in todo:
        for n in near.get(name, ()):
            if n not in depth:
                depth[n] = depth[name] + 1
                todo.append(n)
    return depth


def _caches(system: System) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for m in system.memories.values():
        if m.kind == CACHED:
            out.setdefault(m.of, []).append(m.name)
    return out


def _rows(system: System, u: Unit) -> list[Row]:
    """What the unit works on, then the edges whose moves it issues."""
    moves = {m.by for m in system.moves}
    computes = [n for n in u.runs if n not in moves and n in system.instructions]
    works = touched(system, u.runs)
    rows = [Row("w", tuple(works), ", ".join(few(computes, 3)))] if works else []
    return rows + [Row("e", (e.source, e.target), e.label, e.both) for e in edges(system) if e.by == u.name]
