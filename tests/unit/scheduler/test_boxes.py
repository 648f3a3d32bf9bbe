"""Sums under conditions in boxes: by the results that they make, or by the terms that they add."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from isam.approach.choice import Approach, Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir.text import parse_kernel
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.pieces import BY_RESULTS, BY_TERMS, pieces
from tests.pipeline import compiled, judge, simulated

CONVOLUTION = """kernel convolution(H, W, C, K)
  permits {permits}
  in    x: f32[H, W, C]
  const w: f32[3, 3, C, K]
  out   y: f32[H, W, K]
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, r < 3, s < 3, c < C where 0 <= h + r - 1 < H, 0 <= v + s - 1 < W
    y[h, v, k] += x[h + r - 1, v + s - 1, c] * w[r, s, c, k]
"""
USUAL = CONVOLUTION.replace("{permits}", "reassociate, contract")
STRIDED = """kernel strided()
  in    x: f32[9, 24]
  const w: f32[4, 24, 40]
  out   y: f32[4, 40]
  forall h < 4, k < 40
    y[h, k] = 0
  forall h < 4, k < 40, r < 4, c < 24 where 0 <= 2 * h + 2 * r - 3 < 9
    y[h, k] += x[2 * h + 2 * r - 3, c] * w[r, c, k]
"""
STENCIL = """kernel stencil()
  in  x: f32[11, 18]
  out y: f32[11, 18]
  forall i < 11, j < 18
    y[i, j] = 0
  forall i < 11, j < 18, a < 3, b < 3 where 0 <= i + a - 1 < 11, 0 <= j + b - 1 < 18
    y[i, j] += x[i + a - 1, j + b - 1]
"""
POOLING = """kernel pooling()
  in  x: f32[6, 6, 20]
  out y: f32[3, 3, 20]
  forall h < 3, v < 3, c < 20
    y[h, v, c] = -inf
  forall h < 3, v < 3, c < 20, r < 3, s < 3 where 0 <= 2 * h + r - 1 < 6, 0 <= 2 * v + s - 1 < 6
    y[h, v, c] max= x[2 * h + r - 1, 2 * v + s - 1, c]
"""
FILTER = """kernel filtered()
  in  x: i32[40]
  in  w: i32[5]
  out y: i32[40]
  forall n < 40
    y[n] = 0
  forall n < 40, t < 5 where 0 <= n + t - 2 < 40
    y[n] += x[n + t - 2] * w[t]
"""
STEPS = """kernel steps()
  in  x: f32[13]
  in  w: f32[4]
  out y: f32[4]
  forall n < 4
    y[n] = 0
  forall n < 4, t < 4 where 0 <= 4 * n + t - 3
    y[n] += x[4 * n + t - 3] * w[t]
"""
STEEP = (STEPS.replace("x: f32[13]", "x: f32[41]").replace("w: f32[4]", "w: f32[20]").replace("t < 4", "t < 20")
         .replace("4 * n + t - 3", "10 * n + t - 9"))  # fmt: skip
DILATED = """kernel dilated()
  in    x: f32[20, 8]
  const w: f32[3, 8, 32]
  out   y: f32[20, 32]
  forall n < 20, k < 32
    y[n, k] = 0
  forall n < 20, k < 32, t < 3, c < 8 where 0 <= n + 9 * t - 9 < 20
    y[n, k] += x[n + 9 * t - 9, c] * w[t, c, k]
"""


class Always(Greedy):
    """Greedy, but takes one option wherever it is asked about boxes."""

    def __init__(self, taken: str) -> None:
        self.taken = taken
        self.asked: list[Choice] = []

    def boxes(self, choice: Choice) -> Any:
        self.asked.append(choice)
        return self.taken


def made(text: str, approach: Approach | None = None, on: str = "host-avx512", **sizes: int) -> Any:
    """The job of a kernel, proved."""
    return compiled(parse_kernel(text), sizes, simulated(on), approach or Greedy(), check=True)


def said(job: Any) -> set[str]:
    return {d.label for d in job.trace.decisions if d.point == "boxes"}


def a_sum(text: str, **sizes: int) -> Nest:
    job = made(text, **sizes)
    assert job.cover is not None
    return next(n for n in nests_of(job.cover, job.system) if n.where)


def cut(nest: Nest, taken: str, resumed: bool = True) -> tuple[list[Nest], list[Choice]]:
    approach = Always(taken)
    return pieces(nest, Trace(approach), resumed=resumed), approach.asked


def points(nest: Nest) -> set[tuple[int, ...]]:
    axes = (range(nest.origin.get(a, 0), nest.origin.get(a, 0) + nest.length(a)) for a in nest.axes)
    found = (dict(zip(nest.axes, p, strict=True)) for p in product(*axes))
    return {tuple(p.values()) for p in found if all(w.evaluate(p) >= 0 for w in nest.where)}


@pytest.mark.parametrize(("sizes", "way"), [
    ({"H": 5, "W": 5, "C": 24, "K": 48}, BY_TERMS),
    ({"H": 24, "W": 20, "C": 2, "K": 16}, BY_RESULTS),
])  # fmt: skip
def test_what_goes_through_less_is_taken(sizes, way):
    """Weights larger than the image are read once by boxes of terms; a large image is gone through once by boxes of
    results."""
    job = made(USUAL, **sizes)
    assert said(job) == {way}
    judge(parse_kernel(USUAL), sizes, job, 1)


@pytest.mark.parametrize("way", [BY_RESULTS, BY_TERMS])
@pytest.mark.parametrize("text", [STRIDED, STENCIL, POOLING, FILTER], ids=["strided", "stencil", "pooling", "filter"])
def test_sums_of_other_kinds_are_right_and_proved_either_way(text, way):
    approach = Always(way)
    job = made(text, approach)
    assert approach.asked
    assert said(job) == {way}
    judge(parse_kernel(text), {}, job, 2)


def test_boxes_of_terms_have_one_row_of_weights_each():
    found, asked = cut(a_sum(USUAL, H=5, W=5, C=24, K=48), BY_TERMS)
    assert len(asked) == 1
    assert len(found) == 9
    assert {(n.length("r"), n.length("s")) for n in found} == {(1, 1)}
    assert sorted((n.length("h"), n.length("v")) for n in found) == sorted(product((4, 5, 4), repeat=2))


@pytest.mark.parametrize("way", [BY_RESULTS, BY_TERMS])
def test_boxes_are_the_points_once_each(way):
    nest = a_sum(USUAL, H=3, W=4, C=2, K=16)
    found, _ = cut(nest, way)
    assert len(found) > 1
    assert not any(n.where for n in found)
    every = [points(n) for n in found]
    assert set.union(*every) == points(nest)
    assert sum(map(len, every)) == len(points(nest))


def test_costs_are_the_bytes_gone_through():
    """Counted one by one: of x and w what is read, of y twice what is added to."""
    nest = a_sum(USUAL, H=4, W=3, C=2, K=16)
    _, (choice,) = cut(nest, BY_RESULTS)
    for option, cost in zip(choice.options, choice.costs or (), strict=True):
        total = 0
        for box in cut(nest, option)[0]:
            every = [dict(zip(box.axes, p, strict=True)) for p in points(box)]
            for u in box.uses:
                total += len({tuple(r.evaluate(p) for r in u.index) for p in every}) * 4 * (u.reads + u.writes)
        assert cost == total, option


def test_sums_that_cannot_be_gone_on_from_are_cut_by_results():
    nest = a_sum(USUAL, H=3, W=4, C=2, K=16)
    by_results, _ = cut(nest, BY_RESULTS)
    assert cut(nest, BY_TERMS, resumed=False) == (by_results, [])
    begins = replace(nest, uses=tuple(replace(u, reads=False) if u.writes else u for u in nest.uses))
    found, asked = cut(begins, BY_TERMS)
    assert [n.origin for n in found] == [n.origin for n in by_results]
    assert not asked


def test_terms_with_an_order_are_not_taken_apart():
    text = CONVOLUTION.replace("{permits}", "nothing")
    job = made(text, H=3, W=4, C=2, K=16)
    assert not said(job)
    judge(parse_kernel(text), {"H": 3, "W": 4, "C": 2, "K": 16}, job, 3)


@pytest.mark.parametrize("text", [STEPS, STEEP], ids=["more", "too many"])
def test_more_boxes_of_terms_than_of_results_are_no_option(text):
    """Only the first result lacks terms, three or nine."""
    approach = Always(BY_TERMS)
    job = made(text, approach)
    assert not approach.asked
    judge(parse_kernel(text), {}, job, 4)
    assert len(cut(a_sum(text), BY_TERMS)[0]) == 2


def test_what_is_one_box_either_way_is_not_asked_about():
    inside = USUAL.replace("where 0 <= h + r - 1 < H, 0 <= v + s - 1 < W", "where 1 <= r, 1 <= s")
    text = inside.replace("h + r - 1", "h").replace("v + s - 1", "v")
    found, asked = cut(a_sum(text, H=3, W=4, C=2, K=16), BY_TERMS)
    assert len(found) == 1
    assert not asked


def test_boxes_of_terms_where_those_of_results_are_too_many():
    """Nine results at each end have other terms than their neighbours: there are three boxes of terms."""
    found, asked = cut(a_sum(DILATED), BY_RESULTS)
    assert [(n.length("n"), n.length("t")) for n in found] == [(11, 1), (20, 1), (11, 1)]
    assert not asked
    judge(parse_kernel(DILATED), {}, made(DILATED), 5)
