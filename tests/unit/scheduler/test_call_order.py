"""Nests whose calls leave more to one another than registers hold go in step within a block."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

import isam
from isam.ir.affine import Affine
from isam.ir.instruction import Cost
from isam.schedule.tree import Tile
from isam.scheduler.call_order import SHARE, _moves, ordered
from isam.scheduler.nests import Call
from tests.pipeline import compiled, simulated

LEAST = """kernel minplus(M, N, K)
  in  a: f32[M, K]
  in  b: f32[K, N]
  out c: f32[M, N]
  forall i < M, j < N
    c[i, j] = inf
  forall i < M, j < N, k < K
    c[i, j] min= a[i, k] + b[k, j]
"""


class Named:
    """A nest that uses these buffers of one near memory: names of those written begin with ``>``."""

    def __init__(self, number: int, *buffers: str, cycles: float = 0.5) -> None:
        self.number = number
        self.instruction = SimpleNamespace(cost=Cost(issue=cycles))
        self.uses = tuple(Place(b.lstrip(">"), b.startswith(">")) for b in buffers)


class Place:
    def __init__(self, buffer: str, writes: bool) -> None:
        self.buffer, self.writes, self.reads, self.homes = buffer, writes, not writes, ("near",)


def call(nest: Named, *at: int) -> Call:
    """One element of each operand."""
    tiles = tuple(Tile(u.buffer, (Affine((), n),), (1,), (1,)) for u, n in zip(nest.uses, at, strict=True))
    return nest, {}, {}, tiles  # type: ignore[return-value]


def sequence(calls: Sequence[Call]) -> list[tuple[int, tuple[int, ...]]]:
    return [(n.number, tuple(t.start[0].const for t in tiles)) for n, _, _, tiles in calls]


def one(nests: list[list[Call]], limit: int) -> list[tuple[int, tuple[int, ...]]]:
    return sequence(ordered(nests, {}, {"near": limit}, lambda m, t: 1))


def chain(cycles: float) -> list[list[Call]]:
    """Six calls that hand a tile each to six others."""
    make, use = Named(0, "x", ">t", cycles=cycles), Named(1, "t", ">y", cycles=cycles)
    return [[call(make, n, n) for n in range(6)], [call(use, n, n) for n in range(6)]]


USE = Named(1, "t", ">y")
CHAIN = chain(0.5)


def test_what_has_room_stays_nest_after_nest() -> None:
    assert one(CHAIN, 7) == sequence([*CHAIN[0], *CHAIN[1]])


@pytest.mark.parametrize("limit", [3, 6])
def test_what_has_none_goes_in_step(limit: int) -> None:
    assert one(CHAIN, limit) == [(k, (n, n)) for n in range(6) for k in (0, 1)]


def test_calls_that_take_long_stay_side_by_side() -> None:
    """Four results of six have no room for long, and are sent away and brought again: eight moves of twelve calls."""
    least = 8 / (12 * SHARE)
    assert one(chain(least + 0.01), 3) == one(CHAIN, 7)
    assert one(chain(least - 0.01), 3) != one(CHAIN, 7)


def test_what_each_nest_reads_by_itself_stays_for_all_of_its_calls() -> None:
    """In step, three constants would take the place of what is handed on."""
    first, second, third = Named(0, "a", "x", ">t"), Named(1, "b", "t", ">u"), Named(2, "c", "u", ">y")
    nests = [[call(n, 0, k, k) for k in range(3)] for n in (first, second, third)]
    assert one(nests, 5) == sequence([c for calls in nests for c in calls])
    assert one([*nests[:1], [call(USE, k, k) for k in range(3)]], 3) != sequence([*nests[0], *CHAIN[1][:3]])


def test_what_is_used_last_gives_way() -> None:
    """Of one that is used next, and last too, and one that is used once in between, the second gives way."""
    own, new = Named(0, "x"), Named(1, "z")
    first, second, third = call(own, 0), call(own, 1), call(new, 0)
    calls = [first, second, third, first, third, second, first]
    assert _moves(calls, {"near": 2}, lambda m, t: 1) == (4, True)


def test_what_is_no_better_in_step_stays() -> None:
    """The second nest begins with what the first makes last."""
    turned = [CHAIN[0], CHAIN[1][::-1]]
    assert one(turned, 3) == sequence([*turned[0], *turned[1]])


def test_a_nest_with_fewer_calls_keeps_pace() -> None:
    """Of three sums that begin, each begins when it is needed."""
    begin, add = Named(0, ">s"), Named(2, "t", ">s")
    nests = [[call(begin, n) for n in range(3)], CHAIN[0], [call(add, n, n // 2) for n in range(6)]]
    out = one(nests, 3)
    assert [k for k, _ in out] == [0, 1, 2, 1, 2] * 3 or out.index((0, (2,))) > out.index((2, (1, 0)))
    assert sorted(out) == sorted(sequence([c for calls in nests for c in calls]))


@pytest.mark.parametrize("seed", range(60))
def test_no_call_passes_another_that_it_depends_on(seed: int) -> None:
    rng = random.Random(seed)
    nests = []
    for k in range(rng.randint(2, 4)):
        nest = Named(k, *(rng.choice(["x", "t", "u", ">t", ">u", ">y"]) for _ in range(rng.randint(1, 3))), cycles=0)
        nests.append([call(nest, *(rng.randrange(6) for _ in nest.uses)) for _ in range(rng.randint(0, 8))])
    before = [c for calls in nests for c in calls]
    after = ordered(nests, {}, {"near": rng.randint(1, 4)}, lambda m, t: 1)
    assert sorted(map(id, before)) == sorted(map(id, after))
    place = {id(c): n for n, c in enumerate(after)}
    for n, a in enumerate(before):
        for b in before[n + 1 :]:
            tied = any(
                t == s and (u.writes or v.writes)
                for u, t in zip(a[0].uses, a[3], strict=True) for v, s in zip(b[0].uses, b[3], strict=True)
            )  # fmt: skip
            if tied or a[0] is b[0]:
                assert place[id(a)] < place[id(b)]


def test_sums_of_minima_leave_no_sum_in_memory() -> None:
    job = compiled(isam.parse(LEAST), {"M": 24, "N": 64, "K": 32}, simulated("host-avx512"))
    assert "t1" not in {s.name for s in job.schedule.workspace}
    a, b = (np.random.default_rng(1).standard_normal(s).astype("f4") for s in ((24, 32), (32, 64)))
    f = isam.compile(LEAST, sizes={"M": 24, "N": 64, "K": 32}, cache=False)
    assert np.array_equal(f(a, b), (a[:, :, None] + b).min(1))
