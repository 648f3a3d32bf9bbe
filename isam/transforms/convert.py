"""Operator conversions: an operation in terms of others, for machines that lack it. A table; each row is one law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from isam.classes import dataclass
from isam.ir.dtype import DTYPES
from isam.ir.kernel import BINARY, Access, Buffer, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, names_in, splice, within_step
from isam.transforms.law import Correspondence, Rewrite, Site, Transform


class Draft:
    """Collects the statements that replace one: each ``put`` is one operation into a new temporary."""

    def __init__(self, kernel: Kernel, at: int):
        self.kernel, self.old = kernel, kernel.statements[at]
        self.dest: Source = self.old.dest
        self.dtype = kernel.buffer(self.old.dest.buffer).dtype
        self.made: list[Statement] = []
        self.buffers: list[Buffer] = []
        self.taken = names_in(kernel)

    def put(self, op: str, *sources: Source, dtype: str = "") -> Access:
        """A temporary as the destination holding ``op(*sources)``."""
        name = fresh(self.taken, "v")
        self.taken.add(name)
        buffer, dest = within_step(self.kernel, self.old, name, dtype or self.dtype)
        self.buffers.append(buffer)
        self.made.append(replace(self.old, dest=dest, op=op, sources=sources, accumulate=False))
        return dest

    def end(self, op: str, *sources: Source) -> None:
        """The last operation, into the old destination."""
        self.made.append(replace(self.old, op=op, sources=sources, accumulate=False))

    def choose(self, condition: Source, yes: Source, no: Source) -> None:
        """``yes`` where the condition holds, else ``no``: the language selects in place."""
        name = self.old.dest.buffer
        own = any(isinstance(x, Access) and x.buffer == name for x in (condition, yes, no))
        at = self.put("copy", no) if own else self.old.dest
        if not own:
            self.end("copy", no)
        self.made.append(replace(self.old, dest=at, op="select", sources=(condition, yes), accumulate=True))
        if own:
            self.end("copy", at)


class _Operations:
    """Stands in for a draft to learn which operations a row of the table makes."""

    dest: Source = Literal(0)

    def __init__(self) -> None:
        self.made: set[str] = set()

    def put(self, op: str, *_: Source, dtype: str = "") -> Source:
        self.made.add(op)
        return Literal(0)

    def end(self, op: str, *_: Source) -> None:
        self.made.add(op)

    def choose(self, *_: Source) -> None:
        self.made |= {"copy", "select"}


ONE, HALF, TWO = Literal(1), Literal(0.5), Literal(2)


def _sub(d: Draft, a: Source, b: Source) -> None:
    d.end("add", a, d.put("neg", b))


def _neg(d: Draft, a: Source) -> None:
    d.end("mul", a, Literal(-1))


def _div(d: Draft, a: Source, b: Source) -> None:
    d.end("mul", a, d.put("div", ONE, b))


def _abs(d: Draft, a: Source) -> None:
    d.end("max", a, d.put("neg", a))


def _max(d: Draft, a: Source, b: Source) -> None:
    d.choose(d.put("gt", a, b, dtype="bool"), a, b)


def _min_select(d: Draft, a: Source, b: Source) -> None:
    d.choose(d.put("lt", a, b, dtype="bool"), a, b)


def _min_max(d: Draft, a: Source, b: Source) -> None:
    d.end("neg", d.put("max", d.put("neg", a), d.put("neg", b)))


def _add(d: Draft, a: Source, b: Source) -> None:
    d.end("sub", a, d.put("neg", b))


def _neg_sub(d: Draft, a: Source) -> None:
    d.end("sub", Literal(0), a)


def _times_one(d: Draft, a: Source) -> None:
    d.end("mul", a, ONE)


def _plus_zero(d: Draft, a: Source) -> None:
    d.end("add", a, Literal(0))


def _of_itself(d: Draft, a: Source) -> None:
    d.end("max", a, a)


def _twice(d: Draft, a: Source, b: Source) -> None:
    d.end("add", *((a, a) if b == TWO else (b, b)))


def _select(d: Draft, c: Source, a: Source) -> None:
    b = d.dest
    d.end("add", b, d.put("mul", d.put("cast", c), d.put("sub", a, b)))


def _ceil(d: Draft, a: Source) -> None:
    d.end("neg", d.put("floor", d.put("neg", a)))


def _floor(d: Draft, a: Source) -> None:
    d.end("neg", d.put("ceil", d.put("neg", a)))


def _inverted(op: str) -> Callable[..., None]:
    def build(d: Draft, a: Source, b: Source) -> None:
        d.end("not", d.put(op, a, b))

    return build


def _and(d: Draft, a: Source, b: Source) -> None:
    d.choose(a, b, Literal(False))


def _or(d: Draft, a: Source, b: Source) -> None:
    d.choose(a, Literal(True), b)


def _not(d: Draft, a: Source) -> None:
    d.choose(a, Literal(False), Literal(True))


def _sqrt(d: Draft, a: Source) -> None:
    d.end("div", ONE, d.put("rsqrt", a))


def _tanh_sigmoid(d: Draft, a: Source) -> None:
    d.end("sub", d.put("mul", d.put("sigmoid", d.put("mul", a, TWO)), TWO), ONE)


def _tanh_exp(d: Draft, a: Source) -> None:
    d.end("sub", d.put("div", TWO, d.put("add", d.put("exp", d.put("mul", a, Literal(-2))), ONE)), ONE)


def _arrays(s: Statement) -> bool:
    return all(isinstance(x, Access) for x in s.sources)


def _has_two(s: Statement) -> bool:
    return TWO in s.sources and any(isinstance(x, Access) for x in s.sources)


def _chosen(s: Statement) -> bool:
    return isinstance(s.sources[0], Access)


def _typed(s: Statement) -> bool:
    """A comparison in which an array says what is compared."""
    return any(isinstance(x, Access) for x in s.sources)


def _rsqrt(d: Draft, a: Source) -> None:
    d.end("div", ONE, d.put("sqrt", a))


def _sigmoid_exp(d: Draft, a: Source) -> None:
    d.end("div", ONE, d.put("add", d.put("exp", d.put("neg", a)), ONE))


def _sigmoid_tanh(d: Draft, a: Source) -> None:
    d.end("add", d.put("mul", d.put("tanh", d.put("mul", a, HALF)), HALF), HALF)


def _any(s: Statement) -> bool:
    return True


@dataclass(frozen=True)
class Convert(Transform):
    """One row of the table. ``kinds_of``: dtype kinds of the result where it holds (``f`` floats, ``i`` signed, ``u``
    unsigned, ``b`` bool); ``where``: what else a statement must be."""

    law: str  # type: ignore[misc]
    equation: str  # type: ignore[misc]
    op: str
    build: Callable[..., None]
    needs: frozenset[str] = frozenset({"exact"})  # type: ignore[misc]
    kinds_of: str = "f"
    judge: str = "residues"  # type: ignore[misc]
    model: frozenset[str] = frozenset()  # type: ignore[misc]
    where: Callable[[Statement], bool] = _any

    kinds = frozenset({"operation", "literal"})
    grows = True

    @property
    def replaces(self) -> str:
        return self.op

    @cached_property
    def makes(self) -> frozenset[str]:  # type: ignore[override]
        """The operations of the row's right side."""
        seen = _Operations()
        self.build(seen, *(Literal(0) for _ in range(2 if self.op in (*BINARY, "select") else 1)))
        return frozenset(seen.made)

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(Site.of(statement=i) for i in range(len(kernel.statements)) if self._holds(kernel, i))

    def _holds(self, kernel: Kernel, i: int) -> bool:
        s = kernel.statements[i]
        kind = DTYPES[kernel.buffer(s.dest.buffer).dtype].kind
        trivial = self.op == "div" and s.sources[0] == ONE
        if s.op == self.op and s.accumulate == (s.op == "select"):
            return kind in self.kinds_of and not trivial and self.where(s)
        return False

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i = site["statement"]
        draft = Draft(kernel, i)
        self.build(draft, *kernel.statements[i].sources)
        parts = {i: tuple((s, (i,)) for s in draft.made)}
        new, origin = splice(kernel, parts, buffers=(*kernel.buffers, *draft.buffers))
        meanings = tuple((b.name, f"part of {kernel.statements[i].dest}") for b in draft.buffers)
        return Rewrite(new, Correspondence(origin, meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """Answers a statement whose operation no instruction has, or only with other numbers in it (``1 / x``), or in
        whose place an instruction needs an operation that this row makes."""
        need, spelt = mismatch.about("need"), mismatch.kind == "literal" and self.op == "div"
        made = isinstance(need, tuple) and need[0] in self.makes and not need[1]
        if not self.answers(mismatch) or not (mismatch.about("missing") or spelt or made):
            return ()
        return tuple(s for s in self.sites(kernel) if s["statement"] == mismatch.about("statement"))


ROUNDS, FINITE = frozenset({"rounding"}), frozenset({"finite"})
CONVERSIONS: tuple[Convert, ...] = (
    Convert("sub-by-add", "a - b  =>  a + (-b)", "sub", _sub, kinds_of="fiu"),
    Convert("neg-by-mul", "-a  =>  a * -1", "neg", _neg, kinds_of="fi"),
    Convert("div-by-reciprocal", "a / b  =>  a * (1 / b)", "div", _div, ROUNDS, model=frozenset({"division"})),
    Convert("abs-by-max", "abs(a)  =>  max(a, -a)", "abs", _abs, ROUNDS, kinds_of="fi"),
    Convert("max-by-select", "max(a, b)  =>  select(a > b, a, b)", "max", _max, FINITE, kinds_of="fiu"),
    Convert("min-by-select", "min(a, b)  =>  select(a < b, a, b)", "min", _min_select, FINITE, kinds_of="fiu"),
    Convert("min-by-max", "min(a, b)  =>  -max(-a, -b)", "min", _min_max, judge="interpreter"),
    Convert("select-by-arithmetic", "y = a where c  =>  y = y + c * (a - y)", "select", _select, ROUNDS | FINITE,
            kinds_of="fiu", where=_chosen),
    Convert("add-by-sub", "a + b  =>  a - (-b)", "add", _add, kinds_of="fiu"),
    Convert("neg-by-sub", "-a  =>  0 - a", "neg", _neg_sub, ROUNDS, kinds_of="fi"),
    Convert("copy-by-mul", "a  =>  a * 1", "copy", _times_one, kinds_of="fiu", where=_arrays),
    Convert("copy-by-add", "a  =>  a + 0", "copy", _plus_zero, ROUNDS, kinds_of="fiu", where=_arrays),
    Convert("copy-by-max", "a  =>  max(a, a)", "copy", _of_itself, kinds_of="fiu", where=_arrays),
    Convert("twice-by-add", "a * 2  =>  a + a", "mul", _twice, kinds_of="fiu", where=_has_two),
    Convert("ceil-by-floor", "ceil(a)  =>  -floor(-a)", "ceil", _ceil, judge="interpreter"),
    Convert("floor-by-ceil", "floor(a)  =>  -ceil(-a)", "floor", _floor, judge="interpreter"),
    Convert("ge-by-lt", "a >= b  =>  not (a < b)", "ge", _inverted("lt"), FINITE, kinds_of="b", where=_typed),
    Convert("le-by-gt", "a <= b  =>  not (a > b)", "le", _inverted("gt"), FINITE, kinds_of="b", where=_typed),
    Convert("ne-by-eq", "a != b  =>  not (a == b)", "ne", _inverted("eq"), kinds_of="b", where=_typed),
    Convert("eq-by-ne", "a == b  =>  not (a != b)", "eq", _inverted("ne"), kinds_of="b", where=_typed),
    Convert("and-by-select", "a and b  =>  select(a, b, false)", "and", _and, kinds_of="b", where=_arrays),
    Convert("or-by-select", "a or b  =>  select(a, true, b)", "or", _or, kinds_of="b", where=_arrays),
    Convert("not-by-select", "not a  =>  select(a, false, true)", "not", _not, kinds_of="b", where=_arrays),
    Convert("sqrt-by-rsqrt", "sqrt(a)  =>  1 / rsqrt(a)", "sqrt", _sqrt, ROUNDS, judge="float bound"),
    Convert("tanh-by-sigmoid", "tanh(a)  =>  2 * sigmoid(2 * a) - 1", "tanh", _tanh_sigmoid, ROUNDS,
            judge="float bound"),
    Convert("tanh-by-exp", "tanh(a)  =>  2 / (1 + exp(-2 * a)) - 1", "tanh", _tanh_exp, ROUNDS, judge="float bound"),
    Convert("rsqrt-by-sqrt", "rsqrt(a)  =>  1 / sqrt(a)", "rsqrt", _rsqrt, ROUNDS, judge="float bound"),
    Convert("sigmoid-by-tanh", "sigmoid(a)  =>  tanh(a / 2) / 2 + 1 / 2", "sigmoid", _sigmoid_tanh, ROUNDS,
            judge="float bound"),
    Convert("sigmoid-by-exp", "sigmoid(a)  =>  1 / (1 + exp(-a))", "sigmoid", _sigmoid_exp, ROUNDS,
            judge="float bound"),
)  # fmt: skip
