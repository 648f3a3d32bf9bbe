"""A sample of ``python -m tests.metamorphic 10000``: how a kernel is written down changes no mapping (MAP-3)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from isam.ir.kernel import Access
from isam.ir.normal import normal_form
from isam.transforms.structure.axes import SplitAxis
from tests import metamorphic
from tests.metamorphic import COMPARED, mappings, rewritten, trial
from tests.mutators import access, each
from tests.suite.columns import typed


@pytest.mark.parametrize("block", range(4))
def test_a_sample_of_rewritings(block: int):
    COMPARED[0] = 0
    assert [f for seed in range(50 * block, 50 * block + 50) if (f := trial(seed))] == []
    assert COMPARED[0] > 60


def test_a_kernel_that_is_not_the_same_is_told():
    """The transposition of one read: the comparison would see it."""
    kernel = normal_form(typed("matmul", "f32", "f32"))
    want = mappings(kernel, "product")
    other = rewritten(kernel, 3)
    turned = {"b": next(b for b, (old, _) in other.buffers.items() if old == "A")}

    def turn(a: Access) -> Access:
        return replace(a, index=a.index[::-1]) if a.buffer == turned["b"] else a

    body = each(other.kernel.body, lambda s: replace(s, sources=tuple(access(x, turn) for x in s.sources)))
    wrong = replace(other, kernel=replace(other.kernel, body=body, template=None))
    assert mappings(other.kernel, "product", other) == want
    assert mappings(wrong.kernel, "product", wrong) != want


def test_axes_are_split_and_joined():
    kernel = normal_form(typed("conv2d_nchw", "f32", "f32"))
    assert SplitAxis((2,)).sites(kernel)
    joined = metamorphic.split_and_joined(kernel, random.Random(1))
    assert joined is not kernel
    assert [str(s) for s in joined.statements] == [str(s) for s in kernel.statements]
