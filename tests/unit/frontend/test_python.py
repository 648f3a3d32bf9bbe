# ruff: noqa: F821, F722, UP037, B020, B007, SIM201, SIM300 (kernel functions name axes and sizes that Python does not know)
"""@kernel functions and the builder give the same kernels as the text."""

from __future__ import annotations

import math
from enum import IntEnum
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from isam.diagnostics import IsamError, all_codes
from isam.frontend.builder import call
from isam.frontend.python import Builder, forall, kernel, loop
from isam.ir.text import parse, parse_file, print_kernel
from isam.ir.verify import verify

MODULE = {k.name: k for k in parse_file((Path(__file__).parents[2] / "text" / "surface.isam").read_text()).kernels}
HERE = Path(__file__).name


class Three(IntEnum):
    THREE = 3


@kernel
def matmul(A: "f32[M, K]", B: "f32[K, N]", C: "out f32[M, N]", *, M, N, K):
    """The text's example."""
    for i, j in forall(M, N):
        C[i, j] = 0
    for i, j, k in forall(M, N, K):
        T[i, j, k] = A[i, k] * B[k, j]
        C[i, j] += T[i, j, k]


@kernel
def softmax(x: "f32[M, N]", y: "out f32[M, N]"):
    for i in forall(M):
        m[i] = -inf
        s[i] = 0
    for i, j in forall(M, N):
        m[i] = max(m[i], x[i, j])
    for i, j in forall(M, N):
        e[i, j] = math.exp(x[i, j] - m[i])
        s[i] += e[i, j]
    for i, j in forall(M, N):
        y[i, j] = e[i, j] / s[i]


@kernel
def rnn(x: "f32[T, B, X]", w: "const f32[X, H]", u: "const f32[H, H]", h: "inout f32[B, H]", ys: "out f32[T, B, H]"):
    for t in loop(T):
        for b, j in forall(B, H):
            a[b, j] = 0
        for b, j, k in forall(B, H, X):
            a[b, j] += x[t, b, k] * w[k, j]
        for b, j, k in forall(B, H, H):
            a[b, j] += h[b, k] * u[k, j]
        for b, j in forall(B, H):
            h[b, j] = tanh(a[b, j])
            ys[t, b, j] = h[b, j]


@kernel
def conv_same(x: "f32[N, H, W, C]", w: "const f32[3, 3, C, K]", y: "out f32[N, H, W, K]", *, N, C, H, W, K):
    for n, h, v, k in forall(N, H, W, K):
        y[n, h, v, k] = 0
    for n, h, v, k, r, s, c in forall(N, H, W, K, 3, 3, C,
                                      where=(0 <= h + r - 1, h + r - 1 < H and 0 <= v + s - 1, v + s - 1 < W)):
        y[n, h, v, k] += x[n, h + r - 1, v + s - 1, c] * w[r, s, c, k]


@pytest.mark.parametrize("made", [matmul, softmax, conv_same], ids=lambda k: k.name)
def test_functions_equal_the_documented_texts(made):
    assert made == MODULE[made.name]
    assert verify(made) == []


def test_sizes_are_found_in_the_shapes():
    assert [s.name for s in rnn.syms] == ["T", "B", "X", "H"]
    assert rnn.body == MODULE["rnn"].body
    assert rnn.buffers == MODULE["rnn"].buffers


def test_constants_ranges_temporaries_and_options():
    @kernel(name="strided", permits=("exact",))
    def f(x: "f32[stride * N]", y: "out f32[N]", *, N: "N % 8 <= 64", stride=2, d=-1):
        p: "f32[N + 1]"
        for i in forall(N + 1):
            p[i] = x[0] if stride > 5 else d
        for i in forall(N):
            y[i] = p[i] + x[stride * i] if x[i] >= 0 and not x[i] == 1 else maximum(x[i], 2, p[i]) ** 2

    assert parse(print_kernel(f)) == f
    text = ("kernel strided(N % 8 <= 64, stride=2, d=-1)\n  permits exact\n  in x: f32[stride*N]\n  out y: f32[N]\n"
            "  temp p: f32[N + 1]\n  forall i < N + 1\n    p[i] = select(stride > 5, x[0], d)\n  forall i < N\n"
            "    y[i] = select(x[i] >= 0 and not x[i] == 1, p[i] + x[stride * i], pow(max(x[i], 2, p[i]), 2))\n")
    assert f == parse(text)
    assert f.with_params(stride=3) == parse(text).with_params(stride=3)
    assert next(s for s in f.statements if s.op == "max").loc.file.endswith(HERE)


def test_every_fault_of_a_function_is_located():
    with pytest.raises(IsamError) as e:
        @kernel
        def bad(x: "f32[N", y: "out f33[M]", z, *rest, M: "M <=", q=1.5):
            for i in range(N):
                y[i] = 0
            for i, j in forall(N):
                y[i] = 0
            for i in forall(M):
                y[i] -= 3
                y[i] = expp(y[i])
                y[i] = [1]
                y[i] = "a"
                y[i] = 0 < y[i] < 1
                for k in forall(M):
                    y[k] = 0
            for i in forall(M, when=i < 3):
                y[i] = 0
            for i in forall(M, where=i):
                y[i] = 0
            while True:
                pass
            return y
    first = bad_line()
    found = e.value.diagnostics
    lines = [d.loc.line - first for d in found]
    assert lines == sorted(lines)
    assert {0, 1, 3, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19} == set(lines)
    assert lines.count(0) >= 6
    for d in found:
        assert d.loc.file.endswith(HERE)
        assert d.loc.column > 0
        assert d.hint
        assert d.code in all_codes()
        assert d.source_line


def bad_line() -> int:
    text = Path(__file__).read_text().split("\n")
    return next(n for n, line in enumerate(text, 1) if line.strip().startswith("def bad("))


def test_faults_of_meaning_point_into_the_function():
    with pytest.raises(IsamError) as e:
        @kernel
        def bad_names(x: "f32[N]", y: "out f32[N]"):
            for i in forall(N):
                y[i] = xx[i] + x[k]
    assert [(d.code, d.loc.column) for d in e.value.diagnostics] == [("L203", 24), ("L202", 34)]
    assert "did you mean 'x'" in str(e.value)


def test_a_sum_that_is_misspelt_is_no_assignment():
    """Python takes ``=+`` for one; a sign that stands by itself is the value's."""
    with pytest.raises(IsamError) as e:
        @kernel
        def bad_sum(x: "f32[N]", y: "inout f32[N]"):
            for i in forall(N):
                y[i] =+ x[i]
                y[i] = +x[i]
                y[i] =-x[i]
    assert [(d.code, d.loc.column, d.message) for d in e.value.diagnostics] == [("F603", 23, "there is no '=+'")]
    assert e.value.diagnostics[0].hint == "write += to add to what is there, = to assign"


def test_statements_of_several_operations_are_judged_as_they_are_written():
    """In a function and in calls as in a text: what another point writes may not be read."""
    @kernel
    def shifted(b: "f32[N]", y: "inout f32[N + 1]"):
        for i in forall(N):
            y[i + 1] = 0.5 * y[i] + b[i]

    built = Builder("summed", "N")
    x, h = built.input("x", "f32", "N"), built.inout("h", "f32", "N")
    with built.forall(i="N", j="N") as (i, j):
        h[j] += x[i] * h[i]
    for made, read, column in ((shifted, "y[i]", 30), (built.kernel(), "h[i]", 1)):
        (found,) = verify(made)
        assert (found.code, found.loc.column, Path(found.loc.file).name) == ("V433", column, HERE)
        assert f"reads {read} while" in found.message


def test_what_is_no_function_is_refused():
    for thing in (print, 3, lambda x: x, type):
        with pytest.raises(IsamError):
            kernel(thing)
    for word in (forall, loop):
        with pytest.raises(IsamError, match="F601"):
            word(3)


def test_builder_equals_text():
    b = Builder("matmul", "M", "N", "K")
    A, B = b.input("A", "f32", "M, K"), b.input("B", "f32", ["K", "N"])
    C, T = b.output("C", "f32", "M, N"), b.temp("T")
    with b.forall(i="M", j="N") as (i, j):
        C[i, j] = 0
    with b.forall(i="M", j="N", k="K") as (i, j, k):
        T[i, j, k] = A[i, k] * B[k, j]
        C[i, j] += T[i, j, k]
    assert b.kernel() == MODULE["matmul"]


def test_builder_speaks_the_whole_language():
    b = Builder("k", "N % 8", "2 <= M <= 9", permits=("exact",), s=2)
    x, w, h = b.input("x", "f32", "T, s * N + 1"), b.const("w", "f32", [3]), b.inout("h", "f32", "N")
    y, t = b.output("y", "f32"), b.temp("t", "f32", "N")
    b._syms.insert(2, b._size("T"))
    y[()] = 0
    with b.loop(t="T") as step:
        with b.forall(i="N", where="i + 1 < N, i >= 1") as i:
            t[i] = call("select", x[step, i] < 0.5, 1 - w[0] / 3, -call("exp", h[i]))
            h.accumulate("max", i, t[i] * 2)
        with b.forall(i="N - 2") as i:
            y[()] += h[i + 1]
    want = ("kernel k(N % 8, 2 <= M <= 9, T, s=2)\n  permits exact\n  in x: f32[T, s * N + 1]\n  const w: f32[3]\n"
            "  inout h: f32[N]\n  out y: f32\n  temp t: f32[N]\n  y = 0\n  loop t < T\n"
            "    forall i < N where i + 1 < N, i >= 1\n      t[i] = select(x[t, i] < 0.5, 1 - w[0] / 3, -exp(h[i]))\n"
            "      h[i] max= t[i] * 2\n    forall i < N - 2\n      y += h[i + 1]\n")
    assert b.kernel() == parse(want)
    assert b.kernel().with_params(s=5) == parse(want).with_params(s=5)


def built(body, head=("N",), sizes="N", **options):
    """The kernel of one block over arrays A and B, updating C."""
    b = Builder("k", *head, **options)
    A, B, C = (b._declare(role, name, "f32", sizes) for role, name in (("in", "A"), ("in", "B"), ("inout", "C")))
    with b.forall(i="N") as i:
        body(A, B, C, i)
    return b.kernel()


def of_text(*lines):
    return parse("kernel k(N)\n  in A: f32[N]\n  in B: f32[N]\n  inout C: f32[N]\n  forall i < N\n    "
                 + "\n    ".join(lines))  # fmt: skip


def sum_of_values(A, B, C, i):
    v = A[i]
    v += B[i]
    C[i] = v * 3


def sum_of_an_expression(A, B, C, i):
    v = A[i] * 2
    v += B[i]
    C[i] = v


def sum_stored_elsewhere(A, B, C, i):
    v = w = A[i]
    v *= B[i]
    C[i] = v + w


def sum_stored_in_another_element(A, B, C, i):
    v = C[0]
    v += B[i]
    C[i] = v


def accumulation_by_name(A, B, C, i):
    v = C[i]
    v += A[i] * B[i]
    C[i] = v


def two_sums(A, B, C, i):
    v = C[i]
    v += A[i]
    v += B[i]
    C[i] = v


def axis_moved_on(A, B, C, i):
    k = i
    k *= 1
    k += 0
    C[i] = A[k]


@pytest.mark.parametrize(("body", "lines"), [
    (sum_of_values, ["C[i] = (A[i] + B[i]) * 3"]),
    (sum_of_an_expression, ["C[i] = A[i] * 2 + B[i]"]),
    (sum_stored_elsewhere, ["C[i] = A[i] * B[i] + A[i]"]),
    (sum_stored_in_another_element, ["C[i] = C[0] + B[i]"]),
    (accumulation_by_name, ["C[i] += A[i] * B[i]"]),
    (two_sums, ["C[i] = C[i] + A[i] + B[i]"]),
    (axis_moved_on, ["C[i] = A[i]"]),
], ids=lambda x: getattr(x, "__name__", ""))  # fmt: skip
def test_what_is_added_to_a_name_of_the_program_is_its_new_value(body, lines):
    assert built(body) == of_text(*lines)


@pytest.mark.parametrize(("compare", "text"), [
    (lambda A, B, i: A[i] == B[i], "A[i] == B[i]"), (lambda A, B, i: A[i] != B[i], "A[i] != B[i]"),
    (lambda A, B, i: 2 == A[i], "A[i] == 2"), (lambda A, B, i: A[i] != 0.5, "A[i] != 0.5"),
])  # fmt: skip
def test_equality_of_values_is_a_comparison_of_the_kernel(compare, text):
    def body(A, B, C, i):
        C[i] = call("select", compare(A, B, i), A[i], B[i])

    assert built(body) == of_text(f"C[i] = select({text}, A[i], B[i])")


@pytest.mark.parametrize("number", [
    np.float64(0.1), np.float32(0.5), np.float16(2), ml_dtypes.bfloat16(3), np.int64(-3), np.int8(5), np.uint8(200),
    np.bool_(True), Three.THREE,
], ids=lambda n: type(n).__name__)  # fmt: skip
def test_numbers_of_numpy_are_the_numbers_they_are(number):
    plain = number.item() if isinstance(number, np.generic) else int(number)

    def body(A, B, C, i):
        C[i] = number * A[i] + call("select", number < B[i], A[i] * number, B[i])

    def want(A, B, C, i):
        C[i] = plain * A[i] + call("select", plain < B[i], A[i] * plain, B[i])

    assert built(body) == built(want)
    assert print_kernel(built(body)) == print_kernel(built(want))


def test_whole_numbers_of_numpy_are_sizes_constants_and_indices():
    def body(A, B, C, i):
        C[i * np.int32(1)] = A[np.int64(1)]

    want = parse("kernel k(N, s=2)\n  in A: f32[8]\n  in B: f32[8]\n  inout C: f32[8]\n  forall i < N\n    C[i] = A[1]")
    for shape in ([np.int64(8)], np.int64(8), 8):
        assert built(body, sizes=shape, s=np.int64(2)) == want


@pytest.mark.parametrize("number", [np.complex64(1), np.datetime64(5, "ns"), np.array([1.5]), 10**18, np.uint64(2**63)],
                         ids=lambda n: type(n).__name__)  # fmt: skip
def test_what_is_no_number_of_the_language_is_refused(number):
    for body in (lambda A, B, C, i: A[i] * number, lambda A, B, C, i: number * A[i]):
        with pytest.raises(IsamError, match=r"F604|L103"):
            built(body)


@pytest.mark.parametrize("act", [
    lambda: Builder("k", 5), lambda: Builder(5), lambda: Builder("k", s=1.5), lambda: Builder("k", s="2"),
    lambda: Builder("k").input(5, "f32"), lambda: Builder("k").input("x", "f32", None),
    lambda: Builder("k").forall(where=5, i=3).__enter__(), lambda: Builder("k").temp("x").accumulate("sub", 0, 1),
    lambda: call(5, 1),
])  # fmt: skip
def test_calls_of_the_builder_with_something_else_are_located(act):
    with pytest.raises(IsamError) as e:
        act().kernel()
    assert e.value.diagnostics[0].loc.file.endswith(HERE)
    assert e.value.diagnostics[0].hint


def test_the_dtype_of_a_buffer_is_named_or_numpys():
    b = Builder("k")
    b.input("x", np.float32)
    b.input("y", np.dtype("i4"))
    assert [d.dtype for d in b._buffers] == ["f32", "i32"]
    for wrong in ("f33", 5, None):
        b.input("z", wrong)
        with pytest.raises(IsamError, match=f"L134.*'{wrong}'"):
            b.kernel()
        b = Builder("k")


@pytest.mark.parametrize(("given", "granted"), [
    ("exact", {"exact"}), ("reassociate, finite", {"reassociate", "finite"}), (("exact",), {"exact"}),
    (iter(["exact", "finite"]), {"exact", "finite"}), ("nothing", set()), ((), set()),
])  # fmt: skip
def test_permissions_are_one_or_several(given, granted):
    words = list(given) if not isinstance(given, str) else given

    @kernel(permits=words)
    def f(x: "f32", y: "out f32"):
        y[()] = x[()]

    assert f.permits == granted
    assert Builder("k", permits=words).kernel().permits == granted
    assert parse(print_kernel(f)) == f


@pytest.mark.parametrize("given", ["exakt", ("exact", "reassociate"), "", 5, (5,), "reassociate finite"])
def test_permissions_that_nobody_can_grant_are_refused(given):
    with pytest.raises(IsamError, match="L129"):
        Builder("k", permits=given).kernel()
    with pytest.raises(IsamError, match="L129") as e:
        @kernel(permits=given)
        def f(x: "f32", y: "out f32"):
            y[()] = x[()]
    assert e.value.diagnostics[0].loc.file.endswith(HERE)


def test_values_are_kept_in_sets_and_buffers_are_told_apart():
    b = Builder("k", "N")
    A, B = b.input("A", "f32", "N"), b.input("B", "f32", "N")
    v, w = A[0], A[0]
    assert len({v, w, v}) == 2
    assert [A, B].index(B) == 1
    assert A != B
    for act in (lambda: A == 1, lambda: A != A[0], lambda: A[0] == B, lambda: v in [w]):
        with pytest.raises(IsamError, match="F604"):
            act()


def test_one_axis_is_given_as_itself():
    """As by a loop and by the `forall` of functions; several, and none, as a tuple."""
    b = Builder("k", "N")
    x, y, z = b.input("x", "f32", "N"), b.output("y", "f32", "N"), b.output("z", "f32", "N, N")
    with b.forall(i="N") as i:
        y[i] = x[i]
    with b.forall(i="N", j="N") as (i, j):
        z[i, j] = x[j]
    with b.forall() as none:
        assert none == ()
    assert [str(s.dest) for s in b.kernel().statements] == ["y[i]", "z[i, j]"]


def test_builder_faults_are_located_at_the_call():
    b = Builder("k", "N", "M <=")
    x = b.input("x", "f32", "N, (")
    y = b.output("y", "f33", "N")
    with b.forall(i="N +") as i:
        y[i] = x[i, 0] + call("nothing", x[i, 0])
    with pytest.raises(IsamError) as e:
        b.kernel()
    assert all(d.loc.file.endswith(HERE) and d.loc.line > 0 for d in e.value.diagnostics)
    for act in (lambda: bool(i), lambda: x[object()], lambda: call("exp", None)):
        with pytest.raises(IsamError):
            act()


def test_an_if_inside_a_forall_says_where_conditions_stand() -> None:
    def f(A: "in f32[M, K]", C: "out f32[M]", *, M, K):
        for i in forall(M):
            C[i] = 0
        for i, k in forall(M, K):
            if k < i:
                C[i] += A[i, k]

    with pytest.raises(IsamError, match=r"F603.*an 'if' inside a forall") as e:
        kernel(f)
    assert "where=k < i" in e.value.diagnostics[0].hint
