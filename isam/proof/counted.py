"""Coverage by counting (obligations 1, 4 and 5), where every bound is a number: how often each point is executed.

The boxes of all families are laid on a grid whose lines are where one of them begins or ends. A cell of the grid is in
a box as a whole or not at all, so one count stands for all of its points. What isl would have to subtract from one
another, many boxes between lines, is a sum of corners here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from isam.ir.affine import Affine
from isam.proof.boxes import Box, Family, dim
from isam.proof.context import Var
from isam.schedule.tree import Bound

BOXES, CELLS = 1 << 21, 1 << 25  # counted at most, of a whole domain
FEW_BOXES, FEW_CELLS = 1 << 17, 1 << 23  # in one of the many questions about what is done before something
STEP = 1 << 12  # corners and cells that are laid in the time of one step of ``sets.BUDGET``

Values = dict[str, np.ndarray]


def counted(families: Sequence[Family], domain: Box, where: Sequence[Affine]) -> str | None:
    """What is wrong with the coverage of the points of ``domain`` at which every ``where`` (over ``dim(0)``, ...) is at
    least 0; empty where each is in the families once. None where it cannot be counted: a bound is no number, or there
    are too many boxes or cells."""
    ends = [_numbers(e) for e in domain]
    names = {dim(d) for d in range(len(domain))}
    if not domain or any(e is None for e in ends) or any(n not in names for w in where for n in w.names):
        return None
    found = [_boxes(f) for f in families]
    if any(b is None for b in found) or sum(b.shape[-1] for b in found if b is not None) > BOXES:
        return None
    rank = len(domain)
    boxes = np.concatenate([b for b in found if b is not None] or [np.empty((rank, 2, 0), np.int64)], axis=2)
    box = np.array([e for e in ends if e is not None], np.int64).reshape(rank, 2)
    where = _cut(box, where)
    tied = {n for w in where for n in w.names}
    lines = _lines([np.append(boxes[d], box[d]) for d in range(rank)], tied, CELLS)
    if lines is None:
        return None
    have, want = _laid(boxes, lines), _inside(box, where, lines)
    wrong = np.argwhere(have != want)
    if not len(wrong):
        return ""
    at = tuple(wrong[0])
    point = {f"d{d}": int(lines[d][i]) for d, i in enumerate(at)}
    times = int(have[at])
    if times > 1:
        return f"points are executed {times} times: {point}"
    return f"a point outside the domain is executed: {point}" if times else f"a point is never executed: {point}"


def contained(
    target: Box,
    families: Sequence[Family],
    around: Sequence[Var],
    where: Sequence[Affine],
    spend: Callable[[int], object] = lambda _: None,
) -> bool | None:
    """Whether in every iteration of the loops ``around`` each point of ``target`` at which every ``where`` is at least
    0 is in some family; None where it cannot be counted. A loop variable that families mention is a dimension more.
    ``spend`` is told the steps of work that counting takes."""
    told = {n for f in families for n in _mentioned(f)}
    shared = [v.name for v in around if v.name in told]
    rank = len(target) + len(shared)
    names = {dim(d) for d in range(len(target))}
    if not rank or any(n not in names for w in where for n in w.names):
        return None
    at = tuple((Affine.of(n), Affine.of(n, 1, 1)) for n in shared)
    wanted = _boxes(Family((*target, *at), tuple(around)), FEW_BOXES)
    outer = _with_bounds(around, shared)
    found = [_boxes(Family((*f.box, *at), (*outer, *f.over)), FEW_BOXES) for f in families]
    if wanted is None or any(b is None for b in found) or sum(b.shape[-1] for b in found if b is not None) > FEW_BOXES:
        return None
    where = _cut(wanted, where)
    wanted = _filled(wanted)
    if not wanted.shape[-1]:
        return True
    boxes = np.concatenate([b for b in found if b is not None] or [np.empty((rank, 2, 0), np.int64)], axis=2)
    tied = {n for w in where for n in w.names}
    boxes = _near(boxes, wanted, tied)
    both = np.concatenate([boxes, wanted], axis=2)
    lines = _lines([both[d] for d in range(rank)], tied, FEW_CELLS)
    if lines is None:
        return None
    laid = sum(b.shape[-1] << len(_wide(_places(b, lines))) for b in (boxes, wanted))
    if laid > FEW_CELLS:
        return None
    spend((laid + prod(map(len, lines))) // STEP)
    whole = np.array([[k[0], k[-1]] for k in lines], np.int64)
    want = (_laid(wanted, lines) > 0) & (_inside(whole, where, lines) > 0)
    return bool((_laid(boxes, lines) > 0)[want].all())


def _mentioned(f: Family) -> set[str]:
    """The names in a family that are not its own."""
    bounds = [b.expr for v in f.over for b in (*v.lo, *v.hi)]
    starts = [v.origin for v in f.over if v.origin is not None]
    every = {n for e in (*bounds, *starts, *(e for side in f.box for e in side)) for n in e.names}
    return every - {v.name for v in f.over}


def _with_bounds(around: Sequence[Var], names: Sequence[str]) -> tuple[Var, ...]:
    """The variables of these names and those that bound them: no other tells where a family of these is."""
    told, out = set(names), []
    for v in reversed(around):
        if v.name in told:
            out.append(v)
            told |= {n for e in (*(b.expr for b in (*v.lo, *v.hi)), v.origin or Affine()) for n in e.names}
    return tuple(reversed(out))


def _numbers(side: tuple[Affine, Affine]) -> tuple[int, int] | None:
    return (side[0].const, side[1].const) if side[0].is_constant and side[1].is_constant else None


def _boxes(f: Family, most: int = BOXES) -> np.ndarray | None:
    """The first element and the one after the last, by dimension and box; None where a bound is no number."""
    values: Values = {}
    count = 1
    for v in f.over:
        if v.step != 1 and v.origin is None:
            return None
        low, high = _extreme(v.lo, values, count, up=True), _extreme(v.hi, values, count, up=False)
        origin = None if v.origin is None else _at(v.origin, values, count)
        if low is None or high is None or (v.origin is not None and origin is None):
            return None
        first = low if origin is None else origin + -(-(low - origin) // v.step) * v.step
        times = np.maximum(0, (high - first) // v.step + 1)
        total = int(times.sum())
        if total > most:
            return None
        kept = np.repeat(np.arange(count), times)
        nth = np.arange(total) - np.repeat(np.cumsum(times) - times, times)
        values = {n: x[kept] for n, x in values.items()}
        values[v.name], count = first[kept] + nth * v.step, total
    sides = [[_at(e, values, count) for e in side] for side in f.box]
    if any(e is None for side in sides for e in side):
        return None
    return _filled(np.array(sides, np.int64).reshape(len(f.box), 2, count))


def _filled(boxes: np.ndarray) -> np.ndarray:
    """Those with points."""
    return boxes[:, :, (boxes[:, 0] < boxes[:, 1]).all(axis=0)]


def _cut(boxes: np.ndarray, where: Sequence[Affine]) -> list[Affine]:
    """The conditions that are no bounds of one dimension: the boxes are cut to what those admit, in place."""
    left = []
    for w in where:
        if len(w.terms) != 1:
            left.append(w)
            continue
        ((name, c),) = w.terms
        ends = boxes[int(name[1:])]
        if c > 0:
            ends[0] = np.maximum(ends[0], -(w.const // c))
        else:
            ends[1] = np.minimum(ends[1], w.const // -c + 1)
    return left


def _near(boxes: np.ndarray, wanted: np.ndarray, tied: set[str]) -> np.ndarray:
    """What of the boxes is within the smallest box around those ``wanted``: lines elsewhere part no question. Nor do
    any along a dimension that all boxes hold whole: there those wanted are made as long as the smallest box."""
    low, high = wanted[:, 0].min(axis=1), wanted[:, 1].max(axis=1)
    boxes = _filled(np.clip(boxes, low[:, None, None], high[:, None, None]))
    for d in range(len(wanted)):
        if dim(d) not in tied and (boxes[d, 0] == low[d]).all() and (boxes[d, 1] == high[d]).all():
            wanted[d, 0], wanted[d, 1] = low[d], high[d]
    return boxes


def _at(e: Affine, values: Values, count: int) -> np.ndarray | None:
    if any(n not in values for n in e.names):
        return None
    return sum((values[n] * c for n, c in e.terms), np.full(count, e.const, np.int64))


def _extreme(bounds: Sequence[Bound], values: Values, count: int, up: bool) -> np.ndarray | None:
    """The greatest lower bound, rounded up, or the least upper one, rounded down."""
    found = [(_at(b.expr, values, count), b.div) for b in bounds]
    whole = [None if x is None else -(-x // div) if up else x // div for x, div in found]
    known = [x for x in whole if x is not None]
    if not known or len(known) < len(whole):
        return None
    return np.maximum.reduce(known) if up else np.minimum.reduce(known)


def _lines(ends: Sequence[np.ndarray], tied: set[str], most: int) -> list[np.ndarray] | None:
    """By dimension where cells begin, and where the last ends: at each element where a condition names it. None where
    there would be more than ``most`` cells."""
    every = [dim(d) in tied for d in range(len(ends))]
    found = [at if all_ else np.unique(at) for at, all_ in zip(ends, every, strict=True)]
    counts = [int(at.max()) - int(at.min()) + 1 if all_ else len(at) for at, all_ in zip(found, every, strict=True)]
    if prod(counts) > most:
        return None
    return [np.arange(at.min(), at.max() + 1) if all_ else at for at, all_ in zip(found, every, strict=True)]


def _laid(boxes: np.ndarray, lines: Sequence[np.ndarray]) -> np.ndarray:
    """How many boxes each cell is in."""
    shape = [len(at) for at in lines]
    sums = np.zeros(shape, np.int32)
    cells = sums.reshape(-1)  # numbers for places: what is added at tuples of them is added slowly
    at = _places(boxes, lines)
    wide = _wide(at)
    for ends in product((0, 1), repeat=len(wide)):
        corner = dict(zip(wide, ends, strict=True))
        where = np.zeros(boxes.shape[-1], np.int64)
        for d, places in enumerate(at):
            where += places[corner.get(d, 0)] * prod(shape[d + 1 :])
        np.add.at(cells, where, np.int32((-1) ** sum(ends)))
    for d, n in enumerate(shape):
        if d not in wide:
            continue
        if n * n > len(cells):
            np.cumsum(sums, axis=d, dtype=np.int32, out=sums)
            continue
        slices = np.moveaxis(sums, d, 0)  # few and long: each is added as a whole
        for i in range(1, n):
            slices[i] += slices[i - 1]
    return sums[tuple(slice(0, -1) for _ in lines)]


def _places(boxes: np.ndarray, lines: Sequence[np.ndarray]) -> list[np.ndarray]:
    """By dimension the numbers of the lines at which boxes begin and end."""
    return [np.searchsorted(k, boxes[d]) for d, k in enumerate(lines)]


def _wide(places: Sequence[np.ndarray]) -> list[int]:
    """The dimensions along which some box is longer than one cell: only there has it a begin and an end."""
    return [d for d, at in enumerate(places) if (at[1] - at[0] != 1).any()]


def _inside(box: np.ndarray, where: Sequence[Affine], lines: Sequence[np.ndarray]) -> np.ndarray:
    """1 for each cell in the domain, 0 for the others."""
    out = np.ones([len(at) - 1 for at in lines], np.int32)
    for d, (k, n) in enumerate(_along(lines)):
        out &= ((k >= box[d, 0]) & (k < box[d, 1])).astype(np.int32).reshape(n)
    for w in where:
        total = np.full([1] * len(lines), w.const, np.int64)
        for d, (k, n) in enumerate(_along(lines)):
            if c := w.coefficient(dim(d)):
                total = total + k.reshape(n) * c
        out &= (total >= 0).astype(np.int32)
    return out


def _along(lines: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, list[int]]]:
    """The first elements of cells by dimension, and the shape in which they lie along it."""
    for d, at in enumerate(lines):
        yield at[:-1], [-1 if d == e else 1 for e in range(len(lines))]
