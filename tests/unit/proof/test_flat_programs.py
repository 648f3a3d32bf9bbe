"""Whole programs of the compiled walk, run as Python: loops, routines, commands, and what is left to the caller."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from isam.proof import flat_walk as w
from tests.unit.proof.test_flat_walk import JUNK, memory

Tree = tuple[str, object]


@dataclass
class Laying:
    """Code for a tree of steps, sequences and loops, called as routines or in place, as the walk reads it."""

    code: list[int] = field(default_factory=lambda: [w.END])
    table: list[int] = field(default_factory=lambda: [JUNK])

    def put(self, words: list[int]) -> int:
        self.code += words
        return len(self.code) - len(words)

    def node(self, n: Tree) -> None:
        kind, what = n
        if kind == "step":
            self.put([w.STEP, what])  # type: ignore[list-item]
        elif kind == "command":
            self.put([w.COMMAND, what])  # type: ignore[list-item]
        else:
            self.later.append((self.put([w.CALL, -1]) + 1, n))  # a routine's code stands behind the caller's

    later: list[tuple[int, Tree]] = field(default_factory=list)

    def routine(self, n: Tree) -> int:
        kind, what = n
        begin = len(self.code)
        if kind == "seq":
            for c in what:  # type: ignore[attr-defined]
                self.node(c)
            self.put([w.BACK])
        else:
            var, lo, hi, by, parts = what  # type: ignore[misc]
            self.table += [1, 1, lo, 0, 1, 1, hi, 0]
            self.put([w.LOOP, 0, var, by, 0, 0, len(self.table) - 8])
            self.node(parts["enter"])
            self.put([w.START, var])
            head = self.put([w.HEAD, var, by, -1, -1])
            ends = []
            for k, name in enumerate(("body", "first", "last")):
                if name in parts:
                    if k:
                        self.code[head + 2 + k] = len(self.code)
                    self.node(parts[name])
                    ends.append(self.put([w.NEXT, var, by, head, 0]))
            leave = len(self.code)
            self.node(parts["exit"])
            for e in ends:
                self.code[e + 4] = leave
            self.code[begin + 5] = self.put([w.BACK])
        while self.later:
            at, inner = self.later.pop()
            self.code[at] = self.routine(inner)
        return begin


def some_tree(choose: random.Random, deep: int, count: list[int]) -> Tree:
    what = choose.random()
    if not deep or what < 0.3:
        count[0] += 1
        return ("command", choose.randint(0, 2)) if choose.random() < 0.3 else ("step", count[0])
    if what < 0.6:
        return "seq", [some_tree(choose, deep - 1, count) for _ in range(choose.randint(0, 3))]
    names = ["enter", "body", "exit", *(n for n in ("first", "last") if choose.random() < 0.4)]
    lo, by = choose.randint(-3, 3), choose.choice((1, 2, 3))
    parts = {n: some_tree(choose, deep - 1, count) for n in names}
    return "loop", (deep, lo, lo + choose.randint(0, 7), by, parts)


def run_by_hand(n: Tree, env: dict[int, int], out: list[tuple[object, ...]]) -> None:
    kind, what = n
    if kind in ("step", "command"):
        out.append((kind, what, *sorted(env.items())))
    elif kind == "seq":
        for c in what:  # type: ignore[attr-defined]
            run_by_hand(c, env, out)
    else:
        var, lo, hi, by, parts = what  # type: ignore[misc]
        values = range(lo, hi, by)
        if values:
            run_by_hand(parts["enter"], env, out)
            for i, v in enumerate(values):
                last = "last" in parts and i == len(values) - 1
                name = "first" if i == 0 and "first" in parts else "last" if last else "body"
                run_by_hand(parts[name], {**env, var: v}, out)
            run_by_hand(parts["exit"], env, out)


def scopes(n: Tree, around: tuple[int, ...], out: dict[object, tuple[int, ...]]) -> None:
    kind, what = n
    if kind == "step":
        out[what] = around
    elif kind == "seq":
        for c in what:  # type: ignore[attr-defined]
            scopes(c, around, out)
    elif kind == "loop":
        var, _, _, _, parts = what  # type: ignore[misc]
        for k, p in parts.items():
            scopes(p, around if k in ("enter", "exit") else (*around, var), out)


@pytest.mark.parametrize("seed", range(40))
def test_programs_are_walked_as_they_say(seed: int) -> None:
    """Steps are left to the caller one by one, and some are passed; commands take what is held from state to state."""
    choose, count = random.Random(seed), [0]
    tree: Tree = ("seq", [some_tree(choose, 3, count) for _ in range(3)])
    lay, expected, names = Laying(), list[tuple[object, ...]](), dict[object, tuple[int, ...]]()
    run_by_hand(tree, {}, expected)
    scopes(tree, (), names)
    begin = lay.routine(tree)
    passed = {k for k in range(1, count[0] + 1) if choose.random() < 0.3}
    steps = [w.PASSED if k in passed else choose.choice((w.UNKNOWN, w.ALONE)) for k in range(count[0] + 1)]
    held, left = 1, 10**6
    after = [choose.randint(0, 2) if choose.random() < 0.9 else -1 for _ in range(9)]  # state times command
    m = memory(code=lay.code, table=lay.table, steps=steps, env=[JUNK] * 6, low=[JUNK] * 6, high=[JUNK] * 6,
               stack=[0] * 60, state=[begin, 1, left, held, 3, 0], after=list(after))  # fmt: skip
    seen: list[tuple[object, ...]] = []
    while (op := w.walk(m)) != w.END:
        pc = m.state[w.PC]
        if op == w.STEP:
            k = lay.code[pc + 1]
            seen.append(("step", k, *((v, m.env[v]) for v in sorted(names[k]))))
        else:
            assert op == w.COMMAND
            assert m.after[held_before(m)] == -1
            m.state[w.HELD] = 0
            seen.append(("told", lay.code[pc + 1]))
        m.state[w.PC] += 2
    wanted, now, count_passed = list[tuple[object, ...]](), held, 0
    for e in expected:
        if e[0] == "command":
            then = after[3 * now + int(str(e[1]))]
            wanted += [("told", e[1])] if then < 0 else []
            now = max(then, 0)
        elif e[1] not in passed:
            wanted.append(e)
        else:
            count_passed += 1
    assert seen == wanted
    assert (m.state[w.HELD], m.state[w.LEFT]) == (now, left - count_passed)


def held_before(m: w.Memory) -> int:
    return m.state[w.HELD] * 3 + m.code[m.state[w.PC] + 1]


def test_a_walk_ends_where_no_steps_are_left() -> None:
    for left in (3, 1, 0):
        code, state = [w.END, *[w.STEP, 1] * 4, w.BACK], [1, 1, left, 0, 1, 0]
        m = memory(code=code, steps=[0, w.PASSED], stack=[0] * 4, state=state)
        assert w.walk(m) == w.STEP
        assert (m.state[w.PC], m.state[w.LEFT]) == (1 + 2 * left, 0)
