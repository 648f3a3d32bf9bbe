"""The flat checker accepts hand-made schedules and names what is wrong with broken ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof import check_flat
from isam.proof.prescribed import told_apart, writes
from isam.schedule.tree import Bound, Deal, Loop
from tests.clock import quickest
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul
from tests.unit.proof.test_points import MADE


@pytest.mark.parametrize("name", [n for n in MADE if n != "recurrence"])
def test_accepts(name):
    assert check_flat(MADE[name]()) == []


@pytest.mark.parametrize("trip", [0, 1, 2, 3, 8])
def test_recurrences_of_every_trip(trip):
    assert check_flat(running_sum(), {"T": trip}) == []


def test_a_trip_is_needed():
    assert [v.kind for v in check_flat(running_sum())] == ["sizes"]


def test_an_exhausted_budget_is_no_acceptance():
    assert [v.kind for v in check_flat(tiny_matmul(), budget=10)] == ["budget"]


def test_speed():
    assert quickest(lambda: check_flat(vec_matmul(13, 32, 60)), 8.0) < 8.0
    assert check_flat(vec_matmul(13, 32, 60)) == []


@pytest.mark.parametrize("index", ["i", "0"])
def test_more_writes_of_an_element_than_are_counted_are_refused_by_the_budget(index: str):
    """Points along an axis that nothing names are not listed, so many of them are no matter of room."""
    head = "kernel k()\n  in x: f32[4]\n  inout y: f32[4]\n  forall i < 4, k < 3000000000\n"
    k = parse_kernel(f"{head}    y[{index}] += x[i]\n")
    (s,) = k.statements
    assert told_apart(s) <= 4
    with pytest.raises(MemoryError, match="points write"):
        writes(s, {}, (4,))


def test_a_name_without_a_value_is_refused_where_it_stands():
    s = tiny_matmul()
    assert isinstance(s.call, Loop)
    found = check_flat(replace(s, call=replace(s.call, hi=(Bound(Affine.of("Q")),))))
    assert [(v.obligation, v.kind) for v in found[:1]] == [(11, "scope")]
    assert "the bounds of loop 'm' name 'Q', which has no value there" in found[0].message
    found = check_flat(replace(s, call=replace(s.call, var="other")))
    assert {(v.obligation, v.kind) for v in found} >= {(11, "scope")}
    assert any("the step names 'm', which has no value there" in v.message for v in found)
    again = replace(s.call, var="n", body=replace(s.call.body, var="n"))
    assert (11, "scope") in {(v.obligation, v.kind) for v in check_flat(replace(s, call=again))}
    short = replace(s.call, lo=(Bound(Affine((), 4)),), last=s.call.body, first=s.call.body)
    assert [(v.obligation, v.message) for v in check_flat(replace(s, call=short)) if v.kind == "trip"] == [
        (11, "loop 'm' runs 1 time but has a first and a last body")]  # fmt: skip
    dealt = replace(s.call, deal=Deal("core"))
    assert [(v.obligation, v.kind) for v in check_flat(replace(s, call=dealt)) if v.kind == "deal"] == [(10, "deal")]
