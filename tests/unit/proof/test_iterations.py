"""What iterations of a loop find of earlier ones, and leave behind: small trees, followed and carried out."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.tree import Tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Place, Tile
from tests.unit.proof.handmade import loop, seq
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_trees_by_hand import A, B, C, agreed, at, home, judged, made, part, step, wrong
from tests.unit.proof.trees import PITCH, SIDE, Steps

V = Affine.of


def row(buffer: str, e: Affine | int) -> tuple[Issue, Issue]:
    """Brings a row to its place, takes it from there."""
    t = part(buffer, e, 1)
    here = at(t, offset=lit(e) * PITCH)
    return step(home(t), here), step(here, at(t, offset=512))


def column(e: Affine) -> tuple[Issue, Issue]:
    """The same of a column, packed."""
    t = Tile("A", (lit(0), e), (SIDE, 1), (1, 1))
    at_home = Operand("D", t, Place("dram", "A", e * 4, (PITCH, 4)), (0, 1))
    packed = Operand("D", t, Place("sp", "", e * 16, (4, 4)), (0, 1))
    return step(at_home, packed), step(packed, replace(packed, place=replace(packed.place, offset=e * 16 + 512)))


def test_all_that_earlier_iterations_have_left() -> None:
    """Rows that were brought before, by each iteration or by a peeled one; none that is brought later."""
    bring, (_, take) = row("A", V("x"))[0], row("A", V("y"))
    for lo, hi, right in ((lit(0), V("x"), True), (lit(0), V("x", 1, 1), False), (lit(1), V("x"), True)):
        inner = Loop("y", (Bound(lo),), (Bound(hi),), 1, take)
        agreed(loop("x", 0, 4, 1, seq(inner, bring)), right)
        agreed(loop("x", 0, 4, 1, seq(inner, bring), first=bring), right)
        agreed(loop("x", 0, 4, 1, seq(inner, bring), first=row("A", V("x", 1, 2))[0]), lo == lit(1))
        agreed(loop("x", 0, 4, 1, seq(inner, bring), last=inner), right)
    before = row("A", V("x", 1, -1))[1]
    for first, body, right in ((bring, seq(before, bring), True), (None, seq(before, bring), False),
                               (bring, seq(bring, before), True), (bring, before, False)):  # fmt: skip
        agreed(loop("x", 0, 4, 1, body, first=first), right)
    agreed(seq(bring_at(lit(0)), loop("x", 1, 4, 1, seq(before, bring))), True)
    agreed(seq(bring_at(lit(1)), loop("x", 1, 4, 1, seq(before, bring))), False)


def bring_at(e: Affine) -> Issue:
    return row("A", e)[0]


def test_columns_that_a_peeled_iteration_brings_too() -> None:
    """They are taken by one loop afterwards, if they have all been brought; what the last iteration brings by itself is
    not joined with the others."""
    (bring, _), (_, take) = column(V("x")), column(V("y"))
    for first, last, lo, hi in product((None, bring, row("A", V("x"))[0]), (None, bring), (0, 1), (3, 4)):
        tree = seq(loop("x", 0, 4, 1, bring, **given(first=first, last=last)), loop("y", lo, hi, 1, take))
        right = lo > 0 or first in (None, bring)
        if last is None or hi < 4 or not right:
            agreed(tree, right)
    agreed(seq(loop("x", 0, 4, 1, bring, last=row("A", V("x"))[0]), loop("y", 0, 4, 1, take)), False)


def given(**parts: Node | None) -> dict[str, Node]:
    return {k: n for k, n in parts.items() if n is not None}


def test_a_loop_of_which_the_first_or_the_last_value_is_not_known() -> None:
    """What does not depend on it is there afterwards, and nothing else."""
    bring, take = row("A", V("x"))
    whole, after = step(home(B), at(B, offset=256)), step(at(B, offset=256), at(B, offset=512))
    before, (_, third) = row("A", V("x", 1, -1))[1], row("A", 2)
    another = loop("x", 0, 3, 1, seq(), first=take)  # another variable of that name
    for lo, hi in (((0,), (3, V("T", 1, 1))), ((0, V("T", 1, -1)), (3,))):
        x = Loop("x", tuple(Bound(lit(e)) for e in lo), tuple(Bound(lit(e)) for e in hi), 1, bring)
        for body, then, right in ((seq(bring, take, whole), after, True), (seq(bring, before), after, False),
                                  (bring, third, len(lo) == 2), (bring, another, len(lo) == 1)):  # fmt: skip
            s = made(seq(replace(x, body=body), then), sizes=True)
            assert any(wrong(s, {"T": t, "U": 0})[0] for t in range(3)) is not right
            assert (judged(s) - {"final"} == set()) is right


def test_what_a_peeled_iteration_makes_stale() -> None:
    """The rows of a copy that it computes, and no others; so with what was stale before."""
    copy = step(home(C), at(C))

    def computed(e: Affine | int) -> Issue:
        t = part("C", e, 1)
        return step(at(t, offset=256 + lit(e) * PITCH), home(t), True)

    for n, before in product(range(SIDE), (None, 3)):
        body = step(at(part("C", n, 1), offset=n * PITCH), at(part("C", n, 1), offset=512))
        there = step(home(C), at(C, offset=256))
        tree = loop("x", 0, 4, 1, body, first=computed(V("x")))
        agreed(seq(there, copy, *([] if before is None else [computed(before)]), tree), n not in (0, before))


def test_a_variable_inside_is_the_only_one_of_its_name() -> None:
    one, two, other = (Var(n, (Bound(lit(0)),), (Bound(lit(e)),)) for n, e in (("v", 9), ("w", 5), ("v", 5)))
    inside = Context((one, two)).with_var(other)
    assert inside.vars == (two, other)
    assert Context((one, two)).at(other, V("w")).lower(V("v") - V("w")) == 0


def visits(tree: Node) -> int:
    """How many steps are gone through until all is known."""
    s = made(tree)
    judge = Tree(s, Steps(Legality(s)), Isl(), Findings())  # type: ignore[arg-type]
    judge.check()
    return judge.visits


def test_a_first_guess_that_leaves_out_what_is_overwritten_in_cells() -> None:
    """A loop is gone through once where that is right, and where nothing in cells is overwritten; else once more."""
    one, two, three = (at(t, "ra", cell=n) for t, n in ((A, 0), (B, 0), (B, 1)))
    moved = at(A, "ra", cell=0, offset=4)
    fill, other = step(home(A), one), step(home(B), two)
    for body, count in (
        (step(home(A), one), 1),  # the same tile
        (step(home(B), three), 1),  # another cell
        (step(home(B), at(B)), 1),
        (other, 1),
        (step(home(A), at(part("A", 0, 2), "ra", cell=0)), 1),
        (step(home(A), moved), 1),
        (seq(other, fill), 2),  # it is there again: the guess was wrong
        (seq(step(one, at(A)), other), 4),  # nor does it help what an iteration leaves
    ):  # fmt: skip
        assert visits(seq(fill, loop("x", 0, 4, 1, body))) == 1 + count * len(getattr(body, "children", (0,))), body
    assert visits(seq(step(home(A), moved), loop("x", 0, 4, 1, other))) == 2  # one of its two cells
