"""Loops over conditions: axes that a condition ties together, with bounds that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Loop, Seq
from isam.scheduler.plan import Members
from isam.scheduler.trim import Env

if TYPE_CHECKING:
    from isam.scheduler.walk import Walk


class Guarded:
    """Loops over axes that a condition ties together: one element at a time, bounds affine in the outer ones.

    Nothing stays resident over such a loop: with no iteration nothing may have been relied upon.
    """

    def __init__(self, walk: Walk, where: tuple[Affine, ...]):
        self.walk, self.where = walk, where
        tied = {n for w in where for n in w.names}
        self.axes = [a for a in walk.group.axes if a in tied or walk.group.exact]
        self.several: set[str] = set()  # axes that have more than one value
        self.around = [w for w in where if not any(w.coefficient(a) for a in walk.group.axes)]  # on loops around it

    def loops(self, env: Env, members: Members) -> None:
        if self.around:
            self._where(env, members)
        else:
            self._loops(env, members)

    def _where(self, env: Env, members: Members) -> None:
        """A loop with one iteration, or none, around all others: conditions on loops around the group."""
        walk, scope = self.walk, self.walk.run.scope
        var = f"{walk.group.main.number}.w"
        walk.empty()
        with walk.lives.within("", members), scope.recording() as body, scope.variable(var, Affine(), 1, (0, 0)):
            self._loops(env, members)
            walk.empty()
        hi = tuple(Bound(w + 1) for w in self.around)
        scope.out.append(Loop(var, (Bound(Affine()),), (Bound(Affine((), 1)), *hi), 1, Seq(tuple(body))))

    def _loops(self, env: Env, members: Members) -> None:
        if not self.axes:
            self.walk.level(0, env, members)
            return
        self.several = {a for a in self.axes if env[a][1] > 1}
        self._loop(0, env, members)

    def _loop(self, at: int, env: Env, members: Members) -> None:
        walk, scope = self.walk, self.walk.run.scope
        if at == len(self.axes):
            walk.level(0, env, members)
            return
        axis = self.axes[at]
        offset, n, _ = env[axis]
        var, known = f"{axis}.w", {a: env[a][0] for a in self.axes if a != axis}
        lo, hi = [Bound(offset)], [Bound(offset + n)]
        for w in self.where:
            if self._decided(w) != axis or (n == 1 and _holds(w.substitute({**known, axis: offset}))):
                continue
            c = w.coefficient(axis)
            rest = (w - Affine.of(axis, c)).substitute(known)
            if c > 0:
                lo.append(Bound(-rest, c))
            else:
                hi.append(Bound(rest - c, -c))
        if n == 1 and len(lo) == len(hi) == 1:  # one value: no loop
            self._loop(at + 1, env, members)
            return
        inner = {**env, axis: (Affine.of(var), 1, Affine.of(var))}
        low = offset.bounds(scope.ranges)
        walk.empty()
        bounds = (low[0], low[1] + n - 1)
        with walk.lives.within(axis, members), scope.recording() as body, scope.variable(var, offset, 1, bounds):
            self._loop(at + 1, inner, members)
            walk.empty()
        scope.out.append(Loop(var, tuple(lo), tuple(hi), 1, Seq(tuple(body)), axis=axis))

    def _decided(self, w: Affine) -> str:
        """The axis whose loop a condition bounds: the last of those in it that have several values."""
        named = ["", *(a for a in self.axes if w.coefficient(a))]
        return next((a for a in reversed(named) if a in self.several), named[-1])


def _holds(w: Affine) -> bool:
    """Whether a condition is true whatever its names stand for."""
    return w.is_constant and w.const >= 0
