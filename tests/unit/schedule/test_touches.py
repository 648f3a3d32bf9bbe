"""What calls touch, worked out for all iterations at once, against every byte of every iteration."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.text import parse_kernel
from isam.schedule.literals import is_literal
from isam.schedule.liveness import Flow
from isam.schedule.touches import Base, Touches
from isam.schedule.tree import Issue, Loop, Node, Schedule, children
from isam.system.load import load_system
from tests.pipeline import compiled
from tests.systems.test_serpentine import CELL, NARROW, ROWS

Bytes = dict[Base, set[int]]


def touched(s: Schedule, node: Node, scope: Mapping[str, int], out: Bytes) -> Bytes:
    """Every byte, as the tree says, one iteration after the other."""
    parts = children(node)
    if isinstance(node, Loop):
        parts = (node.enter, node.exit)
        for n, value in enumerate(values := node.values(scope)):
            peeled = node.first if n == 0 else node.last if n == len(values) - 1 else None
            touched(s, peeled or node.body, {**scope, node.var: value}, out)
    for part in parts:
        touched(s, part, scope, out)
    for o in node.operands if isinstance(node, Issue) else ():
        if Flow(s).cell(o) is None and not is_literal(o.tile.buffer):
            begin, size = o.place.offset.evaluate(scope), size_of(s.dtype(o.tile.buffer))
            rows = [[k * stride * i for i in range(n)]
                    for k, stride, n in zip(o.tile.steps, o.place.strides, o.tile.shape, strict=True)]  # fmt: skip
            base = Base(o.place.memory, o.place.base, o.place.cell or 0)
            out.setdefault(base, set()).update(begin + sum(at) + b for at in product(*rows) for b in range(size))
    return out


def loops(node: Node, scope: Mapping[str, int]) -> list[tuple[Loop, Mapping[str, int]]]:
    """With values of the variables around them."""
    if not isinstance(node, Loop):
        return [found for part in children(node) for found in loops(part, scope)]
    inner = {**scope, node.var: node.values(scope)[-1]}
    return [(node, scope), *(found for p in (node.first, node.body, node.last) if p for found in loops(p, inner))]


@pytest.mark.parametrize(("text", "sizes"), [
    (CELL, {"T": 3, "B": 5, "H": 33}), (ROWS, {"M": 21, "N": 45, "K": 9}), (ROWS, {"M": 9, "N": 64, "K": 40}),
])  # fmt: skip
def test_all_iterations_at_once_touch_what_they_touch_one_by_one(text: str, sizes: dict[str, int]) -> None:
    s = compiled(parse_kernel(text), sizes, load_system(NARROW)).schedule
    assert s is not None
    touches = Touches(s)
    found = loops(s.call, {})
    assert len(found) > 3
    for loop, scope in found:
        for value in (loop.values(scope)[0], loop.values(scope)[-1]):
            around = {**scope, loop.var: value}
            exact: Bytes = {}
            for base, some in touches.of(loop.body).items():
                for t in some:
                    step, beside = t.way(loop)
                    assert t.offset == beside + Affine.of(loop.var, step // loop.step) + t.offset.const
                    spans = touches.spans(t)
                    assert spans is not None
                    assert t.hull == (spans[0][0], spans[-1][1])
                    moved = (t.offset - t.offset.const).evaluate(around)
                    exact.setdefault(base, set()).update(b + moved for low, high in spans for b in range(low, high))
            assert exact == touched(s, loop.body, around, {})
