"""Kernels that look as if a law of structure held there: every law keeps the meaning at each of its sites."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.mismatch import Mismatch
from isam.ir.text import parse
from isam.ir.verify import verify
from isam.mapper import match
from isam.transforms import ALL
from isam.transforms.values.casts import holds_products
from tests.laws.judges import same
from tests.unit.mapper.catalogue import instruction, kernel

HARD = {
    "an output written in parts": """kernel k()
  in  x: f32[4]
  out y: f32[8]
  forall i < 4
    y[i] = x[i] * x[3 - i]
  forall i < 4
    y[i + 4] = y[i] * x[i]
""",
    "a product that is summed the other way round": """kernel k()
  permits reassociate, finite
  in  x: f32[5]
  in  w: f32[4]
  out y: f32[4]
  forall i < 4
    y[i] = 0
  forall i < 4, j < 4 where i + j >= 1, i + j <= 5
    t[j, i] = x[i + j - 1] * w[j]
  forall i < 4, j < 4 where i + j >= 1, i + j <= 5
    y[i] += t[i, j]
""",
    "a border that one product reads twice": """kernel k()
  permits reassociate, finite
  in  x: f32[6]
  in  w: f32[3]
  out y: f32[6]
  out z: f32[6]
  temp p: f32[8]
  forall i < 8
    p[i] = 0
  forall i < 6
    p[i + 1] = x[i]
  forall i < 6
    y[i] = 0
    z[i] = 0
  forall i < 6, s < 3
    u[i, s] = p[i + s] * w[s]
    y[i] += u[i, s]
  forall i < 6, s < 3
    v[i, s] = p[i + s] * p[i]
    z[i] += v[i, s]
""",
    "a border that is read twice, and then once": """kernel k()
  permits reassociate, finite
  in  x: f32[6]
  in  w: f32[3]
  out y: f32[6]
  temp p: f32[8]
  forall i < 8
    p[i] = 0
  forall i < 6
    p[i + 1] = x[i]
  forall i < 6
    y[i] = 0
  forall i < 6, s < 3
    v[i, s] = p[i + s] * p[i]
    y[i] += v[i, s]
""",
}
JUDGED = [t for t in ALL if t.judge not in ("float bound",)]


@pytest.mark.parametrize("what", HARD)
def test_no_law_is_taken_in(what: str) -> None:
    k = parse(HARD[what])
    assert not verify(k), "\n".join(map(str, verify(k)))
    for law in JUDGED:
        for site in law.sites(k):
            after = law.apply(k, site).kernel
            assert not verify(after), f"{law.law} {site}:\n{after}"
            assert same(law, k, after), f"{law.law} {site}:\n{after}"


def test_which_types_hold_every_product_of_which() -> None:
    """Digits twice over, and twice the range, for floats; the sign's digit too for integers."""
    holding = {
        "f64": {"f32", "f16", "bf16", "i16", "i8", "u8"}, "f32": {"f16", "i8", "u8"}, "i64": {"i32", "i16", "i8", "u8"},
        "i32": {"i16", "i8", "u8"}, "i16": {"i8"}, "f16": set(), "bf16": set(), "i8": set(), "u8": set(), "bool": set(),
    }  # fmt: skip
    found = {wide: {narrow for narrow in holding if holds_products(wide, narrow)} for wide in holding}
    assert found == holding


def test_blocks_of_one_rank_and_lines_are_stored_behind_each_other() -> None:
    law = next(t for t in ALL if t.law == "store-at")
    k = parse("""kernel k()
  in  a: f32[2, 4]
  in  b: f32[3, 4]
  in  c: f32[4]
  out y: f32[4]
  forall j < 4
    y[j] = a[1, j] * b[2, j]
    y[j] += c[j]
""")
    found = {(s["host"], s["guest"], s["dim"]) for s in law.sites(k)}
    assert found == {("a", "b", 0), ("b", "a", 0), ("a", "c", 0), ("b", "c", 0)}
    for site in law.sites(k):
        assert same(law, k, law.apply(k, site).kernel)


def test_a_product_summed_as_it_was_made_is_padded() -> None:
    law = next(t for t in ALL if t.law == "pad")
    wrong = HARD["a product that is summed the other way round"]
    assert not law.sites(parse(wrong))
    assert law.sites(parse(wrong.replace("t[j, i] =", "t[i, j] =")))


def test_a_product_is_offered_where_an_exponent_is_a_sum() -> None:
    """The instruction multiplies where the kernel adds what it takes the exponential of."""
    law = next(t for t in ALL if t.law == "exp-of-sum")
    k = kernel("k()\n in x: f32[8]\n in z: f32[8]\n out y: f32[8]\n forall i < 8\n  t[i] = x[i] + z[i]\n"
               "  y[i] = exp(t[i])")  # fmt: skip
    mismatch = match(k, instruction("vmul"))
    assert isinstance(mismatch, Mismatch)
    assert mismatch.about("need") == ("mul", False)
    assert law.sites_for(k, mismatch) == law.sites(k) != ()
    assert not law.sites_for(k, replace(mismatch, kind="coefficient"))
