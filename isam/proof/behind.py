"""Points that count as done behind the last step of a statement: all of them, in one box (obligations 4 and 5).

Between lines (a statement with ``where``) steps are many boxes, and of each later step it would have to be shown anew
that they hold what it needs. Obligation 1 has shown of all of them together that no point is missing: behind the last
step everything is done, and inside loops everything that no other iteration can do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from isam.ir.affine import Affine
from isam.proof.boxes import Box, Family
from isam.proof.context import Context
from isam.schedule.tree import Issue, Node, Schedule, Seq, children


class Steps:
    """Where the last step of each of some statements is. ``fixed``: how many variables of a context are no loop's."""

    def __init__(self, schedule: Schedule, statements: frozenset[int], fixed: int):
        self.schedule, self.statements, self.fixed = schedule, statements, fixed
        self._of: dict[int, Counter[int]] = {}
        self._last: dict[int, dict[int, int]] = {}
        self._all = self._count(Seq((schedule.bind, schedule.call))) if statements else Counter()

    def _count(self, node: Node) -> Counter[int]:
        """How many steps of each statement a node has."""
        got = self._of.get(id(node))
        if got is None:
            got = self._of[id(node)] = Counter()
            if isinstance(node, Issue):
                got.update(self.statements.intersection(self._mine(node)))
            else:
                for part in children(node):
                    got += self._count(part)
                self._of[id(node)] = got
        return got

    def _mine(self, issue: Issue) -> Sequence[int]:
        s = self.schedule
        return () if issue.nest is None else s.cover.mappings[s.nests[issue.nest].mapping].statements

    def last(self, node: Node) -> Mapping[int, int]:
        """Statements all of whose steps are in a node, and how many of its parts (a sequence has them) hold these."""
        if not self.statements:
            return {}
        got = self._last.get(id(node))
        if got is None:
            inside, parts = self._count(node), node.children if isinstance(node, Seq) else (node,)
            got = self._last[id(node)] = {}
            for i in inside:
                if inside[i] == self._all[i]:
                    got[i] = 1 + max(k for k, part in enumerate(parts) if self._count(part)[i])
        return got

    def whole(self, families: Sequence[Family], domain: Box, ctx: Context) -> Family | None:
        """All points of a ``domain``, each executed by steps inside the loops of ``ctx`` alone, that the present
        iteration executes, which are ``families``; None: that is not told by intervals.

        An iteration is alone to execute what lies in its interval, from the loop's variable on as long as a step is, if
        that holds all that it executes: of loops in loops each interval tells one iteration of the outer ones.
        """
        box = list(domain)
        cut = set[int]()
        for v in ctx.vars[self.fixed :]:
            here = Affine.of(v.name)
            if v.origin is None and v.step != 1:
                return None
            d = _held(families, here, here + v.step, ctx)
            if d is None:
                return None
            if d in cut and not (ctx.le(box[d][0], here) and ctx.le(here + v.step, box[d][1])):
                return None
            box[d] = (here, here + v.step)
            cut.add(d)
        return Family(tuple(box))


def _held(families: Sequence[Family], lo: Affine, hi: Affine, ctx: Context) -> int | None:
    """A dimension in which all families lie in an interval."""
    inner = [(f, ctx.with_vars(f.over)) for f in families]
    for d in range(len(families[0].box)):
        if all(c.le(lo, f.box[d][0]) and c.le(f.box[d][1], hi) for f, c in inner):
            return d
    return None

