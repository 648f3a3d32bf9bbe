"""Elements a few apart: what their moves cost decides who computes them; nests that share lines share loops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.spacing import TOGETHER
from isam.ir.table import spacing_of
from isam.ir.text import parse_kernel
from isam.proof import prove
from isam.schedule.tree import Loop, Schedule, distinct
from isam.system.load import load_system
from tests.pipeline import compiled, judge, simulated

HOST = simulated("host-avx512")


def scheduled(text: str, system=HOST) -> Schedule:
    schedule = compiled(parse_kernel(text), {"N": 4096}, system).schedule
    assert schedule is not None
    prove(schedule)
    return schedule


def loops(schedule: Schedule) -> int:
    return sum(isinstance(n, Loop) for n in distinct(schedule.call))


def both(one: str, two: str, shapes: str = "[2 * N]") -> str:
    """Two sums of elements of X."""
    return f"""kernel both(N)
  in  X: f32{shapes}
  out Y: f32[N]
  out Z: f32[N]
  forall i < N
    Y[i] = X[{one}] + X[{one}]
  forall i < N
    Z[i] = X[{two}] * X[{two}]
"""


def written(one: str, two: str) -> str:
    return f"""kernel written(N)
  in  X: f32[N]
  inout Y: f32[4 * N]
  forall i < N
    Y[{one}] = X[i] + 1
  forall i < N
    Y[{two}] = X[i] * X[i]
"""


def test_what_moves_take_and_what_a_call_costs():
    spacing = spacing_of(HOST.compute)
    assert [spacing.cycles(("v",), n, False) for n in (1, 2, 3, 4, 5)] == [None, 2.0, 3.5, 5.0, None]
    assert [spacing.cycles(("v",), n, True) for n in (1, 2, 3, 4)] == [None, 2.0, 3.0, 4.0]
    assert spacing.cycles(("g", "ram"), 2, False) is None
    older = spacing_of(load_system("host-avx2").compute)
    assert older.cycles(("v",), 2, False) == 2.0
    assert older.cycles(("v",), 2, True) is None, "no stores under masks"
    assert spacing_of(HOST.compute.without(())).cycles(("v",), 2, False) == 2.0
    assert spacing_of(HOST.compute[1:]).cycles(("v",), 2, False) == 2.0
    assert spacing_of(list(HOST.compute[:3])) is TOGETHER


@pytest.mark.parametrize(("index", "shapes", "vectors"), [
    ("2 * i + 1", "[2 * N]", True), ("i, 2", "[N, 3]", True), ("4 * i", "[4 * N]", True),
    ("i, 3", "[N, 9]", False),
])  # fmt: skip
def test_vectors_where_moves_reach_them(index: str, shapes: str, vectors: bool):
    text = f"kernel k(N)\n  in  X: f32{shapes}\n  in  Z: f32{shapes}\n  out Y: f32[N]\n  forall i < N\n" \
           f"    Y[i] = X[{index}] * Z[{index}]\n"  # fmt: skip
    assert ("mul_vv_f32" in scheduled(text).called()) is vectors


@pytest.mark.parametrize(("one", "two", "shapes", "together"), [
    ("2 * i", "2 * i + 1", "[2 * N]", True), ("i, 0", "i, 2", "[N, 3]", True),
    ("i", "i", "[N]", False), ("i, 0", "i, 1", "[N, 64]", False), ("2 * i", "i", "[2 * N]", False),
])  # fmt: skip
def test_what_reads_parts_of_the_same_lines_shares_a_loop(one: str, two: str, shapes: str, together: bool):
    assert loops(scheduled(both(one, two, shapes))) == (1 if together else 2)


@pytest.mark.parametrize(("one", "two"), [("2 * i", "2 * i + 1"), ("4 * i + 3", "4 * i")])
def test_what_writes_parts_of_the_same_lines_shares_a_loop(one: str, two: str):
    assert loops(scheduled(written(one, two))) == 1


def test_a_machine_without_caches_is_not_asked():
    memories = {n: m for n, m in HOST.memories.items() if m.kind != "cached"}
    cores = {n: replace(r, memories=tuple(m for m in r.memories if m in memories)) for n, r in HOST.replicas.items()}
    bare = replace(HOST, memories=memories, replicas=cores)
    assert loops(scheduled(both("2 * i", "2 * i + 1"), bare)) == 2


def test_nests_at_other_remainders_are_proved_in_any_order():
    """The last statement joins the first one's loop, past others that read elements between theirs."""
    text = """kernel between(N)
  in    A: f32[N, 3]
  inout C: f32[3 * N]
  inout D: f32[4 * N]
  forall i < N
    D[4 * i + 2] = A[i, 2] + A[i, 0]
  forall i < N
    C[3 * i] = C[3 * i + 2] * D[4 * i + 3]
  forall i < N
    D[4 * i + 2] = D[4 * i + 2] - A[i, 1]
"""
    for on in ("host-generic", "host-avx2", "host-avx512"):
        scheduled(text, simulated(on))


def test_what_lies_along_a_loop_around_both_names_no_axis_of_theirs():
    text = """kernel apart(T, M)
  in    x: f32[T, 4]
  inout a: f32[M]
  inout b: f32[M]
  loop t < T
    forall i < M
      a[i] = a[i] + x[t, 0]
    forall j < M
      b[j] = b[j] * x[t, 2]
"""
    kernel, sizes = parse_kernel(text), {"T": 3, "M": 20}
    judge(kernel, sizes, compiled(kernel, sizes, HOST), 1)
