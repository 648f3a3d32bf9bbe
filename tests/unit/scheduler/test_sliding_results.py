"""Results at sums of axes, ``y[2 * l + k]``: tiles of several ``k`` are between each other's elements, or have some in
common; a block has those that are there together, and none goes home within the sum."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, distinct
from isam.scheduler.nests import nests_of
from isam.scheduler.plans.register import BlockCosts, Room
from tests.pipeline import compiled, judge, simulated

UPWARDS = """kernel upwards(O, L, C, K)
  in    x: f32[C, L]
  const w: f32[C, O, K]
  out   y: f32[O, {stride} * L + K]
  forall o < O, l < {stride} * L + K
    y[o, l] = 0
  forall o < O, l < L, c < C, k < K
    y[o, {stride} * l + k] += x[c, l] * w[c, o, k]
"""
SIZES = {"O": 4, "L": 64, "C": 8, "K": 4}


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_results_stay_near_while_they_are_summed(stride: int) -> None:
    kernel = parse_kernel(UPWARDS.format(stride=stride))
    job = compiled(kernel, SIZES, simulated("host-avx512"))
    assert job.schedule is not None
    sums = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis == "c"]
    assert sums
    for loop in sums:
        moved = {o.tile.buffer for n in distinct(loop.body) if isinstance(n, Issue) and n.is_move for o in n.operands}
        assert "y" not in moved
    judge(kernel, SIZES, job)


def test_what_a_block_has_in_common_costs() -> None:
    """Even and odd elements are apart; those of the next even ``k`` are in part the same."""
    job = compiled(parse_kernel(UPWARDS.format(stride=2)), SIZES, simulated("host-avx512"))
    assert job.cover is not None
    nest = next(n for n in nests_of(job.cover, job.system) if n.reduced)
    assert nest.mapped.keys() == {"l"}
    costs = BlockCosts(nest, Room(nest, job.system), reducing=True)

    def cost(**tiles: int) -> float:
        found = costs.of({"o": 1, "l": 1, "k": 1} | tiles)
        assert found is not None
        return found

    assert cost(l=4, k=2) == cost(l=4, o=2)
    assert cost(l=2, k=4) > 4 * cost(l=2, o=4)
    assert cost(l=1, k=4) > 4 * cost(l=1, o=4)
