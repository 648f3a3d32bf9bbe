"""What replicas do side by side, by enumeration: iterations that meet, calls that may start too early, slots apart."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.proof.dealt import Dealt
from isam.proof.facts import Facts
from isam.proof.instances import Instances
from isam.proof.legal import Legality
from isam.proof.races import calls, check_races
from isam.proof.sets import Isl
from isam.proof.violation import Findings, issue_text
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Slot, Tile, Wait, distinct
from isam.system.graph import Unit
from isam.system.groups import Replica
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.orders import carried_out
from tests.unit.proof.test_walks import dealt, touched
from tests.unit.proof.trees import Steps

V = Affine.of
CORES = 4


def replicated(*memories: str, threads: bool = False, count: int = CORES) -> Schedule:
    """A machine with a unit that is there once, and the others, with these memories, in every instance."""
    s = tiny_matmul(16, 16, 16)
    units = {**s.system.units, "more": Unit("more", ("copy",), 1e9)}
    cores = Replica("core", count, memories, ("mm", "dma"), threads)
    return replace(s, system=replace(s.system, units=units, replicas={"core": cores}))


# iterations -----------------------------------------------------------------------------------------------------------
def somewhere(choose: random.Random, name: str, inner: bool) -> Operand:
    """A tile in the result at home, in a shared scratchpad, or in shared cells."""
    u = V("u") if inner else lit(0)
    shape, what = (choose.choice((1, 2)), choose.choice((1, 2, 4))), choose.random()
    if what < 0.45:
        start = (V("v", choose.choice((0, 1, 2))) + u * choose.choice((0, 1, 4)) + choose.choice((0, 0, 2)),
                 V("v", choose.choice((0, 2, 4))) + u * choose.choice((0, 1)))  # fmt: skip
        steps = (1, choose.choice((1, 1, 2)))
        place = Place("dram", "C", start[0] * 64 + start[1] * 4, (64, 4))
        return Operand(name, Tile("C", start, shape, steps), place, (0, 1))
    t = Tile("C", (lit(0), lit(0)), shape, (1, 1))
    if what < 0.85:
        offset = V("v", choose.choice((4, 8, 16, 64))) + u * choose.choice((0, 8, 32)) + choose.choice((0, 0, 64))
        return Operand(name, t, Place("sp", "", offset, choose.choice(((16, 4), (8, 4), (32, 4), (4, 16)))), (0, 1))
    offset = V("v", choose.choice((0, 0, 4)))
    return Operand(name, t, Place("ra", "", offset, (8, 4), choose.randrange(3)), (0, 1))


def side_by_side(choose: random.Random) -> Loop:
    kind = choose.choice(("none", "none", "step", "lows", "peeled", "size", "alone"))

    def step() -> Issue:
        own = Operand("S", Tile("C", (lit(0), lit(0)), (1, 1), (1, 1)), Place("rb", "", lit(0), (8, 4), 0), (0, 1))
        source = somewhere(choose, "S", kind != "none") if choose.random() < 0.4 else own
        return Issue("dma", "copy", (), (source, somewhere(choose, "D", kind != "none")))

    body: Node = seq(*(step() for _ in range(choose.choice((1, 1, 2)))))
    if kind in ("step", "peeled", "alone"):
        by = choose.choice((1, 2))
        body = loop("u", 0, by * (1 if kind == "alone" else 3), by, body)
        if kind == "alone":  # its body never runs
            body = replace(body, first=step())
        if kind == "peeled":
            body = replace(body, **{p: step() for p in ("first", "last") if choose.random() < 0.6})
    elif kind == "lows":
        body = Loop("u", (Bound(lit(0)), Bound(V("v", 1, -1))), (Bound(lit(3)),), 1, body)
    elif kind == "size":
        body = loop("u", 0, V("T"), 1, body)
    by = choose.choice((1, 2))
    return replace(loop("v", 0, by * choose.randint(2, 3), by, body), deal=Deal("core", 0, 1))


class Told(Steps):
    """Says of every step what it reads and writes."""

    def one_address(self, base: str) -> bool:
        return self.real.one_address(base)

    def written(self, instruction: str) -> frozenset[str]:
        return self.real.written(instruction)


def refused(s: Schedule, call: Node) -> list[str]:
    made, out = replace(s, call=call), Findings()
    lg: Any = Told(Legality(made))
    Dealt(made, Facts(lg, Isl()), out).check()
    return [v.message for v in out.found]


def meeting(n: Loop, sizes: dict[str, int]) -> bool:
    """Whether an iteration writes what another touches."""
    reads: list[set[Any]] = []
    writes: list[set[Any]] = []
    for v in n.values(sizes):
        read, wrote = set[Any](), set[Any]()
        for issue, env in carried_out(n.body, {**sizes, "v": v}):
            for o in issue.operands:
                if o.place.memory != "rb":
                    (wrote if o.name == "D" else read).update(touched(o, env))
        reads.append(read)
        writes.append(wrote)
    return any(writes[i] & (reads[j] | writes[j]) for i in range(len(reads)) for j in range(len(reads)) if i != j)


@pytest.mark.parametrize("seed", range(2))
def test_iterations_that_meet(seed: int) -> None:
    s, said, sizes = replicated("rb"), Counter[bool](), [{"T": n} for n in range(4)]
    s = replace(s, cover=replace(s.cover, kernel=replace(s.kernel, syms=(Sym("T"),))))
    for part in range(150):
        n = side_by_side(random.Random(f"{seed} {part}"))
        want, found = any(meeting(n, t) for t in sizes), refused(s, n)
        assert not want or found, part
        assert want or not found or V("T") in [b.expr for x in distinct(n) if isinstance(x, Loop) for b in x.hi], part
        said[want] += 1
    assert min(said.values()) > 30


def test_the_form_of_what_is_dealt() -> None:
    """A known number of iterations; of none nothing is asked."""
    s = replicated("rb")
    s = replace(s, cover=replace(s.cover, kernel=replace(s.kernel, syms=(Sym("T"),))))
    for trip, first, right in (
        (lit(2), 0, True), (lit(2), CORES - 1, False), (lit(0), CORES, True), (V("T"), 0, False)):  # fmt: skip
        node = replace(loop("v", 0, trip, 1, Seq()), deal=Deal("core", first, 1))
        assert (not dealt(s, node)) == right, (trip, first)
    s = replicated("rb", count=64)
    for strides, right in (((1, 2, 16), False), ((2, 1, 16), False), ((1, 4, 16), True), ((1, 16, 4), True)):
        node = Seq()
        for n, stride in enumerate(strides):
            node = replace(loop(f"v{n}", 0, 4, 1, node), deal=Deal("core", 0, stride))
        assert (not dealt(s, node)) == right, strides


def test_slots_of_instances_lie_apart_whatever_the_steps() -> None:
    s = replicated("sp", "ra", "rb")
    for steps, sizes in (((3,), (64,)), ((1,), (40, 200)), ((4, 6), (40, 200)), ((5, 7), (200, 40)), ((), (8,)),
                         ((1, 9), (1, 1))):  # fmt: skip
        nodes = [replace(loop(f"v{n}", 0, 2 * k, k, Seq()), deal=Deal("core")) for n, k in enumerate(steps)]
        slots = tuple(Slot(f"W{n}", "sp", size) for n, size in enumerate(sizes))
        free = loop("free", 0, 77, 11, seq(*nodes))
        made = Instances(replace(s, workspace=slots, call=free))
        assert made.apart >= max(sizes)
        assert not any(made.apart % k for k in steps)
        place = Place("sp", "W0", V("v"), (8, 4))
        assert made.at(place) == V("v") + V("^core", made.apart)
        assert made.at(replace(place, base="")) == V("v")


# calls ----------------------------------------------------------------------------------------------------------------
UNITS = ("dma", "more", "mm")


@dataclass
class Given:
    """Calls in the tree's order, each with its instance and, inside a dealt loop, the number of the outermost."""

    calls: list[tuple[Issue, dict[str, int], int, int | None]] = field(default_factory=list)
    begun: list[int] = field(default_factory=list)  # how many were given when each outermost dealt loop began

    def node(self, n: Node, env: dict[str, int], instance: int, number: int | None) -> None:
        if isinstance(n, Issue):
            self.calls.append((n, env, instance, number))
        elif isinstance(n, Seq):
            for c in n.children:
                self.node(c, env, instance, number)
        else:
            values = n.values(env)
            if values:
                self.node(n.enter, env, instance, number)
            inner = number
            if n.deal is not None and number is None and values:
                inner = len(self.begun)
                self.begun.append(len(self.calls))
            for k, v in enumerate(values):
                here = instance + (n.deal.first + n.deal.stride * k if n.deal is not None else 0)
                part = n.last if n.last and v == values[-1] else n.first if n.first and k == 0 else n.body
                self.node(part, {**env, n.var: v}, here, inner)
            if values:
                self.node(n.exit, env, instance, number)


def racing(s: Schedule) -> set[str]:
    """Calls that may start before another one that they meet has finished."""
    (group,) = s.system.replicas.values()
    given, done, out = Given(), list[set[int]](), set[str]()
    given.node(s.call, {}, 0, None)

    def stream(unit: str, instance: int) -> tuple[str, int]:
        return unit, instance if unit in group.units else 0

    def places(issue: Issue, env: dict[str, int], instance: int, names: str) -> set[Any]:
        return {(instance if m in group.memories else 0, m, b) for o in issue.operands if o.name in names
                for m, b in touched(o, env)}  # fmt: skip

    streams = [stream(i.unit, at) for i, _, at, _ in given.calls]
    what = [tuple(places(i, env, at, names) for names in ("SX", "DY")) for i, env, at, _ in given.calls]
    for n, (issue, _, instance, number) in enumerate(given.calls):
        mine = [m for m in range(n) if streams[m] == streams[n]]
        have = set(done[mine[-1]]) if mine else set()
        if issue.unit in group.units and group.threads:
            thread = [m for m in range(n) if streams[m][0] in group.units and streams[m][1] == streams[n][1]]
            have |= {x for m in thread for x in (m, *done[m])}
        for w in issue.after:
            if not w.every:
                steps = [m for m in range(n) if streams[m] == stream(w.stream, instance)]
                steps = steps[: max(0, len(steps) - w.lag)]
            else:
                inside = number if w.stream in group.units else None
                until = n if inside is None else given.begun[inside - w.lag] if inside >= w.lag else 0
                steps = [m for m in range(until) if given.calls[m][0].unit == w.stream]
            have |= {x for m in steps for x in (m, *done[m])}
        for m in set(range(n)) - have:
            (reads, writes), (read, wrote) = what[n], what[m]
            if writes & (read | wrote) or reads & wrote:
                out.add(issue_text(issue))
        done.append(have)
    return out


def caller(choose: random.Random, names: tuple[str, ...], number: int) -> Issue:
    unit, operands = choose.choice(UNITS), []
    for name in ("X", "Y") if unit == "mm" else ("S", "D"):
        at = lit(choose.choice((16, 32))) + (V(choose.choice(names), choose.choice((4, 16))) if names else 0)
        memory, cell = choose.choice((("sp", None), ("dram", None), ("ra", choose.randrange(2))))
        t = Tile("A", (lit(0), lit(0)), (1, choose.choice((1, 2))), (1, 1))
        operands.append(Operand(name, t, Place(memory, "", at, (8, 4), cell), (0, 1)))
    after = []
    for _ in range(choose.choice((0, 1, 2, 2, 3))):
        every = choose.random() < 0.6
        after.append(Wait(choose.choice(UNITS), choose.choice((0, 0, 1)), every))
    after = [replace(w, lag=0) if w.every and (w.stream == "more" or not names) else w for w in after]
    size = (("number", number),)  # so that every call has a text of its own
    return Issue(unit, "relu4" if unit == "mm" else "copy", size, tuple(operands), None, (), tuple(after))


def trees(choose: random.Random) -> Node:
    numbers = iter(range(100))

    def some(names: tuple[str, ...]) -> Iterator[Node]:
        return (caller(choose, names, next(numbers)) for _ in range(choose.randint(1, 2)))

    parts: list[Node] = []
    for n in range(choose.randint(1, 3)):
        if choose.random() < 0.3:
            parts += some(())
        var, inner = f"v{n}", f"u{n}"
        body: Node = seq(*some((var,)))
        if choose.random() < 0.3:
            body = seq(body, replace(loop(inner, 0, 2, 1, seq(*some((inner,)))),
                                     deal=Deal("core", 0, 2)))  # fmt: skip
        parts.append(replace(loop(var, 0, 2, 1, body), deal=Deal("core", choose.choice((0, 1)), 1)))
    made: Node = seq(*parts)
    return loop("w", 0, 2, 1, made) if choose.random() < 0.3 else made


@pytest.mark.parametrize("threads", [False, True])
def test_who_may_start_too_early_among_instances(threads: bool) -> None:
    s, said = replicated("sp", "ra", threads=threads, count=8), Counter[bool]()
    for part in range(150):
        made = replace(s, call=trees(random.Random(f"{threads} {part}")))
        want = racing(made)
        assert {v.step for v in check_races(made, most=1000)} == want, part
        said[bool(want)] += 1
    assert min(said.values()) > 15


def test_the_sizes_that_are_given_count() -> None:
    """A loop of as many iterations as a size says; the first of one iteration is not its body."""
    s = tiny_matmul()
    s = replace(s, cover=replace(s.cover, kernel=replace(s.kernel, syms=(Sym("T"),))))
    t = Tile("A", (lit(0), lit(0)), (1, 1), (1, 1))
    one, two = (Issue(u, "copy", (), (Operand("D", t, Place("sp", "", at, (8, 4)), (0, 1)),))
                for u, at in (("dma", lit(8)), ("mm", V("v", 4))))  # fmt: skip
    made = replace(s, call=seq(one, loop("v", 0, V("T"), 1, two)))
    assert [bool(check_races(made, {"T": n})) for n in range(4)] == [False, False, False, True]
    once = loop("v", 0, 1, 1, two, first=one)
    assert [i for i, _ in calls(seq(once, two), {})] == [one, two]
