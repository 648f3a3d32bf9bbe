"""What is scheduled, in order: the groups of a kernel's nests, and its recurrent loops with what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import count

from isam.approach.choice import Trace
from isam.classes import dataclass
from isam.ir.kernel import USUAL_TRIP, Item, Kernel, Recurrence, Statement
from isam.scheduler.drained import summed_there
from isam.scheduler.grouping import Grouping
from isam.scheduler.nests import Nest
from isam.scheduler.pieces import pieces
from isam.scheduler.plan import Group
from isam.system.graph import System


@dataclass(frozen=True, eq=False)
class RecurrentLoop:
    """A recurrent loop and the ``parts`` of its step."""

    loop: Recurrence
    parts: Sequence[Group | RecurrentLoop] = ()
    usual: Mapping[str, int] = field(default_factory=dict)  # what counts as sizes known at run time only

    @cached_property
    def written(self) -> frozenset[str]:
        """The buffers that a step writes."""
        return frozenset(_written(self.loop))

    @property
    def trip(self) -> int:
        return max(1, self.loop.axis.extent.evaluate(self.usual))


def parts_of(kernel: Kernel, nests: Sequence[Nest], system: System, trace: Trace,
             at_bind: Callable[[Nest], bool]) -> list[Group | RecurrentLoop]:  # fmt: skip
    """The parts of a kernel; ``at_bind``: whether a nest runs when constants are bound."""
    return _Parts(kernel, nests, system, trace, at_bind).of(kernel.body)


class _Parts:
    def __init__(self, kernel: Kernel, nests: Sequence[Nest], system: System, trace: Trace,
                 at_bind: Callable[[Nest], bool]):  # fmt: skip
        self.kernel, self.nests, self.at_bind = kernel, nests, at_bind
        self.system, self.trace = system, trace
        self.exact = "reassociate" not in kernel.permits
        self.grouping = Grouping(kernel, nests, system, trace, self.exact)
        self.numbers = count()  # of groups
        self.next = 0  # statement

    def of(self, body: tuple[Item, ...]) -> list[Group | RecurrentLoop]:
        out: list[Group | RecurrentLoop] = []
        pending: list[Nest] = []
        for it in body:
            if not isinstance(it, Recurrence):
                pending += [n for n in self.nests if self._place(n) == self.next]
                self.next += 1
                continue
            out += self._grouped(pending)
            pending = []
            hi = it.axis.extent
            if hi.is_constant and hi.const <= 0:
                self.next += _count(it.body)
            else:
                out.append(RecurrentLoop(it, self.of(it.body), self.kernel.usual(USUAL_TRIP)))
        return out + self._grouped(pending)

    def _place(self, nest: Nest) -> int:
        """The statement where a nest comes: its first one, or, where it needs something of what stands between its
        statements (a recurrent loop, say), its last one. Nothing both needs and feeds it (MAP-3)."""
        first, *others = nest.mapping.statements
        for n in others:
            later = self.kernel.statements[n]
            touched = {later.dest.buffer, *(x.buffer for x in later.reads)}
            for b in set(range(first + 1, n)).difference(others):
                s = self.kernel.statements[b]
                if s.dest.buffer in touched or later.dest.buffer in {x.buffer for x in s.reads}:
                    return others[-1]
        return first

    def _boxes(self, nest: Nest) -> list[Nest]:
        """Pieces of a nest, but of sums that cannot be left and gone on from, or whose terms have an order."""
        if self.exact or self.grouping.begun(nest):
            return [nest]
        return pieces(nest, self.trace, resumed=summed_there(nest, self.system) is None,
                      lines=bool(self.system.caches))  # fmt: skip

    def _grouped(self, nests: list[Nest]) -> list[Group]:
        """Of the nests between two recurrent loops; those that run when constants are bound keep to themselves."""
        ordered = sorted(nests, key=lambda n: n.number)
        sides = [n for n in ordered if self.at_bind(n)], [n for n in ordered if not self.at_bind(n)]
        boxes = ([p for n in side for p in self._boxes(n)] for side in sides)
        return [replace(g, number=next(self.numbers)) for some in boxes for g in self.grouping.groups(some)]


def groups_in(parts: Sequence[Group | RecurrentLoop],
              around: tuple[RecurrentLoop, ...] = ()) -> Iterator[tuple[Group, tuple[RecurrentLoop, ...]]]:  # fmt: skip
    """Every group with the recurrent loops around it."""
    for part in parts:
        if isinstance(part, RecurrentLoop):
            yield from groups_in(part.parts, (*around, part))
        else:
            yield part, around


def _count(body: tuple[Item, ...]) -> int:
    return sum(_count(i.body) if isinstance(i, Recurrence) else 1 for i in body)


def _written(item: Recurrence) -> set[str]:
    out: set[str] = set()
    for it in item.body:
        out |= {it.dest.buffer} if isinstance(it, Statement) else _written(it)
    return out
