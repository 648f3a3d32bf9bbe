"""Domains between lines: how they are cut, that what is walked is right and proved, and that it is mostly blocks."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Refused
from isam.compiler.stages import new_job, run_stages
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.proof.certificate import examine
from isam.schedule.tree import Issue, Loop, Node, Operand, Seq, Tile, distinct
from isam.scheduler.nests import nests_of
from isam.scheduler.oblique import Line, Oblique, Strip, oblique
from isam.scheduler.plans import shared_home
from isam.scheduler.staging import Stager
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge, simulated

PRODUCT = """kernel product(N, M, K)
  permits {permits}
  in  a: f32[N, K]
  in  b: f32[K, M]
  out c: f32[N, M]
  forall i < N, j < M
    c[i, j] = 0
  forall i < N, j < M, k < K{where}
    c[i, j] += a[i, k] * b[k, j]
"""
MAP = """kernel mapped(N, M)
  in  a: f32[N, M]
  out c: f32[N, M]
  forall i < N, j < M
    c[i, j] = 1
  forall i < N, j < M where {where}
    c[i, j] = a[i, j] + a[i, j]
"""
CASES = {
    "lower triangle": "j <= i",
    "upper triangle": "i <= j",
    "strictly below": "j < i - 3",
    "band": "i - 2 <= j, j <= i + 2",
    "wide band": "i - 40 <= j, j <= i + 37",
    "turned": "i + j < 60",
    "steep": "j <= 2 * i",
    "a wedge": "i <= j, j <= 3 * i",
    "a diamond": "20 <= i + j, i + j <= 90, i - j <= 30, j - i <= 30",
    "one row": "j <= i - 68",
    "none": "j <= i - 90",
    "nothing between": "j + 20 <= i, i <= j",
}


def domain(text: str, sizes: dict[str, int], on: str = "host-generic") -> tuple[Any, Oblique | None]:
    """The last nest and its strips."""
    job = run_stages(new_job(parse_kernel(text), simulated(on), sizes, None, check=False), "cover")
    assert job.cover is not None
    nest = max(nests_of(job.cover, simulated(on)), key=lambda n: n.number)
    return nest, oblique(nest, exact=False)


def walked(found: Oblique) -> list[tuple[int, int]]:
    return [(x, y) for s in found.strips for x in range(s.start, s.start + s.length)
            for y in range(s.low.at(x - s.start), s.high.at(x - s.start))]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [{"N": 70, "M": 70}, {"N": 70, "M": 23}, {"N": 9, "M": 130}])
def test_strips_hold_every_point_once(name: str, sizes: dict[str, int]) -> None:
    nest, found = domain(MAP.format(where=CASES[name]), sizes)
    assert found is not None
    want = [(x, y) for x in range(nest.length(found.x)) for y in range(nest.length(found.y))
            if all(w.evaluate({found.x: x, found.y: y}) >= 0 for w in nest.where)]  # fmt: skip
    assert sorted(walked(found)) == want
    assert all(s.low.at(x) < s.high.at(x) for s in found.strips for x in range(s.length))


def test_a_triangle_is_one_strip_with_its_lanes_inside() -> None:
    nest, found = domain(PRODUCT.format(where=" where j <= i", permits="reassociate, contract"),
                         {"N": 70, "M": 70, "K": 8})  # fmt: skip
    assert found == Oblique("i", "j", (Strip(0, 70, Line(0, 0), Line(1, 1)),))
    _, upper = domain(PRODUCT.format(where=" where i <= j", permits="reassociate, contract"),
                      {"N": 70, "M": 70, "K": 8})  # fmt: skip
    assert upper == Oblique("j", "i", (Strip(0, 70, Line(0, 0), Line(1, 1)),), across=True)
    _, small = domain(PRODUCT.format(where=" where i <= j", permits="reassociate, contract"),
                      {"N": 50, "M": 50, "K": 8})  # fmt: skip
    assert small == Oblique("j", "i", (Strip(0, 50, Line(0, 0), Line(1, 1)),), across=True)
    assert nest.unit("j") > 1


@pytest.mark.parametrize("where", ["j <= i, k <= j", "2 * j <= 3 * i"])
def test_what_is_not_between_lines_goes_element_by_element(where: str) -> None:
    text = PRODUCT.format(where=f" where {where}", permits="reassociate, contract")
    assert domain(text, {"N": 70, "M": 70, "K": 70})[1] is None
    kernel, sizes = parse_kernel(text), {"N": 9, "M": 11, "K": 10}
    judge(kernel, sizes, compiled(kernel, sizes, simulated("host-generic"), check=True))


def test_an_order_that_counts_is_kept() -> None:
    """Two axes of a sum, in order: blocks of both would add terms of later rows before those of earlier ones."""
    text = """kernel sums(N, M)
  permits exact
  in  a: f32[N, M]
  out c: f32
  c = 0
  forall i < N, j < M where j <= i
    c += a[i, j]
"""
    job = run_stages(new_job(parse_kernel(text), simulated("host-generic"), {"N": 70, "M": 70}, None), "cover")
    assert job.cover is not None
    nest = max(nests_of(job.cover, simulated("host-generic")), key=lambda n: n.number)
    assert oblique(nest, exact=True) is None
    assert oblique(nest, exact=False) is not None


PERMITS = {"host-generic": "exact", "host-avx512": "reassociate, contract", "toy": "reassociate, contract",
           "casestudy": "exact"}  # fmt: skip


@pytest.mark.parametrize(("name", "on"), [
    (name, on) for n, name in enumerate(CASES) for on in ("host-generic", "host-avx512", ("toy", "casestudy")[n % 2])
])  # fmt: skip
def test_products_between_lines_are_right_and_proved(name: str, on: str) -> None:
    """Registers of few elements a side have as many kinds of blocks in half as many rows. Of the machines that
    move tiles into such, each takes every other case: strips are cut alike for both."""
    kernel = parse_kernel(PRODUCT.format(where=f" where {CASES[name]}", permits=PERMITS[on]))
    sizes = {"N": 70, "M": 70, "K": 2} if on == "host-avx512" else {"N": 35, "M": 50, "K": 3}
    judge(kernel, sizes, compiled(kernel, sizes, simulated(on), check=True))


@pytest.mark.parametrize(("on", "permits"), [("host-generic", "exact"), ("host-avx512", "reassociate, contract")])
@pytest.mark.parametrize("where", ["k <= i", "i <= k", "i - 3 <= k, k <= i + 20", "i + k < 60"])
def test_sums_between_lines_are_right_and_proved(where: str, on: str, permits: str) -> None:
    kernel = parse_kernel(PRODUCT.format(where=f" where {where}", permits=permits))
    for sizes in ({"N": 70, "M": 3, "K": 70}, {"N": 90, "M": 2, "K": 40}):
        judge(kernel, sizes, compiled(kernel, sizes, simulated(on), check=True))


@pytest.mark.parametrize(
    "where", ["j <= i", "i <= j", "i - 40 <= j, j <= i + 37", "i <= j, j <= i + 100", "i + j < 130"])
def test_large_domains_are_proved_on_the_tree(where: str) -> None:
    """Nothing is executed step by step, as it is where steps are few."""
    kernel = parse_kernel(PRODUCT.format(where=f" where {where}", permits="reassociate, contract"))
    sizes = {"N": 140, "M": 150, "K": 6}
    with on_the_tree():
        job = compiled(kernel, sizes, simulated("host-avx512"), check=True)
    assert job.schedule is not None
    assert any(isinstance(n, Loop) and ".w" in n.var and n.step > 1 for n in distinct(job.schedule.call))
    judge(kernel, sizes, job)


@pytest.mark.parametrize("batch", [False, True])
def test_what_two_nests_leave_in_an_argument(batch: bool) -> None:
    """Set, then added to under one condition: both in blocks."""
    text = """kernel below(H, N, K)
  in    a: f32[H, N, K]
  in    b: f32[H, N, K]
  inout c: f32[H, N, N]
  forall h < H, i < N, j < N where j <= i
    c[h, i, j] = 0
  forall h < H, i < N, j < N, k < K where j <= i
    c[h, i, j] += a[h, i, k] * b[h, j, k]
"""
    text = text if batch else text.replace("h < H, ", "").replace("h, ", "").replace("H, ", "")
    kernel, sizes = parse_kernel(text), {"N": 70, "K": 5, **({"H": 2} if batch else {})}
    with on_the_tree():
        job = compiled(kernel, sizes, simulated("host-avx512"), check=True)
    assert job.schedule is not None
    steps = [n.step for n in distinct(job.schedule.call) if isinstance(n, Loop) and ".w" in n.var]
    assert max(steps) > 1
    judge(kernel, sizes, job)


SUMMED = """kernel summed(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  forall i < M, j < N
    r[i, j] = 0
    y[i, j] = 0
  forall i < M, j < N, s < N where s <= j
    r[i, j] += x[i, s]
  forall i < M, j < N, t < M where t <= i
    y[i, j] += r[t, j]
"""


@pytest.mark.parametrize("on", ["host-avx512", "host-generic"])
def test_sums_up_to_a_line_that_hand_on_a_temporary(on: str) -> None:
    """No terms can be added to a sum, so there is nothing to take whole: both go in blocks (an integral image)."""
    kernel, sizes = parse_kernel(SUMMED), {"M": 66, "N": 70}
    job = compiled(kernel, sizes, simulated(on), check=True)
    assert job.schedule is not None
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and ".w" in n.var]
    assert loops
    assert all(n.step > 1 for n in loops)
    judge(kernel, sizes, job)


def test_inside_a_time_loop() -> None:
    """What stays over the steps is brought before them: no box of one block."""
    kernel = parse_kernel("""kernel steps(T, N, K)
  in  a: f32[N, K]
  in  b: f32[K, N]
  out c: f32[T, N, N]
  loop t < T
    forall i < N, j < N
      c[t, i, j] = 0
    forall i < N, j < N, k < K where j <= i
      c[t, i, j] += a[i, k] * b[k, j]
""")
    for sizes in ({"N": 70, "K": 5}, {"N": 33, "K": 5, "T": 3}):
        job = compiled(kernel, sizes, simulated("toy"), check=True)
        judge(kernel, sizes, job, run_time={} if "T" in sizes else {"T": 2})


def conditions(seed: int) -> str:
    """One to three lines between i and j, some of them across a 40 by 40 box."""
    r, out = random.Random(seed), []
    for _ in range(r.randint(1, 3)):
        slope, sign = r.choice([-2, -1, -1, 1, 1, 2, 0]), r.choice([-1, 1])
        out.append(f"{slope} * i + {sign} * j + {r.randint(-30, 60)} >= 0")
    return ", ".join(out)


@pytest.mark.parametrize("seed", range(8))
def test_random_lines_are_right_and_proved(seed: int) -> None:
    r = random.Random(seed)
    kernel = parse_kernel(PRODUCT.format(where=f" where {conditions(seed)}", permits="reassociate, contract"))
    sizes = {"N": r.randint(1, 90), "M": r.randint(1, 90), "K": 3}
    for on in ("host-generic", "toy"):
        try:
            job = compiled(kernel, sizes, simulated(on), check=True)
        except Refused:
            pytest.skip("the machine cannot")
        judge(kernel, sizes, job, seed)


@pytest.mark.parametrize("on", ["toy", "host-generic", "casestudy"])
@pytest.mark.parametrize(("where", "axis", "sizes"), [
    ("k <= i", "N", {"M": 8, "K": 32}), ("i <= k", "K", {"M": 8, "N": 32}), ("j <= i", "N", {"M": 32, "K": 4}),
    ("i <= j, j <= i + {0}", "W", {"M": 2048, "N": 48, "K": 4}), ("2 * j <= i", "N", {"M": 64, "K": 2}),
])  # fmt: skip
def test_schedules_are_as_long_however_far_domains_reach(where: str, axis: str, sizes: dict[str, int], on: str) -> None:
    """Also where the block that a plan is made for has no loop along the axis, or one that is dealt out (SCH-10)."""
    counts = []
    for n in (256, 1024):
        text = PRODUCT.format(where=f" where {where.format(n)}", permits="reassociate, contract")
        given = sizes if axis == "W" else {**sizes, axis: n}
        job = run_stages(new_job(parse_kernel(text), simulated(on), given, None, check=False), "schedule")
        assert job.schedule is not None
        counts.append(sum(isinstance(n, Issue) for n in distinct(job.schedule.call)))
    assert counts[1] < 1.4 * counts[0]


def test_half_of_a_product_takes_about_half_the_time() -> None:
    sizes, seconds = {"N": 256, "M": 256, "K": 256}, []
    for where in ("", " where j <= i"):
        kernel = parse_kernel(PRODUCT.format(where=where, permits="reassociate, contract"))
        job = compiled(kernel, sizes, simulated("host-avx512"))
        assert job.schedule is not None
        seconds.append(timeline(job.schedule).seconds)
    assert seconds[1] < 0.9 * seconds[0]


SYRK = """kernel syrk(N, K)
  in  a: f32[N, K]
  out c: f32[N, N]
  forall i < N, j < N
    c[i, j] = 0
  forall i < N, j < N, k < K where {where}
    c[i, j] += a[i, k] * a[j, k]
"""


def test_rows_along_a_line_share_their_loops_and_what_they_read() -> None:
    """Sixteen of them: one loop over the sum, one load in a step."""
    kernel, sizes = parse_kernel(SYRK.format(where="j <= i")), {"N": 64, "K": 64}
    job = compiled(kernel, sizes, simulated("host-avx512"), check=True)
    assert job.schedule is not None
    sums = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis == "k"]
    assert len(sums) == 2, "blocks below the diagonal, and those on it"
    whole = parse_kernel(SYRK.format(where="j <= i").replace(" where j <= i", ""))
    box = compiled(whole, sizes, simulated("host-avx512")).schedule
    assert box is not None
    assert timeline(job.schedule).seconds < 0.95 * timeline(box).seconds
    bodies = [calls(n.body) for n in sums]
    (rows,) = (b for b in bodies if len({c.sizes for c in b if c.nest is not None}) > 1)
    assert [c.instruction for c in rows].count("load") == 2, "of two steps of the sum"


@pytest.mark.parametrize("where", ["j <= i", "i <= j", "i - 40 <= j, j <= i + 37"])
def test_what_blocks_read_is_laid_out_once(where: str) -> None:
    kernel, sizes = parse_kernel(SYRK.format(where=where)), {"N": 200, "K": 40}
    with on_the_tree():
        job = compiled(kernel, sizes, simulated("host-avx512"), check=True)
    assert job.schedule is not None
    assert "a.all" in {s.name for s in job.schedule.workspace}
    judge(kernel, sizes, job)


@pytest.mark.parametrize("once", [True, False])
def test_a_panel_is_not_read_across_its_blocks(once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both factors are one buffer: what was laid out for one of them is there for the other, whose rows run within a
    block of the panel."""
    if not once:
        monkeypatch.setattr(Stager, "ahead", lambda *_: None)
    kernel = parse_kernel(SYRK.format(where="i <= k").replace("f32", "f64"))
    job = compiled(kernel, {"N": 260, "K": 92}, simulated("host-avx512"), check=True)
    assert job.schedule is not None


def test_calls_longer_than_their_row_are_refused() -> None:
    made = compiled(parse_kernel(SYRK.format(where="j <= i")), {"N": 32, "K": 6}, simulated("host-avx512")).schedule
    assert made is not None
    some = [c for c in calls(made.call) if c.nest is not None and dict(c.sizes).get("J", 16) < 16]
    assert len({c.sizes for c in some}) == 15
    for call in some[:3]:
        size = dict(call.sizes)["J"]
        for other in (size - 1, size + 1):
            if other:
                operands = tuple(of_length(o, other) for o in call.operands)
                longer = replace(call, sizes=(("J", other),), operands=operands)
                assert examine(replace(made, call=put(made.call, call, longer)))[1], (size, other)


def calls(node: Node) -> list[Issue]:
    return [n for n in distinct(node) if isinstance(n, Issue)]


def of_length(o: Operand, n: int) -> Operand:
    """An operand of a call of another length, where its last dimension goes along the lanes."""
    along = o.dims[-1] if o.dims else None
    shape = tuple(n if d == along else k for d, k in enumerate(o.tile.shape))
    return replace(o, tile=Tile(o.tile.buffer, o.tile.start, shape, o.tile.steps))


def put(node: Node, old: Issue, new: Issue) -> Node:
    """The tree with another call in the place of one."""
    if node is old:
        return new
    if isinstance(node, Seq):
        return Seq(tuple(put(part, old, new) for part in node.children))
    if isinstance(node, Loop):
        parts = {n: put(part, old, new) for n in ("body", "enter", "exit", "first", "last")
                 if (part := getattr(node, n)) is not None}  # fmt: skip
        return replace(node, **parts)
    return node


LONGER = """kernel longer(M, P)
  permits nothing
  in    x: i16[M, M]
  inout y: i16[M + 1, M, P]
  const w: i16[P + 1, M, 2*P + 1]
  forall i < P, j < M + 1, k < M where 2 <= i + j
    t[i, j, k] = w[i + 1, k, 2*i + 2] * x[k, k]
    y[j, k, i] += t[i, j, k]
"""
ROWS = """kernel rows(N)
  in  x: i64[N, N + 2]
  out y: i64[2*N - 1, N]
  forall p < 2*N - 1, q < N
    y[p, q] = 0
  forall i < N, j < N where j <= i
    y[2*i, j] = x[j, j + 2]
"""


@pytest.mark.parametrize(("text", "sizes", "cores"), [
    (LONGER, {"M": 64, "P": 3}, 2), (ROWS, {"N": 69}, 2), (ROWS, {"N": 130}, 3),
])  # fmt: skip
def test_pieces_longer_than_a_block_are_dealt_to_the_cores_that_there_are(
    text: str, sizes: dict[str, int], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_home, "MEETING", -1e12)  # no loop is too short for threads
    kernel = parse_kernel(text)
    job = compiled(kernel, sizes, simulated("host-generic").threaded(cores), check=True)
    judge(kernel, sizes, job)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_condition_that_no_row_meets_leaves_nothing_to_do(rows: int):
    kernel = parse_kernel("""kernel none(M, N)
  in A: f32[M, N]
  inout C: f32[M, N]
  permits exact
  forall i < M, j < N where i >= 3, j <= i
    C[i, j] = A[i, j]
""")
    sizes, machine = {"M": rows, "N": 8}, simulated("host-avx512")
    judge(kernel, sizes, compiled(kernel, sizes, machine, check=True))


SCALED = """kernel scaled(N)
  in  a: f32[N, N]
  in  scale: f32
  out top: f32[N]
  forall i < N
    top[i] = -inf
  forall i < N, j < N where j <= i
    top[i] max= a[i, j] * scale
"""


class AsWritten(Greedy):
    """Takes the kernel as it stands: what is scaled has no elements above the diagonal."""

    name, why = "as written", "without elements that nobody asks for"

    def variant(self, choice: Choice):
        return choice.options[0]


@pytest.mark.parametrize("n", [16, 23, 64])
def test_what_nobody_writes_is_not_brought(n: int) -> None:
    kernel = parse_kernel(SCALED)
    job = compiled(kernel, {"N": n}, simulated("toy"), AsWritten(), check=True)
    judge(kernel, {"N": n}, job)
