"""Scalar replacement over steps: what a step wrote and the next one reads is a temporary of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Item, Kernel, Recurrence, Statement, recurrences, statements_in
from isam.ir.verify import verify
from isam.once import once
from isam.transforms.edit import fresh, lone, names_in, without_unused
from isam.transforms.law import Correspondence, Rewrite, Site, Transform


class ScalarReplacement(Transform):
    """A recurrent loop reads what the step before wrote: ``y[t + 1]`` of one step is ``y[t]`` of the next. It is read
    from a temporary that the loop begins with and that every step fills at its end, so that it may stay in a register.
    What is further back comes step by step: by the law again, from the next temporary. (Callahan, Carr and Kennedy,
    "Improving register allocation for subscripted variables", PLDI 1990, section 3.)"""

    law = "scalar-replacement"
    equation = "loop t < T: y[t + 1] = f(y[t])  =>  s = y[0]; loop t < T: (y[t + 1] = f(s); s = y[t + 1])"
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(_rewrites(kernel))

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        made = _rewrites(kernel).get(site)
        if made is None:
            raise ValueError(f"'{self.law}' does not apply at {site}")
        return made


@once
def _rewrites(kernel: Kernel) -> dict[Site, Rewrite]:
    """By site; none where a temporary's first value or its last is not there to be copied (``verify`` says so)."""
    found = {Site.of(loop=n, read=m, buffer=r.buffer): _rewritten(kernel, loop, r)
             for n, loop in enumerate(recurrences(kernel.body)) for m, r in enumerate(_reads(loop))}  # fmt: skip
    return {site: made for site, made in found.items() if not verify(made.kernel)}


def _rewritten(kernel: Kernel, loop: Recurrence, read: _Read) -> Rewrite:
    """The kernel with a temporary for what is read."""
    made = _Made(kernel, loop, read)
    body = tuple(made.items(kernel.body))
    new = without_unused(replace(kernel, body=body, buffers=(*kernel.buffers, made.temporary), template=None))
    meaning = f"{read.buffer} of the step before"
    return Rewrite(new, Correspondence(tuple(made.origins), meanings=((made.temporary.name, meaning),)))


@dataclass(frozen=True, slots=True)
class _Read:
    """What the statements of a loop read at one place of a buffer: its index, ``along``: the dimensions that they go
    along, where all that lies there is meant."""

    buffer: str
    index: tuple[Affine, ...]
    along: frozenset[int]

    def __contains__(self, a: Access) -> bool:
        return a.buffer == self.buffer and _but(a.index, self.along) == _but(self.index, self.along)


def _but(index: tuple[Affine, ...], along: frozenset[int]) -> list[Affine]:
    return [row for d, row in enumerate(index) if d not in along]


def _reads(loop: Recurrence) -> list[_Read]:
    """What the loop's own statements read that steps before have written, and this one does not."""
    every, found = list(statements_in(loop.body)), list[_Read]()
    for name in dict.fromkeys(s.dest.buffer for s in every):
        written = [s.dest for s in every if s.dest.buffer == name]
        for s, a in _accesses(loop, name):
            along = frozenset(d for d, row in enumerate(a.index) if set(row.names) & set(s.domain.names))
            if not any(a in r for r in found) and _behind(a, written, loop.axis.name):
                found.append(_Read(name, a.index, along))
    return found


def _accesses(loop: Recurrence, name: str) -> list[tuple[Statement, Access]]:
    """The reads of a buffer by a loop's own statements."""
    own = [s for s in loop.body if isinstance(s, Statement)]
    return [(s, a) for s in own for a in s.reads if a.buffer == name]


def _behind(read: Access, written: list[Access], counter: str) -> bool:
    """Whether a read stands behind all that its loop writes, along one dimension that goes with the counter."""

    def along(dim: int) -> bool:
        here, there = _ahead(read.index[dim], counter), [_ahead(a.index[dim], counter) for a in written]
        return here is not None and all(n is not None and here < n for n in there)

    return any(map(along, range(len(read.index))))


def _ahead(row: Affine, counter: str) -> int | None:
    """How far an index is ahead of the counter; None where it does not go with it alone."""
    return row.const if row.terms == ((counter, 1),) else None


class _Made:
    """Rebuilds a kernel's items; ``origins`` are the old numbers of the new statements, in their order."""

    def __init__(self, kernel: Kernel, loop: Recurrence, read: _Read):
        self.loop, self.read = loop, read
        buffer, taken = kernel.buffer(read.buffer), names_in(kernel)
        self.sizes = {s.name for s in kernel.syms}
        name = fresh(taken, f"{read.buffer}_before")
        self.along = sorted(read.along)
        shape = tuple(self.extent(d, buffer.shape[d]) for d in self.along)
        self.temporary = Buffer(name, shape, buffer.dtype, "temp", declared=False)
        self.axes = tuple(Axis(fresh({*taken, name}, f"{name}_{n}"), e) for n, e in enumerate(shape))
        self.origins: list[tuple[int, ...]] = []
        self.at = 0  # the statement that comes next

    def extent(self, dim: int, whole: Affine) -> Affine:
        """How far the reads go along a dimension: all of it, or an axis that each of them goes along alone."""
        found = set[Affine]()
        for s, a in _accesses(self.loop, self.read.buffer):
            if a in self.read:
                row = a.index[dim]
                alone = lone(row) and row.names[0] in s.domain.names
                found.add(s.domain.extent(row.names[0]) if alone else whole)
        one = found.pop() if len(found) == 1 else whole
        return one if self.sizes.issuperset(one.names) else whole

    def items(self, body: tuple[Item, ...]) -> Iterator[Item]:
        for it in body:
            if isinstance(it, Statement):
                self.origins.append((self.at,))
                self.at += 1
                yield it
            elif it is self.loop:
                yield from self.opened(it)
            else:
                yield replace(it, body=tuple(self.items(it.body)))

    def opened(self, loop: Recurrence) -> Iterator[Item]:
        """The temporary's first value, and the loop that reads and fills it."""
        first = self.at
        own = {id(s) for s in loop.body}
        readers = tuple(first + n for n, s in enumerate(statements_in(loop.body))
                        if id(s) in own and any(a in self.read for a in s.reads))  # fmt: skip
        self.origins.append(readers)
        inner = tuple(self.replaced(it) if isinstance(it, Statement) else it for it in self.items(loop.body))
        self.origins.append(readers)
        counter = loop.axis.name
        yield self.filled({counter: Affine()})
        yield replace(loop, body=(*inner, self.filled({counter: Affine.of(counter) + 1})))

    def replaced(self, s: Statement) -> Statement:
        def one(a: Access) -> Access:
            return Access(self.temporary.name, tuple(a.index[d] for d in self.along), a.loc)

        sources = tuple(one(x) if isinstance(x, Access) and x in self.read else x for x in s.sources)
        return replace(s, sources=sources)

    def filled(self, now: dict[str, Affine]) -> Statement:
        """What the buffer holds for the step that comes next goes to the temporary."""
        rows = [row.substitute(now) for row in self.read.index]
        for d, axis in zip(self.along, self.axes, strict=True):
            rows[d] = Affine.of(axis.name)
        dest = Access(self.temporary.name, tuple(Affine.of(a.name) for a in self.axes))
        return Statement(Domain(self.axes), dest, "copy", (Access(self.read.buffer, tuple(rows)),))
