"""Loops dealt to replicas, calls that step together, boxes that rotate (SCH-3, SYS-4, SCH-7)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import isam
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.proof.flat import check_flat
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct
from isam.system.groups import Replica
from isam.system.load import load_system
from tests.campaign import one
from tests.machines import CROWD
from tests.machines.small import CLIP, SAME, ZERO_ROW, instruction, small
from tests.pipeline import compiled, judge

PRODUCT = isam.einsum("mk,kn->mn")


def product(m: int, n: int, k: int, system: str = CROWD) -> Schedule:
    sizes = {"M": m, "N": n, "K": k}
    job = compiled(PRODUCT, sizes, load_system(system), check=True)
    judge(PRODUCT, sizes, job)
    assert job.schedule is not None
    return job.schedule


def instances(schedule: Schedule) -> Counter[int]:
    """How many products each instance is given, following the tree."""
    out: Counter[int] = Counter()

    def walk(node, at: int, scope: dict[str, int]) -> None:
        if isinstance(node, Issue):
            out[at] += node.nest is not None and node.instruction.startswith("mm4")
        elif isinstance(node, Seq):
            for c in node.children:
                walk(c, at, scope)
        else:
            for t, v in enumerate(node.values(scope)):
                mine = at if node.deal is None else at + node.deal.first + node.deal.stride * t
                walk(node.body, mine, {**scope, node.var: v})

    walk(schedule.call, 0, {})
    return out


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (64, 16, 32), (16, 52, 24), (37, 41, 19), (13, 40, 12)])
def test_every_instance_has_its_part_of_a_product(m, n, k):
    given = instances(product(m, n, k))
    calls = -(-m // 4) * -(-n // 4) * -(-k // 4)
    assert sum(given.values()) == calls
    assert set(given) == {0, 1, 2} or calls < 3
    assert max(given.values()) <= 2 * calls / 3 + 4


@pytest.mark.parametrize("sizes", [(64, 16, 32), (64, 64, 64)])
def test_both_members_of_a_cluster_work(sizes):
    """Leaving one idle when two independent tiles exist is a failure (SCH-3)."""
    schedule = product(*sizes)
    units = Counter(n.unit for n in distinct(schedule.call) if isinstance(n, Issue) and n.instruction == "mm4_f32")
    assert units["mm"] == units["mm2"] > 0
    joined = [n for n in distinct(schedule.call) if isinstance(n, Issue) and n.joined]
    assert len(joined) == units["mm2"]


def test_what_changes_fastest_lies_at_two_places_in_turn():
    schedule = product(48, 32, 512, "toy")
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    turning = [n for n in loops if len(boxes(n.body, "x2")) == 2]
    assert turning
    assert all(len({o.place.offset for o in boxes(n.body, "x2")}) == 2 for n in turning)


def boxes(body: Node, buffer: str) -> list:
    """What a body brings of a buffer to the scratchpad, outside its inner loops."""
    if isinstance(body, Seq):
        return [b for c in body.children for b in boxes(c, buffer)]
    if not (isinstance(body, Issue) and body.is_move and body.operands[0].tile.buffer == buffer):
        return []
    source, target = body.operands
    return [target] if target.place.memory == "sp" and max(source.tile.shape) > 4 else []


def test_a_reduction_is_not_dealt():
    """Every block of `y` would be summed by all instances at once."""
    kernel = parse_kernel("kernel s(N=48)\n  in x: f32[N]\n  inout y: f32[1]\n  forall i < N\n    y[0] += x[i]\n")
    job = compiled(kernel, {}, load_system(CROWD), check=True)
    judge(kernel, {}, job)
    assert job.schedule is not None
    assert not any(isinstance(n, Loop) and n.deal for n in distinct(job.schedule.call))


@pytest.mark.parametrize(("threads", "used"), [(False, 4), (True, 1)])
def test_only_threads_have_to_meet(threads, used):
    """Instances that one schedule drives begin at once: four share what a thread alone would have done before others
    were there. Calls find their operands in a memory that home feeds."""
    clip = instruction("clip(M <= 8, N <= 8)", CLIP, "homes: [near]")
    one = small("quads", {"near": "capacity: 4 KiB"}, ["dram <-> near"], clip)
    machine = replace(one, replicas={"quad": Replica("quad", 4, ("near",), ("pe", "dma"), threads)})
    kernel = parse_kernel("kernel relu(M, N)\n  in  x: f32[M, N]\n  out y: f32[M, N]\n"
                          "  forall i < M, j < N\n    y[i, j] = max(x[i, j], 0)\n")  # fmt: skip
    job = compiled(kernel, {"M": 64, "N": 32}, machine, check=True)
    judge(kernel, {"M": 64, "N": 32}, job)
    assert job.schedule is not None
    dealt = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.deal]
    assert (dealt[0].trip if dealt else 1) == used


ROW_PRODUCT = """
  in    A: f32[K]
  in    B: f32[K, N]
  inout C: f32[N]
  forall j < N, k < K
    C[j] += A[k] * B[k, j]
"""


def test_what_is_slow_to_bring_decides_how_blocks_are_dealt():
    """A tile of the second factor takes as long as 64 calls: four instances take columns, and blocks of as many rows
    as there is room for. Tiles of both counted alike, and each brought twice as many of the slow ones."""
    cost = "cost: {issue: 128 cycles}"
    slow = instruction("copy(M, N)", SAME, "cost: {bandwidth: 1 B/cycle}")
    mac = instruction("mac(N <= 128, K <= 16)", ROW_PRODUCT, "homes: {A: [left], B: [right], C: [sums]}", cost)
    zero = instruction("zero(J <= 128)", ZERO_ROW, "homes: [sums]")
    memories = {"left": "capacity: 32 KiB", "right": "cells: 2, cell: 8 KiB", "sums": "capacity: 32 KiB"}
    one = small("columns", memories, ["dram -> left", "dram -> right", "dram <-> sums"], mac, zero, copy=slow)
    machine = replace(one, replicas={"bank": Replica("bank", 4, ("left", "right", "sums"), ("pe", "dma"))})
    sizes = {"M": 128, "N": 512, "K": 128}
    job = compiled(PRODUCT, sizes, machine, check=True)
    judge(PRODUCT, sizes, job)
    assert job.schedule is not None
    assert timeline(job.schedule).edges["dram", "right"].bytes == 2 * 512 * 128 * 4


def test_the_slow_judge_agrees():
    for sizes in ((16, 12, 8), (13, 9, 7)):
        schedule = product(*sizes)
        assert not check_flat(schedule)
        assert not check_tree(schedule)


@pytest.mark.parametrize("first", [0, 30])
def test_random_kernels(first):
    """One command for many: ``python -m tests.campaign tests/machines/crowd.yaml 0 10000``."""
    assert not [f for f in (one(seed, CROWD, native=False, check=True) for seed in range(first, first + 10)) if f]
