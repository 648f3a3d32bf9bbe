"""A part of a tree with other values in the place of variables around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, mapped

Values = Mapping[str, Affine]


def substituted(node: Node, values: Values) -> Node:
    """The node where the variables have the values: itself where it does not depend on them; a node that stands in it
    several times stays one. Serpentines must not turn by any of the variables (``ValueError``)."""
    return _Substituted(values).node(node)


class _Substituted:
    def __init__(self, values: Values):
        self.values = values
        self.done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        got = self.done.get(id(node))
        if got is None:
            got = self.done[id(node)] = self._issue(node) if isinstance(node, Issue) else self._inner(node)
        return got

    def _inner(self, node: Node) -> Node:
        if not isinstance(node, Loop):
            return mapped(node, self.node)
        if node.serpentine is not None and node.serpentine.var in self.values:
            raise ValueError(f"loop {node.var} turns by {node.serpentine.var}")
        mine = self.values.keys() - {node.var}  # what the loop says its variable is holds inside
        inside = self if len(mine) == len(self.values) else _Substituted({v: self.values[v] for v in mine})
        around, within = {"enter": node.enter, "exit": node.exit}, {"first": node.first, "last": node.last}
        parts = {n: self.node(p) for n, p in around.items()}
        parts |= {n: p and inside.node(p) for n, p in within.items()} | {"body": inside.node(node.body)}
        ends = {"lo": tuple(map(self._bound, node.lo)), "hi": tuple(map(self._bound, node.hi))}
        same = all(getattr(node, n) is p for n, p in parts.items()) and (ends["lo"], ends["hi"]) == (node.lo, node.hi)
        return node if same else replace(node, **parts, **ends)

    def _bound(self, bound: Bound) -> Bound:
        return Bound(bound.expr.substitute(self.values), bound.div)

    def _issue(self, call: Issue) -> Issue:
        operands = tuple(map(self._operand, call.operands))
        point = tuple((a, e.substitute(self.values)) for a, e in call.point)
        ahead = call.prefetch and call.prefetch._replace(ahead=call.prefetch.ahead.substitute(self.values))
        if (operands, point, ahead) == (call.operands, call.point, call.prefetch):
            return call
        return replace(call, operands=operands, point=point, prefetch=ahead)

    def _operand(self, o: Operand) -> Operand:
        start = tuple(s.substitute(self.values) for s in o.tile.start)
        place = replace(o.place, offset=o.place.offset.substitute(self.values))
        return replace(o, tile=o.tile._replace(start=start), place=place)
