"""A machine as a Mermaid flowchart; its drawing as SVG is made in ``draw_svg``."""

from __future__ import annotations

from collections.abc import Iterable

from isam.classes import dataclass
from isam.system.graph import CACHED, System
from isam.system.groups import Link
from isam.system.show import few, frequency, rate, size_text


@dataclass(frozen=True, slots=True)
class Edge:
    """What moves between two memories, and who issues it, or the link that carries it; ``both`` ways where the same
    instructions go back."""

    source: str
    target: str
    both: bool
    names: tuple[str, ...]
    by: str

    @property
    def label(self) -> str:
        return ", ".join(few(self.names, 3))


def mermaid(system: System) -> str:
    """The graph as a Mermaid flowchart: memories are cylinders, units boxes, links hexagons with an arrow from
    or to every memory whose moves share them; an arrow both ways is drawn once."""
    nodes = {_id("m", m.name): f'[("{m.name}<br/>{size_text(m)}")]' for m in system.memories.values()}
    nodes |= {_id("u", u.name): f'["{u.name}<br/>{frequency(u.clock)}"]' for u in system.units.values()}
    nodes |= {_id("k", k.name): f'{{{{"{k.name}<br/>{rate(k.bandwidth)}"}}}}' for k in system.links.values()}
    lines = ["flowchart LR"]
    for r in system.replicas.values():
        lines.append(f'  subgraph {_id("r", r.name)}["{r.count} x {r.name}"]')
        inside = [*(_id("m", n) for n in r.memories), *(_id("u", n) for n in r.units)]
        lines += [f"    {n}{nodes.pop(n)}" for n in inside if n in nodes]
        lines.append("  end")
    lines += [f"  {n}{shape}" for n, shape in nodes.items()]
    lines += [f'  {_id("m", e.source)} {"<-->" if e.both else "-->"}|"{e.label} ({e.by})"| {_id("m", e.target)}'
              for e in edges(system)]  # fmt: skip
    for k in system.links.values():
        lines += _shares(k)
    for m in system.memories.values():
        if m.kind == CACHED:
            lines.append(f'  {_id("m", m.of)} -.-|"cached"| {_id("m", m.name)}')
    for u in system.units.values():
        lines += [f"  {_id('u', u.name)} --- {_id('m', name)}" for name in touched(system, u.runs)]
    for c in system.clusters.values():
        lines += [f'  {_id("u", a)} ===|"{c.name}"| {_id("u", b)}' for a, b in zip(c.units, c.units[1:], strict=False)]
    return "\n".join(lines) + "\n"


def _shares(k: Link) -> list[str]:
    """Dotted arrows of a link: from memories that its moves take from, to those that they bring to."""
    sources, targets = ({e[n] for e in k.edges} for n in (0, 1))
    ends = [(_id("m", n), _id("k", k.name), n in sources, n in targets) for e in k.edges for n in e]
    return [f"  {m} {'<-.->' if target else '-.->'} {link}" if source else f"  {link} -.-> {m}"
            for m, link, source, target in dict.fromkeys(ends)]  # fmt: skip


def edges(system: System) -> list[Edge]:
    """Between each two memories what a unit moves: one edge for both ways where the same instructions go back."""
    return _edges((m.source, m.target, m.issuer, m.by) for m in system.moves)


def shared(system: System, k: Link) -> list[Edge]:
    """Between each two memories what a link carries, whoever issues it."""
    return _edges((m.source, m.target, k.name, m.by) for m in system.moves if (m.source, m.target) in k.edges)


def _edges(moves: Iterable[tuple[str, str, str, str]]) -> list[Edge]:
    """``moves``: from, to, issuer or link, instruction."""
    names: dict[tuple[str, str, str], dict[str, None]] = {}
    for a, b, by, name in moves:
        names.setdefault((a, b, by), {})[name] = None
    out: list[Edge] = []
    done: set[tuple[str, str, str]] = set()
    for (a, b, by), some in names.items():
        if (a, b, by) not in done:
            both = a != b and names.get((b, a, by), {}).keys() == some.keys()
            done |= {(a, b, by), (b, a, by)} if both else {(a, b, by)}
            out.append(Edge(a, b, both, tuple(sorted(some)), by))
    return out


def touched(system: System, runs: Iterable[str]) -> list[str]:
    """Memories in which the operands of compute instructions may live."""
    moves = {m.by for m in system.moves}
    used: dict[str, None] = {}
    for name in runs:
        i = system.instructions.get(name)
        if i is not None and name not in moves:
            for a in i.body.arguments:
                used.update(dict.fromkeys(system.homes(i, a.name)))
    return [m for m in system.memories if m in used]


def _id(kind: str, name: str) -> str:
    return f"{kind}_" + "".join(c if c.isalnum() else "_" for c in name)
