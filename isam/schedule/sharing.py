"""Equal nodes and operands as one object each, so that nothing is judged twice, and neither figures nor code depend on
how a tree was built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from isam.once import once
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq


@once
def shared(schedule: Schedule) -> Schedule:
    """The same schedule with equal nodes, and equal operands, made one object."""
    pool: dict[object, Any] = {}
    seen: dict[int, Node] = {}
    bind, call = (_one(t, pool, seen) for t in (schedule.bind, schedule.call))
    same = bind is schedule.bind and call is schedule.call
    return schedule if same else replace(schedule, bind=bind, call=call)


def _one(node: Node, pool: dict[object, Any], seen: dict[int, Node]) -> Node:
    got = seen.get(id(node))
    if got is None:
        got = seen[id(node)] = _pooled(node, pool, seen)
    return got


def _pooled(node: Node, pool: dict[object, Any], seen: dict[int, Node]) -> Node:
    if isinstance(node, Issue):
        return _issue(node, pool)
    if isinstance(node, Seq):
        parts = tuple(_one(c, pool, seen) for c in node.children)
        new = node if all(a is b for a, b in zip(parts, node.children, strict=True)) else Seq(parts)
        return pool.setdefault((Seq, *map(id, parts)), new)
    names = ("enter", "first", "body", "last", "exit")
    old = {n: p for n in names if (p := getattr(node, n)) is not None}
    new_parts = {n: _one(p, pool, seen) for n, p in old.items()}
    new = node if all(new_parts[n] is old[n] for n in old) else replace(node, **new_parts)
    itself = (node.var, node.lo, node.hi, node.step, node.axis, node.deal, node.serpentine)
    key = (Loop, *itself, *((n, id(p)) for n, p in new_parts.items()))
    return pool.setdefault(key, new)


def _issue(node: Issue, pool: dict[object, Any]) -> Issue:
    operands = tuple([pool.setdefault(o, o) for o in node.operands])
    itself = (node.unit, node.instruction, node.sizes, node.nest, node.point, node.after, node.joined, node.prefetch)
    key = (Issue, *itself, *map(id, operands))
    got = pool.get(key)
    if got is None:
        whole = all(a is b for a, b in zip(operands, node.operands, strict=True))
        got = pool[key] = node if whole else Issue(node.unit, node.instruction, node.sizes, operands, *itself[3:])
    return got
