"""``python -m tests.laws.sharpen [--sample N] [--seed S]``: neighbours that tell mutants of laws apart.

What :mod:`tests.laws.neighbours` draws at random is where conditions of laws decide, but not at all of them. Here every
mutant of the laws' sources (:mod:`tests.mutation`), or a sample, does what is on record; one that does the same
everywhere is shown further kernels, drawn in the same way, until it does something else: that kernel is on record from
then on, once ``python -m tests.laws.neighbours`` has judged what the law does there. Prints what nothing tells apart.
"""

from __future__ import annotations

import argparse
import itertools
import random
import resource
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from isam.ir.kernel import Kernel
from isam.ir.verify import verify
from isam.transforms import ALL
from isam.transforms.law import Transform
from tests.laws import neighbours
from tests.laws.neighbours import Done, drawn, examples, recorded, written
from tests.mutation.__main__ import HARMLESS, SOURCES, files, known
from tests.mutation.__main__ import drawn as drawn_mutants
from tests.mutation.edits import Mutant
from tests.mutation.face import MEMORY, gently
from tests.mutation.live import Place, Slow, alarmed, exchange, numbered, watched
from tests.mutation.live import _function as function_of

MORE = 60  # further draws per example
SHOWN = 400  # further kernels per law
LAWS = 3  # that reach a mutant are asked
LONG = 20  # seconds of one mutant

BY_NAME = {law.law: law for law in ALL}
Near = tuple[str, Kernel]
Seen = dict[tuple[str, str], tuple[str, int]]  # law and kernel: what it does, the statements reached as bits


def does(law: Transform, name: str, k: Kernel) -> str:
    done = Done(law)
    try:
        done.at(name, replace(k))  # what is found out about a kernel is kept with it
    except Exception as e:
        return type(e).__name__
    return str(hash((*done.sites, "", *done.made, "", *done.offers, "", *done.refused)))


@cache
def on_record(law: str) -> list[Near]:
    return list(neighbours.neighbours(recorded()[law][1]))


@cache
def more(law: str) -> list[Near]:
    """Further well-formed kernels, in an order of their own."""
    known = {name for name, _ in on_record(law)}
    places = [(name, n) for name in examples(BY_NAME[law]) for n in range(MORE) if f"{name}/{n}" not in known]
    random.Random(law).shuffle(places)
    made = ((f"{name}/{n}", drawn(name, written()[name], n)) for name, n in places)
    return list(itertools.islice(((name, k) for name, k in made if k is not None and not verify(k)), SHOWN))


def seen(law: Transform, places: dict[Place, int]) -> Seen:
    out: Seen = {}
    with watched(places) as reached:
        for name, k in (*on_record(law.law), *more(law.law)):
            reached.clear()
            said = does(law, name, k)
            out[law.law, name] = said, sum(1 << n for n in reached)
    return out


def module(m: Mutant) -> str:
    return m.file.removesuffix(".py").replace("/", ".")


def concerned(modules: set[str]) -> tuple[Transform, ...]:
    """The laws that these modules define; all where one of them defines none, because others use it."""
    homes = {type(law).__module__ for law in ALL}
    return tuple(law for law in ALL if type(law).__module__ in modules) if modules <= homes else ALL


def told(
    mutant: Mutant, here: int, laws: list[tuple[str, Transform]], was: Seen, picks: dict[str, list[str]]
) -> tuple[str, str]:
    """The law and the kernel of which the mutant says something else, those on record first; none: nothing does."""

    def near(law: str) -> Iterator[Near]:
        further = dict(more(law))
        yield from ((name, further[name]) for name in picks.get(law, ()))
        yield from on_record(law)

    for some in (near, more):
        for called, law in laws:
            for name, k in some(called):
                said, reached = was[called, name]
                if reached & here and does(law, name, k) != said:
                    return called, name
    return "", ""


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.laws.sharpen", description=__doc__)
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--begin", type=int, default=0, help="with which of them")
    o = p.parse_args()
    gently(5)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    places = numbered(files(SOURCES["transforms"]))
    mutants = drawn_mutants("transforms", o.sample, o.seed)[o.begin :]
    was: Seen = {}
    asked = concerned({module(m) for m in mutants})
    for law in asked:
        was |= seen(law, places)
    bits = {law.law: 0 for law in asked}
    for (law, _), (_, reached) in was.items():
        bits[law] |= reached
    picks: dict[str, list[str]] = {}
    fresh = 0
    alarmed()
    count, reasons = o.begin, known()
    for m in mutants:
        here = 1 << places[m.file, m.function, m.statement]
        laws = [(law.law, law) for law in asked if bits[law.law] & here]
        laws.sort(key=lambda law: (type(law[1]).__module__ != module(m), bits[law[0]].bit_count()))
        target = function_of(m.file, m.function)
        code = target.__code__
        count += 1
        if reasons.get(str(m), "").startswith(HARMLESS):
            continue
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, LONG)
            exchange(m)
            law, name = told(m, here, laws[:LAWS], was, picks)
        except (Slow, MemoryError, SyntaxError, ValueError):
            continue
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            target.__code__ = code
        if not name:
            print(f"nothing  <  {m}", flush=True)
        elif name not in picks.get(law, ()) and name not in dict(on_record(law)):
            picks.setdefault(law, []).append(name)
            neighbours.take(BY_NAME[law], [name])
            fresh += 1
            print(f"{law} / {name}  <  {m}", flush=True)
        if count % 100 == 0:
            print(f"{count} mutants, {fresh} kernels more", flush=True)
    print(f"{count} mutants, {fresh} kernels more", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
