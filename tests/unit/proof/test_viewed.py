"""Arguments in another shape: the same elements one after the other, and nothing else, is judged to be the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access
from isam.ir.text import parse_kernel
from isam.proof.equivalence import equivalent
from isam.proof.viewed import in_rows
from isam.transforms.law import NoSite, Site
from isam.transforms.staging import viewable
from isam.transforms.structure.dimensions import SplitDimension
from isam.transforms.structure.fuse import FuseDimensions

ROWS = """kernel rows()
  in  x: f32[4, 6]
  out y: f32[4, 3]
  permits reassociate
  forall i < 4, k < 3
    y[i, k] = x[i, 2 * k + 1] * x[i, k]
"""
SEEN = """kernel rows()
  in  x: f32[24]
  out y: f32[12]
  permits reassociate
  forall i < 4, k < 3
    y[3 * i + k] = x[6 * i + 2 * k + 1] * x[6 * i + k]
"""


def test_what_is_read_and_written_may_be_seen_otherwise():
    assert equivalent(parse_kernel(ROWS), parse_kernel(SEEN))
    assert equivalent(parse_kernel(SEEN), parse_kernel(ROWS))


@pytest.mark.parametrize(("was", "instead", "why"), [
    ("2 * k + 1]", "2 * k]", "'y'"),  # another element
    ("y[3 * i + k]", "y[4 * i + k]", "'y'"),  # out of its row: the last ones lie behind the end
    ("x: f32[24]", "x: f32[25]", "arguments"),  # more elements
    ("x: f32[24]", "x: i32[24]", "arguments"),  # another type
    ("in  x", "const x", "arguments"),  # another role
    ("y: f32[12]", "z: f32[12]", "arguments"),  # another name
])  # fmt: skip
def test_anything_else_is_refused(was: str, instead: str, why: str):
    text = SEEN.replace(was, instead)
    if "z: f32" in instead:
        text = text.replace("y[", "z[")
    verdict = equivalent(parse_kernel(ROWS), parse_kernel(text))
    assert not verdict
    assert why in str(verdict) or "arguments" in str(verdict)  # what is no kernel is not compared as rows


def test_an_index_beyond_its_dimension_is_none_although_it_lies_in_the_row():
    text = ROWS.replace("x[i, k]", "x[i, k + 6]").replace("i < 4", "i < 3")
    seen = SEEN.replace("x[6 * i + k]", "x[6 * i + k + 6]").replace("i < 4", "i < 3")
    verdict = equivalent(parse_kernel(seen), parse_kernel(text))
    assert str(verdict) == "undecided: the arguments differ"


def test_sizes_that_are_open_stay_as_they_are():
    one, two = (parse_kernel(f"kernel k(N)\n  in  x: f32[{a}]\n  out y: f32[1]\n  y[0] = x[{b}]\n")
                for a, b in (("N, 2", "0, 0"), ("2 * N", "0")))  # fmt: skip
    assert in_rows(one, two) == (one, two)
    assert not equivalent(one, two)


@pytest.mark.parametrize("buffer", ["x", "y"])
def test_laws_see_an_argument_otherwise_without_a_copy(buffer: str):
    kernel = parse_kernel(ROWS)
    fused = FuseDimensions().apply(kernel, Site.of(buffer=buffer, dim=0, view=True)).kernel
    assert len(fused.statements) == 1
    assert [len(b.shape) for b in fused.arguments] == [1 + (b != buffer) for b in "xy"]
    assert equivalent(kernel, fused)


def test_a_row_is_seen_as_rows_again():
    seen = parse_kernel(SEEN)
    back = SplitDimension((3,)).apply(seen, Site.of(buffer="y", dim=0, factor=3, view=True)).kernel
    assert [d.const for d in back.buffer("y").shape] == [4, 3]
    assert equivalent(parse_kernel(ROWS), back)


def test_what_cannot_be_seen_otherwise_is_refused():
    kernel = parse_kernel("kernel k(N)\n  in  x: f32[N, 2]\n  out y: f32[N, 2]\n  forall i < N, j < 2\n"
                          "    t[i, j] = x[i, j]\n    y[i, j] = t[i, j]\n")  # fmt: skip
    assert not any(viewable(b) for b in kernel.buffers)
    for name in "xt":
        with pytest.raises(NoSite, match="another shape"):
            FuseDimensions().apply(kernel, Site.of(buffer=name, dim=0, view=True))


def test_a_kernel_that_is_none_is_refused_not_met_with_an_error():
    """Three indices of what has one dimension: a forged step."""
    x = Access("x", (Affine.of("i"), Affine.of("k"), Affine()))
    forged = parse_kernel(SEEN)
    body = tuple(s.accessing(lambda a: x if a.buffer == "x" else a) for s in forged.statements)
    verdict = equivalent(parse_kernel(ROWS), replace(forged, body=body, template=None))
    assert str(verdict) == "undecided: the arguments differ"


@pytest.mark.parametrize(("shape", "index", "same"), [
    ("N, 1", "i, o", True), ("1, N", "o, i", True), ("N, 1", "i, 0", True), ("N, 2", "i, o", False),
    ("N, 1", "0, o", False), ("N, N", "i, o", False),
])  # fmt: skip
def test_a_dimension_of_one_moves_no_element_whatever_the_others_are(shape: str, index: str, same: bool):
    text = "kernel k(1 <= N)\n  in  x: f32[{}]\n  out y: f32[N]\n  forall i < N, o < 1\n    y[i] = x[{}] * 2\n"
    assert bool(equivalent(parse_kernel(text.format("N", "i")), parse_kernel(text.format(shape, index)))) == same
