"""The assembler stream of Gemmini: legal by the manual's limits, and right, on a model that knows the manual alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import isam
from benchmarks.gemmini import CONVOLUTION, LAYERS, PRODUCT, by_hand, convolved, scheduled
from isam.codegen.stream import judge, stream, write
from isam.diagnostics import IsamError
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.schedule.tree import Schedule
from isam.system.load import load_system, parse_system
from tests.systems.gemmini_model import Gemmini, Illegal, commands

SIZES = [(16, 16, 16), (48, 40, 72), (5, 7, 3), (1, 1, 1), (17, 33, 65), (64, 128, 64), (130, 16, 16), (40, 100, 20)]


@cache
def made(kernel: Kernel, *sizes: tuple[str, int]) -> Schedule:
    return scheduled(kernel, dict(sizes))


def carried_out(schedule: Schedule, text: str) -> tuple[dict[str, np.ndarray], Gemmini]:
    random = np.random.default_rng(1)
    arrays = {}
    for b in schedule.kernel.arguments:
        shape = tuple(int(n) for n in b.shape)
        if b.role == "out":
            arrays[b.name] = np.full(shape, -7, np.int32)
        else:
            arrays[b.name] = random.integers(-128, 128, shape, np.int8)
    machine = Gemmini(arrays)
    machine.run(text)
    return arrays, machine


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_products(size: tuple[int, int, int], expanded: bool) -> None:
    schedule = made(PRODUCT, *zip("MNK", size, strict=True))
    text = stream(schedule, expanded)
    assert (".for" in text) <= (not expanded)
    a, _ = carried_out(schedule, text)
    np.testing.assert_array_equal(a["C"], a["A"].astype(np.int32) @ a["B"].astype(np.int32))


@pytest.mark.parametrize("size", [(16, 16, 32, 32), (5, 9, 3, 7), (1, 1, 16, 16), (20, 6, 40, 24)])
def test_convolutions_without_im2col(size: tuple[int, int, int, int]) -> None:
    h, v, _, _ = size
    schedule = made(CONVOLUTION, *zip("HVCK", size, strict=True))
    a, machine = carried_out(schedule, stream(schedule))
    x, w = (a[n].astype(np.int32) for n in "xw")
    want = sum(x[r : r + h, s : s + v] @ w[r, s] for r in range(3) for s in range(3))
    np.testing.assert_array_equal(a["y"], want)
    assert machine.told["mvout"] == -(-h * v * size[3] // 256) or machine.told["mvout"] >= 1


@pytest.mark.parametrize("size", LAYERS)
def test_layers_of_the_page_are_proved(size: tuple[int, int, int, int]) -> None:
    """Rows of 28 pixels come in two pieces, in groups of channels each: what a window has of both is there."""
    found = convolved(size)
    assert found["unfolded"] > found["isam"]["bytes"]


BIASED = parse("""kernel biased(M, N, K)
  in  A: i8[M, K]
  in  B: i8[K, N]
  in  b: i32[N]
  out C: i32[M, N]
  forall i < M, j < N
    C[i, j] = b[j]
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
""")


@pytest.mark.parametrize("size", SIZES)
def test_sums_begin_with_what_the_move_of_one_row_to_all_brings(size: tuple[int, int, int]) -> None:
    schedule = made(BIASED, *zip("MNK", size, strict=True))
    random, (m, n, k) = np.random.default_rng(2), size
    a = {"A": random.integers(-128, 128, (m, k), np.int8), "B": random.integers(-128, 128, (k, n), np.int8),
         "b": random.integers(-(2**31), 2**31, n, np.int32), "C": np.full((m, n), -7, np.int32)}  # fmt: skip
    machine = Gemmini(a)
    machine.run(stream(schedule))
    assert "mvin_zero" not in schedule.called()
    np.testing.assert_array_equal(a["C"], a["b"] + a["A"].astype(np.int32) @ a["B"].astype(np.int32))


@pytest.mark.parametrize("kernel", [PRODUCT, BIASED])
@pytest.mark.parametrize("size", SIZES)
def test_no_configuration_is_set_twice_in_a_row(kernel: Kernel, size: tuple[int, int, int]) -> None:
    """A block's distance alone cannot be set: it comes with the rows' distance, where that changes."""
    last = ""
    for name, _ in commands(stream(made(kernel, *zip("MNK", size, strict=True)))):
        assert not (name == last and name.startswith("config_ld")), name
        last = name


def test_loops_and_no_loops_are_the_same_commands() -> None:
    for size in SIZES:
        schedule = made(PRODUCT, *zip("MNK", size, strict=True))
        looped, spelled = (list(commands(stream(schedule, e))) for e in (False, True))
        assert looped == spelled


def depth(text: str) -> int:
    """Loops in each other."""
    most = now = 0
    for line in map(str.strip, text.splitlines()):
        now += line.startswith(".for") - (line == ".end")
        most = max(most, now)
    return most


@pytest.mark.parametrize("size", [(48, 40, 72), (130, 16, 16), (64, 128, 64)])
def test_loops_that_no_counter_is_left_for_are_spelled_out(size: tuple[int, int, int]) -> None:
    schedule = made(PRODUCT, *zip("MNK", size, strict=True))
    free = stream(schedule)
    for count in range(depth(free) + 2):
        units = {n: replace(u, driver="sequencer", counters=count) for n, u in schedule.system.units.items()}
        text = stream(replace(schedule, system=replace(schedule.system, units=units)))
        assert depth(text) == min(count, depth(free))
        assert list(commands(text)) == list(commands(free))
        assert (text == free) == (count >= depth(free))


def test_units_with_fewer_counters_have_fewer_loops_around_them() -> None:
    """Of two units in a row the loop around both is spelled out as soon as one of them lacks a counter."""
    machine = COUNTED.format(add="counters: 1", ld="counters: 2")
    text = compiled(machine, COUNTED_KERNEL, S=3, T=5).artifact.text("stream.s")
    assert depth(text) == 1
    machine = COUNTED.format(add="counters: 2", ld="counters: 2")
    assert depth(compiled(machine, COUNTED_KERNEL, S=3, T=5).artifact.text("stream.s")) == 2


def test_open_sizes_and_streams_too_long_are_refused_at_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for driver in ("driver: host", "driver: expanded", "driver: sequencer, counters: 1"):
        machine = COUNTED.replace("driver: sequencer, {add}", driver).format(ld="counters: 2")
        with pytest.raises(IsamError) as e:
            compiled(machine, "kernel scan(T)\n  in x: f32[T, 16]\n  inout u: f32[16]\n  loop t < T\n"
                              "    forall j < 16\n      u[j] = u[j] + x[t, j]\n")  # fmt: skip
        assert [(d.code, d.loc.line) for d in e.value.diagnostics] == [("emission-open", 1)]
    monkeypatch.setattr(write, "MOST", 100)
    with pytest.raises(IsamError, match="100 is the limit"):
        compiled(COUNTED.format(add="counters: 1", ld="counters: 1"), COUNTED_KERNEL, S=40, T=5)
    assert compiled(COUNTED.format(add="counters: 2", ld="counters: 2"), COUNTED_KERNEL, S=40, T=5)


def compiled(machine: str, kernel: str, **sizes: int) -> Any:
    return isam.compile(kernel, on=parse_system(machine), sizes=sizes, cache=False)


COUNTED_KERNEL = """kernel two(S, T)
  in x: f32[S, T, 16]
  inout u: f32[16]
  loop s < S
    loop t < T
      forall j < 16
        u[j] = u[j] + x[s, t, j]
"""
COUNTED = """isam: 1
system: counted
backend: stream
facts: {{stream: {{memories: {{r: {{unit: 64}}}}}}}}
memories:
  dram: {{kind: managed, capacity: 1 MiB, home: true}}
  r:    {{kind: managed, cells: 4, cell: 64 B}}
units:
  u: {{runs: [add], clock: 1 GHz, driver: sequencer, {add}, hazards: resolved}}
  w: {{runs: [ld], clock: 1 GHz, driver: sequencer, {ld}, hazards: resolved}}
moves:
  - {{from: dram, to: r, by: ld, issuer: w, both_ways: true}}
instructions:
  add:
    body: |
      instruction add(N <= 16)
        in  A: f32[N]
        in  B: f32[N]
        out D: f32[N]
        forall j < N
          D[j] = A[j] + B[j]
    homes: [r]
    emission: {{stream: "add {{A}}, {{B}}, {{D}}, {{N}}"}}
  ld:
    body: |
      instruction ld(N <= 16)
        in  S: f32[N]
        out D: f32[N]
        forall j < N
          D[j] = S[j]
    emission: {{stream: "ld {{S}}, {{D}}, {{N}}"}}
"""


def test_the_stream_of_a_large_product_has_the_commands_of_the_best_by_hand() -> None:
    schedule = made(PRODUCT, ("M", 512), ("N", 512), ("K", 512))
    text = stream(schedule)
    moves = [given for name, given in commands(text) if name == "mvin"]
    best = by_hand(512, 512, 512)
    assert len(moves) <= 1.1 * best.commands
    assert sum(int(n) * int(m) for s, _, n, m in moves if s != "0") <= 1.05 * best.bytes
    assert max(int(n) for *_, n, _ in moves) == 64


EDITS = {
    "too wide": (", 64, 16", ", 65, 16"),
    "too many rows": (", 64, 16", ", 64, 17"),
    "no distance of rows": ("config_ld", "config_st"),
    "no weights": ("compute_preloaded", "compute_accumulated"),
    "beyond the scratchpad": ("mvin A, 0x0", "mvin A, 0x3ffa"),
    "beyond the matrix": ("mvin A+(64)", "mvin A+(6399)"),
    "no fence": ("fence", ""),
    "another command": ("mvout", "mvup"),
    "a preload left alone": ("compute_accumulated 0x10, 0xffffffff, 16, 16, 16, 16", "fence"),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_model_refuses_what_the_machine_does_not_have(name: str) -> None:
    schedule = made(PRODUCT, ("M", 48), ("N", 40), ("K", 72))
    text, (old, new) = stream(schedule, True), EDITS[name]
    assert old in text
    with pytest.raises((Illegal, TypeError)):
        carried_out(schedule, text.replace(old, new))


def test_a_stale_register_gives_another_result() -> None:
    """The model does not know what was meant: it computes something else."""
    schedule = made(PRODUCT, ("M", 48), ("N", 40), ("K", 72))
    text = stream(schedule, True)
    for old, new in (("config_ld 40, 48", "config_ld 72, 48"), ("config_ex ws, 0, 0, 1", "config_ex ws, 0, 0, 2"),
                     ("config_ld 72, 48", "config_ld 72, 16")):  # fmt: skip
        assert old in text
        try:
            a, _ = carried_out(schedule, text.replace(old, new))
        except Illegal:
            continue
        assert (a["C"] != a["A"].astype(np.int32) @ a["B"].astype(np.int32)).any()


def test_a_compiled_kernel_holds_its_stream_and_runs_on_the_simulator() -> None:
    fn = isam.compile(PRODUCT, on="gemmini", sizes={"M": 20, "N": 16, "K": 16})
    random = np.random.default_rng(0)
    a, b = random.integers(-128, 128, (20, 16), np.int8), random.integers(-128, 128, (16, 16), np.int8)
    np.testing.assert_array_equal(fn(a, b), a.astype(np.int32) @ b.astype(np.int32))
    assert fn.artifact.text("stream.s").endswith("fence\n")


MACHINE = """isam: 1
system: small
backend: stream
memories:
  dram: {{kind: managed, capacity: 1 MiB, home: true}}
units:
  u: {{runs: [double], clock: 1 GHz}}
instructions:
  double:
    body: |
      instruction double(N <= 8)
        in  X: i32[N]
        out Y: i32[N]
        forall i < N
          Y[i] = X[i] + X[i]
    emission: {emission}
"""


@pytest.mark.parametrize(("emission", "code"), [
    ('{llvm: "%Y = add <{N} x i32> %X, %X"}', "emission-missing"),
    ('{stream: "double {X}, {Z}, {N}"}', "emission-name"),
    ('{stream: "double {X.to}, {N}"}', "emission-name"),
    ("{stream: {when: Z, fresh: a, again: b}}", "emission-operand"),
    ("{stream: {when: X, fresh: a}}", "emission-operand"),
])  # fmt: skip
def test_templates_are_judged_when_they_are_loaded(emission: str, code: str) -> None:
    with pytest.raises(IsamError) as refused:
        parse_system(MACHINE.format(emission=emission))
    assert code in {d.code for d in refused.value.diagnostics}


def test_a_good_template_is_taken() -> None:
    system = parse_system(MACHINE.format(emission='{stream: "double {X}, {Y}, {N*burst}"}'))
    assert list(judge(system)) == list(judge(load_system("gemmini"))) == []


def test_the_length_of_a_stream_is_that_of_its_blocks_not_of_the_product() -> None:
    short, long = (len(stream(made(PRODUCT, ("M", n), ("N", n), ("K", n))).splitlines()) for n in (512, 2048))
    assert short < 512**3 // 16**3 // 32  # calls of the array
    assert long < 4 * short  # of 64 times as many calls
