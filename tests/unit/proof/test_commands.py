"""Registers followed through trees, against carrying the trees out: what a command needs, and what it finds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import pytest

from isam.proof.registers import check_registers
from isam.proof.violation import Findings, issue_text
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile, distinct
from tests.unit.proof.handmade import loop, seq
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.orders import V
from tests.unit.proof.trees import without

Held = dict[str, tuple[Any, str]]
INSTRUCTIONS = {
    "one": ({}, {"r": 1}), "two": ({}, {"r": 2, "q": 1}), "size": ({}, {"q": "N"}), "seven": ({}, {"r": 7}),
    "lost": ({}, {"z": 1}), "takes one": ({"r": 1}, {}), "takes reset": ({"s": 0}, {}), "takes q": ({"q": 1}, {"r": 1}),
    "stride": ({"r": "stride A 0"}, {}), "column": ({"r": "stride A 1"}, {}), "distance": ({"q": "distance A"}, {}),
    "sets s": ({}, {"s": 0}),
}  # fmt: skip
CLUSTERS = {"x0": "x", "x1": "x"}
GROUP = SimpleNamespace(units=("x0", "x1"))


class Register(SimpleNamespace):
    def holds(self, value: Any) -> bool:
        return value in (0, 1, 2)


def machine() -> Any:
    made = {n: SimpleNamespace(name=n, requires=a, sets=b) for n, (a, b) in INSTRUCTIONS.items()}
    state = {n: Register(name=n, reset=reset) for n, reset in (("r", None), ("q", None), ("s", 0))}
    return SimpleNamespace(instructions=made, state=state, cluster_of=CLUSTERS.get,
                           stream_of=lambda u: CLUSTERS.get(u) or u, replicas={"g": GROUP})


def tree(bind: Node, call: Node) -> Any:
    s = SimpleNamespace(system=machine(), bind=bind, call=call)
    s.called = partial(Schedule.called, s)
    return s


@dataclass
class Run:
    """One execution: ``bad``: calls that do not find what they need, or set what cannot be held."""

    held: Held
    bad: set[str] = field(default_factory=set)

    def node(self, n: Node, env: dict[str, int]) -> None:
        if isinstance(n, Issue):
            self.step([n], env)
        elif isinstance(n, Seq):
            steps: list[list[Node]] = []
            for c in n.children:
                if isinstance(c, Issue) and c.joined and steps and isinstance(steps[-1][0], Issue):
                    steps[-1].append(c)
                else:
                    steps.append([c])
            for some in steps:
                if isinstance(some[0], Issue):
                    self.step([c for c in some if isinstance(c, Issue)], env)
                else:
                    self.node(some[0], env)
        else:
            values = n.values(env)
            if values:
                self.node(n.enter, env)
            for k, v in enumerate(values):
                self.forget(n)
                part = n.first if k == 0 and n.first else n.last if v == values[-1] and n.last else n.body
                self.node(part, {**env, n.var: v})
                self.forget(n)
            if values:
                self.node(n.exit, env)

    def forget(self, n: Loop) -> None:
        if n.deal is not None:
            self.held = {r: v for r, v in self.held.items() if v[1] != "x"}

    def step(self, calls: list[Issue], env: dict[str, int]) -> None:
        for c in calls:
            stream, (needs, sets) = CLUSTERS.get(c.unit, c.unit), INSTRUCTIONS[c.instruction]
            for r, what in needs.items():
                need = what
                if isinstance(what, str):
                    (o,) = (o for o in c.operands if o.name == "A")
                    kind, *_ = what.split()
                    if kind == "stride":
                        d = o.dims[int(what.split()[2])]
                        need = None if d is None or o.tile.shape[d] == 1 else o.place.strides[d] * o.tile.steps[d]
                    else:
                        at = [o.place.offset.evaluate(env) for x in calls for o in x.operands if o.name == "A"]
                        gaps = {b - a for a, b in pairwise(at)}
                        need = None if not gaps else gaps.pop() if len(gaps) == 1 else "several"
                if need is not None and self.held.get(r) not in ((need, ""), (need, stream)):
                    self.bad.add(issue_text(c))
            for r, value in sets.items():
                left = dict(c.sizes)[value] if isinstance(value, str) else value
                self.held[r] = left, stream
                if r == "z" or left not in (0, 1, 2):
                    self.bad.add(issue_text(c))


def call(choose: random.Random, joined: bool = False) -> Issue:
    names = list(INSTRUCTIONS)
    weight = dict.fromkeys(("one", "two", "takes one", "takes q"), 4.0) | dict.fromkeys(("seven", "lost"), 0.2)
    name = choose.choices(names, [weight.get(n, 1) for n in names])[0]
    dims = choose.choice(((0, 1), (0, 1), (1, 0), (None, 0)))
    strides, steps = (choose.choice((1, 2)), choose.choice((1, 2))), choose.choice(((1, 1), (1, 1), (2, 1)))
    t = Tile("A", (lit(0), lit(0)), (choose.choice((1, 2)), choose.choice((1, 2))), steps)
    o = Operand("A", t, Place("m", "", lit(choose.choice((0, 1, 2))), strides), dims)
    other = Operand("B", t, Place("m", "", lit(9), (5, 5)), dims)
    size = (("N", choose.choice((1, 1, 2, 3))),)
    return Issue(choose.choice(("x0", "x0", "x1", "y")), name, size, (other, o), None, (), (), joined)


def some(choose: random.Random, deep: int) -> Node:
    parts: list[Node] = []
    for _ in range(choose.randint(1, 3)):
        if deep and choose.random() < 0.45:
            parts.append(around(choose, deep - 1))
        else:
            parts.append(call(choose))
            while choose.random() < 0.2:
                parts.append(call(choose, joined=True))
    return seq(*parts)


def around(choose: random.Random, deep: int) -> Loop:
    var, kind = f"v{deep}{choose.randrange(9)}", choose.random()
    made = loop(var, 0, choose.choice((0, 2, 3)), 1, some(choose, deep))
    if kind < 0.15:
        return Loop(var, (Bound(lit(0)),), (Bound(V("T")),), 1, made.body, some(choose, 0), exit=some(choose, 0))
    if kind < 0.35:
        return loop(var, 0, 2, 1, made.body, **{p: some(choose, 0) for p in ("first", "last") if choose.random() < 0.6})
    if kind < 0.5:
        return Loop(var, made.lo, made.hi, 1, made.body, deal=Deal("g"))
    return loop(var, 0, made.hi[0].expr, 1, made.body, enter=some(choose, 0) if kind < 0.7 else Seq(),
                exit=some(choose, 0) if kind > 0.9 else Seq())  # fmt: skip


def plain(n: Node) -> bool:
    """Whether every way through a tree is one that is taken."""
    if isinstance(n, Issue):
        return True
    if isinstance(n, Seq):
        return all(map(plain, n.children))
    return n.trip is not None and n.first is None is n.last and all(map(plain, (n.enter, n.body, n.exit)))


def missing(s: Any) -> set[str]:
    """Calls that do not find what they need, whatever the size."""
    used = {c.instruction for t in (s.bind, s.call) for c in distinct(t) if isinstance(c, Issue)}
    out = set[str]()
    for t, n in product(range(4), (s.bind, s.call)):
        run = Run({} if "sets s" in used else {"s": (0, "")})
        run.node(n, {"T": t})
        out |= run.bad
    return out


@pytest.mark.parametrize("seed", range(2))
def test_what_commands_need_is_there(seed: int) -> None:
    said = Counter[bool]()
    for part in range(160):
        choose = random.Random(f"{seed} {part}")
        s = tree(some(choose, 0) if choose.random() < 0.2 else Seq(), some(choose, 2))
        for _ in range(choose.choice((0, 2, 3, 3))):  # less of what is wrong
            bad = missing(s)
            wrong = {id(c) for t in (s.bind, s.call) for c in distinct(t)
                     if isinstance(c, Issue) and issue_text(c) in bad and choose.random() < 0.8}  # fmt: skip
            s = tree(without(s.bind, wrong), without(s.call, wrong))
        bad, out = missing(s), Findings()
        check_registers(s, out)
        found = {v.step for v in out.found}
        assert bad <= found or len(found) >= out.limit, part
        assert found == bad or len(found) >= out.limit or not (plain(s.bind) and plain(s.call)), part
        assert {(v.obligation, v.kind) for v in out.found} <= {(10, "register")}
        said[bool(bad)] += 1
    assert min(said.values()) > 30
