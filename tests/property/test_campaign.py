"""A slice of the campaign of random kernels (``python -m tests.campaign`` runs the rest)."""

from __future__ import annotations

import pytest

from tests.campaign import campaign, judge
from tests.corpus import CASES


@pytest.mark.parametrize(("system", "seeds"), [("toy", range(8)), ("toy", range(5000, 5006))])
def test_random_kernels_compile_and_answer_within_their_bounds(system, seeds):
    tally = campaign([system], seeds, check=False)
    assert not tally.failures, "\n\n".join(tally.failures)
    assert tally.counts[f"right on {system}"] == len(seeds), tally.refusals


def test_a_wrong_answer_would_be_told(monkeypatch):
    """The judge is no rubber stamp: one sign changed in a compiled result."""
    import isam

    case = CASES["ger"]
    compiled = isam.compile

    def spoiled(*args, **named):
        fn = compiled(*args, **named)

        def call(**arrays):
            fn(**arrays)
            arrays["A"][0, 1] *= -1

        return call

    monkeypatch.setattr(isam, "compile", spoiled)
    fault = judge(case.load(), case.sizes[0], "toy", 3, check=False)
    assert fault is not None
    assert "A[0, 1]" in fault
