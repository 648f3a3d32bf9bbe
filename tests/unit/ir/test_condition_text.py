"""What a condition says in words, read again: it holds where the text does."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.condition import Condition, _among

EXTENTS = [Affine.of("T"), Affine.of("T", 2, 3), Affine.of("T") - 3, 16 - Affine.of("T"), Affine.of("T") + "U"]
REMAINDERS = [(1, (0,)), (8, (0,)), (8, (3, 5)), (8, (0, 4, 5, 6))]


def numbers(text: str) -> list[int]:
    """What stands between braces: numbers, ``a..b``, ``a..b by c``."""
    out: list[int] = []
    for part in text.split(", "):
        ends, _, by = part.partition(" by ")
        low, dots, high = ends.partition("..")
        assert dots or not by
        out += range(int(low), int(high) + 1, int(by or 1)) if dots else [int(low)]
    return out


def read(text: str) -> Callable[..., bool]:
    return eval("lambda T, U: " + re.sub(r"\{(.*?)\}", lambda m: str(numbers(m[1])), text))


@pytest.mark.parametrize("extent", EXTENTS, ids=str)
def test_the_text_holds_where_the_condition_does(extent: Affine):
    for least, most, (step, rests), some in product((0, 1, 4), (None, 0, 4, 9), REMAINDERS, ((), (0,), (0, 2, 7))):
        c = Condition(extent, least, most, step, rests, some)
        if (least, most, step) == (0, None, 1):
            continue  # of what always holds nothing is said
        says = read(str(c))
        for n in range(22):
            sizes = {"T": n, "U": 1}
            value = extent.evaluate(sizes)
            steps = max(value, 0)
            holds = steps in some or (least <= steps <= (99 if most is None else most) and steps % step in rests)
            assert c.holds(sizes) == c.admits(value) == holds, (c, n)
            if value >= 0 or least > 0 or c.admits(0):  # what begins at zero admits it
                assert says(**sizes) == holds, (c, n)


@pytest.mark.parametrize(("told", "numbers"), [
    ("== 8", [8]), ("in {3, 5}", [3, 5]), ("in {4, 5}", [4, 5]), ("in {4..6}", [4, 5, 6]),
    ("in {0, 8, 16}", [0, 8, 16]), ("in {0..24 by 8}", [0, 8, 16, 24]), ("in {0, 4..6}", [0, 4, 5, 6]),
    ("in {0..2, 9}", [0, 1, 2, 9]), ("in {1, 3, 4, 9..15 by 2, 20}", [1, 3, 4, 9, 11, 13, 15, 20]),
    ("in {0, 5, 6..12 by 2}", [0, 5, 6, 8, 10, 12]), ("in {0, 1, 3..5}", [0, 1, 3, 4, 5]),
])  # fmt: skip
def test_numbers_in_few_words(told: str, numbers: list[int]):
    assert _among(numbers) == told
