"""Nests that share no loop inside one that others have alone come before or after it, not in one of its iterations."""

from __future__ import annotations

import pytest

from isam.proof.certificate import examine
from isam.schedule.tree import Issue, Loop, Node, distinct
from tests.corpus import CASES
from tests.pipeline import compiled, simulated


def nests(node: Node) -> set[int | None]:
    return {n.nest for n in distinct(node) if isinstance(n, Issue) and not n.is_move}


@pytest.mark.parametrize("on", ["host-zen4", "host-avx512"])
@pytest.mark.parametrize("sizes", [(8, 64, 16, 16, 64), (28, 64, 14, 14, 64)])
def test_a_batch_with_zeros_around_each_image(sizes: tuple[int, ...], on: str) -> None:
    """Zeros, then the image, then the sums, for one image after the other: each in loops of its own. The zeros and the
    image share their channels, all of which one block takes."""
    job = compiled(CASES["padded_conv2d_nhwc_temp"].load(), dict(zip("NCHWK", sizes, strict=True)), simulated(on))
    assert job.schedule is not None
    assert examine(job.schedule)[1] == []
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop)]
    assert all(nests(p) <= nests(n.body) for n in loops for p in (n.first, n.last) if p is not None)
