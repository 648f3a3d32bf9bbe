"""Kept loops: bodies whose end state is their begin state (SCH-10), and loops over conditions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Loop, Node, Seq
from isam.scheduler.move import sub_place
from isam.scheduler.state import Copy, Key, MachineState, Since
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
        count = self.span // self.step
        mids = count - bool(self.first) - bool(self.last)
        entry = run.state.copy()
        carried: dict[Key, Copy] = dict(entry.copies)
        body_members = self.have
        with run.recording():
            end = self._body(body_members if mids else tuple(sorted((*self.first, *self.have))), entry)
        wanted = self._carry(entry, end)
        for _ in range(self.ROUNDS):
            made = self._attempt(entry, wanted, mids)
            if not isinstance(made, set):
                run.out.extend(made[0])
                run.state = made[1]
                return
            wanted = {k: c for k, c in wanted.items() if k not in made}
        made = self._attempt(entry, {}, mids)
        assert not isinstance(made, set), "an empty state is always a fixed point"
        run.out.extend(made[0])
        run.state = made[1]
        del carried

    def _body(self, members: Members, state: MachineState) -> MachineState:
        """The state after one iteration (nodes go to the present recording)."""
        run = self.run
        run.state = state.copy()
        with self._iteration():
            outer, run.since = run.since, Since()
            self.walk._level(self.d, self.env, members)
            self.brought, run.since = run.since.fetched, outer
        return run.state

    @contextmanager
    def _iteration(self) -> Iterator[None]:
        self.walk.open.append(self.axis)
        try:
            with self.run.variable(self.var, self.lo, self.step, self.bounds):
                yield
        finally:
            self.walk.open.pop()

    def _carry(self, entry: MachineState, end: MachineState) -> dict[Key, Copy]:
        """What may stay resident over iterations: present at the end, not of one iteration only, and either there at
        the begin or fetched by the body (so that ``enter`` can fetch it)."""
        out: dict[Key, Copy] = {}
        for key, c in end.copies.items():
            if any(n == self.var for row in key[1].start for n, _ in row.terms):
                continue
            old = entry.copies.get(key)
            if old is not None and old.place == c.place:
                out[key] = replace(c, dirty=c.dirty or old.dirty)
            elif old is None and key in self.brought and c.stage is None:
                out[key] = c
        return out

    def _attempt(
        self, entry: MachineState, wanted: dict[Key, Copy], mids: int
    ) -> tuple[list[Node], MachineState] | set[Key]:
        """The loop with ``wanted`` carried, or the copies that could not be kept."""
        run = self.run
        run.state = entry.copy()
        with run.recording() as enter:
            self._conform(wanted, fetch=True)
        begin = run.state.copy()
        for k, c in wanted.items():
            if k in begin.copies:
                begin.mark(k, c.dirty)
        lost: set[Key] = set(wanted) - set(begin.copies)
        if lost:
            return lost
        first = self._peeled(tuple(sorted((*self.first, *self.have))), begin, wanted) if self.first else None
        if isinstance(first, set):
            return first
        body = self._peeled(self.have, begin, wanted) if mids else None
        if isinstance(body, set):
            return body
        last = self._peeled(tuple(sorted((*self.have, *self.last))), begin, wanted) if self.last else None
        if isinstance(last, set):
            return last
        if body is None:  # nothing but peeled copies: one of them takes the place of the body
            body, first, last = (first, None, last) if first is not None else (last, None, None)
        assert body is not None
        hi = self.lo + self.span
        node = Loop(
            self.var, (Bound(self.lo),), (Bound(hi),), self.step, body, Seq(tuple(enter)), first, last, axis=self.axis
        )
        run.state = begin.copy()
        return [node], run.state

    def _peeled(self, members: Members, begin: MachineState, wanted: dict[Key, Copy]) -> Node | set[Key]:
        """One body from ``begin`` that ends in ``begin``, or the copies that did not survive it."""
        run = self.run
        with run.recording() as nodes:
            run.state = begin.copy()
            with self._iteration():
                self.walk._level(self.d, self.env, members)
                self.walk.ending, was = True, self.walk.ending
                outer_env, self.walk.env = self.walk.env, self.env
                lost = self._conform(begin.copies, fetch=False)
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
