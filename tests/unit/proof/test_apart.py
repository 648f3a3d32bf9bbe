"""Small questions of places: what dealt iterations share, sums that keep away from numbers, cells apart."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Recurrence
from isam.ir.text import parse_kernel
from isam.proof.carried import _inside
from isam.proof.context import Context, Var
from isam.proof.dealt import Dealt
from isam.proof.digits import _Distance, never_meet, one_system
from isam.proof.facts import Facts
from isam.proof.induction import add
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.state import State
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Operand, Place, Tile
from isam.system.groups import Replica
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit

V = Affine.of


@pytest.mark.parametrize(("pitch", "right"), [(16, True), (8, True), (4, False), (0, False)])
def test_other_elements_in_the_same_bytes(pitch: int, right: bool) -> None:
    """Iterations on instances of their own bring rows of their own to a memory that all share."""
    s = tiny_matmul()
    s = replace(s, system=replace(s.system, replicas={"core": Replica("core", 4, ("ra", "rb"), ("mm",))}))
    t = Tile("A", (V("d"), lit(0)), (1, 2), (1, 1))
    home = Operand("S", t, Place("dram", "A", V("d", 48), (48, 4)), (0, 1))
    move = Issue("dma", "copy", (("M", 1), ("N", 2)),
                 (home, Operand("D", t, Place("sp", "", V("d", pitch), (16, 4)), (0, 1))))  # fmt: skip
    made = replace(s, call=replace(loop("d", 0, 4, 1, seq(move)), deal=Deal("core", 0, 1)))
    out = Findings()
    Dealt(made, Facts(Legality(made), Isl()), out).check()
    assert [v.kind for v in out.found] == ([] if right else ["deal"])


def test_sums_that_keep_away_from_numbers() -> None:
    """Digits that are always 0, or whose stride is, count for nothing."""
    told = [0, 0]
    digits = [(8, 2), (8, None), (12, 1), (0, None), (4, 0), (0, 3), (-8, 1)]
    for const, some in product(range(-6, 7), product(digits, repeat=2)):
        made = _Distance(const, list(some))
        ranges = [range(3 if n is None else n + 1) for _, n in some]
        sums = [const + sum(k * x for (k, _), x in zip(some, at, strict=True)) for at in product(*ranges)]
        for low, high in ((0, 0), (-3, 3), (1, 2)):
            said = made.avoids(low, high)
            assert not (said and any(low <= x <= high for x in sums))
            plain = [d for d in some if d[0] and d[1] != 0]
            assert said == _Distance(const, plain).avoids(low, high)
            told[said] += 1
    assert min(told) > 500


def test_variables_of_which_nothing_is_known() -> None:
    """May be anything; but a layout of their multiples may keep away from another."""
    box = ((Affine(), lit(1)),)
    one, two = (box, V("q", 16), (4,), ()), (box, lit(8), (4,), ())
    assert never_meet(one, two, (4, 4), Context())
    assert not never_meet(one, (box, lit(14), (4,), ()), (4, 4), Context())
    assert not never_meet((box, V("q"), (4,), ()), two, (4, 4), Context())


def test_boxes_that_hold_nothing_are_in_no_system() -> None:
    v = Var("v", (Bound(Affine()),), (Bound(lit(3)),), 1, Affine())
    for width in (-1, 0, 1):
        one = ((V("v"), V("v") + width),), V("v", 8), (4,), ()
        two = ((Affine(), lit(width)),), Affine(), (4,), ()
        assert one_system(one, two, (4, 4), Context((v,))) == (width == 1)


def test_what_lies_in_cells_is_not_joined() -> None:
    """A cell is overwritten as a whole: what two cells hold is two facts."""
    s = tiny_matmul()
    fs, state = Facts(Legality(s), Isl()), State()
    halves = [fs.make("A", ("ra", ""), (0, 0), lit(16 * i), (16, 4), ((lit(i), lit(i + 1)), (Affine(), lit(4))))
              for i in (0, 1)]  # fmt: skip
    for f in halves:
        add(state, f, fs, Context())
    assert list(state) == halves
    free = [fs.make("A", ("sp", ""), None, f.offset, f.strides, f.box) for f in halves]
    for f in free:
        add(state, f, fs, Context())
    (both,) = [f for f in state if f.spot[0] == "sp"]
    assert both.box == ((Affine(), lit(2)), (Affine(), lit(4)))


def test_statements_in_loops_in_loops() -> None:
    k = parse_kernel("""kernel k()
  in x: f32[3, 2]
  inout h: f32
  out y: f32[3]
  loop t < 3
    h[] = x[t, 0]
    loop u < 2
      h[] += x[t, u]
      h[] = tanh(h[])
    y[t] = h[]
""")
    (outer,) = k.body
    assert isinstance(outer, Recurrence)
    assert list(_inside(outer)) == list(k.statements)
    assert [list(_inside(s)) for s in k.statements] == [[s] for s in k.statements]
