"""The sizes in the head of a kernel or an instruction: ranges, multiples, constants, sizes worked out from others."""

from __future__ import annotations

from isam.ir.expressions import Cursor
from isam.ir.syntax import SymDecl

RESERVED = frozenset({"kernel", "instruction", "forall", "loop", "permits", "where", "in", "const", "inout", "out",
                      "temp", "auto", "inf", "nan", "true", "false", "and", "or", "not"})
LEAST = "expected a limit of at least 1"


def size_declaration(c: Cursor, *, some: bool = False) -> SymDecl:
    """``NAME``, ``1 <= NAME <= 16``, ``NAME % 8``, ``NAME=1`` or ``NAME = OTHER // 8``. ``some``: it can be more than
    zero, as each of an instruction has to."""
    lo, hi, multiple = 0, None, 1
    if c.token.kind == "int" or c.token.text == "-":
        start = c.token.loc
        lo = c.integer("a lower bound")
        if c.token.text not in ("<=", "<"):
            raise c.fault("L110", f"expected '<=' after the lower bound, found {c.token.shown}", "write 1 <= M <= 16")
        lo += c.take().text == "<"
        if lo < 0:
            raise c.fault("L122", "a size is never negative", "expected a lower bound of at least 0", start)
    t = c.name("the name of a size", "a size is NAME, NAME <= 16, 1 <= NAME <= 16, NAME % 8 or NAME=1")
    if t.text in RESERVED:
        raise c.fault("L123", f"'{t.text}' is a word of the language", "choose another name for the size", t.loc)
    if c.accept("="):
        if c.token.kind == "name":
            return SymDecl(t.text, t.loc, whole=_whole(c))
        where = c.token.loc
        value = c.integer("the constant's value")
        if some and value < 1:
            raise c.fault("L122", f"the size '{t.text}' can only be {value}", LEAST, where)
        return SymDecl(t.text, t.loc, default=value)
    while c.token.text in ("<=", "<", ">=", ">", "==", "%"):
        op = c.take()
        where = c.token.loc
        value = c.integer("an integer")
        if op.text == "%":
            if value < 1:
                raise c.fault("L122", f"a size cannot be a multiple of {value}", "expected at least 1", where)
            multiple = value
        elif op.text in ("<=", "<"):
            hi = value - (op.text == "<")
        elif op.text in (">=", ">"):
            lo = value + (op.text == ">")
        else:
            lo = hi = value
        if lo < 0 or (hi is not None and hi < -(-lo // multiple) * multiple):
            step = f" % {multiple}" if multiple > 1 else ""
            raise c.fault("L122", f"no size lies in {lo} <= {t.text}{step} <= {hi}",
                          "expected a range that is not empty", where)
        if some and hi is not None and hi < multiple:
            raise c.fault("L122", f"the size '{t.text}' can only be 0", LEAST, where)
    return SymDecl(t.text, t.loc, lo, hi, multiple)


def _whole(c: Cursor) -> tuple[str, int]:
    """``OTHER // 8``."""
    of = c.name("the name of a size", "write Q = T // 8")
    c.expect("//", "after the size that this one is worked out from", "write Q = T // 8")
    where = c.token.loc
    n = c.integer("an integer")
    if n < 1:
        raise c.fault("L122", f"a size is not divided by {n}", "expected at least 1", where)
    return of.text, n
