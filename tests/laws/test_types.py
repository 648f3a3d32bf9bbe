"""What one type holds of another, by the numbers at its ends, exactly: what laws and checker think of casts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.text import parse
from isam.proof.casts import rounds_alike, widens
from isam.transforms.values.casts import holds, holds_products
from isam.transforms.values.fold import is_exact
from isam.transforms.values.widen import Widen

NUMBERS = [n for n, d in DTYPES.items() if d.kind in "iuf"]
FLOATS = [n for n in NUMBERS if DTYPES[n].kind == "f"]


def ends(dtype: str) -> list[Fraction]:
    """The numbers of a type that another one is the most likely to lack: the largest, the finest, the longest."""
    d = DTYPES[dtype]
    if d.kind != "f":
        least = -(1 << d.bits - 1) if d.kind == "i" else 0
        return [Fraction(x) for x in (least, least + (1 << d.bits) - 1, 0, 1)]
    bits = np.dtype(f"u{d.bits // 8}")
    one, inf = (int(np.array(x, numpy_dtype(dtype)).view(bits)) for x in (1, np.inf))
    found = [float(np.array(n, bits).view(numpy_dtype(dtype))) for n in (1, one + 1, inf - 1)]
    return [s * Fraction(x) for s in (1, -1) for x in found]


def held(x: Fraction, dtype: str) -> bool:
    d = DTYPES[dtype]
    if d.kind != "f":
        least, *_, most = sorted(ends(dtype))
        return x.denominator == 1 and least <= x <= most
    try:
        with np.errstate(over="ignore"):
            near = float(numpy_dtype(dtype).type(float(x)))
    except OverflowError:
        return False
    return bool(np.isfinite(near)) and Fraction(near) == x


@pytest.mark.parametrize("wide", NUMBERS)
def test_what_a_type_holds_of_another(wide: str) -> None:
    for narrow in NUMBERS:
        every = all(held(x, wide) for x in ends(narrow))
        assert holds(wide, narrow) == every, narrow
        assert widens(narrow, wide) == every, narrow
        products = all(held(x * y, wide) for x, y in product(ends(narrow), repeat=2))
        assert holds_products(wide, narrow) == products, narrow


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_that_a_type_has(dtype: str) -> None:
    for x in {x + more for x in ends(dtype) for more in (-1, 0, 1)}:
        whole = int(x) if x.denominator == 1 else None
        assert is_exact(float(x), dtype) == (DTYPES[dtype].kind == "f" and held(Fraction(float(x)), dtype)), x
        assert whole is None or is_exact(whole, dtype) == held(x, dtype), x
    assert not any(is_exact(x, dtype) for x in (True, float("inf"), float("nan")))


def test_what_a_type_does_not_know_of_truth() -> None:
    assert not any(is_exact(x, "bool") for x in (True, 1, 1.0))
    assert not any(holds(t, "bool") or holds("bool", t) or holds_products(t, "bool") for t in NUMBERS)


def test_types_in_which_operations_may_be_done_first() -> None:
    """More than twice the digits, and room for every product; the table that the theorem asks for."""
    fine = {(n, w) for n, w in product(FLOATS, repeat=2) if rounds_alike(n, w)}
    assert fine == {("f32", "f64"), ("f16", "f64"), ("f16", "f32"), ("bf16", "f64")}
    text = "kernel k()\n  in a: {d}[2]\n  out y: {d}[2]\n  forall i < 2\n    y[i] = a[i] * a[i]\n"
    law = Widen(tuple(FLOATS))
    assert fine == {(n, s["dtype"]) for n in FLOATS for s in law.sites(parse(text.format(d=n)))}
