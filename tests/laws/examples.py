"""Small kernels for laws: where each holds (``HOLDS``) and where its equation would be wrong or says nothing
(``REFUSED``: no site). Keys are laws; every law on values and statements has both."""

from __future__ import annotations

SUM_TIMES = """kernel k(M, R)
  in  a: f32[M, R]
  in  p: f32[M]
  out y: f32[M]
  forall i < M
    z[i] = 0
  forall i < M, r < R
    z[i] += a[i, r]
  forall i < M
    y[i] = z[i] * p[i]
"""
SUM_TIMES_SUM = """kernel k(M, K, R)
  in  a: f32[M, K, R]
  in  p: f32[K]
  out y: f32[M]
  forall i < M
    y[i] = 0
  forall i < M, k < K
    z[i, k] = 0
  forall i < M, k < K, r < R where r <= i
    z[i, k] += a[i, k, r]
  forall i < M, k < K
    u[i, k] = z[i, k] * p[k]
    y[i] += u[i, k]
"""
SUM_TIMES_LOOP = """kernel k(T, M, R)
  in    a: f32[T, M, R]
  inout h: f32[M]
  loop t < T
    forall i < M
      z[i] = 0
    forall i < M, r < R
      z[i] += a[t, i, r]
    forall i < M
      h[i] = z[i] * h[i]
"""
TWO_SUMS = """kernel k(M, K, R)
  in  a: f32[M, K, R]
  out y: f32[M]
  forall i < M
    y[i] = 0
  forall i < M, k < K, r < R{where}
    y[i] += a[i, k, r]
"""
PRODUCT = """kernel k(M, K)
  in  a: f32[M, K]
  out y: f32[M]
  forall i < M
    y[i] = 1
  forall i < M, r < 2, k < K
    y[i] *= a[i, k]
"""
EXTREMUM = """kernel k(M, K, R)
  in  a: {dtype}[M, K, R]
  out y: {dtype}[M]
  forall i < M
    y[i] = {start}
  forall i < M, k < K, r < R
    y[i] max= a[i, k, r]
"""
NESTED = """kernel k(M, K, R)
  in    a: f32[M, K, R]
  inout y: f32[M]
  forall i < M, k < K
    p[i, k] = 0
  forall i < M, k < K, r < R{where}
    p[i, k] += a[i, k, r]
  forall i < M, k < K
    y[i] += p[i, k]
"""
PARTIAL_THEN_BIAS = """kernel k(M, R)
  in    a: f32[M, R]
  inout y: f32[M]
  forall i < M
    p[i] = 0
  forall i < M, i2 < R
    p[i] += a[i, i2]
  forall i2 < M
    y[i2] = y[i2] + p[i2]
"""
DEAD = """kernel k(M)
  in  a: f32[M]
  out y: f32[M]
  forall i < M
    t[i] = a[i] * 2
    s[i] = t[i] + 1
    y[i] = a[i] + 3
    y[i] = a[i] * a[i]
"""
OVERWRITTEN_LATER = """kernel k(M)
  in  a: f32[M]
  out y: f32[M]
  out z: f32[M]
  forall i < M
    y[i] = a[i] + 3
    z[i] = y[i] * a[i]
    y[i] = a[i] * a[i]
"""
COPY = """kernel k(M)
  in  a: f32[M, 2 * M]
  out y: f32[M]
  out z: f32[M]
  temp t: f32[2 * M, M]
  forall i < M, j < 2 * M
    t[j, i] = a[i, j]
  forall i < M
    y[i] = t[2 * i, i] + t[i, i]
    z[i] = exp(t[i, i])
"""
NUMBER = """kernel k(M)
  in  a: f32[M]
  out y: f32[M]
  forall i < M
    t[i] = 2
    y[i] = a[i] + t[i]
"""
SHARED = """kernel k(M)
  in  a: f32[M]
  in  b: f32[M]
  out y: f32[M]
  out z: f32[M]
  forall i < M
    t[i] = a[i] * b[i]
    t[i] = t[i] + 1
    y[i] = max(t[i], 0)
    z[i] = t[i] * a[i]
"""
CARRIED = """kernel k(T, M)
  in  a: f32[T, M]
  out y: f32[M]
  out z: f32[T, M]
  forall i < M
    y[i] = 0
    t[i] = 0
  loop s < T
    forall i < M
      t[i] = t[i] * 2
      t[i] = t[i] + a[s, i]
      y[i] = y[i] + t[i]
      z[s, i] = t[i] * a[s, i]
"""
OUTPUT_READ = """kernel k(M)
  in  a: f32[M]
  out y: f32[M]
  out z: f32[M]
  forall i < M
    y[i] = a[i] * a[i]
    z[i] = max(y[i], 0)
"""
TWINS = """kernel k(M)
  in  a: f32[M]
  out y: f32[M]
  forall i < M
    t[i] = a[i] * 2
    s[i] = a[i] * 2
    y[i] = t[i] * s[i]
"""
ADD = """kernel k(M)
  in    a: f32[M]
  inout y: f32[M]
  out   z: f32[M]
  forall i < M
    z[i] = a[i] + y[i]
    y[i] = y[i] * a[i]
"""
START_THEN = """kernel k(M, N)
  in  a: f32[M]
  in  b: f32[N, M]
  out y: f32[N, M]
  forall i < M, j < N
    y[j, i] = a[i]
  forall h < N, v < M
    y[h, v] += b[h, v]
"""

FILTER = """kernel k(N, C, K)
  in  x: f32[N, C, 10]
  in  w: f32[K, C, 3]
  in  b: f32[K]
  out y: f32[N, K, 8]
  forall n < N, k < K, h < 8
    y[n, k, h] = b[k]
  forall n < N, k < K, c < C, h < 8, r < 3
    y[n, k, h] += x[n, c, h + r] * w[k, c, r]
"""
IMAGE = """kernel k(C, K)
  in  x: f32[C, 6, 8]
  in  w: f32[K, C, 3, 3]
  out y: f32[K, 4, 6]
  forall k < K, h < 4, v < 6
    y[k, h, v] = 0
  forall k < K, c < C, h < 4, v < 6, r < 3, s < 3
    y[k, h, v] += x[c, h + r, v + s] * w[k, c, r, s]
"""
EVEN = """kernel k(B)
  in  a: {dtype}[B, 4, 6]
  in  b: {dtype}[6, 2]
  out y: {dtype}[B, 4, 2]
  forall b0 < B, i < 4, j < 2
    y[b0, i, j] = 0
  forall b0 < B, i < 4, j < 2, k < 6
    y[b0, i, j] += a[b0, i, k] * b[k, j]
"""

RNN = """kernel k(T, B, X, H)
  in    x: f32[T, B, X]
  const w: f32[X, H]
  const u: f32[H, H]
  inout h: f32[B, H]
  out   ys: f32[T, B, H]
  loop t < T
    forall b < B, j < H
      a[b, j] = 0
    forall b < B, j < H, k < X
      a[b, j] += x[t, b, k] * w[k, j]
    forall b < B, j < H, k < H
      a[b, j] += h[b, k] * u[k, j]
    forall b < B, j < H
      h[b, j] = tanh(a[b, j])
      ys[t, b, j] = h[b, j]
"""
STEPS = """kernel k(T, S, M)
  in    x: f32[T + S, M]
  inout h: f32[M]
  inout n: f32[M]
  out   y: f32[T + 1, S, M]
  forall s < S, i < M
    y[0, s, i] = 2
  loop t < T
    loop s < S
      forall i < M
        a[i] = x[t + s, i] * 3
        n[i] += exp(x[t + s, i])
        y[t + 1, s, i] = x[t + s, i] + 1
      forall i < M
        h[i] = h[i] * a[i]
"""
LOWER = """kernel k(T, M)
  in    x: f32[T, M]
  inout h: f32[M]
  loop t < T
    forall i < M
      a[i] = 1
    forall i < M where i <= t
      a[i] = x[t, i] * x[t, i]
    forall i < M
      h[i] = h[i] * a[i]
"""

LOOK_THEN_FILL = """kernel k(T, M)
  in    x: f32[T, M]
  inout h: f32[M]
  loop t < T
    forall i < M
      a[i] = 1
      h[i] = h[i] * a[i]
      a[i] = x[t, i] * 2
      h[i] = h[i] + a[i]
"""
GATHERED = """kernel k(T, M)
  in    x: f32[T]
  inout h: f32[M]
  temp  a: f32[T]
  loop t < T
    a[t] = x[t] * 2
    forall i < M, s < T where s <= t
      h[i] += a[s]
"""
READ_AFTER = """kernel k(T >= 1, M)
  in    x: f32[T, M]
  inout h: f32[M]
  loop t < T
    forall i < M
      a[i] = x[t, i] * 2
      h[i] = h[i] * a[i]
  forall i < M
    h[i] = h[i] + a[i]
"""

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


def _floats(value: str) -> tuple[str, ...]:
    return tuple(UNARY.format(dtype=d, value=value) for d in ("f32", "f64"))


def _pairs(value: str, *dtypes: str) -> tuple[str, ...]:
    return tuple(BINARY.format(dtype=d, value=value) for d in dtypes or ("f32", "i8", "u8"))


def _choices(sign: str = ">=", word: str = "and") -> tuple[str, ...]:
    return tuple(CHOICE.format(dtype=d, sign=sign, word=word) for d in ("f32", "i32"))


CONVERTED: dict[str, tuple[str, ...]] = {
    "min-by-select": _pairs("min(a[i, j], b[j, i])"),
    "max-by-select": (*_pairs("max(a[i, j], b[j, i])"), IN_PLACE),
    "min-by-max": _pairs("min(a[i, j], b[j, i])", "f32", "bf16"),
    "select-by-arithmetic": _choices(),
    "add-by-sub": _pairs("a[i, j] + b[j, i]"),
    "neg-by-sub": (*_floats("-a[i, j]"), UNARY.format(dtype="i8", value="-a[i, j]")),
    "copy-by-mul": _floats("a[i, j]"),
    "copy-by-add": _floats("a[i, j]"),
    "copy-by-max": _floats("a[i, j]"),
    "twice-by-add": _floats("2 * a[i, j]"),
    "square-by-mul": _floats("pow(a[i, j], 2)"),
    "ceil-by-floor": _floats("ceil(a[i, j])"),
    "floor-by-ceil": _floats("floor(a[i, j])"),
    "ge-by-lt": _choices(">="),
    "le-by-gt": _choices("<="),
    "ne-by-eq": _choices(),
    "eq-by-ne": _choices("=="),
    "and-by-select": _choices(),
    "or-by-select": _choices(">", "or"),
    "not-by-select": _choices(),
    "sqrt-by-rsqrt": tuple(t.replace("a:", "var:").replace("a[", "var[") for t in _floats("sqrt(a[i, j])")),
    "tanh-by-sigmoid": _floats("tanh(a[i, j])"),
    "tanh-by-exp": _floats("tanh(a[i, j])"),
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

def _steps(*lines: str, a: str = "f32", y: str = "f32", extra: str = "") -> str:
    """A kernel over ``a`` and ``b`` into ``y``, one statement per line."""
    head = f"kernel k(M)\n  in  a: {a}[M]\n  in  b: {a}[M]\n  out y: {y}[M]\n{extra}  forall i < M\n"
    return head + "".join(f"    {line}\n" for line in lines)


WIDER = _steps("t[i] = max(a[i], b[i])", "y[i] = {y}(t[i])", a="{a}", y="{y}")
SHORT = _steps("p[i] = {m}(a[i])", "q[i] = {m}(b[i])", "t[i] = p[i] * q[i]", "y[i] = {y}(t[i])", a="{a}", y="{y}")
TWO_CASTS = _steps("p[i] = {m}(a[i])", "y[i] = {y}(p[i])", a="{a}", y="{y}")
CHOSEN = _steps("c[i] = a[i] {sign} b[i]", "y[i] = select(c[i], {yes})")
SCALED = _steps("t[i] = a[i] {by}", "s[i] = b[i] {by}", "y[i] = {op}(t[i], s[i])")
PUSHED = _steps("t[i] = {op}(a[i], b[i])", "y[i] = t[i] {by}")
EXPS = _steps("t[i] = a[i] {sign} b[i]", "y[i] = exp(t[i])", "y[i] = y[i] * t[i]")

FACTOR_IN_LOOP = """kernel k(T, M, R)
  in    a: f32[T, R]
  in    p: f32[T, M]
  inout y: f32[M]
  loop t < T
    forall i < M, r < R where r <= t, i <= t
      u[i, r] = a[t, r] * p[t, i]
      y[i] += u[i, r]
"""
HOLDS: dict[str, tuple[str, ...]] = {
    "factor": (FACTOR_IN_LOOP,),
    "distribute": (SUM_TIMES, SUM_TIMES_SUM, SUM_TIMES_LOOP),
    "nest-sum": (TWO_SUMS.format(where=""), TWO_SUMS.format(where=" where r <= k"), PRODUCT),
    "nest-extremum": (EXTREMUM.format(dtype="f32", start="-inf"),),
    "join": (NESTED.format(where=""), NESTED.format(where=" where r <= k"), PARTIAL_THEN_BIAS),
    "dead": (DEAD,),
    "inline": (COPY, NUMBER),
    "duplicate": (SHARED, CARRIED, OUTPUT_READ),
    "unify": (TWINS, TWINS.replace("t[i] * s[i]", "t[i] * 3\n    y[i] = y[i] + s[i]")),
    "fission": (ADD, SUM_TIMES_SUM.replace("= z[i, k] * p[k]", "= z[i, k] + p[k]")),
    "winograd-2-3": (FILTER, IMAGE),
    "winograd-4-3": (FILTER, IMAGE),
    "strassen": (EVEN.format(dtype="f32"), EVEN.format(dtype="i16")),
    "hoist": (RNN, STEPS, LOWER),
    **CONVERTED,
    "times-one": (TWO_SUMS.format(where=" where r <= k"), START_THEN, TWO_SUMS.format(where="").replace("f32", "i8")),
    "number-array": (NUMBER.replace("t[i] = 2", "t[i] = a[i] * 2"), MIXED, *_pairs("max(a[i, j], 0) * b[j, i]")),
    "identity-matrix": (RESIDUAL,),
    "fold-neutral": (*_pairs("(a[i, j] - 0) / 1 + b[j, i] * 1"), *_floats("max(-inf, min(a[i, j], inf))")),
    "fold-chain": (*_pairs("2 * a[i, j] * 3 * b[j, i] + 1 + 2"), *_floats("a[i, j] * 2 * 0.5")),
    "cast-over-extrema": (
        WIDER.format(a="i8", y="i32"), WIDER.format(a="bf16", y="f32"), WIDER.format(a="u8", y="f16"),
        WIDER.format(a="i16", y="f32").replace("max(a[i], b[i])", "b[i]"),
    ),
    "cast-over-product": (
        SHORT.format(a="i8", m="i16", y="i32"), SHORT.format(a="u8", m="i32", y="f64"),
        SHORT.format(a="f16", m="f32", y="f64"), SHORT.format(a="i8", m="f32", y="f64"),
    ),
    "join-casts": (
        TWO_CASTS.format(a="i8", m="i16", y="i32"), TWO_CASTS.format(a="i8", m="i16", y="u8"),
        TWO_CASTS.format(a="f16", m="f32", y="bf16"), TWO_CASTS.format(a="u8", m="i16", y="i8"),
    ),
    "widen": (*_pairs("a[i, j] + b[j, i] * 3", "i8", "u8", "i16", "f16", "f32"),
        *_pairs("a[i, j] / b[j, i]", "f16", "f32"), *_pairs("a[i, j] * b[j, i]", "i16", "i32"),
        *_pairs("max(a[i, j], -b[j, i])", "i8", "bf16")),
    "choice-to-extremum": tuple(
        CHOSEN.format(sign=s, yes=y) for s in (">", "<=", "<") for y in ("a[i], b[i]", "b[i], a[i]")
    ),
    "pull-scaling": (
        SCALED.format(by="* 2.5", op="max"), SCALED.format(by="* -3", op="min"), SCALED.format(by="+ 0.3", op="max"),
        SCALED.format(by="- 7", op="min").replace("f32", "f16"),
    ),
    "push-scaling": (PUSHED.format(by="* 0.3", op="max"), PUSHED.format(by="* -3", op="max"),
        PUSHED.format(by="- 2", op="min")),
    "pull-monotone": (
        SCALED.format(by="", op="max").replace("= a[i] ", "= exp(a[i])").replace("= b[i] ", "= exp(b[i])"),
        SCALED.format(by="", op="min").replace("= a[i] ", "= tanh(a[i])").replace("= b[i] ", "= tanh(b[i])"),
    ),
    "push-monotone": (PUSHED.format(by="", op="max").replace("= t[i] ", "= sigmoid(t[i])"),
        PUSHED.format(by="", op="min").replace("= t[i] ", "= floor(t[i])")),
    "exp-of-sum": (EXPS.format(sign="+"), EXPS.format(sign="-").replace("f32", "f64")),
    "fold-zero-added": _pairs("0 + a[i, j] + (b[j, i] + 0)"),
    "fold-zero-times": _pairs("a[i, j] + 0 * b[j, i]"),
    "fusion": (START_THEN, START_THEN.replace("i < M, j < N", "j < N, i < M")),
}

BORDERED = """kernel k()
  permits reassociate, finite
  in  x: f32[4, 3]
  in  w: f32[3]
  out y: f32[6, 3]
  temp p: f32[8, 5]
  forall i < 8, j < 5
    p[i, j] = 0
  forall i < 4, j < 3
    p[{row}] = x[i, j]
  forall i < 6, j < 3
    y[i, j] = 0
  forall i < 6, j < 3, r < 3
    u[i, j, r] = p[i + r, j] * w[r]
    y[i, j] += u[i, j, r]
"""
REFUSED: dict[str, tuple[str, ...]] = {
    "factor": (
        "kernel k(M)\n  in  a: f32[M, 3, 3]\n  in  p: f32[M]\n  out y: f32[M]\n  forall i < M\n    y[i] = 0\n"
        "  forall i < M, r < 3, s < 0\n    u[i, r, s] = a[i, r, s] * p[i]\n    y[i] += u[i, r, s]\n",
    ),
    "unpad": (BORDERED.format(row="2 * i, j"), BORDERED.format(row="i + j, j"), BORDERED.format(row="i + 1, 2 * j")),
    "distribute": (
        SUM_TIMES.replace("z[i] = 0", "z[i] = 1"),
        SUM_TIMES.replace("z[i] += ", "z[i] *= "),
        SUM_TIMES.replace("z[i] * p", "z[i] + p"),
        SUM_TIMES.replace("z[i] * p[i]", "z[i] * z[i]"),
        SUM_TIMES.replace("  out y: f32[M]", "  out y: f32[M]\n  out v: f32[M]") + "    v[i] = z[i]\n",
        SUM_TIMES.replace("in  a", "inout a").replace("    y[i] = z", "    a[i, 0] = 2\n    y[i] = z").replace(
            "R)", "R >= 1)"),
        SUM_TIMES.replace("forall i < M, r < R", "forall r < R, i < 1").replace("(M, R)", "(M >= 1, R)"),
    ),
    "nest-sum": (
        "kernel k(M)\n  in  a: f32[M]\n  out y: f32[M]\n  forall i < M, k < 1, r < 1\n    y[i] = a[i] + a[i]\n",
        TWO_SUMS.format(where="").replace(", r < R", "").replace("k, r]", "k, 0]").replace("R)", "R >= 1)"),
        EXTREMUM.format(dtype="f32", start="-inf"),
    ),
    "nest-extremum": (EXTREMUM.format(dtype="i32", start="0"), TWO_SUMS.format(where="")),
    "join": (
        NESTED.format(where="").replace("= 0", "= 1"), NESTED.format(where="").replace("= 0", "= 0 - y[i]"),
        NESTED.format(where="").replace("y[i] += p", "y[i] *= p"),
        NESTED.format(where="").replace("p[i, k] += a", "p[i, k] max= a"),
        NESTED.format(where="").replace("in    a", "inout a").replace("  forall i < M, k < K\n    y",
            "  forall i < M, k < K, r < R\n    a[i, k, r] = 2\n  forall i < M, k < K\n    y"),
        PARTIAL_THEN_BIAS.replace("y[i2] + p", "p[i2] + p"),
    ),
    "hoist": (
        "kernel k(T, M)\n  in    x: f32[T, M]\n  inout y: f32[T + 1, M]\n  loop t < T\n    forall i < M\n"
        "      y[t + 1, i] = y[t, i] + x[t, i]\n",
        LOOK_THEN_FILL,
        GATHERED,
        READ_AFTER,
        RNN.replace("x[t, b, k] * w[k, j]", "h[b, j] * w[k, j]"),
        RNN.replace("    forall b < B, j < H\n      a[b, j] = 0\n", "").replace(
            "  loop t", "  forall b < B, j < H\n    a[b, j] = 0\n  loop t"),
        LOWER.replace("    forall i < M\n      a[i] = 1\n", "").replace(
            "  loop t", "  forall i < M\n    a[i] = 1\n  loop t"),
        LOWER.replace("x[t, i] * x[t, i]", "x[t, i] * h[i]"),
        LOWER.replace("      a[i] = 1", "      h[i] = h[i] + a[i]\n      a[i] = 1").replace(
            "  loop t", "  forall i < M\n    a[i] = 0\n  loop t"),
        STEPS.replace("out   y", "inout y").replace("y[t + 1, s", "y[0, 0").replace("(T, S, M)", "(T, S >= 1, M)")
        .replace("x[t + s, i] * 3", "h[i] * 3").replace("exp(x[t + s, i])", "h[i]"),
        STEPS.replace("out   y", "inout y").replace("exp(x[t + s, i])", "y[t, s, i]").replace(
            "x[t + s, i] * 3", "n[i] * 3"),
    ),
    "times-one": (ADD.replace("a[i] + y[i]", "a[i] + a[i]"), EXTREMUM.format(dtype="f32", start="-inf"), PRODUCT),
    "number-array": (COPY, TWINS.replace(" * 2", " * a[i]")),
    "identity-matrix": (
        GUARDED,
        EXTREMUM.format(dtype="f32", start="-inf"),
        RESIDUAL.replace("forall i < M, j < N\n    y[i, j] += b[j, i]",
            "forall i < M, j < N where j <= i\n    y[i, j] += b[j, i]").replace("y[i, j] = a[j, 2 * i]", "y[i, j] = 3"),
    ),
    "fold-neutral": (*_pairs("a[i, j] / 2 + (0 - b[j, i]) / 3"), *_floats("max(inf, a[i, j]) + min(a[i, j], -inf)")),
    "fold-zero-added": _pairs("a[i, j] - 0 + (b[j, i] + 1)"),
    "fold-zero-times": _pairs("a[i, j] * 1 + (b[j, i] + 0)"),
    "cast-over-extrema": (
        WIDER.format(a="i32", y="i8"), WIDER.format(a="i32", y="f32"), WIDER.format(a="i8", y="u8"),
        WIDER.format(a="bf16", y="f16"), WIDER.format(a="i8", y="i32").replace("max(a[i], b[i])", "a[i] + b[i]"),
        WIDER.format(a="i8", y="i32").replace("in  a", "inout a").replace("    y[i]", "    a[i] = 3\n    y[i]"),
    ),
    "cast-over-product": (
        SHORT.format(a="i8", m="i16", y="i32").replace("i16(b[i])", "i16(b[i]) + 1"),
        SHORT.format(a="i16", m="i16", y="i32").replace("i16(a[i])", "a[i]").replace("i16(b[i])", "b[i]"),
        SHORT.format(a="u8", m="i16", y="i32"), SHORT.format(a="bf16", m="f32", y="f64"),
        SHORT.format(a="i16", m="f32", y="f64"),
    ),
    "join-casts": (
        TWO_CASTS.format(a="i32", m="i16", y="i32"), TWO_CASTS.format(a="f32", m="bf16", y="f32"),
        TWO_CASTS.format(a="i32", m="f32", y="f64"), TWO_CASTS.format(a="i8", m="u8", y="i32"),
        TWO_CASTS.format(a="u8", m="i8", y="i32"),
    ),
    "widen": (
        UNARY.format(dtype="f32", value="a[i, j] * 0.1"),
        *_pairs("a[i, j] * b[j, i]", "i64", "f64"), *_pairs("exp(a[i, j]) * exp(b[j, i])", "f64"),
    ),
    "choice-to-extremum": (
        CHOSEN.format(sign=">", yes="a[i], 0"), CHOSEN.format(sign="==", yes="a[i], b[i]"),
        CHOSEN.format(sign=">", yes="a[i], b[i]").replace("in  a", "inout a").replace(
            "    y[i]", "    a[i] = a[i] * 2\n    y[i]"),
    ),
    "pull-scaling": (
        SCALED.format(by="* 3", op="max").replace("f32", "i32"), SCALED.format(by="/ 3", op="max"),
        SCALED.format(by="* 3", op="max").replace("b[i] * 3", "b[i] * 4"), SCALED.format(by="* 0", op="max"),
        SCALED.format(by="* a[i]", op="max"),
    ),
    "push-scaling": (
        PUSHED.format(by="* 3", op="max").replace("f32", "i32"), PUSHED.format(by="* a[i]", op="max"),
        PUSHED.format(by="* 0", op="max"),
    ),
    "pull-monotone": (
        SCALED.format(by="", op="max").replace("= a[i] ", "= cos(a[i])").replace("= b[i] ", "= cos(b[i])"),
        SCALED.format(by="", op="max").replace("= a[i] ", "= exp(a[i])").replace("= b[i] ", "= tanh(b[i])")),
    "push-monotone": (PUSHED.format(by="", op="max").replace("= t[i] ", "= abs(t[i])"),),
    "exp-of-sum": (EXPS.format(sign="*"), EXPS.format(sign="+").replace("exp", "tanh")),
    "fold-chain": (*_pairs("a[i, j] * 2 * b[j, i] + 3"), *_floats("a[i, j] * 0.1 * 3"), *_floats("a[i, j] / 2 / 3")),
    "winograd-2-3": (
        FILTER.replace("f32", "i32"),
        FILTER.replace("h + r]", "2 * h + r]").replace("C, 10]", "C, 17]"),
        FILTER.replace("h + r]", "h + 2 * r]").replace("C, 10]", "C, 12]"),
        FILTER.replace("w[k, c, r]", "w[k, r, r]").replace("K, C, 3", "K, 3, 3"),
        FILTER.replace("h < 8", "h < 7").replace("K, 8]", "K, 7]"),
        FILTER.replace("r < 3", "r < 2"),
        FILTER.replace("c, h + r] * w[k, c, r]", "c, h + r] * w[k, c, h - h]"),
        FILTER.replace("r < 3\n", "r < 3 where r <= h\n"),
    ),
    "winograd-4-3": (FILTER.replace("h < 8", "h < 6").replace("K, 8]", "K, 6]"), FILTER.replace("r]", "0]")),
    "strassen": (
        EVEN.format(dtype="f32").replace("6", "5"),
        EVEN.format(dtype="f32").replace("a[b0, i, k]", "a[b0, i, i]"),
        EVEN.format(dtype="f32").replace(" * b", " + b"),
        EVEN.format(dtype="f32").replace("(B)", "(B, K)").replace("6", "K"),
    ),
    "dead": (OVERWRITTEN_LATER, SHARED, CARRIED, ADD.replace("    y[i] = y", "    z[i] = z")),
    "inline": (
        COPY.replace("in  a", "inout a").replace("  forall i < M\n    y", "  forall i < M\n    a[i, i] = 2\n    y"),
        COPY.replace("= a[i, j]", "= -a[i, j]"),
        NUMBER.replace("    t[i] = 2", "    t[i] = 2\n    t[i] = t[i] + a[i]"),
    ),
    "duplicate": (TWINS.replace("t[i] * s[i]", "t[i] * 3"), ADD),
    "unify": (
        TWINS.replace("s[i] = a[i] * 2", "s[i] = a[i] * 3"),
        TWINS.replace("s[i] = a[i] * 2", "s[i] = t[i] * 2"),
        TWINS.replace("    s[i]", "    y[i] = 0\n    s[i]"),
        TWINS.replace("    y[i]", "    t[i] = t[i] + 1\n    s[i] = t[i] + 1\n    y[i]"),
    ),
    "fission": (ADD.replace("a[i] + y[i]", "a[i] - y[i]").replace("y[i] * a[i]", "exp(y[i])"),),
    "fusion": (
        "kernel k(M)\n  in    a: f32[M]\n  in    b: f32[M]\n  inout y: f32[M]\n  forall i < M\n    y[i] += b[i]\n"
        "    y[i] = a[i]\n",
        START_THEN.replace("  forall h < N", "  forall h < N, r < 3"),
        START_THEN.replace("h < N, v < M", "h < N, v < M where h <= v"),
        START_THEN.replace("in  a", "inout a").replace("  forall h", "  forall i < M\n    a[i] = 2\n  forall h"),
    ),
}  # fmt: skip
