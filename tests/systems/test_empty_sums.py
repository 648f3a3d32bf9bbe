"""Products without terms (K = 0): what the sum begins with, on every machine; or a no that says which sum it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isam
from isam.compiler import Refused
from isam.ir.dtype import numpy_dtype
from isam.system.features import lacking
from isam.system.load import load_system

TYPES = {"f32": "f32", "i8": "i32", "bf16": "f32"}  # of the factors, of the sum
PAIRS = [("host", "f32"), ("host", "i8"), ("host", "bf16"), ("host-generic", "f32"), ("blas", "f32"), ("toy", "f32"),
         ("toy", "i8"), ("dual", "bf16"), ("casestudy", "f32"), ("gemmini", "i8"), ("systolic", "i8"),
         ("tpu_v1_like", "i8")]  # fmt: skip
CASES = [(on, factor, begins) for on, factor in PAIRS for begins in ("0", "")
         if (on, begins) != ("tpu_v1_like", "")]  # its accumulators are not filled from home, with terms or without
TINY = Path(__file__).parents[2] / "hwdesc" / "tiny" / "tiny.yaml"


def product(factor: str, begins: str = "0") -> isam.Kernel:
    """A sum that begins with zero, with what an array of bytes holds, or (``""``) with what is there."""
    of = TYPES[factor]
    a, b = (x if of == factor else f"{of}({x})" for x in ("A[i, k]", "B[k, j]"))
    first = f"  forall i < M, j < N\n    C[i, j] = {begins}\n" if begins else ""
    bias = "  in D: i8[M, N]\n" if "D" in begins else ""
    return isam.parse(f"kernel product(M, N, K)\n  in A: {factor}[M, K]\n  in B: {factor}[K, N]\n{bias}"
                      f"  {'out' if begins else 'inout'} C: {of}[M, N]\n  permits reassociate, contract\n{first}"
                      f"  forall i < M, j < N, k < K\n    C[i, j] += {a} * {b}\n")  # fmt: skip


@pytest.mark.parametrize(("on", "factor", "begins"), CASES)
def test_a_product_without_terms_is_what_it_begins_with(on: str, factor: str, begins: str) -> None:
    if missing := lacking(load_system(on).needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    kernel = product(factor, begins)
    f = isam.compile(kernel, on=on, sizes={"M": 5, "N": 3, "K": 0}, cache=False)
    had = np.random.default_rng(1).integers(1, 99, (5, 3)).astype(numpy_dtype(TYPES[factor]))
    a, b = (np.zeros(s, numpy_dtype(factor)) for s in ((5, 0), (0, 3)))
    c = had.copy()
    f(a, b, C=c) if begins else f(a, b, c)
    assert np.array_equal(c, np.zeros_like(had) if begins else had)


def begun(tmp_path: Path) -> str:
    """`tiny` with products that begin their sums themselves, and nothing else that writes a number."""
    text = TINY.read_text(encoding="utf-8")
    zero = "        forall i < M, j < N\n          C[i, j] = 0\n"
    own = text.replace("inout C: f32[M, N]\n", f"out   C: f32[M, N]\n{zero}")
    assert own != text
    (tmp_path / "begun.yaml").write_text(own.replace("system: tiny", "system: begun"), encoding="utf-8")
    return str(tmp_path / "begun.yaml")


@pytest.mark.parametrize("begins", ["0", "i32(D[i, j])"])
def test_where_nothing_writes_that_alone_the_no_says_which_sum_has_no_terms(begins: str, tmp_path: Path) -> None:
    on, kernel = (begun(tmp_path), product("f32")) if begins == "0" else ("gemmini", product("i8", begins))
    sizes = {"M": 4, "N": 4}
    isam.compile(kernel, on=on, sizes={**sizes, "K": 4}, cache=False)
    with pytest.raises(Refused) as no:
        isam.compile(kernel, on=on, sizes={**sizes, "K": 0}, cache=False)
    first, second = no.value.diagnostics
    assert "an instruction like this would do" in first.message
    assert second.message == "this sum has no terms where K = 0; what it begins with is left"
    assert second.loc == kernel.statements[-1].loc
    assert "where there are terms" in second.hint


def test_a_sum_that_has_terms_is_not_spoken_of() -> None:
    with pytest.raises(Refused) as no:
        isam.compile(product("f32"), on="tiny", sizes={"M": 4, "N": 4, "K": 4}, cache=False)
    assert len(no.value.diagnostics) == 1
