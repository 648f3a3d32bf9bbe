"""What keeps stages of blocks together, on trees made by hand: each condition of weaving spoiled alone, and what stands
between blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from isam.approach.choice import Trace
from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, Serpentine, distinct, leaves, mapped
from isam.scheduler.pipelining import with_pipelining
from tests.unit.scheduler.test_pipelining import PRODUCT, Told, kernel, made


@cache
def plain() -> tuple[Schedule, Loop]:
    """A schedule of blocks one after the other, and the loop over them."""
    schedule = made(*SMALL_PRODUCT, Told(0))
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    return schedule, next(n for n in loops if isinstance(leaves(n.body)[-1], Loop) and len(leaves(n.body)) > 2)


SMALL_PRODUCT = (kernel(PRODUCT), {"M": 32, "N": 96, "K": 64})


def pipelined(call: Node) -> Node:
    """The tree as the pass leaves it, all loops woven that can be."""
    return with_pipelining(replace(plain()[0], call=Seq((call,))), Trace(Told(1))).call


def calls_of(node: Node, name: str) -> list[Issue]:
    return [n for n in distinct(node) if isinstance(n, Issue) and n.instruction == name]


def with_cell(call: Issue, at: int, cell: int) -> Issue:
    operands = [replace(o, place=replace(o.place, cell=cell)) if n == at % len(call.operands) else o
                for n, o in enumerate(call.operands)]  # fmt: skip
    return replace(call, operands=tuple(operands))


def from_result(call: Issue) -> Issue:
    """The load of a piece, from where results go."""
    there = calls_of(plain()[1].body, "store")[0].operands[-1].place
    return replace(call, operands=(replace(call.operands[0], place=there), *call.operands[1:]))


def parts() -> tuple[list[Node], Loop, Loop]:
    *first, steps, pieces = leaves(plain()[1].body)
    assert isinstance(steps, Loop)
    assert isinstance(pieces, Loop)
    return first, steps, pieces


def as_it_is() -> list[Node]:
    first, steps, pieces = parts()
    return [*first, steps, pieces]


def a_register_of_both() -> list[Node]:
    """A step loads what a piece has in a register."""
    first, steps, pieces = parts()
    return [*first, replace(steps, body=Seq((*leaves(steps.body), calls_of(pieces.body, "load")[0]))), pieces]


def a_register_before() -> list[Node]:
    first, steps, pieces = parts()
    return [calls_of(pieces.body, "load")[0], *first, steps, pieces]


def results_that_are_read_again() -> list[Node]:
    first, steps, pieces = parts()
    load, *rest = leaves(pieces.body)
    assert isinstance(load, Issue)
    return [*first, steps, replace(pieces, body=Seq((from_result(load), *rest)))]


def a_register_from_piece_to_piece() -> list[Node]:
    """The first call of a piece finds what the last one of the piece before has left."""
    first, steps, pieces = parts()
    return [*first, steps, replace(pieces, body=Seq(leaves(pieces.body)[1:]))]


def a_register_for_what_is_left_over() -> list[Node]:
    first, steps, pieces = parts()
    return [*first, steps, pieces, calls_of(pieces.body, "store")[0]]


def an_end_of_pieces() -> list[Node]:
    first, steps, pieces = parts()
    return [*first, steps, replace(pieces, exit=calls_of(pieces.body, "store")[0])]


def a_beginning_of_steps() -> list[Node]:
    first, steps, pieces = parts()
    return [*first, replace(steps, enter=first[0]), pieces]


def peeled_steps() -> list[Node]:
    first, steps, pieces = parts()
    return [*first, replace(steps, first=steps.body), pieces]


def no_sum() -> list[Node]:
    first, steps, pieces = parts()
    moves = [n for n in leaves(steps.body) if isinstance(n, Issue) and n.is_move]
    return [*first, replace(steps, body=Seq(tuple(moves))), pieces]


def a_register_that_a_loop_begins_with() -> list[Node]:
    """Each piece leaves in it what the next one reads."""
    first, steps, pieces = parts()
    load, *rest = leaves(pieces.body)
    return [*first, steps, replace(pieces, enter=Seq((*leaves(pieces.enter), load)), body=Seq((*rest, load)))]


def two_sums_in_one_place() -> list[Node]:
    first, steps, pieces = parts()
    return [*first, steps, pieces, pieces]


SPOILED = [
    a_register_that_a_loop_begins_with, two_sums_in_one_place, a_register_of_both, a_register_before,
    results_that_are_read_again, a_register_from_piece_to_piece, a_register_for_what_is_left_over, an_end_of_pieces,
    a_beginning_of_steps, peeled_steps, no_sum,
]  # fmt: skip


def test_stages_that_keep_apart_are_woven() -> None:
    loop = replace(plain()[1], body=Seq(tuple(as_it_is())))
    assert any(isinstance(n, Loop) and n.first is not None for n in distinct(pipelined(loop)))


@pytest.mark.parametrize("spoiled", SPOILED, ids=lambda f: f.__name__)
def test_stages_that_do_not_stay_as_they_are(spoiled: Any) -> None:
    loop = replace(plain()[1], body=Seq(tuple(spoiled())))
    out = pipelined(loop)
    assert leaves(out) == (loop,), "the same, piece behind sum"


@pytest.mark.parametrize("change", [{"serpentine": Serpentine("x", 1)}, {"first": Seq()}, {"last": Seq()}])
def test_loops_whose_iterations_are_not_alike_stay_as_they_are(change: dict[str, Any]) -> None:
    loop = replace(plain()[1], **change)
    assert leaves(pipelined(loop)) == (loop,)


def order(call: Node, names: set[str]) -> list[str]:
    """Calls of some instructions in the order of execution; many of one in a row once."""
    out: list[str] = []

    def walk(node: Node, scope: dict[str, int]) -> None:
        if isinstance(node, Issue):
            if node.instruction in names and out[-1:] != [node.instruction]:
                out.append(node.instruction)
        elif isinstance(node, Seq):
            for c in node.children:
                walk(c, scope)
        else:
            values = list(node.values(scope))
            walk(node.enter, scope)
            for n, v in enumerate(values):
                walk(node.first if n == 0 and node.first is not None else node.body, {**scope, node.var: v})
            walk(node.exit, scope)

    walk(call, {"i0": 0})
    return out


def around(between: Issue) -> Loop:
    """Blocks twice, a call behind them each time."""
    return Loop("twice", (Bound(Affine((), 0)),), (Bound(Affine((), 2)),), 1, Seq((plain()[1], between)))


def elsewhere(node: Node, bases: dict[str, str], names: dict[str, str]) -> Node:
    """The same with other bases and instructions."""
    if isinstance(node, Issue):
        places = [replace(o.place, base=bases.get(o.place.base, o.place.base)) for o in node.operands]
        operands = tuple(replace(o, place=p) for o, p in zip(node.operands, places, strict=True))
        return replace(node, instruction=names.get(node.instruction, node.instruction), operands=operands)
    return mapped(node, lambda n: elsewhere(n, bases, names))


def test_pieces_come_before_a_block_that_reads_what_they_write() -> None:
    """A second loop's rows are the first one's results."""
    names = {"tileload_bf16": "tileload_i8", "round_v_f32_bf16": "copy_v_f32"}
    sources = {o.place.base for c in calls_of(plain()[1].body, "tileload_bf16") for o in c.operands[:1]}
    second = elsewhere(plain()[1], {**dict.fromkeys(sources, "C"), "C": "another"}, names)
    both = Loop("twice", (Bound(Affine((), 0)),), (Bound(Affine((), 2)),), 1, Seq((plain()[1], second)))
    got = order(pipelined(both), {"tileload_i8", "round_v_f32_bf16"})
    assert got == ["round_v_f32_bf16", "tileload_i8"] * 2, "a loop after the other"


def test_pieces_come_before_what_a_loop_begins_with() -> None:
    reads = replace(from_result(calls_of(parts()[2].body, "load")[0]), instruction="store_scalar")
    again = replace(plain()[1], enter=reads)
    loops = Loop("twice", (Bound(Affine((), 0)),), (Bound(Affine((), 2)),), 1, again)
    got = order(pipelined(loops), {"store_scalar", "round_v_f32_bf16"})
    assert got == ["store_scalar", "round_v_f32_bf16"] * 2


def test_loops_over_blocks_with_an_end_stay_as_they_are() -> None:
    loop = replace(plain()[1], exit=calls_of(parts()[2].body, "store")[0])
    assert leaves(pipelined(loop)) == (loop,)


def test_pieces_wait_for_the_next_iteration_around_behind_what_keeps_apart() -> None:
    other = replace(calls_of(plain()[1].body, "tileload_bf16")[0], instruction="tileload_i8")
    assert order(pipelined(around(other)), {"tileload_i8", "round_v_f32_bf16"})[-3:] == [
        "round_v_f32_bf16", "tileload_i8", "round_v_f32_bf16"]  # fmt: skip


@pytest.mark.parametrize("touches", ["results", "registers"])
def test_pieces_come_before_what_does_not_keep_apart(touches: str) -> None:
    pieces = parts()[2]
    call = calls_of(pieces.body, "store")[0] if touches == "results" else calls_of(pieces.body, "load")[0]
    if touches == "registers":  # of something else in memory
        call = replace(call, operands=(calls_of(plain()[1].body, "tileload_bf16")[0].operands[0], *call.operands[1:]))
    else:
        call = with_cell(call, 0, 31)
    other = replace(call, instruction="store_scalar")
    got = order(pipelined(around(other)), {"store_scalar", "round_v_f32_bf16"})
    assert got[-1] == "store_scalar"
    assert got.count("store_scalar") == 2
