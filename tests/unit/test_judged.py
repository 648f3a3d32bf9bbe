"""A step of rewriting that is not shown to keep the meaning is not taken: another way is, or the refusal says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from isam.codegen.simulator import simulate
from isam.compiler.feasible import as_far
from isam.compiler.job import Job, Refused
from isam.compiler.report import report
from isam.compiler.stages import new_job, run_stages
from isam.ir.interp import run
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.mapper.uncovered import Uncovered
from isam.proof import ProofError
from isam.proof.equivalence import Equivalence, Verdict
from isam.proof.mapped import certify
from isam.schedule.serial import to_json
from isam.system.graph import System
from tests.machines.small import instruction, small
from tests.on_the_tree import on_the_tree
from tests.pipeline import judge

VECTOR = """
  in  A: f32[J]
  in  B: f32{shape}
  out D: f32[J]
  forall j < J
    D[j] = {value}
"""
TEXT = """kernel k(N)
  in  a: f32[N]
  in  b: f32[N]
  out y: f32[N]
  permits {permits}
  forall i < N
    y[i] = {value}
"""
SIZES = {"N": 12}


@cache
def machine() -> System:
    """Vectors with a few operations: no minimum, no minus sign."""
    values = {"plus": "A[j] + B[j]", "minus": "A[j] - B[j]", "times": "A[j] * B[j]", "most": "max(A[j], B[j])"}
    lines = [instruction(f"{n}{k}(J <= 8)", VECTOR.format(shape=s, value=v.replace("B[j]", f"B[{x}]")), "homes: [near]")
             for n, v in values.items() for k, s, x in (("", "[J]", "j"), ("_by", "", ""))]  # fmt: skip
    fill = VECTOR.format(shape="", value="B[]").replace("  in  A: f32[J]\n", "")
    lines.append(instruction("fill(J <= 8)", fill, "homes: [near]"))
    return small("few", {"near": "capacity: 4 KiB"}, ["dram <-> near"], *lines)


def job(value: str = "-a[i]", permits: str = "reassociate", **more: Any) -> Job:
    text = TEXT.format(value=value, permits=permits)
    text = text if "b[" in value else text.replace("  in  b: f32[N]\n", "")
    return new_job(parse_kernel(text), more.pop("on", machine()), SIZES, None, **more)


def refusing(doubted: Callable[[Kernel, Kernel], bool]) -> Callable[..., Verdict]:
    """The judge, who does not decide some steps."""
    real = Equivalence.judge

    def judged(self: Equivalence, before: Kernel, after: Kernel, claimed: Any = ("exact",)) -> Verdict:
        return Verdict(False, (), ("planted",)) if doubted(before, after) else real(self, before, after, claimed)

    return judged


def brings(op: str) -> Callable[[Kernel, Kernel], bool]:
    return lambda before, after: any(s.op == op for s in after.statements) > any(s.op == op for s in before.statements)


def test_another_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run_stages(job())
    assert plain.cover is not None
    (law,) = plain.cover.steps
    other = {"neg-by-mul": "mul", "neg-by-sub": "sub"}[law.split()[0]]
    monkeypatch.setattr(Equivalence, "judge", refusing(brings(other)))
    done = run_stages(job())
    assert done.cover is not None
    assert done.cover.steps
    assert not done.cover.steps[0].startswith(law.split()[0])
    assert done.certificate is not None
    assert f"not shown to keep the meaning, and not taken\n  {law}: planted" in report(done)
    assert "not taken" not in report(plain)
    judge(done.original, SIZES, done)
    replayed = run_stages(job(replay=done.trace))
    assert replayed.cover is not None
    assert replayed.schedule is not None
    assert done.schedule is not None
    assert replayed.cover.steps == done.cover.steps
    assert to_json(replayed.schedule) == to_json(done.schedule)


def test_where_no_other_way_leads_the_refusal_says_what_was_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_stages(job("max(-a[i], b[i])")).certificate is not None
    monkeypatch.setattr(Equivalence, "judge", refusing(lambda before, after: before != after))
    with pytest.raises(Refused) as e:
        run_stages(job("max(-a[i], b[i])"))
    (said, *_) = e.value.diagnostics
    assert said.code == "uncovered"
    assert "no instruction offered can do 'neg'" in said.message
    assert "a step not taken, as it was not shown to keep the meaning: neg-by-" in said.message
    assert said.message.count("planted") == len(e.value.answer.undecided) < 20
    begun, no = as_far(job("max(-a[i], b[i])"), "cover")  # what `isam map` asks for
    assert begun.cover is None
    assert isinstance(no, Uncovered)


def test_a_law_is_barred_where_its_second_step_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be as many sites as statements; the search does not begin again for each."""
    monkeypatch.setattr(Equivalence, "judge", refusing(lambda before, after: before != after))
    value = " * ".join(f"(-a[i] + {k})" for k in range(1, 6))
    with pytest.raises(Refused) as e:
        run_stages(job(value))
    laws = [step.split()[0] for step in e.value.answer.undecided]
    assert max(map(laws.count, laws)) <= 2


def test_a_campaign_sees_what_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Equivalence, "judge", refusing(lambda before, after: before != after))
    with on_the_tree(), pytest.raises(ProofError, match="planted"):
        run_stages(job())


def test_sizes_that_have_to_be_given_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cover for open sizes is judged where it is to be proved by itself."""
    monkeypatch.setattr(Equivalence, "judge", refusing(lambda before, after: before != after))
    text = parse_kernel(TEXT.format(value="-a[i]", permits="reassociate").replace("  in  b: f32[N]\n", ""))
    begun, no = as_far(new_job(text, machine(), {}, None), "cover")
    assert begun.cover is not None
    assert no is None
    begun, no = as_far(new_job(text, machine(), {}, None, sure=True), "cover")
    assert isinstance(no, Uncovered)
    monkeypatch.undo()
    begun, no = as_far(new_job(text, machine(), {}, None, sure=True), "cover")
    assert begun.cover is not None
    assert certify(begun.cover)["chain"]


VALUES = (
    "min(a[i], b[i])", "min(a[i], 0)", "min(0, -a[i])", "-min(-a[i], b[i])", "2 * min(a[i], b[i]) - 1", "abs(a[i])",
    "-2 * max(a[i], b[i])", "min(0.5 * a[i], 0.5 * b[i])", "0.5 * max(-a[i], b[i])", "max(a[i] + 1, b[i] + 1)",
    "pow(a[i], 2)", "min(min(a[i], b[i]), 0)", "a[i] / 4", "(a[i] - 0) / 1", "-(0 * a[i])", "ceil(-a[i])",
)  # fmt: skip
OTHERS = ("reassociate, contract", "nothing", "reassociate, finite")


def cases() -> Iterator[tuple[str, str]]:
    """Every value to the bit, and with one of the other permissions."""
    for n, v in enumerate(VALUES):
        yield v, "exact"
        yield v, OTHERS[n % 3]


def right(done: Job, value: str, *, exactly: bool) -> None:
    assert done.schedule is not None
    kernel, rng = done.original.with_sizes(SIZES), np.random.default_rng(0)
    arrays = {b.name: rng.choice(np.array([0, -0.0, 1, -1, 0.1, -3.3, 7, 1e-40], np.float32), 12)
              for b in kernel.arguments if b.role == "in"}  # fmt: skip
    got, want = simulate(done.schedule, arrays)["y"], run(kernel, arrays)["y"]
    assert np.array_equal(got, want) if exactly else np.allclose(got, want, 1e-6), value


@pytest.mark.parametrize("part", range(2))
def test_no_kernel_ends_in_an_internal_error(part: int) -> None:
    """Whatever the machine lacks and the user permits: proved, right, or refused."""
    done, undecided = 0, []
    for value, permits in islice(cases(), part, None, 2):
        try:
            made = run_stages(job(value, permits))
        except Refused as no:
            undecided += no.answer.undecided
            continue
        assert made.certificate is not None
        right(made, value, exactly=permits in ("exact", "nothing"))
        done += 1
    assert undecided == []
    assert done >= (9, 11)[part]
