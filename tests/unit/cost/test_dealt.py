"""Instances, links and clusters in time: closed forms, and equal iterations followed once to the tick."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.cost.timeline import Event, timeline
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof.races import check_races
from isam.schedule.tree import Bound, Deal, Loop, Place, Schedule, Seq
from isam.scheduler.waits import with_waits
from tests.pipeline import kept
from tests.random_streams import CORES, Dealt
from tests.unit.scheduler.test_tokens import changed

NS = 10**6  # ticks


def dealt(body: list, trip: int = CORES) -> Schedule:
    """One loop that is dealt to so many cores."""
    made = Dealt(0)
    loop = Loop("d", (Bound(Affine()),), (Bound(Affine((), trip)),), 1, Seq(tuple(body)), deal=Deal("core", 0, 1))
    return replace(made.schedule(), call=loop)


def near(at: int) -> Place:
    return Place("l", "", Affine((), at), (1,))


def mine(at: int = 0) -> Place:
    return Place("m", "", Affine.of("d", 64, at), (1,))


@pytest.mark.parametrize("seed", range(60))
def test_equal_instances_and_iterations_are_followed_once_exactly(seed):
    schedule = with_waits(Dealt(seed).schedule())
    short, whole = timeline(schedule), timeline(schedule, whole=True)
    assert (short.ticks, short.units, short.edges) == (whole.ticks, whole.units, whole.edges)
    assert (short.links, short.clusters, short.calls) == (whole.links, whole.clusters, whole.calls)
    assert whole.followed == whole.calls


@pytest.mark.parametrize("trip", [1, 2, 4])
def test_instances_share_a_link_equally_and_nothing_else(trip):
    """8 bytes over a link of 32 bytes a nanosecond that ``trip`` instances share; 10 cycles of set-up at 1 GHz."""
    make = Dealt(0).move
    t = timeline(with_waits(dealt([make("dma", mine(), near(0))], trip)))
    alone = max(8 / 16, 8 / 32 * trip)  # nanoseconds: the edge has 16 bytes a cycle for itself
    assert t.ticks == round((10 + alone) * NS)
    assert t.calls == t.units["dma"].calls == trip
    assert t.units["dma"].copies == CORES
    assert t.links["bus"].bytes == 8 * trip
    assert t.links["bus"].busy == trip * 8 * NS // 32


def test_instances_run_side_by_side():
    make = Dealt(0).move
    calls = [make("left", near(0), near(8)), make("left", near(16), near(24))]
    one, four = (timeline(with_waits(dealt(calls, n))) for n in (1, 4))
    assert one.ticks == four.ticks
    assert four.units["left"].calls == 4 * one.units["left"].calls
    assert four.utilisation("left") == 4 * one.utilisation("left")
    assert four.followed == one.followed, "equal instances are followed once"


def test_joined_calls_start_together_and_idle_members_are_counted():
    make = Dealt(0).move
    pair = [make("left", near(0), near(8)), replace(make("right", near(16), near(24)), joined=True)]
    both = timeline(with_waits(dealt(pair)))
    apart = timeline(with_waits(dealt([pair[0], replace(pair[1], joined=False)])))
    assert both.clusters["pair"].calls == CORES
    assert apart.clusters["pair"].calls == 2 * CORES
    assert both.ticks < apart.ticks
    system = dealt(pair).system
    assert both.idle(system, "right") == 0
    assert apart.idle(system, "right") == 0.5


def test_a_wait_for_every_instance_is_for_the_last_of_them():
    """The second loop reads what all instances wrote in the first; one of those was late."""
    make = Dealt(0).move
    slow = dealt([make("dma", near(0), mine())], 4).call
    first = Seq((make("dma", mine(1024), near(0)),))
    late = Loop("d", slow.lo, (Bound(Affine((), 1)),), 1, first, deal=Deal("core", 3, 1))
    other = Place("m", "", Affine((), 64 * 3), (1,))
    after = dealt([make("dma", other, near(8))], 2).call
    schedule = with_waits(replace(dealt([], 1), call=Seq((late, slow, after))))
    seen: list[Event] = []
    timeline(schedule, watch=seen.append, whole=True)
    written = max(e.finish for e in seen if e.instance == 3)
    assert all(e.start >= written for e in seen[-2:])
    assert not check_races(schedule)
    reader = schedule.call.children[-1].body.children[0]
    alone = tuple(w for w in reader.after if not w.every)
    assert alone != reader.after
    assert check_races(replace(schedule, call=changed(schedule.call, reader, alone)))


VECTORS = parse_kernel("""kernel product(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  permits reassociate, contract
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")


def test_what_is_finished_long_after_does_not_keep_iterations_from_repeating():
    """Instances are followed one after the other: moments at which others finish lie ahead of the one at hand."""
    short, long, whole = (kept(VECTORS, "casestudy", M=n, N=n, K=n).schedule for n in (512, 2048, 256))
    assert short is not None
    assert long is not None
    short, long = timeline(short), timeline(long)
    assert long.calls > 60 * short.calls
    assert long.followed < 2 * short.followed
    assert whole is not None
    assert timeline(whole).ticks == timeline(whole, whole=True).ticks
