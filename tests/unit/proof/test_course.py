"""What the judges of schedules go through to their verdicts, on record: what they follow, ask and know, and what they
say of planted faults.

That all is sound is tested elsewhere, against enumeration and the step by step execution; that as much is proved, and
with no more questions, nothing else sees.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice

import numpy as np
import pytest

import isam
from isam.proof.flat import Replay, highest_addresses
from isam.proof.legal import Legality
from isam.proof.order import Order
from isam.proof.prescribed import Prescribed
from isam.proof.sets import Isl
from isam.proof.state import Fact, Target
from isam.proof.tree import Tree, check_tree
from isam.proof.violation import Findings
from isam.schedule.tree import Deal, Loop, Schedule, distinct
from tests.corpus import CASES
from tests.double_buffered import product
from tests.pipeline import compiled, simulated
from tests.unit.proof import test_bursts, test_dealt, test_filled, test_instances, test_numerics, test_pieces
from tests.unit.proof.handmade import vec_matmul
from tests.unit.proof.mutants import mutants
from tests.unit.proof.test_points import MADE
from tests.unit.proof.verdicts import on_record, verdicts


def einsum(text: str, on: str, **sizes: int) -> Callable[[], Schedule]:
    def make() -> Schedule:
        s = compiled(isam.einsum(text), sizes, simulated(on)).schedule
        assert s is not None
        return s

    return make


def corpus(name: str, on: str, **sizes: int) -> Callable[[], Schedule]:
    def make() -> Schedule:
        s = compiled(CASES[name].load(), sizes, isam.load_system(on)).schedule
        assert s is not None
        return s

    return make


SCHEDULES: dict[str, Callable[[], Schedule]] = {
    **MADE,
    "small vec": lambda: vec_matmul(4, 8, 10),
    "small vec bound": lambda: vec_matmul(3, 8, 5, bound=True),
    "small vec exact": lambda: vec_matmul(2, 8, 10, permits=frozenset({"exact"})),
    "dealt": test_dealt.good,
    "bursts": test_bursts.good,
    "pipelined product": lambda: product(16, 2),
    "terms in order": lambda: test_numerics.made([0, 1, 2, 3, 4], frozenset({"exact"})),
    "slots of instances": test_instances.relu,
    "slots of instances, other places": lambda: test_instances.relu(at=16, size=80, count=4, taken=2),
    "slots of other instances": lambda: test_instances.relu(use=Deal("core", 1, 1)),
    "a slot overwritten": lambda: test_instances.relu(between="one"),
    **{f"pieces: {k}": lambda s=s: s for k, s in (test_pieces.RIGHT | test_pieces.WRONG).items()},
    **{f"stored: {k}": lambda s=s: s for k, s in (test_filled.RIGHT | test_filled.WRONG).items()},
    "ragged on toy": einsum("mk,kn->mn", "toy", M=13, N=21, K=9),
    "a batch on toy": einsum("bmk,bkn->bmn", "toy", B=2, M=8, N=17, K=8),
    "columns on toy": einsum("km,kn->mn", "toy", M=9, N=16, K=19),
    "a border on toy": corpus("conv_same", "toy", N=1, H=4, W=5, C=2, K=3),
    "on host": einsum("mk,kn->mn", "host-avx512", M=9, N=17, K=5),
}


@cache
def schedule(name: str) -> Schedule:
    return SCHEDULES[name]()


def text(f: Fact | Target) -> str:
    holes = sorted(f"{h.box} {h.over}" for h in f.holes) if isinstance(f, Fact) else ""
    return f"{f.buffer} {f.spot} {f.cells} {f.offset} {f.strides} {f.box} {f.over} {holes}"


def ordered(s: Schedule) -> Iterator[object]:
    """Obligations 1, 4 and 5."""
    isl, out = Isl(), Findings()
    order = Order(s, Legality(s), isl, out)
    order.check()
    yield from (order.names, order.domains, sorted(order.contracted), order.conflicts, sorted(order.ordered))
    yield from (sorted(order.single), isl.queries, *out.found)
    yield from (order.done(n) for t in (s.bind, s.call) for n in distinct(t))


def followed(s: Schedule) -> Iterator[object]:
    """Obligations 8 and 11: with whole facts, and with what is cut."""
    for cuts in (False, True):
        isl, out, lg = Isl(), Findings(), Legality(s)
        tree = Tree(s, lg, isl, out, cuts)
        tree.check()
        yield from (tree.visits, *out.found)  # questions to isl depend on the order of holes
        for (_, before, ctx, phase), (after, found) in tree.memo.items():
            yield from (phase, ctx.vars, sorted(map(text, before)), sorted(map(text, after)), found)
        for n in distinct(s.call):
            if isinstance(n, Loop):
                yield from ((w.buffer, w.spot, w.box, *(w.ends or (None, None)), w.compute, w.target and text(w.target),
                             w.exact and text(w.exact), w.whole) for w in tree.writes.of(n))  # fmt: skip
                yield sorted((k, t and text(t)) for k, t in tree.writes.cells(n).items())


def laid_out(s: Schedule, sizes: dict[str, int]) -> Iterator[object]:
    """The memory of the flat checker."""
    replay = Replay(s, sizes, Findings())
    yield highest_addresses(s, sizes)
    if replay.ready:
        sp, every = replay.space, Prescribed(replay.kernel, replay.prescribed.skip)
        for key, versions in every.before.items():  # a group has the versions of all its elements
            for b, a in versions.items():
                assert np.array_equal(np.repeat(replay.prescribed.before[key][b], sp.units.wide[b]), a)
        for key, a in every.adds.items():
            wide = sp.units.wide[replay.kernel.statements[key[0]].dest.buffer]
            assert np.array_equal(np.repeat(replay.prescribed.adds[key], wide), a)
        yield from (sp.units, sp.shapes, sp.regions, sp.origin, replay.extents, len(sp.token), len(sp.current))


@pytest.mark.parametrize("name", SCHEDULES)
def test_the_way_to_a_verdict(name: str) -> None:
    s = schedule(name)
    sizes = {y.name: 2 for y in s.cover.kernel.syms}
    on_record(f"course: {name}, in order", ordered(s))
    if not check_tree(s):  # else what is known depends on what is met first
        on_record(f"course: {name}, followed", followed(s))
    on_record(f"course: {name}, laid out", laid_out(s, sizes))
    on_record(f"course: {name}", verdicts(s, sizes))


FAULTY = {"tiny": 6, "tiny, the first and the last body apart": 3, "small vec": 4, "recurrence": 4, "ragged": 1,
          "dealt": 2, "pipelined": 3, "slots of instances": 4, "pieces: in halves": 4, "stored: two halves of rows": 3,
          "small vec bound": 3, "small vec exact": 3}  # fmt: skip


@pytest.mark.parametrize(("name", "part"), [(n, part) for n, parts in FAULTY.items() for part in range(parts)])
def test_planted_faults(name: str, part: int) -> None:
    s = schedule(name)
    sizes = {y.name: 3 for y in s.cover.kernel.syms}
    said: list[object] = []
    for what, broken in chosen(s, 10, f"{name} {part}"):
        said += [what, *verdicts(broken, sizes)]
    on_record(f"course: faults of {name} {part}", said)


def chosen(s: Schedule, many: int, seed: str) -> Iterable[tuple[str, Schedule]]:
    every = list(islice(mutants(s), 700))
    return random.Random(seed).sample(every, min(many, len(every)))
