"""Inputs of the checkers, each with a name that it can be made from again, and what is said about them.

``schedule/SOURCE/SEED/N``: a schedule of ``tests/cases.py``, or one made by hand of ``test_course``, with fault number
N (``right``: without one), before every judge; ``walk/...``: the same before the compiled walk;
``document/SOURCE/SEED/N`` and ``certificate/...``: what certifies its mappings, or the schedule, with one entry edited;
``pair/N``: a kernel and what laws and edits made of it (``tests/campaign_equivalence.py``); ``rewriting/WHAT/N``: a
pair of the tests of rewritings, edited.
"""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof.certificate import Certificate, examine, seal, verify
from isam.proof.checker import refusals, sealed
from isam.proof.equivalence import Equivalence
from isam.proof.mapped import certify
from isam.proof.races import check_races
from isam.schedule.tree import Schedule
from tests.campaign_equivalence import mutant
from tests.cases import SOURCES
from tests.edits import edited
from tests.faults import Fault, faults
from tests.flat_both_ways import judged
from tests.harm import Case
from tests.random_kernels import Seeded
from tests.unit.proof import axioms, rewritings
from tests.unit.proof.test_course import SCHEDULES
from tests.unit.proof.verdicts import verdicts

NODES = 3  # steps, and other nodes, that faults are planted in
RIGHT = "right"
PAIRS = {p.what: p for p in (*rewritings.SAME, *rewritings.FORGED, *axioms.SAME, *axioms.FORGED)}


@cache
def case(source: str, seed: int) -> Case:
    found = SOURCES[source](seed) if source in SOURCES else by_hand(source)
    assert found is not None, f"{source} {seed}: no case"
    return found


def by_hand(name: str) -> Case:
    s = SCHEDULES[name]()
    syms = [y.name for y in s.cover.kernel.syms]
    trips = tuple(dict.fromkeys(syms, n) for n in ((3, 0, 1) if syms else (0,)))
    return Case(name, s.cover.original, {}, s, trips)


@cache
def planted(source: str, seed: int) -> list[Fault]:
    return list(faults(case(source, seed).schedule, random.Random(f"{source} {seed}"), NODES))


def schedule(source: str, seed: int, which: str) -> Schedule:
    return case(source, seed).schedule if which == RIGHT else planted(source, seed)[int(which)][1]()


def said_of(name: str) -> str:
    """What is said of an input, as a hash with the number of lines."""
    try:
        lines = [str(x) for x in said(name)]
    except Exception as e:
        lines = [f"raises {type(e).__name__}"]
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"


def said(name: str) -> Iterator[Any]:
    kind, rest = name.split("/", 1)
    if kind in ("pair", "rewriting"):
        yield Equivalence().judge(*kernels(name), ("reassociates",) if kind == "pair" else ("exact",))
        return
    source, number, which = rest.split("/")
    seed = int(number)
    if kind == "document":
        yield from refusals(document(source, seed, which))
    elif kind == "certificate":
        yield from verify(certificate(source, seed, which), case(source, seed).schedule)
    elif kind == "walk":
        for at in case(source, seed).open:
            found, after, alone = judged(schedule(source, seed, which), at, compiled=True)
            yield found, alone, {k: hashlib.sha256(a.tobytes()).hexdigest() for k, a in after.items()}
    else:
        s = schedule(source, seed, which)
        for at in case(source, seed).open:
            yield from verdicts(s, dict(at))
            yield from ("races", *check_races(s, at))
        yield from certify_anyway(s)


def certify_anyway(s: Schedule) -> Iterator[object]:
    """What speaks against the cover."""
    try:
        certify(s.cover)
    except Exception as e:
        yield str(e)


def kernels(name: str) -> tuple[Kernel, Kernel]:
    kind, rest = name.split("/", 1)
    if kind == "pair":
        found = mutant(int(rest))
        assert found is not None, f"{name}: no pair"
        return found
    what, number = rest.rsplit("/", 1)
    p = PAIRS[what]
    before, after = parse_kernel(p.text(p.before)), parse_kernel(p.text(p.after))
    choose = Seeded(int(number))
    if choose.integer(0, 3) == 0:
        return edited(before, choose) or before, after
    return before, edited(after, choose) or after


def document(source: str, seed: int, which: str) -> dict[str, Any]:
    data = copy.deepcopy(proved(source, seed))
    if which == RIGHT:
        return data
    choose = random.Random(f"{source} {seed} {which}")
    data.pop("seal")
    altered(data, choose)
    return sealed(data)


def certificate(source: str, seed: int, which: str) -> Certificate:
    data = copy.deepcopy(dict(examined(source, seed).data))
    data["figures"]["seconds"] = 0.0
    data.pop("seal")
    if which != RIGHT:
        altered(data, random.Random(f"{source} {seed} {which}"))
    return Certificate({**data, "seal": seal(data)})


@cache
def proved(source: str, seed: int) -> dict[str, Any]:
    return certify(case(source, seed).schedule.cover)


@cache
def examined(source: str, seed: int) -> Certificate:
    return examine(case(source, seed).schedule)[0]


def altered(data: Any, choose: random.Random) -> None:
    """One entry of a JSON value, in place: another value, gone, twice, or exchanged with its neighbour."""
    places = list(entries(data))
    holder, key = choose.choice(places)
    old = holder[key]
    how = choose.randrange(5)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(old))
    elif how == 2 and isinstance(holder, list) and key:
        holder[key - 1], holder[key] = old, holder[key - 1]
    elif isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int):
        holder[key] = old + choose.choice((-1, 1))
    else:  # what stands under the same name, or in such a list, elsewhere
        like = [h[k] for h, k in places if (k == key if isinstance(key, str) else type(h) is type(holder)) and
                type(h[k]) is type(old) and h[k] != old]  # fmt: skip
        holder[key] = copy.deepcopy(choose.choice(like)) if like else None


def entries(data: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], (dict, list)):
            yield from entries(data[key])
