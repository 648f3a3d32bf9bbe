"""Python expressions to the language's, with their places."""

from __future__ import annotations

import ast
import math
from typing import Protocol

from isam.diagnostics import Loc, did_you_mean
from isam.ir.dtype import DTYPES
from isam.ir.expressions import FUNCTIONS, MAX_DEPTH
from isam.ir.lexer import MAX_DIGITS
from isam.ir.syntax import Call, Condition, Expr, Name, Number, Ref

BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floordiv",
          ast.Mod: "mod"}
COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
RELATION = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
ALIASES = {"maximum": "max", "minimum": "min", "where": "select", "fabs": "abs"}


class Unreadable(Exception):
    """A piece of the function means nothing in the language; its diagnostic is already in the report."""


class Reader(Protocol):
    def loc(self, node: ast.AST) -> Loc: ...
    def wrong(self, node: ast.AST, message: str, hint: str, code: str = "F603") -> Unreadable: ...


def expression_of(r: Reader, e: ast.expr, depth: int = 0) -> Expr:
    """One expression. Raises ``Unreadable`` after reporting what has no meaning."""
    if depth > MAX_DEPTH:
        raise r.wrong(e, f"the expression nests deeper than {MAX_DEPTH}", "name a part of it and use the name")
    at = r.loc(e)
    if isinstance(e, ast.Constant) and isinstance(e.value, (bool, int, float)):
        return _number(r, e, e.value, at)
    if isinstance(e, (ast.Name, ast.Attribute)):
        word = e.id if isinstance(e, ast.Name) else e.attr
        return Number(float(word), at) if word in ("inf", "nan") else Name(word, at)
    if isinstance(e, ast.Subscript):
        index = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
        if not isinstance(e.value, ast.Name):
            raise r.wrong(e, "only buffers have elements", "expected an element such as A[i, k]")
        return Ref(e.value.id, tuple(expression_of(r, x, depth + 1) for x in index), at)
    op, operands, infix = _operation(r, e)
    args = tuple(expression_of(r, x, depth + 1) for x in operands)
    if op == "neg" and isinstance(args[0], Number) and not isinstance(args[0].value, bool):
        return Number(-args[0].value, at)
    if op == "pos":
        return args[0]
    left = args[0]
    if op in ("max", "min", "and", "or"):
        for x in args[1:-1]:
            left = Call(op, (left, x), at, 1 + left.depth)
        args = (left, args[-1])
    return Call(op, args, at, 1 + max(a.depth for a in args), infix)


def _number(r: Reader, e: ast.Constant, value: float | int | bool, at: Loc) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise r.wrong(e, "this number is too large", "infinity is written inf")
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        raise r.wrong(e, "this number is too large", f"expected at most {MAX_DIGITS} digits")
    return Number(value, at)


def _operation(r: Reader, e: ast.expr) -> tuple[str, list[ast.expr], bool]:
    """The operation's name, its operands, and whether it is an infix one."""
    if isinstance(e, ast.BinOp) and type(e.op) in BINARY:
        return BINARY[type(e.op)], [e.left, e.right], True
    if isinstance(e, ast.UnaryOp) and not isinstance(e.op, ast.Invert):
        return {ast.USub: "neg", ast.Not: "not"}.get(type(e.op), "pos"), [e.operand], False
    if isinstance(e, ast.BoolOp):
        return "and" if isinstance(e.op, ast.And) else "or", list(e.values), True
    if isinstance(e, ast.Compare):
        if len(e.ops) != 1:
            raise r.wrong(e, "comparisons do not chain in a value", "write (a < b) and (b < c)")
        if type(e.ops[0]) not in COMPARE:
            raise r.wrong(e, "this comparison does not exist", "known: < <= > >= == !=")
        return COMPARE[type(e.ops[0])], [e.left, e.comparators[0]], True
    if isinstance(e, ast.IfExp):
        return "select", [e.test, e.body, e.orelse], False
    if isinstance(e, ast.Call):
        return _call(r, e)
    raise r.wrong(e, f"'{ast.unparse(e)[:40]}' has no meaning in a kernel", "expected elements, numbers and functions")


def _call(r: Reader, e: ast.Call) -> tuple[str, list[ast.expr], bool]:
    word = e.func.id if isinstance(e.func, ast.Name) else e.func.attr if isinstance(e.func, ast.Attribute) else ""
    word = ALIASES.get(word, word)
    base = word.removeprefix("sat_")
    want = 1 if base in DTYPES else FUNCTIONS.get(word)
    if want is None:
        raise r.wrong(e, f"unknown function '{word or ast.unparse(e.func)[:40]}'",
                      did_you_mean(word, [*FUNCTIONS, *DTYPES]) or "known: " + ", ".join(FUNCTIONS))
    if e.keywords or (len(e.args) != want and not (word in ("max", "min") and len(e.args) > 2)):
        raise r.wrong(e, f"'{word}' takes {want} argument{'s' * (want != 1)}, found {len(e.args) + len(e.keywords)}",
                      f"expected {word}({', '.join('abc'[:want])})")
    return word, list(e.args), False


def where_of(r: Reader, k: ast.keyword) -> list[Condition]:
    """``where=j <= i``, ``where=(a <= b, c < d)`` or ``where=a <= b and c < d``."""
    if k.arg != "where":
        raise r.wrong(k.value, f"forall has no option '{k.arg}'", "known: where")
    parts = k.value.elts if isinstance(k.value, (ast.Tuple, ast.List)) else [k.value]
    out: list[Condition] = []
    todo = list(parts)
    while todo:
        e = todo.pop(0)
        if isinstance(e, ast.BoolOp) and isinstance(e.op, ast.And):
            todo = [*e.values, *todo]
            continue
        if not isinstance(e, ast.Compare) or any(type(o) not in RELATION for o in e.ops):
            raise r.wrong(e, "expected an affine comparison in the 'where'", "a condition looks like j <= i")
        left = expression_of(r, e.left)
        for o, x in zip(e.ops, e.comparators, strict=True):
            right = expression_of(r, x)
            out.append(Condition(left, RELATION[type(o)], right, r.loc(e)))
            left = right
    return out
