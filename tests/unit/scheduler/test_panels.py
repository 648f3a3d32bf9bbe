"""What is laid out anew before it is read: dimensions that two axes count, panels read side by side."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from isam.system.load import load_system
from tests.pipeline import compiled, judge, simulated
from tests.systems.test_serpentine import NARROW
from tests.unit.scheduler.test_next_block import GATES

SPLIT = """kernel split(M, L, D)
  in  Q: f32[M, D]
  in  K: f32[{step} * (L - 1) + 16, D]
  out Y: f32[M, L, 16]
  forall i < M, o < L, l < 16
    Y[i, o, l] = 0
  forall i < M, o < L, l < 16, d < D
    Y[i, o, l] += Q[i, d] * K[{step} * o + l, d]
"""


def scheduled(text: str, sizes: dict[str, int]) -> Schedule:
    job = compiled(parse_kernel(text), sizes, simulated("host-avx512"))
    assert job.schedule is not None
    judge(parse_kernel(text), sizes, job, 3)
    return job.schedule


@pytest.mark.parametrize("outer", [3, 4, 9])
def test_a_dimension_that_two_axes_count_is_packed_as_one(outer):
    made = scheduled(SPLIT.format(step=16), {"M": 24, "L": outer, "D": 12})
    assert [s.bytes for s in made.workspace if s.name.startswith("K.")] == [outer * 16 * 12 * 4]


def test_a_dimension_in_which_windows_overlap_is_not():
    made = scheduled(SPLIT.format(step=8), {"M": 24, "L": 4, "D": 12})
    assert not any(s.name.startswith("K.") for s in made.workspace)


def test_a_step_of_a_time_loop_is_one_of_what_is_read():
    """One row of one element: what is read along the vector axis, rows of it, is counted by the steps, too."""
    sizes = {"T": 3, "B": 21, "H": 1}
    assert compiled(parse_kernel(GATES), sizes, load_system(NARROW), check=True).schedule is not None
