"""Every kernel of the corpus on `blas`, proved, equal to the interpreter; products go to BLAS where they can."""

from __future__ import annotations

import pytest

import isam
from tests.corpus import CASES
from tests.native_corpus import fault, largest


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_interpreter(name):
    assert fault(CASES[name], largest(CASES[name]), "blas") is None


@pytest.mark.parametrize(
    ("name", "n", "routine"),
    [("matmul", 64, "sgemm_nn_new"), ("gemv", 256, "sgemv_n_new"), ("ger", 256, "sger"), ("axpy", 100_000, "saxpy"),
     ("dot", 100_000, "sdot_new")],
)  # fmt: skip
def test_large_products_go_to_their_routine(name, n, routine):
    case = CASES[name]
    sizes = {s.name: n for s in case.load().syms}
    fn = isam.compile(case.load(), on="blas", sizes=sizes)
    assert [m.instruction.name for m in fn.mapping.mappings] == [routine]
    assert fault(case, sizes, "blas") is None
