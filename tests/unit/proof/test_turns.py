"""Orders of whole nests, by what is said of each; and orders that nothing forbids."""

from __future__ import annotations

from itertools import permutations

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Kernel
from isam.schedule.tree import Loop, Node, Seq
from tests.unit.proof.orders import at, judged, kernel, schedule, step, wrong

V = Affine.of
AGAIN = "in x: f32[6]\ntemp t: f32[6]\nout y: f32[6]\nout z: f32[6]\nforall i < 6\n  t[i] = x[i]\n"
AGAIN += "forall i < 6\n  y[i] = t[i]\nforall i < 6\n  t[i] = y[i]\nforall i < 6\n  z[i] = t[i]"
SUM = "in x: f32[6]\nout y: f32[6]\ntemp s: f32[6]\nforall i < 6\n  s[i] = 0\nforall i < 6\n  s[i] += x[i]\n"
SUM += "forall i < 6\n  y[i] = s[i]"
TOLD = {"flow": "reads what it has not yet written", "anti": "overwrites what it has yet to read",
        "output": "writes what it has yet to write"}  # fmt: skip


def told(k: Kernel, turns: tuple[int, ...]) -> set[tuple[int, str]]:
    """What is to be said of statements in this order: of every pair that is the wrong way round, buffer by buffer."""
    out: set[tuple[int, str]] = set()
    for at_, j in enumerate(turns):
        for i in (i for i in turns[at_ + 1 :] if i < j):
            first, second = k.statements[i], k.statements[j]
            for a, wrote in [(first.dest, True), *((x, False) for x in first.sources if isinstance(x, Access))]:
                for b, writes in [(second.dest, True), *((x, False) for x in second.sources if isinstance(x, Access))]:
                    if a.buffer == b.buffer and (writes or wrote):
                        kind = "output" if writes and wrote else "flow" if wrote else "anti"
                        text = f"statement {j} on '{a.buffer}' runs before statement {i} is done there"
                        obligation = 4 if first.accumulate or second.accumulate else 5
                        out.add((obligation, f"{text} ({kind}: {TOLD[kind]})"))
    return out


@pytest.mark.parametrize("text", [AGAIN, SUM])
def test_what_is_said_of_every_order(text: str) -> None:
    k = kernel(text)
    for turns in permutations(range(len(k.statements))):
        steps = Seq(tuple(step(n, {"i": Affine()}, {"i": 6}) for n in turns))
        s = schedule(k, [(n,) for n in range(len(turns))], Seq(), steps)
        assert {(o, m) for o, _, m in judged(s)} == told(k, turns), turns
        assert bool(wrong(s, frozenset(), {})) == bool(told(k, turns)), turns


def backwards(var: str, trip: int, body: Node) -> Loop:
    return Loop(var, (at(0),), (at(trip),), 1, body)


def test_what_is_forbidden_of_numbers_is_not_of_integers() -> None:
    """Sums from the last term to the first."""
    for dtype, right in (("f32", False), ("i32", True)):
        k = kernel(f"in x: {dtype}[2, 3]\ninout y: {dtype}[2]\nforall i < 2, k < 3\n  y[i] += x[i, k]", "exact")
        s = schedule(k, [(0,)], Seq(), backwards("v", 3, step(0, {"i": Affine(), "k": 2 - V("v")}, {"i": 2, "k": 1})))
        assert (not judged(s)) == (not wrong(s, frozenset(), {})) == right


def test_what_never_leaves_a_unit_has_no_order() -> None:
    """The products of a loop's iterations, last iteration first: only what is stored has turns."""
    k = kernel("in x: f32[3, 2]\ntemp p: f32[2]\nout y: f32[3, 2]\nloop t < 3\n  forall j < 2\n"
               "    p[j] = x[t, j] * x[t, j]\n  forall j < 2\n    y[t, j] = p[j] + x[t, j]")  # fmt: skip
    one = step(0, {"t": 2 - V("v"), "j": Affine()}, {"j": 2})
    s = schedule(k, [(0, 1)], Seq(), backwards("v", 3, one))
    for hidden in (frozenset({0}), frozenset[int]()):
        assert (not judged(s, hidden)) == (not wrong(s, hidden, {})) == bool(hidden)


def test_what_a_loop_begins_with_runs_once_whatever_its_bounds() -> None:
    k = kernel("in x: f32[4]\nout y: f32[3]\nout z: f32[4]\nforall i < 3\n  y[i] = x[i]\nforall i < 4\n  z[i] = x[i]")
    whole = step(1, {"i": Affine()}, {"i": 4})
    for lows in ((1,), (0, 1), (1, -3)):
        made = Loop("v", tuple(map(at, lows)), (at(4),), 1, step(0, {"i": V("v", 1, -1)}, {"i": 1}), enter=whole)
        s = schedule(k, [(0,), (1,)], Seq(), made)
        assert judged(s) == []
        assert not wrong(s, frozenset(), {})
