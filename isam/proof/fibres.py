"""How many outputs the inputs of a relation have, where that can be said: sums of equal terms are counted by it."""

from __future__ import annotations

from collections.abc import Iterator

from isam.ir.relation import Region, Rel, TooMuch

LENGTHS = 16  # different numbers of equal terms that are told apart


def fibres(points: Rel) -> list[tuple[int, list[Rel], Region]]:
    """How many outputs the inputs have: a number times functions of the input, region by region (to be added up
    where regions meet)."""
    if points.is_function():
        return [(1, [], points.domain())]
    peeled = ((single.spread(), rest) for single, rest in _peeled(points))
    length, rest = next(((length, rest) for length, rest in peeled if length is not None), (None, points))
    if length is None:
        parts = points.convex()
        if len(parts) < 2:
            return [(1, [], region) for region in _one_by_one(points)]
        return [x for p in parts for x in fibres(p)]
    values, function = length
    if values is None or len(values) > LENGTHS:
        extra = _first(function, points.ins)
        if not extra.is_function():
            raise TooMuch("equal terms are added a number of times that varies")
        return [(n, [*more, extra], region) for n, more, region in fibres(rest)]
    if len(values) == 1:
        return [(n * values[0], more, region) for n, more, region in fibres(rest)]
    out = []
    for v in values:
        some = function.reaching(v)
        if not some.is_empty():
            out += [(n * v, more, region) for n, more, region in fibres(some.parted(points.ins))]
    return out


def _peeled(points: Rel) -> Iterator[tuple[Rel, Rel]]:
    """Each output coordinate that the others do not determine, and the last, as a relation of the input and the
    others; and the relation without it."""
    for k in range(points.outs):
        others = [j for j in range(points.outs) if j != k]
        single = points.picked([k, *others]).lifted(len(others))
        if not single.is_function() or k == points.outs - 1:
            yield single, points.picked(others)


def _one_by_one(points: Rel) -> Iterator[Region]:
    """The inputs that have a first output, those that have a second, and so on: outputs with gaps between them."""
    for _ in range(LENGTHS):
        if points.is_empty():
            return
        yield points.domain()
        points = points - points.least()
    if not points.is_empty():
        raise TooMuch("equal terms are added an unknown number of times")


def _first(length: Rel, first: int) -> Rel:
    """A function as one of its first inputs only (a relation where it depends on others)."""
    turned = length.inverse().picked(list(range(first)))
    return turned.inverse()
