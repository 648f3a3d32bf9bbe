"""Random trees as programs of the compiled walk: their steps in the order, and with the values, of a plain reading."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, floor
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof import flat_program
from isam.proof import flat_walk as w
from isam.proof.flat import Exhausted, Replay
from isam.proof.flat_step import compile_step
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Node, Place, Seq, distinct
from tests.unit.proof.handmade import op, tile, tiny_matmul
from tests.unit.proof.handmade_machines import lit

SIZES = {"N": 3, "M": 2}
Said = list[tuple[str, tuple[int, ...]]]


def issue(choose: random.Random, names: tuple[str, ...], number: int) -> Issue:
    """A step that speaks of some of the names."""
    start = sum((Affine.of(n, choose.choice((1, 2, -3))) for n in names if choose.random() < 0.6), lit(0))
    far = w.MOST + 1 if choose.random() < 0.1 else 1
    place = Place("sp", "", Affine.of(choose.choice(names), far) if names else lit(0), (4, 4))
    return Issue("mm", f"step{number}", (), (op("A", tile("A", [start, lit(0)], [1, 1]), place),))


def bounds(choose: random.Random, names: tuple[str, ...], shift: int) -> tuple[Bound, ...]:
    def one() -> Bound:
        e = lit(choose.randint(-1, 2) + shift)
        if names and choose.random() < 0.5:
            e = e + Affine.of(choose.choice(names), choose.choice((1, -1)))
        div = choose.choice((1, 1, 1, 2, 3))
        return Bound(e * div + choose.randint(0, div - 1), div)

    return tuple(one() for _ in range(choose.choice((1, 1, 2, 3))))


class Trees:
    """``made``: steps so far; ``known``: nodes that may stand in several places."""

    def __init__(self, choose: random.Random):
        self.choose, self.made = choose, 0
        self.known: dict[tuple[str, ...], list[Node]] = {}

    def tree(self, names: tuple[str, ...], deep: int) -> Node:
        choose = self.choose
        if self.known.get(names) and choose.random() < 0.15:
            return choose.choice(self.known[names])
        what = choose.random()
        if not deep or what < 0.15:
            self.made += 1
            node: Node = issue(choose, names, self.made)
        elif what < 0.45:
            node = Seq(tuple(self.tree(names, deep - 1) for _ in range(choose.randint(0, 3))))
        else:
            var = choose.choice([f"v{deep}", f"u{deep}", *names[:1]])
            inner = names if var in names else (*names, var)
            parts: dict[str, Any] = {k: self.tree(names, deep - 1) for k in ("enter", "exit") if choose.random() < 0.4}
            parts |= {k: self.tree(inner, deep - 1) for k in ("first", "last") if choose.random() < 0.3}
            lo, hi = bounds(choose, names, -1), bounds(choose, names, 3)
            node = Loop(var, lo, hi, choose.choice((1, 1, 2, 3)), self.tree(inner, deep - 1), **parts)
        self.known.setdefault(names, []).append(node)
        return node


def plain(n: Node, env: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The steps in order, each with what its numbers come to."""
    if isinstance(n, Issue):
        o = n.operands[0]
        yield n.instruction, (o.tile.start[0].evaluate(env), o.place.offset.evaluate(env))
    elif isinstance(n, Seq):
        for c in n.children:
            yield from plain(c, env)
    else:
        least = max(ceil(b.expr.evaluate(env) / b.div) for b in n.lo)
        most = min(floor(b.expr.evaluate(env) / b.div) for b in n.hi)
        values = [v for v in range(least, most) if (v - least) % n.step == 0]
        if values:
            yield from plain(n.enter, env)
        for i, v in enumerate(values):
            part = n.first if i == 0 and n.first else n.last if i == len(values) - 1 and n.last else n.body
            yield from plain(part, {**env, n.var: v})
        if values:
            yield from plain(n.exit, env)


def walked(tree: Node, budget: int, refused: set[int], compiled: bool = True) -> tuple[Said, int, int, Findings]:
    """What is executed, how many of them not by the walk, how many steps are left. ``refused``: steps that the walk
    does not take: every 1, some 2, illegal 3, by their number modulo."""
    s, said, alone, out = tiny_matmul(), Said(), 0, Findings()
    replay = Replay(s, dict(SIZES), out, budget, compiled=compiled)
    sort = {}

    def numbers(n: Issue, env: dict[str, int]) -> tuple[str, tuple[int, ...]]:
        o = n.operands[0]
        return n.instruction, (o.tile.start[0].evaluate(env), o.place.offset.evaluate(env))

    def alone_(self: Replay, n: Issue, env: dict[str, int]) -> None:
        nonlocal alone
        self.left -= 1
        if self.left < 0:
            raise Exhausted
        if sort.get(id(n)) != 3:
            said.append(numbers(n, env))
        alone += 1

    def step(m: w.Memory, at: int) -> int:
        program = replay.program
        assert program is not None
        n = program.steps[list(program.where).index(at)]
        if sort[id(n)] == 2:
            return 0
        said.append(numbers(n, {k: int(m.env[i]) for k, i in program.table.slots.items()}))
        return 1

    def compile_(n: Issue, _: Replay, __: Findings) -> Issue | None:
        number = int(n.instruction[4:]) % 5
        sort[id(n)] = number if number in refused else 0
        return None if sort[id(n)] == 3 else n

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(w, "step", step)
        patch.setattr(flat_program, "walk", lambda: w.walk)
        patch.setattr(flat_program, "compile_step", compile_)
        patch.setattr(Replay, "issue", alone_)
        patch.setattr(flat_program.Table, "step",
                      lambda self, n: w.ALONE if sort[id(n)] == 1 else self.words.add([0]))  # fmt: skip
        replay.program = flat_program.Program(replay) if compiled else None
        replay.phase = "call"
        try:
            replay.node(tree, dict(SIZES))
        except Exhausted:
            return said, alone, -1, out
    return said, alone, replay.left, out


def trees(seed: int) -> Iterator[tuple[random.Random, Node, Said]]:
    """Some that say something, and no name twice at once."""
    choose, found = random.Random(seed), 0
    while found < 12:
        tree = Seq((Trees(choose).tree(tuple(SIZES) if found % 3 else (), 4),))
        if not taken(tree, set(SIZES)) and 3 <= len(want := list(plain(tree, SIZES))) <= 200:
            found += 1
            yield choose, tree, want


@pytest.mark.parametrize("seed", range(5))
def test_trees(seed: int) -> None:
    for choose, tree, want in trees(seed):
        many = len(want) + 5
        for refused in (set(), {1}, {1, 2}):
            said, alone, left, out = walked(tree, many, refused)
            assert said == want
            assert left == 5
            far = sum(int(x[0][4:]) % 5 in refused or large(tree, x[0]) for x in want)
            assert alone == far or out.found, refused  # a loop that is too short is followed without the walk
            assert {v.kind for v in out.found} <= {"trip"}
        slow = walked(tree, many, set(), compiled=False)
        assert (slow[0], slow[3].found) == (want, out.found)
        budget = choose.randrange(len(want))
        said, _, left, _ = walked(tree, budget, {2})
        assert (said, left) == (want[:budget], -1)


def test_a_loop_before_another_one_of_its_name() -> None:
    """What runs once before a loop may have one of the same name, with other bounds."""
    step, before = issue(random.Random(1), ("i",), 5), issue(random.Random(1), ("i",), 6)
    inner = Loop("i", (Bound(lit(7)),), (Bound(lit(9)),), 1, before)
    tree = Seq((Loop("i", (Bound(lit(0)),), (Bound(lit(3)),), 1, step, enter=inner),))
    said, alone, *_ = walked(tree, 9, set())
    assert [n for n, _ in said] == ["step6"] * 2 + ["step5"] * 3
    assert (said, alone) == (list(plain(tree, {})), 0)


def taken(n: Node, names: set[str]) -> bool:
    """Whether a loop takes a name that has a value."""
    if isinstance(n, Loop):
        parts = [p for p in (n.first, n.body, n.last) if p is not None]
        return n.var in names or any(taken(p, names | {n.var}) for p in parts) or any(
            taken(p, names) for p in (n.enter, n.exit))  # fmt: skip
    return isinstance(n, Seq) and any(taken(c, names) for c in n.children)


def large(n: Node, name: str) -> bool:
    if isinstance(n, Issue):
        return n.instruction == name and any(abs(c) > w.MOST for _, c in n.operands[0].place.offset.terms)
    if isinstance(n, Seq):
        return any(large(c, name) for c in n.children)
    return any(large(p, name) for p in (n.enter, n.first, n.body, n.last, n.exit) if p is not None)


def test_steps_that_are_illegal_are_judged_once() -> None:
    body = replace(issue(random.Random(0), ("i",), 3))
    loop = Loop("i", (Bound(lit(0)),), (Bound(lit(7)),), 1, Seq((body, issue(random.Random(1), ("i",), 5))))
    said, alone, left, _ = walked(loop, 50, {3})
    assert [n for n, _ in said] == ["step5"] * 7
    assert (alone, left) == (1, 50 - 14)


def test_a_step_that_is_left_alone_says_nothing_of_an_illegal_one() -> None:
    far = issue(random.Random(1), (), 5)
    place = replace(far.operands[0].place, offset=Affine.of("i", w.MOST + 1))
    far = replace(far, operands=(replace(far.operands[0], place=place),))
    loop = Loop("i", (Bound(lit(0)),), (Bound(lit(7)),), 1, Seq((far, issue(random.Random(0), ("i",), 3))))
    said, alone, left, _ = walked(loop, 50, {3})
    assert [n for n, _ in said] == ["step5"] * 7
    assert (alone, left) == (7 + 1, 50 - 14)


def test_what_is_held_gets_a_number_however_much_there_is() -> None:
    replay = Replay(tiny_matmul(), {}, Findings(), 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_program, "walk", lambda: w.walk)
        program = flat_program.Program(replay)
    for k in (*range(40), *range(0, 40, 7)):
        replay.held = {"r": (k, "mm")}
        assert program._held() == k
        program.after[k, 0] = 100 + k
    assert program.after.shape == (64, 8)
    assert program.after[:40, 0].tolist() == [100 + k for k in range(40)]
    assert (program.after[40:] == -1).all()
    assert (program.after[:, 1:] == -1).all()
    one = next(n for n in distinct(replay.schedule.call) if isinstance(n, Issue))
    (first, *rest) = one.operands
    for k in (*range(20), *range(0, 20, 3)):  # as far from call to call
        other = replace(first, place=replace(first.place, offset=first.place.offset + k))
        assert program._group([one, replace(one, operands=(other, *rest))]) == k
        program.after[5, k] = 200 + k
    assert program.after.shape == (64, 32)
    assert program.after[5, :20].tolist() == [200 + k for k in range(20)]
    assert (program.after[5, 20:] == -1).all()


def test_operands_of_one_buffer_that_are_both_written_are_left_alone() -> None:
    """Whether they have elements in common the walk does not look; nor at two effects of one statement."""
    replay = Replay(tiny_matmul(), {}, Findings(), 100)
    replay.phase = "call"
    table = flat_program.Table(replay)
    step = compile_step(next(n for n in distinct(replay.schedule.call) if isinstance(n, Issue) and n.nest == 1),
                        replay, Findings())  # fmt: skip
    assert step is not None
    shape = step.shape
    written = next(a for a in shape.accesses if a.writes)
    assert table._effects(shape, [0, 0, 0]) is not None
    assert table._effects(replace(shape, accesses=[*shape.accesses, written]), [0] * 4) is None
    assert table._effects(replace(shape, effects=[*shape.effects, shape.effects[0]]), [0] * 3) is None
    read = [replace(a, writes=False) for a in shape.accesses]
    assert table._effects(replace(shape, accesses=read), [0] * 3) is None
