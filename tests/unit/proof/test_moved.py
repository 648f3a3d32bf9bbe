"""Random moves of an output about a small machine: the flat checker, each way, against every byte."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.instruction import OperandContract
from isam.proof.flat import check_flat
from isam.proof.violation import issue_text
from isam.schedule.tree import Issue, Operand, Place, Schedule, Seq, Tile
from tests.flat_both_ways import difference
from tests.unit.proof.handmade import at_home, home, move, tiny_matmul
from tests.unit.proof.test_followed import Memory, elements

RULES = ((32, 4), 0), ((32, 8), 64), ((16, 4), 128), ((4, 16), 192), ((-32, 4), 96), ((64, 4), 4), ((8, 32), 16)
ROWS, COLUMNS = 4, 8


def free() -> Schedule:
    """On a machine whose moves go to any byte, at any strides."""
    s = tiny_matmul(ROWS, COLUMNS, 4)
    system, loose = s.system, OperandContract(strides=(None, None))
    copy = replace(system.instructions["copy"], operands={"S": loose, "D": loose})
    memories = {**system.memories, "sp": replace(system.memories["sp"], align=1)}
    return replace(s, system=replace(system, instructions={**system.instructions, "copy": copy}, memories=memories))


def tile(choose: random.Random) -> Tile:
    even = choose.random() < 0.5
    steps = tuple(choose.choice((1, 1, 1, 2)) for _ in range(2))
    sides = (ROWS, COLUMNS)
    shape = [choose.randint(1, (n - 1) // k + 1) for n, k in zip(sides, steps, strict=True)]
    shape[1] = 4 if even and steps[1] == 1 else shape[1]
    start = [choose.randint(0, n - 1 - (m - 1) * k) for n, m, k in zip(sides, shape, steps, strict=True)]
    start[1] = start[1] // 4 * 4 if even else start[1]
    return Tile("C", tuple(map(Affine.lift, start)), tuple(shape), steps)


def lying(t: Tile, rule: tuple[tuple[int, int], int]) -> Place:
    strides, base = rule
    at = base + sum(s.const * k for s, k in zip(t.start, strides, strict=True))
    return Place("sp", "", Affine((), at), strides)


def moves(choose: random.Random, s: Schedule) -> list[Issue]:
    """From home to the scratchpad, about it, and home again."""
    own, rules, out = home(s.kernel, "dram", "C"), choose.sample(RULES, choose.choice((1, 1, 2))), []
    for _ in range(choose.randint(2, 6)):
        t = tile(choose)
        there = lying(t, choose.choice(rules))
        ends = (at_home(own, t), there)
        if choose.random() < 0.3:
            ends = ends[::-1]
        out.append(move("dma", "copy", t, *ends))
    return out


def expected(calls: list[Issue], s: Schedule) -> tuple[list[str], bool]:
    """The steps that do not find what they take; whether all is at home in the end."""
    memory, wrong = Memory(), []
    whole = Tile("C", (Affine(), Affine()), (ROWS, COLUMNS), (1, 1))
    all_ = Operand("C", whole, at_home(home(s.kernel, "dram", "C"), whole), (0, 1))
    memory.write(all_, False)
    for c in calls:
        source, target = c.operands
        if memory.holds(source):
            memory.write(target, False)
        else:
            wrong.append(issue_text(c))
    return wrong, memory.holds(all_)


@pytest.mark.parametrize("seed", range(6))
def test_a_move_takes_what_is_there(seed: int) -> None:
    s, said = free(), []
    for part in range(25):
        choose = random.Random(f"{seed} {part}")
        calls = moves(choose, s)
        wrong, at_home_ = expected(calls, s)
        one = replace(s, call=Seq(tuple(calls)))
        found = check_flat(one)
        absent = [v.step for v in found if v.kind == "absent"]
        assert absent == list(dict.fromkeys(wrong)), calls
        assert not {v.kind for v in found} - {"absent", "coverage", "final"}
        assert at_home_ or wrong
        if part % 5 == 0:
            assert not difference(one, {})
        said.append(bool(wrong))
    assert 3 < sum(said) < 22


@pytest.mark.parametrize("part", range(4))
def test_where_a_tile_may_lie(part: int) -> None:
    """Addresses at both ends of the scratchpad, and one element beyond."""
    s = free()
    capacity = s.system.memories["sp"].capacity
    for seed in range(12):
        choose = random.Random(f"{part} {seed}")
        t, strides = tile(choose), choose.choice(RULES)[0]
        o = Operand("D", t, Place("sp", "", Affine(), strides), (0, 1))
        at = [a for _, _, a in elements(o)]
        for first, right in ((-min(at), True), (-min(at) - 4, False), (capacity - 4 - max(at), True),
                             (capacity - max(at), False), (-min(at) + 2, True)):  # fmt: skip
            call = move(
                "dma", "copy", t, at_home(home(s.kernel, "dram", "C"), t), replace(o.place, offset=Affine((), first))
            )
            one = replace(s, call=Seq((call,)))
            assert ("address" not in {v.kind for v in check_flat(one)}) is right, (first, t, strides)
