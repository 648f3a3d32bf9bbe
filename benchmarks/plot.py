"""Lines and marks on logarithmic axes as an SVG, without a plotting library; equal input gives equal text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, BELOW = 720, 420, 70, 50
RIGHT, ABOVE = 190, 40
APART = 40  # pixels between the middles of numbers below an axis: five digits and a gap
INKS = ("#1b6ca8", "#d1495b", "#2e933c", "#8d5a97", "#e08e0b", "#4d4d4d", "#00a0a0", "#a05000")
GRID, FAINT = "#ddd", "#999"
SHAPES = ("circle", "square", "triangle", "diamond")  # marks tell groups apart without colour
CORNERS = {"square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
           "triangle": ((0, -1.2), (1.1, 0.8), (-1.1, 0.8)),
           "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0))}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A name and its points, both coordinates above zero."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Log:
    """A logarithmic axis: ``low`` lies at pixel ``begin``, ``high`` at ``end``."""

    low: float
    high: float
    begin: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value above zero."""
        low, high = log10(self.low), log10(self.high)
        return self.begin + (self.end - self.begin) * (log10(value) - low) / ((high - low) or 1)

    def decades(self) -> list[float]:
        """The powers of ten on it."""
        first, last = ceil(round(log10(self.low), 9)), floor(round(log10(self.high), 9))
        return [10.0**n for n in range(first, last + 1)]

    def ticks(self, apart: float) -> list[float]:
        """Round numbers on it, at least so many pixels apart: 1 first, then powers of ten, then those between."""
        tens = [10.0**n for n in range(floor(log10(self.low)), ceil(log10(self.high)) + 1)]
        found: list[float] = []
        for factor in (1, 2, 5, 3, 1.5, 7, 1.2, 8, 9, 6, 4):
            for value in sorted((float(f"{t * factor:.3g}") for t in tens), key=lambda v: abs(log10(v))):
                free = all(abs(self.at(value) - self.at(v)) >= apart for v in found)
                if self.low <= value <= self.high and free:
                    found.append(value)
        return sorted(found)


def drawing(width: float, height: float, parts: Sequence[str]) -> str:
    """The whole picture, on white."""
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" '
        f'font-size="12">',
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>', *parts, "</svg>", "",
    ])  # fmt: skip


def text(x: float, y: float, words: str, anchor: str = "", more: str = "") -> str:
    """Words that begin at a place, or (``anchor``) have their ``middle`` or ``end`` there."""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{anchor}{more}>{escape(words)}</text>'


def stroke(a: tuple[float, float], b: tuple[float, float], ink: str, width: float = 1, dash: str = "") -> str:
    """A straight line from one place to another."""
    dash = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}" stroke="{ink}" '
            f'stroke-width="{width:g}"{dash}/>')  # fmt: skip


def mark(shape: str, x: float, y: float, ink: str, filled: bool, name: str = "", size: float = 4) -> str:
    """One of ``SHAPES`` around a place, full or hollow; ``name``: what is shown when it is pointed at."""
    style = f'fill="{ink if filled else "white"}" stroke="{ink}" stroke-width="1.4"'
    inner = f"><title>{escape(name)}</title></" if name else ""
    if shape == "circle":
        tag, where = "circle", f'cx="{x:.1f}" cy="{y:.1f}" r="{size:g}"'
    else:
        corners = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in CORNERS[shape])
        tag, where = "polygon", f'points="{corners}"'
    return f"<{tag} {where} {style}" + (f"{inner}{tag}>" if inner else "/>")


def chart(title: str, across: str, up: str, lines: Sequence[Line]) -> str:
    """A chart with decades as grid lines."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - ABOVE - BELOW
    along = Log(min(xs), max(xs), LEFT, LEFT + wide)
    upwards = Log(10.0 ** floor(log10(min(ys))), 10.0 ** ceil(log10(max(ys))), ABOVE + high, ABOVE)
    parts = [
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(18 {ABOVE + high / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(up)}</text>',
    ]
    for decade in upwards.decades():
        y = upwards.at(decade)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{decade:g}</text>')
    for x in along.ticks(APART):
        parts.append(stroke((along.at(x), ABOVE + high), (along.at(x), ABOVE + high + 5), FAINT))
        parts.append(f'<text x="{along.at(x):.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{x:g}</text>')
    for n, line in enumerate(lines):
        ink = INKS[n % len(INKS)]
        path = " ".join(f"{along.at(x):.1f},{upwards.at(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2"/>')
        y = ABOVE + 16 * n + 8
        parts.append(f'<line x1="{LEFT + wide + 14}" x2="{LEFT + wide + 34}" y1="{y}" y2="{y}" stroke="{ink}" '
                     f'stroke-width="2"/>')  # fmt: skip
        parts.append(f'<text x="{LEFT + wide + 40}" y="{y + 4}">{escape(line.name)}</text>')
    return drawing(WIDTH, HEIGHT, parts)
