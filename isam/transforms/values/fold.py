"""Fold constants: neutral elements go, numbers are computed (TR-1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isfinite

from isam.classes import dataclass
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.reassociate import inner_of, position

Rule = Callable[[Kernel, Statement], Source | None]
ONE, ZERO = Literal(1), Literal(0)


def neutral(kernel: Kernel, s: Statement) -> Source | None:
    """``a * 1``, ``a / 1``, ``a - 0``, ``max(a, -inf)``, ``min(a, inf)``: the other operand, bit by bit."""
    if len(s.sources) != 2:
        return None
    a, b = s.sources
    idle = {"mul": ONE, "div": ONE, "sub": ZERO, "max": Literal(float("-inf")), "min": Literal(float("inf"))}.get(s.op)
    if b == idle:
        return a
    return b if a == idle and s.op in ("mul", "max", "min") else None


def zero_added(kernel: Kernel, s: Statement) -> Source | None:
    """``a + 0`` is ``a``, but for the sign of a zero."""
    if s.op != "add" or ZERO not in s.sources:
        return None
    a, b = s.sources
    return a if b == ZERO else b


def zero_times(kernel: Kernel, s: Statement) -> Source | None:
    """``a * 0`` is zero unless ``a`` is infinite or NaN."""
    return ZERO if s.op == "mul" and ZERO in s.sources else None


def numbers(kernel: Kernel, s: Statement) -> Source | None:
    """``2 + 3`` where every number and the result are exact in the dtype at hand."""
    dtype = kernel.buffer(s.dest.buffer).dtype
    values = [x.value for x in s.sources if isinstance(x, Literal)]
    if len(values) != len(s.sources) or not all(is_exact(v, dtype) for v in values):
        return None
    made = _value(s.op, [Fraction(v) for v in values])
    if made is None:
        return None
    zero = DTYPES[dtype].kind == "f" and not made
    out = _zero(s.op, values) if zero else float(made) if DTYPES[dtype].kind == "f" else int(made)
    return Literal(out) if Fraction(out) == made and is_exact(out, dtype) else None


@dataclass(frozen=True)
class Fold(Transform):
    """An operation with a number that makes it trivial is a copy."""

    law: str = "fold-neutral"  # type: ignore[misc]
    equation: str = "a * 1  =>  a   (likewise / 1, - 0, max -inf, min inf)"  # type: ignore[misc]
    rule: Rule = neutral
    needs: frozenset[str] = frozenset({"exact"})  # type: ignore[misc]
    model: frozenset[str] = frozenset({"division"})  # type: ignore[misc]

    kinds = frozenset({"operation", "literal", "axis-missing"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i)
            for i, s in enumerate(kernel.statements)
            if not s.accumulate and self.rule(kernel, s) not in (None, s.dest)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        i = site["statement"]
        s = kernel.statements[i]
        value = self.rule(kernel, s)
        assert value is not None
        new, origin = splice(kernel, {i: ((replace(s, op="copy", sources=(value,)), (i,)),)})
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The statement in question computes what need not be computed."""
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if s["statement"] == mismatch.about("statement"))


class FoldChain(Transform):
    """Two numbers in a chain of products, or of sums, are one number, where it is exact in the dtype."""

    law = "fold-chain"
    equation = "t = a op 2; y = t op 3  =>  y = a op (2 op 3)"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"operation", "literal", "axis-missing"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(inner=i, outer=j)
            for j in range(len(kernel.statements))
            for i in inner_of(kernel, j)
            if _joined(kernel, i, j) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["inner"], site["outer"]
        made = _joined(kernel, i, j) if i in inner_of(kernel, j) else None
        if made is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        gone = kernel.statements[i].dest.buffer
        new, origin = splice(kernel, {i: (), j: ((made, (i, j)),)})
        return Rewrite(new, Correspondence(origin, buffers=((gone, ()),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """One of the two operations is in question."""
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if mismatch.about("statement") in (s["inner"], s["outer"]))


def _joined(kernel: Kernel, i: int, j: int) -> Statement | None:
    """The chain as one statement, when both have a number and the two can be computed exactly."""
    inner, outer = kernel.statements[i], kernel.statements[j]
    other = outer.sources[1 - position(inner, outer)]
    mine = [x for x in inner.sources if isinstance(x, Literal)]
    if len(mine) != 1 or not isinstance(other, Literal):
        return None
    value = numbers(kernel, replace(outer, sources=(mine[0], other)))
    kept = next(x for x in inner.sources if x is not mine[0])
    return None if value is None else replace(outer, sources=(kept, value))


NOTHING: frozenset[str] = frozenset()
FOLDS: tuple[Transform, ...] = (
    Fold(),
    Fold("fold-numbers", "2 + 3  =>  5   (exact in the dtype)", numbers, model=NOTHING),
    Fold("fold-zero-added", "a + 0  =>  a", zero_added, frozenset({"rounding"}), NOTHING),
    Fold("fold-zero-times", "a * 0  =>  0", zero_times, frozenset({"finite"}), NOTHING),
    FoldChain(),
)


def is_exact(value: float | int | bool, dtype: str) -> bool:
    """Is the number one of the dtype, as it stands?"""
    if isinstance(value, bool) or not isfinite(value) or DTYPES[dtype].kind == "b":
        return False
    kind = numpy_dtype(dtype).type
    if DTYPES[dtype].kind == "f":
        return float(kind(float(value))) == value
    bits, signed = DTYPES[dtype].bits, DTYPES[dtype].kind == "i"
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return isinstance(value, int) and low <= value <= high


def _value(op: str, v: list[Fraction]) -> Fraction | None:
    """The ring operations only: of others the numbers of the machine and those of the oracle say different things."""
    if op in ("add", "sub", "mul"):
        a, b = v
        return {"add": a + b, "sub": a - b, "mul": a * b}[op]
    return -v[0] if op == "neg" else None


def _zero(op: str, v: Sequence[float]) -> float:
    """Which of the two zeros the numbers make, in every dtype of floats."""
    if op == "neg":
        return -float(v[0])
    a, b = map(float, v)
    return {"add": a + b, "sub": a - b, "mul": a * b}[op]

