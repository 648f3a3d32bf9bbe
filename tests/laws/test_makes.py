"""A law says which operations it may bring in: instructions that need others are ruled out without a search."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Kernel
from isam.transforms import ALL
from tests.corpus import CASES
from tests.laws.examples import HOLDS
from tests.laws.test_laws import kernels, sample


def brought_in(law, kernel: Kernel) -> set[str]:
    """Operations after the law that were not there before."""
    after = {s.op for site in sample(law, kernel) for s in law.apply(kernel, site).kernel.statements}
    return after - {s.op for s in kernel.statements}


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_no_law_brings_in_an_operation_that_it_does_not_name(law):
    for name in CASES:
        assert brought_in(law, kernels(name)[0]) <= law.makes, name


def test_what_conversions_make_is_what_their_table_says():
    made = {t.law: t.makes for t in ALL}
    assert made["sub-by-add"] == {"add", "neg"}
    assert made["sigmoid-by-exp"] == {"div", "add", "exp", "neg"}
    assert made["split-axis"] == {"copy"}
    assert HOLDS
