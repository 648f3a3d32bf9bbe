"""What the judges keep in mind from one step, iteration or phase to the next, by enumeration: never more than is so."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from operator import mul
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof import flat
from isam.proof.boxes import Box, Family, span
from isam.proof.context import Context, Var
from isam.proof.flat import check_flat, replayed
from isam.proof.induction import survives
from isam.proof.layout import elsewhere
from isam.proof.legal import Legality
from isam.proof.progressions import progressions, put_back
from isam.proof.registers import at_start
from isam.proof.tree import check_tree
from isam.proof.violation import Findings
from isam.proof.workspace import check_workspace
from isam.proof.writes import Write
from isam.schedule.tree import Bound, Issue, Loop, Node, Seq, distinct
from tests.unit.proof import test_dealt, test_registers
from tests.unit.proof.handmade import tiny_matmul, vec_matmul
from tests.unit.proof.test_layouts import SIZE, facts, places

V = Affine.of
COLUMNS, TRIP = 3, 4


# from one iteration to the next ---------------------------------------------------------------------------------------
def lying(box: Box, offset: Affine, strides: tuple[int, ...], value: int) -> dict[tuple[int, ...], int]:
    """Where elements lie in an iteration, by element."""
    ranges = [range(lo.evaluate({"v": value}), hi.evaluate({"v": value})) for lo, hi in box]
    first = offset.evaluate({"v": value})
    return {e: first + sum(map(mul, strides, (a - r[0] for a, r in zip(e, ranges, strict=True))))
            for e in product(*ranges)}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_what_outlives_later_iterations(seed: int) -> None:
    """No later write has left other bytes in its place, or new values elsewhere."""
    choose, said = random.Random(seed), Counter[bool]()
    over = span(Loop("v", (Bound(Affine()),), (Bound(Affine((), TRIP)),), 1, Seq()))
    ctx = Context((over.desc,))

    def drawn() -> tuple[Box, Affine, tuple[int, int]]:
        row, wide = V("v", choose.choice((0, 1, 1, 2))) + choose.randint(0, 2), choose.randint(1, 2)
        column = choose.randint(0, COLUMNS - 1)
        box = ((row, row + wide), (Affine.lift(column), Affine.lift(choose.randint(column + 1, COLUMNS))))
        strides = choose.choice(((16, 4), (16, 4), (12, 4), (4, 32)))
        base = choose.choice((0, 0, 0, 64, 256))
        return box, row * strides[0] + column * strides[1] + base, strides

    for _ in range(250):
        fs = facts()
        (box, offset, strides), (theirs, there, rule) = drawn(), drawn()
        old = fs.make("a", ("m", ""), None, offset, strides, box)
        spot, compute = ("m", "") if choose.random() < 0.7 else ("n", ""), choose.random() < 0.6
        exact = fs.make("a", spot, None, there, rule, theirs)
        t = fs.sought(exact)
        known = choose.random() < 0.8
        w = Write("a", spot, t.hull, (t.low, t.high) if known else None, t if known else None, compute,
                  exact if known else None, Family(t.box, t.over))  # fmt: skip
        kept = survives(old, "v", over, [w], fs, ctx, "w")
        said[kept] += 1
        for u, v in product(range(TRIP), repeat=2):
            if u < v and kept:
                mine, new = lying(box, offset, strides, u), lying(theirs, there, rule, v)
                for e, at in mine.items():
                    assert not compute or e not in new or (spot == ("m", "") and new[e] == at)
                    assert spot != ("m", "") or all(abs(at - b) >= SIZE or (x, b) == (e, at) for x, b in new.items())
    assert min(said.values()) > 40


@pytest.mark.parametrize("seed", range(4))
def test_a_progression_says_what_the_facts_of_a_loop_say(seed: int) -> None:
    """Facts about all iterations of up to two loops, at even distances: no element more or less, nor another place."""
    choose, fs, found = random.Random(seed), facts(), Counter[int]()
    for _ in range(60):
        step, count, far = choose.choice((1, 2)), choose.randint(2, 4), choose.choice((8, 16, 24))
        last = choose.randint(0, 2)
        wide = step * choose.choice((count, count, 5))
        loops = [Var("v", (Bound(Affine()),), (Bound(Affine((), wide * last)),), wide, Affine()),
                 Var("w", (Bound(Affine()),), (Bound(Affine((), choose.randint(0, 2))),), 1, Affine())]  # fmt: skip
        over = tuple(choose.sample(loops, choose.choice((0, 1, 2, 2))))
        row = sum((V(v.name) for v in over if v.name == "v"), Affine())
        column = sum((V(v.name) for v in over if v.name == "w"), Affine())
        at = row * choose.choice((far // step, far // step, 16)) + column * 4
        some = [fs.make("a", ("m", ""), None, at + n * far, (far // step, 4),
                        ((row + n * step, row + n * step + 1), (column, column + 1)), over)
                for n in range(count)]  # fmt: skip
        told = [places(f.offset, f.strides, f.box, f.over) for f in some]
        for f, shape in progressions(some):
            offset, box = put_back(shape)
            assert places(offset, f.strides, box, shape.over) == set().union(*told)
            found[len(shape.over)] += 1
    assert found.keys() >= {1, 2, 3}


# from bind to call, and before ----------------------------------------------------------------------------------------
def test_what_is_legal_when_constants_are_bound_is_not_in_a_call() -> None:
    s = vec_matmul(4, 8, 10, bound=True)
    assert check_flat(s) == []
    found = check_flat(replace(s, call=Seq((s.bind, s.call))))
    assert {(v.obligation, v.kind) for v in found} == {(8, "base")}


def test_no_register_that_a_command_sets_is_known_at_the_start() -> None:
    s = test_registers.good()
    ins = {n.instruction for n in distinct(s.call) if isinstance(n, Issue)}
    changed = {r for i in ins for r in s.system.instructions[i].sets}
    state = {n: replace(r, reset=k) for k, (n, r) in enumerate(s.system.state.items()) if k % 3}
    state["idle"] = replace(next(iter(state.values())), name="idle", reset=7)
    assert state.keys() & changed
    made = replace(s, system=replace(s.system, state={**s.system.state, **state}))
    assert at_start(made) == {n: (r.reset, "") for n, r in state.items() if n not in changed}


def test_too_many_points_are_not_told_apart() -> None:
    s = tiny_matmul()
    with pytest.MonkeyPatch.context() as m:
        m.setattr(flat, "POINTS", 1)
        done = replayed(s)
    assert [(v.obligation, v.kind) for v in done.found] == [(0, "budget")]
    assert (done.steps, done.alone) == (0, 0)


def test_homes_of_temporaries_are_slots() -> None:
    s = vec_matmul(4, 8, 10, bound=True)

    def found(**to: Any) -> list[str]:
        out, b = Findings(), s.kernel.buffers[0].name
        homes = {**s.homes, b: replace(s.homes[b], **to)}
        k = replace(s.kernel, buffers=tuple(replace(x, role="temp") if x.name == b else x for x in s.kernel.buffers))
        made = replace(s, homes=homes, kernel=k, cover=replace(s.cover, kernel=k))
        check_workspace(made, Legality(made), out)
        return [v.message for v in out.found if f"'{b}'" in v.message]

    name, slot = s.kernel.buffers[0].name, s.workspace[0].name
    assert f"the home of '{name}' is no slot" in found()
    assert f"the home of '{name}' is no slot" in found(base="elsewhere")
    assert f"the home of '{name}' is no slot" not in found(base=slot)


# dealt loops ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("part", ["first", "last", "enter", "exit"])
def test_no_part_of_a_dealt_loop_runs_once(part: str) -> None:
    """Even one that does what every iteration does, or nothing new."""
    loops: list[Loop] = []

    def edit(n: Node) -> Node:
        if not isinstance(n, Loop) or n.deal is None:
            return n
        loops.append(n)
        return replace(n, **{part: n.body if part in ("first", "last") else Seq((Seq(),))})

    made = test_dealt.edited(test_dealt.good(), edit)
    assert loops
    found = {(v.obligation, v.message) for v in check_tree(made) if v.kind == "deal"}
    assert (11, f"loop '{loops[0].var}' is dealt out, but has a run-time trip or parts that run once") in found


# places ---------------------------------------------------------------------------------------------------------------
def test_an_instruction_that_names_no_memories_works_at_home() -> None:
    s = tiny_matmul()
    free = {n: replace(i, operands={}) if n == "mm4" else i for n, i in s.system.instructions.items()}
    mappings = tuple(replace(m, instruction=free[m.instruction.name]) for m in s.cover.mappings)
    made = replace(s, system=replace(s.system, instructions=free), cover=replace(s.cover, mappings=mappings))
    for judge in (check_tree, check_flat):
        found = {(v.obligation, v.kind) for v in judge(made)}
        assert (9, "home") in found
        assert not judge(s)


@pytest.mark.parametrize("seed", range(2))
def test_what_numbers_alone_say_lies_apart(seed: int) -> None:
    """No byte of the operand is the fact's, whatever the variables."""
    choose, said = random.Random(seed), Counter[bool]()
    for _ in range(1200):
        fs, drawn = facts(), []
        for _ in range(2):
            row = choose.choice((Affine(), V("v"), V("w"), V("v", 2))) + choose.randint(0, 3)
            wide = choose.choice((Affine(), Affine(), V("w")))
            box = ((row, row + wide + choose.randint(1, 2)), (Affine(), Affine((), choose.randint(1, 3))))
            at = choose.choice((Affine(), V("v", 16), V("w", 16), V("v", 16))) + 4 * choose.randint(0, 24)
            drawn.append(fs.make("a", ("m", ""), None, at, (16, 4), box))
        f, other = drawn
        t = fs.sought(other)
        told = elsewhere(f, t)
        said[told] += 1
        for v, w in product(range(3), repeat=2) if told else ():
            ends = [[e.evaluate({"v": v, "w": w}) for e in (x.low, x.high)] for x in (f, t)]
            (low, high), (first, last) = ends
            assert high <= first or last <= low
    assert min(said.values()) > 30
