"""Steps of several calls, as they are executed: their form (obligation 10), and that none writes what another touches
(obligation 8). Calls of one step start together, while the flat checker executes them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace

import numpy as np

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.geometry import resolve
from isam.proof.joined import check_form, in_burst
from isam.proof.legal import Legality
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Operand

Gap = Callable[[Affine], int | None]  # what a distance comes to; None: it varies


@dataclass(eq=False)
class Joined:
    """Judges steps. Most are right, or wrong, whatever the loop variables: these are looked at once."""

    legality: Legality
    sound: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def always(self, calls: list[Issue]) -> bool:
        """Whether nothing is wrong with the step, whatever the loop variables."""
        if len(calls) == 1 and not calls[0].joined:
            return True
        key = tuple(map(id, calls))
        if key not in self.sound:
            found = Findings()
            if all(self.legality.step(c, Findings()) for c in calls):  # of others that is said by itself
                self._judge(calls, lambda e: e.const if e.is_constant else None, found)
            self.sound[key] = not len(found)
        return self.sound[key]

    def judge(self, calls: list[Issue], env: Mapping[str, int], out: Findings) -> None:
        """What is wrong with the step at these values of the loop variables."""
        if self.always(calls) or not all(n in env for c in calls for o in c.operands for n in o.place.offset.names):
            return
        self._judge([_at(c, env) for c in calls], lambda e: e.evaluate({}), out)

    def _judge(self, calls: list[Issue], gap: Gap, out: Findings) -> None:
        if calls[0].joined:
            check_form(self.legality.schedule.system, [], calls[0], out)
        for n, issue in enumerate(calls[1:], 1):
            check_form(self.legality.schedule.system, calls[:n], issue, out)
            for other in calls[:n]:
                if not in_burst(self.legality.schedule.system, other, issue):
                    self._apart(issue, other, gap, out)

    def _apart(self, issue: Issue, other: Issue, gap: Gap, out: Findings) -> None:
        mine, theirs = self.legality.signature(issue).writes, self.legality.signature(other).writes
        for o in issue.operands:
            for p in other.operands:
                if (o.name in mine or p.name in theirs) and self._meet(o, p, gap):
                    out.add(8, "step", f"in one step, {o.name} = {o.tile} meets {p.tile} of '{other.unit}'", issue)

    def _meet(self, o: Operand, p: Operand, gap: Gap) -> bool:
        """Whether two operands have bytes in common, or a cell."""
        system = self.legality.schedule.system
        if (resolve(system, o.place.memory), o.place.base) != (resolve(system, p.place.memory), p.place.base):
            return False
        by = gap(o.place.offset - p.place.offset)
        if by is None:
            return True
        memory = system.memories[resolve(system, o.place.memory)]
        one, two = self._bytes(o) + by, self._bytes(p)
        if o.place.cell is not None and p.place.cell is not None and memory.cell:
            one, two = one // memory.cell + o.place.cell, two // memory.cell + p.place.cell
        return bool(np.intersect1d(one, two).size)

    def _bytes(self, o: Operand) -> np.ndarray:
        """The bytes of an operand, from its first one on."""
        at = np.arange(self.legality.buffers[o.tile.buffer].bytes)
        for n, stride, step in zip(o.tile.shape, o.place.strides, o.tile.steps, strict=True):
            at = (at[:, None] + np.arange(n) * stride * step).ravel()
        return at


def _at(issue: Issue, env: Mapping[str, int]) -> Issue:
    """A call with its places as numbers."""
    places = [replace(o.place, offset=Affine((), o.place.offset.evaluate(env))) for o in issue.operands]
    operands = tuple(replace(o, place=p) for o, p in zip(issue.operands, places, strict=True))
    return replace(issue, operands=operands)
