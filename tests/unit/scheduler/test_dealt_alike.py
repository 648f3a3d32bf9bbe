"""Groups dealt in the same parts: each instance finds in its own memory what it has made (SCH-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.approach.choice import NOTHING, Choice
from isam.approach.shipped.greedy import Greedy
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.proof.flat import check_flat
from isam.proof.tree import check_tree
from isam.schedule.tree import Affine, Issue, Loop, Node, Schedule, Seq, children, distinct
from tests.machines import CROWD
from tests.pipeline import compiled, judge, simulated
from tests.unit.scheduler.test_near_homes import LAYERS, ROWS, STATE, WINDOWS

ATTENTION = """kernel attention(M, N, D)
  in  q: f32[M, D]
  in  k: f32[D, N]
  in  v: f32[N, D]
  out y: f32[M, D]
  forall i < M, j < N
    p[i, j] = 0
  forall i < M, j < N, d < D
    p[i, j] += q[i, d] * k[d, j]
  forall i < M
    m[i] = -inf
    s[i] = 0
  forall i < M, j < N
    m[i] max= p[i, j]
  forall i < M, j < N
    e[i, j] = exp(p[i, j] - m[i])
    s[i] += e[i, j]
  forall i < M, j < N
    f[i, j] = e[i, j] / s[i]
  forall i < M, c < D
    y[i, c] = 0
  forall i < M, c < D, j < N
    y[i, c] += f[i, j] * v[j, c]
"""
# what is written by columns is read by rows as well
TURNED = """kernel turned(M)
  in  x: f32[M, M]
  in  w: f32[M, M]
  out y: f32[M, M]
  forall i < M, j < M
    t[i, j] = 0
  forall i < M, j < M, k < M
    t[i, j] += x[i, k] * w[k, j]
  forall i < M, j < M
    y[i, j] = 0
  forall i < M, j < M, k < M
    y[i, j] += t[i, k] * t[k, j]
"""
HALVES = """kernel halves(M, K, N)
  in  x: bf16[M, K]
  in  w: bf16[K, N]
  in  v: bf16[N, K]
  out y: f32[M, K]
  permits reassociate, contract
  forall i < M, j < N
    t[i, j] = 0
  forall i < M, j < N, k < K
    t[i, j] += f32(x[i, k]) * f32(w[k, j])
  forall i < M, j < N
    h[i, j] = bf16(max(t[i, j], 0))
  forall i < M, p < K
    y[i, p] = 0
  forall i < M, p < K, j < N
    y[i, p] += f32(h[i, j]) * f32(v[j, p])
"""


class Alike(Greedy):
    """Groups are dealt alike wherever they can be; with ``fused`` False none shares its loops."""

    def __init__(self, fused: bool = True):
        self.fused = fused

    def copartition(self, choice: Choice) -> object:
        return choice.options[1]

    def fuse(self, choice: Choice) -> object:
        return self.fused and super().fuse(choice)


class Nothing(Greedy):
    """Hands on nothing."""

    def carry(self, choice: Choice) -> object:
        return NOTHING

    promote = copartition = carry


class Otherwise(Greedy):
    """Is not asked for more than one schedule."""

    def variant(self, choice: Choice) -> object:
        return choice.options[0]


def made(text: str, on: str, approach: Greedy | None = None, **sizes: int) -> Schedule:
    job = compiled(parse_kernel(text), sizes, simulated(on), approach or Alike(), check=True)
    judge(parse_kernel(text), sizes, job, 1)
    assert not job.unproved
    assert job.schedule is not None
    return job.schedule


def near(schedule: Schedule) -> dict[str, int]:
    """The slots in a near memory, with their bytes."""
    return {w.name: w.bytes for w in schedule.workspace if w.memory != schedule.system.home}


def at_home(schedule: Schedule) -> set[str]:
    """What moves bring from home, or take there."""
    calls = (n for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move)
    return {o.tile.buffer for n in calls for o in n.operands if o.place.memory == schedule.system.home}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(8, 16, 8), (11, 19, 7), (24, 8, 12), (3, 5, 4)])
@pytest.mark.parametrize("on", ["toy_pair", "toy_grid", CROWD])
def test_layers_and_attention_compute_what_is_written(on: str, m: int, n: int, k: int, fused: bool) -> None:
    made(LAYERS, on, Alike(fused), M=m, N=n, K=k)
    made(ATTENTION, on, Alike(fused), M=m, N=n, D=k)


@pytest.mark.parametrize(("text", "sizes"), [(ROWS, {"M": 9, "N": 16}), (STATE, {"T": 3, "M": 8, "K": 8}),
                                             (WINDOWS, {"H": 9, "C": 4, "D": 6}), (TURNED, {"M": 12})])  # fmt: skip
@pytest.mark.parametrize("on", ["toy_pair", CROWD])
def test_other_kernels_compute_what_is_written(on: str, text: str, sizes: dict[str, int]) -> None:
    for fused in (True, False):
        made(text, on, Alike(fused), **sizes)


@pytest.mark.parametrize("m", [32, 96, 1000])
def test_results_on_the_case_study(m: int) -> None:
    assert "h" in near(made(HALVES, "casestudy", M=m, K=64, N=64))


def test_each_instance_has_room_for_its_part() -> None:
    schedule = made(LAYERS, "toy_pair", M=8, K=16, N=16)
    assert near(schedule) == {"h": 4 * 16 * 4, "t": 4 * 16 * 4}
    assert at_home(schedule) == {"x", "w", "v", "y", "#f32:0"}
    assert not check_flat(schedule)


def test_what_cannot_be_cut_stays_with_one_instance() -> None:
    """32 rows are one call of the matrix unit."""
    schedule = made(HALVES, "casestudy", M=32, K=64, N=64)
    assert not [n for n in distinct(schedule.call) if isinstance(n, Loop) and n.deal]
    assert near(schedule) == {"h": 32 * 64 * 2}


def test_the_quicker_of_both_is_taken() -> None:
    """On the mesh there is more to lose in instances than to gain in moves."""
    for on, alike in (("toy_pair", True), ("toy_grid", False)):
        schedule, plain = (made(LAYERS, on, a, M=16, K=16, N=16) for a in (Greedy(), Nothing()))
        assert bool(near(schedule)) is alike
        assert not near(plain) or alike
        times = timeline(schedule).seconds, timeline(made(LAYERS, on, Otherwise(), M=16, K=16, N=16)).seconds
        assert times[0] < 0.95 * times[1] if alike else times[0] == times[1]


def test_the_approach_is_asked_for_what_is_handed_on() -> None:
    asked = [d for d in made(LAYERS, "toy_pair", M=8, K=16, N=16).trace.decisions if d.point == "copartition"]
    assert asked[0].context["buffers"] == ["h", "t"]
    assert asked[0].options == (NOTHING, "handed on: t h (i:4@half)")
    assert not asked[0].costs


def test_nothing_is_offered_where_no_box_is_brought_ahead() -> None:
    for on in ("host-avx512", "toy"):
        asked = made(LAYERS, on, M=8, K=16, N=16).trace.decisions
        assert "copartition" not in {d.point for d in asked}


def test_neighbours_rows_are_not_near() -> None:
    """A window reads rows of the part before, and a turned operand those of all parts."""
    for schedule in (made(WINDOWS, "toy_pair", H=10, C=8, D=8), made(TURNED, "toy_pair", M=12)):
        assert not (near(schedule) and dealt(schedule.call))


def test_what_two_groups_write_is_at_home_in_no_parts() -> None:
    """The sums are begun by one group, and gone on with by another."""
    assert "t" not in near(made(LAYERS, "toy_pair", Alike(fused=False), M=8, K=16, N=16))


def dealt(node: Node) -> list[Loop]:
    """The outermost dealt loops, in order."""
    if isinstance(node, Loop) and node.deal:
        return [node]
    return [n for c in children(node) for n in dealt(c)]


def changed(node: Node, last: Loop, new: Node) -> Node:
    if node is last:
        return new
    if isinstance(node, Seq):
        return Seq(tuple(changed(c, last, new) for c in node.children))
    return replace(node, body=changed(node.body, last, new)) if isinstance(node, Loop) else node


def refused(schedule: Schedule, new: Any) -> bool:
    """Whether both judges refuse the schedule with its last dealt loop made anew."""
    last = dealt(schedule.call)[-1]
    other = replace(schedule, call=changed(schedule.call, last, new(last)))
    assert not check_tree(schedule)
    assert not check_flat(schedule)
    return bool(check_tree(other)) and bool(check_flat(other))


def test_a_part_of_another_instance_is_refused() -> None:
    schedule = made(LAYERS, "toy_grid", M=24, K=8, N=8)
    assert near(schedule)
    assert refused(schedule, lambda n: replace(n, deal=replace(n.deal, first=1)))
    assert refused(schedule, lambda n: replace(n, deal=replace(n.deal, first=5, stride=-1)))


def test_a_part_that_is_not_there_is_refused() -> None:
    """Each instance would read where the part of the next rows would lie."""
    schedule = made(LAYERS, "toy_pair", M=8, K=16, N=16)

    def moved(node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(map(moved, node.children)))
        if isinstance(node, Loop):
            return replace(node, body=moved(node.body))
        sides = [replace(o, place=replace(o.place, offset=o.place.offset + Affine((), 64)))
                 if o.place.base == "h" and o.name == "S" else o for o in node.operands]  # fmt: skip
        return replace(node, operands=tuple(sides))

    assert refused(schedule, moved)


def test_a_slot_that_reaches_into_what_groups_work_in_is_refused() -> None:
    schedule = made(LAYERS, "toy_pair", M=8, K=16, N=16)
    wide = tuple(replace(s, bytes=schedule.system.memories["sp"].capacity) if s.name == "h" else s
                 for s in schedule.workspace)  # fmt: skip
    assert check_tree(replace(schedule, workspace=wide))
