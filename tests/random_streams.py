"""Random trees of moves on several units: what waits are about and nothing else. They compute nothing that matters."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from isam.ir.affine import Affine
from isam.ir.kernel import Buffer, Kernel
from isam.ir.mapping import Cover
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile
from isam.system.graph import Memory, Move, System, Unit
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


def nearest(schedule: Schedule, calls: Iterator[tuple[Issue, dict[str, int]]]) -> Mapping[tuple[int, str], int]:
    """Per distinct call and stream the smallest lag that it may have, by looking at every pair of calls."""
    past: dict[str, list[list[tuple[str, int, int, bool]]]] = {}
    out: dict[tuple[int, str], int] = {}
    for issue, scope in calls:
        mine = []
        for o in issue.operands:
            low = o.place.offset.evaluate(scope)
            mine.append((o.place.memory, low, low + o.tile.shape[0], o.name == "D"))
        for stream, theirs in past.items():
            for lag, prints in enumerate(reversed(theirs)):
                if any(a[0] == b[0] and a[1] < b[2] and b[1] < a[2] and (a[3] or b[3]) for a in mine for b in prints):
                    key = (id(issue), stream)
                    out[key] = min(lag, out.get(key, lag))
                    break
        past.setdefault(issue.unit, []).append(mine)
    return out
