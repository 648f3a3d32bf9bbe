"""Questions that the small prover cannot answer, put to isl: the last word of the static checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Statement
from isam.proof.boxes import TWICE, UNKNOWN, Box, Family, dim
from isam.proof.context import Context, Var
from isam.proof.digits import Layout, never_meet, one_system
from isam.proof.guards import covered_where
from isam.proof.witness import clash
from isam.schedule.tree import Bound

if TYPE_CHECKING:
    from isam.ir import poly

T = TypeVar("T")

FIRST, LEAST = 2_000, 20_000  # elementary steps that a question is given first; and that each may take, whatever did
MOST = 16_000_000  # of them, for one question of those that are asked of few things
BUDGET = 500_000  # steps of all questions about one schedule: families looked at, and what takes as long
STEP = 256  # elementary steps in the time of one of those
BYTES = "p ", "q "  # what the addresses of two layouts are called: as dimensions, see ``dim``
OUT = "more steps than the budget of the proof has"


@dataclass(slots=True)
class Isl:
    """Asks isl and counts the questions (a figure of the certificate). ``clashes``: answers already given, whatever the
    variables were called; ``unanswered``: questions that took too long, each of which halves the time of the next;
    ``left``: of the budget. Where nothing is left, nothing more is asked, and so not shown."""

    queries: int = 0
    left: int = BUDGET
    unanswered: int = 0
    clashes: dict[object, bool] = field(default_factory=dict)

    def spend(self, steps: int) -> bool:
        """Takes from the budget; whether it held them."""
        self.left = max(-1, self.left - steps)
        return self.left >= 0

    def refill(self) -> None:
        """The whole budget again, for another kind of questions."""
        self.left = BUDGET

    def nonneg(self, e: Affine, ctx: Context) -> bool:
        """Whether ``e >= 0`` for all values that the context admits."""
        from isam.ir import poly
        from isam.ir.relation import TooMuch, bounded

        self.queries += 1
        ge, eq, names = _constraints(ctx.vars)
        names = [*names, *(v.name for v in ctx.vars)]
        try:  # one of few about each step: not of the budget of those about all of them
            return bounded(lambda: poly.make((), [*ge, -e - 1], eq, names).is_empty())
        except TooMuch:
            return False

    def covers(
        self, target: Box, families: Iterable[Family], ctx: Context, where: tuple[Affine, ...], names: tuple[str, ...]
    ) -> bool:
        """Whether every point of ``target`` that satisfies ``where`` (over ``names``) is in some family."""
        from isam.ir import poly
        from isam.proof.counted import contained

        self.queries += 1
        dims, families = _dims(len(names)), list(families)
        ge = _over(where, names, dims)
        if where and self.spend(2 * len(families)) and covered_where(target, families, ctx, where, names):
            return True
        if where and self.spend(0) and (known := contained(target, families, ctx.vars, ge, self.spend)) is not None:
            return known
        given = poly.make((), *_constraints(ctx.vars))
        want = poly.make(dims, [*ge, *_box(target, dims)]).given(given)
        return self._halved(lambda: want.is_subset(self.union(families, dims)))

    def _shown(self, question: Callable[[], bool]) -> bool:
        """Whether isl shows it, within its budget: what takes longer is not shown."""
        from isam.ir.relation import TooMuch

        try:
            return self._answered(question, MOST)
        except TooMuch:
            return False

    def _halved(self, question: Callable[[], bool]) -> bool:
        """The same in the time that questions which took too long have left."""
        from isam.ir.relation import WORK, TooMuch

        try:
            return self._answered(question, max(LEAST, WORK >> self.unanswered))
        except TooMuch:
            self.unanswered += 1
            return False

    def _answered(self, question: Callable[[], T], most: int) -> T:
        """The answer, sought in few elementary steps first: isl does not tell how many it took. Raises ``TooMuch``."""
        from isam.ir.relation import TooMuch, bounded

        work = min(FIRST, most)
        while self.spend(max(1, work // STEP)):
            try:
                return bounded(question, work)
            except TooMuch:
                if work == most:
                    raise
            work = min(8 * work, most)
        raise TooMuch(OUT)

    def holds_written(
        self, writers: list[tuple[Statement, tuple[Axis, ...]]], families: list[Family], ctx: Context
    ) -> bool:
        """Whether everything that some statement writes is in some family."""
        from isam.ir import poly, poly_domain

        given = poly.make((), *_constraints(ctx.vars))
        for s, outer in writers:
            self.queries += 1
            domain = poly_domain.domain_set(s.domain, (), [(a.name, a.extent) for a in outer]).given(given)
            written = poly_domain.footprint(domain, s.dest)
            if not self._halved(lambda w=written, g=given: w.is_subset(self.union(families, w.names).given(g))):
                return False
        return True

    def apart(self, one: tuple[Domain, Sequence[Axis], Access], two: tuple[Domain, Sequence[Axis], Access]) -> bool:
        """Whether no point of a domain, with loops around it, touches an element of a buffer that one of another
        touches: what a triangle reads of the other one."""
        from isam.ir import poly_domain

        self.queries += 1

        def elements(of: tuple[Domain, Sequence[Axis], Access]) -> poly.Set:
            domain, outer, access = of
            points = poly_domain.domain_set(domain, (), [(a.name, a.extent) for a in outer])
            return poly_domain.footprint(points, access)

        return self._shown(lambda: elements(one).is_disjoint(elements(two)))

    def no_clash(self, one: Layout, two: Layout, size: tuple[int, int], same: bool, ctx: Context) -> bool:
        """Whether no byte belongs to an element of each layout, but (``same`` buffer) to one and the same element."""
        if _shifted(one, two):
            return False
        if same and one_system(one, two, size, ctx):
            return True
        if never_meet(one, two, size, ctx):
            return True
        key = _nameless(one, two, ctx.vars), size, same
        if key not in self.clashes:
            self.clashes[key] = not clash(one, two, size, same, ctx.vars) and self._no_clash(one, two, size, same, ctx)
        return self.clashes[key]

    def _no_clash(self, one: Layout, two: Layout, size: tuple[int, int], same: bool, ctx: Context) -> bool:
        self.queries += 1
        return self._shown(lambda: _apart(one, two, size, same, ctx))

    def parted(self, one: Family, two: Family, ctx: Context) -> bool:
        """Whether two families have no point in common."""
        from isam.ir import poly

        self.queries += 1
        dims = _dims(len(one.box))
        given = poly.make((), *_constraints(ctx.vars))
        return self._shown(lambda: self.family(one, dims).given(given).is_disjoint(self.family(two, dims)))

    def union(self, families: Iterable[Family], dims: tuple[str, ...]) -> poly.Set:
        from isam.ir import poly

        total = poly.make(dims, [Affine((), -1)])
        for f in families:
            total = total | self.family(f, dims)
        return total

    def family(self, f: Family, dims: tuple[str, ...]) -> poly.Set:
        from isam.ir import poly

        ge, eq, extra = _constraints(f.over)
        return poly.make(dims, [*ge, *_box(f.box, dims)], eq, [*extra, *(v.name for v in f.over)])

    def exactly_once(
        self,
        families: list[Family],
        sure: list[int],
        domain: Box,
        where: tuple[Affine, ...],
        names: tuple[str, ...],
        ctx: Context,
    ) -> tuple[bool, str]:
        """Whether the families hold every point of the domain once. ``sure``: ONCE, UNKNOWN or TWICE
        (see ``boxes.lifted``), per family."""
        from isam.ir import poly
        from isam.ir.relation import TooMuch
        from isam.proof.counted import counted

        dims = _dims(len(names))
        ge = _over(where, names, dims)
        if where and not ctx.vars and TWICE not in sure and (said := counted(families, domain, ge)) is not None:
            return not said, said
        self.queries += 2 * len(families) + 2
        given = poly.make((), *_constraints(ctx.vars))
        want = poly.make(dims, [*ge, *_box(domain, dims)]).given(given)
        try:
            return self._answered(lambda: self._once(families, sure, want, given), MOST)
        except TooMuch:
            return False, f"whether every point is executed once takes {OUT}"

    def _once(self, families: list[Family], sure: list[int], want: poly.Set, given: poly.Set) -> tuple[bool, str]:
        from isam.ir import poly

        dims = want.names
        have = poly.make(dims, [Affine((), -1)])
        for f, known in zip(families, sure, strict=True):
            part = self.family(f, dims).given(given)
            if part.is_empty():
                continue
            if known == TWICE or (known == UNKNOWN and not self._injective(f, dims, given)):
                return False, f"points are executed more than once: {_point(part)}"
            if not part.is_disjoint(have):
                return False, f"points are executed twice: {_point(part & have)}"
            have = have | part
        if not want.is_subset(have):
            return False, f"a point is never executed: {_point(want - have)}"
        if not have.is_subset(want):
            return False, f"a point outside the domain is executed: {_point(have - want)}"
        return True, ""

    def _injective(self, f: Family, dims: tuple[str, ...], given: poly.Set) -> bool:
        from isam.ir import poly

        ge, eq, extra = _constraints(f.over)
        names = [v.name for v in f.over]
        m = poly.relation(names, dims, [*ge, *_box(f.box, dims)], eq, extra).given(given)
        return m.is_injective()


def _dims(rank: int, prefix: str = "d") -> tuple[str, ...]:
    return tuple(dim(d, prefix) for d in range(rank))


def _over(where: Iterable[Affine], names: Iterable[str], dims: Iterable[str]) -> list[Affine]:
    """Conditions over dimensions of other names."""
    by = {n: Affine.of(d) for n, d in zip(names, dims, strict=True)}
    return [w.substitute(by) for w in where]


def _point(points: poly.Set) -> dict[str, int]:
    """An example, for a message."""
    return {n.rstrip(): v for n, v in (points.point() or {}).items()}


def _shifted(one: Layout, two: Layout) -> bool:
    """Two boxes of one form laid at one address: their first elements clash, unless they are the same. (No need to be
    told apart: to say that things may clash is always right.)"""
    if one[1:] != two[1:] or one[0] == two[0] or one[3] or len(one[0]) != len(two[0]):
        return False
    return all(b - a == d - c for (a, b), (c, d) in zip(one[0], two[0], strict=True))


def _apart(one: Layout, two: Layout, size: tuple[int, int], same: bool, ctx: Context) -> bool:
    """The question of ``no_clash`` in sets of pairs of addresses."""
    from isam.ir import poly

    given = poly.make((), *_constraints(ctx.vars))
    a, b = _addresses(one, "x", 0, given), _addresses(two, "y", 1, given)
    p, q = BYTES
    near = poly.relation((p,), (q,), [Affine.of(p, 1, size[0] - 1) - q, Affine.of(q, 1, size[1] - 1) - p])
    pairs = a.then(near).then(b.inverse())
    if not same:
        return pairs.is_empty()
    return pairs.is_subset(
        poly.relation(a.ins, b.ins, eq=[Affine.of(x) - y for x, y in zip(a.ins, b.ins, strict=True)])
    )


def _nameless(one: Layout, two: Layout, around: Iterable[Var]) -> object:
    """A question with numbers for names: equal ones have the same answer."""
    numbers: dict[str, int] = {}

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    def plain(e: Affine) -> object:
        return tuple([(number(n), c) for n, c in e.terms]), e.const

    def var(v: Var) -> object:
        bounds = tuple([tuple([(plain(b.expr), b.div) for b in side]) for side in (v.lo, v.hi)])
        return number(v.name), bounds, v.step, None if v.origin is None else plain(v.origin)

    sides = [
        (tuple([(plain(lo), plain(hi)) for lo, hi in box]), plain(offset), strides, tuple(map(var, over)))
        for box, offset, strides, over in (one, two)
    ]
    return tuple(sides), tuple(map(var, around))


def _addresses(layout: Layout, prefix: str, number: int, given: poly.Set) -> poly.Map:
    """From elements to their first bytes."""
    from isam.ir import poly

    box, offset, strides, over = layout
    dims, byte = _dims(len(box), prefix), BYTES[number]
    fresh = {v.name: Affine.of(f"{v.name}{number}") for v in over}
    over = tuple(
        Var(
            f"{v.name}{number}",
            tuple(Bound(b.expr.substitute(fresh), b.div) for b in v.lo),
            tuple(Bound(b.expr.substitute(fresh), b.div) for b in v.hi),
            v.step,
            None if v.origin is None else v.origin.substitute(fresh),
        )
        for v in over
    )
    box = tuple((lo.substitute(fresh), hi.substitute(fresh)) for lo, hi in box)
    at = offset.substitute(fresh) - byte
    for k, d, (lo, _) in zip(strides, dims, box, strict=True):
        at = at + (Affine.of(d) - lo) * k
    ge, eq, extra = _constraints(over)
    names = [v.name for v in over]
    return poly.relation(dims, (byte,), [*ge, *_box(box, dims)], [*eq, at], [*extra, *names]).given(given)


def _box(box: Box, dims: tuple[str, ...]) -> list[Affine]:
    return [e for (lo, hi), d in zip(box, dims, strict=True) for e in (Affine.of(d) - lo, hi - 1 - d)]


def _constraints(vars_: Iterable[Var]) -> tuple[list[Affine], list[Affine], list[str]]:
    """Inequalities, equations and existential names that say what the variables' values are."""
    ge: list[Affine] = []
    eq: list[Affine] = []
    extra: list[str] = []
    for v in vars_:
        ge += [Affine.of(v.name, b.div) - b.expr for b in v.lo]
        ge += [b.expr - Affine.of(v.name, b.div) for b in v.hi]
        if v.step != 1 and v.origin is not None:
            extra.append(f"{v.name} step")
            eq.append(Affine.of(v.name) - v.origin - Affine.of(extra[-1], v.step))
    return ge, eq, extra
