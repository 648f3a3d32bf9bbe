"""Moves that make nothing stay near, and moves before the calls of their block: where they are, that nothing depends on
them, and that the machine has a say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.codegen.llvm import to_ir
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Issue, Loop, Place, Schedule, Seq, Wait, distinct
from isam.scheduler.next_block import holds_loops, issues
from isam.scheduler.streaming import with_streaming
from isam.scheduler.upfront import with_moves_upfront
from isam.system.load import load_system
from tests.machines.small import deaf
from tests.pipeline import compiled, judge, simulated

PRODUCT = parse_kernel("""
kernel product(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, N]
  out   C: f32[M, N]
  permits contract, reassociate, flush
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += f32(A[i, k]) * f32(B[k, j])
""")
STRIP = {"M": 96, "N": 512, "K": 512}  # 32 rows take 33 of 48 KiB


class Told(Greedy):
    """Greedy, which lets pass, and brings upfront, as it is told, and keeps what it was asked."""

    def __init__(self, stream: int | None = None, upfront: int | None = None):
        self.said, self.asked = {"stream": stream, "upfront": upfront}, list[Choice]()

    def _decided(self, choice: Choice, greedy: Any) -> Any:
        self.asked.append(choice)
        n = self.said[choice.point]
        return greedy if n is None else choice.options[n]

    def stream(self, choice: Choice) -> Any:
        return self._decided(choice, super().stream(choice))

    def upfront(self, choice: Choice) -> Any:
        return self._decided(choice, super().upfront(choice))


def made(sizes: dict[str, int], approach: Greedy | None = None, kernel: Kernel = PRODUCT) -> Schedule:
    """On a machine with tiles, with its proof."""
    s = compiled(kernel, sizes, simulated("sapphire-rapids"), approach, check=True).schedule
    assert s is not None
    return s


@cache
def strip() -> tuple[Schedule, tuple[Choice, ...]]:
    told = Told()
    return made(STRIP, told), tuple(c for c in told.asked if c.point == "stream")


def loads(schedule: Schedule) -> dict[str, set[str]]:
    """By buffer: what brings its tiles in the call."""
    out: dict[str, set[str]] = {}
    for n in distinct(schedule.call):
        if isinstance(n, Issue) and n.is_move and n.operands[-1].place.memory == "tile":
            out.setdefault(n.operands[0].tile.buffer, set()).add(n.instruction)
    return out


def test_columns_pass_and_the_strip_of_rows_stays() -> None:
    schedule, asked = strip()
    assert loads(schedule) == {"A": {"tileload_bf16"}, "B": {"tilestream_groups_bf16"}}
    near = schedule.system.caches[0].capacity
    columns, rows = (next(c.context for c in asked if c.context["buffer"][0] == b) for b in "BA")
    assert columns["bytes"] == 512 * 512 * 2 < columns["between"], "once for every strip"
    assert 32 * 512 * 2 <= rows["bytes"] <= rows["between"] <= near, "without the columns it has room"
    assert asked[0].context["buffer"][0] == "B", "the outer loop is asked first"


def test_a_strip_that_has_no_room_passes_as_well() -> None:
    """But for the first columns, beside whose products each step of it is copied."""
    found = loads(made({"M": 96, "N": 512, "K": 1024}))
    assert found == {"A": {"tileload_bf16", "tilestream_bf16"}, "B": {"tilestream_groups_bf16"}}


def test_what_is_found_again_stays() -> None:
    assert loads(made({"M": 96, "N": 64, "K": 128})) == {"A": {"tileload_bf16"}, "B": {"tileload_groups_bf16"}}


def test_nothing_passes_unless_the_approach_wants_it() -> None:
    told = Told(stream=0)
    assert loads(made(STRIP, told)) == {"A": {"tileload_bf16"}, "B": {"tileload_groups_bf16"}}
    assert sum(c.point == "stream" for c in told.asked) > 1
    every = loads(made(STRIP, Told(stream=1)))
    assert every["B"] == {"tilestream_groups_bf16"}
    assert "tilestream_bf16" in every["A"]


def test_a_machine_without_such_moves_is_not_asked() -> None:
    schedule, _ = strip()
    bare = replace(schedule.system, moves=tuple(m for m in schedule.system.moves if not m.streams))
    told = Told(stream=1)
    plain = replace(schedule, system=bare)
    assert with_streaming(plain, Trace(told)) is plain
    assert not told.asked


@pytest.mark.parametrize("able", [True, False])
def test_moves_that_ask_a_cache_pass_where_the_other_move_can_ask(able: bool) -> None:
    """Rows of 2048 terms, which the nearest cache does not hold, and which every sweep asks for some of the next of."""
    system = simulated("sapphire-rapids")
    system = system if able else deaf(system, system.streaming.values())
    sizes = {"M": 1500, "N": 1280, "K": 2048}
    s = compiled(PRODUCT, sizes, system).schedule
    assert s is not None
    asks = {n.instruction for n in distinct(s.call) if isinstance(n, Issue) and n.prefetch}
    assert asks == {"tilestream_bf16" if able else "tileload_bf16"}


def test_streaming_is_no_way_between_memories() -> None:
    system = load_system("sapphire-rapids")
    streams = {m.by for m in system.moves if m.streams}
    assert streams == set(system.streaming.values())
    assert len(streams) == len(system.streaming) == 8
    assert streams.isdisjoint(m.by for moves in system.moves_by_edge.values() for m in moves)
    for plain, other in system.streaming.items():
        assert replace(system.instructions[plain].body, name="") == replace(system.instructions[other].body, name="")


def test_the_code_loads_past_the_nearest_cache() -> None:
    text = to_ir(strip()[0])[0]
    assert text.count("@llvm.x86.tileloaddt164(i8") >= 2
    assert text.count("@llvm.x86.tileloadd64(i8") >= 2


def test_the_simulator_takes_it_for_the_move_that_it_is() -> None:
    sizes = {"M": 64, "N": 320, "K": 64}  # columns of 40 KiB, gone through twice
    job = compiled(PRODUCT, sizes, simulated("sapphire-rapids"), Told(stream=1), check=True)
    assert job.schedule is not None
    assert "tilestream_groups_bf16" in loads(job.schedule)["B"]
    judge(PRODUCT, sizes, job)


def test_it_survives_being_written_and_read() -> None:
    schedule, _ = strip()
    assert loads(from_json(to_json(schedule))) == loads(schedule)


# -- moves before the calls of their block -----------------------------------------------------------------------------
def blocks(schedule: Schedule) -> list[list[Issue]]:
    """The calls of innermost loops with products."""
    bodies = [n.body for n in distinct(schedule.call) if isinstance(n, Loop) and not holds_loops(n.body)]
    rows = [[*issues(b)] for b in bodies]
    return [r for r in rows if any("dot2" in c.instruction for c in r)]


def first_call(row: Sequence[Issue]) -> int:
    return next(n for n, c in enumerate(row) if not c.is_move)


def test_tiles_are_brought_before_the_calls_of_their_block() -> None:
    whole = [r for r in blocks(strip()[0]) if sum("dot2" in c.instruction for c in r) == 4]
    assert whole
    assert all(not c.is_move for r in whole for c in r[first_call(r) :])
    late = [r for r in blocks(made(STRIP, Told(upfront=0))) if sum("dot2" in c.instruction for c in r) == 4]
    assert late
    assert all(any(c.is_move for c in r[first_call(r) :]) for r in late), "as they are wanted"


def reordered(calls: Sequence[Issue]) -> list[Issue]:
    """In a schedule of nothing else."""
    schedule = replace(strip()[0], call=Seq(tuple(calls)))
    out = with_moves_upfront(schedule, Trace(Told(upfront=1))).call
    return [c for c in distinct(out) if isinstance(c, Issue)]


@cache
def one_block() -> tuple[Issue, ...]:
    late = blocks(made(STRIP, Told(upfront=0)))
    return tuple(next(r for r in late if sum("dot2" in c.instruction for c in r) == 4))


def at(call: Issue, n: int, place: Place) -> Issue:
    """With another place of an operand."""
    operands = [replace(o, place=place) if k == n % len(call.operands) else o for k, o in enumerate(call.operands)]
    return replace(call, operands=tuple(operands))


def test_moves_keep_their_order_and_calls_theirs() -> None:
    before, after = one_block(), reordered(one_block())
    for moves in (True, False):
        assert [c for c in before if c.is_move == moves] == [c for c in after if c.is_move == moves]
    assert list(before) != after


def test_no_move_passes_a_call_on_its_cell() -> None:
    calls = list(one_block())
    used = calls[first_call(calls)].operands[0].place
    late = max(n for n, c in enumerate(calls) if c.is_move)
    calls[late] = at(calls[late], -1, used)
    on_it = [c for c in calls[:late] if not c.is_move and used in [o.place for o in c.operands]]
    out = reordered(calls)
    assert on_it
    assert max(out.index(c) for c in on_it) < out.index(calls[late])


@pytest.mark.parametrize("what", ["waits", "joined", "reads what is written"])
def test_no_move_passes_what_it_depends_on(what: str) -> None:
    calls = list(one_block())
    late = max(n for n, c in enumerate(calls) if c.is_move)
    before = late - 1
    assert not calls[before].is_move
    if what == "waits":
        calls[late] = calls[late].waiting((Wait("core", 1),))
    elif what == "joined":
        calls[before] = replace(calls[before], joined=True)
    else:
        calls[before] = at(calls[before], -1, Place("ram", "A", Affine(), (1, 1), None))
    out = reordered(calls)
    assert out.index(calls[late]) == out.index(calls[before]) + 1
