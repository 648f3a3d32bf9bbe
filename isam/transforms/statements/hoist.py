"""Take statements out of a recurrent loop: what does not depend on carried buffers is done for all steps at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Item, Kernel, Literal, Recurrence, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, is_full_box, names_in, readers, touches
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Hoist(Transform):
    """Statements of ``loop t < T`` that read nothing which a step hands to the next become a ``forall`` over ``t``
    before the loop (the input projection of an RNN, for all steps). Temporaries that every step fills anew get a
    dimension for ``t``, but for those that are the same in every step. Whole steps only: a loop that runs no times
    does nothing, before as after."""

    law = "hoist"
    equation = "loop t < T: (a = f(x[t]); h = g(h, a))  =>  forall t < T: a[t] = f(x[t]); loop t < T: h = g(h, a[t])"
    kinds = frozenset({"axis-missing"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        out: list[Site] = []
        for n, loop in enumerate(loops(kernel)):
            out += [Site.of(loop=n, statements=moved) for moved in _ways(kernel, loop)]
        return tuple(out)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        loop = loops(kernel)[site["loop"]]
        if site["statements"] not in _ways(kernel, loop):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        return _rewrite(kernel, loop, frozenset(site["statements"]))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction wants one more axis: all steps of a loop at once are one."""
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if mismatch.about("statement") in s["statements"])


@dataclass(frozen=True, slots=True)
class LoopAt:
    """A recurrent loop. ``start``: the number of its first statement; ``own``: numbers of those directly in it;
    ``end``: one more than that of its last."""

    item: Recurrence
    start: int
    end: int
    own: tuple[int, ...]

    @property
    def inside(self) -> range:
        return range(self.start, self.end)


def loops(kernel: Kernel) -> tuple[LoopAt, ...]:
    """Every recurrent loop, outer before inner."""
    found: list[LoopAt] = []
    _find(kernel.body, 0, found)
    return tuple(found)


def _find(body: tuple[Item, ...], at: int, found: list[LoopAt]) -> int:
    """Adds those of a body that begins with the ``at``-th statement; returns the statement behind it."""
    for it in body:
        if isinstance(it, Statement):
            at += 1
            continue
        place = len(found)
        found.append(LoopAt(it, at, at, ()))
        own, here = [], at
        for inner in it.body:
            if isinstance(inner, Statement):
                own.append(here)
                here += 1
            else:
                here = _find((inner,), here, found)
        found[place] = LoopAt(it, at, here, tuple(own))
        at = here
    return at


def _ways(kernel: Kernel, loop: LoopAt) -> tuple[tuple[int, ...], ...]:
    """The most statements that can leave, and where those are fewer the sums among them with what they need: a cast
    that a sum in the loop reads may be better off beside it."""
    most = _moved(kernel, loop, loop.own)
    sums = _moved(kernel, loop, _behind(kernel, most))
    return tuple(dict.fromkeys(way for way in (most, sums) if way))


def _behind(kernel: Kernel, moved: tuple[int, ...]) -> tuple[int, ...]:
    """The sums among statements, and those of them that made or began what a sum reads."""
    taken = {i for i in moved if kernel.statements[i].reduces}
    while True:
        needed = {b for i in taken for b in touches(kernel.statements[i])}
        more = {i for i in moved if i <= max(taken, default=-1) and kernel.statements[i].dest.buffer in needed}
        if more <= taken:
            return tuple(sorted(taken))
        taken |= more


def _moved(kernel: Kernel, loop: LoopAt, among: Sequence[int]) -> tuple[int, ...]:
    """The most statements that can leave the loop together; none when only numbers would be written earlier."""
    inside = loop.inside
    written = {kernel.statements[i].dest.buffer for i in inside}
    private = {b for b in written if alone_in(kernel, loop.inside, b)}
    moved = set(among)
    while True:
        stay = {i for i in moved if not _may_leave(kernel, loop, i, moved, written, private)}
        if not stay:
            break
        moved -= stay
    used = {b for i in moved if not _number(kernel.statements[i]) for b in touches(kernel.statements[i])}
    return tuple(sorted(i for i in moved if kernel.statements[i].dest.buffer in used))


def _number(s: Statement) -> bool:
    return s.op == "copy" and isinstance(s.sources[0], Literal)


def alone_in(kernel: Kernel, loop: range, name: str) -> bool:
    """A temporary of this loop alone (the numbers of its statements) that every step fills in full before it looks:
    nothing is handed on in it."""
    users = [i for i, s in enumerate(kernel.statements) if name in touches(s)]
    first = kernel.statements[users[0]]
    inside = all(i in loop for i in users)
    return inside and kernel.buffer(name).role == "temp" and is_full_box(kernel, first)


def _may_leave(
    kernel: Kernel, loop: LoopAt, i: int, moved: set[int], written: set[str], private: set[str]
) -> bool:
    """Can the statement be done for all steps before the loop, when the others in ``moved`` are too?"""
    s = kernel.statements[i]
    earlier = range(loop.start, i)
    for a in s.sources:
        if isinstance(a, Access) and a.buffer in written:
            made = [j for j in earlier if kernel.statements[j].dest.buffer == a.buffer]
            if a.buffer not in private or any(j not in moved for j in made):
                return False
    name = s.dest.buffer
    if any(kernel.statements[j].reduces for j in readers(kernel, name) if j not in moved):
        return False  # terms of a sum that stays: they would be kept for every step (IR-5)
    if name in private:
        return all(j in moved for j in earlier if name in touches(kernel.statements[j]))
    alone = all(name not in touches(kernel.statements[j]) for j in range(loop.start, loop.end) if j != i)
    return alone and ((s.accumulate and s.op != "select") or _counted(s.dest, loop.item.axis.name))


def _counted(dest: Access, counter: str) -> bool:
    """Does every step write elements of its own: is some index the counter, shifted at most?"""
    return any(row.terms == ((counter, 1),) for row in dest.index)


def _rewrite(kernel: Kernel, loop: LoopAt, moved: frozenset[int]) -> Rewrite:
    counter, trip = loop.item.axis.name, loop.item.axis.extent
    every = fresh(names_in(kernel), f"{counter}_all")
    made = {kernel.statements[i].dest.buffer for i in moved}
    still = _still(kernel, loop, moved)
    private = frozenset(b for b in made if alone_in(kernel, loop.inside, b)) - still
    move = _Move(loop, moved, private, every, still)
    body = tuple(move.items(kernel.body))
    buffers = tuple(
        replace(b, shape=(trip, *b.shape), declared=True) if b.name in private else b for b in kernel.buffers
    )
    new = replace(kernel, body=body, buffers=buffers, template=None)
    back = Correspondence(
        tuple((i,) for i in move.origins),
        axes=((counter, (counter, every)),),
        meanings=((every, counter), *((b, f"{b} of every {counter}") for b in sorted(private))),
    )
    return Rewrite(new, back)


def _still(kernel: Kernel, loop: LoopAt, moved: frozenset[int]) -> frozenset[str]:
    """Temporaries that every step fills with the same: done once, they need no dimension for the counter."""
    counter, inside = loop.item.axis.name, loop.inside
    written = {b: [i for i in inside if kernel.statements[i].dest.buffer == b] for b in
               {kernel.statements[i].dest.buffer for i in inside}}  # fmt: skip
    still = {b for b, by in written.items() if moved.issuperset(by) and alone_in(kernel, loop.inside, b)}
    while True:
        others = written.keys() - still
        moving = {b for b in still for i in written[b] if _follows(kernel.statements[i], counter, others)}
        if not moving:
            return frozenset(still)
        still -= moving


def _follows(s: Statement, counter: str, others: set[str]) -> bool:
    """Whether what a statement does depends on the counter, or on these buffers."""
    rows = [r for a in (s.dest, *s.sources) if isinstance(a, Access) for r in a.index]
    return any(counter in r.names for r in (*rows, *s.domain.where)) or bool(touches(s) & others)


@dataclass
class _Move:
    """Rebuilds a kernel's items; ``origins`` are the old numbers of the new statements, in their order."""

    loop: LoopAt
    moved: frozenset[int]
    private: frozenset[str]
    every: str
    still: frozenset[str] = frozenset()
    origins: list[int] = field(default_factory=list)
    at: int = 0

    def items(self, body: tuple[Item, ...]) -> Iterator[Item]:
        for it in body:
            if isinstance(it, Statement):
                self.origins.append(self.at)
                yield self.wide(it)
                self.at += 1
            elif it is self.loop.item:
                yield from self.opened(it)
            else:
                yield replace(it, body=tuple(self.items(it.body)))

    def opened(self, loop: Recurrence) -> Iterator[Item]:
        """The statements that leave the loop, then what is left of it."""
        ahead: list[Item] = []
        left: list[Item] = []
        begin, first = len(self.origins), [i for i in self.loop.own if i in self.moved]
        for it in loop.body:
            if isinstance(it, Statement) and self.at in self.moved:
                ahead.append(self.outside(it))
                self.at += 1
            else:
                left.extend(self.items((it,)))
        self.origins[begin:begin] = first
        yield from ahead
        if left:
            yield replace(loop, body=tuple(left))

    def wide(self, s: Statement) -> Statement:
        """With the counter as first index of the temporaries that were made per step."""

        def one(x: Access) -> Access:
            counter = Affine.of(self.loop.item.axis.name)
            return replace(x, index=(counter, *x.index)) if x.buffer in self.private else x

        return s.accessing(one)

    def outside(self, s: Statement) -> Statement:
        counter = self.loop.item.axis
        if s.dest.buffer in self.still:
            return s
        axes = (*s.domain.axes, Axis(self.every, counter.extent))
        return self.wide(s).substitute({counter.name: Affine.of(self.every)}, axes)
