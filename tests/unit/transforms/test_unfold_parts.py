"""Unfold where only one dimension is unfolded, or dimensions are wanted in an order: what core steps ask for."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.proof.equivalence import equivalent
from isam.transforms.law import NoSite, Site
from isam.transforms.structure.unfold import Unfold

WINDOWS = parse_kernel("""kernel windows()
  in  x: f32[9, 20, 3]
  out y: f32[4, 8, 5]
  permits reassociate
  forall h < 4, v < 8, k < 5
    y[h, v, k] = 0
  forall h < 4, v < 8, k < 5, s < 4, c < 3
    y[h, v, k] += x[2 * h + 1, 2 * v + s, c]
""")


def test_one_dimension_alone():
    """Rows keep their place, channels theirs; the windows along the second dimension are rows of their own."""
    after = Unfold().apply(WINDOWS, Site.of(statement=1, source=0, dim=1)).kernel
    shape = [d.const for d in after.buffer("x_u").shape]
    assert shape == [9, 8, 4, 3]
    assert equivalent(WINDOWS, after)


@pytest.mark.parametrize("order", [("h", "v", "k", "s", "c"), ("c", "s", "v", "h", "k")])
def test_dimensions_in_an_order(order: tuple[str, ...]):
    after = Unfold().apply(WINDOWS, Site.of(statement=1, source=0, axes=order)).kernel
    sizes = {"h": 4, "v": 8, "s": 4, "c": 3}
    assert [d.const for d in after.buffer("x_u").shape] == [sizes[a] for a in order if a in sizes]
    assert not {a.name for a in after.statements[1].domain.axes} & set(order), "the copy has axes of its own"
    assert equivalent(WINDOWS, after)


def test_an_axis_of_two_dimensions_is_refused():
    kernel = parse_kernel("kernel k()\n  in  x: f32[4, 7]\n  out y: f32[4]\n  forall v < 4\n    y[v] = 0\n"
                          "  forall v < 4, s < 4\n    y[v] += x[v, v + s]\n")  # fmt: skip
    with pytest.raises(NoSite, match="another one"):
        Unfold().apply(kernel, Site.of(statement=1, source=0, dim=1))
