"""Threads that share the work of a kernel: everything is done once, whoever calls, and nobody waits for ever."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from isam.runtime import pool as module
from isam.runtime.pool import MOST, cpus, fork_address, pool
from tests.threads import at_once

WORK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
RUN = ctypes.CFUNCTYPE(None, WORK, ctypes.c_void_p, ctypes.c_int64)


@pytest.fixture
def fork():
    return RUN(fork_address(2, False))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1000])
def test_every_instance_is_done_once_and_before_the_call_ends(fork, count: int) -> None:
    for _ in range(20):
        done: list[tuple[int, int]] = []
        fork(WORK(lambda words, i, done=done: done.append((words, i))), 1234, count)
        assert sorted(done) == [(1234, i) for i in range(count)]


def test_threads_that_call_at_once_get_their_own_work_done(fork) -> None:
    done: list[Counter] = [Counter() for _ in range(6)]

    def caller(n: int) -> None:
        for _ in range(50):
            fork(WORK(lambda words, i: done[n].update([i])), 0, 5)

    at_once(caller, 6)
    assert all(d == dict.fromkeys(range(5), 50) for d in done)


def test_work_that_forks_again_does_it_alone(fork) -> None:
    done = Counter()

    def outer(words: int, i: int) -> None:
        fork(WORK(lambda words, j: done.update([(i, j)])), 0, 3)

    fork(WORK(outer), 0, 4)
    assert done == {(i, j): 1 for i in range(4) for j in range(3)}


def test_serial_keeps_to_the_caller_in_order() -> None:
    done: list[tuple[int, int]] = []
    RUN(fork_address(2, True))(WORK(lambda words, i: done.append((threading.get_ident(), i))), 0, 9)
    assert done == [(threading.get_ident(), i) for i in range(9)]


def test_no_more_threads_than_cpus() -> None:
    fork_address(1000, False)
    assert pool().threads == min(cpus(), MOST + 1)


def test_there_is_one_pool_whoever_asks_first() -> None:
    text = (
        "import sys, threading\nfrom isam.runtime.pool import pool\nsys.setswitchinterval(1e-6)\nseen = []\n"
        "some = [threading.Thread(target=lambda: seen.append(id(pool()))) for _ in range(8)]\n"
        "[t.start() for t in some]\n[t.join() for t in some]\nsys.exit(len(set(seen)) != 1)"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


@pytest.mark.skipif(cpus() < 2, reason="one CPU: nobody shares")
def test_other_threads_take_part() -> None:
    if not pool().threaded:
        pytest.skip("no threads on this system")
    fork, seen = RUN(fork_address(2, False)), set()

    def slow(words: int, i: int) -> None:
        seen.add(threading.get_native_id())
        time.sleep(0.02)

    for _ in range(50):
        fork(WORK(slow), 0, 2)
        if len(seen) == 2:
            break
    assert len(seen) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_threads_of_its_own(fork) -> None:
    fork(WORK(lambda words, i: None), 0, 4)
    child = os.fork()
    if not child:
        done: list[int] = []
        for _ in range(20):
            fork(WORK(lambda words, i: done.append(i)), 0, 4)
        os._exit(0 if sorted(done) == sorted([*range(4)] * 20) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    done: list[int] = []
    fork(WORK(lambda words, i: done.append(i)), 0, 4)
    assert sorted(done) == [0, 1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_middle_of_a_call_leaves_the_child_free(fork) -> None:
    inside, go = threading.Event(), threading.Event()

    def wait(words: int, i: int) -> None:
        inside.set()
        go.wait(20)

    caller = threading.Thread(target=lambda: fork(WORK(wait), 0, 2))
    caller.start()
    inside.wait(20)
    child = os.fork()
    if not child:
        done: list[int] = []
        fork(WORK(lambda words, i: done.append(i)), 0, 3)
        os._exit(0 if sorted(done) == [0, 1, 2] else 1)
    status = os.waitpid(child, 0)[1]
    go.set()
    caller.join()
    assert os.waitstatus_to_exitcode(status) == 0


ENDS = """
import ctypes, sys
from isam.runtime.pool import fork_address
work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
run = ctypes.CFUNCTYPE(None, work, ctypes.c_void_p, ctypes.c_int64)(fork_address(2, False))
f = work(lambda words, i: None)
for _ in range(int(sys.argv[1])):
    run(f, 0, 2)
"""


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 1000])
def test_a_process_ends_whatever_its_threads_do(calls: int) -> None:
    for _ in range(3):
        subprocess.run([sys.executable, "-c", ENDS, str(calls)], check=True, timeout=60)


def test_where_there_is_no_futex_calls_do_all_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "plan9")
    other = module.Pool()
    assert other.fork == other.serial
