"""A part of a tree with other values in the place of variables: as if the loops around had them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.schedule.substituted import substituted
from isam.schedule.tree import Issue, Loop, Node, Seq, Serpentine, distinct
from tests.unit.scheduler.test_pipelining import PRODUCT, Told, called, counted, kernel, made, run, square


@pytest.mark.parametrize("by", [Affine.of("i0") - 32, Affine((), 64), Affine.of("x", 3) + 5])
def test_a_part_of_a_tree_at_other_values(by: Affine) -> None:
    schedule = made(kernel(PRODUCT), {"M": 96, "N": 512, "K": 256}, Told(0))
    loop = next(n for n in distinct(schedule.call) if isinstance(n, Loop) and n.var == "i0")
    scope = {"x": 2, "i0": 64}
    there = {**scope, "i0": by.evaluate(scope)}

    def all_of(node: Node, scope: dict[str, int]) -> list[Any]:
        if isinstance(node, Issue):
            lie = [(o.place.offset.evaluate(scope), [s.evaluate(scope) for s in o.tile.start]) for o in node.operands]
            return [(node.instruction, lie, [e.evaluate(scope) for _, e in node.point])]
        if isinstance(node, Seq):
            return [x for c in node.children for x in all_of(c, scope)]
        inside = [x for v in node.values(scope)[:3] for x in all_of(node.body, {**scope, node.var: v})]
        return [*all_of(node.enter, scope), *inside]

    assert all_of(substituted(loop.body, {"i0": by}), scope) == all_of(loop.body, there)


def test_what_does_not_depend_on_a_variable_stays_the_same_object() -> None:
    schedule, _ = square()
    assert substituted(schedule.call, {"nobody": Affine((), 1)}) is schedule.call


def test_what_a_loop_says_its_variable_is_holds_inside() -> None:
    inner = counted("p", Affine.of("p"), 2, 1, called(square()[0], "piece", "p"))
    there = substituted(inner, {"p": Affine((), 7)})
    assert [*run(there, {})] == [("piece", (7,)), ("piece", (8,))]


def test_a_loop_that_turns_by_a_variable_needs_it() -> None:
    loop = replace(counted("p", Affine((), 0), 3, 1, Seq()), serpentine=Serpentine("o", 1))
    with pytest.raises(ValueError, match="turns by o"):
        substituted(loop, {"o": Affine((), 1)})
