"""What is found in a sequence by bytes and place is what looking at every access would find."""

from __future__ import annotations

import random

from isam.ir.affine import Affine
from isam.schedule.tree import Seq
from isam.scheduler.footprints import Footprint
from isam.scheduler.look import Met
from isam.scheduler.within import FEW, Row, Touch

WHERE = ("sp", "")


def touches(rng: random.Random, many: int) -> tuple[Touch, ...]:
    """Accesses of up to two bytes more than there are gaps between them, several per child, the last child first."""
    out = []
    for at in reversed(range(many)):
        for _ in range(rng.randint(1, 2)):
            begin = rng.randrange(200)
            span = (begin, begin + rng.randint(1, rng.choice((2, 40))))
            print_ = Footprint(WHERE, f"s{rng.randrange(3)}", Affine((), span[0]), Affine((), span[1]), True)
            out.append(Touch(at, Seq(()), print_, Met(print_.stream), span))
    return tuple(out)


def test_near_is_what_a_look_at_each_access_finds():
    rng = random.Random(5)
    for many in (0, 1, FEW // 4, 3 * FEW):
        row = Row((), {(WHERE, True): touches(rng, many)}, {})
        for _ in range(60):
            first, end = rng.randrange(210), rng.randint(0, many + 1)
            span = (first, first + rng.randint(1, 30))
            found = list(row.near(WHERE, True, span, end))
            assert found == [t for t in row.touching[WHERE, True]
                             if t.at < end and t.span[0] < span[1] and span[0] < t.span[1]]  # fmt: skip
        assert not list(row.near(WHERE, False, (0, 300), many))
