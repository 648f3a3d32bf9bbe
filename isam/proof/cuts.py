"""What is left of a fact when some of its bytes are overwritten, and what two facts say alike.

Small memories use the same bytes for one tile after another, and facts about neighbouring tiles are joined: a write
over some of the bytes takes only its own part away. Parts are proposed by arithmetic and kept where they are proved.
"""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.proof.boxes import Box
from isam.proof.context import Context
from isam.proof.state import Fact


def intersection(one: Box, two: Box, ctx: Context) -> Box | None:
    """The box of what both hold, or ``None`` where it is empty or nothing is proved."""
    out = []
    for (a, b), (c, d) in zip(one, two, strict=True):
        lo = a if ctx.le(c, a) else c if ctx.le(a, c) else None
        hi = b if ctx.le(b, d) else d if ctx.le(d, b) else None
        if lo is None or hi is None or not ctx.le(lo + 1, hi):
            return None
        out.append((lo, hi))
    return tuple(out)


def outside(f: Fact, size: int, low: Affine, high: Affine, ctx: Context) -> list[Box]:
    """Boxes of the fact's elements (of ``size`` bytes) whose bytes lie before ``low`` or from ``high`` on.

    Slices of the dimension with the longest stride come first; of those between, the first and the last are cut on.
    """
    dims = sorted(range(len(f.box)), key=lambda d: -abs(f.strides[d]))
    return _outside(f, f.box, dims, size, low, high, ctx)


def _outside(
    f: Fact, box: Box, dims: list[int], size: int, low: Affine, high: Affine, ctx: Context
) -> list[Box]:
    counts = _free(f, box, dims[0], size, low, high, ctx) if dims else None
    if counts is None:
        return []
    d, (first, last) = dims[0], counts
    lo, hi = box[d]

    def slab(a: Affine, b: Affine) -> Box:
        return (*box[:d], (a, b), *box[d + 1 :])

    out = [slab(*side) for side in ((lo, lo + first), (hi - last, hi)) if side[0] != side[1]]
    between = (hi - lo).const - first - last
    ends = (lo + first, hi - last - 1)[: max(0, between)]
    for e in ends:
        out += _outside(f, slab(e, e + 1), dims[1:], size, low, high, ctx)
    return out


def _free(
    f: Fact, box: Box, d: int, size: int, low: Affine, high: Affine, ctx: Context
) -> tuple[int, int] | None:
    """How many slices at the begin and the end of dimension ``d`` lie wholly outside the bytes written, in
    whatever iteration."""
    at = f.address(lo for lo, _ in box)
    counts = [hi - lo for lo, hi in box]
    below, above = ctx.lower(low - at), ctx.lower(at - high)
    if below is None or above is None or not all(e.is_constant for e in counts):
        return None
    n = counts[d].const
    spans = [(c.const - 1) * k for i, (c, k) in enumerate(zip(counts, f.strides, strict=True)) if i != d]
    least, most = sum(min(0, s) for s in spans), sum(max(0, s) for s in spans) + size
    k = f.strides[d]
    before, after = below - most, -above - least  # slice i is free: i * k <= before or i * k >= after
    if k == 0:
        return (n, 0) if before >= 0 or after <= 0 else (0, 0)
    first, start = (before // k + 1, -(-after // k)) if k > 0 else (after // k + 1, -(-before // k))
    first = max(0, min(n, first))
    return first, max(0, min(n - first, n - start))
