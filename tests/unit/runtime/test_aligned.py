"""Large results and ``isam.empty`` begin with a cache line, and are arrays like all others."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import isam
from isam.artifact import Argument
from isam.diagnostics import IsamError
from isam.runtime import layout
from isam.runtime.aligned import LEAST, LINE, copied
from isam.runtime.entry import Entry
from isam.runtime.signature import Signature
from tests.handlers import handler_of
from tests.unit.runtime.test_vectorcall import ARGUMENTS, PAIR

pytestmark = pytest.mark.skipif(not layout.own_handler()[1], reason="NumPy's handlers are not known here")
LARGE = LEAST // 4  # of f32
INPUTS = np.arange(4, dtype=np.float32), np.ones(4, np.float32)


def pair(n):
    """A kernel whose first result has so many elements, of which it writes four."""
    return Entry(replace(PAIR, arguments=(*ARGUMENTS[:2], Argument("y", "out", "f32", ((n, ()),)), ARGUMENTS[3])))


def result(f):
    return f(INPUTS[0], INPUTS[1].copy())[0]


def past(a):
    """Bytes from the begin of a line to the array."""
    return a.ctypes.data % LINE


def python(code, **environment):
    """What a fresh process says, which has to end well."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120,
                          env={**os.environ, **environment})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_of_the_least_size_and_more_begin_with_a_line():
    for n in (LARGE, LARGE + 1, 3 * LARGE + 5, 1 << 21):
        f = pair(n)
        kept = [result(f) for _ in range(20)]
        assert [past(y) for y in kept] == [0] * 20
        assert all(y.flags.owndata and y.flags.writeable and y.base is None for y in kept)
        assert all(y[:4].tolist() == [1, 2, 3, 4] for y in kept)
        assert handler_of(kept[0]) == "isam"


def test_smaller_ones_are_made_as_before():
    assert handler_of(result(pair(LARGE - 1))) == "default_allocator"
    assert handler_of(isam.empty(4)) == "isam"


def test_results_of_the_thorough_way_begin_with_a_line_and_so_do_copies(monkeypatch):
    f, seen = pair(LARGE), []
    runner = f.runner.call
    monkeypatch.setattr(f.runner, "call", lambda arrays, *rest: (seen.append(dict(arrays)), runner(arrays, *rest)))
    y, _ = f(INPUTS[0][::-1], INPUTS[1].copy())
    assert (past(y), y[:4].tolist()) == (0, [4, 3, 2, 1])
    out = np.zeros((LARGE, 2), np.float32)
    f(*INPUTS, y=out[:, 1])
    assert past(seen[1]["y"]) == 0
    assert (out[:4].tolist(), out[4:].any()) == ([[0, 1], [0, 2], [0, 3], [0, 4]], False)
    assert handler_of(np.zeros(LARGE)) == "default_allocator"


def test_constants_are_bound_in_arrays_that_begin_with_a_line():
    arguments = (replace(ARGUMENTS[0], role="const", shape=((LARGE, ()),)), *ARGUMENTS[1:])
    f = Entry(replace(PAIR, arguments=arguments)).bind(x=np.arange(LARGE, dtype=np.float32))
    assert past(f.bound["x"]) == past(f.state.constants["x"]) == 0
    assert f(INPUTS[1].copy())[0].tolist() == [1, 2, 3, 4]


def test_a_copy_is_in_order_and_in_this_byte_order():
    a = np.arange(2 * LARGE, dtype=">f4").reshape(2, LARGE).T
    made = copied(a, np.dtype("f4"))
    assert (past(made), made.flags.c_contiguous, made.dtype.isnative) == (0, True, True)
    np.testing.assert_array_equal(made, a)


@pytest.mark.parametrize("shape", [0, 1, 7, (), (0,), (3, 0, 5), (1,), (5, 3), [2, 3], np.int64(4), (1 << 12, 33)])
@pytest.mark.parametrize("dtype", [np.float64, "i1", np.dtype(">f4"), bool, "U3", [("a", "f4"), ("b", "i1")], None])
def test_empty_makes_what_numpy_makes(shape, dtype):
    made, theirs = isam.empty(shape, dtype), np.empty(shape, dtype)
    assert (made.shape, made.dtype, made.strides) == (theirs.shape, theirs.dtype, theirs.strides)
    assert made.flags.num == theirs.flags.num
    assert past(made) == 0


def test_objects_are_none_and_are_let_go():
    thing, made = object(), isam.empty(1000, object)
    assert set(made) == {None}
    before = sys.getrefcount(thing)
    made[:] = thing
    assert sys.getrefcount(thing) == before + 1000
    del made
    assert sys.getrefcount(thing) == before


@pytest.mark.parametrize(("shape", "error"), [(-1, ValueError), ((3, -1), ValueError), ("a", TypeError),
                                              (1.5, TypeError), ((1 << 62, 8), ValueError), ((1,) * 65, ValueError),
                                              (1 << 56, MemoryError), ((1 << 64) + 5, ValueError),
                                              ((-1 << 64, 2), ValueError)])  # fmt: skip
def test_empty_refuses_what_numpy_refuses_and_leaves_the_handler(shape, error):
    for f in (isam.empty, np.empty):
        with pytest.raises(error):
            f(shape)
    with pytest.raises(TypeError):
        isam.empty(3, "no such type")
    assert handler_of() == "default_allocator"


def test_a_result_that_cannot_be_made_is_an_error_and_leaves_the_handler():
    f, dtype = pair(1 << 56), Signature.of(PAIR).by_name["y"].dtype
    before = sys.getrefcount(dtype)
    for _ in range(100):
        with pytest.raises(MemoryError, match="Unable to allocate"):
            result(f)
    assert abs(sys.getrefcount(dtype) - before) < 50
    assert handler_of() == "default_allocator"


UNKNOWN = [("KNOWN", ()), ("HANDLERS", 1 << 20), ("HANDLER_VERSION", 126), ("CAPSULE", b"other"), ("QUICK", False)]


@pytest.mark.parametrize(("name", "value"), UNKNOWN)
def test_a_numpy_that_is_not_known_has_no_handler_here(monkeypatch, name, value):
    monkeypatch.setattr(layout, name, value)
    assert layout.own_handler() == (0, 0)


def test_where_numpy_is_not_known_results_are_numpys_and_nothing_is_said():
    code = """
from isam.runtime import layout
layout.KNOWN = ()
import numpy as np, isam
from tests.unit.runtime import test_aligned as t
f = t.pair(t.LARGE)
y = t.result(f)
z, _ = f(t.INPUTS[0][::-1], t.INPUTS[1].copy())
e = isam.empty((5, 3), np.float32)
print(*map(t.handler_of, (y, z)), y[:4], z[:4], t.past(e), e.shape)
"""
    root = os.fspath(isam.__path__[0] + "/..")
    done = python(code, PYTHONPATH=root, PYTHONWARNINGS="error")
    assert done == "default_allocator default_allocator [1. 2. 3. 4.] [4. 3. 2. 1.] 0 (5, 3)\n"


def test_what_a_call_refuses_makes_nothing():
    f = pair(LARGE)
    with pytest.raises(IsamError):
        f(INPUTS[0])
    assert handler_of() == "default_allocator"
