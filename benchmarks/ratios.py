"""The picture of ratios: every measured shape beside its best peer, on one logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .asked import TITLES, Row, plain, rows, verdicts
from .plot import FAINT, GRID, INKS, Log, drawing, mark, stroke, text
from .shapes import GROUPS
from .targets import speeds

WIDTH, MARGIN, COLUMN = 1120, 16, 530  # pixels: all of it, around, of one of the two columns
NAMES, VALUES = 186, 118  # of a column, for the name on the left and the number and the peer on the right
TOP, LINE, HEAD, SAYING, FOOT, GAP = 70, 15, 22, 13, 18, 14  # SAYING: a further line of a verdict
AHEAD, BEHIND, ASKED = INKS[0], INKS[1], "#333"
SMALL = 2.6  # marks of references


@dataclass(frozen=True)
class Panel:
    """A group, or a function of rows: what it is called, its shapes, what was asked of them."""

    title: str
    rows: list[Row]
    verdicts: list[str]

    @property
    def head(self) -> float:
        """Pixels above its shapes."""
        return HEAD + SAYING * max(0, len(self.verdicts) - 1)

    @property
    def height(self) -> float:
        """All of its pixels."""
        return self.head + LINE * len(self.rows) + FOOT + GAP


def picture(results: dict[str, Any], machine: str = "") -> str:
    """All groups of some results, one below the other in two columns. ``machine``: its name, for the title."""
    made = panels(results)
    at = machine or results.get("machine", {}).get("cpu", "")
    parts = [text(MARGIN, 26, f"How many times as fast as its best peer{', ' * bool(at)}{at}", more=' font-size="16"')]
    if not made:
        return drawing(WIDTH, 60, [*parts, text(MARGIN, 48, "No shape was measured beside a peer.")])
    every = [r for p in made for r in p.rows]
    parts += _legend(sorted({n for r in every for n, _ in r.beside}))
    low, high = _range(every)
    ends = []
    for n, column in enumerate(columns([p.height for p in made])):
        left, y = MARGIN + n * (WIDTH - 2 * MARGIN - COLUMN), float(TOP)
        scale = Log(low, high, left + NAMES, left + COLUMN - VALUES)
        for panel in made[column]:
            parts += _panel(panel, scale, left, y)
            y += panel.height
        ends.append(y)
    return drawing(WIDTH, max(ends), parts)


def panels(results: dict[str, Any]) -> list[Panel]:
    """Per group its shapes, of functions of rows per function; groups without a shape that has a peer are left out."""
    made: dict[str, list[Row]] = {}
    for r in rows(results, GROUPS):
        key = r.name.partition(" ")[0] if r.group == "rows" else r.group
        made.setdefault(key, []).append(r)
    targets = speeds(results)
    return [Panel(TITLES.get(key, key), some, verdicts(some, targets)) for key, some in made.items()]


def columns(tall: Sequence[float]) -> list[slice]:
    """Which panels of such heights go into the first column and which into the second, so that the longer one is as
    short as it can be."""
    cut = min(range(1, len(tall) + 1), key=lambda k: max(sum(tall[:k]), sum(tall[k:])))
    return [slice(0, cut), slice(cut, len(tall))]


def _range(all_rows: list[Row]) -> tuple[float, float]:
    """All ratios, what was asked for, references, and 1, with some room."""
    values = [1.0, *(v for r in all_rows for v in (r.ratio, r.asked, *(v for _, v in r.beside)) if v)]
    return min(values) * 0.9, max(values) * 1.15


def _legend(references: list[str]) -> list[str]:
    y = 50
    parts = [
        mark("circle", MARGIN + 6, y - 4, AHEAD, True), text(MARGIN + 16, y, "ISAM is faster"),
        mark("circle", MARGIN + 122, y - 4, BEHIND, False), text(MARGIN + 132, y, "the peer is faster"),
        stroke((MARGIN + 256, y - 10), (MARGIN + 256, y + 2), ASKED, 1.6), text(MARGIN + 264, y, "as fast (1)"),
        stroke((MARGIN + 344, y - 10), (MARGIN + 344, y + 2), ASKED, 1.4, "3 2"),
        text(MARGIN + 352, y, "asked for, of the shape or of a mean that it is in, against the library named there"),
    ]  # fmt: skip
    if references:
        parts += [mark("diamond", MARGIN + 886, y - 4, FAINT, False, "", SMALL),
                  text(MARGIN + 896, y, f"{', '.join(references)}, called from C")]  # fmt: skip
    return parts


def _panel(panel: Panel, scale: Log, left: float, top: float) -> list[str]:
    """One group: its title with the verdicts, a line of the picture per shape, the numbers below."""
    first = top + panel.head
    last = first + LINE * len(panel.rows)
    parts = [text(left, top + 14, panel.title, more=' font-weight="bold"')]
    for n, line in enumerate(panel.verdicts):
        parts.append(text(left + COLUMN, top + 14 + SAYING * n, line, "end", ' font-size="10.5" fill="#333"'))
    for tick in scale.ticks(19):
        x = scale.at(tick)
        parts.append(stroke((x, first), (x, last), GRID))
        parts.append(text(x, last + 13, f"{tick:g}", "middle", ' font-size="10" fill="#555"'))
    parts.append(stroke((scale.at(1), first), (scale.at(1), last), ASKED, 1.6))
    for n, row in enumerate(panel.rows):
        parts += _row(row, scale, left, first + LINE * n)
    return parts


def _row(row: Row, scale: Log, left: float, top: float) -> list[str]:
    y, x, ahead = top + LINE / 2, scale.at(row.ratio), row.ratio >= 1
    ink = AHEAD if ahead else BEHIND
    parts = [text(left + NAMES - 8, y + 4, row.short, "end", ' font-size="11"')]
    if row.asked:
        parts.append(stroke((scale.at(row.asked), top), (scale.at(row.asked), top + LINE), ASKED, 1.4, "3 2"))
    parts += [mark("diamond", scale.at(v), y, FAINT, False, f"{name} {plain(v)}", SMALL) for name, v in row.beside]
    bold = "" if ahead else ' font-weight="bold"'
    return [
        *parts,
        stroke((scale.at(1), y), (x, y), ink, 2),
        mark("circle", x, y, ink, ahead),
        text(scale.end + 40, y + 4, plain(row.ratio), "end", f' font-size="11"{bold}'),
        text(scale.end + 46, y + 4, row.peer, "", f' font-size="10" fill="{FAINT}"'),
    ]
