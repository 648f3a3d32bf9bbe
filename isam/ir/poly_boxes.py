"""A concrete set as a few disjoint boxes: how a ``where`` domain (padding) becomes loops."""

from __future__ import annotations

from isam.ir.poly import Set, from_bounds

Interval = tuple[int, int]
Box = tuple[Interval, ...]


def split(s: Set, limit: int) -> list[Box] | None:
    """Boxes found by cutting along the narrowest dimension whose slices are not all alike; equal neighbours merge.

    ``s`` has no parameters and is not empty. Returns ``None`` when it is unbounded or needs more than ``limit`` boxes.
    Cost: one isl question per value of a dimension that is cut, so wide ones (over 4 times the limit) are not tried.
    """
    if limit < 1:
        return None
    bounds = tuple(i for n in s.names if (i := s.interval(n)) is not None)
    if len(bounds) != len(s.names):
        return None
    if from_bounds(s.names, bounds).is_subset(s):
        return [bounds]
    widths = sorted((hi - lo, k) for k, (lo, hi) in enumerate(bounds) if hi > lo)
    for width, k in widths:
        if width >= 4 * limit:
            return None
        runs = _slices(s, s.names[k], bounds[k])
        if len(runs) == 1 and runs[0][0] == bounds[k]:
            continue  # every slice is the same: this dimension is a free factor
        return _join(k, runs, limit)
    return None


def _slices(s: Set, name: str, bounds: Interval) -> list[tuple[Interval, Set]]:
    """Maximal intervals of a dimension with equal, non-empty slices."""
    runs: list[tuple[Interval, Set]] = []
    for v in range(bounds[0], bounds[1] + 1):
        cut = s.slice(name, v)
        if cut.is_empty():
            continue
        if runs and runs[-1][0][1] == v - 1 and cut.is_equal(runs[-1][1]):
            runs[-1] = ((runs[-1][0][0], v), runs[-1][1])
        else:
            runs.append(((v, v), cut))
    return runs


def _join(k: int, runs: list[tuple[Interval, Set]], limit: int) -> list[Box] | None:
    out: list[Box] = []
    for interval, cut in runs:
        inner = split(cut, limit - len(out))
        if inner is None:
            return None
        out += [(*b[:k], interval, *b[k:]) for b in inner]
    return out if len(out) <= limit else None
