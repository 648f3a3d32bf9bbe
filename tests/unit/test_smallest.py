"""A fault of ours is shown with the smallest kernel found that has it; what is wrong is told from what is unproved."""

from __future__ import annotations

from dataclasses import replace

import pytest

import isam
from isam.compiler.smallest import smallest
from isam.diagnostics import InternalError
from isam.ir.text import parse_kernel
from isam.ir.verify import verify
from isam.proof import ProofError, prove
from isam.proof.facts import Facts
from isam.schedule.tree import Seq
from isam.system.load import load_system
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled
from tests.unit.proof.handmade import tiny_matmul, vec_matmul

LONG = """kernel long(M, N)
  in    a: f32[M, N]
  in    b: f32[N]
  out   y: f32[M, N]
  inout z: f32[N]
  forall j < N
    z[j] = z[j] * 2
  forall i < M, j < N
    y[i, j] = exp(a[i, j])
  loop t < M
    forall j < N
      z[j] = z[j] + b[j]
"""


def test_statements_and_sizes_go_while_the_fault_stays():
    def shows(kernel, sizes):
        return any(s.op == "exp" for s in kernel.statements) and sizes["N"] >= 5

    kernel, sizes = smallest(parse_kernel(LONG), {"M": 12, "N": 40}, shows)
    assert [s.op for s in kernel.statements] == ["exp"]
    assert [b.name for b in kernel.buffers] == ["a", "y"]
    assert sizes == {"M": 1, "N": 5}


def test_a_line_goes_with_its_parts_and_what_it_made_is_given():
    """Of three lines that need one another the middle one is left, in the names and sizes that were typed."""
    text = """kernel fused(M, K)
  in  x: i8[M, K]
  in  s: f32[M]
  out y: i8[M]
  temp a: i32[M]
  forall i < M
    a[i] = 0
  forall i < M, k < K
    a[i] += i32(x[i, k]) * i32(x[i, k])
  forall i < M
    y[i] = sat_i8(round(f32(a[i]) * s[i]))
"""

    def shows(kernel, sizes):
        made = {s.op for s in kernel.statements if "i32" in kernel.buffer(s.dest.buffer).dtype}
        return any(s.accumulate for s in kernel.statements) and not verify(kernel) and made >= {"mul", "cast"}

    kernel, sizes = smallest(parse_kernel(text), {"M": 12, "K": 40}, shows)
    assert str(kernel).startswith("kernel fused(M, K)\n  in    x: i8[M, K]\n  inout a: i32[M]\n")
    assert {s.dest.buffer for s in kernel.statements if s.accumulate} == {"a"}
    assert sizes == {"M": 1, "K": 1}


def test_a_stage_that_fails_shows_it(monkeypatch):
    def broken(job):
        if any(s.op == "exp" for s in job.kernel.statements):
            raise KeyError("inside")

    stages = [replace(s, run=broken) if s.name == "schedule" else s for s in isam.compiler.stages.STAGES]
    monkeypatch.setattr("isam.compiler.stages.STAGES", tuple(stages))
    with pytest.raises(InternalError) as e:
        compiled(parse_kernel(LONG), {"M": 12, "N": 40}, load_system("toy"))
    text = str(e.value)
    assert "the stage 'schedule' failed" in text
    shown = text.split("the smallest kernel found that shows it (M=1, N=1):\n")[1]
    assert [s.op for s in parse_kernel(shown).statements] == ["exp"]


def test_what_is_not_proved_is_not_called_wrong(monkeypatch):
    s = vec_matmul(7, 16, 10)
    monkeypatch.setattr(Facts, "holds", lambda self, state, t, ctx: False)
    said = r"is not proved: .* though executing every step meets nothing wrong"
    with on_the_tree(), pytest.raises(ProofError, match=said) as e:
        prove(s)
    assert e.value.executed == ()
    assert "the kernel:\nkernel matmul" in str(e.value)


def test_what_is_wrong_is_called_so():
    s = tiny_matmul(8, 8, 12)
    with pytest.raises(ProofError, match=r"is wrong: it violates \d+ obligations") as e:
        prove(replace(s, call=Seq()))
    assert e.value.executed
    assert "executed step by step" in str(e.value)


def test_too_many_steps_are_not_executed(monkeypatch):
    monkeypatch.setattr(Facts, "holds", lambda self, state, t, ctx: False)
    with pytest.raises(ProofError, match=r"is not proved: .* too many steps") as e:
        prove(vec_matmul(901, 800, 500))
    assert e.value.executed is None


def test_run_time_trips_are_executed_a_few_times(monkeypatch):
    loop = "  loop t < T\n    forall i < N\n      h[i] = h[i] * 2\n"
    job = compiled(parse_kernel(f"kernel decay(T, N)\n  inout h: f32[N]\n{loop}"), {"N": 20}, load_system("toy"))
    assert job.schedule.cover.kernel.syms
    monkeypatch.setattr(Facts, "holds", lambda self, state, t, ctx: False)
    with pytest.raises(ProofError, match=r"not proved") as e:
        prove(job.schedule)
    assert e.value.executed == ()


