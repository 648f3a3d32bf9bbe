"""Products of narrow floats or bytes that are summed in f32, with no leave to take denormals as zero: a call widens one
factor at most, and no matrix is copied only to be wider."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from isam.ir.dtype import numpy_dtype
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, simulated

MACHINES = ("host-avx512", "host-avx2", "host-amx")
SIZES = [(1, 40, 33), (7, 35, 20), (30, 64, 48)]


def product(left: str, right: str, role: str = "const") -> Kernel:
    widened = "A[i, k]" if left == "f32" else "f32(A[i, k])"
    return parse_kernel(f"""kernel product(M, N, K)
  in    A: {left}[M, K]
  {role} B: {right}[K, N]
  out   C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += {widened} * f32(B[k, j])
""")


@pytest.mark.parametrize("narrow", ["bf16", "f16", "i8"])
@pytest.mark.parametrize(
    ("on", "role"), [(m, r) for m in MACHINES for r in ("in", "const") if (m, r) != ("host-avx2", "const")]
)  # there constants are widened once
def test_a_narrow_matrix_is_read_as_it_is(on: str, role: str, narrow: str) -> None:
    cover = compiled(product("f32", narrow, role), {"M": 8, "N": 96, "K": 64}, simulated(on)).cover
    assert cover is not None
    assert f"fma_sv_f32_{narrow}" in {m.instruction.name for m in cover.mappings}
    assert not any(m.instruction.name.startswith("cast_") for m in cover.mappings)


@pytest.mark.parametrize("narrow", ["bf16", "f16"])
@pytest.mark.parametrize("on", ["host-avx512", "host-amx"])  # of few registers blocks are too small for it to pay
def test_of_two_narrow_matrices_rows_are_widened_ahead(on: str, narrow: str) -> None:
    """Each of their elements is taken by a call of its own, which would widen it for every column."""
    cover = compiled(product(narrow, narrow), {"M": 64, "N": 256, "K": 256}, simulated(on)).cover
    assert cover is not None
    wide = [o.buffer for m in cover.mappings if m.instruction.name.startswith("cast_") for o in m.operands]
    assert "A" in wide
    assert "B" not in wide


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("left", "right"), [("f32", "bf16"), ("f32", "f16"), ("f32", "i8"), ("bf16", "bf16"),
                                             ("f16", "f16")])  # fmt: skip
def test_sums_are_right_with_denormals_and_what_is_no_number(left: str, right: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    numbers = np.random.default_rng(m)
    a = numbers.standard_normal((m, k)).astype(numpy_dtype(left))
    b = numbers.integers(-128, 128, (k, n)).astype(numpy_dtype(right))
    if right != "i8":
        b[0, ::3] = np.array(1e-40 if right == "bf16" else 6e-8).astype(numpy_dtype(right))  # denormal in its type
        b[-1, 1] = np.nan
        b[-1, 2] = np.inf
    fn = isam.compile(product(left, right), sizes={"M": m, "N": n, "K": k}, cache=False)
    with np.errstate(invalid="ignore"):
        wide = a.astype(np.float64), b.astype(np.float64)
        want, most = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
        for got in (fn(a, b), fn.bind(B=b)(a)):
            sane = np.isfinite(want)
            assert (np.abs(got - want)[sane] <= (k + 2) * 2.0**-24 * most[sane]).all()
            assert (np.isnan(got) == np.isnan(want)).all()
            assert (got[np.isinf(want)] == want[np.isinf(want)]).all()


def test_denormals_are_not_taken_as_zero() -> None:
    """Which is why tiles, and dot products of pairs, are not taken without leave."""
    tiny = np.full((1, 4), 1e-40, numpy_dtype("bf16"))
    fn = isam.compile(product("bf16", "bf16"), sizes={"M": 1, "N": 16, "K": 4}, cache=False)
    got = fn(tiny, np.ones((4, 16), numpy_dtype("bf16")))
    assert (got == 4 * np.float32(tiny[0, 0])).all()
    assert (got != 0).all()
