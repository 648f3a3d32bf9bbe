"""Waits judged on the tree: ``python -m tests.campaign_waits FIRST LAST``.

Random trees of moves on several units (``tests/random_streams.py``), of three kinds: loops in loops, peeled, shared,
triangular; rows side by side; loops dealt to instances. The waits that the scheduler gives must be shown to be enough.
Then one wait is left out, or for less, three times: what the judge of races finds, who follows call after call, must be
refused. Trees of a fourth kind (``tests/random_groups.py``) hold more than the scheduler makes; they get waits for less
everywhere, and waits drawn at random: every call in a race, for one of several sizes, must be refused by itself.
Prints how often; exits with 1 where something is not shown, or a race is not seen.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from isam.proof.dealt import Dealt as DealtLoops
from isam.proof.facts import Facts
from isam.proof.filled import with_boxes
from isam.proof.joined import check_joined
from isam.proof.legal import Legality
from isam.proof.points import check_loop
from isam.proof.races import check_races
from isam.proof.sets import Isl
from isam.proof.violation import Findings, Violation, issue_text
from isam.proof.waits import check_waits
from isam.schedule.tree import Issue, Loop, Node, Schedule, Wait, distinct, mapped
from isam.scheduler.waits import with_waits
from tests.random_groups import STREAMS, Groups, drawn_waits
from tests.random_streams import Boxes, Dealt, Trees

KINDS: dict[str, Callable[[int], Trees]] = {"trees": Trees, "boxes": Boxes, "dealt": Dealt}
SIZES = ({"T": 1}, {"T": 2}, {"T": 4})
EVERY = 1 << 30


def judged(s: Schedule) -> list[Violation]:
    told, out = with_boxes(s), Findings(EVERY)
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


def formed(s: Schedule) -> bool:
    """Whether everything but waits is right about the loops of a tree and the calls that are joined."""
    out, facts = Findings(), Facts(Legality(s), Isl(), False)
    for n in distinct(s.call):
        if isinstance(n, Loop):
            check_loop(n, out)
    if not len(out):
        DealtLoops(s, facts, out).check()
        check_joined(s, facts, out)
    units = {s.system.stream_of(n.unit) for n in distinct(s.call) if isinstance(n, Issue)}
    return not len(out) and len(units) > 1  # one stream alone does one call after the other


def altered(n: Issue, choose: random.Random) -> tuple[Wait, ...]:
    """A call's waits, one of them left out, for less or for other streams."""
    if not n.after:
        return ()
    k, kind = choose.randrange(len(n.after)), choose.random()
    w, rest = n.after[k], (*n.after[:k], *n.after[k + 1 :])
    if kind < 0.1:
        return rest
    if kind < 0.8:
        return *rest, replace(w, lag=w.lag + choose.choice((1, 1, 1, 1, 2, 3, 8)))
    if not STREAMS[w.stream]:
        return *rest, replace(w, lag=1 << 70)
    return *rest, replace(w, every=not w.every, lag=w.lag + choose.randrange(2))


def apart(seed: int) -> Counter[str]:
    """What comes of the calls of one tree with any waits, each by itself."""
    s, out, choose = Groups(seed).schedule(), Counter[str](), random.Random(f"groups {seed}")
    if not formed(s):
        return out
    loops = [n for n in distinct(s.call) if isinstance(n, Loop) and n.serpentine is not None]
    still = {id(n) for loop in loops for n in distinct(loop)}  # in a loop back and forth nothing waits
    drawn = [changed(s, lambda n: () if id(n) in still else drawn_waits(choose)) for _ in range(2)]
    if not still:
        drawn.append(changed(with_waits(s), lambda n: altered(n, choose) if choose.random() < 0.6 else n.after))
    for t in drawn:
        raced = {v.step for z in (SIZES if s.kernel.syms else ({},)) for v in check_races(t, z, EVERY)}
        refused, every = {v.step for v in judged(t)}, {issue_text(n) for n in distinct(t.call) if isinstance(n, Issue)}
        out += Counter({"race, refused": len(raced & refused), "race, not seen": len(raced - refused)})
        out += Counter({"refused, no race": len(refused - raced), "accepted, no race": len(every - raced - refused)})
    return out


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    o = p.parse_args()
    start, total = time.perf_counter(), Counter[str]()
    for kind in (*KINDS, "groups"):
        mine = Counter[str]()
        for seed in range(o.first, o.last):
            found = apart(seed) if kind == "groups" else one(kind, seed)
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
