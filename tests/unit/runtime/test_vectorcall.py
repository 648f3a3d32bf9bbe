"""Calls that go straight into native code do what calls through Python do, whatever the arguments are."""

from __future__ import annotations

import array
import gc
import itertools
import os
import sys
import threading
import timeit
import weakref
from dataclasses import replace

import numpy as np
import pytest

import isam
from isam.artifact import Argument, Artifact
from isam.diagnostics import IsamError
from isam.ir.text import parse
from isam.runtime.entry import Entry
from isam.runtime.vectorcall import HEADER, SHAPES
from tests.threads import at_once
from tests.unit.runtime.test_native import AXPY, ROW, arrays, objects

pytestmark = pytest.mark.skipif(not hasattr(Entry, "__wrapped__"), reason="no vectorcall on this interpreter")

# y = x + 1, z = x + h, h += 1
TWO = """
define void @call(ptr %args, ptr %ws, ptr %sizes) {
  %x.at = getelementptr ptr, ptr %args, i64 0
  %h.at = getelementptr ptr, ptr %args, i64 1
  %y.at = getelementptr ptr, ptr %args, i64 2
  %z.at = getelementptr ptr, ptr %args, i64 3
  %x = load ptr, ptr %x.at
  %h = load ptr, ptr %h.at
  %y = load ptr, ptr %y.at
  %z = load ptr, ptr %z.at
  %xv = load <4 x float>, ptr %x, align 4
  %hv = load <4 x float>, ptr %h, align 4
  %yv = fadd <4 x float> %xv, <float 1.0, float 1.0, float 1.0, float 1.0>
  %zv = fadd <4 x float> %xv, %hv
  %nv = fadd <4 x float> %hv, <float 1.0, float 1.0, float 1.0, float 1.0>
  store <4 x float> %yv, ptr %y, align 4
  store <4 x float> %zv, ptr %z, align 4
  store <4 x float> %nv, ptr %h, align 4
  ret void
}
"""
ARGUMENTS = tuple(Argument(n, r, "f32", ROW) for n, r in (("x", "in"), ("h", "inout"), ("y", "out"), ("z", "out")))
PAIR = Artifact("pair", "llvm", ARGUMENTS, entry="call", points=4, parts={"object.o": objects(TWO)})
SLOW = Artifact("slow", "llvm", ARGUMENTS, entry="call", points=1 << 30, parts={"object.o": objects(TWO)})


class Counted:
    """How many calls went through Python."""

    def __init__(self, monkeypatch):
        self.calls = 0
        python = Entry.__wrapped__.__call__

        def counting(entry, *args, **kwargs):
            self.calls += 1
            return python(entry, *args, **kwargs)

        monkeypatch.setattr(Entry.__wrapped__, "__call__", counting)


@pytest.fixture
def counted(monkeypatch):
    return Counted(monkeypatch)


def outcome(call):
    """What a call returned, as bytes, or the codes it was refused with; and what it left in its arguments."""
    try:
        result = call()
    except IsamError as e:
        return sorted(d.code for d in e.diagnostics)
    parts = result if isinstance(result, tuple) else (result,)
    return [None if r is None else (type(r), r.shape, r.dtype, r.tobytes()) for r in parts]


def shown(*values):
    """What they hold."""
    return [repr(v.tolist() if isinstance(v, memoryview) else v) for v in values]


class Exporter:
    """No array, but offers its memory in every way that there is."""

    def __init__(self, of):
        self.__array_interface__, self.of = of.__array_interface__, of

    def __dlpack__(self, **options):
        return self.of.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.of.__dlpack_device__()

    def __repr__(self):
        return repr(self.of)


def odd(kind):
    """An array of four numbers, four floats 1 to 4 where it can be, and what shares memory with it."""
    a = np.arange(1, 9, dtype=np.float32)
    wide = np.zeros((4, 2), np.float32)
    wide[:, 0] = a[:4]
    raw = np.zeros(17, np.int8)
    made = {
        "plain": lambda: a[:4],
        "copy": lambda: a[:4].copy(),
        "next": lambda: a[4:],
        "overlaps": lambda: a[2:6],
        "reversed": lambda: a[3::-1],
        "column": lambda: wide[:, 0],
        "double": lambda: a[:4].astype(np.float64),
        "swapped": lambda: a[:4].astype(">f4"),
        "short": lambda: a[:3],
        "deep": lambda: a[:4].reshape(4, 1),
        "misaligned": lambda: raw[1:17].view(np.float32),
        "read-only": lambda: np.broadcast_to(a[:4].copy(), (4,)),
        "same number": lambda: np.broadcast_to(np.float32(3), (4,)),
        "subclass": lambda: a[:4].view(np.recarray),
        "masked": lambda: np.ma.masked_equal(a[:4], 2),
        "list": lambda: [1.0, 2.0, 3.0, 4.0],
        "memoryview": lambda: memoryview(a[:4]),
        "array": lambda: array.array("f", a[:4]),
        "exporter": lambda: Exporter(a[:4]),
        "objects": lambda: a[:4].astype(object),
        "complex": lambda: a[:4].astype(np.complex64),
        "truths": lambda: a[:4] > 2,
        "other bits": lambda: a[:4].view(np.int32),
        "record": lambda: a[:4].view([("x", np.float32)]),
        "empty": lambda: a[:0],
        "number": lambda: a[:1].reshape(()),
        "sixfold": lambda: np.lib.stride_tricks.as_strided(a, (4,), (0,)),
        "half steps": lambda: np.lib.stride_tricks.as_strided(a, (4,), (2,)),
        "None": lambda: None,
    }
    return made if kind is None else made[kind]()


KINDS = tuple(odd(None))


def test_whatever_is_passed_as_in_and_inout_comes_out_as_through_python():
    f = Entry(PAIR)
    through_python = Entry.__wrapped__.__call__
    for a, b in itertools.product(KINDS, KINDS):
        one, two = [(made := odd(None), made[a](), made[b]())[1:] for _ in range(2)]
        assert outcome(lambda: f(*one)) == outcome(lambda: through_python(f, *two)), (a, b)  # noqa: B023
        assert shown(*one) == shown(*two), (a, b)


def test_whatever_is_passed_as_outputs_comes_out_as_through_python():
    f = Entry(PAIR)
    through_python = Entry.__wrapped__.__call__
    for a, b in itertools.product(KINDS, KINDS):
        seen = []
        for call in (f, lambda *x, **k: through_python(f, *x, **k)):
            made = odd(None)
            x, h, y, z = made["plain"](), made["next"](), made[a](), made[b]()
            seen.append((outcome(lambda: call(x, h, y=y, z=z)), shown(x, h, y, z)))  # noqa: B023
        assert seen[0] == seen[1], (a, b)


def test_names_that_do_not_fit():
    f = Entry(PAIR)
    through_python = Entry.__wrapped__.__call__
    x, _, h = arrays(4)
    out = np.empty(4, np.float32)
    for args, named in (
        ((), {}), ((x,), {}), ((x, h, out), {}), ((x,), {"h": h}), ((), {"h": h, "x": x}), ((x, h), {"x": x}),
        ((x, h), {"w": out}), ((x, h), {"z": out}), ((x, h), {"y": out, "w": out}), ((x, h), {"y": out, "z": out}),
        ((), {"x": x}), ((), {"h": h}), ((x,), {"x": x}), ((x,), {"h": h, "x": x}), ((), {"x": x, "h": h, "w": out}),
        ((), {"z": out, "x": x}), ((h,), {"x": x}), ((), {"y": out, "h": h, "x": x}), ((x,), {"y": out, "h": h}),
        ((x, h), {"".join(["", "y"]): out}), ((x, h), {"y": out, "z": out.copy(), "a": out, "b": out}),
    ):  # fmt: skip
        seen = []
        for call in (f, lambda *a, **k: through_python(f, *a, **k)):
            mine = h.copy()
            positional = [mine if v is h else v for v in args]
            seen.append(outcome(lambda: call(*positional, **{n: mine if v is h else v for n, v in named.items()})))  # noqa: B023
        assert seen[0] == seen[1], (args, named)


def test_plain_arrays_never_meet_python(counted):
    f, g = Entry(PAIR), Entry(AXPY).bind(w=arrays()[1])
    x, _, h = arrays(4)
    y, z = np.empty(4, np.float32), np.empty(4, np.float32)
    made = f(x, h)
    assert isinstance(made, tuple)
    assert [m.shape for m in made] == [(4,), (4,)]
    assert f(x, h, z=z)[1] is z
    again = f(x, h, z=z, y=y)
    assert again[0] is y
    assert again[1] is z
    np.testing.assert_array_equal(y, x + np.float32(1))
    assert g(x, h, y=y) is y
    assert g(h=h, x=x, y=y) is y
    assert f(y=y, h=h, z=z, x=x)[0] is y
    assert f(x, z=z, h=h)[1] is z
    assert len(f(h=h, x=x)) == 2
    assert counted.calls == 0
    f(x, h, y=x.copy()[::-1])
    assert counted.calls == 1


def test_no_reference_is_kept_or_lost():
    f = Entry(PAIR)
    x, _, h = arrays(4)
    y = np.empty(4, np.float32)
    watched = (x, h, y, x.dtype, None)
    before = [sys.getrefcount(w) for w in watched]
    for _ in range(1000):
        f(x, h)
        f(x, h, y=y)
        f(h=h, x=x, y=y)
    after = [sys.getrefcount(w) for w in watched]
    assert all(abs(b - a) < 100 for a, b in zip(before, after, strict=True))
    del watched
    result = f(x, h, y=y)
    counts = [sys.getrefcount(r) for r in result]
    assert counts == [4, 3]  # the tuple's, the loop's, the argument's, and y


def test_entries_are_freed_with_their_code():
    f = Entry(PAIR)
    f(*arrays()[:2])
    gone, code = weakref.ref(f), weakref.ref(f.runner)
    del f
    gc.collect(1)
    assert gone() is None
    assert code() is None


def test_an_output_that_cannot_be_made_is_an_error_and_leaks_nothing():
    huge = (*ARGUMENTS[:3], Argument("z", "out", "f32", ((1 << 61, ()),)))
    f = Entry(replace(PAIR, arguments=huge))
    x, _, h = arrays()
    y = np.empty(4, np.float32)
    before = sys.getrefcount(y)
    for _ in range(10):
        with pytest.raises((ValueError, MemoryError)):
            f(x, h, y=y)
        with pytest.raises((ValueError, MemoryError)):
            f(x, h)
    assert sys.getrefcount(y) == before


def test_long_calls_let_others_run_and_have_workspaces_of_their_own():
    bound = replace(AXPY, points=1 << 30)
    faults = []
    f = Entry(bound)

    def work(seed):
        x, w, h = arrays(seed)
        for _ in range(500):
            start = h.copy()
            if not np.array_equal(f(x, w, h), x * (w + w) + start):
                faults.append(seed)

    at_once(work)
    assert not faults


def test_long_calls_let_go_of_the_lock():
    """A kernel that waits until another Python thread has run ends."""
    spin = """
define void @call(ptr %args, ptr %ws, ptr %sizes) {
  %x.at = getelementptr ptr, ptr %args, i64 0
  %x = load ptr, ptr %x.at
  br label %wait
wait:
  %v = load atomic i32, ptr %x acquire, align 4
  %still = icmp eq i32 %v, 0
  br i1 %still, label %wait, label %done
done:
  ret void
}
"""
    a = Artifact("spin", "llvm", (Argument("x", "inout", "i32", ((1, ()),)),), entry="call", points=1 << 30,
                 parts={"object.o": objects(spin)})  # fmt: skip
    x = np.zeros(1, np.int32)
    threading.Timer(0.05, lambda: x.__setitem__(0, 1)).start()
    assert Entry(a)(x) is None


def test_the_object_has_its_class():
    f = Entry(PAIR)
    assert type(f) is Entry
    assert type(f).__name__ == "Entry"
    assert Entry.__doc__
    assert repr(f) == "<pair(x, h) for llvm>"
    assert Entry.__basicsize__ == HEADER + 16


def test_a_compiled_function_is_called_like_its_entry():
    text = "kernel add(N)\n  in x: f32[N]\n  in y: f32[N]\n  out z: f32[N]\n  forall i < N\n    z[i] = x[i] + y[i]\n"
    f, g = isam.compile(parse(text), sizes={"N": 16}, check=False), isam.compile(parse(text), check=False)
    x, y = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
    for h in (f, g):
        np.testing.assert_array_equal(h(x, y), x + y)
        np.testing.assert_array_equal(h(x[::-1], y), x[::-1] + y)
        with pytest.raises(IsamError):
            h(x)
    held = weakref.ref(f)
    z = np.empty_like(x)
    assert f(x, y, z=z) is z
    names = {"f": f, "x": x, "y": y, "z": z, "np": np}
    own, theirs = (timeit.Timer(t, globals=names) for t in ("f(x, y, z=z)", "np.add(x, y, out=z)"))
    ratio = min(min(own.repeat(3, 2000)) / min(theirs.repeat(3, 2000)) for _ in range(4))
    assert ratio < 1  # about 0.2
    names.clear()
    del f, h
    gc.collect(1)
    assert held() is None


ADD = """
kernel add(N)
  in    left: f32[N]
  const right: f32[N]
  out   total: f32[N]
  forall i < N
    total[i] = left[i] + right[i]
"""


def ones(n: int) -> np.ndarray:
    return np.ones(n, np.float32)


def test_names_may_be_other_objects_with_the_same_letters(counted):
    f = isam.compile(ADD, sizes={"N": 4}, check=False)
    named = {"".join(("l", "eft")): ones(4), "".join(("ri", "ght")): ones(4), "".join(("to", "tal")): np.empty(4, "f4")}
    assert all(sys.intern(n) is not n for n in named)
    assert (f(**named) == 2).all()
    assert (f(named["left"], right=named["right"], **{"".join(("t", "otal")): named["total"]}) == 2).all()
    assert counted.calls == 0
    for wrong in ("".join(("t", "otals")), "tota", "".join(("le", "ft"))):
        with pytest.raises(IsamError):
            f(named["left"], named["right"], **{wrong: named["total"]})


def ways(f):
    """Calls of a function of open sizes: plain, and with its constant bound for each length."""
    yield lambda n, **out: f(np.arange(n, dtype=np.float32), ones(n), **out)
    bound = {n: f.bind(right=ones(n)) for n in range(1, 40)}
    yield lambda n, **out: bound[n](np.arange(n, dtype=np.float32), **out)


def test_open_sizes_never_meet_python_twice(monkeypatch):
    f = isam.compile(ADD, check=False)
    for call in ways(f):
        for n in (3, 5, 8, 5):
            np.testing.assert_array_equal(call(n), np.arange(n) + 1)
        through_python = []
        monkeypatch.setattr(type(f).__wrapped__, "entry_for", lambda *_, seen=through_python: seen.append(1))
        for n in (8, 3, 5, 3):
            out = np.empty(n, np.float32)
            assert call(n, total=out) is out
            np.testing.assert_array_equal(out, np.arange(n) + 1)
            np.testing.assert_array_equal(call(n), out)
        assert not through_python
        monkeypatch.undo()


def test_open_sizes_with_more_shapes_than_are_looked_through():
    f = isam.compile(ADD, check=False, approach=None)
    lengths = [*range(1, SHAPES + 4)]
    for call in ways(f):
        for n in (*lengths, *lengths[::-1], *lengths):
            np.testing.assert_array_equal(call(n), np.arange(n) + 1)
    x = ones(2 * 7)
    np.testing.assert_array_equal(f(x[::2], ones(7)), [2] * 7)
    with pytest.raises(IsamError, match="must have shape"):
        f(ones(3), ones(4))
    with pytest.raises(IsamError, match="must be"):
        f(ones(3).astype(np.float64), ones(3))
    assert f(np.zeros(0, np.float32), np.zeros(0, np.float32)).shape == (0,)


def test_a_size_that_only_an_output_shows_is_not_remembered():
    """Which sizes a call is meant for does not depend on the calls before it."""
    text = "kernel iota(M, N)\n  in x: i32[N]\n  out y: i32[M]\n  forall i < M\n    y[i] = 0\n"
    f = isam.compile(text + "  forall i < M, j < N\n    y[i] += x[j]\n", check=False)
    x = np.ones(3, np.int32)
    for m in (5, 2):
        assert f(x, y=np.empty(m, np.int32)).tolist() == [3] * m
        with pytest.raises(IsamError, match="size M follows from no argument"):
            f(x)
    text = "kernel cut(M)\n  in a: f32[M - 3]\n  out y: f32[M]\n  forall i < M\n    y[i] = 1\n"
    g = isam.compile(text + "  forall i < M - 3\n    y[i] += a[i]\n", check=False)
    assert g(y=np.empty(2, np.float32), a=ones(0)).shape == (2,)
    assert g(ones(0)).shape == (3,)
    assert g(ones(4)).shape == (7,)


def test_open_sizes_from_many_threads():
    f = isam.compile(ADD, check=False)
    lengths = [*range(1, SHAPES + 9)] * 20
    right = []

    def calls(seed: int) -> None:
        right.extend((f(ones(n), ones(n)) == 2).all() for n in np.random.default_rng(seed).permutation(lengths))

    at_once(calls, 4)
    assert len(right) == 4 * len(lengths)
    assert all(right)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_does_not_wait_for_its_parents_threads():
    f = Entry(SLOW)
    record = f._attached[0]
    record.busy = 1
    child = os.fork()
    if not child:
        os._exit(record.busy)
    assert os.waitpid(child, 0)[1] == 0
    assert record.busy == 1
