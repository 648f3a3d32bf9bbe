"""What register blocks suffer from: rows that fall on the same sets of a cache, so that what was just there is read
from the next one; overlapping windows that do not fit the registers together; rows read side by side of which so much
is wanted at a time that it comes late, or so little that no stream gets under way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from heapq import heappush, heappushpop
from math import ceil, inf, prod, sqrt

from isam.caches import LINE, PERIOD
from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group
from isam.scheduler.plans.cache import outer_blocks, slowed, streamed
from isam.scheduler.plans.register import RegisterBlock, axes_of, operand_memories, steps
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.sets import crowd, fullest
from isam.scheduler.plans.traffic import call_rate, reads, vector_axes, volume
from isam.scheduler.plans.windows import window_alone
from isam.system.hierarchy import HIDDEN, SHARE, levels, near_cache, slow

MISS = 8.0  # relative cycles for a line of results that has to be fetched
AHEAD = 512  # bytes of a row that are there in time when several rows are read in turns (measured)
LATE = 0.15  # relative cycles per call where more is wanted
SLOWER = 3 / 4  # relative cycles per call for all that it gives, beyond that (measured)
BESIDE = 2  # rows at a time of those that are gone through, where what is made of them lies on the same sets
EVICTED = 1 / 3  # relative cycles per call where a window has as many lines again as a set (measured on a Zen 4)
APART = 1 / 64  # relative cycles per call where results wait in memory for others, taken with them: little (measured)
BROKEN = 2.0  # relative cycles per call on short rows from beyond the caches, several at a time (measured)
STREAMS = 3  # long rows at a time that a slow last cache brings as fast as fewer
ONE_MORE = 1 / 5  # relative cycles per call for each one beyond these (measured on a Granite Rapids, as they are)


def best_with_conflicts(found: list[RegisterBlock], request: Request, most: int) -> list[RegisterBlock]:
    """The best ``most`` blocks with what conflicts cost, best first; among equals those of few calls, which leave room
    for what passes between nests, then those along inner axes, whose elements lie together."""
    group, main, system, bindable = request.group, request.main, request.system, request.bindable
    known, memories = levels(system), operand_memories(main, system)
    if not known or not memories:
        return found[:most]
    if not main.reduced:
        return in_streams(found, group, near_cache(system))[:most]
    inner = [a for a in reversed(main.axes) if a not in main.reduced]
    passed, whole = gone_through(group, main), taken_whole(group, main)
    short, long = rows_from_afar(passed, main, known[-1][0])
    late = ONE_MORE if slow(system.caches) else 0.0
    near, speed = known[0][0], known[1][1] if len(known) > 1 else 0.0
    given = speed / call_rate(main, system)  # bytes for each call
    lines, cells = max(1, near // PERIOD), max(system.memories[m].limit for m in memories)
    outer: dict[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = {}  # by tiles

    def cost(b: RegisterBlock, most: float) -> float:
        spilled = 1.0 if overlaps(main, b) > cells else 0.0
        broken = BROKEN if any(b.of(a) > 1 for a in short) else 0.0
        broken += late * max((b.of(a) - STREAMS for a in long if b.of(a) > STREAMS), default=0)
        waits = rows_late(main, b, bindable) + (0.0 if passed else fetched(main, b, near, given))
        width = b.widths(main)
        crowded = sum(max(0.0, crowd(main, u, width) / (lines / BESIDE) - 1) for u in passed)
        apart = APART if any(b.of(a) * main.unit(a) < main.length(a) for a in whole) else 0.0
        total = b.cost + apart + conflicts(main, b, lines) + crowded + spilled + waits + broken
        if total > most:
            return total
        outer[b.tiles] = tuple(outer_blocks(request, width))
        return slowed(total, main, width, outer[b.tiles], system, bindable, group.common)

    def rank(b: RegisterBlock) -> tuple[float, ...]:
        return b.cost, b.calls, *(-b.of(a) for a in inner)

    return [replace(b, outer=outer[b.tiles]) for b in cheapest(found, most, cost, rank)]


def in_streams(found: list[RegisterBlock], group: Group, near: int) -> list[RegisterBlock]:
    """Blocks without a sum, best first: parts of several short rows at a time are streams that end before they are
    fetched ahead, where arrays come from beyond the second cache, of ``near`` bytes; whole rows are one stream."""
    main = group.main
    along, rows = short_rows(group, main, near)

    def broken(b: RegisterBlock) -> bool:
        width = b.widths(main)
        return any(width[a] < main.length(a) for a in along) and any(b.of(a) > 1 for a in rows)

    if not rows:
        return found
    return sorted([replace(b, cost=b.cost + BROKEN) if broken(b) else b for b in found], key=lambda b: b.cost)


def short_rows(group: Group, main: Nest, near: int) -> tuple[frozenset[str], frozenset[str]]:
    """Axes along and across the rows of arrays that a group without sums goes through once, where all of them lie
    alike, are more than twice ``near`` bytes together, and have rows of up to two pages; else none."""
    whole, users = prod(main.length(a) for a in main.axes), [u for n in group.nests for u in n.uses if u.index]
    touched = Counter(u.buffer for u in users)
    streams = [u for u in users if touched[u.buffer] == 1 and volume(main, u) == whole]
    along = {frozenset(a for a in u.index[-1].names if a in main.extents) for u in streams}
    if len(along) != 1 or sum(size_of(u.dtype) for u in streams) * whole <= 2 * near:
        return frozenset(), frozenset()
    (last,) = along
    length = max(size_of(u.dtype) for u in streams) * prod(main.length(a) for a in last)
    return (last, frozenset(main.axes) - last) if length <= 2 * PERIOD else (frozenset(), frozenset())


def taken_whole(group: Group, main: Nest) -> list[str]:
    """Axes of the main nest that some nest which reads its results does not have: it takes all of them at once, so that
    results of a block with a part of such an axis wait in memory for the others (the gates of a recurrent unit)."""
    made = {u.buffer for u in main.uses if u.writes}
    readers = [n for n in group.nests if n is not main and any(u.reads and u.buffer in made for u in n.uses)]
    return [a for a in main.axes if a not in main.reduced and any(a not in n.axes for n in readers)]


def cheapest(
    found: list[RegisterBlock],
    most: int,
    cost: Callable[[RegisterBlock, float], float],
    rank: Callable[[RegisterBlock], tuple[float, ...]],
) -> list[RegisterBlock]:
    """The first ``most`` blocks by ``rank`` once each has its ``cost``, never below the one it comes with: what
    comes with more than all of these is left out unseen. A cost beyond its second argument, that of the last of them so
    far, may be told too low, but beyond that."""
    out: list[RegisterBlock] = []
    worst: list[float] = []  # the costs of the best ones, negated, as a heap
    for b in sorted(found, key=lambda b: b.cost):
        last = -worst[0] if len(worst) == most else inf
        if b.cost > last:
            break
        out.append(replace(b, cost=cost(b, last)))
        (heappush if len(worst) < most else heappushpop)(worst, -out[-1].cost)
    return sorted(out, key=rank)[:most]


def gone_through(group: Group, main: Nest) -> list[Use]:
    """What the main nest reads each element of once, and other nests of the group, too: rows that are gone through
    several times, beside those that are made of them."""
    out = []
    for u in main.uses:
        again = sum(v.reads and v.buffer == u.buffer for n in group.nests for v in n.uses) > 1
        once = volume(main, u) == prod(main.length(a) for a in main.axes)
        if u.index and u.reads and not u.writes and again and once:
            out.append(u)
    return out


def rows_from_afar(passed: list[Use], main: Nest, cache: int) -> tuple[frozenset[str], frozenset[str]]:
    """Axes that count rows of more than half the last cache, which are gone through several times: those of up to a
    page, and longer ones. One row after the other is one stream, and comes while the row before is worked on; several
    short ones at a time are streams that end before they are fetched ahead, long ones wait for each other where the
    last cache is slow."""
    short, long = set[str](), set[str]()
    for u in passed:
        *rows, last = u.index
        size = size_of(u.dtype)
        length = size * prod(main.length(a) for a in last.names if a in main.extents)  # not of loops around
        if size * volume(main, u) > cache // 2:
            (long if length > PERIOD else short).update({a for r in rows for a in r.names} - set(last.names))
    return frozenset(short), frozenset(long)


def overlaps(main: Nest, block: RegisterBlock) -> int:
    """Registers for results, for what consecutive steps of a sum share of a window, and one for each other operand."""
    inner = next((a for a in reversed(main.axes) if a in main.reduced), None)
    total = block.calls
    again = steps(total) - 1 if inner not in main.mapped else 0
    live = 1
    for u in main.uses:
        shared = [block.of(a) for r in u.index if inner in r.names and len(r.names) > 1 for a in r.names if a != inner]
        live += total if u.writes else max(shared) + again if shared and again else 1
    return live


def conflicts(main: Nest, block: RegisterBlock, lines: int) -> float:
    """Relative cycles per call: of windows that slide over what is read where it lies at every call, of results once
    per sum, of rows that are read element by element whenever one is. What else is read is laid out anew where that
    happens. Of a window without a further sum, whose lines the calls of a block share, all of them and the results
    stay at best; those that do not are fetched again, the cheaper the more lie together. ``lines``: of a set."""
    terms, cost, summed = prod(main.length(a) for a in main.reduced), 0.0, set(main.reduced)
    width = block.widths(main)
    for u in main.uses:
        long = [{a for a in r.names if a not in main.extents or main.length(a) > 1} for r in u.index]
        slides = any(0 < len(summed & names) < len(names) for names in long)
        if slides and not u.writes and window_alone(main, u):
            together = sum(fullest(main, v, width) for v in main.uses if v is u or v.writes)
            cost += EVICTED * max(0.0, together / lines - 1) / sqrt(lines_together(main, u, width))
            continue
        over = max(0.0, crowd(main, u, width) / lines - 1)
        if u.writes or slides:
            cost += over if slides else MISS / terms if over else 0.0
        elif by_element(main, u):
            cost += over * prod(block.of(a) for a in axes_of(u) - summed) / block.calls
    return cost


def lines_together(main: Nest, use: Use, width: Mapping[str, int]) -> int:
    """Lines of an operand that lie one behind the other and are in a block together."""
    along = [a for a in use.index[-1].names if a in main.extents] if use.index else []
    return max(1, prod(min(width.get(a, 1), main.length(a)) for a in along) * size_of(use.dtype) // LINE)


def by_element(main: Nest, use: Use) -> bool:
    """Whether a block reads rows side by side, element by element: a line is wanted at many steps."""
    last = use.index[-1].names if use.index else ()
    return bool(last) and last[0] in main.reduced and not any(a in main.mapped for a in axes_of(use))


def rows_late(main: Nest, block: RegisterBlock, bindable: frozenset[str]) -> float:
    """Relative cycles per call for rows that are read where they lie, several in turns: those of a wide block."""
    width = {a: block.of(a) * main.unit(a) for a in main.axes}
    along = next(reversed(vector_axes(main)), "")
    rows = [u for u in main.uses if along in axes_of(u) and streamed(main, u, width, bindable)]
    return LATE if any(width[along] * size_of(u.dtype) > AHEAD for u in rows) else 0.0


def fetched(main: Nest, block: RegisterBlock, near: int, given: float) -> float:
    """Relative cycles per call for panels that do not stay in the nearest cache, of ``near`` bytes, and are read nearly
    as fast as the next one gives them, or faster; ``given``: so many bytes in the time of a call, 0 if not known."""
    width = block.widths(main)
    line = reads(main, width, vector_axes(main)) if given else 0
    if line * prod(ceil(main.length(a) / main.unit(a)) for a in main.reduced) <= SHARE * near:
        return 0.0
    return SLOWER * max(0.0, line / block.calls / given - HIDDEN)
