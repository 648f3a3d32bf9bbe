"""Every array argument: accepted, copied or refused as documented."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.artifact import Argument, Size
from isam.diagnostics import IsamError
from isam.runtime.arguments import prepare, shares_itself
from isam.runtime.layout import address, slow_address
from isam.runtime.signature import Signature

ROWS = ((3, ()), (4, ()))
KERNEL = Signature("k", [
    Argument("A", "in", "f32", ROWS), Argument("W", "const", "f32", ROWS), Argument("H", "inout", "f32", ROWS),
    Argument("C", "out", "f32", ROWS), Argument("s", "in", "f32", ()), Argument("D", "out", "i8", ((2, ()),)),
])  # fmt: skip


def full(seed=0, **changes):
    r = np.random.default_rng(seed)
    out = {n: r.normal(size=(3, 4)).astype(np.float32) for n in "AWH"}
    return {**out, "s": np.float32(0.5), **changes}


def refused(code, **changes):
    with pytest.raises(IsamError) as e:
        prepare(KERNEL, full(**changes), {})
    assert [d.code for d in e.value.diagnostics] == [f"call-{code}"], str(e.value)
    return str(e.value)


def test_bytes_without_a_type_are_viewed_not_converted(tmp_path):
    """As NumPy's files leave arrays of bf16; the hint does what it says."""
    k = Signature("k", [Argument("x", "in", "bf16", ROWS), Argument("y", "out", "bf16", ROWS)])
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", x)
    read = np.load(tmp_path / "x.npy")
    assert read.dtype.kind == "V"
    for given, name in (({"x": read}, "x"), ({"x": x, "y": read}, "y")):
        with pytest.raises(IsamError) as e:
            prepare(k, given, {})
        (d,) = e.value.diagnostics
        assert d.message == f"'{name}' must be bfloat16, not |V2"
        assert d.hint == "take its bytes as they are: .view(ml_dtypes.bfloat16)"
    again = read.view(ml_dtypes.bfloat16)
    assert prepare(k, {"x": again, "y": again.copy()}, {}).arrays["x"].tobytes() == x.tobytes()
    with pytest.raises(IsamError) as e:
        prepare(k, {"x": np.zeros((3, 4), "V3")}, {})
    assert e.value.diagnostics[0].hint == ""


def test_plain_arrays_are_used_as_they_are():
    given = full(C=np.empty((3, 4), np.float32))
    p = prepare(KERNEL, given, {})
    for n in "AWHC":
        assert p.arrays[n] is given[n]
    assert p.results["C"] is given["C"]
    assert p.results["D"].shape == (2,)
    assert p.results["D"].dtype == np.int8
    assert list(p.results) == ["C", "D"]
    assert not p.back
    assert p.arrays["s"] == np.float32(0.5)


def odd_views():
    base = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    yield base[::2, ::2]
    yield base[3:0:-1, :4]
    yield np.asfortranarray(base[:3, :4])
    raw = np.zeros(3 * 4 * 4 + 1, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(3, 4)
    unaligned[...] = base[:3, :4]
    yield unaligned


@pytest.mark.parametrize("view", list(odd_views()))
def test_odd_layouts_are_copied_in_and_back(view):
    p = prepare(KERNEL, full(A=view, H=view.copy("A")), {})
    assert p.arrays["A"] is not view
    np.testing.assert_array_equal(p.arrays["A"], view)
    assert p.arrays["A"].flags.c_contiguous
    q = prepare(KERNEL, full(H=view), {})
    ((caller, computed),) = q.back
    assert caller is view
    np.testing.assert_array_equal(computed, view)
    assert q.arrays["H"] is computed
    r = prepare(KERNEL, full(C=view), {})
    assert r.results["C"] is view
    assert r.back[0][1] is r.arrays["C"]


def test_foreign_byte_order():
    a = full()["A"]
    swapped = a.astype(a.dtype.newbyteorder())
    p = prepare(KERNEL, full(A=swapped), {})
    np.testing.assert_array_equal(p.arrays["A"], a)
    assert p.arrays["A"].dtype.isnative
    assert "byte order" in refused("dtype", C=swapped)
    refused("dtype", H=swapped)


def test_wrong_types_and_shapes():
    assert ".astype(np.float32)" in refused("dtype", A=np.zeros((3, 4)))
    refused("dtype", C=np.zeros((3, 4), np.float64))
    refused("dtype", A=np.zeros((3, 4), np.complex64))
    refused("dtype", A=np.array([[None] * 4] * 3))
    refused("dtype", A=np.zeros((3, 4), np.dtypes.StringDType()))
    refused("dtype", A=np.zeros((3, 4), "S4"))
    refused("shape", A=np.zeros((4, 3), np.float32))
    refused("shape", A=np.zeros((3, 4, 1), np.float32))
    refused("shape", A=np.zeros((), np.float32))
    refused("shape", C=np.zeros((3, 5), np.float32))
    refused("shape", s=np.zeros(1, np.float32))
    refused("type", A=[[0.0] * 4] * 3)
    refused("type", A=None)
    refused("type", A=1.0)
    refused("type", C="text")
    refused("type", A=np.ma.masked_array(full()["A"], full()["A"] > 0))
    refused("type", A=memoryview(full()["A"]))


def test_all_faults_at_once():
    with pytest.raises(IsamError) as e:
        prepare(KERNEL, full(A=np.zeros((3, 4)), W=np.zeros((1, 1), np.float32), C=np.zeros((9, 4), np.int8)), {})
    assert len(e.value.diagnostics) == 4


def test_read_only_and_self_overlapping_outputs():
    still = full()["A"]
    still.flags.writeable = False
    assert prepare(KERNEL, full(A=still), {}).arrays["A"] is still
    refused("read-only", C=still)
    refused("read-only", H=still)
    spread = np.broadcast_to(np.float32(1), (3, 4))
    assert (prepare(KERNEL, full(A=spread), {}).arrays["A"] == 1).all()
    twice = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (3, 4), (4, 4))
    refused("overlap", C=twice)
    refused("overlap", H=np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (3, 4), (0, 4)))
    assert not shares_itself(np.zeros((3, 4)).T)
    assert not shares_itself(np.zeros((4, 6))[::-2, ::3])
    assert shares_itself(np.lib.stride_tricks.as_strided(np.zeros(9), (3, 3), (8, 16)))


def test_overlaps_between_arguments():
    room = np.zeros(100, np.float32)
    a, b, c = room[:12].reshape(3, 4), room[8:20].reshape(3, 4), room[40:52].reshape(3, 4)
    p = prepare(KERNEL, full(A=a, W=b), {})  # inputs may overlap
    assert p.arrays["A"] is a
    assert p.arrays["W"] is b
    q = prepare(KERNEL, full(A=a, C=b), {})  # an input is saved from the output
    assert not np.shares_memory(q.arrays["A"], b)
    assert q.arrays["C"] is b
    r = prepare(KERNEL, full(A=a, C=c), {})
    assert r.arrays["A"] is a
    same = prepare(KERNEL, full(A=a, H=a), {})
    assert same.arrays["H"] is a
    assert same.arrays["A"] is not a
    refused("overlap", H=a, C=b)
    refused("overlap", H=a, C=a)
    interleaved = np.zeros((3, 8), np.float32)  # bounds cross, elements do not
    prepare(KERNEL, full(H=interleaved[:, ::2], C=interleaved[:, 1::2]), {})


@pytest.mark.parametrize(("value", "good"), [
    (1, True), (0.1, True), (True, True), (np.float32(2), True), (np.int8(3), True), (np.float64(0.5), True),
    (np.float64(0.1), False), (2**25 + 1, False), (10**400, False), (1j, False), (np.complex64(1), False),
    (float("inf"), True), ("1", False)])  # fmt: skip
def test_numbers_for_rank_zero(value, good):
    if good:
        got = prepare(KERNEL, full(s=value), {}).arrays["s"]
        assert got == np.float32(value)
        assert got.dtype == np.float32
    else:
        with pytest.raises(IsamError, match=r"call-(dtype|type)"):
            prepare(KERNEL, full(s=value), {})


def test_numbers_of_narrow_floats():
    k = Signature("k", [Argument("s", "in", "bf16", ())])
    for value, good in ((ml_dtypes.bfloat16(2.5), True), (3, True), (257, False), (np.float32(1.0078125), True)):
        if good:
            assert prepare(k, {"s": value}, {}).arrays["s"] == ml_dtypes.bfloat16(value)
        else:
            with pytest.raises(IsamError, match="call-dtype"):
                prepare(k, {"s": value}, {})
    with pytest.raises(IsamError, match="not a number"):
        prepare(KERNEL, full(H=np.float32(1)), {})
    assert prepare(KERNEL, full(s=ml_dtypes.bfloat16(2)), {}).arrays["s"] == np.float32(2)


def test_subclasses_count_as_arrays(tmp_path):
    mapped = np.memmap(tmp_path / "a", np.float32, "w+", shape=(3, 4))
    p = prepare(KERNEL, full(A=mapped, C=mapped.copy().view(np.matrix)), {})
    assert type(p.arrays["A"]) is np.ndarray
    assert np.shares_memory(p.arrays["A"], mapped)


def test_positions_keywords_and_names():
    k = KERNEL
    assert list(k.assign((1, 2, 3, 4), {})) == ["A", "W", "H", "s"]
    assert k.assign((1, 2, 3), {"s": 4, "C": 5}) == {"A": 1, "W": 2, "H": 3, "s": 4, "C": 5}
    for args, kwargs, count in (((), {}, 4), ((1, 2, 3, 4, 5), {}, 1), ((1, 2, 3, 4), {"A": 1}, 1),
                                ((1, 2, 3, 4), {"X": 1, "Y": 2}, 2), ((1,), {"W": 1, "Z": 3}, 3)):  # fmt: skip
        with pytest.raises(IsamError) as e:
            k.assign(args, kwargs)
        assert len(e.value.diagnostics) == count
    assert k.assign((1, 3, 4), {}, bound={"W"}) == {"A": 1, "H": 3, "s": 4}
    with pytest.raises(IsamError, match="bound already"):
        k.assign((1, 3, 4), {"W": 1}, bound={"W"})


def test_run_time_sizes_follow_from_shapes():
    t = (("T", 1),)
    arguments = [Argument("x", "in", "f32", ((0, t), (0, (("U", 2),)))), Argument("y", "out", "f32", ((1, t),)),
                 Argument("z", "in", "f32", ((-1, (("T", 1), ("U", 1))),))]  # fmt: skip
    k = Signature("k", arguments, [Size("T", 0, 9), Size("U", 0, None, 2)])
    f = np.float32
    p = prepare(k, {"x": np.zeros((5, 8), f), "z": np.zeros(8, f)}, {})
    assert p.sizes == {"T": 5, "U": 4}
    assert p.arrays["y"].shape == (6,)
    for x, z in (((5, 7), 8), ((5, 8), 9), ((10, 8), 13), ((5, 6), 7)):
        with pytest.raises(IsamError):
            prepare(k, {"x": np.zeros(x, f), "z": np.zeros(z, f)}, {})
    assert prepare(k, {"x": np.zeros((0, 0), f), "z": np.zeros(0, f)}, {}).arrays["y"].shape == (1,)


def test_the_quick_address_is_the_address():
    for a in (np.zeros((3, 4)), np.zeros((0,)), np.zeros((5, 5))[1:, 2:], np.zeros(())):
        assert address(a) == slow_address(a)


def test_a_hint_never_loses_a_result():
    text = ("kernel k(N)\n  in x: f32[N]\n  inout s: f32[N]\n  out y: f32[N]\n  forall i < N\n    s[i] += x[i]\n"
            "    y[i] = x[i]\n")  # fmt: skip
    fn = isam.compile(text, on="toy", sizes={"N": 3}, check=False)
    x, s, y = (np.zeros(3, np.float64) for _ in range(3))
    with pytest.raises(IsamError) as e:
        fn(x, s, y=y)
    hints = {d.message.split("'")[1]: d.hint for d in e.value.diagnostics}
    assert hints["x"] == "convert it with .astype(np.float32)"
    for name in ("s", "y"):
        assert "astype" not in hints[name]
        assert "results are written into the array itself" in hints[name]
    with pytest.raises(IsamError) as e:
        fn(x.astype("f4"), s.astype("f4"), y=[0, 0, 0])
    assert "results are written into the array itself" in e.value.diagnostics[0].hint


def test_numbers_print_as_numbers():
    fn = isam.compile("kernel k()\n  in x: i32\n  out y: i32\n  y[] = x[]\n", on="toy", check=False)
    with pytest.raises(IsamError, match=r"'x' must be int32; 0\.5 is not exact in it"):
        fn(np.float64(0.5))


@pytest.mark.parametrize(("dtype", "value", "refused"), [
    ("f32", 1e300, False), ("f32", np.float64(1e300), True), ("f16", 1e6, False), ("i8", float("nan"), True),
    ("i8", 300, True), ("i8", np.float32("inf"), True), ("bf16", 1e300, False),
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_numbers_that_do_not_fit_make_no_warnings(dtype, value, refused):
    fn = isam.compile(f"kernel k()\n  in x: {dtype}\n  out y: {dtype}\n  y[] = x[]\n", on="toy", check=False)
    if refused:
        with pytest.raises(IsamError, match=r"call-dtype\]: .*is not exact in it"):
            fn(value)
    else:
        assert np.isinf(fn(value).astype("f8"))
