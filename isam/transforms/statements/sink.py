"""Make what a recurrent loop reads where it reads it: for one iteration of the loop, not for all of them before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dataflow import bits, levels, mask_of
from isam.ir.kernel import Access, Axis, Buffer, Kernel, Recurrence, Statement
from isam.transforms.edit import Part, fresh, is_full_box, lone, names_in, readers, splice, touches, writers
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.statements.hoist import LoopAt, loops


class Sink(Transform):
    """Statements before a recurrent loop that make temporaries of which an iteration reads one part, and no other reads
    that part, become statements of the loop: each iteration makes its part, in a temporary of that size (the inverse
    of ``hoist``, for several steps at a time where the loop is one over blocks). What they read, no iteration writes.
    Copies and casts that only they read may go with them: then they are made anew in every iteration."""

    law = "sink"
    equation = ("forall t < n*m: a[t] = f(x[t]); loop c < m: (loop s < n: h = g(h, a[n*c + s]))  =>  "
                "loop c < m: (forall s < n: a[s] = f(x[n*c + s]); loop s < n: h = g(h, a[s]))")  # fmt: skip
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(Site.of(loop=n, statements=tuple(sorted(way.moved)))
                     for n, loop in enumerate(loops(kernel)) for way in _ways(kernel, loop))  # fmt: skip

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        for way in _ways(kernel, loops(kernel)[site["loop"]]):
            if way.moved == set(site["statements"]):
                return way.rewrite(site["loop"])
        raise NoSite(f"'{self.law}' does not apply at {site}")


def _ways(kernel: Kernel, loop: LoopAt) -> Iterator[_Way]:
    """All that may go into a loop, and where that is less, without what would be made anew."""
    trip = loop.item.axis.extent
    if not loop.inside or not trip.is_constant or trip.const < 2:
        return
    way = _Way(kernel, loop)
    if way.moved:
        yield way
        if way.whole:
            yield _Way(kernel, loop, again=False)


class _Way:
    """What may go into a loop. ``along``: the temporaries that are made part by part, each with the dimension that the
    iterations go along; ``whole``: those that are made anew; ``moved``: the statements that make them."""

    def __init__(self, kernel: Kernel, loop: LoopAt, again: bool = True):
        self.kernel, self.loop = kernel, loop
        self.before, self.nested = _before(kernel, loop), _around(kernel, loop.start)[0] is not loop.item
        self.along, self.whole = dict[str, int](), set[str]()
        self._gather(again)
        while gone := {b for b in (*self.along, *self.whole) if not self._may_go(b)}:
            self.along = {b: d for b, d in self.along.items() if b not in gone}
            self.whole -= gone
        self.whole &= self._read_by({i for i in self.before if self.statement(i).dest.buffer in self.along})
        self.moved = {i for i in self.before if self.statement(i).dest.buffer in self.along.keys() | self.whole}

    def statement(self, i: int) -> Statement:
        return self.kernel.statements[i]

    def _read_by(self, first: set[int]) -> set[str]:
        """What statements need, by way of what is made anew."""
        found, due = set[str](), [x.buffer for i in first for x in self.statement(i).reads]
        while due:
            name = due.pop()
            if name in self.whole and name not in found:
                found.add(name)
                due += [x.buffer for i in writers(self.kernel, name) for x in self.statement(i).reads]
        return found

    def _gather(self, again: bool) -> None:
        """What comes into question: what the loop reads part by part, and backwards what that is made from."""
        for i in self.loop.inside:
            for x in self.statement(i).reads:
                found = [d for d in range(len(x.index)) if self._part(x.buffer, d) and self._own(i, x, d) is not None]
                if found and self._local(x.buffer):
                    self.along.setdefault(x.buffer, found[0])
        for i in reversed(self.before):
            s = self.statement(i)
            axis = self._axis(s)
            if axis is None and s.dest.buffer not in self.whole:
                continue
            for x in s.reads:
                if x.buffer == s.dest.buffer or not self._local(x.buffer):
                    continue
                found = [d for d, row in enumerate(x.index) if axis and lone(row) and row.names[0] == axis]
                if found and self._part(x.buffer, found[0]):
                    self.along.setdefault(x.buffer, found[0])
                elif again:
                    self.whole.add(x.buffer)
        self.whole -= self.along.keys()

    def _local(self, name: str) -> bool:
        """A temporary that is written right before the loop only."""
        made = set(writers(self.kernel, name))
        return bool(made) and made <= set(self.before) and self.kernel.buffer(name).role == "temp"

    def _part(self, name: str, dim: int) -> int:
        """How many elements along a dimension are one iteration's; 0 where that is not known."""
        size = self.kernel.buffer(name).shape[dim]
        return size.const // self.loop.item.axis.extent.const if size.is_constant else 0

    def _own(self, i: int, x: Access, dim: int) -> Affine | None:
        """Where in its iteration's part a statement of the loop reads; None where that may be in another's."""
        counter, part, row = self.loop.item.axis.name, self._part(x.buffer, dim), x.index[dim]
        rest = row - Affine.of(counter, part)
        if rest.is_constant:
            return rest if 0 <= rest.const < part else None
        axes = (*self.statement(i).domain.axes, *(r.axis for r in _around(self.kernel, i)))
        extent = {a.name: a.extent for a in axes}.get(rest.names[0])
        known = lone(rest) and extent is not None and extent.is_constant and extent.const <= part
        return rest if known else None

    def _axis(self, s: Statement) -> str | None:
        """The axis of a statement that goes along the iterations, where it makes what they read."""
        dim = self.along.get(s.dest.buffer)
        if dim is None or not lone(s.dest.index[dim]):
            return None
        return next((n for n in s.dest.index[dim].names if n in s.domain.names), None)

    def _may_go(self, name: str) -> bool:
        made = writers(self.kernel, name)
        if not all(self._undisturbed(i) for i in made):
            return False
        if self.nested and not is_full_box(self.kernel, self.statement(made[0])):
            return False  # an element may be what an earlier iteration of the loop around has left
        others = [(i, x) for i in readers(self.kernel, name) for x in self.statement(i).reads if x.buffer == name]
        if name in self.whole:
            into = {self.statement(i).dest.buffer for i, _ in others}
            return into <= self.along.keys() | self.whole and not any(self.statement(i).reduces for i in made)
        dim = self.along[name]
        return all(self._goes_along(i, self.statement(i).dest, dim) for i in made) and all(
            self._own(i, x, dim) is not None if i in self.loop.inside else self._goes_along(i, x, dim)
            for i, x in others)  # fmt: skip

    def _goes_along(self, i: int, x: Access, dim: int) -> bool:
        """Whether a statement ahead takes at a point the part of the iteration to which the point belongs."""
        s = self.statement(i)
        axis = self._axis(s)
        extent = self.kernel.buffer(x.buffer).shape[dim]
        return axis is not None and x.index[dim] == Affine.of(axis) and s.domain.extent(axis) == extent

    def _undisturbed(self, i: int) -> bool:
        """Whether what a statement reads is the same in every iteration: what goes with it apart."""
        going = self.along.keys() | self.whole
        later = [j for j in (*self.before, *self.loop.inside) if j > i]
        changed = {b for j in later if (b := self.statement(j).dest.buffer) not in going}
        return not changed & (touches(self.statement(i)) - going)

    # the kernel ---------------------------------------------------------------------------------------------------
    def rewrite(self, number: int) -> Rewrite:
        kernel, counter, taken = self.kernel, self.loop.item.axis.name, names_in(self.kernel)
        names, parts = dict[str, str](), dict[str, int]()
        for i in sorted(self.moved):
            s = self.statement(i)
            axis = self._axis(s)
            for old in (x for x in (axis, counter) if x in s.domain.names and x not in names):
                names[old] = fresh({*taken, *names.values()}, f"{old}_own")
            if axis is not None:
                parts[axis] = self._part(s.dest.buffer, self.along[s.dest.buffer])
        replaced: dict[int, Sequence[Part]] = {i: ((self._read(i), (i,)),) for i in self.loop.inside}
        replaced |= dict.fromkeys(self.moved, ())
        begin = [(self._made(i, names), (i,)) for i in sorted(self.moved)]
        buffers = tuple(self._smaller(b.name) if b.name in self.along else b for b in kernel.buffers)
        new, origins = splice(kernel, replaced, buffers=buffers, loops={number: ((), begin, ())})
        axes = tuple((old, (old, counter, own)) for old, own in names.items())
        meanings = [(names[old], f"{old} % {part}") for old, part in parts.items()]
        meanings += [(b, f"{b} of one {counter}") for b in sorted(self.along)]
        return Rewrite(new, Correspondence(origins, axes, meanings=tuple(meanings)))

    def _smaller(self, name: str) -> Buffer:
        b, dim = self.kernel.buffer(name), self.along[name]
        shape = tuple(Affine((), self._part(name, d)) if d == dim else e for d, e in enumerate(b.shape))
        return replace(b, shape=shape, declared=True)

    def _at(self, x: Access, row: Affine) -> Access:
        dim = self.along[x.buffer]
        return replace(x, index=tuple(row if d == dim else e for d, e in enumerate(x.index)))

    def _read(self, i: int) -> Statement:
        def one(x: Access) -> Access:
            own = self._own(i, x, self.along[x.buffer]) if x.buffer in self.along else None
            return x if own is None else self._at(x, own)

        return self.statement(i).accessing(one)

    def _made(self, i: int, names: Mapping[str, str]) -> Statement:
        """A statement for one iteration; where an axis has the name of the counter, it gets another."""
        s = self.statement(i)
        axis, counter = self._axis(s), self.loop.item.axis.name
        values = {counter: Affine.of(names[counter])} if counter in s.domain.names else {}
        axes = {a.name: replace(a, name=names[counter]) if a.name == counter else a for a in s.domain.axes}
        if axis is not None:
            part = self._part(s.dest.buffer, self.along[s.dest.buffer])
            axes[axis] = Axis(names[axis], Affine((), part))
            values[axis] = Affine.of(counter, part) + Affine.of(names[axis])
        now = s.substitute(values, tuple(axes.values()))
        return now if axis is None else now.accessing(
            lambda x: self._at(x, Affine.of(names[axis])) if x.buffer in self.along else x)  # fmt: skip


def _before(kernel: Kernel, loop: LoopAt) -> tuple[int, ...]:
    """The statements in front of a loop, up to the one ahead of it."""
    level = next(level for level in levels(kernel) if mask_of(loop.inside) in level.inner)
    begin = max((m.bit_length() for m in level.inner if m.bit_length() <= loop.start), default=0)
    return tuple(i for i in bits(level.own) if begin <= i < loop.start)


def _around(kernel: Kernel, i: int) -> tuple[Recurrence, ...]:
    return next(level.recurrences for level in levels(kernel) if level.own >> i & 1)
