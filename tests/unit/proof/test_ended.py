"""What blocks and what is left at a line have left, joined: the same elements at the same bytes, in one box where they
fill one."""

from __future__ import annotations

import random
from collections.abc import Iterator

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.ended import join_ended
from isam.proof.facts import Facts
from isam.proof.state import Fact, State
from isam.schedule.tree import Bound
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_known import all_told, judge
from tests.unit.proof.test_witness import var

V = Affine.of
LINE = 11  # at most: two blocks of four and what is left
CTX = Context((var("v", 0, LINE, 1, 0),))
ENVS = [{"v": v} for v in range(LINE + 1)]
RULE = (64, 4)


def blocks(up: bool, size: int, fewer: int = 0) -> tuple[tuple[Affine, Affine], tuple[Var, ...]]:
    """As many blocks as there are between 0 and the line, or between the line and its most, and where one lies."""
    most = Bound(V("v") if up else LINE - V("v"), size)
    u = Var("u", (Bound(lit(0)),), (Bound(most.expr - size * (1 + fewer), size),), 1, lit(0))
    lo = V("u", size) if up else LINE - V("u", size) - size
    return (lo, lo + size), (u,)


def left(up: bool, size: int, later: int = 0) -> tuple[tuple[Affine, Affine], tuple[Var, ...]]:
    """The elements between the last of the blocks and the line, in a loop that runs once: ``w`` is how many blocks
    there are."""
    most = Bound(V("v") if up else LINE - V("v"), size)
    w = Var("w", (Bound(lit(0)), Bound(most.expr - size + 1, size)), (most, Bound(lit(LINE))), 1, lit(0))
    if up:
        first = V("w", size) + later
        x = Var("x", (Bound(first),), (Bound(V("v") - 1),), 1, first)
    else:
        x = Var("x", (Bound(V("v")),), (Bound(LINE - V("w", size) - 1 - later),), 1, V("v"))
    return (V("x"), V("x") + 1), (w, x)


def fact(fs: Facts, rows: tuple[tuple[Affine, Affine], tuple[Var, ...]], shift: int = 0, by: int = 0) -> Fact:
    """Rows of two elements, by the rule or ``shift`` bytes from there; with ``by`` each value elsewhere."""
    side, over = rows
    at = side[0] * RULE[0] + shift + (V(over[-1].name, by) if by else 0)
    return fs.make("A", ("sp", ""), None, at, RULE, (side, (lit(0), lit(2))), over)


def joined(fs: Facts, *facts: Fact) -> list[Fact]:
    """What is told after the last of them: no more and no less than before."""
    state = State()
    for f in facts:
        state.put(f)
    before = [all_told(facts, env) for env in ENVS]
    join_ended(state, facts[-1], fs, CTX)
    assert [all_told(state, env) for env in ENVS] == before
    return list(state)


def cuts() -> Iterator[tuple[bool, int]]:
    for up in (True, False):
        for size in (2, 4, 5):
            yield up, size


def test_what_blocks_and_the_rest_fill_is_one_box() -> None:
    for up, size in cuts():
        fs = judge()
        (one,) = joined(fs, fact(fs, blocks(up, size)), fact(fs, left(up, size)))
        ends = (lit(0), V("v")) if up else (V("v"), lit(LINE))
        assert (one.box, one.over, one.holes) == ((ends, (lit(0), lit(2))), (), frozenset())
        assert one.address((lit(3), lit(1))) == lit(3 * RULE[0] + RULE[1])


def test_what_does_not_fill_a_box_stays_as_it_is() -> None:
    """One block less, an element less, the rest alone; by another rule, or by none; with holes."""
    for up, size in cuts():
        fs = judge()
        whole, rest = fact(fs, blocks(up, size)), fact(fs, left(up, size))
        holed = fs.with_holes(whole, frozenset((fs.hole(((lit(1), lit(2)), (lit(0), lit(2)))),)))
        for some in (
            (fact(fs, blocks(up, size, fewer=1)), rest),
            (whole, fact(fs, left(up, size, later=1))),
            (rest,),
            (fact(fs, blocks(up, size), shift=4), rest),
            (fact(fs, blocks(up, size), by=8), rest),
            (whole, fact(fs, left(up, size), by=8)),
            (holed, rest),
            (whole, fs.with_holes(rest, holed.holes)),
        ):
            assert joined(fs, *some) == list(some)


def test_what_else_is_known_stays_beside_the_box() -> None:
    """Of other buffers' elements, of more than the box holds, of some of it said by itself."""
    for up, size in cuts():
        fs = judge()
        whole, rest = fact(fs, blocks(up, size)), fact(fs, left(up, size))
        row = fs.make("A", ("sp", ""), None, lit(64), RULE, ((lit(1), lit(2)), (lit(0), lit(2))))
        farther = fact(fs, ((V("y"), V("y") + 1), (var("y", 0, LINE + 2, 1, 0),)))
        other = fs.make("B", ("sp", ""), None, lit(0), RULE, whole.box, whole.over)
        found = joined(fs, row, farther, other, whole, rest)
        assert {row, farther, other} < set(found)
        assert len(found) == 4


def test_a_fact_of_no_loop_is_not_looked_at() -> None:
    fs = judge()
    row = fs.make("A", ("sp", ""), None, lit(0), RULE, ((lit(0), V("v")), (lit(0), lit(2))))
    for seed in range(8):
        choose = random.Random(seed)
        some = [fact(fs, blocks(True, choose.choice((2, 4)))), fact(fs, left(True, choose.choice((2, 4)))), row]
        assert joined(fs, *some) == some
