"""Vectors across rows, without a sum: blocks have neighbours of whole rows, and loops go along the results'."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.ir.text import parse_kernel
from isam.scheduler.plan import Plan
from isam.scheduler.plans.register import Crossed, across, blocks
from isam.scheduler.plans.single import last_axis
from isam.system.graph import System
from tests.pipeline import compiled, simulated
from tests.unit.codegen.test_llvm_transposed import IN_ORDER

PRODUCT = """kernel product(M, N, K)
  in  A: f32[M, K]
  in  B: f32[N, K]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[j, k]
"""


class Taken(Greedy):
    plan: Any = None

    def tile(self, choice: Choice) -> Any:
        self.plan = super().tile(choice)
        return self.plan


def taken(value: str, on: str | System = "host-avx512", dtype: str = "f32", **sizes: int) -> Plan:
    approach = Taken()
    kernel = parse_kernel(f"""kernel turning(M, N)
  in  X: {dtype}[M, N]
  in  Z: {dtype}[M, N]
  in  W: {dtype}[M, N]
  in  R: {dtype}[N, M]
  in  v: {dtype}[N]
  out Y: {dtype}[N, M]
  forall i < M, j < N
    Y[j, i] = {value}
""")
    compiled(kernel, {"M": 256, "N": 256} | sizes, simulated(on), approach)
    assert isinstance(approach.plan, Plan)
    return approach.plan


@pytest.mark.parametrize(("on", "lanes"), [("host-avx512", 16), ("host-avx2", 8)])
@pytest.mark.parametrize("value", ["X[i, j] * 3", "X[i, j] * Z[i, j] - W[i, j]", "X[i, j] + R[j, i]"])
def test_a_block_has_all_that_a_line_of_a_row_holds(on, lanes, value):
    assert dict(taken(value, on).order) == {"i": lanes, "j": lanes}


def test_rows_that_end_before_a_line_does():
    assert dict(taken("X[i, j] * 3", N=5).order)["j"] == 5


@pytest.mark.parametrize(("value", "axis"), [
    ("X[i, j] * 3", "i"), ("X[i, j] + R[j, i]", "i"), ("X[i, j] * Z[i, j]", "i"),
    ("X[i, j] * Z[i, j] - W[i, j]", "j"), ("max(X[i, j] + v[j], 0)", "i")])  # fmt: skip
def test_the_last_loop_goes_along_most_rows(value, axis):
    """Those of the result count twice, and before others; a row that all share does not count, nor does what is kept
    between two nests."""
    plan = taken(value)
    assert last_axis(plan.group, plan.group.main) == axis
    assert plan.order[-1][0] == axis


@pytest.mark.parametrize(("rows", "columns", "axis"), [
    (64, 40000, "j"),  # read as few long streams, each of whole lines that are written
    (60, 40000, "i"),  # lines of results would be written in two parts, far from each other
    (64, 2000, "i"),  # near
    (10240, 1000, "i"),  # of short rows there are no streams
    (2048, 2048, "j"),
])  # fmt: skip
def test_long_rows_from_afar_are_streams(rows: int, columns: int, axis: str) -> None:
    plan = taken("X[i, j] * 3", "host-zen4", M=rows, N=columns)
    assert plan.order[-1][0] == axis


def test_rows_are_far_beyond_twice_the_second_cache() -> None:
    plan = taken("X[i, j] * 3", M=64, N=4096)
    group, size = plan.group, 2 * 4 * 64 * 4096
    assert last_axis(group, group.main, size // 2 - 1) == "j"
    assert last_axis(group, group.main, size // 2) == "i"
    assert last_axis(group, group.main, 0) == "i", "without caches"


def test_vectors_along_rows_that_are_read():
    plan = taken("X[i, j] * Z[i, j]")
    main = plan.group.main
    assert main.mapped.keys() == {"j"}
    assert across(plan.group, main) == [Crossed("i", 16, 16)]


def test_what_lies_together_is_blocked_as_before():
    """Calls enough to hide their latency, along the vectors."""
    plan = taken("R[j, i] * 3")
    assert not across(plan.group, plan.group.main)
    assert not last_axis(plan.group, plan.group.main)
    found = blocks(plan.group.main, simulated("host-avx512"), {})
    assert max(b.calls for b in found) == 8


def test_what_all_lanes_share_is_not_crossed():
    """One element of a row for the whole vector."""
    plan = taken("R[j, i] * v[j]")
    assert plan.group.main.mapped.keys() == {"i"}
    assert not across(plan.group, plan.group.main)


def test_neighbours_are_worth_their_lines():
    """Sixteen rows are touched by every vector alone, by sixteen of them together once."""
    plan = taken("X[i, j] * 3")
    found = blocks(plan.group.main, simulated("host-avx512"), {}, across(plan.group, plan.group.main))
    cost = {(b.of("i"), b.of("j")): b.cost for b in found}
    assert cost[1, 1] > cost[1, 4] > cost[1, 8] > cost[1, 16]
    assert cost[1, 1] - cost[1, 16] > 15
    assert cost[8, 1] > cost[1, 4]


def test_words_of_eight_bytes_are_eight_to_a_line():
    """Sixteen of them would be two registers each."""
    plan = taken("X[i, j] * 3", dtype="f64")
    assert across(plan.group, plan.group.main) == [Crossed("j", 16, 8)]
    assert dict(plan.order)["j"] == 8


@pytest.mark.parametrize("value", ["max(X[i, j] + v[j], 0)", "max(X[i, j] * v[j] + v[j], v[j])"])
def test_what_is_kept_between_nests_does_not_count(value):
    """All nests in one loop, with tiles in between that lie along the rows that are read."""
    plan = taken(value, M=1024, N=1024)
    assert plan.group.private
    assert last_axis(plan.group, plan.group.main) == plan.order[-1][0] == "i"


def test_without_caches_there_are_no_lines():
    system = simulated("host-avx512")
    bare = replace(system, memories={n: m for n, m in system.memories.items() if m not in system.caches})
    assert not bare.caches
    assert dict(taken("X[i, j] * 3", bare).order)["j"] == 8


def test_sums_have_blocks_of_their_own():
    """Vectors of a product cross the rows of a factor that is given by columns, which are laid out anew."""
    approach = Taken()
    compiled(parse_kernel(PRODUCT), {"M": 64, "N": 64, "K": 64}, simulated("host-avx512"), approach)
    group = approach.plan.group
    assert across(group, group.main) == [Crossed("k", 16, 16)]
    assert last_axis(group, group.main) is None


@pytest.mark.parametrize(("on", "line"), [("host-avx512", 16), ("host-avx2", 8)])
def test_sums_along_rows_that_vectors_cross_take_all_of_a_line(on, line):
    """What is read once is not laid out before: its lines are there, and are wanted whole."""
    kernel = parse_kernel(IN_ORDER)
    approach = Taken()
    compiled(kernel, {"M": 256, "K": 64}, simulated(on), approach)
    assert approach.plan.order[-1] == ("k", line)
    few = Taken()
    compiled(kernel, {"M": 256, "K": 5}, simulated(on), few)
    assert few.plan.order[-1] == ("k", line), "or all there is"


def test_steps_of_sums_stay_few_where_no_line_is_gone_through():
    """Of what is laid out when constants are bound; along another axis than the rows."""
    for text, axis in ((IN_ORDER.replace("in  A", "const A"), "k"), ("""kernel two(M, K, L)
  in  A: f32[M, K]
  in  x: f32[K, L]
  out y: f32[M]
  permits contract
  forall i < M
    y[i] = 0
  forall i < M, k < K, l < L
    y[i] += A[i, k] * x[k, l]
""", "l")):  # fmt: skip
        approach = Taken()
        compiled(parse_kernel(text), {"M": 256, "K": 64} | ({"L": 8} if axis == "l" else {}), simulated("host-avx512"),
                 approach)  # fmt: skip
        last, steps = approach.plan.order[-1]
        assert last == axis
        assert steps <= 4


def test_steps_of_sums_stay_few_where_many_calls_take_a_row():
    """What is laid out for 33 rows, or gathered for them, is used by as many calls."""
    for rows in (33, 4):
        approach = Taken()
        compiled(parse_kernel(PRODUCT), {"M": rows, "N": 257, "K": 190}, simulated("host-avx512"), approach)
        last, steps = approach.plan.order[-1]
        assert last == "k"
        assert steps <= 4
