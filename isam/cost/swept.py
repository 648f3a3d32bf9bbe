"""How long the loops of a schedule wait for caches, beside what its calls take: for comparing schedules of one kernel.

Each loop that stands alone goes once through what its calls touch. What the nearest cache does not hold comes from the
one that holds all that the kernel works on, as fast as that gives it; what a loop touches again inside is near.
"""

from __future__ import annotations

from isam.schedule.tree import Schedule, children
from isam.scheduler.byte_ranges import merged
from isam.scheduler.plans.traffic import SHARE, beyond, levels
from isam.scheduler.touches import Base, Touches


def waiting(schedule: Schedule) -> float:
    """Seconds; 0 without caches of which it is known how fast they are."""
    system = schedule.system
    known = levels(system)
    if len(known) < 2 or not known[1][1]:
        return 0.0
    nearest, (near, speed) = known[0][0], known[1]
    touches, sizes, through = Touches(schedule), dict[Base, int](), 0
    for node in children(schedule.call):
        for base, found in touches.of(node).items():
            size = min(sum(high - low for low, high in merged(t.hull for t in found)), sum(t.bytes for t in found))
            sizes[base] = max(size, sizes.get(base, 0))
            through += size if size > nearest else 0
    whole = sum(sizes.values())
    return through / (speed if whole <= SHARE * near else beyond(whole, speed, system)[0])
