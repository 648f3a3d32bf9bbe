"""einsum: NumPy's meaning where NumPy has one, affine indices beyond; faults with their column."""

from __future__ import annotations

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from isam.diagnostics import IsamError
from isam.frontend.einsum import einsum
from isam.ir.interp import run
from isam.ir.text import parse, print_kernel
from isam.ir.verify import verify

RNG = np.random.default_rng(1)
SIZES = dict(zip("abcdeijklmnrs", (2, 3, 4, 2, 3, 2, 3, 4, 5, 3, 4, 2, 3), strict=True))


@pytest.mark.parametrize("spec", [
    "mk,kn->mn", "mk,nk->mn", "km,kn->nm", "bmk,bkn->bmn", "ij->ji", "ij->", "ij->i", "ii->i", "ii->", "i,j->ij",
    "i,i->",
    "ij,ij->ij", "ijk,kl,lm->ijm", "a,b,c->abc", "ij,jk", "ba", "i,i", "abc->b", "ijj->ji", " m k , k n -> m n ",
])
def test_as_numpy_does(spec):
    k = einsum(spec, "i64")
    assert verify(k) == []
    assert parse(print_kernel(k)) == k
    operands = spec.replace(" ", "").split("->")[0].split(",")
    arrays = [RNG.integers(-9, 9, size=[SIZES[x] for x in o]) for o in operands]
    got = run(k, {f"x{n}": a for n, a in enumerate(arrays, 1)})["y"]
    np.testing.assert_array_equal(got, np.einsum(spec, *arrays))


@pytest.mark.parametrize(("spec", "sizes", "order"), [
    ("ij,jk,kl->il", {}, "x1 x2 x3"),  # no other order takes less
    ("ij,jk,k->i", {}, "x2 x3 x1"),
    ("ad,be,cf,abc->def", {}, "x1 x4 x2 x3"),
    ("ij,jk,kl->il", {"i": 512, "l": 2}, "x2 x3 x1"),
    ("ij,jk,kl->il", {"i": 2, "l": 512}, "x1 x2 x3"),
    ("a,b,c->abc", {}, "x1 x2 x3"),
    ("(h+r)c,rc,c->h", {}, "x1 x2 x3"),
    ("ij,jk->ik", {"i": 1}, "x1 x2"),
])  # fmt: skip
def test_factors_stand_in_the_order_that_takes_the_fewest_multiplications(spec, sizes, order):
    k = einsum(spec, "i64", sizes=sizes)
    read = [x.buffer for s in k.statements for x in s.reads if x.buffer.startswith("x")]
    assert " ".join(read) == order
    assert [b.name for b in k.arguments] == [*sorted(read), "y"]


def test_the_order_of_very_many_factors_is_as_they_are_written():
    letters = "abcdefghijkl"
    k = einsum(",".join(a + b for a, b in pairwise(letters)) + ",l->a", "i64")
    assert [x.buffer for s in k.statements for x in s.reads if x.buffer.startswith("x")] == [
        f"x{n}" for n in range(1, 13)]  # fmt: skip


def test_convolution_with_stride_and_names():
    k = einsum("n(h+r)(2*w+s)c,rsck->nhwk", "i64", name="conv", names=("x", "w", "y"))
    assert [b.name for b in k.arguments] == ["x", "w", "y"]
    assert [str(d) for d in k.buffer("x").shape] == ["N", "H + R - 1", "S + 2*W - 2", "C"]
    n, h, w, r, s, c, f = 2, 3, 4, 2, 3, 2, 3
    x, weights = RNG.integers(-5, 5, (n, h + r - 1, 2 * w + s - 2, c)), RNG.integers(-5, 5, (r, s, c, f))
    want = np.zeros((n, h, w, f), np.int64)
    for a in range(r):
        for b in range(s):
            want += np.einsum("nhwc,ck->nhwk", x[:, a : a + h, b : b + 2 * w - 1 : 2], weights[a, b])
    got = run(k, {"x": x, "w": weights}, {"N": n, "H": h, "W": w, "R": r, "S": s, "C": c, "K": f})["y"]
    np.testing.assert_array_equal(got, want)
    assert einsum("n(h+r)(2w+s)c,rsck->nhwk", "i64", name="conv", names=("x", "w", "y")) == k


def test_an_affine_output_scatters():
    k = einsum("i,j->(i+j)", "i64")
    a, b = RNG.integers(-9, 9, 4), RNG.integers(-9, 9, 3)
    np.testing.assert_array_equal(run(k, {"x1": a, "x2": b}, {"I": 4, "J": 3})["y"], np.convolve(a, b))


def test_offsets_and_long_names():
    k = einsum("(row-tap+2),(tap)->(row)", "i64", sizes={"tap": 3})
    a, b = RNG.integers(-9, 9, 8), np.array([5, 7, -3])
    got = run(k, {"x1": a[:6], "x2": b}, {"ROW": 4})["y"]
    np.testing.assert_array_equal(got, [sum(a[i - t + 2] * b[t] for t in range(3)) for i in range(4)])


def test_mixed_precision():
    k = einsum("mk,kn->mn", dtype=("u8", "i8"), out="i32")
    a, b = RNG.integers(0, 255, (3, 9)).astype(np.uint8), RNG.integers(-128, 127, (9, 4)).astype(np.int8)
    np.testing.assert_array_equal(run(k, {"x1": a, "x2": b})["y"], a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize(("spec", "column", "expected"), [
    ("mk,kn->mq", 8, "'q' is in no operand"), ("m1,kn->mn", 2, "'1' is no index"), ("m(h+,kn->mn", 2, "never closed"),
    ("m(h+),kn->mn", 5, "ends too early"), ("m(h*r)->m", 4, "in an affine index"), ("mk->m->k", 6, "a second '->'"),
    ("m...->m", 2, "'.' is no index"), ("m(h+r),r", 9, "no '->'"), ("m(2*)->m", 4, "in an affine index"), ("é->", 1,
                                                                                                           "no index"),
    ("(+)->", 3, "ends too early"), ("(-h)->(h)", 1, "falls below 0"), ("m" * 20_000, 1, "characters"),
])
def test_faults_have_a_column(spec, column, expected):
    with pytest.raises(IsamError) as e:
        einsum(spec)
    (d,) = e.value.diagnostics
    assert expected in d.message
    assert d.hint
    assert d.loc.column == column


def test_dtypes_as_numpy_has_them():
    want = einsum("mk,kn->mn", dtype=("u8", "i8"), out="i32")
    assert einsum("mk,kn->mn", dtype=[np.uint8, np.dtype("i1")], out=np.int32) == want
    assert einsum("n->n", dtype=np.float32) == einsum("n->n")
    assert einsum("n->n", dtype=ml_dtypes.bfloat16) == einsum("n->n", dtype="bf16")


@pytest.mark.parametrize(("dtype", "message", "hint"), [
    ("float32", "unknown dtype 'float32'", "did you mean 'f32'?"), (float, "is no dtype", "did you mean 'f64'?"),
    (np.complex64, "is no dtype", "dtypes: f64, f32"), (np.dtype(">f4"), "is no dtype", "dtypes: f64, f32"),
    (7, "7 is no dtype", "dtypes: f64, f32"),
    (np.ones(3), "a dtype is needed, not an array", "isam.compile(isam.einsum(...))(A, B)"),
    ([None, "f32"], "None is no dtype", "dtypes: f64, f32"),
])  # fmt: skip
def test_what_is_no_dtype(dtype, message, hint):
    with pytest.raises(IsamError, match="E503") as e:
        einsum("mk,kn->mn", dtype=dtype)
    (d,) = e.value.diagnostics
    assert message in d.message
    assert hint in d.hint


def test_other_faults():
    for kwargs in ({"dtype": "float"}, {"dtype": ("f32",)}, {"names": ("a",)}, {"out": "q8"}, {"name": "not a name"},
                   {"sizes": {"m": -1}}):
        with pytest.raises(IsamError):
            einsum("mk,kn->mn", **kwargs)
    with pytest.raises(IsamError, match="V430"):
        einsum("(h-r),r->h")


@pytest.mark.parametrize("spec", [5, None, b"ij", ["ij"], np.ones(2)], ids=lambda s: type(s).__name__)
def test_an_index_string_is_a_text(spec):
    with pytest.raises(IsamError, match=f"E501.*not {type(spec).__name__}"):
        einsum(spec)


@pytest.mark.parametrize("sizes", [{"m": 3}, {"M": 3}, {"m": np.int64(3)}])
def test_an_extent_goes_by_the_axis_or_by_its_size_in_the_kernel(sizes):
    k = einsum("mk,kn->mn", sizes=sizes)
    assert [s.name for s in k.syms] == ["K", "N"]
    assert [str(d) for d in k.buffer("x1").shape] == ["3", "K"]


def test_an_axis_with_a_capital_letter_goes_by_itself():
    assert [s.name for s in einsum("Mk->M").syms] == ["M_size", "K"]
    for name in ("M", "M_size"):
        assert [s.name for s in einsum("Mk->M", sizes={name: 3}).syms] == ["K"]


@pytest.mark.parametrize(("sizes", "message", "hint"), [
    ({"zzz": 3}, "no axis 'zzz'", "axes: m, k, n"), ({"m2": 3}, "no axis 'm2'", "did you mean 'm'?"),
    ({5: 3}, "no axis '5'", "axes: m, k, n"), ({"m": 3, "M": 3}, "'m' is given twice", "as 'm' or as 'M'"),
    ({"m": True}, "is True", "at least 0"), ({"m": 1.5}, "is 1.5", "at least 0"), ({"M": -1}, "is -1", "at least 0"),
    (5, "not int", "sizes={"), ("m", "not str", "sizes={"),
])  # fmt: skip
def test_sizes_that_are_none_of_an_axis(sizes, message, hint):
    with pytest.raises(IsamError, match="E504") as e:
        einsum("mk,kn->mn", sizes=sizes)
    (d,) = e.value.diagnostics
    assert message in d.message
    assert hint in d.hint


@pytest.mark.parametrize("names", [5, (5, 6, 7), b"xyz"])
def test_names_are_texts(names):
    with pytest.raises(IsamError, match="E504"):
        einsum("mk,kn->mn", names=names)


@pytest.mark.parametrize("const", [1, (1,), "x2", ["x2"], np.int64(1), "x2, x2", iter([1])])
def test_operands_are_constant_by_name_or_by_place(const):
    k = einsum("mk,kn->mn", const=const)
    assert [b.role for b in k.arguments] == ["in", "const", "out"]
    assert parse(print_kernel(k)) == k


def test_constant_operands_go_by_the_names_given_to_them():
    k = einsum("mk,kn,n->mn", names=["A", "B", "c", "C"], const=("B", 2))
    assert [(b.name, b.role) for b in k.arguments] == [("A", "in"), ("B", "const"), ("c", "const"), ("C", "out")]


@pytest.mark.parametrize(("const", "message", "hint"), [
    ("X2", "there is no operand 'X2'", "did you mean 'x2'?"), (2, "there is no operand 2", "operands: x1, x2, or by"),
    (-1, "there is no operand -1", "by place 0 to 1"), ("y", "the output 'y' is not constant", "operands: x1, x2"),
    (True, "there is no operand True", "operands"), (1.0, "there is no operand 1.0", "operands"),
    ((0, None), "there is no operand None", "operands"), ("", "there is no operand ''", "operands"),
])  # fmt: skip
def test_what_is_no_operand_is_not_constant(const, message, hint):
    with pytest.raises(IsamError) as e:
        einsum("mk,kn->mn", const=const)
    (d,) = e.value.diagnostics
    assert (d.code, d.message) == ("E504", message)
    assert hint in d.hint


@pytest.mark.parametrize(("permits", "granted"), [
    (None, {"reassociate", "contract"}), ("exact", {"exact"}), (("finite", "flush"), {"finite", "flush"}),
    ("reassociate, finite", {"reassociate", "finite"}), ((), set()), ("nothing", set()),
])  # fmt: skip
def test_permissions(permits, granted):
    k = einsum("mk,kn->mn", permits=permits)
    assert k.permits == granted
    assert parse(print_kernel(k)) == k


@pytest.mark.parametrize("permits", ["exakt", ("exact", "reassociate"), "", 5, "reassociate finite"])
def test_permissions_that_nobody_can_grant(permits):
    for grant in (lambda: einsum("mk,kn->mn", permits=permits), lambda: einsum("mk,kn->mn").with_permits(permits)):
        with pytest.raises(IsamError, match="L129"):
            grant()
    if permits == "exakt":
        with pytest.raises(IsamError, match="did you mean 'exact'"):
            einsum("mk,kn->mn", permits=permits)


def test_permissions_are_granted_afterwards():
    k = parse("kernel f(N, c=2)\n  in x: f32[N]\n  out y: f32[N]\n  permits exact\n  forall i < N\n    y[i] = c * x[i]")
    more = k.with_permits("reassociate, finite")
    assert (k.permits, more.permits) == ({"exact"}, {"reassociate", "finite"})
    assert print_kernel(more) == print_kernel(k).replace("permits exact", "permits finite, reassociate")
    for other in (more.with_params(c=3), more.with_sizes({"N": 4}), more.with_params(c=3).with_params(c=4)):
        assert other.permits == more.permits
    assert dict(more.with_params(c=3).params) == {"c": 3}
    assert more.with_permits("exact") == k
    assert k.with_permits(()).permits == frozenset()
    assert verify(more) == []
