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
    """Elements of a buffer written in a place, at bytes from the first of ``ends`` to the other. ``None``: not known,
    so anything. ``target``: the layout rule, where there is one; ``compute``: with new values; ``exact``: the same as a
    quantified fact, for isl (cells have none); ``whole``: exactly the elements."""

    buffer: str
    spot: Spot
    box: Box | None
    ends: tuple[Affine, Affine] | None
    target: Target | None
    compute: bool
    exact: Fact | None
    whole: Family


@dataclass(slots=True)
class Writes:
    legality: Legality
    facts: Facts
    _of: dict[int, list[Write]] = field(default_factory=dict)
    _cells: dict[int, dict[tuple[str, int], Target | None]] = field(default_factory=dict)
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

    def _issue(self, n: Issue) -> list[Write]:
        sig = self.legality.signature(n)
        out = []
        for o in n.operands:
            if o.name in sig.writes:
                t = self.facts.target(o)
                whole = Family(t.box, t.over)
                if t.cells is not None:  # cells are not followed across iterations: only what becomes stale counts
                    if not n.is_move:
                        out.append(Write(t.buffer, (t.spot[0], "cells"), t.hull, None, None, True, None, whole))
                    continue
                exact = self.facts.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over)
                out.append(
                    Write(t.buffer, t.spot, t.hull, (t.low, t.high), None if t.over else t, not n.is_move, exact, whole)
                )
        return out

    def _loop(self, n: Loop) -> list[Write]:
        if n.trip == 0:
            return []
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

        def said(e: Affine) -> Affine:
            return sorts.within(e, name, n)

        t, f = w.target, w.exact
        assert f is not None  # slots have no cells
        if t is not None:
            t = replace(t, offset=said(t.offset), low=said(t.low), high=said(t.high))
        ends = None if w.ends is None else (said(w.ends[0]), said(w.ends[1]))
        return w._replace(ends=ends, target=t, exact=self.facts.moved(f, said(f.offset)))

    def widened(self, w: Write, over: Span) -> Write:
        """The write over all iterations."""
        var = over.var
        box = None if w.box is None else hull(w.box, over)
        ends = None if w.ends is None else hull((w.ends,), over)
        t = w.target
        if t is not None:
            rule = t.rule
            if box is None or rule.coefficient(var):
                t = None
            elif box != t.box:
                offset = rule
                for k, (lo, _) in zip(t.strides, box, strict=True):
                    offset = offset + lo * k
                wide = tuple((hi - lo) != Affine((), 1) for lo, hi in box)
                t = replace(t, offset=offset, box=box, hull=box, wide=wide)
        exact = None if w.exact is None else generalised(w.exact, over, self.facts, self.fresh)
        whole = lifted(w.whole, over, self.fresh())[0]
        return Write(w.buffer, w.spot, box, ends[0] if ends is not None else None, t, w.compute, exact, whole)

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
    if a.buffer != b.buffer or a.spot != b.spot or a.compute != b.compute or a.box is None or b.box is None:
        return None
    if a.exact is None:
        both = None if a.whole.over or b.whole.over else joined(a.box, b.box, facts.legality.everywhere)
        return None if both is None else a._replace(box=both, whole=Family(both))
    s, t = a.target, b.target
    if s is None or t is None or s.strides != t.strides or a.ends is None or b.ends is None:
        return None
    box = joined(s.box, t.box, facts.legality.everywhere)
    if box is None or s.rule != t.rule or any(k < 0 for k in t.strides):
        return None
    ahead = all(x[0] == y[0] for x, y in zip(box, s.box, strict=True))
    first = s if ahead else t
    low, high = (a.ends[0], b.ends[1]) if ahead else (b.ends[0], a.ends[1])
    wide = tuple((hi - lo) != Affine((), 1) for lo, hi in box)
    target = replace(first, box=box, hull=box, wide=wide, low=low, high=high)
    exact = facts.make(a.buffer, a.spot, None, first.offset, first.strides, box)
    return Write(a.buffer, a.spot, box, (low, high), target, a.compute, exact, Family(box))
