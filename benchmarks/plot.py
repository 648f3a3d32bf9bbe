"""Lines on logarithmic axes as an SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, BELOW = 720, 420, 70, 50
RIGHT, ABOVE = 190, 40
INKS = ("#1b6ca8", "#d1495b", "#2e933c", "#8d5a97", "#e08e0b", "#4d4d4d", "#00a0a0", "#a05000")


@dataclass(frozen=True)
class Line:
    """A name and its points, both coordinates above zero."""

    name: str
    points: Sequence[tuple[float, float]]


def chart(title: str, across: str, up: str, lines: Sequence[Line]) -> str:
    """A chart with decades as grid lines; equal input gives equal text."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    x0, x1 = log10(min(xs)), log10(max(xs))
    y0, y1 = floor(log10(min(ys))), ceil(log10(max(ys)))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - ABOVE - BELOW

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + wide * (log10(x) - x0) / ((x1 - x0) or 1), ABOVE + high * (y1 - log10(y)) / ((y1 - y0) or 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT + wide / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(18 {ABOVE + high / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(up)}</text>',
    ]
    for decade in range(y0, y1 + 1):
        _, y = at(min(xs), 10.0**decade)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g}</text>')
    for x in sorted(set(xs)):
        px, _ = at(x, 10.0**y0)
        parts.append(f'<text x="{px:.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{x:g}</text>')
    for n, line in enumerate(lines):
        ink = INKS[n % len(INKS)]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(x, y) for x, y in line.points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2"/>')
        y = ABOVE + 16 * n + 8
        parts.append(f'<line x1="{LEFT + wide + 14}" x2="{LEFT + wide + 34}" y1="{y}" y2="{y}" stroke="{ink}" '
                     f'stroke-width="2"/>')  # fmt: skip
        parts.append(f'<text x="{LEFT + wide + 40}" y="{y + 4}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
