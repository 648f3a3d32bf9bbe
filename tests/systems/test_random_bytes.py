"""Random sums of products of bytes, with zero points, windows and batches, compiled for this CPU's vectors: bit for bit
the interpreter's. ``python -m tests.systems.test_random_bytes FIRST LAST [MACHINE]`` looks at more of them."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random

import numpy as np
import pytest

import isam
from isam.ir.dtype import numpy_dtype
from isam.ir.interp import run
from isam.system.features import lacking
from tests.laws.judges import random_numbers

NEEDS = {"host-avx512": ("avx512vnni", "avx512bw", "avx512vl", "avx512dq"), "host-avx2": ("avx2", "fma", "f16c")}

PLAIN = ("[M, K]", "i, k", "[K, N]", "k, j", "[M, N]", "i, j", "", "")
SHAPES = {  # of A, its index, B and C likewise, what is summed besides and where
    "product": PLAIN,
    "turned": ("[M, K]", "i, k", "[N, K]", "j, k", "[M, N]", "i, j", "", ""),
    "batch": ("[3, M, K]", "b, i, k", "[3, K, N]", "b, k, j", "[3, M, N]", "b, i, j", "", ""),
    "window": ("[M + 2, K]", "i + r, k", "[3, K, N]", "r, k, j", "[M, N]", "i, j", "r < 3, ", ""),
    "stride": ("[2 * M + 1, K]", "2 * i + r, k", "[3, K, N]", "r, k, j", "[M, N]", "i, j", "r < 3, ", ""),
    "padded": ("[M, K]", "i + r - 1, k", "[3, K, N]", "r, k, j", "[M, N]", "i, j", "r < 3, ",
               " where i + r >= 1, i + r <= M"),
}  # fmt: skip


def drawn(seed: int) -> tuple[str, dict[str, int]]:
    """A kernel and sizes."""
    r = Random(seed)
    a, b, wide = r.choice(["u8", "i8"]), r.choice(["u8", "i8"]), r.choice(["i32", "i32", "i32", "i64", "i16"])
    name = r.choice(["product", *SHAPES])
    of_a, at_a, of_b, at_b, of_c, at_c, more, where = SHAPES[name]
    left, given = r.choice([
        ("", ""), ("", ""), (f" {r.choice('+-')} {r.choice((3, 128))}", ""), (f" - {wide}(za[])", f"  in za: {a}\n"),
        (" + za[i]", f"  in za: {wide}[M]\n"),
    ])  # fmt: skip
    right, beside = r.choice([("", ""), ("", ""), (" + 5", ""), (f" - {wide}(zb[j])", f"  const zb: {b}[N]\n")])
    factors = [f"({wide}(A[{at_a}]){left})", f"({wide}(B[{at_b}]){right})"]
    r.shuffle(factors)
    around = "forall b < 3, i < M, j < N" if name == "batch" else "forall i < M, j < N"
    text = f"""kernel bytes(M, N, K)
  {r.choice(["in", "in", "const"])} A: {a}{of_a}
  {r.choice(["const", "const", "in"])} B: {b}{of_b}
{given}{beside}  out C: {wide}{of_c}
  {around}
    C[{at_c}] = {r.choice((0, 0, 7))}
  {around}, {more}k < K{where}
    C[{at_c}] += {" * ".join(factors)}
"""
    return text, {"M": r.choice((1, 2, 5, 16, 33)), "N": r.choice((3, 16, 40, 64)), "K": r.choice((4, 7, 32, 65))}


def tried(seed: int, on: str) -> set[str]:
    """Compiles and calls it. Returns the laws of the steps that were taken."""
    text, sizes = drawn(seed)
    kernel = isam.parse(text)
    arrays = random_numbers(kernel.with_sizes(sizes), seed)
    f = isam.compile(kernel, on=on, sizes=sizes)
    got, want = f(**arrays), run(kernel.with_sizes(sizes), arrays)["C"]
    assert got.dtype == numpy_dtype(f.artifact.arguments[-1].dtype)
    np.testing.assert_array_equal(got, want, err_msg=f"{sizes}\n{text}")
    return {s.split()[0] for s in f.mapping.steps} & {"rebase", "expand", "split-cast"}


@pytest.mark.parametrize("on", NEEDS)
def test_random_sums_of_products(on: str) -> None:
    if missing := lacking(NEEDS[on]):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    seen = Counter(law for seed in range(24) for law in tried(seed, on))
    words = on == "host-avx2" and lacking(["avxvnni"])
    assert min(seen["split-cast" if words else "rebase"], seen["expand"]) >= 3, seen


if __name__ == "__main__":
    machine = sys.argv[3] if len(sys.argv) > 3 else "host-avx512"
    found = Counter(law for n in range(*map(int, sys.argv[1:3])) for law in tried(n, machine))
    print(f"none wrong; steps: {dict(found)}")
