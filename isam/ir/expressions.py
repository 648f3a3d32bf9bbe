"""Recursive descent over one logical line: expressions, conditions, and the cursor that the statement parser shares."""

from __future__ import annotations

import math

from isam.diagnostics import Loc, did_you_mean
from isam.ir.dtype import DTYPES
from isam.ir.elsewhere import FUNCTIONS as OTHERS
from isam.ir.elsewhere import TAILS, VALUES
from isam.ir.lexer import Line, Report, Token
from isam.ir.operators import LEVELS
from isam.ir.syntax import Call, Condition, Expr, Name, Number, Ref

MAX_DEPTH = 100
FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "abs", "floor", "ceil",
                     "round"), 1),
    "max": 2, "min": 2, "pow": 2, "select": 3,
}
LEVEL_OF = {sign: n for n, level in enumerate(LEVELS) for sign in level}
COMPARING = 2
ADDITIVE = 3
CONSTANTS = {"inf": math.inf, "nan": math.nan, "true": True, "false": False}
RELATIONS = ("<=", "<", "==", ">=", ">")


class Fault(Exception):
    """The current line cannot be read further; its diagnostic is already in the report."""


class Cursor:
    """Reads the tokens of one line from left to right."""

    def __init__(self, line: Line, report: Report):
        self.line, self.report, self.tokens = line, report, line.tokens
        self.at = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self) -> Token:
        t = self.token
        if t.kind != "end":
            self.at += 1
        return t

    def accept(self, text: str) -> bool:
        t = self.tokens[self.at]
        if t.text == text and t.kind in ("op", "name"):
            self.at += 1
            return True
        return False

    def fault(self, code: str, message: str, hint: str = "", loc: Loc | None = None) -> Fault:
        self.report.add(code, message, loc or self.token.loc, hint)
        return Fault()

    def expect(self, text: str, why: str, hint: str = "") -> Token:
        if self.token.kind == "end" or self.token.text != text:
            raise self.fault("L110", f"expected '{text}' {why}, found {self.token.shown}",
                             hint or f"put '{text}' here")
        return self.take()

    def name(self, what: str, hint: str = "") -> Token:
        if self.token.kind != "name":
            raise self.fault("L111", f"expected {what}, found {self.token.shown}", hint)
        return self.take()

    def integer(self, what: str) -> int:
        sign = -1 if self.accept("-") else 1
        if self.token.kind != "int":
            hint = "an integer is digits only, such as 16"
            if self.token.kind == "float" and what == "the constant's value":
                hint += f"; {self.token.text} may stand in the statements"
            raise self.fault("L112", f"expected {what}, found {self.token.shown}", hint)
        return sign * int(self.take().value)

    def end(self, what: str) -> None:
        if self.token.kind != "end":
            hint = TAILS.get(self.token.text, "one statement per line, one operator between two values")
            if self.token.text == "," and what == "the buffer's shape":
                hint = "declare one buffer per line"
            raise self.fault("L113", f"expected the end of the line after {what}, found {self.token.shown}", hint)


def expression(c: Cursor, level: int = 0) -> Expr:
    """One expression whose operators bind at least as tightly as ``LEVELS[level]``."""
    c.depth += 1
    if c.depth > MAX_DEPTH:
        raise c.fault("L114", f"the expression nests deeper than {MAX_DEPTH}", "name a part of it and use the name")
    try:
        return _climb(c, level)
    finally:
        c.depth -= 1


def _climb(c: Cursor, level: int) -> Expr:
    left = _unary(c, level)
    while True:
        found = LEVEL_OF.get(c.token.text, -1)
        if found < level:
            return left
        op = c.take()
        right = expression(c, found + 1)
        if found == COMPARING and isinstance(left, Call) and left.infix and left.op in LEVELS[COMPARING].values():
            raise c.fault("L115", "comparisons do not chain in a value", "write (a < b) and (b < c)", op.loc)
        left = _node(c, LEVELS[found][op.text], (left, right), op.loc)


def _node(c: Cursor, op: str, args: tuple[Expr, ...], loc: Loc, infix: bool = True) -> Call:
    depth = 1 + max((a.depth for a in args), default=0)
    if depth > MAX_DEPTH:
        raise c.fault("L114", f"the expression has more than {MAX_DEPTH} operations in a row",
                      "name a part of it and use the name", loc)
    return Call(op, args, loc, depth, infix)


def _unary(c: Cursor, level: int) -> Expr:
    t = c.token
    if t.text == "-" and t.kind == "op":
        c.take()
        inner = expression(c, len(LEVELS))
        if isinstance(inner, Number) and not isinstance(inner.value, bool):
            return Number(-inner.value, t.loc)
        return _node(c, "neg", (inner,), t.loc)
    if t.text == "+" and t.kind == "op":
        c.take()
        return expression(c, len(LEVELS))
    if t.text == "not" and t.kind == "name":
        c.take()
        return _node(c, "not", (expression(c, max(level, COMPARING)),), t.loc)
    return _primary(c)


def _primary(c: Cursor) -> Expr:
    t = c.take()
    if t.kind in ("int", "float"):
        return Number(t.value, t.loc)
    if t.text == "(":
        inner = expression(c)
        c.expect(")", f"to close the '(' at column {t.loc.column}")
        if isinstance(inner, Call) and inner.infix:  # parentheses end a comparison: (a < b) == c is no chain
            return Call(inner.op, inner.args, inner.loc, inner.depth)
        return inner
    if t.kind != "name":
        c.at -= t.kind != "end"
        before = c.tokens[c.at - 1].text if c.at else ""
        hint = VALUES.get(t.text) or VALUES.get(before + t.text) or "a binary operator needs a value on both sides"
        raise c.fault("L116", f"expected a value (a buffer's element, a number or a function), found {t.shown}", hint)
    if t.text in CONSTANTS:
        return Number(CONSTANTS[t.text], t.loc)
    if c.accept("["):
        return Ref(t.text, arguments(c, "]", t), t.loc)
    if c.accept("("):
        return _call(c, t)
    return Name(t.text, t.loc)


def arguments(c: Cursor, closing: str, opened: Token) -> tuple[Expr, ...]:
    """Comma-separated expressions up to the closing bracket."""
    out: list[Expr] = []
    if c.accept(closing):
        return ()
    while True:
        out.append(expression(c))
        if c.accept(closing):
            return tuple(out)
        c.expect(",", f"or '{closing}' in the list after '{opened.text}'")


def _call(c: Cursor, t: Token) -> Call:
    args = arguments(c, ")", t)
    base = t.text.removeprefix("sat_")
    if base in DTYPES and not (base != t.text and DTYPES[base].kind not in "iu"):
        return _check_count(c, t, args, 1)
    if t.text not in FUNCTIONS:
        known = [*FUNCTIONS, *DTYPES, *(f"sat_{d}" for d in DTYPES if DTYPES[d].kind in "iu")]
        hint = OTHERS.get(t.text) or did_you_mean(t.text, known)
        hint = hint or "a buffer's element is written with [ ]; known: " + ", ".join(FUNCTIONS)
        raise c.fault("L117", f"unknown function '{t.text}'", hint, t.loc)
    if t.text in ("max", "min") and len(args) > 2:
        left = args[0]
        for a in args[1:]:
            left = _node(c, t.text, (left, a), t.loc, infix=False)
        assert isinstance(left, Call)
        return left
    return _check_count(c, t, args, FUNCTIONS[t.text])


def _check_count(c: Cursor, t: Token, args: tuple[Expr, ...], want: int) -> Call:
    if len(args) != want:
        raise c.fault("L118", f"'{t.text}' takes {want} argument{'s' * (want != 1)}, found {len(args)}",
                      f"expected {t.text}({', '.join('abc'[:want])})", t.loc)
    return _node(c, t.text, args, t.loc, infix=False)


def conditions(c: Cursor) -> tuple[Condition, ...]:
    """``a <= b < c, d == e``: affine conditions, chained, joined by commas (or ``and``)."""
    out: list[Condition] = []
    while True:
        left = expression(c, ADDITIVE)
        if c.token.text not in RELATIONS:
            hint = "a condition looks like j <= i"
            if c.token.text == "!=":
                hint = "split the forall in two: one where a < b, one where a > b"
            raise c.fault("L119", f"expected a comparison in the 'where', found {c.token.shown}", hint)
        while c.token.text in RELATIONS:
            op = c.take()
            right = expression(c, ADDITIVE)
            out.append(Condition(left, op.text, right, op.loc))
            left = right
        if c.token.text == "or":
            raise c.fault("L119", "a 'where' cannot say 'or'", "write two forall blocks with disjoint conditions")
        if not (c.accept(",") or c.accept("and")):
            return tuple(out)
