"""Operator conversions: an operation in terms of others, for machines that lack it. A table; each row is one law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from isam.ir.dtype import DTYPES
from isam.ir.kernel import BINARY, Access, Buffer, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, names_in, splice
from isam.transforms.law import Correspondence, Rewrite, Site, Transform


class Draft:
    """Collects the statements that replace one: each ``put`` is one operation into a new temporary."""

    def __init__(self, kernel: Kernel, at: int):
        self.kernel, self.old = kernel, kernel.statements[at]
        self.dtype = kernel.buffer(self.old.dest.buffer).dtype
        self.made: list[Statement] = []
        self.buffers: list[Buffer] = []
        self.taken = names_in(kernel)

    def put(self, op: str, *sources: Source, dtype: str = "") -> Access:
        """A temporary with the destination's index holding ``op(*sources)``."""
        name = fresh(self.taken, "v")
        self.taken.add(name)
        like = self.kernel.buffer(self.old.dest.buffer)
        self.buffers.append(Buffer(name, like.shape, dtype or self.dtype, "temp", declared=True))
        dest = Access(name, self.old.dest.index, self.old.loc)
        self.made.append(replace(self.old, dest=dest, op=op, sources=sources))
        return dest

    def choose(self, condition: Access, value: Source, otherwise: Access) -> None:
        """The last operation: ``value`` where the condition holds, else what is there."""
        self.made.append(replace(self.old, dest=otherwise, op="select", sources=(condition, value), accumulate=True))
        self.end("copy", otherwise)

    def end(self, op: str, *sources: Source) -> None:
        """The last operation, into the old destination."""
        self.made.append(replace(self.old, op=op, sources=sources))


class _Operations:
    """Stands in for a draft to learn which operations a row of the table makes."""

    def __init__(self) -> None:
        self.made: set[str] = set()

    def put(self, op: str, *_: Source, dtype: str = "") -> Source:
        self.made.add(op)
        return Literal(0)

    def choose(self, *_: Source) -> None:
        self.made.add("select")

    def end(self, op: str, *_: Source) -> None:
        self.made.add(op)


ONE, HALF = Literal(1), Literal(0.5)


def _sub(d: Draft, a: Source, b: Source) -> None:
    d.end("add", a, d.put("neg", b))


def _neg(d: Draft, a: Source) -> None:
    d.end("mul", a, Literal(-1))


def _div(d: Draft, a: Source, b: Source) -> None:
    d.end("mul", a, d.put("div", ONE, b))


def _abs(d: Draft, a: Source) -> None:
    d.end("max", a, d.put("neg", a))


def _max(d: Draft, a: Source, b: Source) -> None:
    d.choose(d.put("gt", a, b, dtype="bool"), a, d.put("copy", b))


def _rsqrt(d: Draft, a: Source) -> None:
    d.end("div", ONE, d.put("sqrt", a))


def _sigmoid_exp(d: Draft, a: Source) -> None:
    d.end("div", ONE, d.put("add", d.put("exp", d.put("neg", a)), ONE))


def _sigmoid_tanh(d: Draft, a: Source) -> None:
    d.end("add", d.put("mul", d.put("tanh", d.put("mul", a, HALF)), HALF), HALF)


@dataclass(frozen=True)
class Convert(Transform):
    """One row of the table. ``kinds_of``: dtype kinds where it holds (``f`` floats, ``i`` signed, ``u`` unsigned)."""

    law: str  # type: ignore[misc]
    equation: str  # type: ignore[misc]
    op: str
    build: Callable[..., None]
    needs: frozenset[str] = frozenset({"exact"})  # type: ignore[misc]
    kinds_of: str = "f"
    judge: str = "residues"  # type: ignore[misc]
    model: frozenset[str] = frozenset()  # type: ignore[misc]

    kinds = frozenset({"operation", "literal"})
    grows = True

    @property
    def makes(self) -> frozenset[str]:  # type: ignore[override]
        """The operations of the row's right side."""
        seen = _Operations()
        self.build(seen, *(Literal(0) for _ in range(2 if self.op in BINARY else 1)))
        return frozenset(seen.made)

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(Site.of(statement=i) for i in range(len(kernel.statements)) if self._holds(kernel, i))

    def _holds(self, kernel: Kernel, i: int) -> bool:
        s = kernel.statements[i]
        kind = DTYPES[kernel.buffer(s.dest.buffer).dtype].kind
        trivial = self.op == "div" and s.sources[0] == ONE
        return s.op == self.op and not s.accumulate and kind in self.kinds_of and not trivial

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
        need = mismatch.about("need")
        made = isinstance(need, tuple) and need[0] in self.makes and not need[1]
        if not self.answers(mismatch) or not (mismatch.about("missing") or mismatch.kind == "literal" or made):
            return ()
        return tuple(s for s in self.sites(kernel) if s["statement"] == mismatch.about("statement"))


ROUNDS, FINITE = frozenset({"rounding"}), frozenset({"finite"})
CONVERSIONS: tuple[Convert, ...] = (
    Convert("sub-by-add", "a - b  =>  a + (-b)", "sub", _sub, kinds_of="fiu"),
    Convert("neg-by-mul", "-a  =>  a * -1", "neg", _neg, kinds_of="fi"),
    Convert("div-by-reciprocal", "a / b  =>  a * (1 / b)", "div", _div, ROUNDS, model=frozenset({"division"})),
    Convert("abs-by-max", "abs(a)  =>  max(a, -a)", "abs", _abs, ROUNDS, kinds_of="fi"),
    Convert("max-by-select", "max(a, b)  =>  select(a > b, a, b)", "max", _max, FINITE, kinds_of="fiu"),
    Convert("rsqrt-by-sqrt", "rsqrt(a)  =>  1 / sqrt(a)", "rsqrt", _rsqrt, ROUNDS, judge="float bound"),
    Convert("sigmoid-by-tanh", "sigmoid(a)  =>  tanh(a / 2) / 2 + 1 / 2", "sigmoid", _sigmoid_tanh, ROUNDS,
            judge="float bound"),
    Convert("sigmoid-by-exp", "sigmoid(a)  =>  1 / (1 + exp(-a))", "sigmoid", _sigmoid_exp, ROUNDS,
            judge="float bound"),
)  # fmt: skip
