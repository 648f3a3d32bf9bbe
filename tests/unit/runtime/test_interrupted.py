"""Calls that others come in between: a signal's handler, a thread that ends with the process, a fork."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

import isam

PRODUCT = """kernel product(M, N, K)
  in    A: f32[M, K]
  const B: f32[K, N]
  out   C: f32[M, N]
  permits contract, reassociate
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def ran(code: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_call_between_packing_and_computing_has_a_workspace_of_its_own() -> None:
    """As when a signal's handler, or what is finalised, calls the same kernel there."""
    fn = isam.compile(PRODUCT, sizes={"M": 64, "N": 512, "K": 128}, cache=False)
    entry = fn.specialise({})
    A = np.ones((64, 256), np.float32)[:, ::2]  # goes through Python
    one, two = np.ones((128, 512), np.float32), np.full((128, 512), 2, np.float32)
    runner = entry.runner
    assert runner.binder is not None
    real, inside = runner.binder, list[object]()

    def binder(*given: object) -> None:
        real(*given)
        if not inside:
            inside.append("begun")
            inside.append((entry(A, two) == 256).all())

    runner.binder = binder
    try:
        assert (entry(A, one) == 128).all()
        assert (entry(A, one) == 128).all()
    finally:
        runner.binder = real
    assert inside == ["begun", True]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers of signals")
def test_handlers_of_signals_may_call_what_they_interrupt() -> None:
    code = f"""import isam, numpy as np, signal
fn = isam.compile({PRODUCT!r}, sizes=dict(M=64, N=512, K=128), cache=False)
A = np.ones((64, 256), "f4")[:, ::2]
one, two = np.ones((128, 512), "f4"), np.full((128, 512), 2, "f4")
fn(A, one)
signal.signal(signal.SIGALRM, lambda *_: fn(A, two))
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
print(sum(not (fn(A, one) == 128).all() for _ in range(1500)))
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    assert ran(code) == (0, "0\n")


def test_a_process_may_end_while_threads_compute() -> None:
    """Their workspaces stay, though what belongs to a thread is gone by then."""
    code = """import isam, numpy as np, threading, time
fn = isam.compile(isam.einsum("mk,kn->mn"), sizes={"M": 512, "N": 512, "K": 512}, cache=False)
A = np.ones((512, 1024), "f4")[:, ::2]
def go():
    while True: fn(A, A)
for _ in range(3): threading.Thread(target=go, daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(3):
        assert ran(code) == (0, "")


def test_a_call_imports_nothing_that_a_child_would_wait_for() -> None:
    code = """import isam, numpy as np, sys
text = "kernel k(N)\\n  in x: f32[N]\\n  out y: f32[N]\\n  forall i < N\\n    y[i] = 2 * x[i]"
fn = isam.compile(text, sizes={"N": 8}, cache=False)
x = np.ones(16, "f4")[::2]
before = set(sys.modules)
fn(x)
print(sorted(set(sys.modules) - before))
m = np.ma.masked_array(np.ones(8, "f4"))
try:
    fn(m)
except isam.IsamError as e:
    print(e.diagnostics[0].code)
"""
    assert ran(code) == (0, "[]\ncall-type\n")
