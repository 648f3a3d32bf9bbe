"""Kernels written for laws on sums, statements and loops: what :mod:`tests.laws.examples` varies."""

from __future__ import annotations

TERMS = """kernel k(M, K)
  in  a: f32[M, K]
  in  b: f32[M, K]
  out y: f32[M]
  forall i < M
    y[i] = 0
  forall i < M, k < K{where}
    t[i, k] = {value}
    y[i] += t[i, k]
"""
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
KEPT_PLACES = """kernel k(T, M)
  in    x: f32[T, M]
  inout h: f32[M]
  loop s < T
    forall i < M where i <= s, s <= i
      t[i] = x[s, i]
    forall i < M where i <= s
      h[i] += t[i]
"""
KEPT_SUMS = """kernel k(T, M, R)
  in    x: f32[T, M, R]
  inout h: f32[M]
  loop s < T
    forall i < M where i <= s, s <= i
      p[i] = 0
    forall i < M, r < R where i <= s, s <= i
      p[i] += x[s, i, r]
    forall i < M where i <= s
      h[i] += p[i]
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
FACTOR_IN_LOOP = """kernel k(T, M, R)
  in    a: f32[T, R]
  in    p: f32[T, M]
  inout y: f32[M]
  loop t < T
    forall i < M, r < R where r <= t, i <= t
      u[i, r] = a[t, r] * p[t, i]
      y[i] += u[i, r]
"""
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
ROOM = """kernel k(M)
  in  x: f32[M]
  out y: f32[M]
  temp t: f32[M + 9]
  forall i < M
    t[i + 2] = x[i]
  forall i < M
    y[i] = t[i + 2]
"""
FIXED = """kernel k()
  in    x: f32[3, 5]
  inout y: f32[3]
  forall k < 5
    t[k] = 6
  forall i < 3, k < 5
    u[i, k] = x[i, k] + t[k]
  forall i < 3, k < 5
    y[i] += u[i, k]
"""
DIAGONAL = """kernel k(T, M)
  in    x: f32[T, M]
  inout h: f32[M]
  temp  a: f32[M, M]
  loop t < T
    forall i < M
      a[i, i] = x[t, i] * 2
      h[i] = h[i] * a[i, i]
"""
PADDED = """kernel k()
  permits reassociate, finite
  in    a: f32[6]
  in    w: f32[{size}]
  inout y: f32[6]
  temp  x: f32[{room}]
  forall i < 6
    x[i] = a[i]
  forall h < {steps}, r < 3 where 0 <= h + r - 1, h + r - 1 < {room}
    u[h, r] = x[h + r - 1] * w[{row}]
    y[h] += u[h, r]
"""
REVERSED = """kernel k(M)
  in    a: f32[5, 3]
  in    p: f32[5]
  inout y: f32[M]
  temp  u: f32[5, 3]
  forall i < 5, k < 3
    u[4 - i, k] = a[i, k] * p[i]
  forall j < M, r < 5, k < 3
    y[j] += u[r, k]
"""
TWO_LOOPS = """kernel k(T, M)
  in    x: f32[T, M]
  inout h: f32[M]
  loop s < T
    forall i < M
      a[i] = x[s, i] * 2
      h[i] = h[i] + a[i]
  forall i < M
    h[i] = h[i] * 3
  loop t < T
    forall i < M
      b[i] = x[t, i] + 1
      h[i] = h[i] * b[i]
"""
READ_TWICE = BORDERED.format(row="i + 1, j + 1").replace("in  x", "inout x") + """  forall i < 4, j < 3
    x[i, j] = 2
  forall i < 6, j < 3, r < 3
    v[i, j, r] = p[i + r, j] * w[r]
    y[i, j] += v[i, j, r]
"""
IN_PLACE = """kernel k()
  in  x: f32[3, 4]
  out y: f32[3, 4]
  out z: f32[3]
  temp t: f32[3, 4]
  temp s: f32[3]
  forall i < 3, j < 4
    t[i, j] = x[i, j] + 1
  forall i < 3
    s[i] = 0
    z[i] = 1
  forall i < 3, j < 4
    s[i] += t[i, j]
  forall i < 3, j < 4
    y[i, j] = {y}
{more}"""
MASKED = """kernel k()
  in  a: f32[3, 4]
  out y: f32[3]
  temp t: f32[3, 4]
{made}  forall i < 3, j < 4{first}
    t[i, j] = 1
  forall i < 3, j < 4 where {where}
    t[{to}] {op} {value}
  forall i < 3
    y[i] = 0
  forall i < 3, j < 4 where {where}
    y[i] += t[i, {read}]
"""


def masked(where: str = "j <= i", first: str = "", to: str = "i, j", op: str = "+=", value: str = "a[i, j]",
           read: str = "j", made: str = "") -> str:  # fmt: skip
    """A temporary that is made, and read, at some points only. ``made``: statements before it."""
    return MASKED.format(where=where, first=first, to=to, op=op, value=value, read=read, made=made)


def parted(second: str) -> str:
    """A temporary that is written in parts: the first two columns, then others."""
    return f"  temp h: f32[3, 4]\n  forall i < 3, j < 2\n    h[i, j] = exp(a[i, j])\n{second}"


HALVES = parted("  forall i < 3, j < 2\n    h[i, j + 2] = -a[i, j]\n")
GAP = parted("  forall i < 3\n    h[i, 3] = a[i, 0]\n")

HELD = """kernel k(T, M)
  in  x: f32[T, M]
  out y: f32[T + 1, M]
  forall i < M
    y[0, i] = 2
  loop t < T
    forall i < M
      y[t + 1, i] = y[t, i] * x[t, i]
"""

HELD_BACK = """kernel k(T, M)
  in  x: f32[T, M]
  out y: f32[T + 1, M]
  forall i < M
    y[T, i] = 2
  loop t < T
    forall i < M
      y[T - 1 - t, i] = y[T - t, i] * x[t, i]
"""

TWO_AT_ONCE = """kernel k(T)
  in    x: f32[T, 2]
  inout y: f32[T + 2]
  out   z: f32[T]
  loop t < T
    forall i < 2
      y[t + 2 - i] = x[t, i]
    z[t] = y[t + 1]
"""

TWO_BACK = """kernel k(T, M)
  in  x: f32[T, M]
  out y: f32[T + 2, M]
  forall i < M
    y[0, i] = 1
    y[1, i] = 2
  loop t < T
    forall i < M
      y[t + 2, i] = y[t + 1, i] - y[t, i] * x[t, i]
"""

TABLE = """kernel k(M, N)
  in    x: f32[M, N]
  inout d: f32[M + 1, N + 1]
  loop i < M
    loop j < N
      d[i + 1, j + 1] = max(d[i, j + 1], d[i + 1, j]) + d[i, j] * x[i, j]
"""

HELD_IN_PLACE = """kernel k(T, M)
  inout y: f32[T + 2, M]
  out   z: f32[T, M]
  loop t < T
    forall i < M
      y[t, i] = y[t + 1, i] * 2
      z[t, i] = y[t, i]
"""

ALL_BUT_LAST = """kernel k(T, M)
  in   x: f32[T, M]
  out  z: f32[T, M]
  temp y: f32[T + 1, M]
  forall i < M
    y[0, i] = 1
  loop t < T
    forall i < M
      z[t, i] = y[t, i] * x[t, i]
    forall i < M where t < T - 1
      y[t + 1, i] = z[t, i]
"""
