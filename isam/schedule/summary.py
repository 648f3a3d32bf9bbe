"""Unrolled calls summarised: runs of like calls, repeated groups of runs, hulls of tiles and ranges of places."""

from __future__ import annotations

from collections.abc import Sequence

from isam.classes import dataclass
from isam.schedule.tree import Issue, Place, Tile

LONGEST = 12  # runs in a repeated group


@dataclass(frozen=True, slots=True)
class Run:
    """``count`` like calls, of which ``issues`` are all (more than ``count`` when the run stands in a group)."""

    count: int
    issues: tuple[Issue, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """``parts`` carried out ``times`` times."""

    times: int
    parts: tuple[Run | Group, ...]


def groups(issues: Sequence[Issue]) -> list[Run | Group]:
    """Like neighbours as runs, then repeated sequences of runs as groups, in order of execution."""
    runs: list[tuple[tuple, Run]] = []
    for i in issues:
        key = _like(i)
        if runs and runs[-1][0] == key:
            runs[-1] = (key, Run(runs[-1][1].count + 1, (*runs[-1][1].issues, i)))
        else:
            runs.append((key, Run(1, (i,))))
    return _repeats([((*key, r.count), r) for key, r in runs])


def _repeats(runs: list[tuple[tuple, Run]]) -> list[Run | Group]:
    out: list[Run | Group] = []
    at = 0
    while at < len(runs):
        length, times = _best(runs, at)
        if times < 2:
            out.append(runs[at][1])
            at += 1
            continue
        parts = []
        for p in range(length):
            members = [runs[at + t * length + p][1] for t in range(times)]
            parts.append(Run(members[0].count, tuple(i for m in members for i in m.issues)))
        out.append(Group(times, tuple(parts)))
        at += length * times
    return out


def _best(runs: list[tuple[tuple, Run]], at: int) -> tuple[int, int]:
    """The repeated sequence from ``at`` on that covers most: its length and how often it stands there."""
    best = (1, 1)
    keys = [key for key, _ in runs[at:]]
    for length in range(2, min(LONGEST, (len(runs) - at) // 2) + 1):
        times = 1
        while keys[:length] == keys[times * length : (times + 1) * length]:
            times += 1
        if times > 1 and times * length > best[0] * best[1]:
            best = (length, times)
    return best


def _like(i: Issue) -> tuple:
    operands = tuple(
        (o.name, t.buffer, t.shape, t.steps, o.place.memory, o.place.base, tuple(s.terms for s in t.start))
        for o, t in ((o, o.tile) for o in i.operands)
    )
    return (i.unit, i.instruction, i.sizes, i.nest, i.prefetch, operands)


def hull(tiles: Sequence[Tile]) -> Tile:
    """The smallest box of unit steps around tiles whose starts differ by constants; a single tile stays as it is."""
    first = tiles[0]
    if all(t == first for t in tiles):
        return first
    start, shape, steps = [], [], []
    for d, s in enumerate(first.start):
        lo = min(t.start[d].const for t in tiles)
        hi = max(t.start[d].const + (t.shape[d] - 1) * t.steps[d] + 1 for t in tiles)
        start.append(s + (lo - s.const))
        alone = all(t.start[d] == s for t in tiles)
        shape.append(first.shape[d] if alone else hi - lo)
        steps.append(first.steps[d] if alone else 1)
    return Tile(first.buffer, tuple(start), tuple(shape), tuple(steps))


def place_range(places: Sequence[Place]) -> str:
    """Where they all lie: ``acc[0..27]``, ``sp+0..96``, ``dram``."""
    p = places[0]
    cells = sorted({q.cell for q in places if q.cell is not None})
    if cells:
        return f"{p.memory}[{cells[0]}]" if len(cells) == 1 else f"{p.memory}[{cells[0]}..{cells[-1]}]"
    if p.base:
        return f"{p.memory}.{p.base}" if p.base not in {"", p.memory} else p.memory
    offsets = sorted({q.offset.const for q in places})
    more = f" + {p.offset - p.offset.const}" if p.offset.terms else ""
    return f"{p.memory}+{offsets[0]}{more}" if len(offsets) == 1 else f"{p.memory}+{offsets[0]}..{offsets[-1]}{more}"
