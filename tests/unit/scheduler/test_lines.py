"""Rows that tiles are brought line by line: where they are copied to begin with one, and where that would not pay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children, distinct
from isam.scheduler.plans import pack
from isam.scheduler.plans.pack import LINE, ROOM
from tests.pipeline import compiled, simulated

PRODUCT = """kernel product(M, N, K)
  in    A: {left}[M, K]
  const B: {right}[K, N]
  out   C: {total}[M, N]
  permits reassociate, contract, flush
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += {total}(A[i, k]) * {total}(B[k, j])
"""


def scheduled(sizes: dict[str, int], on: str = "sapphire-rapids", left="bf16", right="bf16", total="f32") -> Schedule:
    job = compiled(parse_kernel(PRODUCT.format(left=left, right=right, total=total)), sizes, simulated(on), check=True)
    assert job.schedule is not None
    return job.schedule


def sources(schedule: Schedule, move: str) -> list[Operand]:
    """Where rows of the first factor are brought from."""
    calls = [n for n in distinct(schedule.call) if isinstance(n, Issue) and n.instruction.startswith(move)]
    return [o for n in calls for o in n.operands if o.tile.buffer == "A" and o.place.memory == "ram"]


@pytest.mark.parametrize(("left", "right", "total"), [("bf16", "bf16", "f32"), ("u8", "i8", "i32")])
def test_rows_that_are_brought_often_begin_with_a_line(left, right, total):
    schedule = scheduled({"M": 64, "N": 512, "K": 256}, left=left, right=right, total=total)
    found = sources(schedule, "tileload")
    assert found
    slots = {s.name: s for s in schedule.workspace}
    for o in found:
        assert o.place.base in slots, "not from the argument, which begins anywhere"
        assert slots[o.place.base].align % LINE == 0
        assert o.place.strides[0] % LINE == 0
        terms = [*o.place.offset.terms, ("", o.place.offset.const)]
        assert all(c % LINE == 0 or name.startswith("k") for name, c in terms)


@pytest.mark.parametrize("sizes", [{"M": 64, "N": 128, "K": 256}, {"M": 64, "N": 512, "K": 24}])
def test_rows_that_are_brought_seldom_or_are_shorter_than_a_line_stay(sizes):
    assert {o.place.base for o in sources(scheduled(sizes), "tileload")} <= {"A"}


def test_rows_for_vectors_stay():
    """Elements of them are broadcast, one at a time."""
    schedule = scheduled({"M": 64, "N": 512, "K": 256}, on="host-avx512", left="f32", right="f32")
    assert {o.place.base for o in sources(schedule, "splat")} == {"A"}


def copies(schedule: Schedule) -> set[int]:
    """In how many loops rows of the first factor are copied."""

    def found(node: Node, depth: int) -> Iterator[int]:
        for o in node.operands if isinstance(node, Issue) and node.instruction.startswith("store") else ():
            if o.tile.buffer == "A" and o.place.base not in ("", "A"):
                yield depth
        for c in children(node):
            yield from found(c, depth + isinstance(node, Loop))

    return set(found(schedule.call, 0))


@pytest.mark.parametrize(("rows", "columns", "room", "loops"), [
    (70, 1800, ROOM, {2}), (70, 500, ROOM, {2, 3}), (70, 1800, 1 << 17, {2, 3}), (1700, 700, ROOM, {2, 3}),
    (1700, 4000, ROOM, {2}),
])  # fmt: skip
def test_rows_are_copied_once_for_several_blocks_of_columns(rows, columns, room, loops, monkeypatch):
    """Before all blocks; inside the loop over rows for one or two of them, or where that would take too much room."""
    monkeypatch.setattr(pack, "ROOM", room)
    assert copies(scheduled({"M": rows, "N": columns, "K": 1024})) == loops


def test_tiles_find_rows_that_were_copied_once():
    schedule = scheduled({"M": 640, "N": 2560, "K": 2048})
    assert copies(schedule) == {2}
    assert {o.place.base for o in sources(schedule, "tilestream_bf16")} == {"A.0"}
    assert not sources(schedule, "tileload_bf16")
