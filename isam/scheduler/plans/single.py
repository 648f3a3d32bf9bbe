"""Plans whose loops run on one instance, one after the other: as the kernel states them, over whole operands, and
blocks of registers inside blocks of caches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from math import prod

from isam.caches import LINE, PERIOD
from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest
from isam.scheduler.plan import Group, Members, Plan, one_order
from isam.scheduler.plans.cache import outer_blocks
from isam.scheduler.plans.pack import packs, repack, repacked
from isam.scheduler.plans.register import (
    RegisterBlock,
    across,
    axes_of,
    completed,
    crossed,
    in_flight,
    passing,
    steps,
    unroll_order,
)
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.traffic import WORTH_PACKING, brought, outside, volume
from isam.system.graph import MANAGED, System
from isam.system.hierarchy import capacities, near_cache

LONG = 2 * PERIOD  # bytes of a row that is a stream by itself (measured on a Zen 4)
TOGETHER = 8  # calls of a nest on axes of its own that are unrolled: enough to hide their latency


def plain(group: Group) -> Plan:
    """One call per innermost iteration; loops in the order of the nests' axes."""
    order: list[tuple[str, int]] = []
    for a in ordered_axes(group):
        unit = max((n.unit(a) for n in group.nests if a in n.extents), default=1)
        order.append((a, unit))
    return Plan(group, tuple(order), tuple(ordered_axes(group)), note="plain")


def ordered_axes(group: Group) -> list[str]:
    """Axes that more nests share come first; inside a nest the order of its domain. Where sums keep their order, the
    axes of each as they stand in it."""
    if group.exact:
        return list(one_order(group.nests) or group.axes)
    shared = {a: sum(a in n.extents for n in group.nests) for a in group.axes}
    return sorted(group.axes, key=lambda a: (-shared[a], group.axes.index(a)))


def whole(request: Request) -> Plan:
    """For instructions that take whole operands from home memory: loops only over what the call leaves, and boxes
    copied where the operand's contract is not met by the buffer's own layout."""
    group, main = request.group, request.main
    order = [(a, main.unit(a)) for a in main.axes if a not in main.mapped or main.mapped[a].limit is not None]
    for n in group.nests:
        order += [(a, n.unit(a)) for a in n.axes if a not in main.axes]
    stages = tuple(s for u in main.uses if (s := repack(u, request.system, request.bindable)) is not None)
    return Plan(group, tuple(order), tuple(ordered_axes(group)), stages, note="whole operands")


def product(nest: Nest, main: Nest) -> bool:
    """Whether a nest reads an operand again along axes that it does not share with the main one, and sums up."""
    own = {a for a in nest.axes if a not in main.axes and a not in nest.reduced}
    return bool(nest.reduced) and any(own - axes_of(u) for u in brought(nest))


def another_product(nest: Nest, main: Nest) -> bool:
    """Whether a nest other than the main one sums up products."""
    return nest is not main and bool(nest.reduced) and len(brought(nest)) > 1


@dataclass(frozen=True)
class FewRows:
    """A loop over a few rows of the main nest's block that some of the nests beside it have alone. ``own``: axes that
    they share with no other nest."""

    members: Members
    axis: str
    block: int
    own: frozenset[str]

    def around(self, plan: Plan) -> Plan:
        """The plan with this loop: around those along axes of its own, where no loop that others have as well is among
        these, else the innermost."""
        depths = range(len(plan.order))
        others = tuple(i for i in range(len(plan.group.nests)) if i not in self.members)
        shared = [d for d in depths if plan.having(d, self.members) and plan.having(d, others)]
        at = next((d for d in depths if plan.order[d][0] in self.own and d > max(shared, default=-1)), len(plan.order))
        return plan.within(at, self.axis, self.block, self.members)


def rows_apart(group: Group, main: Nest, width: dict[str, int], system: System) -> list[FewRows]:
    """Loops over a few rows for nests that work in other memories than those in which the main one sums: what it hands
    them comes through home anyway, and its block is more than theirs hold, all nests one after the other."""
    sums = {h for u in main.uses if u.writes for h in u.homes} - {system.home}
    strange = [not n.origin and sums.isdisjoint(h for u in n.uses for h in u.homes) for n in group.nests]
    theirs = {a for n, s in zip(group.nests, strange, strict=True) if not s for a in n.axes}
    out = []
    for run in nests_in_a_row(group, strange, theirs) if sums else ():
        nests = [group.nests[i] for i in run]
        shared = [a for a in main.axes if all(a in n.axes and a not in n.reduced and n.unit(a) == 1 for n in nests)]
        axis = max(shared, key=lambda a: width.get(a, 1), default=None)
        calls = max(prod(-(-width.get(a, 1) // n.unit(a)) for a in n.axes if a in main.axes) for n in nests)
        own = frozenset(a for n in nests for a in n.axes) - theirs
        few = TOGETHER // 2 if own else TOGETHER
        if axis is not None and calls > 2 * TOGETHER:
            out.append(FewRows(run, axis, max(1, width.get(axis, 1) * few // calls), own))
    return out


def nests_in_a_row(group: Group, some: list[bool], taken: set[str]) -> Iterator[Members]:
    """Some nests of a group, those together that come one after the other and have the same axes, or one in common that
    is not ``taken``."""
    run: list[int] = []
    for i, n in enumerate(group.nests):
        last = group.nests[run[-1]] if run else n
        alike = set(last.axes) == set(n.axes) or not taken.issuperset(set(last.axes) & set(n.axes))
        if run and not (some[i] and alike):
            yield tuple(run)
            run = []
        if some[i]:
            run.append(i)
    if run:
        yield tuple(run)


def alongside(
    group: Group, main: Nest, per: dict[str, int], system: System, rows: list[FewRows]
) -> list[tuple[str, int]]:
    """Blocks of the axes that nests do not share with the main one, whose block ``per`` is given: of products the best
    register block, of others enough calls to hide their latency. ``rows``: loops that some have alone."""
    few = {i: {r.axis: r.block} for r in rows for i in r.members}
    chosen: dict[str, int] = {}
    for n in group.nests:
        given = {a: per.get(a, 1) for a in n.axes if a in main.axes}
        if product(n, main) and (best := completed(n, system, given, passing(group, n, system))) is not None:
            inner = [] if n.reduced[-1] in n.mapped else [n.reduced[-1]]
            chosen |= {a: n.unit(a) * best.of(a) for a in n.axes if a not in given and a not in chosen}
            chosen |= {a: n.unit(a) * steps(best.calls) for a in inner if a not in given and a not in chosen}
    order: list[tuple[str, int]] = []
    for i, n in enumerate(group.nests):
        block = {a: main.unit(a) * per.get(a, 1) for a in main.axes} | few.get(i, {})
        calls = prod(-(-block[a] // n.unit(a)) for a in n.axes if a in main.axes)
        several = max(1, min(4, TOGETHER // calls))
        own = (a for a in n.axes if a not in main.axes)
        order += [(a, chosen.get(a, n.unit(a) * several)) for a in own if a not in dict(order)]
    return order


def blocked(request: Request, block: RegisterBlock) -> Plan:
    """Register block inside cache blocks inside the remaining loops; operands read more than once are packed."""
    group, main, system, bindable = request.group, request.main, request.system, request.bindable
    parallel = [a for a in main.axes if a not in main.reduced]
    reduced = [a for a in main.axes if a in main.reduced]
    unit = {a: main.unit(a) for a in main.axes}
    width = block.widths(main)
    vector = [a for a in parallel if a in main.mapped]
    head = list(outer_blocks(request, width) if block.outer is None else block.outer)
    rest = [a for a in parallel if a not in vector]
    plainly = [a for a in rest if width[a] == 1]
    tiled = [a for a in rest if width[a] > 1]
    last = last_axis(group, main, near_cache(system))
    axes = sorted((*plainly, *tiled, *vector), key=lambda a: a == last)
    order = head + sorted(((a, width[a]) for a in axes), key=lambda b: b[0] not in group.common)
    order += [(a, unit[a]) for a in reduced[:-1]]
    if reduced:
        inner = reduced[-1]
        if inner in main.mapped:
            apart = all(system.memories[h].kind == MANAGED for u in main.uses for h in u.homes[:1])
            several = in_flight(main, dict(block.tiles), system) if apart else 1
        else:
            several = max(steps(block.calls), columns(main, inner, bindable))
        order.append((inner, unit[inner] * several))
    per = dict(block.tiles)
    rows = rows_apart(group, main, width, system)
    order += alongside(group, main, per, system, rows)
    sums = [a for n in group.nests for a in n.reduced if a not in main.axes and a not in n.mapped]
    unroll = [*reduced, *dict.fromkeys(sums), *unroll_order(main, per, request.room)]
    plan = Plan(group, tuple(dict.fromkeys(order)), tuple(unroll), (), note=str(block))
    apart = repacked(group, main, width, system, bindable)
    if not capacities(system):
        return _with(replace(plan, stages=apart), rows)
    around = [a for a, _ in takewhile(lambda b: b in head or b[0] in plainly, order)]
    stages = packs(plan, main, width, around, request)
    had = {s.buffer for s in stages}
    stages += tuple(s for s in apart if s.buffer not in had)
    for n in group.nests:
        if product(n, main) or another_product(n, main):
            wide = {a: dict(order)[a] for a in n.axes}
            had = {s.buffer for s in stages}
            more = packs(plan, n, wide, around, request)
            stages += tuple(s for s in more if s.buffer not in had)
    return _with(replace(plan, stages=stages), rows)


def columns(main: Nest, inner: str, bindable: frozenset[str]) -> int:
    """Steps of a sum along rows that vectors go across and that few calls take: all that a line of a row holds, since
    it is there."""
    few = (u for u in main.uses if u.reads and not u.writes and u.buffer not in bindable
           and outside(main, u, {}) < WORTH_PACKING)  # fmt: skip
    return max((c.near for u in few if (c := crossed(main, u)) is not None and c.axis == inner), default=1)


def last_axis(group: Group, main: Nest, near: int = 0) -> str | None:
    """The axis that the innermost loop goes along where vectors cross rows, without a sum: the one that most rows lie
    along, for these go on and on. Rows that are written count twice: a line of one is waited for before it is written,
    and again before it is gone. But long rows that come from beyond the second cache, of ``near`` bytes, are streams
    which have to get under way, and count more where all that is written are whole lines. None: it does not matter."""
    if main.reduced or not across(group, main):
        return None
    rows: dict[str, int] = {}
    uses = [u for n in group.nests for u in n.uses if u.index and u.buffer not in group.private]
    most = max((len(axes_of(u)) for u in uses), default=0)
    whole = [u for u in uses if len(axes_of(u)) == most and len(u.index[-1].names) == 1
             and u.index[-1].names[0] in group.axes]  # not of loops around
    bytes_ = {id(u): size_of(u.dtype) * group.length(u.index[-1].names[0]) for u in whole}  # of a row
    far = near and sum(size_of(u.dtype) * volume(main, u) for u in whole) > 2 * near
    lines = far and all(bytes_[id(u)] % LINE == 0 for u in whole if u.writes)
    for u in sorted(whole, key=lambda u: not u.writes):
        (along,) = u.index[-1].names
        weight = 2 if u.writes else 3 if lines and bytes_[id(u)] >= LONG else 1
        rows[along] = rows.get(along, 0) + weight
    return max(rows, key=rows.__getitem__, default=None)


def _with(plan: Plan, rows: list[FewRows]) -> Plan:
    for r in rows:
        plan = r.around(plan)
    return plan
