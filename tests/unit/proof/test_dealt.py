"""Forged dealings and steps are refused (obligations 8, 10, 11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

import isam
from isam.ir.affine import Affine
from isam.proof.facts import Facts
from isam.proof.flat import check_flat
from isam.proof.joined import check_joined
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.tree import check_tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Schedule, Seq, distinct
from isam.system.load import load_system
from tests.machines import CROWD
from tests.pipeline import compiled

Edit = Callable[[Node], Node]


@cache
def good() -> Schedule:
    job = compiled(isam.einsum("mk,kn->mn"), {"M": 24, "N": 24, "K": 32}, load_system(CROWD), check=True)
    assert job.schedule is not None
    return job.schedule


def edited(schedule: Schedule, edit: Edit) -> Schedule:
    """Every node changed by ``edit``, leaves first; shared nodes stay shared."""
    done: dict[int, Node] = {}

    def walk(n: Node) -> Node:
        if id(n) not in done:
            if isinstance(n, Seq):
                new: Node = Seq(tuple(walk(c) for c in n.children))
            elif isinstance(n, Loop):
                parts = {p: getattr(n, p) for p in ("enter", "first", "body", "last", "exit")}
                new = replace(n, **{p: None if c is None else walk(c) for p, c in parts.items()})
            else:
                new = n
            done[id(n)] = edit(new)
        return done[id(n)]

    return replace(schedule, call=walk(schedule.call))


def dealt(change: Callable[[Loop, Deal], Node]) -> Edit:
    return lambda n: change(n, n.deal) if isinstance(n, Loop) and n.deal is not None else n


def inner(n: Node) -> bool:
    return isinstance(n, Loop) and n.deal is None and n.trip is not None and n.trip > 1


def stepping(change: Callable[[list[Issue]], list[Issue]]) -> Edit:
    """Changes the steps of two calls."""

    def edit(n: Node) -> Node:
        if not isinstance(n, Seq):
            return n
        out: list[Node] = []
        for c in n.children:
            if isinstance(c, Issue) and c.joined and isinstance(out[-1], Issue):
                out[-1:] = change([out[-1], c])
            else:
                out.append(c)
        return Seq(tuple(out))

    return edit


FORGED: dict[str, tuple[str, Edit]] = {
    "a group that is not there": ("deal", dealt(lambda n, d: replace(n, deal=replace(d, group="cores")))),
    "an instance beyond the last": ("deal", dealt(lambda n, d: replace(n, deal=replace(d, first=d.first + 1)))),
    "an instance before the first": ("deal", dealt(lambda n, d: replace(n, deal=replace(d, first=-1)))),
    "all on one instance": ("deal", dealt(lambda n, d: replace(n, deal=replace(d, stride=0)))),
    "something before the loop": ("deal", dealt(lambda n, d: replace(n, enter=replace(n, deal=None)))),
    "a peeled body": ("deal", dealt(lambda n, d: replace(n, first=n.body))),
    "an inner loop too": ("", lambda n: replace(n, deal=Deal("core")) if inner(n) else n),
    "a member twice": ("step", stepping(lambda s: [s[0], replace(s[1], unit=s[0].unit)])),
    "a unit that is no member": ("", stepping(lambda s: [s[0], replace(s[1], unit="vec")])),
    "two sizes": ("", stepping(lambda s: [s[0], replace(s[1], sizes=tuple((n, v - 1) for n, v in s[1].sizes))])),
    "one result": ("step", stepping(lambda s: [s[0], replace(s[0], unit=s[1].unit, joined=True)])),
    "a call that joins nothing": ("step", stepping(lambda s: [Seq(), s[1], s[0]])),  # type: ignore[list-item]
}


OBLIGATION = {"a group that is not there": 10, "an instance beyond the last": 10, "all on one instance": 10,
              "something before the loop": 11, "a peeled body": 11, "a member twice": 10, "one result": 8,
              "a call that joins nothing": 10}  # fmt: skip


def test_the_schedule_itself_is_right():
    assert any(isinstance(n, Loop) and n.deal for n in distinct(good().call))
    assert any(isinstance(n, Issue) and n.joined for n in distinct(good().call))
    assert not check_tree(good())
    assert not check_flat(good())


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_one_is_refused(name):
    kind, edit = FORGED[name]
    forged = edited(good(), edit)
    assert forged.call != good().call
    found = check_tree(forged)
    assert found
    assert not kind or kind in {v.kind for v in found}, found
    assert OBLIGATION.get(name, found[0].obligation) in {v.obligation for v in found if v.kind == kind or not kind}


def test_iterations_that_meet_are_found():
    """Dealt to overlapping blocks: rows written by two instances."""

    def overlap(n: Loop, d: Deal) -> Node:
        return replace(n, step=n.step - 4) if (n.trip or 0) > 1 and n.step > 4 else n

    found = check_tree(edited(good(), dealt(overlap)))
    assert "deal" in {v.kind for v in found}


def test_what_is_brought_before_the_loop_is_not_there():
    """A number brought to the registers before the instances are dealt their iterations lies on none of them."""

    def hoisted(n: Node) -> Node:
        if not isinstance(n, Seq):
            return n
        out: list[Node] = []
        for c in n.children:
            if isinstance(c, Loop) and c.deal is not None:
                parts = parts_of(c.body)
                own = [b for b in parts if isinstance(b, Issue) and b.is_move and b.operands[0].tile.buffer == "#f32:0"]
                out += own
                c = replace(c, body=Seq(tuple(b for b in parts if b not in own)))
            out.append(c)
        return Seq(tuple(out))

    forged = edited(good(), hoisted)
    assert forged.call != good().call
    assert "stale" in {v.kind for v in check_tree(forged)}
    assert "absent" in {v.kind for v in check_flat(forged)}


def test_instances_of_a_group_may_not_share_the_memories_of_another():
    """Dealt to units that do nothing, all iterations use one instance's scratchpad and registers side by side."""
    s = good()
    group = next(iter(s.system.replicas.values()))
    ghost = replace(group, name="ghost", memories=(), units=())
    system = replace(s.system, replicas={**s.system.replicas, "ghost": ghost})
    forged = edited(replace(s, system=system), dealt(lambda n, d: replace(n, deal=replace(d, group="ghost"))))
    assert any("may meet in ra." in v.message for v in check_tree(forged))


def test_a_call_that_joins_one_elsewhere_joins_none_here():
    """The same call stands in a sequence, where it joins the one before it, and alone."""
    joined = next(n for n in distinct(good().call) if isinstance(n, Issue) and n.joined)
    once = Loop("once", (Bound(Affine()),), (Bound(Affine((), 1)),), 1, joined)
    for forged in (replace(good(), bind=joined), replace(good(), call=Seq((good().call, once)))):
        assert "a call joins the one before it, but there is none in its sequence" in messages(forged)
    assert messages(good()) == set()


def messages(s: Schedule) -> set[str]:
    out = Findings()
    check_joined(s, Facts(Legality(s), Isl(), False), out)
    return {v.message for v in out.found}


def parts_of(node: Node) -> list[Node]:
    """What a sequence of sequences executes."""
    return [p for c in node.children for p in parts_of(c)] if isinstance(node, Seq) else [node]
