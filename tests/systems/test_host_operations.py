"""Whatever the language can say in one statement, the host has an instruction for."""

from __future__ import annotations

import pytest

from isam.approach.choice import Approach, Trace
from isam.diagnostics import IsamError
from isam.ir.dtype import DTYPES
from isam.ir.mapping import Cover
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.ir.verify import verify
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.system.load import load_system

BINARY = {"add": "{a} + {b}", "sub": "{a} - {b}", "mul": "{a} * {b}", "div": "{a} / {b}", "max": "max({a}, {b})",
          "min": "min({a}, {b})", "pow": "pow({a}, {b})", "and": "{a} and {b}", "or": "{a} or {b}", "lt": "{a} < {b}",
          "le": "{a} <= {b}", "gt": "{a} > {b}", "ge": "{a} >= {b}",
          "eq": "{a} == {b}", "ne": "{a} != {b}"}  # fmt: skip
FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "abs", "floor", "ceil", "round")
UNARY = {f: f"{f}({{a}})" for f in FUNCTIONS} | {"neg": "-{a}", "not": "not {a}", "copy": "{a}"}
FORMS = {"vv": ("[5]", "[5]", "[5]", "[i]", "[i]", "[i]"), "vs": ("[5]", "", "[5]", "[i]", "[]", "[i]"),
         "sv": ("", "[5]", "[5]", "[]", "[i]", "[i]"), "ss": ("", "", "", "[]", "[]", "[]")}  # fmt: skip


def kernel(dtype: str, operation: str, form: str):
    """A kernel of the one statement, or None where the language does not have it."""
    sa, sb, so, a, b, d = FORMS[form]
    out = "bool" if operation in ("lt", "le", "gt", "ge", "eq", "ne") else dtype
    where = "  forall i < 5\n    " if so else "  "
    text = (BINARY | UNARY)[operation].format(a="A" + a, b="B" + b)
    source = f"kernel k()\n  in A: {dtype}{sa}\n  in B: {dtype}{sb}\n  out D: {out}{so}\n{where}D{d} = {text}\n"
    try:
        k = parse(source)
    except IsamError:
        return None
    return None if verify(k) else normal_form(k)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_has_an_instruction(dtype: str) -> None:
    system = load_system("host")
    asked, missing = 0, []
    for operation in (*BINARY, *UNARY):
        for form in FORMS if operation in BINARY else ("vv", "ss"):
            k = kernel(dtype, operation, form)
            if k is None:
                continue
            asked += 1
            if not isinstance(cover(k, Demand(system.compute), Trace(Approach())), Cover):
                missing.append(f"{operation} {form} of {dtype}")
    assert not missing
    assert asked >= (30 if dtype == "bool" else 50)
