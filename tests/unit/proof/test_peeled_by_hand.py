"""Loops that bring a tile row by row, with first and last bodies of their own: what is there behind and in them."""

from __future__ import annotations

from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Seq
from tests.unit.proof.handmade import loop, seq
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_trees_by_hand import V, agreed, at, home, judged, made, part, step, wrong
from tests.unit.proof.trees import PITCH, SIDE
from tests.unit.proof.verdicts import on_record


def there(first: Affine | int, rows: int = 1, buffer: str = "A", by: int = 0) -> Operand:
    return at(part(buffer, first, rows), offset=lit(first) * PITCH + by)


def bring(row: Affine | int, buffer: str = "A", into: Affine | int | None = None) -> Issue:
    t = part(buffer, row, 1)
    return step(home(t), at(t, offset=lit(row if into is None else into) * PITCH))


def take(first: Affine | int, rows: int = 1) -> Issue:
    return step(there(first, rows), at(part("A", first, rows), offset=1024))


ROW = bring(V("x"))
LOOPS: list[tuple[str, Loop, set[int]]] = [
    ("plain", loop("x", 0, 4, 1, ROW), {0, 1, 2, 3}),
    ("first none", loop("x", 0, 4, 1, ROW, first=Seq()), {1, 2, 3}),
    ("first too", loop("x", 0, 4, 1, ROW, first=seq(ROW, bring(0, "B", 8))), {0, 1, 2, 3}),
    ("first another", loop("x", 0, 4, 1, ROW, first=bring(V("x"), "B")), {1, 2, 3}),
    ("last none", loop("x", 0, 4, 1, ROW, last=Seq()), {0, 1, 2}),
    ("last too", loop("x", 0, 4, 1, ROW, last=ROW), {0, 1, 2, 3}),
    ("last over the first", loop("x", 0, 4, 1, ROW, last=seq(ROW, bring(0, "B"))), {1, 2, 3}),
    ("last over another", loop("x", 0, 4, 1, ROW, last=seq(ROW, bring(0, "B", 9))), {0, 1, 2, 3}),
    ("both", loop("x", 0, 4, 1, ROW, first=Seq(), last=seq(bring(2, "B"), ROW)), {1, 3}),
    ("both too", loop("x", 0, 4, 1, ROW, first=ROW, last=ROW), {0, 1, 2, 3}),
    ("over the next", loop("x", 0, 3, 1, seq(ROW, bring(V("x"), "B", V("x") + 1))), {0, 1, 2}),
    ("over the one before", loop("x", 1, 4, 1, seq(ROW, bring(V("x"), "B", V("x") - 1))), {3}),
    ("always over one", loop("x", 0, 4, 1, seq(bring(V("x"), "B", 2), ROW)), {0, 1, 3}),
    ("every second", loop("x", 0, 4, 2, ROW), {0, 2}),
    ("the last twice", loop("x", 0, 4, 1, ROW, exit=bring(3)), {0, 1, 2, 3}),
    ("over it at the end", loop("x", 0, 4, 1, ROW, exit=bring(1, "B")), {0, 2, 3}),
]


@pytest.mark.parametrize(("what", "n", "rows"), LOOPS)
def test_rows_that_are_there_behind_a_loop(what: str, n: Loop, rows: set[int]) -> None:
    """Every run of rows is taken at once: what is accepted is there; what is, on record."""
    said = list[bool]()
    for first in range(SIDE):
        for many in (1, 2, 4):
            if first + many <= SIDE:
                right = set(range(first, first + many)) <= rows
                s = made(seq(n, take(first, many)))
                accepted = judged(s) == set() or judged(s, cuts=True) == set()
                assert wrong(s, {}) == (not right, True), what
                assert right or not accepted, (what, first, many)
                said.append(accepted)
    assert any(said)
    on_record(f"trees: peeled, {what}", said)


def test_what_iterations_find_of_earlier_ones() -> None:
    """The row of the one before, that of the first, all of them in the last; where they were brought."""
    before, x = take(V("x") - 1), V("x")
    for body, right in ((seq(before, ROW), True), (seq(ROW, before), True), (seq(take(x), ROW), False),
                        (seq(before, ROW, bring(x, "B", x - 1)), True), (seq(before, ROW, bring(x, "B", x)), False),
                        (seq(take(0), ROW), True), (seq(take(0), ROW, bring(x, "B", 0)), False)):  # fmt: skip
        n = loop("x", 1, 4, 1, body)
        agreed(seq(bring(0), n), right)
        agreed(n, False)
        agreed(loop("x", 0, 4, 1, body, first=ROW), right)
        agreed(loop("x", 0, 4, 1, body, first=Seq()), False)
    for last, right in ((take(0, 3), True), (take(0, 4), False), (seq(ROW, take(0, 4)), True), (take(1, 2), True)):
        agreed(loop("x", 0, 4, 1, ROW, last=last), right)
        agreed(loop("x", 0, 4, 1, ROW, first=ROW, last=last), right)
        agreed(loop("x", 1, 4, 1, ROW, last=last), right and last == take(1, 2))
    agreed(loop("x", 0, 4, 1, ROW, exit=take(0, 4)), True)
    agreed(loop("x", 0, 3, 1, ROW, exit=take(0, 4)), False)


def test_a_cell_holds_what_the_last_iteration_put_there() -> None:
    def into(row: Affine | int) -> Operand:
        return at(part("A", row, 1), "ra", cell=1)

    body = step(home(part("A", V("x"), 1)), into(V("x")))
    for row in range(SIDE):
        agreed(seq(loop("x", 0, 4, 1, body), step(into(row), there(row))), row == 3)
        agreed(seq(loop("x", 0, 4, 1, body, last=Seq()), step(into(row), there(row))), row == 2)
    agreed(loop("x", 0, 4, 1, seq(body, step(into(V("x")), there(V("x"))))), True)
    agreed(loop("x", 1, 4, 1, seq(step(into(V("x") - 1), there(V("x"))), body)), False)
    agreed(seq(step(home(part("A", 0, 1)), into(0)), loop("x", 1, 4, 1, seq(
        step(into(V("x") - 1), there(V("x") - 1)), body))), True)  # fmt: skip


def test_loops_whose_last_value_is_not_known() -> None:
    """Rows 0 and 2, as far as a size says: nothing is known of the last, but what all of them leave."""

    def rows(body: Node) -> Loop:
        return Loop("x", (Bound(lit(0)),), (Bound(V("T", 2)), Bound(V("U", 2))), 2, body)

    x, said = V("x"), list[bool]()
    right = [seq(rows(seq(ROW, take(x)))), seq(bring(0), rows(ROW), take(0)), seq(bring(2), rows(ROW), take(2)),
             seq(bring(1), rows(bring(x, "B")), take(1)), seq(rows(ROW), rows(take(x)))]  # fmt: skip
    every = Loop("x", (Bound(lit(0)),), (Bound(V("T")),), 1, ROW)
    again = Loop("x", every.lo, every.hi, 1, take(x))
    right += [seq(every, again), seq(Loop("x", every.lo, every.hi, 1, ROW, exit=bring(3, "B")), again)]
    bad = [
        seq(Loop("x", every.lo, every.hi, 1, ROW, exit=bring(0, "B")), again),
        rows(take(x)),
        seq(rows(ROW), take(0)),
        seq(bring(0), rows(bring(x, "B")), take(0)),
    ]
    for call in (*right, *bad):
        s = made(call, sizes=True)
        stale = any(wrong(s, {"T": t, "U": u})[0] for t, u in product(range(3), repeat=2))
        assert stale is (call in bad)
        said.append(any(judged(s, cuts) <= {"final"} for cuts in (False, True)))
        assert not (stale and said[-1])
    on_record("trees: peeled, sizes", said)


def test_a_body_between_two_that_leave_it_nothing() -> None:
    """With two iterations, both with bodies of their own, the one in the middle never runs, whatever it asks for."""
    nobody = take(SIDE - 1)
    agreed(seq(loop("x", 0, 2, 1, nobody, first=ROW, last=ROW), take(0, 2)), True)
    agreed(seq(loop("x", 0, 2, 1, ROW, first=Seq(), last=Seq()), take(0)), False)
    agreed(seq(loop("x", 0, 3, 1, nobody, first=ROW, last=ROW), take(0)), False)
