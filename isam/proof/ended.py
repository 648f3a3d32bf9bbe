"""Facts that blocks up to a line and the rest at that line leave, joined into one box (obligation 8).

Between a number and a line, blocks go as far as they fit and the rest is done in a loop of one iteration, which begins
or ends where they do. Each of both says of its variable how far it reaches; what they hold together is a box without
either. So what is done in ever smaller blocks is one box at last, as it is where no blocks are.
"""

from __future__ import annotations

from collections.abc import Sequence

from isam.ir.affine import Affine
from isam.proof.boxes import Box, Family, contains
from isam.proof.context import Context, Var
from isam.proof.facts import Facts
from isam.proof.state import Fact, State


def join_ended(state: State, f: Fact, facts: Facts, ctx: Context) -> None:
    """Puts one fact in the place of ``f``, which a loop of one iteration has left, and of those that it goes on from,
    where a box is found that they hold together."""
    if not f.over or f.holes or not f.one_rule:
        return
    box = _hull(f)
    if box is None:
        return
    both = [g for g in state.near(f.spot, f.cells) if g.over and _one_rule(f, g, ctx) and _within(g, box, ctx)]
    names = tuple(str(d) for d in range(len(box)))
    if len(both) > 1 and facts.isl.covers(box, [Family(g.box, g.over) for g in both], ctx, (), names):
        for g in both:
            state.drop(g)
        state.put(facts.make(f.buffer, f.spot, f.cells, f.address(lo for lo, _ in box), f.strides, box))


def _one_rule(f: Fact, g: Fact, ctx: Context) -> bool:
    """Whether two facts say that one rule lays their elements."""
    alike = (g.buffer, g.strides, g.cells) == (f.buffer, f.strides, f.cells) and not g.holes and g.one_rule
    return alike and ctx.equal(f.rule, g.rule)


def _within(g: Fact, box: Box, ctx: Context) -> bool:
    """Whether a box holds all that a fact is about."""
    return contains(box, g.box, ctx.with_vars(g.over))


def _hull(f: Fact) -> Box | None:
    """The smallest box around a fact's elements, where numbers say how far its variables go."""
    sides = [(_end(lo, f.over, up=False), _end(hi, f.over, up=True)) for lo, hi in f.box]
    found = tuple((lo, hi) for lo, hi in sides if lo is not None and hi is not None)
    return found if len(found) == len(sides) else None


def _end(e: Affine, over: Sequence[Var], up: bool) -> Affine | None:
    for v in reversed(over):
        c = e.coefficient(v.name)
        if not c:
            continue
        whole = [b.expr for b in (v.hi if (c > 0) == up else v.lo) if b.div == 1]
        if not whole:
            return None
        e = e.substitute({v.name: whole[0]})
    return e
