"""Ports, replicas, links, clusters and configuration registers: what a description may say, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.diagnostics import IsamError
from isam.system.check import check
from isam.system.graph import System
from isam.system.groups import Cluster, Link, Ports, Register, Replica
from isam.system.load import parse_system
from isam.system.show import text as shown

MACHINE = """isam: 1
system: many
memories:
  dram: {kind: managed, capacity: 1 GiB, home: true}
  sp:   {kind: managed, capacity: 16 KiB, align: 16 B}
  ra:   {kind: managed, cells: 8, cell: 64 B, ports: {read: 1, write: 1}}
  rb:   {kind: managed, cells: 8, cell: 64 B, ports: {read: 2}}
units:
  m0:  {runs: [mm4, setup], clock: 1 GHz, driver: sequencer, counters: 3}
  m1:  {runs: [mm4, setup], clock: 1 GHz, driver: expanded, hazards: resolved}
  dma: {runs: [copy, far], clock: 2 GHz}
moves:
  - {from: dram, to: sp, by: far, issuer: dma, both_ways: true}
  - {from: sp, to: [ra, rb], by: copy, issuer: dma, both_ways: true}
replicas:
  tile: {count: 4, memories: [sp, ra, rb], units: [m0, m1, dma]}
links:
  bus: {bandwidth: 64 GB/s, edges: [[dram, sp], [sp, dram]]}
  inner: {bandwidth: 32 B/cycle, clock: 500 MHz, edges: [[sp, ra]]}
clusters:
  pair: {units: [m0, m1]}
state:
  dataflow: {values: [ws, os], reset: os}
  stride:   {bits: 16, reset: 0}
instructions:
  mm4:
    body: |
      instruction mm4(M <= 4, N <= 4, K <= 4)
        in    A: f32[M, K]
        in    B: f32[K, N]
        inout C: f32[M, N]
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * B[k, j]
    homes: [ra, rb]
    apart: [[A, B]]
    shared: [B]
    requires: {dataflow: ws, stride: 1}
    cost: {issue: 4 cycles, latency: 12 cycles}
  setup:
    body: |
      instruction setup(N <= 65535)
    sets: {dataflow: ws, stride: N}
    cost: {issue: 1 cycle, latency: 1 cycle}
  far:
    body: |
      instruction far(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    cost: {setup: 10 cycles, bandwidth: 8 GB/s}
  copy:
    body: |
      instruction copy(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    cost: {setup: 10 cycles, bandwidth: 16 B/cycle}
"""


@pytest.fixture(scope="module")
def many() -> System:
    return parse_system(MACHINE, "m.yaml")


def test_what_is_said_is_there(many: System) -> None:
    assert many.memories["ra"].ports == Ports(1, 1)
    assert (many.memories["rb"].ports, many.memories["sp"].ports) == (Ports(2, None), Ports())
    assert many.replicas == {"tile": Replica("tile", 4, ("sp", "ra", "rb"), ("m0", "m1", "dma"))}
    assert many.links == {
        "bus": Link("bus", 64e9, (("dram", "sp"), ("sp", "dram"))),
        "inner": Link("inner", 16e9, (("sp", "ra"),)),
    }
    assert many.clusters == {"pair": Cluster("pair", ("m0", "m1"))}
    registers = [Register("dataflow", ("ws", "os"), None, "os"), Register("stride", (), 16, 0)]
    assert many.state == {r.name: r for r in registers}
    assert [many.replica_of(n) for n in ("sp", "m1", "dram")] == ["tile", "tile", None]
    assert [many.cluster_of(n) for n in ("m0", "dma")] == ["pair", None]
    assert [k.name for k in many.links_of("dram", "sp")] == ["bus"]
    assert many.links_of("rb", "sp") == ()
    mm4, setup = many.instructions["mm4"], many.instructions["setup"]
    assert (mm4.requires, mm4.sets) == ({"dataflow": "ws", "stride": 1}, {})
    assert (setup.requires, setup.sets) == ({}, {"dataflow": "ws", "stride": "N"})
    assert [mm4.contract(o).shared for o in "ABC"] == [False, True, False]
    units = [(u.driver, u.counters, u.hazards) for u in many.units.values()]
    assert units == [("sequencer", 3, "tokens"), ("expanded", None, "resolved"), ("host", None, "tokens")]
    assert many.instructions["far"].cost.bandwidth == 4.0  # 8 GB/s at 2 GHz
    assert check(many) == []


def test_what_only_configures_is_not_for_computing(many: System) -> None:
    assert [i.name for i in many.compute] == ["mm4"]
    assert "setup" in many.restricted(["mm4"]).instructions


def test_all_of_it_is_shown(many: System) -> None:
    out = shown(many)
    for part in ("at most 1 read per call, at most 1 written per call", "that of pair, 3 loop counters",
                 "that of pair, no loops, waits by itself", "tile  4      sp, ra, rb, m0, m1, dma",
                 "bus    64 GB/s    dram -> sp, sp -> dram", "pair  m0, m1", "dataflow  ws, os   os", "16 bits",
                 "B shared; requires dataflow = ws; requires stride = 1",
                 "sets dataflow = ws; sets stride = N"):  # fmt: skip
        assert part in out, part


# name: (old, new, every "line code", part of the first message, part of the first hint)
BROKEN = {
    "ports-key": ("ports: {read: 2}", "ports: {reads: 2}", ["7 system-unknown-key"],
        "the ports of a memory has no field 'reads'", "did you mean 'read'?"),
    "ports-none": ("ports: {read: 2}", "ports: {read: 0}", ["7 system-ports"], "0 ports to read", "leave 'read' out"),
    "ports-unit": ("ports: {read: 2}", "ports: {read: 2 B}", ["7 system-count"], "found '2 B'", "write 2"),
    "ports-list": ("ports: {read: 2}", "ports: [2]", ["7 system-kind"], "found a list", "fields: read, write"),
    "never-placed": ("    homes: [ra, rb]\n    apart: [[A, B]]\n", "    homes: [ra]\n", ["26 system-placement"],
        "'mm4' can never be placed: B in ra, C in ra; but of one call's operands 'ra' has at most 1 read, 1 written",
        "another home"),
    "never-placed-apart": ("    homes: [ra, rb]\n    apart: [[A, B]]\n",
        "    homes: {A: [ra, rb], B: [ra, rb], C: [ra, rb]}\n    apart: [[A, B], [B, C], [A, C]]\n",
        ["35 system-placement"], "A in ra or rb, B in ra or rb, C in ra or rb; but A, B apart; B, C apart; A, C apart",
        "another home"),
    "replica-count": ("count: 4", "count: 0", ["16 system-replica"], "there cannot be 0 instances", "from 1 to 4096"),
    "replica-count-missing": ("count: 4, ", "", ["16 system-missing"], "the replica 'tile' lacks 'count'", "add"),
    "replica-memory": ("memories: [sp, ra, rb]", "memories: [sp, ra, rb, rx]", ["16 system-unknown-memory"],
        "there is no memory 'rx'", "did you mean 'ra' or 'rb'?"),
    "replica-unit": ("units: [m0, m1, dma]", "units: [m0, m1, dma, dme]", ["16 system-unknown-unit"],
        "there is no unit 'dme'", "did you mean 'dma'?"),
    "replica-twice": ("memories: [sp, ra, rb]", "memories: [sp, ra, rb, sp]", ["16 system-duplicate"],
        "'sp' is in 'tile' twice", "name it once"),
    "replica-home": ("memories: [sp, ra, rb]", "memories: [sp, ra, rb, dram]", ["16 system-replica"],
        "'dram' is home", "take it out"),
    "replica-two": ("\nlinks:", "\n  other: {count: 2, memories: [sp]}\nlinks:", ["17 system-replica"],
        "'sp' is in the replica 'tile' already", "one replica at most"),
    "replica-between": ("memories: [sp, ra, rb], units: [m0, m1, dma]}",
        "memories: [sp], units: [dma]}\n  near: {count: 2, memories: [ra, rb], units: [m0, m1]}",
        ["14 system-replica"] * 4, "is between the replicas tile and near", "go by a memory that is shared"),
    "replica-foreign-issuer": ("units: [m0, m1, dma]}", "units: [m0, m1]}\n  idle: {count: 2, units: [dma]}",
        ["13 system-replica"] * 2 + ["14 system-replica"] * 4,
        "the unit 'dma' is one of 'idle': which instance is meant?", "put 'dma' into the replica 'tile'"),
    "replica-shared-unit": ("units: [m0, m1, dma]", "units: [dma]", ["9 system-replica", "10 system-replica"],
        "'mm4' is in 'tile', the unit 'm0' is shared: which instance is meant?", "put 'm0' into the replica 'tile'"),
    "link-unit": ("64 GB/s", "64 GB", ["18 system-unit"], "'GB' is not a unit of bandwidth", "units: B/cycle"),
    "link-no-clock": ("32 B/cycle, clock: 500 MHz", "32 B/cycle", ["19 system-link"], "of no clock", "add 'clock:"),
    "link-nothing": ("64 GB/s", "0 GB/s", ["18 system-link"], "nothing passes", "for example"),
    "link-edge": ("[sp, dram]]", "[ra, dram]]", ["18 system-link"], "no move leads from 'ra' to 'dram'", "moves:"),
    "link-memory": ("[sp, dram]]", "[sq, dram]]", ["18 system-unknown-memory"], "no memory 'sq'", "did you mean 'sp'?"),
    "link-triple": ("[sp, dram]]", "[sp, dram, sp]]", ["18 system-value"], "here are 3 names", "for example"),
    "link-flat": ("[[sp, ra]]", "[sp, ra]", ["19 system-kind"], "expected pairs of memories", "for example"),
    "link-twice": ("[sp, dram]]", "[dram, sp]]", ["18 system-duplicate"], "twice", "name it once"),
    "cluster-unit": ("{units: [m0, m1]}\nstate", "{units: [m0, m2]}\nstate", ["21 system-unknown-unit"],
        "there is no unit 'm2'", "did you mean 'm0' or 'm1'?"),
    "cluster-alone": ("{units: [m0, m1]}\nstate", "{units: [m0]}\nstate", ["21 system-cluster"],
        "fewer than two units", "a stream of its own"),
    "cluster-two": ("\nstate:", "\n  trio: {units: [m1, m0]}\nstate:", ["22 system-cluster"] * 2,
        "is in the cluster 'pair' already", "one cluster at most"),
    "cluster-runs": ("m1:  {runs: [mm4, setup]", "m1:  {runs: [mm4]", ["21 system-cluster"],
        "only one of them runs 'setup'", "the same instructions"),
    "cluster-clock": ("m1:  {runs: [mm4, setup], clock: 1", "m1:  {runs: [mm4, setup], clock: 2",
        ["21 system-cluster"], "at different clocks", "the same clock"),
    "shared-without-cluster": ("clusters:\n  pair: {units: [m0, m1]}\n", "", ["24 system-cluster"],
        "'B' of 'mm4' is shared, but no cluster runs it", "only members of a cluster"),
    "shared-operand": ("shared: [B]", "shared: [E]", ["36 system-operand"], "no operand 'E'", "operands: A, B, C"),
    "state-both": ("{values: [ws, os], reset: os}", "{values: [ws, os], bits: 1}", ["23 system-state"],
        "either one of 'values' or a number of 'bits'", "write 'values:"),
    "state-reset": ("reset: os", "reset: is", ["23 system-state"], "cannot hold 'is'", "did you mean 'ws' or 'os'?"),
    "state-empty": ("{values: [ws, os], reset: os}", "{values: []}", ["23 system-state", "37 system-state",
        "42 system-state"], "the register 'dataflow' can hold nothing", "for example 'values: [a, b]'"),
    "state-bits": ("bits: 16, reset: 0", "bits: 65", ["24 system-state"], "1 to 64 bits, not 65", "for example"),
    "state-wide": ("reset: 0", "reset: 65536", ["24 system-state"], "cannot hold '65536'", "below 2^16"),
    "requires-register": ("requires: {dataflow", "requires: {dataflov", ["37 system-unknown-register"],
        "there is no register 'dataflov'", "did you mean 'dataflow'?"),
    "requires-value": ("requires: {dataflow: ws", "requires: {dataflow: wx", ["37 system-state"],
        "the register 'dataflow' cannot hold 'wx'", "did you mean 'ws'?"),
    "requires-unset": ("sets: {dataflow: ws, ", "sets: {", ["37 system-state"],
        "'mm4' requires 'dataflow' to be 'ws', which nothing sets", "sets: {dataflow: ws}"),
    "sets-size": ("stride: N}", "stride: M}", ["42 system-state"], "cannot hold 'M'", "a whole number below 2^16"),
    "sets-nothing": ("    sets: {dataflow: ws, stride: N}\n", "",
        ["37 system-state", "37 system-state", "39 system-state"], "which nothing sets", "sets: {"),
    "counters-host": ("driver: sequencer, ", "", ["9 system-unit-loops"], "it has no counters", "driver: sequencer"),
    "driver": ("driver: sequencer", "driver: sequencr", ["9 system-unit-loops", "9 system-value"], "", ""),
    "per-size": ("latency: 12 cycles}", "latency: 12 cycles, per: {Q: 1 cycle}}", ["38 system-operand"],
        "'mm4' has no size 'Q'", "known here: M, N, K"),
    "per-unit": ("latency: 12 cycles}", "latency: 12 cycles, per: {M: 1}}", ["38 system-unit"], "no unit", "1 cycles"),
    "per-list": ("latency: 12 cycles}", "latency: 12 cycles, per: [M]}", ["38 system-kind"], "cycles per size", "{M: "),
    "narrow-size": ("latency: 12 cycles}", "latency: 12 cycles, narrow: {Q: {2: 1 cycle}}}", ["38 system-operand"],
        "'mm4' has no size 'Q'", "known here: M, N, K"),
    "narrow-unit": ("latency: 12 cycles}", "latency: 12 cycles, narrow: {M: {2: 1}}}", ["38 system-unit"], "no unit",
        "1 cycles"),
    "narrow-list": ("latency: 12 cycles}", "latency: 12 cycles, narrow: {M: 1 cycle}}", ["38 system-kind"],
        "cycles per number of lanes", "{J: {8: "),
    "narrow-empty": ("latency: 12 cycles}", "latency: 12 cycles, narrow: {M: {}}}", ["38 system-kind"],
                     "lanes of 'M', found none", "{J: {8: 1 cycle}}"),
    "narrow-twice": ("latency: 12 cycles}", "latency: 12 cycles, narrow: {M: {8: 1 cycle, 08: 2 cycles}}}",
                     ["38 system-duplicate"], "take up to 8", "leave one out"),
    "prefetch-no-move": ("latency: 12 cycles}", "latency: 12 cycles, prefetch: 1 cycle}", ["38 system-move"],
                         "'mm4' moves nothing", "is of moves"),
    "narrow-none": ("latency: 12 cycles}", "latency: 12 cycles, narrow: {M: {0: 1 cycle}}}", ["38 system-count"],
        "takes no element", "at least 1"),
    "rate-two-clocks": ("m1:  {runs: [mm4, setup]", "m1:  {runs: [mm4, setup, far]",
        ["21 system-cluster", "51 system-unit"], "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_refused_where_it_stands(name: str) -> None:
    old, new, places, message, hint = BROKEN[name]
    assert old in MACHINE
    with pytest.raises(IsamError) as e:
        parse_system(MACHINE.replace(old, new, 1), "m.yaml")
    found = e.value.diagnostics
    assert [f"{d.loc.line} {d.code}" for d in found] == places, str(e.value)
    assert all(d.loc.column and d.hint and d.message for d in found)
    assert message in found[0].message
    assert hint in found[0].hint


def test_a_register_is_set_by_the_unit_that_needs_it_or_by_nobody() -> None:
    """Schedules set registers on the unit whose call needs them: of what another has set nothing is known there."""
    other = MACHINE.replace("[mm4, setup]", "[mm4]").replace("[copy, far]", "[copy, far, setup]")
    alone = other.replace("requires: {dataflow: ws, stride: 1}", "requires: {stride: 0}")
    for text, why in ((other, "'stride' to be '1': others set it"), (other, "'dataflow' to be 'ws': others set it"),
                      (alone, "'stride' to be '0': it is so at reset, but 'setup' sets it")):  # fmt: skip
        with pytest.raises(IsamError) as e:
            parse_system(text, "m.yaml")
        assert {d.code for d in e.value.diagnostics} == {"system-state"}
        assert f"{why}, and 'm0' runs nothing that does" in str(e.value)
    assert parse_system(alone.replace("setup]", "far]").replace(", far, far", ", far").replace(
        alone[alone.index("  setup:\n") : alone.index("  far:\n")], ""), "m.yaml")  # fmt: skip


def test_what_was_made_by_hand_is_checked_too(many: System) -> None:
    mm4 = many.instructions["mm4"]
    wrong = replace(
        many,
        clusters={"pair": Cluster("pair", ("m0", "dma"))},
        instructions={**many.instructions, "mm4": replace(mm4, requires={"speed": 2})},
    )
    assert [d.code for d in check(wrong)] == ["system-cluster", "system-cluster", "system-unknown-register"]


def test_an_extending_description_overrides_single_fields(tmp_path) -> None:
    (tmp_path / "many.yaml").write_text(MACHINE)
    (tmp_path / "more.yaml").write_text(
        "isam: 1\nsystem: more\nextends: many\nreplicas:\n  tile: {count: 9}\nlinks:\n  bus: {bandwidth: 1 GB/s}\n"
    )
    from isam.system.load import load_system

    s = load_system(tmp_path / "more.yaml")
    assert s.replicas["tile"] == Replica("tile", 9, ("sp", "ra", "rb"), ("m0", "m1", "dma"))
    assert s.links["bus"].bandwidth == 1e9


def test_a_pattern_that_is_wrong_is_said_once() -> None:
    """Not once for each instruction that it stands for."""
    body = MACHINE[MACHINE.index("  mm4:") : MACHINE.index("  setup:")]
    text = MACHINE.replace("  setup:\n", body.replace("mm4", "mm5") + "  setup:\n", 1)
    text = text.replace("[mm4, setup]", '["mm*", setup]').replace("units: [m0, m1, dma]", "units: [dma]")
    with pytest.raises(IsamError) as e:
        parse_system(text, "many.yaml")
    assert [d.loc.line for d in e.value.diagnostics if d.code == "system-replica"] == [9, 10]
