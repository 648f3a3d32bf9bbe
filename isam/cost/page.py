"""A schedule in time as one page of HTML that fetches nothing: a picture of the streams, who was busy, bounds, tree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from html import escape

from isam.cost.occupancy import occupancy
from isam.cost.perfetto import events_of
from isam.cost.report import Report, duration, report
from isam.cost.timeline import TICK, Event
from isam.schedule.text import print_schedule
from isam.schedule.tree import Schedule
from isam.system.draw_mesh import drawing
from isam.system.show import bytes_text

MOST = 50_000  # events drawn
WIDE, ROW, LEFT = 1100, 18, 210
HIGH, LITTLE = 46, 4  # height of a memory's curve; where less than one part in so many is used, it fills the height
SVG = 'xmlns="http://www.w3.org/2000/svg" style="font:12px sans-serif"'  # each picture is one that stands alone
COLOURS = ("#4878a8", "#c0504d", "#6a9a4a", "#8064a2", "#e08a1e", "#2ab0b0", "#e377c2", "#7a5230", "#222222", "#c9b400",
           "#9fd0f5", "#a6a6a6")  # fmt: skip
STYLE = """body{font:14px sans-serif;margin:2em;max-width:1300px;color:#222}
table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;text-align:left}
pre{background:#f6f6f6;padding:1em;overflow-x:auto}"""


def page(schedule: Schedule, symbols: Mapping[str, int] | None = None) -> str:
    """The whole page."""
    told, (events, note) = report(schedule, symbols), events_of(schedule, symbols, MOST)
    name = escape(f"{schedule.kernel.name} on {schedule.system.name}")
    far = f", {told.distance:.2f} times the least ({escape(told.floor.name)})" if told.distance is not None else ""
    busy = ((kind, escape(n), _bar(share), escape(did)) for kind, n, share, did in told.rows())
    least = ((duration(b.seconds), escape(str(b)), escape(b.why)) for b in told.floor.bounds)
    return "\n".join([
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{name}</title><style>{STYLE}</style><h1>{name}</h1>",
        f"<p>{duration(told.time.seconds)} for {told.time.calls} calls, {told.clocks}{far}</p>",
        f"<h2>Streams</h2><p>{note}</p>", _streams(schedule, events),
        "<h2>Memories</h2>", _memories(schedule, events),
        *_meshes(schedule, told),
        "<h2>Busy</h2>", _table(("", "", "share of the time", ""), busy),
        f"<h2>At least, {told.clocks}</h2>", _table(("time", "of", "counted"), least),
        f"<h2>Schedule</h2><pre>{escape(print_schedule(schedule))}</pre></html>",
    ])  # fmt: skip


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows]
    return "<table><tr>" + "".join(f"<th>{h}</th>" for h in head) + "</tr>" + "".join(lines) + "</table>"


def _bar(share: float) -> str:
    width = round(160 * share, 1)
    return (f'<svg {SVG} width="220" height="14"><rect width="160" height="12" fill="#eee"/><rect width="{width}" '
            f'height="12" fill="{COLOURS[0]}"/><text x="168" y="11">{share:.1%}</text></svg>')  # fmt: skip


def _streams(schedule: Schedule, events: list[Event]) -> str:
    """A row per unit and instance that did something; what is closer than a pixel is drawn as one."""
    end = max((e.finish for e in events), default=0) or 1
    scale = WIDE / end
    order = {u: n for n, u in enumerate(schedule.system.units)}
    rows: dict[tuple[int, int, str], list[tuple[float, float, str]]] = {}
    names = {n: colours(k) for k, n in enumerate(dict.fromkeys(e.issue.instruction for e in events))}
    for e in events:
        row = rows.setdefault((e.instance, order[e.issue.unit], e.issue.unit), [])
        begin, far, name = e.start * scale, e.free * scale, e.issue.instruction
        if row and row[-1][2] == name and begin - row[-1][1] < 0.5:
            row[-1] = row[-1][0], far, name
        else:
            row.append((begin, far, name))
    bottom = len(rows) * ROW
    parts = [_grid(end, bottom)]
    for k, ((instance, _, unit), spans) in enumerate(sorted(rows.items())):
        label = unit + (f" {instance}" if schedule.system.replica_of(unit) else "")
        parts.append(f'<text x="0" y="{k * ROW + 13}">{escape(label)}</text>')
        for name in dict.fromkeys(n for _, _, n in spans):
            mine = [(LEFT + a, max(b - a, 0.5)) for a, b, n in spans if n == name]
            bars = "".join(_bar_of(names[name], a, k * ROW + 2, width, ROW - 4) for a, width in mine)
            parts.append(f"<g><title>{escape(name)}</title>{bars}</g>")
    parts.append(f'<text x="{LEFT}" y="{bottom + 14}">0</text><text x="{LEFT + WIDE - 60}" y="{bottom + 14}">'
                 f"{duration(end * TICK)}</text>")  # fmt: skip
    parts += [f'<text x="{x:.1f}" y="{bottom + 14}">{told}</text>' for x, told in ticks(end)]
    legend = " ".join(f'<svg {SVG} width="12" height="12">{_bar_of(c, 0, 0, 12, 12)}</svg> {escape(n)}&#8195;'
                      for n, c in names.items())  # fmt: skip
    return f'<svg {SVG} width="{LEFT + WIDE}" height="{bottom + 20}">{"".join(parts)}</svg><p>{legend}</p>'


def colours(k: int) -> tuple[str, ...]:
    """How the instruction number ``k`` is drawn: in one colour each while they last, then in two, one above the other.
    """
    turn, k = divmod(k, len(COLOURS))
    return (COLOURS[k], COLOURS[(k + turn) % len(COLOURS)])[: 1 + (turn > 0)]


def _bar_of(colour: tuple[str, ...], x: float, y: float, width: float, height: float) -> str:
    high = height / len(colour)
    return "".join(f'<rect x="{x:.1f}" y="{y + n * high:g}" width="{width:.1f}" height="{high:g}" fill="{c}"/>'
                   for n, c in enumerate(colour))  # fmt: skip


def ticks(end: int) -> list[tuple[float, str]]:
    """Where along the picture round times lie that have room between 0 and the end, and what they are."""
    whole = end * TICK
    power = 10.0 ** math.floor(math.log10(whole / 4))
    step = next(step for step in (5 * power, 2 * power, power) if step * 4 <= whole)
    places = [(LEFT + WIDE * n * step / whole, duration(n * step)) for n in range(1, math.ceil(whole / step))]
    return [(x, told) for x, told in places if x < LEFT + WIDE - 130]


def _grid(end: int, bottom: int) -> str:
    return "".join(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{bottom}" stroke="#ccc"/>' for x, _ in ticks(end))


def _meshes(schedule: Schedule, told: Report) -> list[str]:
    """The channels of each mesh, the wider the busier."""
    out = []
    for name, channels in told.time.meshes.items():
        mesh = schedule.system.meshes[name]
        width, height, inside = drawing(mesh, {c: told.time.share(w) for c, w in channels.items()})
        out.append(f"<h2>Mesh {escape(name)}</h2><p>Where the instances of {escape(mesh.replica)} stand; the wider a "
                   f'channel, the busier</p><svg {SVG} width="{width}" height="{height}">{inside}</svg>')  # fmt: skip
    return out


def _memories(schedule: Schedule, events: list[Event]) -> str:
    """How much of each memory is in use: of its capacity or, where that is little, of the most that is."""
    end, parts, used = max((e.finish for e in events), default=0) or 1, [], occupancy(schedule, events)
    for k, ((memory, instance), points) in enumerate(used.items()):
        room, foot = schedule.system.memories[memory].capacity, (k + 1) * (HIGH + 6)
        label = memory + (f" {instance}" if schedule.system.replica_of(memory) else "")
        most = max((size for _, size in points), default=0)
        top = most if 0 < most * LITTLE < room else room
        line, last = [f"M{LEFT},{foot}"], float(foot)
        for moment, size in points:
            x, y = LEFT + WIDE * moment / end, foot - HIGH * size / top
            line.append(f"L{x:.1f},{last:.1f}L{x:.1f},{y:.1f}")
            last = y
        words = (label, f"peak {bytes_text(most)} of {bytes_text(room)}", f"full height: {bytes_text(top)}")
        parts += [f'<text x="0" y="{foot - HIGH + 12 + 15 * n}">{escape(w)}</text>' for n, w in enumerate(words)]
        parts.append(f'<rect x="{LEFT}" y="{foot - HIGH}" width="{WIDE}" height="{HIGH}" fill="#f4f4f4"/>'
                     f'<path d="{"".join(line)}L{LEFT + WIDE},{foot}Z" fill="{COLOURS[0]}"/>')  # fmt: skip
    high = len(used) * (HIGH + 6) + 6
    return f'<svg {SVG} width="{LEFT + WIDE}" height="{high}">{"".join(parts)}{_grid(end, high)}</svg>'
