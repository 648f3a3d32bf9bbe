"""Boxes that are brought in pieces during the first of the rounds in which they are read (SCH-7, SCH-10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module

import pytest

from isam.ir.text import parse_kernel
from isam.proof.flat import check_flat
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq
from isam.scheduler.plan import Plan
from isam.system.load import load_system
from tests.campaign_machines import one
from tests.pipeline import compiled, judge, simulated

CASESTUDY = load_system("casestudy")
PRODUCT = parse_kernel("""kernel gemm(M, N, K)
  in a: bf16[M, K]
  in b: bf16[K, N]
  out c: f32[M, N]
  permits reassociate
  forall i < M, j < N
    c[i, j] = 0
  forall i < M, j < N, k < K
    c[i, j] += f32(a[i, k]) * f32(b[k, j])
""")


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Only the best plan with a box in pieces is offered; which, is told."""
    chosen: list[Plan] = []

    def only(found: list[tuple[Plan, float, bool]]) -> list[tuple[Plan, float]]:
        some = [f for f in found if any(s.by is not None for s in f[0].stages)]
        best = sorted(some or found, key=lambda f: f[1])[:1]
        chosen.extend(p for p, *_ in best)
        return [(p, s) for p, s, _ in best]

    monkeypatch.setattr(import_module("isam.scheduler.plans.staged"), "_worth", only)
    return chosen


def brought(schedule: Schedule) -> Counter[str]:
    """Elements of each argument that come from main memory, following the tree."""
    out: Counter[str] = Counter()

    def walk(node: Node, scope: dict[str, int]) -> None:
        if isinstance(node, Issue):
            if node.is_move and node.operands[0].place.memory == "hbm":
                shape, n = node.operands[0].tile.shape, 1
                for x in shape:
                    n *= x
                out[node.operands[0].tile.buffer] += n
        elif isinstance(node, Seq):
            for c in node.children:
                walk(c, scope)
        else:
            assert isinstance(node, Loop)
            values = list(node.values(scope))
            for part in (node.enter, node.exit) if values else ():
                walk(part, scope)
            for v in values:
                walk(node.body, {**scope, node.var: v})

    walk(schedule.call, {})
    return out


@pytest.mark.parametrize("size", [(33, 520, 65), (520, 33, 65)])
def test_every_piece_comes_once_and_lies_in_its_box(size: tuple[int, int, int], in_pieces: list[Plan]) -> None:
    sizes = dict(zip("MNK", size, strict=True))
    job = compiled(PRODUCT, sizes, CASESTUDY, check=True)
    judge(PRODUCT, sizes, job)
    schedule = job.schedule
    assert schedule is not None
    assert any(s.by is not None for p in in_pieces for s in p.stages)
    assert not check_tree(schedule)
    assert not check_flat(schedule)
    assert not check_races(schedule, {}, 2)
    plan = next(p for p in reversed(in_pieces) if {s.buffer for s in p.stages} <= {"a", "b"})
    dealt = {a for a, _ in plan.order[: len(plan.deals)]}
    for s in plan.stages:
        if s.by is not None and s.depth <= len(plan.deals):
            rows = {"a": ("i", "k"), "b": ("k", "j")}[s.buffer]
            (other,) = {"i", "j"} - set(rows)
            copies = 1 if other not in dealt else -(-sizes["M" if other == "i" else "N"] // dict(plan.order)[other])
            assert brought(schedule)[s.buffer] == copies * sizes[{"a": "M", "b": "N"}[s.buffer]] * sizes["K"]


def test_a_schedule_without_one_of_the_pieces_is_refused(in_pieces: list[Plan]) -> None:
    schedule = compiled(PRODUCT, {"M": 33, "N": 900, "K": 65}, CASESTUDY).schedule
    assert schedule is not None
    found = {s.buffer for p in in_pieces for s in p.stages if s.by is not None}
    buffer = min(found & {"a", "b"})

    def without(node: Node) -> Node:
        if isinstance(node, Seq):
            kept = [c for c in node.children if not is_piece(c)]
            return Seq(tuple(without(c) for c in kept))
        return replace(node, body=without(node.body)) if isinstance(node, Loop) else node

    def is_piece(c: Node) -> bool:
        return (isinstance(c, Issue) and c.is_move and c.operands[0].place.memory == "hbm"
                and c.operands[0].tile.buffer == buffer)  # fmt: skip

    assert check_tree(replace(schedule, call=without(schedule.call)))


@pytest.mark.parametrize("seed", [5059, 1817])
def test_pieces_that_would_begin_where_no_access_may_are_brought_whole(seed: int) -> None:
    assert one(seed)[0] == "agree"


TWICE = parse_kernel("""kernel twice(M, N)
  inout y: f64[N]
  in    x: f64[M, N, M]
  permits reassociate
  forall i < M, j < N, l < M
    t[i, j, l] = x[l, j, l] * x[i, j, M - l - 1]
    y[j] += t[i, j, l]
""")


def test_a_buffer_read_in_two_ways_is_not_brought_by_one_of_them():
    """The box of one access is smaller than what both touch, which the scratchpad does not hold."""
    job = compiled(TWICE, {"M": 13, "N": 13}, simulated("toy"), check=True)
    judge(TWICE, {"M": 13, "N": 13}, job)
