"""Plans whose blocks are dealt to instances that share the home memory, each with registers and caches of its own: the
plans that one instance would have for its part, side by side."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Nest
from isam.scheduler.plan import Group, Plan, StagedBox
from isam.scheduler.plans.conflicts import best_with_conflicts
from isam.scheduler.plans.dealing import Dealing, dealings
from isam.scheduler.plans.fed import fed
from isam.scheduler.plans.kept import with_whole_rows
from isam.scheduler.plans.register import blocks, least, operand_memories
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.single import blocked
from isam.scheduler.plans.traffic import volume
from isam.system.graph import MANAGED, System

FEW = 8  # blocks of registers per way of dealing
MEETING = 1.75e-6  # seconds until all threads have begun and ended (measured: 1.5 to 2 microseconds)
RATE = 8  # bytes that come from beyond an instance's own caches in a relative cycle
APART = 1.5  # times that calls of threads take whose results lie between those of others (measured: 1.3 to 1.8)


def side_by_side(request: Request) -> list[tuple[Plan, float]]:
    """Plans with their predicted seconds; none where the registers of the main nest are there once. Of ways to
    deal, what an instance has to fetch more than with the best of them counts where blocks do not say. Threads have to
    meet, and share lines; instances that one schedule drives do not."""
    group, system = request.group, request.system
    own = (m for m in operand_memories(group.main, system) if system.replica_of(m) is not None)
    memory = next(own, None)
    if memory is None:
        return []
    ways = [d for d in dealings(group, group.main, system, system.memories[memory]) if d]
    parts = [group.part({a: n for a, n, _ in d}) for d in ways]
    fetched = [_bytes(p.main) / RATE for p in parts]
    threads = bool(ways) and system.replicas[ways[0][0][2].group].threads
    meeting = MEETING if threads else 0.0
    out = []
    for dealing, part, n in zip(ways, parts, fetched, strict=True):
        mine = replace(request, group=part, steps=frozenset(), near=frozenset())
        main = mine.main
        slower = APART if threads and not _in_a_row(group.main, dealing) else 1.0
        costs = fed(main, system, request.routes, prod(-(-group.length(a) // m) for a, m, _ in dealing))
        more = 0.0 if costs else n - min(fetched)
        found = blocks(main, system, least(part, main), beside=mine.passing, fed=costs)
        for block in best_with_conflicts(found, mine, FEW):
            cost = slower * block.cost * main.work()
            for way, cycles in with_whole_rows(blocked(mine, block), cost, block, mine):
                plan = _dealt(way, group, dealing, system)
                if plan is not None:
                    out.append((plan, mine.seconds(cycles * _longest(plan, dealing) + more) + meeting))
    return out


def _longest(plan: Plan, dealing: Dealing) -> float:
    """How many times as long as asked for the longest part of a plan is, whose panels stay whole."""
    longest = (max(s.size for s in plan.shares(a, plan.group.length(a), n)) for a, n, _ in dealing)
    return prod(most / n for most, (_, n, _) in zip(longest, dealing, strict=True))


def _in_a_row(main: Nest, dealing: Dealing) -> bool:
    """Whether what each instance writes lies in a row: its outermost dimension that is longer than one is cut."""
    for u in main.uses:
        rows = u.index if u.writes else ()
        long = [r for r in rows if any(a in main.extents and main.length(a) > 1 for a in r.names)]
        if long and not all(a in long[0].names for a, _, _ in dealing):
            return False
    return True


def _bytes(nest: Nest) -> int:
    """What a nest touches."""
    return sum(volume(nest, u) * size_of(u.dtype) for u in nest.uses if not is_literal(u.buffer))


def _dealt(plan: Plan, group: Group, dealing: Dealing, system: System) -> Plan | None:
    """The plan of a part for all of them; None where it needs room that instances do not have for themselves."""
    replica = system.replicas[dealing[0][2].group]
    own = next((m for m in replica.memories if system.memories[m].kind == MANAGED), None)
    around = plan.inside(tuple((a, n) for a, n, _ in dealing), group)
    stages: list[StagedBox] = []
    for s in around.stages:
        memory = s.memory if s.at_bind else own
        if memory is None:
            return None
        stages.append(replace(s, memory=memory))
    return replace(around, stages=tuple(stages), deals=tuple(d for _, _, d in dealing), outer=0)
