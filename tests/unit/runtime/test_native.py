"""Native artifacts: linked, called, bound, from several threads; externals and CPU features."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from isam.artifact import Argument, Artifact, Size
from isam.diagnostics import IsamError
from isam.runtime.entry import Entry, load
from tests.threads import at_once

# y = x * w + h, h += 1; w is read from the workspace, where bind put 2 * w
CODE = """
define void @bind(ptr %args, ptr %ws, ptr %sizes) {
  %wp = getelementptr ptr, ptr %args, i64 1
  %w = load ptr, ptr %wp
  %v = load <4 x float>, ptr %w, align 4
  %d = fadd <4 x float> %v, %v
  store <4 x float> %d, ptr %ws, align 64
  ret void
}
define void @call(ptr %args, ptr %ws, ptr %sizes) {
  %x = load ptr, ptr %args
  %hp = getelementptr ptr, ptr %args, i64 2
  %h = load ptr, ptr %hp
  %yp = getelementptr ptr, ptr %args, i64 3
  %y = load ptr, ptr %yp
  %xv = load <4 x float>, ptr %x, align 4
  %wv = load <4 x float>, ptr %ws, align 64
  %hv = load <4 x float>, ptr %h, align 4
  %p = fmul <4 x float> %xv, %wv
  %s = fadd <4 x float> %p, %hv
  store <4 x float> %s, ptr %y, align 4
  %n = fadd <4 x float> %hv, <float 1.0, float 1.0, float 1.0, float 1.0>
  store <4 x float> %n, ptr %h, align 4
  ret void
}
"""
SUM = """
define void @call(ptr %args, ptr %ws, ptr %sizes) {
entry:
  %x = load ptr, ptr %args
  %yp = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %yp
  %T = load i64, ptr %sizes
  br label %test
test:
  %t = phi i64 [0, %entry], [%u, %body]
  %s = phi i32 [0, %entry], [%r, %body]
  %more = icmp slt i64 %t, %T
  br i1 %more, label %body, label %done
body:
  %p = getelementptr i32, ptr %x, i64 %t
  %v = load i32, ptr %p
  %r = add i32 %s, %v
  %u = add i64 %t, 1
  br label %test
done:
  store i32 %s, ptr %y
  ret void
}
"""


def objects(text):
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(reloc="pic", jit=True)
    return machine.emit_object(llvm.parse_assembly(text))


ROW = ((4, ()),)
AXPY = Artifact("axpy", "llvm", (Argument("x", "in", "f32", ROW), Argument("w", "const", "f32", ROW),
                Argument("h", "inout", "f32", ROW), Argument("y", "out", "f32", ROW)), entry="call", bind="bind",
                workspace=64, bound=16, parts={"object.o": objects(CODE)})  # fmt: skip
TOTAL = Artifact("total", "llvm", (Argument("x", "in", "i32", ((0, (("T", 1),)),)), Argument("y", "out", "i32", ())),
                 (Size("T", 0, 1000),), entry="call", parts={"object.o": objects(SUM)})  # fmt: skip


def arrays(seed=0):
    r = np.random.default_rng(seed)
    return [r.normal(size=4).astype(np.float32) for _ in range(3)]


def test_call_and_inout():
    f = Entry(AXPY)
    x, w, h = arrays()
    before = h.copy()
    y = f(x, w, h)
    np.testing.assert_array_equal(y, x * (w + w) + before)
    np.testing.assert_array_equal(h, before + np.float32(1))
    out = np.empty(4, np.float32)
    again = f(x, h=h, w=w, y=out)
    assert again is out
    np.testing.assert_array_equal(out, x * (w + w) + (before + np.float32(1)))


def test_bound_constants_are_kept_as_they_were():
    f = Entry(AXPY)
    x, w, h = arrays()
    expected = x * (w + w) + h
    g = f.bind(w=w)
    w[:] = np.nan
    np.testing.assert_array_equal(g(x, h.copy()), expected)
    np.testing.assert_array_equal(f.bind(w=w[::-1])(x, h.copy()), np.full(4, np.nan, np.float32))
    np.testing.assert_array_equal(g(x, h=h.copy()), expected)
    for wrong in ({"x": x}, {"z": w}, {"w": w.astype(np.float64)}, {"w": w[:2]}):
        with pytest.raises(IsamError):
            f.bind(**wrong)
    with pytest.raises(IsamError, match="bound already"):
        g.bind(w=w)
    with pytest.raises(IsamError, match="takes 2 positional"):
        g(x, h, w)


def test_odd_arrays_give_the_same():
    f = Entry(AXPY)
    x, w, h = arrays(2)
    wide = np.zeros(8, np.float32)
    wide[::2] = h
    expected = x * (w + w) + h
    out = np.zeros((4, 3), np.float32)[:, 1]
    np.testing.assert_array_equal(f(x[::-1][::-1], w.astype(">f4"), wide[::2], y=out), expected)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(wide[::2], h + np.float32(1))
    assert not wide[1::2].any()
    both = x.copy()
    np.testing.assert_array_equal(f(both, w, both), x * (w + w) + x)  # x is read as it was
    np.testing.assert_array_equal(both, x + np.float32(1))


def test_run_time_sizes():
    f = Entry(TOTAL)
    for n in (0, 1, 7, 1000):
        x = np.arange(n, dtype=np.int32) ** 2
        assert f(x) == x.sum()
    with pytest.raises(IsamError, match="call-size"):
        f(np.zeros(1001, np.int32))


def test_threads_have_workspaces_of_their_own():
    f = Entry(AXPY)
    faults: list[str] = []

    def work(seed):
        x, w, h = arrays(seed)
        g = f.bind(w=w) if seed % 2 else f
        for _ in range(300):
            start = h.copy()
            y = g(x, h) if seed % 2 else g(x, w, h)
            if not np.array_equal(y, x * (w + w) + start):
                faults.append(str(seed))

    at_once(work)
    assert not faults


def test_save_and_load_without_the_compiler(tmp_path):
    AXPY.save(tmp_path / "axpy.isa")
    x, w, h = arrays(3)
    np.savez(tmp_path / "a.npz", x=x, w=w, h=h)
    code = (
        "import sys, numpy as np, isam\n"
        f"a = np.load({str(tmp_path / 'a.npz')!r})\n"
        f"y = isam.load({str(tmp_path / 'axpy.isa')!r})(a['x'], a['w'], a['h'].copy())\n"
        "print(np.array_equal(y, a['x'] * (a['w'] + a['w']) + a['h']))\n"
        "no = ['isam.' + n for n in ('compiler', 'mapper', 'scheduler', 'system', 'codegen', 'proof', 'schedule')]\n"
        "print([m for m in sys.modules if m.startswith((*no, 'islpy', 'scipy'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True", "[]"]
    assert np.array_equal(load(tmp_path / "axpy.isa")(x, w, h.copy()), x * (w + w) + h)


def test_a_cpu_without_the_features_is_told():
    with pytest.raises(IsamError, match="was compiled for a CPU with no-such-feature"):
        Entry(replace(AXPY, needs=("no-such-feature",)))


def test_broken_object_code_is_a_diagnostic():
    with pytest.raises(IsamError, match="artifact-damaged"):
        Entry(replace(AXPY, parts={"object.o": b"\x7fELF" + b"\0" * 200}))
    with pytest.raises(IsamError, match="artifact-damaged"):
        Entry(replace(AXPY, entry="missing"))


BLAS = """
declare void @dot.external(ptr, ptr, ptr, ptr, ptr)
declare double @ddot.external(ptr, ptr, ptr, ptr, ptr)
@n = private constant i32 4
@one = private constant i32 1
define void @call(ptr %args, ptr %ws, ptr %sizes) {
  %x = load ptr, ptr %args
  %yp = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %yp
  %r = call double @ddot.external(ptr @n, ptr %x, ptr @one, ptr %x, ptr @one)
  store double %r, ptr %y
  ret void
}
"""
PYTHON = """
declare void @py.external(i64, i64)
define void @call(ptr %args, ptr %ws, ptr %sizes) {
  %x = load i64, ptr %args
  %yp = getelementptr i64, ptr %args, i64 1
  %y = load i64, ptr %yp
  call void @py.external(i64 %x, i64 %y)
  ret void
}
"""
PAIR = (Argument("x", "in", "f64", ROW), Argument("y", "out", "f64", ()))


def test_blas_by_name():
    a = Artifact("norm", "llvm", PAIR, entry="call", externals=(("ddot.external", "blas:ddot"),),
                 parts={"object.o": objects(BLAS)})  # fmt: skip
    x = np.arange(1.0, 5.0)
    assert Entry(a)(x) == 30
    with pytest.raises(IsamError, match="no routine 'nonesuch'"):
        Entry(replace(a, externals=(("ddot.external", "blas:nonesuch"),)))


def test_python_functions_by_name_and_their_exceptions():
    import ctypes

    a = Artifact("py", "llvm", PAIR, entry="call", externals=(("py.external", "python:first/2"),),
                 parts={"object.o": objects(PYTHON)})  # fmt: skip

    def first(x, y):
        value = ctypes.c_double.from_address(x).value
        if value < 0:
            raise ValueError("negative")
        ctypes.c_double.from_address(y).value = 10 * value

    f = Entry(a, {"first": first})
    assert f(np.arange(3.0, 7.0)) == 30
    with pytest.raises(ValueError, match="negative"):
        f(np.arange(-3.0, 1.0))
    assert f(np.arange(4.0, 8.0)) == 40
    with pytest.raises(IsamError, match="Python function 'first'"):
        Entry(a)
