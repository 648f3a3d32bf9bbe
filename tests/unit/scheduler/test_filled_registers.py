"""Blocks that fill the registers that the code generator allocates, and what blocks of uneven rows cost."""

from __future__ import annotations

import pytest

from benchmarks.kernels import sources
from isam.ir.text import parse_kernel
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.plan import Group
from isam.scheduler.plans.register import FULL, USUAL, BlockCosts, Room, blocks, passing
from isam.scheduler.plans.windows import window_alone
from isam.scheduler.trim import segments
from isam.system.graph import System
from tests.pipeline import compiled, simulated
from tests.unit.scheduler.test_prefetch import PRODUCT

REGISTERS = 16  # of host-avx2, each of eight lanes
CALLS = 8  # that fit into the latency of one


def product_nest(m: int, n: int, k: int, on: str = "host-avx2") -> tuple[Nest, System]:
    """The nest of a product of ``m`` rows and ``n`` columns, and its machine."""
    job = compiled(parse_kernel(PRODUCT), {"M": m, "N": n, "K": k}, simulated(on))
    assert job.cover is not None
    return next(x for x in nests_of(job.cover, job.system) if x.reduced), job.system


def best(m: int, n: int) -> dict[str, int]:
    nest, system = product_nest(m, n, 512)
    return dict(blocks(nest, system, {})[0].tiles)


def test_rows_of_which_some_are_left_have_enough_sums_under_way() -> None:
    """Of seven rows and two vectors beside them, which leave registers over, six sums of the last three rows would wait
    for each other: twelve are under way at first, with the operands of which every register is taken, then eight."""
    tiles = best(7, 512)
    assert tiles["i"] * tiles["j"] + min(tiles.values()) + 1 == REGISTERS
    assert min(s.size for s in segments(7, tiles["i"], 1, False)) * tiles["j"] >= CALLS


def test_of_two_that_are_as_quick_the_one_that_leaves_a_register_is_taken() -> None:
    assert best(12, 48) == {"i": 6, "j": 2}
    nest, system = product_nest(12, 48, 512)
    costs = BlockCosts(nest, Room(nest, system), reducing=True)
    full, left = costs.of({"i": 4, "j": 3}), costs.of({"i": 6, "j": 2})
    assert full is not None
    assert left is not None
    assert left < full < FULL * left  # without that it would be the other way round


def test_a_block_costs_what_the_blocks_that_it_is_cut_into_do() -> None:
    """At most five of seven rows are four and three, as at most four are."""
    nest, system = product_nest(7, 512, 512)
    costs = BlockCosts(nest, Room(nest, system), reducing=True)
    assert costs.of({"i": 5, "j": 2}) == costs.of({"i": 4, "j": 2})
    apart = [c for c in (costs.of({"i": 4, "j": 2}), costs.of({"i": 7, "j": 1})) if c is not None]
    assert len(apart) == 2


@pytest.mark.parametrize(("more", "fits"), [({}, True), ({"v": 1}, False)])
def test_room_is_left_for_what_other_nests_bring_while_a_sum_goes_on(more: dict[str, int], fits: bool) -> None:
    nest, system = product_nest(96, 96, 96)
    costs = BlockCosts(nest, Room(nest, system, more), reducing=True)
    assert (costs.of({"i": 4, "j": 3}) is not None) is fits
    assert costs.of({"i": 6, "j": 2}) is not None


@pytest.mark.parametrize(("on", "share"), [("host-avx512", 1.0), ("host-zen4", 0.5)])
def test_loads_count_by_what_they_take_beside_calls(on: str, share: float) -> None:
    """A load takes as long as a product of vectors, or half as long: ten of them for 24 products are better than for 16
    in the first case, though two rows of 512 are left over, but not in the second."""
    nest, system = product_nest(512, 512, 512, on)
    costs = BlockCosts(nest, Room(nest, system), reducing=True)
    assert costs.room.loads[:2] == [share, share]
    few, many = costs.of({"i": 6, "j": 4}), costs.of({"i": 8, "j": 2})
    assert few is not None
    assert many is not None
    assert (few < many) is (share == 1.0)


def test_of_many_rows_two_elements_are_taken_while_their_lines_are_there() -> None:
    """Of 14 rows 2048 bytes apart, whose lines fall on two sets of the nearest cache, for two vectors of columns."""
    job = compiled(parse_kernel(PRODUCT), {"M": 14, "N": 32, "K": 512}, simulated("host-avx512"))
    assert job.schedule is not None
    assert any(d.label.startswith("[i:14 j:32 k:2]") for d in job.schedule.trace.decisions if d.point == "tile")


def test_windows_share_what_they_read() -> None:
    """So that their loads count half."""
    job = compiled(sources()["depthwise"], {"H": 28, "W": 28, "C": 64, "R": 3, "S": 3}, simulated("host-avx512"))
    assert job.cover is not None
    nest = next(x for x in nests_of(job.cover, job.system) if x.reduced)
    x = next(n for n, u in enumerate(nest.uses) if u.buffer == "X")
    assert window_alone(nest, nest.uses[x])
    assert Room(nest, job.system).loads[x] == USUAL


def test_tiles_that_no_cache_sends_count_as_usual() -> None:
    """A load that takes a quarter of a call is not told from one that takes all of it where a program moves tiles."""
    nest, system = product_nest(64, 64, 64, "toy")
    assert not system.caches
    assert set(Room(nest, system).loads) == {USUAL}


CLIPPED = """
kernel clipped(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  temp P: f32[M, N]
  forall i < M, j < N
    P[i, j] = 0
  forall i < M, j < N, k < K
    P[i, j] += A[i, k] * B[k, j]
  forall i < M, j < N
    C[i, j] = max(P[i, j], 0)
"""
MADE = """
kernel made(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  temp E: f32[K, N]
  forall k < K, j < N
    E[k, j] = max(B[k, j], 0)
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * E[k, j]
"""


def beside(kernel: str) -> dict[str, int]:
    """What nests take beside the product of a kernel."""
    job = compiled(parse_kernel(kernel), {"M": 7, "N": 512, "K": 512}, simulated("host-avx2"))
    assert job.cover is not None
    nests = tuple(nests_of(job.cover, job.system))
    return passing(Group(nests), next(n for n in nests if n.reduced), job.system)


def test_what_comes_behind_a_sum_takes_the_registers_of_its_operands() -> None:
    assert beside(CLIPPED) == {}


def test_what_is_done_while_a_sum_goes_on_has_registers_of_its_own() -> None:
    assert set(beside(MADE)) == {"v"}
