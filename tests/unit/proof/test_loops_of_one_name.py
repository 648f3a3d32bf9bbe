"""Recurrent loops beside each other whose axes have one name are two: all of the first is before the second."""

from __future__ import annotations

import isam
from isam.schedule.tree import Loop, Node, Seq
from tests.unit.proof.orders import V, at, judged, kernel, schedule, step, wrong

SUMS_THEN_PRODUCTS = kernel("""in a: f32[4]
out y: f32[4]
out r: f32
r[] = 0
loop k < 4
  r[] = r[] + a[k]
loop k < 4
  y[k] = r[] * a[k]""")
THERE_AND_BACK = """kernel solve(B, N)
  in    u: f64[B, N, N]
  in    f: f64[B, N]
  inout r: f64[B, N]
  out   x: f64[B, N]
  loop k < N
    forall z < B, i < N where i > k
      r[z, i] = r[z, i] - f[z, i] * r[z, k]
  loop {k} < N
    forall z < B
      x[z, N - 1 - {k}] = r[z, N - 1 - {k}] / u[z, N - 1 - {k}, N - 1 - {k}]
    forall z < B, i < N where i < N - 1 - {k}
      r[z, i] = r[z, i] - u[z, i, N - 1 - {k}] * x[z, N - 1 - {k}]
"""


def over(body: Node) -> Loop:
    return Loop("v", (at(0),), (at(4),), 1, body)


def test_one_after_the_other_is_right_and_both_in_one_loop_are_wrong() -> None:
    first = step(0, {}, {})
    add, multiply = (step(n, {"k": V("v")}, {}) for n in (1, 2))
    apart, together = Seq((first, over(add), over(multiply))), Seq((first, over(Seq((add, multiply)))))
    for tree, found in ((apart, set()), (together, {5})):
        s = schedule(SUMS_THEN_PRODUCTS, [(0,), (1,), (2,)], Seq(), tree)
        assert wrong(s, frozenset(), {}) == found
        assert {obligation for obligation, _, _ in judged(s)} == found


def test_nothing_of_the_second_has_to_come_before_the_first() -> None:
    """It was asked for where the two share a name, and cannot be had: large ones were not proved."""
    for name in ("k", "q"):
        fn = isam.compile(THERE_AND_BACK.format(k=name), sizes={"B": 200, "N": 40}, cache=False)
        assert fn.certificate is not None
