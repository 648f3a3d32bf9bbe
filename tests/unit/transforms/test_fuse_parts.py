"""Two axes as one in some only of the statements that share them: what core steps ask for."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof.equivalence import equivalent
from isam.transforms.law import NoSite, Site
from isam.transforms.structure.fuse import FuseAxes, FuseDimensions

WINDOWS = parse_kernel("""kernel windows()
  in  x: f32[6, 8]
  in  w: f32[4, 6]
  out y: f32[4, 6]
  temp z: f32[4, 6]
  forall h < 4, v < 6
    z[h, v] = x[h + 2, v + 1]
  forall h < 4, v < 6
    y[h, v] = z[h, v] * w[h, v]
""")


def in_rows(kernel: Kernel, buffers: str, *statements: int) -> Kernel:
    for b in buffers:
        kernel = FuseDimensions().apply(kernel, Site.of(buffer=b, dim=0, view=kernel.buffer(b).role != "temp")).kernel
    return FuseAxes().apply(kernel, Site.of(outer="h", inner="v", statements=statements)).kernel


def test_the_statements_named_have_one_axis_and_the_others_two():
    after = in_rows(WINDOWS, "zwy", 1)
    assert [s.domain.names for s in after.statements] == [("h", "v"), ("h_v",)]
    assert [d.const for d in after.buffer("z").shape] == [24]
    assert equivalent(WINDOWS, after)


@pytest.mark.parametrize(("buffers", "statements"), [("zwy", (0, 1)), ("zw", (1,)), ("wy", (1,))])
def test_where_some_row_does_not_go_on_from_the_one_before_it_is_refused(buffers: str, statements: tuple[int, ...]):
    with pytest.raises(NoSite, match="fuse-axes"):
        in_rows(WINDOWS, buffers, *statements)


def test_statements_that_lack_an_axis_are_refused():
    kernel = parse_kernel("kernel k()\n  in  x: f32[4]\n  out y: f32[4]\n  forall h < 4\n    y[h] = x[h] + 1\n")
    with pytest.raises(NoSite, match="fuse-axes"):
        FuseAxes().apply(kernel, Site.of(outer="h", inner="v", statements=(0,)))


def test_no_statements_at_all_are_refused():
    with pytest.raises(NoSite, match="fuse-axes"):
        FuseAxes().apply(WINDOWS, Site.of(outer="h", inner="v", statements=()))
