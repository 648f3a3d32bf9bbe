"""Temporaries that a cover would keep too large, or multiply too often: sums go inwards."""

from __future__ import annotations

import pytest

from isam.frontend.einsum import einsum
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated

CHAIN = """kernel chain(I, J, K, L, M)
  in  a: f32[I, J]
  in  b: f32[J, K]
  in  c: f32[K, L]
  in  d: f32[L, M]
  out y: f32[I, M]
{permits}  forall i < I, m < M
    y[i, m] = 0
  forall i < I, j < J, k < K, l < L, m < M
    y[i, m] += a[i, j] * b[j, k] * c[k, l] * d[l, m]
"""
SIZES = {"I": 5, "J": 6, "K": 7, "L": 4, "M": 18}


@pytest.mark.parametrize("on", ["toy", "host-avx512"])
def test_each_sum_of_a_chain_of_products_is_taken_as_soon_as_it_can_be(on):
    """Work grows with the square of a size and a third one, not with the fifth power."""
    kernel = parse_kernel(CHAIN.format(permits=""))
    job = compiled(kernel, SIZES, simulated(on))
    assert [s.split()[0] for s in job.cover.steps].count("factor") == 2
    assert max(len(s.domain.axes) for s in job.cover.kernel.statements) == 3
    judge(kernel, SIZES, job, 3)


def test_a_chain_that_permits_nothing_stays():
    kernel = parse_kernel(CHAIN.format(permits="  permits nothing\n"))
    job = compiled(kernel, SIZES, simulated("host-avx512"))
    assert not any(s.startswith("factor") for s in job.cover.steps)


@pytest.mark.parametrize(
    ("spec", "factors"),
    [
        ("ij,jk,k->i", 1),  # as large as an argument, and multiplied for each result
        ("ij,j,jk->ik", 0),  # what is summed is what is multiplied with
        ("ai,bi,ci->abc", 0),
        ("i,ij,j->", 0),  # no result has an axis
    ],
)
def test_what_could_be_summed_first_is(spec, factors):
    kernel = einsum(spec)
    sizes = dict.fromkeys({s.name for s in kernel.syms}, 18)
    job = compiled(kernel, sizes, simulated("host-avx512"))
    assert sum(s.startswith("factor") for s in job.cover.steps) == factors
    judge(kernel, sizes, job, 3)
