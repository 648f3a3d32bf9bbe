"""``python -m tests.pairs COUNT [--first N] [--jobs 2] [--log FILE]``: random pairs, each judged.

A pair is drawn from its number, so any run of numbers can be done again. ``--log`` keeps one line per finished block of
numbers; a command that finds the file goes on where the last one ended. Prints every failure as a text ready for
``tests/text`` and a figure; exits with 1 if there was any.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

from tests.pairs.blocks import BLOCK, job


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.pairs", description=__doc__)
    p.add_argument("count", type=int)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--log", type=Path, help="go on from here, and keep what is done here")
    o = p.parse_args()
    lines = o.log.read_text().splitlines() if o.log and o.log.exists() else []
    done = [d for d in map(json.loads, lines) if o.first <= d["first"] and d["last"] <= o.first + o.count]
    have = {(d["first"], d["last"]) for d in done}
    ends = range(o.first, o.first + o.count, BLOCK)
    todo = [b for n in ends if (b := (n, min(n + BLOCK, o.first + o.count))) not in have]
    with get_context("spawn").Pool(o.jobs) as pool:
        for made in pool.imap_unordered(job, todo):
            done.append(made)
            if o.log:
                with o.log.open("a") as f:
                    f.write(json.dumps(made) + "\n")
            print("\n\n".join(made["wrong"]) or f"{len(done) * BLOCK} pairs", file=sys.stderr, flush=True)
    return told(done)


def told(done: list[dict]) -> int:
    """Prints the figure. Returns the exit code."""
    counts: Counter[str] = Counter()
    for d in done:
        counts.update(d["counts"])
    wrong = [text for d in done for text in d["wrong"]]
    for name, n in sorted(counts.items()):
        print(f"{n:>8}  {name}")
    print(f"{len(wrong):>8}  wrong ({sum(d['seconds'] for d in done):.0f} s of CPU time)")
    print("\n\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
