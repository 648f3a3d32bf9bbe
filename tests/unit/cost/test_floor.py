"""What no schedule beats: never above the timeline; closed forms where there are some (SCH-13)."""

from __future__ import annotations

import heapq
import json
from dataclasses import replace
from itertools import pairwise

import pytest

from isam.cost.floor import floor, least_seconds
from isam.cost.perfetto import trace
from isam.cost.report import report
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from tests.corpus import CASES
from tests.machines import CROWD
from tests.pipeline import compiled, of_corpus, simulated

TOY, CORES = simulated("toy"), simulated(CROWD)


def schedule_of(name: str, **sizes: int):
    job = of_corpus(name, sizes=sizes)
    assert job.schedule is not None
    return job.schedule, {s.name: 3 for s in job.schedule.kernel.syms}


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_schedule_is_faster_than_its_floor(name):
    case = CASES[name]
    for on, sizes in (("toy", case.small[0]), (CROWD, case.small[:2][-1])):
        job = of_corpus(name, on, sizes)
        schedule = job.schedule
        assert schedule is not None
        late = {s.name: 3 for s in schedule.kernel.syms}
        assert floor(schedule, late).seconds <= timeline(schedule, late).seconds * (1 + 1e-12), (on, sizes)
        assert least_seconds(job.cover, schedule.system) <= timeline(schedule, late).seconds * (1 + 1e-12), (on, sizes)


def test_what_is_made_when_constants_are_bound_takes_no_time_of_a_call():
    """Of a product with a factor cut and laid out for it only the product counts."""
    schedule = compiled(parse_kernel(BOUND), {"M": 64, "N": 64, "K": 512}, simulated("sapphire-rapids"))
    calls = 4 * 4 * 512 / 32  # of 16 cycles at 3 GHz
    others = 4 * 4 + 64 * 4  # first values, roundings
    assert calls * 16 / 3e9 <= least_seconds(schedule.cover, schedule.system) <= (calls * 16 + others) / 3e9


BOUND = """kernel product(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, N]
  out   C: bf16[M, N]
  temp  S: f32[M, N]
  permits reassociate, contract, flush
  forall i < M, j < N
    S[i, j] = 0
  forall i < M, j < N, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < N
    C[i, j] = bf16(S[i, j])
"""


@pytest.mark.parametrize("on", ["toy", "host-avx2"])
def test_what_is_made_of_many_constants_is_no_part_of_what_a_call_takes(on: str) -> None:
    """Neither the operations on them nor their way from home."""
    job = compiled(parse_kernel(SUMMED), {"M": 2, "N": 64, "K": 64}, simulated(on))
    assert job.schedule is not None
    assert any(isinstance(n, Issue) and n.nest is not None for n in distinct(job.schedule.bind))
    assert floor(job.schedule).seconds <= timeline(job.schedule).seconds
    assert least_seconds(job.cover, job.system) <= timeline(job.schedule).seconds


SUMMED = """kernel summed(M, N, K)
  in    A: f32[M, K]
  const W: f32[K, N]
  const V: f32[K, N]
  const U: f32[K, N]
  const X: f32[K, N]
  out   C: f32[M, N]
  temp  T: f32[K, N]
  forall k < K, n < N
    T[k, n] = W[k, n] + V[k, n] + U[k, n] + X[k, n]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * T[k, j]
"""


def bound(schedule, kind: str, where: str) -> float:
    """What a resource is taken for, without what comes before and after."""
    (found,) = [b.seconds - b.around for b in floor(schedule).bounds if (b.kind, b.where) == (kind, where)]
    return found


def test_a_product_counted_by_hand():
    schedule, _ = schedule_of("matmul", M=30, N=20, K=17)
    cost, clock = TOY.instructions["mm4_f32"].cost, TOY.units["mm"].clock
    assert bound(schedule, "compute", "mm") == pytest.approx(8 * 5 * 5 * cost.issue / clock, rel=1e-12)
    rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
    into, back = 4 * (30 * 17 + 17 * 20), 4 * 30 * 20
    assert bound(schedule, "traffic", "edge dram -> sp") == pytest.approx(into / rate, rel=1e-12)
    assert bound(schedule, "traffic", "edge sp -> dram") == pytest.approx(back / rate, rel=1e-12)
    # every element goes on to a register file, or comes from one, by the same unit
    assert bound(schedule, "traffic", "unit dma") == pytest.approx(2 * (into + back) / rate, rel=1e-12)


def test_the_way_of_one_call_counted_by_hand():
    """Both operands come to the scratchpad and go on by one unit, one element each; the result comes back as far."""
    schedule, _ = schedule_of("matmul", M=30, N=20, K=17)
    cost, clock, dma = TOY.instructions["mm4_f32"].cost, TOY.units["mm"].clock, TOY.units["dma"].clock
    move = TOY.instructions["copy"].cost
    hop = max(move.issue or 0, (move.setup or 0) + 4 / move.bandwidth) / dma
    there = max(hop, (move.latency or 0) / dma)
    found = [b for b in floor(schedule).bounds if (b.kind, b.where) == ("latency", "mm")]
    (product,) = [b for b in found if "mm4_f32" in b.why]
    call = max(cost.issue, cost.latency or 0) / clock
    assert product.seconds == pytest.approx(max(2 * hop + 2 * there - hop, 2 * there) + call + 2 * there, rel=1e-6)
    (compute,) = [b for b in floor(schedule).bounds if (b.kind, b.where) == ("compute", "mm")]
    assert 0 < compute.around < product.seconds


def test_instances_and_links_counted_by_hand():
    """Three cores with two matrix units each: a sixth of the calls on each; one link for what all of them move."""
    schedule = of_corpus("matmul", CROWD, {"M": 30, "N": 20, "K": 17}).schedule
    assert schedule is not None
    cost, clock = CORES.instructions["mm4_f32"].cost, CORES.units["mm"].clock
    assert bound(schedule, "compute", "mm, mm2") == pytest.approx(8 * 5 * 5 * cost.issue / clock / 6, rel=1e-12)
    size = 4 * (30 * 17 + 17 * 20 + 30 * 20)
    assert bound(schedule, "traffic", "link bus") == pytest.approx(size / 40e9, rel=1e-12)
    rate = CORES.instructions["copy"].cost.bandwidth * CORES.units["dma"].clock * 3
    assert bound(schedule, "traffic", "unit dma") == pytest.approx(2 * size / rate, rel=1e-12)


def test_the_capacity_counted_by_hand():
    """2 F / sqrt(S) - 2 S elements: F products; S elements in the scratchpad and the register files, or in those."""
    n = 512
    schedule, _ = schedule_of("matmul", M=n, N=n, K=n)
    rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
    found = [b.seconds for b in floor(schedule).bounds if (b.kind, b.where) == ("capacity", "unit dma")]
    want = [(2 * n**3 / s**0.5 - 2 * s) * 4 / rate for s in (512, 4096 + 512)]
    assert sorted(found, reverse=True) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(("name", "applies"), [("matmul", True), ("batched_matmul", True), ("conv2d", False),
                                               ("softmax", False), ("rnn", False), ("matmul_i8", True)])  # fmt: skip
def test_where_the_theorem_on_contractions_applies(name, applies):
    case = CASES[name]
    large = {n: 4 * v + 64 for n, v in case.small[0].items()}
    schedule = of_corpus(name, sizes=large if applies else None).schedule
    assert schedule is not None
    assert any(b.kind == "capacity" for b in floor(schedule).bounds) == applies


def least_traffic(m: int, n: int, k: int, held: int) -> int:
    """The fewest loads and stores with which any order of products does C = A B on so many elements, by search."""
    products = [(i, j, p) for i in range(m) for j in range(n) for p in range(k)]
    names = [("A", i, p) for i in range(m) for p in range(k)] + [("B", p, j) for p in range(k) for j in range(n)]
    results = [(i, j) for i in range(m) for j in range(n)]
    whole = (1 << len(products)) - 1
    start = (0, frozenset(), frozenset())  # products done, elements near, partial results that lie at home
    best, queue, tie = {start: 0}, [(0, 0, start)], 0
    while queue:
        cost, _, state = heapq.heappop(queue)
        done, near, home = state
        if done == whole and not any(x[0] == "C" for x in near):
            return cost
        if cost > best[state]:
            continue
        ways = [(cost, (done, near - {x}, home)) for x in near if x[0] != "C"]  # forgotten
        ways += [(cost + 1, (done, near - {x}, home | {x})) for x in near if x[0] == "C"]
        if len(near) < held:
            ways += [(cost + 1, (done, near | {x}, home)) for x in names if x not in near]
            ways += [(cost + 1, (done, near | {x}, home - {x})) for x in home]
            begun = {(i, j) for b, (i, j, _) in enumerate(products) if done >> b & 1}
            new = [("C", i, j) for i, j in results if (i, j) not in begun and ("C", i, j) not in near]
            ways += [(cost, (done, near | {x}, home)) for x in new]
        for b, (i, j, p) in enumerate(products):
            if not done >> b & 1 and {("A", i, p), ("B", p, j), ("C", i, j)} <= near:
                ways.append((cost, (done | 1 << b, near, home)))
        for far, after in ways:
            if far < best.get(after, far + 1):
                best[after] = far
                tie += 1
                heapq.heappush(queue, (far, tie, after))
    raise AssertionError("three elements are enough")


@pytest.mark.parametrize(("m", "n", "k", "held"), [(1, 1, 6, 3), (1, 2, 3, 3), (3, 1, 2, 3)])
def test_no_order_of_products_moves_less_than_the_theorem_says(m, n, k, held):
    least = 2 * m * n * k / held**0.5 - 2 * held
    assert 0 < least <= least_traffic(m, n, k, held)


def test_elements_that_a_convolution_skips_are_not_counted():
    dense, _ = schedule_of("conv1d")
    strided, _ = schedule_of("conv1d/stride=2")
    for schedule in (dense, strided):
        x = next(b for b in schedule.kernel.arguments if b.role == "in")
        whole = 4
        for d in x.shape:
            whole *= d.const
        w = next(b for b in schedule.kernel.arguments if b.role == "const")
        for_w = 4
        for d in w.shape:
            for_w *= d.const
        rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
        assert bound(schedule, "traffic", "edge dram -> sp") <= (whole + for_w) / rate + 1e-18


def test_the_report_tells_what_the_timeline_says():
    schedule, late = schedule_of("softmax")
    r = report(schedule, late)
    assert r.data["seconds"] == timeline(schedule, late).seconds
    assert all(0 <= u["share"] <= 1 for u in r.data["units"].values())
    assert "times the least" in str(r)
    clocks = {TOY.units[u].clock for u in r.data["units"]}
    assert {u["clock"] for u in r.data["units"].values()} == clocks == {1e9}
    assert str(r).startswith("in time, at 1 GHz as described: ")
    assert "\n  at least, at 1 GHz as described\n" in str(r)
    other = replace(TOY, units={**TOY.units, "dma": replace(TOY.units["dma"], clock=2.5e9)})
    assert replace(r, system=other).clocks == "at 1 GHz to 2.5 GHz as described"
    *some, last = r.time.units
    for assumed, said in (
        ([last], f"at 1 GHz as described, assumed of {last}"),
        ([*some, last], f"at 1 GHz, assumed of {', '.join([*some, last])}"),
    ):
        unsaid = replace(TOY, assumed=tuple(f"{u}: clock 1 GHz" for u in assumed))
        assert replace(r, system=unsaid).clocks == said


def test_a_trace_has_every_call_once_and_in_its_stream():
    schedule, late = schedule_of("softmax")
    rows = json.loads(trace(schedule, late))["traceEvents"]
    calls = [r for r in rows if r.get("cat") == "unit"]
    assert len(calls) == timeline(schedule, late).calls
    for n in {r["tid"] for r in calls}:
        mine = [r for r in calls if r["tid"] == n]
        assert all(a["ts"] + a["dur"] <= b["ts"] * (1 + 1e-9) + 1e-9 for a, b in pairwise(mine))


TRIANGLE = """kernel triangle(T, K)
  in  x: f32[T, K]
  in  y: f32[K, T]
  out z: f32[T, T]
  forall i < T, j < T
    z[i, j] = 0
  forall i < T, j < T, k < K where j <= i
    z[i, j] += x[i, k] * y[k, j]
"""


def test_points_that_a_condition_admits_are_counted():
    """All of both factors is used; of the products, half the square and half the diagonal."""
    job = compiled(parse_kernel(TRIANGLE), {"T": 24, "K": 20}, TOY)
    assert job.schedule is not None
    (calls,) = [m.instruction for m in job.cover.mappings if 1 in m.statements]
    most = min(24, calls.span("i").most) * min(24, calls.span("j").most) * min(20, calls.span("k").most)
    unit = next(iter(TOY.units_of(calls.name)))
    least_calls = -(-(24 * 25 // 2 * 20) // most)
    found = [b for b in floor(job.schedule).bounds if (b.kind, b.where) == ("compute", unit.name)]
    assert len(found) == 1
    assert found[0].seconds - found[0].around >= least_calls * calls.cost.interval / unit.clock * (1 - 1e-9)
    rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
    assert bound(job.schedule, "traffic", "edge dram -> sp") == pytest.approx(4 * 2 * 24 * 20 / rate)
    assert floor(job.schedule).seconds <= timeline(job.schedule).seconds


STEPS = """kernel steps(T, N)
  in    x: f32[N, T]
  in    f: f32[N]
  inout s: f32[N]
  out   y: f32[N, T + 1]
  forall i < N
    y[i, 0] = s[i]
  loop t < T
    forall i < N
      s[i] = s[i] * f[i] + x[i, t]
    forall i < N
      y[i, t + 1] = s[i]
"""


def test_what_all_steps_of_a_loop_touch_travels_once():
    """Not what one of them touches; what stays the same, or is handed on, does not count again."""
    schedule = compiled(parse_kernel(STEPS), {"T": 50, "N": 8}, TOY).schedule
    assert schedule is not None
    rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
    into, back = 4 * (8 * 50 + 8 + 8), 4 * (8 * 50 + 8)  # of y what one statement writes
    assert bound(schedule, "traffic", "edge dram -> sp") == pytest.approx(into / rate, rel=1e-12)
    assert bound(schedule, "traffic", "edge sp -> dram") == pytest.approx(back / rate, rel=1e-12)
    assert floor(schedule).seconds <= timeline(schedule).seconds
    none = compiled(parse_kernel(STEPS), {"T": 0, "N": 8}, TOY).schedule
    assert none is not None
    assert bound(none, "traffic", "edge sp -> dram") == pytest.approx(4 * 8 / rate, rel=1e-12)


def test_no_bound_is_told_twice():
    schedule, _ = schedule_of("matmul", M=30, N=20, K=17)
    told = [(b.kind, b.where, b.why) for b in floor(schedule).bounds]
    assert len(told) == len(set(told))
    assert not any("on 1 units" in why for _, _, why in told)
