"""What a level of a walk is remembered by: levels are shared only where all that they depend on is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.schedule.tree import Place, Tile
from isam.scheduler.blocks import Clip
from isam.scheduler.trim import Segment
from isam.scheduler.walk import Walk
from tests.pipeline import compiled, simulated
from tests.unit.scheduler.test_attempts import begun
from tests.unit.scheduler.test_conflicts import Seen

KERNEL = parse_kernel("""kernel mm(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""").with_sizes({"M": 8, "N": 8, "K": 8})


def walk() -> Walk:
    by = Seen()
    compiled(KERNEL, {}, simulated("toy"), by)
    return Walk(begun(KERNEL), by.taken, [])


@contextmanager
def put(walk: Walk, name: str, value: object) -> Iterator[None]:
    of, _, what = name.rpartition(".")
    owner = walk.lives if of else walk
    before = getattr(owner, what)
    setattr(owner, what, value)
    yield
    setattr(owner, what, before)


HERE = Tile("C", (Affine(), Affine()), (4, 4), (1, 1))
THERE = Place("sp", "sp.results", Affine(), (16, 4))
AT = (Affine(), 4)


def changes(walk: Walk) -> dict[str, AbstractContextManager[object]]:
    lives, scope = walk.lives, walk.run.scope
    return {
        "an open loop": lives.within("i", (0, 1)),
        "a loop of some nests alone": lives.within("i", (0, 1), (0,)),
        "another open loop": lives.within("j", (0, 1)),
        "a variable": scope.variable("i0", Affine(), 4, (0, 4)),
        "a variable of another range": scope.variable("i0", Affine(), 4, (0, 8)),
        "results at home elsewhere": walk.run.homes.gathering(HERE, THERE),
        "the box of a piece": put(walk, "lives.box", {"i": AT}),
        "parts that are dealt": put(walk, "lives.parts", {"i": (Segment(0, 2, 4),)}),
        "boxes in pieces": put(walk, "in_pieces", frozenset({0})),
        "nothing staged": put(walk, "bare", True),
        "a clipped box": put(walk, "clip", Clip("i", "j", ((0, 1),))),
        "nothing": nullcontext(),
    }


def test_what_levels_depend_on_tells_them_apart() -> None:
    w = walk()
    found = {}
    for what, change in changes(w).items():
        with change:
            found[what] = w._standing()
    assert len(set(found.values())) == len(found), "each differs from all others"
    assert w._standing() == found["nothing"], "and nothing of it is left"


@pytest.mark.parametrize("depth", [0, 1])
def test_levels_from_one_state_are_made_once(depth: int) -> None:
    w = walk()
    env = {a: (Affine(), 4, Affine()) for a in w.group.axes}
    for _ in range(2):
        with w.run.data.attempt(), w.run.scope.recording():
            w.level(depth, env, (0, 1))
    once = len(w.memo)
    with w.run.data.attempt(), w.run.scope.recording(), w.lives.within("i", (0, 1)):
        w.level(depth, env, (0, 1))
    assert len(w.memo) == 2 * once
