"""``isam.compile`` and what it returns; the façade."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.approach.choice import Approach
from isam.compiler import STAGES, Refused
from isam.compiler.function import BoundFunction
from isam.diagnostics import InternalError, IsamError
from isam.ir import interp
from isam.ir.bounds import enclose, outside
from isam.ir.sizes import run_time
from isam.schedule.serial import from_json
from tests.corpus import CASES
from tests.threads import at_once

MATMUL = CASES["matmul"].load()
TOY = {"on": "toy", "check": False}


def arrays(m, k, n, seed=0):
    r = np.random.default_rng(seed)
    return r.normal(size=(m, k)).astype(np.float32), r.normal(size=(k, n)).astype(np.float32)


def close(got, a, b):
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = (a.shape[1] + 2) * 2.0**-23 * (np.abs(a).astype(np.float64) @ np.abs(b)) + 1e-37
    assert (np.abs(got - exact) <= bound).all()


def test_the_facade_is_lazy_and_complete():
    for name in isam.__all__:
        assert getattr(isam, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'compyle'"):
        _ = isam.compyle
    code = ("import isam, sys\n"
            "heavy = ('numpy', 'islpy', 'llvmlite', 'scipy', 'pydantic', 'yaml', 'typer', 'networkx')\n"
            "print([m for m in heavy if m in sys.modules])")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_stage_says_why_it_stands_where_it_stands():
    assert [s.name for s in STAGES] == ["verify", "specialise", "normal form", "cover", "schedule", "prove", "emit"]
    assert all(len(s.why) > 20 for s in STAGES)


def test_sizes_given_compile_at_once():
    fn = isam.compile(MATMUL, sizes={"M": 5, "N": 6, "K": 7}, **TOY)
    a, b = arrays(5, 7, 6)
    c = fn(a, b)
    close(c, a, b)
    out = np.zeros((5, 6), np.float32)
    assert fn(B=b, A=a, C=out) is out
    np.testing.assert_array_equal(out, c)
    assert "mm4" in str(fn.mapping)
    assert fn.schedule.kernel.by_name["A"].shape[0].const == 5
    assert fn.trace.decisions
    assert fn.certificate is None
    assert from_json(fn.artifact.parts["schedule.json"]).call == fn.schedule.call
    assert "matmul on toy with M = 5, N = 6, K = 7" in fn.report()
    assert repr(fn) == "<matmul on toy>"
    with pytest.raises(IsamError, match="call-shape"):
        fn(a.T.copy(), b)


def test_reports_tell_the_assumed_costs_of_all_but_moves_that_are_not_called():
    """What computes was compared, called or not; a unit's clock is in every figure."""
    known = ("store: setup", "load_every_2: setup", "load_every_3: setup", "exp_v_f64: issue", "core: clock 1 GHz")
    on = replace(isam.load_system("host-avx2"), assumed=known)
    told = isam.compile(MATMUL, on=on, sizes={"M": 8, "N": 16, "K": 8}, cache=False).report()
    lines = told.partition("(assumed)\n")[2].splitlines()[:5]
    assert lines == [f"  {known[0]}", f"  {known[3]}", f"  {known[4]}", "  2 of moves that are not called", ""]


def test_open_sizes_specialise_per_shape():
    fn = isam.compile(MATMUL, sizes={"K": 3}, **TOY)
    assert fn.open == ("M", "N")
    with pytest.raises(IsamError, match="sizes M, N are open"):
        _ = fn.schedule
    for m, n in ((2, 3), (4, 1), (2, 3), (0, 2)):
        a, b = arrays(m, 3, n)
        close(fn(a, b), a, b)
    assert len(fn._made) == 3
    with pytest.raises(IsamError):
        fn(*arrays(2, 4, 3))
    with pytest.raises(IsamError):
        fn(arrays(2, 3, 3)[0], arrays(2, 4, 3)[1])
    with pytest.raises(IsamError, match="argument 'B' is missing"):
        fn(arrays(2, 3, 3)[0])
    with pytest.raises(IsamError) as e:
        fn(arrays(2, 3, 3)[0], BB=arrays(2, 3, 3)[1])
    assert [d.message for d in e.value.diagnostics] == ["matmul has no argument 'BB' (did you mean 'B'?)"]
    for none, hint in ((None, ""), ([1.0], "pass np.asarray(x, np.float32)")):
        with pytest.raises(IsamError) as e:
            fn(arrays(2, 3, 3)[0], none)
        assert [d.hint for d in e.value.diagnostics] == [hint]


def test_threads_compile_each_shape_once():
    fn = isam.compile(MATMUL, **TOY)
    a, b = arrays(3, 4, 5)
    got = []
    at_once(lambda _: got.append(fn(a, b)), 4)
    assert len(fn._made) == 1
    for c in got:
        np.testing.assert_array_equal(c, got[0])


def test_run_time_trips_stay_open():
    rnn = CASES["rnn"].load()
    assert run_time(rnn) == {"T"}
    fn = isam.compile(rnn, sizes={"B": 2, "X": 3, "H": 4}, **TOY)
    r = np.random.default_rng(3)
    w, u, h = (r.normal(size=s).astype(np.float32) for s in ((3, 4), (4, 4), (2, 4)))
    for t in (0, 1, 4):
        x = r.normal(size=(t, 2, 3)).astype(np.float32)
        state = h.copy()
        ys = fn(x, w, u, state)
        assert outside({"ys": ys, "h": state}, enclose(rnn, {"x": x, "w": w, "u": u, "h": h})) is None
    assert len(fn._made) == 1


INSIDE = {
    "nested": ("kernel nested(T, U, N)\n  in x: i32[T, U, N]\n  inout s: i32[N]\n  out y: i32[T, N]\n  loop t < T\n"
               "    forall i < N\n      y[t, i] = 0\n    loop u < U\n      forall i < N\n"
               "        s[i] = 2 * s[i] + x[t, u, i]\n        y[t, i] += s[i]\n", {"T"}),
    "last": ("kernel last(T, N)\n  in x: i32[N, T]\n  inout s: i32[N]\n  loop t < T\n    forall i < N\n"
             "      s[i] = 2 * s[i] + x[i, t]\n", set()),
    "history": ("kernel history(T, N)\n  in x: i32[T, N]\n  out y: i32[T, N]\n  temp z: i32[T, N]\n  loop t < T\n"
                "    forall i < N\n      z[t, i] = 2 * x[t, i]\n  loop u < T\n    forall i < N\n"
                "      y[u, i] = z[T - 1 - u, i] + x[u, i]\n", set()),
}  # fmt: skip


@pytest.mark.parametrize("on", ["toy", "host"])
@pytest.mark.parametrize("name", INSIDE)
def test_a_trip_that_addresses_or_workspace_depend_on_is_a_size(name, on):
    text, left = INSIDE[name]
    k = isam.parse(text)
    assert run_time(k) == left
    fn = isam.compile(k, on=on)
    r = np.random.default_rng(1)
    for sizes in ({"T": 3, "U": 4, "N": 5}, {"T": 4, "U": 2, "N": 5}, {"T": 0, "U": 3, "N": 5}):
        given = {b.name: r.integers(-9, 9, [d.evaluate(sizes) for d in b.shape]).astype(np.int32)
                 for b in k.arguments if b.role != "out"}  # fmt: skip
        want = interp.run(k, given)
        out = fn(**given)
        if out is not None:
            np.testing.assert_array_equal(out, want["y"])
        if "s" in given:
            np.testing.assert_array_equal(given["s"], want["s"])


def test_bind_with_given_and_with_open_sizes():
    text = ("kernel k(M, N)\n  in x: f32[M]\n  const w: f32[N]\n  out y: f32[M, N]\n"
            "  forall i < M, j < N\n    y[i, j] = x[i] * w[j]\n")  # fmt: skip
    x, w = np.float32([1, 2, 3]), np.float32([4, 5])
    for sizes in ({"M": 3, "N": 2}, {}):
        fn = isam.compile(text, sizes=sizes, **TOY)
        kept = w.copy()
        bound = fn.bind(w=kept)
        kept[:] = 0
        np.testing.assert_array_equal(bound(x), np.outer(x, w))
        np.testing.assert_array_equal(bound(x=x[::-1]), np.outer(x[::-1], w))
        assert isinstance(bound, BoundFunction) == (not sizes)
        assert repr(bound) == ("<k(x) for simulator>" if sizes else "<k on toy, open sizes M, N, bound w>")
        with pytest.raises(IsamError, match="bind-role"):
            fn.bind(x=x)


def test_explain_takes_sizes_as_compile_does():
    for sizes, code in (({"Q": 3}, "size-unknown"), ({"M": -3}, "size-range"), ([3], "size-unknown")):
        with pytest.raises(IsamError, match=code):
            isam.explain(MATMUL, on="toy", sizes=sizes)
    conv = CASES["conv1d"].load()
    one, two = (isam.explain(conv, on="toy", instruction="mm4", sizes={"stride": s}) for s in (1, 2))
    assert len(one.mappings) > len(two.mappings)


def test_a_size_that_is_not_admitted_is_told_the_nearest():
    kernel = "kernel k(4 <= M % 8 <= 30, N)\n  inout x: f32[M, N]\n  forall i < M, j < N\n    x[i, j] += 1"
    for sizes, near in (({"M": -3}, "M = 8"), ({"M": 13}, "M = 16"), ({"M": 99}, "M = 24"), ({"N": -1}, "N = 0")):
        with pytest.raises(IsamError) as e:
            isam.compile(kernel, sizes=sizes, **TOY)
        assert [d.hint for d in e.value.diagnostics] == [f"the nearest is {near}"]


def test_sizes_are_a_mapping():
    with pytest.raises(IsamError, match="not list"):
        isam.compile(MATMUL, sizes=[3], **TOY)


def test_compile_time_constants_are_sizes_too():
    conv = CASES["conv1d"].load()
    fn = isam.compile(conv, sizes={"stride": 2, "N": 1, "C": 1, "W": 3, "K": 1, "S": 2}, **TOY)
    assert fn.kernel.by_name["x"].shape[2].coefficient("W") == 2


WRONG = {
    "size-unknown": {"sizes": {"Q": 3}},
    "size-range": {"sizes": {"M": -1}},
    "registry-unknown": {"approach": "gredy", "sizes": {"M": 2, "N": 2, "K": 2}},
    "approach-type": {"approach": 7},
    "compile-threads": {"threads": 0},
    "system-unknown": {"on": 3},
    "instruction-unknown": {"require": "mm5", "sizes": {"M": 2, "N": 2, "K": 2}},
    "trace-read": {"replay": "{}", "sizes": {"M": 2, "N": 2, "K": 2}},
}


@pytest.mark.parametrize("code", WRONG)
def test_wrong_calls_are_diagnostics(code):
    with pytest.raises(IsamError) as e:
        isam.compile(MATMUL, **{**TOY, **WRONG[code]})
    assert [d.code for d in e.value.diagnostics] == [code]


def test_threads_of_the_environment_are_told_by_their_variable(monkeypatch):
    monkeypatch.setenv("ISAM_THREADS", "abc")
    with pytest.raises(IsamError, match=r"compile-threads\]: .*ISAM_THREADS.* 'abc' is no number of threads"):
        isam.compile(MATMUL, **TOY)
    with pytest.raises(IsamError) as e:
        isam.compile(MATMUL, threads=0, **TOY)
    assert "ISAM_THREADS" not in str(e.value)
    for number, said in ((-1, "-1"), (2.5, "2.5"), ("two", "'two'")):
        with pytest.raises(IsamError, match=rf"\]: {said} is no number of threads"):
            isam.compile(MATMUL, threads=number, **TOY)
    with pytest.raises(IsamError, match=r"compile-threads\]: 257 threads are more than a call may have, 256"):
        isam.compile(MATMUL, threads=257, **TOY)
    monkeypatch.setenv("ISAM_THREADS", "9" * 5000)
    with pytest.raises(IsamError, match=r"compile-threads\]: .*ISAM_THREADS"):
        isam.compile(MATMUL, **TOY)


def test_what_is_not_a_kernel():
    for wrong in (7, None, "instruction x(M)\n  inout a: f32[M]\n  forall i < M\n    a[i] += a[i]\n"):
        with pytest.raises(IsamError):
            isam.compile(wrong, **TOY)
    outside = "kernel k(N)\n  in a: f32[N]\n  out b: f32[N]\n  forall i < N\n    b[i] = a[i + 1]\n"
    with pytest.raises(IsamError, match="index"):
        isam.compile(outside, sizes={"N": 3}, **TOY)


def test_a_no_carries_its_reason():
    with pytest.raises(Refused) as e:
        isam.compile(MATMUL, on="tiny", sizes={"M": 4, "N": 4, "K": 4}, check=False)
    assert not e.value.answer
    assert e.value.answer.gaps
    answer = isam.explain(MATMUL, on="tiny", sizes={"M": 4, "N": 4, "K": 4})
    assert str(answer) == str(e.value.answer)
    found = isam.explain(MATMUL, on="tiny", instruction="mm4")
    assert found
    depthwise = CASES["depthwise_conv2d"].load()
    no = isam.explain(depthwise, on="tiny", instruction="mm4")
    assert not no
    assert "mm4" in str(no)
    assert isam.explain(MATMUL, on="toy", instruction="mm4")  # a family
    assert "accumulate" not in str(isam.explain(MATMUL, on="toy", instruction="mm4"))
    fn = isam.compile(MATMUL, sizes={"M": 4, "N": 4, "K": 4}, require="mm4", **TOY)
    assert any(m.instruction.name == "mm4_f32" for m in fn.mapping.mappings)
    with pytest.raises(IsamError, match="did you mean 'mm4'"):
        isam.explain(MATMUL, on="tiny", instruction="mm")


def test_explain_says_whether_there_is_a_schedule():
    """From Python as from the command line: a cover is no schedule yet."""
    few = isam.explain(MATMUL, on="toy", sizes={"M": 4, "N": 4, "K": 4})
    assert (bool(few), few.fits, few.scheduled, few.left) == (True, True, True, ())
    assert few.schedule is not None
    assert str(few).endswith("and there is a schedule: the machine holds and moves what they need")
    many = isam.explain(MATMUL, on="toy", sizes=dict.fromkeys("MNK", 1_000_000))
    assert (bool(many), many.fits, many.scheduled) == (False, True, False)
    assert len(many.mappings) == 2
    assert "\nno schedule: memory 'dram', the home, needs 12000000000000 bytes for arguments" in str(many)
    open_ = isam.explain(MATMUL, on="toy", sizes={"M": 4})
    assert (bool(open_), open_.scheduled, open_.left) == (True, None, ("N", "K"))
    assert str(open_).endswith("\nno schedule yet, the sizes N, K are open")
    add = "kernel add(N)\n  inout x: f32[N]\n  in y: f32[N]\n  forall i < N\n    x[i] += y[i]\n"
    nowhere = isam.explain(add, on="arm_neon", sizes={"N": 4})
    assert (bool(nowhere), nowhere.scheduled) == (True, None)
    assert "'arm_neon' has no back end" in str(nowhere)
    none = isam.explain(MATMUL, on="tiny", sizes={"M": 4, "N": 4, "K": 4})
    assert (none.fits, none.scheduled, none.mappings) == (False, None, ())
    assert none.no.gaps


def test_explain_shows_the_text_it_was_given():
    """The carets stand in the user's own line."""
    text = "kernel k(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = exp( x[i] )"
    why = isam.explain(text, on="toy", instruction="mm4_f32")
    assert "      " + text.splitlines()[-1] + "\n" in str(why)


def test_our_own_faults_print_the_kernel(monkeypatch):
    def broken(self, choice):
        raise KeyError("inside")

    monkeypatch.setattr(Approach, "tile", broken)
    with pytest.raises(InternalError) as e:
        isam.compile(MATMUL, approach="first-fit", sizes={"M": 2, "N": 2, "K": 2}, **TOY)
    assert "kernel matmul(M, N, K)" in str(e.value)
    assert "M=2, N=2, K=2" in str(e.value)


@pytest.mark.parametrize("raised", [KeyError, SystemExit])
def test_what_an_approach_raises_is_its_fault(raised):
    """Also what would end the process, with nothing said."""

    class Broken(Approach):
        def tile(self, choice):
            raise raised(0)

    with pytest.raises(IsamError, match=rf"the Approach Broken.* raised {raised.__name__} at .* 'tile'") as e:
        isam.compile(MATMUL, approach=Broken, sizes={"M": 2, "N": 2, "K": 2}, **TOY)
    (d,) = e.value.diagnostics
    assert (d.loc.file, d.loc.line) == (__file__, Broken.tile.__code__.co_firstlineno + 1)  # the line that raised


def test_an_illegal_answer_is_the_approachs_fault():
    class Wild(Approach):
        name = "wild"

        def place(self, choice):
            return "anywhere"

    with pytest.raises(IsamError, match="'wild' answered 'anywhere'") as e:
        isam.compile(MATMUL, approach=Wild(), sizes={"M": 2, "N": 2, "K": 2}, **TOY)
    (d,) = e.value.diagnostics
    assert (d.loc.file, d.loc.line) == (__file__, Wild.place.__code__.co_firstlineno)
    assert "choice.options" in d.hint


def test_what_is_asked_cannot_be_changed_by_who_is_asked():
    class Greedy(Approach):
        def tile(self, choice):
            choice.options.clear()

    with pytest.raises(IsamError, match="'tuple' object has no attribute 'clear'"):
        isam.compile(MATMUL, approach=Greedy, sizes={"M": 2, "N": 2, "K": 2}, **TOY)


def test_a_kernel_may_be_the_path_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mm.isam"
    path.write_text(str(MATMUL))
    sizes = {"M": 2, "N": 2, "K": 2}
    assert isam.compile(path, sizes=sizes, **TOY).kernel == isam.compile(MATMUL, sizes=sizes, **TOY).kernel
    assert isam.explain(path, on="toy", instruction="mm4_f32")
    for source in (path, "mm.isam", path.read_text()):
        (found,) = isam.parse_file(source).kernels
        assert found == MATMUL
    assert isam.parse(path).loc.file == str(path)
    (tmp_path / "bad.isam").write_bytes(b"\xff")
    for missing in (tmp_path / "none.isam", tmp_path / "bad.isam"):
        with pytest.raises(IsamError, match=r"error\[L143\]: cannot read"):
            isam.compile(missing)
    with pytest.raises(IsamError, match=r"none.isam: error\[L143\]: cannot read none.isam: No such file"):
        isam.parse_file("none.isam")
    with pytest.raises(IsamError, match=r"Path\('none.isam'\)"):
        isam.parse("none.isam")
    with pytest.raises(IsamError, match="a kernel begins with 'kernel NAME"):
        isam.compile("")
    with pytest.raises(IsamError, match=r"pathlib\.Path"):
        isam.compile(3)


def test_several_shapes_are_not_saved_as_one(tmp_path):
    fn = isam.compile(MATMUL, sizes={"K": 3}, **TOY)
    fn(*arrays(2, 3, 3))
    fn.save(tmp_path / "one.isamc")
    fn(*arrays(4, 3, 1))
    with pytest.raises(IsamError, match=r"for 2 shapes \(M = 2, N = 3; M = 4, N = 1\)") as e:
        fn.save(tmp_path / "two.isamc")
    assert "sizes={...}" in e.value.diagnostics[0].hint
    assert not (tmp_path / "two.isamc").exists()


def test_what_is_bound_is_not_saved(tmp_path):
    text = "kernel scale(N)\n  in x: f32[N]\n  const w: f32[N]\n  out y: f32[N]\n"
    text += "  forall i < N\n    y[i] = x[i] * w[i]\n"
    fn, ones = isam.compile(text, sizes={"N": 4}), np.ones(4, np.float32)
    fn.save(tmp_path / "k.isamc")
    loaded = isam.load(tmp_path / "k.isamc")
    loaded.save(tmp_path / "again.isamc")
    assert (tmp_path / "again.isamc").read_bytes() == (tmp_path / "k.isamc").read_bytes()
    for bound in (fn.bind(w=ones), loaded.bind(w=ones), isam.compile(text).bind(w=ones)):
        with pytest.raises(isam.IsamError, match=r"artifact-bound.*holds none") as e:
            bound.save(tmp_path / "bound.isamc")
        assert "isam.load(FILE).bind(w=...)" in e.value.diagnostics[0].hint
    assert not (tmp_path / "bound.isamc").exists()


@pytest.mark.parametrize("argument", ["0", "-3"])
def test_a_beam_keeps_something(argument):
    with pytest.raises(IsamError, match=r"approach-argument.*at least one"):
        isam.compile(MATMUL, approach=f"beam:{argument}", **TOY)


def test_a_trace_of_another_option_is_refused():
    sizes = {"M": 9, "N": 5, "K": 7}
    text = isam.compile(MATMUL, sizes=sizes, **TOY).trace.to_json()
    data = json.loads(text)
    data["decisions"][0]["label"] += " "
    assert isam.compile(MATMUL, sizes=sizes, replay=text, **TOY)
    with pytest.raises(IsamError, match=r"trace-differs.*option 0 is not the one recorded"):
        isam.compile(MATMUL, sizes=sizes, replay=json.dumps(data), **TOY)


def test_what_is_no_array_is_named_while_sizes_are_open():
    fn = isam.compile(MATMUL, **TOY)
    a, b = arrays(2, 3, 4)
    for wrong, code in ((a.tolist(), "call-type"), (None, "call-type"), (a[0], "call-shape")):
        with pytest.raises(IsamError, match=f"{code}\\]: 'A' must"):
            fn(wrong, b)


def test_a_trip_in_an_index_may_stay_open():
    """The proof names the run-time size among the axes of an access."""
    k = isam.parse("kernel k(T, N)\n  in x: i32[T, N]\n  inout s: i32[N]\n  out y: i32[T, N]\n  loop t < T\n"
                   "    forall i < N\n      s[i] += x[T - 1 - t, i]\n      y[T - 1 - t, i] = s[i]\n")  # fmt: skip
    for on in ("toy", "host"):
        fn = isam.compile(k, on=on, sizes={"N": 5})
        for t in (0, 1, 2, 5):
            x = np.arange(5 * t, dtype=np.int32).reshape(t, 5) * 7 % 11
            s = np.arange(5, dtype=np.int32)
            want = np.cumsum(np.concatenate([s[None], x[::-1]]), 0)[1:][::-1]
            np.testing.assert_array_equal(fn(x, s.copy()), want)


def test_native_functions_run_save_and_load(tmp_path):
    fn = isam.compile(MATMUL, on="host", sizes={"M": 33, "N": 47, "K": 20}, check=False)
    a, b = arrays(33, 20, 47)
    c = fn(a, b)
    close(c, a, b)
    fn.save(tmp_path / "m.isa")
    np.testing.assert_array_equal(isam.load(tmp_path / "m.isa")(a, b), c)
    np.testing.assert_array_equal(fn(np.asfortranarray(a), b[::-1][::-1]), c)
    again = isam.compile(MATMUL, on="host", sizes={"M": 33, "N": 47, "K": 20}, check=False, replay=fn.trace)
    assert again.artifact.to_bytes() == fn.artifact.to_bytes()


def test_the_hint_names_an_element_type_that_numpy_lacks() -> None:
    fn = isam.compile("kernel k(N)\n  in x: bf16[N]\n  inout y: bf16[N]\n  forall i < N\n    y[i] = x[i]")
    y = np.zeros(2, ml_dtypes.bfloat16)
    for x, hint in (([1.0], "pass np.asarray(x, ml_dtypes.bfloat16)"),
                    (np.zeros(2, "f4"), "convert it with .astype(ml_dtypes.bfloat16)")):  # fmt: skip
        with pytest.raises(isam.IsamError) as e:
            fn(x, y)
        assert e.value.diagnostics[0].hint == hint
    fn(np.ones(2, "f4").astype(ml_dtypes.bfloat16), y)
    assert (y == 1).all()


def test_what_is_required_is_known_before_sizes_are() -> None:
    with pytest.raises(isam.IsamError, match="no instruction 'mm5_f32'") as e:
        isam.compile(MATMUL, on="toy", require="mm5_f32")
    assert e.value.diagnostics[0].code == "instruction-unknown"
    assert isam.compile(MATMUL, on="toy", require=("mm4_f32", "m_fill_f32")).sizes == {}


@pytest.mark.parametrize(("argument", "code"), [
    ({"require": 3}, "instruction-unknown"), ({"require": ["mm4", 3]}, "instruction-unknown"),
    ({"sizes": {3: 8}}, "size-unknown"), ({"cache": 3}, "path-type"),
    ({"cache": "a\0b"}, "path-type"), ({"replay": 3}, "path-type"),
    ({"replay": "no such file"}, "trace-read")])  # fmt: skip
def test_what_is_of_a_wrong_type_or_missing_is_told_before_there_is_an_array(argument, code):
    with pytest.raises(IsamError) as e:
        isam.compile(MATMUL, **{**TOY, **argument})
    assert [d.code for d in e.value.diagnostics] == [code]


@pytest.mark.parametrize("wrong", [5, b"mm4", ["mm4"], MATMUL], ids=lambda w: type(w).__name__)
def test_an_instruction_is_explained_by_its_name(wrong):
    with pytest.raises(IsamError, match=f"instruction-unknown.*not {type(wrong).__name__}"):
        isam.explain(MATMUL, on="toy", instruction=wrong)


def test_what_is_no_path_is_told():
    fn = isam.compile(MATMUL, sizes={"M": 2, "N": 2, "K": 2}, **TOY)
    for wrong in (lambda: fn.save(None), lambda: fn.artifact.save(3), lambda: isam.load(None),
                  lambda: fn.save("a\0b"), lambda: isam.load("a\0b")):  # fmt: skip
        with pytest.raises(IsamError, match="path-type"):
            wrong()
