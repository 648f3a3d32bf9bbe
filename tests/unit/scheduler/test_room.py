"""More room never loses a schedule, and what a refusal says would help is the least that does (SCH-6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.compiler import Refused
from isam.compiler.job import Job
from isam.compiler.stages import new_job, run_stages
from isam.cost.timeline import timeline
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from isam.scheduler import schedule
from isam.system.graph import System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.machines import WEIGHTS
from tests.machines.small import PRODUCT, instruction, small
from tests.pipeline import compiled, judge, simulated

DILATED = parse_kernel("""kernel dilated(T, C, K)
  in    x: i8[T + 4, C]
  const w: i8[3, C, K]
  const b: i32[K]
  const s: f32[K]
  out   y: i8[T, K]
  temp  a: i32[T, K]
  forall t < T, k < K
    a[t, k] = b[k]
  forall t < T, k < K, r < 3, c < C
    a[t, k] += i32(x[t + 2 * r, c]) * i32(w[r, c, k])
  forall t < T, k < K
    y[t, k] = sat_i8(round(f32(max(a[t, k], 0)) * s[k]))
""")
BIAS = """
  in  S: f32[N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = S[j]
"""
SIZES = {"T": 13, "C": 9, "K": 10}
WORSE = 2.0  # times the quickest schedule with less room; predictions of plans are not exact


def with_room(system: System, memory: str, room: int) -> System:
    m = system.memories[memory]
    more = replace(m, capacity=room) if m.cells is None else replace(m, cells=room, capacity=room * (m.cell or 1))
    return replace(system, memories={**system.memories, memory: more})


def in_bytes() -> System:
    """`toy` with a scratchpad and register files of 256 bytes each, addressed by bytes."""
    toy = simulated("toy")
    small = {n: replace(toy.memories[n], cells=None, cell=None, capacity=256, align=8) for n in ("ra", "rb", "sp")}
    return replace(toy, memories={**toy.memories, **small})


def scheduled(kernel: Kernel, sizes: dict[str, int], machine: System) -> Job:
    return run_stages(new_job(kernel, machine, sizes, None, check=False), "schedule")


def attempt(kernel: Kernel, sizes: dict[str, int], machine: System) -> Schedule | None:
    try:
        return scheduled(kernel, sizes, machine).schedule
    except Refused:
        return None


@pytest.mark.parametrize(("kernel", "sizes", "machine", "memory", "rooms"), [
    (DILATED, SIZES, load_system(WEIGHTS), "sp", (8, 16, 48, 64, 72, 192)),
    (DILATED, SIZES, with_room(load_system(WEIGHTS), "sp", 64), "acc", (1, 2, 3, 5, 16)),
    (CASES["conv2d"].load(), CASES["conv2d"].small[0], simulated("toy"), "ra", (1, 2, 3)),
    (CASES["layer_norm"].load(), CASES["layer_norm"].small[0], simulated("toy"), "sp", (16, 144, 160, 208)),
    (CASES["layer_norm"].load(), CASES["layer_norm"].small[0], in_bytes(), "ra", (16, 40, 64, 112, 136, 160)),
], ids=["scratchpad", "accumulators", "registers", "aligned rows", "bytes"])  # fmt: skip
def test_more_room_loses_no_schedule(kernel, sizes, machine, memory, rooms):
    best = None
    for room in rooms:
        s = attempt(kernel, sizes, with_room(machine, memory, room))
        assert s is not None or best is None, f"{room} of {memory}"
        if s is None:
            continue
        ticks = timeline(s).ticks
        assert best is None or ticks <= WORSE * best, room
        best = ticks if best is None else min(best, ticks)
    assert best is not None


def test_what_the_dry_run_has_no_room_for_is_tried_with_smaller_calls():
    """Each operand fits, and so do all together; what goes home over them finds no room."""
    case, machine = CASES["padded_conv2d_nhwc_temp"], with_room(simulated("toy"), "sp", 48)
    kernel, sizes = case.load(), case.small[0]
    job = compiled(kernel, sizes, machine, check=True)
    judge(kernel, sizes, job)
    asked = [(d.context["nest"], d.label) for d in job.trace.decisions if d.point == "tail"]
    again = [n for n, _ in asked if len({label for m, label in asked if m == n}) > 1]
    assert again, "no call was refused by the dry run"
    replayed = run_stages(new_job(kernel, machine, sizes, None, check=False, replay=job.trace), "schedule")
    assert str(replayed.schedule) == str(job.schedule)


def test_the_least_that_helps_is_named():
    """8 bytes hold no scale and result of requant8 at aligned places."""
    with pytest.raises(Refused) as no:
        scheduled(DILATED, SIZES, with_room(load_system(WEIGHTS), "sp", 8))
    assert no.value.answer.levers == ("16 bytes of 'sp'",)
    assert "would help: 16 bytes of 'sp'" in str(no.value)
    assert scheduled(DILATED, SIZES, with_room(load_system(WEIGHTS), "sp", 16)).schedule


class Counting(Greedy):
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.points: list[str] = []

    def decide(self, choice: Choice) -> object:
        self.points.append(choice.point)
        return super().decide(choice)


def test_what_would_help_is_found_out_once_somebody_wants_to_know():
    """A candidate that has no schedule may stand beside one that has."""
    kernel, machine, asked = CASES["matmul"].load(), with_room(load_system("toy"), "sp", 2), Counting()
    job = new_job(kernel, machine, {"M": 4, "N": 4, "K": 4}, asked)
    with pytest.raises(Refused):
        run_stages(job, "schedule")
    (no,) = (c.answer for c in job.candidates)
    again = Counting()
    found = schedule(job.candidates[0].cover, machine, Trace(again))
    count = len(again.points)
    assert not found
    assert found.levers == no.levers
    assert len(again.points) > count
    assert "levers" in vars(found)


def with_bias() -> System:
    """Operands of a product each in a memory of its own, and 4 KiB for results: 64 tiles of 4 by 4, or 63 beside a row
    of a bias."""
    of_product = instruction("mac(M <= 4, N <= 4, K <= 4)", PRODUCT, "homes: {A: [left], B: [right], C: [sums]}")
    begin = instruction("begin(M <= 4, N <= 4)", BIAS, "homes: [sums]")
    memories = {"sp": "capacity: 64 KiB", "left": "cells: 4, cell: 64 B", "right": "cells: 4, cell: 64 B",
                "sums": "capacity: 4 KiB"}  # fmt: skip
    moves = ["dram -> sp", "sp -> left", "sp -> right", "dram <-> sums"]
    return small("biased", memories, moves, of_product, begin)


def test_a_block_leaves_room_for_what_other_nests_bring_there():
    """64 tiles of results would fit alone: with the bias beside them two went home, and came back in every step."""
    kernel = parse_kernel("kernel layer(M, N, K)\n  in  x: f32[M, K]\n  in  w: f32[K, N]\n  in  b: f32[N]\n"
                          "  out y: f32[M, N]\n  forall i < M, j < N\n    y[i, j] = b[j]\n"
                          "  forall i < M, j < N, k < K\n    y[i, j] += x[i, k] * w[k, j]\n")  # fmt: skip
    sizes = {"M": 64, "N": 64, "K": 64}
    job = compiled(kernel, sizes, with_bias(), check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    assert timeline(job.schedule).edges["sums", "dram"].bytes == 64 * 64 * 4


ROW_PRODUCT = """
  in    x: f32[K]
  in    W: f32[K, N]
  inout y: f32[N]
  forall j < N, k < K
    y[j] += x[k] * W[k, j]
"""
ZERO_N = """
  out D: f32[N]
  forall j < N
    D[j] = 0
"""
ROW_CLIP = """
  in  A: f32[N]
  out D: f32[N]
  forall j < N
    D[j] = max(A[j], 0)
"""


def test_what_has_room_stays_though_another_memory_is_crowded():
    """A block of results takes their memory twice, before and after they are clipped; the weights, which have one for
    themselves, wait there for the next block."""
    homes = "homes: {x: [left], W: [right], y: [sums]}"
    of_rows = instruction("mac(K <= 8, N <= 8)", ROW_PRODUCT, homes)
    others = (instruction(f"{n}(N <= 8)", t, "homes: [sums]") for n, t in (("zero", ZERO_N), ("clip", ROW_CLIP)))
    memories = {"left": "capacity: 4 KiB", "right": "cells: 2, cell: 256 B", "sums": "capacity: 1 KiB"}
    machine = small("rows", memories, ["dram -> left", "dram -> right", "dram <-> sums"], of_rows, *others)
    kernel = parse_kernel("kernel layer(M, N, K)\n  in  x: f32[M, K]\n  in  w: f32[K, N]\n  out y: f32[M, N]\n"
                          "  forall i < M, j < N\n    t[i, j] = 0\n"
                          "  forall i < M, j < N, k < K\n    t[i, j] += x[i, k] * w[k, j]\n"
                          "  forall i < M, j < N\n    y[i, j] = max(t[i, j], 0)\n")  # fmt: skip
    sizes = {"M": 96, "N": 8, "K": 8}
    job = compiled(kernel, sizes, machine, check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    assert timeline(job.schedule).edges["dram", "right"].bytes == 8 * 8 * 4
