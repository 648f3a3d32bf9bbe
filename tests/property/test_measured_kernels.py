"""Random kernels whose schedules are run beside each other: whichever is taken is right, and replays to the same bytes.

``python -m tests.property.test_measured_kernels FIRST LAST`` tries others.
"""

from __future__ import annotations

import sys
from collections import Counter
from unittest import mock

import numpy as np
import pytest

import isam
from isam.approach.shipped.measured import Measured
from isam.compiler import Refused
from isam.ir.bounds import enclose, outside
from isam.tune import measure
from tests.native_cases import case, data
from tests.random_kernels import show


def judged(seed: int) -> str:
    """What came of it: the schedule that was decided by prediction, another one, or a refusal. Raises
    ``AssertionError`` where results or bytes are others."""
    c = case(seed)
    shown = f"seed {seed}\n{show(c.kernel, c.sizes)}"
    with mock.patch.object(measure, "SECONDS", 0.02):
        try:
            f = isam.compile(c.kernel, sizes=c.sizes, approach=Measured(3), cache=False)
        except Refused:
            return "refused"
    arrays = data(c)
    mine = {n: a.copy() for n, a in arrays.items()}
    with np.errstate(all="ignore"):
        made = f(**mine)
    outs = [b.name for b in c.kernel.arguments if b.role == "out"]
    results = dict(zip(outs, made if len(outs) > 1 else [made], strict=True)) if outs else {}
    results |= {b.name: mine[b.name] for b in c.kernel.arguments if b.role == "inout"}
    assert outside(results, enclose(c.kernel, arrays, c.sizes)) is None, shown
    again = isam.compile(c.kernel, sizes=c.sizes, replay=f.trace, cache=False)
    assert again.artifact.parts["object.o"] == f.artifact.parts["object.o"], shown
    strange = [r.unfit for r in f.job.ran if r.unfit and not r.unfit.startswith("the same code")]
    assert not any(", expected " in why for why in strange), f"{strange}\n{shown}"
    return "by prediction" if not f.job.ran or f.job.ran[0].taken else "another"


@pytest.mark.parametrize("seed", range(9100, 9108))
def test_random_kernels(seed: int) -> None:
    assert judged(seed) != "refused"


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            counts[judged(number)] += 1
        except (AssertionError, isam.IsamError, isam.InternalError) as e:
            print(f"seed {number}: {e}", flush=True)
            counts["WRONG"] += 1
    print(dict(counts))
