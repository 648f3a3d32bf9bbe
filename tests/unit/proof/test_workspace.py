"""Where arguments lie is the caller's: C order, and no stride that a run-time size decides."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof import ProofError, prove
from isam.proof.flat import check_flat
from isam.proof.geometry import BufferFacts
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.violation import Findings
from isam.proof.workspace import check_workspace
from isam.schedule.tree import Issue, Place, Seq
from tests.unit.proof.handmade import natural, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import lit
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
    """Not in a cache: what lies there lies in the memory behind it; nor in registers, or tiles."""
    s = made("kernel zeros(N)\n  out y: f32[N]\n  forall i < N\n    y[i] = 0\n", "host", N=5)
    assert faults(s) == []
    (slot,) = s.workspace
    kinds = {m.kind for m in s.system.memories.values()}
    assert kinds == {"managed", "cached", "counted"}
    for m in s.system.memories.values():
        elsewhere = replace(s, workspace=(replace(slot, memory=m.name),))
        assert ("slot" in faults(elsewhere)) == (m.kind != "managed" or m.cells is not None), m.name


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


N = Affine.of("N")
HOMES = [  # shape, strides, bytes of the slot, whether it is a place for a temporary, for an argument
    ((4, 4), (16, 4), 64, True, True), ((4, 4), (16, 4), 63, False, True), ((4, 4), (4, 16), 64, True, False),
    ((4, 4), (20, 4), 99, False, False), ((4, 4), (16, 8), 99, False, False), ((1, 4), (3, 4), 16, True, True),
    ((4, 1), (4, 3), 16, True, True), ((2, 3), (12, 4), 24, True, True), ((2, 3), (12, 4), 23, False, True),
    ((N, 4), (16, 4), 8, True, True), ((N + 100, 4), (16, 4), 8, True, True), ((N, 4), (4, 16), 99, False, False),
    ((4, N), (16, 4), 99, False, False), ((4, N), (4, 16), 99, True, False), ((N, N), (4, 4), 99, False, False),
    ((N,), (4,), 1, True, True), ((N,), (8,), 9, False, False), ((0, 9), (36, 4), 4, True, True),
    ((9, 0), (4, 4), 4, True, True), ((1, 1), (9, 9), 4, True, True), ((1, 1), (9, 9), 3, False, True),
    ((), (), 4, True, True), ((), (), 3, False, True),
]  # fmt: skip


@pytest.mark.parametrize("role", ["temp", "literal", "in", "inout"])
def test_where_elements_lie_at_home(role: str):
    s = tiny_matmul()
    own = role in ("in", "inout")
    for shape, strides, size, inside, there in HOMES:
        place = Place("dram", "a" if own else "W", lit(0), strides)
        b = BufferFacts("a", tuple(map(lit, shape)), "f32", role, place)
        lg: Any = SimpleNamespace(buffers={"a": b}, slots={} if own else {"W": size})
        out = Findings()
        check_workspace(s, lg, out)
        assert [(v.obligation, v.kind) for v in out.found] == [(9, "home")] * (not (there if own else inside)), shape
    small = replace(s.system, memories={**s.system.memories, "dram": replace(s.system.memories["dram"], capacity=64)})
    for shape, fits in (((4, 4), True), ((4, 5), False), ((17,), False), ((1, 16), True)):
        row = natural(shape)
        b = BufferFacts("a", tuple(map(lit, shape)), "f32", role, Place("dram", "a" if own else "W", lit(0), row))
        lg = SimpleNamespace(buffers={"a": b}, slots={} if own else {"W": 999})
        out = Findings()
        check_workspace(replace(s, system=small), lg, out)
        assert [(v.obligation, v.kind) for v in out.found] == [(9, "capacity")] * (own and not fits), shape
