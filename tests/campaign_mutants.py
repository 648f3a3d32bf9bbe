"""Mutants of schedules: ``python -m tests.campaign_mutants FIRST LAST [--each N] [--source NAME]``.

Schedules of many kinds (``tests/cases.py``), each with ``--each`` planted faults, at most one of a kind
(``tests/faults``). Every mutant is judged by the proof as users get it, and by carrying it out (``tests/harm.py``),
which says whether it does harm. A mutant that is accepted is carried out on more inputs, and must do none; nor may the
judge of races, who follows call after call, find one that starts too early. Prints every harmful one that is accepted
and a table by kind; exits with 1 if there was one, or if a checker broke down.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from isam.proof.certificate import examine
from isam.proof.races import check_races
from isam.schedule.tree import Schedule
from tests.cases import SOURCES
from tests.faults import faults
from tests.harm import Case

COLUMNS = ("refused", "refused, no harm found", "accepted, harmless", "accepted, harmful", "crash")


def races(case: Case, s: Schedule) -> bool:
    return any(check_races(s, at, 1) for at in case.open)


def judged(case: Case, mutant: Schedule) -> tuple[str, str]:
    """The column that a mutant counts in, and what is wrong with it."""
    try:
        _, found = examine(mutant)
        raced = not found and races(case, mutant)
    except Exception as e:  # a checker answers, whatever it is given
        return "crash", f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"
    if raced:
        return "accepted, harmful", "a call may start too early"
    harm = case.harm(mutant, 1 if found else 3, True, not found)
    if not found:
        return ("accepted, harmful" if harm else "accepted, harmless"), harm
    return "refused" if harm else "refused, no harm found", harm


def mutants(case: Case, seed: int, each: int) -> list[tuple[str, Callable[[], Schedule]]]:
    """Faults of different kinds, drawn."""
    listed = defaultdict(list)
    r = random.Random(f"{case.source} {seed}")
    for kind, make in faults(case.schedule, r):
        listed[kind].append(make)
    kinds = r.sample(sorted(listed), min(each, len(listed)))
    return [(k, r.choice(listed[k])) for k in kinds]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--each", type=int, default=12)
    p.add_argument("--source", choices=tuple(SOURCES))
    o = p.parse_args()
    start, table, of = time.perf_counter(), defaultdict[str, Counter[str]](Counter), Counter[str]()
    schedules = 0
    for seed in range(o.first, o.last):
        for name in (o.source,) if o.source else SOURCES:
            case = SOURCES[name](seed)
            if case is None:
                continue
            right = case.harm(case.schedule, 1, True)
            assert not right, f"seed {seed}, {name}: the schedule itself is wrong: {right}"
            schedules += 1
            for kind, make in mutants(case, seed, o.each):
                mutant = make()
                if mutant == case.schedule:
                    continue
                column, harm = judged(case, mutant)
                table[kind][column] += 1
                of[name] += 1
                if column in ("accepted, harmful", "crash"):
                    print(f"seed {seed}, {name}: {kind}: {column}: {harm}", flush=True)
        if (seed + 1 - o.first) % 10 == 0:
            print(f"{o.first} to {seed + 1}: {of.total()} mutants", file=sys.stderr, flush=True)
    return report(table, of, schedules, time.perf_counter() - start)


def report(table: dict[str, Counter[str]], of: Counter[str], schedules: int, seconds: float) -> int:
    """The table by kind and the sums."""
    total = Counter[str]()
    print(f"{'kind':<52} made  " + "  ".join(COLUMNS))
    for kind in sorted(table):
        row = table[kind]
        total.update(row)
        cells = "  ".join(f"{row[c] or '.':>{len(c)}}" for c in COLUMNS)
        print(f"{kind:<52} {row.total():>4}  {cells}")
    print(f"{'together':<52} {total.total():>4}  " + "  ".join(f"{total[c] or '.':>{len(c)}}" for c in COLUMNS))
    bad, caught = total["accepted, harmful"], total["refused"]
    print(f"of {', '.join(f'{c} {n}' for n, c in of.items())}")
    print(
        f"{total.total()} mutants of {schedules} schedules, {len(table)} kinds: {caught + bad} do harm, {caught} of "
        f"them refused ({100 * caught / max(1, caught + bad):.2f} %), {bad} not; {total['accepted, harmless']} "
        f"accepted, carried out without harm; {total['refused, no harm found']} refused though no harm was found; "
        f"{seconds:.0f} s"
    )
    return 1 if bad or total["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
