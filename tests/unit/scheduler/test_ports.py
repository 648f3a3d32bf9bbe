"""SYS-3: a memory serves so many operands of one call; the scheduler keeps to it, both judges refuse what does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isam.ir.text import parse
from isam.proof.flat import check_flat
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Schedule, distinct
from isam.system.graph import System
from isam.system.groups import Ports
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

TINY = (Path(__file__).parents[3] / "hwdesc" / "tiny" / "tiny.yaml").read_text(encoding="utf-8")
ADD = """  add4:
    body: |
      instruction add4(J <= 16)
        in  A: f32[J]
        in  B: f32[J]
        out D: f32[J]
        forall j < J
          D[j] = A[j] + B[j]
    homes: [ra, rb]
    cost: {issue: 1 cycle, latency: 2 cycles}
"""
KERNEL = """kernel add(N)
  in  a: f32[N]
  in  b: f32[N]
  out c: f32[N]
  forall i < N
    c[i] = a[i] + b[i]
"""
FLOW = """kernel flow(N)
  in  a: f32[N]
  in  b: f32[N]
  out c: f32[N]
  forall i < N
    t[i] = a[i] + b[i]
    u[i] = t[i] + b[i]
    v[i] = t[i] + a[i]
    c[i] = u[i] + v[i]
"""


def machine(ra: Ports = Ports(), rb: Ports = Ports()) -> System:  # noqa: B008
    s = parse_system(TINY.replace("runs: [mm4]", "runs: [mm4, add4]") + ADD, "m.yaml")
    memories = {n: replace(m, ports={"ra": ra, "rb": rb}.get(n, m.ports)) for n, m in s.memories.items()}
    return replace(s, memories=memories)


def placements(schedule: Schedule) -> set[tuple[str, ...]]:
    return {tuple(o.place.memory for o in n.operands) for n in distinct(schedule.call)
            if isinstance(n, Issue) and n.instruction == "add4"}  # fmt: skip


def schedule(system: System) -> Schedule:
    kernel = parse(KERNEL)
    job = compiled(kernel, {"N": 70}, system, check=True)
    judge(kernel, {"N": 70}, job)
    assert job.schedule is not None
    return job.schedule


def test_operands_are_spread_over_the_files_that_have_ports() -> None:
    assert placements(schedule(machine())) == {("ra", "ra", "ra")}
    for a, b, d in placements(schedule(machine(Ports(1, 1), Ports(1, 1)))):
        assert {a, b} == {"ra", "rb"}
        assert d in ("ra", "rb")
    for p in placements(schedule(machine(Ports(1), Ports(2)))):
        assert p[:2] != ("ra", "ra")


@pytest.mark.parametrize(("ports", "legal"), [
    (Ports(), True), (Ports(2, 1), True), (Ports(2, None), True), (Ports(1, 1), False), (Ports(1, None), False),
])  # fmt: skip
def test_both_judges_count_ports(ports: Ports, legal: bool) -> None:
    """A schedule made for a machine with any number of ports, put before the judges of one that has few."""
    made = schedule(machine())
    forged = replace(made, system=machine(ports))
    for found in (check_tree(forged), check_flat(forged)):
        assert [v.kind for v in found[:1]] == ([] if legal else ["ports"]), found


def test_an_updated_operand_takes_a_port_to_read_and_one_to_write() -> None:
    assert Ports(1, 1).admit(["inout"])
    assert not Ports(1, 1).admit(["inout", "in"])
    assert not Ports(1, 1).admit(["inout", "out"])
    assert Ports(2, 1).admit(["inout", "const"])


def test_what_another_file_wants_is_handed_over_and_does_not_go_home() -> None:
    """A temporary that lies where the other operand is has to move: through the scratchpad, not through main memory."""
    kernel = parse(FLOW)
    job = compiled(kernel, {"N": 70}, machine(Ports(1, 1), Ports(1, 1)), check=True)
    judge(kernel, {"N": 70}, job)
    assert job.schedule is not None
    assert not check_races(job.schedule, {})
    moves = [n.operands for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.is_move]
    temporary = [o for source, target in moves for o in (source, target) if o.tile.buffer in "tuv"]
    assert {o.place.memory for o in temporary} == {"ra", "rb", "sp"}


def test_what_another_file_wants_goes_home_where_no_other_way_leads_there() -> None:
    ways = TINY.replace("{from: sp, to: [ra, rb],", "{from: dram, to: [ra, rb],")
    s = parse_system(ways.replace("runs: [mm4]", "runs: [mm4, add4]") + ADD, "m.yaml")
    one = Ports(1, 1)
    memories = {n: replace(m, ports=one if n in ("ra", "rb") else m.ports) for n, m in s.memories.items()}
    kernel = parse(FLOW)
    job = compiled(kernel, {"N": 70}, replace(s, memories=memories), check=True)
    judge(kernel, {"N": 70}, job)
    assert job.schedule is not None
    moves = [n.operands for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.is_move]
    assert {o.place.memory for m in moves for o in m if o.tile.buffer in "tuv"} == {"ra", "rb", "dram"}
