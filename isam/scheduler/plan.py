"""What the dry run is to execute: groups of nests, the order and size of their blocks, what is staged where.

A plan is a proposal: any plan made here is legal in its order of dependences; whether it fits the machine, only the dry
run says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from itertools import combinations
from math import ceil, gcd, lcm, prod

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.schedule.literals import is_literal
from isam.schedule.tree import Deal
from isam.scheduler.blocks import BlockedDomain
from isam.scheduler.nests import Nest
from isam.scheduler.trim import Segment, even_segments, segments

LESS = 1 / 4  # of the work of the nest that has most
HARDLY = 7 / 8  # of it
FEW = 1 / 16  # of the calls of a group's main nest
USED = 0.9  # of a memory, by boxes that are brought there ahead; the rest is for what passes through
Members = tuple[int, ...]  # nests of a group that take part, by position


@dataclass(frozen=True, slots=True)
class StagedBox:
    """The box of ``buffer`` read below ``depth`` loops is copied into ``memory`` there. ``cut``: a dimension laid out
    in blocks of so many elements (a packed panel); ``order``: dimensions from outermost to innermost in memory
    (of a cut dimension the block index leads, its inside comes last); ``pad``: bytes added to the stride of the second
    innermost dimension. Of several cut dimensions the first lies innermost. ``form``: the dimensions
    along and within the lanes of registers that hold groups, where it is for those. ``stays``: it is brought before the
    loops around the group, and stays. ``by``: it is brought in pieces, below so many loops, while the loops in between
    that it does not depend on are at their first blocks, which are code of their own for that."""

    buffer: str
    depth: int
    memory: str
    order: tuple[int, ...]
    cut: tuple[tuple[int, int], ...] = ()
    pad: int = 0
    at_bind: bool = False
    stays: bool = False
    by: int | None = None
    form: tuple[int, int] | None = None
    access: tuple[Affine, ...] | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is computed of ``buffer`` below ``depth`` loops is gathered in ``memory``, its home meanwhile, and goes home
    from there in one piece. ``begun``: it is brought there first, to be added to. ``goes``: somebody wants it at home.
    ``second``: bytes from its place to that of the next block, where blocks take turns."""

    buffer: str
    depth: int
    memory: str
    begun: bool = False
    goes: bool = True
    second: int = 0


@dataclass(frozen=True)
class Group:
    """Nests fused into one loop nest, their axes renamed so that shared axes have one name.

    ``private``: per temporary, the axes whose iterations do not share its elements. ``domain``: what the nests run
    over, where that is no box: they are then those of one block of it. ``number``: which of the kernel's groups it is,
    or is a part of. ``runs``: groups that go through blocks of an axis one after the other, by their nests; ``grains``:
    what these blocks are multiples of."""

    nests: tuple[Nest, ...]
    exact: bool = False  # accumulations keep their lexicographic order
    private: dict[str, frozenset[str]] = field(default_factory=dict)
    domain: BlockedDomain | None = None
    number: int = field(default=0, compare=False)
    runs: tuple[Members, ...] = ()
    grains: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.nests))

    @cached_property
    def axes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(a for n in self.nests for a in n.axes))

    @cached_property
    def main(self) -> Nest:
        """The nest with the most work; a product that has not much less comes before others, whose operands are not
        read again, and a sum that has hardly less before what goes through elements once."""
        most = max(n.work() for n in self.nests)

        def rank(n: Nest) -> tuple[bool, bool, float]:
            return is_product(n) and n.work() >= LESS * most, bool(n.reduced) and n.work() >= HARDLY * most, n.work()

        return max(self.nests, key=rank)

    def length(self, axis: str) -> int:
        return next(n.length(axis) for n in self.nests if axis in n.extents)

    def parts(self, axis: str, length: int, block: int, even: bool = False) -> tuple[Segment, ...]:
        """How a length of an axis is cut: the same for every nest of the group, in multiples of what one call takes.
        ``even``: without a small block at the end, where no nest sums over the axis."""
        key = (axis, length, block, even)
        if key not in self._parts:
            summed = any(axis in n.reduced for n in self.nests if axis in n.extents)
            self._parts[key] = (even_segments(length, block, self.unit(axis)) if even and not summed
                                else segments(length, block, self.unit(axis), summed))  # fmt: skip
        return self._parts[key]

    @cached_property
    def _parts(self) -> dict[tuple[str, int, int, bool], tuple[Segment, ...]]:
        return {}

    def part(self, lengths: Mapping[str, int]) -> Group:
        """The same over a block of some axes."""

        def cut(n: Nest) -> Nest:
            some = {a: Affine((), min(m, n.length(a))) for a, m in lengths.items() if a in n.extents}
            return replace(n, extents={**n.extents, **some})

        return replace(self, nests=tuple(cut(n) for n in self.nests))

    def some(self, members: Members) -> Group:
        """Some of its nests, as if there were no others."""
        if members not in self._some:
            self._some[members] = Group(tuple(self.nests[i] for i in members))
        return self._some[members]

    @cached_property
    def _some(self) -> dict[Members, Group]:
        return {}

    def unit(self, axis: str) -> int:
        """What blocks of an axis are multiples of: the largest call, and all calls in a block as they are admitted; all
        of an axis that a call does not cut.
        Calls that would be few even if each took the least it may need not be large."""
        if axis not in self._units:
            self._units[axis] = self._unit(axis)
        return self._units[axis]

    @cached_property
    def _units(self) -> dict[str, int]:
        return {}

    def _unit(self, axis: str) -> int:
        if axis in dict(self.grains):
            return dict(self.grains)[axis]
        if uncut := [n.length(axis) for n in self.nests if axis in n.uncut]:
            return max(1, *uncut)
        mapped = [(n, n.mapped[axis]) for n in self.nests if axis in n.mapped]
        step = lcm(*(m.unit for _, m in mapped))
        wide = [m.limit or 1 for n, m in mapped if n.calls() * (m.limit or 1) > FEW * self.main.calls() * m.unit]
        return -(-max([1, *wide]) // step) * step

    @cached_property
    def common(self) -> frozenset[str]:
        """Axes of all nests."""
        return frozenset(a for a in self.axes if all(a in n.extents for n in self.nests))

    def apart(self) -> frozenset[str]:
        """Axes of all nests whose blocks share nothing that one of them writes: in every access to what is written
        somewhere, one and the same dimension is indexed by the axis alone."""
        out = self.common
        for buffer in {u.buffer for n in self.nests for u in n.uses if u.writes}:
            out &= self.apart_in(buffer)
        return out

    def apart_in(self, buffer: str) -> frozenset[str]:
        """Axes that alone index one and the same dimension of a buffer in every access."""
        return _alone([u.index for n in self.nests for u in n.uses if u.buffer == buffer])

    def blocks(self) -> int:
        """How many blocks of one call each may be worked on side by side."""
        return prod(-(-self.length(a) // self.unit(a)) for a in self.apart())

    def users(self, buffer: str) -> frozenset[int]:
        """The nests that touch a buffer."""
        return self._users.get(buffer, frozenset())

    @cached_property
    def _users(self) -> dict[str, frozenset[int]]:
        pairs = [(u.buffer, i) for i, n in enumerate(self.nests) for u in n.uses]
        return {b: frozenset(i for other, i in pairs if other == b) for b, _ in pairs}


@dataclass(frozen=True)
class Plan:
    """``order``: ``(axis, block)`` from outer to inner; ``unroll``: axes of the innermost block, outermost first.
    ``double_buffered``: depths of the order whose loops hold two blocks in an iteration, so that what is staged for one
    may be brought while the other is worked on. ``deals``: for the depths of the order behind ``outer`` ones, through
    which all instances go together, how their blocks are dealt to instances (``first`` is that of the first block).
    ``even``: blocks are as even as they can be. ``alone``: depths whose loops only some nests have, which: others that
    have the axis do the whole block at once. ``units``: what the parts that an axis is dealt out in are multiples of
    for the sake of other groups. ``gathered``: results that meet in a memory on their way home."""

    group: Group
    order: tuple[tuple[str, int], ...]
    unroll: tuple[str, ...]
    stages: tuple[StagedBox, ...] = ()
    note: str = ""
    double_buffered: frozenset[int] = frozenset()
    deals: tuple[Deal, ...] = ()
    even: bool = False
    alone: tuple[tuple[int, Members], ...] = ()
    units: tuple[tuple[str, int], ...] = ()
    outer: int = 0
    gathered: tuple[Gathered, ...] = ()

    def __str__(self) -> str:
        return self.label()

    @property
    def inner(self) -> int:
        """The first depth of the order whose loops an instance goes through by itself."""
        return self.outer + len(self.deals)

    @property
    def dealt(self) -> tuple[tuple[str, int, Deal], ...]:
        """Axes whose blocks are dealt to instances, the size of a block, and how."""
        return tuple((a, n, d) for (a, n), d in zip(self.order[self.outer : self.inner], self.deals, strict=True))

    @cached_property
    def looped(self) -> frozenset[str]:
        """Axes along which one instance goes in a loop, however long they are."""
        return frozenset(a for n, (a, _) in enumerate(self.order) if not self.outer <= n < self.inner)

    def parts(self, axis: str, length: int, block: int) -> tuple[Segment, ...]:
        """How a length of an axis is cut into blocks."""
        return self.group.parts(axis, length, block, self.even)

    def cut(self, depth: int, length: int) -> tuple[Segment, ...]:
        """How a length is cut by the loop at a depth."""
        (axis, block), only = self.order[depth], self.only(depth)
        if only is None:
            return self.parts(axis, length, block)
        return self.group.some(only).parts(axis, length, block)

    def variable(self, depth: int) -> str:
        """The variable of the loop at a depth."""
        axis, _ = self.order[depth]
        return f"{axis}{sum(a == axis for a, _ in self.order[:depth])}"

    def having(self, depth: int, members: Members) -> Members:
        """Those of some nests that have the loop at a depth."""
        (axis, _), only = self.order[depth], self.only(depth)
        return tuple(i for i in members if axis in self.group.nests[i].extents and (only is None or i in only))

    def only(self, depth: int) -> Members | None:
        """The nests that alone have the loop at a depth; None: all that have its axis."""
        return next((only for d, only in self.alone if d == depth), None)

    def within(self, at: int, axis: str, block: int, members: Members) -> Plan:
        """The plan with one more loop, that only some nests have, around those from depth ``at`` on, none of which they
        share with others: what others do in the first or last iteration of one of these they would do for a few rows
        only."""
        assert not self.double_buffered
        assert not self.gathered
        moved = [replace(s, depth=s.depth + (s.depth > at), by=None if s.by is None else s.by + (s.by > at))
                 for s in self.stages]  # fmt: skip
        alone = (*((d + (d >= at), only) for d, only in self.alone), (at, members))
        order = (*self.order[:at], (axis, block), *self.order[at:])
        return replace(self, order=order, stages=tuple(moved), alone=alone)

    def inside(self, loops: tuple[tuple[str, int], ...], group: Group) -> Plan:
        """The plan, of a block of a group's axes, with loops around it, through which all instances go."""
        first = len(loops)
        stages = (replace(s, depth=s.depth + first, by=None if s.by is None else s.by + first) for s in self.stages)
        return replace(self, group=group, order=(*loops, *self.order), stages=tuple(stages), outer=first + self.outer,
                       double_buffered=frozenset(d + first for d in self.double_buffered),
                       alone=tuple((d + first, members) for d, members in self.alone),
                       gathered=tuple(replace(g, depth=g.depth + first) for g in self.gathered))  # fmt: skip

    def without(self, axes: Collection[str]) -> Plan:
        """The plan without loops along some axes, none of which is dealt out: their blocks are as long as they are."""
        kept = [n for n, (axis, _) in enumerate(self.order) if axis not in axes]
        depth = [sum(k < d for k in kept) for d in range(len(self.order) + 1)]
        stages = tuple(replace(s, depth=depth[s.depth], by=None if s.by is None else depth[s.by]) for s in self.stages)
        return replace(self, order=tuple(self.order[n] for n in kept), stages=stages)

    def register_block(self, axis: str) -> int:
        """How long the innermost block of an axis is."""
        return min([self.group.length(axis), *(block for a, block in self.order if a == axis)])

    @property
    def simple(self) -> bool:
        """Whether it is but loops and what is staged below them."""
        return not (self.deals or self.double_buffered or self.alone or self.gathered)

    def shares(self, axis: str, length: int, block: int) -> tuple[Segment, ...]:
        """How a length of an axis is dealt out: as evenly as it can be in whole grains. A piece of a domain may be
        longer than what the plan is made for: it has no more parts, longer ones."""
        grain = self.grain(axis)
        block = ceil(block / grain) * grain
        most = sum(s.count for s in even_segments(self.group.length(axis), block, grain))
        return even_segments(length, max(block, ceil(ceil(length / grain) / most) * grain), grain)

    def grain(self, axis: str) -> int:
        """What the parts that an axis is dealt out in are multiples of: what one call takes, and panels that were laid
        out before, for all of them."""
        grain = lcm(self.group.unit(axis), dict(self.units).get(axis, 1))
        cuts = ((s.buffer, dim, wide) for s in self.stages if s.at_bind for dim, wide in s.cut)
        for buffer, dim, wide in cuts:
            for u in (u for n in self.group.nests for u in n.uses if u.buffer == buffer):
                step = dict(u.index[dim].terms).get(axis, 0)
                grain = lcm(grain, wide // gcd(wide, step)) if step else grain
        return grain

    def blocks_held(self, depth: int) -> int:
        """How many blocks an iteration of the loop at ``depth`` holds."""
        return 2 if depth in self.double_buffered else 1

    def label(self) -> str:
        loops = " ".join(f"{a}:{b}{self._mark(d)}" for d, (a, b) in enumerate(self.order))
        stages = " ".join((*(f"{s.buffer}@{s.depth}{self._by(s)}->{s.memory}" for s in self.stages),
                           *(f"{g.buffer}@{g.depth}<-{g.memory}" for g in self.gathered)))  # fmt: skip
        return f"[{loops}]" + (f" stage {stages}" if stages else "") + (f" ({self.note})" if self.note else "")

    def _by(self, stage: StagedBox) -> str:
        return "" if stage.by is None else f"/{stage.by}"

    def _mark(self, depth: int) -> str:
        if self.outer <= depth < self.inner:
            return f"@{self.deals[depth - self.outer].group}"
        only = self.only(depth)
        return "x2" if depth in self.double_buffered else "" if only is None else f"({' '.join(map(str, only))})"


def is_product(nest: Nest) -> bool:
    """Whether a nest sums up products of operands each of which it reads again along an axis of the other."""
    parallel = set(nest.axes) - set(nest.reduced)
    read = [u for u in nest.uses if u.reads and not u.writes and u.index and not is_literal(u.buffer)]
    again = [parallel - {a for row in u.index for a in row.names} for u in read]
    return bool(nest.reduced) and any(a - b and b - a for a, b in combinations(again, 2))


def one_order(nests: tuple[Nest, ...]) -> tuple[str, ...] | None:
    """All axes in an order in which every nest meets those that it sums over as its domain states them; None where two
    nests contradict each other."""
    left, out = dict.fromkeys(a for n in nests for a in n.axes), []
    while left:
        behind = {a for n in nests for i, a in enumerate(n.reduced) if any(b in left for b in n.reduced[:i])}
        first = next((a for a in left if a not in behind), None)
        if first is None:
            return None
        del left[first]
        out.append(first)
    return tuple(out)


def in_order(plan: Plan) -> bool:
    """Whether every nest adds its terms in the order of its domain: what is left of one axis of a sum in an iteration
    of the next would be added too late."""
    for i, n in enumerate(plan.group.nests):
        left, seen = {a: n.length(a) for a in n.reduced}, 0
        inner = [(a, n.unit(a)) for a in plan.unroll] + [(a, 1) for a in n.reduced]
        outer = [loop for d, loop in enumerate(plan.order) if not plan.alone or plan.having(d, (i,))]
        for axis, block in (*outer, *inner) if len(left) > 1 else ():
            if axis in left and block < left[axis]:
                place = n.reduced.index(axis)
                if place < seen:
                    return False
                left[axis], seen = block, place
    return True


def touching(nests: Iterable[Nest]) -> dict[str, frozenset[int]]:
    """Of each buffer the nests that touch it, by number."""
    out: dict[str, set[int]] = {}
    for n in nests:
        for u in n.uses:
            out.setdefault(u.buffer, set()).add(n.number)
    return {b: frozenset(numbers) for b, numbers in out.items()}


def own_temporaries(kernel: Kernel, nests: Sequence[Nest], touched: Mapping[str, frozenset[int]]) -> frozenset[str]:
    """Temporaries that no other nests touch and that are written before they are read. ``touched``: as
    :func:`touching` says of all nests of the kernel."""
    inside, out = {n.number for n in nests}, set[str]()
    for name in touching(nests):
        if is_literal(name) or kernel.buffer(name).role != "temp" or not touched[name] <= inside:
            continue
        first = next(n for n in nests if any(u.buffer == name for u in n.uses))
        if not any(u.buffer == name and u.reads for u in first.uses):
            out.add(name)
    return frozenset(out)


def private_axes(group: tuple[Nest, ...], buffers: frozenset[str]) -> dict[str, frozenset[str]]:
    """For each temporary in ``buffers`` (used by this group alone): axes that index a dimension equally in every
    access, so that no iteration sees another's elements."""
    out: dict[str, frozenset[str]] = {}
    for b in buffers:
        accesses = [u.index for n in group for u in n.uses if u.buffer == b]
        if accesses:
            out[b] = _alone(accesses)
    return out


def _alone(accesses: list[tuple[Affine, ...]]) -> frozenset[str]:
    """Axes that alone index one and the same dimension in every access."""
    axes = set()
    for d in range(len(accesses[0])):
        rows = {i[d] for i in accesses}
        if len(rows) == 1:
            (row,) = rows
            if len(row.terms) == 1 and abs(row.terms[0][1]) == 1:
                axes.add(row.terms[0][0])
    return frozenset(axes)
