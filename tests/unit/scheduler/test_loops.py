"""Kept loops, fusion, numerics and refusals, seen in the schedules they give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isam.approach.choice import Approach, Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir import interp
from isam.ir.normal import normal_form
from isam.ir.text import parse_kernel
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.proof import check_flat
from isam.schedule.tree import Issue, Loop, distinct
from isam.scheduler import schedule
from isam.scheduler.infeasible import Infeasible
from isam.system.load import load_system
from tests.drawings import TEXT

LATE = """kernel late(M, N)
  in  x: f32[M]
  out y: f32[M, N, M]
  temp z: f32[M]
  forall j < M, l < N, k < M
    y[j, l, k] = 0
  forall k < M
    z[k] = 0
  forall i < 3, k < M
    z[k] += x[k] * x[k]
  forall j < M, l < N, k < M
    y[j, l, k] += x[j] * z[k]
"""


def made(text, on, approach=None, **sizes):
    trace = Trace(approach or Greedy())
    system = load_system(on)
    covered = cover(normal_form(parse_kernel(text).with_sizes(sizes)), Demand(system.compute), trace)
    assert covered, str(covered)
    return schedule(covered, system, trace)


def loops(s):
    return [n for n in distinct(s.call) if isinstance(n, Loop)]


def test_the_size_of_a_schedule_does_not_depend_on_the_extents_of_kept_loops():
    sizes = [sum(1 for _ in distinct(made(TEXT, "host-avx512", M=m, N=n, K=k).call)) for m, n, k in
             ((1024, 1024, 1024), (2048, 4096, 2048))]  # fmt: skip
    assert abs(sizes[0] - sizes[1]) < 0.1 * sizes[0]


def test_what_fills_the_memories_before_a_loop_does_not_keep_its_accumulators_out():
    """The second block of results begins with those of the first in the registers."""
    s = made(TEXT, "toy", M=64, N=64, K=16)
    inner = [n for n in loops(s) if n.axis == "k" and not any(isinstance(c, Loop) for c in distinct(n.body))]
    assert inner
    for n in inner:
        moved = {o.tile.buffer for c in distinct(n.body) if isinstance(c, Issue) and c.is_move for o in c.operands}
        assert moved == {"A", "B"}


def test_of_equal_instructions_one_that_takes_what_its_reader_takes():
    """Sixteen zeros of a row are as many as four by four; only those can be set where the sum goes on with them."""
    s = made(TEXT, "toy", M=32, N=32, K=32)
    assert [s.cover.mappings[n.mapping].instruction.name for n in s.nests] == ["m_fill_f32", "mm4_f32"]


def test_accumulators_stay_in_registers_over_the_reduction():
    s = made(TEXT, "host-avx512", M=64, N=64, K=64)
    inner = [n for n in loops(s) if n.axis == "k" and not any(isinstance(c, Loop) for c in distinct(n.body))]
    assert inner
    for n in inner:
        stores = [i for i in distinct(n.body) if isinstance(i, Issue) and i.is_move and i.operands[1].place.base]
        assert not stores, "nothing goes back to memory inside the reduction"


def test_a_loop_never_fetches_ahead_what_its_first_iteration_writes():
    """A campaign's finding: z was loaded before the loop whose first iteration makes it."""
    assert check_flat(made(LATE, "toy", M=8, N=7)) == []


@pytest.mark.parametrize("approach", [Greedy, Approach])
@pytest.mark.parametrize("on", ["toy", "host-avx512", "host-avx2", "host-generic"])
def test_ragged_products_are_right_by_replay(on, approach):
    for m, n, k in ((5, 17, 3), (1, 1, 1), (0, 4, 2), (9, 33, 0)):
        assert check_flat(made(TEXT, on, approach(), M=m, N=n, K=k)) == []


def test_exact_kernels_keep_their_order():
    import isam

    text = TEXT.replace("  in  A", "  permits exact\n  in  A", 1)
    k = isam.parse(text)
    rng = np.random.default_rng(0)
    arrays = {"A": rng.standard_normal((9, 13)).astype("f4"), "B": rng.standard_normal((13, 21)).astype("f4")}
    want = interp.run(k, arrays, {"M": 9, "N": 21, "K": 13})["C"]
    for on in ("host", "toy"):
        np.testing.assert_array_equal(isam.compile(k, on=on)(**arrays), want)
    s = made(text, "host-avx512", M=9, N=21, K=13)
    assert not any(s.system.instructions[i.instruction].takes for i in distinct(s.call) if isinstance(i, Issue))


def test_a_machine_too_small_says_what_is_wanted_and_what_there_is():
    toy = load_system("toy")
    small = {n: replace(m, cells=1, capacity=64) if n in ("ra", "rb") else m for n, m in toy.memories.items()}
    machine = replace(toy, memories=small)
    trace = Trace(Greedy())
    kernel = normal_form(parse_kernel(TEXT).with_sizes({"M": 8, "N": 8, "K": 8}))
    covered = cover(kernel, Demand(machine.compute), trace)
    no = schedule(covered, machine, trace)
    assert isinstance(no, Infeasible)
    assert not no
    assert "memory 'ra'" in str(no) or "memory 'rb'" in str(no)
    assert "pinned by the current call" in str(no)
    assert len(no.levers) == 1
    name, cells = no.memory, int(no.levers[0].split()[0])
    larger = replace(machine, memories={**small, name: replace(small[name], cells=cells, capacity=64 * cells)})
    assert schedule(covered, larger, Trace(Greedy())), "what is said to help does"


def test_replay_makes_the_same_schedule():
    first = made(TEXT, "toy", M=20, N=20, K=20)
    trace = Trace.replaying(first.trace.to_json())
    machine = load_system("toy")
    kernel = normal_form(parse_kernel(TEXT).with_sizes({"M": 20, "N": 20, "K": 20}))
    covered = cover(kernel, Demand(machine.compute), trace)
    again = schedule(covered, machine, trace)
    assert str(again) == str(first)
