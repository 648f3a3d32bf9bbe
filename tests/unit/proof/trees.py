"""Trees of moves and computations for the judge of what lies where, and what happens: byte by byte, in turn.

A step reads ``S`` and writes ``D``, whatever its instruction: a tile of a buffer of 4 x 4 numbers, moved or computed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.tree import Tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Slot, Tile
from isam.system.groups import Replica
from tests.unit.proof.handmade import tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_facts import Bytes

CORES, OWN, SIDE = 4, ("ra", "rb"), 4
PITCH = 4 * SIDE
Env = dict[str, int]


def at_home(buffer: str) -> Operand:
    whole = Tile(buffer, (lit(0), lit(0)), (SIDE, SIDE), (1, 1))
    return Operand("D", whole, Place("dram", buffer, lit(0), (PITCH, 4)), (0, 1))


@dataclass
class Steps:
    """Says of every step what it reads and writes."""

    real: Legality
    bounded: dict[Any, Any] = field(default_factory=dict)

    @property
    def schedule(self) -> Schedule:
        return self.real.schedule

    @property
    def buffers(self) -> Any:
        return self.real.buffers

    @property
    def everywhere(self) -> Context:
        return self.real.everywhere

    def context(self, vars_: tuple[Var, ...]) -> Context:
        return self.real.context(vars_)

    def signature(self, issue: Issue) -> Any:
        names = {o.name for o in issue.operands}
        reads = names & {"S", "R"} | ({"D"} if dict(issue.sizes).get("again") else set())
        pairs: list[Any] = []
        return SimpleNamespace(reads=reads, writes=names & {"D"}, instruction=None, extents={},
                               semantics=SimpleNamespace(pairs=pairs))  # fmt: skip


def schedule(call: Node) -> Schedule:
    s = tiny_matmul(SIDE, SIDE, SIDE)
    system = replace(s.system, replicas={"core": Replica("core", CORES, OWN, ("mm", "dma"))})
    return replace(s, system=system, call=call, workspace=(Slot("own", "rb", 256),))


def judged(s: Schedule, cuts: bool = False) -> list[tuple[int, str, str]]:
    lg: Any = Steps(Legality(s))
    out = Findings()
    Tree(s, lg, Isl(), out, cuts).check()
    return [(v.obligation, v.kind, v.message) for v in out.found]


def accepted(s: Schedule, name: str) -> Iterator[tuple[bool, list[tuple[int, str, str]], bool, bool]]:
    """With cuts or without: what is found, whether every step was followed, and whether none does wrong. What is
    accepted holds."""
    stale, home = wrong(s)
    for cuts in (False, True):
        found = judged(s, cuts)
        followed = all(kind == "final" for _, kind, _ in found)
        assert not (followed and stale), name
        assert found or home, name
        yield cuts, found, followed, not stale


# what happens ---------------------------------------------------------------------------------------------------------
def wrong(s: Schedule) -> tuple[list[Issue], bool]:
    """Steps that read tiles where they do not lie, or write what they read; and whether the result is at home."""
    memory, out = Bytes({}), list[Issue]()
    for b in "ABC":
        memory.write(at_home(b), False)
    run(s.call, {}, 0, memory, out)
    memory.env = {}
    return out, memory.holds(at_home("C"))


def run(n: Node, env: Env, instance: int, memory: Bytes, out: list[Issue]) -> None:
    if isinstance(n, Issue):
        memory.env = env
        mine = [replace(o, place=owned(o.place, instance)) for o in n.operands]
        read, written = (set(memory.places(o)) for o in mine)
        same = {b for _, b in read} & {b for _, b in written}
        if any(not 0 <= x < SIDE for e, _ in read | written for x in e):
            out.append(n)
        for o in mine:
            if ((o.name != "D" or dict(n.sizes).get("again")) and not memory.holds(o)) or same:
                out.append(n)
        for o in mine:
            if o.name == "D":
                memory.write(o, n.nest is not None)
    elif isinstance(n, Seq):
        for c in n.children:
            run(c, env, instance, memory, out)
    else:
        values = n.values(env)
        for at, v in enumerate(values):
            if at == 0:
                run(n.enter, env, instance, memory, out)
            part = n.first if at == 0 and n.first else n.last if v == values[-1] and n.last else n.body
            here = instance if n.deal is None else instance + n.deal.first + n.deal.stride * at
            run(part, {**env, n.var: v}, here, memory, out)
        if values:
            run(n.exit, env, instance, memory, out)


def owned(p: Place, instance: int) -> Place:
    return replace(p, memory=f"{p.memory}{instance}") if p.memory in OWN else p


# trees ----------------------------------------------------------------------------------------------------------------
class Trees:
    """Random trees that read, mostly, what they have put somewhere."""

    def __init__(self, choose: random.Random):
        self.choose, self.number = choose, 0

    def tree(self) -> Node:
        known: list[Operand] = [at_home(b) for b in "ABC"]
        made: Node = Seq(tuple(self.node(known, (), 2, None) for _ in range(self.choose.randint(1, 3))))
        for _ in range(self.choose.choice((1, 2, 4, 4))):  # less of what is wrong
            bad = dict.fromkeys(id(n) for n in wrong(schedule(made))[0])
            if not bad:
                break
            made = without(made, {n for n in bad if self.choose.random() < 0.9})
        return made

    def node(self, known: list[Operand], names: tuple[str, ...], deep: int, deal: Deal | None) -> Node:
        what = self.choose.random()
        if not deep or what < 0.35:
            return Seq(tuple(self.step(known, names) for _ in range(self.choose.randint(1, 3))))
        return self.loop(known, names, deep, deal)

    def loop(self, known: list[Operand], names: tuple[str, ...], deep: int, deal: Deal | None) -> Node:
        choose = self.choose
        self.number += 1
        var, by, trip = f"v{self.number}", choose.choice((1, 2, 2, 4)), choose.choice((1, 2, 2, 4))
        trip = min(trip, SIDE // by)
        lo = lit(choose.choice((0, 0, 0, 2)) if by * trip + 2 <= SIDE else 0)
        before, enter, leave = list(known), Seq(), Seq()
        if choose.random() < 0.25:
            enter = Seq((self.step(known, names),))
        inside = list(known)
        mine = deal is None and trip > 1 and choose.random() < 0.2
        body = Seq(
            tuple(
                self.node(inside, (*names, var), deep - 1 if n == 0 else 0, deal) for n in range(choose.randint(1, 2))
            )
        )
        made = Loop(var, (Bound(lo),), (Bound(lo + by * trip),), by, body, enter)
        if mine:
            self.number += 1
            made = replace(made, enter=Seq(), deal=Deal("core", choose.choice((0, 0, 1)) if trip < 4 else 0, 1))
        else:
            for part in ("first", "last"):
                if choose.random() < 0.2 and trip >= 1 + (made.first is not None):
                    again = (
                        Seq((body, self.step(inside, (*names, var))))
                        if choose.random() < 0.5
                        else Seq(body.children[1:])
                    )
                    made = replace(made, **{part: again})
            if choose.random() < 0.25:
                leave = Seq((self.step([o for x in inside for o in outside(x, made)], names),))
                made = replace(made, exit=leave)
        if choose.random() < 0.3:
            known[:] = before
        known += [y for x in inside if x not in known for y in outside(x, made)]
        return made

    def step(self, known: list[Operand], names: tuple[str, ...]) -> Issue:
        choose = self.choose
        source = choose.choice(known[-4:] if choose.random() < 0.6 else known)
        if choose.random() < 0.5:
            source = self.part(source, names)
        if choose.random() < 0.05:
            source = replace(source, place=replace(source.place, offset=source.place.offset + 16))
        t = source.tile
        compute = choose.random() < 0.35
        if compute and choose.random() < 0.5:
            t = t._replace(buffer="C")
        target = Operand("D", t, self.place(t, names, compute), (0, 1))
        known.append(target)
        ops = (replace(source, name="S"), target)
        return Issue("dma", "any", (("again", int(choose.random() < 0.05)),), ops, 0 if compute else None)

    def part(self, o: Operand, names: tuple[str, ...]) -> Operand:
        """Some rows or columns of a tile, at a loop's variable or a number."""
        choose, t = self.choose, o.tile
        d = choose.randrange(2)
        n = choose.choice((1, 2, 4))
        if n > t.shape[d] or t.steps[d] > 1 or o.place.cell is not None:
            return o
        at = Affine.of(choose.choice(names)) if names and choose.random() < 0.8 else lit(choose.choice((0, 0, n)))
        step = 2 if 2 * n <= t.shape[d] and choose.random() < 0.1 else 1
        start = tuple(s + at if e == d else s for e, s in enumerate(t.start))
        shape = tuple(n if e == d else s for e, s in enumerate(t.shape))
        steps = tuple(step if e == d else s for e, s in enumerate(t.steps))
        made = t._replace(start=start, shape=shape, steps=steps)
        return replace(o, tile=made, place=replace(o.place, offset=o.place.offset + at * o.place.strides[d]))

    def place(self, t: Tile, names: tuple[str, ...], compute: bool) -> Place:
        choose, what = self.choose, self.choose.random()
        if what < 0.3:
            return Place("dram", t.buffer, t.start[0] * PITCH + t.start[1] * 4, (PITCH, 4))
        if what < 0.65:
            strides = choose.choice(((PITCH, 4), (PITCH, 4), (4, PITCH)))
            rule = t.start[0] * strides[0] + t.start[1] * strides[1]
            return Place("sp", "", choose.choice((rule, rule, lit(0), lit(64))) + choose.choice((0, 0, 64)), strides)
        if what < 0.75:
            return Place("rb", "own", choose.choice((lit(0), t.start[0] * PITCH)), (PITCH, 4))
        cell = choose.randrange(3)
        return Place("ra", "", lit(0), (4 * t.shape[1] * t.steps[1], 4), cell)


def outside(o: Operand, n: Loop) -> list[Operand]:
    """What is left of a tile behind a loop: of the last iteration, and of all where they lie by one rule."""
    exprs = (*o.tile.start, o.place.offset)
    if not any(e.coefficient(n.var) for e in exprs):
        return [o]
    first, trip = n.lo[0].expr, n.trip or 1
    last = {n.var: first + n.step * (trip - 1)}
    out = [moved(o, last)]
    along = [d for d, s in enumerate(o.tile.start) if s.coefficient(n.var) == 1]
    if len(along) == 1 and o.tile.shape[along[0]] == n.step and o.tile.steps == (1, 1) and o.place.cell is None:
        d = along[0]
        if o.place.offset.coefficient(n.var) == o.place.strides[d]:
            whole = moved(o, {n.var: first})
            shape = tuple(n.step * trip if e == d else s for e, s in enumerate(o.tile.shape))
            out.append(replace(whole, tile=whole.tile._replace(shape=shape)))
    return out


def moved(o: Operand, by: dict[str, Affine]) -> Operand:
    tile = o.tile._replace(start=tuple(s.substitute(by) for s in o.tile.start))
    return replace(o, tile=tile, place=replace(o.place, offset=o.place.offset.substitute(by)))


def without(n: Node, some: set[int]) -> Node:
    if isinstance(n, Issue):
        return Seq() if id(n) in some else n
    if isinstance(n, Seq):
        return Seq(tuple(without(c, some) for c in n.children))
    return replace(n, **{p: without(x, some) for p in ("enter", "first", "body", "last", "exit")
                         if (x := getattr(n, p)) is not None})  # fmt: skip
