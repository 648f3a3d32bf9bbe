"""Sums under conditions in boxes: by the results that they make, or by the terms that they add."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from isam.approach.choice import Approach, Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof.certificate import examine
from isam.schedule.tree import Deal, Issue, Loop, distinct, mapped
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.pieces import BY_RESULTS, BY_TERMS, LINES, in_turn, pieces
from isam.scheduler.plan import Group, Plan, StagedBox
from isam.scheduler.plans.lines import goes_one_by_one, with_boxes_inside
from isam.scheduler.plans.single import plain
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


FIVE = USUAL.replace("3, 3, C", "5, 5, C").replace("< 3", "< 5").replace("- 1", "- 2")
EVERY_OTHER = USUAL.replace("x: f32[H, W, C]", "x: f32[2 * H, 2 * W, C]").replace(
    "0 <= h + r - 1 < H, 0 <= v + s - 1 < W", "0 <= 2 * h + r - 1 < 2 * H, 0 <= 2 * v + s - 1 < 2 * W").replace(
    "x[h + r - 1, v + s - 1, c]", "x[2 * h + r - 1, 2 * v + s - 1, c]")  # fmt: skip
DEPTHWISE = """kernel depthwise(H, W, C)
  permits reassociate, contract
  in    x: f32[H, W, C]
  const w: f32[3, 3, C]
  out   y: f32[H, W, C]
  forall h < H, v < W, c < C
    y[h, v, c] = 0
  forall h < H, v < W, c < C, r < 3, s < 3 where 0 <= h + r - 1 < H, 0 <= v + s - 1 < W
    y[h, v, c] += x[h + r - 1, v + s - 1, c] * w[r, s, c]
"""
LAST = """kernel last()
  permits reassociate, contract
  in    x: f32[9, 7]
  const w: f32[3, 16]
  out   y: f32[9, 7, 16]
  forall h < 9, v < 7, k < 16
    y[h, v, k] = 0
  forall h < 9, v < 7, k < 16, r < 3 where 0 <= h + r - 1 < 9
    y[h, v, k] += x[h + r - 1, v] * w[r, k]
"""


class Always(Greedy):
    """Greedy, but takes one option wherever it is asked about boxes."""

    def __init__(self, taken: str) -> None:
        self.taken = taken
        self.asked: list[Choice] = []

    def boxes(self, choice: Choice) -> Any:
        self.asked.append(choice)
        return self.taken if self.taken in choice.options else choice.options[0]


def made(text: str, approach: Approach | None = None, on: str = "host-avx512", **sizes: int) -> Any:
    """The job of a kernel, proved."""
    return compiled(parse_kernel(text), sizes, simulated(on), approach or Greedy(), check=True)


def said(job: Any) -> set[str]:
    return {d.label for d in job.trace.decisions if d.point == "boxes"}


def a_sum(text: str, **sizes: int) -> Nest:
    job = made(text, **sizes)
    assert job.cover is not None
    return next(n for n in nests_of(job.cover, job.system) if n.where)


def cut(nest: Nest, taken: str, resumed: bool = True, lines: bool = False) -> tuple[list[Nest], list[Choice]]:
    approach = Always(taken)
    return pieces(nest, Trace(approach), resumed=resumed, lines=lines), approach.asked


def points(nest: Nest) -> list[tuple[int, ...]]:
    """Of the kernel's axes."""
    axes = (range(nest.origin.get(a, 0), nest.origin.get(a, 0) + nest.length(a)) for a in nest.axes)
    found = (dict(zip(nest.axes, p, strict=True)) for p in product(*axes))
    inside = [p for p in found if all(w.evaluate(p) >= 0 for w in (*nest.where, *nest.within))]
    return [tuple(nest.moved[a].evaluate(p) if a in nest.moved else p[a] for a in sorted(nest.axes)) for p in inside]


@pytest.mark.parametrize(("sizes", "way"), [
    ({"H": 5, "W": 5, "C": 24, "K": 48}, BY_TERMS + LINES),
    ({"H": 24, "W": 20, "C": 2, "K": 16}, BY_RESULTS + LINES),
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
    """Those of one shape lie at equal distances: the taps on either side of the middle are one after the other."""
    _, (choice,) = cut(a_sum(USUAL, H=5, W=5, C=24, K=48), BY_TERMS)
    assert choice.context["boxes"] == [9, 9]
    boxes = choice.context["_boxes"][1]
    assert {(b["r"][1], b["s"][1]) for b in boxes} == {(1, 1)}
    assert sorted((b["h"][1], b["v"][1]) for b in boxes) == sorted(product((4, 5, 4), repeat=2))
    found, _ = cut(a_sum(USUAL, H=5, W=5, C=24, K=48), BY_TERMS)
    assert {(n.length("h"), n.length("v"), n.length("r"), n.length("s")) for n in found} == {
        (4, 4, 2, 2), (4, 5, 2, 1), (5, 4, 1, 2), (5, 5, 1, 1)}  # fmt: skip


@pytest.mark.parametrize("way", [BY_RESULTS, BY_TERMS, BY_RESULTS + LINES, BY_TERMS + LINES])
@pytest.mark.parametrize("text", [USUAL, FIVE, EVERY_OTHER], ids=["three", "five", "every other"])
def test_boxes_are_the_points_once_each(text, way):
    nest = a_sum(text, H=6, W=7, C=2, K=16)
    found, (choice,) = cut(nest, way, lines=True)
    assert way in choice.options
    assert len(found) > 1
    assert not any(n.where for n in found)
    assert all(bool(n.within) == way.endswith(LINES) for n in found)
    assert sorted(p for n in found for p in points(n)) == sorted(points(nest))


@pytest.mark.parametrize("way", [BY_RESULTS + LINES, BY_TERMS + LINES])
@pytest.mark.parametrize("on", ["host-avx512", "host-avx2"])
@pytest.mark.parametrize("text", [USUAL, FIVE, EVERY_OTHER, DEPTHWISE], ids=["three", "five", "every other", "each"])
def test_rows_in_lines_are_right_and_proved(text, on, way):
    """The loop over rows of a tap, or over taps of a row, has as many iterations as conditions leave."""
    approach = Always(way)
    sizes = {"H": 4, "W": 6, "C": 20, "K": 16}
    sizes = {s: n for s, n in sizes.items() if s in {str(k.name) for k in parse_kernel(text).syms}}
    job = made(text, approach, on, **sizes)
    assert said(job) == {way}
    bounded = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.trip is None]
    assert {n.axis for n in bounded} <= {"h", "r"}
    assert bounded
    judge(parse_kernel(text), sizes, job, 2)


def test_a_loop_that_keeps_fewer_conditions_is_refused():
    """Rows that lie outside the image are read, and points are executed that are none of the kernel."""
    job = made(USUAL, H=5, W=5, C=24, K=48)
    for side in ("lo", "hi"):
        def wider(n: Any, side: str = side) -> Any:
            n = mapped(n, wider)
            return replace(n, **{side: getattr(n, side)[:1]}) if isinstance(n, Loop) and n.trip is None else n

        wrong = replace(job.schedule, call=wider(job.schedule.call))
        assert {v.kind for v in examine(wrong)[1]} & {"bounds", "coverage"}, side


def test_weights_are_bound_in_panels_that_stay_over_rows_in_lines():
    job = made(USUAL, H=5, W=5, C=24, K=96)
    assert said(job) == {BY_TERMS + LINES}
    read = {o.place.base for n in distinct(job.schedule.call) if isinstance(n, Issue) for o in n.operands
            if o.tile.buffer == "w" and o.place.memory == "ram"}  # fmt: skip
    assert read
    assert "w" not in read


@pytest.mark.parametrize("text", [FILTER, DILATED, STENCIL, LAST], ids=["one axis", "far", "lanes", "last"])
def test_axes_that_blocks_need_are_not_in_lines(text):
    """The only results that calls take one by one, those that lie in lanes, the axis that a sum goes along inside."""
    _, asked = cut(a_sum(text), BY_RESULTS, lines=True)
    assert not any(LINES in option for choice in asked for option in choice.options)


def test_rows_in_lines_only_where_loops_may_have_such_bounds():
    nest = a_sum(USUAL, H=4, W=5, C=2, K=16)
    _, (choice,) = cut(nest, BY_TERMS)
    assert choice.options == (BY_RESULTS, BY_TERMS)
    _, asked = cut(nest, BY_TERMS, resumed=False, lines=True)
    assert not asked


def in_lines() -> Plan:
    """A plan of boxes of lines: one call in each iteration."""
    found, _ = cut(a_sum(USUAL, H=5, W=5, C=24, K=48), BY_TERMS + LINES, lines=True)
    return plain(Group(tuple(found[:1])))


def test_what_lies_around_lines_is_not_copied_whole():
    """Rows of the image that a tap outside of it would read; weights lie along one of the two axes alone."""
    plan = in_lines()
    axes = [a for a, _ in plan.order]
    inner = 1 + max(axes.index("h"), axes.index("r"))
    stages = [StagedBox("x", 0, "ram", (0, 1, 2)), StagedBox("x", inner - 1, "ram", (0, 1, 2)),
              StagedBox("x", inner, "ram", (0, 1, 2)), StagedBox("w", 0, "ram", (0, 1, 2, 3))]  # fmt: skip
    assert with_boxes_inside(replace(plan, stages=tuple(stages))).stages == tuple(stages[2:])


def test_plans_whose_blocks_have_several_lines_are_none():
    plan = in_lines()
    assert goes_one_by_one(plan)
    at = [a for a, _ in plan.order].index("h")
    two = replace(plan, order=tuple((a, 2 if a == "h" else n) for a, n in plan.order))
    again = replace(plan, order=(("h", 1), *plan.order))
    first = replace(plan, order=(plan.order[at], *(o for o in plan.order if o[0] != "h")), deals=(Deal("cores"),))
    other = replace(plan, order=(("k", 16), *(o for o in plan.order if o[0] != "k")), deals=(Deal("cores"),))
    pieces = replace(plan, stages=(StagedBox("w", 0, "ram", (0, 1, 2, 3), by=1),))
    assert not any(map(goes_one_by_one, (two, again, first, replace(plan, double_buffered=frozenset({at})), pieces)))
    assert goes_one_by_one(other)


def test_what_no_other_results_share_is_read_for_each_row():
    """A column of its own at each side, of which blocks have one row: weights are read for every row of it."""
    nest = a_sum(USUAL, H=6, W=9, C=2, K=16)
    _, (choice,) = cut(nest, BY_RESULTS, lines=True)
    costs = dict(zip(choice.options, choice.costs or (), strict=True))
    w, rows, taps = 2 * 16 * 4, 6, 3
    x, y = 6 * 2 * 4, 6 * 16 * 4 * 2
    side = 2 * x + y + 2 * taps * w * rows
    inner = 9 * x + 7 * y + 3 * taps * w
    assert costs[BY_RESULTS + LINES] == 2 * side + inner
    assert costs[BY_TERMS + LINES] == 2 * (8 * x + 8 * y) + 9 * x + 9 * y + 3 * taps * w


def test_boxes_far_apart_by_turns_are_not_joined():
    """Two steps of one distance and one of another: two of them are one after the other."""
    nest = a_sum(USUAL, H=5, W=5, C=2, K=16)
    (box, *_), rest = cut(nest, BY_TERMS)[1][0].context["_boxes"][1], []
    for s, v in ((0, 1), (1, 0), (5, 9)):
        rest.append({**box, "s": (s, 1), "v": (v, 3)})
    joined = in_turn(nest, rest)
    assert [b["s"] for b, _ in joined] == [(0, 2), (5, 1)]
    assert [set(moved) for _, moved in joined] == [{"s", "v"}, set()]
    assert joined[0][1]["s"].evaluate({"s": 1}) == 1
    assert joined[0][1]["v"].evaluate({"s": 1, "v": 3}) == 2


def test_boxes_of_results_are_not_one_after_the_other():
    """Weights that each read once would lie along two axes."""
    found, _ = cut(a_sum(USUAL, H=5, W=5, C=2, K=16), BY_RESULTS)
    assert len(found) == 9
    assert not any(n.moved for n in found)


def test_costs_are_the_bytes_gone_through():
    """Counted one by one: of x and w what is read, of y twice what is added to."""
    nest = a_sum(USUAL, H=4, W=3, C=2, K=16)
    _, (choice,) = cut(nest, BY_RESULTS)
    for option, cost in zip(choice.options, choice.costs or (), strict=True):
        total = 0
        boxes = choice.context["_boxes"][choice.options.index(option)]
        for b in boxes:
            box = replace(nest, where=(), extents={a: Affine((), n) for a, (_, n) in b.items()},
                          origin={a: o for a, (o, _) in b.items()})  # fmt: skip
            every = [dict(zip(sorted(box.axes), p, strict=True)) for p in points(box)]
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
    assert [(n.length("n"), n.length("t")) for n in found] == [(11, 2), (20, 1)]
    assert not asked
    judge(parse_kernel(DILATED), {}, made(DILATED), 5)
