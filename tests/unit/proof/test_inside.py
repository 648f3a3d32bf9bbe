"""Temporaries whose elements are numbered by several axes, as digits: read as what was written, by enumeration."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain
from isam.ir.text import parse_kernel
from isam.proof.inside import Inside, Leaf, Op, numbering, same_digits
from isam.system.load import load_system
from tests.pipeline import compiled

V = Affine.of
X = Leaf(Access("x", (V("i"), V("j"), V("k"))), 0, "f32")


def domain(**steps: int | str) -> Domain:
    return Domain(tuple(Axis(n, V(k) if isinstance(k, str) else Affine((), k)) for n, k in steps.items()))


def test_a_number_has_one_writer() -> None:
    """Where it is said that each element is written from one point, it is; and of digits it is said."""
    said = Counter[bool]()
    for a, b, const, i, j in product((-1, 0, 1, 2, 3, 4), (0, 1, 2, 4, 5), (0, 1), (1, 2, 4), (1, 3)):
        row = V("i", a) + V("j", b) + const
        names = numbering(Access("t", (row,)), domain(i=i, j=j))
        elements = Counter(a * x + b * y for x, y in product(range(i if a else 1), range(j if b else 1)))
        digits = bool(a or b) and not const and told([(w, n) for w, n in ((a, i), (b, j)) if w and n > 1])
        assert names == (set(row.names) if digits else None)
        assert not digits or max(elements.values()) == 1
        said[digits] += 1
    assert min(said.values()) > 50


def told(moving: list[tuple[int, int]]) -> bool:
    """Whether weights, of axes with more than one step, are those of digits."""
    low, high = min(moving, default=(1, 1)), max(moving, default=(1, 1))
    return low[0] > 0 and (len(moving) < 2 or high[0] > low[0] * (low[1] - 1))


@pytest.mark.parametrize(("row", "steps", "axes"), [
    (V("i", 4) + V("j"), {"i": "N", "j": 4}, {"i", "j"}),  # steps known at run time only: of the largest digit
    (V("i") + V("j", 4), {"i": "N", "j": 4}, None),
    (V("i"), {"i": "N"}, {"i"}),
    (V("N", 4) + V("j"), {"j": 4}, None),  # a size is no axis
    (V("N"), {"j": 4}, None),
    (Affine(), {"j": 4}, None),
])  # fmt: skip
def test_what_numbers(row: Affine, steps: dict[str, int | str], axes: set[str] | None) -> None:
    assert numbering(Access("t", (row,)), domain(**steps)) == axes
    assert numbering(Access("t", (row, row)), domain(**steps)) is None
    for rows in ((V("m"), row), (row, V("m"))):  # every row has to
        assert numbering(Access("t", rows), domain(m=2, **steps)) == (None if axes is None else axes | {"m"})


def test_values_at_every_second_element_and_numbers() -> None:
    """Written at ``2*i`` and read at ``2*p``: at ``p``. A number is the same at every element."""
    one = Leaf(None, 0, "f32", 1.0)
    t = Inside(Access("t", (V("i", 2),)), domain(i=4), Op("add", "f32", (Leaf(Access("x", (V("i"),)), 0, "f32"), one)))
    said = Op("add", "f32", (Leaf(Access("x", (V("p"),)), 0, "f32"), one))
    assert t.read(Access("t", (V("p", 2),)), domain(p=4)) == said
    assert isinstance(t.read(Access("t", (V("p"),)), domain(p=8)), str)


def test_what_is_read_was_written_there() -> None:
    """Every point reads the value of the one point that wrote the element; in one dimension of several, too."""
    said = Counter[bool]()
    for (a, b), (c, d), (i, j), (p, q), const in product(
            ((4, 1), (1, 5), (6, 2), (1, 0)), ((4, 1), (1, 5), (6, 2), (4, 2), (1, 0)), ((5, 4), (5, 3)),
            ((5, 4), (2, 5), (5, 2), (8, 3)), (0, 1)):  # fmt: skip
        wrote, row = domain(i=i, j=j, k=3), V("i", a) + V("j", b)
        t, at = (Access("t", rows) for rows in ((V("k"), row), (V("p", 2), V("p", c) + V("q", d) + const)))
        if numbering(t, wrote) is None:
            continue
        got = Inside(t, wrote, Op("copy", "f32", (X,))).read(at, domain(p=p, q=q))
        said[isinstance(got, Op)] += 1
        fewer = p <= i if a < b else q <= j  # steps of the smaller digit
        assert isinstance(got, Op) == (not b or ((a, b) == (c, d) and not const and fewer))
        assert isinstance(got, Op | str)
        if isinstance(got, Op):
            (leaf,) = got.args
            for here in product(range(p), range(q)):
                point = dict(zip("pq", here, strict=True))
                i_, j_, k_ = (r.evaluate({**point, "j": 0}) for r in leaf.access.index)  # type: ignore[union-attr]
                assert (k_, a * i_ + b * j_) == tuple(r.evaluate(point) for r in at.index)
                assert not b or min(i_, j_) >= 0 < min(i - i_ if a < b else 1, j - j_ if b < a else 1)
    assert min(said.values()) > 10


@pytest.mark.parametrize("read", [
    V("p", 4) + V("q") + V("r"),  # two axes play one digit
    V("p", 4) + V("q", 2), V("p", 4) + V("q") + 1, V("p", 4), V("q"),
    V("p", 4) + V("N"),  # steps of the smaller digit that are not known
])  # fmt: skip
def test_what_is_read_by_other_digits_cannot_be_said(read: Affine) -> None:
    one = Inside(Access("t", (V("i", 4) + V("j"),)), domain(i=5, j=4, k=3), Op("copy", "f32", (X,)))
    axes = domain(p=5, q=4, r=2)
    assert isinstance(one.read(Access("t", (V("p", 4) + V("q"),)), axes), Op)
    assert isinstance(one.read(Access("t", (V("N", 4) + V("q"),)), axes), Op)  # the element tells which it is
    assert isinstance(one.read(Access("t", (read,)), axes), str)


STILL = """kernel still()
  permits contract, finite, reassociate
  in    x: i8[48, 2]
  temp  t: i8[2, 48]
  inout y: i8[2, 48]
  forall i < 1, k < 2, j < 48
    t[k, i + j] = x[48*i + j, k] * 2
  forall k < 2, j < 48, i < 1
    y[k, i + j] += t[k, i + j]
"""


def test_an_axis_of_one_step_is_no_digit() -> None:
    """Whether it stands in a row beside another one of its weight, or not."""
    kernel = parse_kernel(STILL)
    assert compiled(kernel, {}, load_system("host-avx2"), check=True).certificate
    assert same_digits(V("i") + V("j"), domain(i=1, j=4), V("p"), domain(p=4)) == {"j": "p"}
    assert not same_digits(V("i") + V("j"), domain(i=2, j=4), V("p"), domain(p=4))
    t = Inside(Access("t", (V("i") + V("j"),)), domain(i=1, j=4, k=3), Op("copy", "f32", (X,)))
    (leaf,) = t.read(Access("t", (V("p"),)), domain(p=4)).args
    assert leaf.access.index == (Affine(), V("p"), V("k"))
    (leaf,) = t.read(Access("t", (V("p") + V("q"),)), domain(p=4, q=1)).args
    assert leaf.access.index == (V("q"), V("p"), V("k"))
    assert isinstance(t.read(Access("t", (V("p") + V("q"),)), domain(p=4, q=2)), str)
