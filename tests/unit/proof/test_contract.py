"""What a description says of a machine is a contract: the scheduler keeps to every field of it, and every judge refuses
a schedule that does not.

A row of ``SHOWN`` is a field with a machine that says more (or less) than another one about it. The schedule made for
the lax machine breaks the strict one, which the tree checker, the flat checker and the strict simulator all have to
say; the one made for the strict machine they accept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import pytest

from isam.codegen.simulator.fault import SimulationFault
from isam.ir.instruction import Burst, Instruction, OperandContract
from isam.ir.text import parse
from isam.proof.flat import check_flat, replayed
from isam.proof.tree import check_tree
from isam.schedule.tree import Schedule
from isam.system.graph import Memory, Move, System, Unit
from isam.system.groups import Cluster, Link, Mesh, Ports, Register, Replica
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

MACHINE = """isam: 1
system: contract
memories:
  dram: {kind: managed, capacity: 1 GiB, home: true}
  sp:   {kind: managed, capacity: 16 KiB, align: 8 B}
  ra:   {kind: managed, cells: 12, cell: 64 B}
  rb:   {kind: managed, cells: 12, cell: 64 B}
units:
  mm:  {runs: [mm4, add4, set_mode], clock: 1 GHz}
  dma: {runs: [copy, bring], clock: 1 GHz}
state:
  mode: {values: [off, on], reset: on}
moves:
  - {from: dram, to: sp, by: copy, issuer: dma, both_ways: true}
  - {from: sp, to: [ra, rb], by: copy, issuer: dma, both_ways: true}
instructions:
  mm4:
    body: |
      instruction mm4(M <= 4, N <= 4, K <= 4)
        in    A: f32[M, K]
        in    B: f32[K, N]
        inout C: f32[M, N]
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * B[k, j]
    homes: {A: [ra, rb], B: [ra, rb], C: [ra, rb]}
    cost: {issue: 4 cycles, latency: 12 cycles}
  add4:
    body: |
      instruction add4(J <= 16)
        in  A: f32[J]
        in  B: f32[J]
        out D: f32[J]
        forall j < J
          D[j] = A[j] + B[j]
    homes: [ra, rb]
    cost: {issue: 1 cycle, latency: 2 cycles}
  set_mode:
    body: |
      instruction set_mode()
    sets: {mode: on}
    cost: {issue: 1 cycle, latency: 1 cycle}
  copy:
    body: |
      instruction copy(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    strides: {S: [free, free], D: [free, free]}
    cost: {setup: 10 cycles, bandwidth: 16 B/cycle}
  bring:
    body: |
      instruction bring(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    strides: {S: [free, free], D: [free, free]}
    cost: {setup: 10 cycles, bandwidth: 16 B/cycle}
"""
KERNELS = {
    "add": parse("""kernel add(N)
  in  a: f32[N]
  in  b: f32[N]
  out c: f32[N]
  forall i < N
    c[i] = a[i] + b[i]
"""),
    "product": parse("""kernel product(M, N, K)
  in    a: f32[M, K]
  in    b: f32[K, N]
  inout c: f32[M, N]
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
"""),
}
KERNELS["ragged"] = KERNELS["add"]
SIZES = {"add": {"N": 48}, "ragged": {"N": 40}, "product": {"M": 8, "N": 8, "K": 8}}
Edit = Callable[[System], System]


def same(s: System) -> System:
    return s


def memory(name: str, **changes: Any) -> Edit:
    return lambda s: replace(s, memories={**s.memories, name: replace(s.memories[name], **changes)})


def instruction(name: str, **changes: Any) -> Edit:
    return lambda s: replace(s, instructions={**s.instructions, name: replace(s.instructions[name], **changes)})


def operand(of: str, name: str, **changes: Any) -> Edit:
    def edit(s: System) -> System:
        i = s.instructions[of]
        return instruction(of, operands={**i.operands, name: replace(i.contract(name), **changes)})(s)

    return edit


def moves(change: Callable[[Move], Move]) -> Edit:
    return lambda s: replace(s, moves=tuple(map(change, s.moves)))


def after(*edits: Edit) -> Edit:
    def edit(s: System) -> System:
        for e in edits:
            s = e(s)
        return s

    return edit


def twins(s: System) -> System:
    """Two matrix units."""
    return replace(s, units={**s.units, "mm2": replace(s.units["mm"], name="mm2")})


def pair(s: System) -> System:
    """Two matrix units that follow one stream."""
    return replace(twins(s), clusters={"pair": Cluster("pair", ("mm", "mm2"))})


def others(s: System) -> System:
    """Two matrix units that follow one stream, and a third with one of its own, which has the second one's name."""
    units = {**twins(s).units, "mm3": replace(s.units["mm"], name="mm3")}
    return replace(s, units=units, clusters={"pair": Cluster("pair", ("mm", "mm3"))})


def outwards(s: System) -> System:
    """Sums may be made in a file that nothing is brought to."""
    s = operand("add4", "A", homes=("ra",))(operand("add4", "B", homes=("ra",))(s))
    s = operand("add4", "D", homes=("rb", "ra"))(s)
    return replace(s, moves=tuple(m for m in s.moves if m.target != "rb"))


def fixed(s: System) -> System:
    """Nothing sets the register."""
    known = {n: i for n, i in s.instructions.items() if n != "set_mode"}
    return replace(s, units={**s.units, "mm": replace(s.units["mm"], runs=("mm4", "add4"))}, instructions=known)


def other_way(s: System) -> System:
    """What sets the register has another name, and what had its name sets something else."""
    was = s.instructions["set_mode"]
    known = {**s.instructions, "set_mode": replace(was, sets={"mode": "off"}), "turn_on": replace(was, name="turn_on")}
    return replace(s, instructions=known,
                   units={**s.units, "mm": replace(s.units["mm"], runs=(*s.units["mm"].runs, "turn_on"))})  # fmt: skip


def burst(*of: Any) -> Edit:
    """Moves from and to main memory go in pieces, so many of them by one command."""

    def edit(s: System) -> System:
        small = s.instructions["copy"].body
        small = replace(small, syms=tuple(replace(y, hi=4) for y in small.syms))
        near = moves(lambda m: m if "dram" in (m.source, m.target) else replace(m, by="bring"))
        return instruction("copy", body=small, burst=Burst(*of))(near(s))

    return edit


def helped(s: System) -> System:
    """A second unit for moves."""
    return replace(s, units={**s.units, "dma2": replace(s.units["dma"], name="dma2")})


def registers(reset: str | None) -> Edit:
    return lambda s: replace(s, state={"mode": replace(s.state["mode"], reset=reset)})


SHOWN: dict[str, Row]


class Row(NamedTuple):
    """Where the scheduler honours a field, the machines and the kernel that show it, what the checkers call it."""

    honoured: str
    lax: Edit
    strict: Edit
    kernel: str
    kinds: frozenset[str]


def row(honoured: str, lax: Edit, strict: Edit, kernel: str, *kinds: str) -> Row:
    return Row(f"isam.scheduler.{honoured}", lax, strict, kernel, frozenset(kinds))


need_on = instruction("add4", requires={"mode": "on"})
SHOWN = {
    "Memory.capacity": row("state", same, memory("sp", capacity=512), "product", "bounds", "address", "capacity"),
    "Memory.align": row("state", same, memory("sp", align=128), "product", "align"),
    "Memory.cells": row("state", same, memory("ra", cells=1), "product", "cell", "address", "bounds", "capacity"),
    "Memory.cell": row("call_size", same, memory("ra", cell=32), "add", "absent", "stale"),
    "Memory.ports": row("placement", same, memory("ra", ports=Ports(1)), "add", "ports"),
    "Memory.row": row("places", same, memory("sp", row=8), "product", "row"),
    "Ports.read": row("placement", memory("ra", ports=Ports(2)), memory("ra", ports=Ports(1)), "add", "ports"),
    "Ports.write": row("placement", outwards, after(outwards, memory("rb", ports=Ports(None, 0))), "add", "ports"),
    "Unit.runs": row("devices", twins, lambda s: replace(twins(s), units={**twins(s).units, "mm2": replace(
        twins(s).units["mm2"], runs=("add4",))}), "product", "unit"),
    "Move.source": row("move", moves(lambda m: replace(m, source="dram") if m.target == "ra" else m), same, "add",
                       "edge"),
    "Move.target": row("move", moves(lambda m: replace(m, target="dram") if m.source == "ra" else m), same, "add",
                       "edge"),
    "Move.by": row("move", same, moves(lambda m: replace(m, by="bring")), "add", "edge"),
    "Move.issuer": row("move", helped, after(helped, moves(lambda m: replace(m, issuer="dma2"))), "add", "edge"),
    "Cluster.units": row("dry", pair, others, "product", "step"),
    "OperandContract.homes": row("placement", same, operand("add4", "A", homes=("rb",)), "add", "home"),
    "OperandContract.strides": row("residency", same, operand("mm4", "B", strides=(1, None)), "product", "stride"),
    "OperandContract.align": row("transfer", same, operand("copy", "D", align=64), "ragged", "align"),
    "OperandContract.shared": row("dry", pair, after(pair, operand("mm4", "B", shared=True)), "product", "step"),
    "Instruction.apart": row("placement", same, instruction("mm4", apart=(("A", "B"),)), "product", "apart"),
    "Instruction.requires": row("configure", registers("off"), after(registers("off"), need_on), "add", "register"),
    "Instruction.sets": row("configure", after(registers("off"), need_on), after(registers("off"), need_on, other_way),
                            "add", "register"),
    "Instruction.burst": row("bursts", burst(8), burst(), "add", "burst"),
    "Burst.most": row("bursts", burst(8), burst(2), "add", "burst"),
    "Burst.step": row("bursts", burst(8), burst(8, (("S", 4),)), "add", "burst"),
    "Register.reset": row("configure", after(need_on, fixed), after(need_on, registers("off")), "add", "register"),
}  # fmt: skip
NAMED = "a name"
TIME = "a cost: it steers what is chosen, no schedule is wrong for it"
PART = "the machine's parts, each with a table of its own"
FREE = {
    "Move.computes": "what kernels are mapped onto: the calls themselves are judged",
    "Move.streams": "where bytes pass a cache: it steers which of two moves is chosen, both leave the same bytes",
    **dict.fromkeys(["Memory.name", "Unit.name", "Replica.name", "Mesh.name", "Link.name", "Cluster.name",
                     "Register.name", "System.name", "Instruction.name"], NAMED),
    **dict.fromkeys(["Memory.bandwidth", "Memory.of", "Unit.clock", "Mesh.bandwidth", "Mesh.hop", "Mesh.wrap",
                     "Mesh.shape", "Mesh.ports", "Mesh.replica", "Link.bandwidth", "Link.edges", "Instruction.cost",
                     "System.assumed", "System.facts", "System.approach"], TIME),
    **dict.fromkeys(["System.memories", "System.units", "System.moves", "System.instructions", "System.replicas",
                     "System.links", "System.clusters", "System.state", "System.meshes",
                     "Instruction.operands"], PART),
    **dict.fromkeys(["System.backend", "System.needs", "System.target", "System.source", "Instruction.emission",
                     "Memory.masks", "Instruction.needs", "Instruction.family", "Instruction.values"],
                    "of the code that is made of a schedule, or of where a text comes from"),
    "Instruction.body": "what it computes: obligations 1 to 3, and limits of sizes, have tests of their own",
    "Instruction.ulp": "of values, not of schedules",
}  # fmt: skip
NOT_YET = {
    "Memory.kind": "which of the fields above are of a memory at all",
    "Memory.home": "where arguments lie: another home is another machine",
    "Memory.lanes": "of registers that a code generator allocates: tests/unit/proof/handmade_machines.py",
    "Memory.lane": "as lanes",
    "Memory.shares": "as lanes",
    "Unit.driver": "of command streams: isam.codegen.stream refuses what does not suit",
    "Unit.counters": "as driver",
    "Unit.hazards": "of waits: tests/unit/proof/test_together.py, with a judge of its own (races)",
    "Replica.count": "of dealt loops: tests/unit/proof/test_dealt.py",
    "Replica.memories": "as count",
    "Replica.units": "as count",
    "Replica.threads": "as count",
    "Register.values": "of what a command may set: tests/unit/proof/test_commands.py",
    "Register.bits": "as values",
}
DESCRIBED = (Memory, Unit, Move, System, Ports, Replica, Mesh, Link, Cluster, Register, OperandContract, Instruction,
             Burst)  # fmt: skip
BASE = parse_system(MACHINE, "contract.yaml")


def scheduled(name: str, system: System) -> Schedule:
    job = compiled(KERNELS[name], SIZES[name], system)
    assert job.schedule is not None
    return job.schedule


def put_before(system: System, s: Schedule) -> Schedule:
    """The schedule as one of another machine, whose instructions it calls."""
    known: Mapping[str, Instruction] = system.instructions
    mappings = tuple(replace(m, instruction=known[m.instruction.name]) for m in s.cover.mappings)
    return replace(s, system=system, cover=replace(s.cover, mappings=mappings))


def simulated(name: str, s: Schedule) -> None:
    class Done:
        schedule, cover = s, s.cover

    judge(KERNELS[name], SIZES[name], Done())  # type: ignore[arg-type]


def test_every_field_of_a_description_is_in_one_list() -> None:
    there = {f"{c.__name__}.{f.name}" for c in DESCRIBED for f in fields(c) if not f.name.endswith("loc")}
    lists = (SHOWN, FREE, NOT_YET)
    listed = [n for of in lists for n in of]
    assert not there - set(listed), "say where it is honoured and judged, or why it constrains nothing"
    assert not set(listed) - there
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("field", SHOWN)
def test_every_judge_holds_a_schedule_to_the_field(field: str) -> None:
    r = SHOWN[field]
    lax, strict = r.lax(BASE), r.strict(BASE)
    own = scheduled(r.kernel, strict)
    assert not check_tree(own)
    assert not check_flat(own)
    simulated(r.kernel, own)
    forged = put_before(strict, scheduled(r.kernel, lax))
    for found in (check_tree(forged), check_flat(forged)):
        assert {v.kind for v in found} & r.kinds, found
    with pytest.raises(SimulationFault):
        simulated(r.kernel, forged)


def test_the_compiled_walk_leaves_steps_with_a_fault_to_who_can_say_what_it_is() -> None:
    r = SHOWN["OperandContract.shared"]
    strict = r.strict(BASE)
    forged = put_before(strict, scheduled(r.kernel, r.lax(BASE)))
    found = replayed(forged, compiled=True).found
    assert found == check_flat(forged)
    assert {v.kind for v in found} == {"step"}
    assert not replayed(scheduled(r.kernel, strict), compiled=True).found
