"""A slice of the campaign of random kernels (``python -m tests.campaign`` runs the rest)."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.system.load import load_system
from tests import campaign
from tests.pipeline import compiled, judge

TEXT = """kernel sides(N)
  in  a: f32[N]
  in  b: f32[N]
  out y: f32[N]
  forall i < N
    y[i] = a[i] - b[i]
"""


@pytest.mark.parametrize(
    ("system", "seeds"),
    [("toy", (*range(12), 1817, 4848, 6093, 8101)), ("host", (*range(6), *range(100, 103), 1845, 5824, 60169)),
     ("blas", range(6))],
)
def test_random_kernels_agree(system, seeds):
    found = {seed: campaign.one(seed, system, system != "toy", True) for seed in seeds}
    wrong = {seed: text for seed, text in found.items() if text not in ("", "no")}
    assert not wrong, "\n\n".join(wrong.values())
    assert sum(text == "" for text in found.values()) >= 0.9 * len(found)


@pytest.mark.parametrize(("system", "seeds"), [("toy", (*range(3), 44, 138, 162, 198, 250)), ("host", range(6))])
def test_random_kernels_that_permit_nothing_agree(system, seeds):
    """Fused nests that cut an axis of a sum in calls of another nest (2); conditions on axes of one value (44 on)."""
    found = {seed: campaign.one(seed, system, system != "toy", True, exact=True) for seed in seeds}
    assert {seed: text for seed, text in found.items() if text} == {}


def test_a_wrong_answer_would_be_told():
    """The judge is no rubber stamp: the schedule of b - a does not pass for that of a - b."""
    job = compiled(parse_kernel(TEXT.replace("a[i] - b[i]", "b[i] - a[i]")), {"N": 7}, load_system("toy"))
    with pytest.raises(AssertionError):
        judge(parse_kernel(TEXT), {"N": 7}, job)
