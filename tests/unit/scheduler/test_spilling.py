"""A value that registers have no room for stays in the nearest memory on its way home that has, and is read back there
(SCH-6)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isam.ir.text import parse_kernel
from isam.proof import check_flat
from isam.schedule.tree import Issue, Loop, Node, Schedule, children
from isam.system.graph import System
from tests.machines.small import SAME, instruction, small
from tests.pipeline import compiled, judge

VECTOR = """
  in  A: f32[J]
  in  B: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = A[j] {} B[j]
"""
CHAIN = parse_kernel("""kernel chain(N)
  in  a: f32[N]
  in  b: f32[N]
  out y: f32[N]
  forall i < N
    p[i] = a[i] + b[i]
  forall i < N
    q[i] = a[i] * b[i]
  forall i < N
    r[i] = p[i] * q[i]
  forall i < N
    s[i] = p[i] + r[i]
  forall i < N
    t[i] = q[i] * s[i]
  forall i < N
    u[i] = r[i] + t[i]
  forall i < N
    y[i] = p[i] * u[i]
""")
CHANGED = parse_kernel("""kernel changed(N)
  in    a: f32[N]
  in    b: f32[N]
  inout p: f32[N]
  out   y: f32[N]
  out   z: f32[N]
  forall i < N
    p[i] = p[i] + a[i]
  forall i < N
    y[i] = p[i] * b[i]
  forall i < N
    p[i] = p[i] * y[i]
  forall i < N
    z[i] = p[i] + y[i]
  forall i < N
    p[i] = z[i] * a[i]
""")


def near(room: int = 16 << 10, cells: int = 4) -> System:
    return small(
        "near",
        {"sp": f"capacity: {room} B, align: 16 B", "rf": f"cells: {cells}, cell: 64 B"},
        ["dram <-> sp", "sp <-> rf"],
        instruction("vadd(J <= 16)", VECTOR.format("+"), "homes: [rf]"),
        instruction("vmul(J <= 16)", VECTOR.format("*"), "homes: [rf]"),
        copy=instruction("copy(M, N)", SAME),
    )


def moved(schedule: Schedule, source: str, target: str) -> list[str]:
    """What is moved along an edge, a buffer for each call."""

    def calls(node: Node) -> Iterator[Issue]:
        if isinstance(node, Issue):
            yield node
        for c in children(node):
            for _ in range((node.trip or 1) if isinstance(node, Loop) and c is node.body else 1):
                yield from calls(c)

    found = [c.operands for c in calls(schedule.call) if c.is_move]
    return [s.tile.buffer for s, d in found if (s.place.memory, d.place.memory) == (source, target)]


def test_only_results_go_home_where_there_is_room_nearer():
    job = compiled(CHAIN, {"N": 64}, near(cells=3))
    judge(CHAIN, {"N": 64}, job)
    assert check_flat(job.schedule) == []
    assert set(moved(job.schedule, "sp", "dram")) == {"y"}
    assert set(moved(job.schedule, "dram", "sp")) == {"a", "b"}
    kept = moved(job.schedule, "rf", "sp")
    back = moved(job.schedule, "sp", "rf")
    assert kept.count("p") == 4 < back.count("p")  # it is there already when it has to make way again
    assert [s.name for s in job.schedule.workspace if s.memory == "dram"] == []


@pytest.mark.parametrize(("room", "home"), [(64, set("pqy")), (128, set("qry")), (512, {"y"})])
def test_what_has_no_room_there_goes_home(room, home):
    job = compiled(CHAIN, {"N": 64}, near(room, cells=3), check=True)
    judge(CHAIN, {"N": 64}, job)
    assert set(moved(job.schedule, "sp", "dram")) == home


@pytest.mark.parametrize("cells", [3, 4, 5])
@pytest.mark.parametrize("room", [256, 1024, 16 << 10])
def test_what_is_read_back_may_change(cells, room):
    job = compiled(CHANGED, {"N": 80}, near(room, cells), check=True)
    judge(CHANGED, {"N": 80}, job)
    assert check_flat(job.schedule) == []
