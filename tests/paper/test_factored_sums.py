"""Sums of products of three arrays: the report at the inner product asks for factoring, the cost falls by an axis."""

from __future__ import annotations

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.search import find
from isam.system.load import load_system
from tests.as_it_stands import cover_as_it_stands

MTTKRP = """kernel mttkrp()
  in x: f32[10, 6, 16]
  in b: f32[6, 8]
  in c: f32[16, 8]
  out y: f32[10, 8]
  forall i < 10, r < 8
    y[i, r] = 0
  forall i < 10, j < 6, k < 16, r < 8
    y[i, r] += x[i, j, k] * b[j, r] * c[k, r]
"""
BILINEAR = """kernel chain()
  in a: f32[10, 12]
  in b: f32[12, 30]
  in c: f32[30, 16]
  out y: f32[10, 16]
  forall i < 10, r < 16
    y[i, r] = 0
  forall i < 10, j < 12, k < 30, r < 16
    y[i, r] += a[i, j] * b[j, k] * c[k, r]
"""


@pytest.mark.parametrize("text", [MTTKRP, BILINEAR])
@pytest.mark.parametrize("system", ["toy", "host"])
def test_the_sum_is_factored_although_it_could_be_carried_out_as_written(text, system):
    kernel = normal_form(parse(text))
    offered = load_system(system).compute
    plain = cover_as_it_stands(kernel, Demand(offered))
    assert plain
    result = find(kernel, Demand(offered), Trace(Approach()))
    assert result.blind_expansions == 0
    best, written = result.paths[0], next(p for p in result.paths if not p.steps)
    assert [s.transform.law for s in best.steps] == ["factor"]
    assert best.steps[0].because.kind == "operation"
    assert best.found.price < written.found.price
    c = cover(kernel, Demand(offered), Trace(Approach()))
    assert oracle.equal(kernel, c.kernel, {}, 4)
    assert c.notes["numerics"] == ["reassociates", "rounding"]
