"""A mesh as a drawing: places with the numbers of their instances, ports beside them, channels the wider the busier."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from isam.system.groups import Mesh
from isam.system.mesh import Channel, Stop, neighbours, routes

CELL, SIDE, EDGE = 84, 36, 40  # from place to place, side of one, around the grid
THIN, THICK = 1.0, 9.0  # an idle channel, one that is always busy
Spot = tuple[float, float]


def drawing(mesh: Mesh, busy: Mapping[Channel, float] | None = None) -> tuple[int, int, str]:
    """Width, height and SVG elements. ``busy``: the share of the time that channels carry something; those that are
    not in it are drawn grey. The last two dimensions are a grid, of the others the grids stand side by side."""
    at = _spots(mesh)
    width = int(max(x for x, _ in at.values()) + SIDE + EDGE)
    height = int(max(y for _, y in at.values()) + SIDE + EDGE)
    told = routes(mesh)
    numbers = {p: i for i, p in enumerate(told.places)}
    beside = [c for memory, some in mesh.ports for p in some for c in (((memory, p), p), (p, (memory, p)))]
    channels = [*((a, b) for a in told.places for b in neighbours(mesh, a)), *beside]
    parts = [_channel(at, c, (busy or {}).get(c)) for c in channels]
    parts += [_place(at[p], str(numbers[p])) for p in told.places]
    parts += [_port(at[memory, p], memory) for memory, some in mesh.ports for p in some]
    return width, height, "".join(parts)


def _spots(mesh: Mesh) -> dict[Stop, Spot]:
    """The upper left corner of every place and port."""
    *outer, _, columns = (1, *mesh.shape) if len(mesh.shape) == 1 else mesh.shape
    out: dict[Stop, Spot] = {}
    for p in routes(mesh).places:
        *layers, row, column = (0, *p) if len(p) == 1 else p
        layer = 0
        for n, i in zip(outer, layers, strict=True):
            layer = layer * n + i
        out[p] = (EDGE + CELL * (column + layer * (columns + 1)) + SIDE, EDGE + CELL * row)
    taken: set[Spot] = set()
    for memory, some in mesh.ports:
        for p in some:
            x, y = out[p]
            right, below = (d < len(p) and p[~d] > (mesh.shape[~d] - 1) / 2 for d in (0, 1))
            corners = [(x + (CELL / 2 if r else -CELL / 2), y + (CELL / 2 if b else -CELL / 2))
                       for r, b in ((right, below), (not right, below), (right, not below), (not right, not below))]
            out[memory, p] = next((c for c in corners if c not in taken), corners[0])  # outwards first
            taken.add(out[memory, p])
    return out


def _channel(at: Mapping[Stop, Spot], c: Channel, share: float | None) -> str:
    """A line a little to the right of the straight one, so that both ways are seen."""
    (x1, y1), (x2, y2) = at[c[0]], at[c[1]]
    length = max(abs(x2 - x1), abs(y2 - y1)) or 1.0
    aside = (4 * (y1 - y2) / length, 4 * (x2 - x1) / length)
    half = SIDE / 2
    ends = f'x1="{x1 + half + aside[0]:.0f}" y1="{y1 + half + aside[1]:.0f}" ' \
           f'x2="{x2 + half + aside[0]:.0f}" y2="{y2 + half + aside[1]:.0f}"'  # fmt: skip
    thick = THIN if share is None else THIN + (THICK - THIN) * min(1.0, share)
    colour = "#bbb" if share is None else "#36619e"
    note = "" if share is None else f"<title>{escape(channel_name(c))}: {share:.1%}</title>"
    return f'<line {ends} stroke="{colour}" stroke-width="{thick:.1f}">{note}</line>'


def _place(at: Spot, number: str) -> str:
    x, y = at
    return (f'<rect x="{x:.0f}" y="{y:.0f}" width="{SIDE}" height="{SIDE}" rx="4" fill="#fdf3dc" stroke="#a07a1c"/>'
            f'<text x="{x + SIDE / 2:.0f}" y="{y + SIDE / 2 + 4:.0f}" text-anchor="middle">'
            f"{number}</text>")  # fmt: skip


def _port(at: Spot, memory: str) -> str:
    x, y = at
    return (f'<rect x="{x:.0f}" y="{y + 8:.0f}" width="{SIDE}" height="{SIDE - 16}" rx="8" fill="#e8f0fb" '
            f'stroke="#36619e"/><text x="{x + SIDE / 2:.0f}" y="{y + SIDE / 2 + 4:.0f}" text-anchor="middle" '
            f'font-size="10">{escape(memory)}</text>')  # fmt: skip


def channel_name(c: Channel) -> str:
    """A channel in words.

    >>> channel_name((("dram", (0, 0)), (0, 0))), channel_name(((0, 0), (0, 1)))
    ('dram -> 0,0', '0,0 -> 0,1')
    """
    return " -> ".join(map(_stop_name, c))


def _stop_name(stop: Stop) -> str:
    first, *rest = stop
    return first if isinstance(first, str) else ",".join(map(str, (first, *rest)))

