"""Random trees of moves on several units: what waits are about and nothing else. They compute nothing that matters."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from isam.ir.affine import Affine
from isam.ir.kernel import Buffer, Kernel
from isam.ir.mapping import Cover
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile
from isam.system.graph import Memory, Move, System, Unit
from isam.system.groups import Cluster, Link, Mesh, Replica
from tests.schedules import copy

UNITS = ("u0", "u1", "u2")


def machine() -> System:
    memories = {"m": Memory("m", "managed", 1 << 20, home=True), "n": Memory("n", "managed", 1 << 16)}
    edges = (("m", "m"), ("m", "n"), ("n", "m"), ("n", "n"))
    moves = tuple(Move(a, b, "copy", u) for a, b in edges for u in UNITS)
    return System("streams", memories, {u: Unit(u, ("copy",), 1e9) for u in UNITS}, moves, {"copy": copy()})


class Trees:
    """Draws trees: sequences and loops in loops, peeled, shared, triangular, with ends that only maxima give.
    ``still``: loops of known trips, addresses that do not move."""

    def __init__(self, seed: int, still: bool = False):
        self.random, self.still = random.Random(seed), still
        self.names = 0

    def schedule(self) -> Schedule:
        kernel = Kernel("none", (), (Buffer("x", (Affine((), 1 << 20),), "u8", "inout"),), ())
        call = self.seq((), 0)
        return Schedule(kernel, machine(), Cover(kernel, kernel, ()), (), Seq(), call, ())

    def seq(self, scope: tuple[str, ...], depth: int) -> Seq:
        parts: list[Node] = []
        for _ in range(self.random.randint(1, 4)):
            if parts and self.random.random() < 0.15:
                parts.append(self.random.choice(parts))  # a shared node
            elif depth < 3 and self.random.random() < 0.45:
                parts.append(self.loop(scope, depth))
            else:
                parts.append(self.issue(scope))
        return Seq(tuple(parts))

    def loop(self, scope: tuple[str, ...], depth: int) -> Loop:
        r = self.random
        self.names += r.random() < 0.6  # sibling loops may use one name
        var = f"v{depth}_{self.names}"
        step, trip = r.choice((1, 1, 2)), r.choice((1, 2, 3, 5))
        low = Affine((), r.choice((0, 0, 2)))
        if scope and not self.still and r.random() < 0.3:
            low = Affine.of(r.choice(scope), 1, r.choice((0, 1)))
        lo, hi = (Bound(low),), (Bound(low + step * trip),)
        parts: dict[str, Node] = {}
        kind = 1.0 if self.still else r.random()
        if kind < 0.15 and scope:  # a triangle
            hi = (Bound(Affine.of(r.choice(scope), 1, r.choice((0, 1, 2)))),)
        elif kind < 0.3:
            hi = (*hi, Bound(low + step * trip * 2, 2), Bound(Affine((), 7)))
        else:
            if trip > 1 and r.random() < 0.3:
                parts["first"] = self.seq((*scope, var), depth + 1)
            if (trip > 1 or not parts) and r.random() < 0.3:
                parts["last"] = self.seq((*scope, var), depth + 1)
        for name in ("enter", "exit"):
            if r.random() < 0.3:
                parts[name] = self.seq(scope, depth + 2)
        return Loop(var, lo, hi, step, self.seq((*scope, var), depth + 1), **parts)

    def issue(self, scope: tuple[str, ...]) -> Issue:
        unit, size = self.random.choice(UNITS), self.random.choice((4, 8))
        tile = Tile("x", (Affine(),), (size,), (1,))
        operands = tuple(Operand(n, tile, self.place(scope), (0,)) for n in ("S", "D"))
        return Issue(unit, "copy", (("M", 1), ("N", size)), operands)

    def place(self, scope: tuple[str, ...]) -> Place:
        at = Affine((), 8 * self.random.randint(0, 8))
        for v in scope:
            if not self.still and self.random.random() < 0.4:
                at = at + Affine.of(v, self.random.choice((4, 8, 16, 32, -4)))
        return Place(self.random.choice("mn"), "", at + 256, (1,))


def nearest(schedule: Schedule, calls: Iterator[tuple[Issue, dict[str, int]]],
            reads: bool = False) -> Mapping[tuple[int, str], int]:  # fmt: skip
    """Per distinct call and stream the smallest lag that it may have, by looking at every pair of calls; ``reads``: for
    what it reads alone."""
    past: dict[str, list[tuple[int, int]]] = {}  # bytes touched and written, a bit each
    bits: dict[tuple[str, int], int] = {}
    out: dict[tuple[int, str], int] = {}
    for issue, scope in calls:
        touched = written = read = 0
        for o in issue.operands:
            mask = sum(1 << bits.setdefault((o.place.memory, b), len(bits)) for b in bytes_of(o, scope))
            touched |= mask
            written |= mask if o.name == "D" else 0
            read |= mask if o.name == "S" else 0
        looks = (0, read) if reads else (written, touched)
        for stream, theirs in past.items():
            for lag, (all_, some) in enumerate(reversed(theirs)):
                if looks[0] & all_ or looks[1] & some:
                    key = (id(issue), stream)
                    out[key] = min(lag, out.get(key, lag))
                    break
        past.setdefault(issue.unit, []).append((touched, written))
    return out


def bytes_of(o: Operand, scope: Mapping[str, int]) -> frozenset[int]:
    """Every byte of an operand whose elements are bytes."""
    at = o.place.offset.evaluate(scope)
    spots = product(*(range(n) for n in o.tile.shape))
    return frozenset(at + sum(k * i for k, i in zip(o.place.strides, p, strict=True)) for p in spots)


class Boxes(Trees):
    """Draws trees of calls on boxes of an array of rows, some of which wrap around the end of a row."""

    PITCH = 32

    def issue(self, scope: tuple[str, ...]) -> Issue:
        shape = self.random.choice(((2, 8), (3, 4), (1, 12)))
        tile = Tile("x", (Affine(), Affine()), shape, (1, 1))
        places = (self.box(scope) for _ in "SD")
        operands = tuple(Operand(n, tile, p, (0, 1)) for n, p in zip("SD", places, strict=True))
        return Issue(self.random.choice(UNITS), "copy", (("M", shape[0]), ("N", shape[1])), operands)

    def box(self, scope: tuple[str, ...]) -> Place:
        r = self.random
        row, column = Affine((), r.randrange(3)), Affine((), r.choice((0, 4, 8, 12, 16, 20, 24, 28)))
        for v in scope:
            kind = r.random()
            if kind < 0.3:
                row = row + Affine.of(v)
            elif kind < 0.5:
                column = column + Affine.of(v, r.choice((2, 4, -2)))
        pitch = r.choice((self.PITCH, self.PITCH, self.PITCH, self.PITCH // 2))
        return Place(r.choice("mn"), "", row * pitch + column + 8 * self.PITCH, (pitch, 1))


CORES = 4


def many(meshes: dict[str, Mesh] | None = None) -> System:
    """A unit and a memory at home; four cores, each with a memory, a unit that moves and two that step together."""
    memories = {"m": Memory("m", "managed", 1 << 20, home=True), "l": Memory("l", "managed", 1 << 12)}
    units = {u: Unit(u, ("copy",), 1e9) for u in ("host", "dma", "left", "right")}
    edges = (("m", "m"), ("m", "l"), ("l", "m"), ("l", "l"))
    moves = tuple(Move(a, b, "copy", u) for a, b in edges for u in units)
    replica = Replica("core", CORES, ("l",), ("dma", "left", "right"))
    return System("many", memories, units, moves, {"copy": copy()}, replicas={"core": replica},
                  clusters={"pair": Cluster("pair", ("left", "right"))},
                  links={"bus": Link("bus", 32e9, (("m", "l"), ("l", "m")))}, meshes=meshes or {})  # fmt: skip


class Dealt(Trees):
    """Draws trees whose loops are dealt to cores, in kept loops, with calls of the host between. An iteration writes a
    slot of its own in one of three areas at home, and reads the others all over."""

    AREA, SLOT = 1024, 64

    def schedule(self) -> Schedule:
        kernel = Kernel("none", (), (Buffer("x", (Affine((), 1 << 20),), "u8", "inout"),), ())
        parts: list[Node] = [self.top(0) for _ in range(self.random.randint(2, 4))]
        return Schedule(kernel, many(), Cover(kernel, kernel, ()), (), Seq(), Seq(tuple(parts)), ())

    def top(self, depth: int) -> Node:
        kind = self.random.random()
        if kind < 0.2:
            return self.move("host", self.anywhere(), self.anywhere())
        if kind < 0.45 and depth < 2:
            inner = Seq(tuple(self.top(depth + 1) for _ in range(self.random.randint(1, 3))))
            self.names += 1
            return Loop(f"t{self.names}", (Bound(Affine()),), (Bound(Affine((), 3)),), 1, inner)
        return self.deal()

    def deal(self) -> Loop:
        self.names += 1
        r, var = self.random, f"d{self.names}"
        area = r.randrange(3)
        if r.random() < 0.4:  # a grid of two by two
            body = Loop(f"{var}c", (Bound(Affine()),), (Bound(Affine((), 2)),), 1,
                        self.work(area, Affine.of(var, 2) + f"{var}c", var), deal=Deal("core", 0, 1))  # fmt: skip
            return Loop(var, (Bound(Affine()),), (Bound(Affine((), 2)),), 1, body, deal=Deal("core", 0, 2))
        first, trip = r.choice(((0, 4), (0, 4), (0, 2), (2, 2), (1, 3)))
        body = self.work(area, Affine.of(var) + first, var)
        return Loop(var, (Bound(Affine()),), (Bound(Affine((), trip)),), 1, body, deal=Deal("core", first, 1))

    def work(self, area: int, slot: Affine, name: str) -> Seq:
        """What one instance does: with its own memory, its slot, and areas that this loop does not write."""
        r, parts = self.random, []
        for n in range(r.randint(2, 4)):
            near = [Place("l", "", Affine((), 8 * r.randrange(6)), (1,)) for _ in range(2)]
            mine = Place("m", "", slot * self.SLOT + area * self.AREA + 8 * r.randrange(6), (1,))
            other = Place("m", "", Affine((), ((area + r.randint(1, 2)) % 3) * self.AREA + 8 * r.randrange(24)), (1,))
            kind = r.random()
            if kind < 0.3:
                parts.append(self.move("dma", r.choice((other, mine)), near[0]))
            elif kind < 0.5:
                parts.append(self.move("dma", near[0], mine))
            elif kind < 0.7:
                parts.append(self.move(r.choice(("left", "right")), *near))
            elif kind < 0.85:
                far = [Place("l", "", Affine((), 512 + 8 * r.randrange(6)), (1,)) for _ in range(2)]
                parts += [self.move("left", *near), replace(self.move("right", *far), joined=True)]
            else:
                inner = Seq((self.move("dma", other, near[0]), self.move("left", *near)))
                parts.append(Loop(f"{name}k{n}", (Bound(Affine()),), (Bound(Affine((), 3)),), 1, inner))
        return Seq(tuple(parts))

    def anywhere(self) -> Place:
        return Place("m", "", Affine((), self.AREA * self.random.randrange(3) + 8 * self.random.randrange(24)), (1,))

    def move(self, unit: str, source: Place, target: Place) -> Issue:
        tile = Tile("x", (Affine(),), (8,), (1,))
        operands = (Operand("S", tile, source, (0,)), Operand("D", tile, target, (0,)))
        return Issue(unit, "copy", (("M", 1), ("N", 8)), operands)
