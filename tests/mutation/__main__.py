"""``python -m tests.mutation [PART...] [--sample N] [--seed S] [--log FILE]``: mutants, and the tests that kill them.

Parts: matcher, transforms, checker. ``--sample``: so many mutants per part, drawn by the seed (0: all). Once, every
test runs on the sources as they are, to see which of their statements it reaches. A mutant is put in place of its
function in a child process and faces the tests that reach the statement that it changes, quick ones first, until one
fails; ``--seconds`` keeps to those that together take so long. ``--log``: keep what is done here, and go on from there
(for one state of sources and tests). Prints the figures and the survivors; exits with 1 where a survivor is not in
``survivors.txt``, which says for each why no test can, or need, kill it: equivalent, or only speed, the order of
offers, a report or names would differ.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.mutation.checks import Check, checks
from tests.mutation.edits import Mutant, mutants
from tests.mutation.face import faced, gently, reach
from tests.mutation.live import ROOT, Place, numbered, watched

SOURCES = {
    "matcher": [f"isam/mapper/{n}.py" for n in
                ("match", "extend", "pair", "legality", "dataflow", "linking", "rows", "symmetry")],
    "transforms": ["isam/transforms/*.py", "isam/transforms/*/*.py"],
    "checker": ["isam/proof/*.py"],
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


class Log:
    """What is done, by name; kept in a file where one is given."""

    def __init__(self, path: Path | None):
        self.path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
        self.done: dict[str, Any] = dict(map(json.loads, lines))

    def once(self, name: str, work: Callable[[], Any]) -> Any:
        if name not in self.done:
            self.done[name] = work()
            if self.path:
                with self.path.open("a", encoding="utf-8") as f:
                    f.write(json.dumps([name, self.done[name]]) + "\n")
            if isinstance(self.done[name], str):
                print(f"{self.done[name] or 'SURVIVED'}  <  {name}", file=sys.stderr, flush=True)
        return self.done[name]


def reached(places: dict[Place, int], log: Log) -> list[tuple[float, int, Check]]:
    """Every check with the seconds it takes and the statements it reaches, as bits; quick ones first."""
    with watched(places) as seen:
        found = [(log.once(f"reach of {c.name}", lambda c=c: reach(c, seen)), c) for c in checks()]
    return sorted(((s[0], int(s[1], 16), c) for s, c in found if s), key=lambda x: (x[0], x[2].name))


def campaign(part: str, sample: int, seed: int, seconds: float, log: Log) -> dict[str, str]:
    """Per mutant what killed it, '' for a survivor."""
    places = numbered([f for patterns in SOURCES.values() for f in files(patterns)])
    reach, out = reached(places, log), {}
    for m in drawn(part, sample, seed):
        own, left = [], seconds
        own_place = m.file, m.function, m.statement
        here = 1 << places[own_place] | 1 << places[COMPILED.get(m.file, own_place)]
        for took, statements, check in reach:
            if statements & here and (left := left - took) >= 0:
                own.append((statements.bit_count(), check))
        # those that reach little are most likely to see it
        own = [check for _, check in sorted(own, key=lambda x: x[0])]
        limit = int(3 * (seconds - max(left, 0))) + 10
        out[str(m)] = log.once(str(m), lambda m=m, own=own, limit=limit: faced(m, own, limit))
    return out


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    p.add_argument("part", nargs="*", default=list(SOURCES))
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--nice", type=int, default=5)
    p.add_argument("--log", type=Path)
    o = p.parse_args()
    gently(o.nice)
    reasons, bad, log = known(), 0, Log(o.log)
    for part in o.part:
        found = campaign(part, o.sample, o.seed, o.seconds, log)
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
