"""What a node may write, whatever its entry state: used to see what outlives an iteration."""

from __future__ import annotations

from dataclasses import field, replace
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.boxes import Box, Family, Span, hull, joined, lifted, span
from isam.proof.facts import Facts
from isam.proof.legal import Legality
from isam.proof.quantified import generalised
from isam.proof.state import Fact, Spot, Target
from isam.schedule.tree import Issue, Loop, Node, children


class Write(NamedTuple):
    """Elements of a buffer written at bytes ``low`` to ``high`` of a place. ``None``: not known, so anything.
    ``target``: the layout rule, where there is one; ``compute``: with new values; ``exact``: the same as a quantified
    fact, for isl."""

    buffer: str
    spot: Spot
    box: Box | None
    low: Affine | None
    high: Affine | None
    target: Target | None
    compute: bool
    exact: Fact | None
    whole: Family | None = None  # exactly the elements


@dataclass(slots=True)
class Writes:
    legality: Legality
    facts: Facts
    _of: dict[int, list[Write]] = field(default_factory=dict)
    _cells: dict[int, dict[tuple[str, int], Target | None]] = field(default_factory=dict)
    _computed: dict[int, set[int]] = field(default_factory=dict)
    _fresh: int = 0

    def of(self, node: Node) -> list[Write]:
        got = self._of.get(id(node))
        if got is None:
            if isinstance(node, Issue):
                got = self._issue(node)
            elif isinstance(node, Loop):
                got = self._loop(node)
            else:
                got = compact([w for c in children(node) for w in self.of(c)], self.facts)
            self._of[id(node)] = got
        return got

    def cells(self, node: Node) -> dict[tuple[str, int], Target | None]:
        """For every cell that a node may write, the tile that is written there, or ``None`` where there are several."""
        got = self._cells.get(id(node))
        if got is None:
            got = {}
            if isinstance(node, Issue):
                sig = self.legality.signature(node)
                for o in node.operands:
                    t = self.facts.target(o)
                    if o.name in sig.writes and t.cells is not None:
                        got.update({(t.spot[0], c): t for c in range(t.cells[0], t.cells[1] + 1)})
            for part in children(node):
                for k, t in self.cells(part).items():
                    got[k] = t if got.get(k, t) is t else None
            self._cells[id(node)] = got
        return got

    def computed(self, node: Node, t: Target) -> bool:
        """Whether a step below the node computes this tile (rather than moving it)."""
        return id(t) in self._computing(node)

    def _computing(self, node: Node) -> set[int]:
        got = self._computed.get(id(node))
        if got is None:
            got = set[int]().union(*map(self._computing, children(node)))
            if isinstance(node, Issue) and not node.is_move:
                sig = self.legality.signature(node)
                got = {id(self.facts.target(o)) for o in node.operands if o.name in sig.writes}
            self._computed[id(node)] = got
        return got

    def _issue(self, n: Issue) -> list[Write]:
        sig = self.legality.signature(n)
        out = []
        for o in n.operands:
            if o.name in sig.writes:
                t = self.facts.target(o)
                whole = Family(t.box, t.over)
                if t.cells is not None:  # cells are not followed across iterations: only what becomes stale counts
                    if not n.is_move:
                        out.append(Write(t.buffer, (t.spot[0], "cells"), t.hull, None, None, None, True, None, whole))
                    continue
                exact = self.facts.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over)
                out.append(
                    Write(t.buffer, t.spot, t.hull, t.low, t.high, None if t.over else t, not n.is_move, exact, whole)
                )
        return out

    def _loop(self, n: Loop) -> list[Write]:
        whole = span(n)
        inside = [w for p in (n.first, n.body, n.last) if p is not None for w in self.of(p)]
        inside = self.seen_around(n, inside)
        return compact(
            [*self.of(n.enter), *(self.widened(w, whole) for w in compact(inside, self.facts)), *self.of(n.exit)],
            self.facts,
        )

    def seen_around(self, n: Loop, log: list[Write]) -> list[Write]:
        """What an iteration writes, told by the instances that the loops around are on."""
        sorts = self.facts.instances
        return log if n.deal is None else [self._seen(w, n) if w.spot in sorts.slots else w for w in log]

    def _seen(self, w: Write, n: Loop) -> Write:
        sorts = self.facts.instances
        name = sorts.name_of(w.spot[0])

        def said(e: Affine | None) -> Affine | None:
            return None if e is None else sorts.within(e, name, n)

        t, f = w.target, w.exact
        if t is not None:
            t = replace(t, offset=sorts.within(t.offset, name, n), low=sorts.within(t.low, name, n),
                        high=sorts.within(t.high, name, n))  # fmt: skip
        exact = None if f is None else self.facts.moved(f, sorts.within(f.offset, name, n))
        return w._replace(low=said(w.low), high=said(w.high), target=t, exact=exact)

    def widened(self, w: Write, over: Span) -> Write:
        """The write over all iterations."""
        var = over.var
        box = None if w.box is None else hull(w.box, over)
        ends = None if w.low is None or w.high is None else hull(((w.low, w.high),), over)
        low, high = ends[0] if ends is not None else (None, None)
        t = w.target
        if t is not None:
            rule = t.rule
            if box is None or rule.coefficient(var):
                t = None
            elif box != t.box:
                offset = rule
                for k, (lo, _) in zip(t.strides, box, strict=True):
                    offset = offset + lo * k
                wide = tuple(a or (hi - lo) != Affine((), 1) for a, (lo, hi) in zip(t.wide, box, strict=True))
                t = replace(t, offset=offset, box=box, hull=box, wide=wide)
        exact = None if w.exact is None else generalised(w.exact, over, self.facts, self.fresh)
        whole = None if w.whole is None else lifted(w.whole, over, self.fresh())[0]
        return Write(w.buffer, w.spot, box, low, high, t, w.compute, exact, whole)

    def fresh(self) -> str:
        self._fresh += 1
        return f"?{self._fresh}"


def compact(log: list[Write], facts: Facts) -> list[Write]:
    """Writes by one layout rule that touch are one write (a box around them would do, but this is exact)."""
    out: list[Write] = []
    for w in dict.fromkeys(log):
        for i in range(len(out) - 1, max(-1, len(out) - 33), -1):
            got = _join(out[i], w, facts)
            if got is not None:
                out[i] = got
                break
        else:
            out.append(w)
    return out


def _join(a: Write, b: Write, facts: Facts) -> Write | None:
    if a == b:
        return a
    if a.buffer != b.buffer or a.spot != b.spot or a.compute != b.compute:
        return None
    if a.exact is None and b.exact is None and a.box is not None and b.box is not None:
        if a.whole is None or b.whole is None or a.whole.over or b.whole.over:
            return None
        both = joined(a.box, b.box)
        return None if both is None else a._replace(box=both, whole=Family(both))
    if a.target is None or b.target is None:
        return None
    s, t = a.target, b.target
    if a.box is None or b.box is None or s.strides != t.strides:
        return None
    box = joined(s.box, t.box)
    if box is None or s.rule != t.rule or a.low is None or b.low is None or a.high is None or b.high is None:
        return None
    first = s if box[0:] and all(x[0] == y[0] for x, y in zip(box, s.box, strict=True)) else t
    wide = tuple((hi - lo) != Affine((), 1) for lo, hi in box)
    low = a.low if first is s else b.low
    high = b.high if first is s else a.high
    if any(k < 0 for k in t.strides):
        return None
    target = replace(first, box=box, hull=box, wide=wide, low=low, high=high)
    exact = facts.make(a.buffer, a.spot, None, first.offset, first.strides, box)
    return Write(a.buffer, a.spot, box, low, high, target, a.compute, exact, Family(box))
