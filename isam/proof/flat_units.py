"""What the steps of a schedule touch only as a whole: elements side by side, bytes side by side, points of a statement.

The flat checker keeps a token per group of bytes, a version per group of elements and a count per box of points. The
groups are the largest that no step cuts: every first element, length, address and point is a multiple of theirs,
whatever the values of the loop variables. What is true of one member of a group is true of all at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import NamedTuple

import numpy as np

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.proof.geometry import BufferFacts, resolve
from isam.proof.legal import Legality
from isam.proof.prescribed import Prescribed
from isam.schedule.tree import Issue, Loop, Operand, Place, Schedule, distinct

Spot = tuple[str, str]  # a memory and a base in it
Group = tuple[int, int]  # how many bytes, how many such groups the largest element has that lies there


@dataclass(slots=True)
class Units:
    """``wide``: of a buffer, elements along its last dimension; ``group``: of a spot, see there; ``cells``: of a
    statement, points along each of its axes (recurrent ones first)."""

    wide: dict[str, int]
    group: dict[Spot, Group]
    cells: dict[int, tuple[int, ...]]


class Alike(NamedTuple):
    """Operands of steps of one signature: one of them, and what all last starts and all offsets are multiples of."""

    one: Operand
    last: int
    offset: int


@dataclass(slots=True)
class Finder:
    """``fine``: elements and points one by one (bytes as far as they go together in all memories)."""

    legality: Legality
    kernel: Kernel
    prescribed: Prescribed
    sizes: Mapping[str, int]
    fine: bool

    def find(self) -> Units:
        s = self.legality.schedule
        issues = [n for t in (s.bind, s.call) for n in distinct(t) if isinstance(n, Issue)]
        of = Multiples(s, self.sizes)
        operands = self.operands(issues, of)
        wide = {b: 1 if self.fine else n for b, n in self.wide(operands).items()}
        return Units(wide, self.groups(operands, wide, of), self.cells(issues, of))

    def operands(self, issues: list[Issue], of: Multiples) -> list[Alike]:
        """Those that a legal step may have (the others are not executed), one for all that differ in what they compute
        of the loop variables only."""
        found: dict[tuple[int, int], Alike] = {}
        for issue in issues:
            signature = id(self.legality.signature(issue))  # equal ones are one object
            for i, o in enumerate(issue.operands):
                b = self.legality.buffers.get(o.tile.buffer)
                rank = -1 if b is None else len(b.shape)
                if len(o.tile.start) == len(o.tile.shape) == len(o.tile.steps) == len(o.place.strides) == rank:
                    known = found.get((signature, i), Alike(o, 0, 0))
                    last = of(o.tile.start[-1]) if rank else 0
                    both = gcd(known.last, last), gcd(known.offset, of(o.place.offset))
                    found[signature, i] = Alike(known.one, *both)
        return list(found.values())

    def wide(self, operands: list[Alike]) -> dict[str, int]:
        out = {}
        for b in self.legality.buffers.values():
            shape = self.prescribed.shapes.get(b.name, ())
            flat = b.home is None or (len(b.home.strides) == len(shape) and b.home.strides[-1:] == (b.bytes,))
            out[b.name] = shape[-1] if shape and flat and min(shape) > 0 else 1
        for o, last, _ in operands:
            name = o.tile.buffer
            if o.tile.start:
                n = o.tile.shape[-1]
                flat = n == 1 or (o.tile.steps[-1] == 1 and o.place.strides[-1] == self.legality.buffers[name].bytes)
                out[name] = gcd(out[name], n, last) if flat else 1
        p = self.prescribed
        counted = [(name, a) for k in p.before.values() for name, a in k.items()]
        counted += [(self.kernel.statements[i].dest.buffer, a) for (i, _), a in p.adds.items()]
        for name, a in counted:
            rows = a.reshape(-1, out[name])
            if (rows != rows[:, :1]).any():
                out[name] = 1
        return out

    def groups(self, operands: list[Alike], wide: dict[str, int], of: Multiples) -> dict[Spot, Group]:
        lg, system = self.legality, self.legality.schedule.system
        found: dict[Spot, list[int]] = {}
        largest: dict[Spot, int] = {}

        def also(memory: str, base: str, *numbers: int) -> Spot:
            spot = resolve(system, memory), base
            if spot[0] in system.memories:
                found.setdefault(spot, [system.memories[spot[0]].cell or 0]).extend(numbers)
            return spot

        def lies(b: BufferFacts, place: Place, shape: tuple[int, ...], steps: tuple[int, ...], offset: int) -> None:
            size, n = b.bytes * wide[b.name], len(shape) - (wide[b.name] > 1)  # those of one element lie side by side
            between = [k * by for m, k, by in list(zip(shape, place.strides, steps, strict=False))[:n] if m > 1]
            spot = also(place.memory, place.base, size, offset, *between)
            largest[spot] = max(size, largest.get(spot, 0))

        for o, _, offset in operands:
            lies(lg.buffers[o.tile.buffer], o.place, o.tile.shape, o.tile.steps, offset)
        for b in lg.buffers.values():
            if b.home is not None:
                shape = self.prescribed.shapes.get(b.name, ())
                lies(b, b.home, shape, (1,) * len(shape), of(b.home.offset))
        for slot in lg.schedule.workspace:
            also(slot.memory, slot.name, slot.bytes)
        group = {spot: max(1, gcd(*numbers)) for spot, numbers in found.items()}
        if self.fine:
            group = dict.fromkeys(group, gcd(*group.values()))
        return {spot: (g, largest.get(spot, g) // g) for spot, g in group.items()}

    def cells(self, issues: list[Issue], of: Multiples) -> dict[int, tuple[int, ...]]:
        lg = self.legality
        out: dict[int, tuple[int, ...]] = {}
        for i, s in enumerate(self.kernel.statements):
            outer = [int(a.extent.substitute(self.sizes)) for a in lg.outer[i]]
            whole = not s.domain.where and not self.fine
            out[i] = tuple(n if whole else 1 for n in (*outer, *(int(a.extent) for a in s.domain.axes)))
        alike: dict[int, tuple[Issue, dict[str, int]]] = {}
        for issue in issues:
            if issue.nest is not None:
                _, points = alike.setdefault(id(lg.signature(issue)), (issue, {}))
                for n, at in issue.point:
                    points[n] = gcd(points.get(n, 0), of(at))
        for issue, points in alike.values():
            sig, cover = lg.signature(issue), lg.schedule.cover
            if sig.faults or issue.nest is None:
                continue
            played = {k: sig.extents[i] for i, k in cover.mappings[lg.schedule.nests[issue.nest].mapping].axes}
            for _, i, _ in sig.semantics.effects:
                names = (*(a.name for a in lg.outer[i]), *self.kernel.statements[i].domain.names)
                each = zip(names, out[i], strict=True)
                out[i] = tuple(gcd(c, played.get(n, 1), points.get(n, 1)) for n, c in each)
        return {i: tuple(max(1, c) for c in cs) for i, cs in out.items()}


class Multiples:
    """The largest known number that every value of an expression is a multiple of; 0: it is always 0."""

    def __init__(self, schedule: Schedule, sizes: Mapping[str, int]):
        loops = [n for t in (schedule.bind, schedule.call) for n in distinct(t) if isinstance(n, Loop)]
        self.names = {**sizes, **{n.var: 0 for n in loops if n.var not in sizes}}
        before = None
        while before != self.names:  # from 0 on down: a value follows from those that were there before it
            before = dict(self.names)
            for n in loops:
                for b in n.lo:
                    m = self(b.expr)
                    m = m // b.div if b.div and m % b.div == 0 else 1
                    self.names[n.var] = gcd(self.names[n.var], n.step, m)

    def __call__(self, e: Affine) -> int:
        return gcd(e.const, *(c * self.names.get(n, 1) for n, c in e.terms)) if e.terms else abs(e.const)


def coarse(prescribed: Prescribed, kernel: Kernel, wide: Mapping[str, int]) -> None:
    """The versions of groups instead of elements."""
    for versions in prescribed.before.values():
        for name, a in versions.items():
            versions[name] = np.ascontiguousarray(a[:: wide[name]])
    for key, a in prescribed.adds.items():
        prescribed.adds[key] = np.ascontiguousarray(a[:: wide[kernel.statements[key[0]].dest.buffer]])
