"""The types of the language (IR-1 to IR-12): frozen, compared by structure, locations excluded.

A kernel after parsing is already in three-operand form: expressions have been broken up, conditions are affine
constraints, compile-time parameters have their values. Printing it gives text that parses back to an equal kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import prod

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Diagnostic, IsamError, Loc
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.once import once

# Operations. A statement has exactly one; `arity` counts its sources (an accumulation's destination is not one).
UNARY = ("copy", "cast", "cast_sat", "neg", "exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt",
         "abs", "floor", "ceil", "round", "not")  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "max", "min", "pow", "lt", "le", "gt", "ge", "eq", "ne", "and", "or")
COMMUTATIVE = frozenset({"add", "mul", "max", "min", "eq", "ne", "and", "or"})
REDUCTIONS = ("add", "mul", "max", "min")  # commutative and associative: may accumulate over axes (IR-8)
COMPARISONS = frozenset({"lt", "le", "gt", "ge", "eq", "ne"})  # the result is bool

ROLES = ("in", "const", "inout", "out", "temp")
PERMITS_DEFAULT = frozenset({"reassociate", "contract"})
PERMITS = frozenset({"reassociate", "contract", "exact", "finite", "flush"})
GRANTED = {  # what each permission allows, in words
    "reassociate": "sums in another order", "contract": "a product and a sum rounded once",
    "finite": "there is no inf or nan", "flush": "a denormal may count as zero",
}  # fmt: skip
OPEN_SIZE = 1000  # stands for a size that nobody has given where covers are priced: more than most calls take
FAR = 1 << 40  # stands for an extent that is not known, where ranges are compared
USUAL_TRIP = 128  # stands for a run-time number of steps where schedules are timed: what comes once is seen beside them


@dataclass(frozen=True, slots=True)
class Sym:
    """A size: ``lo <= name <= hi`` (None: unbounded) and a multiple of ``multiple_of``. ``whole`` (another size, a
    number): it is how many times the number goes into that one; nobody gives it."""

    name: str
    lo: int = 0
    hi: int | None = None
    multiple_of: int = 1
    whole: tuple[str, int] | None = None

    @staticmethod
    def times(name: str, of: Sym, n: int) -> Sym:
        """How many whole times ``n`` goes into a size."""
        return Sym(name, of.lo // n, None if of.hi is None else of.hi // n, 1, (of.name, n))


@dataclass(frozen=True, slots=True)
class Axis:
    """An iteration index ``0 <= name < extent``; an extent below zero counts as zero."""

    name: str
    extent: Affine


@dataclass(frozen=True, slots=True)
class Domain:
    """The box of ``axes`` cut by ``where``: every expression (over axes and sizes) in it is >= 0."""

    axes: tuple[Axis, ...]
    where: tuple[Affine, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    def extent(self, name: str) -> Affine:
        return next(a.extent for a in self.axes if a.name == name)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named array. ``shape`` is affine in the sizes; a temporary's is filled in by the parser when undeclared."""

    name: str
    shape: tuple[Affine, ...]
    dtype: str
    role: str
    declared: bool = True  # False: a temporary with the smallest box of its written indices (IR-5)
    loc: Loc = field(default=NOWHERE, compare=False)

    @property
    def elements(self) -> int | None:
        """How many it has; None where a size is not known."""
        return prod(max(0, d.const) for d in self.shape) if all(d.is_constant for d in self.shape) else None

    @property
    def bytes(self) -> int | None:
        """What it takes; None where a size is not known."""
        n = self.elements
        return None if n is None else n * size_of(self.dtype)


@dataclass(frozen=True, slots=True)
class Access:
    """``buffer[index...]``: an affine map from axes to buffer dimensions (IR-3)."""

    buffer: str
    index: tuple[Affine, ...] = ()
    loc: Loc = field(default=NOWHERE, compare=False)

    def substitute(self, values: Mapping[str, Affine | int]) -> Access:
        """The access with names in its index replaced by values."""
        return replace(self, index=tuple(row.substitute(values) for row in self.index))

    def matrix(self, axes: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """The access matrix: one row per buffer dimension, one column per axis (offsets left out)."""
        return tuple(tuple(row.coefficient(a) for a in axes) for row in self.index)

    def __str__(self) -> str:
        return f"{self.buffer}[{', '.join(map(str, self.index))}]" if self.index else f"{self.buffer}[]"


@dataclass(frozen=True, slots=True)
class Literal:
    """A number in the text. Its dtype is that of the statement it stands in. A zero and a negative zero are two."""

    value: float | int | bool
    loc: Loc = field(default=NOWHERE, compare=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        x, y = self.value, other.value
        return x is y or (x == y and (x != 0 or str(x).startswith("-") == str(y).startswith("-")))

    def __hash__(self) -> int:
        return hash(self.value)

    def substitute(self, values: Mapping[str, Affine | int]) -> Literal:
        """Itself: a number names nothing."""
        return self

    def __str__(self) -> str:
        if isinstance(self.value, float) and self.value in (float("inf"), float("-inf")):
            return "inf" if self.value > 0 else "-inf"
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        return str(self.value)


Source = Access | Literal


@dataclass(frozen=True, slots=True)
class Statement:
    """One operation over its own domain (IR-2, IR-4).

    ``accumulate`` False: ``dest = op(*sources)``. True: ``dest = op(dest, *sources)`` with ``op`` in REDUCTIONS and one
    source; or ``op == 'select'`` with sources ``(condition, value)``: ``dest = value where condition, else dest``.
    A cast's target is the destination's dtype.
    """

    domain: Domain
    dest: Access
    op: str
    sources: tuple[Source, ...]
    accumulate: bool = False
    loc: Loc = field(default=NOWHERE, compare=False)

    @property
    def reads(self) -> tuple[Access, ...]:
        """Every access read, the accumulated destination included."""
        own = (self.dest,) if self.accumulate else ()
        return own + tuple(s for s in self.sources if isinstance(s, Access))

    @property
    def reduces(self) -> tuple[str, ...]:
        """Axes the destination's index does not mention (a reduction when ``accumulate``)."""
        used = {n for row in self.dest.index for n in row.names}
        return tuple(a for a in self.domain.names if a not in used)

    def accessing(self, change: Callable[[Access], Access]) -> Statement:
        """The statement with each of its accesses changed."""
        sources = tuple([change(x) if isinstance(x, Access) else x for x in self.sources])
        return replace(self, dest=change(self.dest), sources=sources)

    def renamed(self, names: Mapping[str, str]) -> Statement:
        """The statement on other buffers; those without a new name stay."""
        return self.accessing(lambda x: replace(x, buffer=names[x.buffer]) if x.buffer in names else x)

    def substitute(self, values: Mapping[str, Affine | int], axes: Sequence[Axis]) -> Statement:
        """The statement over other axes, names in its indices and conditions replaced by values."""
        domain = Domain(tuple(axes), tuple([w.substitute(values) for w in self.domain.where]))
        return replace(self.accessing(lambda x: x.substitute(values)), domain=domain)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """``loop axis < trip``: the body once per step, in order, never unrolled by the language (IR-12)."""

    axis: Axis
    body: tuple[Item, ...]
    loc: Loc = field(default=NOWHERE, compare=False)


Item = Statement | Recurrence


@dataclass(frozen=True)
class Kernel:
    """Buffers and an ordered list of statements; each runs over its whole domain before the next starts (IR-4)."""

    name: str
    syms: tuple[Sym, ...]
    buffers: tuple[Buffer, ...]
    body: tuple[Item, ...]
    permits: frozenset[str] = PERMITS_DEFAULT
    params: tuple[tuple[str, int], ...] = ()  # compile-time constants and the values they have here
    loc: Loc = field(default=NOWHERE, compare=False)
    template: Callable[[Mapping[str, int]], Kernel] | None = field(default=None, compare=False, repr=False)
    faults: tuple[Diagnostic, ...] = ()  # of statements as they were written, which their parts do not show

    @cached_property
    def by_name(self) -> dict[str, Buffer]:
        return {b.name: b for b in self.buffers}

    def buffer(self, name: str) -> Buffer:
        """The buffer of this name. Raises ``KeyError``."""
        return self.by_name[name]

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        """What a caller passes, in order: every buffer but temporaries, as declared."""
        return tuple(b for b in self.buffers if b.role != "temp")

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """All statements in text order, those inside recurrent loops included."""
        return tuple(statements_in(self.body))

    @cached_property
    def operations(self) -> frozenset[tuple[str, bool, str]]:
        """(operation, accumulating, dtype of the destination) of every statement: a cheap filter for mapping."""
        return frozenset((s.op, s.accumulate, self.buffer(s.dest.buffer).dtype) for s in self.statements)

    @cached_property
    def readers(self) -> dict[str, tuple[int, ...]]:
        """Per buffer the statements with it among their sources (an accumulation's own destination not counted)."""
        out: dict[str, list[int]] = {}
        for i, s in enumerate(self.statements):
            for name in dict.fromkeys(x.buffer for x in s.sources if isinstance(x, Access)):
                out.setdefault(name, []).append(i)
        return {name: tuple(found) for name, found in out.items()}

    @cached_property
    def writers(self) -> dict[str, tuple[int, ...]]:
        """Per buffer the statements that write it."""
        out: dict[str, list[int]] = {}
        for i, s in enumerate(self.statements):
            out.setdefault(s.dest.buffer, []).append(i)
        return {name: tuple(found) for name, found in out.items()}

    @cached_property
    def outsized(self) -> frozenset[str]:
        """The temporaries that, kept whole, are larger than every argument (IR-5); a size that is open counts as 0."""
        most = max((b.elements or 0 for b in self.arguments), default=0)
        return frozenset(b.name for b in self.buffers if b.role == "temp" and (b.elements or 0) > most)

    @property
    def given(self) -> tuple[Sym, ...]:
        """The sizes that are not worked out from others."""
        return tuple(s for s in self.syms if s.whole is None)

    @property
    def follow(self) -> tuple[Sym, ...]:
        """The sizes that are worked out from others."""
        return tuple(s for s in self.syms if s.whole is not None)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The sizes known, and those that follow from them."""
        follow = {s.name: known[s.whole[0]] // s.whole[1] for s in self.syms if s.whole and s.whole[0] in known}
        return {**known, **follow}

    def usual(self, n: int) -> dict[str, int]:
        """Numbers for sizes that are known at run time only, to weigh by: about ``n``, and half a part left over of
        those that are cut into parts."""
        known = {s.name: max(s.lo, n if s.hi is None else min(n, s.hi)) for s in self.given}
        for s in self.follow:
            if s.whole is not None:
                of, k = s.whole
                known[of] = n // k * k + k // 2
        return self.sizes(known)

    @property
    def trips(self) -> frozenset[str]:
        """Sizes that are the trip of a recurrent loop: the only ones that may stay run-time values."""
        return frozenset(n for r in recurrences(self.body) for n in r.axis.extent.names)

    def with_params(self, **values: int) -> Kernel:
        """The same source with other compile-time constants."""
        if self.template is None or not values:
            return self
        return self.template({**dict(self.params), **values})

    def with_permits(self, permits: Iterable[str] | str) -> Kernel:
        """The same kernel with these permissions and no others: a text names one or, with commas, several. Raises
        ``IsamError`` for what nobody can grant."""
        from isam.ir.lexer import Report
        from isam.ir.permits import permitted

        report = Report(self.loc.file, [])
        granted = permitted(permits, report, self.loc)
        report.check()
        made, template = replace(self, permits=granted if granted is not None else self.permits), self.template
        if template is None:
            return made
        return replace(made, template=lambda values: template(values).with_permits(made.permits))

    def settled(self, sizes: Mapping[str, int]) -> list[Diagnostic]:
        """The faults of numbers for compile-time constants that have another value."""
        constants = dict(self.params)
        return [
            Diagnostic("I509", f"'{n}' is a constant of kernel '{self.name}' with the value {constants[n]}, not {v}",
                       self.loc, f"kernel.with_params({n}={v}) is the one with that")
            for n, v in sizes.items()
            if constants.get(n, v) != v
        ]  # fmt: skip

    def with_sizes(self, sizes: Mapping[str, int]) -> Kernel:
        """Sizes replaced by numbers; a shape or extent below zero becomes zero. Those that have been replaced before
        may be given again. Raises ``IsamError`` for another value of a constant."""
        if wrong := self.settled(sizes):
            raise IsamError(wrong)
        sizes = self.sizes(sizes)

        def cut(e: Affine) -> Affine:
            e = e.substitute(sizes)
            return Affine() if e.is_constant and e.const < 0 else e

        return replace(
            self,
            syms=tuple(s for s in self.syms if s.name not in sizes),
            buffers=tuple(replace(b, shape=tuple(cut(d) for d in b.shape)) for b in self.buffers),
            body=put(self.body, sizes, cut),
            template=None,
        )

    @once
    def __str__(self) -> str:
        from isam.ir.text import print_kernel

        return print_kernel(self)

    def __repr__(self) -> str:
        roles = [b.role for b in self.arguments]
        counts = [f"{roles.count(r)} {r}" for r in dict.fromkeys(roles)]
        counts.append(f"{len(self.statements)} statement{'s' * (len(self.statements) != 1)}")
        return f"<kernel {self.name}({', '.join(s.name for s in self.syms)}): {', '.join(counts)}>"


def put(items: tuple[Item, ...], values: Mapping[str, Affine | int],
        extent: Callable[[Affine], Affine] | None = None) -> tuple[Item, ...]:  # fmt: skip
    """Items with names replaced by values; ``extent``: how those of axes are."""
    cut = extent or (lambda e: e.substitute(values))
    out: list[Item] = []
    for it in items:
        if isinstance(it, Recurrence):
            out.append(replace(it, axis=Axis(it.axis.name, cut(it.axis.extent)), body=put(it.body, values, cut)))
        else:
            out.append(it.substitute(values, tuple(Axis(a.name, cut(a.extent)) for a in it.domain.axes)))
    return tuple(out)


def statements_in(body: Sequence[Item]) -> Iterator[Statement]:
    """All statements of a body in order, those of recurrent loops where these stand."""
    for it in body:
        if isinstance(it, Recurrence):
            yield from statements_in(it.body)
        else:
            yield it


def recurrences(body: tuple[Item, ...]) -> Iterator[Recurrence]:
    """All recurrent loops of a body, outer before inner."""
    for it in body:
        if isinstance(it, Recurrence):
            yield it
            yield from recurrences(it.body)
