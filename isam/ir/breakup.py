"""Expressions to three-operand statements (IR-2): one operation each, sub-expressions in undeclared temporaries. What
stands twice in an assignment is computed once, but for the factors of a square."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from isam.diagnostics import Loc
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.expressions import Fault
from isam.ir.kernel import Access, Axis, Domain, Literal, Source, Statement
from isam.ir.ranges import lower, nonnegative, upper
from isam.ir.syntax import Assign, Call, Expr, Name, Number, Ref

if TYPE_CHECKING:
    from isam.ir.lower import Lowering

NOT_HERE = {"floordiv": ("//", "write floor(a / b); of whole numbers a / b, which cuts off"),
            "mod": ("%", "write a - b * floor(a / b); of whole numbers a - b * (a / b)"),
            "power": ("**", "write pow(a, b)")}


class Breaker:
    """Breaks the assignments of one block; the statements collect in ``out``. ``known``: the temporaries of the
    assignment at hand, by what they hold; ``vague``: those that are made of numbers alone, whose dtype is what their
    place wants; ``read``: what it reads; ``around``: the recurrent loops around the block."""

    def __init__(self, host: Lowering, domain: Domain, outer: Breaker | None = None, around: tuple[Axis, ...] = ()):
        self.host, self.domain = host, domain
        self.out: list[Statement] = []
        self.known: dict[tuple[object, ...], Access] = {} if outer is None else outer.known
        self.vague: set[str] = set() if outer is None else outer.vague
        self.read: list[Access] = [] if outer is None else outer.read
        self.around = around

    def assign(self, a: Assign) -> None:
        dest, before = None, len(self.out)
        self.known.clear()
        self.read.clear()
        try:
            dest = self.host.access(a.dest.name, a.dest.index, a.dest.loc)
        except Fault:
            self._operand(a.value)  # for its own faults
        if dest is None:
            raise Fault
        if a.op:
            self._emit(self.domain, dest, a.op, (self._operand(a.value),), a.loc, accumulate=True)
        else:
            self._into(self.domain, dest, a.value, a.loc)
        own = {(str(x), x.loc): x for x in self.read if x.buffer == dest.buffer and len(x.index) == len(dest.index)}
        if own and len(self.out) > before + 1:
            whole = Statement(self.domain, dest, a.op or "copy", tuple(own.values()), bool(a.op), a.loc)
            self.host.broken_up.append((whole, self.around))

    def _operands(self, args: tuple[Expr, ...]) -> tuple[Source, ...]:
        """Every operand; faults of all of them are reported."""
        out: list[Source] = []
        for e in args:
            try:
                out.append(self._operand(e))
            except Fault:
                continue
        if len(out) < len(args):
            raise Fault
        return tuple(out)

    def _emit(
        self, domain: Domain, dest: Access, op: str, sources: tuple[Source, ...], loc: Loc, accumulate: bool = False
    ) -> None:
        self.out.append(Statement(domain, dest, op, sources, accumulate, loc))

    def _into(self, domain: Domain, dest: Access, e: Expr, loc: Loc) -> None:
        """``dest = e`` over ``domain``, whose box covers everything that ``e`` mentions."""
        if not isinstance(e, Call):
            self._emit(domain, dest, "copy", (self._operand(e),), loc)
        elif e.op == "select":
            self._select(domain, dest, e, loc)
        elif (target := _target(e.op)) is not None:
            self._cast(domain, dest, e, target, loc)
        else:
            self._known(e)
            if e.op == "pow" and self._number(e.args[1]) == 2:
                e = replace(e, op="mul", args=(e.args[0], e.args[0]))
            if (folded := self._fold(e)) is not None:
                self._emit(domain, dest, "copy", (folded,), loc)
            else:
                self._emit(domain, dest, e.op, self._factors(e), loc)

    def _factors(self, e: Call) -> tuple[Source, ...]:
        """The operands; those of the square of a converted number are converted each by itself, as instructions do that
        multiply narrow numbers."""
        sources = self._operands(e.args)
        last = e.args[-1]
        if e.op != "mul" or sources[0] != sources[1] or not isinstance(last, Call) or _target(last.op) is None:
            return sources
        twin = ("twin", str(sources[0]))  # of one square: where that stands twice, it is computed once
        if twin not in self.known:
            held = {key: temp for key, temp in self.known.items() if temp == sources[0]}
            for key in held:
                del self.known[key]
            again = self._operand(last)
            assert isinstance(again, Access)  # what is converted is not known beforehand
            self.known.update(held)
            self.known[twin] = again
        return sources[0], self.known[twin]

    def _known(self, e: Call) -> None:
        if e.op in NOT_HERE:
            sign, hint = NOT_HERE[e.op]
            raise self.host.fault("L230", f"there is no operator '{sign}' for values", e.loc, hint)

    def _fold(self, e: Call) -> Literal | None:
        """Arithmetic on numbers alone is done here, exactly as Python does it."""
        values = [self._number(x) for x in e.args]
        if any(v is None or isinstance(v, bool) for v in values) or e.op not in ("add", "sub", "mul", "div", "neg"):
            return None
        v = [x for x in values if x is not None]
        if e.op == "neg":
            return Literal(-v[0], e.loc)
        if e.op == "div":
            if v[1] == 0 or (all(isinstance(x, int) for x in v) and v[0] % v[1]):
                raise self.host.fault("L225", f"{v[0]} / {v[1]} is not a whole number", e.loc,
                                      "write 1.0 / 2 for a fraction")
            return Literal(v[0] // v[1] if all(isinstance(x, int) for x in v) else v[0] / v[1], e.loc)
        r = v[0] + v[1] if e.op == "add" else v[0] - v[1] if e.op == "sub" else v[0] * v[1]
        if isinstance(r, int) and abs(r) > 2**64:
            raise self.host.fault("L103", "this number leaves the range of 64 bits", e.loc, "expected smaller numbers")
        return Literal(math.nan if r != r else r, e.loc)

    def _number(self, e: Expr) -> float | int | None:
        if isinstance(e, Number):
            return e.value
        if isinstance(e, Name) and e.name in self.host.params:
            self.host.mentioned.add(e.name)
            return self.host.params[e.name]
        if isinstance(e, Call) and (folded := self._fold(e)) is not None:
            return folded.value
        return None

    def _operand(self, e: Expr) -> Source:
        """What a statement can read: an element or a number; anything else goes to a temporary first."""
        if isinstance(e, Number):
            return Literal(e.value, e.loc)
        if isinstance(e, Ref):
            return self._access(e.name, e.index, e.loc)
        if isinstance(e, Name):
            return self._bare(e)
        self._known(e)
        if (folded := self._fold(e)) is not None:
            return folded
        return self._temporary(e)

    def _bare(self, e: Name) -> Source:
        host = self.host
        if e.name in host.params:
            host.mentioned.add(e.name)
            return Literal(int(host.params[e.name] or 0), e.loc)
        if e.name in host.axes and e.name not in host.buffers and e.name not in host.written:
            raise host.fault("L231", f"the axis '{e.name}' is not a value", e.loc,
                             "pass an array that holds its values")
        if e.name in host.sizes:
            raise host.fault("L231", f"the size '{e.name}' is not a value", e.loc,
                             f"make it a compile-time constant, {e.name}=1 in the head, "
                             "and give its number with the sizes")
        return self._access(e.name, (), e.loc)

    def _access(self, name: str, index: tuple[Expr, ...], loc: Loc) -> Access:
        self.read.append(found := self.host.access(name, index, loc))
        return found

    def _temporary(self, e: Call) -> Access:
        """A temporary that holds ``e``, over the axes that its operands use: a fresh one, unless one does already."""
        inner = Breaker(self.host, self.domain, self)
        placeholder = Access("?", (), e.loc)
        inner._into(self.domain, placeholder, e, e.loc)
        mine = [s for s in inner.out if s.dest is placeholder]
        reads = [x for s in mine for x in s.sources if isinstance(x, Access) and x is not placeholder]
        total = all(s.op != "div" for s in mine)
        domain = self._smallest(reads, {s.dest.buffer: s.domain for s in inner.out}, total)
        axes = domain.axes
        key = (domain, self.host.pins.get("?"), *((s.op, *map(str, s.sources)) for s in mine))
        if key in self.known:
            self.host.pins.pop("?", None)
            return replace(self.known[key], loc=e.loc)
        temp = Access(self.host.fresh(), tuple(Affine.of(a.name) for a in axes), e.loc)
        values = [x for s in mine for x in s.sources[s.op == "select" :]]
        if any(isinstance(x, Access) and x is not placeholder and x.buffer not in self.vague for x in values):
            self.known[key] = temp
        else:
            self.vague.add(temp.buffer)
        for s in inner.out:
            if s.dest is placeholder:
                s = replace(s, domain=domain, dest=temp,
                            sources=tuple(temp if x is placeholder else x for x in s.sources))
            self.out.append(s)
        if "?" in self.host.pins:
            self.host.pins[temp.buffer] = self.host.pins.pop("?")
        return temp

    def _smallest(self, sources: list[Access], made: dict[str, Domain], total: bool) -> Domain:
        """The smallest box with conditions on which the sources can be read. A condition on other axes than theirs is
        left out where they can be read without it. ``made``: the domains of the temporaries among them; ``total``: the
        operation has a result for all values."""
        used = {n for s in sources for row in s.index for n in row.names}
        kept = tuple(a for a in self.domain.axes if a.name in used)
        names, others = {a.name for a in kept}, set(self.domain.names) - used
        where = tuple(w for w in self.domain.where if not others & set(w.names) and names & set(w.names))
        small = Domain(kept, where)
        fewer = len(where) < len(self.domain.where)
        if fewer and not (total and all(self._known_on(s, small, made) for s in sources)):
            return self.domain
        if fewer or len(kept) < len(self.domain.axes):
            return small if all(self._in_range(s, small) for s in sources) else self.domain
        return self.domain

    def _known_on(self, s: Access, domain: Domain, made: dict[str, Domain]) -> bool:
        """Whether the access has a value wherever ``domain`` has a point: an argument, or a part of the expression."""
        if s.buffer in made:
            return set(made[s.buffer].where) <= set(domain.where)
        b = self.host.buffers.get(s.buffer)
        return b is not None and b.role in ("in", "const")

    def _in_range(self, s: Access, domain: Domain) -> bool:
        """Whether the access stays in range when only the axes of ``domain`` are known to be occupied."""
        host = self.host
        b = host.buffers.get(s.buffer)
        if b is None:
            return True
        around = (*domain.axes, *(a for a in host.axes.values() if a.name not in self.domain.names))
        slack = [lower(row, around) for row in s.index]
        slack += [dim - 1 - upper(row, around) for row, dim in zip(s.index, b.shape, strict=True)]
        exact = [*s.index, *(dim - 1 - row for row, dim in zip(s.index, b.shape, strict=True))]
        return all(
            nonnegative(e, host.syms, around) or any((x - w).is_constant and (x - w).const >= 0 for w in domain.where)
            for e, x in zip(slack, exact, strict=True)
        )

    def _select(self, domain: Domain, dest: Access, e: Call, loc: Loc) -> None:
        """``select(c, a, b)``: ``dest = b``, then ``dest = a where c``; one statement when ``b`` is ``dest`` itself."""
        first = e.args[0]
        if isinstance(first, Number) and isinstance(first.value, bool):
            self._into(domain, dest, e.args[1] if first.value else e.args[2], loc)
            return
        condition, value, other = self._operands(e.args)
        if isinstance(condition, Literal):
            raise self.host.fault("L232", f"{condition.value} is not a condition", condition.loc, "write x[i] != 0")
        if other == dest:
            self._emit(domain, dest, "select", (condition, value), loc, accumulate=True)
            return
        into = dest
        if any(isinstance(x, Access) and x.buffer == dest.buffer for x in (condition, value)):
            into = Access(self.host.fresh(), tuple(Affine.of(n) for n in domain.names), e.loc)
        self._emit(domain, into, "copy", (other,), loc)
        self._emit(domain, into, "select", (condition, value), loc, accumulate=True)
        if into is not dest:
            self._emit(domain, dest, "copy", (into,), loc)

    def _cast(self, domain: Domain, dest: Access, e: Call, target: str, loc: Loc) -> None:
        """A cast, or a number that has been cast here."""
        number = self._number(e.args[0])
        operand = self._operand(e.args[0])
        self._pin(dest, target, e.loc)
        if number is None:
            self._emit(domain, dest, "cast_sat" if e.op.startswith("sat_") else "cast", (operand,), loc)
        else:
            self._emit(domain, dest, "copy", (Literal(_convert(number, target, e.op.startswith("sat_")), e.loc),), loc)

    def _pin(self, dest: Access, dtype: str, loc: Loc) -> None:
        """Records that ``dest`` holds the result of a cast to ``dtype``."""
        declared = self.host.buffers.get(dest.buffer)
        have = declared.dtype if declared else self.host.pins.setdefault(dest.buffer, dtype)
        if have != dtype and have in DTYPES:
            raise self.host.fault("L311", f"a value of dtype {dtype} is assigned to '{dest.buffer}', which is {have}",
                                  loc, f"write {have}(...)")


def _target(op: str) -> str | None:
    base = op.removeprefix("sat_")
    return base if base in DTYPES else None


def _convert(value: float | int, target: str, saturate: bool) -> float | int | bool:
    """A number as the dtype has it: integers cut off and wrap (or saturate), floats stay as they are."""
    d = DTYPES[target]
    if d.kind == "b":
        return bool(value)
    if d.kind == "f":
        return float(value)
    if not math.isfinite(value):
        return 0 if value != value or not saturate else _limits(d.kind, d.bits)[value > 0]
    low, high = _limits(d.kind, d.bits)
    whole = int(value)
    return min(max(whole, low), high) if saturate else (whole - low) % (high - low + 1) + low


def _limits(kind: str, bits: int) -> tuple[int, int]:
    return (0, 2**bits - 1) if kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
