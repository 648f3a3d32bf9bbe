"""Schedules run beside each other: which is taken, what takes no part, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import isam
import isam.proof
from isam import scheduler
from isam.approach.choice import Approach, Choice, Decision, Trace
from isam.approach.shipped.greedy import Greedy
from isam.approach.shipped.measured import Measured
from isam.approach.steered import Scripted
from isam.compiler import function
from isam.compiler.function import Function
from isam.compiler.job import Job
from isam.compiler.keys import machine_of
from isam.compiler.measured import Ran, may_run, recalled
from isam.compiler.report import report
from isam.compiler.stages import new_job, run_stages
from isam.diagnostics import InternalError, IsamError
from isam.ir.mapping import Cover
from isam.ir.text import parse_kernel
from isam.proof import ProofError, Violation, prove
from isam.runtime.cache import Cache
from isam.schedule.serial import to_json
from isam.system.graph import System
from isam.system.load import load_system
from isam.tune import measure
from isam.tune.database import database
from isam.tune.measure import Measurement, Run
from tests.corpus import CASES
from tests.unit.test_partial import SOFTMAX

SIZES = {"M": 9, "N": 70, "K": 21}
PRODUCT = CASES["matmul"].load()
Times = Sequence[float | str]


def job(approach: Approach | None = None, on: str = "host", **options: Any) -> Job:
    return run_stages(new_job(PRODUCT, load_system(on), SIZES, approach or Measured(4), **options))


def written(made: Job) -> str:
    assert made.schedule is not None
    return to_json(made.schedule)


Made = tuple[Any, list[Decision], set[int]]
MADE: dict[Any, Made] = {}


@pytest.fixture(autouse=True)
def _each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of these tests have the same schedules made to be run: one that is decided by the same Approach behind
    the same first decisions is the same, so it is made once, and its decisions are recorded as if it were made anew."""
    make = scheduler.schedule

    def schedule(cover: Cover, system: System, trace: Trace) -> Any:
        by = trace.approach
        if not isinstance(by, Scripted) or type(by.base) not in (Measured, BestOf):  # one that a test writes
            return make(cover, system, trace)
        key = (str(cover), str(cover.kernel), str(cover.original), machine_of(system), type(by.base), tuple(by.taken))
        if key not in MADE:
            MADE[key] = make(cover, system, trace), trace.decisions, trace.beside
        answer, decisions, beside = MADE[key]
        trace.decisions, trace.beside = [*decisions], {*beside}
        return answer

    monkeypatch.setattr(scheduler, "schedule", schedule)


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Says what runs take in place of the clock: seconds, or why one is unfit. Returns how many there were, per time
    that somebody had schedules run."""

    def say(*times: float | str, noise: float = 0.0) -> list[int]:
        asked: list[int] = []

        def run_beside(entries: Sequence[Any], kernel: Any, **rest: Any) -> Measurement:
            asked.append(len(entries))
            told = [*times, *[1.0] * len(entries)][: len(entries)]
            runs = (Run(unfit=t) if isinstance(t, str) else Run(t, t, final=True) for t in told)
            return Measurement(tuple(runs), noise)

        monkeypatch.setattr(measure, "run_beside", run_beside)
        return asked

    return say


# -- which is taken --------------------------------------------------------------------------------------------------
def test_the_quickest_as_run_is_taken_proved_and_replays_to_the_same_bytes(timed):
    first = job(Greedy())
    timed(1.0, 0.5, 0.7)
    made = job()
    assert written(made) != written(first)
    assert made.certificate is not None
    assert [r.taken for r in made.ran] == [False, True, *[False] * (len(made.ran) - 2)]
    assert any("that were run" in d.why for d in made.trace.decisions)
    again = job(replay=made.trace)
    assert written(again) == written(made)
    assert again.trace.to_json().splitlines()[1:] == made.trace.to_json().splitlines()[1:]


@pytest.mark.parametrize(("second", "noise", "another"), [
    (0.99, 0.0, False), (0.97, 0.0, True), (0.97, 0.02, False), (0.9, 0.02, True), (1.1, 0.0, False),
])  # fmt: skip
def test_the_first_stays_within_the_noise(timed, second: float, noise: float, another: bool):
    timed(1.0, second, noise=noise)
    made = job()
    assert made.ran[0].taken is not another
    assert (written(made) != written(job(Greedy()))) is another


def test_what_is_unfit_is_not_taken_however_quick(timed):
    timed(1.0, "it computes something else", 0.8)
    made = job()
    assert made.ran[1].unfit == "it computes something else"
    assert [n for n, r in enumerate(made.ran) if r.taken] == [2]
    assert f"not run: {made.ran[1].what}: it computes something else" in report(made)


def test_of_variants_the_quickest_as_run_is_taken(timed):
    kernel, host = parse_kernel(SOFTMAX), load_system("host-avx512")
    if not may_run(host):
        pytest.skip("no AVX-512 here")

    def made(approach: Approach | None, **options: Any) -> Job:
        return run_stages(new_job(kernel, host, {"M": 3, "N": 40}, approach, **options))

    def variant(done: Job) -> Any:
        return next(d for d in done.trace.decisions if d.point == "variant")

    assert variant(made(Greedy())).label != "as written"
    timed()
    names = [r.what for r in made(Measured(4)).ran]
    timed(*[0.1 if n == "as written" else 1.0 for n in names])
    done = made(Measured(4))
    assert variant(done).label == "as written"
    assert "that were run" in variant(done).why
    assert written(made(None, replay=done.trace)) == written(done)


def test_less_exact_results_have_to_take_half_the_time():
    class Cover:
        errors = ("2 ulp",)

    class Schedule:
        cover = Cover()

    class Candidate:
        schedule = Schedule()

    def taken(seconds: float) -> int:
        ways = [Ran("first", 1.0, seconds=1.0), Ran("other", 1.0, Candidate(), seconds)]  # type: ignore[arg-type]
        choice = Choice("measure", ways, {"noise": 0.0}, [w.seconds for w in ways])
        return ways.index(Measured().measure(choice))

    assert (taken(0.6), taken(0.45)) == (0, 1)


def test_an_approach_of_a_user_decides(timed):
    seen: list[Choice] = []

    class Last(Greedy):
        name, tries, runs = "last", 6, 3

        def schedule(self, choice: Choice) -> Any:
            return choice.options[-1]

        def measure(self, choice: Choice) -> Any:
            seen.append(choice)
            return choice.options[-1]

    timed(1.0, 1.5, 2.0)
    made = job(Last())
    (choice,) = seen
    assert [r.seconds for r in choice.options] == [1.0, 1.5, 2.0] == list(choice.costs or ())
    assert len(choice.context["predicted"]) == 3
    assert choice.options[-1].schedule.system is made.system
    assert made.ran[-1].taken
    assert made.ran[-1].schedule is None  # nothing keeps schedules that were not taken


def test_runs_is_a_number():
    with pytest.raises(IsamError, match="'runs' of the Approach Many"):

        class Many(Greedy):
            name, runs = "many", "four"  # type: ignore[assignment]


def test_no_more_are_run_than_asked_for_and_none_twice(timed):
    asked = timed()
    made = job(Measured(3))
    assert asked == [3]
    assert sum(not r.unfit for r in made.ran) == 3
    assert all("the same code" in r.unfit for r in made.ran if r.unfit)


def test_what_cannot_be_proved_is_not_run(timed, monkeypatch: pytest.MonkeyPatch):
    count = [0]

    def refusing(schedule: Any) -> Any:
        count[0] += 1
        if count[0] == 2:
            raise ProofError(schedule, [Violation(8, "stale", "planted")], None)
        return prove(schedule)

    monkeypatch.setattr(isam.proof, "prove", refusing, raising=False)
    asked = timed()
    made = job(Measured(3))
    assert asked == [3]
    assert made.ran[1].unfit.startswith("it cannot be proved")


@pytest.mark.parametrize("on", ["toy", "host-neon"])
def test_machines_whose_code_does_not_run_here_are_decided_by_prediction(timed, on: str):
    system = load_system(on)
    if on == "host-neon" and may_run(system):
        pytest.skip("an Arm")
    asked = timed()
    answers = [run_stages(new_job(PRODUCT, system, SIZES, a), "schedule") for a in (Measured(4), BestOf())]
    assert asked == []
    assert written(answers[0]) == written(answers[1])
    assert not answers[0].ran


class BestOf(Measured):
    """What ``Measured`` makes, by the time predicted."""

    def __init__(self) -> None:
        super().__init__(4)
        self.runs = 1


# -- what is kept ----------------------------------------------------------------------------------------------------
def compiled(folder: Path, approach: Approach | None = None) -> Function:
    return isam.compile(PRODUCT, sizes=SIZES, approach=approach or Measured(4), cache=folder)


def forget_code(folder: Path) -> None:
    assert Cache(folder).clear() == 1


def test_what_was_found_is_not_run_again(timed, tmp_path: Path):
    asked = timed(1.0, 0.5)
    made = compiled(tmp_path)
    assert asked == [4]
    assert compiled(tmp_path).artifact.parts == made.artifact.parts  # as code
    forget_code(tmp_path)
    timed(1.0, 2.0)
    again = compiled(tmp_path)  # as decisions
    assert asked == [4]
    assert again.artifact.parts["object.o"] == made.artifact.parts["object.o"]
    assert [(r.what, r.seconds, r.taken) for r in again.job.ran] == [(r.what, r.seconds, r.taken) for r in made.job.ran]
    assert compiled(tmp_path).job.trace.replays  # asked how it came about, which is told without a run
    assert asked == [4]


def test_code_is_that_of_what_was_found_last(timed, tmp_path: Path):
    asked = timed(1.0, 2.0)
    first = compiled(tmp_path)
    timed(1.0, 0.5)
    job(Measured(4), findings=database(Cache(tmp_path)), anew=True)
    again = compiled(tmp_path)
    assert again.artifact.parts["object.o"] != first.artifact.parts["object.o"]
    assert compiled(tmp_path).artifact.parts == again.artifact.parts
    assert asked == [4]


def test_anew(timed, tmp_path: Path):
    findings = Cache(tmp_path)
    asked = timed(1.0, 0.5)
    assert not job(findings=findings).ran[0].taken
    again = timed(1.0, 2.0)
    assert not job(findings=findings).ran[0].taken
    assert again == []
    assert job(findings=findings, anew=True).ran[0].taken
    assert job(findings=findings).ran[0].taken  # what was found last
    assert (asked, again) == ([4], [4])


@pytest.mark.parametrize(("first", "then", "times"), [(4, 6, 2), (6, 4, 1)])
def test_what_was_found_among_fewer_is_found_anew(timed, tmp_path: Path, first: int, then: int, times: int):
    asked, findings = timed(), Cache(tmp_path)
    for count in (first, then, then):
        job(Measured(count), findings=findings)
    assert asked == [first, then][:times]


def test_code_lies_under_the_findings_that_it_was_made_by(timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Another process finds something else while this one emits code."""
    timed(1.0, 2.0)
    remember, kept = function.run_stages, database(Cache(tmp_path))

    def meanwhile(mine: Job) -> Job:
        done = remember(mine)
        timed(1.0, 0.5)
        job(Measured(4), findings=kept, anew=True)
        return done

    monkeypatch.setattr(function, "run_stages", meanwhile)
    first = compiled(tmp_path)
    monkeypatch.undo()
    again = compiled(tmp_path)
    assert again.artifact.parts["object.o"] != first.artifact.parts["object.o"]
    assert again.artifact.parts["object.o"] == isam.compile(
        PRODUCT, sizes=SIZES, replay=again.trace, cache=False).artifact.parts["object.o"]  # fmt: skip


def test_what_is_looked_up_and_what_is_compiled_is_one_job(timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    timed(1.0, 0.5)
    made: list[Job] = []

    def counted(*given: Any, **named: Any) -> Job:
        made.append(new_job(*given, **named))
        return made[-1]

    monkeypatch.setattr(function, "new_job", counted)
    assert compiled(tmp_path).job is made[0]
    compiled(tmp_path)  # as code
    assert len(made) == 2


def test_a_description_may_name_it(timed, tmp_path: Path):
    """Code of a machine whose own Approach runs schedules depends on what was found, too."""
    text = f"isam: 1\nsystem: mine\nextends: {load_system('host').name}\napproach: measured\n"
    (tmp_path / "mine.yaml").write_text(text)
    asked = timed(1.0, 2.0)

    def made() -> Function:
        return isam.compile(PRODUCT, on=tmp_path / "mine.yaml", sizes=SIZES, cache=tmp_path / "kept")

    first = made()
    assert asked == [8]
    assert made().artifact.parts == first.artifact.parts
    timed(1.0, 0.5)
    kept = database(Cache(tmp_path / "kept"))
    run_stages(new_job(PRODUCT, load_system(tmp_path / "mine.yaml"), SIZES, None, findings=kept, anew=True))
    assert made().artifact.parts["object.o"] != first.artifact.parts["object.o"]


def test_that_nothing_could_be_run_is_not_kept(timed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    findings = Cache(tmp_path)
    monkeypatch.setattr(measure, "run_beside", lambda *a, **k: "one call takes 30 s")
    made = job(findings=findings)
    assert {r.unfit for r in made.ran} >= {"one call takes 30 s"}
    assert not made.remembered
    asked = timed()
    assert job(findings=findings).remembered
    assert asked == [4]


@pytest.mark.parametrize("runs", [1, 0, -3, 2.5, "3", 513, None])
def test_how_many_are_run_is_a_number(runs: Any):
    with pytest.raises(IsamError, match="runs 2 to 512 schedules"):
        Measured(runs)


@pytest.mark.parametrize("argument", ["1", "", "x", "2.5", "9" * 5000, "-3"])
def test_what_follows_the_colon_is_a_number(argument: str):
    with pytest.raises(IsamError, match="runs 2 to 512 schedules"):
        Measured.given(argument)


def test_runs_of_an_instance_is_a_number():
    mine = Greedy()
    mine.runs = "3"  # type: ignore[assignment]
    with pytest.raises(IsamError, match="'runs' of the Approach 'greedy' is '3'"):
        job(mine)


@pytest.mark.parametrize("how", ["sizes", "required", "machine"])
def test_something_else_is_run_by_itself(timed, tmp_path: Path, how: str):
    asked, findings = timed(), Cache(tmp_path)
    first = job(findings=findings)
    assert first.cover is not None
    system = load_system("host-generic" if how == "machine" else "host")
    sizes = {**SIZES, "M": 10} if how == "sizes" else SIZES
    required = (first.cover.mappings[-1].instruction.name,) if how == "required" else ()
    run_stages(new_job(PRODUCT, system, sizes, Measured(4), require=required, findings=findings))
    assert len(asked) == 2


def test_damaged_findings_and_those_of_another_version_count_as_absent(timed, tmp_path: Path):
    asked, findings = timed(1.0, 0.5), Cache(tmp_path)
    made = job(Measured(2), findings=findings)
    (path,) = findings.entries()
    whole = path.read_bytes()
    for content in (whole[:-20], whole.replace(b'"option', b'"optiom'), b"", whole[:100] + b"?" + whole[101:]):
        path.write_bytes(content)
        assert written(job(Measured(2), findings=findings)) == written(made)
    assert asked == [2] * 5
    key = path.stem
    entry = findings.get(key)
    assert entry is not None
    other = entry.text("trace.json").replace('"count": ', '"count": 1')
    said = ["?", "1", "{}", '{"asked": 2}', *(f'{{"asked": 2, "rows": {rows}}}' for rows in ("1", "[1]", "[{}]"))]
    said.append(entry.text("runs.json").replace('"seconds": 1.0', '"seconds": "x"'))
    runs = [("runs.json", text) for text in said]
    for part, text in (("trace.json", "{}"), ("trace.json", other), *runs):
        entry.parts[part], kept = text.encode(), entry.parts[part]
        assert findings.put(key, entry)
        entry.parts[part] = kept
        assert written(job(Measured(2), findings=findings)) == written(made)
    assert asked == [2] * 15


def test_findings_that_cannot_be_proved_any_more_count_as_absent(timed, tmp_path: Path, monkeypatch):
    asked, findings = timed(1.0, 0.5), Cache(tmp_path)
    made = job(findings=findings)
    refused = [1]

    def once(schedule: Any) -> Any:
        if refused:
            refused.clear()
            raise ProofError(schedule, [Violation(8, "stale", "planted")], None)
        return prove(schedule)

    monkeypatch.setattr(isam.proof, "prove", once, raising=False)
    assert written(job(findings=findings)) == written(made)
    assert asked == [4, 4]


def test_a_folder_that_cannot_be_written_is_no_error(timed, tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert job(findings=Cache(tmp_path / "file")).ran


def test_who_is_not_shipped_is_not_remembered(timed, tmp_path: Path):
    class Mine(Measured):
        name = "mine"

    asked, findings = timed(), Cache(tmp_path)
    for _ in range(2):
        job(Mine(4), findings=findings)
    assert asked == [4, 4]
    assert not findings.entries()
    assert recalled(new_job(PRODUCT, load_system("host"), SIZES, Mine(4), findings=findings)) is None


def test_wrong_results_are_our_fault(timed):
    timed("y[0] is 3, and not 4")
    with pytest.raises(InternalError, match=r"computes something else: y\[0\] is 3"):
        job()
