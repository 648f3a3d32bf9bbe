"""What steps of a recurrent loop hand on to each other in near memory (SCH-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import isam
from isam.ir.text import parse_kernel
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Node, Seq, distinct, leaves
from tests.pipeline import compiled, judge, simulated
from tests.systems.test_parts import TEXT as PRODUCTS

PREFIX = """kernel prefix(T)
  in    x: f32[T]
  out   y: f32[T]
  inout s: f32
  loop t < T
    s += x[t]
    y[t] = s
"""
FILTER = """kernel biquad(T, C)
  in  x: f32[T, C]
  in  k: f32[5]
  out y: f32[T, C]
  forall c < C
    u[c] = 0
    v[c] = 0
  loop t < T
    forall c < C
      w[c] = k[0] * x[t, c] + u[c]
    forall c < C
      u[c] = k[1] * x[t, c] - k[3] * w[c] + v[c]
    forall c < C
      v[c] = k[2] * x[t, c] - k[4] * w[c]
    forall c < C
      y[t, c] = w[c]
"""
# read, then written anew by calls that do not add to what is there
MEAN = """kernel mean(T)
  in  x: f32[T]
  out y: f32[T]
  s = 0
  loop t < T
    a = 0.9 * s
    b = 0.1 * x[t]
    s = a + b
    y[t] = s
"""
# of what a step reads some was not written yet, beside what was
CORNERS = """kernel corners(M, N)
  in  a: i32[N + 1]
  in  b: i32[M]
  out d: i32[M + 1, N + 1]
  forall j < N + 1
    d[0, j] = a[j]
  forall i < M
    d[i + 1, 0] = b[i]
  loop i < M
    loop j < N
      d[i + 1, j + 1] = d[i, j + 1] + d[i + 1, j] + d[i, j]
"""
# one element of what a step keeps in a vector is read by itself, and another one is written so
PARTS = """kernel parts(T)
  in    x: f32[T, 8]
  inout v: f32[8]
  out   y: f32[T]
  loop t < T
    forall i < 8
      v[i] = v[i] * x[t, i]
    y[t] = v[3]
    v[5] = x[t, 0]
"""
CELL = """kernel cell(T, H)
  in    x: f32[T, H]
  const w: f32[H, H]
  inout h: f32[H]
  out   y: f32[T, H]
  permits reassociate
  loop t < T
    forall j < H
      g[j] = x[t, j]
    forall j < H, k < H
      g[j] += h[k] * w[k, j]
    forall j < H
      h[j] = tanh(g[j])
    forall j < H
      y[t, j] = h[j]
"""
INNER = """kernel inner(R, T)
  in    x: f32[R, T]
  inout s: f32
  out   y: f32[R]
  loop r < R
    loop t < T
      s += x[r, t]
    y[r] = s
    s = s * s
"""
SOMETIMES = """kernel sometimes(T, H)
  in    x: f32[T]
  inout s: f32
  inout m: f32[H]
  loop t < T
    s += x[t]
    forall i < H where i <= t
      m[i] += s
"""
ALL = {"prefix": (PREFIX, {"T": 7}), "filter": (FILTER, {"T": 5, "C": 21}), "parts": (PARTS, {"T": 4}),
       "mean": (MEAN, {"T": 9}), "corners": (CORNERS, {"M": 3, "N": 4}),
       "cell": (CELL, {"T": 4, "H": 8}), "inner": (INNER, {"R": 3, "T": 4}),
       "sometimes": (SOMETIMES, {"T": 6, "H": 4})}  # fmt: skip


def made(text: str, on: str = "host-avx512", check: bool = False, **sizes: int) -> Any:
    return compiled(parse_kernel(text), sizes, simulated(on), check=check)


def loop_over(job: Any, axis: str) -> Loop:
    return next(n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis == axis)


def moved(node: Node) -> set[str]:
    """The buffers that moves inside touch."""
    return {o.tile.buffer for n in distinct(node) if isinstance(n, Issue) and n.is_move for o in n.operands}


@pytest.mark.parametrize("on", ["host-avx2", "host-avx512", "toy", "casestudy"])
@pytest.mark.parametrize("name", ALL)
def test_every_machine_computes_what_is_written(name: str, on: str) -> None:
    text, sizes = ALL[name]
    judge(parse_kernel(text), sizes, made(text, on, check=True, **sizes), 1)


@pytest.mark.parametrize(
    ("name", "on", "state", "streamed"),
    [("mean", "host-avx512", {"s", "#f32:0.9", "#f32:0.1"}, {"x", "y"}),
     ("mean", "toy", {"s", "#f32:0.9", "#f32:0.1"}, {"x", "y"}),
     ("prefix", "host-avx512", {"s"}, {"x", "y"}), ("prefix", "toy", {"s"}, {"x", "y"}),
     ("filter", "host-avx512", {"u", "v", "k"}, {"x", "y"}), ("filter", "toy", {"u", "v", "k"}, {"x", "y"})],
)  # fmt: skip
def test_what_stays_is_brought_once_and_goes_home_once(name: str, on: str, state: set[str], streamed: set[str]) -> None:
    text, sizes = ALL[name]
    found = loop_over(made(text, on, **(sizes | ({"C": 16} if name == "filter" else {}))), "t")
    assert moved(found.body) == streamed
    assert moved(found.enter) == state
    assert moved(found.exit) == {b for b in state if b in "suv"}


def test_what_only_the_next_group_wants_goes_no_further() -> None:
    """``w`` is handed from group to group; it is no state of the filter."""
    found = loop_over(made(FILTER, T=5, C=16), "t")
    assert "w" not in moved(found)


def test_what_is_handed_from_group_to_group_alone_does_not_go_home() -> None:
    """A product, then its activation: on the case study's machine the state and the sums stay in tiles; of a step
    nothing is moved but what it takes and gives."""
    job = made(PRODUCTS, "casestudy", check=True, B=32, X=32, H=32)
    found = loop_over(job, "t")
    assert moved(found.body) == {"x", "ys"}
    assert moved(found.enter) == {"w", "h"}
    assert moved(found.exit) == {"h"}
    assert not {s.name for s in job.schedule.workspace} & {"a"}
    assert "a" not in job.schedule.homes


def test_what_is_read_behind_the_loop_goes_home() -> None:
    """The sums of the last step are an output's beginning, and those that the next time of a loop around begins with
    are its own."""
    text = PRODUCTS.replace("  out   ys", "  out   z: f32[B, H]\n  out   ys") + """  forall i < B, j < H
    z[i, j] = a[i, j]
"""
    text = text.replace("  loop t < T", "  forall i < B, j < H\n    a[i, j] = 1\n  loop t < T")
    job = made(text, "casestudy", check=True, B=32, X=32, H=32)
    assert "a" in moved(loop_over(job, "t"))
    for t in (0, 3):
        judge(parse_kernel(text), {"B": 32, "X": 32, "H": 32}, job, t, {"T": t})


def test_of_a_single_step_nothing_is_gained() -> None:
    alone = PREFIX.replace("    y[t] = s\n", "").replace("  out   y: f32[T]\n", "")
    assert moved(loop_over(made(alone, T=2), "t").exit) == {"s"}
    found = loop_over(made(alone, T=1), "t")
    assert not leaves(found.enter)
    assert not leaves(found.exit)


def test_steps_that_move_much_else_stay_as_they_are() -> None:
    """What takes one call in hundreds is no reason to hold a register."""
    text = CELL.replace("tanh(g[j])", "g[j] * x[0, 0]")
    found = loop_over(made(text, T=4, H=256), "t")
    assert not leaves(found.enter)


@pytest.mark.parametrize("t", [0, 1, 6])
def test_no_step_leaves_everything_as_it_was(t: int) -> None:
    """The number of steps shows at run time: with none, nothing may go home that was never brought."""
    job = made(PREFIX, check=True)
    assert moved(loop_over(job, "t").exit) == {"s"}
    judge(parse_kernel(PREFIX), {}, job, 2, {"T": t})


@pytest.mark.parametrize("part", ["enter", "exit"])
def test_a_loop_that_forgets_its_state_is_refused(part: str) -> None:
    schedule = made(PREFIX, T=7).schedule

    def without(node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(map(without, node.children)))
        return replace(node, **{part: Seq()}) if isinstance(node, Loop) else node

    assert not check_tree(schedule)
    assert check_tree(replace(schedule, call=without(schedule.call)))


@pytest.mark.parametrize(("t", "c"), [(9, 16), (33, 21), (1, 1), (40, 3)])
def test_native_filters(t: int, c: int) -> None:
    rng = np.random.default_rng(t)
    x, k = rng.standard_normal((t, c)).astype("f4"), np.array([0.3, 0.5, 0.2, -0.4, 0.1], "f4")
    y = isam.compile(FILTER, sizes={"T": t, "C": c}, cache=False)(x, k)
    u, v, want = np.zeros(c), np.zeros(c), []
    for row in x.astype("f8"):
        w = k[0] * row + u
        u, v = k[1] * row - k[3] * w + v, k[2] * row - k[4] * w
        want.append(w)
    np.testing.assert_allclose(y, np.array(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [1, 5, 100])
def test_native_prefix_sums(n: int) -> None:
    x, s = np.random.default_rng(n).integers(-9, 9, n).astype("f4"), np.array(3, "f4")
    y = isam.compile(PREFIX, sizes={"T": n}, cache=False)(x, s)
    got = y[0] if isinstance(y, tuple) else y
    np.testing.assert_array_equal(got, 3 + np.cumsum(x))
    assert s == 3 + x.sum()


AFTER = """kernel after()
  in  x: i32[4, 8]
  out z: i32[4]
  forall a < 1
    z[a] = 0
  loop t < 4
    z[t] = x[t, 0]
"""


def test_a_step_begins_behind_what_was_put_there_before_it() -> None:
    """What it brings does not wait for room that is just being read."""
    job = made(AFTER, "casestudy")
    (zeroed,) = (o for n in leaves(job.schedule.call) if isinstance(n, Issue) for o in n.operands if o.name == "D"
                 and o.place.memory == "sp")  # fmt: skip
    first = next(n for n in leaves(loop_over(job, "t").body) if isinstance(n, Issue))
    assert [o.place.offset for o in first.operands if o.place.memory == "sp"] != [zeroed.place.offset]


@pytest.mark.parametrize("on", ["host-avx512", "toy", "casestudy"])
@pytest.mark.parametrize("name", [*ALL, "kept"])
def test_nothing_that_was_only_tried_has_room(name: str, on: str) -> None:
    kept = PREFIX.replace("s += x[t]", "s += x[t] * k[0]").replace("  out ", "  in    k: f32[1]\n  out ")
    text, sizes = {**ALL, "kept": (kept, {"T": 7})}[name]
    schedule = made(text, on, **sizes).schedule
    nodes = (n for part in (schedule.bind, schedule.call) for n in distinct(part) if isinstance(n, Issue))
    assert {s.name for s in schedule.workspace} <= {o.place.base for n in nodes for o in n.operands}
