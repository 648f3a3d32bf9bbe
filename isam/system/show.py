"""A machine for readers, as text tables; drawings are made in ``draw``."""

from __future__ import annotations

from collections.abc import Iterable

from isam.ir.instruction import Instruction
from isam.ir.printer import print_sym
from isam.system.graph import SEMANTICS_ONLY, Memory, System, Unit
from isam.system.groups import Mesh, Register
from isam.system.names import families, parameters


def text(system: System) -> str:
    """Memories, units, moves and instructions as aligned tables; the members of a family share a row."""
    end = "no back end (semantics only)" if system.backend == SEMANTICS_ONLY else f"back end {system.backend}"
    head = [f"system {system.name}", f"  {end}, approach {system.approach}"]
    if system.needs:
        head.append(f"  needs {', '.join(system.needs)}")
    if system.target:
        head.append(f"  code for {system.target.cpu} ({system.target.triple})")
    parts = ["\n".join(head)]
    memories = [_memory(m) for m in system.memories.values()]
    parts.append(_table("memories", ["name", "kind", "size", "align", ""], memories))
    units = [[u.name, frequency(u.clock), f"{len(u.runs)} instructions" if len(u.runs) > 4 else ", ".join(u.runs),
              _stream(system, u)] for u in system.units.values()]  # fmt: skip
    parts.append(_table("units", ["name", "clock", "runs", "stream" if any(u[-1] for u in units) else ""], units))
    moves = [[f"{m.source} -> {m.target}", m.by, m.issuer, _cost(system.instructions[m.by])] for m in system.moves]
    parts.append(_table("moves", ["edge", "by", "issued by", "cost"], moves))
    parts.append(_table("instructions", ["family", "members", "operands", "homes", "cost"], _instructions(system)))
    parts += _groups(system)
    if system.facts:
        parts.append(_table("facts", ["name", "value"], [[k, _short(v)] for k, v in system.facts.items()]))
    if system.assumed:
        parts.append("assumed costs (not stated)\n  " + "\n  ".join(few(system.assumed, 8)))
    return "\n\n".join(parts) + "\n"


def _stream(system: System, u: Unit) -> str:
    loops = f"{u.counters} loop counters" if u.counters is not None else "no loops" if u.driver == "expanded" else ""
    waits = "waits by itself" if u.hazards == "resolved" else ""
    cluster = system.cluster_of(u.name)
    return ", ".join(w for w in (f"that of {cluster}" if cluster else "", loops, waits) if w)


def _groups(system: System) -> list[str]:
    """Replicas, clusters, meshes, links and registers, where there are any."""
    tables = [
        _table("replicas", ["name", "count", "of each"],
               [[r.name, str(r.count), ", ".join((*r.memories, *r.units))] for r in system.replicas.values()]),
        _table("clusters", ["name", "one stream for"],
               [[c.name, ", ".join(c.units)] for c in system.clusters.values()]),
        _table("meshes", ["name", "places", "of", "channel", "hop", "attached"],
               [_mesh(m) for m in system.meshes.values()]),
        _table("links", ["name", "bandwidth", "shared by"],
               [[k.name, rate(k.bandwidth), ", ".join(f"{a} -> {b}" for a, b in k.edges)]
                for k in system.links.values()]),
        _table("registers", ["name", "holds", "at reset", "set by", "required by"],
               [_register(system, r) for r in system.state.values()]),
    ]  # fmt: skip
    return [t for t in tables if not t.endswith(": none")]


def _mesh(m: Mesh) -> list[str]:
    places = " x ".join(map(str, m.shape)) + (", rings" if m.wrap else "")
    ports = "; ".join(f"{memory} at {' '.join(','.join(map(str, p)) for p in some)}" for memory, some in m.ports)
    return [m.name, places, m.replica, rate(m.bandwidth), f"{m.hop / 1e-9:g} ns", ports]


def _register(system: System, r: Register) -> list[str]:
    sets = few([n for n, i in system.instructions.items() if r.name in i.sets], 4)
    wants = few([n for n, i in system.instructions.items() if r.name in i.requires], 4)
    holds = f"{r.bits} bits" if r.bits is not None else ", ".join(r.values)
    return [r.name, holds, "unknown" if r.reset is None else str(r.reset), ", ".join(sets), ", ".join(wants)]


def _instructions(system: System) -> list[list[str]]:
    moves = {m.by for m in system.moves}
    return [_family(system, members, moves) for members in families(system)]


def _family(system: System, members: list[Instruction], moves: set[str]) -> list[str]:
    """One row: what the members have in common, ``...`` where they differ."""
    ranges = "; ".join(f"{n}: {' '.join(few(v, 8))}" for n, v in parameters(members).items())
    name = members[0].family if members[0].values else members[0].name
    common = [_common(cells) for cells in zip(*(_row(system, i, moves) for i in members), strict=True)]
    return [f"{name}[{ranges}]" if ranges else name, str(len(members)), *common]


def _common(cells: tuple[str, ...]) -> str:
    return cells[0] if len(set(cells)) == 1 else f"{cells[0]} ..."


def _row(system: System, i: Instruction, moves: set[str]) -> tuple[str, str, str]:
    limits = ", ".join(map(print_sym, i.syms))
    operands = ", ".join(f"{a.name}[{', '.join(map(str, a.shape))}]" for a in i.body.arguments)
    homes = _homes(system, i)
    if not any(c.homes for c in i.operands.values()) and i.name in moves:
        homes = ["the ends of its edges"]
    rules = "".join(f"; apart {', '.join(g)}" for g in i.apart)
    rules += "".join(f"; {o} shared" for o, c in i.operands.items() if c.shared)
    rules += "".join(f"; requires {r} = {v}" for r, v in i.requires.items())
    rules += "".join(f"; sets {r} = {v}" for r, v in i.sets.items())
    return f"{operands} ({limits})" if limits else operands, ", ".join(homes) + rules, _cost(i)


def _homes(system: System, i: Instruction) -> list[str]:
    """Where the operands live: of all alike, or of each group."""
    groups: dict[str, list[str]] = {}
    for a in i.body.arguments:
        groups.setdefault("|".join(system.homes(i, a.name)), []).append(a.name)
    if len(groups) == 1:
        return list(groups)
    return [f"{' '.join(names)}: {homes}" for homes, names in groups.items()]


def _memory(m: Memory) -> list[str]:
    notes = ["home"] if m.home else []
    notes += [f"rows of {bytes_text(m.row)}"] if m.row else []
    notes += [f"masks {m.masks}"] if m.masks else []
    notes += [f"in front of {m.of}"] if m.of else []
    notes += [f"read at {rate(m.bandwidth)}"] if m.bandwidth else []
    notes += [f"at most {n} {does} per call" for n, does in ((m.ports.read, "read"), (m.ports.write, "written"))
              if n is not None]  # fmt: skip
    return [m.name, m.kind, size_text(m), f"{m.align} B", ", ".join(notes)]


def size_text(m: Memory) -> str:
    return f"{m.cells} x {bytes_text(m.cell or 0)}" if m.cells is not None else bytes_text(m.capacity)


def bytes_text(n: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or n % 1024:
            return f"{n} {unit}"
        n //= 1024
    return f"{n} TiB"


def frequency(hz: float) -> str:
    for unit, factor in (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3)):
        if hz >= factor:
            return f"{hz / factor:g} {unit}"
    return f"{hz:g} Hz"


def rate(bandwidth: float) -> str:
    """Bytes per second as text."""
    return f"{bandwidth / 1e9:g} GB/s"


def _cost(i: Instruction) -> str:
    c = i.cost
    stated = [("issue", c.issue, "cycles"), ("latency", c.latency, "cycles"), ("setup", c.setup, "cycles"),
              ("bandwidth", c.bandwidth, "B/cycle")]  # fmt: skip
    shown = [f"{n} {v:g} {'cycle' if (v, u) == (1, 'cycles') else u}" for n, v, u in stated if v is not None]
    shown += [f"{v:g} per {n}" for n, v in c.per]
    shown += [f"{f.issue:g} up to {f.size} = {f.most}" for f in c.narrow]
    return ", ".join(shown) or "not stated"


def few(names: Iterable[str], most: int) -> list[str]:
    names = list(names)
    return names if len(names) <= most else [*names[: most - 1], f"and {len(names) - most + 1} more"]


def _short(value: object) -> str:
    shown = str(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _table(title: str, head: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return f"{title}: none"
    widths = [max(len(r[n]) for r in [head, *rows]) for n in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in [head, *rows]]
    return title + "\n  " + "\n  ".join(lines)
