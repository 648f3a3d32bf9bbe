"""Results kept with the object that they are about, and what a buffer says of its size."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.once import know, once

SCALED = """
kernel scaled(N)
  in  x: f32[N + 2, 3]
  out y: f32[N + 2, 3]
  forall i < N + 2, j < 3
    y[i, j] = x[i, j] * 2
"""


def counting() -> tuple[list[Kernel], Callable[[Kernel], str | None]]:
    asked: list[Kernel] = []

    @once
    def name_of(kernel: Kernel) -> str | None:
        asked.append(kernel)
        return kernel.name or None

    return asked, name_of


def test_a_result_is_made_once_per_object_also_where_it_is_none() -> None:
    asked, name_of = counting()
    one, nameless = parse(SCALED), replace(parse(SCALED), name="")
    assert [name_of(one), name_of(one), name_of(nameless), name_of(nameless)] == ["scaled", "scaled", None, None]
    assert asked == [one, nameless]


def test_what_is_made_from_an_object_does_not_take_over_its_results() -> None:
    _, name_of = counting()
    one = parse(SCALED)
    assert name_of(one) == "scaled"
    assert name_of(replace(one, name="other")) == "other"
    assert one == parse(SCALED)
    assert hash(one) == hash(parse(SCALED))
    assert name_of(copy.copy(one)) == "scaled"


def test_two_functions_of_one_name_do_not_share_results() -> None:
    @once
    def levels(kernel: Kernel) -> int:
        return -1

    from isam.ir.dataflow import levels as others

    one = parse(SCALED)
    assert levels(one) == -1
    assert others(one) != -1


def test_what_is_known_is_not_worked_out() -> None:
    asked, name_of = counting()
    one = parse(SCALED)
    know(name_of, one, "known")
    assert name_of(one) == "known"
    assert not asked


def test_the_normal_form_of_a_normal_form_is_the_same_object() -> None:
    found = normal_form(parse(SCALED))
    assert normal_form(found) is found


@pytest.mark.parametrize(("sizes", "elements", "size"), [({}, None, None), ({"N": 5}, 21, 84), ({"N": 0}, 6, 24)])
def test_a_buffer_whose_size_is_open_has_none(sizes: dict[str, int], elements: int | None, size: int | None) -> None:
    x = parse(SCALED).with_sizes(sizes).buffer("x")
    assert (x.elements, x.bytes) == (elements, size)
