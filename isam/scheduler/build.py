"""From a cover to a schedule: what is settled first, a pass through the dry run, and others that the Approach may want
instead (SCH-1 to SCH-11)."""

from __future__ import annotations

from dataclasses import replace

from isam.approach.choice import Approach, Trace
from isam.ir.kernel import USUAL_TRIP
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule
from isam.scheduler.dealt_alike import wanted_alike, ways_alike
from isam.scheduler.finishing import finished
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.levers import levers
from isam.scheduler.near_homes import less_near, near_homes, wanted_near
from isam.scheduler.passes import Pass
from isam.scheduler.recur import calls
from isam.scheduler.setting import Setting, TooLarge, problem_of, setting_of
from isam.system.graph import System

TRIED = 12  # schedules begun, until one fits


def schedule(cover: Cover, system: System, trace: Trace) -> Schedule | Infeasible:
    """Decides devices, placements, routes, evictions and loops for a cover, ahead of time.

    Returns an :class:`Infeasible` (falsy) when the machine cannot hold it.
    """
    try:
        return finished(_handing_on(*_first(cover, system, trace)), trace)
    except NoSchedule as no:
        reason, approach = no.reason, trace.approach
        return replace(reason, helps=lambda: levers(system, reason, lambda s: _possible(cover, s, approach)))


def _first(cover: Cover, system: System, trace: Trace) -> tuple[Pass, Schedule]:
    """With what the Approach wants to stay in near memory, and what meets there, or without where the rest is too small
    to work in. What the dry run has no room for is tried again with smaller calls of that nest; when nothing helps, the
    first reason says what is lacking."""
    keep = True
    refused: TooLarge = {}
    first: NoSchedule | None = None
    for _ in range(TRIED):
        problem, setting = problem_of(cover, system, trace, refused), None
        if problem is None:
            break
        try:
            setting = setting_of(problem, keep)
            made = Pass(setting)
            return made, made.made()
        except NoSchedule as no:
            first = first or no
            if setting is not None and setting.keeps:
                keep = False
                continue
            full = next((n for n in problem.nests if n.number == no.nest and no.reason.smaller), None)
            if full is None or not full.mapped:
                break
            refused[full.number] = (*refused.get(full.number, ()), {a: full.unit(a) for a in full.mapped})
    raise first or AssertionError("the first schedule takes calls of any size")


def _handing_on(first: Pass, plain: Schedule) -> Schedule:
    """The schedule made, or one with temporaries at home near, where that takes fewer calls and the Approach wants it,
    or where it wants groups dealt alike for that."""
    setting, made = _near(first, plain)
    problem, groups, near = setting.problem, setting.groups, setting.near
    machine, apart = less_near(setting.beside_stays, problem.kernel, near), {*problem.prepared, *near}
    ways = ways_alike(problem.kernel, groups, machine, problem.routes, apart)
    ways = [w for w in ways if not first.by_rows & {groups[at].number for at in w.dealings}]
    alike = wanted_alike(problem.trace, groups, ways)
    try:
        with problem.trace.comparing():
            return Pass(replace(setting, alike=alike)).made() if alike else made
    except NoSchedule:
        return made


def _near(first: Pass, plain: Schedule) -> tuple[Setting, Schedule]:
    """The schedule made, or one with temporaries at home near, and what it was made in."""
    setting, problem = first.setting, first.problem
    near = near_homes(problem.kernel, setting.groups, setting.beside_stays, problem.prepared)
    if not near:
        return setting, plain
    other = replace(setting, near=near)
    try:
        with problem.trace.comparing():
            made = Pass(other).made()
    except NoSchedule:
        return setting, plain
    usual = max(problem.kernel.usual(USUAL_TRIP).values(), default=1)
    taken = calls(plain.call, usual), calls(made.call, usual)
    return (other, made) if wanted_near(problem.trace, setting.groups, near, taken) else (setting, plain)


def _possible(cover: Cover, system: System, approach: Approach) -> bool:
    try:
        _first(cover, system, Trace(approach))
    except NoSchedule:
        return False
    return True
