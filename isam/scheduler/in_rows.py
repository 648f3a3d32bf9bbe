"""Groups that go through blocks of rows one after the other: all that they hand on of a block stays in a memory that
calls work in, and what they read comes in boxes (SCH-11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import accumulate, count, groupby
from math import ceil, inf, lcm

from isam.approach.choice import NOTHING, Choice, Trace
from isam.classes import dataclass
from isam.ir.kernel import Kernel
from isam.scheduler.nests import Nest
from isam.scheduler.parts import RecurrentLoop, groups_in
from isam.scheduler.plan import Group, own_temporaries, private_axes, touching
from isam.scheduler.plans.resident import Resident, worked_in
from isam.scheduler.routes import Routes
from isam.scheduler.shared_loops import Nests, fresh, rename, shareable
from isam.system.graph import Memory, System

BLOCKS = "in blocks"
SHARES = (1 / 4, 1 / 2, 3 / 4)  # of a memory for results and what is handed on
WORTH = 0.9  # of the time predicted without, that blocks may take
CHAINS = 8  # ways to go on with a row of groups
Rows = tuple[str, ...]  # of groups in a row, the axis of each


@dataclass(frozen=True)
class Blocked:
    """Parts of a kernel in blocks in a ``memory``, with ``room`` bytes for results and what is handed on; ``numbers``:
    of the groups that are; ``seconds``: predicted without and with that."""

    parts: tuple[Group | RecurrentLoop, ...]
    memory: str
    room: int
    numbers: frozenset[int]
    seconds: tuple[float, float]


def in_blocks(parts: Sequence[Group | RecurrentLoop], kernel: Kernel, system: System, routes: Routes,
              apart: Callable[[Group], bool]) -> Blocked | None:  # fmt: skip
    """The parts of a kernel, groups in a row together where that is predicted to take less time; None: nothing is.
    ``apart``: groups that keep to themselves."""
    groups = [p for p in parts if isinstance(p, Group) and not apart(p)]
    touched = touching(n for g, _ in groups_in(parts) for n in g.nests)
    found, last = list[Blocked](), max((g.number for g, _ in groups_in(parts)), default=0) + 1
    for memory in worked_in(groups, system, routes):
        rows, grain = _Rows(kernel, touched, system, routes, memory, apart, count(last)), max(1, memory.align)
        found += (rows.of(parts, int(memory.capacity * share) // grain * grain) for share in SHARES)
    best = min((f for f in found if f.numbers), key=lambda f: f.seconds[1], default=None)
    return best if best is not None and best.seconds[1] < WORTH * best.seconds[0] else None


def wanted(trace: Trace, found: Blocked | None) -> bool:
    """Whether the Approach wants blocks."""
    if found is None:
        return False
    nests = [[n.number for n in g.nests] for g in found.parts if isinstance(g, Group) and g.number in found.numbers]
    context = {"nests": nests, "memory": found.memory}
    return trace.choose(Choice("cascade", (NOTHING, BLOCKS), context, found.seconds)) == BLOCKS


@dataclass(frozen=True)
class _Rows:
    kernel: Kernel
    touched: Mapping[str, frozenset[int]]  # as :func:`isam.scheduler.plan.touching` says of all nests
    system: System
    routes: Routes
    memory: Memory
    apart: Callable[[Group], bool]
    numbers: Iterator[int]  # of groups that are made
    known: dict[tuple[int, int, int], Resident | None] = field(default_factory=dict)  # first and last nest, groups

    def of(self, parts: Sequence[Group | RecurrentLoop], room: int) -> Blocked:
        out: list[Group | RecurrentLoop] = []
        numbers, without, within = set[int](), 0.0, 0.0
        for able, some in groupby(parts, lambda p: isinstance(p, Group) and not self.apart(p)):
            if not able:
                out += some
                continue
            groups = [p for p in some if isinstance(p, Group)]
            pieces = [self._pieces(g) for g in groups]
            every, ends = [p for some in pieces for p in some], [*accumulate(map(len, pieces), initial=0)]
            best: list[tuple[float, tuple[Group, ...]]] = [(0.0, ())]  # of the first pieces
            for end in range(1, len(every) + 1):
                ways = list[tuple[float, tuple[Group, ...]]]()
                if end in ends:
                    at = ends.index(end) - 1
                    seconds, before = best[ends[at]]
                    ways.append((seconds + self._apart(groups[at]), (*before, groups[at])))
                for begin in range(end):
                    whole = self._blocks(every[begin:end])
                    around = whole.around(room) if whole is not None else ()
                    if whole is not None and around:
                        seconds, before = best[begin]
                        ways.append((seconds + around[0].takes(room), (*before, whole.group)))
                best.append(min(ways, key=lambda w: w[0], default=(inf, ())))
            seconds, taken = best[-1]
            for g in taken:
                made = g if any(g is h for h in groups) else replace(g, number=next(self.numbers))
                numbers |= set() if made is g else {made.number}
                out.append(made)
            without, within = without + sum(map(self._apart, groups)), within + seconds
        return Blocked(tuple(out), self.memory.name, room, frozenset(numbers), (without, within))

    def _apart(self, group: Group) -> float:
        """Seconds of a group without blocks."""
        whole = self._blocks([group])
        return 0.0 if whole is None else whole.apart

    def _pieces(self, group: Group) -> list[Group]:
        """What of a group may go through blocks by itself: nests in a row, one of which has the axes of all."""
        if group.domain is not None:
            return [group]
        runs, axes = list[list[Nest]](), set[str]()
        for n in group.nests:
            if runs and (axes <= n.extents.keys() or axes >= n.extents.keys()):
                runs[-1].append(n)
            else:
                runs.append([n])
                axes = set()
            axes |= n.extents.keys()
        return [self._some(tuple(r), group) for r in runs]

    def _some(self, nests: Nests, of: Group) -> Group:
        return replace(of, nests=nests, private=private_axes(nests, own_temporaries(self.kernel, nests, self.touched)))

    def _blocks(self, groups: Sequence[Group]) -> Resident | None:
        """Blocks of groups that go through rows together; None where they cannot."""
        key = groups[0].nests[0].number, groups[-1].nests[-1].number, len(groups)
        if key not in self.known:
            whole = self._together(groups)
            found = None if whole is None else Resident(whole, self.system, self.routes, self.memory)
            self.known[key] = found if found is not None and found.able else None
        return self.known[key]

    def _together(self, groups: Sequence[Group]) -> Group | None:
        """Groups that go through blocks of rows together, as one."""
        if len(groups) == 1:
            return replace(groups[0])
        rows = next(iter(self._rows(groups)), None)
        return None if rows is None else self._joined(groups, rows)

    def _rows(self, groups: Sequence[Group]) -> Sequence[Rows]:
        """The axis of each of some groups along which none reads what another one writes in another block."""
        chains: list[Rows] = [()]
        for at, g in enumerate(groups):
            if g.domain is not None or any(n.where or n.origin for n in g.nests):
                return ()
            more = ((*c, a) for c in chains for a in sorted(g.apart()) if self._follows(groups[:at], c, g, a))
            chains = list(more)[:CHAINS]
        return chains

    def _follows(self, before: Sequence[Group], chain: Rows, group: Group, axis: str) -> bool:
        if any(g.length(a) != group.length(axis) for g, a in zip(before, chain, strict=True)):
            return False
        for g, a in zip(before, chain, strict=True):
            rules = (shareable(p, q) for p in g.nests for q in group.nests)
            if any(rule is not None and a not in rule.get(axis, ()) for rule in rules):
                return False
        return True

    def _joined(self, groups: Sequence[Group], rows: Rows) -> Group:
        """One group of them all, with one axis of rows, all others apart."""
        first, taken = rows[0], {rows[0]}
        nests, runs, step = list[Nest](), list[tuple[int, ...]](), 1
        for g, row in zip(groups, rows, strict=True):
            names = {row: first}
            for a in g.axes:
                if a != row:
                    names[a] = fresh(a, taken)
                    taken.add(names[a])
            runs.append(tuple(range(len(nests), len(nests) + len(g.nests))))
            nests += (rename(n, {a: b for a, b in names.items() if a in n.extents}) for n in g.nests)
            step = lcm(step, *(n.mapped[row].unit for n in g.nests if row in n.mapped))
        whole = tuple(nests)
        wide = Group(whole).main.unit(first)
        return replace(self._some(whole, groups[0]), runs=tuple(runs), grains=((first, ceil(wide / step) * step),))
