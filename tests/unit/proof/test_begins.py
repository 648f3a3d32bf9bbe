"""Loops whose first iteration is no affine number, because they have several lower bounds or one that is divided.

What steps from there on, is peeled there or is dealt out from there is not known by any of the bounds: the flat checker
takes the greatest, so must everyone.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Literal, Statement
from isam.ir.mapping import Cover
from isam.proof.flat import check_flat
from isam.proof.legal import Legality
from isam.proof.points import check_form, check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Bound, Issue, Loop, Nest, Node, Operand, Place, Schedule, Seq
from tests.unit.proof import test_instances
from tests.unit.proof.handmade import at_home, home, loop, mapping_of, move, seq, tile
from tests.unit.proof.handmade_machines import V, acc, buf, dom, kern, lit, vec

ROWS = 8


def at(e: Affine | int, div: int = 1) -> Bound:
    return Bound(lit(e), div)


def row(k: int) -> Seq:
    """One row of four of ``y = max(x, 0)``, at column ``n``."""
    places = relu_homes()
    tx, ty = (tile(b, [V("m") + k, "n"], [1, 4]) for b in "xy")
    one, two = (Place("v", "", lit(0), (16, 4), c) for c in (0, 1))
    operands = (Operand("X", tx, one, (1,)), Operand("Y", ty, two, (1,)))
    return seq(
        move("cpu", "vmove", tx, at_home(places["x"], tx), one),
        Issue("cpu", "vmax", (("N", 4),), operands, 0, (("i", V("m") + k), ("j", V("n")))),
        move("cpu", "vmove", ty, two, at_home(places["y"], ty)),
    )


KERNEL = kern("relu", [buf("x", "in", ROWS, 8), buf("y", "out", ROWS, 8)], [
    Statement(dom(i=ROWS, j=8), acc("y", "i", "j"), "max", (acc("x", "i", "j"), Literal(0)))])  # fmt: skip


def relu_homes() -> dict[str, Place]:
    return {b: home(KERNEL, "ram", b) for b in "xy"}


def relu(lo: tuple[Bound, ...], step: int = 1, **parts: Node) -> Schedule:
    """Row by row, for columns from ``n`` on."""
    s, axes = vec(), (("i", lit(ROWS)), ("j", lit(8)))
    m = mapping_of(s, "vmax", (0,), [("X", acc("x", "i", "j")), ("Y", acc("y", "i", "j"))], {"j": "j"}, ("i",))
    call = loop("n", 0, 8, 4, Loop("m", lo, (at(ROWS),), step, row(0), **parts))
    return Schedule(KERNEL, s, Cover(KERNEL, KERNEL, (m,)), (Nest(0, axes),), Seq(), call, (), relu_homes())


def told(s: Schedule) -> set[str]:
    return {v.message for check in (check_points, check_tree) for v in check(s)}


FOUR = seq(*(c for k in range(4) for c in row(k).children))  # the first four rows from where it is


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize("step", [1, 2])
def test_what_is_accepted_runs(n: int, step: int) -> None:
    """The greatest of the bounds is 0 (or more): of a step only a loop with one of them is known."""
    lo = ((at(0),), (at(0), at(V("n") - 100)), (at(1, 2),), (at(0), at(-3)))[n]
    s = relu(lo, step)
    wrong = bool(check_flat(s))
    assert wrong == (step > 1 or n == 2)
    assert bool(check_points(s)) == wrong
    if step > 1 and n:
        assert told(s) == {"loop 'm' has no affine first value, but steps, peeled bodies or instances"}


@pytest.mark.parametrize("lo", [(at(0), at(3)), (at(5, 2),)])
def test_a_peeled_body_runs_where_the_greatest_bound_says(lo: tuple[Bound, ...]) -> None:
    """Rows 3 to 6, then 4 to 7; from the first of the bounds on, every row would be there once."""
    s = relu(lo, first=FOUR)
    assert check_flat(s)
    for peeled in (s, relu(lo, last=row(0))):
        assert told(peeled) == {"loop 'm' has no affine first value, but steps, peeled bodies or instances"}
    assert not told(relu((at(0),), last=row(0)))


def test_instances_are_counted_from_the_greatest_bound() -> None:
    """The second loop is on instances 0 and 1; counted from the first of its bounds, on 1 and 2, as the other loop."""
    s = test_instances.relu()
    first, second = s.call.children  # type: ignore[union-attr]
    assert isinstance(first, Loop)
    assert isinstance(second, Loop)
    assert first.deal is not None
    later = replace(first, deal=replace(first.deal, first=1))
    for lo in ((at(0),), (at(-4), at(0))):
        made = replace(s, call=seq(later, replace(second, lo=lo)))
        assert check_flat(made)
        assert check_tree(made)
    assert [v.message for v in check_form(made, Legality(made)).found] == [
        "loop 'e' has no affine first value, but steps, peeled bodies or instances"]  # fmt: skip
