"""Temporaries that nobody said how they lie: a dimension that fills vectors comes last."""

from __future__ import annotations

from typing import Any

import pytest

from isam.compiler.offers import Subject, further
from isam.compiler.offers.lying import alike_last, longest_last
from isam.compiler.offers.partial import in_lanes
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.subjects import summed

SUMS = """kernel sums(H, W, C)
  in  x: u8[H, W + C - 1]
  out y: i32[H, W]
  forall h < H, v < W
    y[h, v] = 0
  forall h < H, v < W, c < C
    y[h, v] += i32(x[h, v + c])
"""
DECLARED = """kernel sums(H, W, C)
  in   x: u8[H, W + C - 1]
  out  y: i32[H, W]
  temp t: i32[H, W, C]
  forall h < H, v < W, c < C
    t[h, v, c] = i32(x[h, v + c])
  forall h < H, v < W
    y[h, v] = 0
  forall h < H, v < W, c < C
    y[h, v] += t[h, v, c]
"""


def made(text: str, **sizes: int) -> Any:
    return compiled(parse_kernel(text), sizes, simulated("host-avx512"))


def lanes(job: Any) -> set[str]:
    return {k for m in job.cover.mappings if m.instruction.name.startswith("cast") for _, k in m.axes}


@pytest.mark.parametrize("taps", [3, 5])
def test_pixels_lie_in_lanes_where_taps_fill_none(taps):
    """Three apart, where moves take them so; five apart, where another dimension comes last."""
    sizes = {"H": 5, "W": 70, "C": taps}
    job = made(SUMS, **sizes)
    assert lanes(job) == {"v"}
    judge(parse_kernel(SUMS), sizes, job, 3)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (DECLARED, {"H": 5, "W": 70, "C": 3}),  # as it was said
        (SUMS, {"H": 5, "W": 70, "C": 9}),  # taps fill more than half
        (SUMS, {"H": 5, "W": 15, "C": 3}),  # nothing fills a vector
    ],
)
def test_what_was_said_or_is_full_stays(text, sizes):
    job = made(text, **sizes)
    assert not longest_last(job.kernel, job.cover)


def test_what_is_offered_was_half_empty():
    kernel = parse_kernel(SUMS).with_sizes({"H": 5, "W": 70, "C": 5})
    job = made(SUMS, H=5, W=70, C=5)
    plain = next(c.cover for c in job.candidates if not c.ahead)
    steps = longest_last(kernel, plain)
    assert [(s.transform.law, s.site["dim"]) for s in steps] == [("permute-dimensions", 1)]


MAX_PLUS = """kernel max_plus(M, K)
  in  v: f32[K]
  in  a: f32[K, M]
  out y: f32[M]
  forall j < M
    y[j] = -inf
  forall {order}
    y[j] max= v[i] + a[i, j]
"""


@pytest.mark.parametrize("order", ["i < K, j < M", "j < M, i < K"])
def test_sums_lie_as_the_table_does_however_the_block_was_written(order):
    kernel, sizes = parse_kernel(MAX_PLUS.format(order=order)), {"M": 48, "K": 33}
    job = compiled(kernel, sizes, simulated("host-avx512"))
    assert {m.instruction.name for m in job.cover.mappings} == {"copy_s_f32", "add_vs_f32", "acc_max_v_f32"}
    judge(kernel, sizes, job, 3)


def test_a_declared_temporary_lies_as_it_was_said():
    text = MAX_PLUS.format(order="j < M, i < K").replace("y[j] max= v[i] + a[i, j]", "t[j, i] = v[i] + a[i, j]")
    text += "  forall j < M, i < K\n    y[j] max= t[j, i]\n"
    text = text.replace("  forall j < M\n", "  temp t: f32[M, K]\n  forall j < M\n", 1)
    job = compiled(parse_kernel(text), {"M": 48, "K": 33}, simulated("host-avx512"))
    plain = next(c.cover for c in job.candidates if not c.ahead)
    assert not alike_last(plain.kernel, plain)
    judge(parse_kernel(text), {"M": 48, "K": 33}, job, 3)


FORCES = """kernel forces(N)
  in  x: f32[N, 3]
  in  m: f32[N]
  out y: f32[N, 3]
  permits reassociate
  forall i < N, j < N, c < 3
    d[i, j, c] = x[j, c] - x[i, c]
  forall i < N, j < N
    w[i, j] = m[j] * d[i, j, 0]
  forall i < N, c < 3
    y[i, c] = 0
  forall i < N, c < 3, j < N
    y[i, c] += w[i, j] * d[i, j, c]
"""


@pytest.mark.parametrize(("points", "on"), [(64, "host-avx512"), (70, "host-avx2")])
def test_sums_that_are_made_across_lanes_once_it_lies_otherwise_are_partial_sums(points, on):
    """Three coordinates fill no vector; points do, and over them the sums go."""
    kernel = parse_kernel(FORCES)
    job = compiled(kernel, {"N": points}, simulated(on))
    steps = [s.split()[0] for c in job.candidates for s in c.ahead if c is job.taken]
    assert steps[:1] == ["permute-dimensions"]
    assert "nest-sum" in steps
    assert any(m.instruction.name == "sum_add_f32" for m in job.cover.mappings)
    judge(kernel, {"N": points}, job, 3)


def test_each_equivalent_kernel_is_offered_once():
    """With vectors of 32 bytes `d` lies along the longest dimension as well as along what it is made of."""
    kernel = parse_kernel(FORCES)
    job = compiled(kernel, {"N": 70}, simulated("host-avx2"))
    plain = next(c.cover for c in job.candidates if not c.ahead)
    both = [longest_last(plain.kernel, plain), alike_last(plain.kernel, plain)]
    assert [len(steps) for steps in both] == [1, 1]
    assert both[0][0].site == both[1][0].site
    ahead = [c.ahead for c in job.candidates]
    assert len(set(ahead)) == len(ahead)


def test_partial_sums_go_on_from_kernels_without_them():
    kernel = parse_kernel(FORCES)
    job = compiled(kernel, {"N": 64}, simulated("host-avx512"))
    subject = Subject(job.kernel, job.cover, job.system, job.offered)
    for c in job.candidates:
        assert sum("nest-sum" in s for s in c.ahead) <= 1
    steps = longest_last(*next((c.cover.kernel, c.cover) for c in job.candidates if not c.ahead))
    permuted = next(c.cover for c in job.candidates if len(c.ahead) == 1)
    assert [*further(subject, [(steps, permuted)])]
    partial = next(c.cover for c in job.candidates if "nest-sum" in "".join(c.ahead))
    nested = in_lanes(summed(permuted.kernel, {"y": 16}))
    assert not [*further(subject, [((*steps, *nested), partial)])]
