"""Laws offer what is on record (``offers.txt``), only where they hold, and nothing for reports they do not answer."""

from __future__ import annotations

import pytest

from isam.ir.mismatch import KINDS, Mismatch
from isam.transforms import ALL
from isam.transforms.law import Transform
from tests.laws.judges import same
from tests.laws.neighbours import facts, neighbours
from tests.laws.neighbours import recorded as recorded_near
from tests.laws.offers import kernels, line, mark, recorded, reports
from tests.random_kernels import Seeded


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_a_law_offers_what_is_on_record(law: Transform) -> None:
    said = f"'python -m tests.laws.offers {law.law}' prints what is behind the hashes; without a name it records them"
    assert line(law) == recorded().get(law.law), said


def test_there_is_a_line_per_law() -> None:
    assert list(recorded()) == [t.law for t in ALL]


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_a_law_offers_nothing_for_a_report_that_it_does_not_answer(law: Transform) -> None:
    for k, r in reports():
        assert law.answers(r) or law.sites_for(k, r) == (), (law.law, str(r))
    for name, k in neighbours(recorded_near()[law.law][1], lambda name: mark(name) % 4 == 0):
        for n, kind in enumerate(sorted(set(KINDS) - law.kinds) if k.statements else ()):
            said = facts(k, kind, Seeded(mark(f"{law.law}/{name}/{n}")))
            r = Mismatch(kind, "", "", subject=tuple((x, v) for x, v in said.items() if v is not None))
            assert law.sites_for(k, r) == (), (law.law, name, str(r))


FURTHER = {"split-axis", "split-dimension", "add-unit-axis", "peel", "round-up", "round-up-sum", "nest-sum",
           "nest-extremum"}  # laws that reports give factors and places for  # fmt: skip


@pytest.mark.parametrize("law", ALL, ids=lambda t: t.law)
def test_what_is_offered_keeps_the_meaning(law: Transform) -> None:
    """Also at factors and places that a law has no site for by itself."""
    seen = 0
    for k, r in reports():
        for s in law.sites_for(k, r) if not k.syms else ():
            seen += s not in law.sites(k)
            if s not in law.sites(k) and seen < 9:
                assert same(law, k, law.apply(k, s).kernel), (law.law, str(s))
    assert bool(seen) == (law.law in FURTHER)


def test_there_are_reports_of_many_kinds() -> None:
    assert len(kernels()) > 250
    assert len({r.kind for _, r in reports()}) >= 7
    assert len(reports()) > 1000
