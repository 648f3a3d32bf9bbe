"""Lines to definitions: what a file, a kernel, a block and a statement look like. Recovers at every line."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

from isam.diagnostics import NOWHERE, Loc, did_you_mean
from isam.ir import elsewhere
from isam.ir.dtype import ANY, DTYPES
from isam.ir.expressions import ADDITIVE, Cursor, Fault, arguments, conditions, expression
from isam.ir.heads import RESERVED, size_declaration
from isam.ir.indents import MEMBERS, adopting, blocks, is_member, too_far_left, usual
from isam.ir.lexer import ROLE_WORDS, Line, Report
from isam.ir.operators import ACCUMULATION
from isam.ir.permits import PERMITTED, contradictory
from isam.ir.syntax import (
    Assign,
    AxisDecl,
    Block,
    BufferDecl,
    Condition,
    Definition,
    Forall,
    Loop,
    Name,
    Number,
    Ref,
    SymDecl,
)

ACCUMULATE = {sign: op for op, sign in ACCUMULATION.items()}
MAX_LOOPS = 16
T = TypeVar("T")
MAX_STATEMENTS = 20_000


def definitions(lines: list[Line], report: Report) -> list[Definition]:
    """Every kernel and instruction in the lines; what is not inside one is reported, once for lines that follow each
    other."""
    out: list[Definition] = []
    found = list(blocks(lines))
    begin, outside, foreign = 1, False, False  # where what is in no definition begins, whether told, of another kind
    for n, (line, below) in enumerate(found):
        word = line.tokens[0].text
        inside = word in ("kernel", "instruction")
        meant = "" if inside or line.tokens[1].text == ":" else did_you_mean(word, ("kernel", "instruction"))
        if inside or meant:
            if outside and foreign:
                report.keep_first(begin, line.loc.line - 1)
            begin, outside = (below or [line])[-1].tokens[-1].loc.line + 1, False
        if inside:
            ahead = found[n + 1][0] if n + 1 < len(found) else None
            made = _definition(line, below, report, follows=ahead is not None and is_member(ahead))
            out.extend([made] if made else [])
        elif not outside:
            _outside(line, meant, report)
            outside, foreign = not meant, not is_member(line)
    if outside and foreign:
        report.keep_first(begin, len(report.lines))
    return out


def _outside(line: Line, meant: str, report: Report) -> None:
    """Reports a line that is in no definition; ``meant``: what it may begin."""
    first, second = line.tokens[0], line.tokens[min(1, len(line.tokens) - 1)]
    hint = meant or elsewhere.head(first.text, second.text) or "a file is a list of kernels and instructions"
    if is_member(line):
        hint = "indent it below the kernel's head"
    report.add("L120", f"expected 'kernel' or 'instruction', found {first.shown}", line.loc, hint)


def _definition(head: Line, body: list[Line], report: Report, *, follows: bool) -> Definition | None:
    """``follows``: what may be its body stands below it, not indented, which is reported there."""
    c = Cursor(head, report)
    keyword = c.take()
    name, syms, ok = keyword.text, (), True
    try:
        name = c.name(f"the {keyword.text}'s name", f"expected {keyword.text} NAME(SIZES)").text
        syms = _head(c, instruction=keyword.text == "instruction")
        c.accept(":")
        c.end("the head")
    except Fault:
        ok = False
    members = _Members(report, body, head if follows and not body else body[-1] if follows else None)
    if not body and keyword.text != "instruction":  # one that only configures computes nothing
        members.empty(head, f"{keyword.text} '{name}' has no body", "indent its buffers and statements below the head")
    members.read()
    if not ok:
        return None
    return Definition(keyword.text, name, syms, tuple(members.buffers), tuple(members.blocks), members.permits,
                      head.loc,
                      frozenset(members.unread))


def _head(c: Cursor, *, instruction: bool) -> tuple[SymDecl, ...]:
    out: list[SymDecl] = []
    if not c.accept("("):
        return ()
    if c.accept(")"):
        return ()
    while True:
        out.append(size_declaration(c, some=instruction))
        if c.accept(")"):
            return tuple(out)
        c.expect(",", "or ')' after a size", "a size is NAME, NAME <= 16, 1 <= NAME <= 16, NAME % 8 or NAME=1")


def _remembered(read: Callable[[Cursor], T], c: Cursor) -> T:
    """``read(c)`` of a whole line: the same line at the same place, as families of instructions have it, is read once.
    Raises what ``read`` raises."""
    known = _read(read, c.line)
    return read(c) if known is None else known


@lru_cache(maxsize=4096)
def _read(read: Callable[[Cursor], Any], line: Line) -> Any:
    report = Report(line.loc.file, [])
    try:
        found = read(Cursor(line, report))
    except Fault:
        return None
    return None if report.found else found


class _Members:
    """The indented lines below a head. ``before``: the line after which something is not indented that may belong below
    it, which is reported there."""

    def __init__(self, report: Report, lines: list[Line], before: Line | None):
        self.report, self.lines, self.before = report, lines, before
        self.buffers: list[BufferDecl] = []
        self.blocks: list[Block] = []
        self.permits: frozenset[str] | None = None
        self.unread: set[str] = set()
        self.count = 0

    def read(self) -> None:
        self.blocks = self._block(self.lines, 0)

    def empty(self, line: Line, message: str, hint: str) -> None:
        """Reports a line below which nothing stands that has to."""
        if line is not self.before:
            self.report.add("L121", message, line.loc, hint)

    def _misplaced(self, line: Line, indent: int) -> None:
        self.report.add("L124", f"this line is indented by {line.indent}, its block by {indent}", line.loc,
                        f"expected {indent} spaces before it")

    def _block(self, lines: list[Line], depth: int) -> list[Block]:
        out: list[Block] = []
        found = list(adopting(list(blocks(lines))))
        indent = usual([line for line, _ in found])
        before = indent
        for line, below in found:
            if line.indent not in (indent, before):  # lines that follow each other are reported once
                self._misplaced(line, indent)
            before = line.indent
            self.count += 1
            if self.count == MAX_STATEMENTS:
                self.report.add("L125", f"more than {MAX_STATEMENTS} lines in one definition", line.loc,
                                "split the kernel")
            if self.count < MAX_STATEMENTS:
                self._member(line, below, depth, out, indent if line is not lines[0] else -1)
        return out

    def _member(self, line: Line, below: list[Line], depth: int, out: list[Block], indent: int) -> None:
        """``indent``: of the lines before it in its block."""
        c = Cursor(line, self.report)
        word = c.token.text
        try:
            if word == "forall" and (inside := too_far_left(below)):
                if line.indent == indent and not any(x.indent == inside.indent for x in self._above(line)):
                    self._misplaced(inside, indent)
                else:
                    self._misplaced(line, inside.indent)
                for x in (line, *below):
                    self._give_up(x)
            elif word == "forall":
                if self.report.guessed(line):
                    self._give_up(line)  # axes may be hidden in what was put right
                out.append(self._forall(c, below))
            elif word == "loop":
                self._loop(c, below, depth, out)
            else:
                self._simple(c, depth, out)
                if below:
                    self.report.add("L126", "only 'forall' and 'loop' have a block of lines below them", below[0].loc,
                                    f"expected {line.indent} spaces before it")
                    self._below(below, depth, out)
        except Fault:
            self._give_up(line)
            if word == "forall":
                self._assignments(below)

    def _above(self, line: Line) -> list[Line]:
        return [x for x in self.lines if x.loc.line < line.loc.line]

    def _below(self, lines: list[Line], depth: int, out: list[Block]) -> None:
        """Lines that are indented too far: declarations are what they are anyhow, of others nobody knows the block."""
        if all(x.tokens[0].text in ROLE_WORDS for x in lines):
            out.extend(self._block(lines, depth))
        for x in lines:
            self._give_up(x)

    def _simple(self, c: Cursor, depth: int, out: list[Block]) -> None:
        word = c.token.text
        if word == "permits":
            self._permits(c, depth)
        elif word in ROLE_WORDS or (c.peek().kind == "name" and c.peek(2).text == ":"):
            if depth:
                raise c.fault("L127", "a buffer is declared inside a loop",
                              "declare it below the head, outside all blocks")
            self.buffers.append(_remembered(_buffer, c))
        else:
            a = _remembered(_assign, c)
            out.append(Forall((), (), (a,), a.loc))

    def _permits(self, c: Cursor, depth: int) -> None:
        first = c.take()
        if self.permits is not None or depth:
            raise c.fault("L128", "'permits' stands here a second time or inside a loop",
                          "expected it once, below the head", first.loc)
        granted: set[str] = set()
        while True:
            t = c.name("what is permitted", f"known: {', '.join(PERMITTED)}")
            if t.text not in PERMITTED:
                raise c.fault("L129", f"nobody can permit '{t.text}'",
                              did_you_mean(t.text, PERMITTED) or f"known: {', '.join(PERMITTED)}", t.loc)
            granted.add(t.text)
            if not c.accept(","):
                break
        c.end("'permits'")
        if contradictory(granted):
            raise c.fault("L129", "'exact' forbids what the others grant", "expected 'permits exact' alone", first.loc)
        self.permits = frozenset(granted - {"nothing"})

    def _forall(self, c: Cursor, below: list[Line]) -> Forall:
        axes, where = _remembered(_axes, c)
        body = self._assignments(below)
        if not below or below[0].indent <= c.line.indent:
            self.empty(c.line, "this 'forall' has no statements", "indent its statements below it")
        return Forall(axes, where, tuple(body), c.line.loc)

    def _assignments(self, below: list[Line]) -> list[Assign]:
        out: list[Assign] = []
        nested, unread = False, -1
        indent = before = usual(below)
        for line in below:
            c = Cursor(line, self.report)
            self.count += 1
            word = line.tokens[0].text
            if unread >= 0 and (line.indent > unread or (line.indent == unread and word in ("else", "elif"))):
                self._give_up(line)  # it belongs to a line that means nothing
                continue
            unread = -1
            if line.indent not in (indent, before) and not nested:
                self._misplaced(line, indent)
            before = line.indent
            if c.token.text in ("forall", "loop"):
                self.report.add("L130", f"a '{c.token.text}' inside a 'forall'", line.loc,
                                "put all axes into one forall: forall i < M, j < N" if c.token.text == "forall" else
                                "put the forall inside the loop")
                nested = True
                self._give_up(line)
                continue
            try:
                out.append(_remembered(_assign, c))
            except Fault:
                self._give_up(line)
                unread = line.indent
        return out

    def _give_up(self, line: Line) -> None:
        """What a line that cannot be read would have defined is not reported as missing elsewhere."""
        self.unread.update(t.text for t in line.tokens if t.kind == "name")

    def _loop(self, c: Cursor, below: list[Line], depth: int, out: list[Block]) -> None:
        first = c.take()
        axis = None
        try:
            axis = _axis(c)
            if c.token.text == ",":
                raise c.fault("L131", "a 'loop' has one axis", "nest a second loop inside this one")
            c.accept(":")
            c.end("the loop's axis")
        except Fault:
            self._give_up(c.line)
        if depth >= MAX_LOOPS:
            raise c.fault("L131", f"loops nest deeper than {MAX_LOOPS}", "expected fewer loops", first.loc)
        if not below:
            self.empty(c.line, "this 'loop' has no statements", "indent its blocks below it")
        body = self._block(below, depth + 1) if below else []
        if axis is not None:
            out.append(Loop(axis, tuple(body), first.loc))


def _axes(c: Cursor) -> tuple[tuple[AxisDecl, ...], tuple[Condition, ...]]:
    """``forall i < M, j < N where ...``."""
    c.take()
    axes: list[AxisDecl] = []
    where: tuple[Condition, ...] = ()
    if c.token.text != "where":
        axes.append(_axis(c))
        while c.accept(","):
            axes.append(_axis(c))
    if c.accept("where"):
        where = conditions(c)
    c.accept(":")
    c.end("the axes of a forall")
    return tuple(axes), where


def _axis(c: Cursor) -> AxisDecl:
    if c.token.text == "0" and c.peek().text == "<=":
        c.take()
        c.take()
    begin, op, axis, end = c.token, *(c.peek(n) for n in (1, 2, 3))
    both = begin.kind == "int" or (begin.kind == "name" and end.text in ("<", "<="))
    if both and op.text in ("<", "<=") and axis.kind == "name":
        raise c.fault("L132", f"the axis '{axis.text}' begins with {begin.text}: each begins with 0",
                      f"write forall {axis.text} < {'N + 1' if end.text == '<=' else 'N'} "
                      f"where {begin.text} {op.text} {axis.text}")
    t = c.name("an axis", "an axis is written i < M")
    if t.text in RESERVED:
        raise c.fault("L123", f"'{t.text}' is a word of the language", "choose another name for the axis", t.loc)
    if c.token.text == "<=":
        raise c.fault("L132", f"the axis '{t.text}' has the bound '<='", f"write {t.text} < N + 1 for {t.text} <= N")
    if c.token.text == "in":
        raise c.fault("L132", f"expected '<' after the axis '{t.text}', found 'in'", f"write {t.text} < N")
    c.expect("<", f"after the axis '{t.text}'", f"every axis has a bound: {t.text} < N")
    return AxisDecl(t.text, expression(c, ADDITIVE), t.loc)


def _buffer(c: Cursor) -> BufferDecl:
    role = c.take()
    if role.text not in ROLE_WORDS:
        roles = ("in", "const", "inout", "out", "temp")
        raise c.fault("L133", f"expected a role, found '{role.text}'",
                      f"write {elsewhere.ROLES[role.text]}" if role.text in elsewhere.ROLES else
                      did_you_mean(role.text, roles) or "roles: " + ", ".join(roles), role.loc)
    t = c.name("the buffer's name", f"expected {role.text} NAME: f32[M, N]")
    if t.text in RESERVED:
        raise c.fault("L123", f"'{t.text}' is a word of the language", "choose another name for the buffer", t.loc)
    if c.token.text == ",":
        raise c.fault("L110", f"expected ':' after '{t.text}', found ','", "declare one buffer per line")
    c.expect(":", f"after '{t.text}'", f"expected {role.text} {t.text}: f32[M, N]")
    return buffer_type(c, t.text, role.text, t.loc)


def buffer_type(c: Cursor, name: str, role: str, loc: Loc = NOWHERE) -> BufferDecl:
    """``[role] dtype[shape]`` up to the end of the line, for the buffer ``name``; ``role`` is the default."""
    if c.token.text in ROLE_WORDS:
        role = c.take().text
    d = c.name("a dtype", "dtypes: " + ", ".join(DTYPES))
    if d.text not in DTYPES and d.text != ANY:
        c.report.add("L134", f"unknown dtype '{d.text}'", d.loc, did_you_mean(d.text, DTYPES) or _dtype_hint(d.text))
    shape = arguments(c, "]", d) if c.accept("[") else ()
    c.end("the buffer's shape")
    return BufferDecl(role, name, d.text, shape, loc)


def _dtype_hint(text: str) -> str:
    words = elsewhere.DTYPES
    return f"write {words[text]}" if text in words else "dtypes: " + ", ".join(DTYPES)


def _assign(c: Cursor) -> Assign:
    first = c.token
    if first.kind != "name":
        hint = "a statement looks like C[i, j] += A[i, k]"
        hint = "a comment begins with #" if first.text in elsewhere.COMMENTS else hint
        raise c.fault("L135", f"expected a statement, found {first.shown}", hint)
    accumulates = c.peek().text in ("max", "min") and c.peek(2).text == "="
    if c.peek().kind == "name" and not accumulates and first.text not in RESERVED:
        hint = elsewhere.STATEMENTS.get(first.text) or did_you_mean(first.text, MEMBERS)
        raise c.fault("L136", f"nothing begins with '{first.text}'", hint or "expected one of: " + ", ".join(MEMBERS))
    if first.text in RESERVED or (first.text in ("max", "min") and c.peek().text == "("):
        raise c.fault("L136", f"expected a statement, found '{first.text}'",
                      "a statement looks like C[i, j] += A[i, k]")
    c.take()
    dest = Ref(first.text, arguments(c, "]", first) if c.accept("[") else (), first.loc)
    op = _assignment_operator(c)
    loc = c.token.loc
    value = expression(c)
    if c.token.text == "=":
        raise c.fault("L113", "expected one '=' in a statement",
                      "write '==' to compare, two statements to assign twice")
    c.end("the statement")
    return Assign(dest, op, value, _start(value, loc))


def _start(value: object, loc: Loc) -> Loc:
    return value.loc if isinstance(value, (Name, Number, Ref)) else loc


def _assignment_operator(c: Cursor) -> str:
    t = c.take()
    if t.text == "=":
        return ""
    if t.text in ACCUMULATE:
        return ACCUMULATE[t.text]
    if t.text in ("max", "min"):
        c.expect("=", f"after '{t.text}'", f"an accumulation is written {t.text}=")
        return t.text
    if t.text in elsewhere.ASSIGNMENTS:
        raise c.fault("L137", f"there is no '{t.text}'", elsewhere.ASSIGNMENTS[t.text], t.loc)
    hint = "a statement looks like C[i, j] += A[i, k]"
    if t.text == "(":
        hint = "elements are written with [ ]"
    if t.text == "==":
        hint = "'==' compares, '=' assigns"
    if t.text == ":":
        hint = "a buffer's declaration begins with its role: in x: f32[M, N]"
    raise c.fault("L138", f"expected '=', '+=', '*=', 'max=' or 'min=', found {t.shown}", hint, t.loc)
