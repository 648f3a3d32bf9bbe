"""Temporaries that live inside an instruction: their values, as expressions over the axes that write them."""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Domain


@dataclass(frozen=True, slots=True)
class Leaf:
    """A read: an access, or a number; ``statement`` is the index of the statement that reads (``~`` of it where what is
    read is the destination that it accumulates to)."""

    access: Access | None
    statement: int
    dtype: str
    literal: float | int | bool | None = None


@dataclass(frozen=True, slots=True)
class Op:
    op: str
    dtype: str
    args: tuple[Expr, ...]


Expr = Leaf | Op


@dataclass(frozen=True, slots=True)
class Inside:
    """What ``expr`` says over the axes of ``domain`` lies at ``dest``."""

    dest: Access
    domain: Domain
    expr: Expr

    def read(self, at: Access, domain: Domain) -> Expr | str:
        """The value that a statement over ``domain`` reads; or why that cannot be said."""
        by: dict[str, Affine] = {}
        for row, read in zip(self.dest.index, at.index, strict=True):
            if _whole(row):
                by[row.names[0]] = read
                continue
            mine, theirs, still = _moving(row, self.domain), _moving(read, domain), _still(read, domain)
            digit, weights, wanted = dict((*still, *theirs)), {c for c, _ in theirs}, {c for c, _ in mine}
            if read.const or len(weights) < len(theirs) or not weights <= wanted <= digit.keys():
                return f"the temporary '{at.buffer}' is read at {at}, and written at {self.dest}"
            for c, name in _still(row, self.domain):  # 0, as is one that stands where it does
                by[name] = next((Affine.of(n) for k, n in still if k == c), Affine())
            for n, (c, name) in enumerate(mine):
                if n < len(mine) - 1 and _steps(domain, digit[c]) > _steps(self.domain, name):
                    return f"the temporary '{at.buffer}' is read at {at}, and written at {self.dest}, in fewer steps"
                by[name] = Affine.of(digit[c])
        return substitute(self.expr, by)


def numbering(dest: Access, domain: Domain) -> set[str] | None:
    """The axes in an index, where each element is written from one point of theirs: every row is an axis, or axes are
    the digits of a number. None where that cannot be said."""
    names = [n for row in dest.index for n in row.names]
    if len(set(names)) < len(names) or not set(names) <= set(domain.names):
        return None
    if not all(not row.const and digits(row, domain) for row in dest.index):
        return None
    return set(names)


def _moving(row: Affine, domain: Domain) -> list[tuple[int, str]]:
    """The weights of a row, with their axes, smallest first; but for axes of a single step, which are 0."""
    return sorted((c, name) for name, c in row.terms if _steps(domain, name) != 1)


def _still(row: Affine, domain: Domain) -> list[tuple[int, str]]:
    return [(c, name) for name, c in row.terms if _steps(domain, name) == 1]


def _whole(row: Affine) -> bool:
    return len(row.terms) == 1 and row.terms[0][1] == 1 and row.const == 0


def digits(row: Affine, domain: Domain) -> bool:
    """Whether the axes in a row are the digits of a number: each term is larger than all that the smaller ones can add
    up to, so that the number says where on its axes a point is."""
    most = 0.0
    for c, name in _moving(row, domain):
        if c <= most:
            return False
        most += c * max(0.0, _steps(domain, name) - 1)
    return bool(row.terms)


def same_digits(one: Affine, domain: Domain, two: Affine, other: Domain) -> dict[str, str]:
    """Axes of one row that have the value of one of the other wherever both rows are one number: its digits, of the
    same weights, each larger than all that the smaller ones can differ by. Empty where that does not show."""
    ours, theirs = (sorted((c, name) for name, c in row.terms) for row in (one, two))
    if [c for c, _ in ours] != [c for c, _ in theirs]:
        ours, theirs = _moving(one, domain), _moving(two, other)
    if [c for c, _ in ours] != [c for c, _ in theirs]:
        return {}
    apart, out = 0.0, {}
    for (c, a), (_, b) in zip(ours, theirs, strict=True):
        if c <= apart:
            return {}
        apart += c * max(0.0, _steps(domain, a) - 1, _steps(other, b) - 1)
        out[a] = b
    return out


def _steps(domain: Domain, axis: str) -> float:
    """Steps of an axis; infinitely many where they are known at run time only, or it is none."""
    extent = domain.extent(axis) if axis in domain.names else None
    return extent.const if extent is not None and extent.is_constant else float("inf")


def substitute(expr: Expr, by: dict[str, Affine]) -> Expr:
    if isinstance(expr, Op):
        return Op(expr.op, expr.dtype, tuple(substitute(a, by) for a in expr.args))
    if expr.access is None:
        return expr
    rows = tuple(r.substitute(by) for r in expr.access.index)
    return Leaf(Access(expr.access.buffer, rows), expr.statement, expr.dtype)
