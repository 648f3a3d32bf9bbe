"""Tiles that registers do not hold, as the emitted code tells: which make way, and for what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isam
import isam.proof
from isam.approach.choice import Approach, Behind, Choice, Decision, Trace
from isam.approach.shipped.greedy import Greedy
from isam.approach.shipped.measured import Measured
from isam.codegen.llvm import generate, machine
from isam.codegen.llvm.spills import Spills, may_spill, spills
from isam.compiler.candidate import Candidate
from isam.compiler.crowded import MINOR, settled
from isam.compiler.job import Job
from isam.compiler.stages import new_job, plain_stages, run_stages
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.proof import ProofError, Violation, prove
from isam.schedule.serial import to_json
from isam.schedule.tree import Schedule
from isam.system.graph import System
from isam.system.load import load_system
from tests.unit.codegen.test_llvm_narrow import ZEN4

GREY = parse_kernel("""kernel grey(N)
  permits contract
  in  X: f32[N, 3]
  out Y: f32[N]
  forall i < N
    t[i] = 0.299 * X[i, 0] + 0.587 * X[i, 1]
    Y[i] = t[i] + 0.114 * X[i, 2]
""")
SIZES = {"N": 8192}


def there() -> System:
    """Code for a CPU that need not be this one."""
    return replace(load_system("host-zen4"), target=ZEN4)


def job(approach: Approach | None = None, **options: Any) -> Job:
    return run_stages(new_job(GREY, there(), SIZES, approach or Greedy(), **options))


def tiles(done: Job) -> list[Decision]:
    return [d for d in done.trace.decisions if d.point == "tile"]


def rejected(done: Job) -> list[Decision]:
    return [d for d in tiles(done) if d.why.endswith("of those that spill no registers")]


def spilled(done: Job) -> Spills | None:
    assert done.schedule is not None
    return generate(done.schedule).spills


# -- what the assembly says -------------------------------------------------------------------------------------------
NESTED = """call:
	subq	$200, %rsp
	vmovups	%zmm0, 8(%rsp)  # 64-byte Spill
.LBB0_1:                                # %loop
                                        # =>This Loop Header: Depth=1
                                        #     Child Loop BB0_2 Depth 2
	vmovups	8(%rsp), %zmm0          # 64-byte Reload
.LBB0_2:                                # %sum
                                        #   Parent Loop BB0_1 Depth=1
                                        # =>  This Inner Loop Header: Depth=2
	vaddps	%zmm1, %zmm2, %zmm3
	movq	8(%rsp), %rax           # 8-byte Reload
	vmovups	%zmm1, 8(%rsp)  # 64-byte Spill
	jne	.LBB0_2
# %bb.3:                                #   in Loop: Header=BB0_1 Depth=1
	vaddps	8(%rsp), %zmm12, %zmm12 # 64-byte Folded Reload
	jne	.LBB0_1
other:
	vmovups	%zmm1, 8(%rsp)  # 64-byte Spill
	retq
"""


def test_only_what_innermost_loops_do_counts_and_addresses_do_not() -> None:
    assert spills(NESTED) == Spills(1, 4)
    assert spills(NESTED.replace("64-byte Spill", "8-byte Spill")) is None
    assert spills(NESTED.replace("64-byte Spill", "16-byte Folded Spill")) == Spills(1, 4)
    assert spills(NESTED.replace("64-byte Spill", "Unknown-size Folded Spill")) is None
    assert spills(NESTED.replace("64-byte Spill", "unknown-byte Spill")) == Spills(1, 4)
    assert spills("") is None


def test_blocks_behind_the_head_of_a_loop_belong_to_it() -> None:
    more = ("\tjne\t.LBB0_2\n# %bb.4:            #   in Loop: Header=BB0_2 Depth=2\n"
            "\tvpor 8(%rsp)  # 32-byte Folded Reload\n")  # fmt: skip
    two = NESTED.replace("\tjne\t.LBB0_2\n", more, 1)
    assert spills(two) == Spills(2, 5)


def test_of_several_loops_the_one_that_spills_most_is_told() -> None:
    begin = NESTED.index(".LBB0_2:")
    loop = NESTED[begin : NESTED.index("# %bb.3")]
    twice = loop.replace("BB0_2", "BB0_7").replace("8-byte Reload", "32-byte Reload")
    assert spills(NESTED[:begin] + twice + NESTED[begin:]) == Spills(2, 4)


def test_frames_tell_on_x86_and_elsewhere_the_assembly_is_read() -> None:
    assert not may_spill(b"\x48\x01", "x86_64")
    assert may_spill(b"\x90\x48\x83\xec\x48", "x86_64")
    assert may_spill(b"\x90\x48\x81\xec\x48\x01", "x86_64")
    assert may_spill(b"\x48\x01", "aarch64")


# -- what makes way ---------------------------------------------------------------------------------------------------
def test_a_tile_that_spills_makes_way_for_one_that_does_not() -> None:
    done = job()
    assert spilled(done) is None
    (tile,) = rejected(done)
    assert tile.chosen != tiles(done)[0].chosen
    first = run_stages(new_job(GREY, there(), SIZES, Greedy()), until="schedule")
    before = spilled(first)
    assert before is not None
    assert before.share > MINOR
    assert done.certificate is not None
    assert done.artifact is not None
    assert "spills" not in done.artifact.provenance
    assert done.artifact.parts["schedule.json"] == to_json(done.schedule).encode()
    assert [d for d in done.taken.decisions if d.point == "tile"] == [tile]


def test_the_decisions_replay_to_the_same_code() -> None:
    done = job()
    again = job(replay=done.trace.to_json())
    assert again.artifact is not None
    assert done.artifact is not None
    for part in ("object.o", "schedule.json", "trace.json"):
        assert again.artifact.parts[part] == done.artifact.parts[part]


def test_the_schedule_shown_is_the_one_that_is_compiled() -> None:
    shown = run_stages(new_job(GREY, there(), SIZES, Greedy()), until="prove")
    settled(shown)
    assert shown.schedule is not None
    done = job()
    assert done.schedule is not None
    assert to_json(shown.schedule) == to_json(done.schedule)
    assert shown.trace.to_json() == done.trace.to_json()


def test_the_approach_is_asked_among_what_is_left() -> None:
    seen: list[int] = []

    class Asked(Greedy):
        name = "asked"

        def tile(self, choice: Choice) -> Any:
            seen.append(len(choice.options))
            if choice.costs is not None:
                assert len(choice.costs) == len(choice.options)
            return super().tile(choice)

    done = job(Asked())
    (tile,) = rejected(done)
    assert seen[0] == tile.count
    assert seen[1:] == [tile.count - n for n in range(1, len(seen))]
    assert len(seen) > 1


def told(monkeypatch: pytest.MonkeyPatch, says: Callable[[int], Spills | None]) -> list[int]:
    """Says what each code that is written spills, in the place of its assembly."""
    asked: list[int] = []

    def say(assembly: str) -> Spills | None:
        asked.append(len(assembly))
        return says(len(asked) - 1)

    monkeypatch.setattr(isam.codegen.llvm, "spills", say)
    return asked


def test_what_spills_least_is_taken_where_all_spill(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [60, 50, 20, 30]
    asked = told(monkeypatch, lambda n: Spills(counts[n] if n < len(counts) else 60, 100))
    done = job()
    assert done.artifact is not None
    assert done.artifact.provenance["spills"] == [20, 100]
    assert len(rejected(done)) == 1
    assert len(asked) == tiles(done)[0].count  # each once
    done.trace.done()


def test_the_first_stays_where_none_spills_less(monkeypatch: pytest.MonkeyPatch) -> None:
    first = job(replay=run_stages(new_job(GREY, there(), SIZES, Greedy()), until="prove").trace.to_json())
    told(monkeypatch, lambda _: Spills(60, 100))
    done = job()
    assert not rejected(done)
    assert done.artifact is not None
    assert first.artifact is not None
    assert done.artifact.parts["object.o"] == first.artifact.parts["object.o"]
    assert done.artifact.parts["trace.json"] == first.artifact.parts["trace.json"]


def test_few_that_spill_hide_behind_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = told(monkeypatch, lambda _: Spills(5, 100))
    assert not rejected(job())
    assert len(asked) == 1


def test_what_takes_longer_than_what_is_spilled_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, lambda n: Spills(20, 100) if not n else None)
    real, calls = Candidate.seconds, [0]

    def slower(candidate: Candidate) -> float:
        calls[0] += 1
        return real(candidate) * (1 if calls[0] == 1 else factor)

    monkeypatch.setattr(Candidate, "seconds", slower)
    factor = 1.15
    assert not rejected(job())
    calls[0], factor = 0, 1.05
    told(monkeypatch, lambda n: Spills(20, 100) if not n else None)
    assert len(rejected(job())) == 1


def test_a_tile_that_changes_nothing_is_another_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = told(monkeypatch, lambda _: Spills(60, 100))
    done = job()
    assert len(asked) == 1 + len(tiles(done))
    assert not rejected(done)


class Remembering(Greedy):
    """Answers what it is told when it is asked again."""

    name = "remembering"

    def __init__(self, again: Callable[[Any], Any]):
        self.again, self.first = again, None

    def tile(self, choice: Choice) -> Any:
        if self.first is not None:
            return self.again(self.first)
        self.first = super().tile(choice)
        return self.first


def test_what_is_rejected_may_not_be_answered_again() -> None:
    with pytest.raises(IsamError, match="not one of the 8 legal options"):
        job(Remembering(lambda first: first))


def test_an_approach_that_raises_when_asked_again_is_told_so() -> None:
    def again(_: Any) -> Any:
        raise ValueError("no more")

    with pytest.raises(IsamError, match="'remembering' raised ValueError at choice point 'tile': no more"):
        job(Remembering(again))


def test_who_raises_is_told_whoever_decides_as_it_does() -> None:
    def again(_: Any) -> Any:
        raise ValueError("no more")

    user = Remembering(again)
    user.first = "once"
    with pytest.raises(IsamError, match="'remembering' raised ValueError at choice point 'tile': no more"):
        Trace(Behind(Behind(user))).answer(Choice("tile", ["a", "b"]))


class Several(Greedy):
    """Asks for more than one schedule, and keeps the first."""

    name, tries = "several", 2

    def schedule(self, choice: Choice) -> Any:
        return choice.options[0]


def test_decisions_on_a_schedule_that_was_kept_are_its_own_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, lambda n: Spills(60, 100) if not n else None)
    done = job(Several())
    assert len(rejected(done)) == 1
    monkeypatch.undo()
    again = job(replay=done.trace.to_json())
    assert done.artifact is not None
    assert again.artifact is not None
    assert again.artifact.parts["object.o"] == done.artifact.parts["object.o"]


def test_the_certificate_is_of_the_schedule_that_is_taken() -> None:
    done = job()
    assert rejected(done)
    assert done.schedule is not None
    first = run_stages(new_job(GREY, there(), SIZES, Greedy()), until="prove").certificate

    def said(certificate: Any) -> dict[str, Any]:
        return {n: v for n, v in certificate.data.items() if n not in ("seal", "figures")}  # seconds are in these

    assert said(done.certificate) == said(prove(done.schedule)) != said(first)
    assert done.artifact is not None
    assert done.artifact.parts["certificate.json"] == done.certificate.to_json().encode()


class Doubting:
    """Proves all schedules but the second, of which executing every step finds what is given."""

    def __init__(self, executed: tuple[Violation, ...] | None):
        self.executed, self.asked = executed, 0

    def __call__(self, schedule: Schedule) -> Any:
        self.asked += 1
        if self.asked == 2:
            raise ProofError(schedule, [Violation(8, "stale", "planted")], self.executed)
        return prove(schedule)


def test_what_cannot_be_proved_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, lambda n: Spills(60, 100) if not n else None)
    plain = job()
    doubting = Doubting(None)
    monkeypatch.setattr(isam.proof, "prove", doubting, raising=False)
    told(monkeypatch, lambda n: Spills(60, 100) if not n else None)
    done = job()
    assert doubting.asked == 3
    assert len(rejected(done)) == 1
    assert rejected(done)[0].chosen != rejected(plain)[0].chosen
    assert done.certificate is not None


def test_what_is_wrong_is_never_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isam.proof, "prove", Doubting((Violation(8, "stale", "met"),)), raising=False)
    told(monkeypatch, lambda n: Spills(60, 100) if not n else None)
    with pytest.raises(ProofError, match="is wrong"):
        plain_stages(new_job(GREY, there(), SIZES, Greedy()))


def test_nothing_is_proved_where_nobody_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    doubting = Doubting(None)
    monkeypatch.setattr(isam.proof, "prove", doubting, raising=False)
    done = job(check=False)
    assert len(rejected(done)) == 1
    assert doubting.asked == 0


def test_recordings_and_measured_choices_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run_stages(new_job(GREY, there(), SIZES, Greedy()), until="prove").trace.to_json()
    replayed = job(replay=plain)
    assert not rejected(replayed)
    assert spilled(replayed) is not None
    told(monkeypatch, lambda n: Spills(60, 100) if n < 4 else None)  # three that are run, and the one that is taken
    measured = new_job(GREY, load_system("host"), SIZES, Measured(3))
    plain_stages(measured)
    assert len(measured.ran) > 1
    assert not rejected(measured)
    elsewhere = new_job(GREY, there(), SIZES, Measured(3))  # where nothing can be run
    told(monkeypatch, lambda n: Spills(60, 100) if not n else None)
    plain_stages(elsewhere)
    assert rejected(elsewhere)


def test_on_this_cpu_results_are_the_same(tmp_path: Path) -> None:
    fn = isam.compile(GREY, sizes={"N": 1000}, cache=False)
    x = np.random.default_rng(7).normal(size=(1000, 3)).astype(np.float32)
    got, exact = fn(x), x.astype(np.float64) @ np.float32([0.299, 0.587, 0.114]).astype(np.float64)
    bound = 4 * 2.0**-24 * (np.abs(x).astype(np.float64) @ np.array([0.299, 0.587, 0.114])) + 1e-37
    assert (np.abs(got - exact) <= bound).all()
    fn.save(tmp_path / "grey.isamc")
    assert (isam.load(tmp_path / "grey.isamc")(x) == got).all()


def test_code_lists_its_assembly_where_it_was_read() -> None:
    assert machine.compile_object("define void @f() { ret void }")[1] == ""
    assert "retq" in machine.compile_object("define void @f() { ret void }", assembly=True, target=ZEN4)[1]
