"""The roofline picture: speed over intensity, below what the machine computes and reads per second at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .asked import TITLES, Row, rows
from .intensity import intensity, within
from .plot import FAINT, GRID, INKS, SHAPES, Log, drawing, mark, stroke, text

CAPTION = """Speed over intensity: operations per byte that a call moves at least, every operand once in, every result
once out (`benchmarks/intensity.py`). Slanted lines are what a core reads per second from each cache and from memory,
level ones what it computes, both measured in the same run as `isam system calibrate` measures them. Of functions of
rows an element counts as one operation. What lies in a cache when a call begins may be above the line of memory.
Of convolutions the products with the zeros that pad the image count, too. Who leaves them out may be above the level
line: of a 7 x 7 image and 3 x 3 taps they are 18% of all products. Below a panel it says how near to the line those
above it come by the products within the image alone."""
WIDTH, MARGIN, TOP = 1120, 16, 76
WIDE, HIGH, LEFT, HEAD, FOOT = 466, 300, 60, 42, 60  # pixels of a panel: of its plot, then around it
DASHES = ("", "9 3", "4 3", "1.5 3")  # of what is read, the nearest first
ROOF = "#333"
PANELS = (  # title, type of the first factor, groups
    ("Tiny products in f32", "f32", ("tiny",)),
    ("Products in f32", "f32", ("square", "deepbench")),
    ("Convolutions in f32", "f32", ("resnet50", "resnet50x28", "depthwise")),
    ("Layers in f32", "f32", ("rows", "blocks", "attention", "gru")),
    ("Linear algebra in f32", "f32", ("algebra",)),
    ("Products and convolutions in bf16", "bf16", ("bf16", "resnet50-bf16")),
    ("Layers in bf16", "bf16", ("blocks-bf16", "attention-bf16", "gru-bf16")),
    ("Products of bytes", "u8", ("int8",)),
)
SHORT = {"resnet50": "ResNet-50", "resnet50x28": "28 images", "depthwise": "Depthwise", "rows": "Rows",
         "blocks": "Blocks", "gru": "Recurrent units", "deepbench": "DeepBench", "tiny": "Tiny",
         "square": "Square", "bf16": "Products", "int8": "Products"}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A shape: operations per byte, operations per second of ISAM and of the best peer; ``within``: the share of the
    operations counted that cannot be left out."""

    row: Row
    x: float
    ours: float
    theirs: float
    within: float = 1.0


def picture(results: dict[str, Any]) -> str:
    """A panel per type and kind of kernel, those that were measured; all with the roofs of one machine."""
    made = [(title, dtype, some) for title, dtype, groups in PANELS if (some := points(results, groups))]
    cpu = results.get("machine", {}).get("cpu", "")
    parts = [text(MARGIN, 26, f"Speed below the roofs of the machine{', ' * bool(cpu)}{cpu}", more=' font-size="16"')]
    if not made:
        return drawing(WIDTH, 60, [*parts, text(MARGIN, 48, "No shape was measured beside a peer.")])
    parts += _legend(results["roofs"]["reads"])
    for n, (title, dtype, some) in enumerate(made):
        left = MARGIN + LEFT + (n % 2) * (WIDTH - MARGIN) / 2
        parts += _panel(title, dtype, some, results["roofs"], left, TOP + n // 2 * (HEAD + HIGH + FOOT))
    return drawing(WIDTH, TOP + -(-len(made) // 2) * (HEAD + HIGH + FOOT), parts)


def points(results: dict[str, Any], groups: tuple[str, ...]) -> list[Point]:
    """The measured shapes of some groups, in order; those that no group has any more are left out."""
    found = []
    for r in rows(results, groups):
        x = intensity(r.group, r.name)
        theirs = r.row["flops"] / r.row["times"][r.form]["best"]
        if x:
            found.append(Point(r, x, theirs * r.ratio, theirs, within(r.group, r.name)))
    return found


def _legend(reads: dict[str, float]) -> list[str]:
    """What fillings and lines mean, for all panels."""
    y = 50
    parts = [mark("circle", MARGIN + 6, y - 4, ROOF, True), text(MARGIN + 16, y, "ISAM"),
             mark("circle", MARGIN + 66, y - 4, ROOF, False), text(MARGIN + 76, y, "its best peer")]  # fmt: skip
    for n, (memory, rate) in enumerate(reads.items()):
        x = MARGIN + 176 + 166 * n
        parts.append(stroke((x, y - 4), (x + 34, y - 4), ROOF, 1.5, DASHES[min(n, 3)]))
        name = memory.upper() if n + 1 < len(reads) else "memory"
        parts.append(text(x + 40, y, f"{name}: {rate / 1e9:.3g} GB/s"))
    return parts


def _panel(title: str, dtype: str, some: list[Point], roofs: dict[str, Any], left: float, top: float) -> list[str]:
    """One plot, its title and groups above it."""
    peak: float | None = roofs["rates"].get(dtype)
    x, y = _axes(some, roofs["reads"], peak, left, top + HEAD)
    groups = list(dict.fromkeys(p.row.group for p in some))
    parts = [text(left, top + 14, title, more=' font-weight="bold"'), *_grid(x, y)]
    said = f"computes {peak / 1e9:.3g} Gop/s at most" if peak else "no level line was measured"
    parts += [text(x.end, top + 14, said, "end", ' fill="#333"'), *_roofs(x, y, roofs["reads"], peak)]
    for n, group in enumerate(groups):
        at, kind = left + 6 + 116 * n, group.removesuffix("-bf16")
        parts.append(mark(SHAPES[n], at, top + HEAD - 14, INKS[n], True))
        parts.append(text(at + 10, top + HEAD - 10, SHORT.get(kind) or TITLES[kind]))
    for n, words in enumerate(above(some, peak)):
        parts.append(text(x.end, y.begin + 44 + 12 * n, words, "end", ' font-size="11"'))
    for p in some:
        n = groups.index(p.row.group)
        parts += _marks(p, x, y, INKS[n], SHAPES[n])
    return parts


def above(some: list[Point], peak: float | None) -> list[str]:
    """What is to be said of marks above the level line, a line each; nothing where there are none."""
    found = [(v / peak, v * p.within / peak) for p in some for v in (p.ours, p.theirs) if peak and v > peak]
    padded, odd = [within for _, within in found if within <= 1], [far for far, within in found if within > 1]
    return [f"{len(some)} above the {what} {max(some):.1%} of it" for some, what in
            ((padded, "line: without products with padding at most"), (odd, "measured peak: up to")) if some]


def _axes(some: list[Point], reads: dict[str, float], peak: float | None, left: float, top: float) -> tuple[Log, Log]:
    """All marks have room, and so has the place where memory bounds as much as computing does."""
    xs, speeds = [p.x for p in some], [v for p in some for v in (p.ours, p.theirs)]
    if peak:
        speeds.append(peak)
        xs += [peak / rate for rate in reads.values() if rate == min(reads.values())]
    return (Log(0.6 * min(xs), 1.5 * max(xs), left, left + WIDE),
            Log(0.6 * min(speeds), 1.5 * max(speeds), top + HIGH, top))  # fmt: skip


def _grid(x: Log, y: Log) -> list[str]:
    """Lines at round numbers, with these; what the axes say."""
    parts = []
    for v in x.ticks(36):
        parts.append(stroke((x.at(v), y.begin), (x.at(v), y.end), GRID))
        parts.append(text(x.at(v), y.begin + 15, f"{v:g}", "middle", ' font-size="11"'))
    for v in y.ticks(24):
        parts.append(stroke((x.begin, y.at(v)), (x.end, y.at(v)), GRID))
        parts.append(text(x.begin - 6, y.at(v) + 4, f"{v / 1e9:g}", "end", ' font-size="11"'))
    parts.append(text((x.begin + x.end) / 2, y.begin + 30, "operations per byte", "middle", ' font-size="11"'))
    middle = f"translate({x.begin - 44:.1f} {(y.begin + y.end) / 2:.1f}) rotate(-90)"
    return [*parts, f'<text transform="{middle}" text-anchor="middle" font-size="11">Gop/s</text>']


def _roofs(x: Log, y: Log, reads: dict[str, float], peak: float | None) -> list[str]:
    """Slanted lines up to the level one, which begins where the quickest memory reaches it; what is on the axes."""
    parts = []
    for n, rate in enumerate(reads.values()):
        begin, end = max(x.low, y.low / rate), min(x.high, (peak or y.high) / rate)
        if begin < end:
            a, b = ((x.at(v), y.at(v * rate)) for v in (begin, end))
            parts.append(stroke(a, b, ROOF, 1.5, DASHES[min(n, 3)]))
    if peak:
        begin = max(x.low, peak / max(reads.values(), default=peak))
        parts.append(stroke((x.at(min(begin, x.high)), y.at(peak)), (x.end, y.at(peak)), ROOF, 2))
    return parts


def _marks(p: Point, x: Log, y: Log, ink: str, shape: str) -> list[str]:
    """The peer's, ISAM's on top of it, a line between."""
    at, ours, theirs = x.at(p.x), y.at(p.ours), y.at(p.theirs)
    name = f"{p.row.name}: {p.ours / 1e9:.3g} Gop/s, {p.row.peer} {p.theirs / 1e9:.3g}"
    return [stroke((at, ours), (at, theirs), FAINT), mark(shape, at, theirs, ink, False, name, 3.5),
            mark(shape, at, ours, ink, True, name, 3.5)]  # fmt: skip
