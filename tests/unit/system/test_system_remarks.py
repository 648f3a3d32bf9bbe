"""Remarks: what is legal and still looks wrong, at its place; what is sound draws none."""

from __future__ import annotations

import pytest

from isam.diagnostics import IsamError
from isam.system.load import load_system, parse_system
from isam.system.remarks import remarks
from tests.unit.system.broken import TINY
from tests.unit.system.test_system_groups import MACHINE

ZERO = """  zero4:
    body: |
      instruction zero4(M <= 4, N <= 4)
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = 0
    homes: [ra, rb]
    cost: {issue: 1 cycle, latency: 1 cycle}
"""
ALL = """  all:
    body: |
      instruction all(M <= 4, N <= 4)
        in  S: f32[N]
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = S[j]
    homes: {S: [dram], D: [ra]}
    cost: {issue: 1 cycle, latency: 1 cycle}
"""
NEGATE = """  neg:
    body: |
      instruction neg(M <= 4, N <= 4)
        {}: f32[M, N]
        forall i < M, j < N
          D[i, j] = -{}[i, j]
    homes: [ra, rb]
    cost: {{issue: 1 cycle, latency: 1 cycle}}
"""
SCAN = """  scan:
    body: |
      instruction scan(N <= 4, T <= 4)
        inout D: f32[N]
        loop t < T
          forall i < N
            D[i] = D[i] * 2
    homes: [ra, rb]
"""
SOUND = TINY.replace("runs: [mm4]", "runs: [mm4, zero4]") + ZERO

ONE_WAY = (  # sums leave `rb` through `neg` alone
    (SOUND.replace("[mm4, zero4]", "[mm4, zero4, neg]") + NEGATE.format("in A: f32[M, N]\n        out D", "A"))
    .replace("{A: [ra, rb], B: [ra, rb], C: [ra, rb]}\n    apart: [[A, B]]", "{A: [ra], B: [ra], C: [rb]}")
    .replace("homes: [ra, rb]", "homes: [rb]", 1)
    .replace("homes: [ra, rb]", "homes: {A: [rb], D: [ra]}", 1)
    .replace("to: [ra, rb], by: copy, issuer: dma, both_ways: true}",
             "to: ra, by: copy, issuer: dma, both_ways: true}\n  - {from: sp, to: rb, by: copy, issuer: dma}")
)  # fmt: skip

# name: (description, line, code, part of the message)
ODD = {
    "begin": (TINY, 15, "remark-begin", "'mm4' adds to 'C', but no instruction writes a first f32"),
    "room": (SOUND.replace("zero4(M <= 4,", "zero4(M <= 400,"), 34, "remark-room", "up to 6400 B"),
    "in-place": (SOUND.replace("[mm4, zero4]", "[mm4, zero4, neg]") + NEGATE.format("inout D", "D"), 42,
                 "remark-in-place", "'neg' does 'neg' in place"),
    "loop": (SOUND.replace("[mm4, zero4]", "[mm4, zero4, scan]") + SCAN, 42, "remark-loop",
             "'scan' has a recurrent loop over t: no kernel is carried out by it"),
    "idle": (SOUND.replace("moves:", "moves:\n  - {from: dram, to: rx, by: copy, issuer: dma}")
             .replace("units:", "  rx: {kind: managed, capacity: 1 KiB}\nunits:"), 8, "remark-idle", "works in 'rx'"),
    "home": (SOUND.replace("B: [ra, rb], ", ""), 15, "remark-home", "no home is stated for 'B' of 'mm4'"),
    "stuck": (ONE_WAY, 7, "remark-stuck", "lives in 'rb', from where no moves lead to 'dram'"),
    "twin": (SOUND.replace("[mm4, zero4]", "[mm4, zero4, zero5]") + ZERO.replace("zero4", "zero5"), 42, "remark-twin",
             "'zero5' is 'zero4' once more"),
    "link": (SOUND.replace("instructions:", "links:\n  wide: {bandwidth: 99 GB/s, edges: [[dram, sp]]}\ninstructions:"),
             15, "remark-link", "take 16 of 99 GB/s"),
    "rows": (SOUND.replace("apart: [[A, B]]", "apart: [[A, B]]\n    strides: {B: [4, 1]}"), 15, "remark-rows",
             "rows of 'B' of 'mm4' have to lie 4 elements apart, and may be shorter"),
    "unit": (SOUND.replace("moves:", "  spare: {runs: []}\nmoves:"), 11, "remark-unit", "'spare' runs no instruction"),
    "lanes": (SOUND.replace("ra:   {kind: managed, cells: 8, cell: 64 B}",
                            "ra:   {kind: counted, cells: 8, cell: 62 B, lanes: 16}"), 6,
              "remark-lanes", "16 lanes of f32 do not fit a register of 'ra', which has 62 B"),
    "repeat": (SOUND.replace("instructions:", "  - {from: dram, to: ra, by: all, issuer: dma}\ninstructions:")
               .replace("runs: [copy]", "runs: [copy, all]") + ALL, 43, "remark-repeat",
               "'all' repeats what it takes, and no kernel may be mapped onto it"),
    "register": (SOUND.replace("instructions:", "state:\n  mode: {values: [a, b]}\ninstructions:"), 15,
                 "remark-register", "the register 'mode'"),
}  # fmt: skip


def test_a_move_that_computes_is_offered() -> None:
    text = ODD["repeat"][0]
    also = text.replace("by: all, issuer: dma", "by: all, issuer: dma, computes: true")
    alone, both = parse_system(text), parse_system(also)
    assert "all" not in [i.name for i in alone.compute]
    assert "all" in [i.name for i in both.compute]
    assert not [d for d in remarks(both) if d.code == "remark-repeat"]


def test_what_is_sound_draws_no_remark() -> None:
    both = NEGATE.format("in A: f32[M, N]\n        out D", "A")
    assert remarks(parse_system(SOUND.replace("[mm4, zero4]", "[mm4, zero4, neg]") + both, "m.yaml")) == []
    here = NEGATE.format("inout D", "D").replace("neg", "gen")
    pair = SOUND.replace("[mm4, zero4]", "[mm4, zero4, neg, gen]") + both + here
    assert remarks(parse_system(pair, "m.yaml")) == []
    assert remarks(parse_system(SOUND, "m.yaml")) == []
    assert [d.code for d in remarks(parse_system(MACHINE, "m.yaml"))] == ["remark-link", "remark-begin"]
    for name in ("casestudy", "dual", "toy", "toy_grid", "toy_pair", "gemmini", "pe_array", "systolic",
                 "tpu_v1_like"):
        assert remarks(load_system(name)) == [], name


@pytest.mark.parametrize("name", ODD)
def test_remarks_say_where(name: str) -> None:
    text, line, code, message = ODD[name]
    found = remarks(parse_system(text, "m.yaml"))
    assert [(d.loc.line, d.code) for d in found] == [(line, code)]
    assert message in found[0].message
    assert found[0].hint


DMA = """isam: 1
system: small
memories:
  ddr:  {kind: managed, capacity: 1 MiB, home: true}
  sram: {kind: managed, capacity: 192 B}
units:
  vec: {runs: [add], clock: 1 GHz}
  dma: {runs: [rows], clock: 1 GHz}
moves:
  - {from: ddr, to: sram, by: rows, issuer: dma, both_ways: true}
instructions:
  add:
    body: |
      instruction add(J <= 16)
        in  A: i32[J]
        in  B: i32[J]
        out D: i32[J]
        forall j < J
          D[j] = A[j] + B[j]
    homes: [sram]
    cost: {issue: 1 cycle, latency: 2 cycles}
  rows:
    body: |
      instruction rows(16 <= N % 16)
        in  S: any[N]
        out D: any[N]
        forall j < N
          D[j] = S[j]
    cost: {setup: 30 cycles, bandwidth: 16 B/cycle}
"""


def test_dtypes_that_no_move_carries_are_told() -> None:
    narrow = DMA.replace("S: any[N]", "S: i8[N]").replace("D: any[N]", "D: i8[N]")
    (d,) = remarks(parse_system(narrow, "m.yaml"))
    assert (d.code, d.loc.line) == ("remark-dtype", 12)
    assert d.message == "'A' of 'add' is read in 'sram', and no moves bring i32 there"
    assert d.hint
    assert remarks(parse_system(narrow.replace("i8[N]", "i32[N]"), "m.yaml")) == []
    widen = narrow.replace("[add]", "[add, widen]") + """  widen:
    body: |
      instruction widen(J <= 16)
        in  A: i8[J]
        out D: i32[J]
        forall j < J
          D[j] = i32(A[j])
    homes: [sram]
    cost: {issue: 1 cycle, latency: 2 cycles}
"""  # i32 begins in the memory, and does not leave it
    (d, _) = remarks(parse_system(widen, "m.yaml"))
    assert d.message == "'D' of 'add' is written in 'sram', and no moves bring i32 from there home"
    narrower = widen.replace("[add, widen]", "[add, widen, narrow]") + """  narrow:
    body: |
      instruction narrow(J <= 16)
        in  A: i32[J]
        out D: i8[J]
        forall j < J
          D[j] = sat_i8(A[j])
    homes: [sram]
    cost: {issue: 1 cycle, latency: 2 cycles}
"""
    assert remarks(parse_system(narrower, "m.yaml")) == []


def test_operands_that_do_not_fit_together_are_told() -> None:
    assert remarks(parse_system(DMA, "m.yaml")) == []
    (d,) = remarks(parse_system(DMA.replace("192 B", "191 B"), "m.yaml"))
    assert (d.code, d.loc.line) == ("remark-room", 12)
    assert d.message == "'A', 'B', 'D' of 'add' have up to 192 B and all live in 'sram', which has 191 B"
    two = DMA.replace("homes: [sram]", "homes: {A: [sram], B: [sram, ddr], D: [sram]}")
    assert remarks(parse_system(two.replace("192 B", "128 B"), "m.yaml")) == []  # B may live elsewhere
    (d,) = remarks(parse_system(two.replace("192 B", "127 B"), "m.yaml"))
    assert d.message.startswith("'A', 'D' of 'add' have up to 128 B")


def test_operands_of_the_smallest_call_that_do_not_fit_together_are_told() -> None:
    """Cells hold one operand each, however small a call is: no smaller one helps, unless it reads one operand twice."""
    cells = DMA.replace("capacity: 192 B", "cells: 2, cell: 64 B")
    (d,) = remarks(parse_system(cells, "m.yaml"))
    assert d.message == "'A', 'B', 'D' of 'add' have up to 192 B and all live in 'sram', which has 2 cells"
    assert d.hint == "the smallest call takes 3 cells, less only where it reads one operand twice"
    (d,) = remarks(parse_system(DMA.replace("capacity: 192 B", "cells: 5, cell: 16 B"), "m.yaml"))
    assert d.hint == "calls are made smaller; state the limits that hold"


def test_an_instruction_whose_smallest_call_never_fits_is_refused() -> None:
    with pytest.raises(IsamError) as no:
        parse_system(DMA.replace("capacity: 192 B", "cells: 1, cell: 64 B"), "m.yaml")
    (d,) = no.value.diagnostics
    assert (d.code, d.loc.line) == ("system-placement", 12)
    assert d.message == ("'add' can never be placed: B in sram, D in sram; "
                         "but of 'sram', which has 1 cell, the smallest call takes 2 cells for them")  # fmt: skip
    elsewhere = DMA.replace("capacity: 192 B", "cells: 1, cell: 64 B").replace("homes: [sram]", "homes: [sram, ddr]")
    assert parse_system(elsewhere, "m.yaml")
    with pytest.raises(IsamError, match="of 'sram', which has 7 B, the smallest call takes 8 B"):
        parse_system(DMA.replace("capacity: 192 B", "capacity: 7 B"), "m.yaml")
    fixed = DMA.replace("add(J <= 16)", "add(3 <= J % 4 <= 16)")
    with pytest.raises(IsamError, match="of 'sram', which has 31 B, the smallest call takes 32 B"):
        parse_system(fixed.replace("capacity: 192 B", "capacity: 31 B"), "m.yaml")


def test_operands_smaller_than_what_a_move_takes_are_told() -> None:
    (d,) = remarks(parse_system(DMA.replace("J <= 16", "J <= 15"), "m.yaml"))
    assert (d.code, d.loc.line) == ("remark-move", 12)
    assert d.message == "'A' of 'add' has at most 15 elements, and no move to 'sram' takes so few: 'rows' at least 16"
    assert d.hint
    back = "  - {from: ddr, to: sram, by: one, issuer: dma}\n  - {from: sram, to: ddr, by: rows, issuer: dma}\n"
    ways = DMA.replace("  - {from: ddr, to: sram, by: rows, issuer: dma, both_ways: true}\n", back).replace(
        "[rows]", "[rows, one]").replace("J <= 16", "J <= 15") + """  one:
    body: |
      instruction one(N)
        in  S: any[N]
        out D: any[N]
        forall j < N
          D[j] = S[j]
    cost: {setup: 30 cycles, bandwidth: 16 B/cycle}
"""  # fmt: skip
    (d,) = remarks(parse_system(ways, "m.yaml"))
    assert "'D' of 'add' has at most 15 elements, and no move from 'sram'" in d.message
