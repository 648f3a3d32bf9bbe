"""A slice of ``python -m tests.campaign_arguments``: views of every kind are right or refused, both ways in."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests import campaign_arguments
from tests.campaign_arguments import View, one, refuses, unlike


@pytest.mark.parametrize("block", range(3))
def test_every_call_is_right_or_refused(block):
    found = {seed: one(seed) for seed in range(700 * block, 700 * block + 700)}
    assert {seed: told for seed, (_, told) in found.items() if told} == {}
    counts = Counter(kind for kind, _ in found.values())
    assert min(counts["right"], counts["refused"]) > 200


def test_the_judge_is_none_that_nods():
    to, block = np.dtype(np.float32), np.arange(campaign_arguments.ROOM).astype(np.uint8)
    plain = {n: View((3,), (4,), 40 * k, to, False) for k, n in enumerate("xhy")}
    assert refuses(plain, "f32", (3,)) == (False, False)
    for name, other in (
        ("h", View((3,), (4,), 40, to, True)), ("y", View((3,), (4,), 48, to, False)),
        ("x", View((4,), (4,), 0, to, False)), ("y", View((3,), (0,), 80, to, False)),
        ("h", View((3,), (4,), 40, to.newbyteorder(), False)),
        ("x", View((3,), (4,), 0, np.dtype(np.int32), False)),
    ):  # fmt: skip
        assert refuses({**plain, name: other}, "f32", (3,)) == (True, True)
    right = block.copy()
    x, h = (plain[n].of(block).copy() for n in "xh")
    plain["h"].of(right)[...], plain["y"].of(right)[...] = h + np.float32(1), x[::-1] + h
    assert unlike(plain, block, right, x[::-1] + h) is None
    assert unlike(plain, block, right, x) is not None
    for at in (36, 41, 81, 199):  # beside an argument, in one, in another, far away
        wrong = right.copy()
        wrong[at] ^= 0x40
        assert unlike(plain, block, wrong, x[::-1] + h) is not None


def test_the_views_are_of_every_kind():
    r, seen = np.random.default_rng(1), Counter()
    for _ in range(600):
        v = campaign_arguments.view(r, "f32", (3, 4), 0)
        seen["misaligned"] += v.offset % 4 > 0
        seen["back"] += any(s < 0 for s in v.strides)
        seen["still"] += any(s == 0 for s in v.strides)
        seen["half"] += any(abs(s) == 2 for s in v.strides)
        seen["turned"] += v.strides == (4, 12)
        seen["plain"] += v.strides == (16, 4)
        seen["foreign"] += not v.dtype.isnative
        seen["read-only"] += v.still
        seen["dtype"] += v.dtype.newbyteorder("=") != np.float32
        seen["shape"] += v.shape != (3, 4)
    assert min(seen.values()) >= 5, seen
    assert len(seen) == 10
