"""Pairs of kernels: rewritings that keep the meaning, and forged ones, each wrong in one way."""

# ruff: noqa: E501  (tables: a pair is one entry)

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """Bodies over the arguments ``head``; ``sizes``: the kernel's sizes."""

    what: str
    head: str
    before: str
    after: str
    sizes: str = ""

    def text(self, body: str) -> str:
        lines = [f"kernel k({self.sizes})", *(f"  {line}" for line in self.head.strip().split("\n"))]
        return "\n".join(lines + [f"  {line}" for line in body.strip("\n").split("\n")]) + "\n"


VECTOR = "in x: f32[8]\nin z: f32[8]\nout y: f32[8]"
MATMUL = "in A: f32[M, K]\nin B: f32[K, N]\nout C: f32[M, N]"
PRODUCT = """
forall i < M, j < N
  C[i, j] = 0
forall i < M, j < N, k < K
  C[i, j] += A[i, k] * B[k, j]
"""
FIXED = "in A: f32[6, 8]\nin B: f32[8, 4]\nout C: f32[6, 4]"
SMALL = """
forall i < 6, j < 4
  C[i, j] = 0
forall i < 6, j < 4, k < 8
  C[i, j] += A[i, k] * B[k, j]
"""
SPLIT = """
forall i < 6, j < 4
  C[i, j] = 0
forall i < 6, j < 4, o < 2, n < 4
  C[i, j] += A[i, 4 * o + n] * B[4 * o + n, j]
"""
FACTORED = "in a: f32[3, 4, 2]\nin p: f32[3, 4]\nout y: f32[3]"
UNFACTORED = """
forall i < 3
  y[i] = 0
forall i < 3, k < 4, r < 2
  y[i] += a[i, k, r] * p[i, k]
"""
FACTOR = """
forall i < 3, k < 4
  z[i, k] = 0
forall i < 3, k < 4, r < 2
  z[i, k] += a[i, k, r]
forall i < 3
  y[i] = 0
forall i < 3, k < 4
  y[i] += z[i, k] * p[i, k]
"""
CONV = "permits reassociate, finite\nin x: f32[6]\nin w: f32[3]\nout y: f32[6]"
WHERE = """
forall v < 6
  y[v] = 0
forall v < 6, s < 3 where 0 <= v + s - 1, v + s - 1 < 6
  y[v] += x[v + s - 1] * w[s]
"""
PADDED = """
temp p: f32[8]
forall v < 8
  p[v] = 0
forall v < 6
  p[v + 1] = x[v]
forall v < 6
  y[v] = 0
forall v < 6, s < 3
  y[v] += p[v + s] * w[s]
"""
WINOGRAD_HEAD = "permits reassociate, finite\nin d: f32[4]\nin g: f32[3]\nout y: f32[2]"
DIRECT = """
forall i < 2
  y[i] = 0
forall i < 2, r < 3
  y[i] += d[i + r] * g[r]
"""
WINOGRAD = """
m[0] = (d[0] - d[2]) * g[0]
m[1] = (d[1] + d[2]) * (0.5 * (g[0] + g[1] + g[2]))
m[2] = (d[2] - d[1]) * (0.5 * (g[0] - g[1] + g[2]))
m[3] = (d[1] - d[3]) * g[2]
y[0] = m[0] + m[1] + m[2]
y[1] = m[1] - m[2] - m[3]
"""
STRASSEN_HEAD = "permits reassociate, finite\nin a: f32[2, 2, 4, 4]\nin b: f32[2, 2, 4, 4]\nout c: f32[2, 2, 4, 4]"
BLOCKS = """
forall p < 2, q < 2, i < 4, j < 4
  c[p, q, i, j] = 0
forall p < 2, q < 2, r < 2, i < 4, j < 4, k < 4
  c[p, q, i, j] += a[p, r, i, k] * b[r, q, k, j]
"""


def _strassen() -> str:
    left = ["{0} + {3}", "{2} + {3}", "{0}", "{3}", "{0} + {1}", "{2} - {0}", "{1} - {3}"]
    right = ["{0} + {3}", "{0}", "{1} - {3}", "{2} - {0}", "{3}", "{0} + {1}", "{2} + {3}"]
    lines = []
    for n, (x, y) in enumerate(zip(left, right, strict=True)):
        one = x.format(*(f"a[{p}, {q}, i, k]" for p in (0, 1) for q in (0, 1)))
        two = y.format(*(f"b[{p}, {q}, k, j]" for p in (0, 1) for q in (0, 1)))
        lines += ["forall i < 4, k < 4", f"  s{n}[i, k] = {one}", "forall k < 4, j < 4", f"  t{n}[k, j] = {two}",
                  "forall i < 4, j < 4", f"  m{n}[i, j] = 0", "forall i < 4, j < 4, k < 4",
                  f"  m{n}[i, j] += s{n}[i, k] * t{n}[k, j]"]  # fmt: skip
    sums = {"0, 0": "0 + 3 - 4 + 6", "0, 1": "2 + 4", "1, 0": "1 + 3", "1, 1": "0 - 1 + 2 + 5"}
    lines.append("forall i < 4, j < 4")
    for at, terms in sums.items():
        text = " ".join(t if t in "+-" else f"m{t}[i, j]" for t in terms.split())
        lines.append(f"  c[{at}, i, j] = {text}")
    return "\n".join(lines)


STRASSEN = _strassen()
LOOP_HEAD = "in x: f32[T, 3]\nin w: f32[3, 3]\nin u: f32[3, 3]\ninout h: f32[3]\nout ys: f32[T, 3]"
RNN = """
loop t < T
  forall j < 3
    a[j] = 0
  forall j < 3, k < 3
    a[j] += x[t, k] * w[k, j]
  forall j < 3, k < 3
    a[j] += h[k] * u[k, j]
  forall j < 3
    h[j] = tanh(a[j])
    ys[t, j] = h[j]
"""
ROWS_HEAD = "in x: f32[T, 3]\nout y: f32[T + 1, 3]\nout z: f32[3]"
ROWS = """
forall j < 3
  y[0, j] = 2
loop t < T
  forall j < 3
    y[t + 1, j] = y[t, j] * x[t, j]
forall j < 3
  z[j] = y[T, j]
"""
LATE_HEAD = "in x: f32[T + 3]\ninout y: f32[T + 3]\nout z: f32"
LATE = """
loop t < T - 2
  y[t + 3] = y[t + 2] + x[t]
z = y[T]
"""
LATE_HELD = """
temp s: f32
s = y[2]
loop t < T - 2
  y[t + 3] = s + x[t]
  s = y[t + 3]
z = s
"""
ROWS_HELD = """
temp s: f32[3]
forall j < 3
  y[0, j] = 2
  s[j] = 2
loop t < T
  forall j < 3
    y[t + 1, j] = s[j] * x[t, j]
  forall j < 3
    s[j] = y[t + 1, j]
forall j < 3
  z[j] = s[j]
"""

HOISTED = """
temp p: f32[T, 3]
forall t < T, j < 3
  p[t, j] = 0
forall t < T, j < 3, k < 3
  p[t, j] += x[t, k] * w[k, j]
loop t < T
  forall j < 3
    a[j] = p[t, j]
  forall j < 3, k < 3
    a[j] += h[k] * u[k, j]
  forall j < 3
    h[j] = tanh(a[j])
    ys[t, j] = h[j]
"""
SOME_HEAD = LOOP_HEAD.replace("T", "6")
SOME, SOME_HOISTED = (text.replace("T", "6") for text in (RNN, HOISTED))
IN_BLOCKS = """
temp p: f32[2, 3]
loop c < 3
  forall t < 2, j < 3
    p[t, j] = 0
  forall t < 2, j < 3, k < 3
    p[t, j] += x[2 * c + t, k] * w[k, j]
  loop s < 2
    forall j < 3
      a[j] = p[s, j]
    forall j < 3, k < 3
      a[j] += h[k] * u[k, j]
    forall j < 3
      h[j] = tanh(a[j])
      ys[2 * c + s, j] = h[j]
"""
SOFT_HEAD = "in x: f32[M, N]\nout y: f32[M, N]"
SOFTMAX = """
forall i < M
  m[i] = -inf
  s[i] = 0
forall i < M, j < N
  m[i] max= x[i, j]
forall i < M, j < N
  e[i, j] = exp(x[i, j] - m[i])
  s[i] += e[i, j]
forall i < M, j < N
  y[i, j] = e[i, j] / s[i]
"""
RECOMPUTED = """
temp e: f32[N, M]
forall r < M
  m[r] = -inf
forall c < N, r < M
  m[r] max= x[r, c]
forall c < N, r < M
  e[c, r] = exp(x[r, c] - m[r])
forall r < M
  s[r] = 0
forall r < M, c < N
  s[r] += e[c, r]
forall r < M
  q[r] = 1 / s[r]
forall r < M, c < N
  y[r, c] = exp(x[r, c] - m[r]) * q[r]
"""
EXACT = "permits exact\nin x: f32[8]\ninout y: f32"


def _one(expression: str) -> str:
    return f"forall i < 8\n  y[i] = {expression}"


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, (old, text)
    return text.replace(old, new)

CHOSEN = "forall i < 8\n  y[i] = z[i]\nforall i < 8\n  y[i] = select(x[i] < z[i], x[i], y[i])"
BYTES = "in x: i8[8]\nin z: i8[8]\nout y: i8[8]"
PIECES = """
forall i < 4
  t[i] = x[i]
forall i < 8 where i >= 4
  t[i] = x[11 - i]
forall i < 8
  y[i] = max(t[i], 0)
"""

FACTORS = "in x: f32[3, 2]\nin z: f32[3, 2]\nout y: f32[3, 3]"
PRODUCTS = "forall a < 3, b < 3\n  y[a, b] = 1\nforall a < 3, b < 3, i < 2\n  y[a, b] *= x[a, i]\nforall a < 3, b < 3, i < 2\n  y[a, b] *= z[b, i]"
PRODUCT_OF_PRODUCTS = "forall a < 3\n  p[a] = 1\nforall a < 3, i < 2\n  p[a] *= x[a, i]\nforall b < 3\n  q[b] = 1\nforall b < 3, i < 2\n  q[b] *= z[b, i]\nforall a < 3, b < 3\n  y[a, b] = p[a] * q[b]"

SAME = (
    Pair("names and order of axes", MATMUL, PRODUCT, """
forall b < N, a < M
  C[a, b] = 0
forall c < K, b < N, a < M
  C[a, b] += B[c, b] * A[a, c]
""", "M, N, K"),
    Pair("an axis is split", FIXED, SMALL, SPLIT),
    Pair("an axis is reversed", FIXED, SMALL, SMALL.replace("A[i, k] * B[k, j]", "A[i, 7 - k] * B[7 - k, j]")),
    Pair("a sum is peeled", FIXED, SMALL, SMALL.replace("k < 8", "k < 7") + """
forall i < 6, j < 4
  C[i, j] += A[i, 7] * B[7, j]
"""),
    Pair("a sum is nested", MATMUL, PRODUCT, """
temp p: f32[M, N, K]
forall i < M, j < N, k < K
  p[i, j, k] = A[i, k] * B[k, j]
forall i < M, j < N
  c[i, j] = 0
forall i < M, j < N, k < K
  c[i, j] += p[i, j, k]
forall i < M, j < N
  C[i, j] = c[i, j]
""", "M, N, K"),
    Pair("an operand is transposed first", MATMUL, PRODUCT, """
temp T: f32[N, K]
forall k < K, j < N
  T[j, k] = B[k, j]
forall i < M, j < N
  C[i, j] = 0
forall i < M, j < N, k < K
  C[i, j] += A[i, k] * T[j, k]
""", "M, N, K"),
    Pair("a term is factored out", FACTORED, UNFACTORED, FACTOR),
    Pair("distributed", VECTOR, _one("(x[i] + z[i]) * x[i]"), _one("x[i] * x[i] + z[i] * x[i]")),
    Pair("a border of zeros", CONV, WHERE, PADDED),
    Pair("unfolded", CONV, PADDED, PADDED.replace("y[v] += p[v + s] * w[s]", "c[v, s] = p[v + s]\n  y[v] += c[v, s] * w[s]")),
    Pair("Winograd F(2, 3)", WINOGRAD_HEAD, DIRECT, WINOGRAD),
    Pair("Strassen, one level", STRASSEN_HEAD, BLOCKS, STRASSEN),
    Pair("an input projection is hoisted", LOOP_HEAD, RNN, HOISTED, "T"),
    Pair("an input projection is made block by block", SOME_HEAD, SOME_HOISTED, IN_BLOCKS),
    Pair("a loop in blocks, an input projection before each", SOME_HEAD, SOME, IN_BLOCKS),
    Pair("a row is held", ROWS_HEAD, ROWS, ROWS_HELD, "T"),
    Pair("a row is held no more", ROWS_HEAD, ROWS_HELD, ROWS, "T"),
    Pair("a row is held over some steps", LATE_HEAD, LATE, LATE_HELD, "T >= 2"),
    Pair("what is held goes to the row", ROWS_HEAD, ROWS, ROWS_HELD.replace("y[t + 1, j] = s", "s[j] = s")
         .replace("s[j] = y[t + 1, j]", "y[t + 1, j] = s[j]"), "T"),
    Pair("a row is held the other way round", ROWS_HEAD, ROWS, ROWS_HELD.replace("= s[j]", "= s[2 - j]")
         .replace("s[j] = y[t + 1, j]", "s[2 - j] = y[t + 1, j]"), "T"),
    Pair("a statement that nobody reads", VECTOR, _one("x[i] + z[i]"), _one("x[i] + z[i]") + "\n  d[i] = exp(x[i])"),
    Pair("recomputed, in another layout, with a reciprocal", SOFT_HEAD, SOFTMAX, RECOMPUTED, "M, N"),
    Pair("sigmoid by tanh", VECTOR, _one("sigmoid(x[i])"), _one("0.5 * tanh(0.5 * x[i]) + 0.5")),
    Pair("subtraction by addition", VECTOR, _one("x[i] - z[i]"), _one("x[i] + -z[i]")),
    Pair("max, in another order, twice", VECTOR, _one("max(max(x[i], z[i]), 0)"), _one("max(0, max(z[i], max(x[i], z[i])))")),
    Pair("integers wrap", "in x: i8[8]\nin z: i8[8]\nout y: i8[8]", _one("(x[i] + z[i]) * 3"), _one("x[i] * 3 - (126 * z[i] + 127 * z[i])")),
    Pair("a cast of a cast", "in x: i8[8]\nout y: i32[8]", _one("i32(x[i])"), _one("i32(i16(x[i]))")),
    Pair("a number by way of a type that holds it", "in x: i8[8]\nout y: f32[8]", _one("f32(x[i])"), _one("f32(i32(x[i]))")),
    Pair("a cast there and back", "in x: i8[8]\nout y: i8[8]", _one("x[i]"), _one("sat_i8(i32(x[i]))")),
    Pair("exact: a split axis keeps the order", EXACT, "forall i < 8\n  y[] += x[i]", "forall o < 2, n < 4\n  y[] += x[4 * o + n]"),
    Pair("exact: products commute", "permits exact\n" + VECTOR, _one("x[i] * z[i] - 1"), _one("z[i] * x[i] + -1")),
    Pair("the same element read twice", VECTOR, _one("x[i] * x[7 - i]"), _one("x[7 - i] * x[i]")),
    Pair("equal terms are counted", "in x: f32[8]\nout y: f32", "y[] = 0\nforall i < 8, k < 3\n  y[] += x[i]", "y[] = 0\nforall i < 8\n  y[] += 3 * x[i]"),
    Pair("equal terms with gaps between them", "in x: f32[8]\nin w: f32[24]\nout y: f32",
         "y[] = 0\nforall i < 8, j < 7, k < 3, l < 8\n  t[i, j, k, l] = x[i] * w[2*j + 3*k + 1]\n  y[] += t[i, j, k, l]",
         "z[] = 0\nforall i < 8, l < 8\n  z[] += x[i]\ny[] = 0\nforall j < 7, k < 3\n  t[j, k] = z[] * w[2*j + 3*k + 1]\n  y[] += t[j, k]"),
    Pair("equal terms, another number each time", "in x: f32[4]\nout y: f32", "y[] = 0\nforall i < 4, k < 4 where k <= i\n  y[] += x[i]",
         "y[] = x[0] + 2 * x[1] + 3 * x[2] + 4 * x[3]"),
    Pair("sums of sums, counted", "permits reassociate, finite\nin x: f32[4]\nout y: f32[3]", "forall j < 3\n  y[j] = 0\nforall j < 3, i < 4, k < 3 where k <= i + j\n  y[j] += x[i]",
         "forall j < 3, i < 4\n  c[j, i] = 0\nforall j < 3, i < 4, k < 3 where k <= i + j\n  c[j, i] += 1\nforall j < 3\n  y[j] = 0\n"
         "forall i < 4, j < 3\n  y[j] += c[j, i] * x[3 - i] - c[j, i] * x[3 - i] + c[j, i] * x[i]"),
    Pair("equal terms, as many as a size", "in x: f32[8]\nin w: f32[K]\nout y: f32", "y[] = 0\nforall i < 8, k < K\n  y[] += x[i]",
         "y[] = 0\nforall k < K, i < 8\n  y[] += x[7 - i]", "K"),
    Pair("a wrapped number, widened", "in x: i8[8]\nout y: i32[8]\ntemp t: i8[8]",
         "forall i < 8\n  t[i] = x[i] - x[i] + 100\nforall i < 8\n  t[i] += 100\n  y[i] = i32(t[i])", _one("-56")),
    Pair("exact: a number that is held", "permits exact\nin x: f32[8]\nout y: f64[8]\ntemp t: f32[8]",
         "forall i < 8\n  t[i] = 0.375\n  y[i] = f64(t[i])", _one("0.375")),
    Pair("exact: numbers that round to one", "permits exact\nin x: f32[8]\nout y: f32[8]", _one("16777217"), _one("16777216")),
    Pair("a number beyond a type", "in x: f16[8]\nout y: f16[8]", _one("-1e9"), _one("-inf")),
    Pair("a conditional assignment is a minimum", BYTES, CHOSEN, _one("min(x[i], z[i])")),
    Pair("two pieces below max", VECTOR + "\ntemp t: f32[8]", PIECES, _one("max(x[i], 0)").replace("i < 8", "i < 4") + "\nforall i < 8 where i >= 4\n  y[i] = max(x[11 - i], 0)"),
    Pair("powers", VECTOR, _one("pow(x[i], 3) + pow(z[i], 1)"), _one("x[i] * x[i] * x[i] + z[i]")),
    Pair("a reciprocal of a number", VECTOR, _one("x[i] / 4"), _one("x[i] * 0.25")),
    Pair("a logistic function, spelled out", VECTOR, _one("sigmoid(x[i])"), _one("1 / (1 + exp(-x[i]))")),
    Pair("a reciprocal root", VECTOR, _one("rsqrt(x[i])"), _one("1 / sqrt(x[i])")),
    Pair("an absolute value", VECTOR, _one("abs(x[i])"), _one("max(-x[i], x[i])")),
    Pair("comparisons, mirrored", BYTES, _one("select(x[i] >= z[i], x[i], z[i])"), _one("select(z[i] <= x[i], x[i], z[i])")),
    Pair("comparisons, mirrored, strict", BYTES, _one("select(x[i] > z[i], 1, 2)"), _one("select(z[i] < x[i], 1, 2)")),
    Pair("products of products", FACTORS, PRODUCTS, PRODUCT_OF_PRODUCTS),
)  # fmt: skip

FORGED = (
    Pair("a coefficient of the sum", FIXED, SMALL, SPLIT.replace("B[4 * o + n, j]", "B[4 * n + o, j]").replace("n < 4", "n < 2")
         .replace("A[i, 4 * o + n]", "A[i, 4 * n + o]").replace("o < 2", "o < 3")),
    Pair("one operand split otherwise", FIXED, SMALL, SPLIT.replace("B[4 * o + n, j]", "B[2 * n + o, j]")),
    Pair("an axis lost its last element", FIXED, SMALL, SMALL.replace("k < 8", "k < 7")),
    Pair("an element is added twice", FIXED, SMALL, SMALL + "\nforall i < 6, j < 4\n  C[i, j] += A[i, 7] * B[7, j]"),
    Pair("a reversed axis without its access", FIXED, SMALL, SMALL.replace("A[i, k] * B[k, j]", "A[i, 7 - k] * B[k, j]")),
    Pair("no zeroing", "in A: f32[6, 8]\nin B: f32[8, 4]\ninout C: f32[6, 4]", SMALL, SMALL.split("forall i < 6, j < 4, k < 8")[1]
         .join(("forall i < 6, j < 4, k < 8", ""))),
    Pair("zeroed too late", FIXED, SMALL, SMALL + "\nforall i < 6, j < 4\n  C[i, j] = 0"),
    Pair("zeroed in part", "in A: f32[6, 8]\nin B: f32[8, 4]\ninout C: f32[6, 4]", SMALL, changed(SMALL, "forall i < 6, j < 4\n", "forall i < 5, j < 4\n")),
    Pair("a transposed result", "in A: f32[6, 8]\nin B: f32[8, 6]\nout C: f32[6, 6]", SMALL.replace("j < 4", "j < 6"),
         SMALL.replace("j < 4", "j < 6").replace("C[i, j]", "C[j, i]")),
    Pair("a factor that depends on the summed axis", FACTORED.replace("p: f32[3, 4]", "p: f32[3, 4, 2]"),
         UNFACTORED.replace("p[i, k]", "p[i, k, r]"), FACTOR.replace("p[i, k]", "p[i, k, 0]")),
    Pair("the factored sum kept for all k", FACTORED, UNFACTORED, FACTOR.replace("z[i, k]", "z[i]").replace("forall i < 3, k < 4\n  z", "forall i < 3\n  z")),
    Pair("the factored sum not zeroed", FACTORED, UNFACTORED, FACTOR.replace("forall i < 3, k < 4\n  z[i, k] = 0\n", "forall i < 3, k < 4\n  z[i, k] = p[i, k]\n")),
    Pair("a product for a sum", FACTORED, UNFACTORED, FACTOR.replace("z[i, k] += a[i, k, r]", "z[i, k] *= a[i, k, r]")),
    Pair("half distributed", VECTOR, _one("(x[i] + z[i]) * x[i]"), _one("x[i] * x[i] + z[i]")),
    Pair("minus is not associative", VECTOR, _one("x[i] - (z[i] - x[i])"), _one("(x[i] - z[i]) - x[i]")),
    Pair("minus does not commute", VECTOR, _one("x[i] - z[i]"), _one("z[i] - x[i]")),
    Pair("division does not commute", VECTOR, _one("x[i] / z[i]"), _one("z[i] / x[i]")),
    Pair("division does not distribute over its divisor", VECTOR, _one("1 / (x[i] + z[i])"), _one("1 / x[i] + 1 / z[i]")),
    Pair("the border begins one element late", CONV, WHERE, PADDED.replace("p[v + 1] = x[v]", "p[v + 2] = x[v]")),
    Pair("the border is read one element late", CONV, WHERE, PADDED.replace("f32[8]", "f32[9]").replace("v < 8", "v < 9").replace("p[v + s]", "p[v + s + 1]")),
    Pair("the border is one element narrow", CONV, WHERE, changed(PADDED, "forall v < 6\n  p[v + 1]", "forall v < 5\n  p[v + 1]")),
    Pair("the border holds ones", CONV, WHERE, changed(PADDED, "p[v] = 0", "p[v] = 1")),
    Pair("the border is written last", CONV, WHERE, PADDED.replace("forall v < 8\n  p[v] = 0\nforall v < 6\n  p[v + 1] = x[v]", "forall v < 8\n  p[v] = 0")),
    Pair("padding without the permission", CONV.replace(", finite", ""), WHERE, PADDED),
    Pair("a condition off by one", CONV, WHERE, WHERE.replace("0 <= v + s - 1", "1 <= v + s - 1")),
    Pair("a condition forgotten", "permits reassociate, finite\nin x: f32[8]\nin w: f32[3]\nout y: f32[6]",
         WHERE.replace("x[v + s - 1]", "x[v + s]"), changed(WHERE, " where 0 <= v + s - 1, v + s - 1 < 6", "").replace("x[v + s - 1]", "x[v + s]")),
    Pair("unfolded with the wrong stride", CONV, PADDED, PADDED.replace("forall v < 6, s < 3\n  y[v] += p[v + s] * w[s]",
         "forall v < 6, s < 3\n  c[v, s] = p[v + 2 - s]\n  y[v] += c[v, s] * w[s]")),
    Pair("a Winograd constant", WINOGRAD_HEAD, DIRECT, WINOGRAD.replace("0.5 * (g[0] + g[1] + g[2])", "0.25 * (g[0] + g[1] + g[2])")),
    Pair("a Winograd sign", WINOGRAD_HEAD, DIRECT, WINOGRAD.replace("m[1] - m[2] - m[3]", "m[1] - m[2] + m[3]")),
    Pair("a Winograd difference", WINOGRAD_HEAD, DIRECT, WINOGRAD.replace("(d[2] - d[1])", "(d[1] - d[2])")),
    Pair("Winograd without the permission", WINOGRAD_HEAD.replace("reassociate, finite", "exact"), DIRECT, WINOGRAD),
    Pair("a Strassen sign", STRASSEN_HEAD, BLOCKS, STRASSEN.replace("m0[i, j] - m1[i, j]", "m0[i, j] + m1[i, j]")),
    Pair("a Strassen product", STRASSEN_HEAD, BLOCKS, STRASSEN.replace("m5[i, j] += s5[i, k] * t5[k, j]", "m5[i, j] += s5[i, k] * t4[k, j]")),
    Pair("a Strassen block", STRASSEN_HEAD, BLOCKS, STRASSEN.replace("c[0, 1, i", "c[_, 1, i").replace("c[1, 0, i", "c[0, 1, i").replace("c[_, 1, i", "c[1, 0, i")),
    Pair("the carried part is hoisted", LOOP_HEAD, RNN, HOISTED.replace("p[t, j] += x[t, k] * w[k, j]", "p[t, j] += h[k] * u[k, j]")
         .replace("a[j] += h[k] * u[k, j]", "a[j] += x[t, k] * w[k, j]"), "T"),
    Pair("hoisted, read one step early", LOOP_HEAD, RNN, HOISTED.replace("p: f32[T, 3]", "p: f32[T + 1, 3]")
         .replace("forall t < T, j < 3\n", "forall t < T + 1, j < 3\n").replace("a[j] = p[t, j]", "a[j] = p[t + 1, j]"), "T"),
    Pair("hoisted, one step for all", LOOP_HEAD, RNN, HOISTED.replace("x[t, k]", "x[0, k]"), "T >= 1"),
    Pair("hoisted, and added again", LOOP_HEAD, RNN, HOISTED.replace("    a[j] = p[t, j]", "    a[j] = p[t, j] + p[t, j]"), "T"),
    Pair("made block by block, of the first block", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace("x[2 * c + t", "x[t")),
    Pair("made block by block, blocks overlap", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace("x[2 * c + t", "x[c + t")),
    Pair("made block by block, once for all", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace(
        IN_BLOCKS[IN_BLOCKS.index("  forall t"):IN_BLOCKS.index("  loop s")], "").replace("loop c", """forall t < 2, j < 3
  p[t, j] = 0
forall t < 2, j < 3, k < 3
  p[t, j] += x[t, k] * w[k, j]
loop c""")),
    Pair("a block added to the one before", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace(
        "  forall t < 2, j < 3\n    p[t, j] = 0\n", "").replace("loop c", "forall t < 2, j < 3\n  p[t, j] = 0\nloop c")),
    Pair("made block by block, steps in another order", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace("p[s, j]", "p[1 - s, j]")
         .replace("ys[2 * c + s", "ys[2 * c + 1 - s")),
    Pair("blocks of another length", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace("loop c < 3", "loop c < 2")),
    Pair("blocks, steps and blocks exchanged", SOME_HEAD, SOME_HOISTED, IN_BLOCKS.replace("2 * c + s", "c + 3 * s").replace("2 * c + t", "c + 3 * t")),
    Pair("a row is held a step too long", ROWS_HEAD, ROWS, ROWS_HELD.replace("s[j] = y[t + 1, j]", "s[j] = y[t, j]"), "T"),
    Pair("a row is held, begun with another number", ROWS_HEAD, ROWS, ROWS_HELD.replace("s[j] = 2", "s[j] = 3"), "T"),
    Pair("a row is held, but for one element", ROWS_HEAD, ROWS, ROWS_HELD.replace(
        "  forall j < 3\n    s[j] = y", "  forall j < 2\n    s[j] = y"), "T"),
    Pair("a row is held, and changed", ROWS_HEAD, ROWS, ROWS_HELD + "forall j < 3\n  z[j] = s[0]\n", "T"),
    Pair("a row is held, a row later at the end", ROWS_HEAD, ROWS, ROWS_HELD.replace("z[j] = s[j]", "z[j] = y[T - 1, j]"), "T >= 1"),
    Pair("a row is held the wrong way round", ROWS_HEAD, ROWS, ROWS_HELD.replace("s[j] = y[t + 1, j]", "s[2 - j] = y[t + 1, j]"), "T"),
    Pair("a row is held, over less than no steps", LATE_HEAD, LATE, LATE_HELD, "T"),
    Pair("a loop one step short", LOOP_HEAD, RNN, RNN.replace("t < T", "t < T - 1"), "T >= 1"),
    Pair("the state is used after it is replaced", LOOP_HEAD, RNN, RNN.replace("    h[j] = tanh(a[j])\n    ys[t, j] = h[j]",
         "    ys[t, j] = h[j]\n    h[j] = tanh(a[j])"), "T"),
    Pair("a live statement is dropped", VECTOR, _one("x[i] + z[i]") + "\n  y[i] *= 2", _one("x[i] + z[i]")),
    Pair("a reciprocal of the wrong row", SOFT_HEAD.replace("M", "N"), SOFTMAX.replace("M", "N"), RECOMPUTED.replace("M", "N").replace("* q[r]", "* q[c]"), "N"),
    Pair("the maximum of something else", SOFT_HEAD, SOFTMAX, RECOMPUTED.replace("m[r] max= x[r, c]", "m[r] max= 2 * x[r, c]"), "M, N"),
    Pair("min for max", SOFT_HEAD, SOFTMAX, RECOMPUTED.replace("max=", "min=").replace("-inf", "inf"), "M, N"),
    Pair("a maximum over part of a row", SOFT_HEAD, SOFTMAX, RECOMPUTED.replace("forall c < N, r < M\n  m[r]", "forall c < N, r < M where 1 <= c\n  m[r]"), "M, N"),
    Pair("sigmoid by tanh without the halves", VECTOR, _one("sigmoid(x[i])"), _one("0.5 * tanh(x[i]) + 0.5")),
    Pair("tanh for sigmoid", VECTOR, _one("sigmoid(x[i])"), _one("tanh(x[i])")),
    Pair("exp of another argument", VECTOR, _one("exp(x[i])"), _one("exp(z[i])")),
    Pair("a function of a neighbour", VECTOR, _one("exp(x[i])"), _one("exp(x[7 - i])")),
    Pair("less or equal for less", "in x: f32[8]\nin z: f32[8]\nout y: bool[8]", _one("x[i] < z[i]"), _one("x[i] <= z[i]")),
    Pair("a comparison turned over", "in x: f32[8]\nin z: f32[8]\nout y: bool[8]", _one("x[i] < z[i]"), _one("x[i] > z[i]")),
    Pair("a number by way of a type that does not hold it", "in x: i32[8]\nout y: f64[8]", _one("f64(x[i])"), _one("f64(f32(x[i]))")),
    Pair("a number by way of one that holds it, into one that does not", "in x: i16[8]\nout y: i8[8]", _one("sat_i8(x[i])"), _one("i8(i32(x[i]))")),
    Pair("a cast that loses something", "in x: i32[8]\nout y: i32[8]", _one("x[i]"), _one("i32(i8(x[i]))")),
    Pair("a cast moved over a product", "in x: i8[8]\nin z: i8[8]\nout y: i32[8]", _one("i32(x[i]) * i32(z[i])"), _one("i32(x[i] * z[i])")),
    Pair("a saturating cast for a wrapping one", "in x: i32[8]\nout y: i8[8]", _one("i8(x[i])"), _one("sat_i8(x[i])")),
    Pair("integers do not divide back", "in x: i32[8]\nout y: i32[8]", _one("x[i]"), _one("(x[i] * 2) / 2")),
    Pair("another number", VECTOR, _one("x[i] * 3"), _one("x[i] * 4")),
    Pair("a number added once more", VECTOR, _one("x[i] + 1"), _one("x[i] + 1 + 1")),
    Pair("exact: another order", EXACT, "forall i < 8\n  y[] += x[i]", "forall i < 8\n  y[] += x[7 - i]"),
    Pair("exact: another grouping", "permits exact\n" + VECTOR, _one("(x[i] + z[i]) + 1"), _one("x[i] + (z[i] + 1)")),
    Pair("exact: split, the inner axis first", EXACT, "forall i < 8\n  y[] += x[i]", "forall n < 4, o < 2\n  y[] += x[4 * o + n]"),
    Pair("exact: a product by a reciprocal", "permits exact\n" + VECTOR, _one("x[i] / z[i]"), _one("x[i] * (1 / z[i])")),
    Pair("x - x is no zero without the permission", VECTOR, _one("x[i]"), _one("x[i] + z[i] - z[i]")),
    Pair("equal terms with gaps, some left out", "in x: f32[8]\nin w: f32[24]\nout y: f32",
         "y[] = 0\nforall i < 8, j < 7, k < 3\n  t[i, j, k] = x[i] * w[2*j + 3*k + 1]\n  y[] += t[i, j, k]",
         "z[] = 0\nforall i < 8\n  z[] += x[i]\ny[] = 0\nforall j < 7, k < 3 where 1 <= j + k\n  t[j, k] = z[] * w[2*j + 3*k + 1]\n  y[] += t[j, k]"),
    Pair("equal terms with gaps, once each", "in x: f32[24]\nout y: f32",
         "y[] = 0\nforall j < 7, k < 3\n  y[] += x[2*j + 3*k + 1]", "y[] = 0\nforall j < 18\n  y[] += x[j + 1]"),
    Pair("equal terms miscounted", "in x: f32[8]\nout y: f32", "y[] = 0\nforall i < 8, k < 3\n  y[] += x[i]", "y[] = 0\nforall i < 8\n  y[] += 2 * x[i]"),
    Pair("equal terms, one region miscounted", "in x: f32[4]\nout y: f32", "y[] = 0\nforall i < 4, k < 4 where k <= i\n  y[] += x[i]",
         "y[] = x[0] + 2 * x[1] + 3 * x[2] + 3 * x[3]"),
    Pair("equal terms, a symbolic triangle", "in x: f32[N]\nout y: f32", "y[] = 0\nforall i < N, k < N where k <= i\n  y[] += x[i]",
         "y[] = 0\nforall i < N, k < N where k < i\n  y[] += x[i]", "N"),
    Pair("a size for a number", "in x: f32[8]\nin w: f32[K]\nout y: f32", "y[] = 0\nforall i < 8, k < K\n  y[] += x[i]", "y[] = 0\nforall i < 8\n  y[] += x[i]", "K"),
    Pair("an index out of range", VECTOR, _one("x[i]"), _one("x[i + 1]")),
    Pair("read before it is written", VECTOR, _one("x[i]"), "temp t: f32[8]\nforall i < 8\n  y[i] = t[i]\nforall i < 8\n  t[i] = x[i]"),
    Pair("two points write one element", VECTOR, _one("x[i]"), "forall i < 8, k < 8\n  y[i] = x[k]"),
    Pair("an output left alone", "in x: f32[8]\ninout y: f32[8]", _one("x[i]"), "forall i < 7\n  y[i] = x[i]"),
    Pair("a sum that wraps before it is widened", "in x: i8[8]\nout y: i32[8]\ntemp t: i8[8]",
         "forall i < 8\n  t[i] = x[i] - x[i] + 100\nforall i < 8\n  t[i] += 100\n  y[i] = i32(t[i])", _one("200")),
    Pair("exact: a number that is rounded before it is widened", "permits exact\nin x: f32[8]\nout y: f64[8]\ntemp t: f32[8]",
         "forall i < 8\n  t[i] = 0.1\n  y[i] = f64(t[i])", _one("0.1")),
    Pair("a number beyond a type that is widened", "in x: f16[8]\nout y: f32[8]\ntemp t: f16[8]",
         "forall i < 8\n  t[i] = 1e9\n  y[i] = f32(t[i])", _one("1e9")),
    Pair("the other branch", BYTES, CHOSEN, _one("max(x[i], z[i])")),
    Pair("a condition of two numbers more", BYTES, CHOSEN, CHOSEN.replace("select(x[i] < z[i], x[i]", "select(z[i] < x[i], x[i]")),
    Pair("one of two pieces moved, below max", VECTOR + "\ntemp t: f32[8]", PIECES, PIECES.replace("= x[i]", "= x[i + 1]")),
    Pair("the other of two pieces moved, below max", VECTOR + "\ntemp t: f32[8]", PIECES, PIECES.replace("x[11 - i]", "x[10 - i]")),
    Pair("a choice by another comparison", BYTES, _one("select(x[i] == z[i], z[i], x[i])"), _one("max(x[i], z[i])")),
    Pair("a choice by a flag", "in x: i8[8]\nin z: i8[8]\nin b: bool[8]\nout y: i8[8]", _one("select(b[i], z[i], x[i])"), _one("max(x[i], z[i])")),
    Pair("a factor lost in a cast of a cast", "in x: i8[8]\nout y: i32[8]", _one("i32(i16(x[i]) * 2)"), _one("i32(x[i])")),
    Pair("a square lost in a cast of a cast", "in x: i8[8]\nout y: i32[8]", _one("i32(i16(x[i]) * i16(x[i]))"), _one("i32(x[i])")),
    Pair("a term lost in a cast of a cast", "in x: i8[8]\nout y: i32[8]", _one("i32(i16(x[i]) + i16(x[7 - i]))"), _one("i32(x[i])")),
    Pair("a power too low", VECTOR, _one("pow(x[i], 3)"), _one("x[i] * x[i]")),
    Pair("a power of another", VECTOR, _one("pow(x[i], 3)"), _one("x[i] * x[i] * z[i]")),
    Pair("products of products, one index for two", FACTORS, PRODUCTS, PRODUCT_OF_PRODUCTS.replace("q[b]", "q[a]").replace("forall b < 3", "forall a < 3").replace("z[b, i]", "z[a, i]")),
)  # fmt: skip
