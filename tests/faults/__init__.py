"""Planted faults of schedules by kind: what a checker must refuse, unless it does no harm.

:func:`faults` lists what can be done to a schedule; a fault is made when it is asked for. Steps and loops are changed
wherever they stand (shared nodes stay shared), so that a mutant differs from the schedule by one thing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct
from tests.faults.around import machines, slots, wholes
from tests.faults.calls import calls
from tests.faults.order import loops, sequences
from tests.faults.waits import waits
from tests.unit.proof.mutants import altered, around, put

Fault = tuple[str, Callable[[], Schedule]]


def faults(s: Schedule, draw: random.Random | None = None, most: int = 40) -> Iterator[Fault]:
    """(kind, what makes the broken schedule); some are equivalent to the original. ``draw``: in as many steps and as
    many other nodes as said, drawn, where there are more."""
    for tree in ("bind", "call"):
        root = getattr(s, tree)
        nodes = list(distinct(root))
        if draw is not None:
            groups = [[n for n in nodes if isinstance(n, Issue) == step] for step in (True, False)]
            nodes = [n for g in groups for n in (g if len(g) <= most else draw.sample(g, most))]
        for node in nodes:
            for what, new in _nodes(node, s):
                yield kind(what, node, s), partial(_replaced, s, tree, node, new)
    for what, new in around(s):
        yield kind(what, None, s), partial(_same, new)
    for family in (slots, wholes, machines):
        for what, make in family(s):
            yield what, make


def _nodes(n: Node, s: Schedule) -> Iterator[tuple[str, Node]]:
    yield from altered(n, s)
    if isinstance(n, Seq):
        yield from sequences(n)
    elif isinstance(n, Loop):
        yield from loops(n, s)
    else:
        yield from calls(n, s)
        yield from waits(n, s)


def _replaced(s: Schedule, tree: str, old: Node, new: Node) -> Schedule:
    return replace(s, **{tree: put(getattr(s, tree), old, new)})


def _same(s: Schedule) -> Schedule:
    return s


LEFT_OUT = {"delete a step": "left out", "do a step twice": "done twice"}


def kind(what: str, n: Node | None, s: Schedule) -> str:
    """The name of a kind: without numbers and names, with the sort of step where it is left out or done twice."""
    if isinstance(n, Issue) and what in LEFT_OUT:
        return f"{sort(n, s)} {LEFT_OUT[what]}"
    what = re.sub(r"^\w+ nearly full$", "a memory nearly full", what)
    what = re.sub(r"[-+]\d+$", "", what).strip()
    return f"a set-up command: {what}" if isinstance(n, Issue) and n.configures else what


def sort(n: Issue, s: Schedule) -> str:
    if n.configures:
        return "a set-up command"
    if not n.is_move:
        return "a call"
    home = s.system.home
    at = [s.system.instructions[n.instruction].operand(o.name).role == "in" for o in n.operands]
    source, target = (next((o.place.memory for o, i in zip(n.operands, at, strict=True) if i == w), "") for w in (1, 0))
    return "a load" if source == home else "a store" if target == home else "a move"
