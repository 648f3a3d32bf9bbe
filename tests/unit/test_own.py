"""A refusal to which an Approach of the user's led says so, and at which choice point; others say nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

import isam
from isam.approach.choice import Approach, Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler import Refused
from tests.machines.small import SAME, instruction, small

ADD = """
  in  A: f32[M, N]
  in  B: f32[M, N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[i, j] + B[i, j]
"""
KERNEL = ("kernel add(M, N)\n  in a: f32[M, N]\n  in b: f32[M, N]\n  out c: f32[M, N]\n"
          "  forall i < M, j < N\n    c[i, j] = a[i, j] + b[i, j]\n")  # fmt: skip


def machine(near: int):
    """One instruction takes all of its operands from two cells, too few for three, the other one of them from home."""
    def cycles(n: int) -> str:
        return f"cost: {{issue: {n} cycles, latency: {n} cycles}}"

    return small("own", {"near": f"cells: {near}, cell: 64 B"}, ["dram <-> near"],
                 instruction("wide(M <= 1, N <= 16)", ADD, "homes: [near]", cycles(900)),
                 instruction("slim(M <= 1, N <= 16)", ADD, "homes: {A: [near], B: [dram], D: [near]}", cycles(1)),
                 copy=instruction("copy(M, N)", SAME, "cost: {setup: 2 cycles, bandwidth: 8 B/cycle}"))  # fmt: skip


class Wide(Greedy):
    name = "wide"

    def cover(self, choice: Choice) -> Any:
        return next((o for o in choice.options if "wide" in str(o)), choice.options[0])

    mapping = cover


def refused(near: int, approach: Approach | None, M: int = 2) -> Refused:
    with pytest.raises(Refused) as no:
        isam.compile(KERNEL, on=machine(near), sizes={"M": M, "N": 16}, approach=approach, cache=False)
    return no.value


def test_the_choice_that_led_there_is_named_at_its_method():
    isam.compile(KERNEL, on=machine(2), sizes={"M": 2, "N": 16}, cache=False)
    first, _, last = refused(2, Wide()).diagnostics
    assert "no schedule: memory 'near' needs 1 cells" in first.message
    assert last.message.startswith("what the Approach 'wide' chose at 'mapping' led here: there as 'greedy' decides")
    assert (last.code, last.loc.file) == ("infeasible", __file__)
    assert last.loc.line == Wide.cover.__code__.co_firstlineno
    assert last.hint.startswith("it took, first: wide: ")


def test_choices_that_led_there_together_are_named_together(monkeypatch):
    monkeypatch.setattr("isam.compiler.own._possible", lambda job, approach: type(approach) is Greedy)
    last = refused(2, Wide()).diagnostics[-1]
    assert last.message.startswith("several choices of the Approach 'wide' led here: as 'greedy' decides")


def test_nothing_is_said_of_who_has_no_part_in_it():
    """The machine's own Approach, one that decides the same, and any where there is no schedule at all."""
    class Same(Greedy):
        name = "same"

    for approach in (None, Greedy(), Same(), Wide(), Approach()):
        assert "led here" not in str(refused(2, approach, M=10**12))
