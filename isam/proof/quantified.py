"""Facts with one of their variables replaced: by a value, or by all the values that it has."""

from __future__ import annotations

from collections.abc import Callable

from isam.ir.affine import Affine
from isam.proof.boxes import Family, Span, at_value, lifted
from isam.proof.context import Var
from isam.proof.facts import Facts
from isam.proof.state import Fact


def substituted(f: Fact, var: str, value: Affine, facts: Facts) -> Fact:
    g = at_value(Family(f.box, f.over), var, value)
    moved = (at_value(Family(h.box, h.over), var, value) for h in f.holes)
    bare = facts.make(f.buffer, f.spot, f.cells, f.offset.substitute({var: value}), f.strides, g.box, g.over)
    return facts.with_holes(bare, frozenset(facts.hole(h.box, h.over) for h in moved))


def generalised(f: Fact, over: Span, facts: Facts, fresh: Callable[[], str]) -> Fact:
    """What all iterations of a span have left, given that each leaves ``f`` and none destroys another's."""
    name = fresh()
    g, _ = lifted(Family(f.box, f.over), over, name)
    rule = f.rule
    if not rule.coefficient(over.var):
        offset = rule.plus(f.strides, [lo for lo, _ in g.box])
        return facts.make(f.buffer, f.spot, f.cells, offset, f.strides, g.box, g.over)
    if over.once and over.first is not None:
        return substituted(f, over.var, over.first, facts)
    d = over.desc
    moved = substituted(f, over.var, Affine.of(name), facts)
    v = Var(name, d.lo, d.hi, d.step, d.origin)
    return facts.make(f.buffer, f.spot, f.cells, moved.offset, f.strides, moved.box, (v, *moved.over))
