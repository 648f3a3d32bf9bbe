"""Random kernels on random machines: ``python -m tests.campaign_machines FIRST LAST [--deeper] [--no-proof]``.

Each pair is compiled and proved, its schedule simulated strictly in residues and compared with the oracle, exactly,
timed, and searched for races; or the compiler says why there is none. Prints every failure with its seed and a summary;
exits with 1 if there was any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable

from isam.compiler import Refused
from isam.cost.timeline import timeline
from isam.proof.races import check_races
from isam.schedule.steps import steps
from isam.system.graph import System
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge
from tests.random_kernels import random_kernel
from tests.random_machines import deeper, machine

MOST = 3000  # steps of a schedule whose races are looked for one by one


def one(seed: int, check: bool = True, on: Callable[[int], System] = machine) -> tuple[str, str]:
    """What came of a pair (``agree``, ``uncovered``, ``infeasible``, ``wrong``) and, where it is wrong, how."""
    kernel, sizes = random_kernel(seed)
    try:
        job = compiled(kernel, sizes, on(seed), check=check)
        judge(kernel, sizes, job, seed)
        assert job.schedule is not None
        t = timeline(job.schedule)
        assert t.seconds >= 0
        if steps(job.schedule.call, {}, MOST) <= MOST:
            found = check_races(job.schedule, {}, 1)
            assert not found, found[0]
    except Refused as no:
        return no.diagnostics[0].code, "" if no.diagnostics[0].message else f"# seed {seed}: refused without a word"
    except Exception as e:  # whatever it is, it is a finding
        return "wrong", f"# seed {seed}: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"
    return "agree", ""


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--no-proof", action="store_true")
    p.add_argument("--deeper", action="store_true", help="with one more memory behind home")
    o = p.parse_args()
    start, counts = time.perf_counter(), Counter()
    for seed in range(o.first, o.last):
        kind, found = one(seed, not o.no_proof, deeper if o.deeper else machine)
        counts[kind] += 1
        if found:
            print(found, flush=True)
        if (seed + 1 - o.first) % 500 == 0:
            print(f"{o.first} to {seed + 1}: {dict(counts)}", file=sys.stderr, flush=True)
    print(f"random machines {o.first} to {o.last}: {dict(counts)}, {time.perf_counter() - start:.0f} s")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    with on_the_tree():
        sys.exit(main())
