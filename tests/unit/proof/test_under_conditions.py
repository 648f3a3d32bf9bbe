"""What is made under a condition is found under the same one: random loops with parts that some iterations leave out,
followed by facts and byte by byte; and recurrences whose trips are open."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof import prove
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Bound, Deal, Loop, Node, Operand, Schedule, Seq
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, simulated
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.trees import SIDE, Trees, accepted, schedule

EACH = 60


class Conditional(Trees):
    """Loops whose parts are carried out in some of their iterations, often in the same ones."""

    def node(self, known: list[Operand], names: tuple[str, ...], deep: int, deal: Deal | None) -> Node:
        self.number += 1
        var, before = f"v{self.number}", list(known)
        body = Seq(tuple(self.some(known, var, n) for n in range(self.choose.choice((2, 3, 4)))))
        known[:] = before
        return Loop(var, (Bound(lit(0)),), (Bound(lit(SIDE)),), 1, body)

    def some(self, known: list[Operand], var: str, n: int) -> Node:
        choose, at = self.choose, Affine.of(var)
        left, steps = choose.choice((at, at, at, at - 1, lit(2) - at, None)), choose.choice((1, 1, 2))
        body = Seq(tuple(self.step(known, (var,)) for _ in range(steps)))
        return body if left is None else Loop(f"{var}.{n}", (Bound(lit(0)),), (Bound(lit(1)), Bound(left)), 1, body)


@pytest.mark.parametrize("part", range(2))
def test_what_is_accepted_holds(part: int) -> None:
    count = Counter[tuple[bool, bool, bool]]()
    for seed in range(EACH * part, EACH * (part + 1)):
        s = schedule(Conditional(random.Random(seed)).tree())
        for cuts, _, followed, right in accepted(s, f"tree {seed}"):
            count[cuts, followed, right] += 1
    assert count[True, True, True] > count[False, True, True] > EACH // 2
    assert count[True, False, False]


SOME = """
kernel some(M, N, S)
  in    e: i32[S]
  in    x: f32[M, N]
  in    u: f32[M]
  inout y: f32[M, N]
  temp  v: f32[M]
  forall i < M
    v[i] = u[i]
  loop q < S
    loop j < N
      forall i < M where {}
        v[i] max= x[i, j] - y[i, j]
        y[i, j] max= v[i] + x[i, j]
"""


def recurrence(condition: str, rows: int) -> Schedule:
    found = compiled(parse_kernel(SOME.format(condition)), {"M": rows, "N": 4}, simulated("host-avx2")).schedule
    assert found is not None
    return found


@pytest.mark.parametrize(("condition", "rows"), [("j >= 1", 1), ("q >= 1, j >= 1", 11), ("q >= j", 1), ("j <= 2", 11)])
def test_temporaries_under_conditions_are_followed(condition: str, rows: int) -> None:
    """Users could not compile these: where S is open, no steps are executed in the place of a proof."""
    with on_the_tree():
        prove(recurrence(condition, rows))


def test_what_fewer_iterations_make_is_missed() -> None:
    """The first of two parts under one condition makes what the second reads."""
    s = recurrence("j >= 1", 11)

    def edited(n: Node, left: Bound, which: int, seen: list[Loop]) -> Node:
        if isinstance(n, Seq):
            return replace(n, children=tuple(edited(c, left, which, seen) for c in n.children))
        if not isinstance(n, Loop):
            return n
        if len(n.hi) == 2:
            seen.append(n)
            return replace(n, hi=(n.hi[0], left)) if len(seen) == which else n
        return replace(n, body=edited(n.body, left, which, seen))

    j, kinds = Affine.of("j"), list[set[str]]()
    for which, left in ((1, j), (1, j - 1), (1, lit(3) - j), (2, j + 1)):
        kinds.append({v.kind for v in check_tree(replace(s, call=edited(s.call, Bound(left), which, [])))})
    assert kinds == [set(), {"stale"}, set(), {"stale"}]
    older = replace(s, call=edited(s.call, Bound(lit(3) - j), 1, []))  # the last one finds what was made before
    assert {v.obligation for v in check_points(older)} == {1, 5}
