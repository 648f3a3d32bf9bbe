"""Windows that slide over what is read: register blocks that fall on few sets of a cache, or overlap in registers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import Loop, distinct
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans.conflicts import (
    AHEAD,
    EVICTED,
    MISS,
    SLOWER,
    STREAMS,
    best_with_conflicts,
    cheapest,
    conflicts,
    fetched,
    overlaps,
    rows_late,
    short_rows,
    taken_whole,
)
from isam.scheduler.plans.register import RegisterBlock, blocks, least
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.sets import fullest, values_of
from isam.scheduler.routes import Routes
from isam.system.graph import System
from isam.system.hierarchy import HIDDEN
from tests.pipeline import compiled, simulated
from tests.unit.cost.test_dealt import VECTORS
from tests.unit.test_partial import SOFTMAX

DEPTHWISE = """kernel depthwise(H, W, C)
  in    X: f32[H + 2, W + 2, C]
  const w: f32[3, 3, C]
  out   Y: f32[H, W, C]
  forall h < H, v < W, c < C
    Y[h, v, c] = 0
  forall h < H, v < W, r < 3, s < 3, c < C
    Y[h, v, c] += X[h + r, v + s, c] * w[r, s, c]
"""


def tiles_of(plan: Plan) -> tuple[tuple[str, int], ...]:
    """The tiles of the register block that a plan is made for, as its note says."""
    words = [part.split() for part in plan.note.removeprefix("block of ").split(" x ")]
    return tuple((axis, int(n)) for n, axis in words)


def asked(group: Group, system: System) -> Request:
    """For plans of a group on a machine, nothing bound."""
    return Request(group, system, Routes(system, Trace(Greedy())))


class Seen(Greedy):
    """Remembers the group with the main nest, which has a sum if any has, and what was chosen."""

    main: Any = None
    group: Any = None
    taken: Any = None

    def tile(self, choice: Choice) -> Any:
        plan = self._cheapest(choice)
        if self.main is None or choice.context["_group"].main.reduced:
            self.group, self.taken = choice.context["_group"], plan
            self.main = self.group.main
        return plan


def seen(text: str | Kernel, sizes: dict[str, int], on: str = "host-avx512") -> Seen:
    approach = Seen()
    compiled(parse_kernel(text) if isinstance(text, str) else text, sizes, simulated(on), approach)
    return approach


GATES = """kernel gates(M, N, K)
  in    x: f32[M, K]
  const w: f32[3, K, N]
  out   Y: f32[M, N]
  temp  v: f32[3, M, N]
  forall q < 3, i < M, j < N
    v[q, i, j] = 0
  forall q < 3, i < M, j < N, k < K
    v[q, i, j] += x[i, k] * w[q, k, j]
  forall i < M, j < N
    Y[i, j] = v[0, i, j] * v[1, i, j] + v[2, i, j]
"""


@pytest.mark.parametrize("columns", [1024, 1536])
def test_what_is_taken_together_is_made_together(columns):
    """Three gates of 16 columns, whether or not three vectors of columns go into all of them as well: 1536 are 32 times
    three vectors, which would leave each gate in memory until the others are there."""
    found = seen(GATES, {"M": 32, "N": columns, "K": 1536})
    assert taken_whole(found.group, found.main) == ["q"]
    assert dict(found.taken.order).get("q", 3) == 3


STEPS = """kernel steps(T, M, N, K)
  in    x: f32[T, M, K]
  const w: f32[3, K, N]
  out   Y: f32[T, 3, M, N]
  forall t < T, q < 3, i < M, j < N
    Y[t, q, i, j] = 0
  forall t < T, q < 3, i < M, j < N, k < K
    Y[t, q, i, j] += x[t, i, k] * w[q, k, j]
"""


@pytest.mark.parametrize(("rows", "steps"), [(1, 8), (2, 4), (3, 2), (4, 2), (6, 1), (8, 1)])
def test_batches_of_few_rows_are_taken_several_at_a_time(rows, steps):
    """A weight is read for eight rows at a time, whether these are of one step or of several."""
    found = seen(STEPS, {"T": 64, "M": rows, "N": 1536, "K": 1536})
    assert dict(found.taken.order).get("t", 1) == steps


def test_of_several_batches_a_block_has_all_rows():
    main = seen(STEPS, {"T": 64, "M": 4, "N": 1536, "K": 1536}).main
    several = [b for b in blocks(main, simulated("host-avx512"), {}) if b.of("t") > 1]
    assert several
    assert {b.of("i") for b in several} == {4}


def test_what_has_no_rows_is_blocked_along_three_axes():
    """Images, of which every operand is read along vectors."""
    text = """kernel scaled(B, H, W, C)
      in  X: f32[B, H, W, C]
      out Y: f32[B, H, W, C]
      forall b < B, h < H, v < W, c < C
        Y[b, h, v, c] = 2 * X[b, h, v, c]
    """
    found = blocks(seen(text, {"B": 8, "H": 4, "W": 2, "C": 64}).main, simulated("host-avx512"), {})
    assert any(b.of("h") > 1 for b in found)
    assert all(b.of("b") == 1 for b in found)


def block(**tiles: int) -> RegisterBlock:
    return RegisterBlock(tuple(sorted(tiles.items())), 1.0)


@pytest.mark.parametrize(("tiles", "window", "results"), [
    ({"h": 2, "v": 4, "c": 1}, 6, 2),  # 24 columns 1 KiB apart on four sets; two of eight results on each
    ({"h": 4, "v": 4, "c": 1}, 9, 4),  # rows of the results are seven times 4 KiB apart
    ({"h": 4, "v": 4, "c": 2}, 9, 4),  # the second lines fall on sets of their own
    ({"h": 1, "v": 8, "c": 4}, 8, 2),
])  # fmt: skip
def test_lines_of_a_window_and_its_results_fall_on_sets(tiles: dict[str, int], window: int, results: int) -> None:
    main = seen(DEPTHWISE, {"H": 28, "W": 28, "C": 256}).main
    at = {u.buffer: fullest(main, u, block(**tiles).widths(main)) for u in main.uses}
    image = next(u.buffer for u in main.uses if any("r" in r.names and len(r.names) > 1 for r in u.index))
    assert at[image] == window
    assert at["Y"] == results


def test_what_a_set_does_not_hold_is_fetched_again() -> None:
    main = seen(DEPTHWISE, {"H": 28, "W": 28, "C": 256}).main
    assert conflicts(main, block(h=2, v=4, c=1), 8) == 0
    assert conflicts(main, block(h=4, v=4, c=1), 8) == pytest.approx(EVICTED * (13 / 8 - 1))
    assert conflicts(main, block(h=4, v=4, c=2), 8) == pytest.approx(EVICTED * (13 / 8 - 1) / 2**0.5), "two lines"
    assert conflicts(main, block(h=4, v=4, c=1), 13) == 0
    nine = MISS / 9  # for results, nine rows of which fall on one set of eight lines
    with_rows = EVICTED * ((11 + 9) / 8 - 1)
    assert conflicts(main, block(h=9, v=2, c=1), 8) == pytest.approx(with_rows + nine)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.sampled_from([16, 48, 64, 256, 1024]),
       st.integers(5, 9))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_lines_on_a_set_are_those_counted_one_by_one(h: int, v: int, c: int, channels: int, width: int) -> None:
    main = seen(DEPTHWISE, {"H": 8, "W": width, "C": channels}).main
    image = next(u for u in main.uses if any("r" in r.names and len(r.names) > 1 for r in u.index))
    n = min(v, width), min(16 * c, channels)
    lines = {((y * (width + 2) + x) * channels + z) // 16 for y in range(min(h, 8) + 2) for x in range(n[0] + 2)
             for z in range(n[1])}  # fmt: skip
    most = max(Counter(at % 64 for at in lines).values())
    assert fullest(main, image, block(h=h, v=v, c=c).widths(main)) == most


@pytest.mark.parametrize(("height", "channels", "tiles"), [
    (14, 512, {"c": 4, "h": 2, "v": 2}),  # two sets: few pixels, several lines of each
    (7, 1024, {"c": 4, "h": 1, "v": 4}),  # one set
    (112, 32, {"c": 1, "h": 2, "v": 8}),  # all of them
])  # fmt: skip
def test_pixels_far_apart_are_taken_a_few_at_a_time(height: int, channels: int, tiles: dict[str, int]) -> None:
    found = seen(DEPTHWISE, {"H": height, "W": height, "C": channels}, "host-zen4")
    assert dict(tiles_of(found.taken)) == tiles


def test_among_equals_blocks_go_along_rows():
    """Four rows or four columns cost the same; columns lie together."""
    group, system = seen(DEPTHWISE, {"H": 28, "W": 28, "C": 32}).group, simulated("host-avx512")
    found = best_with_conflicts(blocks(group.main, system, {}), asked(group, system), 4096)
    pairs = {(b.of("h"), b.of("v"), b.of("c")): (n, b.cost) for n, b in enumerate(found)}
    for (h, v, c), (n, cost) in pairs.items():
        if h < v and (v, h, c) in pairs and pairs[v, h, c][1] == cost:
            assert n < pairs[v, h, c][0]
    assert pairs[1, 4, 1][0] < pairs[4, 1, 1][0]


STRIDED = """kernel strided(W, C, K)
  in    x: f32[2 * W, C]
  const w: f32[C, K]
  out   y: f32[W, K]
  permits contract, reassociate
  forall v < W, k < K
    y[v, k] = 0
  forall v < W, k < K, s < 2, c < C
    y[v, k] += x[2 * v + s, c] * w[c, k]
"""


def test_rows_that_a_stride_leaves_out_crowd_nothing():
    """Rows of 4096 bytes, every other one: seven of them fall on one set of eight lines."""
    main = seen(STRIDED, {"W": 16, "C": 1024, "K": 64}).main
    assert conflicts(main, block(v=7, k=2), 8) < 0.01
    assert conflicts(main, block(v=9, k=2), 8) == pytest.approx(1 / 8, abs=0.01)


def test_rows_read_where_they_lie_are_as_many_as_a_set_holds():
    """Rows of 8192 bytes, an element of each at every step: beyond eight of them every one is fetched from the next
    cache, for as many columns of calls as there are."""
    few = seen(VECTORS, {"M": 280, "N": 32, "K": 2048})
    assert conflicts(few.main, block(i=8, j=2), 8) == 0
    assert conflicts(few.main, block(i=14, j=2), 8) == pytest.approx((14 / 8 - 1) / 2, abs=0.01)
    assert conflicts(few.main, block(i=28, j=1), 8) == pytest.approx(28 / 8 - 1, abs=0.01)
    assert RegisterBlock(tiles_of(few.taken), 0.0).of("i") <= 8
    assert conflicts(seen(VECTORS, {"M": 280, "N": 32, "K": 2040}).main, block(i=28, j=1), 8) < 0.01
    many = seen(VECTORS, {"M": 280, "N": 128, "K": 2048})
    assert conflicts(many.main, block(i=14, j=2), 8) == pytest.approx((14 / 8 - 1) / 2, abs=0.01)
    assert RegisterBlock(tiles_of(many.taken), 0.0).of("i") <= 8
    assert not any(s.buffer == "A" for s in many.taken.stages), "no copy keeps them apart"


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=3))
def test_values_of_a_sum_of_multiples(terms):
    """Never fewer than there are, all of them at multiples of the distance; exact for one multiple."""
    values = {sum(x) for x in product(*(range(0, c * n, c) for c, n in terms))}
    count, step = values_of(terms)
    assert len(values) <= count
    assert all(v % step == 0 for v in values)
    if sum(n > 1 for _, n in terms) < 2:
        assert len(values) == count


def test_sizes_that_spread_over_the_sets_do_not_conflict():
    main = seen(DEPTHWISE, {"H": 30, "W": 29, "C": 48}).main
    assert conflicts(main, block(h=28, v=1, c=1), 8) == 0


def test_results_of_long_sums_do_not_matter():
    main = seen(VECTORS, {"M": 64, "N": 1024, "K": 1040}).main
    assert conflicts(main, block(i=14, j=2), 8) < 0.01


def test_consecutive_steps_share_most_of_a_window():
    main = seen(DEPTHWISE, {"H": 28, "W": 28, "C": 256}).main
    assert overlaps(main, block(h=4, v=4, c=1)) == 1 + 16 + (4 + 1) + 1
    assert overlaps(main, block(h=1, v=12, c=1)) == 1 + 12 + (12 + 3) + 1, "of few results more steps are unrolled"
    assert overlaps(main, block(h=2, v=14, c=1)) > 32
    product = seen(VECTORS, {"M": 64, "N": 64, "K": 64}).main
    assert overlaps(product, block(i=14, j=2)) == 1 + 28 + 2


def test_rows_that_are_read_in_turns_are_read_a_little_at_a_time():
    """A vector times a matrix that stays where it is; a matrix that is bound is laid out as it is read."""
    nobody: frozenset[str] = frozenset()
    main = seen(VECTORS, {"M": 1, "N": 4096, "K": 64}).main
    matrix = next(u.buffer for u in main.uses if not u.writes and len(u.index) == 2 and "j" in u.index[1].names)
    fits = AHEAD // (4 * main.unit("j"))
    assert rows_late(main, block(j=fits), nobody) == 0 < rows_late(main, block(j=fits + 1), nobody)
    assert rows_late(main, block(j=24), frozenset([matrix])) == 0
    assert rows_late(seen(VECTORS, {"M": 64, "N": 4096, "K": 64}).main, block(j=24), nobody) == 0, "read often: packed"


def test_few_rows_wait_for_panels_of_the_second_cache():
    """Four rows of 64 columns read 16 bytes for each call, six rows 10.7; 24 are given in its time."""
    main = seen(VECTORS, {"M": 96, "N": 1024, "K": 1024}).main
    near, given = 32 << 10, 24.0
    assert fetched(main, block(i=4, j=4), near, given) == pytest.approx(SLOWER * (2 / 3 - HIDDEN))
    assert fetched(main, block(i=2, j=11), near, given) == pytest.approx(SLOWER * (4 / 3 - HIDDEN)), "wide or not"
    assert fetched(main, block(i=6, j=4), near, given) == 0
    assert fetched(main, block(i=4, j=4), near, 0.0) == 0, "not known"
    panel = 4 * 64 * 1024
    assert fetched(main, block(i=4, j=4), panel * 4 // 3 + 1, given) == 0, "the panel stays in the nearest cache"
    assert fetched(main, block(i=4, j=4), panel * 4 // 3, given) > 0


@pytest.mark.parametrize("sizes", [(1024, 1024, 1024), (1500, 176, 1408)])
def test_no_block_that_waits_is_taken(sizes):
    got = seen(VECTORS, dict(zip("MNK", sizes, strict=True)))
    tiles = RegisterBlock(tiles_of(got.taken), 0.0)
    assert fetched(got.main, tiles, 32 << 10, 24.0) == 0


@pytest.mark.parametrize("most", [1, 3, 7, 40, 100])
def test_the_cheapest_are_those_of_all(most):
    """Whatever is left out unseen, or not looked at to the end, costs more than every block that is kept; equal ones
    are told apart by rank."""
    for seed in range(20):
        draw = Random(seed)
        found = [RegisterBlock((("i", n),), float(draw.randrange(12))) for n in range(40)]
        more = {b.of("i"): float(draw.choice([0, 0, 1, 5])) for b in found}

        def cost(b: RegisterBlock, last: float = inf, more: dict[int, float] = more) -> float:
            half = b.cost + more[b.of("i")] / 2
            return half if half > last else b.cost + more[b.of("i")]

        def rank(b: RegisterBlock) -> tuple[float, ...]:
            return b.cost, -b.of("i")

        every = sorted((replace(b, cost=cost(b)) for b in found), key=rank)[:most]
        assert cheapest(found, most, cost, rank) == every


@pytest.mark.parametrize(("h", "c"), [(28, 256), (56, 128), (112, 32)])
def test_the_block_taken_fits_registers_and_sets(h, c):
    got = seen(DEPTHWISE, {"H": h, "W": h, "C": c})
    tiles = RegisterBlock(tiles_of(got.taken), 0.0)
    assert overlaps(got.main, tiles) <= 32
    assert conflicts(got.main, tiles, 8) == 0


@pytest.mark.parametrize(("rows", "last", "together"), [(512, 20e9, STREAMS), (512, 40e9, 6), (64, 20e9, 6)])
def test_few_long_rows_at_a_time_come_from_a_slow_cache(rows, last, together):
    """8 MB of them, of 16 KB each; the cache gives 20 GB/s beside 156 of the one before, or has all of them near."""
    host = simulated("host-amx")
    far = replace(host.memories["l3"], bandwidth=last)
    host = replace(host, memories={**host.memories, "l3": far})
    made = compiled(parse_kernel(SOFTMAX), {"M": rows, "N": 4096}, host).schedule
    assert made is not None
    loops = (n for n in distinct(made.call) if isinstance(n, Loop))
    assert max(n.step for n in loops if any(isinstance(c, Loop) for c in distinct(n.body))) == together


ALONG = """kernel along(M, N)
  in    X: f32[M, N]
  const b: f32[N]
  out   Y: f32[M, N]
  forall i < M, j < N
    Y[i, j] = X[i, j] + b[j]
"""


@pytest.mark.parametrize(("rows", "columns", "tiles"), [
    (4096, 768, {"i": 1, "j": 8}),  # one row after the other is one stream
    (64, 768, {"i": 8, "j": 1}),  # near
    (4096, 4096, {"i": 8, "j": 1}),  # several long rows are streams as well
    (80000, 48, {"i": 2, "j": 3}),  # whole rows lie one behind the other
])  # fmt: skip
def test_short_rows_from_afar_are_gone_through_one_after_the_other(
    rows: int, columns: int, tiles: dict[str, int]
) -> None:
    found = seen(ALONG, {"M": rows, "N": columns}, "host-zen4")
    assert dict(tiles_of(found.taken)) == tiles


@pytest.mark.parametrize(("text", "sizes", "near", "axes"), [
    (ALONG, {"M": 512, "N": 768}, 512 * 768 * 4 - 1, ({"j"}, {"i"})),
    (ALONG, {"M": 512, "N": 768}, 512 * 768 * 4, None),  # twice that holds both arrays
    (ALONG, {"M": 96, "N": 2048}, 1, ({"j"}, {"i"})),  # rows of two pages
    (ALONG, {"M": 96, "N": 2064}, 1, None),
    (ALONG.replace("Y: f32[M, N]", "Y: f32[N, M]").replace("Y[i, j]", "Y[j, i]"), {"M": 512, "N": 768}, 1, None),
    (ALONG.replace("X: f32[M, N]", "X: f32[N]").replace("X[i, j]", "X[j]"), {"M": 512, "N": 768}, 1, ({"j"}, {"i"})),
])  # fmt: skip
def test_what_short_rows_are(text: str, sizes: dict[str, int], near: int, axes: Any) -> None:
    group = seen(text, sizes).group
    along, rows = short_rows(group, group.main, near)
    assert (along, rows) == (axes or (set(), set()))


def test_machines_without_caches_are_left_alone():
    got = seen(DEPTHWISE, {"H": 8, "W": 8, "C": 16}, "toy")
    system = simulated("toy")
    found = blocks(got.main, system, least(got.group, got.main))
    assert best_with_conflicts(found, asked(got.group, system), 64) == found[:64]
