"""The table of equivalent kernels that are offered: what is asked when, and in which order."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from isam.compiler import offers
from isam.compiler.offers import OFFERS, Offer, Subject, equivalents
from isam.compiler.offers.way import StepRefused, Way
from isam.ir.text import parse_kernel
from isam.transforms.narrow import Narrow
from tests.pipeline import compiled, judge, simulated
from tests.unit.test_again import CENTRED, LARGE
from tests.unit.test_lying import SUMS

WIDE = """kernel wide(M, N)
  in   x: f32[M]
  out  y: f32[M, N]
  temp t: f32[M, N]
  forall i < M, j < N
    t[i, j] = exp(x[i])
  forall i < M, j < N
    y[i, j] = t[i, j] + 1
"""


def subject(text: str, sizes: dict[str, int], on: str = "host-avx512") -> Subject:
    system = simulated(on)
    job = compiled(parse_kernel(text), sizes, system)
    plain = next(c.cover for c in job.candidates if not c.ahead)
    return Subject(plain.kernel, plain, system, system.compute)


def test_every_offer_says_what_it_makes_and_when():
    assert len({o.name for o in OFFERS}) == len(OFFERS)
    for o in OFFERS:
        assert o.makes
        assert o.why
        assert (o.asked.__doc__ or "").startswith("Where "), o.name


@pytest.mark.parametrize(
    ("text", "sizes", "laws"),
    [
        (CENTRED, LARGE, {"partial": "nest-sum", "again": "duplicate"}),
        (SUMS, {"H": 5, "W": 70, "C": 5}, {"lying": "permute-dimensions"}),
        (WIDE, {"M": 8, "N": 64}, {"once": "narrow"}),
    ],
    ids=["centred", "sums", "wide"],
)
def test_what_is_offered_for_a_kernel(text: str, sizes: dict[str, int], laws: dict[str, str]):
    of = subject(text, sizes)
    found = {o.name: steps for o in OFFERS if o.asked(of) for steps in o.steps(of) if steps}
    assert list(found) == list(laws)
    assert all(any(s.transform.law == laws[name] for s in steps) for name, steps in found.items())
    assert list(equivalents(of)) == list(found.values())


def test_what_offers_has_the_type_that_the_table_takes():
    """The table names it by words; each module is checked for what it says itself."""
    for o in OFFERS:
        module, _, function = o.by.partition(".")
        offer = getattr(import_module(f"isam.compiler.offers.{module}"), function)
        said = inspect.signature(offer)
        wrapped = hasattr(offer, "__wrapped__")  # by `one`, which takes what makes the steps to one kernel
        assert [(p.name, p.annotation) for p in said.parameters.values()] == [("of", "Subject")], o.by
        assert said.return_annotation == ("Steps" if wrapped else "Iterator[Steps]"), o.by


def test_only_what_comes_into_question_is_asked(monkeypatch: pytest.MonkeyPatch):
    of = subject(WIDE, {"M": 8, "N": 64})
    one, other = (SimpleNamespace(transform=SimpleNamespace(law="a"), site=n) for n in (1, 2))
    steps: Any = [(one,), (), (other,), (one,), (one, other)]
    made = SimpleNamespace(empty=lambda _: [()], two=lambda _: steps)
    monkeypatch.setitem(sys.modules, "isam.compiler.offers.made", made)
    fake = (
        Offer("never", "", lambda _: False, "nowhere.at_all", ""),
        Offer("empty", "", lambda _: True, "made.empty", ""),
        Offer("two", "", lambda _: True, "made.two", ""),
    )
    monkeypatch.setattr(offers, "OFFERS", fake)
    assert list(equivalents(of)) == [steps[0], steps[2], steps[4]], "each once"


def test_an_attempt_that_is_refused_leaves_the_way_as_it_was():
    kernel = parse_kernel(WIDE).with_sizes({"M": 8, "N": 64})
    way, law = Way(kernel, 1), Narrow()
    (site,) = law.sites(kernel)
    with way.attempt():
        way.take(law, site)
        raise StepRefused
    assert (way.kernel, way.at, way.steps) == (kernel, 1, ())
    with way.attempt():
        way.take(law, site)
    assert [s.transform.law for s in way.steps] == ["narrow"]
    with pytest.raises(ZeroDivisionError), way.attempt():  # nothing else is kept quiet
        raise ZeroDivisionError


GUARDED = """kernel guarded(N)
  in  a: f32[N, N]
  in  scale: f32
  out top: f32[N]
  forall i < N
    top[i] = -inf
  forall i < N, j < N where j <= i
    top[i] max= a[i, j] * scale
"""


def test_temporaries_are_made_everywhere_also_where_the_cover_takes_steps() -> None:
    kernel, sizes = parse_kernel(GUARDED), {"N": 48}
    machine = Path(__file__).parents[2] / "benchmarks" / "machines" / "dsp.yaml"
    job = compiled(kernel, sizes, simulated(str(machine)), check=True)
    assert job.taken is not None
    laws = [str(s).split(" ")[0] for s in job.taken.cover.steps]
    assert "speculate" in laws
    assert set(laws) != {"speculate"}
    judge(kernel, sizes, job)
