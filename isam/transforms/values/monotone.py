"""Extrema and monotone functions change places: ``f(max(a, b)) = max(f(a), f(b))`` (TR-1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Buffer, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, made_by, names_in, read_as, readers, splice, within_step
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform, granted

Rises = Callable[[Kernel, Statement], int]
RISING = ("exp", "log", "tanh", "sigmoid", "erf", "sqrt", "floor", "ceil", "round")
EXTREMA = {"max": "min", "min": "max"}


def function(kernel: Kernel, s: Statement) -> int:
    """1 where the statement applies a rising function to one array; 0 where it does not."""
    return 1 if s.op in RISING and isinstance(s.sources[0], Access) else 0


def scaling(kernel: Kernel, s: Statement) -> int:
    """1 where the statement adds a number or multiplies by a positive one, -1 for ``-a`` and a negative one. Rounding
    is monotone, so the extremum of the rounded results is the rounded result of the extremum, bit by bit. Of a factor
    less than one only where the user permits other roundings: it may make two zeros of two small numbers, of which an
    extremum is the one or the other."""
    numbers = [x.value for x in s.sources if isinstance(x, Literal)]
    if s.accumulate or len(numbers) != len(s.sources) - 1 or not all(map(isfinite, numbers)):
        return 0
    if s.op == "neg":
        return -1
    if s.op == "mul" and numbers[0] and (abs(numbers[0]) >= 1 or _rounds(kernel, s)):
        return 1 if numbers[0] > 0 else -1
    return 1 if s.op == "add" or (s.op == "sub" and isinstance(s.sources[1], Literal)) else 0


@dataclass(frozen=True)
class Push(Transform):
    """The function is applied to both operands first."""

    law: str = "push-scaling"  # type: ignore[misc]
    equation: str = "t = max(a, b); y = c * t  =>  y = max(c * a, c * b)   (c > 0; min for c < 0)"  # type: ignore[misc]
    rises: Rises = scaling
    needs: frozenset[str] = frozenset({"exact"})  # type: ignore[misc]
    judge: str = "interpreter"  # type: ignore[misc]
    inverse: str = "pull-scaling"  # type: ignore[misc]

    kinds = frozenset({"operation", "escapes"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(inner=i, outer=j)
            for j, s in enumerate(kernel.statements)
            if self.rises(kernel, s) and _floats(kernel, s)
            for i in made_by(kernel, j, _argument(s))
            if kernel.statements[i].op in EXTREMA and all(isinstance(x, Access) for x in kernel.statements[i].sources)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["inner"], site["outer"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        inner, s = kernel.statements[i], kernel.statements[j]
        taken, like = names_in(kernel), kernel.buffer(s.dest.buffer)
        x = _argument(s)
        values = read_as(inner.dest, x)
        made: list[Buffer] = []
        lines: list[Statement] = []
        for y in inner.sources:
            name = fresh(taken, "f")
            taken.add(name)
            buffer, at = within_step(kernel, s, name, like.dtype)
            made.append(buffer)
            lines.append(replace(s, dest=at, sources=_with(s, y.substitute(values))))
        op = inner.op if self.rises(kernel, s) > 0 else EXTREMA[inner.op]
        lines.append(replace(s, op=op, sources=tuple(line.dest for line in lines)))
        only = readers(kernel, x.buffer) == (j,)
        parts = {j: tuple((line, (i, j)) for line in lines)} | ({i: ()} if only else {})
        new, origin = splice(kernel, parts, buffers=(*kernel.buffers, *made))
        return Rewrite(new, Correspondence(origin, buffers=((x.buffer, ()),) if only else ()))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction does the two in the other order, or one of them nothing does."""
        found = self.sites(kernel) if self.answers(mismatch) else ()
        return tuple(s for s in found if _asked(kernel, mismatch, (s["inner"], s["outer"])))


@dataclass(frozen=True)
class Pull(Transform):
    """The same function of both operands is applied once, to the extremum."""

    law: str = "pull-scaling"  # type: ignore[misc]
    equation: str = "y = max(c * a, c * b)  =>  t = max(a, b); y = c * t   (c > 0; min for c < 0)"  # type: ignore[misc]
    rises: Rises = scaling
    needs: frozenset[str] = frozenset({"exact"})  # type: ignore[misc]
    judge: str = "interpreter"  # type: ignore[misc]
    inverse: str = "push-scaling"  # type: ignore[misc]

    kinds = frozenset({"operation", "escapes"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(outer=j, first=a, second=b)
            for j, s in enumerate(kernel.statements)
            if s.op in EXTREMA and not s.accumulate and _floats(kernel, s)
            for a in made_by(kernel, j, s.sources[0])
            for b in made_by(kernel, j, s.sources[1])
            if a != b and self.rises(kernel, kernel.statements[a])
            if _alike(kernel.statements[a], kernel.statements[b])
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        j, pair = site["outer"], (site["first"], site["second"])
        s = kernel.statements[j]
        sources: list[Source] = []
        for i, x in zip(pair, s.sources, strict=True):
            made = kernel.statements[i]
            assert isinstance(x, Access)
            values = read_as(made.dest, x)
            sources.append(_argument(made).substitute(values))
        name, like = fresh(names_in(kernel), "t"), kernel.buffer(s.dest.buffer)
        f = kernel.statements[pair[0]]
        op = s.op if self.rises(kernel, f) > 0 else EXTREMA[s.op]
        at = replace(s.dest, buffer=name)
        origin = (*pair, j)
        lines = (
            (replace(s, dest=at, op=op, sources=tuple(sources)), origin),
            (replace(s, op=f.op, sources=_with(f, at)), origin),
        )
        gone = [i for i in pair if readers(kernel, kernel.statements[i].dest.buffer) == (j,)]
        new, back = splice(
            kernel,
            {j: lines} | dict.fromkeys(gone, ()),
            buffers=(*kernel.buffers, replace(like, name=name, role="temp", declared=True)),
        )
        return Rewrite(new, Correspondence(back, meanings=((name, f"part of {s.dest}"),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction does the two in the other order, or one of them nothing does."""
        found = self.sites(kernel) if self.answers(mismatch) else ()
        return tuple(s for s in found if _asked(kernel, mismatch, (s["outer"], s["first"], s["second"])))


MONOTONE: tuple[Transform, ...] = (
    Pull(),
    Push(),
    Pull("pull-monotone", "y = max(f(a), f(b))  =>  y = f(max(a, b))   (f rises: exp, tanh, sqrt, ...)", function,
         frozenset({"rounding", "finite"}), "float bound", "push-monotone"),
    Push("push-monotone", "y = f(max(a, b))  =>  y = max(f(a), f(b))   (f rises: exp, tanh, sqrt, ...)", function,
         frozenset({"rounding", "finite"}), "float bound", "pull-monotone"),
)  # fmt: skip


def _asked(kernel: Kernel, m: Mismatch, statements: tuple[int, ...]) -> bool:
    """Is one of the statements in question, and does the instruction do all that they do, or nothing one of them?"""
    does = {op for op, _ in m.about("does") or ()}
    mine = {kernel.statements[i].op for i in statements}
    return m.about("statement") in statements and (bool(m.about("missing")) or mine <= does)


def _argument(s: Statement) -> Access:
    return next(x for x in s.sources if isinstance(x, Access))


def _with(s: Statement, x: Source) -> tuple[Source, ...]:
    """The statement's sources with another argument."""
    return tuple(y if isinstance(y, Literal) else x for y in s.sources)


def _rounds(kernel: Kernel, s: Statement) -> bool:
    return granted(kernel, ("rounding",), (kernel.buffer(s.dest.buffer).dtype,))


def _floats(kernel: Kernel, s: Statement) -> bool:
    """Integers wrap, which no scaling survives."""
    return DTYPES[kernel.buffer(s.dest.buffer).dtype].kind == "f"


def _alike(a: Statement, b: Statement) -> bool:
    """The same operation with the same numbers in the same places."""

    def shape(s: Statement) -> tuple[object, ...]:
        return (s.op, s.accumulate, *(x if isinstance(x, Literal) else Affine() for x in s.sources))

    return shape(a) == shape(b)
