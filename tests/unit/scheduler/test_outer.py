"""Domains bounded by the variables of loops around them: how they are bounded, that what is walked is right and proved,
and that it is mostly blocks."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import isam
from isam.compiler.stages import new_job, run_stages
from isam.cost.timeline import timeline
from isam.ir.affine import Affine
from isam.ir.kernel import recurrences
from isam.ir.text import parse_kernel
from isam.proof.certificate import examine
from isam.schedule.tree import Bound, Loop, Node, Seq, distinct
from isam.scheduler.nests import nests_of
from isam.scheduler.outer import Outer, Side, outer
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge, simulated

LU = """kernel lu(N)
  inout a: f64[N, N]
  temp l: f64[N]
  temp u: f64[N]
  temp p: f64
  loop k < N
    p = 1 / a[k, k]
    forall i < N where i > k
      l[i] = a[i, k] * p
      u[i] = a[k, i]
    forall i < N where i > k
      a[i, k] = l[i]
    forall i < N, j < N where i > k, j > k
      a[i, j] += -(l[i] * u[j])
"""
STEPS = """kernel steps(T, N, M)
  inout a: f32[N, M]
  in    x: f32[N]
  in    y: f32[M]
  loop k < T
    forall i < N, j < M where {where}
      a[i, j] = a[i, j] * 0.5 + x[i] * y[j]
"""
READ = """kernel read(N)
  inout a: f32[N, N]
  in    x: f32[N]
  temp  t: f32[N]
  loop k < N
    forall j < N where {0}
      t[j] = x[j] * 0.5
    forall i < N, j < N where {0}, {1}
      a[i, j] = a[i, j] + t[j] * t[i]
"""
ORTHOGONAL = """kernel orthogonal(N)
  inout a: f64[N, N]
  temp  t: f64[N]
  loop k < N
    forall j < N where j < k
      t[j] = 0
    forall j < N, i < N where j < k
      t[j] += a[i, j] * a[i, k]
    forall j < N, i < N where j < k
      a[i, k] += -(t[j] * a[i, j])
"""

SPILT = """kernel spilt(N, M)
  permits reassociate
  in    x: f32[N, M]
  in    y: f32[M]
  inout a: f32[N]
  loop t < 2
    forall i < N, j < M where i > t, j <= t
      a[i] min= select(x[i, j] != y[j], x[i, j], y[j])
"""


def domain(where: str, sizes: dict[str, int]) -> Outer | None:
    job = run_stages(new_job(parse_kernel(STEPS.format(where=where)), simulated("host-avx512"), sizes, None), "cover")
    assert job.cover is not None
    nest = nests_of(job.cover, simulated("host-avx512"))[-1]
    return outer(nest, {r.axis.name: r.axis.extent for r in recurrences(job.cover.kernel.body)}, exact=False)


K = Affine.of("k")


@pytest.mark.parametrize(("where", "sides"), [
    ("j > k", [Side("j", K + 1, 50)]),
    ("j > k, i > k", [Side("i", K + 1, 40), Side("j", K + 1, 50)]),
    ("j <= k, i >= 2 * k", [Side("i", K * 2, 40), Side("j", K + 1, 0, upper=True)]),
    ("j > k, j >= 0, j < 45", [Side("j", K + 1, 45)]),
    ("j + k < 50", [Side("j", 50 - K, 0, upper=True)]),
    ("j > k, i >= 3", [Side("j", K + 1, 50)]),  # the other axis is shorter
    ("j > k, j <= k + 3", None),  # two lines
    ("j >= k - 5", None),  # the line leaves the box
    ("i + j > k", None),
    ("2 * j > k", None),
])  # fmt: skip
def test_what_bounds_an_axis(where: str, sides: list[Side] | None) -> None:
    found = domain(where, {"T": 30, "N": 40, "M": 50})
    assert (None if found is None else list(found.sides)) == sides


@pytest.mark.parametrize("n", [1, 2, 17, 65])
def test_elimination_is_right(n: int) -> None:
    rng = np.random.default_rng(n)
    a = rng.random((n, n)) + n * np.eye(n)
    want = a.copy()
    for k in range(n):
        want[k + 1 :, k] /= want[k, k]
        want[k + 1 :, k + 1 :] -= np.outer(want[k + 1 :, k], want[k, k + 1 :])
    isam.compile(isam.parse(LU), sizes={"N": n}, cache=False)(a)
    assert np.allclose(a, want, rtol=1e-12, atol=0)


def test_a_row_that_others_are_reduced_by_is_read_where_it_lies() -> None:
    """No copy of it is made: rows below it alone are written."""
    kernel = parse_kernel("""kernel gauss_jordan(N)
  inout A: f32[N, N]
  loop k < N
    forall i < N
      f[i] = A[i, k] / A[k, k]
    forall j < N
      p[j] = A[k, j]
    forall i < N, j < N where k < i
      A[i, j] += -f[i] * p[j]
""")
    with on_the_tree():
        job = compiled(kernel, {"N": 40}, simulated("host-avx512"), check=True)
    assert job.schedule is not None
    assert job.schedule.cover is not None
    judge(kernel, {"N": 40}, job)


def test_elimination_takes_blocks_and_keeps_what_is_between_in_registers() -> None:
    whole, sizes = LU.replace(" where i > k, j > k", "").replace(" where i > k", ""), {"N": 70}
    made, boxes = (compiled(parse_kernel(t), sizes, simulated("host-avx512")).schedule for t in (LU, whole))
    assert made is not None
    assert boxes is not None
    assert max(s.bytes for s in made.workspace) <= 8 * 70
    assert timeline(made).seconds < 0.7 * timeline(boxes).seconds


def conditions(r: random.Random) -> str:
    """One or two axes, each bounded below or above by a line over k."""
    out = []
    for axis in r.choice(("i", "j", "ij")):
        line = f"{r.choice((1, 1, 2, -1))} * k + {r.randint(-2, 40)}"
        out.append(f"{axis} {r.choice(('<', '<=', '>', '>='))} {line}")
    return ", ".join(out)


@pytest.mark.parametrize("seed", range(8))
def test_random_bounds_are_right_and_proved(seed: int) -> None:
    r = random.Random(seed)
    kernel = parse_kernel(STEPS.format(where=conditions(r)))
    sizes = {"T": r.randint(1, 4), "N": r.randint(1, 24), "M": r.randint(1, 80)}
    on = simulated(r.choice(("host-avx512", "toy")))
    judge(kernel, sizes, compiled(kernel, sizes, on, check=True), seed)


@pytest.mark.parametrize("text", [
    READ.format("j > k", "i > k"), READ.format("j <= k", "i <= k"), READ.format("j + k < N", "i + k < N"), ORTHOGONAL,
], ids=["from a line", "to a line", "to a falling line", "summed in between"])  # fmt: skip
def test_what_other_blocks_wrote_is_found_on_the_tree(text: str) -> None:
    """Nothing is executed step by step, as it is where steps are few."""
    kernel, sizes = parse_kernel(text), {"N": 18}
    with on_the_tree():
        job = compiled(kernel, sizes, simulated("host-avx512"), check=True)
    judge(kernel, sizes, job)


def points(node: Node, scope: dict[str, int], out: Counter[object]) -> Counter[object]:
    """The points that calls begin at, with their lengths, and how often."""
    if isinstance(node, Seq):
        for part in node.children:
            points(part, scope, out)
    elif isinstance(node, Loop):
        assert node.first is node.last is None
        for v in node.values(scope):
            points(node.body, {**scope, node.var: v}, out)
    elif node.nest is not None:
        out[node.nest, node.sizes, tuple(e.evaluate(scope) for _, e in node.point)] += 1
    return out


def moved(node: Node, var: str, side: str, number: int, by: int) -> Node:
    """The tree with one bound of one loop moved."""
    if isinstance(node, Seq):
        return Seq(tuple(moved(part, var, side, number, by) for part in node.children))
    if not isinstance(node, Loop):
        return node
    if node.var != var:
        return replace(node, body=moved(node.body, var, side, number, by))
    bounds = list(getattr(node, side))
    bounds[number] = Bound(bounds[number].expr + by, bounds[number].div)
    return replace(node, **{side: tuple(bounds)})


@pytest.mark.parametrize("where", ["j > k", "j <= k"])
def test_wrong_bounds_are_refused(where: str) -> None:
    kernel, sizes = parse_kernel(STEPS.format(where=where)), {"T": 10, "N": 1, "M": 10}
    made = compiled(kernel, sizes, simulated("host-avx512")).schedule
    assert made is not None
    right, wrong = points(made.call, {}, Counter()), 0
    loops = {n.var: n for n in distinct(made.call) if isinstance(n, Loop) and ".w" in n.var}
    bounds = [(n.var, side, i) for n in loops.values() for side in ("lo", "hi") for i in range(len(getattr(n, side)))]
    for (var, side, number), by in product(bounds, (-1, 1)):
        tree = moved(made.call, var, side, number, by)
        same = points(tree, {}, Counter()) == right
        assert same or examine(replace(made, call=tree))[1], f"{var} {side} {number} {by}"
        wrong += not same
    assert wrong > 6


@pytest.mark.parametrize("n", [19, 35, 70])
def test_what_does_not_stay_in_registers_lies_where_it_belongs(n: int) -> None:
    """Of a temporary there is room for a block, or for all of it: then a block lies in it where it is."""
    made = compiled(parse_kernel(SPILT), {"N": n, "M": 9}, simulated("host-avx512")).schedule
    assert made is not None
    assert not examine(made)[1]
