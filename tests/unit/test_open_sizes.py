"""Sizes that nobody gives: each is found from an argument, or the call, or the command line, says what is missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isam
from isam.cli import main
from isam.compiler import Refused
from isam.compiler.stages import new_job, run_stages
from isam.diagnostics import IsamError
from isam.ir.signature import shown_by
from isam.ir.sizes import run_time
from isam.system.load import load_system

ON = pytest.mark.parametrize("on", ["host", "toy", "casestudy"])
FILLED = "kernel filled(T)\n  out z: f32[T]\n  forall t < T\n    z[t] = 1\n"
POWERS = "kernel powers(T)\n  inout s: f32\n  out z: f32[T]\n  loop t < T\n    s = s * 2\n    z[t] = s\n"
UNSEEN = "kernel unseen(T)\n  inout s: f32\n  loop t < T\n    s = s * 2\n"
EVERY = "kernel every(T, Q = T // 4)\n  in x: f32[T]\n  out z: f32[Q]\n  loop t < Q\n    z[t] = x[4 * t]\n"
BOTH = EVERY.replace("  out z", "  inout s: f32\n  out z") + "  loop u < T\n    s += x[u]\n"
PARTS = ("kernel parts(T, Q = T // 4)\n  in x: f32[T]\n  out z: f32[8]\n  forall i < 8\n    z[i] = 0\n  loop t < T\n"
         "    forall i < Q where i < 8\n      z[i] += x[t]\n")  # fmt: skip


LONGER = POWERS.replace("f32[T]", "f32[T + 1]").replace("z[t]", "z[0] = 0\n    z[t + 1]")


@pytest.mark.parametrize(("text", "trips", "shown"), [
    (FILLED, set(), {"T"}), (POWERS, {"T"}, {"T"}), (UNSEEN, {"T"}, set()), (EVERY, set(), {"T", "Q"}),
    (BOTH, set(), {"T", "Q"}), (PARTS, set(), {"T"}), (LONGER, {"T"}, {"T"}),
])  # fmt: skip
def test_which_sizes_may_stay_open(text: str, trips: set[str], shown: set[str]) -> None:
    kernel = isam.parse(text)
    assert (run_time(kernel), shown_by(kernel)) == (trips, shown)


@ON
@pytest.mark.parametrize("text", [FILLED, POWERS])
def test_an_output_shows_a_size(text: str, on: str) -> None:
    fn = isam.compile(text, on=on)
    s = [np.ones((), np.float32)] * ("inout s" in text)
    with pytest.raises(IsamError, match=r"call-size.*the size T follows from no argument\n.*z=\.\.\., or") as e:
        fn(*s)
    assert e.value.diagnostics[0].hint
    z = np.zeros(3, np.float32)
    assert fn(*s, z=z) is z
    assert z.tolist() == ([2, 4, 8] if s else [1, 1, 1])


@ON
def test_a_size_that_no_argument_shows_is_given_to_the_compiler(on: str) -> None:
    with pytest.raises(IsamError, match=r"1:1: error\[call-size\].*\n.*sizes={'T': ...}"):
        isam.compile(UNSEEN, on=on)(np.ones((), np.float32))
    s = np.ones((), np.float32)
    isam.compile(UNSEEN, on=on, sizes={"T": 3})(s)
    assert s == 8


WIDE = ("kernel wide(M, N, L)\n  in x: f32[2 * M + 1]\n  in w: f32[M + N]\n  out y: f32[2 * M + 1, N]\n"
        "  out z: f32[L]\n  forall i < 2 * M + 1, j < N\n    y[i, j] = x[i]\n  forall i < L\n    z[i] = 1\n")


@ON
@pytest.mark.parametrize(("x", "hint"), [(4, "nearest are 3 and 5"), (0, "nearest is 1")])
def test_a_length_that_no_size_makes_is_told_with_what_would_do(x: int, hint: str, on: str) -> None:
    rows, w = np.ones(x, np.float32), np.ones(5, np.float32)
    with pytest.raises(IsamError) as e:
        isam.compile(WIDE, on=on)(rows, w)
    one, other = e.value.diagnostics
    assert one.message == f"wide: dimension 0 of 'x' is {x}, but must be 2*M + 1 for a whole number M"
    assert hint in one.hint
    assert "the size L follows from no argument" in other.message, "and nothing of N, which M decides"


@ON
def test_sizes_worked_out_from_others_follow(on: str) -> None:
    fn, parts, both = (isam.compile(t, on=on) for t in (EVERY, PARTS, BOTH))
    for n in (0, 3, 4, 9):
        x = np.arange(n, dtype=np.float32)
        assert fn(x).tolist() == x[: n // 4 * 4 : 4].tolist()
        assert parts(x).tolist() == [x.sum() if i < n // 4 else 0 for i in range(8)]
        assert both(x, s := np.zeros((), np.float32)).tolist() == fn(x).tolist()
        assert s == x.sum()
    with pytest.raises(IsamError, match="shape"):
        fn(np.zeros(9, np.float32), z=np.zeros(3, np.float32))


@ON
def test_no_schedule_is_sought_while_sizes_are_open(on: str) -> None:
    with pytest.raises(IsamError, match=r"1:1: error\[size-open\].* T .*\n.*T = \.\.\.") as e:
        run_stages(new_job(isam.parse(FILLED), load_system(on), {}, None))
    assert len(e.value.diagnostics) == 1


@ON
@pytest.mark.parametrize(("text", "compiled", "called"), [
    (POWERS, [], ["-D", "T=3"]), (POWERS, ["-D", "T=3"], []), (UNSEEN, ["-D", "T=3"], []), (EVERY, ["-D", "T=9"], []),
    (UNSEEN, ["-D", "T=3"], ["-D", "T=3"]), (BOTH, ["-D", "T=9"], []),
])  # fmt: skip
def test_artifacts_know_their_sizes(text: str, compiled: list[str], called: list[str], on: str, tmp_path: Path) -> None:
    file, made = tmp_path / "k.isam", str(tmp_path / "k.isamc")
    file.write_text(text)
    assert main(["compile", str(file), "--on", on, *compiled, "-o", made]) == 0
    assert main(["verify", made]) == 0
    assert main(["run", made, *called, "--check", "--repeat", "3"]) == 0
    assert main(["run", made, "-D", "T=3.5"]) == 2
    assert main(["run", made, "-D", "T=5"]) == (2 if compiled else 0)


@ON
def test_code_that_could_not_be_called_is_not_made(on: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.isam"
    file.write_text(UNSEEN)
    assert main(["compile", str(file), "--on", on, "-o", str(tmp_path / "k.isamc")]) == 2
    assert "needs the sizes T" in capsys.readouterr().err
    assert main(["schedule", str(file), "--on", on]) == 0


STEPS = ["z[t] = abs(s)", "z[t] = ceil(s)", "z[t] = min(s, 2)", "z[t] = s - z[t]", "z[t] = max(exp(s), exp(x))",
         "z[t] = exp(s + x)", "z[t] = select(s > x, s, x)"]  # fmt: skip


@ON
@pytest.mark.parametrize("step", STEPS)
def test_what_laws_make_in_a_step_is_as_large_as_a_step(step: str, on: str) -> None:
    """Else the trip could not stay open: what an address or workspace depends on is a number."""
    head = "kernel k(T)\n  permits reassociate, contract, finite\n  in s: f32\n  in x: f32\n  inout z: f32[T]\n"
    text = f"{head}  loop t < T\n    {step}\n"
    try:
        job = run_stages(new_job(isam.parse(text), load_system(on), {}, None))
    except Refused:  # the machine has no such operation
        return
    assert all(d.is_constant for b in job.cover.kernel.buffers if b.role == "temp" for d in b.shape)


PLANES = """
isam: 1
system: planes
memories:
  dram: {kind: managed, capacity: 1 MiB, home: true}
  near: {kind: managed, capacity: 8 KiB}
units:
  core: {runs: ["v*", copy], clock: 1 GHz}
moves:
  - {from: dram, to: near, by: copy, issuer: core, both_ways: true}
instructions:
  vmax:
    body: |
      instruction vmax(I <= 4, J <= 8)
        in  A: f32[I, J]
        in  B: f32[I, J]
        out D: f32[I, J]
        forall i < I, j < J
          D[i, j] = max(A[i, j], B[i, j])
    homes: [near]
  vcopy:
    body: |
      instruction vcopy(I <= 4, J <= 8)
        in  A: f32[I, J]
        out D: f32[I, J]
        forall i < I, j < J
          D[i, j] = A[i, j]
    homes: [near]
  copy:
    body: |
      instruction copy(I, J)
        in  S: any[I, J]
        out D: any[I, J]
        forall i < I, j < J
          D[i, j] = S[i, j]
    strides: {S: [free, free], D: [free, free]}
"""
GREATER = ("kernel greater(N)\n  in  x: f32[N]\n  in  z: f32[N]\n  out y: f32[N]\n  forall i < N\n"
           "    y[i] = max(x[i], z[i])\n")  # fmt: skip
RUNNING = ("kernel running(T)\n  in  x: f32[T]\n  inout s: f32\n  out y: f32[T]\n  loop t < T\n    s = max(s, x[t])\n"
           "    y[t] = s\n")  # fmt: skip


def test_instructions_of_two_axes_carry_out_what_has_one_or_none(tmp_path: Path) -> None:
    """An argument is seen with dimensions of one, sizes known or not, where nothing could copy it."""
    (tmp_path / "planes.yaml").write_text(PLANES)
    system = load_system(tmp_path / "planes.yaml")
    rng = np.random.default_rng(3)
    for sizes in (None, {"N": 19}):
        fn = isam.compile(GREATER, on=system, sizes=sizes)
        x, z = rng.standard_normal((2, 19), dtype=np.float32)
        assert (fn(x, z) == np.maximum(x, z)).all()
        assert isam.explain(GREATER, on=system, sizes=sizes)
    fn = isam.compile(RUNNING, on=system)
    for trip in (1, 7):
        x, s = rng.standard_normal(trip, dtype=np.float32), np.full((), -1, np.float32)
        assert (fn(x, s) == np.maximum.accumulate(np.maximum(x, -1))).all()
        assert s == max(-1, x.max())
