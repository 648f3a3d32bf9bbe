"""The picture of ratios: every measured shape beside its best peer, on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .asked import TITLES, Row, rows, verdict
from .plot import FAINT, GRID, INKS, Log, drawing, mark, stroke, text
from .shapes import GROUPS

WIDTH, MARGIN, COLUMN = 1120, 16, 530  # pixels: all of it, around, of one of the two columns
NAMES, VALUES = 186, 92  # of a column, for the name on the left and the number and the peer on the right
TOP, LINE, HEAD, FOOT, GAP = 70, 15, 22, 18, 14
AHEAD, BEHIND, ASKED = INKS[0], INKS[1], "#333"
PEERS = {"numpy": "NumPy", "onednn": "oneDNN"}
Panel = tuple[str, list[Row]]  # title, shapes


def picture(results: dict[str, Any], machine: str = "") -> str:
    """All groups of some results, one below the other in two columns. ``machine``: its name, for the title."""
    made = panels(results)
    at = machine or results.get("machine", {}).get("cpu", "")
    parts = [text(MARGIN, 26, f"How many times as fast as its best peer{', ' * bool(at)}{at}", more=' font-size="16"')]
    if not made:
        return drawing(WIDTH, 60, [*parts, text(MARGIN, 48, "No shape was measured beside a peer.")])
    parts += _legend()
    low, high = _range([r for _, some in made for r in some])
    ends = []
    for n, column in enumerate(columns([len(some) for _, some in made])):
        left, y = MARGIN + n * (WIDTH - 2 * MARGIN - COLUMN), TOP
        scale = Log(low, high, left + NAMES, left + COLUMN - VALUES)
        for title, some in made[column]:
            parts += _panel(title, some, scale, left, y)
            y += HEAD + LINE * len(some) + FOOT + GAP
        ends.append(y)
    return drawing(WIDTH, max(ends), parts)


def panels(results: dict[str, Any]) -> list[Panel]:
    """Per group its shapes, of functions of rows per function; groups without a shape that has a peer are left out."""
    made: dict[str, list[Row]] = {}
    for r in rows(results, GROUPS):
        key = r.name.partition(" ")[0] if r.group == "rows" else r.group
        made.setdefault(key, []).append(r)
    return [(TITLES.get(key, key), some) for key, some in made.items()]


def columns(counts: Sequence[int]) -> list[slice]:
    """Which panels of so many shapes go into the first column and which into the second, so that the longer one is as
    short as it can be."""
    tall = [HEAD + LINE * n + FOOT + GAP for n in counts]
    cut = min(range(1, len(tall) + 1), key=lambda k: max(sum(tall[:k]), sum(tall[k:])))
    return [slice(0, cut), slice(cut, len(tall))]


def _range(all_rows: list[Row]) -> tuple[float, float]:
    """All ratios, what was asked for, and 1, with some room."""
    values = [1.0, *(v for r in all_rows for v in (r.ratio, r.asked))]
    return min(values) * 0.9, max(values) * 1.15


def _legend() -> list[str]:
    y = 50
    return [
        mark("circle", MARGIN + 6, y - 4, AHEAD, True), text(MARGIN + 16, y, "ISAM is faster"),
        mark("circle", MARGIN + 122, y - 4, BEHIND, False), text(MARGIN + 132, y, "the peer is faster"),
        stroke((MARGIN + 256, y - 10), (MARGIN + 256, y + 2), ASKED, 1.6), text(MARGIN + 264, y, "as fast (1)"),
        stroke((MARGIN + 344, y - 10), (MARGIN + 344, y + 2), ASKED, 1.4, "3 2"),
        text(MARGIN + 352, y, "asked for, of the shape or of the mean of its group"),
    ]  # fmt: skip


def _panel(title: str, some: list[Row], scale: Log, left: float, top: float) -> list[str]:
    """One group: its title with the verdict, a line of the picture per shape, the numbers below."""
    first, last = top + HEAD, top + HEAD + LINE * len(some)
    parts = [text(left, top + 14, title, more=' font-weight="bold"'),
             text(left + COLUMN, top + 14, verdict(some), "end", ' fill="#333"')]  # fmt: skip
    for tick in scale.ticks(19):
        x = scale.at(tick)
        parts.append(stroke((x, first), (x, last), GRID))
        parts.append(text(x, last + 13, f"{tick:g}", "middle", ' font-size="10" fill="#555"'))
    parts.append(stroke((scale.at(1), first), (scale.at(1), last), ASKED, 1.6))
    for n, row in enumerate(some):
        parts += _row(row, scale, left, first + LINE * n)
    return parts


def _row(row: Row, scale: Log, left: float, top: float) -> list[str]:
    y, x, ahead = top + LINE / 2, scale.at(row.ratio), row.ratio >= 1
    ink, line = AHEAD if ahead else BEHIND, scale.at(row.asked)
    number = f"{row.ratio:.2f}" if 0.005 <= row.ratio < 1000 else f"{row.ratio:.1e}"
    peer = PEERS.get(row.peer, row.peer)
    return [
        text(left + NAMES - 8, y + 4, row.short, "end", ' font-size="11"'),
        stroke((line, top), (line, top + LINE), ASKED, 1.4, "3 2"),
        stroke((scale.at(1), y), (x, y), ink, 2),
        mark("circle", x, y, ink, ahead),
        text(scale.end + 40, y + 4, number, "end", ' font-size="11"' + ("" if ahead else ' font-weight="bold"')),
        text(scale.end + 46, y + 4, peer, "", f' font-size="10" fill="{FAINT}"'),
    ]
