"""Counted points are those that a walk over the box finds."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from isam.ir.affine import Affine
from isam.ir.counting import admitted

NAMES = ("a", "b", "c", "d")


@given(st.data())
def test_as_a_walk_finds_them(data: st.DataObject) -> None:
    box = dict(zip(NAMES, data.draw(st.lists(st.integers(0, 5), max_size=4)), strict=False))
    rows = st.dictionaries(st.sampled_from(list(box)), st.integers(-3, 3), max_size=3) if box else st.just({})
    where = [Affine.from_terms(data.draw(rows), data.draw(st.integers(-6, 6)))
             for _ in range(data.draw(st.integers(0, 3)))]  # fmt: skip
    points = (dict(zip(box, p, strict=True)) for p in product(*map(range, box.values())))
    assert admitted(box, where) == sum(all(w.evaluate(p) >= 0 for w in where) for p in points)


def test_large_ones_are_counted_where_few_axes_are_tied_and_else_left_alone() -> None:
    n = 1_000_000
    below = [Affine.of("i") - "j"]
    assert admitted({"i": n, "j": n, "k": n}, below) == n * (n + 1) // 2 * n
    assert admitted({"i": n, "j": n, "k": n}, [*below, Affine.of("j") - "k"]) is None
    assert admitted({"i": n, "j": n}, [Affine.of("i", 1 << 60) - "j"]) is None
    assert admitted({"i": 1 << 20, "j": 1 << 45}, [Affine.of("j") - "i"]) is None
