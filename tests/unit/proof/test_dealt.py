"""Forged dealings and steps are refused (obligations 8, 10, 11)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import pytest

import isam
from isam.ir.affine import Affine
from isam.proof.certificate import prove
from isam.proof.dealt import Dealt
from isam.proof.facts import Facts
from isam.proof.flat import check_flat
from isam.proof.instances import HERE, Instances
from isam.proof.joined import check_joined
from isam.proof.legal import Legality
from isam.proof.registers import Registers
from isam.proof.sets import Isl
from isam.proof.tree import check_tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Place, Schedule, Seq, distinct
from isam.system.load import load_system
from tests.machines import CROWD
from tests.pipeline import compiled
from tests.unit.proof.verdicts import on_record

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
    on_record("dealt", str(prove(good())).splitlines()[1].split(" isl questions")[:1])


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_one_is_refused(name):
    kind, edit = FORGED[name]
    forged = edited(good(), edit)
    assert forged.call != good().call
    found = check_tree(forged)
    assert found
    assert not kind or kind in {v.kind for v in found}, found
    assert OBLIGATION.get(name, found[0].obligation) in {v.obligation for v in found if v.kind == kind or not kind}
    on_record(f"dealt: {name}", found)


def test_the_members_of_a_step_stand_in_any_order():
    turned = stepping(lambda s: [replace(s[1], joined=False), replace(s[0], joined=True)])
    other = edited(good(), turned)
    assert other.call != good().call
    assert not check_tree(other)


def written_at(i: Issue, byte: int) -> Issue:
    """The same call, its result at a byte of the scratchpad."""
    at = Place("sp", "", Affine((), byte), (16, 4))
    return replace(i, operands=tuple(replace(o, place=at) if o.name == "C" else o for o in i.operands))


@pytest.mark.parametrize(("one", "two"), [(0, 0), (0, 16), (64, 20), (0, 60), (0, 64), (64, 0), (4096, 0), (0, 4096)])
def test_results_of_one_step_lie_apart(one: int, two: int):
    step = stepping(lambda s: [written_at(s[0], one), written_at(s[1], two)])
    assert any("may meet" in m for m in messages(edited(good(), step))) == (abs(one - two) < 64)


def nested(group: str, *deals: tuple[int, int, int]) -> list[Loop]:
    """Loops dealt within each other: the first instance, the distance of instances, iterations."""
    zero, step = Affine(), 3
    return [Loop(f"n{i}", (Bound(zero),), (Bound(Affine((), step * trip)),), step, Seq(),
                 deal=Deal(group, first, stride))
            for i, (first, stride, trip) in enumerate(deals)]  # fmt: skip


def test_instances_of_nested_loops_by_counting():
    """Nothing is said where each iteration has an instance of its own, and always where it has not."""
    s, rng, right, wrong = good(), random.Random(3), 0, 0
    (group,) = s.system.replicas
    for _ in range(400):
        trips, strides, whole = [rng.randint(1, 3) for _ in range(3)], [], 1
        for n in trips:  # digits of a number, so far
            strides.append(whole * rng.choice([1, 1, 1, 2]))
            whole = strides[-1] * n
        if rng.random() < 0.4:
            strides[rng.randrange(3)] = rng.randint(0, 4)
        first, digits = rng.randint(-1, 1), list(zip(strides, trips, strict=True))
        rng.shuffle(digits)
        numbers = [first + sum(x) for x in product(*([d * i for i in range(n)] for d, n in digits))]
        count = max(1, max(numbers) + rng.randint(0, 1))
        system = replace(s.system, replicas={group: replace(s.system.replicas[group], count=count)})
        out = Findings()
        judge = Dealt(replace(s, system=system), Facts(Legality(s), Isl(), False), out)
        around = tuple((first if k == 0 else 0, d, n) for k, (d, n) in enumerate(digits))
        judge.instances(nested(group, (0, 1, 1))[0], around)
        fine = len(set(numbers)) == len(numbers) and min(numbers) >= 0 and max(numbers) < count
        real = [(d, n) for d, n in sorted(digits) if n > 1]
        mixed = all(d >= sum(e * (m - 1) for e, m in real[:k]) + 1 for k, (d, _) in enumerate(real))
        assert fine or len(out)
        assert not (fine and mixed) or not len(out)
        right, wrong = right + (fine and mixed), wrong + (not fine)
    assert right > 100
    assert wrong > 100


def test_addresses_of_instances_by_counting():
    """An instance is the number that its loops say, and an address without its name is the one with its number."""
    rng, name = random.Random(4), "^core"
    for _ in range(100):
        loops = nested("core", *((rng.randint(0, 2), rng.randint(1, 3), 4) for _ in range(2)))
        outer = Instances.inside(loops[0], HERE)
        both = Instances.inside(loops[1], outer)
        e = Affine.of(name, both.by * rng.randint(1, 5)) + Affine.of("n0", rng.randint(-2, 2)) + rng.randint(0, 9)
        for i, j in product(range(4), repeat=2):
            env = {"n0": 3 * i, "n1": 3 * j}
            numbers = [d.first + d.stride * k for d, k in zip((x.deal for x in loops if x.deal), (i, j), strict=True)]
            for at, number in ((outer, numbers[0]), (both, sum(numbers))):
                assert at.times.evaluate(env) == at.by * number
                assert Instances.said(e, name, at).evaluate(env) == e.evaluate({**env, name: number})
            around = {**env, name: numbers[0]}
            assert Instances.within(e, name, loops[1]).evaluate(around) == e.evaluate({**env, name: sum(numbers)})


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


def test_what_an_instance_holds_is_not_there_after_the_loop():
    s = good()
    moves = (n for n in distinct(s.call) if isinstance(n, Issue) and n.is_move)
    number = (m for m in moves if m.operands[0].tile.buffer == "#f32:0")
    again = next(m for m in number if m.operands[0].place.memory != "dram")
    forged = replace(s, call=Seq((s.call, again)))
    assert "stale" in {v.kind for v in check_tree(forged)}
    assert "absent" in {v.kind for v in check_flat(forged)}


@pytest.mark.parametrize("dealt_out", [True, False])
def test_what_is_set_before_the_loop_is_not_known_to_its_instances(dealt_out: bool):
    s = good()
    system = replace(
        s.system,
        instructions={
            n: replace(i, requires={"mode": 1}) if n.startswith("mm4") else i for n, i in s.system.instructions.items()
        },
    )
    product = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction.startswith("mm4"))
    stream = system.cluster_of(product.unit)
    assert stream
    (loop,) = nested(next(iter(system.replicas)), (0, 1, 2))
    for body, after in ((product, Seq()), (Seq(), product)):  # in the loop, or what an iteration leaves, behind it
        out, node = Findings(), replace(loop, deal=loop.deal if dealt_out else None, body=body)
        walk = Registers(replace(s, system=system))
        walk.run(Seq((node, after)), {"mode": (1, stream)}, out)
        assert bool(len(out)) is dealt_out


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
