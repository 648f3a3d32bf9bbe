"""What is found in a sequence by bytes and place is, of each stream, the first that looking at each would find."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Deal, Issue, Loop, Operand, Place, Seq, Tile
from isam.scheduler.tiles import Ranges, bounds_of
from isam.scheduler.waits.footprints import Footprint, clash
from isam.scheduler.waits.look import Met, View
from isam.scheduler.waits.rows import FEW, ChildAccess, Touched
from isam.scheduler.waits.tokens import Tokens
from tests.random_groups import Groups

WHERE = ("sp", "")
FIXED, OURS, THEIRS = Affine(), Affine.of("i", 40), Affine.of("j", 40)  # what an access may begin at


def ranges() -> Ranges:
    out = Ranges()
    out.enter("i", Affine(), (0, 3))
    out.enter("j", Affine(), (0, 4))
    return out


def a_print(rng: random.Random, kinds: tuple[Affine, ...], stream: str, longest: int) -> Footprint:
    kind, begin = rng.choice(kinds), rng.randrange(200)
    return Footprint(WHERE, stream, kind + begin, kind + (begin + rng.randint(1, longest)), True)


def span_of(f: Footprint) -> tuple[int, int]:
    return bounds_of(f.low, ranges())[0], bounds_of(f.high, ranges())[1]


def touches(rng: random.Random, many: int, kinds: tuple[Affine, ...]) -> list[ChildAccess]:
    """Accesses of up to two bytes more than there are gaps between them, several per child, the last child first."""
    out = []
    for at in reversed(range(many)):
        for _ in range(rng.randint(1, 2)):
            one = a_print(rng, kinds, f"s{rng.randrange(3)}", rng.choice((2, 40)))
            out.append(ChildAccess(at, Seq(()), one, Met(one.stream), span_of(one)))
    return out


def test_near_is_the_first_of_each_stream_that_a_look_at_every_access_finds():
    """Also where accesses move with loops, and read otherwise from where one looks: ``j`` was ``i - 1`` there."""
    rng, looked = random.Random(5), 0
    view = View({"j": Affine.of("i", 1, -1)}, ranges())
    for kinds in ((FIXED,), (FIXED, OURS, THEIRS)):
        for many in (0, 1, FEW // 4, 3 * FEW, 20 * FEW):
            touched = Touched(touches(rng, many, kinds), frozenset())
            for _ in range(60):
                mine, end = a_print(rng, kinds[:2], "mine", 30), rng.randint(0, many + 1)
                span = span_of(mine)
                odd = {t.one for t in touched.touches if rng.random() < 0.5}

                def reach(low: Affine, high: Affine, mine: Footprint = mine) -> tuple[int, int]:
                    return view.reach(low, high, mine)

                found = touched.near(span, end, reach, odd.__contains__)
                near = [t for t in touched.touches if t.at < end and t.span[0] < span[1] and span[0] < t.span[1]
                        and t.one in odd and clash(view.seen(t.one), mine, view.ranges)]  # fmt: skip
                firsts = {t.met: t.at for t in reversed(near)}
                assert {t.met: t.at for t in reversed(found)} == firsts
                assert len(found) <= len(kinds) * len(firsts)
                assert all(a.at >= b.at for a, b in pairwise(found))
                looked += len(firsts)
            assert not touched.near((0, 300), 0, lambda *_: (0, 300), lambda _: True)
    assert looked > 600


def test_other_instances_are_met_only_in_loops_dealt_within_loops_dealt():
    """In a memory that instances have of their own: in one loop each knows its part, in another within it none does."""
    own = Operand("D", Tile("x", (Affine(),), (4,), (1,)), Place("l", "", Affine(), (1,)), (0,))
    call = Issue("dma", "copy", (("M", 1), ("N", 4)), (replace(own, name="S"), own))

    def dealt(var: str, *parts: Issue | Loop) -> Loop:
        return Loop(var, (Bound(Affine()),), (Bound(Affine((), 2)),), 1, Seq(parts), deal=Deal("core", 0, 1))

    flat, deep = dealt("a", call), dealt("b", call, dealt("c", call))
    tree = Seq((flat, deep))
    within = Tokens(replace(Groups(0).schedule(), call=tree)).behind.within
    mine = within.prints.of(call)[1]
    assert [within.nested(n) for n in (call, flat, deep, tree)] == [False, False, True, True]
    mine_alone, theirs_too = {Met("dma")}, {Met("dma"), Met("dma", True)}
    assert within.streams(flat, mine, (flat,)) == mine_alone
    assert within.streams(deep, mine, (flat,)) == within.streams(flat, mine, ()) | theirs_too == theirs_too
    assert within.row(tree, (flat,)).touched[mine.where].streams == theirs_too
    assert within.row(flat.body, (flat,)).touched[mine.where].streams == mine_alone
