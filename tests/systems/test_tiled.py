"""Layers and cells of networks by tiles (AMX), the tile instructions carried out by functions written from the manual
(`tests.elsewhere`): every large sum goes through them, and the results are within derived bounds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from unittest import mock

import numpy as np
import pytest

import isam
from benchmarks.kernels import sources, with_constants
from isam.codegen.simulator.run import Simulation
from isam.compiler.stages import new_job, run_stages
from isam.ir.dtype import numpy_dtype
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Schedule, distinct
from isam.scheduler.plans import shared_home
from isam.system.features import lacking
from isam.system.load import load_system
from tests.elsewhere import elsewhere
from tests.native_cases import Case, MadeCase, fault, made
from tests.pipeline import simulated

pytestmark = pytest.mark.skipif(bool(lacking(load_system("host-avx512").needs)), reason="needs AVX-512")

ROWS = {"H": 6, "W": 18, "C": 64, "K": 40}
LAYERS = {
    "a 1x1 convolution": ("convolution_bf16", {**ROWS, "R": 1, "S": 1}, 1),
    "a 3x3 convolution": ("convolution_padded_bf16", {**ROWS, "R": 3, "S": 3}, 1),
    "a strided one": ("convolution_bf16", {**ROWS, "R": 3, "S": 3, "stride": 2}, 1),
    "a first layer": ("convolution_padded_bf16", {"H": 9, "W": 20, "C": 3, "K": 24, "R": 5, "S": 5, "stride": 2}, 1),
    "one of few channels": (
        "convolution_padded_bf16",
        {"H": 9, "W": 20, "C": 3, "K": 24, "R": 7, "S": 7, "stride": 2, "pad": 3}, 1,
    ),
    "an odd sum": ("product_bf16", {"M": 33, "N": 40, "K": 75}, 1),
    "a block": ("block_bf16", {**ROWS, "R": 3, "S": 3}, 1),
    "one of a small image": ("block_bf16", {"H": 7, "W": 7, "C": 64, "K": 40, "R": 3, "S": 3}, 1),
    "attention": ("attention_bf16", {"H": 2, "M": 40, "N": 64, "D": 64, "V": 48}, 2),
    "a cell": ("gru_bf16", {"T": 3, "B": 18, "X": 64, "H": 48}, 2),
}


@pytest.fixture(autouse=True)
def tiles() -> Iterator[None]:
    with elsewhere():
        yield


def case_of(layer: str, bound: bool) -> Case:
    name, sizes, _ = LAYERS[layer]
    kernel, given = with_constants(sources()[name], dict(sizes))
    return Case(1, kernel, given, "moderate", False, bound)


@cache
def proved(layer: str) -> MadeCase:
    return made(case_of(layer, False), "host-amx", True)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bound", [False, True])
def test_large_sums_go_through_tiles_and_are_right(layer: str, bound: bool) -> None:
    mappings, (*_, sums) = proved(layer).function.mapping.mappings, LAYERS[layer]
    assert [m.instruction.name for m in mappings].count("tile_dot2_bf16") == sums
    assert fault(case_of(layer, bound), "host-amx", by=proved(layer)) is None


def scheduled(layer: str, sizes: dict[str, int] | None = None) -> Schedule:
    if sizes is None:
        return proved(layer).function.schedule
    kernel, given = with_constants(sources()[LAYERS[layer][0]], sizes)
    job = run_stages(new_job(kernel, load_system("host-amx"), given, None), "schedule")
    assert job.schedule is not None
    return job.schedule


def test_pixels_of_several_rows_fill_a_tile() -> None:
    """108 pixels in 6 rows of 18 are seven tiles, not twelve; neither the image nor the result is copied for that."""
    s = scheduled("a 1x1 convolution")
    assert s.cover.kernel.buffer("x").shape[0].const == 6 * 18
    assert [m.instruction.name for m in s.cover.mappings] == ["tile_zero_f32", "tile_dot2_bf16", "round_v_f32_bf16"]


def test_windows_of_few_channels_are_rows_of_whole_tiles() -> None:
    """Seven taps of three channels, zeros behind: no call takes less than a tile has, and none is brought in parts."""
    s = scheduled("one of few channels")
    products = [i for i in distinct(s.call) if isinstance(i, Issue) and i.instruction == "tile_dot2_bf16"]
    depths = {dict(i.sizes)["K"] for i in products}
    assert depths == {16}
    assert [d.const for d in s.cover.kernel.buffer("z_u").shape] == [23, 20, 32]
    made = [n for n, x in enumerate(s.cover.kernel.statements) if x.dest.buffer == "z_u"]
    assert made == [made[0], made[0] + 1], "zeros are still near when what lies beside them is written"


def test_what_is_laid_out_in_groups_is_not_copied_before() -> None:
    """K and X of attention are seen in pairs; scores of 32 rows by 32 columns are worked on a few rows at a time, and
    those of all rows of a head are never there at once."""
    s = scheduled("attention", {"H": 2, "M": 64, "N": 256, "D": 64, "V": 64})
    assert not any("copy_v" in m.instruction.name for m in s.cover.mappings)
    assert [d.const for d in s.cover.kernel.buffer("K").shape] == [2, 256, 32, 2]
    calls = [c for c in distinct(s.call) if isinstance(c, Issue) and c.instruction == "exp_v_f32"]
    assert 0 < len(calls) <= 16
    assert next(x.bytes for x in s.workspace if x.name == "z") <= 32 * (256 * 4 + 64)


def test_what_is_seen_otherwise_is_taken_and_given_as_the_caller_has_it() -> None:
    """By the simulator, too, bound or not, and by what a schedule in a file is run with."""
    kernel = sources()["convolution_bf16"]
    sizes = {"H": 3, "W": 7, "C": 16, "K": 20, "R": 1, "S": 1}
    rng = np.random.default_rng(5)
    x, w = (rng.integers(-4, 5, s).astype(numpy_dtype("bf16")) for s in ((3, 7, 16), (1, 1, 16, 20)))
    want = np.einsum("hvc,ck->hvk", x.astype(np.float32), w[0, 0].astype(np.float32))
    machine = simulated("host-amx")
    fn = isam.compile(kernel, machine, sizes=sizes, cache=False)
    assert any(m.instruction.name == "tile_dot2_bf16" for m in fn.mapping.mappings)
    assert len(fn.schedule.kernel.buffer("x").shape) == 2
    assert [len(a.shape) for a in fn.artifact.arguments] == [3, 4, 3]
    for y in (fn(x, w), fn.bind(w=w)(x)):
        np.testing.assert_array_equal(y.astype(np.float32), want.astype(y.dtype).astype(np.float32))
    arrays = {"x": x, "w": w}
    got = Simulation(fn.schedule).once(arrays)["y"]
    assert got.shape == (3, 7, 20)


@pytest.mark.parametrize("more", ["z[0, 0, 0] = 0", "forall c < 3\n    z[0, 0, c] = x[1, 1, c]", ""])
def test_images_that_are_made_point_by_point_are_windowed_too(more: str) -> None:
    """Beside the copy of an image, what writes one element or one pixel of it: no longer rows are made of that."""
    text = f"""kernel first()
  in    x: bf16[10, 22, 3]
  const w: bf16[7, 7, 3, 24]
  out   y: f32[4, 16, 24]
  temp  z: bf16[10, 22, 3]
  permits reassociate, contract, flush
  forall h < 10, v < 22, c < 3
    z[h, v, c] = x[h, v, c]
  {more}
  forall h < 4, v < 16, k < 24
    y[h, v, k] = 0
  forall h < 4, v < 16, k < 24, r < 7, s < 7, c < 3
    y[h, v, k] += f32(z[h + r, v + s, c]) * f32(w[r, s, c, k])
"""
    kernel = parse_kernel(text)
    case = Case(2, kernel, {}, "moderate", False, True)
    job = (code := made(case, "host-amx", True)).function.job
    assert any(m.instruction.name == "tile_dot2_bf16" for m in job.cover.mappings)
    assert [b.shape[-1].const for b in job.schedule.cover.kernel.buffers if b.name in ("z_u", "x_u")] == [32]
    assert fault(case, "host-amx", by=code) is None


@pytest.mark.parametrize("stride", [1, 2])
def test_seven_by_seven_pixels_fill_four_tiles(stride: int) -> None:
    """What slides over an image, or leaves pixels out, is copied so that its rows are one: seven tiles else."""
    sizes = {"H": 7, "W": 7, "C": 32, "K": 40, "R": 3 if stride == 1 else 1, "S": 3 if stride == 1 else 1}
    name = "convolution_padded_bf16" if stride == 1 else "convolution_bf16"
    kernel, given = with_constants(sources()[name], {**sizes, "stride": stride})
    case = Case(4, kernel, given, "moderate", False, True)
    job = (code := made(case, "host-amx", True)).function.job
    product = next(m for m in job.cover.mappings if m.instruction.name == "tile_dot2_bf16")
    extents = {a.name: a.extent.const for a in job.schedule.cover.kernel.statements[product.statements[-1]].domain.axes}
    assert extents[dict(product.axes)["i"]] == 49
    assert fault(case, "host-amx", by=code) is None


@pytest.mark.parametrize(("pixels", "parts"), [(7, [49]), (16, [16, 16])])
def test_pixels_of_a_block_are_one_row_for_tiles_alone(pixels: int, parts: list[int]) -> None:
    """Windows slide over both axes of an image, so that what makes the rows keeps them; its results lie in a row."""
    sizes = {"H": pixels, "W": pixels, "C": 64, "K": 40, "R": 3, "S": 3}
    s = scheduled("a block", sizes)
    product = next(m for m in s.cover.mappings if m.instruction.name == "tile_dot2_bf16")
    windows = next(m for m in s.cover.mappings if m.instruction.name == "fma_vv_bf16_f32")
    domains = [s.cover.kernel.statements[m.statements[-1]].domain for m in (windows, product)]
    assert [a.extent.const for a in domains[0].axes[:2]] == [pixels, pixels]
    assert [a.extent.const for a in domains[1].axes][: len(parts)] == parts
    assert [d.const for d in s.cover.kernel.buffer("z").shape] == [*parts, 64]


def test_loops_that_some_nests_have_alone_are_dealt_to_cores_too() -> None:
    kernel, given = with_constants(sources()["attention_bf16"], {"H": 8, "M": 96, "N": 128, "D": 64, "V": 64})
    with mock.patch.object(shared_home, "MEETING", -1e12):  # no loop is too short for threads
        job = run_stages(new_job(kernel, load_system("host-amx").threaded(2), given, None))
    assert not job.unproved
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop)]
    assert any(n.deal is not None for n in loops)


def test_products_that_are_not_summed_up_are_left_to_vectors() -> None:
    text = """kernel scaled(N)
  in    a: bf16[N]
  in    b: bf16[N]
  inout y: f32[N]
  permits reassociate, contract, flush
  forall i < N
    y[i] += f32(a[i]) * f32(b[i])
"""
    kernel, given = with_constants(parse_kernel(text), {"N": 200})
    job = run_stages(new_job(kernel, load_system("host-amx"), given, None))
    assert not any(m.instruction.name.startswith("tile") for m in job.cover.mappings)
