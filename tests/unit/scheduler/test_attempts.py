"""What happens in an attempt that is not taken has not happened: neither in the residency nor in the schedule."""

from __future__ import annotations

from typing import Any

import pytest

from isam.approach.choice import Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Kernel, Recurrence
from isam.ir.text import parse_kernel
from isam.schedule.tree import Place, Tile
from isam.scheduler.block_calls import BlockCalls
from isam.scheduler.dry import DryRun
from isam.scheduler.handed_on import _Row
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.lifetimes import Lifetimes
from isam.scheduler.parts import RecurrentLoop
from isam.scheduler.passes import Pass
from isam.scheduler.residency import Residency
from isam.scheduler.routes import Routes
from isam.scheduler.setting import problem_of, setting_of
from isam.scheduler.state import STAGED, Copy, Entering, Since
from isam.scheduler.walk import Walk
from tests.pipeline import compiled, simulated
from tests.unit.scheduler.test_in_a_row import ALL, InARow, Nothing, made
from tests.unit.scheduler.test_interchange import RUNNING

NO = NoSchedule(Infeasible("a memory", "room", "there is none"))


def begun(kernel: Kernel) -> DryRun:
    system, trace = simulated("toy"), Trace(Greedy())
    return DryRun(kernel, system, trace, Routes(system, trace))


def said(data: Residency) -> dict[str, Any]:
    """What a residency says of where its walk stands."""
    return {"state": data.state.signature(), "next": dict(data.state.next), "panels": set(data.panels),
            "since": data.since, "fetched": dict(data.since.fetched), "written": dict(data.since.written),
            "entered": dict(data.since.entered), "lifetimes": data.lifetimes, "block": data.block,
            "unread": data.unread}  # fmt: skip


@pytest.mark.parametrize("whole", [True, False], ids=["to its end", "no further"])
def test_an_attempt_leaves_all_as_it_was(whole: bool) -> None:
    kernel = parse_kernel(ALL["scale"][0]).with_sizes(ALL["scale"][1])
    data = begun(kernel).data
    tile = Tile("x", (Affine(),), (8,), (1,))
    key, copy = ("spm", tile, STAGED), Copy(Place("spm", "", Affine(), (4,)), True, 32)
    loop = RecurrentLoop(Recurrence(Axis("t", Affine((), 4)), ()))
    before = said(data)
    try:
        with data.attempt() as since:
            assert data.since is since is not before["since"]
            since.write(tile)
            since.entered[Entering(loop, ())] = None
            data.state.put(key, copy)
            data.state.next["spm"] = 32
            data.since, data.lifetimes, data.block, data.unread = Since(), Lifetimes(), BlockCalls(), frozenset({"x"})
            data.panels.add(key)
            if not whole:
                raise NO
    except NoSchedule:
        assert not whole
    assert said(data) == before


def test_a_body_that_is_shared_enters_a_loop_once() -> None:
    loop, one, more, again = RecurrentLoop(Recurrence(Axis("t", Affine((), 4)), ())), Since(), Since(), Since()
    first, second = Entering(loop, ()), Entering(loop, ())
    one.entered[first] = more.entered[second] = None
    for body in (one, more, one):
        again.then(body, {})
    assert [*again.entered] == [first, second]


@pytest.mark.parametrize("name", ["scale", "over", "around", "across"])
def test_handing_on_that_fails_in_a_block(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule is the one that hands on nothing, and what comes next begins as it would behind that."""
    step, handing_on, whole = DryRun.step, _Row._handing_on, _Row.made
    steps = [0]  # since the second attempt of a row began
    seen: list[dict[str, Any]] = []

    def failing(self: DryRun, calls: Any) -> None:
        steps[0] += steps[0] > 0
        if steps[0] == 3:
            raise NO
        step(self, calls)

    def second(self: _Row, held: Any) -> Any:
        steps[0] = 1
        try:
            return handing_on(self, held)
        finally:
            seen.append({"steps": steps[0]})
            steps[0] = 0

    def watched(self: _Row) -> Any:
        before = said(self.data)
        node, after = whole(self), said(self.data)
        assert {f for f in after if after[f] != before[f]} <= {"state", "next"}
        return node

    expected = made(name, approach=Nothing()).schedule
    monkeypatch.setattr(DryRun, "step", failing)
    monkeypatch.setattr(_Row, "_handing_on", second)
    monkeypatch.setattr(_Row, "made", watched)
    found = made(name, approach=InARow()).schedule
    assert {"steps": 3} in seen
    assert str(found) == str(expected)


@pytest.mark.parametrize("rows", [32, 37])
def test_rows_of_a_loop_that_fail(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that failed in one of them has left nothing in what it was made in, nor in what the next one makes."""
    system = simulated("host-avx512")
    job = compiled(parse_kernel(RUNNING.replace("{T}", "f32")), {"M": rows, "N": 8}, system, check=False)
    assert job.cover is not None
    problem = problem_of(job.cover, system, Trace(Greedy()), {})
    assert problem is not None
    setting = setting_of(problem, True)
    first, level = Pass(setting), Walk.level
    expected = str(Pass(setting).made())

    def fails(self: Walk, d: int, env: Any, members: Any) -> None:
        if self.run is first.run and first.by_rows:
            raise NO
        level(self, d, env, members)

    monkeypatch.setattr(Walk, "level", fails)
    with pytest.raises(NoSchedule):
        first.made()
    assert str(Pass(setting).made()) == expected
