"""The text form: every documented example parses, prints and comes back equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from isam.diagnostics import IsamError
from isam.ir.text import parse, parse_file, parse_kernel, print_instruction, print_kernel
from isam.ir.verify import verify

SURFACE = Path(__file__).parents[2] / "text" / "surface.isam"
MODULE = parse_file(SURFACE.read_text(), "surface.isam")


def test_every_documented_example_is_there():
    assert [k.name for k in MODULE.kernels] == ["matmul", "conv2d", "sepconv", "softmax", "rnn", "conv_same"]
    assert [i.name for i in MODULE.instructions] == ["mm4"]


@pytest.mark.parametrize("kernel", MODULE.kernels, ids=lambda k: k.name)
def test_kernels_round_trip(kernel):
    again = parse(print_kernel(kernel))
    assert again == kernel
    assert print_kernel(again) == print_kernel(kernel)


def test_instructions_round_trip():
    for i in MODULE.instructions:
        assert parse(print_instruction(i)) == i


def test_concrete_kernels_round_trip():
    for k in MODULE.kernels:
        concrete = k.with_sizes({s.name: 3 + n for n, s in enumerate(k.syms)})
        assert parse(print_kernel(concrete)) == concrete


def test_parameters_multiply():
    conv = next(k for k in MODULE.kernels if k.name == "conv2d")
    assert str(conv.with_params(stride=2).buffer("x").shape[2]) == "2*H + R - 2"
    assert conv.with_params(stride=2).params == (("stride", 2), ("dilation", 1))


def test_the_language_page_shows_kernels_that_hold():
    page = (Path(__file__).parents[3] / "docs" / "language.md").read_text()
    shown = [block.split("```")[0] for block in page.split("```isam\n")[1:]]
    assert len(shown) >= 2
    for text in shown:
        kernel = parse(text)
        assert verify(kernel) == []
        assert parse(print_kernel(kernel)) == kernel
    (printed,) = (text for text in shown if text.startswith("kernel printed"))
    assert print_kernel(parse(printed)).split() == printed.split()


def test_a_kernel_shows_itself_in_short() -> None:
    text = """kernel wsqd(Q, P, D)
  in    q: f32[Q, D]
  in    p: f32[P, D]
  const w: f32[D]
  out   d: f32[Q, P]
  forall i < Q, j < P
    d[i, j] = 0
  forall i < Q, j < P, k < D
    d[i, j] += w[k] * (q[i, k] - p[j, k])
"""
    k = parse_kernel(text)
    assert repr(k) == "<kernel wsqd(Q, P, D): 2 in, 1 const, 1 out, 4 statements>"
    assert repr(parse_kernel("kernel one()\n  out y: f32\n  y[] = 0\n")) == "<kernel one(): 1 out, 1 statement>"
    assert parse_kernel(str(k)) == k
    assert hash(parse_kernel(text)) == hash(k)


@pytest.mark.parametrize("op", ["max", "min"])
def test_a_single_number_accumulates_extrema_without_brackets(op):
    text = f"kernel k(N)\n  in  x: f32[N]\n  out y: f32\n  y = 0\n  forall i < N\n    y {op}= x[i]\n"
    assert [s.op for s in parse_kernel(text).statements] == ["copy", op]


@pytest.mark.parametrize(("number", "shown", "why"), [
    ("9223372036854775808", "'9223372036854775808' is too large", "18 digits"),
    ("1" * 24, f"'{'1' * 24}' is too large", "18 digits"), ("1" * 25, f"'{'1' * 24}...' is too large", "18 digits"),
    ("0." + "1" * 59, f"'0.{'1' * 22}...' is too long", "60 characters"),
    ("0" * 60 + "1", f"'{'0' * 24}...' is too long", "60 characters"), ("1e400", "'1e400' is too large", "finite"),
])  # fmt: skip
def test_numbers_that_the_language_does_not_hold(number, shown, why):
    with pytest.raises(IsamError) as e:
        parse(f"kernel k(N)\n  in x: f64[N]\n  out y: f64[N]\n  forall i < N\n    y[i] = x[i] + {number}\n")
    (d,) = e.value.diagnostics
    assert (d.code, d.message, why in d.hint) == ("L103", f"the number {shown}", True)


def test_the_largest_numbers_that_it_holds():
    for number in ("999999999999999999", "-999999999999999999", "0" * 42 + "9" * 18, "0." + "1" * 58):
        k = parse(f"kernel k(N)\n  in x: f64[N]\n  out y: f64[N]\n  forall i < N\n    y[i] = x[i] + {number}\n")
        assert parse(str(k)) == k
