"""Random kernels through every stage, judged exactly (the campaign runs many more: ``python -m tests.campaign``)."""

from __future__ import annotations

import pytest

from tests.campaign import one


@pytest.mark.parametrize("seed", range(24))
def test_random_kernels_on_toy(seed):
    assert one(seed, "toy", native=False, check=False) == ""


@pytest.mark.parametrize("seed", range(100, 112))
def test_random_kernels_on_this_cpu(seed):
    assert one(seed, "host", native=True, check=False) == ""
