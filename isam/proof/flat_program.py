"""A schedule's trees as programs of the compiled walk (see :mod:`isam.proof.flat_walk`): the flat checker's fast path.

The walk takes the steps in which nothing is wrong. The others, and what is not in a program (loops that are dealt out,
names without a value, numbers beyond 64 bits), come back here and are judged by :class:`isam.proof.flat.Replay` from
the state that the walk has left, which is the one that the step by step execution would have.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from isam.ir.affine import Affine
from isam.proof import flat_walk as w
from isam.proof.flat_step import compile_step
from isam.proof.flat_table import ROOM, Table, Words
from isam.proof.registers import Held, commands, judge
from isam.proof.subset import Compiled
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Node, Seq, distinct

if TYPE_CHECKING:
    from isam.proof.flat import Replay

ARRAYS = dict.fromkeys(w.Memory.__dataclass_fields__, "int64") | {
    "version": "int32", "current": "int32", "want": "int32", "done": "uint8"}  # fmt: skip
Scope = frozenset[str]


@cache
def walk() -> Compiled:
    return Compiled(w.FUNCTIONS, ARRAYS)


def available() -> bool:
    """Whether the walk can be compiled: its text has to be there."""
    try:
        return bool(walk())
    except OSError:
        return False


class Program:
    """Executes trees for a replay."""

    def __init__(self, replay: Replay):
        self.replay, self.table = replay, Table(replay)
        self.run_compiled = walk()
        self.code = Words(0)
        self.steps: list[Issue] = []
        self.where = np.zeros(64, np.int64)  # of a step in the table
        self.ready = 0  # how many were put into the table
        self.number: dict[int, int] = {}  # of an issue
        self.places: dict[int, tuple[Node, Scope]] = {}  # what stands at an operation that may come back
        self.known: dict[tuple[int, Scope], int] = {}
        self.groups: dict[object, int] = {}  # commands that are alike: see ``_group``
        self.held: dict[frozenset, tuple[int, Held]] = {}
        self.after = np.full((8, 8), -1, np.int64)
        self.mark = np.zeros(replay.space.token.size, np.int64)
        self.stamp = 0  # the last one used in it
        self.code.add([w.END])

    # -- execution ---------------------------------------------------------------------------------------------------
    def takes(self, n: Node, env: dict[str, int]) -> bool:
        """Whether a node is one for the compiled walk (what is in it need not be)."""
        small = all(abs(v) <= w.LARGEST for v in env.values())
        return small and (isinstance(n, Seq) or (isinstance(n, Loop) and self._plain(n, frozenset(env))))

    def run(self, n: Node, env: dict[str, int]) -> None:
        r, sp, t = self.replay, self.replay.space, self.table
        begin = self._routine(n, frozenset(env))
        self._prepare()
        given = {self.table.slot(name): v for name, v in env.items()}  # which nothing need name
        slots, deep = len(self.table.slots) + 1, len(self.known) + 2
        state, stack, values, low, high = (np.zeros(k, np.int64) for k in (8, deep, slots, slots, slots))
        for at, v in given.items():
            values[at] = v
        state[w.PC], state[w.DEPTH], state[w.STAMP] = begin, 1, self.stamp  # the end stands at 0
        while True:
            state[w.LEFT], state[w.HELD], state[w.GROUPS] = r.left, self._held(), self.after.shape[1]
            op = self.run_compiled(w.Memory(
                self.code.array, state, stack, values, low, high, t.words.array, self.where, np.zeros(ROOM, np.int64),
                t.runs.array, sp.token, sp.version, sp.current, t.numbers.want, t.numbers.done,
                t.numbers.seen, self.mark, self.after))  # fmt: skip
            self.stamp = int(state[w.STAMP])
            r.left, r.held = int(state[w.LEFT]), dict(list(self.held.values())[int(state[w.HELD])][1])
            if op == w.END:
                return
            self._asked(op, state, values)

    def _prepare(self) -> None:
        """Steps that the code names are put into the table, but for those of which something is wrong whatever the
        state: what is wrong is said when they are executed."""
        for i, issue in enumerate(self.steps[self.ready :], self.ready):
            made = compile_step(issue, self.replay, Findings())
            if made is not None:
                self.replay.steps[id(issue)] = made
                self.where[i] = self.table.step(made)
        self.ready = len(self.steps)

    def _asked(self, op: int, state: np.ndarray, values: np.ndarray) -> None:
        """Something that the walk has left alone."""
        r, pc = self.replay, int(state[w.PC])
        state[w.PC] = pc + 2
        if op == w.COMMAND:
            self._command(self.places[pc][0], int(self.code.array[pc + 1]), int(state[w.HELD]))
            return
        node, scope = self.places[pc]
        env = {name: int(values[self.table.slots[name]]) for name in scope}
        if op == w.LOOP:
            assert isinstance(node, Loop)
            r.loop(node, env)
            state[w.PC] = self.code.array[pc + 5]
        elif isinstance(node, Issue):
            r.issue(node, env)
            if op == w.STEP and self.where[i := int(self.code.array[pc + 1])] == w.UNKNOWN:
                self.where[i] = w.PASSED  # illegal, and that is said once
        elif isinstance(node, Seq):  # a step in which something may be wrong; its calls follow
            r.joined.judge([c for c in node.children if isinstance(c, Issue)], env, r.out)
        else:
            r.node(node, env)

    def _held(self) -> int:
        key = frozenset(self.replay.held.items())
        if key not in self.held:
            self.held[key] = len(self.held), dict(self.replay.held)
            if len(self.held) > len(self.after):
                self.after = np.concatenate([self.after, np.full_like(self.after, -1)])
        return self.held[key][0]

    def _command(self, calls: Node, group: int, before: int) -> None:
        """What is held after a command; remembered where there is nothing wrong with it."""
        r = self.replay
        assert isinstance(calls, Seq)
        found = sum(r.out.per_kind.values())
        judge([c for c in calls.children if isinstance(c, Issue)], r.held, r.schedule.system, r.out)
        now = self._held()
        if sum(r.out.per_kind.values()) == found:
            self.after[before, group] = now

    # -- trees -------------------------------------------------------------------------------------------------------
    def _fits(self, forms: list[Affine], scope: Scope) -> bool:
        """Every name has a value, and 64 bits are enough."""
        return all(w.fits(f) and all(n in scope for n, _ in f.terms) for f in forms)

    def _plain(self, n: Loop, scope: Scope) -> bool:
        bounds = (*n.lo, *n.hi)
        fits = self._fits([b.expr for b in bounds], scope) and all(0 < b.div <= w.MOST for b in bounds)
        upwards = n.deal is None and n.serpentine is None
        return bool(fits and n.lo and n.hi and upwards and n.var not in scope and 0 < n.step <= w.MOST)

    def _routine(self, n: Node, scope: Scope) -> int:
        """Where the code of a node begins; it ends by going back to where it was called."""
        key = (id(n), scope)
        if key not in self.known:
            if isinstance(n, Loop):
                self.known[key] = self._loop(n, scope)
            else:
                assert isinstance(n, Seq)
                self.known[key] = self._lay([*self._parts(n, scope), ([w.BACK], None)])
        return self.known[key]

    def _lay(self, pieces: list[tuple[list[int], tuple[Node, Scope] | None]]) -> int:
        begin = self.code.n
        for words, place in pieces:
            at = self.code.add(words)
            if place is not None:
                self.places[at] = place
        return begin

    def _parts(self, n: Node, scope: Scope) -> list[tuple[list[int], tuple[Node, Scope] | None]]:
        """The code of a node that stands in another one."""
        out: list[tuple[list[int], tuple[Node, Scope] | None]] = []
        for parts in commands(n) if isinstance(n, Seq) else [[n]]:
            calls = [c for c in parts if isinstance(c, Issue)]
            if calls and not self.replay.joined.always(calls):
                out.append(([w.ASK, 0], (Seq(tuple(calls)), scope)))
            if self.replay.schedule.system.state and calls:
                out.append(([w.COMMAND, self._group(calls)], (Seq(tuple(calls)), scope)))
            for c in parts:
                if isinstance(c, Issue):
                    at = [s for o in c.operands for s in (*o.tile.start, o.place.offset)]
                    fits = self._fits([*at, *(p for _, p in c.point)], scope)
                    out.append(([w.STEP, self._number(c)] if fits else [w.ASK, 0], (c, scope)))
                elif c != Seq():
                    taken = isinstance(c, Seq) or self._plain(c, scope)
                    out.append(([w.CALL, self._routine(c, scope)], None) if taken else ([w.ASK, 0], (c, scope)))
        return out

    def _number(self, issue: Issue) -> int:
        got = self.number.get(id(issue))
        if got is None:
            got = self.number[id(issue)] = len(self.steps)
            self.steps.append(issue)
            if got >= self.where.size:
                self.where = np.concatenate([self.where, np.zeros_like(self.where)])
        return got

    def _group(self, calls: list[Issue]) -> int:
        """A number for commands that need and set the same: of equal signatures, as far from call to call."""
        gaps = [[q.place.offset - p.place.offset for p, q in zip(a.operands, b.operands, strict=False)]
                for a, b in pairwise(calls)]  # fmt: skip
        key = tuple([id(self.replay.legality.signature(c)) for c in calls]), tuple(map(tuple, gaps))
        if key not in self.groups:
            self.groups[key] = len(self.groups)
            if len(self.groups) > self.after.shape[1]:
                self.after = np.concatenate([self.after, np.full_like(self.after, -1)], 1)
        return self.groups[key]

    def _loop(self, n: Loop, scope: Scope) -> int:
        var, inner = self.table.slot(n.var), scope | {n.var}
        needs = (n.first is not None) + (n.last is not None)
        parts = {k: self._parts(p, scope) for k, p in (("enter", n.enter), ("exit", n.exit))}
        bodies = {k: self._parts(p, inner) for k, p in (("body", n.body), ("first", n.first), ("last", n.last)) if p}
        bounds = self.table.words.add([x for side in (n.lo, n.hi) for x in (len(side), *self._bounds(side))])
        loop = [w.LOOP, 0, var, n.step, needs, 0, bounds]
        begin = self._lay([(loop, (n, scope)), *parts["enter"]])
        if any(isinstance(c, Loop) and c.var == n.var for c in distinct(n.enter)):
            self._lay([(loop, None)])  # its bounds again: one of the same name has taken their place
        self._lay([([w.START, var], None)])
        head = self._lay([([w.HEAD, var, n.step, -1, -1], None)])
        ends = []
        for k, (name, pieces) in enumerate(bodies.items()):
            at = self._lay(pieces)
            if name != "body":
                self.code.array[head + (3 if name == "first" else 4)] = at
            ends.append(self._lay([([w.NEXT, var, n.step, head, 0], None)]))
            assert k or name == "body"
        leave = self._lay(parts["exit"])
        for e in ends:
            self.code.array[e + 4] = leave
        self.code.array[begin + 5] = self._lay([([w.BACK], None)])
        return begin

    def _bounds(self, side: tuple[Bound, ...]) -> list[int]:
        return [x for b in side for x in (b.div, *self.table.form(b.expr))]
