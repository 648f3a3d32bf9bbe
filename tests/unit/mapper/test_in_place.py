"""What is written where it is read from: the conditions of a statement say which accesses meet."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Access
from isam.ir.text import parse_kernel
from isam.ir.verify import verify
from isam.mapper.legality import _apart_under
from tests.pipeline import compiled, judge, simulated

READS = """kernel reads()
  in  a: f32[90, 90]
  out b: f32[40]
  loop k < 40
    forall i < 40 where {where}
      b[i] = {one} + {two}
"""
PIVOT = """kernel pivot(N)
  inout a: f64[N, N]
  loop k < N
    forall i < N where {where}
      a[i, k] = a[i, k] * a[k, k]
"""


@pytest.mark.parametrize(("where", "one", "two", "apart"), [
    ("i >= 1", "a[i, 0]", "a[0, 0]", True), ("i >= 0", "a[i, 0]", "a[0, 0]", False),
    ("i > k", "a[i, k]", "a[k, k]", True), ("i >= k", "a[i, k]", "a[k, k]", False),
    ("i > k", "a[i, i]", "a[k, i]", True), ("i > k", "a[i, k]", "a[k + 1, k]", False),
    ("2 * i >= 3", "a[i, k]", "a[1, k]", True), ("i < 4", "a[i, 0]", "a[5, 0]", True),
    ("i < 4", "a[2 * i, 0]", "a[5, 0]", True), ("i < 4", "a[2 * i, 0]", "a[6, 0]", False),
    ("i > k", "a[k, i]", "a[i, k]", True), ("i >= k", "a[k, i]", "a[i, k]", False),
])  # fmt: skip
def test_conditions_keep_accesses_apart(where: str, one: str, two: str, apart: bool) -> None:
    (s,) = parse_kernel(READS.format(where=where, one=one, two=two)).statements
    a, b = (x.index for x in s.sources if isinstance(x, Access))
    assert _apart_under(s.domain, a, s.domain, b) == apart
    assert _apart_under(s.domain, b, s.domain, a) == apart


def test_points_of_one_statement_are_told_from_those_of_the_other() -> None:
    text = READS.replace("{two}", "0.0").replace("{one}", "a[i, k]")
    low, high = (parse_kernel(text.format(where=w)).statements[0] for w in ("i < k", "i > k"))
    (index,) = (x.index for x in low.sources if isinstance(x, Access))
    assert _apart_under(low.domain, index, high.domain, index)
    assert not _apart_under(low.domain, index, low.domain, index)


@pytest.mark.parametrize("text", [
    "kernel first(N)\n  inout a: f64[N]\n  forall i < N where i >= 1\n    a[i] = a[i] / a[0]\n",
    PIVOT.format(where="i > k"), PIVOT.format(where="i > k, i <= k + 3"),
    "kernel last(N)\n  inout a: f32[N]\n  forall i < N where i <= N - 2\n    a[i] = a[i] * a[N - 1]\n",
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 9, 21])
def test_a_pivot_is_read_beside_what_is_written(text: str, size: int) -> None:
    kernel, sizes = parse_kernel(text), {"N": size}
    judge(kernel, sizes, compiled(kernel, sizes, simulated("host-avx512"), check=True))


def test_a_pivot_that_is_written_too_is_refused() -> None:
    assert [d.code for d in verify(parse_kernel(PIVOT.format(where="i >= k")))] == ["V433"]
