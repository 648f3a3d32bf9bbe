"""Tiles on their way to few registers: what that allows is foreseen, and registers are taken in turn."""

from __future__ import annotations

from importlib import import_module

import pytest

from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Schedule, distinct
from isam.scheduler.plan import Plan
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.rotation import Stay, _packed, _shared
from isam.system.graph import System
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

PRODUCT = parse_kernel("""kernel product(M, N, K)
  in  a: f32[M, K]
  in  b: f32[K, N]
  out c: f32[M, N]
  forall i < M, j < N
    c[i, j] = 0
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
""")
COPY = """
    body: |
      instruction {name}({sizes})
        in S: any{dims}
        out D: any{dims}
        {loops}D{at} = S{at}
    cost: {cost}"""


def dsp(registers: int, load: int = 3, multiply: int = 4) -> System:
    """Two units that multiply, one that loads and stores, all in the order of the program."""
    vector = COPY.format(name="ld", sizes="J <= 8", dims="[J]", at="[j]", loops="forall j < J\n          ",
                         cost=f"{{issue: 1 cycle, latency: {load} cycles}}")  # fmt: skip
    number = COPY.format(name="ls", sizes="", dims="", at="[]", loops="",
                         cost=f"{{issue: 1 cycle, latency: {load} cycles}}")  # fmt: skip
    box = COPY.format(name="dma", sizes="M, N", dims="[M, N]", at="[i, j]", loops="forall i < M, j < N\n          ",
                      cost="{setup: 40 cycles, bandwidth: 32 B/cycle}")  # fmt: skip
    return parse_system(f"""isam: 1
system: dsp
memories:
  home: {{kind: managed, capacity: 1 GiB, home: true}}
  near: {{kind: managed, capacity: 64 KiB, align: 4 B}}
  v: {{kind: counted, cells: {registers}, cell: 32 B, lanes: 8}}
units:
  m0: {{runs: ["m_*"], clock: 1 GHz}}
  m1: {{runs: ["m_*"], clock: 1 GHz}}
  lsu: {{runs: [ld, ls], clock: 1 GHz}}
  copy: {{runs: [dma], clock: 1 GHz}}
moves:
  - {{from: home, to: near, by: dma, issuer: copy, both_ways: true}}
  - {{from: near, to: v, by: [ld, ls], issuer: lsu, both_ways: true}}
instructions:
  m_add:
    body: |
      instruction m_add(J <= 8)
        in A: f32
        in B: f32[J]
        inout D: f32[J]
        forall j < J
          D[j] += A[] * B[j]
    homes: [v]
    cost: {{issue: 1 cycle, latency: {multiply} cycles}}
  m_zero:
    body: |
      instruction m_zero(J <= 8)
        out D: f32[J]
        forall j < J
          D[j] = 0
    homes: [v]
    cost: {{issue: 1 cycle, latency: 1 cycle}}
  ld:{vector}
  ls:{number}
  dma:{box}
""")


@pytest.fixture
def foreseen(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that the plans of products were to take."""
    known, told = import_module("isam.scheduler.plans.known"), list[float]()
    plans = known.plans

    def watched(request: Request) -> tuple[list[Plan], list[float]]:
        options, costs = plans(request)
        told.append(min(costs))
        return options, costs

    monkeypatch.setattr(known, "plans", watched)
    return told


def registers(schedule: Schedule, buffer: str) -> set[int | None]:
    """Where a buffer's tiles are brought."""
    moves = (n for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move)
    return {d.place.cell for s, d in (n.operands for n in moves) if d.place.memory == "v" and s.tile.buffer == buffer}


@pytest.mark.parametrize(("count", "load", "multiply"), [(32, 3, 4), (32, 8, 4), (16, 3, 4), (24, 3, 8)])
def test_the_latency_of_loads_is_foreseen(foreseen: list[float], count: int, load: int, multiply: int) -> None:
    schedule = compiled(PRODUCT, {"M": 96, "N": 96, "K": 96}, dsp(count, load, multiply)).schedule
    assert foreseen[-1] == pytest.approx(timeline(schedule).seconds, rel=0.15)


def test_a_block_leaves_registers_for_tiles_on_their_way() -> None:
    sizes = {"M": 96, "N": 96, "K": 384}
    schedule = compiled(PRODUCT, sizes, dsp(32), check=True).schedule
    sums = {o.place.cell for n in distinct(schedule.call) if isinstance(n, Issue) and n.instruction == "m_add"
            for o in n.operands if o.name == "D"}  # fmt: skip
    assert len(sums) <= 24
    assert len(registers(schedule, "a")) >= 4
    assert timeline(schedule).seconds < 1.5 * floor(schedule).seconds


def test_it_computes_what_it_should() -> None:
    sizes = {"M": 13, "N": 20, "K": 9}
    judge(PRODUCT, sizes, compiled(PRODUCT, sizes, dsp(12), check=True))


def test_rooms_are_tiles_times_how_long_they_stay() -> None:
    """Ten tiles of 7 in 5 rooms take 14; where others' tiles come between for half of the step, less room is left."""
    assert _shared([Stay(10, 7.0, 0.0, in_a_row=True)], 5, 10.0) == 14.0
    both = [Stay(6, 7.0, 0.0, in_a_row=True), Stay(2, 7.0, 5.0, in_a_row=False)]
    assert _shared(both, 5, 10.0) == 56 / 4


def test_each_room_has_whole_tiles_in_an_iteration() -> None:
    """Four rooms for two of 10 and six of 4: three times 4 fit beside nothing, one beside a 10."""
    long, short = Stay(2, 10.0, 0.0, in_a_row=True), Stay(6, 4.0, 0.0, in_a_row=True)
    assert _packed([long, short], 4, 1) == 12.0
    assert _packed([long, short], 8, 1) == 10.0
    assert _packed([long, short], 4, 2) == 12.0
