"""Kernels that decide conditions of laws where small edits of examples do not: how many sites a law has there."""

from __future__ import annotations

from isam.ir.kernel import Kernel
from isam.ir.text import parse


def kernel(head: str, *lines: str) -> Kernel:
    """Of a head like ``N; in a: f32[N]; out y: f32[N]`` and of statements, indented as they stand in loops."""
    sizes, *buffers = head.split("; ")
    text = f"kernel k({sizes.strip()})\n" + "".join(f"  {b}\n" for b in buffers) + "".join(f"  {x}\n" for x in lines)
    return parse(text)


PAIR = " ; in a: f32[4]; in b: f32[4]; inout y: f32[4]"
MATMUL = ("  u[i, j, k] = a[i, k] * b[k, j]", "  y[i, j] += u[i, j, k]")
ROWS: dict[str, tuple[str, int, Kernel]] = {
    "the operand that stays is read elsewhere before it is written": ("reassociate", 0, kernel(
        " ; in a: f32[4]; in b: f32[4]; inout y: f32[4]; permits reassociate",
        "forall i < 4", "  t[i] = y[3 - i] + a[i]", "  y[i] = t[i] + b[i]")),
    "nothing is read of an axis without elements": ("narrow", 0, kernel(
        " ; in a: f32[3]; temp t: f32[3, 0]; out y: f32[3]",
        "forall i < 3, k < 0", "  t[i, k] = a[i + 9]", "forall i < 3", "  y[i] = a[i]")),
    "another axis has no elements": ("narrow", 1, kernel(
        " ; in a: f32[3]; temp t: f32[0, 3]; out y: f32[3]",
        "forall i < 0, k < 3", "  t[i, k] = a[i]", "forall i < 3", "  y[i] = a[i]")),
    "both rows are one axis": ("narrow", 0, kernel(
        " ; in a: f32[3]; temp t: f32[3, 3]; out y: f32[3]",
        "forall k < 3", "  t[k, k] = 2", "forall k < 3", "  y[k] = a[k] * t[k, k]")),
    "a dimension is filled from its end": ("narrow", 1, kernel(
        " ; in a: f32[3]; out y: f32[3]",
        "forall i < 3, k < 3", "  t[i, 2 - k] = a[i]", "forall i < 3", "  y[i] = a[i] * t[i, i]")),
    "what is overwritten is overwritten from its end": ("dead", 1, kernel(
        " ; in a: f32[3]; out y: f32[3]",
        "forall i < 3", "  y[i] = a[i]", "forall i < 3", "  y[2 - i] = a[i]")),
    "a copy that skips elements": ("fusion", 0, kernel(
        " ; in a: f32[2]; in b: f32[4]; inout y: f32[4]",
        "forall i < 2", "  y[2 * i] = a[i]", "forall i < 4", "  y[i] += b[i]")),
    "a copy with an axis of one element more": ("fusion", 0, kernel(
        " ; in a: f32[4, 1]; in b: f32[4]; out y: f32[4]",
        "forall i < 4, k < 1", "  y[i] = a[i, k]", "forall i < 4", "  y[i] += b[i]")),
    "the last step that chooses decides": ("hoist", 0, kernel(
        "T; in c: bool[T, 4]; in a: f32[T, 4]; inout y: f32[4]",
        "loop t < T", "  forall i < 4", "    y[i] = select(c[t, i], a[t, i], y[i])")),
    "the name of all steps is taken": ("hoist", 1, kernel(
        "T; in x: f32[T, 4]; inout h: f32[4]",
        "loop t < T", "  forall t_all < 4", "    a[t_all] = exp(x[t, t_all])", "    h[t_all] = h[t_all] * a[t_all]")),
    "two sums may leave, and what follows them need not": ("hoist", 2, kernel(
        "T; in x: f32[T, 4]; const w: f32[4, 3]; const v: f32[4, 3]; inout h: f32[3]",
        "loop t < T",
        "  forall j < 3", "    p[j] = 0", "  forall j < 3, k < 4", "    p[j] += x[t, k] * w[k, j]",
        "  forall j < 3", "    q[j] = 0", "  forall j < 3, k < 4", "    q[j] += x[t, k] * v[k, j]",
        "  forall j < 3", "    r[j] = exp(q[j])", "    h[j] = h[j] * p[j]", "    h[j] = h[j] + r[j]")),
    "a copy into every other element": ("inline", 0, kernel(
        " ; in a: f32[2]; temp t: f32[4]; out y: f32[2]",
        "forall i < 2", "  t[2 * i] = a[i]", "forall i < 2", "  y[i] = exp(t[2 * i])")),
    "a copy along an axis of one element": ("inline", 0, kernel(
        " ; in a: f32[4, 1]; out y: f32[4]",
        "forall i < 4, k < 1", "  t[i] = a[i, k]", "forall i < 4", "  y[i] = exp(t[i])")),
    "statements joined through others have the axis together": ("split-axis", 1, kernel(
        " ; in a: f32[4]; out y: f32[4]; out z: f32[4]",
        "forall i < 4", "  t[i] = a[i] * 3", "  s[i] = t[i] + 1", "  v[i] = s[i] * 2", "  y[i] = v[i] + 5",
        "  z[i] = t[i] * 7")),
    "a number would choose": ("inline", 0, kernel(
        " ; in a: f32[4]; in b: f32[4]; temp t: bool[4]; out y: f32[4]",
        "forall i < 4", "  t[i] = true", "  y[i] = select(t[i], a[i], b[i])")),
    "an index below the factor, of a size that is not known": ("split-dimension", 0, kernel(
        "N; in b: f32[4 * N + 12]; out y: f32[N + 3]", "forall i < N + 3", "  y[i] = b[i]")),
    "an index below the factor where a condition holds": ("split-dimension", 0, kernel(
        " ; in b: f32[8]; inout y: f32[2]",
        "forall a < 2, i < 2, j < 3 where i <= j", "  y[a] += b[4 * a + j - i]")),
    "steps of the axis are left out": ("dilate", 0, kernel(
        " ; in x: f32[3]; in w: f32[2]; inout y: f32[6]; permits reassociate, finite",
        "forall a < 3, r < 2 where r <= a", "  u[a, r] = x[a] * w[r]", "  y[2 * a + r] += u[a, r]")),
    "rows of the temporary are longer than the axis": ("fuse-axes", 0, kernel(
        " ; in x: f32[6]; temp t: f32[2, 4]; out y: f32[6]",
        "forall a < 2, b < 3", "  t[a, b] = x[3 * a + b]", "  y[3 * a + b] = t[a, b]")),
    "the temporary has both axes twice": ("fuse-axes", 0, kernel(
        " ; in x: f32[6]; out y: f32[6]",
        "forall a < 2, b < 3", "  t[a, b, a, b] = x[3 * a + b]", "  y[3 * a + b] = t[a, b, a, b]")),
    "one statement has the outer axis only": ("fuse-axes", 0, kernel(
        " ; in x: f32[2]; in w: f32[6]; out y: f32[6]",
        "forall a < 2", "  t[a] = x[a]", "forall a < 2, b < 3", "  y[3 * a + b] = t[a] * w[3 * a + b]")),
    "one statement has fewer steps of the inner axis": ("fuse-axes", 0, kernel(
        " ; in x: f32[6]; inout y: f32[6]",
        "forall a < 2, b < 3", "  t[3 * a + b] = x[3 * a + b]", "forall a < 2, b < 2",
        "  y[3 * a + b] = t[3 * a + b]")),
    "what is summed lies between the axes": ("fuse-axes", 1, kernel(
        " ; in x: f32[6, 4]; inout y: f32[6]",
        "forall a < 2, k < 4, b < 3", "  y[3 * a + b] += x[3 * a + b, k]")),
    "sizes of the data are not known": ("pad", 0, kernel(
        "N; in x: f32[N]; in w: f32[3]; inout y: f32[]; permits reassociate, finite",
        "forall h < N, r < 3 where 1 <= h + r, h + r <= N", "  u[h, r] = x[h + r - 1] * w[r]", "  y[] += u[h, r]")),
    "a size stands in the index": ("pad", 0, kernel(
        "N; in x: f32[9]; in w: f32[4]; inout y: f32[]; permits reassociate, finite",
        "forall h < 4 where h + N <= 8", "  u[h] = x[h + N] * w[h]", "  y[] += u[h]")),
    "a size stands in the index of the other factor": ("pad", 0, kernel(
        "N; in x: f32[9]; in w: f32[N + 1]; inout y: f32[]; permits reassociate, finite",
        "forall h < 9 where 1 <= h", "  u[h] = x[h - 1] * w[N]", "  y[] += u[h]")),
    "the other factor has a size that is not known": ("pad", 0, kernel(
        "N; in x: f32[9]; in w: f32[N + 9]; inout y: f32[]; permits reassociate, finite",
        "forall h < 9 where 1 <= h", "  u[h] = x[h - 1] * w[h]", "  y[] += u[h]")),
    "the result would leave its range": ("pad", 0, kernel(
        " ; in x: f32[6]; in w: f32[3]; inout y: f32[6]; permits reassociate, finite",
        "forall h < 5, r < 3 where h + r <= 5", "  u[h, r] = x[h + r] * w[r]", "  y[h + r] += u[h, r]")),
    "the other factor would leave its range": ("pad", 0, kernel(
        " ; in x: f32[6]; in w: f32[6]; inout y: f32[5]; permits reassociate, finite",
        "forall h < 5, r < 3 where h + r <= 5", "  u[h, r] = x[h + r] * w[h + r]", "  y[h] += u[h, r]")),
    "the first element is not read": ("pad", 1, kernel(
        " ; in x: f32[6]; in w: f32[8]; inout y: f32[]; permits reassociate, finite",
        "forall h < 8 where h + 1 <= 5", "  u[h] = x[h + 1] * w[h]", "  y[] += u[h]")),
    "the last elements are not read": ("pad", 1, kernel(
        " ; in x: f32[6]; in w: f32[4]; inout y: f32[]; permits reassociate, finite",
        "forall h < 4 where 2 <= h", "  u[h] = x[h - 2] * w[h]", "  y[] += u[h]")),
    "a condition stands there the other way round": ("peel", 0, kernel(
        "N; in x: f32[N, N]; out y: f32[N, N]",
        "forall i < N, j < N where i <= j", "  y[i, j] = x[i, j]",
        "forall i < N, j < N where j < i", "  y[i, j] = x[i, j] * 2")),
    "not all that goes along has both axes of a condition": ("peel", 0, kernel(
        "N; in a: f32[N]; in b: f32[N]; out z: f32[N, N]; inout c: f32[N, N]",
        "forall i < N", "  t[i] = a[i]", "forall i < N, j < N", "  z[i, j] = t[i] * b[j]",
        "forall i < N, j < N where j <= i", "  c[i, j] = 2")),
    "a condition ends before the cut": ("peel", 2, kernel(
        " ; in x: f32[5]; inout y: f32[8]", "forall h < 8 where h <= 4", "  u[h] = x[h] * 2", "  y[h] += u[h]")),
    "rows are as long as asked": ("pitch", 0, kernel(
        " ; in b: f32[16]; out y: f32[16]", "forall i < 16", "  y[i] = b[i]")),
    "one element is used": ("trim", 1, kernel(
        " ; in b: f32[3]; temp t: f32[3]; out y: f32[3]", "forall i < 1", "  t[i] = b[i]",
        "forall i < 3", "  y[i] = b[i] * t[0]")),
    "a temporary is not used": ("trim", 0, kernel(
        " ; in b: f32[3]; temp t: f32[3]; out y: f32[3]", "forall i < 3", "  y[i] = b[i]")),
    "nothing is added along an axis of one element": ("round-up-sum", 0, kernel(
        " ; in a: f32[3, 1]; in b: f32[3, 1]; out y: f32[3]", "forall i < 3, k < 1", "  y[i] = a[i, k] + b[i, k]")),
    "fewer steps of an axis of that name write the same": ("round-up", 2, kernel(
        " ; in a: f32[3]; in b: f32[2]; out y: f32[3]", "forall i < 3", "  y[i] = a[i]", "forall i < 2",
        "  y[i] = b[i]")),
    "the larger of zeros and zero": ("round-up-sum", 2, kernel(
        " ; in a: f32[3]; inout y: f32[]; permits reassociate", "forall k < 3", "  t[k] = max(a[k], 0)",
        "  y[] += t[k]")),
    "the first element is added to all": ("round-up-sum", 0, kernel(
        " ; in a: f32[3]; inout y: f32[]; permits reassociate", "forall k < 3", "  t[k] = a[k] + a[0]",
        "  y[] += t[k]")),
    "the product is added once, and not up": ("pad", 0, kernel(
        " ; in x: f32[6]; in w: f32[6]; in b: f32[6]; inout y: f32[6]; permits reassociate, finite",
        "forall h < 6 where 1 <= h", "  u[h] = x[h - 1] * w[h]", "  y[h] = u[h] + b[h]")),
    "products lie apart": ("pad", 0, kernel(
        " ; in x: f32[6]; in w: f32[6]; inout y: f32[]; temp u: f32[11]; permits reassociate, finite",
        "forall h < 6 where 1 <= h", "  u[2 * h] = x[h - 1] * w[h]", "  y[] += u[2 * h]")),
    "each step is scattered elsewhere": ("skew", 0, kernel(
        " ; in x: f32[3]; inout y: f32[4]; permits reassociate",
        "loop t < 2", "  forall a < 3", "    y[a + t] += x[a]")),
    "each step reads elsewhere": ("unfold", 0, kernel(
        " ; in x: f32[4]; inout y: f32[3]", "loop t < 2", "  forall a < 3", "    y[a] += x[a + t]")),
    "integers have no least number": ("unfold-sum", 0, kernel(
        " ; in x: i32[3, 2]; inout y: i32[4]", "forall a < 3, b < 2", "  y[a + b] max= x[a, b]")),
    "floats have a least number": ("unfold-sum", 1, kernel(
        " ; in x: f32[3, 2]; inout y: f32[4]; permits reassociate", "forall a < 3, b < 2",
        "  y[a + b] max= x[a, b]")),
    "zeros around the data are a result": ("unpad", 0, kernel(
        " ; in x: f32[3]; in w: f32[3]; out p: f32[5]; inout y: f32[3]; permits reassociate, finite",
        "forall i < 5", "  p[i] = 0", "forall i < 3", "  p[i + 1] = x[i]", "forall h < 3, r < 3",
        "  u[h, r] = p[h + r] * w[r]", "  y[h] += u[h, r]")),
    "zeros around the data, times a number": ("unpad", 1, kernel(
        " ; in x: f32[3]; temp p: f32[5]; inout y: f32[3]; permits reassociate, finite",
        "forall i < 5", "  p[i] = 0", "forall i < 3", "  p[i + 1] = x[i]", "forall h < 3, r < 3",
        "  u[h, r] = 2 * p[h + r]", "  y[h] += u[h, r]")),
    "what is around the data is no zero": ("unpad", 0, kernel(
        " ; in x: f32[3]; in v: f32[5]; in w: f32[3]; temp p: f32[5]; inout y: f32[3]; permits reassociate, finite",
        "forall i < 5", "  p[i] = 0 - v[i]", "forall i < 3", "  p[i + 1] = x[i]", "forall h < 3, r < 3",
        "  u[h, r] = p[h + r] * w[r]", "  y[h] += u[h, r]")),
    "zeros are read before the data is there": ("unpad", 0, kernel(
        " ; in x: f32[3]; in w: f32[3]; temp p: f32[5]; inout y: f32[3]; permits reassociate, finite",
        "forall i < 5", "  p[i] = 0", "forall h < 3, r < 3", "  u[h, r] = p[h + r] * w[r]", "  y[h] += u[h, r]",
        "forall i < 3", "  p[i + 1] = x[i]")),
    "zeros around the data are read twice at once": ("unpad", 0, kernel(
        " ; in x: f32[3]; in w: f32[3]; temp p: f32[5]; inout y: f32[3]; permits reassociate, finite",
        "forall i < 5", "  p[i] = 0", "forall i < 3", "  p[i + 1] = x[i]",
        "forall h < 3, r < 3", "  u[h, r] = p[h + r] * p[h]", "  y[h] += u[h, r]",
        "forall h < 3, r < 3", "  v[h, r] = p[h + r] * w[h]", "  y[h] += v[h, r]")),
    "the data is made after the zeros": ("unpad", 1, kernel(
        " ; inout x: f32[3]; in w: f32[3]; temp p: f32[5]; inout y: f32[3]; permits reassociate, finite",
        "forall i < 5", "  p[i] = 0", "forall i < 3", "  x[i] = x[i] * 2", "  p[i + 1] = x[i]", "forall h < 3, r < 3",
        "  u[h, r] = p[h + r] * w[r]", "  y[h] += u[h, r]")),
    "parts of what is added to": ("unpeel", 1, ADDED := kernel(
        " ; in a: f32[5]; inout y: f32[5]", "forall i < 2", "  y[i] += a[i]", "forall i < 3",
        "  y[i + 2] += a[i + 2]")),
    "parts of what is added to are no parts of a sum": ("unpeel-sum", 0, ADDED),
    "parts of a sum under a condition": ("unpeel-sum", 1, SUMMED := kernel(
        " ; in a: f32[3, 3]; inout y: f32[3]; permits reassociate", "forall i < 3, k < 3 where k <= i",
        "  y[i] += a[i, k]", "forall i < 3, k < 3 where i < k", "  y[i] += a[i, k]")),
    "parts of a sum are added in another order": ("unpeel", 0, SUMMED),
    "the second part is what the first one reads": ("unpeel", 0, kernel(
        " ; inout y: f32[6]", "forall i < 2", "  y[i] = y[i + 2] * 2", "forall i < 2",
        "  y[i + 2] = y[i + 4] * 2")),
    "both parts write one element": ("unpeel", 0, ONE_ELEMENT := kernel(
        " ; in a: f32[2]; out y: f32[1]", "forall k < 1", "  y[0] = a[k]", "forall k < 1", "  y[0] = a[k + 1]")),
    "both parts write one element, which is no sum": ("unpeel-sum", 0, ONE_ELEMENT),
    "both parts choose one element": ("unpeel-sum", 0, kernel(
        " ; in c: bool[2]; in a: f32[2]; inout y: f32[1]; permits reassociate",
        "forall k < 1", "  y[0] = select(c[k], a[k], y[0])", "forall k < 1",
        "  y[0] = select(c[k + 1], a[k + 1], y[0])")),
    "one part has an axis more": ("unpeel", 0, kernel(
        " ; in a: f32[3, 3]; out y: f32[3, 3]", "forall i < 3", "  y[i, 0] = a[i, 0]", "forall i < 3, j < 2",
        "  y[i, j + 1] = a[i, j + 1]")),
    "one part has a step more": ("unpeel", 0, kernel(
        " ; in a: f32[4, 3]; inout y: f32[4, 3]", "forall i < 3, j < 3 where i <= j", "  y[i, j] = a[i, j]",
        "forall i < 4, j < 3 where j < i", "  y[i, j] = a[i, j]")),
    "parts of any size": ("unpeel", 1, kernel(
        "N, M; in a: f32[N + M]; out y: f32[N + M]", "forall i < N", "  y[i] = a[i]", "forall i < M",
        "  y[i + N] = a[i + N]")),
    "a part may have less than no steps": ("unpeel", 0, kernel(
        "N; in a: f32[N + 2]; inout y: f32[N + 2]", "forall i < 2", "  y[i] = a[i]", "forall i < N - 1",
        "  y[i + 2] = a[i + 2]")),
    "all is read between the parts": ("unpeel", 0, kernel(
        " ; in a: f32[4]; inout y: f32[4]; out z: f32[4]", "forall i < 2", "  y[i] = a[i]", "forall i < 4",
        "  z[i] = y[i]", "forall i < 2", "  y[i + 2] = a[i + 2]")),
    "tiles of an unknown number": ("strassen", 0, kernel(
        "N; in a: f32[N + 2, 4]; in b: f32[4, 4]; inout y: f32[N + 2, 4]; permits reassociate, finite",
        "forall i < N + 2, j < 4, k < 4", *MATMUL)),
    "no tiles": ("strassen", 0, kernel(
        " ; in a: f32[0, 4]; in b: f32[4, 4]; inout y: f32[0, 4]; permits reassociate, finite",
        "forall i < 0, j < 4, k < 4", *MATMUL)),
    "the sum is a factor too": ("strassen", 2, kernel(
        " ; in a: f32[4, 4]; inout y: f32[4, 4]; permits reassociate, finite",
        "forall i < 4, j < 4, k < 4", "  u[i, j, k] = a[i, k] * y[k, j]", "  y[i, j] += u[i, j, k]")),
    "the product has the names of the sum otherwise": ("strassen", 2, kernel(
        " ; in a: f32[4, 4]; in b: f32[4, 4]; inout y: f32[4, 4]; permits reassociate, finite",
        "forall j < 4, i < 4, k < 4", "  u[j, i, k] = a[j, k] * b[k, i]",
        "forall i < 4, j < 4, k < 4", "  y[i, j] += u[i, j, k]")),
    "the first of two is no cast": ("join-casts", 0, kernel(
        " ; in a: f32[4]; in b: f32[4]; out y: f64[4]", "forall i < 4", "  t[i] = max(a[i], b[i])",
        "  y[i] = f64(t[i])")),
    "what stays was read before it changed": ("choice-to-extremum", 0, kernel(
        " ; in a: f32[4]; inout b: f32[4]; out y: f32[4]; permits finite", "forall i < 4", "  y[i] = b[i]",
        "  b[i] = b[i] * 2", "  c[i] = a[i] > b[i]", "  y[i] = select(c[i], a[i], y[i])")),
    "what stays lies elsewhere": ("choice-to-extremum", 0, kernel(
        " ; in a: f32[4]; in b: f32[4]; out y: f32[4]; permits finite", "forall i < 4", "  c[i] = a[i] > b[i]",
        "  y[3 - i] = b[i]", "  y[i] = select(c[i], a[i], y[i])")),
    "what is multiplied is no sum": ("distribute", 0, kernel(
        " ; in a: f32[4]; in b: f32[4]; in p: f32[4]; temp z: f32[4]; out y: f32[4]", "forall i < 4", "  z[i] = 0",
        "  z[i] = a[i] + b[i]", "  y[i] = z[i] * p[i]")),
    "the largest product": ("distribute", 1, kernel(
        " ; in a: f32[4, 3]; in p: f32[4]; inout y: f32[]", "forall i < 4", "  z[i] = 0", "forall i < 4, r < 3",
        "  z[i] += a[i, r]", "forall i < 4", "  u[i] = z[i] * p[i]", "  y[] max= u[i]")),
    "what is taken in is no scaling": ("push-scaling", 0, kernel(
        PAIR, "forall i < 4", "  t[i] = max(a[i], b[i])", "  y[i] += t[i]")),
    "what is infinite is no scaling": ("push-scaling", 0, kernel(
        PAIR, "forall i < 4", "  t[i] = max(a[i], b[i])", "  y[i] = t[i] + inf")),
    "the larger one is the smaller one below zero": ("push-scaling", 1, kernel(
        PAIR, "forall i < 4", "  t[i] = max(a[i], b[i])", "  y[i] = -t[i]")),
    "the larger the less is left": ("push-scaling", 0, kernel(
        PAIR, "forall i < 4", "  t[i] = max(a[i], b[i])", "  y[i] = 3 - t[i]")),
    "a sum is scaled": ("push-scaling", 0, kernel(
        PAIR, "forall i < 4", "  t[i] = a[i] + b[i]", "  y[i] = t[i] * 3")),
    "truths are copied": ("identity-matrix", 0, kernel(
        " ; in a: bool[4]; out y: bool[4]", "forall i < 4", "  y[i] = a[i]")),
    "the largest of what was there before": ("join", 0, kernel(
        " ; in a: i32[4, 3]; in b: i32[4]; inout y: i32[]", "forall i < 4", "  p[i] = b[i]", "forall i < 4, r < 3",
        "  p[i] max= a[i, r]", "forall i < 4", "  y[] max= p[i]")),
    "partial sums are taken away": ("join", 0, kernel(
        " ; in a: f32[4, 3]; inout y: f32[4]", "forall i < 4", "  p[i] = 0", "forall i < 4, r < 3",
        "  p[i] += a[i, r]", "forall i < 4", "  y[i] = y[i] - p[i]")),
    "some elements are never there": ("dilate", 0, kernel(
        " ; in b: f32[3]; in w: f32[2]; temp x: f32[4]; inout y: f32[6]; permits reassociate, finite",
        "forall i < 3", "  x[i] = b[i]", "forall a < 3, r < 2", "  u[a, r] = x[a] * w[r]",
        "  y[2 * a + r] += u[a, r]")),
    "the name of half an axis is that of a loop": ("split-axis", 1, kernel(
        " ; in a: f32[4]; inout y: f32[4]", "loop k_o < 2", "  forall k < 4", "    y[k] = y[k] + a[k]")),
    "the name of half an axis is that of an axis that nothing mentions": ("split-axis", 1, kernel(
        " ; in a: f32[4]; inout y: f32[4]", "forall k < 4, k_o < 1", "  y[k] = y[k] + a[k]")),
    "what is scaled has an axis of one element more": ("push-scaling", 0, kernel(
        " ; in a: f32[4, 1]; in b: f32[4, 1]; out y: f32[4]", "forall i < 4, k < 1",
        "  t[i] = max(a[i, k], b[i, k])", "forall i < 4", "  y[i] = t[i] * 2")),
    "what is scaled lies apart": ("push-scaling", 0, kernel(
        " ; in a: f32[4]; in b: f32[4]; temp t: f32[7]; out y: f32[4]", "forall i < 4",
        "  t[2 * i] = max(a[i], b[i])", "  y[i] = t[2 * i] * 2")),
    "what is scaled was made by earlier steps": ("push-scaling", 0, kernel(
        " ; in a: f32[3]; in b: f32[3]; inout y: f32[3]", "loop s < 3", "  forall i < 3 where i <= s, s <= i",
        "    t[i] = max(a[s], b[s])", "  forall i < 3 where i <= s", "    y[i] = t[i] * 2")),
    "a loop runs before it is scaled": ("push-scaling", 1, kernel(
        " ; in a: f32[3]; in b: f32[3]; temp t: f32[4]; out y: f32[3]; inout z: f32[3]", "forall i < 3",
        "  t[i] = max(a[i], b[i])", "loop s < 2", "  forall i < 3", "    z[i] = z[i] * z[i]", "forall i < 3",
        "  y[i] = t[i] * 2")),
    "a copy lies in one row": ("inline", 0, kernel(
        " ; in a: f32[4]; temp t: f32[4, 2]; out y: f32[4]", "forall i < 4", "  t[i, 0] = a[i]",
        "  y[i] = exp(t[i, 0])")),
    "products are added once": ("factor", 0, kernel(
        " ; in a: f32[4, 1]; in b: f32[4, 1]; in p: f32[4]; out y: f32[4]", "forall i < 4, k < 1",
        "  u[i, k] = a[i, k] * p[i]", "  y[i] = u[i, k] + b[i, k]")),
    "products have an axis of one element more": ("factor", 0, kernel(
        " ; in a: f32[4, 1]; in p: f32[1]; inout y: f32[]", "forall i < 4, k < 1", "  u[i] = a[i, k] * p[0]",
        "forall i < 4", "  y[] += u[i]")),
    "products lie on a diagonal": ("factor", 0, kernel(
        " ; in a: f32[4]; in p: f32[1]; inout y: f32[]", "forall k < 4", "  u[k, k] = a[k] * p[0]",
        "  y[] += u[k, k]")),
    "terms may be missing where a size is not known": ("factor", 0, kernel(
        "N; in a: f32[N, 4]; in p: f32[N]; out y: f32[N]; permits reassociate",
        "forall i < N", "  y[i] = 0", "forall i < N, j < 4 where i <= j",
        "  u[i, j] = a[i, j] * p[i]", "  y[i] += u[i, j]")),
}  # fmt: skip
