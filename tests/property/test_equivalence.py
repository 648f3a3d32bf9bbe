"""A slice of the campaign of mutants against the judge of rewritings (``python -m tests.campaign_equivalence``)."""

from __future__ import annotations

from collections import Counter

from isam.ir.text import parse_kernel
from tests.campaign_equivalence import judged, mutant

ONE = "kernel k()\n  in x: f32[4]\n  in z: f32[4]\n  out y: f32[4]\n  forall i < 4\n    y[i] = x[i] - z[i]\n"


def test_mutants_are_refused():
    found = Counter()
    for seed in range(400):
        pair = mutant(seed)
        if pair is not None:
            found[answer := judged(*pair)] += 1
            assert answer != "wrong", seed
    assert found["refused"] > 150
    assert found["accepted"] > 50
    assert found["undecided"] <= 0.02 * found.total()


def test_the_campaign_would_tell():
    k = parse_kernel(ONE)
    assert judged(k, parse_kernel(ONE.replace("x[i] - z[i]", "z[i] - x[i]"))) == "refused"
    assert judged(k, k) == "accepted"
