"""Steps in the table of the compiled walk: everything that :mod:`isam.proof.flat_walk` reads of them, as numbers.

What a step is was worked out by :func:`isam.proof.flat_step.compile_step`; here it is only written down, each list with
its length before it. A step that does not fit is ``ALONE``: one for the step by step execution.
"""

from __future__ import annotations

from dataclasses import field
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof import flat_walk as w
from isam.proof.filled import in_its_box
from isam.proof.flat_layout import Pattern, natural

if TYPE_CHECKING:
    from isam.proof.flat import Replay
    from isam.proof.flat_step import Access, Effect, Shape, Step

ROOM = 1024  # values of a step


class Words:
    """An array that grows."""

    def __init__(self, first: int = 1):
        self.array, self.n = np.zeros(1 << 12, np.int64), first

    def add(self, values: list[int] | np.ndarray) -> int:
        """Where they begin."""
        at, self.n = self.n, self.n + len(values)
        if self.n > self.array.size:
            self.array = np.concatenate([self.array, np.zeros(max(self.n, self.array.size), np.int64)])
        self.array[at : self.n] = values
        return at


@dataclass(slots=True)
class Numbers:
    """What the kernel prescribes, and what is counted of its statements, each in one array."""

    replay: Replay
    want: np.ndarray = field(init=False)
    done: np.ndarray = field(init=False)
    seen: np.ndarray = field(init=False)
    before: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)  # where, for how many times
    adds: dict[int, tuple[int, int]] = field(default_factory=dict)
    points: dict[int, int] = field(default_factory=dict)
    terms: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        p, parts = self.replay.prescribed, list[np.ndarray]()
        n = 0
        for (i, _), of in p.before.items():
            for name in of:
                self.before.setdefault((i, name), (0, 0))
        for i, name in self.before:
            found = [a[name] for (j, _), a in p.before.items() if j == i]
            self.before[i, name] = n, len(found)
            n, parts = n + sum(a.size for a in found), parts + found
        for i in dict.fromkeys(i for i, _ in p.adds):
            found = [a for (j, _), a in p.adds.items() if j == i]
            self.adds[i] = n, len(found)
            n, parts = n + sum(a.size for a in found), parts + found
        self.want = np.concatenate([*parts, np.zeros(1, np.int32)])
        self._counts()

    def _counts(self) -> None:
        """The arrays of the step by step execution become parts of one array each."""
        r = self.replay
        self.done = np.zeros(sum(a.size for a in r.done.values()) + 1, np.uint8)
        at = 0
        for i, a in r.done.items():
            self.points[i] = at
            part = self.done[at : at + a.size].reshape(a.shape)
            part[...] = a
            r.done[i], at = part, at + a.size
        size = r.space.current.size
        ordered = [i for i, s in enumerate(r.kernel.statements) if s.reduces and i in r.done]
        ordered = [] if "reassociate" in r.kernel.permits else ordered
        self.seen = np.full(len(ordered) * size + 1, -1, np.int64)
        for k, i in enumerate(ordered):
            self.terms[i] = k * size
            part = self.seen[k * size : (k + 1) * size]
            part[...] = r.ranks.get(i, -1)
            r.ranks[i] = part


class Table:
    """``words``: steps and bounds of loops; ``runs``: patterns of operands and boxes of points; ``slots``: where loop
    variables and sizes are."""

    def __init__(self, replay: Replay):
        self.replay, self.numbers = replay, Numbers(replay)
        self.words, self.runs = Words(), Words()
        self.slots: dict[str, int] = {}
        self.patterns: dict[int, tuple[int, ...]] = {}
        self.shapes: dict[int, tuple[list[int], list[int]] | None] = {}
        self.boxes: dict[tuple[tuple[int, ...], ...], tuple[int, ...]] = {}

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    def form(self, f: Affine) -> list[int]:
        return [f.const, len(f.terms), *(x for n, c in f.terms for x in (self.slot(n), c))]

    def step(self, s: Step) -> int:
        """A step in the table; ``ALONE``: it is one for the step by step execution."""
        if id(s.shape) not in self.shapes:
            self.shapes[id(s.shape)] = self._shape(s.shape)
        known = self.shapes[id(s.shape)]
        if known is None or len(s.forms) > ROOM or not all(map(w.fits, s.forms)):
            return w.ALONE
        parts, ranges = known
        return self.words.add([*parts, len(s.forms), *(x for f in s.forms for x in self.form(f)), *ranges])

    def _shape(self, s: Shape) -> tuple[list[int], list[int]] | None:
        """What steps of one shape have before and behind their forms; None: they do not fit."""
        accesses = self._accesses(s)
        effects = self._effects(s, accesses)
        if effects is None:
            return None
        ranges = [(a.row + 2 + d, last) for a in s.accesses for d, last in enumerate(a.limits)]
        ranges += [(row, full - n) for e in s.effects for (row, n), full in zip(e.axes, e.extents, strict=True)]
        readers = self._readers(s, accesses, ranges)
        parts = [accesses[0] - 1, self._list(readers), self._list(self._pairs(s, accesses)), self._list(effects)]
        return parts, [len(ranges), *(x for r in ranges for x in r)]

    def _list(self, rows: list[list[int]]) -> int:
        return self.words.add([len(rows), *(x for r in rows for x in r)])

    def _accesses(self, s: Shape) -> list[int]:
        """Where each operand's words are."""
        rows = []
        for a in s.accesses:
            p = a.pattern
            rows.append([max(1, a.align), a.row, a.group, a.wide, *p.span, *a.region, a.reads, a.writes,
                         *self._lines(p), a.parts])  # fmt: skip
        at = self._list(rows) + 1
        return [at + w.ACCESS * i for i in range(len(rows))] or [at]

    def _lines(self, p: Pattern) -> tuple[int, ...]:
        """An operand's pattern as runs: where they are, how many there are, the length and the steps of each, how many
        tokens an element has."""
        if id(p) not in self.patterns:  # equal ones are one object, see ``Space.pattern``
            split = len(p.elem) // len(p.unique)
            addr = p.addr[::split]
            length, by, on = lines(addr, p.unique)
            first = self.runs.add(np.stack([addr[::length], p.unique[::length]], 1).ravel())
            self.patterns[id(p)] = first, len(addr) // length, length, by, on, split
        return self.patterns[id(p)]

    def _pairs(self, s: Shape, at: list[int]) -> list[list[int]]:
        out = []
        for i, a in enumerate(s.accesses):
            for j, b in enumerate(s.accesses):
                if a.writes and i != j and not in_its_box(a.operand.name, b.operand.name):
                    same = (a.operand.name, b.operand.name) in s.pointwise
                    out.append([at[i], at[j], same and np.array_equal(a.pattern.addr, b.pattern.addr)])
        return out

    def _times(self, statement: int) -> tuple[int, ...]:
        return tuple(int(a.extent.substitute(self.replay.sizes)) for a in self.replay.legality.outer[statement])

    def _readers(self, s: Shape, at: list[int], ranges: list[tuple[int, int]]) -> list[list[int]]:
        """Reads whose order the kernel prescribes: (access, where its versions are, rows of the counters)."""
        out = []
        for a, here in zip(s.accesses, at, strict=False):
            name = a.operand.tile.buffer
            for i in a.readers:
                e = next((e for e in s.effects if e.statement == i), s.effects[0] if s.effects else None)
                rows, times = e.outer if e is not None else (), self._times(i)
                if (i, name) in self.numbers.before and len(rows) == len(times):
                    first, _ = self.numbers.before[i, name]
                    size = prod(self.replay.space.shapes[name])
                    ranges += [(r, n - 1) for r, n in zip(rows, times, strict=True)]
                    strides = [x for r, k in zip(rows, natural(times), strict=True) for x in (r, k * size)]
                    origin = self.replay.space.origin[name]
                    out.append([here, first - origin, len(rows), self.words.add(strides)])
        return out

    def _effects(self, s: Shape, at: list[int]) -> list[list[int]] | None:
        written = [(a.operand.tile.buffer, i) for i, a in enumerate(s.accesses) if a.writes]
        if len({b for b, _ in written}) < len(written) or len({e.statement for e in s.effects}) < len(s.effects):
            return None
        out, already = [], dict[int, int]()
        for e in s.effects:
            row = self._effect(e, s.accesses[e.accesses], at[e.accesses], already.get(e.accesses, 0))
            if row is None or not s.accesses[e.accesses].writes:
                return None
            already[e.accesses] = already.get(e.accesses, 0) + e.times
            out.append(row)
        return out

    def _effect(self, e: Effect, a: Access, at: int, already: int) -> list[int] | None:
        numbers, name, times = self.numbers, a.operand.tile.buffer, self._times(e.statement)
        size, origin = prod(self.replay.space.shapes[name]), self.replay.space.origin[name]
        first, n = numbers.before.get((e.statement, name), (0, -1))
        adds, m = numbers.adds.get(e.statement, (0, -1))
        if {n, m} != {prod(times)}:
            return None
        strides = [x for r, k in zip(e.outer, natural(times), strict=True) for x in (r, k * size)]
        played = tuple(n // c for (_, n), c in zip(e.axes, e.cells, strict=True))
        step = natural(self.replay.done[e.statement].shape)
        counted = zip(e.axes, e.cells, step, strict=True)
        box = self.words.add([numbers.points[e.statement], len(e.axes),
                              *(x for (r, _), c, k in counted for x in (r, c, k))])  # fmt: skip
        seen, order = -1, list[int]()
        if e.ordered is not None:
            seen, order = numbers.terms[e.statement], [x for r in e.ordered for x in r]
            within = sum((n - 1) * prod(f for _, _, f in e.ordered[k + 1 :]) for k, (_, n, _) in enumerate(e.ordered))
            if within + 1 != prod(n for _, n, _ in e.ordered):
                return None
        return [at, already, e.times, first - origin, adds - origin, len(e.outer), self.words.add(strides), box,
                *self._points(played, step), seen, len(order) // 3,
                self.words.add(order), e.accumulate]  # fmt: skip

    def _points(self, played: tuple[int, ...], step: tuple[int, ...]) -> tuple[int, ...]:
        """A box of points as runs of neighbours: where they are, how many there are, the length of each."""
        if (played, step) not in self.boxes:
            points = np.zeros(1, np.int64)
            for n, k in zip(played, step, strict=True):
                points = (points[:, None] + np.arange(n) * k).ravel()
            length, by, _ = lines(points, points)
            length = length if by == 1 else 1
            self.boxes[played, step] = self.runs.add(points[::length]), len(points) // length, length
        return self.boxes[played, step]


def lines(addr: np.ndarray, elem: np.ndarray) -> tuple[int, int, int]:
    """Two lists cut into runs of one length in which both go on by equal steps: the length and the steps."""
    pairs = list(zip(np.diff(addr).tolist(), np.diff(elem).tolist(), strict=True))
    if not pairs:
        return 1, 1, 1
    n = next(len(list(same)) for _, same in groupby(pairs)) + 1
    whole = len(addr) % n == 0 and all(p == pairs[0] for i, p in enumerate(pairs) if (i + 1) % n)
    return (n, *pairs[0]) if whole else (1, 1, 1)
