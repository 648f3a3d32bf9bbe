"""Scalar replacement over steps: what a step wrote and the next one reads is a temporary of its own."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Statement
from isam.ir.verify import verify
from isam.once import once
from isam.transforms.edit import fresh, lone, names_in, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.statements.hoist import LoopAt, loops


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
            raise NoSite(f"'{self.law}' does not apply at {site}")
        return made


@once
def _rewrites(kernel: Kernel) -> dict[Site, Rewrite]:
    """By site; none where a temporary's first value or its last is not there to be copied (``verify`` says so)."""
    found = {Site.of(loop=n, read=m, buffer=r.buffer): _Made(kernel, n, loop, r).rewrite()
             for n, loop in enumerate(loops(kernel)) for m, r in enumerate(_reads(kernel, loop))}  # fmt: skip
    return {site: made for site, made in found.items() if not verify(made.kernel)}


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


def _reads(kernel: Kernel, loop: LoopAt) -> list[_Read]:
    """What the loop's own statements read that steps before have written, and this one does not."""
    found = list[_Read]()
    for name in dict.fromkeys(kernel.statements[i].dest.buffer for i in loop.inside):
        written = [kernel.statements[i].dest for i in kernel.writers[name] if i in loop.inside]
        for i, a in _accesses(kernel, loop, name):
            own = set(kernel.statements[i].domain.names)
            along = frozenset(d for d, row in enumerate(a.index) if own & set(row.names))
            if not any(a in r for r in found) and _behind(kernel, a, written, loop.item.axis.name):
                found.append(_Read(name, a.index, along))
    return found


def _accesses(kernel: Kernel, loop: LoopAt, name: str) -> list[tuple[int, Access]]:
    """The reads of a buffer by a loop's own statements, with the numbers of these."""
    return [(i, a) for i in loop.own for a in kernel.statements[i].reads if a.buffer == name]


def _behind(kernel: Kernel, read: Access, written: list[Access], counter: str) -> bool:
    """Whether a read stands behind all that its loop writes, along one dimension that goes up, or down, with the
    counter."""
    sizes = {s.name for s in kernel.syms}

    def along(dim: int) -> bool:
        row = read.index[dim]
        step = row.coefficient(counter)
        if abs(step) != 1 or not sizes.issuperset(n for n in row.names if n != counter):
            return False
        ahead = [a.index[dim] - row for a in written]
        return all(d.is_constant and step * d.const > 0 for d in ahead)

    return any(map(along, range(len(read.index))))


class _Made:
    """What becomes of a kernel where a loop, with its number, takes a read from a temporary."""

    def __init__(self, kernel: Kernel, number: int, loop: LoopAt, read: _Read):
        self.kernel, self.number, self.loop, self.read = kernel, number, loop, read
        self.readers = [(i, a) for i, a in _accesses(kernel, loop, read.buffer) if a in read]
        buffer, taken = kernel.buffer(read.buffer), names_in(kernel)
        name = fresh(taken, f"{read.buffer}_before")
        self.along = sorted(read.along)
        shape = tuple(self.extent(d, buffer.shape[d]) for d in self.along)
        self.temporary = Buffer(name, shape, buffer.dtype, "temp", declared=False)
        self.axes = tuple(Axis(fresh({*taken, name}, f"{name}_{n}"), e) for n, e in enumerate(shape))

    def rewrite(self) -> Rewrite:
        counter, who = self.loop.item.axis.name, tuple(dict.fromkeys(i for i, _ in self.readers))
        first, next_ = (self.filled({counter: at}) for at in (Affine(), Affine.of(counter) + 1))
        parts = {i: ((self.replaced(self.kernel.statements[i]), (i,)),) for i in who}
        buffers = (*self.kernel.buffers, self.temporary)
        around = {self.number: (((first, who),), (), ((next_, who),))}
        new, origins = splice(self.kernel, parts, buffers=buffers, loops=around)
        meaning = f"{self.read.buffer} of the step before"
        return Rewrite(new, Correspondence(origins, meanings=((self.temporary.name, meaning),)))

    def extent(self, dim: int, whole: Affine) -> Affine:
        """How far the reads go along a dimension: all of it, or an axis that each of them goes along alone."""
        found = set[Affine]()
        for i, a in self.readers:
            row, domain = a.index[dim], self.kernel.statements[i].domain
            alone = lone(row) and row.names[0] in domain.names
            found.add(domain.extent(row.names[0]) if alone else whole)
        one = found.pop() if len(found) == 1 else whole
        return one if {s.name for s in self.kernel.syms}.issuperset(one.names) else whole

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
