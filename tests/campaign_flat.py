"""The flat checker both ways on schedules of random kernels: ``python -m tests.campaign_flat SYSTEM FIRST LAST``.

Each kernel is scheduled for the system (``toy``, say); the schedule and a few with a planted fault (``--mutants``) are
judged step by step and by the compiled walk, which must say the same. Prints every difference and a summary; exits
with 1 if there was any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import islice

from isam.compiler import Refused
from isam.schedule.tree import Schedule
from isam.system.load import load_system
from tests.flat_both_ways import difference, judged
from tests.pipeline import compiled
from tests.random_kernels import random_kernel
from tests.unit.proof.mutants import mutants

LISTED = 3000  # mutants of a schedule to choose from


def schedules(seed: int, system: str, many: int) -> list[tuple[str, Schedule]]:
    """The schedule of a random kernel and some mutants of it; none where the machine cannot."""
    kernel, sizes = random_kernel(seed)
    try:
        job = compiled(kernel, sizes, replace(load_system(system), backend="simulator"))
    except Refused:
        return []
    assert job.schedule is not None
    listed = list(islice(mutants(job.schedule), LISTED))
    return [("as it is", job.schedule), *random.Random(seed).sample(listed, min(many, len(listed)))]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("system")
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--mutants", type=int, default=5)
    o = p.parse_args()
    start, counts = time.perf_counter(), Counter[str]()
    for seed in range(o.first, o.last):
        for what, schedule in schedules(seed, o.system, o.mutants):
            trips = {y.name: 2 for y in schedule.cover.kernel.syms}
            found = difference(schedule, trips)
            counts["differ" if found else "refused" if judged(schedule, trips)[0][0] else "accepted"] += 1
            if found:
                print(f"seed {seed} on {o.system}, {what}: {found}", flush=True)
    print(f"{o.system} {o.first} to {o.last}: {dict(counts)}, {time.perf_counter() - start:.0f} s")
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
