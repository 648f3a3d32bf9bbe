"""Which nests Greedy lets share loops: what it gains that what one leaves is near when another reads it, and what that
costs."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from isam.ir.kernel import Kernel
    from isam.scheduler.nests import Nest
    from isam.system.graph import System

SUMMED = 4  # calls that a sum takes, from which on its result may go through main memory


def crowds(nest: Nest, group: list[Nest]) -> bool:
    """Whether a product would share the loop of its sum with another product: results of one alone fill registers."""
    return again(nest) and any(again(n) and not set(n.reduced).isdisjoint(nest.reduced) for n in group)


def again(nest: Nest) -> bool:
    """Whether it is a sum that reads two operands again for other results."""
    from isam.scheduler.plans.register import axes_of

    free = {a for a in nest.axes if a not in nest.reduced and nest.length(a) > 1}
    return bool(nest.reduced) and sum(not u.writes and not free <= axes_of(u) for u in nest.uses) > 1


def idles(system: System, nest: Nest, group: list[Nest]) -> bool:
    """Whether the group makes long sums side by side along axes that the nest sums over, and would use much less of the
    machine in one loop with it."""
    from isam.scheduler.plan import Group
    from isam.system.busy import idle

    main = max(group, key=lambda n: n.calls())
    long = prod(-(-main.length(a) // max(1, main.mapped[a].limit or 1)) for a in main.reduced if a in main.mapped)
    units = system.spread(main.instruction.name)[1]
    if units < 2 or long < SUMMED:
        return False
    joined, alone = (Group(tuple(nests)).blocks() for nests in ([*group, nest], group))
    return idle(joined, alone, units)


def stays(kernel: Kernel, system: System, nest: Nest, group: list[Nest]) -> bool:
    """Whether nests that share outer loops keep in a cache what one iteration of these touches, beside what passes by,
    while what the group leaves for the nest, kept whole, would take more than half of it."""
    from isam.scheduler.plans.traffic import volume
    from isam.system.hierarchy import SHARE, near_cache

    cache = near_cache(system)
    if not cache or idles(system, nest, group):
        return False
    shared = {a for n in group for a in n.extents} & set(nest.extents)
    uses = {(u.buffer, u.index): (n, u) for n in (*group, nest) for u in n.uses if not is_literal(u.buffer)}
    inside = sum(size_of(u.dtype) * volume(n, u, shared) for n, u in uses.values())
    written = {u.buffer for n in group for u in n.uses if u.writes}
    between = [size_of(u.dtype) * volume(nest, u) for u in nest.uses
               if u.reads and u.buffer in written and kernel.buffer(u.buffer).role == "temp"]  # fmt: skip
    return inside <= SHARE * cache and max(between, default=0) > cache // 2


def keeps(kernel: Kernel, system: System, nest: Nest, group: list[Nest], kept: Collection[str]) -> bool:
    """Whether more passes if what a nest writes for later is kept and read again then, than if what it reads of the
    group's is, where a temporary of the group's would have to be kept as well; not of what the nearest cache holds."""
    from isam.scheduler.plans.traffic import volume
    from isam.system.hierarchy import capacities

    def size(names: Collection[str]) -> int:
        each = {(u.buffer, u.index): volume(nest, u) * size_of(u.dtype) for u in nest.uses if u.buffer in names}
        return sum(each.values())

    theirs = {u.buffer for n in group for u in n.uses}
    read = {u.buffer for u in nest.uses if u.reads} & theirs
    temps = {b for b in read if not is_literal(b) and kernel.buffer(b).role == "temp"}
    return size(kept) > next(iter(capacities(system)), 0) and 2 * size(kept) > size(read) + size(temps)


def swells(kernel: Kernel, nest: Nest, group: list[Nest]) -> bool:
    """Whether a temporary between them would be larger than every argument, were it kept whole (IR-5)."""
    shared = {u.buffer for n in group for u in n.uses if u.writes} & {u.buffer for u in nest.uses}
    return not kernel.outsized.isdisjoint(shared)


def spills(kernel: Kernel, system: System, nests: Sequence[Nest]) -> bool:
    """Whether some temporary of nests, kept whole, would not stay in the nearer caches. One that is made and read
    within a call (what a product adds up) takes no room."""
    from isam.system.hierarchy import near_cache

    between = {u.buffer for n in nests for u in n.uses}
    size = [b.bytes or 0 for b in kernel.buffers if b.role == "temp" and b.name in between]
    return 0 < near_cache(system) < max(size, default=0)


def passes(system: System, nest: Nest, group: list[Nest]) -> bool:
    """Whether what a nest and others that take calls of another size hand on lies in a memory between them in any case,
    since their operands are in none that both have: block by block it is near, and is taken up while the next block is
    made. Calls of one take whole parts of the other's."""

    def aligned(n: Nest) -> bool:
        units = [(n.unit(a), nest.unit(a)) for a in n.axes if a in nest.extents]
        return all(max(u) % min(u) == 0 for u in units)

    handed = {n.number: {u.buffer for u in n.uses} & {u.buffer for u in nest.uses} for n in group}
    if not system.caches:
        return False
    unlike = [n for n in group if any(n.unit(a) != nest.unit(a) for a in n.axes if a in nest.extents)]
    apart = all(homes(n, b).isdisjoint(homes(nest, b)) for n in unlike for b in handed[n.number])
    return apart and all(map(aligned, unlike))


def homes(nest: Nest, buffer: str) -> set[str]:
    """Memories in which calls of a nest have their tiles of a buffer."""
    return {h for o in nest.mapping.operands if o.buffer == buffer for h in nest.instruction.contract(o.operand).homes}


def overwrites(kernel: Kernel, system: System, nest: Nest, group: list[Nest]) -> bool:
    """Whether a nest writes over a part of each row of what others fill, and does not read it, where all of it leaves
    the nearest cache: row by row it is still near."""
    from isam.system.hierarchy import SHARE

    near = SHARE * system.caches[0].capacity if system.caches else 0
    shared = {a for n in group for a in n.extents}
    filled = {u.buffer for n in group for u in n.uses if u.writes and not u.reads}
    over = (u for u in nest.uses if u.writes and not u.reads and u.buffer in filled and u.index and u.index[0].names)
    rows = (u.buffer for u in over if shared.issuperset(u.index[0].names))
    return near > 0 and any((kernel.buffer(b).bytes or 0) > near for b in rows)
