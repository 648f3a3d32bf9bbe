"""Every step can be asked which decisions led to it (APP-3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.approach.choice import Approach, Trace
from isam.compiler.stages import new_job, run_stages
from isam.diagnostics import IsamError
from isam.ir.table import Table
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from isam.schedule.why import decisions_behind
from isam.system.load import load_system
from tests.drawings import TEXT
from tests.unit.scheduler.test_loops import made


def steps(s):
    return [n for n in distinct(s.call) if isinstance(n, Issue)]


def test_a_computing_step_leads_back_to_cover_mapping_and_loops():
    s = made(TEXT, "host-avx512", M=40, N=40, K=40)
    product = next(i for i in steps(s) if i.instruction.startswith("fma"))
    points = [d.point for d in decisions_behind(s, product)]
    assert {"cover", "mapping", "tile"} <= set(points)
    mappings = [d for d in decisions_behind(s, product) if d.point == "mapping"]
    assert all("fma" in d.label for d in mappings), "the fill's mapping is not its business"


def test_a_step_in_a_register_file_leads_back_to_its_placement():
    s = made(TEXT, "toy", M=40, N=40, K=40)
    product = next(i for i in steps(s) if i.instruction.startswith("mm4"))
    own = {str(o.tile) for o in product.operands}
    placed = [d for d in decisions_behind(s, product) if d.point == "place"]
    assert placed
    assert all(own & set(d.context["tiles"]) for d in placed)


def behind(s, *points):
    """Per step, which decisions at these points are behind it."""
    return [(i, [d for d in decisions_behind(s, i) if d.point in points]) for i in steps(s)]


def test_who_issues_a_step_is_a_decision_behind_it():
    toy = load_system("toy")
    twin = replace(toy, units={**toy.units, "mm1": replace(toy.units["mm"], name="mm1")})
    s = run_stages(new_job(parse_kernel(TEXT), twin, {"M": 8, "N": 8, "K": 8}, None), "schedule").schedule
    asked = [d for d in s.trace.decisions if d.point == "device"]
    led = [(i, d) for i, some in behind(s, "device") for d in some]
    assert asked
    assert {id(d) for _, d in led} == set(map(id, asked))
    for i, d in led:
        assert d.context["instruction"] == i.instruction
        assert set(d.context["tiles"]) & {str(o.tile) for o in i.operands}
    alone = [[d.label for d in some] for i, some in behind(s, "device") if len(some) == 1 and i.unit != some[0].label]
    assert not alone, "with one decision behind it, a step is on the unit that was chosen"


def test_how_much_a_call_takes_is_behind_the_calls_of_its_nest_alone():
    s = made(TEXT, "toy", M=16, N=16, K=16)
    n = next(i.nest for i in steps(s) if i.nest is not None)
    asked = replace(s.trace.decisions[0], point="tail", context={"nest": n, "instruction": "x"})
    for i in steps(s):
        told = replace(s, trace=Trace(Approach()))
        told.trace.decisions = [asked]
        assert (decisions_behind(told, i) == [asked]) == (i.nest == n)


@pytest.mark.parametrize("point", ["search", "kernel", "variant", "serpentine"])
def test_what_is_decided_of_all_is_behind_every_step(point):
    s = made(TEXT, "toy", M=8, N=8, K=8)
    asked = replace(s.trace.decisions[0], point=point, context={"loop": "i"})
    told = replace(s, trace=Trace(Approach()))
    told.trace.decisions = [asked]
    assert all(decisions_behind(told, i) == [asked] for i in steps(s))


def test_ways_and_rooms_are_behind_what_goes_there():
    s = made(TEXT, "toy", M=8, N=8, K=8)
    base = s.trace.decisions[0]
    brought = next(i for i in steps(s) if i.is_move)
    ends = [o.place.memory for o in brought.operands]
    way = replace(base, point="route", label=f"{ends[0]} -> {ends[1]}", context={"dtype": "f32"})
    other = replace(way, label=f"{ends[0]} -> elsewhere")
    room = replace(base, point="pack", context={"memory": ends[1], "loops": []})
    away = replace(room, context={"memory": "elsewhere", "loops": []})
    told = replace(s, trace=Trace(Approach()))
    told.trace.decisions = [way, other, room, away]
    assert decisions_behind(told, brought) == [way, room]


def test_traces_differ_where_approaches_do():
    greedy, first = made(TEXT, "toy", M=9, N=9, K=9).trace, made(TEXT, "toy", Approach(), M=9, N=9, K=9).trace
    assert greedy.diff(greedy) == []
    assert any(a is None or b is None or a.point == "tile" for a, b in greedy.diff(first))


def test_costs_and_options_survive_the_text():
    trace = made(TEXT, "toy", M=9, N=9, K=9).trace
    again = Trace.replaying(trace.to_json())
    assert again._replay == trace.decisions
    tile = next(d for d in trace.decisions if d.point == "tile")
    assert len(tile.costs) == tile.count


def test_a_recording_is_of_one_kernel_at_one_size():
    import isam

    k = isam.parse(TEXT)
    recorded = isam.compile(k, on="toy", sizes={"M": 8, "N": 8, "K": 25}).trace
    again = isam.compile(k, on="toy", sizes={"M": 8, "N": 8, "K": 25}, replay=recorded)
    assert again.trace.to_json() == recorded.to_json()
    with pytest.raises(isam.IsamError, match="trace-differs"):
        isam.compile(k, on="toy", sizes={"M": 8, "N": 8, "K": 26}, replay=recorded)


def test_a_recording_is_of_one_machine(tmp_path):
    """Whatever of a description may matter, though its name and all options are the same; who writes code does not."""
    toy, sizes = load_system("toy"), {"M": 8, "N": 8, "K": 25}
    recorded = tmp_path / "recorded.json"
    job = run_stages(new_job(parse_kernel(TEXT), toy, sizes, None), "schedule")
    recorded.write_text(job.trace.to_json(), encoding="utf-8")
    product = toy.instructions["mm4_f32"]
    slower = Table.of(toy.instructions).plus(replace(product, cost=replace(product.cost, issue=9.0)))
    larger = {**toy.memories, "sp": replace(toy.memories["sp"], capacity=2 * toy.memories["sp"].capacity)}
    for other in (replace(toy, memories=larger), replace(toy, instructions=slower)):
        with pytest.raises(IsamError, match=r"recorded.json:1:1: .*trace-differs.*of another machine") as e:
            run_stages(new_job(parse_kernel(TEXT), other, sizes, None, replay=recorded), "schedule")
        assert "kernel" not in e.value.diagnostics[0].message
    same = replace(toy, backend="none" if toy.backend == "simulator" else "simulator")
    run_stages(new_job(parse_kernel(TEXT), same, sizes, None, replay=recorded), "cover")


def test_a_nearly_named_choice_point_is_told():
    with pytest.raises(IsamError, match="did you mean 'tile'"):
        type("Mine", (Approach,), {"tiel": lambda self, choice: choice.options[0]})
    type("Fine", (Approach,), {"_tiel": lambda self: 0, "helper": lambda self: 0})
