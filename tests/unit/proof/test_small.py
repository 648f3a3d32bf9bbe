"""What the small prover proves, of random boxes, bounds, loops and layouts: as much as is on record, never more.

``test_prover`` and ``test_digits`` show by enumeration that what is proved is true.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.bounds import proved
from isam.proof.boxes import (
    Family,
    box_of,
    chosen,
    contains,
    covered,
    disjoint,
    earlier,
    empty,
    instance,
    joined,
    lifted,
    merge,
    minus,
    span,
)
from isam.proof.context import Var, before, last_value, loop_var, runs_surely
from isam.proof.digits import one_system
from isam.proof.sets import Isl
from isam.schedule.tree import Bound, Loop, Seq
from tests.unit.proof.test_digits import CTX, panel, var
from tests.unit.proof.test_prover import V, affine, bounds, chain
from tests.unit.proof.verdicts import on_record

PARTS = range(6)


@pytest.mark.parametrize("part", PARTS)
def test_bounds(part: int) -> None:
    rng, said, isl = random.Random(part), [], Isl()
    for _ in range(25):
        ctx = chain(rng)
        some = [affine(rng) for _ in range(6)]
        said += [(str(e), ctx.lower(e), ctx.nonneg(e), [ctx.remainder(n, e) for n in (1, 2, 3, 4)]) for e in some]
        said += [(ctx.le(a, b), ctx.equal(a, b), ctx.divides(2, a - b)) for a, b in product(some[:3], repeat=2)]
        said += [proved(e, ctx, isl) for e in some[:3]]
    on_record(f"small: bounds {part}", [*said, isl.queries])


@pytest.mark.parametrize("part", PARTS)
def test_boxes(part: int) -> None:
    rng, said, isl = random.Random(part), [], Isl()
    for _ in range(6):
        ctx = chain(rng)
        side = lambda: (s := affine(rng, "ab"), s + rng.randint(0, 5))  # noqa: E731
        made = [tuple(side() for _ in range(2)) for _ in range(3)]
        moved = ((0, 1), (1, 0), (1, -1), (4, 0), (0, -2))
        made += [tuple((lo + k, hi + k + w) for lo, hi in made[0]) for k, w in moved]
        made += [((made[0][0][1], made[0][0][1] + 2), made[0][1]), (made[0][0], made[0][1])]
        said += [empty(b, ctx) for b in made]
        for one, two in product(made, repeat=2):
            said += [contains(one, two, ctx), disjoint(one, two, ctx), joined(one, two), minus(one, two, ctx)]
        some = [Family(b) for b in made]
        said += [covered(b, rng.sample(some, 4), ctx) for b in made]
        said += [len(merge(some)), str(merge(some[3:7]))]
        said.append(isl.covers(made[0], some[1:], ctx, (), ("x", "y")))
    on_record(f"small: boxes {part}", [*said, isl.queries])


@pytest.mark.parametrize("part", PARTS)
def test_families(part: int) -> None:
    rng, said = random.Random(part), []
    for _ in range(60):
        ctx = chain(rng)
        lo, step = rng.randint(-2, 2), rng.choice([1, 1, 2, 3])
        v = Var("v", bounds(lo), bounds(lo + rng.randint(0, 9)), step, Affine.lift(lo))
        w = Var("w", bounds(V("v")), bounds(V("v") + 3), rng.choice([1, 2]), rng.choice([None, V("v")]))
        over = rng.choice([(v,), (v, w)])
        begin = V("v", rng.choice([1, 1, 2, 3, -1])) + rng.choice([Affine(), V("a"), V("a", 2)]) + rng.randint(-1, 1)
        begin = begin + (V("w") if len(over) > 1 else 0)
        f = Family(((begin, begin + rng.randint(1, 4)), (Affine.lift(0), Affine.lift(4))), over)
        start = V(rng.choice("abc"), rng.choice([1, 1, 2])) + rng.randint(-1, 2)
        target = ((start, start + rng.randint(1, 2)), (Affine.lift(rng.randint(0, 1)), Affine.lift(rng.randint(2, 4))))
        said += [covered(target, [f], ctx), instance(f, target, ctx), chosen(f.over, f.box, target, ctx)]
        loop = loop_of(rng, rng.choice("abv"))
        for over_ in (span(loop), span(loop, True), span(loop, False, True), earlier(loop), earlier(loop, True)):
            said += [over_, lifted(f, over_, "f"), lifted(Family(target), over_, "f")]
    on_record(f"small: families {part}", said)


def loop_of(rng: random.Random, name: str) -> Loop:
    lo = [Bound(affine(rng, "ab") if rng.random() < 0.4 else Affine.lift(rng.randint(-2, 3)), rng.choice([1, 1, 1, 2]))]
    if rng.random() < 0.2:
        lo.append(Bound(Affine.lift(rng.randint(-2, 3))))
    hi = [Bound((lo[0].expr if rng.random() < 0.5 else Affine()) + rng.randint(-1, 9), rng.choice([1, 1, 1, 2]))]
    if rng.random() < 0.2:
        hi.append(Bound(V("a") + 3))
    return Loop(name, tuple(lo), tuple(hi), rng.choice([1, 1, 2, 3]), Seq())


@pytest.mark.parametrize("part", PARTS)
def test_loops(part: int) -> None:
    rng, said = random.Random(part), []
    for _ in range(80):
        loop = loop_of(rng, "v")
        said += [loop, last_value(loop), *(loop_var(loop, p) for p in ("any", "first", "rest")),
                 runs_surely(loop, chain(rng)), before(loop_var(loop), "v", "w")]  # fmt: skip
    on_record(f"small: loops {part}", said)


@pytest.mark.parametrize("part", PARTS)
def test_layouts(part: int) -> None:
    rng, said, yes = random.Random(part), [], 0
    for _ in range(120):
        w = var("w", rng.choice(["j", 0]), rng.choice([64, 192]), rng.choice([16, 64]))
        width, depth, pitch = rng.choice([1, 2, 16, 64]), rng.choice([8, 16, 32, 33]), rng.choice([0, 0, 4, 8, 64, 256])
        one = panel(rng.choice(["j", 0, 64]), rng.choice(["k", 3]), width, depth, pitch=pitch)
        two = panel(rng.choice(["w", "j", 0, 128]), rng.choice(["m", "k", 5]), rng.choice([width, width, 3]), depth,
                    rng.choice([(w,), ()]), rng.choice([0, 0, 0, 4, 256]), pitch)  # fmt: skip
        if "w" in str(two[0]) and not two[3]:
            continue
        size = rng.choice([(4, 4), (1, 4), (8, 2)])
        said.append(one_system(one, two, size, CTX))
        yes += said[-1]
    assert yes
    on_record(f"small: layouts {part}", said)


def test_boxes_around_tiles() -> None:
    starts = [Affine(), V("a"), V("a", 2) + 1]
    on_record("small: tiles", [box_of((s, V("b")), (n, 2), k) for s in starts for n in (1, 3)
                               for k in (None, (1, 1), (2, 3))])  # fmt: skip
