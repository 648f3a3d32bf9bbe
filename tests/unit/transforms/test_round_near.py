"""Zeros beside what is rounded up, written where core steps want them."""

from __future__ import annotations

from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof.equivalence import equivalent
from isam.transforms.law import Site
from isam.transforms.structure.roundup import RoundUpSum

SUM = """kernel rows(T=2)
  in  x: f32[6, 5]
  out y: f32[6]
  temp t: f32[6, 5]
  permits reassociate
  forall i < 6
    y[i] = 0
{made}
  forall i < 6, k < 5
    y[i] += t[i, k]
"""
HERE = SUM.format(made="  forall i < 6, j < 5\n    t[i, j] = x[i, j]")
LOOPED = SUM.format(made="  loop n < 2\n    forall i < 6, j < 5\n      t[i, j] = x[i, j]")


def rounded(text: str, **near: bool) -> tuple[Kernel, Kernel]:
    kernel = parse_kernel(text).with_sizes({})
    at = len(kernel.statements) - 1
    return kernel, RoundUpSum((8,)).apply(kernel, Site.of(axis="k", statements=(at,), extent=8, **near)).kernel


def written(kernel: Kernel) -> list[str]:
    return [s.dest.buffer for s in kernel.statements]


def test_zeros_are_written_just_before_their_buffer_is_made():
    for near, order in ((True, ["y", "t", "t", "y"]), (False, ["t", "y", "t", "y"])):
        kernel, after = rounded(HERE, **({"near": True} if near else {}))
        assert written(after) == order
        assert equivalent(kernel, after)


def test_zeros_are_not_written_again_in_every_step_of_a_loop():
    assert written(rounded(LOOPED, near=True)[1]) == ["t", "y", "t", "y"]
