"""Whether calls of an instruction carry out its mapping at the sizes for which the mapping is said to hold.

What :mod:`isam.proof.carried` makes is one call as large as the kernel; an instruction takes so much and no more. Here
it is derived from the statements which axes may be cut into several calls, and from the instruction's sizes how much a
call takes. isl says whether the steps of every axis are made up of such calls, at all sizes that the kernel and the
mapping's conditions admit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.kernel import REDUCTIONS, Access, Domain, Kernel, Statement
from isam.ir.mapping import Mapping as Mapped
from isam.proof.carried import Part, Unfit

if TYPE_CHECKING:
    from isam.ir.poly import Set

CALLS, MORE, TIMES = "number of calls", "steps on top", "times"  # no name that a user can write


@dataclass(frozen=True, slots=True)
class Takes:
    """A call takes ``least``, ``least + step``, ... up to ``most`` elements (None: without end)."""

    least: int
    most: int | None
    step: int = 1

    @property
    def any_number(self) -> bool:
        return self.least <= 1 and self.step == 1

    def __str__(self) -> str:
        if self.most == self.least:
            return f"exactly {self.least}"
        first = f"{self.least}, {self.least + self.step}, ..." if self.step > 1 else f"from {self.least}"
        return first + ("" if self.most is None else f", {self.most}" if self.step > 1 else f" to {self.most}")

    def sizes(self, extent: Affine, several: bool) -> Set:
        """Where one call, or ``several``, take ``extent`` steps; where that is below zero there is none to take."""
        from isam.ir.poly import make

        n, more = Affine.of(CALLS), Affine.of(MORE)
        ge, eq = [n - 1, more], [n * self.least + more * self.step - extent]
        if not several:
            eq.append(n - 1)
        if self.most is not None:
            ge.append(n * ((self.most - self.least) // self.step) - more)
        made = make((), ge, eq, (CALLS, MORE))
        return made | make((), [-extent]) if several or self.least == 0 else made


def lacking(kernel: Kernel, mapping: Mapped, part: Part) -> Iterator[str]:
    """What is missing for calls to carry out the mapping where its conditions hold. Raises :class:`Unfit`."""
    from isam.ir.poly_domain import context

    name, sizes = mapping.instruction.name, {s.name for s in kernel.syms}
    where = context(kernel.syms)
    for c in mapping.conditions:
        if not set(c.expr.names) <= sizes or c.step < 1 or not set(c.rests) <= set(range(c.step)):
            raise Unfit(f"'{name}': '{c}' is no condition on sizes of the kernel")
        where = where & _satisfying(c)
    if where.is_empty():
        raise Unfit(f"'{name}' is mapped for no sizes at all")
    calls = _Calls(kernel, mapping, part)
    for k in mapping.outer:
        if not calls.apart(k):
            yield f"'{name}': calls at different {k} meddle with each other"
    for a, k in mapping.axes:
        takes, several = calls.takes(a), a not in calls.whole
        if a in calls.guarded and not takes.any_number:
            yield f"'{name}': a condition leaves any number of the steps of {k}, a call takes {takes} along {a}"
        if a in calls.guarded and not several and not calls.shortened(a, k):
            yield f"'{name}': what a condition leaves of the steps of {k} is no one call of fewer along {a}"
        left = where - takes.sizes(part.extents[k], several)
        if not left.is_empty():
            at = ", ".join(f"{n} = {v}" for n, v in sorted((left.point() or {}).items()) if n in sizes)
            many = "calls of" if several else "one call of"
            steps = f"{part.extents[k]} steps of {k}{at and f' at {at}'}"
            yield f"'{name}': {many} {takes} along {a} cannot make up {steps}"
    yield from calls.uneven()


def _satisfying(c: Condition) -> Set:
    """The sizes at which a condition holds."""
    from isam.ir.poly import make

    out = make((), [Affine.lift(-1)])
    if c.admits(0):
        out = out | make((), [-c.expr])
    for n in c.some:
        out = out | make((), [Affine.lift(n)], [c.expr - n])
    bounds = [c.expr - max(c.least, 0), *([c.most - c.expr] if c.most is not None else [])]
    for r in c.rests:
        out = out | make((), bounds, [c.expr - Affine.of(TIMES, c.step) - r], (TIMES,))
    return out


class _Calls:
    """Which axes of one mapping are cut into several calls, and what a call takes of each. An axis of which it is not
    shown that it may be cut is taken whole."""

    def __init__(self, kernel: Kernel, mapping: Mapped, part: Part):
        self.kernel, self.mapping, self.part = kernel, mapping, part
        self.body = mapping.instruction.body
        self.ends = {a.name: a.extent for s in self.body.statements for a in s.domain.axes}
        self.own = {b.name for b in part.temps}

    @cached_property
    def left_out(self) -> list[Affine]:
        """The kernel's conditions that are none of the instruction's: they leave out steps."""
        asked = {w.substitute(self.part.renaming(s)) for s in self.body.statements for w in s.domain.where}
        return [w for w in self.part.where if w not in asked]

    @cached_property
    def guarded(self) -> frozenset[str]:
        """The instruction's axes of which a condition of the kernel's leaves out steps."""
        names = {n for w in self.left_out for n in w.names}
        return frozenset(a for a, k in self.mapping.axes if k in names)

    def shortened(self, axis: str, k: str) -> bool:
        """Whether what conditions of the kernel's leave of an axis taken whole is one smaller call: its first steps,
        whose number depends on no other such axis, and nothing but the axis has its size."""
        tied = {n for a, n in self.mapping.axes if a in self.whole and n != k}
        return self._alone(axis) and not any(
            w.coefficient(k) > 0 or tied & set(w.names) for w in self.left_out if k in w.names)  # fmt: skip

    @cached_property
    def whole(self) -> frozenset[str]:
        """The axes that one call takes: those of which the mapping says so, those that it computes with or has a
        condition on, those that several sizes make up or that a larger size makes shorter, those whose steps meddle
        with each other, and what has a size in common with one of them."""
        statements = self.body.statements
        sizes = {s.name for s in self.body.syms}
        used = {n for s in statements for a in _accesses(s) for row in a.index for n in row.names if n in sizes}
        used |= {n for s in statements for w in s.domain.where for n in w.names}
        used |= {n for e in self.ends.values() if not _grows(e) for n in e.names}
        out = {a for a, k in self.mapping.axes
               if a in self.mapping.whole or {a, *self.ends[a].names} & used
               or not self._together(a) or not self.apart(k)}  # fmt: skip
        held = {n for a in out for n in self.ends[a].names}
        return frozenset(a for a, _ in self.mapping.axes if held & set(self.ends[a].names) or a in out)

    def takes(self, axis: str) -> Takes:
        """What a call takes of an axis. Of a size that several cut axes have: so much that calls fit along all."""
        e = self.ends[axis]
        if not e.terms:
            return Takes(e.const, e.const)
        if not _grows(e):
            return Takes(0, None)  # as much as the other axes say, see ``uneven``
        ((name, c),), d = e
        s = next(s for s in self.body.syms if s.name == name)
        m = s.multiple_of
        first = -(-s.lo // m) * m
        both = [x for x in self.ends.values() if name in x.names]
        if len(both) > 1 and axis not in self.whole:
            while any(x.evaluate({name: first}) < 1 for x in both):
                first += m
            return Takes(c * first + d, c * first + d) if s.hi is None or first <= s.hi else Takes(0, 0)
        least, step = c * first + d, c * m
        return Takes(max(least, least % step), None if s.hi is None else c * (s.hi // m * m) + d, step)

    def uneven(self) -> Iterator[str]:
        """Axes taken whole that one size cannot be the end of."""
        sizes = self.part.sizes
        for a, k in self.mapping.axes:
            e = self.ends[a]
            if a in self.whole and e.names and e.substitute(sizes) != self.part.extents[k] and not self._alone(a):
                yield (f"'{self.mapping.instruction.name}': no one value of {', '.join(e.names)} makes a call of all "
                       f"{self.part.extents[k]} steps of {k}")  # fmt: skip

    def _alone(self, axis: str) -> bool:
        """Whether nothing but the axis has its size: a call can take as much of it as it admits."""
        own = self.ends[axis]
        accesses = (row for s in self.body.statements for x in _accesses(s) for row in x.index)
        elsewhere = [*(e for a, e in self.ends.items() if a != axis), *accesses,
                     *(w for s in self.body.statements for w in s.domain.where)]  # fmt: skip
        return _grows(own) and not any(own.names[0] in e.names for e in elsewhere)

    def _together(self, axis: str) -> bool:
        """Whether all accesses of an operand move on alike along the axis: a call gets one block of it."""
        moves: dict[str, set[tuple[int, ...]]] = {}
        for s in self.body.statements:
            for x in _accesses(s):
                if self.body.buffer(x.buffer).role != "temp":
                    moves.setdefault(x.buffer, set()).add(tuple(row.coefficient(axis) for row in x.index))
        return all(len(some) == 1 for some in moves.values())

    def apart(self, axis: str) -> bool:
        """Whether steps at different values of a kernel's axis do not need each other: what touches one element,
        writing it, does so at one value. Sums into one element may be made in any order."""
        for s in self.part.statements:
            if axis not in s.domain.names and s.dest.buffer not in self.own:
                return False  # it would be done again by every call
            for t in self.part.statements:
                for x in _accesses(t):
                    if x.buffer == s.dest.buffer and self._meddles(s, t, x, axis):
                        return False
        return True

    def _meddles(self, s: Statement, t: Statement, x: Access, axis: str) -> bool:
        """Whether what ``s`` writes at one value of the axis is touched by ``t``, as ``x``, at another. A call has its
        own temporaries, from their first elements on: one that only one of the two goes along is not the same one."""
        if any(a.coefficient(axis) != b.coefficient(axis) for a, b in zip(s.dest.index, x.index, strict=True)) and (
            s.dest.buffer in self.own):  # fmt: skip
            return not _never(lambda: self._met(s, t, x))
        if axis not in s.domain.names:
            return False  # a call's own temporary, written by every call
        sums = s.accumulate and t.accumulate and s.op == t.op and s.op in REDUCTIONS
        if sums and x is t.dest:
            return False
        one = Affine.of(axis)
        if any(a == b == one for a, b in zip(s.dest.index, x.index, strict=True)):
            return False
        two = Affine.of(_other(axis))
        return not all(_never(lambda ge=ge: self._met(s, t, x, ge)) for ge in (one - two - 1, two - one - 1))

    def _met(self, s: Statement, t: Statement, x: Access, *ge: Affine) -> Set:
        """Pairs of steps of ``s`` and ``t`` that touch one element: those of ``t`` under other names."""
        from isam.ir.poly import make
        from isam.ir.poly_domain import context

        there = {n: Affine.of(_other(n)) for n in t.domain.names}
        rows = zip(s.dest.index, (r.substitute(there) for r in x.index), strict=True)
        bounds = [*_bounds(s.domain), *(b.substitute(there) for b in _bounds(t.domain)), *ge]
        names = (*s.domain.names, *(_other(n) for n in t.domain.names))
        return make(names, bounds, [a - b for a, b in rows]).given(context(self.kernel.syms))


def _never(question: Callable[[], Set]) -> bool:
    """Whether a set is empty; not, as far as is known, where that takes too long to find out."""
    from isam.ir.relation import TooMuch, bounded

    try:
        return bounded(lambda: question().is_empty())
    except TooMuch:
        return False


def _grows(end: Affine) -> bool:
    """Whether the end of an axis has one size, and is the further the larger that is."""
    return len(end.terms) == 1 and end.terms[0][1] > 0


def _other(axis: str) -> str:
    return f"{axis} there"


def _bounds(domain: Domain) -> list[Affine]:
    return [b for a in domain.axes for b in (Affine.of(a.name), a.extent - 1 - Affine.of(a.name))] + list(domain.where)


def _accesses(s: Statement) -> list[Access]:
    return [s.dest, *s.reads]
