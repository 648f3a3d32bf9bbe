"""Kernels built by a program: the same language, said in calls.

>>> b = Builder("matmul", "M", "N", "K")
>>> A, B = b.input("A", "f32", "M, K"), b.input("B", "f32", "K, N")
>>> C = b.output("C", "f32", "M, N")
>>> with b.forall(i="M", j="N") as (i, j):
...     C[i, j] = 0
>>> with b.forall(i="M", j="N", k="K") as (i, j, k):
...     C[i, j] += A[i, k] * B[k, j]
>>> [s.op for s in b.kernel().statements]
['copy', 'mul', 'add']
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from isam.diagnostics import Loc, did_you_mean, fail
from isam.ir.dtype import DTYPES, dtype_name
from isam.ir.expressions import Cursor, Fault, arguments, conditions, expression
from isam.ir.heads import size_declaration
from isam.ir.kernel import REDUCTIONS, Kernel
from isam.ir.lexer import MAX_DIGITS, Line, Report, Token, tokenize
from isam.ir.permits import permitted
from isam.ir.syntax import (
    Assign,
    AxisDecl,
    Block,
    BufferDecl,
    Call,
    Condition,
    Definition,
    Expr,
    Forall,
    Loop,
    Name,
    Number,
    Ref,
    SymDecl,
    spelled,
)
from isam.ir.text import lowered


class Value:
    """An expression: an element, a number, an axis or an operation on such. Operators build larger ones, comparisons
    included; ``v += x`` makes ``v`` the name of ``v + x``, which stored where ``v`` was read is an accumulation."""

    __array_ufunc__ = None  # NumPy's numbers leave operations to the expression
    __hash__ = object.__hash__

    def __init__(self, node: Expr):
        self.node = node

    def _binary(self, op: str, left: Any, right: Any) -> Value:
        a, b = _node(left), _node(right)
        return Value(Call(op, (a, b), _here(), 1 + max(a.depth, b.depth)))

    def __add__(self, other: Any) -> Value:
        return self._binary("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self._binary("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self._binary("sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._binary("sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self._binary("mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self._binary("mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self._binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._binary("div", other, self)

    def __lt__(self, other: Any) -> Value:
        return self._binary("lt", self, other)

    def __le__(self, other: Any) -> Value:
        return self._binary("le", self, other)

    def __gt__(self, other: Any) -> Value:
        return self._binary("gt", self, other)

    def __ge__(self, other: Any) -> Value:
        return self._binary("ge", self, other)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return self._binary("eq", self, other)

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return self._binary("ne", self, other)

    def __neg__(self) -> Value:
        return call("neg", self)

    def _updated(self, op: str, other: Any) -> Value:
        value = _node(other)
        new = self._binary(op, self, Value(value))
        return _Accumulation(new.node, self.node, op, value) if isinstance(self.node, Ref) else new

    def __iadd__(self, other: Any) -> Value:
        return self._updated("add", other)

    def __imul__(self, other: Any) -> Value:
        return self._updated("mul", other)

    def __bool__(self) -> bool:
        raise fail("F604", "an expression has no truth value yet", _here(), "use select(c, a, b), or where= in forall")


class _Accumulation(Value):
    """What ``C[i, j] += x`` leaves: the sum and, for when it is stored where it was read, how it came about."""

    def __init__(self, node: Expr, home: Ref, op: str, value: Expr):
        super().__init__(node)
        self.home, self.op, self.value = home, op, value

    def stored(self, dest: Ref) -> tuple[str, Expr]:
        """The operation and the operand of the assignment that makes ``dest`` this value."""
        same = self.home.name == dest.name and spelled(self.home.index) == spelled(dest.index)
        return (self.op, self.value) if same else ("", self.node)


def call(op: str, *args: Any) -> Value:
    """A function, cast or comparison: ``call("exp", x)``, ``call("select", c, a, b)``, ``call("f32", x)``."""
    nodes = tuple(map(_node, args))
    _text(op, "a function", 'write call("exp", x)')
    return Value(Call(op, nodes, _here(), 1 + max((n.depth for n in nodes), default=0)))


class Array:
    """A buffer of the kernel being built; ``array[i, j]`` is an element."""

    def __init__(self, builder: Builder, name: str):
        self._builder, self.name = builder, name

    def _ref(self, index: Any) -> Ref:
        parts = index if isinstance(index, tuple) else (index,)
        return Ref(self.name, tuple(map(_node, parts)), _here())

    def __getitem__(self, index: Any) -> Value:
        return Value(self._ref(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        dest = self._ref(index)
        op, node = value.stored(dest) if isinstance(value, _Accumulation) else ("", _node(value))
        self._builder._store(Assign(dest, op, node, _here()))

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        """Of two buffers, whether they are the same one; a buffer is not compared with values."""
        return self._compared(other) is self

    def __ne__(self, other: object) -> bool:
        return self._compared(other) is not self

    def _compared(self, other: object) -> object:
        if isinstance(other, Array):
            return other
        raise fail("F604", f"the buffer '{self.name}' is no value", _here(), f"compare an element: {self.name}[i]")

    def accumulate(self, op: str, index: Any, value: Any) -> None:
        """``array[index] op= value`` with ``op`` one of add, mul, max, min."""
        if op not in REDUCTIONS:
            raise fail("F604", f"{op!r} does not accumulate", _here(), f"known: {', '.join(REDUCTIONS)}")
        self._builder._store(Assign(self._ref(index), op, _node(value), _here()))


class Builder:
    """Collects sizes, buffers and statements; :meth:`kernel` gives the kernel or every fault at once.

    ``sizes`` are written as in a kernel's head (``"N % 8"``, ``"1 <= M <= 16"``); ``constants`` are its compile-time
    constants; ``permits`` is one permission or several. Faults are located where the builder was called.
    """

    def __init__(self, name: str, *sizes: str, permits: Iterable[str] | None = None, **constants: int):
        self.name = _text(name, "the name of a kernel", 'write Builder("matmul", "M", "N")')
        self._here = _here()
        self._report = Report(self._here.file, [])
        self._syms = [self._size(s) for s in sizes]
        self._syms += [SymDecl(n, self._here, default=self._constant(n, v)) for n, v in constants.items()]
        self._permits = permitted(permits, self._report, self._here)
        self._buffers: list[BufferDecl] = []
        self._stack: list[list[Block]] = [[]]
        self._open: list[Assign] | None = None

    def _constant(self, name: str, value: Any) -> int:
        found = _number(value)
        if type(found) is int:
            return found
        self._report.add("F604", f"the constant '{name}' is no integer", self._here, f"write {name}=1")
        return 1

    def _size(self, text: str) -> SymDecl:
        c = self._cursor(_text(text, "a size", 'write "N", "N % 8" or "1 <= M <= 16"'))
        try:
            found = size_declaration(c)
            c.end("the size")
            return found
        except Fault:
            return SymDecl(text, _here())

    def _cursor(self, text: str) -> Cursor:
        at = _here()
        found, inner = tokenize(text, at.file)
        for d in inner.found:
            self._report.add(d.code, f"in {text!r}: {d.message}", at, d.hint)
        tokens = found[0].tokens if found else (Token("end", "", at),)
        return Cursor(Line(0, tuple(t._replace(loc=at) for t in tokens)), self._report)

    def _affine(self, value: Any) -> Expr:
        if not isinstance(value, str):
            return _node(value)
        c = self._cursor(value)
        try:
            e = expression(c)
            c.end("the expression")
            return e
        except Fault:
            return Number(1, _here())

    def _declare(self, role: str, name: str, dtype: str, shape: Any) -> Array:
        _text(name, "the name of a buffer", 'write input("A", "f32", "M, N")')
        if isinstance(shape, str):
            c = self._cursor(f"[{shape}]")
            try:
                nodes = arguments(c, "]", c.take())
            except Fault:
                nodes = ()
        else:
            nodes = tuple(map(self._affine, shape if isinstance(shape, Iterable) else (shape,)))
        self._buffers.append(BufferDecl(role, name, self._dtype(dtype), nodes, _here()))
        return Array(self, name)

    def _dtype(self, given: Any) -> str:
        """A dtype by name, or as NumPy has it."""
        found = dtype_name(given)
        if found is None:
            hint = did_you_mean(str(given), DTYPES) or "dtypes: " + ", ".join(DTYPES)
            self._report.add("L134", f"unknown dtype '{given}'", _here(), hint)
        return found or "f32"

    def input(self, name: str, dtype: str, shape: Any = ()) -> Array:
        return self._declare("in", name, dtype, shape)

    def const(self, name: str, dtype: str, shape: Any = ()) -> Array:
        return self._declare("const", name, dtype, shape)

    def inout(self, name: str, dtype: str, shape: Any = ()) -> Array:
        return self._declare("inout", name, dtype, shape)

    def output(self, name: str, dtype: str, shape: Any = ()) -> Array:
        return self._declare("out", name, dtype, shape)

    def temp(self, name: str, dtype: str | None = None, shape: Any = ()) -> Array:
        """A temporary; without a dtype an undeclared one."""
        return Array(self, name) if dtype is None else self._declare("temp", name, dtype, shape)

    @contextmanager
    def forall(self, where: str = "", **axes: Any) -> Iterator[Any]:
        """A block over a box: ``with b.forall(i="M") as i``, ``with b.forall(i="M", j="N") as (i, j)``. ``where`` is
        written as in the language: ``"j <= i, i < M"``."""
        at = _here()
        if self._open is not None:
            raise fail("F604", "a forall inside a forall", at, "put all axes into one forall")
        decls = tuple(AxisDecl(n, self._affine(e), at) for n, e in axes.items())
        cut: tuple[Condition, ...] = ()
        if where:
            c = self._cursor(_text(where, "a condition", 'write where="j <= i, i < M"'))
            try:
                cut = conditions(c)
                c.end("the condition")
            except Fault:
                cut = ()
        self._open = []
        try:
            values = tuple(Value(Name(n, at)) for n in axes)
            yield values[0] if len(values) == 1 else values
            self._stack[-1].append(Forall(decls, cut, tuple(self._open), at))
        finally:
            self._open = None

    @contextmanager
    def loop(self, **axis: Any) -> Iterator[Value]:
        """A recurrent loop: ``with b.loop(t="T") as t``."""
        at = _here()
        if len(axis) != 1 or self._open is not None:
            raise fail("F604", "a loop has one axis and is not inside a forall", at, 'with b.loop(t="T") as t')
        name, extent = next(iter(axis.items()))
        self._stack.append([])
        try:
            yield Value(Name(name, at))
            body = tuple(self._stack[-1])
        finally:
            done = self._stack.pop()
        self._stack[-1].append(Loop(AxisDecl(name, self._affine(extent), at), body or tuple(done), at))

    def _store(self, a: Assign) -> None:
        if self._open is not None:
            self._open.append(a)
        else:
            self._stack[-1].append(Forall((), (), (a,), a.loc))

    def kernel(self) -> Kernel:
        """The kernel. Raises ``IsamError`` with every fault found."""
        made = lowered(Definition("kernel", self.name, tuple(self._syms), tuple(self._buffers), tuple(self._stack[0]),
                                  self._permits, self._here), self._report)
        self._report.check()
        return made


def _node(value: Any) -> Expr:
    if isinstance(value, Value):
        return value.node
    number = _number(value)
    if number is not None:
        return Number(number, _here())
    if isinstance(value, str):
        return Name(value, _here())
    raise fail("F604", f"{type(value).__name__} is no expression", _here(), "expected elements, axes and numbers")


def _number(value: Any) -> float | int | bool | None:
    """The number of Python that ``value`` is, or is for NumPy; None: it is no number."""
    found = next((sort(value) for sort in (bool, int, float) if isinstance(value, sort)), None)
    if found is None and value is not None and not isinstance(value, str):
        import numpy as np

        plain = value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else None
        found = plain if isinstance(plain, (bool, int, float)) else None
    if type(found) is int and abs(found) >= 10**MAX_DIGITS:
        raise fail("L103", "this number is too large", _here(), f"expected at most {MAX_DIGITS} digits")
    return found


def _text(given: Any, what: str, hint: str) -> str:
    if not isinstance(given, str):
        raise fail("F604", f"{what} is a text, not {type(given).__name__}", _here(), hint)
    return given


def _here() -> Loc:
    """The place in the caller's file."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename == __file__ or "contextlib" in frame.f_code.co_filename):
        frame = frame.f_back
    return Loc(frame.f_code.co_filename, frame.f_lineno, 1) if frame is not None else Loc()
