"""Loops over a size and the same loops in parts, compared by value: what is equal is accepted, what is not is not."""

from __future__ import annotations

import pytest

from isam.ir.text import parse
from isam.proof.equivalence import equivalent

HEAD = """  in x: f32[T, 3]
  in w: f32[3, 3]
  inout h: f32[3]
  out ys: f32[T, 3]
"""
STEP = """
forall j < 3
  {a}[j] = 0
forall j < 3, k < 3
  {a}[j] += x[{t}, k] * w[k, j]
forall j < 3
  h[j] = tanh({a}[j] + h[j])
  ys[{t}, j] = h[j]
"""


def step(indent: int, t: str, a: str = "a") -> str:
    return STEP.format(t=t, a=a).replace("\n", "\n" + " " * indent).rstrip()


WRITTEN = f"kernel k(T)\n{HEAD}  loop t < T{step(4, 't')}\n"
PARTS = f"""kernel k(T, Q = T // 4)
{HEAD}  loop c < Q
    loop s < 4{step(6, "4*c + s")}
  loop r < T - 4*Q{step(4, "4*Q + r", "b")}
"""
AHEAD = f"""kernel k(T, Q = T // 4)
{HEAD}  loop c < Q
    forall s < 4, j < 3
      p[s, j] = 0
    forall s < 4, j < 3, k < 3
      p[s, j] += x[4*c + s, k] * w[k, j]
    loop s < 4
      forall j < 3
        h[j] = tanh(p[s, j] + h[j])
        ys[4*c + s, j] = h[j]
  loop r < T - 4*Q{step(4, "4*Q + r", "b")}
"""


@pytest.mark.parametrize("text", [PARTS, AHEAD], ids=["in parts", "products of a part ahead"])
def test_the_same_steps_in_parts_are_the_same(text: str) -> None:
    assert equivalent(parse(WRITTEN), parse(text))


@pytest.mark.parametrize(("old", "new"), [
    ("x[4*Q + r", "x[4*Q"), ("x[4*Q + r", "x[r"), ("ys[4*Q + r", "ys[r"), ("T - 4*Q", "0"), ("T - 4*Q", "T"),
    ("x[4*c + s", "x[4*c"), ("x[4*c + s", "x[c + s"), ("ys[4*c + s", "ys[4*c"), ("p[s, j] + h", "p[0, j] + h"),
    ("T // 4", "T // 5"), ("T // 4", "T // 3"), ("(T, Q = T // 4)", "(T, Q)"), ("c < Q", "c < T"),
])  # fmt: skip
def test_other_steps_are_not(old: str, new: str) -> None:
    assert old in AHEAD
    assert not equivalent(parse(WRITTEN), parse(AHEAD.replace(old, new)))


def test_what_is_handed_from_a_part_to_what_is_left_over_is_followed() -> None:
    written = "kernel k(T)\n  in x: f32[T]\n  inout h: f32\n  loop t < T\n    h[] = h[] * 2 + x[t]\n"
    parts = """kernel k(T, Q = T // 4)
  in x: f32[T]
  inout h: f32
  loop c < Q
    loop s < 4
      h[] = h[] * 2 + x[4*c + s]
  loop r < T - 4*Q
    h[] = {} * 2 + x[4*Q + r]
"""
    assert equivalent(parse(written), parse(parts.format("h[]")))
    assert not equivalent(parse(written), parse(parts.format("x[r]")))
