"""Random sums of products of narrow numbers, in every order of dimensions, with windows and batches: compiled for this
CPU, proved, run, equal to what whole numbers give. ``python -m tests.property.test_group_products FIRST LAST``: more.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter

import numpy as np
import pytest

import isam
from isam.system.features import lacking

NUMPY = {"u8": np.uint8, "i8": np.int8, "i16": np.int16}
KINDS = [("u8", "i8"), ("i8", "u8"), ("i16", "i16")]
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 18, 33, 35)


class Case:
    """A kernel, its sizes, and how to compute it."""

    def __init__(self, seed: int):
        r = random.Random(seed)
        self.kind = r.choice(KINDS)
        kept, summed = ["b", "i", "j"][r.randrange(3) :], ["k", "l"][r.randrange(2) :]
        self.length = {a: r.choice(LENGTHS if a in "ijk" else LENGTHS[:5]) for a in "bijkl"}
        both = [*summed, *(["b"] if "b" in kept else [])]
        left = [*both, *(["i"] if "i" in kept else [])]
        right = [*both, "j"]
        window = "i" in kept and r.random() < 0.3  # the left factor is an image: i + l, the right one has the taps
        self.rows = [[a] for a in left]
        if window and "l" in summed:
            self.rows = [[a] for a in left if a not in "il"] + [["i", "l"]]
        self.columns = [[a] for a in right]
        for rows in (self.rows, self.columns):
            r.shuffle(rows)
        self.out = list(kept)
        r.shuffle(self.out)
        self.order = [*kept, *summed]
        r.shuffle(self.order)
        self.role = r.choice(("in", "const"))
        self.swapped = r.random() < 0.3

    def shape(self, rows: list[list[str]]) -> list[int]:
        return [sum(self.length[a] - 1 for a in row) + 1 for row in rows]

    def text(self) -> str:
        a, b = self.kind
        x = f"i32(A[{', '.join(' + '.join(r) for r in self.rows)}])"
        y = f"i32(B[{', '.join(' + '.join(r) for r in self.columns)}])"
        at = ", ".join(self.out)
        over = ", ".join(f"{n} < {self.length[n]}" for n in self.order)
        mine = ", ".join(f"{n} < {self.length[n]}" for n in self.out)
        return (f"kernel sums()\n  in A: {a}{self.shape(self.rows)}\n  {self.role} B: {b}{self.shape(self.columns)}\n"
                f"  out C: i32{[self.length[n] for n in self.out]}\n  forall {mine}\n    C[{at}] = 0\n"
                f"  forall {over}\n    C[{at}] += {f'{y} * {x}' if self.swapped else f'{x} * {y}'}\n")  # fmt: skip

    def expected(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        wide = np.zeros([self.length[n] for n in self.out], np.int64)
        if any(len(r) > 1 for r in self.rows):  # tap by tap
            taps = range(self.length["l"])
            axis, last = next(n for n, r in enumerate(self.rows) if len(r) > 1), self.columns.index(["l"])
            rows = [r if len(r) == 1 else ["i"] for r in self.rows]
            columns = [r for r in self.columns if r != ["l"]]
            for t in taps:
                part = a.take(range(t, t + self.length["i"]), axis).astype(np.int64)
                wide += self._einsum(rows, part, columns, b.take(t, last).astype(np.int64))
            return wide.astype(np.int32)
        return self._einsum(self.rows, a.astype(np.int64), self.columns, b.astype(np.int64)).astype(np.int32)

    def _einsum(self, rows, a, columns, b) -> np.ndarray:
        names = ("".join(itertools.chain(*r)) for r in (rows, columns))
        return np.einsum(f"{','.join(names)}->{''.join(self.out)}", a, b)


def judged(seed: int) -> list[str]:
    """Raises where the result differs; the instructions that were taken."""
    case = Case(seed)
    f = isam.compile(isam.parse(case.text()))
    rng = np.random.default_rng(seed)
    made = []
    for dtype, rows in zip(case.kind, (case.rows, case.columns), strict=True):
        limits = np.iinfo(NUMPY[dtype])
        made.append(rng.integers(limits.min, limits.max, case.shape(rows), NUMPY[dtype], endpoint=True))
    want = case.expected(*made)
    np.testing.assert_array_equal(f(*made), want, err_msg=f"seed {seed}\n{case.text()}")
    if case.role == "const":
        np.testing.assert_array_equal(f.bind(B=made[1])(made[0]), want, err_msg=f"seed {seed}\n{case.text()}")
    return [m.instruction.name for m in f.mapping.mappings]


@pytest.mark.parametrize("part", range(4))
def test_random_sums_of_products(part):
    taken = Counter(name for seed in range(12 * part, 12 * part + 12) for name in judged(seed))
    if not lacking(("avx512vnni",)):
        assert any(name.startswith("dot") for name in taken), taken


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            counts.update(judged(number))
        except (AssertionError, isam.IsamError, isam.InternalError) as e:
            print(f"# seed {number}: {e}\n{Case(number).text()}")
            counts["WRONG"] += 1
    print(dict(counts))
