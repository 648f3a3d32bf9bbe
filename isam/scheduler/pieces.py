"""Domains that are not boxes: cut into boxes where a few suffice (padding), else left to loops with affine bounds."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest, Use, row_range
from isam.scheduler.trim import Env

MOST_EDGES = 8  # values of an axis at which a condition may bite before the domain counts as oblique
MOST_PIECES = 64
BY_RESULTS, BY_TERMS = "by results", "by terms"
LINES = " of lines"  # in the boxes the bounds of one axis depend on where another one is
MANY = 1 << 16  # places of two axes

Box = dict[str, tuple[int, int]]  # axis -> first value and number of values
Moved = tuple[Box, dict[str, Affine]]  # a box, and what kernel axes are within it
Way = tuple[list[Box], tuple[Affine, ...]]  # boxes, and conditions that loops in them keep


def pieces(nest: Nest, trace: Trace, *, resumed: bool, lines: bool = False) -> list[Nest]:
    """The nest over disjoint boxes that make up its domain; itself (with its conditions) when that takes too many.
    ``resumed``: sums may be left and gone on from, so that boxes may have some of the terms of results each. ``lines``:
    loops may have bounds that depend on those around them.

    >>> from isam.ir.affine import Affine
    >>> boxes({"h": (0, 9), "r": (0, 3)}, (Affine.of("h") + "r" - 1, 8 - Affine.of("h") - "r" + 1), ("h", "r"))
    [{'h': (0, 1), 'r': (1, 2)}, {'h': (1, 7), 'r': (0, 3)}, {'h': (8, 1), 'r': (0, 2)}]
    """
    if not nest.where or any(not e.is_constant for e in nest.extents.values()):
        return [nest]
    if any(n not in nest.extents for w in nest.where for n in w.names):
        return [nest]
    found, within = _cut(nest, trace, resumed, lines)
    if found is None:
        return [nest]
    out = []
    for box, moved in in_turn(nest, found):
        counters = [a for a, e in moved.items() if e.names == (a,)]  # outermost: what each box reads again is its own
        out.append(
            replace(
                nest,
                extents={a: Affine((), box[a][1]) for a in (*counters, *(a for a in box if a not in counters))},
                origin={a: o for a, (o, _) in box.items()},
                uses=tuple(_moved(u, moved) for u in nest.uses) if moved else nest.uses,
                where=(),
                within=within,
                moved=moved,
            )
        )
    return out


def in_turn(nest: Nest, some: list[Box]) -> list[tuple[Box, dict[str, Affine]]]:
    """Boxes, those of one shape that lie at equal distances as one: an axis of which each has one value counts them,
    and others begin where that says (what kernel axes are then)."""
    out = [(b, dict[str, Affine]()) for b in some]
    while (joined := _joined(nest, out)) is not None:
        out = joined
    return out


def _joined(nest: Nest, some: list[Moved]) -> list[Moved] | None:
    """The same with one run of boxes that are not one yet as one; None where there is none."""
    for at, one in enumerate(some):
        alike = [n for n in range(at + 1, len(some)) if _shape(some[n]) == _shape(one)]
        for second in alike:
            step = {a: some[second][0][a][0] - o for a, (o, _) in one[0].items()}
            counter = _counter(nest, one, step)
            if counter is None:
                continue
            run = [at]
            while (n := next((n for n in alike if some[n][0] == _after(some[run[-1]][0], step)), None)) is not None:
                run.append(n)
            whole = _counted(one, step, counter, len(run))
            return [whole if n == at else b for n, b in enumerate(some) if n not in run[1:]]
    return None


def _shape(of: Moved) -> object:
    return {a: n for a, (_, n) in of[0].items()}, of[1]


def _after(box: Box, step: dict[str, int]) -> Box:
    return {a: (o + step[a], n) for a, (o, n) in box.items()}


def _counter(nest: Nest, of: Moved, step: dict[str, int]) -> str | None:
    """The axis that counts boxes such steps apart: one of terms, but not the last, which sums go on along, such that
    operands that are only read lie along no more axes than they do."""
    box, moved = of
    able = [a for a in nest.reduced[:-1] if step[a] and box[a][1] == 1 and a not in nest.mapped and a not in moved]
    for axis in able:
        first = {a: Affine.of(a) + Affine.of(axis, step[a]) for a in step if step[a] and a != axis}
        first[axis] = Affine.of(axis, step[axis])
        read = [row for u in nest.uses if not u.writes for row in u.index]
        if all(len(row.substitute(first).names) <= max(1, len(row.names)) for row in read):
            return axis
    return None


def _counted(of: Moved, step: dict[str, int], counter: str, n: int) -> Moved:
    """So many boxes, each such a step behind the one before."""
    box, moved = of
    turn = Affine.of(counter)
    more = {a: Affine.of(a) + turn * step[a] for a in step if step[a] and a != counter}
    more[counter] = turn * step[counter] + box[counter][0]
    out = {a: e.substitute(more) for a, e in moved.items()}
    return {**box, counter: (0, n)}, {**out, **{a: e for a, e in more.items() if a not in out}}


def _moved(use: Use, moved: dict[str, Affine]) -> Use:
    return replace(use, index=tuple(row.substitute(moved) for row in use.index))


def _cut(nest: Nest, trace: Trace, resumed: bool, lines: bool) -> tuple[list[Box] | None, tuple[Affine, ...]]:
    """By which results they make; or, where the Approach wants that, by which terms they add, or with lines of two axes
    in them: the conditions on these."""
    results = tuple(a for a in nest.axes if a not in nest.reduced)
    orders = {BY_RESULTS: results + nest.reduced, BY_TERMS: nest.reduced + results}
    if not resumed or not all(u.reads for u in nest.uses if u.writes):
        return boxes(_whole(nest), nest.where, orders[BY_RESULTS]), ()
    ways = _ways(nest, (), orders)
    if lines and (within := _in_lines(nest)):
        fewest = min((len(found) for found, _ in ways.values()), default=MOST_PIECES)
        further = _ways(nest, within, orders)
        ways |= {way + LINES: found for way, found in further.items() if len(found[0]) < fewest}
    if len(ways) < 2:
        return next(iter(ways.values()), (None, ()))
    some = [found for found, _ in ways.values()]
    context = {"nest": nest.number, "boxes": [*map(len, some)], "_nest": nest, "_boxes": some}
    costs = [float(_touched(nest, *way)) for way in ways.values()]
    return ways[trace.choose(Choice("boxes", tuple(ways), context, costs))]


def _ways(nest: Nest, within: tuple[Affine, ...], orders: dict[str, tuple[str, ...]]) -> dict[str, Way]:
    """The boxes that some conditions leave that are not kept ``within`` them; by terms where that takes no more."""
    where = tuple(w for w in nest.where if w not in within)
    found, other = (boxes(_whole(nest), where, order) for order in orders.values())
    out: dict[str, Way] = {} if found is None else {BY_RESULTS: (found, within)}
    if other is not None and other != found and (found is None or len(other) <= len(found)):
        out[BY_TERMS] = other, within
    return out


def _whole(nest: Nest) -> Box:
    return {a: (0, nest.length(a)) for a in nest.axes}


def _in_lines(nest: Nest) -> tuple[Affine, ...]:
    """The conditions that tie the first results and terms that calls take one of, where these are tied to nothing else
    and blocks may have other results and terms: their loops leave out what conditions do, and boxes need not."""
    ends = {a: (first, n - 1) for a, (first, n) in _whole(nest).items()}
    open_ = [w for w in nest.where if w.bounds(ends)[0] < 0]
    for axis in nest.axes:
        mine = tuple(w for w in open_ if w.coefficient(axis))
        tied = {n for w in mine for n in w.names} - {axis}
        if axis in nest.reduced or len(tied) != 1:
            continue
        (term,) = tied
        both = {axis, term}
        others = [a for a in nest.axes if a not in nest.reduced and a not in both and nest.length(a) > 1]
        across = [a for a in others if a in nest.mapped]  # calls take several of them
        alone = all({*w.names} <= both for w in open_ if both & {*w.names}) and all(len(w.names) == 2 for w in mine)
        last = nest.reduced[-1:] == (term,) or term not in nest.reduced
        several = all(nest.length(a) > 1 for a in both)
        if alone and several and not last and not both & nest.mapped.keys() and len(others) > min(1, len(across)):
            return mine
    return ()


def _touched(nest: Nest, some: list[Box], within: tuple[Affine, ...]) -> int:
    """How many bytes calls read and write, each once per box: boxes of few results go through large factors again for
    each other, boxes of few terms through large results. What conditions leave out ``within`` boxes is not counted;
    what no results share but those of lines, which are not worked on together, is read again for each of these."""
    total, lines = 0, {n for w in within for n in w.names}
    for box in some:
        env: Env = {a: (Affine((), first), n, Affine((), first)) for a, (first, n) in box.items()}
        for u in nest.uses:
            elements = prod(_values(row, env, within) for row in u.index)
            others = [a for a in nest.axes if a not in nest.reduced and not any(a in row.names for row in u.index)]
            shared = any(box[a][1] > nest.unit(a) for a in others if a not in lines)
            again = 1 if shared or u.writes else prod(box[a][1] for a in others if a in lines)
            total += (u.reads + u.writes) * elements * again * size_of(u.dtype)
    return total


def _values(row: Affine, env: Env, within: tuple[Affine, ...]) -> int:
    """How many indices a buffer row takes; of one over axes between which there are conditions one by one."""
    tied = dict.fromkeys(n for w in within for n in w.names)
    sides = [range(env[a][0].const, env[a][0].const + env[a][1]) for a in tied]
    if len(set(tied) & set(row.names)) < 2 or prod(map(len, sides)) > MANY:
        return row_range(row, env)[1]
    others = row_range(Affine(tuple((a, c) for a, c in row.terms if a not in tied)), env)[1]
    mine = Affine(tuple((a, c) for a, c in row.terms if a in tied))
    at = (dict(zip(tied, p, strict=True)) for p in product(*sides))
    return len({mine.evaluate(p) for p in at if all(w.evaluate(p) >= 0 for w in within)}) + others - 1


def boxes(box: Box, where: tuple[Affine, ...], order: tuple[str, ...]) -> list[Box] | None:
    """Disjoint boxes covering exactly the points of ``box`` where every condition is >= 0; None when oblique."""
    if any(n <= 0 for _, n in box.values()):
        return []
    ranges = {a: (o, o + n - 1) for a, (o, n) in box.items()}
    open_ = [w for w in where if w.bounds(ranges)[0] < 0]
    if not open_:
        return [box]
    if any(w.bounds(ranges)[1] < 0 for w in open_):
        return []
    for w in open_:  # a condition on one axis trims it
        if len(w.terms) == 1:
            return boxes(_trim(box, w), tuple(v for v in where if v is not w), order)
    axis = next(a for a in order if any(a in w.names for w in open_))
    inner = _interior(box, axis, open_)
    first, n = box[axis]
    lo, hi = inner or (first + n, first + n - 1)
    if n - (hi - lo + 1) > MOST_EDGES:
        return None
    edges = [*range(first, lo), *range(hi + 1, first + n)]
    out: list[Box] = []
    for part in _runs(edges, inner):
        value: Box = {**box, axis: part}
        fixed = part[1] == 1
        rest = tuple(w.substitute({axis: part[0]}) for w in where) if fixed else where
        got = boxes(value, tuple(w for w in rest if w.terms or w.const < 0), order)
        if got is None or len(out) + len(got) > MOST_PIECES:
            return None
        out += got
    return out


def _trim(box: Box, w: Affine) -> Box:
    ((axis, c),) = w.terms
    first, n = box[axis]
    if c > 0:
        lo, hi = max(first, -(w.const // c)), first + n
    else:
        lo, hi = first, min(first + n, w.const // -c + 1)
    return {**box, axis: (lo, hi - lo)}


def _interior(box: Box, axis: str, where: list[Affine]) -> tuple[int, int] | None:
    """Values of the axis at which no open condition on it can fail, whatever the other axes."""
    lo, hi = box[axis][0], box[axis][0] + box[axis][1] - 1
    others = {a: (o, o + n - 1) for a, (o, n) in box.items() if a != axis}
    for w in where:
        c = w.coefficient(axis)
        if c == 0:
            continue
        worst = (w - Affine.of(axis, c)).bounds(others)[0]
        if c > 0:
            lo = max(lo, -(worst // c))
        else:
            hi = min(hi, worst // -c)
    return (lo, hi) if lo <= hi else None


def _runs(edges: list[int], inner: tuple[int, int] | None) -> list[tuple[int, int]]:
    parts = [(v, 1) for v in edges]
    if inner is not None:
        parts.append((inner[0], inner[1] - inner[0] + 1))
    return sorted(parts)
