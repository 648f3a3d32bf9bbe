"""The timeline: closed forms where there are some; iterations that are alike are multiplied, exactly (SCH-13)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from isam.cost.timeline import TICK, Event, timeline
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue
from isam.system.load import load_system
from tests.corpus import CASES
from tests.pipeline import compiled, of_corpus, simulated

NAMES = ("matmul", "softmax", "conv2d", "layer_norm", "sepconv", "rnn", "lower_triangle", "matmul_i8")


def schedule_of(name: str, system=None, **sizes: int):
    case = CASES[name]
    plain = system is None
    job = of_corpus(name, sizes=sizes) if plain else compiled(case.load(), sizes or case.small[0], system)
    assert job.schedule is not None
    return job.schedule, {s.name: 5 for s in job.schedule.kernel.syms}


@pytest.mark.parametrize("name", NAMES)
def test_multiplied_iterations_are_exact(name):
    schedule, late = schedule_of(name)
    short, whole = timeline(schedule, late), timeline(schedule, late, whole=True)
    assert (short.ticks, short.units, short.edges) == (whole.ticks, whole.units, whole.edges)
    assert whole.followed == whole.calls >= short.followed


def test_most_of_a_large_product_is_multiplied():
    schedule, _ = schedule_of("matmul", M=1024, N=1024, K=1024)
    t = timeline(schedule)
    assert t.calls > 1000 * t.followed
    mm = schedule.system.units["mm"]
    products = 1024**3 // 4**3  # 4x4x4 each, an issue interval of 2 cycles
    assert t.units["mm"].busy == products * round(2 / mm.clock / TICK)
    assert t.ticks >= max(w.busy for w in t.units.values())


def test_twice_the_rates_take_half_the_time():
    slow = simulated("toy")
    units = {n: replace(u, clock=u.clock * 2) for n, u in slow.units.items()}
    for name in NAMES:
        (a, late), (b, _) = schedule_of(name, slow), schedule_of(name, replace(slow, units=units))
        assert timeline(a, late).ticks == 2 * timeline(b, late).ticks


def test_calls_respect_their_waits_and_their_streams():
    schedule, late = schedule_of("softmax")
    seen: list[Event] = []
    timeline(schedule, late, seen.append, whole=True)
    per: dict[str, list[Event]] = {}
    for e in seen:
        mine = per.setdefault(e.issue.unit, [])
        assert not mine or e.start >= mine[-1].free, "one thing at a time, in order"
        for w in e.issue.after:
            theirs = per.get(w.stream, [])
            assert all(p.finish <= e.start for p in theirs[: max(0, len(theirs) - w.lag)])
        mine.append(e)


def test_a_single_move_takes_its_set_up_and_its_bytes():
    toy = simulated("toy")
    schedule, _ = schedule_of("transpose", toy)
    first: list[Event] = []
    timeline(schedule, {}, first.append)
    copy = load_system("toy").instructions["copy"].cost
    e = next(e for e in first if e.issue.is_move)
    n = 4
    for k in next(o for o in e.issue.operands).tile.shape:
        n *= k
    cycles = copy.setup + n / copy.bandwidth
    assert e.free - e.start == round(cycles / toy.units["dma"].clock / TICK)


def test_issue_is_what_a_unit_repeats_and_latency_what_a_reader_waits():
    schedule, late = schedule_of("matmul", M=4, N=4, K=16)
    events: list[Event] = []
    timeline(schedule, late, events.append, whole=True)
    products = [e for e in events if e.issue.instruction == "mm4_f32"]
    cost = schedule.system.instructions["mm4_f32"].cost
    cycle = round(1 / schedule.system.units["mm"].clock / TICK)
    for a, b in pairwise(products):  # each adds to what the one before wrote
        assert b.start - a.start >= cost.latency * cycle
    assert all(isinstance(e.issue, Issue) for e in events)


def test_loops_entered_again_in_the_same_state_are_remembered() -> None:
    """Rows of a triangle are of all lengths: what an iteration leaves is followed for the first of them."""
    kernel = parse_kernel("""
kernel lower(H, N)
  in  x: f32[H, N, N]
  out y: f32[N]
  forall i < N
    y[i] = 0
  forall h < H, i < N, j < N where j <= i
    y[i] += x[h, i, j]
""")
    schedule = compiled(kernel, {"H": 3, "N": 256}, simulated("host-avx512")).schedule
    short, whole = timeline(schedule), timeline(schedule, whole=True)
    assert whole == replace(short, followed=whole.followed)
    assert short.followed < short.calls / 15
