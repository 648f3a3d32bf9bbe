"""Rows that fill no vector: the ends of axes that vectors do not divide. Where nothing between vectors and elements is
loaded and stored in one go under a mask, they are vectors of powers of two."""

from __future__ import annotations

import re

import numpy as np
import pytest

import isam
from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.vectors import put_row, row
from isam.ir.dtype import numpy_dtype

PART = """kernel part(M, N)
  in    x: {0}[M, N + 5]
  in    z: {0}[M, N + 5]
  inout y: {0}[M, N + 5]
  forall i < M, j < N
    y[i, j] = x[i, j] + z[i, j]
"""


def emitted(element: str, count: int, lanes: int, align: int) -> tuple[str, str]:
    fn, to = Function(Module(), "f", ["ptr %p"]), Function(Module(), "f", ["ptr %p", f"<{lanes} x {element}> %x"])
    row(fn, "%p", element, count, lanes, align)
    put_row(to, "%x", "%p", element, count, lanes, align)
    return fn.text(), to.text()


def lanes_of(text: str, what: str) -> list[int]:
    return [int(n) for n in re.findall(rf"{what} <(\d+) x", text)]


@pytest.mark.parametrize(("count", "parts"), [(1, [1]), (2, [2]), (3, [2, 1]), (4, [4]), (6, [4, 2]), (7, [4, 2, 1])])
def test_ends_are_stored_in_vectors_of_powers_of_two(count: int, parts: list[int]) -> None:
    for element in ("i8", "i16", "float", "double"):
        stored = emitted(element, count, 8, 1)[1]
        assert lanes_of(stored, "store") == parts
        assert "masked" not in stored


def test_they_are_loaded_so_where_masks_are_of_no_use() -> None:
    """AVX loads words of four and eight bytes under masks, and none that are shorter."""
    assert lanes_of(emitted("i8", 7, 8, 1)[0], "load") == [4, 2, 1]
    assert lanes_of(emitted("float", 4, 8, 4)[0], "load") == [4]
    assert "masked.load" in emitted("float", 7, 8, 4)[0]
    assert all("masked" in text for text in emitted("i8", 7, 16, 1))


def test_parts_lie_as_far_apart_as_their_elements_are_long() -> None:
    """Also where they are aligned to less than an element, as groups of bytes are."""
    for text in emitted("i32", 6, 8, 1):
        assert "align 1" in text or "masked" in text
    assert "i64 16" in emitted("i32", 6, 8, 1)[1]
    assert "i64 8" in emitted("i16", 6, 8, 1)[0]


@pytest.mark.parametrize("dtype", ["u8", "i16", "f16", "f32", "f64", "i64"])
@pytest.mark.parametrize("n", [1, 3, 6, 7, 13])
def test_nothing_beside_them_is_written(dtype: str, n: int) -> None:
    fn = isam.compile(PART.format(dtype), sizes={"M": 5, "N": n})
    x, z, y = np.random.default_rng(n).integers(0, 99, (3, 5, n + 5)).astype(numpy_dtype(dtype))
    want = y.copy()
    want[:, :n] = x[:, :n] + z[:, :n]
    fn(x, z, y)
    assert np.array_equal(y, want)
