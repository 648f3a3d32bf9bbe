"""Kept loops: bodies whose end state is their begin state (SCH-10), and loops over conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Loop, Node, Seq
from isam.scheduler.move import sub_place
from isam.scheduler.state import Copy, Key, MachineState, Since, mentions
from isam.scheduler.trim import Env

if TYPE_CHECKING:
    from isam.scheduler.walk import Members, Walk


class Recur:
    """Builds one kept loop from the state before it (SCH-10)."""

    ROUNDS = 3

    def __init__(
        self,
        walk: Walk,
        d: int,
        var: str,
        lo: Affine,
        span: int,
        step: int,
        bounds: tuple[int, int],
        env: Env,
        axis: str,
        first: Members,
        have: Members,
        last: Members,
    ):
        self.walk, self.run, self.d, self.var, self.lo, self.span, self.step = walk, walk.run, d, var, lo, span, step
        self.bounds, self.env, self.axis = bounds, env, axis
        self.first, self.have, self.last = first, have, last

    def make(self) -> None:
        run = self.run
        mids = self.span // self.step - bool(self.first) - bool(self.last)
        entry = run.state.copy()
        opening = tuple(sorted((*self.first, *self.have)))
        made: dict[Key, Copy] = {}  # what the first body leaves that the others find
        with run.recording():
            end, since = self._body(self.have if mids else opening, entry)
            wanted = self._carry(entry, end, since)
            if self.first and mids:
                made, wanted = self._opened(opening, entry, since, wanted)
        for _ in range(self.ROUNDS):
            got = self._attempt(entry, {**wanted, **made}, made, mids)
            if not isinstance(got, set):
                run.out.append(got[0])
                run.state = got[1]
                return
            wanted = {k: c for k, c in wanted.items() if k not in got}
            made = {k: c for k, c in made.items() if k not in got}
        got = self._attempt(entry, {}, {}, mids)
        assert not isinstance(got, set), "an empty state is always a fixed point"
        run.out.append(got[0])
        run.state = got[1]

    def _opened(
        self, opening: Members, entry: MachineState, since: Since, wanted: dict[Key, Copy]
    ) -> tuple[dict[Key, Copy], dict[Key, Copy]]:
        """What the first body writes cannot be fetched before it: it is left by the first body or not carried."""
        end, first = self._body(opening, entry)
        made: dict[Key, Copy] = {}
        for key in since.fetched:
            if first.disjoint(key[1], self.run.ranges) or key in entry.copies:
                continue
            wanted = {k: c for k, c in wanted.items() if k != key}
            left = end.copies.get(key)
            if left is not None and not mentions(key[1], self.var):
                made[key] = replace(left, dirty=True)
        return made, wanted

    def _body(self, members: Members, state: MachineState) -> tuple[MachineState, Since]:
        """The state after one iteration, and what happened in it (nodes go to the present recording)."""
        run = self.run
        run.state = state.copy()
        with self._iteration():
            outer, run.since = run.since, Since()
            self.walk._level(self.d, self.env, members)
            since, run.since = run.since, outer
        return run.state, since

    @contextmanager
    def _iteration(self) -> Iterator[None]:
        self.walk.open.append(self.axis)
        try:
            with self.run.variable(self.var, self.lo, self.step, self.bounds):
                yield
        finally:
            self.walk.open.pop()

    def _carry(self, entry: MachineState, end: MachineState, since: Since) -> dict[Key, Copy]:
        """What may stay resident over iterations: present at the end, not of one iteration only, and either there at
        the begin or fetched by the body (so that ``enter`` can fetch it)."""
        out: dict[Key, Copy] = {}
        for key, c in end.copies.items():
            if mentions(key[1], self.var):
                continue
            old = entry.copies.get(key)
            if old is not None and old.place == c.place:
                out[key] = replace(c, dirty=c.dirty or old.dirty)
            elif old is None and key in since.fetched and c.stage is None:
                out[key] = c
        return out

    def _attempt(
        self, entry: MachineState, wanted: dict[Key, Copy], made: dict[Key, Copy], mids: int
    ) -> tuple[Loop, MachineState] | set[Key]:
        """The loop with ``wanted`` carried (``made`` of it only after the first body), or what could not be kept."""
        run = self.run
        run.state = entry.copy()
        with run.recording() as enter:
            self._conform({k: c for k, c in wanted.items() if k not in made}, fetch=True)
        before = run.state.copy()
        for k in before.of_any():
            before.mark(k, wanted[k].dirty)
        steady = before.copy()
        for k, c in made.items():
            steady.put(k, c)
        lost: set[Key] = set(wanted) - set(steady.copies)
        if lost:
            return lost
        bodies: list[Node | None] = []
        for wants, members, begin in (
            (self.first, (*self.first, *self.have), before),
            (mids, self.have, steady),
            (self.last, (*self.have, *self.last), steady),
        ):
            body = self._peeled(tuple(sorted(members)), begin, steady) if wants else None
            if isinstance(body, set):
                return body
            bodies.append(body)
        first, body, last = bodies
        if body is None:  # nothing but peeled copies: one of them takes the place of the body
            body, first, last = (first, None, last) if first is not None else (last, None, None)
        assert body is not None
        lo, hi = (Bound(self.lo),), (Bound(self.lo + self.span),)
        node = Loop(self.var, lo, hi, self.step, body, Seq(tuple(enter)), first, last, axis=self.axis)
        return node, steady

    def _peeled(self, members: Members, begin: MachineState, end: MachineState) -> Node | set[Key]:
        """One body from ``begin`` that ends in ``end``, or the copies that did not survive it."""
        run = self.run
        with run.recording() as nodes:
            run.state = begin.copy()
            with self._iteration():
                self.walk._level(self.d, self.env, members)
                self.walk.ending, was = True, self.walk.ending
                outer_env, self.walk.env = self.walk.env, self.env
                lost = self._conform(end.copies, fetch=False)
                self.walk.env = outer_env
                self.walk.ending = was
        return lost or Seq(tuple(nodes))

    def _conform(self, target: dict[Key, Copy], fetch: bool) -> set[Key]:
        """Brings the present state to ``target``: what is not in it goes home, what is missing is fetched (in
        ``enter``) or reported."""
        run, lost = self.run, set()
        for key in run.state.of_any():
            c = run.state.copies[key]
            want = target.get(key)
            if want is None or want.place != c.place:
                if c.dirty:
                    run.flush(key)
                run.state.drop(key)
            elif c.dirty and not want.dirty:
                run.flush(key)
        for key, c in target.items():
            if key in run.state.copies:
                continue
            if not fetch:
                lost.add(key)
                continue
            self._fetch(key, c)
        return lost

    def _fetch(self, key: Key, c: Copy) -> None:
        """Loads a carried tile into the very place where the body keeps it."""
        run = self.run
        memory, tile, form = key
        run._settle(tile, key)
        source, source_of, source_form = run._source(tile, memory, form)
        run.carry(tile, source, memory, source_of, lambda t: sub_place(c.place, tile, t), source_form, form, set())
        run.state.put(key, replace(c, dirty=False))
        run.since.fetch(key, run.ranges)


class Guarded:
    """Loops over axes that a condition ties together: one element at a time, bounds affine in the outer ones.

    Nothing stays resident over such a loop: with no iteration nothing may have been relied upon.
    """

    def __init__(self, walk: Walk, where: tuple[Affine, ...]):
        self.walk, self.where = walk, where
        tied = {n for w in where for n in w.names}
        self.axes = [a for a in walk.group.axes if a in tied or walk.group.exact]

    def loops(self, env: Env, members: Members) -> None:
        if not self.axes:
            self.walk._level(0, env, members)
            return
        self._loop(0, env, members)

    def _loop(self, at: int, env: Env, members: Members) -> None:
        walk, run = self.walk, self.walk.run
        if at == len(self.axes):
            walk._level(0, env, members)
            return
        axis = self.axes[at]
        offset, n, _ = env[axis]
        var, known = f"{axis}.w", {a: env[a][0] for a in self.axes[:at]}
        lo, hi = [Bound(offset)], [Bound(offset + n)]
        for w in self.where:
            c = w.coefficient(axis)
            if c == 0 or any(a in self.axes[at + 1 :] for a in w.names):
                continue
            rest = (w - Affine.of(axis, c)).substitute(known)
            if c > 0:
                lo.append(Bound(-rest, c))
            else:
                hi.append(Bound(rest - c, -c))
        inner = {**env, axis: (Affine.of(var), 1, Affine.of(var))}
        low = offset.bounds(run.ranges)
        walk.empty()
        walk.open.append(axis)
        with run.recording() as body, run.variable(var, offset, 1, (low[0], low[1] + n - 1)):
            self._loop(at + 1, inner, members)
            walk.empty()
        walk.open.pop()
        run.out.append(Loop(var, tuple(lo), tuple(hi), 1, Seq(tuple(body)), axis=axis))
