"""Sizes that are said to count a batch do: the exact oracle gives the same for all rows at once and in parts.

All kernels of the corpus, and random ones; more of these: ``python -m tests.property.test_batches 0 5000``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
import pytest

from isam.ir.batch import not_a_batch, rows_of
from isam.ir.kernel import Kernel
from isam.ir.oracle import inputs, run_modular
from isam.ir.points import sizes_of
from tests.corpus import CASES
from tests.random_kernels import Options, random_kernel, show

NONE = {  # cases of the corpus without one: rows follow each other, or do not lie together
    "rnn", "gru", "lstm", "sepconv", "correlate_reversed", "reductions", "reductions_i32", "transpose", "reverse",
    "diagonal", "interleave", "lower_triangle", "stencil", "cumulative", "causal_attention", "matmul_at", "matmul_atbt",
    "gemv_t", "dot", "triangular", "syrk", "bilinear",
}  # fmt: skip


def in_parts(kernel: Kernel, sizes: dict[str, int], size: str, parts: Sequence[int], seed: int) -> bool:
    """Whether parts of a batch, one behind the other, give what all of it does."""
    rows = rows_of(kernel, size)
    given = inputs(kernel, sizes, seed)
    given |= {b.name: np.zeros(sizes_of(b, sizes), np.int64) for b in kernel.arguments if b.role == "out"}
    whole = run_modular(kernel, given, sizes, seed)
    begin = 0
    for n in parts:
        some = {name: a[begin : begin + n] if name in rows else a for name, a in given.items()}
        got = run_modular(kernel, some, {**sizes, size: n}, seed)
        if any(not np.array_equal(got[name], whole[name][begin : begin + n]) for name in got):
            return False
        begin += n
    return True


def cut(total: int, seed: int) -> list[int]:
    at = sorted(np.random.default_rng(seed).integers(0, total + 1, 2).tolist())
    return [at[0], at[1] - at[0], total - at[1]]


def tried(kernel: Kernel, sizes: dict[str, int], seed: int) -> list[str]:
    """The sizes of a kernel that count a batch. Raises ``AssertionError`` where one does not."""
    found = [s.name for s in kernel.given if not not_a_batch(kernel, s.name)]
    for size in found:
        for total in (sizes[size], 7):
            known = {**sizes, size: total}
            assert in_parts(kernel, known, size, cut(total, seed), seed), f"{size}\n{show(kernel, known)}"
    return found


@pytest.mark.parametrize("name", list(CASES))
def test_batches_of_the_corpus(name: str) -> None:
    case = CASES[name]
    kernel = case.load()
    assert bool(tried(kernel, min(case.sizes, key=lambda s: sum(s.values())), 5)) == (name not in NONE)


def campaign(first: int, last: int) -> tuple[int, int]:
    """How many kernels have a size that counts a batch, of how many."""
    some = 0
    for seed in range(first, last):
        kernel, sizes = random_kernel(seed, Options(points=2000))
        some += bool(tried(kernel, sizes, seed))
    return some, last - first


def test_batches_of_random_kernels() -> None:
    some, all_ = campaign(0, 300)
    assert some > all_ // 50


if __name__ == "__main__":
    some, all_ = campaign(int(sys.argv[1]), int(sys.argv[2]))
    print(f"{all_} random kernels, {some} with a batch: all right in parts")
