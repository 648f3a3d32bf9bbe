"""Random trees in which all that waits are about stands together: two replicated groups dealt into each other, clusters
and commands of several calls, slots of instances, cells, loops back and forth, run-time sizes, shared nodes, one name
for loops in different places. They compute nothing that matters."""

from __future__ import annotations

import random
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import Burst
from isam.ir.kernel import Buffer, Kernel, Sym
from isam.ir.mapping import Cover
from isam.schedule.tree import (
    Bound,
    Deal,
    Issue,
    Loop,
    Node,
    Operand,
    Place,
    Schedule,
    Seq,
    Serpentine,
    Slot,
    Tile,
    Wait,
    distinct,
)
from isam.system.graph import Memory, Move, System, Unit
from isam.system.groups import Cluster, Replica
from tests.schedules import copy

OWNER = {"m": "", "c": "", "l": "core", "k": "arm"}
UNITS = {"h0": "", "h1": "", "dma": "core", "left": "core", "right": "core", "a0": "arm", "a1": "arm"}
STREAMS = {"h0": "", "h1": "", "dma": "core", "pair": "core", "a0": "arm", "a1": "arm"}
REGION = 1 << 12  # of an iteration of dealt loops
AREA = 1 << 18
BESIDE = 1 << 11  # from one call of a step to the next one
NAMES = "abcdef"


def machine(threads: bool) -> System:
    memories = {
        "m": Memory("m", "managed", 1 << 24, home=True), "c": Memory("c", "managed", 512, cells=8, cell=64),
        "l": Memory("l", "managed", 1 << 24), "k": Memory("k", "managed", 1 << 24)}  # fmt: skip
    moves = tuple(Move(a, b, "copy", u) for a in memories for b in memories for u in UNITS)
    replicas = {"core": Replica("core", 8, ("l",), ("dma", "left", "right")),
                "arm": Replica("arm", 4, ("k",), ("a0", "a1"), threads)}  # fmt: skip
    return System("groups", memories, {u: Unit(u, ("copy",), 1e9) for u in UNITS}, moves,
                  {"copy": replace(copy(), burst=Burst(2))},
                  replicas=replicas, clusters={"pair": Cluster("pair", ("left", "right"))})  # fmt: skip


class Groups:
    """Draws schedules. What an iteration of a dealt loop writes in a memory that it shares lies in a region of its own,
    and what it reads there no iteration of that loop writes."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.sizes = ("T",) if self.random.random() < 0.4 else ()
        self.around: list[Loop] = []  # dealt loops
        self.area = self.calls = 0
        r = self.random
        self.units = tuple(UNITS) if r.random() < 0.2 else tuple(r.sample(list(UNITS), r.randint(1, 3)))
        self.memories = "mmlllkkc" if r.random() < 0.2 else "".join(r.choices("mlllkkc", k=r.randint(1, 3)))
        self.groups = r.choice((("core",), ("core",), ("arm",), ("core", "core", "arm")))
        self.deals, self.spots = r.choice((0.2, 0.4, 0.7)), r.choice((1, 3, 7))
        self.deepest = r.choice((2, 3, 3, 4))
        self.pool: list[tuple[tuple[int, ...], int, frozenset[str], frozenset[str], Node]] = []

    def schedule(self) -> Schedule:
        r = self.random
        syms = tuple(Sym(n, 1) for n in self.sizes)
        kernel = Kernel("none", syms, (Buffer("x", (Affine((), 1 << 22),), "u8", "inout"),), ())
        slots = (Slot("W", "l", 1 << 13),)
        call = self.seq((), 0, r.randint(2, 5))
        return Schedule(kernel, machine(r.random() < 0.3), Cover(kernel, kernel, ()), (), Seq(), call, slots,
                        {"x": Place("m", "x", Affine(), (1,))})  # fmt: skip

    # loops ------------------------------------------------------------------------------------------------------------
    def seq(self, scope: tuple[str, ...], depth: int, many: int = 0) -> Seq:
        r, parts = self.random, list[Node]()
        for _ in range(many or r.randint(1, 3)):
            kind = r.random()
            old = self.again(scope) if kind < 0.12 else None
            if old is not None:
                parts.append(old)
                continue
            if depth < self.deepest and kind < 0.5:
                made: Node = self.deal(scope, depth) if r.random() < self.deals else self.loop(scope, depth)
            elif kind < 0.62:
                made = self.joined(scope)
            else:
                made = self.issue(scope)
            parts.append(made)
            nodes = list(distinct(made))
            mine = frozenset(n.var for n in nodes if isinstance(n, Loop))
            self.pool.append((tuple(map(id, self.around)), self.area, frozenset(scope), mine, made))
        return Seq(tuple(parts))

    def again(self, scope: tuple[str, ...]) -> Node | None:
        """A node that may stand here as well, its variables being those of other loops perhaps."""
        key = tuple(map(id, self.around))
        some = [n for around, area, free, own, n in self.pool
                if around == key and area == self.area and free <= {*scope} and own.isdisjoint(scope)]  # fmt: skip
        return self.random.choice(some) if some else None

    def free(self, scope: tuple[str, ...]) -> str:
        return self.random.choice([n for n in NAMES if n not in scope])

    def loop(self, scope: tuple[str, ...], depth: int) -> Loop:
        r, var = self.random, self.free(scope)
        step, trip = r.choice((1, 1, 2, 3)), r.choice((0, 1, 1, 2, 2, 3, 4))
        low = Affine((), r.choice((0, 0, 1, 2)))
        if scope and r.random() < 0.3:
            low = Affine.of(r.choice(scope), r.choice((1, 1, 2)), r.choice((0, 1)))
        high = low + step * trip - (r.randrange(step) if trip else 0)
        lo, hi, parts, serpentine = (Bound(low),), (Bound(high),), dict[str, Node](), None
        names, kind, inside = (*scope, *self.sizes), r.random(), (*scope, var)
        if kind < 0.15 and names:
            n = r.choice(names)
            hi = (Bound(Affine.of(n, 1, r.choice((0, 1, 2)))),)
            hi = (*hi, Bound(Affine((), 5))) if r.random() < 0.4 else hi
        elif kind < 0.25:
            hi = (Bound(low + 2 * high + r.choice((0, 1)), r.choice((2, 3))), *hi)
        elif kind < 0.4:
            step = 1
            hi = (Bound(low + trip),)
            lo = r.choice(((Bound(low + 1, 2),), (*lo, Bound(Affine((), 1))), (Bound(low * 2 - 1, 3), *lo)))
        elif kind < 0.45 and scope:
            serpentine = Serpentine(r.choice(scope), r.choice((1, 2)))
        else:
            if trip > 0 and r.random() < 0.35:
                parts["first"] = self.seq(inside, depth + 2)
            if trip > len(parts) and r.random() < 0.35:
                parts["last"] = self.seq(inside, depth + 2)
        for name in ("enter", "exit"):
            if r.random() < 0.25:
                parts[name] = self.seq(scope, depth + 2)
        return Loop(var, lo, hi, step, self.seq(inside, depth + 1), serpentine=serpentine, **parts)

    def deal(self, scope: tuple[str, ...], depth: int) -> Node:
        """A loop that is dealt out, or one around another, where instances are left for them."""
        r, group = self.random, self.random.choice(self.groups)
        mine = [n for n in self.around if n.deal is not None and n.deal.group == group]
        if mine:
            stride, left = 1, mine[-1].deal.stride if mine[-1].deal is not None else 1
        else:
            stride = r.choice((1, 1, 2, 4) if group == "core" else (1, 1, 2))
            left = 8 if group == "core" else 4
        most = left // stride
        if most < 1 or len(mine) > 1:
            return self.issue(scope)
        if mine and left == 4:
            stride = r.choice((1, 2))
            most = left // stride
        trip = r.randint(1, min(most, 3))
        first = r.choice((0, 0, (most - trip) * stride)) if not mine else 0
        var, step = self.free(scope), r.choice((1, 1, 2))
        low = Affine.of(r.choice(scope)) if scope and r.random() < 0.2 else Affine((), r.choice((0, 0, 1)))
        outermost = not self.around
        self.area += outermost
        empty = Loop(var, (Bound(low),), (Bound(low + step * trip - r.randrange(step)),), step, Seq(),
                     deal=Deal(group, first, stride))  # fmt: skip
        self.around.append(empty)
        body = self.seq((*scope, var), depth + 1)
        self.around.pop()
        return replace(empty, body=body)

    # calls ------------------------------------------------------------------------------------------------------------
    def issue(self, scope: tuple[str, ...]) -> Issue:
        return self.call(self.random.choice(self.units), scope)

    def call(self, unit: str, scope: tuple[str, ...]) -> Issue:
        size = self.random.choice((4, 8))
        operands = tuple(self.operand(n, scope, size) for n in "SD")
        self.calls += 1  # so that every call has a text of its own
        return Issue(unit, "copy", (("M", 1), ("N", size), ("number", self.calls)), operands)

    def joined(self, scope: tuple[str, ...]) -> Node:
        """A step of a cluster, whose members write far apart; or a command of several calls."""
        if self.random.random() < 0.5:
            head = self.call("left", scope)
            other = tuple(map(self.beside, head.operands))
            return Seq((head, replace(head, unit="right", joined=True, operands=other)))
        head = self.call(self.random.choice([u for u in self.units if u not in ("left", "right")] or ["h0"]), scope)
        if len({o.place.memory for o in head.operands} | {"c"}) < 3:
            return head
        return Seq((head, replace(head, joined=True, operands=tuple(map(self.beside, head.operands)))))

    def beside(self, o: Operand) -> Operand:
        p = o.place
        if p.cell is not None:
            return replace(o, place=replace(p, cell=p.cell + 4))
        t = o.tile._replace(start=(o.tile.start[0] + (BESIDE if p.base == "x" else 0),))
        return replace(o, tile=t, place=replace(p, offset=p.offset + BESIDE))

    def operand(self, name: str, scope: tuple[str, ...], size: int) -> Operand:
        r, steps = self.random, self.random.choice((1, 1, 1, 2))
        memory = r.choice(self.memories)
        at = Affine((), 8 * r.randrange(self.spots))
        for v in scope:
            if r.random() < 0.35:
                at = at + Affine.of(v, r.choice((4, 4, 8, 16, 8, -4)))
        tile = Tile("x", (Affine(),), (size,), (steps,))
        others = [n for n in self.around if n.deal is not None and n.deal.group != OWNER[memory]]
        if memory == "c":
            if others:
                memory = "m"
            else:
                return Operand(name, tile, Place("c", "", Affine(), (1,), r.randrange(4)), (0,))
        if memory == "l" and not others and r.random() < 0.3:
            return Operand(name, tile, Place("l", "W", at + 256, (1,)), (0,))
        area = self.area if others and (name == "D" or r.random() < 0.5) else r.randrange(self.area or 1)
        if not others:
            area = r.randint(0, self.area)
        region = Affine()
        if others and area == self.area:
            for n in others:
                region = region * 16 + (Affine.of(n.var) - n.lo[0].expr) * (2 // n.step)
        elif not others and area and r.random() < 0.7:
            region = Affine((), 2 * r.randrange(4) + 16 * r.choice((0, 0, 1)))
        at = at + region * (REGION // 2) + area * AREA + 256
        base = "x" if memory == "m" and r.random() < 0.2 else ""
        return Operand(name, tile._replace(start=(at,)) if base else tile, Place(memory, base, at, (1,)), (0,))


def drawn_waits(choose: random.Random) -> tuple[Wait, ...]:
    """For every stream a wait for some of its calls, now and then for two numbers, and perhaps of every instance."""
    out, kind = list[Wait](), choose.choice(("own", "every", "both"))
    for s, group in STREAMS.items():
        own = 0 if kind == "every" and group else choose.choice((1, 1, 1, 1, 2, 0))
        out += [Wait(s, choose.choice((0, 0, 0, 1, 1, 2, 3, 4, 6))) for _ in range(own)]
        if group and kind != "own":
            out.append(Wait(s, choose.choice((0, 0, 0, 1, 2)), True))
    choose.shuffle(out)
    return tuple(out)
