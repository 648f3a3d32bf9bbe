"""Products of bytes for instructions that take them with a sign on one side only, and without what is added to them."""

from __future__ import annotations

from typing import Any

import pytest

from isam.compiler.offers.expanded import expanded
from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.system.load import load_system
from tests.pipeline import compiled, judge, simulated
from tests.subjects import of_job

PRODUCT = """kernel p(M, N, K)
  in    A: {a}[M, K]
  {role} B: {b}[K, N]
  out   C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
"""
ZEROS = """kernel p(M, N, K)
  in    A: {a}[M, K]
  in    za: {a}
  const B: i8[K, N]
  const zb: i8[N]
  out   C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += (i32(A[i, k]) - i32(za[])) * (i32(B[k, j]) - i32(zb[j]))
"""
PADDED = """kernel p(H, F, C)
  in    x: i8[H, H, C]
  const w: i8[3, 3, C, F]
  out   y: i32[H, H, F]
  forall h < H, v < H, f < F
    y[h, v, f] = 1
  forall h < H, v < H, f < F, r < 3, s < 3, c < C where h + r >= 1, h + r <= H, v + s >= 1, v + s <= H
    y[h, v, f] += i32(x[h + r - 1, v + s - 1, c]) * i32(w[r, s, c, f])
"""
SIZES = {"M": 24, "N": 32, "K": 36}
IMAGE = {"H": 6, "F": 32, "C": 16}


def made(text: str, sizes: dict[str, int] = SIZES, system: str = "host-avx512") -> Any:
    return compiled(parse_kernel(text), sizes, simulated(system))


def names(job: Any) -> set[str]:
    return {m.instruction.name for m in job.cover.mappings if m.instruction.name.startswith(("dot4", "fma"))}


@pytest.mark.parametrize(("text", "sizes", "taken"), [
    (PRODUCT.format(a="i8", b="i8", role="const"), SIZES, {"dot4_u8_i8"}),
    (PRODUCT.format(a="u8", b="u8", role="const"), SIZES, {"dot4_i8_u8"}),
    (PRODUCT.format(a="u8", b="i8", role="const"), SIZES, {"dot4_u8_i8"}),
    (ZEROS.format(a="u8"), SIZES, {"dot4_u8_i8", "fma_sv_i32"}),
    (ZEROS.format(a="i8"), SIZES, {"dot4_u8_i8", "fma_sv_i32"}),
    (PADDED, IMAGE, {"dot4_u8_i8"}),
])  # fmt: skip
def test_bytes_are_taken_as_the_quicker_instruction_has_them(text, sizes, taken):
    job = made(text, sizes)
    assert names(job) == taken
    judge(parse_kernel(text), sizes, job, 5)


@pytest.mark.parametrize(("a", "b", "taken"), [
    ("i8", "i8", "dot4_u8_i8"), ("u8", "u8", "dot4_i8_u8"), ("u8", "i8", "dot4_u8_i8"),
])  # fmt: skip
def test_vectors_of_eight_lanes_have_the_same(a, b, taken):
    """AVX-VNNI."""
    text = PRODUCT.format(a=a, b=b, role="const")
    job = made(text, system="host-avx2")
    assert names(job) == {taken}
    judge(parse_kernel(text), SIZES, job, 5)


def test_what_constants_determine_is_made_when_they_are_bound():
    job = made(PRODUCT.format(a="i8", b="i8", role="const"))
    bound = {d.context["buffer"] for d in job.trace.decisions if d.point == "bind" and d.chosen}
    assert {"z", "u"} <= bound
    assert not {"f", "f2"} & bound


def test_a_factor_that_is_added_to_twice_is_expanded_twice():
    text = PRODUCT.format(a="u8", b="i8", role="const").replace("i32(A[i, k])", "(i32(A[i, k]) - 3)")
    job = made(text.replace("i32(B[k, j])", "(i32(B[k, j]) + 5)"))
    assert sum(s.startswith("expand") for s in job.cover.steps) == 2
    judge(parse_kernel(str(job.original)), SIZES, job, 9)


@pytest.mark.parametrize("system", ["host-generic", "host-neon", "host-amx", "neoverse-n1"])
@pytest.mark.parametrize("pair", [("i8", "i8"), ("u8", "u8"), ("u8", "i8")])
def test_elsewhere_products_stay_as_they_are(system, pair):
    a, b = pair
    job = made(PRODUCT.format(a=a, b=b, role="const"), system=system)
    assert not list(expanded(of_job(job)))
    assert not any(s.startswith(("rebase", "expand")) for s in job.cover.steps)


def test_a_cpu_without_products_of_mixed_bytes_takes_those_of_one_kind():
    """Neoverse N1 has SDOT and UDOT, but no USDOT."""
    kernel = parse_kernel(PRODUCT.format(a="u8", b="i8", role="const"))
    job = run_stages(new_job(kernel, load_system("neoverse-n1"), SIZES, None), until="prove")
    assert names(job) == {"dot4_i8_i8"}
    assert job.certificate is not None


@pytest.mark.parametrize(("a", "tile"), [("u8", "tile_dot4_us"), ("i8", "tile_dot4_ss")])
def test_without_zero_points_tiles_carry_the_sum_out(a, tile):
    text, sizes = ZEROS.format(a=a), {"M": 64, "N": 64, "K": 128}
    job = made(text, sizes, "host-amx")
    assert tile in {m.instruction.name for m in job.cover.mappings}
    judge(parse_kernel(text), sizes, job, 3)
