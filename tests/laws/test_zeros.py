"""Which of the two zeros of a float a law leaves: folding knows it, an extremum of both does not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from isam.ir.kernel import Kernel, Literal
from isam.ir.text import parse
from isam.proof.equivalence import Equivalence
from isam.transforms import ALL

LAWS = {t.law: t for t in ALL}
TEXT = """kernel k()
  in  a: {dtype}[4]
  in  b: {dtype}[4]
  out y: {dtype}[4]
  permits {permits}
  forall i < 4
    t[i] = {inner}
    y[i] = {outer}
"""


def kernel(inner: str, outer: str, permits: str = "exact", dtype: str = "f32") -> Kernel:
    text = TEXT.format(inner=inner, outer=outer, permits=permits, dtype=dtype)
    return parse(text if "b[" in inner + outer else text.replace(f"  in  b: {dtype}[4]\n", ""))


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i32", "i8"])
@pytest.mark.parametrize(("op", "numbers", "negative"), [
    ("neg", (0,), True), ("neg", (-0.0,), False), ("add", (2, -2), False), ("sub", (2, 2), False),
    ("mul", (0, -3), True), ("mul", (-0.0, -3), False), ("add", (-0.0, -0.0), True), ("add", (0, -0.0), False),
    ("sub", (-0.0, 0), True),
])  # fmt: skip
def test_the_zero_that_numbers_make(op: str, numbers: tuple[float, ...], negative: bool, dtype: str) -> None:
    if dtype in ("i32", "i8"):
        numbers, negative = tuple(map(int, numbers)), False
    k = kernel("a[i]", "a[i] + t[i]", "reassociate", dtype)
    first, last = k.statements
    k = replace(k, body=(replace(first, op=op, sources=tuple(map(Literal, numbers))), last))
    (site,) = LAWS["fold-numbers"].sites(k)
    after = LAWS["fold-numbers"].apply(k, site).kernel
    (made,) = after.statements[0].sources
    assert isinstance(made, Literal)
    assert made.value == 0
    assert (math.copysign(1, made.value) < 0) == negative
    assert isinstance(made.value, int) == (dtype in ("i32", "i8"))
    assert Equivalence().judge(k, after)


def test_minus_zero_is_a_number_and_not_the_other_zero() -> None:
    """`min(a, 0)` where there is `max`: what is left of `-0` can be written as it is, to the bit."""
    k = kernel("a[i]", "min(t[i], 0)")
    (site,) = LAWS["min-by-max"].sites(k)
    turned = LAWS["min-by-max"].apply(k, site).kernel
    (site,) = LAWS["fold-numbers"].sites(turned)
    folded = LAWS["fold-numbers"].apply(turned, site).kernel
    for a, b in ((k, turned), (turned, folded), (k, folded)):
        verdict = Equivalence().judge(a, b)
        assert verdict
        assert verdict.numerics == ()
    n, s = next((n, s) for n, s in enumerate(folded.statements) if Literal(-0.0) in s.sources)
    lines = (*folded.body[:n], replace(s, sources=(Literal(0),)), *folded.body[n + 1 :])
    assert not Equivalence().judge(k, replace(folded, body=lines))


@pytest.mark.parametrize(("factor", "permits", "found"), [
    ("0.3", "exact", False), ("-0.9", "nothing", False), ("0.3", "reassociate", True), ("1.5", "exact", True),
    ("-1", "exact", True), ("-3", "nothing", True),
])  # fmt: skip
def test_what_makes_two_zeros_of_two_numbers_takes_a_permission(factor: str, permits: str, found: bool) -> None:
    push = kernel("max(a[i], b[i])", f"{factor} * t[i]", permits)
    pull = kernel(f"{factor} * a[i]", f"max(t[i], {factor} * b[i])", permits)
    for k, law in ((push, LAWS["push-scaling"]), (pull, LAWS["pull-scaling"])):
        assert bool(law.sites(k)) == found, law.law
        for s in law.sites(k):
            assert Equivalence().judge(k, law.apply(k, s).kernel)
