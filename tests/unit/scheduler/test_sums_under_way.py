"""So many sums are under way that calls need not wait for the ones before them."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Schedule, distinct
from isam.scheduler.nests import nests_of
from isam.scheduler.plans.register import BlockCosts, Room
from tests.pipeline import compiled, simulated
from tests.unit.scheduler.test_prefetch import PRODUCT
from tests.unit.test_partial import SOFTMAX

LATENCY = 8  # calls of a product on vectors of eight lanes: 4 cycles, of which each takes half of one


def under_way(schedule: Schedule) -> set[int]:
    """Sums that the innermost loops over ``k`` add to."""
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop) and n.axis == "k"]
    inner = [n for n in loops if not any(isinstance(m, Loop) for m in distinct(n.body))]
    return {len({o.place.cell for n in distinct(loop.body) if isinstance(n, Issue) and not n.is_move
                 for o in n.operands if o.tile.buffer == "C"}) for loop in inner}  # fmt: skip


@pytest.mark.parametrize("n", [256, 512, 1024])
def test_large_products_have_more_sums_under_way_than_a_call_takes(n: int) -> None:
    """Though blocks that divide the rows would have just as many."""
    schedule = compiled(parse_kernel(PRODUCT), {"M": n, "N": n, "K": n}, simulated("host-avx2")).schedule
    assert schedule is not None
    assert max(under_way(schedule)) > LATENCY


def costs(kernel: str, sizes: dict[str, int]) -> BlockCosts:
    """Of the kernel's last sum on vectors of eight lanes."""
    job = compiled(parse_kernel(kernel), sizes, simulated("host-avx2"))
    assert job.cover is not None
    nest = next(n for n in nests_of(job.cover, job.system) if n.reduced)
    return BlockCosts(nest, Room(nest, job.system), reducing=True)


def test_waiting_counts_the_more_the_longer_the_sum() -> None:
    few, many = {"i": 2, "j": 2}, {"i": 6, "j": 2}
    longer = [c.of(few) / c.of(many) for c in (costs(PRODUCT, {"M": 96, "N": 96, "K": k}) for k in (4, 64, 4096))]
    assert longer[0] < longer[1] < longer[2]
    assert longer[-1] > LATENCY / 4  # of four sums each waits twice as long as of eight


def test_a_sum_of_one_operand_waits_for_what_it_reads() -> None:
    """Rows of a softmax are gone through few at a time: others beside the sum fill the time."""
    schedule = compiled(parse_kernel(SOFTMAX), {"M": 512, "N": 4096}, simulated("host-avx2")).schedule
    assert schedule is not None
    assert any(d.point == "tile" and d.label.startswith("[i:4 ") for d in schedule.trace.decisions)
