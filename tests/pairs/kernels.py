"""Kernels grown around the body of an instruction, so that it fits, nearly fits, or fits after some steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from math import prod

from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.ir.verify import verify
from tests.mutators import anything
from tests.random_kernels import Seeded

DTYPES = ("f32", "i32", "i8", "f64", "bf16")
OTHER = {"add": "max", "mul": "add", "max": "add", "copy": "neg", "sub": "add", "min": "max", "exp": "tanh"}
POINTS = 300  # of a kernel, unless its instruction alone has more


@dataclass
class Grown:
    """One kernel in the making: the instruction's statements, each with its axes, all extents numbers."""

    rng: random.Random
    extents: dict[str, int]
    buffers: dict[str, Buffer]
    body: list[Statement]

    # what is done to it ---------------------------------------------------------------------------------------------
    def outer(self) -> None:
        """An axis more: a dimension of its own, a slide along one that is there, or a longer sum."""
        name = next(n for n in (f"o{k}" for k in count()) if n not in self.extents)
        self.extents[name] = self.rng.choice((1, 2, 2, 3))
        how: dict[str, tuple[str, int, int]] = {}
        for b in self.buffers:
            kind = self.rng.choice(("own", "own", "slide", "lacks"))
            rank = len(self.access(b).index)
            how[b] = (kind if rank or kind != "slide" else "own", self.rng.randint(0, rank), self.rng.choice((1, 1, 2)))
            if kind == "slide" and rank:
                how[b] = (kind, self.rng.randrange(rank), how[b][2])
        for b in self.results():
            if how[b][0] == "slide" or (how[b][0] == "lacks" and not self.sums(b)):
                how[b] = ("own", *how[b][1:])

        def row(a: Access) -> Access:
            kind, at, step = how[a.buffer]
            index = list(a.index)
            if kind == "own":
                index.insert(at, Affine.of(name))
            elif kind == "slide":
                index[at] = index[at] + Affine.of(name, step)
            return Access(a.buffer, tuple(index))

        self.rewrite(row, name)

    def permute(self) -> None:
        b = self.rng.choice(list(self.buffers))
        order = list(range(len(self.access(b).index)))
        self.rng.shuffle(order)
        self.rewrite(lambda a: Access(a.buffer, tuple(a.index[d] for d in order)) if a.buffer == b else a)

    def stretch(self) -> None:
        """A row with another step or a place further on."""
        b = self.rng.choice(list(self.buffers))
        rank = len(self.access(b).index)
        if rank:
            at, step, more = self.rng.randrange(rank), self.rng.choice((1, 1, 2, 3, -1)), self.rng.choice((0, 1, 2))
            self.rewrite(lambda a: self._at(a, at, step, more) if a.buffer == b else a)

    def _at(self, a: Access, at: int, step: int, more: int) -> Access:
        return Access(a.buffer, tuple(r * step + more if d == at else r for d, r in enumerate(a.index)))

    def share(self) -> None:
        """An axis more in one access: what the instruction may not meet."""
        s = self.rng.choice(self.body)
        places = [x for x in s.sources if isinstance(x, Access)]
        if places and s.domain.names:
            a, n = self.rng.choice(places), self.rng.choice(s.domain.names)
            if a.index and self.rng.random() < 0.5:
                at = self.rng.randrange(len(a.index))
                wider = Access(a.buffer, tuple(r + Affine.of(n) if d == at else r for d, r in enumerate(a.index)))
                self.rewrite(lambda x: wider if x == a else x)

    def other(self) -> None:
        """Another operation, somewhere."""
        k = self.rng.randrange(len(self.body))
        s = self.body[k]
        if s.op in OTHER and not (s.accumulate and OTHER[s.op] == "neg"):
            self.body[k] = replace(s, op=OTHER[s.op])

    def flip(self) -> None:
        k = self.rng.randrange(len(self.body))
        self.body[k] = replace(self.body[k], sources=self.body[k].sources[::-1])

    def retype(self) -> None:
        b = self.rng.choice(list(self.buffers))
        self.buffers[b] = replace(self.buffers[b], dtype=self.rng.choice(DTYPES))

    def alias(self) -> None:
        """Two operands are one buffer."""
        names = [b for b in self.buffers if self.access(b).index]
        if len(names) > 1:
            a, b = self.rng.sample(names, 2)
            if len(self.access(a).index) == len(self.access(b).index):
                self.rewrite(lambda x: Access(a, x.index) if x.buffer == b else x)
                self.buffers.pop(b)

    def peek(self) -> None:
        """Something else reads or writes what the statements made."""
        s = self.rng.choice(self.body)
        name = f"z{len(self.buffers)}"
        axes = tuple(Axis(f"r{n}", Affine((), self.extents[n])) for n in s.domain.names)
        turned = {n: Affine.of(f"r{n}") for n in s.domain.names}
        seen = Access(s.dest.buffer, tuple(r.substitute(turned) for r in s.dest.index))
        dtype = self.buffers[s.dest.buffer].dtype
        self.extents.update({f"r{n}": self.extents[n] for n in s.domain.names})
        self.buffers[name] = Buffer(name, (), dtype, "out")
        new = Statement(Domain(axes), Access(name, tuple(Affine.of(a.name) for a in axes)), "copy", (seen,))
        self.body.insert(self.rng.randint(0, len(self.body)) if self.rng.random() < 0.3 else len(self.body), new)

    def start(self) -> None:
        """A result begins with a constant."""
        sums = [b for b in self.results() if self.sums(b)]
        if sums:
            b = self.rng.choice(sums)
            a = self.access(b, written=True)
            names = sorted({n for r in a.index for n in r.names})
            axes = tuple(Axis(n, Affine((), self.extents[n])) for n in names)
            self.body.insert(0, Statement(Domain(axes), a, "copy", (Literal(0),)))

    def trim(self) -> None:
        """A condition on two axes."""
        k = self.rng.randrange(len(self.body))
        names = self.body[k].domain.names
        if len(names) > 1:
            a, b = self.rng.sample(names, 2)
            every = range(len(self.body)) if self.rng.random() < 0.7 else (k,)
            for n in every:
                d = self.body[n].domain
                if {a, b} <= set(d.names):
                    self.body[n] = replace(self.body[n], domain=Domain(d.axes, (Affine.of(a) - Affine.of(b) + 1,)))

    def points(self) -> int:
        """Of all statements together."""
        return sum(prod(self.extents[n] for n in s.domain.names) for s in self.body)

    # what it is -----------------------------------------------------------------------------------------------------
    def access(self, buffer: str, written: bool = False) -> Access:
        own = [s.dest for s in self.body if s.dest.buffer == buffer]
        every = own if written else [a for s in self.body for a in (s.dest, *s.reads) if a.buffer == buffer]
        return every[0] if every else Access(buffer)

    def results(self) -> list[str]:
        return list(dict.fromkeys(s.dest.buffer for s in self.body))

    def sums(self, buffer: str) -> bool:
        return any(s.dest.buffer == buffer and s.accumulate for s in self.body)

    def rewrite(self, f: Callable[[Access], Access], axis: str = "") -> None:
        def source(x: Source) -> Source:
            return f(x) if isinstance(x, Access) else x

        more = (Axis(axis, Affine((), self.extents[axis])),) if axis else ()
        self.body = [replace(s, domain=Domain((*more, *s.domain.axes), s.domain.where), dest=f(s.dest),
                             sources=tuple(map(source, s.sources))) for s in self.body]  # fmt: skip

    def kernel(self, permits: frozenset[str]) -> Kernel:
        """Everything in range: offsets put below zero are moved up, shapes are as large as needed."""
        low: dict[str, list[int]] = {}
        high: dict[str, list[int]] = {}
        for s in self.body:
            for a in (s.dest, *s.reads):
                ends = [self._ends(r) for r in a.index]
                old = list(zip(low.get(a.buffer, [10**9] * len(ends)), high.get(a.buffer, [-10**9] * len(ends)),
                               strict=False))  # fmt: skip
                low[a.buffer] = [min(x, e[0]) for (x, _), e in zip(old, ends, strict=False)]
                high[a.buffer] = [max(y, e[1]) for (_, y), e in zip(old, ends, strict=False)]
        slack = {b: [self.rng.choice((0, 0, 1)) for _ in low[b]] for b in low}
        self.rewrite(lambda a: Access(a.buffer, tuple(r - lo for r, lo in zip(a.index, low[a.buffer], strict=True))))
        roles = self._roles()
        buffers = tuple(
            replace(b, shape=tuple(Affine((), h - lo + 1 + more)
                                   for lo, h, more in zip(low[n], high[n], slack[n], strict=True)), role=roles[n])
            for n, b in self.buffers.items() if n in low)  # fmt: skip
        return Kernel("grown", (), buffers, tuple(self.body), permits)

    def _ends(self, row: Affine) -> tuple[int, int]:
        terms = [(c * (self.extents[n] - 1)) for n, c in row.terms]
        return row.const + sum(min(0, t) for t in terms), row.const + sum(max(0, t) for t in terms)

    def _roles(self) -> dict[str, str]:
        seen: set[str] = set()
        roles: dict[str, str] = {}
        for s in self.body:
            for a in (*s.reads, s.dest):
                if a.buffer not in seen:
                    roles[a.buffer] = "inout" if s.accumulate and a == s.dest else "out" if a is s.dest else "in"
                    seen.add(a.buffer)
                elif a is s.dest and roles[a.buffer] == "in":
                    roles[a.buffer] = "inout"
        for n, role in roles.items():
            read = any(n == a.buffer for s in self.body for a in s.sources if isinstance(a, Access))
            if role == "out" and read and (self.buffers[n].role == "temp" or self.rng.random() < 0.2):
                roles[n] = "temp"
        return roles


HELP = ("outer", "permute", "start", "flip")
HARM = ("stretch", "share", "other", "retype", "alias", "peek", "trim")


def grown(i: Instruction, rng: random.Random) -> Kernel | None:
    """A kernel around the instruction's body; None where none came out well formed."""
    for _ in range(4):
        g = seeded(i, rng)
        if g is None:
            return None
        alone = g.points()
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            getattr(g, rng.choice(HELP))()
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            getattr(g, rng.choice(HARM))()
        if g.points() > max(POINTS, alone):
            continue
        k = g.kernel(i.body.permits | {"reassociate", "contract"} if rng.random() < 0.7 else frozenset())
        if not verify(k):
            return anything(k, Seeded(rng.randrange(1 << 30))).kernel if rng.random() < 0.6 else k
    return None


def seeded(i: Instruction, rng: random.Random) -> Grown | None:
    """The body itself with numbers for sizes and a dtype for ``any``."""
    sizes = {s.name: size(s.lo, s.hi, s.multiple_of, rng) for s in i.body.syms}
    body = i.body.with_sizes(sizes)
    if any(not isinstance(s, Statement) for s in body.body) or not body.statements:
        return None
    extents: dict[str, int] = {}
    for s in body.statements:
        for a in s.domain.axes:
            if extents.setdefault(a.name, int(a.extent)) != int(a.extent) or a.extent.const < 1:
                return None
    dtype = rng.choice(DTYPES)
    buffers = {b.name: replace(b, dtype=dtype if b.dtype == ANY else b.dtype) for b in body.buffers}
    return Grown(rng, extents, buffers, list(body.statements))


def size(lo: int, hi: int | None, multiple: int, rng: random.Random) -> int:
    """A small admitted size, now and then one that a single call does not take."""
    most = 4 if hi is None else hi
    v = rng.choice((1, 2, 2, 3, 3, 4, 5))
    v = max(v, lo, 1) if hi is None or rng.random() < 0.3 else min(max(v, lo, 1), most)
    return -(-v // multiple) * multiple
