"""Whether an output is whole and current at home at the end of a call."""

from __future__ import annotations

from isam.proof.boxes import Family, disjoint, minus
from isam.proof.context import Context
from isam.proof.facts import Facts
from isam.proof.geometry import recurrent_axes
from isam.proof.induction import implied
from isam.proof.sets import Isl
from isam.proof.state import Fact, State
from isam.schedule.tree import Schedule


def at_home(facts: Facts, home: Fact, state: State, ctx: Context, schedule: Schedule, isl: Isl) -> bool:
    """Every element, or, for an ``out`` buffer that the kernel fills in part, every element that it writes."""
    if implied(state, home, facts, ctx):
        return True
    kernel = schedule.cover.kernel
    families = []
    for f in state.near(home.spot, None):
        if f.buffer == home.buffer and f.strides == home.strides and f.address(lo for lo, _ in home.box) == home.offset:
            families += _whole(f, ctx)
    if kernel.buffer(home.buffer).role == "inout":
        return isl.covers(home.box, families, ctx, (), tuple(str(i) for i in range(len(home.box))))
    outer = recurrent_axes(kernel)
    writers = [(s, outer[i]) for i, s in enumerate(kernel.statements) if s.dest.buffer == home.buffer]
    return bool(writers) and isl.holds_written(writers, families, ctx)


def _whole(f: Fact, ctx: Context) -> list[Family]:
    """A fact's box without its holes, as boxes. (Of a hole's own variables nothing is known here: it takes all.)"""
    boxes = [f.box]
    for h in f.holes:
        boxes = [part for b in boxes for part in ([b] if disjoint(b, h.box, ctx) else minus(b, h.box, ctx) or ())]
    return [Family(b, f.over) for b in boxes]
