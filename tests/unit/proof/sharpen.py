"""``python -m tests.unit.proof.sharpen [--cover K] [--sample N] [--seed S] [--seconds T]``: inputs for ``picked.txt``.

``--cover``: so many of the pool (:mod:`tests.unit.proof.inputs`) that each statement of the checker is reached by K of
them, where there are so many; those that reach most for their time.
Then every mutant of the checker (:mod:`tests.mutation`), or a sample of them, judges what is on record as far as it
reaches the changed statement, then further inputs of the pool, until it says something else of one: that is on record
from then on. Nothing is that of which the checker as it is says what is wrong: carrying out, or the oracle, judges.
Prints what nothing tells apart, and what nothing reaches.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isam.diagnostics import IsamError
from isam.ir import oracle
from isam.ir.verify import verify as faults_of
from isam.proof import boxes, context, flat_program, flat_walk
from tests.campaign_equivalence import judged as judged_pair
from tests.campaign_mutants import judged as judged_schedule
from tests.cases import SOURCES
from tests.harm import Case
from tests.mutation.__main__ import COMPILED, HARMLESS, drawn, files, known  # fmt: skip
from tests.mutation.__main__ import SOURCES as FILES
from tests.mutation.edits import Mutant
from tests.mutation.face import apart, gently
from tests.mutation.live import Place, Slow, alarmed, exchange, numbered, watched
from tests.unit.proof.inputs import PAIRS, RIGHT, case, document, kernels, planted, proved, said_of, schedule
from tests.unit.proof.test_course import SCHEDULES

FILE = Path(__file__).with_name("picked.txt")
CASES, SEEDS = 2, 12  # of each source, among the first seeds
MOST = 0.06  # seconds of an input
FEW = 0.4  # seconds of a case
EACH = 0.6  # seconds of a mutant
DOCUMENTS, CERTIFICATES, MANY, EDITS, WALKS = 15, 5, 500, 1, 4


def recorded() -> dict[str, str]:
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return dict(x.rsplit(": ", 1) for x in lines)


def pool(seed: int) -> Iterator[str]:
    """Names of inputs, those of one case together."""
    choose = random.Random(seed)
    for source in (*SCHEDULES, *SOURCES):
        for n in quick(source, seed):
            kinds: dict[str, list[int]] = {}
            for i, (kind, _) in enumerate(planted(source, n)):
                kinds.setdefault(kind, []).append(i)
            names = [RIGHT, *(str(choose.choice(some)) for some in kinds.values())]
            yield from (f"schedule/{source}/{n}/{i}" for i in names)
            yield from (f"walk/{source}/{n}/{i}" for i in names[::WALKS])
            if source in SCHEDULES:
                continue
            yield from (f"document/{source}/{n}/{i}" for i in (RIGHT, *range(DOCUMENTS)))
            yield from (f"certificate/{source}/{n}/{i}" for i in (RIGHT, *range(CERTIFICATES)))
    yield from (f"pair/{n}" for n in range(MANY * seed, MANY * (seed + 1)))
    yield from (f"rewriting/{what}/{n}" for what in PAIRS for n in range(EDITS * seed, EDITS * (seed + 1)))


def quick(source: str, seed: int) -> Iterator[int]:
    """Seeds of cases that are soon made."""
    made = 0
    for n in range(SEEDS * seed, SEEDS * (seed + 1)) if source in SOURCES else (0,):
        start = time.process_time()
        if made < CASES and (source not in SOURCES or SOURCES[source](n)) and time.process_time() - start < FEW:
            made += 1
            yield n


Seen = dict[str, tuple[str, int, float]]  # what is said, the statements reached as bits, seconds


def seen(names: Iterator[str], places: dict[Place, int], every: bool) -> Seen:
    """``every``: of long ones too."""
    out: Seen = {}
    with watched(places) as reached:
        for name in names:
            reached.clear()
            fresh()
            try:
                made(name)
                signal.setitimer(signal.ITIMER_VIRTUAL, 30 if every else 4 * MOST)
                start = time.process_time()
                said = said_of(name)
            except (Slow, Exception):
                continue
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            took = (time.process_time() - start) / 3  # what watching costs
            if every or took < MOST:
                out[name] = said, sum(1 << n for n in reached), took
    return out


def made(name: str) -> None:
    """What is kept of an input."""
    kind, rest = name.split("/", 1)
    if kind in ("pair", "rewriting"):
        kernels(name)
    else:
        source, seed, _ = rest.split("/")
        planted(source, int(seed))
        if kind == "document":
            proved(source, int(seed))


def fresh() -> None:
    for module in (boxes, context):
        for f in vars(module).values():
            if hasattr(f, "cache_clear"):
                f.cache_clear()


def told(mutant: Mutant, names: list[str], was: Seen) -> str:
    """The first input of which the mutant says something else; '' where there is none."""

    def work() -> str:
        alarmed()
        try:
            exchange(mutant)
        except (SyntaxError, ValueError):
            return "no program"
        fresh()
        for name in names:
            signal.setitimer(signal.ITIMER_VIRTUAL, 1 + 10 * was[name][2])
            try:
                other = said_of(name) != was[name][0]
            except BaseException:
                return name
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if other:
                return name
        return ""

    said = apart(work, int(20 * EACH))
    return "a limit" if said is None or said.startswith("raised") else said


def wrong(name: str) -> str:
    """What is wrong with what the checker says of an input."""
    kind, rest = name.split("/", 1)
    if kind == "pair":
        return "accepted" if judged_pair(*kernels(name)) == "wrong" else ""
    if kind == "rewriting":
        from isam.proof.equivalence import equivalent

        a, b = kernels(name)
        if not equivalent(a, b):
            return ""
        if faults_of(b):
            return "no kernel is accepted"
        sizes = {y.name: y.lo + 2 * y.multiple_of - y.lo % y.multiple_of for y in a.syms}
        a, b = a.with_sizes(sizes), b.with_sizes(sizes)
        try:
            return "" if all(oracle.equal(a, b, {}, n, frozenset({"division"})) for n in (1, 2)) else "accepted"
        except IsamError as e:
            return f"accepted: {e}"
    source, number, which = rest.split("/")
    if kind == "certificate":
        return ""
    if kind == "document":
        from isam.proof.checker import refusals

        new, old = document(source, int(number), which), proved(source, int(number))
        return "another document is accepted" if which != RIGHT and new != old and not refusals(new) else ""
    c: Case = case(source, int(number))
    if which != RIGHT and int(which) >= len(planted(source, int(number))):
        return "the schedule has fewer faults now, this is none of them"
    s = schedule(source, int(number), which)
    column, harm = judged_schedule(c, s)
    return f"{column}: {harm}" if column in ("accepted, harmful", "crash") else ""


class Picks:
    """What is on record, and what is found."""

    def __init__(self, was: Seen):
        self.was, self.names, self.hits = was, recorded(), Counter[str]()

    def facing(self, here: int) -> list[str]:
        """Inputs that reach a place, those on record first, as far as there is time."""
        reach = [n for n, (_, bits, _) in self.was.items() if bits & here]
        mine = sorted((n for n in reach if n in self.names), key=lambda n: self.was[n][2] / (1 + self.hits[n]))
        others = sorted((n for n in reach if n not in self.names), key=lambda n: self.was[n][2] * random.random())
        out, left = list[str](), EACH / 2
        for some, more in ((mine, EACH / 2), (others, 0)):
            for n in some:
                if left < self.was[n][2]:
                    break
                out.append(n)
                left -= self.was[n][2]
            left += more
        return out

    def take(self, name: str) -> bool:
        """Whether an input is new; one about which the checker is wrong is shown, and not taken."""
        if name in self.names:
            self.hits[name] += 1
            return False
        if bad := wrong(name):
            print(f"WRONG  {name}: {bad}", flush=True)
            self.was.pop(name)
            return False
        self.names[name] = self.was[name][0]
        FILE.write_text("".join(f"{n}: {said}\n" for n, said in sorted(self.names.items())), encoding="utf-8")
        return True


def covering(was: Seen, often: int) -> Iterator[str]:
    """Inputs by which every statement is reached so often, if it can be; of alike documents, one."""
    reach = {n: [i for i, c in enumerate(reversed(bin(bits))) if c == "1"] for n, (_, bits, _) in was.items()}
    count = Counter(i for some in reach.values() for i in some)
    need = {i: min(often, c) for i, c in count.items()}
    waiting = [(-1e9, n) for n in was]
    said = set[str]()
    while waiting:
        _, name = heapq.heappop(waiting)
        what, _, took = was[name]
        gain = sum(need[i] > 0 for i in reach[name]) / (took + 0.002)
        if not gain or (what in said and not name.startswith(("schedule", "walk"))):
            continue
        if waiting and -gain > waiting[0][0]:
            heapq.heappush(waiting, (-gain, name))
            continue
        said.add(what)
        for i in reach[name]:
            need[i] -= need[i] > 0
        yield name


class AsPython:
    """The walk without compiling it: a mutant of it is in place at once."""

    def __init__(self, *_: Any):
        pass

    def __call__(self, memory: flat_walk.Memory) -> int:
        return flat_walk.walk(replace(memory, after=memory.after.reshape(-1)))


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.unit.proof.sharpen", description=__doc__)
    p.add_argument("--cover", type=int, default=0)
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--seconds", type=float, default=3600)
    p.add_argument("--pool", type=int, default=0, help="which pool")
    o = p.parse_args()
    gently(5)
    end = time.time() + o.seconds
    alarmed()
    flat_program.Compiled = AsPython  # type: ignore[misc]
    places = numbered(files(FILES["checker"]))
    was = seen(iter(recorded()), places, True)
    was |= seen((n for n in pool(o.pool) if n not in recorded()), places, False)
    for name in was:
        made(name)
    print(f"{len(was)} inputs of {sum(t for _, _, t in was.values()):.0f} s", flush=True)
    gc.collect()
    gc.freeze()
    picks, reasons, count = Picks(was), known(), Counter[str]()
    for name in covering(was, o.cover) if o.cover else ():
        picks.take(name)
    print(f"{len(picks.names)} on record", flush=True)
    every = drawn("checker", o.sample, o.seed)
    random.Random(o.seed).shuffle(every)
    every.sort(key=lambda m: m.file in COMPILED)  # which has been looked at most
    for m in every:
        if time.time() > end:
            break
        if reasons.get(str(m), "").startswith(HARMLESS):
            continue
        place = m.file, m.function, m.statement
        facing = picks.facing(1 << places[place] | 1 << places[COMPILED.get(m.file, place)])
        name = told(m, facing, was)
        what = "told" if name else "not told" if facing else "not reached"
        count[what] += 1
        if not name:
            print(f"{what}  <  {m}", flush=True)
        elif name in was and picks.take(name):
            print(f"{name}  <  {m}", flush=True)
        if count.total() % 100 == 0:
            print(f"{dict(count)}, {len(picks.names)} on record", flush=True)
    print(f"{dict(count)}, {len(picks.names)} on record", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
