"""Kernels for laws on recurrent loops of a known number of steps: where each holds, and where it has no site."""

from __future__ import annotations

from tests.laws.example_kernels import CARRIED, LOWER, RNN, STEPS, TWO_LOOPS


def known(text: str, steps: int) -> str:
    """With so many steps in place of ``T``."""
    return text.replace("(T, ", "(").replace("T", str(steps))


AHEAD = """kernel k(X, H)
  in    x: f32[6, X]
  const w: f32[X, H]
  inout h: f32[H]
  out   y: f32[6, H]
  forall t < 6, j < H
    a[t, j] = 1
  forall t < 6, j < H, k < X
    a[t, j] += x[t, k] * w[k, j]
  loop c < 3
    loop s < 2
      forall j < H
        h[j] = h[j] * a[2 * c + s, j]
        y[2 * c + s, j] = h[j]
"""
EACH = """kernel k(M)
  in    x: f32[4, M]
  inout h: f32[M]
  forall t < 4, i < M where i <= t
    a[t, i] = exp(x[t, i])
  loop c < 4
    forall i < M where i <= c
      h[i] = h[i] + a[c, i]
"""
ANEW = """kernel k(M)
  in    x: f32[5, M]
  in    v: f32[M]
  inout h: f32[M]
  forall i < M
    p[i] = v[i]
  forall i < M
    q[i] = p[i]
  forall c < M, t < 5
    b[t, c] = x[t, c] * q[c]
  forall t < 5, i < M
    a[t, i, 0] = b[t, i]
    a[t, i, 1] = b[t, i] + q[i]
  loop c < 2
    forall i < M, n < 2
      h[i] += a[2 * c + n, i, 0]
    forall i < M
      h[i] = h[i] * a[2 * c + 1, i, 1]
"""
WITHIN = """kernel k(R, M)
  in    x: f32[R, 4, M]
  inout h: f32[M]
  loop r < R
    forall i < M
      v[i] = h[i] * 2
    forall t < 4, i < M
      a[t, i] = x[r, t, i] * 3
    forall t < 4, i < M where t + i <= r
      a[t, i] = x[r, t, i] * v[i]
    loop c < 2
      loop s < 2
        forall i < M
          h[i] = h[i] + a[2 * c + s, i]
"""
EARLIER = """kernel k(M)
  in    x: f32[4, M]
  inout h: f32[M]
  forall t < 4, i < M
    b[t, i] = exp(x[t, i])
    a[t, i] = 0
  forall t < 4, i < M, u < 4 where u <= t
    a[t, i] += b[u, i]
  loop c < 4
    forall i < M
      h[i] = h[i] * a[c, i]
"""
LEFT = """kernel k(R, M)
  in    x: f32[R, M]
  inout h: f32[M]
  loop r < R
    forall t < 4, i < M where r - t <= 0, t <= r
      a[t, i] = x[r, i]
    loop c < 4
      forall i < M where c <= r
        h[i] = h[i] * 2 + a[c, i]
"""
TAKEN = """kernel k(M)
  in    x: f32[6, M]
  inout h: f32[M]
  forall t < 6, i < M
    a[t, i] = exp(x[t, i])
  loop c < 3
    forall i < M{more}
      h[i] += a[{row}, i]
"""
BEFORE = "  loop c < 3\n"
STEP = "h[j] = h[j] * a[2 * c + s, j]"
LOOPS_HOLD = {
    "split-loop": (
        *(known(k, 8) for k in (RNN, LOWER, TWO_LOOPS, CARRIED)),
        known(STEPS, 4).replace("(S, ", "(").replace("S", "4"),
    ),
    "sink": (
        AHEAD, EACH, ANEW, WITHIN, EARLIER, TAKEN.format(more=", n < 2", row="2 * c + n"),
        ANEW.replace("  forall c < M, t", "  forall i < M\n    h[i] = h[i] + q[i]\n  forall c < M, t"),
        ANEW.replace("b[t, i] + q[i]", "q[i] + b[4 - t, i]"),
    ),
}  # fmt: skip
LOOPS_REFUSED = {
    "split-loop": (RNN, known(LOWER, 2), known(CARRIED, 7), STEPS, LOWER.replace("T", "T + 8").replace("(T + 8", "(T")),
    "sink": (
        RNN,
        LEFT,
        AHEAD.replace("inout h", "out a: f32[6, H]\n  inout h"),
        AHEAD.replace(BEFORE, "  forall j < H\n    h[j] = h[j] + a[0, j]\n" + BEFORE),
        AHEAD + "  forall j < H\n    h[j] = h[j] + a[0, j]\n",
        EACH.replace("in    x", "inout x").replace("  loop c", "  forall i < M\n    x[2, i] = 0\n  loop c"),
        EACH.replace("in    x", "inout x") + "    forall i < M\n      x[3, i] = 0\n",
        TAKEN.format(more="", row="2 * c") + "    forall t < 6, i < M\n      a[t, i] = h[i]\n",
        AHEAD.replace("forall t < 6, j < H, k", "forall t < 5, j < H, k"),
        TAKEN.format(more=", n < 3 where 2 * c + n <= 5", row="2 * c + n"),
        TAKEN.format(more=" where c <= 1", row="2 * c + 2"),
        TAKEN.format(more=" where 1 <= c", row="2 * c - 1"),
        TAKEN.format(more=", n < 2", row="2 * c + 1 - n"),
        EARLIER.replace("h[i] * a[c, i]", "h[i] * b[c, i]"),
        AHEAD.replace(STEP, "h[j] = h[j] * a[5 - s, j]"),
        EARLIER.replace("a[c, i]", "a[3 - c, i]"),
        EARLIER.replace("    a[t, i] = 0", "    a[3 - t, i] = 0"),
    ),
}  # fmt: skip
