"""Recurrent loops inside out (loop interchange): a running sum along each row takes some rows from the first column to
the last before it goes on to the next rows.

As it is written, every step takes a column, a word of each row, and no line of a cache stays until the step that takes
the next word of it. Where all that is written is indexed by the row alone in one dimension, always the same one, no row
finds what another one leaves; so steps of different rows may be taken in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.scheduler.nests import Use
from isam.scheduler.parts import RecurrentLoop
from isam.scheduler.plan import Group
from isam.system.graph import System

AS_WRITTEN, ROWS_OUTSIDE = "as written", "rows outside"
SIDE_BY_SIDE = 8  # rows at a time of calls that take one each: enough to hide the latency of a step behind others


class OutsideRows(NamedTuple):
    """The axis that goes outside a recurrent loop, and how many rows are taken at a time."""

    axis: str
    block: int


def rows_outside(it: RecurrentLoop, system: System, trace: Trace) -> OutsideRows | None:
    """Which rows are taken from the first step of a loop to the last, where there are caches and the Approach wants
    that; None: none, steps as they are written."""
    group = it.parts[0] if len(it.parts) == 1 else None
    if not system.caches or not isinstance(group, Group) or group.domain is not None:
        return None
    if any(n.where or n.origin for n in group.nests):
        return None
    able = [a for a in group.axes if _crossed(group, a, it.loop.axis.name) and _apart(group, a)]
    if not able:
        return None
    units = {a: max(n.unit(a) for n in group.nests) for a in able}
    found = max(reversed(able), key=units.__getitem__)  # of equals the inmost
    unit = units[found]
    rows = OutsideRows(found, unit if unit > 1 else min(SIDE_BY_SIDE, group.length(found)))
    context = {"loop": it.loop.axis.name, "rows": found, "block": rows.block, "length": group.length(found),
               "nests": [n.number for n in group.nests], "_group": group, "_system": system}  # fmt: skip
    return rows if trace.choose(Choice("interchange", (AS_WRITTEN, ROWS_OUTSIDE), context)) == ROWS_OUTSIDE else None


def _crossed(group: Group, axis: str, step: str) -> bool:
    """Whether some calls of a step take a word of each of several rows, beside which lies what the next step takes."""
    return any(n.length(axis) > 1 and u.index and u.index[-1].coefficient(step)
               and any(row.coefficient(axis) for row in u.index[:-1])
               for n in group.nests if axis in n.extents for u in n.uses)  # fmt: skip


def _apart(group: Group, axis: str) -> bool:
    """Whether no row finds what another one leaves."""
    if any(axis not in n.extents or axis in n.reduced for n in group.nests):
        return False
    uses = [u for n in group.nests for u in n.uses]
    written = {u.buffer for u in uses if u.writes}
    return all(_own([u for u in uses if u.buffer == b], axis) for b in written)


def _own(uses: Sequence[Use], axis: str) -> bool:
    """Whether uses of one buffer have the axis alone in one dimension, the same one, and in no other."""
    places = {tuple(d for d, row in enumerate(u.index) if row.coefficient(axis)) for u in uses}
    return len(places) == 1 and all(len(p) == 1 and u.index[p[0]] == Affine.of(axis) for p in places for u in uses)
