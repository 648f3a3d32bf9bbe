"""Whether two rules put the same elements in the same places, and whether what they speak of lies apart."""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.context import Context
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.state import Fact, Target


@dataclass(frozen=True, slots=True)
class Layout:
    """Compares facts with operands, and with each other, for one schedule."""

    legality: Legality
    isl: Isl

    def same_layout(self, f: Fact, t: Target, ctx: Context) -> bool:
        """Whether fact and operand place elements of one buffer by one injective rule."""
        if f.buffer != t.buffer or f.over or not alike(f, t):
            return False
        mine, theirs = f.rule, t.rule_by(f.strides)
        if mine.terms == theirs.terms:
            if mine.const != theirs.const:
                return False
        else:
            if not ctx.with_vars(t.over).equal(mine, theirs):
                return False
        home = self.legality.buffers[f.buffer].home
        if home is not None and home.strides == f.strides:
            return True  # the strides of the buffer's own place: tiles lie inside the buffer (obligation 7)
        return self._injective(f, t, ctx)

    def _injective(self, f: Fact, t: Target, ctx: Context) -> bool:
        sizes = []
        for k, (a, b), (c, d) in zip(f.strides, f.box, t.box, strict=True):
            less = [ctx.lower(lo - hi) for lo in (a, c) for hi in (b, d)]
            known = [-n for n in less if n is not None]
            sizes.append((abs(k), max(known) if len(known) == len(less) else None))  # elements, at the most
        reach = self.legality.buffers[f.buffer].bytes
        for k, n in sorted(sizes, key=lambda s: s[0]):
            if n is not None and n <= 1:
                continue
            if k < reach or reach < 0:
                return False
            reach = -1 if n is None else k * (n - 1) + reach
        return True

    def apart(self, f: Fact, low: Affine, high: Affine, ctx: Context) -> bool:
        """Whether the fact's bytes are proved to lie outside ``low`` to ``high``."""
        if f.low.terms == high.terms and f.high.terms == low.terms:
            return f.high.const <= low.const or high.const <= f.low.const
        ctx = ctx.with_vars(f.over)
        return ctx.le(f.high, low) or ctx.le(high, f.low)

    def no_clash(self, f: Fact, g: Fact, ctx: Context) -> bool:
        """Whether isl proves that no byte is said by both facts, of a memory without cells, to belong to different
        elements."""
        size = self.legality.buffers[f.buffer].bytes, self.legality.buffers[g.buffer].bytes
        one, two = ((x.box, x.offset, x.strides, x.over) for x in (f, g))
        return self.isl.no_clash(one, two, size, f.buffer == g.buffer, ctx)


def alike(f: Fact, t: Target) -> bool:
    """Whether fact and operand have the same strides, where the operand is wider than one element."""
    return f.strides == t.strides or all(a == b for a, b, w in zip(f.strides, t.strides, t.wide, strict=True) if w)


def strides_as(f: Fact, t: Target) -> tuple[int, ...]:
    """The strides of a fact, and those of an operand along dimensions of which the fact knows one element only."""
    sides = zip(f.strides, t.strides, f.box, strict=True)
    return tuple(b if not f.over and hi - lo == Affine((), 1) else a for a, b, (lo, hi) in sides)


def elsewhere(f: Fact, t: Target) -> bool:
    """Whether numbers alone say that a fact lies apart from an operand, and not by the operand's rule: most do."""
    (low, first), (high, last) = t.low, t.high
    if f.low.terms != high or f.high.terms != low or (f.high.const > first and last > f.low.const):
        return False
    if f.buffer != t.buffer or f.over:
        return True
    return f.strides == t.strides and f.rule.terms == t.rule.terms and f.rule.const != t.rule.const
