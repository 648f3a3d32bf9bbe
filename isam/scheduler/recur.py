"""Kept loops: bodies whose end state is their begin state (SCH-10)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Issue, Loop, Node, Seq, distinct
from isam.scheduler.conform import conform, leave
from isam.scheduler.plan import USED, Members
from isam.scheduler.state import Copy, Key, MachineState, Since
from isam.scheduler.tiles import mentions
from isam.scheduler.trim import Env

if TYPE_CHECKING:
    from isam.scheduler.walk import Walk


@dataclass(frozen=True)
class Cut:
    """A loop to be kept: ``var`` from ``lo`` in steps over ``span`` elements of ``axis``, its values within ``bounds``.
    Its body is the level ``depth`` in each of ``envs``: more than one, where what is double-buffered has a place in
    each. ``only``: the nests that alone have it. ``within``: further bounds, lower and upper ones, that depend on where
    loops around it are: it may have no iteration then, so that nothing stays near over it."""

    var: str
    axis: str
    lo: Affine
    span: int
    step: int
    bounds: tuple[int, int]
    envs: tuple[Env, ...]
    depth: int
    only: Members | None = None
    within: tuple[tuple[Bound, ...], tuple[Bound, ...]] = ((), ())

    @property
    def ends(self) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
        """The bounds of its variable."""
        return (Bound(self.lo), *self.within[0]), (Bound(self.lo + self.span), *self.within[1])


class KeptLoop(NamedTuple):
    """A loop, the state after it, per memory behind what its last iteration has put there, and what happens in it."""

    node: Loop
    state: MachineState
    behind: dict[str, int]
    since: Since


class Kept(NamedTuple):
    """What an iteration does that suggests what to carry, what of that could not be kept, and the loop with the rest;
    None: the rounds were too few."""

    since: Since
    left: dict[Key, Copy]
    made: KeptLoop | None


class Recur:
    """Builds one kept loop from the state before it (SCH-10): ``first`` and ``last`` are nests that take part in its
    first and last iteration only."""

    ROUNDS = 3  # iterations made until one ends as it begins: each begins with less than the one before left

    def __init__(self, walk: Walk, cut: Cut, first: Members, have: Members, last: Members):
        self.walk, self.data, self.scope = walk, walk.run.data, walk.run.scope
        self.cut, self.first, self.have, self.last = cut, first, have, last

    def make(self) -> None:
        """The loop that takes the fewest calls, where what fills the memories before it keeps out what fits once that
        is gone: begun from all of it, from what an iteration writes, and from nothing. Around other loops the first
        that is one."""
        mids = self.cut.span // self.cut.step - bool(self.first) - bool(self.last)
        entry = self.data.state.copy()
        first = tried = self._kept(entry, entry, mids)
        found = first.made
        if first.left and (found is None or not _has_loops(found.node)):
            for begin in (self._cleared(entry, first.since), self._cleared(entry, Since())):
                tried = self._kept(entry, begin, mids)
                if tried.made is not None and (found is None or calls(tried.made.node) < calls(found.node)):
                    found = tried.made
                if found is not None and _has_loops(found.node):
                    break
        if found is None:
            got = self._attempt(entry, {k: c for k, c in tried.left.items() if c.stage is not None}, {}, mids)
            found = self._attempt(entry, {}, {}, mids) if isinstance(got, set) else got
        assert not isinstance(found, set), "an empty state is always a fixed point"
        self._done(found)

    def _kept(self, entry: MachineState, begin: MachineState, mids: int) -> Kept:
        """The loop with as much carried as an iteration from ``begin`` suggests and some rounds leave of it."""
        made: dict[Key, Copy] = {}  # what the first body leaves that the others find
        with self.scope.recording():
            end, since = self._body(begin, opening=not mids)
            wanted = self._carry(begin, end, since)
            if self.first and mids:
                made, wanted = self._opened(begin, since, wanted)
        lost: dict[Key, Copy] = {}
        for _ in range(self.ROUNDS):
            every = {**wanted, **made}
            got = self._attempt(entry, every, made, mids)
            if not isinstance(got, set):
                return Kept(since, lost, got)
            lost |= {k: every[k] for k in got if k in every}
            wanted = {k: c for k, c in wanted.items() if k not in got}
            made = {k: c for k, c in made.items() if k not in got}
        return Kept(since, wanted, None)

    def _cleared(self, entry: MachineState, since: Since) -> MachineState:
        """The state before the loop without what was not written ``since`` and no stage of the plan has put there."""
        ranges = self.scope.ranges
        stays = {k: c for k, c in entry.copies.items() if c.stage is not None or not since.disjoint(k[1], ranges)}
        with self.data.attempt(entry), self.scope.recording():
            leave(self.data, stays)
            return self.data.state

    def _done(self, made: KeptLoop) -> None:
        self.scope.out.append(made.node)
        self.data.state = made.state
        self.data.since.then(made.since, self.scope.ranges)
        made.state.next = made.state.next | made.behind

    def _opened(
        self, entry: MachineState, since: Since, wanted: dict[Key, Copy]
    ) -> tuple[dict[Key, Copy], dict[Key, Copy]]:
        """What the first body writes cannot be fetched before it: it is left by the first body or not carried."""
        end, first = self._body(entry, opening=True)
        made: dict[Key, Copy] = {}
        for key in since.fetched:
            if first.disjoint(key[1], self.scope.ranges) or key in entry.copies:
                continue
            wanted = {k: c for k, c in wanted.items() if k != key}
            left = end.copies.get(key)
            if left is not None and not mentions(key[1], self.cut.var):
                made[key] = replace(left, dirty=True)
        return made, wanted

    def _body(self, state: MachineState, *, opening: bool) -> tuple[MachineState, Since]:
        """The state after one iteration, and what happened in it (nodes go to the present recording)."""
        with self.data.attempt(state) as since, self._iteration(opening=opening, closing=False):
            self._levels(opening=opening, closing=False)
            return self.data.state, since

    def _levels(self, *, opening: bool, closing: bool) -> dict[str, int]:
        """What one iteration executes. ``opening``, ``closing``: it is the first, the last one. Each takes room anew
        from the lowest on, so that all iterations are alike; what comes after the loop takes it behind that: where, per
        memory."""
        state, envs, stages = self.data.state, self.cut.envs, self.walk.plan.stages
        staged = {s.memory for s in stages if s.memory != state.system.home and s.depth >= self.cut.depth}
        outside = {s.memory for s in stages} - staged  # nothing is put there in this loop
        state.next = {m: at for m, at in state.next.items() if m in outside}
        begin = {m: max((first + n for first, n, _ in state.used(m)), default=0) for m in staged}
        there = frozenset(state.copies)
        for n, env in enumerate(envs):
            if n > 0:  # boxes of one block far from those of another, also where a sibling loop has smaller ones
                for m, low in begin.items():
                    reach = int(USED * state.system.memories[m].limit) - low
                    self.data.state.next[m] = low + max(0, reach) * n // len(envs)
                results = self.walk.own(self.cut.axis, there)
                self.walk.leaving = tuple(k for k in results if self.data.state.copies[k].dirty)
            first = self.first if opening and n == 0 else ()
            last = self.last if closing and n == len(envs) - 1 else ()
            with self.walk.gathering.turned(n if len(envs) > 1 else self.walk.gathering.turn):
                self.walk.level(self.cut.depth, env, tuple(sorted((*first, *self.have, *last))))
        return self.data.state.next | {m: int(USED * state.system.memories[m].limit) for m in staged}

    @contextmanager
    def _iteration(self, *, opening: bool, closing: bool) -> Iterator[None]:
        members = (*(self.first if opening else ()), *self.have, *(self.last if closing else ()))
        cut = self.cut
        inside = self.walk.lives.within(cut.axis, members, cut.only)
        with inside, self.scope.variable(cut.var, cut.lo, cut.step, cut.bounds):
            yield

    def _carry(self, entry: MachineState, end: MachineState, since: Since) -> dict[Key, Copy]:
        """What may stay resident over iterations: present at the end, not of one iteration only, and either there at
        the begin or fetched by the body (so that ``enter`` can fetch it). What the body sends home, ``enter`` does,
        once."""
        out: dict[Key, Copy] = {}
        for key, c in end.copies.items():
            if mentions(key[1], self.cut.var):
                continue
            old = entry.copies.get(key)
            there = old is not None and old.place == c.place
            if there or (key in since.fetched and c.stage is None):
                out[key] = c
        return out

    def _attempt(
        self, entry: MachineState, wanted: dict[Key, Copy], made: dict[Key, Copy], mids: int
    ) -> KeptLoop | set[Key]:
        """The loop with ``wanted`` carried (``made`` of it only after the first body), or what could not be kept."""
        with self.data.attempt(entry) as since:
            got = self._attempted(wanted, made, mids)
            return got if isinstance(got, set) else KeptLoop(*got, since)

    def _attempted(
        self, wanted: dict[Key, Copy], made: dict[Key, Copy], mids: int
    ) -> tuple[Loop, MachineState, dict[str, int]] | set[Key]:
        data, scope = self.data, self.scope
        with scope.recording() as enter:
            conform(self.data, {k: c for k, c in wanted.items() if k not in made}, fetch=True)
        before = data.state.copy()
        for k in before.of_any():
            before.mark(k, wanted[k].dirty)
        steady = before.copy() if made else before
        for k, c in made.items():
            steady.put(k, c)
        lost: set[Key] = set(wanted) - set(steady.copies)
        if lost:
            return lost
        bodies: list[Node | None] = []
        behind: dict[str, int] = {}
        for part, wants, begin in (("first", self.first, before), ("", mids, steady), ("last", self.last, steady)):
            body = None
            if wants:
                got = self._peeled(part, begin, steady)
                if isinstance(got, set):
                    return got
                body, behind = got
            bodies.append(body)
        first, body, last = bodies
        if body is None:  # nothing but peeled copies: one of them takes the place of the body
            body, first, last = (first, None, last) if first is not None else (last, None, None)
        assert body is not None
        lo, hi = self.cut.ends
        node = Loop(self.cut.var, lo, hi, self.cut.step, body, Seq(tuple(enter)), first, last, axis=self.cut.axis)
        if any(self.cut.within):
            data.state = steady
            with scope.recording() as leaving:
                self.walk.clear()
            node, steady = replace(node, exit=Seq(tuple(leaving))), data.state
        return node, steady, behind

    def _peeled(self, part: str, begin: MachineState, end: MachineState) -> tuple[Node, dict[str, int]] | set[Key]:
        """One body (``first``, ``last`` or any other) from ``begin`` that ends in ``end``, and behind what it has put
        into each memory; or the copies that did not survive it."""
        data, scope = self.data, self.scope
        with scope.recording() as nodes:
            data.state = begin.copy()
            with self._iteration(opening=part == "first", closing=part == "last"):
                behind = self._levels(opening=part == "first", closing=part == "last")
                with self.walk.lives.closing():
                    lost = conform(self.data, end.copies, fetch=False)
        return lost or (Seq(tuple(nodes)), behind)


def _has_loops(loop: Loop) -> bool:
    return any(isinstance(n, Loop) and n is not loop for n in distinct(loop))


def calls(node: Node, usual: int = 1) -> int:
    """How many calls and moves it takes, with ``usual`` trips of loops where they are open."""
    return _calls(node, usual, {})


def _calls(n: Node, usual: int, known: dict[int, int]) -> int:
    """``known``: of nodes, by identity: they are shared."""
    if isinstance(n, Issue):
        return 1
    got = known.get(id(n))
    if got is None:
        if isinstance(n, Seq):
            got = sum([_calls(c, usual, known) for c in n.children])
        else:
            ends = [p for p in (n.first, n.last) if p is not None]
            once = sum([_calls(p, usual, known) for p in (n.enter, n.exit, *ends)])
            got = once + ((n.trip or usual) - len(ends)) * _calls(n.body, usual, known)
        known[id(n)] = got
    return got
