"""How many calls a schedule carries out: counted, not executed."""

from __future__ import annotations

from collections.abc import Mapping

from isam.schedule.tree import Issue, Loop, Node, children


def steps(node: Node, sizes: Mapping[str, int], most: int) -> int:
    """Calls (moves included) of one execution. Exact up to ``most``; beyond it any number above ``most``.

    ``sizes``: run-time sizes. Cost: proportional to the tree where no bound of a loop mentions another loop's variable,
    else to the iterations of that other loop, at most ``most`` of them.
    """
    return _Count(most).of(node, dict(sizes))


class _Count:
    def __init__(self, most: int):
        self.most = most
        self.known: dict[tuple[int, tuple[int, ...]], int] = {}
        self.asked: dict[int, tuple[str, ...]] = {}

    def of(self, node: Node, scope: dict[str, int]) -> int:
        if isinstance(node, Issue):
            return 1
        key = (id(node), tuple(scope.get(n, 0) for n in self.names(node)))
        if key not in self.known:
            parts = self.loop(node, scope) if isinstance(node, Loop) else sum(self.of(c, scope) for c in children(node))
            self.known[key] = parts
        return self.known[key]

    def names(self, node: Node) -> tuple[str, ...]:
        """What the bounds of loops in here mention, from outside."""
        if id(node) not in self.asked:
            found = {n for c in children(node) for n in self.names(c)}
            if isinstance(node, Loop):
                found.discard(node.var)
                found |= {n for b in (*node.lo, *node.hi) for n in b.expr.names}
            self.asked[id(node)] = tuple(sorted(found))
        return self.asked[id(node)]

    def loop(self, node: Loop, scope: dict[str, int]) -> int:
        values = node.values(scope)
        if not values:
            return 0
        total = self.of(node.enter, scope) + self.of(node.exit, scope)
        ends = {0: node.first, len(values) - 1: node.last}
        peeled = {t: n for t, n in ends.items() if n is not None}
        total += sum(self.of(n, {**scope, node.var: values[t]}) for t, n in peeled.items())
        if node.var not in self.names(node.body):
            return total + (len(values) - len(peeled)) * self.of(node.body, scope)
        for t, v in enumerate(values):
            if total > self.most or t > self.most:
                return self.most + 1
            if t not in peeled:
                total += self.of(node.body, {**scope, node.var: v})
        return total
