"""A machine as an SVG that needs nothing else. Memories stand side by side, home on the left, each over a line of its
own; units stand on the right, one below the other, each beside its rows: one with a dot on the line of every memory in
which operands of its instructions may live, and one with an arrow for every edge whose moves it issues. Links stand
below the units that are there once, each beside an arrow for every edge whose moves share it. So nothing that is drawn
lies over anything else, however many edges there are."""

from __future__ import annotations

from html import escape

from isam.system.draw_mesh import drawing
from isam.system.draw_rows import Block, Row, blocks
from isam.system.graph import Memory, System, Unit
from isam.system.groups import Link
from isam.system.show import frequency, rate, size_text

TOP, HIGH, ROW, GAP, LEFT = 64, 40, 22, 16, 30  # where boxes begin, height of one, of a row, between things, margin
CAPTION = 24  # height of the words over a mesh
STYLE = (
    "text{font:12px sans-serif;fill:#222}.s{font-size:10px;fill:#555}.m{fill:#e8f0fb;stroke:#36619e}"
    ".u{fill:#fdf3dc;stroke:#a07a1c}.e{fill:none;stroke:#36619e;marker-end:url(#e)}"
    ".w{fill:none;stroke:#a07a1c}.d{fill:#a07a1c}.j{fill:none;stroke:#b9a36a;stroke-dasharray:2 3}"
    ".c{fill:none;stroke:#36619e;stroke-dasharray:6 3}.b{fill:#36619e}.l{stroke:#ccd6e4}"
    ".n{fill:#e6f3e8;stroke:#3d7d4a}.k{fill:none;stroke:#3d7d4a;marker-end:url(#k)}.v{fill:none;stroke:#3d7d4a}"
    ".r{fill:none;stroke:#777;stroke-dasharray:6 4}"
)
HEAD = "<defs>" + "".join(
    f'<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
    for kind, colour in (("e", "#36619e"), ("k", "#3d7d4a"))) + "</defs>"  # fmt: skip
KEY = ("arrow: moves, by the unit beside it", "dots: where operands of a unit's instructions may live")
SHARED = "green arrow: moves that share the bandwidth beside it"


def svg(system: System) -> str:
    """The graph as one SVG file."""
    boxes = [*((m.name, _note(m)) for m in system.memories.values()),
             *((u.name, _unit_note(system, u)) for u in (*system.units.values(), *system.links.values()))]  # fmt: skip
    picture = _Picture(max(84, *(int(max(wide(n, 12), wide(note, 10))) + 18 for n, note in boxes)))
    width, foot = picture.draw(system, blocks(system))
    for line in (*KEY, SHARED) if system.links else KEY:
        picture.parts.append(f'<text class="s" x="20" y="{foot + 10}">{line}</text>')
        width, foot = max(width, 40 + int(wide(line, 10))), foot + 14
    foot += GAP
    for m in system.meshes.values():
        words = f"{m.name}: where the instances of {m.replica} stand"
        w, h, inside = drawing(m)
        picture.parts.append(f'<text class="s" x="20" y="{foot + 12}">{escape(words)}</text>'
                             f'<g transform="translate(0 {foot + CAPTION})">{inside}</g>')  # fmt: skip
        width, foot = max(width, w, 40 + int(wide(words, 10))), foot + CAPTION + h + GAP
    width = max(width, 40 + int(wide(system.name, 12)))
    start = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{foot}" role="img">',
             f"<title>{escape(system.name)}</title><style>{STYLE}</style>", HEAD,
             f'<text x="20" y="22">{escape(system.name)}</text>']  # fmt: skip
    return "\n".join([*start, *picture.parts, "</svg>"]) + "\n"


def wide(words: str, size: int) -> float:
    """How wide words are at most, about, in a font without serifs."""
    return 0.62 * size * len(words)


def _note(m: Memory) -> str:
    return f"{size_text(m)}{', home' if m.home else ''}"


def _unit_note(system: System, u: Unit | Link) -> str:
    if isinstance(u, Link):
        return rate(u.bandwidth)
    cluster = system.cluster_of(u.name)
    return frequency(u.clock) + (f", {cluster}" if cluster else "")


class _Picture:
    """Elements, and where the line of each memory runs."""

    def __init__(self, box: int):
        self.box = box
        self.parts: list[str] = []
        self.lines: dict[str, int] = {}

    def draw(self, system: System, parts: list[Block]) -> tuple[int, int]:
        """All blocks from left to right, what is there once around them: its memories first, its units last. Returns
        the width and where there is room below."""
        once, *replicas = parts
        x = self._memories(once, LEFT)
        ends: dict[str, int] = {}
        rows: list[str] = []
        foot = TOP + HIGH + GAP
        for b in replicas:
            begin = x = x + GAP
            x, foot = self._units(system, b, self._memories(b, x), foot, rows, ends)
            if b.memories or b.units:
                rows.append(f'<rect class="r" x="{begin - 12}" y="{TOP - 24}" width="{x - begin + 24}" '
                            f'height="{foot - TOP + 20}" rx="6"/><text class="s" x="{begin - 6}" y="{TOP - 11}">'
                            f"{b.count} x {escape(b.name)}</text>")  # fmt: skip
                x, foot = max(x, begin + int(wide(f"{b.count} x {b.name}", 10))) + GAP, foot + GAP
        if once.units:
            x, foot = self._units(system, once, x, foot, rows, ends)
        lines = [f'<line class="l" x1="{self.lines[n]}" y1="{TOP + HIGH}" x2="{self.lines[n]}" y2="{y}"/>'
                 for n, y in ends.items()]  # fmt: skip
        self.parts = [*lines, *self.parts, *rows]
        return x + LEFT, foot + GAP

    def _memories(self, b: Block, x: int) -> int:
        for m in b.memories:
            self.lines[m.name] = x + self.box // 2
            self.parts.append(self._box(x, TOP, "m", m.name, _note(m)))
            x += self.box + GAP
        return x

    def _units(self, system: System, b: Block, x: int, y: int, parts: list[str],
               ends: dict[str, int]) -> tuple[int, int]:  # fmt: skip
        """Units with their rows below ``y``; memories' lines reach down to the last row that they are in. Returns
        the right end and the lower one."""
        labels = [r.label for _, rows in b.units for r in rows]
        edge = x + int(max((wide(w, 10) for w in labels), default=0))  # where labels end
        at = edge + 2 * GAP if labels else x
        for unit, rows in b.units:
            high = max(HIGH if unit else 0, ROW * len(rows))
            middles = [y + high // 2 + ROW * k - ROW * (len(rows) - 1) // 2 for k in range(len(rows))]
            for row, middle in zip(rows, middles, strict=True):
                ends.update(dict.fromkeys(row.memories, middle))
                parts.append(self._row(row, middle, edge))
            if unit:
                box, joint = ("n", "v") if isinstance(unit, Link) else ("u", "w")
                parts.append(self._box(at, y + (high - HIGH) // 2, box, unit.name, _unit_note(system, unit)))
                parts += _joint(joint, edge + 6, middles, at, y + high // 2)
            y += high + GAP
        return (at + self.box if any(u for u, _ in b.units) else edge if labels else x - GAP), y

    def _row(self, r: Row, y: int, edge: int) -> str:
        """Its line, its label, which ends at ``edge``, and what leads from one to the other."""
        xs = [self.lines[n] for n in r.memories]
        right = max(xs)
        if r.kind in ("e", "k"):
            start = f' marker-start="url(#{r.kind})"' if r.both else ""
            loop = f"M{xs[0]} {y - 6}h{GAP}v12h-{GAP}"  # back to where it comes from
            path = f"M{xs[0]} {y}L{xs[1]} {y}" if xs[0] != xs[1] else loop
            right += GAP if xs[0] == xs[1] else 0
            line = f'<path class="{r.kind}" d="{path}"{start}/>'
        else:
            dot = "d" if r.kind == "w" else "b"
            line = f'<path class="{r.kind}" d="M{min(xs)} {y}L{right} {y}"/>'
            line += "".join(f'<circle class="{dot}" cx="{x}" cy="{y}" r="3"/>' for x in xs)
        left = edge - int(wide(r.label, 10)) - 4
        return (f'{line}<path class="j" d="M{right + 4} {y}L{max(right + 4, left)} {y}"/>'
                f'<text class="s" x="{edge}" y="{y + 4}" text-anchor="end">{escape(r.label)}</text>')  # fmt: skip

    def _box(self, x: int, y: int, kind: str, name: str, note: str) -> str:
        round_ = 10 if kind == "m" else 2
        return (f'<rect class="{kind}" x="{x}" y="{y}" width="{self.box}" height="{HIGH}" rx="{round_}"/>'
                f'<text x="{x + 8}" y="{y + 17}">{escape(name)}</text>'
                f'<text class="s" x="{x + 8}" y="{y + 32}">{escape(note)}</text>')  # fmt: skip


def _joint(kind: str, x: int, rows: list[int], box: int, middle: int) -> list[str]:
    """A bracket from the labels of the rows to the box of their unit or link."""
    if not rows:
        return []
    bar = f"M{x} {rows[0]}h5V{rows[-1]}h-5" if len(rows) > 1 else f"M{x} {rows[0]}h5"
    return [f'<path class="{kind}" d="{bar}M{x + 5} {middle}L{box} {middle}"/>']
