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

HOLDS: dict[str, tuple[str, ...]] = {
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
    "fusion": (START_THEN, START_THEN.replace("i < M, j < N", "j < N, i < M")),
}

REFUSED: dict[str, tuple[str, ...]] = {
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
        TWO_SUMS.format(where="").replace(", r < R", "").replace("k, r]", "k, 0]").replace("R)", "R >= 1)"),
        EXTREMUM.format(dtype="f32", start="-inf"),
    ),
    "nest-extremum": (EXTREMUM.format(dtype="i32", start="0"), TWO_SUMS.format(where="")),
    "join": (
        NESTED.format(where="").replace("= 0", "= 1"),
        NESTED.format(where="").replace("y[i] += p", "y[i] *= p"),
        NESTED.format(where="").replace("p[i, k] += a", "p[i, k] max= a"),
        NESTED.format(where="").replace("in    a", "inout a").replace("  forall i < M, k < K\n    y",
            "  forall i < M, k < K, r < R\n    a[i, k, r] = 2\n  forall i < M, k < K\n    y"),
        PARTIAL_THEN_BIAS.replace("y[i2] + p", "p[i2] + p"),
    ),
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
        START_THEN.replace("  forall h < N", "  forall h < N, r < 3"),
        START_THEN.replace("h < N, v < M", "h < N, v < M where h <= v"),
        START_THEN.replace("in  a", "inout a").replace("  forall h", "  forall i < M\n    a[i] = 2\n  forall h"),
    ),
}  # fmt: skip
