"""How long the loops of a schedule wait for caches, beside what its calls take: for comparing schedules of one kernel.

Each loop that stands alone goes once through what its calls touch, and what it writes goes through twice: a line is
brought before it is written, and goes back. What the nearest cache does not hold comes from the one that holds all that
the kernel works on, as fast as that gives it; what a loop touches again inside is near. But a recurrent loop goes on to
the next step after all that one step touches: there what stands in a step is a kernel of its own, and what all steps
touch for the first time comes from where it lies for the loop as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from isam.ir.kernel import recurrences
from isam.schedule.byte_ranges import merged
from isam.schedule.touches import Base, Touch, Touches
from isam.schedule.tree import Issue, Loop, Node, Schedule, children
from isam.system.hierarchy import given, levels


def waiting(schedule: Schedule) -> float:
    """Seconds; 0 without caches of which it is known how fast they are."""
    known = levels(schedule.system)
    if len(known) < 2 or not known[1][1]:
        return 0.0
    through, rate, inside = _Sweeps(schedule).of(children(schedule.call))
    return through / rate + inside


class _Sweeps:
    def __init__(self, schedule: Schedule):
        self.system, self.touches, self.nearest = schedule.system, Touches(schedule), levels(schedule.system)[0][0]
        self.names = {r.axis.name for r in recurrences(schedule.kernel.body)}

    def of(self, nodes: Sequence[Node]) -> tuple[int, float, float]:
        """What nodes that stand one after the other go through, in bytes and in bytes per second, and the seconds that
        the steps within them wait beside."""
        sizes, through = dict[Base, int](), 0
        for node in nodes:
            for base, found in self.touches.of(node).items():
                sizes[base] = max(_size(found), sizes.get(base, 0))
            through += self._through(node)
        whole = sum(sizes.values())
        return through, given(whole, self.system), sum(map(self._again, nodes))

    def _through(self, node: Node) -> int:
        found = self.touches.of(node).values()
        return sum(size * (1 + any(t.writes for t in touches)) for touches in found
                   if (size := _size(touches)) > self.nearest)  # fmt: skip

    def _again(self, node: Node) -> float:
        """Seconds that the steps of a recurrent loop wait for what steps before them have touched."""
        if not isinstance(node, Loop) or node.var not in self.names:
            return 0.0
        alone = isinstance(node.body, (Issue, Loop))
        through, rate, inside = self.of((node.body,) if alone else children(node.body))
        trip = node.trip or 1
        return max(0, trip * through - self._through(node)) / rate + trip * inside


def _size(touches: Sequence[Touch]) -> int:
    """How many bytes are touched."""
    return min(sum(high - low for low, high in merged(t.hull for t in touches)), sum(t.bytes for t in touches))
