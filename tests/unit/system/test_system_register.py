"""A function is an instruction only if it does what is declared: wrong ones are refused, with the call that tells."""

from __future__ import annotations

import ctypes
import ctypes.util
import inspect

import numpy as np
import pytest

import isam
from isam.diagnostics import IsamError, Loc
from isam.ir.instruction import Cost
from isam.system.load import load_system
from isam.system.register import OnViews, instruction, parameters

GEMV = """instruction dgemv(M, N)
  in  A: f64[M, N]
  in  x: f64[N]
  out y: f64[M]
  forall i < M
    y[i] = 0
  forall i < M, j < N
    y[i] += A[i, j] * x[j]
"""
ADD = """instruction add8(J % 8)
  in  A: i32[J]
  in  B: i32[J]
  out D: i32[J]
  forall j < J
    D[j] = A[j] + B[j]
"""
AXPY = """instruction axpy(J)
  in    a: f32[]
  in    x: f32[J]
  inout y: f32[J]
  forall j < J
    y[j] += a[] * x[j]
"""
strided = np.lib.stride_tricks.as_strided


def codes(text: str, function, **options) -> list[str]:
    with pytest.raises(IsamError) as e:
        instruction(text, **options)(function)
    assert all(d.hint for d in e.value.diagnostics)
    return [d.code for d in e.value.diagnostics]


def gemv(A, x, y):
    y[...] = A @ x


def test_a_right_function_is_an_instruction_and_stays_a_function() -> None:
    made = instruction(GEMV)(gemv)
    assert made.name == made.instruction.name == "dgemv"
    assert made.trials > 50
    A, x, y = np.arange(6.0).reshape(2, 3), np.array([1.0, 2, 3]), np.zeros(2)
    assert made(A, x, y) is None
    assert y.tolist() == [8.0, 26.0]
    assert list(inspect.signature(made).parameters) == ["A", "x", "y"]
    s = load_system("toy").extended(made)
    assert s.instructions["dgemv"] is made.instruction  # what this CPU takes says nothing of a simulated machine
    assert s.assumed[-1] == "dgemv: issue, latency"
    assert "dgemv" in s.units["mm"].runs
    assert s.homes(made.instruction, "A") == ("dram",)
    with pytest.raises(IsamError, match="already has an instruction"):
        s.extended(made)
    assert instruction(GEMV)(made).function is gemv
    with pytest.raises(IsamError, match="no unit 'vek'"):
        load_system("tiny").extended(made, unit="vek")
    with pytest.raises(IsamError, match="lives in 'vreg'"):
        load_system("tiny").extended(instruction(GEMV, homes={"A": ("vreg",)})(gemv))


def contiguous_only(A, x, y):
    y[...] = strided(A, A.shape, (A.shape[1] * 8, 8)) @ x


def wrong_at_one_column(A, x, y):
    y[...] = A @ x + (A.shape[1] == 1)


def wrong_at_thirteen(A, x, y):
    y[...] = A @ x + (A.shape[1] == 13)


def nothing_at_zero(A, x, y):
    if A.shape[1]:
        y[...] = A @ x


def transposed_when_square(A, x, y):
    y[...] = (A.T if A.shape[0] == A.shape[1] else A) @ x


def accumulates(A, x, y):
    y += A @ x


def forgets_the_last(A, x, y):
    y[:-1] = (A @ x)[:-1]


def single_precision(A, x, y):
    y[...] = (A.astype(np.float32) @ x.astype(np.float32)).astype(np.float64)


def one_too_many(A, x, y):
    y[...] = A @ x
    strided(y, (len(y) + 1,), y.strides)[-1] = 0.5


def fills_the_gaps(A, x, y):
    y[...] = A @ x
    strided(y, (max(0, (len(y) - 1)) * abs(y.strides[0]) // 8 + 1,), (8,))[1::2] = 7


def fails_when_empty(A, x, y):
    y[...] = A @ x
    A[0]


def returns_it(A, x, y):
    return A @ x


def scales_its_input(A, x, y):
    raw = np.ndarray(x.shape, x.dtype, (ctypes.c_char * max(8, 8 * len(x))).from_address(x.ctypes.data))
    raw *= 2
    y[...] = A @ x / 2


@pytest.mark.parametrize(("function", "code"), [
    (contiguous_only, "value"), (wrong_at_one_column, "value"), (wrong_at_thirteen, "value"), (nothing_at_zero,
                                                                                               "unwritten"),
    (transposed_when_square, "value"), (accumulates, "value"), (forgets_the_last,
                                                                "unwritten"), (single_precision, "value"),
    (one_too_many, "outside"), (fails_when_empty, "raises"), (returns_it, "returns"), (scales_its_input, "input"),
])  # fmt: skip
def test_wrong_functions_are_refused(function, code: str) -> None:
    assert f"instruction-{code}" in codes(GEMV, function)


def test_strides_that_the_contract_leaves_free_are_tried() -> None:
    free = {"A": (None, None), "x": (None,), "y": (None,)}

    def rows_contiguous(A, x, y):
        y[...] = strided(A, A.shape, (A.strides[0], 8)) @ x

    instruction(GEMV, strides=free)(gemv)
    instruction(GEMV)(rows_contiguous)
    assert codes(GEMV, rows_contiguous, strides=free) == ["instruction-value"]
    assert "instruction-outside" in codes(GEMV, fills_the_gaps, strides=free)


def test_aliased_inputs_are_tried() -> None:
    def unless_aliased(A, B, D):
        D[...] = A + B if not np.shares_memory(A, B) else A

    def overwrites_then_restores(A, B, D):
        A += B
        D[...] = A

    with np.errstate(all="ignore"):
        instruction(ADD)(lambda A, B, D: np.add(A, B, out=D))
        assert codes(ADD, unless_aliased) == ["instruction-value"]
        assert codes(ADD, overwrites_then_restores) == ["instruction-raises"]  # inputs are read-only


@pytest.mark.filterwarnings("error")
def test_infinities_are_compared_without_a_word() -> None:
    """Of rows without elements the greatest one is -inf in both, whose difference is no number."""
    rows = ("instruction rowmax(M, N)\n  in x: f32[M, N]\n  out y: f32[M]\n  forall i < M\n    y[i] = -inf\n"
            "  forall i < M, j < N\n    y[i] max= x[i, j]")  # fmt: skip
    instruction(rows)(lambda x, y: np.max(x, axis=1, out=y, initial=-np.inf))
    assert codes(rows, lambda x, y: np.max(x, axis=1, out=y, initial=-1e30)) == ["instruction-value"]


def test_integers_wrap_and_sizes_keep_their_divisor() -> None:
    seen: set[int] = set()

    def saturates(A, B, D):
        D[...] = np.clip(A.astype(np.int64) + B, -(2**31), 2**31 - 1)

    def noted(A, B, D):
        seen.add(len(A))
        np.add(A, B, out=D)

    assert codes(ADD, saturates) == ["instruction-value"]
    instruction(ADD)(noted)
    assert {0, 8} < seen
    assert all(n % 8 == 0 for n in seen)


def test_a_function_with_a_bounded_error() -> None:
    text = AXPY.replace("axpy", "vexp").replace("  in    a: f32[]\n", "").replace("inout", "out  ").replace(
        "y[j] += a[] * x[j]", "y[j] = exp(x[j])")  # fmt: skip
    instruction(text)(lambda x, y: np.exp(x, out=y))
    assert codes(text, lambda x, y: np.multiply(np.exp(x), 1.0001, out=y)) == ["instruction-value"]


def test_a_function_that_rounds_where_its_declaration_does_not_is_told_how_it_is_judged() -> None:
    text = ("instruction triple(J)\n  in x: f64[J]\n  out y: f64[J]\n"
            "  forall j < J\n    y[j] = 3 * x[j]\n")  # fmt: skip
    with pytest.raises(IsamError, match="whole numbers are compared with ==, as every operation declared is exact"):
        instruction(text)(lambda x, y: np.multiply(x * 0.1 * 3, 10, out=y))
    with pytest.raises(IsamError) as e:
        instruction(text)(lambda x, y: np.multiply(x, 4, out=y))
    assert "whole numbers" not in str(e.value)


def test_scalars_and_inout() -> None:
    def axpy(a, x, y):
        y += a * x

    def overwrites(a, x, y):
        y[...] = a * x

    instruction(AXPY)(axpy)
    assert codes(AXPY, overwrites) == ["instruction-value"]


def test_c_functions() -> None:
    order = [p[:2] for p in parameters(instruction(AXPY)(lambda a, x, y: np.add(y, a * x, out=y)).instruction)]
    assert order == [("size", "J"), ("address", "a"), ("address", "x"), ("stride", "x"), ("address", "y"),
                     ("stride", "y")]
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)

    def axpy(J, a, x, incx, y, incy):
        for j in range(J):
            at = ctypes.c_float.from_address(y + 4 * incy * j)
            scale = ctypes.c_float.from_address(a).value
            element = ctypes.c_float.from_address(x + 4 * incx * j).value
            at.value = np.float32(at.value) + np.float32(scale) * np.float32(element)

    keep = signature(axpy)
    made = instruction(AXPY)(keep)
    assert made.address == ctypes.cast(keep, ctypes.c_void_p).value
    assert made.instruction.emission["c"] == made.address
    y = np.ones(3, np.float32)
    made(np.array(2, np.float32), np.arange(3, dtype=np.float32), y)
    assert y.tolist() == [1, 3, 5]

    late = signature(lambda J, a, x, incx, y, incy: axpy(J + 1, a, x, incx, y, incy))
    assert codes(AXPY, late) == ["instruction-outside"]


def test_a_crash_is_a_refusal() -> None:
    libc = ctypes.CDLL(ctypes.util.find_library("c"))
    assert codes(AXPY, libc.abort) == ["instruction-crash"]
    assert codes(AXPY, 1 << 20) == ["instruction-crash"]  # an address at which there is nothing
    for number in (3, -5, 0, 1 << 80):
        assert codes(AXPY, number) == ["instruction-function"]


def test_a_child_that_ends_without_a_word_has_proved_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever keeps the child from trying a function, this process does not try it instead."""
    import resource

    def not_allowed(*_: object) -> None:
        raise OSError("not permitted")

    monkeypatch.setattr(resource, "setrlimit", not_allowed)
    assert codes(AXPY, 1 << 20) == ["instruction-crash"]


def test_calls_with_integers_as_emitted_code_makes_them() -> None:
    made = instruction(GEMV)(gemv)
    call = made.instruction.emission["python"]
    assert isinstance(call, OnViews)
    assert call.count == 9
    A, x, y = np.arange(12.0).reshape(3, 4)[:2, :3], np.arange(3.0), np.full(4, -1.0)[::2]
    values = (2, 3, A.ctypes.data, 4, 1, x.ctypes.data, 1, y.ctypes.data, 2)
    call(*values)
    assert y.tolist() == [5.0, 17.0]
    call(A, x, y)
    assert "@python:dgemv/9(i64 $M, i64 $N, ptr %A, i64 $stride(A.0)" in made.instruction.emission["llvm"]


@pytest.mark.parametrize(("text", "options", "code"), [
    ("kernel x(J)\n  in A: f32[J]\n", {}, None),
    ("", {}, None),
    (GEMV.replace("A[i, j] *", "Q[i, j] *"), {}, "L203"),
    (GEMV, {"strides": {"B": (1,)}}, "system-operand"),
    (GEMV, {"strides": {"A": (1,)}}, "system-strides"),
    (GEMV, {"homes": {"a": ("ra",)}}, "system-operand"),
    (GEMV, {"align": {"A": 3}}, "system-align"),
])  # fmt: skip
def test_wrong_declarations(text: str, options: dict, code: str | None) -> None:
    with pytest.raises(IsamError) as e:
        instruction(text, **options)(gemv)
    assert code is None or e.value.diagnostics[0].code == code


@pytest.mark.parametrize("function", [None, "gemv", 0, 1.5, True])
def test_what_is_no_function(function) -> None:
    assert codes(GEMV, function) == ["instruction-function"]


def test_numerics_that_contradict_the_declaration_are_refused() -> None:
    text = "instruction twice(J)\n  inout y: {T}[J]\n{p}  forall j < J\n    y[j] *= 2\n"
    for dtype, permits, ulp in (("i32", "", 1.0), ("f32", "", 1.0), ("f32", "  permits contract\n", 0.0),
                                ("f32", "  permits reassociate\n", 0.0)):  # fmt: skip
        with pytest.raises(IsamError) as e:
            instruction(text.format(T=dtype, p=permits), ulp=ulp)
        assert [d.code for d in e.value.diagnostics] == ["system-numerics"]
    with pytest.raises(IsamError) as e:
        instruction(AXPY, align={"x": 12})
    assert e.value.diagnostics[0].code == "system-align"


SUM = "instruction total(J)\n  in x: f32[J]\n  out y: f32\n{p}  y[] = 0\n  forall j < J\n    y[] += x[j]\n"


def test_a_function_may_sum_as_it_likes_unless_the_declaration_says_otherwise() -> None:
    def total(x, y):
        y[...] = x.astype(np.float64).sum()  # rounded once, not after every term

    made = instruction(SUM.format(p=""))(total)
    assert made.instruction.takes == {"reassociate"}
    for claim in ("exact", "nothing"):
        assert codes(SUM.format(p=f"  permits {claim}\n"), total) == ["instruction-value"]

    def in_order(x, y):
        y[...] = 0
        for j in range(len(x)):
            y[...] = np.float32(y + x[j])

    assert instruction(SUM.format(p="  permits exact\n"))(in_order).instruction.takes == frozenset()


def test_exact_kernels_do_not_use_what_may_reorder() -> None:
    kernel = """kernel product(M, N)
  in  A: f64[M, N]
  in  x: f64[N]
  out y: f64[M]
  {p}forall i < M
    y[i] = 0
  forall i < M, j < N
    y[i] += A[i, j] * x[j]
"""
    sizes = {"M": 5, "N": 6}

    fn = isam.compile(kernel.format(p=""), on="blas", sizes=sizes, require="gemv_new")
    assert [m.instruction.name for m in fn.mapping.mappings] == ["dgemv_n_new"]
    with pytest.raises(IsamError):
        isam.compile(kernel.format(p="permits exact\n  "), on="blas", sizes=sizes, require="gemv_new")


def test_a_cost_is_checked_where_it_is_given() -> None:
    cost = {"issue": "1000 cycles", "latency": "1200 cycles", "per": {"N": "0.5 cycles"}}
    made = instruction(GEMV, cost=cost)(gemv)
    assert made.instruction.cost == Cost(1000.0, 1200.0, per=(("N", 0.5),))
    assert made.seconds is None
    assert instruction(GEMV, cost=made.instruction.cost)(gemv).instruction.cost == made.instruction.cost
    assert load_system("host").extended(made).instructions["dgemv"] is made.instruction
    for wrong, said in [
        ("issue: 1000 cycles", "a cost is no str"), ({"issue": 1000}, "1000 has no unit"),
        ({"issue": "1000 B"}, "'B' is not a unit of cycles"), ({"isue": "1 cycle"}, "a cost has no 'isue'"),
        ({"per": {"X": "1 cycle"}}, "'dgemv' has no size 'X'"), ({"per": "1 cycle"}, "'per' is no str"),
        (Cost(issue=float("nan")), "nan is no number of cycles"), (Cost(issue="1"), "'1' is no number of cycles"),
    ]:  # fmt: skip
        with pytest.raises(IsamError) as e:
            instruction(GEMV, cost=wrong)
        (d,) = e.value.diagnostics
        assert (d.code, d.loc.file) == ("instruction-cost", __file__)
        assert said in d.message
        assert d.hint


DOT = """instruction pydot(K)
  in    A: f32[K]
  in    B: f32[K]
  inout C: f32
  forall k < K
    C[] += A[k] * B[k]
"""


def test_what_calls_take_is_measured_where_no_cost_is_stated() -> None:
    """A Python function does not pass for an instruction of a cycle; one that is said to take a cycle does."""

    def pydot(A, B, C):
        C[...] += A @ B

    host, k = load_system("host"), isam.einsum("mk,nk->mn")
    measured, quick = instruction(DOT)(pydot), instruction(DOT, cost=Cost(issue=0))(pydot)
    assert measured.seconds is not None
    assert 1e-7 < measured.seconds < 1e-2
    machine = host.extended(measured)
    cost = machine.instructions["pydot"].cost
    assert cost.issue == cost.latency >= 256
    assert machine.assumed[-1] == f"pydot: issue, latency ({cost.issue:g} cycles, as measured when it was registered)"
    sizes = {"M": 64, "N": 64, "K": 64}
    assert "pydot" not in str(isam.compile(k, on=machine, sizes=sizes, check=False).mapping)
    assert "as measured when" in isam.compile(k, on=machine, sizes=sizes, check=False).report()
    assert "pydot" in str(isam.compile(k, on=host.extended(quick), sizes=sizes, check=False).mapping)


def test_a_c_function_is_measured_without_what_python_adds() -> None:
    text = "instruction bytes8(N)\n  in x: u8[N]\n  out y: u8[N]\n  forall i < N\n    y[i] = x[i]\n"

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)
    def copy(N, x, dx, y, dy):
        ctypes.memmove(y, x, N)

    made = instruction(text, strides={"x": (1,), "y": (1,)})(copy)
    assert made.seconds is not None
    assert made.seconds < 1e-4


def test_what_is_wrong_is_where_the_function_stands() -> None:
    line = inspect.getsourcelines(accumulates)[1]
    with pytest.raises(IsamError) as e:
        instruction(GEMV)(accumulates)
    assert {(d.loc.file, d.loc.line) for d in e.value.diagnostics} == {(__file__, line)}
    assert instruction(GEMV)(gemv).instruction.loc.file == __file__


def test_a_function_that_raises_while_it_is_measured_is_told() -> None:
    calls = [0]

    def tired(A: np.ndarray, D: np.ndarray) -> None:
        calls[0] += 1
        if calls[0] > most:
            raise RuntimeError("no more")
        D[...] = A + A

    text = "instruction twice(N)\n  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = A[i] + A[i]\n"
    most = 1 << 30
    most, calls[0] = isam.instruction(text)(tired).trials, 0  # what comes after these is timed
    with pytest.raises(IsamError, match=r"raises RuntimeError: no more \(while its calls are measured\)"):
        isam.instruction(text)(tired)


def test_every_fault_of_what_is_declared_is_told_where_it_stands() -> None:
    """Contracts and cost at once, at the line of the call."""
    with pytest.raises(IsamError) as e:
        instruction(GEMV, strides={"z": (1,), "x": (1, 1)}, align={"y": 3},
                    cost={"isue": "3 cycles", "latency": 5, "per": {"K": "2 cycles"}})  # fmt: skip
    found = e.value.diagnostics
    assert [d.code for d in found] == ["system-operand", "system-strides", "system-align", *["instruction-cost"] * 3]
    assert {d.loc for d in found} == {Loc(__file__, found[0].loc.line, 1)}
    assert all(d.hint for d in found)


def test_a_machine_is_extended_by_instructions() -> None:
    for given in (lambda x: x, GEMV, None):
        with pytest.raises(IsamError, match="is no instruction") as e:
            load_system("toy").extended(given)  # type: ignore[arg-type]
        assert "isam.instruction" in e.value.diagnostics[0].hint
