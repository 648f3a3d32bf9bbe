"""Sizes that are worked out from others: how many whole times a number goes into one (IR-1)."""

from __future__ import annotations

import numpy as np
import pytest

from isam.diagnostics import IsamError
from isam.ir.affine import Affine
from isam.ir.hashing import structural_hash
from isam.ir.interp import run
from isam.ir.kernel import Sym
from isam.ir.poly_domain import context
from isam.ir.ranges import nonnegative
from isam.ir.text import parse
from isam.proof.context import of_sizes

TEXT = """kernel pieces(5 <= T <= 23, M, Q = T // 4)
  in  x: f32[T, M]
  out y: f32[T, M]
  loop c < Q
    forall s < 4, i < M
      y[4*c + s, i] = 2 * x[4*c + s, i]
  loop r < T - 4*Q
    forall i < M
      y[4*Q + r, i] = x[4*Q + r, i]
"""


def test_it_is_printed_as_it_was_written_and_counts() -> None:
    k = parse(TEXT)
    assert k.syms[2] == Sym("Q", 1, 5, 1, ("T", 4))
    assert parse(str(k)) == k
    assert "(5 <= T <= 23, M, Q = T // 4)" in str(k)
    assert structural_hash(k) != structural_hash(parse(TEXT.replace("Q = T // 4", "0 <= Q <= 5")))
    assert [s.name for s in k.given] == ["T", "M"]
    assert k.with_sizes({"T": 11}).syms == (Sym("M"),)
    assert k.usual(128)["T"] == 130, "half a part is left over"


@pytest.mark.parametrize("steps", [5, 7, 8, 23])
def test_its_value_follows(steps: int) -> None:
    x = np.random.default_rng(steps).standard_normal((steps, 3)).astype(np.float32)
    want = np.where((np.arange(steps) < steps // 4 * 4)[:, None], 2 * x, x)
    np.testing.assert_array_equal(run(parse(TEXT), {"x": x})["y"], want)


def test_what_is_known_of_it() -> None:
    syms = parse(TEXT).syms
    left = Affine.of("T") - Affine.of("Q", 4)
    for known in (lambda e: nonnegative(e, syms), of_sizes(syms).nonneg,
                  lambda e: context(syms).is_subset(context(syms, [e]))):  # fmt: skip
        assert known(left)
        assert known(3 - left)
        assert known(Affine.of("Q") - 1)
        assert not known(2 - left)
        assert not known(left - 1)


@pytest.mark.parametrize(("head", "code"), [
    ("T, Q = M // 4", "L202"), ("Q = T // 4, T", "L202"), ("T, Q = T // 0", "L122"),
    ("T, P = T // 2, Q = P // 2", "L202"), ("T, N=3, Q = N // 2", "L202"),
])  # fmt: skip
def test_what_it_cannot_be_worked_out_from(head: str, code: str) -> None:
    text = f"kernel k({head})\n  inout h: f32\n  loop t < Q\n    h[] = h[] * 2\n"
    with pytest.raises(IsamError) as e:
        parse(text)
    assert code in {d.code for d in e.value.diagnostics}


def test_an_instruction_has_none() -> None:
    with pytest.raises(IsamError, match="cannot be worked out"):
        parse("instruction i(T, Q = T // 4)\n  in A: f32[Q]\n  out D: f32[Q]\n  forall j < Q\n    D[j] = A[j]\n")
