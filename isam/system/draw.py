"""A machine as a drawing: Mermaid text, or an SVG that needs nothing else. Memories stand in columns by how many moves
they are away from home, what works on them beside them, replicas in a frame with their number."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from isam.classes import dataclass
from isam.system.draw_mesh import drawing
from isam.system.graph import CACHED, System
from isam.system.show import few, frequency, size_text

BOX, GAP, ROW, TOP = 132, 90, 64, 56  # width of a box, between columns, height of a row, above the first
STYLE = (
    "text{font:12px sans-serif;fill:#222}.s{font-size:10px;fill:#555}.m{fill:#e8f0fb;stroke:#36619e}"
    ".u{fill:#fdf3dc;stroke:#a07a1c}.e{fill:none;stroke:#36619e;marker-end:url(#a)}"
    ".w{stroke:#b9a36a;stroke-dasharray:2 3}"
    ".r{fill:none;stroke:#777;stroke-dasharray:6 4}"
)
HEAD = ('<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="#36619e"/></marker></defs>')  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Edge:
    source: str
    target: str
    both: bool
    label: str


def mermaid(system: System) -> str:
    """The graph as a Mermaid flowchart: memories are cylinders, units boxes; an arrow both ways is drawn once."""
    nodes = {_id("m", m.name): f'[("{m.name}<br/>{size_text(m)}")]' for m in system.memories.values()}
    nodes |= {_id("u", u.name): f'["{u.name}<br/>{frequency(u.clock)}"]' for u in system.units.values()}
    lines = ["flowchart LR"]
    for r in system.replicas.values():
        lines.append(f'  subgraph {_id("r", r.name)}["{r.count} x {r.name}"]')
        inside = [*(_id("m", n) for n in r.memories), *(_id("u", n) for n in r.units)]
        lines += [f"    {n}{nodes.pop(n)}" for n in inside if n in nodes]
        lines.append("  end")
    lines += [f"  {n}{shape}" for n, shape in nodes.items()]
    lines += [f'  {_id("m", e.source)} {"<-->" if e.both else "-->"}|"{e.label}"| {_id("m", e.target)}'
              for e in _edges(system)]  # fmt: skip
    for m in system.memories.values():
        if m.kind == CACHED:
            lines.append(f'  {_id("m", m.of)} -.-|"cached"| {_id("m", m.name)}')
    for u in system.units.values():
        lines += [f"  {_id('u', u.name)} --- {_id('m', name)}" for name in touched(system, u.runs)]
    for c in system.clusters.values():
        lines += [f'  {_id("u", a)} ===|"{c.name}"| {_id("u", b)}' for a, b in zip(c.units, c.units[1:], strict=False)]
    return "\n".join(lines) + "\n"


def _edges(system: System) -> list[_Edge]:
    """Edges with the moves along them; one for both ways where the same instruction goes back."""
    out: list[_Edge] = []
    done: set[tuple[str, str]] = set()
    moves = {(m.source, m.target): m for m in system.moves}
    for (a, b), m in moves.items():
        if (a, b) in done:
            continue
        both = (b, a) in moves and moves[b, a].by == m.by
        done |= {(a, b), (b, a)} if both else {(a, b)}
        names = sorted({x.by for x in system.moves if (x.source, x.target) == (a, b)})
        out.append(_Edge(a, b, both, ", ".join(few(names, 3))))
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


def svg(system: System) -> str:
    """The graph as one SVG file."""
    at = _places(system)
    width = max(x for x, _ in at.values()) + BOX + 40
    foot = max(y for _, y in at.values()) + ROW + 20
    grids = [(m, *drawing(m)) for m in system.meshes.values()]
    width, height = max([width, *(w for _, w, _, _ in grids)]), foot + sum(h + 20 for _, _, h, _ in grids)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">',
             f"<title>{escape(system.name)}</title><style>{STYLE}</style>", HEAD,
             f'<text x="20" y="22">{escape(system.name)}</text>']  # fmt: skip
    parts += [_frame(at, r.name, r.count, [*(("m", n) for n in r.memories), *(("u", n) for n in r.units)])
              for r in system.replicas.values()]  # fmt: skip
    for u in system.units.values():
        parts += [_line(at["u", u.name], at["m", n]) for n in touched(system, u.runs)]
    parts += [_arrow(at["m", e.source], at["m", e.target], e) for e in _edges(system)]
    for m in system.memories.values():
        parts.append(_box(at["m", m.name], "m", m.name, f"{size_text(m)}{', home' if m.home else ''}"))
    for u in system.units.values():
        cluster = system.cluster_of(u.name)
        parts.append(_box(at["u", u.name], "u", u.name, frequency(u.clock) + (f", {cluster}" if cluster else "")))
    for m, _, h, inside in grids:
        parts.append(f'<g transform="translate(0 {foot})"><text class="s" x="20" y="12">{escape(m.name)}: where the '
                     f"instances of {escape(m.replica)} stand</text>{inside}</g>")  # fmt: skip
        foot += h + 20
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places(system: System) -> dict[tuple[str, str], tuple[int, int]]:
    """The upper left corner of each box. A unit stands in the column after the farthest memory that it works on, or
    that it moves to."""
    depth = {m.name: 0 for m in system.memories.values() if m.home}
    todo = list(depth)
    near: dict[str, list[str]] = {}
    for m in system.moves:
        near.setdefault(m.source, []).append(m.target)
    for m in system.memories.values():
        if m.of:
            near.setdefault(m.of, []).append(m.name)
    for name in todo:
        for n in near.get(name, ()):
            if n not in depth:
                depth[n] = depth[name] + 1
                todo.append(n)
    column: dict[tuple[str, str], int] = {("m", n): 2 * depth.get(n, 1) for n in system.memories}
    for u in system.units.values():
        works = [depth.get(n, 1) for n in touched(system, u.runs)]
        moved = [min(depth.get(m.source, 1), depth.get(m.target, 1)) for m in system.moves if m.issuer == u.name]
        column["u", u.name] = 2 * max(works or moved or [0]) + 1
    filled: dict[int, int] = {}
    out: dict[tuple[str, str], tuple[int, int]] = {}
    for key, c in column.items():
        row = filled[c] = filled.get(c, -1) + 1
        out[key] = (30 + c * (BOX + GAP) // 2 + (c % 2) * 70, TOP + row * ROW + (c % 2) * ROW * _rows(column))
    return out


def _rows(column: dict[tuple[str, str], int]) -> int:
    """Rows of the fullest column of memories: units stand below them."""
    counts: dict[int, int] = {}
    for (kind, _), c in column.items():
        counts[c] = counts.get(c, 0) + (kind == "m")
    return max(counts.values())


def _box(at: tuple[int, int], kind: str, name: str, note: str) -> str:
    x, y = at
    round_ = 10 if kind == "m" else 2
    return (f'<rect class="{kind}" x="{x}" y="{y}" width="{BOX}" height="40" rx="{round_}"/>'
            f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text>'
            f'<text class="s" x="{x + 8}" y="{y + 32}">{escape(note)}</text>')  # fmt: skip


def _frame(at: dict[tuple[str, str], tuple[int, int]], name: str, count: int, keys: list[tuple[str, str]]) -> str:
    xs, ys = [at[k][0] for k in keys], [at[k][1] for k in keys]
    x, y = min(xs) - 12, min(ys) - 18
    return (f'<rect class="r" x="{x}" y="{y}" width="{max(xs) + BOX + 12 - x}" height="{max(ys) + 52 - y}" rx="6"/>'
            f'<text class="s" x="{x + 6}" y="{y + 11}">{count} x {escape(name)}</text>')  # fmt: skip


def _line(a: tuple[int, int], b: tuple[int, int]) -> str:
    return f'<line class="w" x1="{a[0] + BOX // 2}" y1="{a[1]}" x2="{b[0] + BOX // 2}" y2="{b[1] + 40}"/>'


def _arrow(a: tuple[int, int], b: tuple[int, int], e: _Edge) -> str:
    """From side to side; over the top where both stand in one column."""
    forward = b[0] > a[0]
    x1, x2 = (a[0] + BOX, b[0]) if forward else (a[0], b[0] + BOX)
    y1, y2 = a[1] + (16 if forward else 28), b[1] + (16 if forward else 28)
    if a[0] == b[0]:
        x1 = x2 = a[0] + BOX
        path = f"M{x1} {y1}C{x1 + 40} {y1} {x2 + 40} {y2} {x2} {y2}"
    else:
        path = f"M{x1} {y1}L{x2} {y2}"
    start = ' marker-start="url(#a)"' if e.both else ""
    x, y = (x1 + x2) // 2, (y1 + y2) // 2 - 4
    return (f'<path class="e" d="{path}"{start}/>'
            f'<text class="s" x="{x}" y="{y}" text-anchor="middle">{escape(e.label)}</text>')  # fmt: skip


def _id(kind: str, name: str) -> str:
    return f"{kind}_" + "".join(c if c.isalnum() else "_" for c in name)
