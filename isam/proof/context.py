"""What is known of loop variables and sizes, and a small prover of affine inequalities over them.

A :class:`Context` is a chain of variables, outermost first, each with affine bounds over those before it. It proves
``e >= 0`` by replacing the innermost variable by the bound that is worst for it, again and again: sound, never
complete (isl answers the rest, see ``isam.proof.sets``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from functools import lru_cache

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.schedule.tree import Bound, Loop, Seq


@dataclass(frozen=True, slots=True)
class Var:
    """``name`` is at least every ``lo`` and at most every ``hi`` (inclusive), and ``origin + step * t`` if known."""

    name: str
    lo: tuple[Bound, ...]
    hi: tuple[Bound, ...]
    step: int = 1
    origin: Affine | None = None


@dataclass(slots=True, eq=False)
class Context:
    """A chain of variables. Immutable in use: :meth:`with_var` makes another one, always the same with the same
    variable, so that what was found out with it is not sought again."""

    vars: tuple[Var, ...] = ()
    inside: dict[tuple[Affine, int, Affine], bool] = field(
        default_factory=dict
    )  # (start, span, extent): see ``bounds``
    placed: set[tuple[int, int]] = field(default_factory=set)  # operands, by identity, that are: see ``bounds``
    _lower: dict[tuple[tuple[str, int], ...], int | None] = field(default_factory=dict)
    _upper: dict[tuple[tuple[str, int], ...], int | None] = field(default_factory=dict)
    _le: dict[tuple[Affine, Affine], bool] = field(default_factory=dict)
    _left: dict[tuple[int, tuple[tuple[str, int], ...]], int | None] = field(default_factory=dict)  # see ``remainder``
    _at: dict[str, int] = field(default_factory=dict)
    _more: dict[Var, Context] = field(default_factory=dict)  # see ``with_var``
    _given: dict[Affine, Context | None] = field(default_factory=dict)  # see ``given``; None: itself

    def __post_init__(self) -> None:
        self._at = {v.name: i for i, v in enumerate(self.vars)}
        reached = tuple(map(self.reached, self.vars))
        if reached != self.vars:
            self.vars = reached
            self._lower.clear()  # found with the bounds as they were given
            self._upper.clear()
            self._le.clear()

    def with_var(self, var: Var) -> Context:
        got = self._more.get(var)
        if got is None:
            got = self._more[var] = Context((*(v for v in self.vars if v.name != var.name), var))
        return got

    def at(self, var: Var, value: Affine) -> Context:
        """What is known where a variable has a value."""
        return self.with_var(Var(var.name, (Bound(value), *var.lo), (Bound(value), *var.hi), var.step, value))

    def with_vars(self, more: Iterable[Var]) -> Context:
        out = self
        for v in more:
            out = out.with_var(v)
        return out

    def given(self, e: Affine) -> Context:
        """What is known where ``e >= 0``, too: a bound more of the innermost variable in it."""
        if e not in self._given:
            self._given[e] = self._bounded(e)
        return self._given[e] or self

    def entered(self, var: Var) -> Context:
        """What is known where a variable has a value: no lower bound of it is beyond an upper one."""
        out = self
        for lo in var.lo:
            for hi in var.hi:
                out = out.given(hi.expr * lo.div - lo.expr * hi.div)
        return out.with_var(var)

    def _bounded(self, e: Affine) -> Context | None:
        """None where that says nothing more."""
        at = max((self.depth(n) for n in e.names), default=-1)
        if at < 0 or any(n not in self._at for n in e.names):
            return None
        v = self.vars[at]
        c = e.coefficient(v.name)
        rest = e - Affine.of(v.name, c)
        more = replace(v, lo=(*v.lo, Bound(-rest, c))) if c > 0 else replace(v, hi=(*v.hi, Bound(rest, -c)))
        out = Context((*self.vars[:at], more, *self.vars[at + 1 :]))
        for b in v.hi if c > 0 else v.lo:  # the new bound is not beyond those on the other side: of variables outside
            told = b.expr * c + rest * b.div
            if not out.nonneg(told):
                out = out.given(told)
        return out

    def reached(self, var: Var) -> Var:
        """The variable with upper bounds that it reaches, where it is known by how much its steps miss them."""
        if var.step == 1 or var.origin is None:
            return var
        missed = [self.remainder(var.step, b.expr - var.origin) if b.div == 1 else None for b in var.hi]
        if not any(missed):
            return var
        reached = (Bound(b.expr - (m or 0), b.div) for b, m in zip(var.hi, missed, strict=True))
        return replace(var, hi=tuple(dict.fromkeys(reached)))

    def var(self, name: str) -> Var | None:
        i = self._at.get(name)
        return None if i is None else self.vars[i]

    def depth(self, name: str) -> int:
        """How many variables stand outside a variable; -1 where it is none of these."""
        return self._at.get(name, -1)

    def lower(self, e: Affine) -> int | None:
        """A number that ``e`` is never below, or ``None`` when none was found."""
        if not e.terms:
            return e.const
        terms = e.terms
        if terms not in self._lower:
            self._lower[terms] = self._search(Affine(terms))
        got = self._lower[terms]
        return None if got is None else got + e.const

    def upper(self, e: Affine) -> int | None:
        """A number that ``e`` is never above, or ``None`` when none was found."""
        if not e.terms:
            return e.const
        terms = e.terms
        if terms not in self._upper:
            low = self.lower(-Affine(terms))
            self._upper[terms] = None if low is None else -low
        got = self._upper[terms]
        return None if got is None else got + e.const

    def _search(self, e: Affine) -> int | None:
        if not e.terms:
            return e.const
        at = -1
        for n, _ in e.terms:
            i = self._at.get(n, -1)
            if i < 0:
                return None
            at = max(at, i)
        v = self.vars[at]
        c = e.coefficient(v.name)
        rest = e - Affine.of(v.name, c)
        best: int | None = None
        for b in v.lo if c > 0 else v.hi:
            if c % b.div == 0:
                got = self.lower(rest + b.expr * (c // b.div))
            else:
                scaled = self.lower(rest * b.div + b.expr * c)
                got = None if scaled is None else -(-scaled // b.div)
            if got is not None and (best is None or got > best):
                best = got
        return best

    def nonneg(self, e: Affine) -> bool:
        low = self.lower(e)
        return low is not None and low >= 0

    def le(self, a: Affine | int, b: Affine | int) -> bool:
        """Whether ``a <= b`` is proved."""
        if type(a) is not Affine or type(b) is not Affine:
            a, b = Affine.lift(a), Affine.lift(b)
        if a.terms == b.terms:
            return a.const <= b.const
        key = a, b
        if key not in self._le:
            self._le[key] = self.nonneg(b - a)
        return self._le[key]

    def equal(self, a: Affine, b: Affine) -> bool:
        """Whether ``a == b`` is proved."""
        if a == b:
            return True
        d = a - b
        return self.nonneg(d) and self.nonneg(-d)

    def divides(self, n: int, e: Affine) -> bool:
        """Whether ``e`` is proved a multiple of ``n``."""
        return self.remainder(n, e) == 0

    def remainder(self, n: int, e: Affine) -> int | None:
        """``e`` modulo ``n`` where it is the same number for all values, or ``None``."""
        if n == 1:
            return 0
        key = (n, e.terms)
        if key not in self._left:
            self._left[key] = self._remainder(n, Affine(e.terms))
        left = self._left[key]
        return None if left is None else (left + e.const) % n

    def _remainder(self, n: int, e: Affine) -> int | None:
        for _ in range(len(self.vars) + 1):
            left = [(self._at.get(m, -1), c) for m, c in e.terms if c % n]
            if not left:
                return e.const % n
            i, c = max(left)
            v = self.vars[i] if i >= 0 else None
            if v is None or v.origin is None:
                return None
            if (c * v.step) % n and not self.equal(Affine.of(v.name), v.origin):  # it has other values
                return None
            e = e - Affine.of(v.name, c) + v.origin * c
        return None


def loop_var(loop: Loop, part: str = "any") -> Var:
    """The variable of a loop: over all iterations, the ``first`` only, or ``rest`` (all but the first)."""
    return _loop_var(loop.var, loop.lo, loop.hi, loop.step, part)


@lru_cache(maxsize=1024)
def _loop_var(var: str, lo: tuple[Bound, ...], hi: tuple[Bound, ...], step: int, part: str) -> Var:
    loop = Loop(var, lo, hi, step, Seq())
    lo, hi = loop.lo, tuple(Bound(b.expr - b.div, b.div) for b in loop.hi)
    origin = loop.lo[0].expr if len(loop.lo) == 1 and loop.lo[0].div == 1 else None
    last = last_value(loop)
    if last is not None:
        hi = (*hi, Bound(last))
    if part == "first" and origin is not None:
        return Var(loop.var, (Bound(origin),), (Bound(origin), *hi), loop.step, origin)
    if part == "rest":
        lo = tuple(Bound(b.expr + b.div * loop.step, b.div) for b in lo)
    return Var(loop.var, lo, hi, loop.step, origin)


def last_value(loop: Loop) -> Affine | None:
    """The value of the last iteration when it is affine (given that there is one)."""
    if len(loop.lo) != 1 or loop.lo[0].div != 1:
        s = loop.static
        return None if s is None else Affine((), s[0] + loop.step * ((loop.trip or 1) - 1))
    if loop.trip is not None:
        return loop.lo[0].expr + loop.step * (max(1, loop.trip) - 1)
    if len(loop.hi) != 1 or loop.hi[0].div != 1:
        return None
    d = loop.hi[0].expr - loop.lo[0].expr
    if all(c % loop.step == 0 for c in (d.const, *(c for _, c in d.terms))):
        return loop.hi[0].expr - loop.step
    return None


def runs_once(loop: Loop) -> bool:
    """Whether there is one iteration at most: two values would lie further apart than a lower and an upper bound."""
    return any(lo.div == hi.div and (d := hi.expr - lo.expr).is_constant and d.const < hi.div * (loop.step + 1)
               for lo in loop.lo for hi in loop.hi)  # fmt: skip


def runs_surely(loop: Loop, ctx: Context) -> bool:
    """Whether at least one iteration happens for all admitted values: also where neither bound divides what it is of,
    so that the first value is above its quotient and the last one below."""
    t = loop.trip
    if t is not None:
        return t > 0
    return all(
        ctx.nonneg(h.expr * lo.div - lo.expr * h.div - min(h.div * (2 * lo.div - 1), lo.div * (2 * h.div - 1)))
        for h in loop.hi
        for lo in loop.lo
    )


def of_sizes(syms: Iterable[Sym]) -> Context:
    """What is known of the sizes that are run-time values."""
    out = []
    for s in syms:
        lo, hi = (Bound(Affine((), s.lo)),), () if s.hi is None else (Bound(Affine((), s.hi)),)
        if s.whole is not None:
            of, n = s.whole
            lo, hi = (*lo, Bound(Affine.of(of, 1, 1 - n), n)), (*hi, Bound(Affine.of(of), n))
        out.append(Var(s.name, lo, hi, s.multiple_of, Affine()))
    return Context(tuple(out))


def before(var: Var, limit: str, fresh: str) -> Var:
    """The variable of an earlier iteration: same origin and step, below ``limit`` (the current one)."""
    return replace(var, name=fresh, hi=(*var.hi, Bound(Affine.of(limit, 1, -var.step))))
