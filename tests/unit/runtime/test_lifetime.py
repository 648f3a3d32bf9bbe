"""The memory of arrays that begin with a cache line: given back once, moved with its content, owned like any other."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import sys
import tracemalloc

import numpy as np
import pytest

import isam
from isam.runtime import layout
from isam.runtime.aligned import LINE, copied, linked
from tests.handlers import Counting, below, handler_of
from tests.threads import at_once
from tests.unit.runtime.test_aligned import LARGE, pair, past, python, result

pytestmark = pytest.mark.skipif(not layout.own_handler()[1], reason="NumPy's handlers are not known here")


def test_what_is_made_is_freed_and_known_to_tracemalloc():
    f = pair(1 << 20)
    tracemalloc.start()
    try:
        first = tracemalloc.get_traced_memory()[0]
        kept = [result(f) for _ in range(4)]
        assert tracemalloc.get_traced_memory()[0] - first >= 4 << 22
        del kept
        assert abs(tracemalloc.get_traced_memory()[0] - first) < 1 << 16
    finally:
        tracemalloc.stop()


def test_no_reference_to_a_handler_is_kept_or_lost():
    f, ours = pair(LARGE), linked().code["capsule"]
    addresses = layout.own_handler()[0], ctypes.c_void_p.from_address(ours).value
    counts = [ctypes.c_ssize_t.from_address(a) for a in addresses]
    kept = [result(f)]
    before = [c.value for c in counts]
    for _ in range(500):
        kept[0] = result(f)
    assert np.abs(np.subtract([c.value for c in counts], before)).max() < 50
    kept += [result(f) for _ in range(500)]
    assert counts[1].value - before[1] > 450


def test_all_memory_is_given_back_once_where_and_as_it_was_got():
    counting, f = Counting(), pair(LARGE)
    with below(counting):
        kept = [*(result(f) for _ in range(9)), *(isam.empty(n, "u1") for n in range(0, 300, 7)), isam.empty(9, object)]
        assert len(counting.live) == len(kept)
        for n, a in enumerate(kept[:-1]):
            a.resize(a.size // 2 + 977 * n, refcheck=False)
            assert past(a) == 0
        assert len(counting.live) == len(kept)
        del a
        while kept:
            kept.pop()
    assert not counting.live
    assert not counting.faults


def test_content_follows_when_memory_moves_within_a_line():
    """Memory that begins 16, 32, 48 bytes after a line, and elsewhere after it was made longer."""
    moves, counting = [], Counting()
    libc_realloc = counting.alive[2]

    def elsewhere(context, at, size):
        new = counting.alive[0](None, size + 64) or 0
        counting.live[new + (shift := 16 * (len(moves) % 4))] = counting.live.pop(new)
        ctypes.memmove(new + shift, at, min(size, counting.live.pop(at)))
        moves.append((at % LINE, (new + shift) % LINE))
        return new + shift

    form = type(libc_realloc)(elsewhere)
    counting.handler.realloc = ctypes.cast(form, ctypes.c_void_p).value
    with below(counting):
        kept = []
        for n in range(1, 40):
            a = isam.empty(100 + n, "u1")
            a[:] = want = np.random.default_rng(n).integers(0, 255, 100 + n, np.uint8)
            a.resize(50 + 5 * n, refcheck=False)
            common = min(len(a), len(want))
            assert a[:common].tolist() == want[:common].tolist()
            assert past(a) == 0
            kept.append(a)
        assert len({(was - now) % LINE for was, now in moves}) > 2
        counting.handler.free = ctypes.cast(never := type(counting.alive[3])(lambda *_: None), ctypes.c_void_p).value
        del a  # as long as its handler is there
        kept.clear()
        assert never


def test_they_are_resized_copied_and_pickled_as_any_array():
    y = result(pair(LARGE))
    y[:] = np.arange(LARGE)
    want = y.tolist()
    assert copied(y, y.dtype).tolist() == y.copy().tolist() == pickle.loads(pickle.dumps(y)).tolist() == want
    assert pickle.loads(pickle.dumps(y, 5)).tolist() == want
    for n in (2 * LARGE, LARGE // 3, 5, 0, 3, 10 * LARGE):
        before = y[: min(n, len(y))].tolist()
        y.resize(n, refcheck=False)
        assert (y[: len(before)].tolist(), y[len(before) :].any(), past(y)) == (before, False, 0)
    assert handler_of(y.copy()) == "default_allocator"


def test_a_handler_that_somebody_has_set_makes_results_and_stays():
    counting, f = Counting(), pair(LARGE)
    with counting.in_force():
        y = result(f)
        references = sys.getrefcount(counting.capsule)
        for _ in range(100):
            result(f)
        assert sys.getrefcount(counting.capsule) < references + 50
        assert handler_of(y) == handler_of() == "counting"
        assert 4 * LARGE in counting.live.values()
        assert isam.empty(3, ("f4", 2)).shape == (3, 2)
        x = isam.empty((3, 5), np.float32)
        assert (past(x), x.shape, x.flags.c_contiguous, handler_of()) == (0, (3, 5), True, "counting")
        assert handler_of(np.zeros(LARGE)) == "counting"
        del y, x
    assert handler_of(result(f)) == "isam"
    gc.collect(1)
    assert not counting.live
    assert not counting.faults


def test_eight_threads_make_results_at_once():
    f = pair(LARGE)

    def work(seed):
        h, kept = np.ones(4, np.float32), []
        x = np.full(4, seed, np.float32)
        for n in range(300):
            y, _ = f(x, h)
            y[4:] = seed
            kept = [*kept[-5:], y]
            assert past(y) == 0
            assert handler_of() == "default_allocator"
            if n % 7 == 0:
                y.resize(2 * LARGE, refcheck=False)
            assert all(set(k[4:LARGE:997].tolist()) == {seed} and k[0] == seed + 1 for k in kept)

    at_once(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_its_parents_arrays_and_makes_its_own():
    f = pair(LARGE)
    y = result(f)
    child = os.fork()
    if not child:
        z = result(f)
        y.resize(3 * LARGE, refcheck=False)
        good = past(y) == past(z) == 0 and y[:4].tolist() == z[:4].tolist() == [1, 2, 3, 4]
        del y, z
        os._exit(0 if good and past(result(f)) == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert y[:4].tolist() == [1, 2, 3, 4]


def test_arrays_that_live_to_the_end_of_the_process_are_freed_by_what_is_there():
    code = """
import builtins, isam, numpy as np, sys
class Last:
    def __del__(self):
        a = self.a
        a.resize(3 * a.size, refcheck=False)
        del self.a
last = [Last() for _ in range(3)]
last[0].a, last[1].a, last[2].a = isam.empty(9000), isam.empty(5), isam.empty(1 << 20)
builtins.one, sys.two, np.three = last
cycle = [isam.empty(1 << 20)]; cycle.append(cycle)
print(isam.empty(3).shape)
del last
"""
    assert python(code) == "(3,)\n"
