"""Forks in the middle of other threads' work: the child can do everything, and nobody waits for ever."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from isam.runtime import forks
from isam.runtime.forks import Gate
from isam.scheduler.plans import shared_home
from tests.campaign_threads import campaign

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def forked(gate: Gate, work=lambda: None) -> float:
    """Seconds from the wish to fork to the end of the child, which dies if it waits."""
    start = time.monotonic()
    gate.before()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        gate.child()
        work()
        os._exit(0)
    gate.after()
    assert os.waitpid(child, 0)[1] == 0
    return time.monotonic() - start


def test_a_fork_waits_until_nobody_is_inside_and_the_child_may_enter():
    gate, entered, leave = Gate(), threading.Event(), threading.Event()

    def other():
        with gate.inside(), gate.inside():
            entered.set()
            leave.wait(10)

    def enter():
        with gate.inside():
            pass

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(10)
    threading.Timer(0.2, leave.set).start()
    assert forked(gate, enter) >= 0.15
    thread.join()
    with gate.inside():  # its own work does not keep a thread from forking
        assert forked(gate, enter) < 5
    assert not gate._inside


def test_a_fork_waits_for_what_frees_code():
    """Freeing code takes llvmlite's lock wherever it happens; no child may find it taken."""
    import llvmlite.binding as llvm

    lock, entered = llvm.ffi.lib._lock, threading.Event()

    def free():
        with lock:
            entered.set()
            time.sleep(0.3)

    thread = threading.Thread(target=free)
    thread.start()
    assert entered.wait(10)
    assert forked(Gate(), llvm.get_process_triple) >= 0.2
    thread.join()
    assert llvm.get_process_triple()


def test_who_comes_while_a_fork_waits_waits_behind_it():
    gate, order, leave = Gate(), [], threading.Event()

    def first():
        with gate.inside():
            leave.wait(10)
            with gate.inside():  # inside already: goes on
                order.append("first")

    def fork():
        gate.before()
        order.append("fork")
        gate.after()

    def late():
        with gate.inside():
            order.append("late")

    threads = []
    for work in (first, fork, late):
        threads.append(threading.Thread(target=work))
        threads[-1].start()
        time.sleep(0.1)
    leave.set()
    for t in threads:
        t.join()
    assert order == ["first", "fork", "late"]


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 0.1)
    gate, leave, entered = Gate(), threading.Event(), threading.Event()

    def other():
        with gate.inside():
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(10)
    assert 0.1 <= forked(gate) < 10
    leave.set()
    thread.join()


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_call_and_compile_while_processes_are_forked_and_entries_damaged(tmp_path, cores, monkeypatch):
    """Three seconds of ``python -m tests.campaign_threads 60``."""
    monkeypatch.setattr(shared_home, "MEETING", -1e12)  # no call is too short for threads
    scene = campaign(3, tmp_path, cores=cores)
    assert not scene.faults, "\n".join(scene.faults)
    assert min(scene.counts[a] for a in ("call", "make", "fork", "damage")) > 0
