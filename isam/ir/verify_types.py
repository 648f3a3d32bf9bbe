"""Dtypes of statements: operands that must agree, operations that a dtype has, literals that fit (IR-8, IR-10)."""

from __future__ import annotations

import math
from collections.abc import Callable

from isam.diagnostics import Loc
from isam.ir.dtype import ANY, DTYPES, cast_to
from isam.ir.infer import FLOAT_ONLY, LOGICAL, groups
from isam.ir.kernel import COMPARISONS, Access, Kernel, Literal, Statement

COMPARED = "a comparison gives bool; select(COMPARISON, 1, 0) is a number"
Add = Callable[[str, str, Loc, str], None]
COPYING = frozenset({"copy", "select"})  # what 'any' has
ON_BOOL = frozenset({"copy", "cast", "cast_sat", "select"}) | COMPARISONS | LOGICAL


def check_types(kernel: Kernel, add: Add) -> None:
    """Reports every dtype fault of the kernel to ``add``."""
    for b in kernel.buffers:
        if b.dtype not in DTYPES and b.dtype != ANY:
            add("V410", f"unknown dtype '{b.dtype}'", b.loc, "dtypes: " + ", ".join(DTYPES))
    for s in kernel.statements:
        if all(a.buffer in kernel.by_name and kernel.buffer(a.buffer).dtype in (*DTYPES, ANY) for a in _accesses(s)):
            _statement(kernel, s, add)


def _accesses(s: Statement) -> list[Access]:
    return [a for a in (s.dest, *s.sources) if isinstance(a, Access)]


def _statement(kernel: Kernel, s: Statement, add: Add) -> None:
    for group in groups(s):
        want, origin = group.dtype, s.op
        for m in group.members:
            if not isinstance(m, Access):
                continue
            have = kernel.buffer(m.buffer).dtype
            if want is None:
                want, origin = have, m.buffer
            elif have != want:
                if origin == s.op:
                    what = f"'{m.buffer}' is {have}, '{s.op}' needs {want} here"
                else:
                    what = f"'{m.buffer}' is {have}, '{origin}' is {want}"
                hint = cast_to(want, have, m.buffer, m.index) if want != "bool" else COMPARED
                add("V411", what, m.loc, hint)
        for m in group.members:
            if isinstance(m, Literal) and want is not None and (want != ANY or s.op in COPYING):
                _literal(m, want, add)
    _legal(kernel, s, add)


def _literal(m: Literal, want: str, add: Add) -> None:
    if want == ANY:
        if isinstance(m.value, bool) or m.value != 0:
            add("V412", f"the literal {m} has no meaning for every dtype", m.loc, "only 0 fits 'any'")
        return
    d = DTYPES[want]
    if isinstance(m.value, bool) != (d.kind == "b"):
        add("V412", f"the literal {m} is not of dtype {want}", m.loc, "bool has the literals true and false")
    elif d.kind in "iu":
        low, high = (0, 2**d.bits - 1) if d.kind == "u" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1)
        if isinstance(m.value, float):
            add("V412", f"the literal {m} is not of dtype {want}", m.loc,
                f"expected an integer, such as {int(m.value) if math.isfinite(m.value) else low}")
        elif not low <= m.value <= high:
            add("V412", f"the literal {m} does not fit {want}", m.loc, f"expected {low} to {high}")


def _legal(kernel: Kernel, s: Statement, add: Add) -> None:
    """Whether the operation exists for the dtype of its operands."""
    operands = [a for a in s.sources if isinstance(a, Access)] or [s.dest]
    dtype = kernel.buffer(operands[-1].buffer).dtype
    if dtype == ANY:
        if s.op not in COPYING:
            add("V413", f"'{s.op}' has no meaning for the dtype 'any'", s.loc, "'any' can only be copied")
        return
    kind = DTYPES[dtype].kind
    if s.op in FLOAT_ONLY and kind != "f":
        add("V413", f"'{s.op}' needs a float, found {dtype}", s.loc, f"cast the operand: {s.op}(f32(...))")
    elif kind == "b" and s.op not in ON_BOOL:
        add("V413", f"'{s.op}' has no meaning for bool", s.loc, "cast the operand: i32(...)")
    if s.op == "cast_sat" and DTYPES[kernel.buffer(s.dest.buffer).dtype].kind not in "iu":
        add("V413", "a saturating cast gives an integer", s.loc, "write a plain cast")
