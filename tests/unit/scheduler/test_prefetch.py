"""Loops that ask caches for what their next iteration goes through: where, for what, how far ahead, and that nothing
depends on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import isam
from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.codegen.llvm import to_ir
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Issue, Loop, Prefetch, Schedule, distinct
from isam.scheduler.prefetch import _within
from tests.pipeline import compiled, simulated
from tests.unit.test_partial import SOFTMAX, total

ROWS = {"M": 512, "N": 4096}  # 8 MB in, 8 MB out


class Asks(Greedy):
    """Asks one cache wherever it may."""

    def __init__(self, memory: str):
        self.memory, self.asked = memory, list[dict[str, Any]]()

    def prefetch(self, choice: Choice) -> Any:
        self.asked.append(choice.context)
        return self.memory


def scheduled(text: str, sizes: dict[str, int], approach: Greedy | None = None) -> Any:
    """With its proof."""
    return compiled(parse_kernel(text), sizes, simulated("host-avx512"), approach, check=True)


def asking(schedule: Schedule) -> list[Issue]:
    return [n for n in distinct(schedule.call) if isinstance(n, Issue) and n.prefetch is not None]


def test_rows_that_no_cache_holds_are_asked_for_while_those_before_are_gone_through_again():
    job = scheduled(SOFTMAX, ROWS)
    calls = asking(job.schedule)
    rows = next(n for n in distinct(job.schedule.call) if isinstance(n, Loop) and calls[0] in [*distinct(n.body)]).step
    assert {(i.instruction, i.operands[0].tile.buffer, *i.prefetch) for i in calls if i.prefetch} == {
        ("load", "X", 4 * 4096 * rows, "l2")}  # fmt: skip
    loads = [n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.operands[0].tile.buffer == "X"]
    assert len([n for n in loads if n.prefetch]) < len([n for n in loads if n.is_move]), "not where they come first"
    assert f"prefetch +{4 * 4096 * rows} B to l2" in str(job.schedule)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (SOFTMAX, {"M": 64, "N": 4096}),  # all of it stays in the last cache
        (SOFTMAX, {"M": 4096, "N": 768}),  # rows that the nearest cache holds
        (total(), ROWS),  # gone through once: one stream, which hardware fetches ahead
        (SOFTMAX, {"M": 1, "N": 1 << 22}),  # there is no next row
    ],
)
def test_what_is_not_asked_for(text, sizes):
    assert not asking(scheduled(text, sizes).schedule)


def test_machines_without_caches_or_without_the_means_are_not_asked():
    approach = Asks("l1")
    host = simulated("host-avx512")
    without = {n: replace(i, cost=replace(i.cost, prefetch=None)) for n, i in host.instructions.items()}
    compiled(parse_kernel(SOFTMAX), ROWS, replace(host, instructions=without), approach)
    assert not approach.asked


def test_the_approach_is_told_what_an_iteration_touches():
    approach = Asks("l2")
    job = scheduled(SOFTMAX, {"M": 64, "N": 128}, approach)
    told = [{k: v for k, v in a.items() if k[0] != "_"} for a in approach.asked[-1:]]
    rows = told[0]["iterations"]
    assert told == [{"loop": "i", "buffers": ["X"], "bytes": 4 * 128 * 64 // rows, "iterations": rows}]
    assert {i.prefetch.memory for i in asking(job.schedule) if i.prefetch} == {"l2"}


def test_nothing_but_time_depends_on_it():
    asked, plain = (scheduled(SOFTMAX, {"M": 64, "N": 128}, a) for a in (Asks("l1"), None))
    assert asking(asked.schedule)
    assert not asking(plain.schedule)
    assert timeline(asked.schedule).seconds > timeline(plain.schedule).seconds, "the calls that ask cost what they cost"
    ir = [to_ir(j.schedule)[0].count("call void @llvm.prefetch") for j in (asked, plain)]
    assert ir == [len(asking(asked.schedule)), 0]


@pytest.mark.parametrize("sizes", [{"M": 5, "N": 64}, {"M": 33, "N": 250}, {"M": 64, "N": 128}])
def test_results_are_the_same(sizes):
    X = np.random.default_rng(3).normal(size=tuple(sizes.values())).astype("f4")
    asked, plain = (isam.compile(SOFTMAX, sizes=sizes, cache=False, approach=a) for a in (Asks("l1"), Greedy()))
    assert np.array_equal(asked(X), plain(X))


def test_it_is_written_down_and_read_back():
    s = scheduled(SOFTMAX, {"M": 64, "N": 128}, Asks("l2")).schedule
    again = from_json(to_json(s))
    assert [i.prefetch for i in asking(again)] == [i.prefetch for i in asking(s)]
    assert all(isinstance(i.prefetch, Prefetch) for i in asking(again))


@pytest.mark.parametrize(
    ("span", "some", "yes"),
    [
        ((0, 8), [(0, 4), (4, 8)], True),
        ((0, 8), [(4, 8), (0, 4)], True),
        ((0, 8), [(0, 4), (5, 8)], False),
        ((2, 3), [], False),
        ((2, 9), [(0, 8)], False),
    ],
)
def test_spans_together(span, some, yes):
    assert _within(span, some) is yes
