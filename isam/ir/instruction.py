"""An instruction is a kernel plus the contract of its operands (IR-6).

Its body says what it does (the interpreter is its functional simulator), its sizes are limits (``M <= 4``,
``N % 8``), the rest says where operands may live, what they cost and how they are written down. Moves between
memories are instructions too: ``D[j, i] = S[i, j]`` is a transposing move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Loc
from isam.ir.affine import Affine
from isam.ir.apart import axes_apart
from isam.ir.dtype import ANY
from isam.ir.kernel import Access, Buffer, Kernel, Literal, Statement, Sym
from isam.ir.span import Span, span_of
from isam.ir.sumform import SumForm


@dataclass(frozen=True, slots=True)
class OperandContract:
    """Where an operand may live and how it must lie there.

    ``homes``: memories it may live in (empty: the machine's home memory). ``strides``: one entry per dimension, in
    elements: ``None`` means free (a leading dimension), an integer means exactly that (1: contiguous). The default for
    an operand of rank r is free strides and 1 for the last dimension. ``align``: bytes. ``shared``: units with one
    instruction stream all take it from the same place (SYS-4).
    """

    homes: tuple[str, ...] = ()
    strides: tuple[int | None, ...] = ()
    align: int = 1
    shared: bool = False


def packed(shape: tuple[Affine, ...]) -> tuple[int | None, ...]:
    """The strides of an operand whose inner dimensions of constant extent lie without gaps: of ``[K, N, 4]`` they are
    free, 4 and 1 (IR-11)."""
    out: list[int | None] = []
    step: int | None = 1
    for extent in reversed(shape):
        out.append(step)
        step = step * extent.const if step is not None and extent.is_constant else None
    return tuple(reversed(out))


ASSUMED = 1.0  # cycles of a cost that the description does not state


@dataclass(frozen=True, slots=True)
class Narrow:
    """A narrow form: a call whose ``size`` is at most ``most`` is carried out on so many lanes, in ``issue`` cycles."""

    size: str
    most: int
    issue: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Cycles of the unit's clock; ``bandwidth`` in bytes per cycle. ``None``: not stated, reported as assumed.
    ``per``: cycles on top of issue and latency for each unit of a size (rows that stream through an array).
    ``prefetch``: cycles of asking a cache, with a call of a move, for what a later one moves; None: it cannot.
    ``narrow``: the forms of an instruction for calls of few elements, the narrowest first."""

    issue: float | None = None
    latency: float | None = None
    setup: float | None = None
    bandwidth: float | None = None
    per: tuple[tuple[str, float], ...] = ()
    prefetch: float | None = None
    narrow: tuple[Narrow, ...] = ()

    @property
    def interval(self) -> float:
        """Cycles from one whole call to the next, without what its sizes add."""
        return ASSUMED if self.issue is None else self.issue

    @property
    def behind(self) -> float:
        """Cycles from when the next whole call may begin until the results of one are there."""
        return max(0.0, (self.latency or 0.0) - self.interval)

    @property
    def shortest(self) -> float:
        """Cycles from one call to the next, in the form that takes the fewest, without what its sizes add."""
        return min([self.interval, *(f.issue for f in self.narrow)])

    def form(self, sizes: Mapping[str, float]) -> Narrow | None:
        """The narrow form of a call of these sizes; None: it is carried out whole."""
        return next((f for f in self.narrow if sizes.get(f.size, f.most + 1) <= f.most), None)

    def cycles(self, sizes: Mapping[str, float]) -> float:
        """Cycles from a call of these sizes to the next."""
        form = self.form(sizes) if self.narrow else None
        return (self.interval if form is None else form.issue) + self.further(sizes)

    def further(self, sizes: Mapping[str, float]) -> float:
        """The cycles that a call of these sizes takes on top."""
        return sum(c * sizes.get(n, 1) for n, c in self.per)

    def move(self, size: int, *, links: bool, further: float = 0.0) -> tuple[float, float]:
        """Cycles of a move of ``size`` bytes: until its issuer is free, until all is there. ``links``: it goes over
        some, which take their own time. ``further``: what its sizes add to its latency."""
        stated = max(self.issue or 0.0, (self.setup or 0.0) + self.over_edge(size))
        interval = stated or (0.0 if links else ASSUMED)
        return interval, max(interval, (self.latency or 0.0) + further)

    def over_edge(self, size: int) -> float:
        """Cycles for which ``size`` bytes hold the edge."""
        return size / self.bandwidth if self.bandwidth else 0.0


@dataclass(frozen=True, slots=True)
class Burst:
    """One command carries out up to ``most`` calls, one after the other, at even distances; ``step``: how many bytes
    from one operand to the next, where that is fixed."""

    most: int = 1
    step: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Filling:
    """What a move writes besides what it copies: all of its ``operand``, so many elements along each dimension
    (``box``), becomes ``value``; what is copied, ``part`` elements along each, begins ``at`` so many from its begin."""

    operand: str
    value: Literal
    box: tuple[Affine, ...]
    part: tuple[Affine, ...]
    at: tuple[int, ...]


def _fills(s: Statement, body: Kernel) -> bool:
    """Whether a statement sets all elements of a buffer to one number, each once."""
    shape, axes = body.buffer(s.dest.buffer).shape, [row.names for row in s.dest.index]
    rows = zip(axes, s.dest.index, shape, strict=True)
    whole = all(axes) and all(Affine.of(n) == row and s.domain.extent(n) == size for (n, *_), row, size in rows)
    alone = len(set(axes)) == len(axes) == len(s.domain.axes)
    number = s.op == "copy" and not s.accumulate and isinstance(s.sources[0], Literal)
    return number and not s.domain.where and alone and whole


@dataclass(frozen=True, repr=False)
class Instruction:
    """A kernel with limits, operand contracts, joint placement rules, cost and emission.

    What its body ``permits`` is what it takes: an instruction that contracts (one rounding for a product and a sum) or
    reassociates fits only kernels that grant it; one that says nothing does what its body says, rounding by rounding.

    ``apart``: groups of operands that must lie in pairwise different memories (SYS-3). ``needs``: CPU features.
    ``emission``: how it is written, by key: the templates of the back ends ``llvm`` and ``stream``; of a registered
    function itself (``python``) and, of one in C, its address (``c``). A simulator needs none.
    ``requires`` and ``sets``: configuration registers (SYS-5) with the value they must have before, and have after:
    a word, a number, or one of the instruction's sizes by name. Required may also be ``stride S 0``, the bytes from one
    element of an operand to the next along a dimension (of one element: any), and ``step S``, those from one operand
    to the next in a burst (of one call: any).
    ``burst``: calls that one command carries out.
    ``ulp``: the declared error of an approximated function in units in the last place.
    In ``body`` a name is one axis: where the text runs it to different ends, the others get names of their own.
    ``family`` and ``values``: the description this is an instance of, and what it gives that one's parameters.
    """

    name: str
    body: Kernel
    operands: dict[str, OperandContract] = field(default_factory=dict)
    apart: tuple[tuple[str, ...], ...] = ()
    cost: Cost = Cost()
    emission: dict[str, Any] = field(default_factory=dict, compare=False)
    needs: tuple[str, ...] = ()
    ulp: float = 0.0
    loc: Loc = field(default=NOWHERE, compare=False)
    family: str = field(default="", compare=False)
    values: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    requires: dict[str, str | int] = field(default_factory=dict)
    sets: dict[str, str | int] = field(default_factory=dict)
    burst: Burst = Burst()

    def __post_init__(self) -> None:
        body = axes_apart(self.body)
        if body is not self.body:
            object.__setattr__(self, "body", body)

    @property
    def title(self) -> str:
        """Its family with the values of the parameters, ``gemm[T=f32, V=nt]``; its name when it is of no family."""
        return f"{self.family}[{', '.join(f'{n}={v}' for n, v in self.values)}]" if self.values else self.name

    def __str__(self) -> str:
        """Its text; parses back to an instruction with the same body."""
        from isam.ir.text import print_kernel

        return print_kernel(self.body, "instruction")

    def __repr__(self) -> str:
        operands = ", ".join(f"{a.name} {a.dtype}[{', '.join(map(str, a.shape))}]" for a in self.body.arguments)
        return f"<instruction {self.title}: {operands}>"

    @property
    def syms(self) -> tuple[Sym, ...]:
        return self.body.syms

    @cached_property
    def takes(self) -> frozenset[str]:
        """The numerics that a kernel must grant for this instruction to be used."""
        return self.body.permits - {"exact"}

    @cached_property
    def signature(self) -> frozenset[tuple[str, bool, str]]:
        """The operations of the body in normal form: a kernel without them cannot use the instruction."""
        passed_on = any(s.op == "copy" and self.body.buffer(s.dest.buffer).role == "temp" for s in self.body.statements)
        if not passed_on:  # the normal form would not drop any operation
            return self.body.operations
        from isam.ir.normal import normal_form

        return normal_form(self.body).operations

    @property
    def whole(self) -> bool:
        """Whether a call does something at every point of its box."""
        return not any(s.domain.where for s in self.body.statements)

    def contract(self, operand: str) -> OperandContract:
        """The operand's contract with defaults filled in."""
        known = self._contracts.get(operand)
        if known is None:
            rank = len(self.body.buffer(operand).shape)
            c = self.operands.get(operand, OperandContract())
            known = c if c.strides else replace(c, strides=(None,) * (rank - 1) + (1,) if rank else ())
            self._contracts[operand] = known
        return known

    @cached_property
    def _contracts(self) -> dict[str, OperandContract]:
        return {}

    @cached_property
    def spans(self) -> dict[str, Span]:
        """For each axis, how much of it one call takes."""
        axes = (a for s in self.body.statements for a in s.domain.axes)
        return {a.name: span_of(a.extent, self.body.syms) for a in axes}

    def span(self, axis: str) -> Span:
        return self.spans[axis]

    @cached_property
    def fixed(self) -> tuple[tuple[str, int], ...]:
        """The axes of which every call takes one and the same number of elements, with that number."""
        return tuple((a, s.least) for a, s in sorted(self.spans.items()) if s.least == s.most)

    @cached_property
    def sum(self) -> SumForm | None:
        """What it sums; None where nothing is added up. Of several sums the first."""
        s = next((s for s in self.body.statements if s.accumulate), None)
        return None if s is None else SumForm.of(s, self.spans, self.cost.issue)

    def sizes_of(self, extents: Mapping[str, float]) -> dict[str, float]:
        """Its sizes, from the extents of its axes where one runs over a size alone."""
        axes = [(a.name, a.extent) for s in self.body.statements for a in s.domain.axes]
        return {n: extents[a] for a, e in axes for n in e.names[:1] if a in extents and e == Affine.of(n)}

    def average(self, sizes: Mapping[str, float]) -> float:
        """Cycles that one of many calls takes at least, whose sizes are these on average: no form does an element in
        less than the one that does most per cycle."""
        cost, most = self.cost, {s.name: s.hi for s in self.syms}
        least = cost.interval
        for size in dict.fromkeys(f.size for f in cost.narrow):
            forms = [f.issue / f.most for f in cost.narrow if f.size == size]
            forms += [cost.interval / n] if (n := most[size]) else []
            least = min(least, max(cost.shortest, sizes.get(size, 1) * min(forms)))
        return least + cost.further(sizes)

    def operand(self, name: str) -> Buffer:
        return self.body.buffer(name)

    @property
    def is_move(self) -> bool:
        """A plain copy of one ``any``-typed (or equally typed) operand to another, or to a part of one that it has
        filled with a number before."""
        return self.copied is not None

    @cached_property
    def copied(self) -> Statement | None:
        """The copy that a move carries out; None: this is no move."""
        ss, args = self.body.statements, self.body.arguments
        *before, last = ss or (None,)
        if last is None or last.op != "copy" or last.accumulate or len(args) != 2 or len(before) > 1:
            return None
        plain = isinstance(last.sources[0], Access) and all(a.dtype in (ANY, args[0].dtype) for a in args)
        plain = plain and not idle_axes(last)
        filled = not before or (_fills(before[0], self.body) and before[0].dest.buffer == last.dest.buffer
                                and all([c for _, c in row.terms] == [1] for row in last.dest.index))  # fmt: skip
        return last if plain and filled else None

    @cached_property
    def repeats(self) -> bool:
        """Whether a move leaves more than it takes: the same to each of some rows (``D[i, j] = S[j]``)."""
        if self.copied is None:
            return False
        [source] = self.copied.reads
        return not {n for row in source.index for n in row.names}.issuperset(self.copied.domain.names)

    @cached_property
    def fill(self) -> Filling | None:
        """What a move writes besides what it copies; None: nothing."""
        if self.copied is None or len(self.body.statements) == 1:
            return None
        dest = self.copied.dest
        value = self.body.statements[0].sources[0]
        assert isinstance(value, Literal)
        extents = tuple(self.copied.domain.extent(row.terms[0][0]) for row in dest.index)
        return Filling(dest.buffer, value, self.operand(dest.buffer).shape, extents, tuple(r.const for r in dest.index))


def idle_axes(s: Statement) -> list[str]:
    """Axes of a statement that index nothing: along them it does the same again."""
    rows = [row for a in (s.dest, *s.sources) if isinstance(a, Access) for row in a.index]
    return [n for n in s.domain.names if not any(n in row.names for row in rows)]
