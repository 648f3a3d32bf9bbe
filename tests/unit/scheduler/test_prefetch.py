"""Loops that ask caches for what their next iteration goes through: where, for what, how far ahead, and that nothing
depends on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import isam
from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.codegen.llvm import to_ir
from isam.cost.timeline import timeline
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.schedule.byte_ranges import within
from isam.schedule.serial import from_json, to_json
from isam.schedule.touches import Touch
from isam.schedule.tree import Bound, Issue, Loop, Operand, Place, Prefetch, Schedule, Seq, Tile, distinct
from isam.scheduler.next_block import issues
from isam.scheduler.prefetch import AHEAD, FURTHER, _dense, _Prefetches, ahead
from tests.machines.small import deaf
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
        ("load", "X", Affine((), 4 * 4096 * rows), "l2", 1, 0)}  # fmt: skip
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


@pytest.mark.parametrize(("sizes", "last", "asked"), [
    ({"M": 4096, "N": 768}, 20e9, {"l1"}), ({"M": 4096, "N": 768}, 40e9, set()),
    (ROWS, 20e9, set()), (ROWS, 40e9, {"l2"}),
])  # fmt: skip
def test_short_rows_are_asked_for_where_the_last_cache_is_much_slower_and_only_those(sizes, last, asked):
    """156 GB/s beside 20, not beside 40: rows of 3 KB, two of which the nearest cache holds; of 16 KB those side by
    side, which it does not hold."""
    system = simulated("host-amx")
    far = replace(system.memories["l3"], bandwidth=last)
    system = replace(system, memories={**system.memories, "l3": far})
    job = compiled(parse_kernel(SOFTMAX), sizes, system, check=True)
    assert {i.prefetch.memory for i in asking(job.schedule) if i.prefetch} == asked


def test_machines_without_caches_or_without_the_means_are_not_asked():
    approach = Asks("l1")
    host = simulated("host-avx512")
    compiled(parse_kernel(SOFTMAX), ROWS, deaf(host), approach)
    assert not approach.asked


def test_the_approach_is_told_what_an_iteration_touches():
    approach = Asks("l2")
    job = scheduled(SOFTMAX, {"M": 64, "N": 128}, approach)
    told = [{k: v for k, v in a.items() if k[0] != "_"} for a in approach.asked[-1:]]
    rows = told[0]["iterations"]
    assert told == [{"loop": "i", "buffers": ["X"], "bytes": 4 * 128 * 64 // rows, "iterations": rows,
                     "whole": 4 * 128 * 64, "rate": 0.0, "sweeps": 1, "laid": True, "row": 4 * 128}]  # fmt: skip
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


PRODUCT = """kernel product(M, N, K)
  permits contract, reassociate
  in    A: f32[M, K]
  const B: f32[K, N]
  out   C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def slow(bandwidth: float | None = 28e9) -> Any:
    """A CPU whose last cache gives so many bytes per second, beyond one of 1 MiB."""
    host = simulated("host-avx512")
    return replace(host, memories={**host.memories, "l3": replace(host.memories["l3"], bandwidth=bandwidth)})


@pytest.mark.parametrize(
    ("sizes", "bandwidth", "asked"),
    [
        ({"M": 640, "N": 1024, "K": 512}, 28e9, True),  # 2 MB of panels
        ({"M": 640, "N": 512, "K": 256}, 28e9, False),  # the near cache holds them
        ({"M": 640, "N": 1024, "K": 512}, 100e9, False),  # they come as fast as they are read
        ({"M": 640, "N": 1024, "K": 512}, None, False),  # nobody knows
        ({"M": 2, "N": 1024, "K": 512}, 28e9, False),  # so few calls that many loads are in flight
    ],
)
def test_panels_are_asked_for_where_their_cache_is_slower_than_they_are_read(sizes, bandwidth, asked):
    job = compiled(parse_kernel(PRODUCT), sizes, slow(bandwidth), check=True)
    calls = [n for n in asking(job.schedule) if n.operands[0].tile.buffer == "B"]  # rows may be asked for as well
    assert bool(calls) == asked
    assert {(i.instruction, i.operands[0].tile.buffer, *i.prefetch) for i in calls if i.prefetch} == (
        {("load", "B", Affine((), FURTHER), "l1", 1, 0)} if asked else set())  # fmt: skip
    assert {loop.axis for loop in innermost(job.schedule) if {*calls} & {*distinct(loop.body)}} == (
        {"k"} if asked else set())  # fmt: skip


def innermost(schedule: Schedule) -> list[Loop]:
    loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    return [n for n in loops if not any(isinstance(m, Loop) for m in distinct(n.body))]


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ({"M": 32, "N": 4096, "K": 1024}, True),  # 16 MB of panels, from memory: half as fast as from the last cache
        ({"M": 4, "N": 4096, "K": 1024}, False),  # what is in flight reads as far ahead
        ({"M": 32, "N": 1024, "K": 512}, False),  # from the last cache they come in time
        ({"M": 1, "N": 4096, "K": 1024}, False),  # each is read by the call that needs it: many are in flight
    ],
)
def test_of_vectors_that_share_a_line_one_asks_for_it(sizes, asked):
    job = compiled(parse_kernel(PRODUCT), sizes, simulated("host-avx2"))
    loops = [n for n in innermost(job.schedule) if n.axis == "k" and {*asking(job.schedule)} & {*distinct(n.body)}]
    assert bool(loops) == asked
    for loop in loops:
        loads = [n for n in issues(loop.body) if n.is_move and n.operands[0].tile.buffer == "B"]
        assert [n.operands[0].place.offset.const % 64 == 0 for n in loads] == [n.prefetch is not None for n in loads]
        assert 2 * sum(n.prefetch is not None for n in loads) == len(loads)


def test_of_a_stream_the_approach_is_told_how_fast_it_is_read():
    approach = Asks("none")
    job = compiled(parse_kernel(PRODUCT), {"M": 64, "N": 1024, "K": 512}, slow(), approach)
    told = [a for a in approach.asked if a["rate"] and a["sweeps"] == 1]
    assert {(t["loop"], *t["buffers"], t["whole"]) for t in told} == {("k", "B.b0", 4 * 1024 * 512)}
    want = set()
    for loop in (n for n in innermost(job.schedule) if n.axis == "k"):
        cycles = 0.5 * len([n for n in issues(loop.body) if not n.is_move])
        columns = {o.tile.start[1] for n in issues(loop.body) for o in n.operands if o.tile.buffer == "C"}
        size = loop.step * len(columns) * 16 * 4
        want.add((size, round(size / (cycles / 3e9))))
    assert {(t["bytes"], round(t["rate"])) for t in told} == want


@pytest.mark.parametrize(
    ("spans", "step", "yes"),
    [
        ([(0, 64), (64, 128)], 128, True),
        ([(64, 128), (0, 64)], 128, True),
        ([(0, 64), (64, 128)], 256, False),  # something is left out
        ([(0, 64), (128, 192)], 192, False),
        ([(0, 64), (64, 128)], 64, False),  # something is read twice
        ([(0, 64)], -64, False),
        ([(0, 64), (4096, 4160)], 64, True),  # two streams side by side
        ([(0, 64), (4096, 4224)], 64, False),
    ],
)
def test_streams_leave_nothing_out(spans, step, yes):
    loop = Loop("v", (Bound(Affine()),), (Bound(Affine((), 4)),), 1, Seq())

    def touch(span: tuple[int, int], step: int = step) -> Touch:
        row = Operand("x", Tile("B", (Affine(),), (span[1] - span[0],), (1,)), Place("home", "B", Affine(), (1,)), (0,))
        return Touch(None, row, Affine.of("v", step, span[0]), (), 1, writes=False)  # type: ignore[arg-type]

    touches = [touch(span) for span in spans]
    assert [t.hull for t in touches] == spans
    assert _dense(touches, loop) is yes
    assert not _dense([*touches[1:], touch(spans[0], 2 * step)], loop)


def test_what_asks_reads_and_can():
    s = compiled(parse_kernel(PRODUCT), {"M": 64, "N": 1024, "K": 512}, slow()).schedule
    assert s is not None
    able, unable = (_Prefetches(s, Trace(Greedy()), some) for some in ({"load"}, set[str]()))
    loop = next(n for n in innermost(s) if n.axis == "k")
    streams = able._streams(loop)
    assert [*streams] == ["B.b0"]
    assert not unable._streams(loop)
    assert not any(able._asks(t._replace(writes=True)) for t in streams["B.b0"])


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
    assert within(span, some) is yes


def test_a_stream_is_asked_for_further_ahead_where_the_last_cache_is_much_slower():
    assert ahead(slow()) == FURTHER > AHEAD == ahead(slow(100e9)) == ahead(slow(None))
