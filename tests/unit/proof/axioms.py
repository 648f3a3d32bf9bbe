"""Pairs of kernels that an axiom makes the same, and pairs that look like it: conditions, choices, casts, functions,
what a loop has not reached."""

# ruff: noqa: E501  (tables: a pair is one entry)

from __future__ import annotations

from tests.unit.proof.rewritings import BYTES, VECTOR, Pair, _one

FLAGS = "in x: i8[8]\nin z: i8[8]\nin b: bool[8]\nin c: bool[8]\nout y: bool[8]"
CHOICE = "in b: bool[8]\nin x: f32[8]\nin z: f32[8]\nout y: f32[8]"
FINITE, EXACT = "permits reassociate, finite\n", "permits exact\n"
HALVES = "in x: bf16[8]\nin z: bf16[8]\nout y: bf16[8]"
WIDE = "in x: f32[8]\nin z: f32[8]\nout y: f32[8]"
MANY = "in x: f32[8]\nin z: f32[8]\nin w: f32[8, 6]\nout y: f32[8]"
SUMMED = """
temp s: f32[8]
forall i < 8
  s[i] = x[i] + z[i]
forall i < {}, k < {}
  s[i] += w[i, k]
forall i < 8
  y[i] = exp(s[i])
"""
ALONE = """
forall i < 8
  y[i] = exp(x[i]) * exp(z[i])
"""
STEPS = "inout s: f32[8]\nin x: f32[T, 8]\nout y: f32[8]"
LOOP = """
loop t < T
  forall j < 8
    s[j] = s[j] * 0.5 + x[t, j]
forall j < 8
  y[j] = s[j]
"""
ROOM = """
temp r: f32[10]
forall j < 8
  r[j] = s[j]
loop t < T
  forall j < 8
    r[j] = r[j] * 0.5 + x[t, j]
forall j < 8
  s[j] = r[j]
  y[j] = r[j]
"""
REACHED = "in x: f32[T, 4]\ninout h: f32[4]\nout y: f32[T, 4]"
ADDED = """
loop t < T
  forall j < 4
    a[j] = exp(x[t, j])
    a[j] += h[j]
    h[j] = tanh(a[j])
    y[t, j] = h[j]
"""
BEFORE = """
temp p: f32[T, 4]
forall t < T, j < 4
  p[t, j] = exp(x[t, j])
loop t < T
  forall j < 4
    p[t, j] += h[j]
    h[j] = tanh(p[t, j])
    y[t, j] = h[j]
"""
PADDED = """
forall i < 8
  p[i] = 0
forall i < 4
  p[i] = x[i]
forall i < 8
  y[i] = max(p[i], z[i])
"""
MASKED = """
temp m: {0}[8]
forall i < 8
  m[i] = 0
forall i < 4
  m[i] = 1
forall i < 8
  y[i] = max(m[i] * x[i], z[i])
"""
HALF = """
forall i < 8
  y[i] = {0}
forall i < 4
  y[i] = max(x[i], z[i])
"""
TWO_WEIGHTS = """
temp t: f32[8]
forall i < 8
  t[i] = {0} * x[i]
forall i < {2}
  t[i] = {1} * x[i]
forall i < 8
  y[i] = exp(t[i])
"""
INNER = """
forall t < 9, j < 4
  p[t, j] = x[t, j]
loop t < 9
  forall j < 4
    y[t, j] = p[t, j]
  loop u < 9
    forall j < 4
      p[u, j] = 0
"""

TERMS = "in a: i8[2]\nin b: i8[3]\nout y: i8[2]"
TOGETHER = """
temp t: i8[2, 3]
temp s: i32[2]
forall i < 2, j < 3
  t[i, j] = a[i] + b[j]
forall i < 2
  s[i] = 0
forall i < 2, j < 3
  s[i] += i32(t[i, j])
forall i < 2
  y[i] = i8(s[i])
"""
APART = """
forall i < 2
  y[i] = a[i]
forall i < 2, j < 3
  y[i] += b[j]
"""
ZEROS = """
temp t: i8[8]
forall i < 4
  t[i] = 0
forall i < 4
  t[i + 4] = x[i + 4] - x[i + 4]
forall i < 8
  y[i] = max(t[i], x[i])
"""
SAME = (
    Pair("twice half of all numbers times a product, where numbers wrap", "in x: u8[8]\nin z: u8[8]\nout y: u8[8]", _one("x[i] * z[i] * 128 + z[i] * x[i] * 128"), _one("0")),
    Pair("what every term of a sum has, in a cast of the sum", TERMS, TOGETHER, APART.replace("= a[i]", "= a[i] * 3")),
    Pair("numbers compared as they are", "in x: bool[8]\nout y: bool[8]", _one("1 < 2"), _one("2 > 1")),
    Pair("numbers compared with parts", "in x: bool[8]\nout y: bool[8]", _one("0.5 < 0.25"), _one("0.25 > 0.5")),
    Pair("a number cast", "in x: i8[8]\nout y: i8[8]", _one("i8(300)"), _one("44")),
    Pair("zeros of two kinds below max", "in x: i8[8]\nout y: i8[8]", ZEROS, _one("max(0, x[i])")),
    Pair("not less is greater or equal, of integers", FLAGS, _one("x[i] <= z[i]"), _one("not (x[i] > z[i])")),
    Pair("not less is greater or equal, where all is finite", FINITE + WIDE.replace("out y: f32", "out y: bool"), _one("x[i] <= z[i]"), _one("not (x[i] > z[i])")),
    Pair("not equal", FLAGS, _one("x[i] != z[i]"), _one("not (z[i] == x[i])")),
    Pair("de Morgan", FLAGS, _one("not (b[i] and c[i])"), _one("not b[i] or not c[i]")),
    Pair("and as a choice", FLAGS, _one("b[i] and c[i]"), _one("select(b[i], c[i], false)")),
    Pair("or as a choice", FLAGS, _one("b[i] or c[i]"), _one("select(c[i], true, b[i])")),
    Pair("not as a choice", FLAGS, _one("not b[i]"), _one("select(b[i], false, true)")),
    Pair("a condition twice", FLAGS, _one("b[i] and (b[i] or c[i])"), _one("b[i]")),
    Pair("a condition twice, by two ways of reading", FLAGS + "\ntemp t: bool[8, 8]", _one("b[i]"),
         "forall i < 8, j < 8\n  t[i, j] = b[i] and b[j]\nforall i < 8\n  y[i] = t[i, i]"),
    Pair("a choice as arithmetic", FINITE + CHOICE, _one("select(b[i], x[i], z[i])"), _one("z[i] + f32(b[i]) * (x[i] - z[i])")),
    Pair("a choice as arithmetic, of bytes", FLAGS.replace("out y: bool", "out y: i8"), _one("select(b[i], x[i], z[i])"), _one("x[i] * i8(b[i]) + z[i] - z[i] * i8(b[i])")),
    Pair("a choice the other way round", CHOICE, _one("select(b[i], x[i], z[i])"), _one("select(not b[i], z[i], x[i])")),
    Pair("a choice in a choice", FINITE + CHOICE, _one("select(b[i], select(b[i], x[i], 5), z[i])"), _one("select(b[i], x[i], z[i])")),
    Pair("a condition as a number, by way of another", CHOICE, _one("f32(b[i]) * x[i]"), _one("f32(i32(b[i])) * x[i]")),
    Pair("the opposite as a number", FINITE + CHOICE, _one("f32(not b[i]) * x[i]"), _one("x[i] - f32(b[i]) * x[i]")),
    Pair("a disjunction as a number", FLAGS.replace("out y: bool", "out y: i8"), _one("i8(b[i] or c[i])"), _one("i8(b[i]) + i8(c[i]) - i8(b[i] and c[i])")),
    Pair("a reciprocal of a reciprocal", VECTOR, _one("sqrt(x[i])"), _one("1 / rsqrt(x[i])")),
    Pair("an exponential of a sum", FINITE + VECTOR, _one("exp(x[i] - z[i])"), _one("exp(x[i]) * exp(-z[i])")),
    Pair("an exponential of a sum of one array", FINITE + VECTOR, _one("exp(x[i] + x[7 - i])"), _one("exp(x[7 - i]) * exp(x[i])")),
    Pair("fractions that no float is", VECTOR, _one("x[i] * 0.1 + x[i] * 0.2"), _one("x[i] * 0.3")),
    Pair("exact: the size of an integer", EXACT + BYTES, _one("abs(x[i])"), _one("max(-x[i], x[i])")),
    Pair("exact: the size of an integer beside floats", EXACT + "in x: i8[8]\nin z: f32[8]\nout y: f32[8]", _one("f32(abs(x[i])) * z[i]"), _one("z[i] * f32(max(-x[i], x[i]))")),
    Pair("exact: nothing is subtracted", EXACT + VECTOR, _one("x[i] - 0"), _one("x[i]")),
    Pair("exact: the other sign, twice", EXACT + VECTOR, _one("-x[i] * -1 - z[i]"), _one("x[i] + -z[i]")),
    Pair("two weights below a function", VECTOR, TWO_WEIGHTS.format(3, 2, 4), TWO_WEIGHTS.format(2, 3, 8).replace("i < 8\n  t[i] = 3", "i < 8 where i >= 4\n  t[i] = 3")),
    Pair("zeros below max", FINITE + VECTOR, MASKED.format("f32"), HALF.format("max(0, z[i])")),
    Pair("zeros of bytes below max", BYTES, MASKED.format("i8"), HALF.format("max(0, z[i])")),
    Pair("exact: done in a wide type", EXACT + WIDE, _one("x[i] * z[i]"), _one("f32(f64(x[i]) * f64(z[i]))")),
    Pair("exact: a difference in a wide type", EXACT + WIDE, _one("x[i] - z[i]"), _one("f32(f64(x[i]) - f64(z[i]))")),
    Pair("exact: a root in a wide type", EXACT + WIDE, _one("sqrt(x[i])"), _one("f32(sqrt(f64(x[i])))")),
    Pair("exact: a half that both types hold", EXACT + WIDE, _one("x[i] / 0.5 + 0.25"), _one("f32(f64(f32(f64(x[i]) / 0.5)) + 0.25)")),
    Pair("exact: bf16 done in f64", EXACT + HALVES, _one("x[i] * z[i]"), _one("bf16(f64(x[i]) * f64(z[i]))")),
    Pair("exact: of numbers widened twice", EXACT + HALVES.replace("out y: bf16", "out y: f32"), _one("f32(x[i]) * f32(z[i])"), _one("f32(f64(f32(x[i])) * f64(f32(z[i])))")),
    Pair("bytes done in a wide type", BYTES, _one("x[i] * z[i] - 3"), _one("i8(i32(x[i]) * i32(z[i]) - 3)")),
    Pair("a sum of bytes in a wide type", "in x: i8[8]\nout y: i8", "y[] = 0\nforall i < 8\n  y[] += x[i]", "temp s: i32\ns[] = 0\nforall i < 8\n  s[] += i32(x[i])\ny[] = i8(s[])"),
    Pair("the greatest in a wide type", BYTES, _one("max(x[i], z[i])"), _one("i8(max(i32(x[i]), i32(z[i])))")),
    Pair("the greatest, widened", BYTES.replace("out y: i8", "out y: i32"), _one("i32(max(x[i], z[i]))"), _one("max(i32(x[i]), i32(z[i]))")),
    Pair("exact: relu in a wide type", EXACT + VECTOR, _one("max(x[i], 0)"), _one("f32(max(f64(x[i]), 0))")),
    Pair("an array times itself, turned", "in x: f32[4, 3, 4]\nout y: f32[3]", *(f"forall j < 3\n  y[j] = 0\nforall i < 4, j < 3, k < 4\n  y[j] += {a} * {b}" for a, b in (("x[i, j, k]", "x[k, j, i]"), ("x[k, j, i]", "x[i, j, k]")))),
    Pair("room to spare beside what a loop carries", STEPS, LOOP, ROOM, "T"),
    Pair("added to where no step has been", REACHED, ADDED, BEFORE, "T"),
)
FORGED = (
    Pair("half of all numbers times a square, where numbers wrap", "in x: u8[8]\nout y: u8[8]", _one("x[i] * x[i] * 128"), _one("0")),
    Pair("numbers compared with parts, the other way round", "in x: bool[8]\nout y: bool[8]", _one("0.5 < 0.25"), _one("0.25 < 0.5")),
    Pair("zeros of one kind forgotten below max", "in x: i8[8]\nout y: i8[8]", ZEROS,
         "forall i < 4\n  y[i] = x[i]\nforall i < 4\n  y[i + 4] = max(0, x[i + 4])"),
    Pair("what every term of a sum has, taken once in a cast of the sum", TERMS, TOGETHER, APART),
    Pair("not less, of what may be NaN", WIDE.replace("out y: f32", "out y: bool"), _one("x[i] <= z[i]"), _one("not (x[i] > z[i])")),
    Pair("not less is not less or equal", FLAGS, _one("x[i] <= z[i]"), _one("not (x[i] >= z[i])")),
    Pair("or for and", FLAGS, _one("b[i] and c[i]"), _one("b[i] or c[i]")),
    Pair("de Morgan forgotten", FLAGS, _one("not (b[i] and c[i])"), _one("not b[i] and not c[i]")),
    Pair("a condition beside a square", FLAGS, _one("b[i] and (b[i] and c[i])"), _one("b[i]")),
    Pair("an exponential of many terms, left out", FINITE + MANY, SUMMED.format(8, 6), ALONE),
    Pair("an exponential of a term that some points have, left out", FINITE + MANY, SUMMED.format(4, 1), ALONE),
    Pair("another element of a condition", FLAGS, _one("b[i] and b[7 - i]"), _one("b[i]")),
    Pair("the square of a number", BYTES, _one("x[i] * x[i]"), _one("x[i]")),
    Pair("a sum of conditions is a number", FLAGS.replace("out y: bool", "out y: i8"), _one("i8(b[i]) + i8(b[i])"), _one("i8(b[i])")),
    Pair("a choice as arithmetic without the permission", CHOICE, _one("select(b[i], x[i], z[i])"), _one("z[i] + f32(b[i]) * (x[i] - z[i])")),
    Pair("a choice, its branches exchanged", FINITE + CHOICE, _one("select(b[i], x[i], z[i])"), _one("select(b[i], z[i], x[i])")),
    Pair("a choice by the opposite", CHOICE, _one("select(b[i], x[i], z[i])"), _one("select(not b[i], x[i], z[i])")),
    Pair("a condition as another number", CHOICE, _one("f32(b[i]) * x[i]"), _one("f32(-i32(b[i])) * x[i]")),
    Pair("a reciprocal too few", VECTOR, _one("sqrt(x[i])"), _one("rsqrt(x[i])")),
    Pair("a reciprocal of a multiple", VECTOR, _one("x[i]"), _one("1 / (2 / x[i])")),
    Pair("a reciprocal of two reciprocals", VECTOR, _one("x[i]"), _one("1 / (1 / x[i] + 2 / x[7 - i])")),
    Pair("a reciprocal of two reciprocals, of the other", VECTOR, _one("x[7 - i] / 2"), _one("1 / (1 / x[i] + 2 / x[7 - i])")),
    Pair("two weights below a function, exchanged", VECTOR, TWO_WEIGHTS.format(3, 2, 4), TWO_WEIGHTS.format(2, 3, 4)),
    Pair("two weights below a function, one for both", VECTOR, TWO_WEIGHTS.format(3, 2, 4), TWO_WEIGHTS.format(3, 3, 4)),
    Pair("two weights below a function, one element late", VECTOR, TWO_WEIGHTS.format(3, 2, 4), TWO_WEIGHTS.format(3, 2, 5)),
    Pair("zeros left out below max", FINITE + VECTOR, MASKED.format("f32"), HALF.format("z[i]")),
    Pair("zeros of bytes left out below max", BYTES, MASKED.format("i8"), HALF.format("z[i]")),
    Pair("a border left out below max", FINITE + VECTOR + "\ntemp p: f32[8]", PADDED, PADDED.replace("max(p[i], z[i])", "z[i]") + "\nforall i < 4\n  y[i] = max(x[i], z[i])"),
    *(Pair(f"another order with permits {p}", f"permits {p}\n{VECTOR}", _one("(x[i] + z[i]) + 0.5"), _one("x[i] + (z[i] + 0.5)")) for p in ("contract", "finite", "exact")),
    Pair("an exponential of a sum without the permission", VECTOR, _one("exp(x[i] + z[i])"), _one("exp(x[i]) * exp(z[i])")),
    Pair("a sum of exponentials", FINITE + VECTOR, _one("exp(x[i] + z[i])"), _one("exp(x[i]) + exp(z[i])")),
    Pair("an exponential of a difference", FINITE + VECTOR, _one("exp(x[i] - z[i])"), _one("exp(x[i]) * exp(z[i])")),
    Pair("an exponential of one term of two", FINITE + VECTOR, _one("exp(x[i] + x[7 - i])"), _one("exp(x[i]) * exp(x[i])")),
    Pair("exact: a type too little wider", EXACT + HALVES.replace("bf16", "f32"), _one("x[i] * z[i]"), _one("f32(bf16(x[i]) * bf16(z[i]))")),
    Pair("exact: bf16 in f32, whose range is no wider", EXACT + HALVES, _one("x[i] * z[i]"), _one("bf16(f32(x[i]) * f32(z[i]))")),
    Pair("exact: two operations before the rounding", EXACT + WIDE, _one("x[i] * z[i] + x[i]"), _one("f32(f64(x[i]) * f64(z[i]) + f64(x[i]))")),
    Pair("exact: a number that the narrow type rounds", EXACT + WIDE, _one("x[i] + 0.1"), _one("f32(f64(x[i]) + 0.1)")),
    Pair("exact: an operand that was wide", EXACT + "in x: f32[8]\nin z: f64[8]\nout y: f32[8]", _one("x[i] * f32(z[i])"), _one("f32(f64(x[i]) * z[i])")),
    Pair("exact: a function that is not rounded once", EXACT + WIDE, _one("exp(x[i])"), _one("f32(exp(f64(x[i])))")),
    *(Pair(f"exact: zeros of two signs, {a}", EXACT + VECTOR, _one(a), _one(b)) for a, b in (
        ("1 / (x[i] + 0)", "1 / x[i]"), ("1 / (x[i] - 0)", "1 / (x[i] + 0)"), ("1 / (0 - x[i])", "1 / -x[i]"), ("x[i] / 0.0", "x[i] / -0.0"),
        ("x[i] / (0.0 * -1.0)", "x[i] / 0.0"), ("x[i] / -1e-99", "x[i] / 1e-99"))),
    Pair("saturated, then wrapped", "in x: i32[8]\nout y: u8[8]", _one("u8(x[i])"), _one("u8(sat_i8(x[i]))")),
    Pair("bytes that saturate", BYTES, _one("x[i] + z[i]"), _one("sat_i8(i32(x[i]) + i32(z[i]))")),
    Pair("a quotient of bytes that wrapped", BYTES, _one("(x[i] + z[i]) / 2"), _one("i8((i32(x[i]) + i32(z[i])) / 2)")),
    Pair("the greatest of what wraps", BYTES, _one("max(x[i] + z[i], z[i])"), _one("i8(max(i32(x[i]) + i32(z[i]), i32(z[i])))")),
    Pair("a negative number without its sign", "in x: i8[8]\nout y: i32[8]\ntemp t: i8[8]", "forall i < 8\n  t[i] = x[i]\nt[0] = -1\nforall i < 8\n  y[i] = i32(t[i])",
         "forall i < 8\n  y[i] = i32(x[i])\ny[0] = 255"),
    Pair("the greatest in a type that wraps", "in x: i32[8]\nin z: i32[8]\nout y: i32[8]", _one("max(x[i], z[i])"), _one("i32(max(i8(x[i]), i8(z[i])))")),
    Pair("the greatest with the other sign", BYTES, _one("max(x[i], z[i])"), _one("i8(max(u8(x[i]), u8(z[i])))")),
    Pair("room to spare that is seen", STEPS, LOOP, ROOM.replace("j < 8\n  r[j] = s[j]", "j < 10\n  r[j] = 0\nforall j < 8\n  r[j] = s[j]").replace("y[j] = r[j]", "y[j] = r[j + 2]"), "T"),
    Pair("added to where a step has been", REACHED, ADDED, BEFORE.replace("p[t, j] += h[j]", "p[0, j] += h[j]"), "T"),
    Pair("read where a later step will be", REACHED, ADDED, BEFORE.replace("h[j] = tanh(p[t, j])", "h[j] = tanh(p[T - 1, j])"), "T"),
    Pair("written by the step before", REACHED, "loop t < T\n  forall j < 4\n    y[t, j] = x[t, j]",
         "temp p: f32[T + 1, 4]\nforall t < T, j < 4\n  p[t, j] = x[t, j]\nloop t < T\n  forall j < 4\n    y[t, j] = p[t, j]\n    p[t + 1, j] = 0", "T"),
    Pair("written by some step before, backwards", REACHED.replace("T", "9"), "loop t < 9\n  forall j < 4\n    y[t, j] = x[t, j]",
         "temp p: f32[9, 4]\nforall t < 9, j < 4\n  p[t, j] = x[t, j]\nloop t < 9\n  forall j < 4\n    y[t, j] = p[t, j]\n    p[8 - t, j] = 0"),
    Pair("written by an inner loop", REACHED.replace("T", "9") + "\ntemp p: f32[9, 4]", INNER.replace("= p[t, j]", "= x[t, j]"), INNER),
    *(Pair(f"exact: {a} for {b}", EXACT + VECTOR, _one(a), _one(b)) for a, b in (
        ("x[i] + z[i]", "x[i] * z[i]"), ("x[i] - z[i]", "x[i] + z[i]"), ("x[i] - z[i]", "z[i] - x[i]"), ("x[i] * 0", "x[i]"),
        ("x[i] * 0", "0"), ("x[i] * 1", "1"), ("x[i] * 2", "x[i]"), ("x[i] * -1", "x[i]"), ("x[i] + 1", "x[i]"),
        ("x[i] - 0.5", "0.5 - x[i]"), ("-x[i] * z[i]", "x[i] * z[i]"), ("x[i] / z[i]", "z[i] / x[i]"), ("x[i] / z[i]", "x[i] * (1 / z[i])"),
        ("x[i] + x[i]", "x[i] * 2 + 0 * z[i]"), ("x[i] * z[i] * x[i]", "x[i] * x[i] * z[i]"), ("(x[i] + z[i]) - z[i]", "x[i]"),
        ("max(x[i], z[i])", "min(x[i], z[i])"), ("tanh(x[i])", "2 * sigmoid(2 * x[i]) - 1"), ("abs(x[i])", "max(x[i], z[i])"))),
    *(Pair(f"exact: {what}", "permits exact\nin x: f32[8]\nout y: f32", "y[] = 0\nforall i < 8\n  y[] += x[i]", after) for what, after in (
        ("a product for a sum", "y[] = 0\nforall i < 8\n  y[] *= x[i]"), ("a sum from one", "y[] = 1\nforall i < 8\n  y[] += x[i]"),
        ("a sum backwards", "y[] = 0\nforall i < 8\n  y[] += x[7 - i]"), ("a sum of seven", "y[] = 0\nforall i < 7\n  y[] += x[i]"),
        ("a sum, then half of it again", "y[] = 0\nforall i < 8\n  y[] += x[i]\nforall i < 4\n  y[] += x[i]"),
        ("a sum by halves", "a[] = 0\nb[] = 0\nforall i < 4\n  a[] += x[i]\nforall i < 4\n  b[] += x[i + 4]\ny[] = a[] + b[]"),
        ("every other first", "y[] = 0\nforall o < 2, n < 4\n  y[] += x[2 * n + o]"))),
)  # fmt: skip
