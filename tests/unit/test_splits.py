"""Sums cut into parts that the groups of a machine make side by side, chosen by the time that schedules take."""

from __future__ import annotations

import pytest

from isam.approach.choice import Trace
from isam.approach.shipped.greedy import Greedy
from isam.approach.shipped.replay import Replay
from isam.approach.shipped.strategies import BestFirst
from isam.compiler.offers.splits import _length, split_sums
from isam.compiler.stages import new_job, run_stages
from isam.compiler.variants import Variant
from isam.cost.timeline import timeline
from isam.ir import oracle
from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.ir.text import parse_kernel
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.space import Step
from isam.proof.equivalence import equivalent
from isam.schedule.serial import to_json
from isam.schedule.tree import Issue, distinct
from isam.schedule.why import decisions_behind
from isam.system.load import load_system
from tests.machines import CROWD
from tests.pipeline import compiled, judge
from tests.subjects import covered

TEXT = """kernel deep(M, N, K)
  in  A: {T}[M, K]
  in  B: {T}[K, N]
  out C: {T}[M, N]
{permits}  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
SIZES = [(4, 4, 400), (4, 4, 401), (3, 2, 97), (8, 4, 300), (1, 1, 1000), (5, 3, 640)]
GRANTED = "  permits reassociate, contract\n"
DEEP = parse_kernel(TEXT.format(T="f32", permits=GRANTED))


def offered(kernel: Kernel, m: int, n: int, k: int, system: str = CROWD) -> list[tuple[Step, ...]]:
    """The steps offered for a size."""
    machine = load_system(system)
    whole = normal_form(kernel.with_sizes({"M": m, "N": n, "K": k}))
    found = cover(whole, Demand(machine.compute), Trace(Greedy()))
    assert found, str(found)
    return list(split_sums(covered(found, machine, machine.compute)))


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_a_deep_product_is_divided_proved_and_right(m: int, n: int, k: int):
    sizes = {"M": m, "N": n, "K": k}
    job = compiled(DEEP, sizes, load_system(CROWD), check=True)
    judge(DEEP, sizes, job)
    assert job.cover is not None
    assert any(s.startswith("nest-sum") for s in job.cover.steps)
    assert "reassociates" in job.cover.notes["numerics"]
    assert job.certificate is not None
    (taken,) = (d for d in job.trace.decisions if d.point == "variant")
    assert taken.costs[taken.chosen] < taken.costs[0]  # of the undivided sum
    assert len(set(taken.options)) == len(taken.options)


def test_every_step_keeps_the_meaning_and_is_followed_by_the_judge():
    for k in (24, 30, 31, 37, 48, 64, 97):
        for steps in offered(DEEP, 4, 2, k):
            kernel = normal_form(DEEP.with_sizes({"M": 4, "N": 2, "K": k}))
            arrays = oracle.inputs(kernel, {}, k)
            want = oracle.run_modular(kernel, arrays, {}, k)
            for step in steps:
                after = step.transform.apply(kernel, step.site).kernel
                assert equivalent(kernel, after), step
                got = oracle.run_modular(after, arrays, {}, k)
                assert (got["C"] == want["C"]).all(), step
                kernel = after


def test_the_results_of_a_part_lie_together_and_parts_are_whole_calls():
    (steps,) = offered(DEEP, 4, 4, 401)
    kernel = normal_form(DEEP.with_sizes({"M": 4, "N": 4, "K": 401}))
    for step in steps:
        kernel = step.transform.apply(kernel, step.site).kernel
    (partial,) = (b for b in kernel.buffers if b.name == "p")
    parts, *results = (n.const for n in partial.shape)
    assert (parts, results) == (3, [4, 4])
    (length,) = {s.domain.extent(a).const for s in kernel.statements if s.dest.buffer == partial.name
                 for a in s.reduces}  # fmt: skip
    assert length % 4 == 0
    assert 0 < 401 - parts * length < length


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ((64, 64, 64), "enough blocks"),
        ((12, 8, 400), "a block for every unit"),
        ((4, 4, 4), "one call in all"),
        ((0, 4, 400), "no result"),
        ((4, 4, 0), "no term"),
    ],
)
def test_nothing_is_offered_where_the_machine_is_busy_or_the_sum_is_short(size: tuple[int, int, int], why: str):
    assert offered(DEEP, *size) == [], why


def test_nothing_is_offered_without_the_permission_or_on_one_unit():
    assert offered(parse_kernel(TEXT.format(T="f32", permits="  permits contract\n")), 4, 4, 400) == []
    assert offered(DEEP, 4, 4, 400, "toy") == []


def test_integers_need_no_permission():
    assert offered(parse_kernel(TEXT.format(T="i32", permits="")), 4, 4, 400)


def test_the_undivided_sum_is_kept_where_it_is_quicker():
    """Partial results that cost more than they save: the option is timed and not taken."""
    sizes = {"M": 4, "N": 8, "K": 16}
    job = compiled(DEEP, sizes, load_system(CROWD), check=True)
    judge(DEEP, sizes, job)
    choices = [d for d in job.trace.decisions if d.point == "variant"]
    assert choices
    assert all(d.label == Variant(job.schedule).label() for d in choices)  # type: ignore[arg-type]
    assert job.cover is not None
    assert job.cover.steps == ()


GRADIENT = parse_kernel("""kernel gradient(N, H, W, C, K)
  in  x: f32[N, H + 1, W + 1, C]
  in  g: f32[N, H, W, K]
  out d: f32[2, C, K]
  permits reassociate, contract
  forall s < 2, c < C, k < K
    d[s, c, k] = 0
  forall s < 2, c < C, k < K, n < N, h < H, w < W
    d[s, c, k] += x[n, h + 1, w + s, c] * g[n, h, w, k]
""")


def test_the_axis_that_is_cut_is_the_one_with_most_calls_along_it():
    """A convolution's gradient: one call takes a row of pixels, so images or rows are shared out."""
    sizes = {"N": 2, "H": 48, "W": 4, "C": 4, "K": 3}
    job = compiled(GRADIENT, sizes, load_system(CROWD), check=True)
    judge(GRADIENT, sizes, job)
    (taken,) = (d for d in job.trace.decisions if d.point == "variant")
    assert "axis h" in taken.label
    assert taken.costs[taken.chosen] < taken.costs[0]


@pytest.mark.parametrize("tries", [1, 3])
def test_the_trace_replays_to_the_same_schedule(tries: int):
    approach = BestFirst()
    approach.tries = tries
    sizes, machine = {"M": 4, "N": 4, "K": 400}, load_system(CROWD)
    made = compiled(DEEP, sizes, machine, approach)
    again = run_stages(new_job(DEEP, machine, sizes, None, replay=made.trace.to_json()))
    assert made.cover is not None
    assert made.cover.steps
    assert made.schedule is not None
    assert again.schedule is not None
    assert to_json(again.schedule) == to_json(made.schedule)
    assert again.trace.to_json() == made.trace.to_json()


@pytest.mark.parametrize("tries", [1, 3])
def test_the_decisions_behind_a_step_are_those_of_the_schedule_that_was_taken(tries: int):
    approach = BestFirst()
    approach.tries = tries
    job = compiled(DEEP, {"M": 4, "N": 4, "K": 400}, load_system(CROWD), approach)
    assert job.schedule is not None
    own = job.schedule.trace
    assert isinstance(own, Trace)
    assert [d.point for d in own.decisions].count("variant") == 1
    sums = next(n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.instruction.startswith("m_add"))
    behind = decisions_behind(job.schedule, sums)
    assert {"cover", "tile"} <= {d.point for d in behind}
    assert [d.point for d in behind].count("tile") == 1


@pytest.mark.parametrize("size", [(4, 4, 400), (8, 8, 300)])
def test_a_recording_as_advice_leads_to_the_schedule_that_it_led_to(size: tuple[int, int, int]):
    """Also to what was tried for the variant that was taken."""
    sizes, machine, approach = dict(zip("MNK", size, strict=True)), load_system(CROWD), BestFirst()
    approach.tries = 16
    made = compiled(DEEP, sizes, machine, approach)
    advised = compiled(DEEP, sizes, machine, Replay(made.trace.to_json()))
    assert made.schedule is not None
    assert advised.schedule is not None
    assert timeline(advised.schedule).ticks == timeline(made.schedule).ticks


@pytest.mark.parametrize(
    ("extent", "most", "step"), [(262, 9, 10), (512, 24, 4), (256, 24, 4), (401, 3, 4), (20000, 24, 32)]
)
def test_there_are_no_more_parts_than_groups(extent: int, most: int, step: int):
    parts, rest = divmod(extent, length := _length(extent, most, step, 1, 2 * most))
    assert 1 < parts <= most
    assert not rest or length % step == 0


@pytest.mark.parametrize(("blocks", "units"), [(70, 48), (1, 24), (5, 8), (100, 7)])
@pytest.mark.parametrize("extent", [50000, 4099, 2048])
def test_what_is_left_over_takes_as_many_rounds_as_a_part(extent, blocks, units):
    """Of whole calls the length with the fewest rounds on the units, those of what is left over among them."""

    def calls(length: int) -> int:
        together, alone = blocks * (extent // length), blocks  # blocks of the parts, and of what is left over
        return -(-together // units) * -(-length // step) + -(-alone // units) * -(-(extent % length) // step)

    most, step = 24, 32
    able = [n for n in range(step, extent, step) if most // 2 < extent // n <= most]
    assert calls(_length(extent, most, step, blocks, units)) <= min(map(calls, able))
