"""Conditions that keep apart what two statements touch: nothing waits for elements of the other triangle."""

from __future__ import annotations

import pytest

from isam.ir.text import parse
from isam.proof.legal import Legality
from isam.proof.order import Order
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from tests.pipeline import kept

TURNED = """kernel turned(N)
  inout a: f32[N, N]
  in b: f32[N, N]
  inout t: f32[N, N]
  forall i < N, j < N where {0}
    t[i, j] = a[j, i] + b[i, j]
  forall i < N, j < N where {1}
    a[i, j] = b[i, j]
"""
SIDES = {
    "the other triangle": ("j < i", "j < i", set()),
    "the same triangle": ("j < i", "i < j", {"anti"}),
    "the diagonal in both": ("j <= i", "j <= i", {"anti"}),
    "beside each other": ("j + 2 <= i", "i <= j + 1, j <= i + 1", set()),
    "one in common": ("j + 1 <= i", "i <= j + 1, j <= i + 1", {"anti"}),
    "everything": ("i >= 0", "i >= 0", {"anti"}),
}
STEPS = """kernel steps(N)
  inout a: f32[N, N]
  loop k < N
    forall j < N where {0}
      a[k, j] += a[{1}, j]
"""


def kinds(text: str, n: int) -> set[str]:
    """The kinds of conflicts about the argument that the judge of orders finds, of a schedule that it accepts."""
    s = kept(parse(text), "host-generic", N=n).schedule
    assert s is not None
    out = Findings()
    order = Order(s, Legality(s), Isl(), out)
    order.check()
    assert not out.found
    return {c.kind for cs in order.conflicts.values() for c in cs if c.first.buffer == "a"}


@pytest.mark.parametrize("name", SIDES)
def test_triangles(name: str):
    one, two, expected = SIDES[name]
    assert kinds(TURNED.format(one, two), 9) == expected


def test_steps_of_a_loop_may_meet_where_those_of_one_do_not():
    """What is asked is about all steps of the loops around: row k is written in one, and read in the next."""
    assert kinds(STEPS.format("j < k", "0"), 9) == {"anti", "flow", "output"}
    assert kinds(STEPS.format("j < k", "N - 1 - k"), 9) == {"anti", "flow", "output"}
