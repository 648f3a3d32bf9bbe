"""What is laid out anew before it is read: dimensions that two axes count, panels read side by side."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Schedule, distinct
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.plans.cache import cache_blocks, slowed
from isam.scheduler.plans.traffic import boxes_held, volume
from isam.system.graph import System
from isam.system.hierarchy import HIDDEN, SHARE, beyond, near_cache
from isam.system.load import load_system
from tests.machines.small import deaf
from tests.pipeline import compiled, judge, simulated
from tests.systems.test_serpentine import NARROW
from tests.unit.scheduler import test_next_block

SPLIT = """kernel split(M, L, D)
  in  Q: f32[M, D]
  in  K: f32[{step} * (L - 1) + 16, D]
  out Y: f32[M, L, 16]
  forall i < M, o < L, l < 16
    Y[i, o, l] = 0
  forall i < M, o < L, l < 16, d < D
    Y[i, o, l] += Q[i, d] * K[{step} * o + l, d]
"""


def scheduled(text: str, sizes: dict[str, int]) -> Schedule:
    job = compiled(parse_kernel(text), sizes, simulated("host-avx512"))
    assert job.schedule is not None
    judge(parse_kernel(text), sizes, job, 3)
    return job.schedule


@pytest.mark.parametrize("outer", [3, 4, 9])
def test_a_dimension_that_two_axes_count_is_packed_as_one(outer):
    made = scheduled(SPLIT.format(step=16), {"M": 24, "L": outer, "D": 12})
    assert [s.bytes for s in made.workspace if s.name.startswith("K.")] == [outer * 16 * 12 * 4]


def test_a_dimension_in_which_windows_overlap_is_not():
    made = scheduled(SPLIT.format(step=8), {"M": 24, "L": 4, "D": 12})
    assert not any(s.name.startswith("K.") for s in made.workspace)


GATES = """kernel gates(T, B, H)
  in    x: f32[T, B, H]
  const w: f32[3, H, H]
  out   Y: f32[T, 3, B, H]
  forall t < T, q < 3, i < B, j < H
    Y[t, q, i, j] = 0
  forall t < T, q < 3, i < B, j < H, k < H
    Y[t, q, i, j] += x[t, i, k] * w[q, k, j]
"""


STEPWISE = """kernel stepwise(P, D)
  in    x: f32[{rows}, D]
  {role} w: f32[{rows}, D]
  in    v: f32[P, D]
  out   y: f32[P, 32]
  loop p < P
    forall i < 32
      y[p, i] = 0
    forall i < 32, k < D
      {sum}
"""
ROWS = [("32 * P", "32 * p + i"), ("P + 32", "p + i"), ("8 * P + 32", "8 * p + i"), ("32 * P + 5", "32 * p + i + 5"),
        ("64 * P", "64 * p + 2 * i")]  # fmt: skip


@pytest.mark.parametrize(("rows", "row"), ROWS)
@pytest.mark.parametrize(("operand", "role"), [("x", "in"), ("w", "in"), ("w", "const")])
def test_rows_that_a_recurrent_loop_moves_are_packed_from_where_it_is(operand, role, rows, row):
    """The loop's counter is no axis of the nest: it says where the rows of a step begin, not how they are counted."""
    text = STEPWISE.format(rows=rows, role=role, sum=f"y[p, i] += {operand}[{row}, k] * v[p, k]")
    made = scheduled(text, {"P": 4, "D": 5})
    panels = {s.name: s.bytes for s in made.workspace if s.name.startswith(f"{operand}.")}
    apart = row == "64 * p + 2 * i"  # every other row
    assert role == "const" or panels == ({} if apart else {f"{operand}.0": 32 * 5 * 4})


def main_nest(sizes: dict[str, int], text: str = GATES) -> Nest:
    system = simulated("host-avx512")
    job = run_stages(new_job(parse_kernel(text), system, sizes, None, check=False), "cover")
    assert job.cover is not None
    return max(nests_of(job.cover, system), key=lambda n: n.calls())


WIDTHS = [({"q": 3, "i": 4, "t": 1}, 3), ({"q": 1, "i": 4, "t": 1}, 3), ({"q": 1, "i": 4, "t": 2}, 1),
          ({"q": 2, "i": 1, "t": 1}, 3)]  # fmt: skip


@pytest.mark.parametrize(("width", "want"), WIDTHS)
def test_panels_that_loops_inside_go_through_share_the_cache(width, want):
    """Loops of one row are outside those of blocks; ``t`` and ``i`` read the panels of every ``q`` again."""
    nest = main_nest({"T": 8, "B": 32, "H": 64})
    assert boxes_held(nest, "j", {**width, "j": 32}, nest.axes) == want


@pytest.mark.parametrize("mapped", [False, True])
def test_panels_of_what_other_nests_take_at_once_share_the_cache(mapped):
    """The gates of a unit: not all nests have ``q``, whose loop is inside those of rows, of vectors or tiles."""
    nest = main_nest({"T": 1, "B": 32, "H": 64})
    nest = replace(nest, mapped={**nest.mapped, "i": nest.mapped["j"]}) if mapped else nest
    width = {"t": 1, "q": 1, "i": 8, "j": 32}
    assert boxes_held(nest, "j", width, nest.axes) == 1
    assert boxes_held(nest, "j", width, {"t", "i", "j"}) == 3


def host(near: int = 1 << 20, far: float | None = None) -> System:
    """A CPU with so many bytes of second cache, and a third of 8 MiB that is read at so many bytes per second."""
    system = simulated("host-avx512")
    l2, l3 = (system.memories[n] for n in ("l2", "l3"))
    more = {"l2": replace(l2, capacity=near), "l3": replace(l3, bandwidth=far)}
    return replace(system, memories={**system.memories, **more})


def blocks_of(nest: Nest, width: dict[str, int], system: System, bound: str = "") -> dict[str, int]:
    return dict(cache_blocks(nest, width, system, frozenset(bound), nest.axes))


@pytest.mark.parametrize("cache", [1 << 19, 1 << 20, 1 << 21])
def test_blocks_of_columns_are_so_many_that_all_panels_stay(cache):
    nest = main_nest({"T": 8, "B": 32, "H": 1024})
    blocks = blocks_of(nest, {"t": 1, "q": 3, "i": 4, "j": 32}, host(cache))
    held = 3 * blocks.get("j", 1024) * blocks.get("k", 1024) * 4
    assert cache // 4 < held <= cache


WINDOWS = """kernel conv(H, W, C, K)
  permits {permits}
  in    x: f32[H + 2, W + 2, C]
  const w: f32[3, 3, C, K]
  out   y: f32[H, W, K]
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, r < 3, s < 3, c < C
    y[h, v, k] += x[h + r, v + s, c] * w[r, s, c, k]
"""


@pytest.mark.parametrize("permits", ["contract", "contract, reassociate"])
def test_sums_that_keep_their_order_have_blocks_of_columns(permits):
    """Weights of 1.2 MB, of which half stays in the near cache over the rows of the image; no sum is cut."""
    sizes = {"H": 6, "W": 14, "C": 128, "K": 256}
    job = compiled(parse_kernel(WINDOWS.format(permits=permits)), sizes, simulated("host-avx512"), check=True)
    assert job.schedule is not None
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop)]
    around = [n for n in loops if n.axis == "k" and "h" in {m.axis for m in distinct(n.body) if isinstance(m, Loop)}]
    assert around
    assert all(9 * 128 * 4 * n.step <= 1 << 20 for n in around)


def test_blocks_of_columns_alone_leave_sums_whole():
    nest = main_nest({"M": 1536, "N": 5120, "K": 8192}, PRODUCT)
    cut = dict(cache_blocks(nest, {"i": 6, "j": 32}, host(), frozenset(), nest.axes))
    assert cut["k"] < 8192
    whole = dict(cache_blocks(nest, {"i": 6, "j": 32}, host(), frozenset(), nest.axes, whole=True))
    assert set(whole) == {"j"}
    assert whole["j"] * 8192 * 4 <= 1 << 20


@pytest.mark.parametrize(("far", "share"), [(None, 1 / 2), (50e9, 1 / 2), (28e9, 5 / 8)])
def test_blocks_leave_room_for_what_passes_by(far, share):
    """Six rows of two vectors: 128 bytes in six cycles, 64 GB/s, which is much more than 28."""
    nest = main_nest({"M": 1536, "N": 5120, "K": 1024}, PRODUCT)
    assert blocks_of(nest, {"i": 6, "j": 32}, host(far=far))["j"] * 1024 * 4 == share * (1 << 20)


def test_blocks_of_what_is_read_once_need_no_room_for_anything_else():
    nest = main_nest({"M": 6, "N": 5120, "K": 1024}, PRODUCT)
    assert blocks_of(nest, {"i": 6, "j": 32}, host())["j"] * 1024 * 4 == 1 << 20


@pytest.mark.parametrize(("deep", "whole"), [(2048, True), (4096, True), (6144, False)])
def test_sums_are_whole_where_a_panel_of_them_stays(deep, whole):
    """Every part of a sum but the first waits for its results; rows come again for narrower blocks while calls go on.
    A panel of 6144 is more than half the cache."""
    nest = main_nest({"M": 510, "N": 5120, "K": deep}, PRODUCT)
    blocks = blocks_of(nest, {"i": 6, "j": 32}, host())
    assert ("k" not in blocks) == whole
    assert blocks["j"] * blocks.get("k", deep) * 4 <= 1 << 19


@pytest.mark.parametrize(("size", "far", "want"), [
    (16 << 20, 30e9, (30e9, True)), (16 << 20, None, (50e9, True)), ((16 << 20) + 1, 30e9, (15e9, False)),
    ((16 << 20) + 1, None, (25e9, False)),
])  # fmt: skip
def test_what_half_lies_in_a_cache_comes_from_there_else_from_memory(size, far, want):
    """Of the last cache a core may count on 8 MiB; what is not known is half of what comes before."""
    assert beyond(size, 100e9, host(far=far)) == want


@pytest.mark.parametrize(("far", "narrow"), [(None, True), (40e9, True), (2e9, False)])
def test_blocks_are_so_wide_that_rows_come_while_calls_go_on(far, narrow):
    """Rows of 6 MB, 4 bytes of them for 64 columns in two cycles, 6 GB/s. Where the next cache gives less, blocks are
    wider, and the sum is cut."""
    nest = main_nest({"M": 1536, "N": 4096, "K": 1024}, PRODUCT)
    blocks = blocks_of(nest, {"i": 4, "j": 64}, host(near=1 << 19, far=far))
    assert (blocks["j"] == 64) == narrow
    assert ("k" not in blocks) == narrow


BYTES = """kernel bytes(M, N, K)
  in    A: u8[M, K]
  const B: i8[K, N]
  out   C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
"""


def test_blocks_are_sized_by_the_bytes_of_what_they_hold():
    """Factors are bytes; results, four times as wide, are read and written once for every part of the sum."""
    nest = main_nest({"M": 1500, "N": 5124, "K": 2048}, BYTES)
    blocks = blocks_of(nest, {"i": 6, "j": 48}, host())
    assert "k" not in blocks, "all of the sum at once"
    assert (1 << 20) // 4 < blocks["j"] * 2048 <= 1 << 19


PRODUCT = """kernel product(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  permits contract, reassociate
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
NEED = 64 * 4 / (4 * 4 * 0.5) * 3e9  # bytes per second: 64 columns for each step of 4 rows; two sums a cycle, 3 GHz


@pytest.mark.parametrize(
    ("rate", "deep", "times"),
    [(None, 2000, 1), (NEED / 2, 1500, 1), (NEED / 2, 2000, 2), (NEED / 4, 2000, 4), (2 * NEED, 2000, 1)],
)
def test_calls_wait_for_a_farther_cache_where_the_near_one_does_not_hold_what_they_share(rate, deep, times):
    """128 columns of 2000 rows take all but a fiftieth of the second cache; cut into parts, they lie in it again. What
    it holds of them is there from the call before."""
    nest, width = main_nest({"M": 1500, "N": 128, "K": deep}, PRODUCT), {"i": 4, "j": 64}
    none, bound, cut = frozenset[str](), frozenset("B"), [("k", 500)]
    far = (1 - SHARE * near_cache(host(far=rate)) / (128 * deep * 4)) * (times - 1)
    assert slowed(1.0, nest, width, [], host(far=rate), none, nest.axes) == pytest.approx(1 + far)
    assert slowed(1.0, nest, width, cut, host(far=rate), none, nest.axes) == 1, "just laid out anew, they are near"
    once = main_nest({"M": 4, "N": 128, "K": deep}, PRODUCT)
    for had in (none, bound):
        assert slowed(1.0, once, width, cut, host(far=rate), had, nest.axes) == pytest.approx(1 + far), "read but once"
    asked, first = (slowed(1.0, nest, width, cut, m, bound, nest.axes) for m in (host(far=rate), deaf(host(far=rate))))
    assert first == pytest.approx(1 + 4 / 1500 * far), "the first rows bring them"
    assert asked == pytest.approx(1 + HIDDEN * 4 / 1500 * far), "those before ask for them"
    late, twelve = 64 * NEED / (rate or inf), main_nest({"M": 12, "N": 128, "K": deep}, PRODUCT)
    got = slowed(1.0, twelve, width, cut, host(far=(rate or inf) / 64), bound, nest.axes)
    farther = max(0.0, 1 - SHARE * (1 << 20) / (128 * deep * 4))
    assert got == pytest.approx(max(1.0, farther * late / 3)), "no sooner than they come"
    six = main_nest({"M": 6, "N": 128, "K": deep}, PRODUCT)
    assert slowed(1.0, six, width, cut, host(far=rate), bound, nest.axes) == pytest.approx(1 + far / 2), "one of two"
    assert slowed(times, nest, width, [], host(far=rate), none, nest.axes) == times, "as long by themselves"


@pytest.mark.parametrize(("rows", "deep", "step", "seen"), [
    (12, 2000, 500, HIDDEN), (8, 2000, 500, 1.0), (12, 2000, 1200, 1.0), (12, 40000, 500, 1.0),
    (12, 30000, 500, HIDDEN),
])  # fmt: skip
def test_the_next_block_comes_meanwhile_where_there_is_time_and_room_and_a_cache_that_holds_it(rows, deep, step, seen):
    """Three sweeps or more; two blocks in three quarters of the second cache; all in two of the last one's 8 MiB."""
    nest, far = main_nest({"M": rows, "N": 128, "K": deep}, PRODUCT), host(far=NEED / 2)
    got = slowed(1.0, nest, {"i": 4, "j": 64}, [("k", step)], far, frozenset("B"), nest.axes)
    assert got == pytest.approx(1 + seen * (1 - SHARE * near_cache(far) / (128 * deep * 4)) / (rows // 4))


@pytest.mark.parametrize("deep", [128, 1408])
@pytest.mark.parametrize(("rate", "rows"), [(192e9, {2}), (115e9, {4})], ids=["64 bytes a cycle", "Zen 4"])
def test_few_rows_beside_all_columns_are_taken_where_the_near_cache_gives_the_columns_in_time(deep, rate, rows):
    """Two rows of eleven vectors, and nothing to lay out anew; all columns of a part of the sum where those of all of
    it do not stay. Where the second cache gives half as much as such blocks read, blocks are of more rows."""
    zen4 = simulated("host-zen4")
    machine = replace(zen4, memories={**zen4.memories, "l2": replace(zen4.memories["l2"], bandwidth=rate)})
    made = compiled(parse_kernel(PRODUCT), {"M": 60, "N": 176, "K": deep}, machine).schedule
    assert made is not None
    loops = [n for n in distinct(made.call) if isinstance(n, Loop)]
    assert {n.step for n in loops if n.axis == "i"} == rows
    parts = [n for n in loops if n.axis == "k" and "i" in {m.axis for m in distinct(n.body) if isinstance(m, Loop)}]
    assert all((176 if rows == {2} else 96) * n.step * 4 <= 1 << 19 for n in parts)
    assert bool(parts) == (deep > 1000)


@pytest.mark.parametrize("columns", [1024, 2048, 5120, 64 * 80 + 4])
def test_no_block_is_left_over_where_another_cut_costs_little(columns):
    """What is less than a register block is left anyway."""
    blocks = blocks_of(main_nest({"M": 512, "N": columns, "K": 8192}, PRODUCT), {"i": 4, "j": 64}, host())
    assert columns // 64 * 64 % blocks.get("j", columns) == 0
    assert 2048 % blocks.get("k", 2048) == 0


def test_what_is_laid_out_before_is_cut_along_no_sum_whose_parts_share_sets_of_the_cache():
    """Panels of 32 columns: a quarter of 512 channels is 16 KiB of every 64, a quarter of the sets."""
    text = """kernel conv(H, W, C, K)
  in    x: f32[H + 2, W + 2, C]
  const w: f32[3, 3, C, K]
  out   y: f32[H, W, K]
  permits contract, reassociate
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, r < 3, s < 3, c < C
    y[h, v, k] += x[h + r, v + s, c] * w[r, s, c, k]
"""
    nest, width = main_nest({"H": 7, "W": 7, "C": 512, "K": 512}, text), {"h": 1, "v": 7, "k": 32}
    assert blocks_of(nest, width, host(), bound="w") == {"k": 32}
    assert "c" in blocks_of(nest, width, host())


@pytest.mark.parametrize(("first", "second", "outside"), [("b", "g", True), ("g", "b", False)])
def test_panels_are_made_in_no_loop_that_leaves_their_operand_where_it_is(first, second, outside):
    """A batch shares the matrices of its groups: laid out anew in each of its iterations, they would be read once."""
    text = f"""kernel batch(B, G, M, N, K)
  in  x: f32[B, G, M, K]
  in  w: f32[G, K, N]
  out y: f32[B, G, M, N]
  forall {first} < {first.upper()}, {second} < {second.upper()}, i < M, j < N
    y[b, g, i, j] = 0
  forall {first} < {first.upper()}, {second} < {second.upper()}, i < M, j < N, k < K
    y[b, g, i, j] += x[b, g, i, k] * w[g, k, j]
"""
    sizes = {"B": 16, "G": 4, "M": 6, "N": 256, "K": 256}
    made = compiled(parse_kernel(text), sizes, simulated("host-zen4")).schedule
    assert made is not None
    copies = [n for n in distinct(made.call) if isinstance(n, Issue) and n.is_move
              and n.operands[-1].tile.buffer == "w" and n.operands[-1].place.memory == "ram"]  # fmt: skip
    within = {n.axis for n in distinct(made.call) if isinstance(n, Loop) for c in distinct(n.body) if c in copies}
    assert copies
    assert "b" not in within
    assert ("g" not in within) == outside


def test_a_step_of_a_time_loop_is_one_of_what_is_read():
    """One row of one element: what is read along the vector axis, rows of it, is counted by the steps, too."""
    sizes = {"T": 3, "B": 21, "H": 1}
    assert compiled(parse_kernel(test_next_block.GATES), sizes, load_system(NARROW), check=True).schedule is not None


def test_caches_of_next_to_nothing_hold_blocks_of_next_to_nothing():
    nest = main_nest({"M": 2, "N": 8, "K": 16}, PRODUCT)
    for near in (1, 2, 64):
        assert blocks_of(nest, {"i": 1, "j": 8}, host(near=near), bound="B").get("k", 16) <= 16


@pytest.mark.parametrize(("rows", "part"), [(1536, 1 / 2), (24576, 1.0)])
def test_rows_from_memory_make_blocks_fuller(rows, part):
    """Of 100 MB of rows no cache gives anything: they pass by once, and calls wait for the crowded cache instead."""
    nest = main_nest({"M": rows, "N": 256, "K": 1024}, PRODUCT)
    assert blocks_of(nest, {"i": 6, "j": 32}, host()).get("j", 256) * 1024 * 4 == part * (1 << 20)


@pytest.mark.parametrize(("columns", "terms", "asked", "block"), [
    (5120, 2048, True, 256), (5120, 2048, False, 320),
    (3072, 1024, True, 512), (6144, 3072, True, 192),
])  # fmt: skip
def test_blocks_leave_room_for_rows_of_tiles_that_are_asked_for_ahead(columns, terms, asked, block):
    """Half of 2 MiB, no more: what comes from beyond is missed; unless every sweep waits for rows from beyond."""
    machine = simulated("host-amx")
    machine = machine if asked else deaf(machine)
    sizes = {"M": 1500, "N": columns, "K": terms}
    made = compiled(parse_kernel(test_next_block.TILES), sizes, machine).schedule
    assert made is not None
    assert max(n.step for n in distinct(made.call) if isinstance(n, Loop) and n.axis == "j") == block


STEPS = [(1, 1, 14 * 14 * 64), (2, 1, 14 * 14 * 64), (3, 2, 14 * 14 * 127)]


@pytest.mark.parametrize(("step", "last", "elements"), STEPS)
def test_rows_that_steps_leave_out_are_not_brought(step, last, elements):
    text = f"""kernel picked(H, W, C, K)
      permits contract, reassociate
      in  x: f32[{step} * H, {step} * W, {last} * C]
      in  w: f32[C, K]
      out y: f32[H, W, K]
      forall h < H, v < W, k < K
        y[h, v, k] = 0
      forall h < H, v < W, k < K, c < C
        y[h, v, k] += x[{step} * h, {step} * v, {last} * c] * w[c, k]
    """
    nest = main_nest({"H": 14, "W": 14, "C": 64, "K": 64}, text)
    assert volume(nest, next(u for u in nest.uses if u.buffer == "x")) == elements


GRAM = """kernel gram(B, N, K)
  in  A: f32[B, N, K]
  out C: f32[B, N, N]
  forall b < B, i < N, j < N
    C[b, i, j] = 0
  forall b < B, i < N, j < N, k < K
    C[b, i, j] += A[b, i, k] * A[b, j, k]
"""


@pytest.mark.parametrize("batch", [1, 2])
def test_what_is_both_factors_of_a_product_is_laid_out_for_one(batch):
    """Panels of the columns of a block, which the rows that pass by lie outside of."""
    kernel, sizes, system = parse_kernel(GRAM), {"B": batch, "N": 192, "K": 24}, host(near=1 << 13)
    job = compiled(kernel, sizes, system)
    assert job.schedule is not None
    (panel,) = [s for s in job.schedule.workspace if s.name.startswith("A.")]
    assert panel.bytes < 192 * 24 * 4, "of a block"
    sums = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis == "k"]
    read = {o.place.base for n in sums for c in distinct(n.body) if isinstance(c, Issue) and c.is_move
            for o in c.operands if o.place.base}  # fmt: skip
    assert read == {"A", panel.name}
    assert not any(c.instruction == "load_strided" for n in sums for c in distinct(n.body) if isinstance(c, Issue))
    judge(kernel, sizes, job, 3)
