"""What the walk over a schedule's tree does not show is executed step by step, where that is all there is (ADR 21)."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache

import pytest

import isam
from isam.ir.text import parse_kernel
from isam.proof import ProofError, prove, verify
from isam.proof.certificate import EXECUTED, METHODS, SHOWN, executed, shown
from isam.proof.facts import Facts
from isam.proof.legal import Legality
from isam.proof.violation import Violation
from isam.schedule.tree import Loop, Schedule, distinct
from isam.system.load import load_system
from tests.campaign_mutants import judged
from tests.faults import faults
from tests.harm import Case
from tests.machines import CROWD
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge, simulated
from tests.unit.proof.handmade import running_sum, vec_matmul

# Rows of two or three digits, written in parts, read whole: not shown on the tree (one in a hundred such kernels).
PARTS = """
kernel parts()
  permits nothing
  in  a: f64[9, 8]
  in  b: f64[9, 8]
  temp t: f64[24, 3]
  out y: f64[8, 3, 3]
  forall j < 8, i < 1, k < 3
    t[3*j + i + 2, k] = abs(b[3*i + k + 6, j])
  forall j < 8, i < 2, k < 3
    t[3*j + i, k] = a[3*k + i, j] * 0.5
  forall j < 8, i < 3, k < 3
    y[j, i, k] = t[3*j + i, k] * a[3*k + i, j]
"""
NINES = """
kernel nines()
  permits reassociate, contract, finite
  in  a: f32[72, 7]
  in  b: f32[2, 72]
  temp t: f32[144]
  out x: f32[2, 8]
  out y: f32[8, 2, 9]
  forall k < 2, j < 1, i < 9
    t[72*k + 9*j + i + 63] = b[k, 9*j + i + 63] * 0.5
  forall k < 2, j < 7, i < 9
    t[72*k + 9*j + i] = max(a[9*j + i, k], 0.25)
  forall j < 8, k < 2
    x[k, j] = -inf
  forall k < 2, j < 8, i < 9
    x[k, j] max= t[72*k + 9*j + i]
  forall k < 2, j < 8, i < 9
    y[j, k, i] = t[72*k + 9*j + i] * x[k, j]
"""
MADE = {"parts": (PARTS, "host-avx512"), "nines": (NINES, "host-avx2")}


@cache
def schedule(name: str) -> Schedule:
    text, on = MADE[name]
    found = compiled(parse_kernel(text), {}, simulated(on), check=False).schedule
    assert found is not None
    return found


@pytest.mark.parametrize("name", MADE)
def test_what_the_tree_does_not_show_is_executed(name: str) -> None:
    s = schedule(name)
    with on_the_tree(), pytest.raises(ProofError, match="not shown, though executing every step meets nothing") as e:
        prove(s)
    missed = {v.obligation for v in e.value.violations}
    certificate = prove(s)
    for o in certificate.data["obligations"]:
        assert o["method"] == (EXECUTED if o["number"] in missed else METHODS[o["number"]])
    assert EXECUTED in str(certificate)
    assert verify(certificate, s) == []
    with on_the_tree():
        assert verify(certificate, s)


def test_it_is_right() -> None:
    kernel = parse_kernel(PARTS)
    judge(kernel, {}, compiled(kernel, {}, load_system("toy"), check=True))


def test_faults_in_what_is_executed() -> None:
    """Refused, or carried out without harm."""
    case, r, counts = Case("parts", parse_kernel(PARTS), {}, schedule("parts")), random.Random(1), Counter()
    assert not case.harm(case.schedule)
    for kind, make in r.sample(list(faults(case.schedule, r)), 60):
        mutant = make()
        if mutant != case.schedule:
            counts[judged(case, mutant)[0]] += 1
            assert not counts["accepted, harmful"] + counts["crash"], kind
    assert counts["refused"] > 30


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known to lie anywhere: what the tree shows of a right schedule is not enough."""
    monkeypatch.setattr(Facts, "holds", lambda self, state, t, ctx: False)


@pytest.mark.usefixtures("blind")
def test_an_open_size_is_no_matter_of_a_few_trips() -> None:
    prove(vec_matmul(7, 16, 10))
    s = running_sum(8)
    assert executed(s) == ()
    with pytest.raises(ProofError, match="not proved"):
        prove(s)


@pytest.mark.usefixtures("blind")
def test_instances_beside_each_other_have_more_than_one_order() -> None:
    dealt = compiled(isam.einsum("mk,kn->mn"), {"M": 16, "N": 16, "K": 8}, load_system(CROWD)).schedule
    assert dealt is not None
    assert any(isinstance(n, Loop) and n.deal for n in distinct(dealt.call))
    assert executed(dealt) == ()
    with pytest.raises(ProofError, match="not proved"):
        prove(dealt)


def test_only_what_an_analysis_of_all_iterations_can_miss() -> None:
    s = vec_matmul(7, 16, 10)
    lg = Legality(s)
    for o, kind in SHOWN:
        assert shown(s, [Violation(o, kind, "")], lg) == {o}
    for o, kind in ((2, "access"), (3, "operation"), (3, "rewriting"), (6, "escapes"), (9, "slot"), (10, "edge")):
        assert shown(s, [Violation(o, kind, "")], lg) == set()
        assert shown(s, [Violation(8, "stale", ""), Violation(o, kind, "")], lg) == set()
