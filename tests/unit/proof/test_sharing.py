"""Equal nodes and operands are one object, and what is so already is left as it is."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from isam.schedule.sharing import shared
from isam.schedule.tree import Issue, Schedule, Seq, distinct
from tests.unit.proof.handmade import loop, tiny_matmul, vec_matmul


def again(x: Any) -> Any:
    """Equal, of objects of its own."""
    return copy.deepcopy(x)


def one_operand(s: Schedule) -> Schedule:
    """Two calls that differ in one operand, the other one equal, but not the same object."""
    call = next(n for n in distinct(s.call) if isinstance(n, Issue) and len(n.operands) > 1)
    first, *rest = call.operands
    other = replace(again(call), operands=(replace(first, dims=first.dims[::-1]), *again(tuple(rest))))
    return replace(s, call=Seq((call, other, replace(other, operands=(again(first), *rest), unit="other"))))


S = tiny_matmul(8, 8, 8)
MADE = {
    "as it is": S,
    "twice": replace(S, call=Seq((S.call, again(S.call)))),
    "in both trees": replace(S, bind=again(S.call)),
    "in a loop": replace(S, call=loop("q", 0, 3, 1, S.call, first=again(S.call), last=Seq((again(S.call),)))),
    "in one tree": replace(S, bind=Seq((S.call, again(S.call))), call=Issue("mm", "none", (), ())),
    "two loops": replace(S, call=Seq((loop("q", 0, 3, 1, S.call), again(loop("q", 0, 3, 1, S.call))))),
    "loops of other bounds": replace(S, call=Seq((loop("q", 0, 3, 1, S.call), loop("q", 0, 4, 1, again(S.call))))),
    "one operand": one_operand(S),
    "constants": vec_matmul(4, 16, 10, bound=True),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_equal_things_are_one(name: str) -> None:
    s = MADE[name]
    for given in (s, replace(s, bind=again(s.bind), call=again(s.call)), replace(s, bind=again(s.bind))):
        once = shared(given)
        assert once == given
        assert shared(once) is once
        nodes = {id(n): n for t in (once.bind, once.call) for n in distinct(t)}.values()
        operands = {id(o): o for n in nodes if isinstance(n, Issue) for o in n.operands}.values()
        assert len(set(nodes)) == len(nodes)
        assert len(set(operands)) == len(operands)
