"""The names of a schedule's trees: every one has a value where it is used, and never two (obligation 11)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from itertools import chain

from isam.classes import dataclass
from isam.ir.kernel import recurrences
from isam.proof.context import Var, loop_var, of_sizes
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Loop, Node, Schedule, children, distinct

NAME = re.compile(r"[\w.]+")  # the proofs' own variables have other letters in them
Names = frozenset[str]


@dataclass(slots=True)
class Scope:
    """``of``: per node the names that it needs from outside, and those that loops in it give values to."""

    out: Findings
    of: dict[int, tuple[Names, Names]] = field(default_factory=dict)

    def names(self, n: Node) -> tuple[Names, Names]:
        got = self.of.get(id(n))
        if got is None:
            got = self.of[id(n)] = self._issue(n) if isinstance(n, Issue) else self._inner(n)
        return got

    @staticmethod
    def _issue(n: Issue) -> tuple[Names, Names]:
        exprs = [p for _, p in n.point]
        exprs += [e for o in n.operands for e in (*o.tile.start, o.place.offset)]
        exprs += [] if n.prefetch is None else [n.prefetch.ahead]
        return frozenset([name for e in exprs for name, _ in e.terms]), frozenset()

    def _inner(self, n: Node) -> tuple[Names, Names]:
        if not isinstance(n, Loop):
            return self._union(children(n))
        once = self._union((n.enter, n.exit))
        often = self._union(p for p in (n.first, n.body, n.last) if p is not None)
        if n.var in often[1]:
            self.out.add(11, "scope", f"loop variable '{n.var}' is already in use")
        if not NAME.fullmatch(n.var):
            self.out.add(11, "scope", f"'{n.var}' is no name for a loop variable")
        bounds = frozenset(name for b in (*n.lo, *n.hi) for name in b.expr.names)
        if n.serpentine is not None:
            bounds |= {n.serpentine.var}
        return once[0] | (often[0] - {n.var}) | bounds, once[1] | often[1] | {n.var}

    def _union(self, nodes: Iterable[Node]) -> tuple[Names, Names]:
        parts = [self.names(n) for n in nodes]
        return frozenset().union(*(p for p, _ in parts)), frozenset().union(*(q for _, q in parts))


def check_scope(schedule: Schedule, out: Findings) -> None:
    """No loop takes a name that has a value there already, nothing is named that has none, and no size or axis is
    called as a variable of the proof may be."""
    kernel = schedule.cover.kernel
    sizes = {s.name for s in kernel.syms}
    axes = {n for s in kernel.statements for n in s.domain.names} | {r.axis.name for r in recurrences(kernel.body)}
    for name in sorted(n for n in sizes | axes if not NAME.fullmatch(n)):
        out.add(11, "scope", f"'{name}' is no name for a size or an axis")
    scope = Scope(out)
    for tree in (schedule.bind, schedule.call):
        needed, given = scope.names(tree)
        for name in sorted(needed - sizes):
            out.add(11, "scope", f"'{name}' has no value everywhere it is named")
        for name in sorted(given & sizes):
            out.add(11, "scope", f"loop variable '{name}' is already in use")


def everywhere(schedule: Schedule) -> tuple[Var, ...]:
    """What is known of sizes, and of each loop variable wherever it has a value: of one that several loops have, what
    all of them say."""
    found = {v.name: v for v in of_sizes(schedule.cover.kernel.syms).vars}
    for n in chain(distinct(schedule.bind), distinct(schedule.call)):
        if isinstance(n, Loop):
            v = loop_var(n)
            found[n.var] = _either(found.get(n.var, v), v)
    return tuple(found.values())


def _either(one: Var, two: Var) -> Var:
    if one == two:
        return one
    return Var(one.name, tuple(b for b in one.lo if b in two.lo), tuple(b for b in one.hi if b in two.hi))
