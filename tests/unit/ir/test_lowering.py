"""What the parser makes of expressions, temporaries, constants and literals, judged by the interpreter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isam.diagnostics import IsamError
from isam.ir import interp
from isam.ir.kernel import PERMITS_DEFAULT, Kernel, Literal, Sym
from isam.ir.text import parse, parse_file, parse_instruction, parse_kernel, print_kernel
from isam.ir.verify import verify

RNG = np.random.default_rng(3)


def elementwise(expr: str, dtype: str = "f64", out: str = "f64") -> Kernel:
    return parse(f"kernel k(M, N)\n  in a: {dtype}[M, N]\n  in b: {dtype}[N]\n  out y: {out}[M, N]\n"
                 f"  forall i < M, j < N\n    y[i, j] = {expr}\n")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


EXPRESSIONS = {
    "a[i, j] + b[j] * 2": lambda a, b: a + b * 2,
    "(a[i, j] + b[j]) * 2": lambda a, b: (a + b) * 2,
    "a[i, j] - b[j] - 1": lambda a, b: a - b - 1,
    "a[i, j] - (b[j] - 1)": lambda a, b: a - (b - 1),
    "a[i, j] / b[j] / 4": lambda a, b: a / b / 4,
    "-a[i, j] * -b[j]": lambda a, b: a * b,
    "--a[i, j]": lambda a, b: a,
    "max(a[i, j], b[j], 0.5)": lambda a, b: np.maximum(np.maximum(a, b), 0.5),
    "select(a[i, j] < b[j], a[i, j], b[j] * 3)": lambda a, b: np.where(a < b, a, b * 3),
    "select(not (a[i, j] < b[j]) and b[j] > 0 or a[i, j] == 0, 1, 2)":
        lambda a, b: np.where((~(a < b) & (b > 0)) | (a == 0), 1, 2),
    "select(true, a[i, j], b[j])": lambda a, b: a,
    "2 + 3 * 4 - 6 / 3": lambda a, b: a * 0 + 12,
    "a[i, j] * (1.0 / 4)": lambda a, b: a / 4,
    "abs(a[i, j]) + floor(b[j]) + ceil(b[j]) + round(a[i, j])":
        lambda a, b: np.abs(a) + np.floor(b) + np.ceil(b) + np.round(a),
    "f64(f32(a[i, j]))": lambda a, b: a.astype(np.float32).astype(np.float64),
    "f64(i32(a[i, j] * 10))": lambda a, b: np.trunc(a * 10),
    "b[j]": lambda a, b: a * 0 + b,
    "b[N - 1 - j]": lambda a, b: a * 0 + b[::-1],
    "exp(0.0) + a[i, j]": lambda a, b: 1 + a,
}


@pytest.mark.parametrize("expr", EXPRESSIONS)
def test_expressions_mean_what_they_say(expr):
    k = elementwise(expr)
    assert verify(k) == []
    assert parse(print_kernel(k)) == k
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=4)
    np.testing.assert_array_equal(interp.run(k, {"a": a, "b": b})["y"], EXPRESSIONS[expr](a, b))


def test_functions_are_close_to_numpy():
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=4)
    for name, f in {"exp": np.exp, "tanh": np.tanh, "sigmoid": sigmoid, "sin": np.sin, "cos": np.cos}.items():
        np.testing.assert_allclose(interp.run(elementwise(f"{name}(a[i, j])"), {"a": a, "b": b})["y"], f(a), rtol=1e-14)


def test_subexpressions_use_the_axes_of_their_operands():
    k = elementwise("a[i, j] * exp(b[j])")
    assert [str(a.dest) for a in k.statements] == ["t1[j]", "y[i, j]"]
    k = elementwise("a[i, j] * exp(b[j])".replace("b[j]", "b[j]")).with_sizes({"M": 0})
    assert verify(k) == []


def block(statement: str, where: str):
    """One statement over i and j with a condition, after a temporary that the condition guards too."""
    return parse("kernel k(M, N)\n  in a: f32[M]\n  in b: f32[N]\n  in c: i32[N]\n  inout y: f32[M, N]\n"
                 f"  forall i < M, j < N where {where}\n    u[i, j] = a[i] + b[j]\n    {statement}\n")


def test_a_subexpression_keeps_the_conditions_on_its_own_axes_only():
    k = block("y[i, j] = exp(b[j + 1]) * abs(a[i])", "j + 1 < N, i + j < M")
    (first, second) = [s.domain for s in k.statements if s.dest.buffer in ("t1", "t2")]
    assert first.names == ("j",)
    assert [str(w) for w in first.where] == ["N - j - 2"]  # b[j + 1] is in range because of it
    assert (second.names, second.where) == (("i",), ())
    assert verify(k) == []


def test_a_condition_on_other_axes_stays_where_the_operand_needs_it():
    k = block("y[i, j] = exp(a[j]) + 1", "i + j < M, j < M + i")  # a[j] is in range because of i
    assert next(s.domain for s in k.statements if s.dest.buffer == "t1").names == ("i", "j")
    k = block("y[i, j] = exp(u[i, 0]) + 1", "j < 1")  # u is written only where the condition holds
    assert next(s.domain for s in k.statements if s.dest.buffer == "t1").names == ("i", "j")
    k = block("y[i, j] = f32(c[0] / c[j]) * a[i]", "j <= i")  # a division stays where it was asked for
    assert next(s.domain for s in k.statements if s.dest.buffer == "t1").names == ("i", "j")


def test_a_subexpression_is_not_narrowed_out_of_bounds():
    k = parse("kernel k(M, N)\n  in x: f32[M + N - 1]\n  inout y: f32[M, N]\n  forall i < M, j < N\n"
              "    y[i, j] += exp(x[i]) * exp(x[i + j])\n")
    assert verify(k) == []
    assert [len(s.domain.axes) for s in k.statements] == [2, 2, 2, 2]


def test_select_that_reads_its_destination():
    k = parse("kernel k(M)\n  in c: f64[M]\n  inout y: f64[M]\n  forall i < M\n"
              "    y[i] = select(c[i] > 0, y[i] * 2, c[i])\n"
              "    y[i] = select(c[i] < -1, y[i], y[i] + 1)\n    y[i] = select(c[i] > 1, 7, y[i])\n")
    c, y = RNG.normal(size=50) * 2, RNG.normal(size=50)
    want = np.where(c > 0, y * 2, c)
    want = np.where(c < -1, want, want + 1)
    want = np.where(c > 1, 7, want)
    np.testing.assert_array_equal(interp.run(k, {"c": c, "y": y})["y"], want)
    assert parse(print_kernel(k)) == k


@pytest.mark.parametrize(("expr", "value"), [
    ("i8(300)", 44), ("sat_i8(300)", 127), ("sat_i8(-300)", -128), ("i8(-129)", 127), ("i8(2.9)", 2), ("i8(-2.9)", -2),
    ("sat_i8(inf)", 127), ("3", 3), ("-3", -3), ("2 * 3 - 10 / 5", 4), ("max(1, 2)", None),
])
def test_numbers_are_cast_by_the_parser(expr, value):
    k = parse(f"kernel k(M)\n  out y: i8[M]\n  forall i < M\n    y[i] = {expr}\n")
    assert verify(k) == []
    if value is not None:
        assert k.statements[0].sources == (Literal(value),)


def test_literals_print_and_come_back():
    texts = ["0", "-1", "0.1", "1e-30", "-inf", "inf", "nan", "1e+300", "123456789012345678"]
    for text in texts:
        k = elementwise(f"a[i, j] + {text}")
        (literal,) = [x for x in k.statements[0].sources if isinstance(x, Literal)]
        assert float(literal.value) == float(text) or math.isnan(literal.value)
        assert parse(print_kernel(k)) == k
    k = parse("kernel k()\n  out y: bool\n  y[] = true\n")
    assert "y[] = true" in print_kernel(k)
    assert parse(print_kernel(k)) == k


def test_heads():
    k = parse("kernel k(M <= 16, N % 8, 2 <= K < 9, L == 4, P >= 3, Q % 4 <= 64, stride=1, d=-2)\n  inout x: f32\n"
              "  x = 1\n")
    assert k.syms == (Sym("M", 0, 16), Sym("N", 0, None, 8), Sym("K", 2, 8), Sym("L", 4, 4), Sym("P", 3),
                      Sym("Q", 0, 64, 4))
    assert k.params == (("stride", 1), ("d", -2))
    assert parse(print_kernel(k)) == k


def test_constants_multiply_and_are_values():
    k = parse("kernel k(M, s=2)\n  in x: f32[s * M + s]\n  out y: f32[M]\n  forall i < M\n"
              "    y[i] = x[s * i] * s / (s * 2)\n")
    assert [str(x) for x in k.statements[0].sources] == ["x[2*i]", "2"]
    three = k.with_params(s=3)
    assert str(three.buffer("x").shape[0]) == "3*M + 3"
    assert three.params == (("s", 3),)
    assert three.with_params(s=2) == k
    with pytest.raises(IsamError, match="L206"):
        parse(print_kernel(k)).with_params(s=3)
    with pytest.raises(IsamError, match="L205"):
        k.with_params(t=3)


@pytest.mark.parametrize(("expr", "casts"), [
    ("f32(a[i, j]) * f32(a[i, j])", 2),  # as instructions have it that multiply narrow numbers
    ("f32(a[i, j]) * f32(b[j]) + f32(a[i, j]) * f32(b[j])", 2),
    ("f32(a[i, j]) * f32(a[i, j]) + f32(a[i, j]) * f32(a[i, j])", 2),  # one square, twice
    ("pow(f32(a[i, j]), 2)", 2),
    ("f32(a[i, j]) * sigmoid(f32(a[i, j]))", 1),
    ("f32(a[i, j]) + f32(a[i, j])", 1),
])  # fmt: skip
def test_factors_of_a_product_are_converted_each_by_itself(expr: str, casts: int):
    k = elementwise(expr, "bf16", "f32")
    assert sum(s.op == "cast" for s in k.statements) == casts


@pytest.mark.parametrize(("power", "product"), [
    ("pow(a[i, j], 2)", "a[i, j] * a[i, j]"),
    ("pow(a[i, j] - b[j], 2.0)", "(a[i, j] - b[j]) * (a[i, j] - b[j])"),
    ("pow(pow(a[i, j], 4 / 2), 2)", "a[i, j] * a[i, j] * (a[i, j] * a[i, j])"),
])  # fmt: skip
def test_a_square_is_a_product(power: str, product: str):
    """Correctly rounded, and one multiplication: as a function of two arguments it took twenty times as long."""
    k = elementwise(power)
    assert k == elementwise(product)
    assert {s.op for s in k.statements} <= {"mul", "sub"}
    assert "pow" in {s.op for s in elementwise("pow(a[i, j], 3) + pow(2, b[j])").statements}


def test_undeclared_temporaries_get_their_box_and_dtype():
    k = parse("kernel k(N, H, W)\n  in x: i8[H, W]\n  out y: i32[H, W]\n  forall i < H + 2, j < W + 2\n"
              "    p[i, j] = 0\n"
              "  forall h < H, w < W\n    p[h + 1, w + 1] = x[h, w]\n  forall h < H, w < W\n"
              "    y[h, w] = i32(p[h + 2, w])\n")
    p = k.buffer("p")
    assert (p.role, p.declared, p.dtype, [str(d) for d in p.shape]) == ("temp", False, "i8", ["H + 2", "W + 2"])
    k = parse("kernel k(M)\n  out y: bool[M]\n  forall i < M\n    c[i] = 1\n    d[i] = 0.5\n    y[i] = c[i] < 2\n"
              "    z[i] = true\n    w[i] = d[i] + 1\n    v[i] = w[i] * 3\n")
    assert {n: k.buffer(n).dtype for n in "cdzwv"} == {"c": "i32", "d": "f32", "z": "bool", "w": "f32", "v": "f32"}


def test_temporaries_that_the_parser_would_not_find_print_as_auto():
    k = parse("kernel k(M)\n  in x: f32[M]\n  out y: f32[M]\n  auto t: f32[M + 5]\n  forall i < M\n    t[i] = x[i]\n"
              "    y[i] = t[i]\n")
    assert not k.buffer("t").declared
    assert "auto t: f32[M + 5]" in print_kernel(k)
    assert parse(print_kernel(k)) == k


def test_a_where_that_bounds_the_index_bounds_the_box():
    k = parse("kernel k(N, K)\n  in x: f32[N + K]\n  out y: f32[N]\n  forall n < N + K where n < N\n    t[n] = x[n]\n"
              "  forall n < N\n    y[n] = t[n]\n")
    assert [str(d) for d in k.buffer("t").shape] == ["N"]


def test_permits():
    def permits(line: str) -> frozenset[str]:
        return parse(f"kernel k(M)\n{line}  inout x: f32[M]\n  forall i < M\n    x[i] += 1\n").permits

    assert permits("") == PERMITS_DEFAULT
    assert permits("  permits exact\n") == {"exact"}
    assert permits("  permits reassociate, finite\n") == {"reassociate", "finite"}
    assert permits("  permits nothing\n") == frozenset()


def test_layouts_of_text_that_are_allowed():
    text = ("\n\n      kernel k(M,\n               N)  # head\r\n        in x: f32[M,\n           N]\n"
            "        out y: f32[M, N]\n"
            "        # comment\n        forall i < M,\n               j < N\n           y[i, j] = x[i,\n  j] * (2 +\n"
            " 3)\n")
    assert parse(text) == parse("kernel k(M, N)\n in x: f32[M, N]\n out y: f32[M, N]\n forall 0 <= i < M, j < N:\n"
                                "  y[i, j] = x[i, j] * 5")


def test_doors_say_what_they_expected():
    kernel, instruction = "kernel k()\n  out y: f32\n  y[] = 0\n", "instruction i()\n  out y: f32\n  y[] = 0\n"
    assert parse_kernel(kernel).name == "k"
    assert parse_instruction(instruction).name == "i"
    for door, text in ((parse_kernel, instruction), (parse_instruction, kernel), (parse, kernel + instruction),
                       (parse, "")):
        with pytest.raises(IsamError, match="expected"):
            door(text)
    assert len(parse_file(kernel + instruction).kernels) == 1


def test_where_forms_agree():
    def where(text: str) -> Kernel:
        return parse(f"kernel k(M, N)\n  inout y: f32[M, N]\n  forall i < M, j < N where {text}\n    y[i, j] = 0\n")

    assert where("1 <= i + j < N") == where("1 <= i + j, i + j < N") == where("i + j >= 1 and i + j <= N - 1")
    assert where("i == 2 * j") == where("i <= 2 * j, 2 * j <= i")
    assert parse(print_kernel(where("i - j > -3"))) == where("j < i + 3")
