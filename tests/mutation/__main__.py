"""``python -m tests.mutation [PART...] [--sample N] [--seed S] [--log FILE]``: mutants, and the tests that kill them.

Parts: matcher, transforms, checker. ``--sample``: so many mutants per part, drawn by the seed (0: all). Once, every
test runs on the sources as they are, to see which of their statements it reaches. A mutant is put in place of its
function in a child process and faces the tests that reach the statement that it changes, quick ones first, until one
fails; ``--seconds`` keeps to those that together take so long, ``--only`` to those whose names begin so (``laws
unit.transforms``): what is killed then is killed, what survives may not. ``--these``: only mutants that stand in that
file, one a line. ``--log``: keep what is done here, and go on from there (for one state of sources and tests). Prints
the figures and the survivors; exits with 1 where a survivor is not in ``survivors.txt``, which says for each why no
test can, or need, kill it: equivalent, or only speed, the order of offers, a report or names would differ. ``--tidy``:
only drop from there what is no mutant any more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.checks import Check, checks
from tests.mutation.edits import Mutant, mutants
from tests.mutation.face import faced, gently, reach
from tests.mutation.live import ROOT, Place, numbered, watched

SOURCES = {
    "matcher": [f"isam/mapper/{n}.py" for n in
                ("match", "extend", "pair", "legality", "admissible", "dataflow", "linking", "rows", "symmetry")]
               + ["isam/ir/condition.py"],
    "transforms": ["isam/transforms/*.py", "isam/transforms/*/*.py"],
    "checker": ["isam/proof/*.py", "isam/schedule/sharing.py"],
}  # fmt: skip
COMPILED = {"isam/proof/flat_walk.py": ("isam/proof/subset.py", "Compiled.__call__", 0)}  # reached there, too
KNOWN = Path(__file__).with_name("survivors.txt")
SURVIVED = ""
HARMLESS = ("equivalent", "only speed", "only the order of offers", "only a report", "only names")  # begin of a reason


def files(patterns: list[str]) -> list[str]:
    return sorted(str(f.relative_to(ROOT)) for pattern in patterns for f in ROOT.glob(pattern))


def drawn(part: str, sample: int, seed: int) -> list[Mutant]:
    """The part's mutants, or a sample of them."""
    every = [m for f in files(SOURCES[part]) for m in mutants(ROOT / f, f)]
    return random.Random(f"{part}/{seed}").sample(every, min(sample, len(every))) if sample else every


def known() -> dict[str, str]:
    """Survivors with their reasons: pairs of lines, the reason indented."""
    out: dict[str, str] = {}
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line.startswith("isam/"):
            out[name := line] = ""
        elif line.startswith("  "):
            out[name] += line.strip()
    return out


def tidy() -> None:
    """Leaves out of ``survivors.txt`` what is no mutant any more, because its function has changed."""
    every = {str(m) for part in SOURCES for m in drawn(part, 0, 0)}
    KNOWN.write_text("".join(f"{m}\n  {reason}\n" for m, reason in known().items() if m in every), encoding="utf-8")


class Log:
    """What is done, by name; kept in a file where one is given."""

    def __init__(self, path: Path | None):
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self.done: dict[str, Any] = dict(map(json.loads, lines))

    def all(self, names: list[str], work: Callable[[], list[Any]]) -> list[Any]:
        """One result per name, made together."""
        if any(n not in self.done for n in names):
            for name, made in zip(names, work(), strict=True):
                self.once(name, lambda made=made: made)
        return [self.done[n] for n in names]

    def once(self, name: str, work: Callable[[], Any]) -> Any:
        if name not in self.done:
            self.done[name] = work()
            if self.path:
                with self.path.open("a", encoding="utf-8") as f:
                    f.write(json.dumps([name, self.done[name]]) + "\n")
            if isinstance(self.done[name], str):
                print(f"{self.done[name] or 'SURVIVED'}  <  {name}", file=sys.stderr, flush=True)
        return self.done[name]


@dataclass(frozen=True)
class Reached:
    """A check with the seconds it takes, those that the first of its function takes more, and the statements that it
    reaches, as bits."""

    took: float
    shared: float
    statements: int
    check: Check


def reached(places: dict[Place, int], only: Sequence[str], log: Log) -> list[Reached]:
    """Every check, or those whose names begin so; those that are quick and reach little first."""
    wanted = [c for c in checks() if c.name.startswith(tuple(only) or "")]
    with watched(places) as seen:
        found: list[tuple[Any, Check]] = []
        for _, some in itertools.groupby(wanted, key=lambda c: c.function):
            group = list(some)
            told = log.all([f"reach of {c.name}" for c in group], lambda group=group: reach(group, seen))
            found += zip(told, group, strict=True)
    every = [Reached(s[0], s[1], int(s[2], 16), c) for s, c in found if s]
    return sorted(every, key=lambda r: (r.took * r.statements.bit_count(), r.check.name))


def facing(here: int, every: list[Reached], seconds: float) -> tuple[list[Check], float]:
    """Checks that reach one of these places and together take so long, those that reach little first: they are most
    likely to see it; and how long that is."""
    own: list[Reached] = []
    functions: set[str] = set()
    left = seconds
    for r in every:
        took = r.took + (0 if r.check.function in functions else r.shared)
        if r.statements & here and left >= took:
            own.append(r)
            functions.add(r.check.function)
            left -= took
    return [r.check for r in sorted(own, key=lambda r: r.statements.bit_count())], seconds - left


def campaign(
    part: str, sample: int, seed: int, seconds: float, only: Sequence[str], log: Log, these: Sequence[str] = ()
) -> dict[str, str]:
    """Per mutant what killed it, '' for a survivor."""
    places = numbered([f for patterns in SOURCES.values() for f in files(patterns)])
    every, out = reached(places, only, log), {}
    kills: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by a check, of mutants of one function
    for m in drawn(part, sample, seed):
        if these and str(m) not in these:
            continue
        place = m.file, m.function, m.statement
        here = 1 << places[place] | 1 << places[COMPILED.get(m.file, place)]
        own, took = facing(here, every, seconds)
        killed = kills[m.file, m.function]
        own.sort(key=lambda c: -killed[c.name])  # what has killed a neighbour is likely to kill this one
        out[str(m)] = log.once(str(m), lambda m=m, own=own, took=took: faced(m, own, int(3 * took) + 10))
        killed[out[str(m)].rpartition(": ")[0]] += 1
    return out


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    p.add_argument("part", nargs="*", default=list(SOURCES))
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--these", type=Path)
    p.add_argument("--nice", type=int, default=5)
    p.add_argument("--log", type=Path)
    p.add_argument("--tidy", action="store_true")
    o = p.parse_args()
    if o.tidy:
        tidy()
        return 0
    gently(o.nice)
    reasons, bad, log = known(), 0, Log(o.log)
    for part in o.part:
        these = [x.strip() for x in o.these.read_text(encoding="utf-8").splitlines()] if o.these else ()
        found = campaign(part, o.sample, o.seed, o.seconds, o.only, log, these)
        left = [m for m, by in found.items() if by == SURVIVED]
        new = [m for m in left if m not in reasons]
        killed = len(found) - len(left)
        real = killed + len([m for m in left if not reasons.get(m, "").startswith(HARMLESS)])
        print(f"{part}: {len(found)} mutants, {killed} killed, {len(left) - len(new)} survivors with a reason, "
              f"{len(new)} without; killed of those that matter: {killed / max(1, real):.1%}")  # fmt: skip
        for m in left:
            print(f"  {m}\n    {reasons.get(m, 'no reason is known')}")
        bad += len(new)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
