"""Where arguments lie is the caller's: C order, and no stride that a run-time size decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.proof import ProofError, prove
from isam.proof.flat import check_flat
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.violation import Findings
from isam.proof.workspace import check_workspace
from isam.schedule.tree import Issue, Seq
from tests.unit.proof.handmade import vec_matmul
from tests.unit.scheduler.test_loops import made

NESTED = """kernel nested(T, U, N)
  in    x: f32[T, U, N]
  inout s: f32[N]
  loop t < T
    loop u < U
      forall i < N
        s[i] += x[t, u, i]
"""


def faults(s):
    out = Findings()
    check_workspace(s, Legality(s), out)
    return [v.kind for v in out.found]


def test_a_stride_that_a_run_time_size_decides():
    with pytest.raises(ProofError, match="'x': where an element lies depends on U"):
        prove(made(NESTED, "toy", N=5))
    prove(made(NESTED, "toy", N=5, U=3))


def test_an_argument_that_lies_transposed():
    s = vec_matmul()
    assert faults(s) == []
    name, rows = next((b.name, [int(d) for d in b.shape]) for b in s.kernel.arguments
                      if len(b.shape) == 2 and all(int(d) > 1 for d in b.shape))  # fmt: skip
    home = s.homes[name]
    n = home.strides[1]
    turned = replace(home, strides=(n, n * rows[0]))
    assert faults(replace(s, homes={**s.homes, name: turned})) == ["home"]


def test_a_slot_lies_in_a_memory_with_addresses_of_its_own():
    """Not in a cache: what lies there lies in the memory behind it; nor in registers."""
    s = made("kernel zeros(N)\n  out y: f32[N]\n  forall i < N\n    y[i] = 0\n", "host", N=5)
    assert faults(s) == []
    (slot,) = s.workspace
    kinds = {m.kind for m in s.system.memories.values()}
    assert kinds == {"managed", "cached", "counted"}
    for m in s.system.memories.values():
        elsewhere = replace(s, workspace=(replace(slot, memory=m.name),))
        assert ("slot" in faults(elsewhere)) == (m.kind != "managed"), m.name


def test_nothing_is_placed_in_a_cache():
    """Its name is not another one for the memory behind it."""
    s = made("kernel twice(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i] + x[i]\n", "host", N=5)
    caches = [m.name for m in s.system.memories.values() if m.kind == "cached"]
    assert caches

    def moved(n, to):
        if not isinstance(n, Issue):
            return Seq(tuple(moved(c, to) for c in n.children))
        at_home = [o.place.memory == s.system.home for o in n.operands]
        operands = [replace(o, place=replace(o.place, memory=to)) if h else o
                    for o, h in zip(n.operands, at_home, strict=True)]  # fmt: skip
        return replace(n, operands=tuple(operands))

    for judge in (check_points, check_flat):
        assert judge(s) == []
        for name in caches:
            found = judge(replace(s, call=moved(s.call, name)))
            assert any((v.obligation, v.kind) == (9, "memory") for v in found)


def test_where_a_single_row_would_go_on_does_not_matter():
    s = vec_matmul(1, 8, 5)
    place = s.homes["C"]
    for strides, right in (((999, 4), True), ((0, 4), True), ((32, 8), False)):
        made_ = replace(s, homes={**s.homes, "C": replace(place, strides=strides)})
        assert faults(made_) == ([] if right else ["home"])
