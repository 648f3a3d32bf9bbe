"""Kernels written for laws on values, numbers and element types: what :mod:`tests.laws.examples` varies."""

from __future__ import annotations

IN_PLACE = """kernel k(M)
  in    a: f32[M]
  inout y: f32[M]
  forall i < M
    y[i] = max(y[i], a[i])
"""
UNARY = """kernel k(M)
  in  a: {dtype}[M, 3]
  out y: {dtype}[M, 3]
  forall i < M, j < 3
    y[i, j] = {value}
"""
BINARY = UNARY.replace("  out", "  in  b: {dtype}[3, M]\n  out")
CHOICE = """kernel k(M)
  in  a: {dtype}[M]
  in  b: {dtype}[M]
  out y: {dtype}[M]
  out z: {dtype}[M]
  forall i < M
    c[i] = a[i] {sign} b[i]
    d[i] = c[i] {word} a[i] != 1
    e[i] = not d[i]
    y[i] = select(d[i], a[i], b[i])
    z[i] = select(e[i], 3, b[i])
"""


def floats(value: str) -> tuple[str, ...]:
    return tuple(UNARY.format(dtype=d, value=value) for d in ("f32", "f64"))


def pairs(value: str, *dtypes: str) -> tuple[str, ...]:
    return tuple(BINARY.format(dtype=d, value=value) for d in dtypes or ("f32", "i8", "u8"))


def choices(sign: str = ">=", word: str = "and") -> tuple[str, ...]:
    return tuple(CHOICE.format(dtype=d, sign=sign, word=word) for d in ("f32", "i32"))


CONVERTED: dict[str, tuple[str, ...]] = {
    "min-by-select": pairs("min(a[i, j], b[j, i])"),
    "max-by-select": (*pairs("max(a[i, j], b[j, i])"), IN_PLACE),
    "min-by-max": pairs("min(a[i, j], b[j, i])", "f32", "bf16"),
    "select-by-arithmetic": choices(),
    "add-by-sub": pairs("a[i, j] + b[j, i]"),
    "neg-by-sub": (*floats("-a[i, j]"), UNARY.format(dtype="i8", value="-a[i, j]")),
    "copy-by-mul": floats("a[i, j]"),
    "copy-by-add": floats("a[i, j]"),
    "copy-by-max": floats("a[i, j]"),
    "twice-by-add": floats("2 * a[i, j]"),
    "ceil-by-floor": floats("ceil(a[i, j])"),
    "floor-by-ceil": floats("floor(a[i, j])"),
    "ge-by-lt": choices(">="),
    "le-by-gt": choices("<="),
    "ne-by-eq": choices(),
    "eq-by-ne": choices("=="),
    "and-by-select": choices(),
    "or-by-select": choices(">", "or"),
    "not-by-select": choices(),
    "sqrt-by-rsqrt": tuple(t.replace("a:", "var:").replace("a[", "var[") for t in floats("sqrt(a[i, j])")),
    "tanh-by-sigmoid": floats("tanh(a[i, j])"),
    "tanh-by-exp": floats("tanh(a[i, j])"),
}

MIXED = """kernel k(M)
  in  a: i8[M]
  out y: i32[M]
  forall i < M
    b[i] = a[i] > 2
    w[i] = i32(a[i])
    y[i] = select(b[i], 4, w[i])
    y[i] = y[i] * 3
"""
GUARDED = """kernel k(M)
  in    b: f32[M]
  inout y: f32[M + 1]
  forall i < M + 1 where i <= M - 1
    y[i] = y[i] + b[i]
"""
RESIDUAL = """kernel k(M, N)
  in  a: f32[N, 2 * M]
  in  b: f32[N, M]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = a[j, 2 * i]
  forall i < M, j < N
    y[i, j] += b[j, i]
"""

def steps(*lines: str, a: str = "f32", y: str = "f32", extra: str = "") -> str:
    """A kernel over ``a`` and ``b`` into ``y``, one statement per line."""
    head = f"kernel k(M)\n  in  a: {a}[M]\n  in  b: {a}[M]\n  out y: {y}[M]\n{extra}  forall i < M\n"
    return head + "".join(f"    {line}\n" for line in lines)


WIDER = steps("t[i] = max(a[i], b[i])", "y[i] = {y}(t[i])", a="{a}", y="{y}")
SHORT = steps("p[i] = {m}(a[i])", "q[i] = {m}(b[i])", "t[i] = p[i] * q[i]", "y[i] = {y}(t[i])", a="{a}", y="{y}")
TWO_CASTS = steps("p[i] = {m}(a[i])", "y[i] = {y}(p[i])", a="{a}", y="{y}")
CAST_BEFORE = """kernel k(M)
  in  a: i8[{a}]
  out y: i32[M]
  forall i < M{where}
    p[i] = i16(a[{at}])
  forall i < M{where}
    y[i] = i32(p[i])
  forall i < M
    y[i] = i32(a[{a} - 1 - i])
"""
CHOSEN = steps("c[i] = a[i] {sign} b[i]", "y[i] = select(c[i], {yes})")
SCALED = steps("t[i] = a[i] {by}", "s[i] = b[i] {by}", "y[i] = {op}(t[i], s[i])")
PUSHED = steps("t[i] = {op}(a[i], b[i])", "y[i] = t[i] {by}")
EXPS = steps("t[i] = a[i] {sign} b[i]", "y[i] = exp(t[i])", "y[i] = y[i] * t[i]")
BYTES = """kernel k(M, N, K)
  in  a: {a}[M, K]
  in  b: {b}[K, N]
  out y: i32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += i32(a[i, k]) * i32(b[k, j])
"""
SHIFTED = """kernel k(M, N, K)
  in    a: i16[M, K]
  inout b: i32[K, N]
  in    c: i32[M]
  out   y: i32[M, N]
  forall i < M, j < N
    y[i, j] = 2
  forall i < M, k < K
    t[i, k] = i32(a[i, k]) {more}
  forall i < M, j < N, k < K{where}
    u[i, j, k] = t[i, k] * b[k, j]
  forall i < M, j < N, k < K{where}
    y[i, j] += u[i, j, k]
  forall k < K, j < N
    b[k, j] = 0
"""
