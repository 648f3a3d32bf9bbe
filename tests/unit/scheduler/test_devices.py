"""Who issues a call where several units may, and along which way a tile goes (SCH-3, SCH-4)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from isam.approach.shipped.casestudy import CaseStudy
from isam.approach.shipped.greedy import Greedy
from isam.cost.perfetto import events_of
from isam.cost.timeline import timeline
from isam.proof import prove
from isam.schedule.tree import Issue, distinct
from isam.system.graph import Cluster, Move, System
from tests.corpus import CASES
from tests.pipeline import compiled, judge, simulated

TOY = simulated("toy")
TWIN = replace(TOY, units={**TOY.units, "mm1": replace(TOY.units["mm"], name="mm1")})
SLOW = replace(TOY, units={**TOY.units, "mm1": replace(TOY.units["mm"], name="mm1", clock=1e6)})


def run(system: System, sizes: dict[str, int], approach: Greedy | None = None):
    """The schedule, equal to the oracle and proved (raises otherwise); how many products each unit has."""
    case = CASES["matmul"]
    job = compiled(case.load(), sizes, system, approach)
    judge(case.load(), sizes, job)
    prove(job.schedule)
    return job, calls(job, "mm4_f32")


def calls(job, instruction: str) -> Counter[str]:
    """Of an instruction, per unit."""
    events, _ = events_of(job.schedule, None, 10_000)
    return Counter(e.issue.unit for e in events if e.issue.instruction == instruction)


def test_two_units_share_independent_tiles():
    sizes, slow = {"M": 12, "N": 20, "K": 40}, replace(TOY.units["mm"], clock=1e8)  # else moves are what takes time
    alone, one = run(replace(TOY, units={**TOY.units, "mm": slow}), sizes)
    job, two = run(replace(TOY, units={**TOY.units, "mm": slow, "mm1": replace(slow, name="mm1")}), sizes)
    assert one == {"mm": 150}
    assert two.total() == 150
    assert min(two["mm"], two["mm1"]) >= 72, "whoever is done first takes the next one"
    assert timeline(job.schedule).ticks < timeline(alone.schedule).ticks


def test_a_sum_stays_on_the_unit_that_began_it():
    assert run(TWIN, {"M": 4, "N": 4, "K": 16})[1].keys() == {"mm"}


def test_a_unit_that_would_be_done_later_is_left_idle():
    assert run(SLOW, {"M": 8, "N": 8, "K": 8})[1].keys() == {"mm"}


def test_a_step_of_a_cluster_sends_no_result_away():
    """15 sums and the one tile that they read fill a register file: where two calls would read two of them, they are
    made one after the other."""
    pair = replace(TWIN, clusters={"pair": Cluster("pair", ("mm", "mm1"))})
    sizes = {"M": 12, "N": 20, "K": 40}
    job, two = run(pair, sizes)
    assert two.total() == 150
    assert two["mm1"] >= 60
    assert timeline(job.schedule).ticks <= timeline(run(TOY, sizes)[0].schedule).ticks


def test_an_approach_may_decide_otherwise():
    class Last(Greedy):
        name, why = "last", "the last unit"

        def device(self, choice):
            return choice.options[-1]

    assert run(TWIN, {"M": 8, "N": 8, "K": 8}, Last())[1].keys() == {"mm1"}


def test_two_units_that_move_along_one_edge_share_the_moves():
    twin = replace(TOY.units["dma"], name="dma1")
    more = tuple(replace(m, issuer="dma1") for m in TOY.moves)
    grown = replace(TOY, units={**TOY.units, "dma1": twin}, moves=(*TOY.moves, *more))
    sizes = {"M": 8, "N": 8, "K": 8}
    alone, job = run(TOY, sizes)[0], run(grown, sizes)[0]
    shares = calls(job, "copy")
    assert min(shares["dma"], shares["dma1"]) * 2 >= max(shares["dma"], shares["dma1"])
    assert timeline(job.schedule).ticks < timeline(alone.schedule).ticks


def test_the_case_study_goes_on_where_its_data_is_and_takes_few_hops():
    sizes = {"M": 8, "N": 8, "K": 8}
    job, products = run(TWIN, sizes, CaseStudy())
    ends = {}  # the unit of every tile of the result
    for e in events_of(job.schedule, None, 10_000)[0]:
        if e.issue.instruction == "mm4_f32":
            ends.setdefault(e.issue.operands[2].tile, set()).add(e.issue.unit)
    assert products.total() == 8
    assert {len(units) for units in ends.values()} == {1}
    assert ("dram", "ra") in edges(run(direct(500.0), sizes, CaseStudy())[0])


def edges(job) -> set[tuple[str, str]]:
    moves = [n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.instruction in ("copy", "slow")]
    return {(n.operands[0].place.memory, n.operands[1].place.memory) for n in moves}


def direct(setup: float) -> System:
    """`toy` with moves between main memory and a register file, past the scratchpad."""
    copy = TOY.instructions["copy"]
    slow = replace(copy, name="slow", cost=replace(copy.cost, setup=setup))
    units = {**TOY.units, "dma": replace(TOY.units["dma"], runs=(*TOY.units["dma"].runs, "slow"))}
    grown = replace(TOY, instructions={**TOY.instructions, "slow": slow}, units=units)
    return replace(grown, moves=(*grown.moves, Move("dram", "ra", "slow", "dma"), Move("ra", "dram", "slow", "dma")))


def test_the_way_that_is_predicted_quicker_is_taken():
    sizes = {"M": 8, "N": 8, "K": 8}
    assert ("dram", "ra") in edges(run(direct(5.0), sizes)[0])
    assert ("dram", "ra") not in edges(run(direct(500.0), sizes)[0])


def test_an_approach_may_take_another_way():
    class Short(Greedy):
        name, why = "short", "the fewest hops"

        def route(self, choice):
            return choice.options[0]

    job, _ = run(direct(500.0), {"M": 8, "N": 8, "K": 8}, Short())
    assert ("dram", "ra") in edges(job)
    asked = [d for d in job.trace.decisions if d.point == "route"]
    assert "dram -> ra" in {d.label for d in asked}
