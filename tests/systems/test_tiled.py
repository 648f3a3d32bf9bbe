"""Layers and cells of networks by tiles (AMX), the tile instructions carried out by functions written from the manual
(`tests.elsewhere`): every large sum goes through them, and the results are within derived bounds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.kernels import sources, with_constants
from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.system.features import lacking
from isam.system.load import load_system
from tests.elsewhere import elsewhere
from tests.native_cases import Case, fault

pytestmark = pytest.mark.skipif(bool(lacking(load_system("host-avx512").needs)), reason="needs AVX-512")

ROWS = {"H": 6, "W": 18, "C": 64, "K": 40}
LAYERS = {
    "a 1x1 convolution": ("convolution_bf16", {**ROWS, "R": 1, "S": 1}, 1),
    "a 3x3 convolution": ("convolution_padded_bf16", {**ROWS, "R": 3, "S": 3}, 1),
    "a strided one": ("convolution_bf16", {**ROWS, "R": 3, "S": 3, "stride": 2}, 1),
    "a first layer": ("convolution_padded_bf16", {"H": 9, "W": 20, "C": 3, "K": 24, "R": 5, "S": 5, "stride": 2}, 1),
    "an odd sum": ("product_bf16", {"M": 33, "N": 40, "K": 75}, 1),
    "a block": ("block_bf16", {**ROWS, "R": 3, "S": 3}, 1),
    "attention": ("attention_bf16", {"H": 2, "M": 40, "N": 64, "D": 64, "V": 48}, 2),
    "a cell": ("gru_bf16", {"T": 3, "B": 18, "X": 64, "H": 48}, 2),
}


@pytest.fixture(autouse=True)
def tiles() -> Iterator[None]:
    with elsewhere():
        yield


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("bound", [False, True])
def test_large_sums_go_through_tiles_and_are_right(layer: str, bound: bool) -> None:
    name, sizes, sums = LAYERS[layer]
    kernel, given = with_constants(sources()[name], dict(sizes))
    job = run_stages(new_job(kernel, load_system("host-amx"), given, None))
    taken = [m.instruction.name for m in job.cover.mappings]
    assert taken.count("tile_dot2_bf16") == sums
    assert fault(Case(1, kernel, given, "moderate", False, bound), "host-amx", True) is None


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
