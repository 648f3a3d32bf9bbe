"""Loops that go back and forth, by hand: what an iteration takes from another one, or leaves for what comes later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.kernel import PERMITS_DEFAULT, Literal, Statement
from isam.ir.mapping import Cover
from isam.proof import check_flat, check_points, check_tree
from isam.schedule.tree import Issue, Loop, Nest, Node, Operand, Place, Schedule, Seq, Serpentine, Slot
from tests.unit.proof.handmade import at_home, home, loop, mapping_of, move, seq, tile
from tests.unit.proof.handmade_machines import V, acc, buf, dom, kern, lit, vec

N, TIMES = 16, 3
SLOT = 4 * (N + 4)


def reg(number: int) -> Place:
    return Place("v", "", lit(0), (16, 4), number)


def packed(start: int | str, at: int | str = "") -> Issue:
    """Four elements of x into the slot, where they belong or ``at`` another place."""
    where = V("q") if at == "q" else V("q") + 4 if at == "next" else lit(start)
    t = tile("x", [0, start], [1, 4])
    return move("cpu", "pack", t, at_home(X, t), Place("ram", "P", where * 4, (SLOT, 4)))


KERNEL = kern(
    "tops",
    [buf("x", "in", 1, N + 4), buf("y", "out", TIMES, N)],
    [Statement(dom(t=TIMES, j=N), acc("y", "t", "j"), "max", (acc("x", 0, "j"), Literal(0)))],
    permits=PERMITS_DEFAULT,
)
X, Y = (home(KERNEL, "ram", b) for b in "xy")


def top(source: Place) -> list[Issue]:
    """``y[u - 1, q:+4] = max(x[q:+4], 0)`` from a place to its home; the result stays in a register."""
    tx, ty = tile("x", [0, "q"], [1, 4]), tile("y", [V("u") - 1, "q"], [1, 4])
    point = (("t", V("u") - 1), ("j", V("q")))
    ops = (Operand("X", tx, reg(0), (1,)), Operand("Y", ty, reg(1), (1,)))
    return [
        move("cpu", "vmove", tx, source, reg(0)),
        Issue("cpu", "vmax", (("N", 4),), ops, 0, point),
        move("cpu", "vmove", ty, reg(1), at_home(Y, ty)),
    ]


def sweep(*body: Node, **parts: Node) -> Loop:
    return loop("q", 0, N, 4, seq(*body), **parts)


def schedule(*inside: Node) -> Schedule:
    """The steps, three times: the first of them is odd, and goes backwards where it may."""
    m = mapping_of(vec(), "vmax", (0,), [("X", acc("x", 0, "j")), ("Y", acc("y", "t", "j"))], {"j": "j"}, ("t",))
    nests = (Nest(0, (("t", lit(TIMES)), ("j", lit(N)))),)
    call = loop("u", 1, TIMES + 1, 1, seq(*inside))
    slot = Slot("P", "ram", SLOT)
    return Schedule(KERNEL, vec(), Cover(KERNEL, KERNEL, (m,)), nests, Seq(), call, (slot,), {"x": X, "y": Y})


def slotted(at: int | str = "q") -> Place:
    return Place("ram", "P", (V("q") if at == "q" else lit(at)) * 4, (SLOT, 4))


def from_home() -> Place:
    return at_home(X, tile("x", [0, "q"], [1, 4]))


def what_lies_ahead() -> Schedule:
    """Each iteration brings what the next one reads."""
    ahead = tile("x", [0, V("q") + 4], [1, 4])
    bring = move("cpu", "pack", ahead, at_home(X, ahead), Place("ram", "P", V("q", 4) + 16, (SLOT, 4)))
    return schedule(sweep(bring, *top(slotted()), enter=packed(0)))


def what_the_last_one_leaves() -> Schedule:
    """What the last iteration has left in a register is stored once more after the loop."""
    ty = tile("y", [V("u") - 1, N - 4], [1, 4])
    return schedule(sweep(*top(from_home()), exit=move("cpu", "vmove", ty, reg(1), at_home(Y, ty))))


def what_is_destroyed() -> Schedule:
    """Each iteration brings what is its own, and spoils what the next one will bring; all is read after the loop."""
    first = sweep(packed(0, "next"), packed("q", "q"))
    return schedule(first, sweep(*top(slotted())))


def what_is_its_own() -> Schedule:
    """The slot is the same in every iteration, each fills it for itself."""
    mine = tile("x", [0, "q"], [1, 4])
    bring = move("cpu", "pack", mine, at_home(X, mine), slotted(0))
    return schedule(sweep(bring, *top(slotted(0))))


def turned(s: Schedule, period: int = 1) -> Schedule:
    """The same, its first loop over q going back and forth."""
    assert isinstance(s.call, Loop)
    assert isinstance(s.call.body, Seq)
    first, *others = s.call.body.children
    assert isinstance(first, Loop)
    body = Seq((replace(first, serpentine=Serpentine("u", period)), *others))
    return replace(s, call=replace(s.call, body=body))


def judged(s: Schedule) -> tuple[set[str], set[str]]:
    """The kinds of violations on the tree, and of those met when it is executed."""
    return {v.kind for v in check_points(s) + check_tree(s)}, {v.kind for v in check_flat(s)}


MADE = {f.__name__: f for f in (what_lies_ahead, what_the_last_one_leaves, what_is_destroyed, what_is_its_own)}


@pytest.mark.parametrize("name", MADE)
def test_going_forth_all_are_right(name: str) -> None:
    assert judged(MADE[name]()) == (set(), set())


def test_iterations_with_nothing_in_common_may_turn() -> None:
    assert judged(turned(what_is_its_own())) == (set(), set())


@pytest.mark.parametrize("name", [n for n in MADE if n != "what_is_its_own"])
def test_what_one_iteration_has_of_another_may_not(name: str) -> None:
    tree, met = judged(turned(MADE[name]()))
    assert tree == {"stale"}
    assert "absent" in met


def test_the_tree_does_not_count_on_when_it_turns() -> None:
    """A period that no step reaches: it goes forth in all of them, which the tree does not know."""
    assert judged(turned(what_lies_ahead(), 100)) == ({"stale"}, set())
