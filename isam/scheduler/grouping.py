"""Which nests share loops (SCH-11).

A nest joins the group before it where the Approach wants that. What depends on nothing of that group stands aside: when
a later nest joins the group, it goes along into it if that one takes it up (a sum's first value, or what a chain of
nests with the same loops has made), or before it if that one needs it; else it goes on standing aside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice, takewhile

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.kernel import Kernel, recurrences
from isam.schedule.literals import is_literal
from isam.scheduler.blocks import BlockedDomain
from isam.scheduler.drained import Drained, begin_of, drained, summed_there
from isam.scheduler.interleaved import beside, shared_lines
from isam.scheduler.nests import Nest
from isam.scheduler.oblique import oblique
from isam.scheduler.outer import Outer, outer
from isam.scheduler.plan import Group, in_order, own_temporaries, private_axes, touching
from isam.scheduler.plans import plain
from isam.scheduler.shared_loops import (
    Nests,
    brought_along,
    common_axes,
    crossed_axes,
    deeper,
    depends,
    join,
    late,
    own_axes,
    put_between,
    shared_axes,
)
from isam.system.graph import System


@dataclass(slots=True)
class Lineup:
    """Groups in order; ``aside``: groups placed after the last one because they do not depend on it."""

    done: list[Nests] = field(default_factory=list)
    aside: Lineup | None = None

    def all(self) -> list[Nests]:
        return [*self.done, *self.waiting]

    @property
    def waiting(self) -> list[Nests]:
        return self.aside.all() if self.aside else []


class Grouping:
    """Groups of a kernel's nests, decided one nest after the other. ``every``: all nests of the kernel."""

    def __init__(self, kernel: Kernel, every: Sequence[Nest], system: System, trace: Trace, exact: bool):
        self.kernel, self.every, self.system, self.trace, self.exact = kernel, every, system, trace, exact
        self._touched = touching(every)
        self.left: list[Nest] = []  # nests that are in no group yet

    def groups(self, nests: Iterable[Nest]) -> list[Group]:
        """Consecutive nests, in an order in which what depends on something comes after it."""
        some = list(nests)
        first = {p.number for n in some if (p := self.begun(n)) is not None}
        line, self.left = Lineup(), self._postponed(n for n in some if n.number not in first)
        while self.left:
            self._add(line, self.left.pop(0))
        return [self._group(g) for g in self._over_lines(line.all())]

    def begun(self, n: Nest) -> Nest | None:
        """The nest that begins what a sum over part of a box adds to, where no move leads to that."""
        use = summed_there(n, self.system)
        return None if use is None or drained(n) is None else begin_of(self.every, n, use)

    def _there(self, n: Nest) -> Drained | None:
        """What such a sum runs over in blocks of results."""
        return None if self.begun(n) is None else drained(n)

    def _over_lines(self, groups: Sequence[Nests]) -> list[Nests]:
        """Groups one after the other that share lines of memory, and nothing else, as one."""
        out: list[Nests] = []
        for g in groups:
            got = self._interleaved(out[-1], g) if out and self.system.caches else None
            out[-1 if got else len(out) :] = [got or g]
        return out

    def _interleaved(self, group: Nests, other: Nests) -> Nests | None:
        """Two groups as one, where they share lines and the Approach wants it."""
        if not all(map(self._plain, (*group, *other))):
            return None
        named = beside(group, other, self.kernel)
        if named is None:
            return None
        both, lines = (*group, *named), shared_lines(group, named, self.kernel)
        if not _one_domain(both) or (self.exact and not in_order(plain(Group(both, True)))):
            return None
        return both if self._wanted(both[:-1], named[-1], lines=lines) else None

    def _group(self, nests: Nests) -> Group:
        domain = self._there(nests[-1]) or self._domain(nests[0])
        private = self._private(nests)
        if domain is not None:
            return Group(tuple(map(domain.block, nests)), self.exact, private, domain)
        return Group(nests, self.exact, private)

    def _domain(self, nest: Nest) -> BlockedDomain | None:
        """What a nest that runs between lines runs over in blocks: where those are its own, where no other such nest
        has to find what it leaves in a temporary, nor it what the other does, and where lines bound a sum. Else it goes
        by elements: temporaries are better taken whole, in loops that are shared, than in blocks of each nest by
        itself; of a sum no terms can be added."""
        if not nest.where:
            return None
        found = self._outer(nest)
        if found is not None:
            return found
        others = [u for n in self.every if n.where and n.number != nest.number for u in n.uses]
        meet = not _bounds_sum(nest) and any(
            u.buffer == v.buffer and (u.writes or v.writes) and self._temporary(u.buffer)
            for u in nest.uses
            for v in others
        )
        return None if meet else oblique(nest, self.exact)

    def _outer(self, nest: Nest) -> Outer | None:
        """How the recurrent loops around a nest bound its axes."""
        loops = {r.axis.name: r.axis.extent for r in recurrences(self.kernel.body)}
        return outer(nest, {n: loops[n] for n in nest.mapping.loops}, self.exact)

    def _add(self, line: Lineup, n: Nest) -> None:
        """Puts a nest into a group of the line, or behind them."""
        done, aside = line.done, line.waiting
        divided = needed, left = _divided(aside, n)
        asked = bool(done) and self._plain(n) and self._plain(done[-1][-1])
        if asked:
            if any(_tied(g, h) for g in needed for h in left):  # it would stand aside of what it needs
                needed, left = aside, []
            got = self._into(done[-1], needed, n)
            if got is None:
                got = self._partly(done[-1], needed, n)
            if got is not None:
                done[-1:], line.aside = got, Lineup(left) if left else None
                return
            if not depends(done[-1], n):
                if not self._earlier(line, divided, n):
                    line.aside = line.aside or Lineup()
                    self._add(line.aside, n)
                return
        needed, left = divided
        since = len(done) if needed or asked else len(done) - 1
        done += needed
        first = self.begun(n)
        if first is None:
            self._put(done, n, since)
        else:
            done.append((first, n))
        if any(depends(done[-1], q) for g in left for q in g):
            done += left
            left = []
        line.aside = Lineup(left) if left else None

    def _postponed(self, nests: Iterable[Nest]) -> list[Nest]:
        """The nests with those that read arguments alone behind others that neither depend on them: an operand laid out
        for a later nest does not stand between others."""
        out = list(nests)
        for n in out[::-1]:
            at, read = out.index(n), [u.buffer for u in n.uses if u.reads and not is_literal(u.buffer)]
            if not read or any(self.kernel.buffer(b).role not in ("in", "const") for b in read):
                continue
            reader = next((q for q in range(at + 1, len(out)) if depends((n,), out[q])), at)
            last = max((q for q in range(at + 1, reader) if any(depends((p,), out[q]) for p in out[:q])), default=at)
            out.insert(last, out.pop(at))
        return out

    def _earlier(self, line: Lineup, divided: tuple[list[Nests], list[Nests]], n: Nest) -> bool:
        """Whether the nest joins a group before the last one: the last on which it depends, with nothing in between;
        what it depends on of those aside, which are ``divided`` by that, goes along."""
        done = line.done
        at = next((k for k in range(len(done) - 1, -1, -1) if depends(done[k], n)), None)
        if at is None or not self._plain(done[at][-1]):
            return False
        needed, left = divided
        if any(depends(g, q) for g in done[at:] for h in needed for q in h):
            return False
        got = self._into(done[at], needed, n, self._kept(n, done[at + 1 :]))
        if got is not None:
            done[at : at + 1] = got
            line.aside = Lineup(left) if left else None
        return got is not None

    def _kept(self, n: Nest, behind: Sequence[Nests]) -> frozenset[str]:
        """Temporaries that a nest writes, and that nests alone touch which share all its loops and come after groups
        behind that: they could be made there, as far as what the nest reads goes."""
        after, late = list(behind), set[int]()
        for q in self.left:
            if any(depends(g, q) for g in after):
                after.append((q,))
                if len(shared_axes((n,), q)) == len(n.extents):
                    late.add(q.number)
        others = {u.buffer for q in self.every if q.number not in late and q.number != n.number for u in q.uses}
        return frozenset(u.buffer for u in n.uses if u.writes and self._temporary(u.buffer)) - others

    def _put(self, groups: list[Nests], n: Nest, since: int = 0) -> None:
        """At the end: in one of the groups, none of which is before ``since``, with those behind it aside; or as one of
        its own."""
        for at in range(max(0, since), len(groups) if self._plain(n) else 0):
            behind = groups[at + 1 :]
            if self._plain(groups[at][-1]) and not any(depends(groups[at], q) for g in behind for q in g):
                got = self._into(groups[at], behind, n)
                if got is not None:
                    groups[at:] = got
                    return
        groups.append((n,))

    def _into(
        self, group: Nests, aside: Sequence[Nests], n: Nest, kept: frozenset[str] = frozenset()
    ) -> list[Nests] | None:
        """The group with a nest in it, after what then goes before it; None: it does not join. Before its last nests,
        which have nothing to do with it, where it shares more loops there; else at its end. ``kept``: what it writes
        for nests that come after groups behind."""
        at = deeper(group, n)
        ends = (len(group),) if at is None else (at, len(group))
        for k in ends:
            names = kept | self._kept(n, [group[k:]]) if k < len(group) else kept
            found = self._before(group[:k], group[k:], aside, n, names)
            if found is not None:
                return found
        return None

    def _before(self, group: Nests, behind: Nests, aside: Sequence[Nests], n: Nest,
                kept: frozenset[str]) -> list[Nests] | None:  # fmt: skip
        """The same, before certain nests of the group. None also where it would give up loops that it could share with
        one of those aside. What it takes up of those, and nothing else aside is tied to, goes along, or, where that
        does not fit, before."""
        alone = join(group, n, behind=behind)
        if alone is None or any(not shared_axes(g, n) <= common_axes(group, n, alone) for g in aside):
            return None
        taken = [g for k, g in enumerate(aside) if self._free(g, n, aside[k + 1 :])]
        whole = self._taking((), group, taken, aside, n, alone, behind, kept)
        if whole is None and not behind:
            whole = self._beside(group, aside, n)
        if whole is not None:
            return whole
        front, rest, inside = _parted(group, taken, alone)
        parted = bool(front) or len(inside) < len(taken)
        first = parted and self._swelling(inside)
        if first:
            whole = self._taking(front, rest, inside, aside, n, alone, behind, kept)
        if whole is None:
            joined = self._joined(group, n, past=bool(aside or behind), behind=behind, kept=kept)
            whole = None if joined is None else [*aside, (*group, joined, *behind)]
        if whole is None and parted and not first:
            whole = self._taking(front, rest, inside, aside, n, alone, behind, kept)
        return whole

    def _swelling(self, groups: Sequence[Nests]) -> bool:
        """Whether some of them writes a temporary that would be larger than every argument, kept whole (IR-5)."""
        written = {u.buffer for g in groups for n in g for u in n.uses if u.writes and not is_literal(u.buffer)}
        return not self.kernel.outsized.isdisjoint(written)

    def _taking(self, front: Nests, group: Nests, along: Sequence[Nests], aside: Sequence[Nests], n: Nest, alone: Nest,
                behind: Nests = (), kept: frozenset[str] = frozenset()) -> list[Nests] | None:  # fmt: skip
        """The group with a nest in it that takes some of those aside along; None: it cannot, or shall not. ``front``:
        nests of the group that stay before it; ``alone``: the nest as it would share the loops of the group alone."""
        whole = put_between(group, brought_along(group, along, n, alone, behind), alone)
        if not along or self._may(whole, n, behind=behind) is None:
            return None
        joined = self._joined(whole, n, past=True, behind=behind, kept=kept)
        if joined is None:
            return None
        return [*(g for g in aside if g not in along), *((p,) for p in front), (*whole, joined, *behind)]

    def _beside(self, group: Nests, aside: Sequence[Nests], n: Nest) -> list[Nests] | None:
        """The last of those aside with a nest in it that takes the group along."""
        *others, last = [*aside] or [()]
        alone = join(last, n) if last and self._plain(last[-1]) else None
        if alone is None or not self._free(group, n, ()):
            return None
        return self._taking((), last, [group], [*others, group], n, alone)

    def _partly(self, group: Nests, aside: Sequence[Nests], n: Nest) -> list[Nests] | None:
        """The same without the axes of which one call takes more in one than in the other: the nest then has loops of
        its own along these, inside those that they share. What it needs and lacks one of those stays before."""
        apart = crossed_axes(group, n)
        alone = join(group, n, apart)
        own = apart if alone is None else apart or own_axes(group, n, alone)
        needed = [g for g in aside if depends(g, n)]
        tied = any(_tied(g, h) for g in needed for h in aside if h is not g)
        if alone is None or not own or tied or not all(_even(g) for g in needed):
            return None
        parallel = alone.extents.keys() & {a for m in group for a in m.extents} - set(alone.reduced)
        named = iter(brought_along(group, needed, n, alone))
        each = [(g, tuple(islice(named, len(g)))) for g in needed]
        taken = [(g, q) for g, q in each if all(parallel <= p.extents.keys() for p in q)]
        along = tuple(p for _, q in taken for p in q)
        joined = self._joined((*group, *along), n, past=bool(aside), apart=apart, along=along, own=own)
        before = [g for g in aside if not any(g is h for h, _ in taken)]
        return None if joined is None else [*before, (*group, *along, joined)]

    def _may(self, group: Nests, n: Nest, apart: frozenset[str] = frozenset(), behind: Nests = ()) -> Nest | None:
        """The nest as it shares the group's loops, where it may."""
        joined = join(group, n, apart, behind)
        if joined is None or late((*group, joined, *behind)) or not _one_domain((*group, joined, *behind)):
            return None
        whole = Group((*group, joined, *behind), True)
        return joined if not self.exact or in_order(plain(whole)) else None

    def _joined(
        self,
        group: Nests,
        n: Nest,
        past: bool = False,
        apart: frozenset[str] = frozenset(),
        along: Nests = (),
        behind: Nests = (),
        own: frozenset[str] = frozenset(),
        kept: frozenset[str] = frozenset(),
    ) -> Nest | None:
        """The nest as it shares the group's loops, where it may and the Approach wants it to. ``past``: it goes past
        others, which it could join instead. ``apart``: axes that it does not share; it takes ``along`` the last nests
        of the group then, and has loops along its ``own`` axes inside. ``behind``: nests of the group that it comes
        before."""
        joined = self._may(group, n, apart, behind)
        return joined if joined is not None and self._wanted(group, joined, past, along, own, kept) else None

    def _wanted(
        self,
        group: Nests,
        joined: Nest,
        past: bool = False,
        along: Nests = (),
        own: frozenset[str] = frozenset(),
        kept: frozenset[str] = frozenset(),
        lines: frozenset[str] = frozenset(),
    ) -> bool:
        """Whether the Approach wants a nest, as it shares the group's loops, to do so; ``lines``: they share lines of
        these buffers."""
        context = {
            "nests": [m.number for m in (*group, joined)],
            "nest": joined.instruction.name,
            "into": [m.instruction.name for m in group],
            "past": past,
            "apart": sorted(own),
            "kept": sorted(kept),
            "lines": sorted(lines),
            "_group": [m for m in group if m not in along],
            "_nest": joined,
            "_kernel": self.kernel,
            "_system": self.system,
        }
        return bool(self.trace.choose(Choice("fuse", (False, True), context)))

    def _plain(self, nest: Nest) -> bool:
        """Whether the nest runs over a whole box, or over what loops around it leave of one, in loops of bounded blocks
        (an instruction of unlimited size takes its operands whole, but where each call sums over all of an axis; a
        piece of a domain is on its own)."""
        whole = not nest.where or self._outer(nest) is not None
        limited = all(m.limit is not None or a in nest.reduced for a, m in nest.mapped.items())
        return whole and not nest.origin and limited

    def _free(self, group: Nests, n: Nest, later: Sequence[Nests]) -> bool:
        """Whether a group may go along with a nest that depends on it: all its nests have the same loops, and none of
        those that come ``later`` is tied to it."""
        whole = _even(group) and all(self._plain(p) for p in group)
        return whole and depends(group, n) and not any(_tied(group, g) for g in later)

    def _temporary(self, name: str) -> bool:
        return not is_literal(name) and self.kernel.buffer(name).role == "temp"

    def _private(self, group: Nests) -> dict[str, frozenset[str]]:
        """Axes of temporaries that the group has to itself, as :func:`isam.scheduler.plan.private_axes` says."""
        return private_axes(group, own_temporaries(self.kernel, group, self._touched))


def _bounds_sum(nest: Nest) -> bool:
    """Whether conditions say which terms a sum has."""
    return any(w.coefficient(a) for w in nest.where for a in nest.reduced)


def _one_domain(nests: Nests) -> bool:
    """Whether all nests run over the same domain, where one of them does not run over a box."""
    first = nests[0]
    return all((n.extents, {*n.where}) == (first.extents, {*first.where}) for n in nests) or not any(
        n.where for n in nests
    )


def _divided(groups: Sequence[Nests], n: Nest) -> tuple[list[Nests], list[Nests]]:
    """Those that have to come before a nest, and the others, which may come after it."""
    needed: list[Nests] = []
    for g in reversed(groups):
        if depends(g, n) or any(depends(g, q) for h in needed for q in h):
            needed.insert(0, g)
    return needed, [g for g in groups if g not in needed]


def _tied(one: Nests, other: Nests) -> bool:
    """Whether two groups aside have to stay in their order."""
    return any(depends(one, q) for q in other) or any(depends(other, p) for p in one)


def _parted(group: Nests, taken: Sequence[Nests], joined: Nest) -> tuple[Nests, Nests, Sequence[Nests]]:
    """What stays before a group, what of it is left, and who may go along then: without what is the same for all
    iterations of a loop that is no sum's, which would have to run in the first one alone."""
    parallel = joined.extents.keys() - set(joined.reduced)
    front = tuple(takewhile(lambda p: not parallel <= p.extents.keys(), group))
    inside = [g for g in taken if all(parallel <= p.extents.keys() for p in g)]
    return front, group[len(front) :], inside


def _even(group: Nests) -> bool:
    """Whether all nests of a group have the same loops."""
    return all(p.extents.keys() == group[0].extents.keys() for p in group)
