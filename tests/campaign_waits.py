"""Waits judged on the tree: ``python -m tests.campaign_waits FIRST LAST``.

Random trees of moves on several units (``tests/random_streams.py``), of three kinds: loops in loops, peeled, shared,
triangular; rows side by side; loops dealt to instances. The waits that the scheduler gives must be shown to be enough.
Then one wait is left out, or for less, three times: what the judge of races finds, who follows call after call, must be
refused. Prints how often; exits with 1 where something is not shown, or a race is not seen.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from isam.proof.facts import Facts
from isam.proof.filled import with_boxes
from isam.proof.legal import Legality
from isam.proof.races import check_races
from isam.proof.sets import Isl
from isam.proof.violation import Findings, Violation
from isam.proof.waits import check_waits
from isam.schedule.tree import Issue, Node, Schedule, Wait, distinct, mapped
from isam.scheduler.waits import with_waits
from tests.random_streams import Boxes, Dealt, Trees

KINDS: dict[str, Callable[[int], Trees]] = {"trees": Trees, "boxes": Boxes, "dealt": Dealt}


def judged(s: Schedule) -> list[Violation]:
    told, out = with_boxes(s), Findings()
    check_waits(told, Facts(Legality(told), Isl(), False), out)
    return out.found


def changed(s: Schedule, change: Callable[[Issue], tuple[Wait, ...]]) -> Schedule:
    """The schedule with other waits; shared nodes stay shared."""
    done: dict[int, Node] = {}

    def of(n: Node) -> Node:
        if id(n) not in done:
            done[id(n)] = n.waiting(change(n)) if isinstance(n, Issue) else mapped(n, of)
        return done[id(n)]

    return replace(s, call=of(s.call))


def less(s: Schedule, choose: random.Random) -> Schedule | None:
    """With one wait left out, or for less."""
    waiting = [n for n in distinct(s.call) if isinstance(n, Issue) and n.after]
    if not waiting:
        return None
    one = choose.choice(waiting)
    k, by = choose.randrange(len(one.after)), choose.choice((0, 1, 1, 2))
    w = one.after[k]
    other = (replace(w, lag=w.lag + by),) if by else ()
    return changed(s, lambda n: (*n.after[:k], *other, *n.after[k + 1 :]) if n is one else n.after)


def one(kind: str, seed: int) -> Counter[str]:
    """What comes of one tree and of three that wait for less."""
    s = with_waits(KINDS[kind](seed).schedule())
    out = Counter({"not shown" if judged(s) else "shown": 1})
    choose = random.Random(f"{kind} {seed}")
    for _ in range(3):
        other = less(s, choose)
        if other is not None:
            race, refused = bool(check_races(other, {}, 1)), bool(judged(other))
            out[("race, refused" if refused else "race, not seen") if race
                else "refused, no race" if refused else "accepted, no race"] += 1  # fmt: skip
    return out


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    o = p.parse_args()
    start, total = time.perf_counter(), Counter[str]()
    for kind in KINDS:
        mine = Counter[str]()
        for seed in range(o.first, o.last):
            found = one(kind, seed)
            if found["not shown"] or found["race, not seen"]:
                print(f"{kind} {seed}: {dict(found)}", flush=True)
            mine += found
            if sys.stderr.isatty() and seed % 100 == 0:
                print(f"\r{kind} {seed}", end="", file=sys.stderr)
        print(f"{kind}: {dict(sorted(mine.items()))}", flush=True)
        total += mine
    print(f"seeds {o.first} to {o.last}: {dict(sorted(total.items()))}, {time.perf_counter() - start:.0f} s")
    return 1 if total["not shown"] or total["race, not seen"] else 0


if __name__ == "__main__":
    sys.exit(main())
