"""Definitions to kernels: names resolved, constants put in, indices affine, expressions broken into three operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isam.diagnostics import Diagnostic, Loc, did_you_mean
from isam.ir.affine import Affine
from isam.ir.breakup import Breaker
from isam.ir.dtype import ANY, DTYPES
from isam.ir.expressions import Fault
from isam.ir.infer import temporaries
from isam.ir.kernel import (
    PERMITS_DEFAULT,
    Access,
    Axis,
    Buffer,
    Domain,
    Item,
    Kernel,
    Recurrence,
    Statement,
    Sym,
)
from isam.ir.lexer import Report
from isam.ir.remarks import Where
from isam.ir.syntax import AxisDecl, Block, BufferDecl, Call, Condition, Definition, Expr, Forall, Loop, Name, Number

LIMIT = 2**62
EXACT = "expected an exact division"
AFFINE = "expected an affine expression of axes and sizes"
ASKED_OF_DATA = {  # what one may want where data is read, by where that is
    "a condition": "conditions are of axes and sizes; of data, select(CONDITION, VALUE, OTHERWISE) is a value",
    "an index": "indices are of axes and sizes: which element is read does not depend on data",
}
SHIFT = {"<": 1, ">": 1}


def _sizes(d: Definition) -> tuple[Sym, ...]:
    out: dict[str, Sym] = {}
    for s in d.syms:
        if s.whole is not None:
            of = out.get(s.whole[0], Sym(s.whole[0]))
            out[s.name] = Sym.times(s.name, of, s.whole[1])
        elif s.default is None:
            out[s.name] = Sym(s.name, s.lo, s.hi, s.multiple_of)
    return tuple(out.values())


class Lowering:
    """One definition with values for its compile-time constants; every fault goes to the report."""

    def __init__(self, d: Definition, report: Report, values: Mapping[str, int] | None = None):
        self.definition, self.report = d, report
        self.params = {s.name: s.default for s in d.syms if s.default is not None} | dict(values or {})
        self.syms = _sizes(d)
        self.sizes = {s.name for s in self.syms}
        self.axes: dict[str, Axis] = {}
        self.buffers: dict[str, Buffer] = {}
        self.written: set[str] = set()
        self.pins: dict[str, str] = {}  # dtypes that casts give to temporaries
        self.taken = self.sizes | set(self.params)
        self.mentioned: set[str] = set()  # compile-time constants that the text uses
        self.constants = 0  # how often
        self.unknown: set[str] = set()  # sizes and buffers that nothing defines, each reported once
        self.twice: set[str] = set()  # buffers that are declared several times
        self.missing: set[str] = set()  # what a block mentions and has no axis for
        self.count = 0
        self.made: set[str] = set()  # names that stand for parts of expressions
        self.broken_up: list[tuple[Statement, tuple[Axis, ...]]] = []  # as written, with the recurrent loops around

    def say(self, code: str, message: str, loc: Loc, hint: str) -> None:
        self.report.add(code, message, loc, hint)

    def kernel(self) -> Kernel:
        d, told = self.definition, len(self.report.found)
        self._head()
        for b in d.buffers:
            self._declare(b)
        self._collect(d.body)
        body = self._blocks(d.body, 0)
        made = temporaries(body, self.buffers, self.syms, self.pins, self.say, self.made)
        default = PERMITS_DEFAULT if d.keyword == "kernel" else frozenset()  # an instruction takes only what it says
        permits = default if d.permits is None else d.permits
        params = tuple((s.name, int(self.params[s.name] or 0)) for s in d.syms if s.default is not None)
        faults = self._faults() if len(self.report.found) == told else ()
        return Kernel(d.name, self.syms, (*self.buffers.values(), *made), body, permits, params, d.loc, faults=faults)

    def _faults(self) -> tuple[Diagnostic, ...]:
        """What is wrong with statements that are broken into several, as they were written."""
        if not self.broken_up:
            return ()
        from isam.ir.verify_points import as_written

        return tuple(d for s, outer in self.broken_up for d in as_written(s, outer, self.syms))

    def _head(self) -> None:
        seen: set[str] = set()
        for s in self.definition.syms:
            if s.name in seen:
                self.say("L201", f"the size '{s.name}' stands in the head twice", s.loc,
                         f"remove one, or say both of it at once: 1 <= {s.name} % 8 <= 16")
            plain = {x.name for x in self.definition.syms if x.default is None and x.whole is None} & seen
            if s.whole is not None and (s.whole[0] not in plain or self.definition.keyword != "kernel"):
                self.say("L202", f"'{s.name}' cannot be worked out from '{s.whole[0]}'", s.loc,
                         "in a kernel's head, from a size that stands before it and is given")
            seen.add(s.name)

    def _declare(self, b: BufferDecl) -> None:
        if b.name in self.buffers:
            self.say("L201", f"the buffer '{b.name}' is declared twice", b.loc,
                     f"it was first declared in line {self.buffers[b.name].loc.line}")
            self.twice.add(b.name)
            return
        if b.name in self.sizes or b.name in self.params:
            self.say("L201", f"'{b.name}' is already a size", b.loc, "choose another name for the buffer")
        shape: list[Affine] = []
        for e in b.shape:
            try:
                dim = self.affine(e, "a shape")
                shape.append(Affine() if dim.is_constant and dim.const < 0 else dim)
            except Fault:
                shape.append(Affine())
        if b.dtype == ANY and self.definition.keyword == "kernel":
            self.say("L240", f"'{b.name}' has the dtype 'any' in a kernel", b.loc, "dtypes: " + ", ".join(DTYPES))
        role = "temp" if b.role == "auto" else b.role
        self.buffers[b.name] = Buffer(b.name, tuple(shape), b.dtype, role, b.role != "auto", b.loc)

    def _collect(self, blocks: tuple[Block, ...]) -> None:
        for block in blocks:
            if isinstance(block, Loop):
                self._collect(block.body)
                self.taken.add(block.axis.name)
            else:
                self.written.update(a.dest.name for a in block.body)
                self.taken.update(a.name for a in block.axes)

    def fresh(self) -> str:
        """A name for a temporary that nothing else in the definition has."""
        while True:
            self.count += 1
            name = f"t{self.count}"
            if not (name in self.taken or name in self.written or name in self.buffers):
                self.made.add(name)
                return name

    def _blocks(self, blocks: tuple[Block, ...], depth: int) -> tuple[Item, ...]:
        out: list[Item] = []
        for block in blocks:
            outer = dict(self.axes)
            if isinstance(block, Loop):
                axis = self._axis(block.axis)
                out.append(Recurrence(axis, self._blocks(block.body, depth + 1), block.loc))
            else:
                out.extend(self._forall(block))
            self.axes = outer
        return tuple(out)

    def _axis(self, a: AxisDecl) -> Axis:
        try:
            extent = self.affine(a.extent, "a bound")
        except Fault:
            extent = Affine()
        if a.name in self.axes:
            self.say("L201", f"the axis '{a.name}' is already in use here", a.loc,
                     "choose another name for one of them")
        if a.name in self.sizes or a.name in self.params:
            self.say("L201", f"'{a.name}' is already a size", a.loc, "choose another name for the axis")
        axis = Axis(a.name, Affine() if extent.is_constant and extent.const < 0 else extent)
        self.axes[a.name] = axis
        return axis

    def _forall(self, block: Forall) -> list[Statement]:
        outer, constants = tuple(self.axes.values()), self.constants
        self.missing.clear()
        domain = Domain(tuple(self._axis(a) for a in block.axes))
        where: list[Affine] = []
        told: list[tuple[Loc, tuple[Affine, ...]]] = []
        for c in block.where:
            try:
                rows = self._condition(c)
            except Fault:
                continue
            where.extend(rows)
            told.append((c.loc, rows))
        if told and self.constants == constants:  # what a constant decides may be meant
            self.report.wheres.append(Where(tuple(told), domain.axes, outer, self.syms))
        breaker = Breaker(self, replace(domain, where=tuple(where)), around=outer)
        for a in block.body:
            try:
                breaker.assign(a)
            except Fault:
                continue
        return breaker.out

    def _condition(self, c: Condition) -> tuple[Affine, ...]:
        left, right = self.affine(c.left, "a condition"), self.affine(c.right, "a condition")
        if c.relation == "==":
            return right - left, left - right
        if c.relation in (">", ">="):
            left, right = right, left
        return (right - left - SHIFT.get(c.relation, 0),)

    # -- affine expressions

    def affine(self, e: Expr, what: str) -> Affine:
        """An affine expression over what ``what`` may mention; raises ``Fault`` after reporting why it is none."""
        if isinstance(e, Number):
            if isinstance(e.value, bool) or not isinstance(e.value, int):
                raise self.fault("L220", f"{what} is made of integers, found {e.value}", e.loc, "expected an integer")
            return Affine((), e.value)
        if isinstance(e, Name):
            return self._variable(e, what)
        if isinstance(e, Call):
            return self._arithmetic(e, what)
        raise self.fault("L221", f"{what} cannot read the buffer '{e.name}'", e.loc, ASKED_OF_DATA.get(what, AFFINE))

    def _variable(self, e: Name, what: str) -> Affine:
        if e.name in self.params:
            self.mentioned.add(e.name)
            self.constants += 1
            return Affine((), int(self.params[e.name] or 0))
        if e.name in self.sizes:
            return Affine.of(e.name)
        if e.name in self.axes:
            if what in ("an index", "a condition"):
                return Affine.of(e.name)
            raise self.fault("L222", f"{what} cannot depend on the axis '{e.name}'", e.loc,
                             f"bound it by a size and add the rest: where ... < {e.name}")
        if e.name in self.definition.unread or e.name in self.unknown | self.missing:
            raise Fault
        bare = what == "an index" and not self.axes
        if bare and self.missing:  # they are all missing
            raise Fault
        (self.unknown if what in ("a shape", "a bound") else self.missing).add(e.name)
        known = [*self.sizes, *self.params, *(self.axes if what in ("an index", "a condition") else ())]
        others = "known: " + ", ".join(sorted(known)) if known else "no sizes are known here"
        if bare:
            others = "indent the statement below a 'forall' with this axis"
        hint = did_you_mean(e.name, known) or others
        raise self.fault("L202", f"unknown name '{e.name}' in {what}", e.loc, hint)

    def _arithmetic(self, e: Call, what: str) -> Affine:
        if e.op not in ("add", "sub", "mul", "neg", "div", "floordiv", "mod"):
            raise self.fault("L223", f"{what} cannot contain '{e.op}'", e.loc,
                             "expected an affine expression: + - and *")
        args = [self.affine(a, what) for a in e.args]
        if e.op == "neg":
            return -args[0]
        a, b = args
        if e.op in ("add", "sub"):
            return self._bounded(a + b if e.op == "add" else a - b, e)
        if e.op == "mul":
            if not (a.is_constant or b.is_constant):
                raise self.fault("L224", f"{what} is not affine: {a} times {b}", e.loc,
                                 self._product_hint(a, b, what))
            return self._bounded(a * b.const if b.is_constant else b * a.const, e)
        if not (a.is_constant and b.is_constant):
            raise self.fault("L224", f"{what} is not affine: it divides {a} by {b}", e.loc,
                             self._quotient_hint(a, b, e.op))
        if b.const == 0 or (e.op == "div" and a.const % b.const):
            raise self.fault("L225", f"{a.const} cannot be divided by {b.const} here", e.loc,
                             EXACT)
        return Affine((), a.const % b.const if e.op == "mod" else a.const // b.const)

    def _product_hint(self, a: Affine, b: Affine, what: str) -> str:
        if what == "a shape":
            return f"declare a dimension for each: NAME[{a}, {b}]"
        constant = self._constant((*b.names, *a.names))
        if not constant:
            return "one factor must be a number"
        return f"give the buffer a dimension for each axis, or {constant}"

    def _quotient_hint(self, a: Affine, b: Affine, op: str) -> str:
        if b.is_constant and b.const > 1 and a.names and a.names[0] in self.axes:
            n, axis = b.const, a.names[0]
            return f"split the axis: q and r < {n} instead of {axis}, with q here and {n}*q + r elsewhere"
        constant = self._constant((*b.names, *a.names))
        if b.is_constant and b.const > 1 and len(a.names) == 1 and a == Affine.of(a.names[0]) and constant:
            name = next(n for n in ("Q", "R", "S", "T") if n not in self.sizes and n not in self.axes)
            return f"name the quotient as a size: '{name} = {a} // {b.const}' in the head, '{name}' here; or {constant}"
        if b.is_constant:
            return f"name the quotient as a size of its own, or {constant}" if constant else EXACT
        if op == "mod" and any(n in self.axes for n in a.names):
            return "an index that wraps around takes two blocks: one with 'where' before the end, one after it"
        return constant or EXACT

    def _constant(self, names: tuple[str, ...]) -> str:
        size = next((n for n in names if n in self.sizes), None)
        return f"make '{size}' a compile-time constant: {size}=16 in the head" if size else ""

    def _bounded(self, a: Affine, e: Expr) -> Affine:
        if max((abs(c) for _, c in a.terms), default=0) > LIMIT or abs(a.const) > LIMIT:
            raise self.fault("L103", "this number leaves the range of 64 bits", e.loc, "expected smaller constants")
        return a

    def access(self, name: str, index: tuple[Expr, ...], loc: Loc) -> Access:
        """An element: the buffer must be declared or written somewhere in the definition."""
        if name not in self.buffers and name not in self.written:
            if name in self.definition.unread or name in self.unknown:
                raise Fault
            self.unknown.add(name)
            raise self.fault("L203", f"unknown buffer '{name}'", loc,
                             did_you_mean(name, [*self.buffers, *self.written]) or "declare it, or write it first")
        rows: list[Affine] = []
        for e in index:
            try:
                rows.append(self.affine(e, "an index"))
            except Fault:
                continue
        if len(rows) < len(index):
            raise Fault
        b = self.buffers.get(name)
        if b is not None and len(b.shape) != len(rows) and name in self.twice:
            raise Fault  # the other declaration may be the one that is meant
        if b is not None and len(b.shape) != len(rows):
            raise self.fault("L204", f"'{name}' has {len(b.shape)} dimensions, indexed by {len(rows)}", loc,
                             f"expected {name}[{', '.join(map(str, b.shape))}] to be indexed {len(b.shape)} times")
        return Access(name, tuple(rows), loc)

    def fault(self, code: str, message: str, loc: Loc, hint: str) -> Fault:
        self.say(code, message, loc, hint)
        return Fault()
