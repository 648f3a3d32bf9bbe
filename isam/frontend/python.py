"""Kernels as Python functions: the source is read, never run.

Parameters are buffers (an annotation says role, dtype and shape) or, after ``*``, sizes (no default) and compile-time
constants (a default). Sizes that only occur in shapes need not be listed. In the body::

    for i, j in forall(M, N, where=j <= i):     a block over all i < M, j < N with j <= i
    for t in loop(T):                           a recurrent loop
    xp: "f32[M + 2]"                            a temporary
    y[i] = max(y[i], x[i, k])                   where y does not mention k: an accumulation (also min)
    a if c else b                               select(c, a, b)
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, overload

from isam.diagnostics import Loc, fail
from isam.frontend.builder import Builder
from isam.frontend.pyexpr import Unreadable, expression_of, where_of
from isam.ir.elsewhere import ASSIGNMENTS
from isam.ir.expressions import Cursor, Fault
from isam.ir.heads import size_declaration
from isam.ir.kernel import Kernel
from isam.ir.lexer import Report, Token, tokenize
from isam.ir.parser import buffer_type
from isam.ir.permits import permitted
from isam.ir.syntax import (
    Assign,
    AxisDecl,
    Block,
    BufferDecl,
    Call,
    Definition,
    Expr,
    Forall,
    Loop,
    Name,
    Ref,
    SymDecl,
    spelled,
)
from isam.ir.text import lowered

__all__ = ["Builder", "forall", "kernel", "loop"]
ACCUMULATE = {ast.Add: "add", ast.Mult: "mul"}


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(*, name: str = "", permits: Iterable[str] | None = None) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(function: Callable[..., Any] | None = None, /, *, name: str = "",
           permits: Iterable[str] | None = None) -> Any:
    """The kernel that a Python function describes; use as ``@kernel`` or ``@kernel(permits="exact")``.

    Raises ``IsamError`` with file, line and column of every fault in the function.
    """
    if function is None:
        return lambda f: kernel_of(f, name, permits)
    return kernel_of(function, name, permits)


def forall(*extents: Any, where: Any = None) -> Any:
    """Only has a meaning in the source of a function under ``@kernel``."""
    raise fail("F601", "forall(...) was called",
               hint="it belongs into a function under @isam.kernel, which is never run")


def loop(trip: Any) -> Any:
    """Only has a meaning in the source of a function under ``@kernel``."""
    raise fail("F601", "loop(...) was called", hint="it belongs into a function under @isam.kernel, which is never run")


def kernel_of(function: Callable[..., Any], name: str, permits: Iterable[str] | None) -> Kernel:
    """Reads the function's source."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise fail("F602", f"{function!r} is no Python function", hint="decorate a function defined with 'def'")
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(_dedent(lines))
    except (OSError, SyntaxError, RecursionError, IndentationError) as e:
        raise fail("F602", f"the source of '{function.__name__}' cannot be read: {e}", Loc(code.co_filename),
                   "define it in a file, or use isam.parse") from None
    indent = len(lines[0]) - len(lines[0].lstrip())
    report = Report(code.co_filename, [x.rstrip("\n") for x in linecache.getlines(code.co_filename)])
    head = tree.body[0] if tree.body else None
    if not isinstance(head, ast.FunctionDef):
        raise fail("F602", f"'{function.__name__}' is no plain function", Loc(code.co_filename, start, 1), "use 'def'")
    try:
        definition = _Reader(report, start - 1, indent).definition(head)
    except RecursionError:
        raise fail("F602", f"'{head.name}' nests too deeply", Loc(code.co_filename, start, 1), "split it") from None
    if name:
        definition = replace(definition, name=name)
    definition = replace(definition, permits=permitted(permits, report, definition.loc))
    found = lowered(definition, report)
    report.check()
    return found


def _dedent(lines: list[str]) -> str:
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "".join(x[indent:] if x[:indent].isspace() or not indent else x for x in lines)


class _Reader:
    """Python's syntax tree to the language's, keeping places."""

    def __init__(self, report: Report, line: int, column: int):
        self.report, self.line, self.column = report, line, column
        self.buffers: list[BufferDecl] = []
        self.unread: set[str] = set()

    def loc(self, node: ast.AST) -> Loc:
        return Loc(self.report.file, getattr(node, "lineno", 1) + self.line,
                   getattr(node, "col_offset", 0) + self.column + 1)

    def wrong(self, node: ast.AST, message: str, hint: str, code: str = "F603") -> Unreadable:
        self.report.add(code, message, self.loc(node), hint)
        return Unreadable()

    def definition(self, f: ast.FunctionDef) -> Definition:
        a = f.args
        for extra in (a.vararg, a.kwarg):
            if extra is not None:
                self.wrong(extra, f"'*{extra.arg}' in a kernel", "name every buffer and every size")
        for p in (*a.posonlyargs, *a.args):
            self._parameter(p)
        syms = [self._size(p, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        blocks = self._blocks(f.body)
        listed = {s.name for s in syms}
        implied = [SymDecl(n, loc) for n, loc in self._mentioned() if n not in listed]
        return Definition("kernel", f.name, (*implied, *syms), tuple(self.buffers), tuple(blocks), None, self.loc(f),
                          frozenset(self.unread))

    def _mentioned(self) -> list[tuple[str, Loc]]:
        out: dict[str, Loc] = {}

        def walk(e: Expr) -> None:
            if isinstance(e, Name):
                out.setdefault(e.name, e.loc)
            elif isinstance(e, Call):
                for x in e.args:
                    walk(x)

        for b in self.buffers:
            for e in b.shape:
                walk(e)
        return list(out.items())

    def _parameter(self, p: ast.arg) -> None:
        if p.annotation is None:
            self.unread.add(p.arg)
            self.wrong(p, f"the buffer '{p.arg}' has no annotation",
                       f'write {p.arg}: "f32[M, N]" (roles: in, const, inout, out)')
        else:
            self._buffer(p.arg, p.annotation, p, "in")

    def _buffer(self, name: str, annotation: ast.expr, at: ast.AST, role: str) -> None:
        text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
        first = self.loc(annotation)
        quoted = isinstance(annotation, ast.Constant)
        try:
            if not isinstance(text, str):
                raise self.wrong(annotation, f"the annotation of '{name}' is no text", 'write "out f32[M, N]"')
            c = self._cursor(text, first, quoted)
            self.buffers.append(replace(buffer_type(c, name, role), loc=self.loc(at)))
        except (Unreadable, Fault):
            self.unread.add(name)

    def _cursor(self, text: str, at: Loc, quoted: bool) -> Cursor:
        """A cursor over the words of an annotation, at their places in the Python file."""
        found, inner = tokenize(text, at.file)
        shift = at.column - 1 + quoted
        for d in inner.found:
            self.report.add(d.code, d.message, at._replace(column=d.loc.column + shift), d.hint)
        if len(found) != 1 and not inner.found:
            self.report.add("F603", "this annotation cannot be read", at, 'write "out f32[M, N]"')
        if inner.found or len(found) != 1:
            raise Fault
        line = found[0]
        moved = tuple(Token(t.kind, t.text, Loc(at.file, at.line, t.loc.column + shift), t.value) for t in line.tokens)
        return Cursor(replace(line, tokens=moved), self.report)

    def _size(self, p: ast.arg, default: ast.expr | None) -> SymDecl:
        here = self.loc(p)
        if default is not None:
            value = default.operand if (negative := isinstance(default, ast.UnaryOp)) else default
            if isinstance(value, ast.Constant) and type(value.value) is int:
                return SymDecl(p.arg, here, default=-value.value if negative else value.value)
            self.wrong(default, f"the constant '{p.arg}' is no integer", f"write {p.arg}=1")
        if isinstance(p.annotation, ast.Constant) and isinstance(p.annotation.value, str):
            try:
                return replace(size_declaration(self._cursor(p.annotation.value, self.loc(p.annotation), True)),
                               name=p.arg)
            except Fault:
                pass
        return SymDecl(p.arg, here)

    # -- the body

    def _blocks(self, body: list[ast.stmt]) -> list[Block]:
        out: list[Block] = []
        for s in body:
            try:
                if isinstance(s, ast.For):
                    out.append(self._for(s))
                elif isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and s.value is None:
                    self._buffer(s.target.id, s.annotation, s.target, "temp")
                elif not _idle(s):
                    a = self._assign(s, ())
                    out.append(Forall((), (), (a,), a.loc))
            except Unreadable:
                self._give_up(s)
        return out

    def _give_up(self, s: ast.stmt) -> None:
        self.unread.update(n.id for n in ast.walk(s) if isinstance(n, ast.Name))

    def _for(self, s: ast.For) -> Block:
        head = s.iter
        word = head.func.id if isinstance(head, ast.Call) and isinstance(head.func, ast.Name) else ""
        if word not in ("forall", "loop") or not isinstance(head, ast.Call):
            hint = "forall has no order; a recurrent loop is written 'for t in loop(T)'"
            raise self.wrong(head, "expected 'forall(...)' or 'loop(...)' after 'in'", hint)
        if s.orelse:
            raise self.wrong(s.orelse[0], "an 'else' after a for", "expected the block alone")
        targets = s.target.elts if isinstance(s.target, (ast.Tuple, ast.List)) else [s.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if len(names) != len(head.args) or len(names) != len(targets):
            raise self.wrong(s.target, f"{len(targets)} axes and {len(head.args)} bounds",
                             "one bound per axis: for i, j in forall(M, N)")
        axes = tuple(AxisDecl(n, expression_of(self, e), self.loc(t)) for n, e,
                     t in zip(names, head.args, targets, strict=True))
        if word == "loop":
            if len(axes) != 1 or head.keywords:
                raise self.wrong(head, "a 'loop' has one axis and no condition", "for t in loop(T)")
            return Loop(axes[0], tuple(self._blocks(s.body)), self.loc(s))
        where = [c for k in head.keywords for c in where_of(self, k)]
        body: list[Assign] = []
        for inner in s.body:
            try:
                if not _idle(inner):
                    body.append(self._assign(inner, tuple(names)))
            except Unreadable:
                self._give_up(inner)
        return Forall(axes, tuple(where), tuple(body), self.loc(s))

    def _assign(self, s: ast.stmt, axes: tuple[str, ...]) -> Assign:
        if isinstance(s, ast.AugAssign):
            op = ACCUMULATE.get(type(s.op))
            if op is None:
                raise self.wrong(s, "this accumulation does not exist", "known: += and *=, y[i] = max(y[i], ...), min")
            dest = self._dest(s.target)
            value = expression_of(self, s.value)
        elif isinstance(s, ast.Assign) and len(s.targets) == 1:
            self._spelled(s.value)
            op, dest = "", self._dest(s.targets[0])
            value = expression_of(self, s.value)
            op, value = _folded(dest, value, axes)
        elif isinstance(s, ast.For):
            raise self.wrong(s, "a 'for' inside a forall", "put all axes into one: for i, j in forall(M, N)")
        elif isinstance(s, ast.If):
            raise self.wrong(s, "an 'if' inside a forall",
                             "of axes: for i, k in forall(M, K, where=k < i); of data: a value A if CONDITION else B")
        else:
            raise self.wrong(s, "this statement has no meaning in a kernel",
                             "expected an assignment such as C[i, j] += A[i, k]")
        return Assign(dest, op, value, value.loc)

    def _spelled(self, value: ast.expr) -> None:
        """Refuses ``=+``, which Python takes for an assignment, as the language does."""
        at = self.loc(value)
        line = self.report.lines[at.line - 1] if at.line <= len(self.report.lines) else ""
        sign = line[max(0, at.column - 2) : at.column]
        if isinstance(value, ast.UnaryOp) and sign in ASSIGNMENTS:
            raise self.wrong(value, f"there is no '{sign}'", ASSIGNMENTS[sign])

    def _dest(self, target: ast.expr) -> Ref:
        e = expression_of(self, target)
        if isinstance(e, Name):
            return Ref(e.name, (), e.loc)
        if not isinstance(e, Ref):
            raise self.wrong(target, "this cannot be assigned", "expected an element such as C[i, j]")
        return e


def _idle(s: ast.stmt) -> bool:
    return isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))


def _folded(dest: Ref, value: Expr, axes: tuple[str, ...]) -> tuple[str, Expr]:
    """``y[i] = max(y[i], x[i, k])`` over i and k is an accumulation, since ``y`` does not mention ``k``."""
    if not (isinstance(value, Call) and value.op in ("max", "min") and len(value.args) == 2):
        return "", value
    mentioned: set[str] = set()
    todo: list[Expr] = list(dest.index)
    while todo:
        e = todo.pop()
        mentioned.update([e.name] if isinstance(e, Name) else [])
        todo.extend(e.args if isinstance(e, Call) else ())
    first = value.args[0]
    same = isinstance(first, Ref) and first.name == dest.name and spelled(first.index) == spelled(dest.index)
    return (value.op, value.args[1]) if same and not set(axes) <= mentioned else ("", value)
