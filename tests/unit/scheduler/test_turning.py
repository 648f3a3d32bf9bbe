"""Which loops may go back and forth, as far as memory is concerned: spans of bytes against brute force."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.schedule.byte_ranges import ByteRange
from isam.schedule.touches import Step, Touch
from isam.schedule.tree import Bound, Issue, Loop, Seq, distinct
from isam.scheduler import serpentine
from isam.scheduler.serpentine import with_serpentines
from isam.system.load import load_system
from tests.pipeline import compiled
from tests.systems.test_serpentine import CELL, NARROW, turned


class Forth(Greedy):
    def serpentine(self, choice: Choice) -> Any:
        return choice.options[0]


def around(trip: int = 2) -> Loop:
    return Loop("v", (Bound(Affine()),), (Bound(Affine((), trip)),), 1, Seq())


def touch(*spans: tuple[int, int], step: int = 8, writes: bool = False, **inside: int) -> tuple[Touch, list[ByteRange]]:
    """In an iteration of the loop around, and byte by byte in its first one."""
    steps = tuple(Step(size, 4, var) for var, size in inside.items())
    return Touch(None, None, Affine.of("v", step), steps, 4, writes), [*spans]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(200))
def test_iterations_share_no_byte_that_one_writes(seed: int) -> None:
    r = random.Random(seed)
    step, trip = r.choice((4, 8, 16, -8)), r.randint(2, 6)
    found = [touch((low := r.randrange(0, 64, 4), low + r.choice((4, 8, 12))), step=step, writes=r.random() < 0.5)
             for _ in range(r.randint(1, 4))]  # fmt: skip

    def bytes_of(n: int, writes: bool) -> set[int]:
        spans = [s for t, some in found if t.writes or not writes for s in some]
        return {b + n * step for low, high in spans for b in range(low, high)}

    meet = any(bytes_of(m, True) & bytes_of(n, False) for m in range(trip) for n in range(trip) if m != n)
    assert serpentine._independent(found, around(trip)) == (not meet)


def test_what_is_written_in_the_same_iteration_is_its_own() -> None:
    wrote = touch((0, 64), step=0, writes=True)
    assert serpentine._private([wrote, touch((0, 32), step=0), touch((32, 64), step=0)], around())
    assert not serpentine._private([touch((0, 32), step=0), wrote], around())
    assert not serpentine._private([wrote, touch((32, 68), step=0)], around())
    assert not serpentine._private([wrote, touch((0, 32), step=4)], around())


def test_what_is_written_row_by_row_is_there_for_the_same_row_and_afterwards() -> None:
    rows = touch((0, 64), step=0, writes=True, q=16)
    assert serpentine._private([rows, touch((0, 64), step=0, q=16)], around())
    assert serpentine._private([rows, touch((0, 64), step=0)], around())
    assert serpentine._private([rows, touch((0, 64), step=0, i=4)], around())
    assert not serpentine._private([rows, touch((0, 64), step=0, q=-16)], around())


def test_sums_that_lie_in_memory_between_two_blocks_are_handed_on() -> None:
    job = compiled(parse_kernel(CELL.replace("const", "in")), {"T": 6, "B": 1, "H": 64}, load_system(NARROW))
    assert job.schedule is not None
    asked = serpentine._Serpentines(job.schedule, Trace(Greedy()))
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop)]
    assert [asked._apart(n) for n in loops if n.axis == "k" and n.first is not None] == [False]
    assert any(asked._apart(n) for n in loops if n.axis == "j")


def test_the_calls_of_one_stream_that_another_counts_keep_their_order() -> None:
    """A unit that waits for all calls of another one but the last few knows which those are."""
    job = compiled(parse_kernel(CELL), {"T": 7, "B": 1, "H": 64}, load_system(NARROW), Forth())
    s = job.schedule
    assert s is not None
    assert turned(with_serpentines(s, Trace(Greedy())))
    last = next(n for n in distinct(s.call) if isinstance(n, Issue))
    units = {**s.system.units, "other": replace(s.system.units[last.unit], name="other")}
    two = replace(s, system=replace(s.system, units=units), call=Seq((s.call, replace(last, unit="other"))))
    assert not turned(with_serpentines(two, Trace(Greedy())))
