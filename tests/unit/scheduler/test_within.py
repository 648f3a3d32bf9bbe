"""What is found in a sequence by bytes and place is, of each stream, the first that looking at each would find."""

from __future__ import annotations

import random
from itertools import pairwise

from isam.ir.affine import Affine
from isam.schedule.tree import Seq
from isam.scheduler.waits.footprints import Footprint
from isam.scheduler.waits.look import Met
from isam.scheduler.waits.rows import FEW, Touch, Touched

WHERE = ("sp", "")


def touches(rng: random.Random, many: int) -> list[Touch]:
    """Accesses of up to two bytes more than there are gaps between them, several per child, the last child first."""
    out = []
    for at in reversed(range(many)):
        for _ in range(rng.randint(1, 2)):
            begin = rng.randrange(200)
            span = (begin, begin + rng.randint(1, rng.choice((2, 40))))
            print_ = Footprint(WHERE, f"s{rng.randrange(3)}", Affine((), span[0]), Affine((), span[1]), True)
            out.append(Touch(at, Seq(()), print_, Met(print_.stream), span))
    return out


def test_near_is_the_first_of_each_stream_that_a_look_at_every_access_finds():
    rng = random.Random(5)
    for many in (0, 1, FEW // 4, 3 * FEW):
        touched = Touched(touches(rng, many))
        for _ in range(60):
            first, end = rng.randrange(210), rng.randint(0, many + 1)
            span = (first, first + rng.randint(1, 30))
            odd = {t.one for t in touched.touches if rng.random() < 0.5}
            found = touched.near(span, end, odd.__contains__)
            near = [t for t in touched.touches
                    if t.at < end and t.span[0] < span[1] and span[0] < t.span[1] and t.one in odd]  # fmt: skip
            firsts = {t for n, t in enumerate(near) if t.met not in [x.met for x in near[:n]]}
            assert {t.met: t.at for t in found} == {t.met: t.at for t in firsts}
            assert len(found) == len(firsts)
            assert all(a.at >= b.at for a, b in pairwise(found))
        assert not touched.near((0, 300), 0, lambda _: True)
