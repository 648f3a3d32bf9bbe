"""Moves that write a box before they copy into it: the schedule keeps the box free, whoever judges it sees the box, and
what is filled over living data is refused (SYS: moves that change layout, zero-fill, pad)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from isam.codegen.simulator import residues, simulate
from isam.codegen.simulator.fault import SimulationFault
from isam.codegen.simulator.streams import simulate_apart
from isam.compiler.job import Job, Refused
from isam.cost.timeline import timeline
from isam.diagnostics import IsamError
from isam.ir import oracle
from isam.ir.kernel import Kernel
from isam.ir.text import parse, parse_instruction
from isam.proof import check_flat, check_points, check_tree, verify
from isam.proof.races import check_races
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq
from isam.scheduler.waits.footprints import Prints
from isam.system.graph import System
from isam.system.load import load_system
from tests.machines import FILLING
from tests.pipeline import compiled, judge

ADD = parse("""kernel add(M, N)
  in  a: f32[M, N]
  in  b: f32[M, N]
  out c: f32[M, N]
  forall i < M, j < N
    c[i, j] = a[i, j] + b[i, j]
""")
PRODUCT = parse("""kernel product(M, N, K)
  in    a: f32[M, K]
  in    b: f32[K, N]
  inout c: f32[M, N]
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
""")
SIZES = [{"M": 4, "N": 4, "K": 4}, {"M": 3, "N": 2, "K": 1}, {"M": 7, "N": 9, "K": 10}, {"M": 21, "N": 18, "K": 13},
         {"M": 64, "N": 5, "K": 40}]  # fmt: skip
BEHIND = (  # the memory that is filled lies before registers, and is filled around what is copied
    (
        "pad:  {kind: managed, capacity: 1 KiB, align: 16 B}",
        "pad:  {kind: managed, capacity: 8 KiB}\n  ops:  {kind: managed, cells: 4, cell: 64 B}",
    ),
    ("st: {runs: [store]", "mv: {runs: [copy], clock: 1 GHz}\n  st: {runs: [store]"),
    ("moves:\n", "moves:\n  - {from: pad, to: ops, by: copy, issuer: mv, both_ways: true}\n"),
    (
        "instructions:\n",
        """instructions:
  copy:
    body: |
      instruction copy(R, C)
        in  S: any[R, C]
        out D: any[R, C]
        forall r < R, c < C
          D[r, c] = S[r, c]
    strides: {D: [free, 1]}
""",
    ),
    ("out D: any[4, 4]\n        forall i < 4, j < 4", "out D: any[7, 6]\n        forall i < 7, j < 6"),
    (
        "D[i, j] = 0\n        forall r < R, c < C\n          D[r, c]",
        "D[i, j] = 0\n        forall r < R, c < C\n          D[r + 2, c + 1]",
    ),
    ("strides: {D: [4, 1]}", "strides: {D: [8, 1]}"),
    (
        "homes: {A: [pad], B: [pad], C: [acc]}\n    strides: {A: [4, 1], B: [4, 1], C: [4, 1]}",
        "homes: {A: [ops], B: [ops], C: [ops]}\n    strides: {A: [free, 1], B: [free, 1], C: [free, 1]}",
    ),
)


@cache
def machine(around: bool = False) -> System:
    text = Path(FILLING).read_text(encoding="utf-8")
    return loaded(text, BEHIND) if around else load_system(FILLING)


def loaded(text: str, edits: tuple[tuple[str, str], ...]) -> System:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "filling.yaml"
        path.write_text(text, encoding="utf-8")
        return load_system(str(path))


@cache
def made(kernel: Kernel, around: bool, *sizes: int) -> Job:
    return compiled(kernel, dict(zip((s.name for s in kernel.syms), sizes, strict=True)), machine(around), check=True)


def schedule_of(job: Job) -> Schedule:
    assert job.schedule is not None
    return job.schedule


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("around", [False, True], ids=["behind", "around"])
def test_products_of_ragged_sizes(around: bool, sizes: dict[str, int]) -> None:
    job = made(PRODUCT, around, *sizes.values())
    figures = judge(PRODUCT, sizes, job, seed=1)
    assert figures.calls["load"] > 0
    s = schedule_of(job)
    assert not check_flat(s)
    assert not check_races(s)
    if sizes["M"] == 7:
        arrays = oracle.inputs(job.kernel or PRODUCT, {}, 3)
        want = oracle.run_modular(PRODUCT.with_sizes(sizes), arrays, {}, 3)
        for seed in range(3):
            got = simulate_apart(s, arrays, residues(3), {}, seed=seed)
            np.testing.assert_array_equal(got["c"], want["c"])


def test_registers_are_filled_whole() -> None:
    """A masked load of vector registers that a compiler allocates: ones in the lanes that are not loaded."""
    edits = (
        ("acc:  {kind: managed, cells: 4, cell: 64 B}", "acc:  {kind: counted, cells: 8, cell: 16 B, lanes: 4}"),
        ("load(R <= 4, C <= 4)", "load(C <= 4)"),
        ("S: any[R, C]\n        out D: any[4, 4]", "S: f32[C]\n        out D: f32[4]"),
        ("forall i < 4, j < 4\n          D[i, j] = 0", "forall j < 4\n          D[j] = 1"),
        (
            "forall r < R, c < C\n          D[r, c] = S[r, c]\n    strides: {D: [4, 1]}",
            "forall c < C\n          D[c] = S[c]",
        ),
        ("store(R <= 4, C <= 4)", "store(C <= 4)"),
        ("S: any[R, C]\n        out D: any[R, C]", "S: f32[C]\n        out D: f32[C]"),
        (
            "forall r < R, c < C\n          D[r, c] = S[r, c]\n    strides: {S: [4, 1]}",
            "forall c < C\n          D[c] = S[c]",
        ),
        (
            "add4(M <= 4, N <= 4)\n        in  A: f32[M, N]\n        in  B: f32[M, N]\n        out C: f32[M, N]\n"
            "        forall i < M, j < N\n          C[i, j] = A[i, j] + B[i, j]",
            "add4(N <= 4)\n        in  A: f32[N]\n        in  B: f32[N]\n        out C: f32[N]"
            "\n        forall j < N\n          C[j] = A[j] + B[j]",
        ),
        ("homes: {A: [pad], B: [pad], C: [pad, acc]}\n    strides: {A: [4, 1], B: [4, 1], C: [4, 1]}", "homes: [acc]"),
        ("runs: [mm4, zero4, add4]", "runs: [add4]"),
    )
    text = Path(FILLING).read_text(encoding="utf-8")
    begin, end = text.index("  mm4:"), text.index("  add4:")
    registers = loaded(text[:begin] + text[end:], edits)
    sizes = {"M": 3, "N": 11}
    job = compiled(ADD, sizes, registers, check=True)
    assert judge(ADD, sizes, job).calls["load"] == 18
    assert not check_flat(schedule_of(job))


def test_every_judge_reads_it_again() -> None:
    job = made(ADD, False, 3, 3)
    again = from_json(to_json(schedule_of(job)))
    assert not verify(job.certificate.to_json(), again)
    assert not check_points(again)
    assert not check_tree(again)
    assert timeline(again).edges["dram", "pad"].bytes == 2 * 9 * 4, "what is filled does not go over the edge"


# -- what is not right ---------------------------------------------------------------------------------------------
def edited(node: Node, change: Callable[[Issue], Issue]) -> Node:
    if isinstance(node, Issue):
        return change(node)
    if isinstance(node, Seq):
        return Seq(tuple(edited(c, change) for c in node.children))
    assert isinstance(node, Loop)
    return replace(node, body=edited(node.body, change))


def issues(node: Node) -> Iterator[Issue]:
    found: list[Issue] = []
    edited(node, lambda i: found.append(i) or i)
    yield from found


def put(schedule: Schedule, buffer: str, to: int) -> Schedule:
    """With a buffer's tiles elsewhere in the memory that is filled."""

    def change(i: Issue) -> Issue:
        return replace(i, operands=tuple(
            replace(o, place=replace(o.place, offset=o.place.offset * 0 + to))
            if o.tile.buffer == buffer and o.place.memory == "pad" else o for o in i.operands))  # fmt: skip

    return replace(schedule, call=edited(schedule.call, change))


def refused(schedule: Schedule) -> tuple[bool, bool, bool]:
    """Whether the judge of trees, the one of steps and the machine refuse it."""
    arrays = oracle.inputs(schedule.kernel, {}, 0)
    try:
        simulate(schedule, arrays, residues(0))
        stopped = False
    except SimulationFault:
        stopped = True
    return bool(check_points(schedule) + check_tree(schedule)), bool(check_flat(schedule)), stopped


def test_a_box_over_living_data_is_refused() -> None:
    """Three rows of a tile in a box of four: in the fourth row nothing else may lie while the box is written."""
    s = schedule_of(made(ADD, False, 3, 3))
    first, second = [i.operands[0].tile.buffer for i in issues(s.call) if i.instruction == "load"]
    starts = {
        o.tile.buffer: o.place.offset.const for i in issues(s.call) for o in i.operands if o.place.memory == "pad"
    }
    assert refused(s) == (False, False, False)
    assert refused(put(s, second, starts[first] + 64)) == (False, False, False)
    assert refused(put(put(s, second, 0), first, 48)) == (True, True, True), "the second box begins before the first"
    assert refused(put(put(s, first, 0), second, 48)) == (False, False, False), "the fourth row has been written before"


def test_a_box_beyond_the_end_of_its_memory_is_refused() -> None:
    s = schedule_of(made(ADD, False, 3, 3))
    second = [i.operands[0].tile.buffer for i in issues(s.call) if i.instruction == "load"][1]
    assert refused(put(s, second, 1024 - 64)) == (False, False, False)
    assert refused(put(s, second, 1024 - 48)) == (True, True, True), "the tile alone would fit"


def test_what_is_filled_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A box is written while another unit still reads what lies there: only the box meets it, not what is copied."""
    sizes = (21, 18, 13)
    assert not check_races(schedule_of(made(PRODUCT, True, *sizes)))
    monkeypatch.setattr(Prints, "_beside", lambda *_: (0, 0))
    forgetful = compiled(PRODUCT, dict(zip("MNK", sizes, strict=True)), machine(True))
    assert check_races(schedule_of(forgetful))


def test_a_tile_larger_than_what_one_call_fills_is_refused_with_a_reason() -> None:
    text = Path(FILLING).read_text(encoding="utf-8")
    small = (("load(R <= 4, C <= 4)", "load(R <= 4, C <= 2)"), ("out D: any[4, 4]", "out D: any[4, 2]"),
             ("i < 4, j < 4\n          D[i, j] = 0", "i < 4, j < 2\n          D[i, j] = 0"),
             ("strides: {D: [4, 1]}", "strides: {D: [2, 1]}"))  # fmt: skip
    whole = (("mm4(M <= 4, N <= 4, K <= 4)", "mm4()"), ("A: f32[M, K]", "A: f32[4, 4]"),
             ("B: f32[K, N]", "B: f32[4, 4]"),
             ("inout C: f32[M, N]\n        forall i < M, j < N, k < K",
              "inout C: f32[4, 4]\n        forall i < 4, j < 4, k < 4"))  # fmt: skip
    sizes = {"M": 4, "N": 4, "K": 4}
    with pytest.raises(Refused, match="one call of load would have to bring all of it"):
        compiled(PRODUCT, sizes, loaded(text, small + whole))
    job = compiled(PRODUCT, sizes, loaded(text, small), check=True)
    taken = [dict(i.sizes) for i in issues(schedule_of(job).call) if i.instruction == "mm4"]
    assert {(t["M"], t["K"]) for t in taken} == {(1, 1)}, "a second row would have to begin four elements on"
    judge(PRODUCT, sizes, job)


# -- descriptions --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("body", "fills"), [
    ("  forall i < 4\n    D[i] = 0\n  forall r < R\n    D[r] = S[r]\n", True),
    ("  forall i < 4\n    D[i] = 2.5\n  forall r < R\n    D[3 - r] = S[r]\n", False),
    ("  forall i < 3\n    D[i] = 0\n  forall r < R\n    D[r] = S[r]\n", False),
    ("  forall r < R\n    D[r] = S[r]\n  forall i < 4\n    D[i] = 0\n", False),
    ("  forall i < 4\n    D[i] = 0\n  forall r < R\n    D[r] += S[r]\n", False),
    ("  forall i < 4 where i >= 1\n    D[i] = 0\n  forall r < R\n    D[r] = S[r]\n", False),
])  # fmt: skip
def test_which_bodies_are_moves_that_fill(body: str, fills: bool) -> None:
    i = parse_instruction("instruction load(R <= 2)\n  in  S: f32[R]\n  out D: f32[4]\n" + body)
    assert (i.fill is not None) == i.is_move == fills
    if i.fill is not None:
        assert (i.fill.operand, i.fill.at, [n.const for n in i.fill.box]) == ("D", (0,), [4])


@pytest.mark.parametrize(("edits", "message"), [
    ((("- {from: [pad, acc], to: dram, by: store", "- {from: [pad, acc], to: dram, by: load"),
      ("ld: {runs: [load]", "ld: {runs: [load, store]"), ("st: {runs: [store]", "st: {runs: [store, load]")),
     "fills beside what it copies"),
    ((("D[r, c] = S[r, c]\n    strides: {D: [4, 1]}", "D[r, c] = -S[r, c]"),), "cannot carry out a move"),
])  # fmt: skip
def test_what_a_description_may_not_say(edits: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(IsamError, match=message):
        loaded(Path(FILLING).read_text(encoding="utf-8"), edits)
