"""Which operands of an instruction may be one tile: by carrying it out on one array, and on two."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access
from isam.proof.aliasing import pointwise
from isam.proof.semantics import Pair

INDICES = {"i": (Affine.of("i"),), "k": (Affine.of("k"),), "turned": (Affine.of("i", -1, 3),), "0": (Affine(),)}


def carried_out(extents: dict[str, int], written: str, read: str, same: bool) -> list[int]:
    """``D[..] = 2 * D[..] + A[..] + 1`` at every point, in order; ``same``: A is D."""
    d = [3, 5, 7, 11]
    a = d if same else list(d)
    for values in product(*map(range, extents.values())):
        env = dict(zip(extents, values, strict=True))
        to, of = (INDICES[x][0].evaluate(env) for x in (written, read))
        d[to] = 2 * d[to] + a[of] + 1
    return d


@pytest.mark.parametrize("read", INDICES)
@pytest.mark.parametrize("written", INDICES)
def test_one_tile_where_each_element_is_its_own(written: str, read: str) -> None:
    for i, k, late in product((1, 2, 4), (1, 2, 3), (0, 1)):
        own, other = Access("D", INDICES[written]), Access("A", INDICES[read])
        pairs = (Pair("D", own, own, 0, True, None, 0), Pair("A", other, other, 0, False, None, late))
        sig: Any = SimpleNamespace(extents={"i": i, "k": k}, semantics=SimpleNamespace(pairs=pairs))
        extents = {"i": i, "k": k}
        may = ("D", "A") in pointwise(sig)
        unlike = carried_out(extents, written, read, True) != carried_out(extents, written, read, False)
        assert not (may and (unlike or late))
        once = all(n == 1 for a, n in extents.items() if a not in INDICES[written][0].names)
        assert may == (once and written == read and not late)
