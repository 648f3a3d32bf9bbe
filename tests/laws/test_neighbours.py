"""Laws do near their examples what is on record (``neighbours.txt``), which was judged when it was recorded."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.transforms import ALL
from isam.transforms.commute import Commute
from isam.transforms.law import Site, Transform
from tests.laws.neighbours import Done, neighbours, recorded, what


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_a_law_does_near_its_examples_what_is_on_record(law: Transform) -> None:
    said, which = recorded()[law.law]
    judge = f"'python -m tests.laws.neighbours {law.law}' judges what it does now, and records that where it is right"
    assert str(what(law, which)) == said, judge


def test_there_is_a_line_per_law_and_what_it_says_is_of_many_kernels() -> None:
    assert list(recorded()) == [t.law for t in ALL]
    assert all(sum(1 for _ in neighbours(recorded()[t.law][1])) >= 40 for t in ALL)


def test_the_judge_of_what_is_recorded_sees_what_is_wrong() -> None:
    class Wrong(Commute):
        """Exchanges the operands of a difference too."""

        def sites(self, kernel: Kernel) -> tuple[Site, ...]:
            some = [i for i, s in enumerate(kernel.statements) if s.op in ("add", "sub") and len(s.sources) == 2]
            return tuple(Site.of(statement=i) for i in some)

    assert not what(Commute(), recorded()["commute"][1], judging=True).wrong
    kernel = parse("kernel k()\n  in a: f32[3]\n  out y: f32[3]\n  forall i < 3\n    y[i] = a[i] - a[2 - i]\n")
    done = Done(Wrong(), judging=True)
    done.at("a difference", kernel)
    assert len(done.wrong) == 1
