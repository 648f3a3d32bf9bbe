"""A law of axes, buffers or domains that has an inverse is undone by it: the same kernel again, by structural hash."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.hashing import structural_hash
from isam.ir.text import parse
from isam.transforms import ALL, structure

TEMPS = """kernel temps(N)
  in  x: f32[N, 8, 6]
  out y: f32[N, 8, 6]
  temp t: f32[N, 8, 6]
  forall n < N, i < 8, j < 6
    t[n, i, j] = x[n, i, j] * 2
  forall n < N, i < 8, j < 6
    y[n, i, j] = t[n, i, j] + 1
"""
SPLIT = """kernel split(N)
  in  x: f32[N, 8]
  out y: f32[N, 8]
  temp t: f32[N, 8]
  forall n < N, a < 4, b < 2
    t[n, 2 * a + b] = x[n, 2 * a + b] * 2
  forall n < N, a < 4, b < 2
    y[n, 2 * a + b] = t[n, 2 * a + b] + 1
"""
SUM = """kernel total(N)
  in    x: f32[N + 7, 8]
  in    w: f32[8]
  inout y: f32[N]
  forall i < N, k < 8
    y[i] += x[i, k]
"""
LINE = """kernel line(N)
  in  x: f32[8, 6]
  out y: f32[8, 6]
  forall i < 8, j < 6
    y[i, j] = x[i, j] + 1
  forall i < 8, j < 6 where i <= j
    y[i, j] = y[i, j] * 2
"""
WINDOWS = """kernel windows(W, S)
  in  x: f32[2 * W + S]
  in  w: f32[S]
  out y: f32[W]
  forall v < W
    y[v] = 0
  forall v < W, s < S
    t[v, s] = x[2 * v + s] * w[s]
    y[v] += t[v, s]
  forall v < W, s < S where v + s < W
    y[v] += x[v + s]
"""

STORED = """kernel stored(N)
  in  x: f32[3, N]
  out y: f32[N]
  temp a: f32[3, N]
  temp b: f32[N]
  temp c: f32[2, N]
  forall k < 3, j < N
    a[k, j] = x[k, j] * 2
  forall j < N
    b[j] = x[0, j] + 1
  forall k < 2, j < N
    c[k, j] = x[k, j] + 3
  forall j < N
    y[j] = a[1, j] + b[j]
    y[j] = y[j] + c[1, j]
"""

PADDED = """kernel padded()
  in  x: f32[6]
  in  w: f32[3]
  out y: f32[6]
  forall i < 6
    y[i] = 0
  forall i < 6, r < 3 where 0 <= i + r - 1, i + r - 1 < 6
    y[i] += x[i + r - 1] * w[r]
"""

KERNELS = {
    "split-axis": TEMPS, "split-dimension": SPLIT, "fuse-dimensions": TEMPS, "permute-dimensions": TEMPS,
    "reverse-axis": TEMPS, "reverse-dimension": TEMPS, "reverse-sum": SUM, "peel": LINE, "peel-sum": SUM,
    "unfold": WINDOWS, "store-at": STORED, "pitch": TEMPS, "pad": PADDED,
}  # fmt: skip
ONE_WAY = {"trim", "unpad", "store-apart", "fuse-axes", "unpeel", "unpeel-sum"}
"""Undone by the law that they undo, which is tested the other way round."""
BY_NAME = {t.law: t for t in ALL}


def on_temporaries(kernel, site) -> bool:
    """Laws copy arguments: that is undone up to the copies only."""
    at = dict(site.at)
    return "buffer" not in at or kernel.buffer(at["buffer"]).role == "temp"


@pytest.mark.parametrize("law", sorted(KERNELS))
def test_the_inverse_gives_the_same_kernel_again(law):
    kernel = parse(KERNELS[law])
    there, back = BY_NAME[law], BY_NAME[BY_NAME[law].inverse]
    if hasattr(back, "factors"):
        back = replace(back, factors=(6, 8))
    sites = [s for s in there.sites(kernel) if on_temporaries(kernel, s)]
    assert sites
    for site in sites:
        made = there.apply(kernel, site).kernel
        again = [structural_hash(back.apply(made, s).kernel) for s in back.sites(made)]
        assert structural_hash(kernel) in again, f"{law} at {site}:\n{made}"


def test_every_law_with_an_inverse_has_its_way_back_tested():
    paired = {t.law for t in structure.LAWS if t.inverse}
    assert all(t.inverse in BY_NAME for t in ALL if t.inverse)
    assert paired == set(KERNELS) | ONE_WAY
    assert all(BY_NAME[BY_NAME[law].inverse].inverse == law for law in ONE_WAY)
