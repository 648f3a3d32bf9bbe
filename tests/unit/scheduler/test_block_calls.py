"""What is known of the calls of a block while they are carried out: uses to come, and longer tiles used with others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from isam.ir.affine import Affine
from isam.schedule.tree import Tile
from isam.scheduler.block_calls import BlockCalls
from isam.scheduler.state import MachineState
from tests.pipeline import simulated


def tile(buffer: str, start: int, length: int = 4) -> Tile:
    return Tile(buffer, (Affine((), start),), (length,), (1,))


def call(read: Tile, written: Tile) -> Any:
    return SimpleNamespace(uses=(SimpleNamespace(writes=False), SimpleNamespace(writes=True))), {}, {}, (read, written)


A, B, C, D = tile("x", 0), tile("x", 4), tile("y", 0), tile("y", 4)


def test_uses_to_come_are_those_behind_the_calls_that_are_carried_out() -> None:
    block, state = BlockCalls([call(A, C), call(B, C), call(A, D)]), MachineState(simulated("toy"))
    assert (block.next_use(A), block.last_use(A), block.next_use(B)) == (0, 2, 1)
    first = block.begin(1)
    assert (block.next_use(A), block.next_use(C), block.last_use(C)) == (2, 1, 1)
    assert block.end(first, state) == []
    both = block.begin(2)
    assert list(both) == [1, 2]
    assert block.turns.now == 1
    assert [block.next_use(t) for t in (A, B, C, D)] == [None] * 4
    assert block.end(both, state) == [B, C, A, D], "in the order of their last uses"


def test_a_longer_tile_is_used_with_the_one_that_it_begins_with() -> None:
    short, calls = tile("x", 0, 2), [call(A, C), call(tile("x", 0, 2), D)]
    block = BlockCalls(calls, clipped=True)
    assert block.wider.get(short) == A
    assert block.last_use(A) == 1
    assert BlockCalls(calls).wider == {}
    assert BlockCalls(calls).last_use(A) == 0
    assert BlockCalls([call(A, C), call(short, tile("x", 8))], clipped=True).wider == {}, "written there, too"


def test_in_no_block_nothing_is_used() -> None:
    assert BlockCalls().next_use(A) is BlockCalls().last_use(A) is None
