"""What is done behind the last step of a statement whose points are between lines (``isam.proof.behind``)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import isam
from isam.ir.affine import Affine
from isam.proof.behind import Steps
from isam.proof.boxes import Family
from isam.proof.context import Context, Var
from isam.schedule.tree import Bound, Loop, Node, Seq, Serpentine
from tests.unit.proof.orders import Trees, at, judged, kernel, schedule, step, wrong

V = Affine.of
WHOLE = (Affine(), Affine((), 12))

TRIANGLES = {
    "read behind": """in x: f32[6, 6]
temp t: f32[6, 6]
out y: f32[6, 6]
forall i < 6, j < 6 where j <= i
  t[i, j] = x[i, j]
forall i < 6, j < 6 where j <= i
  y[i, j] = t[i, j]
""",
    "summed, then read": """in x: f32[6, 6]
inout t: f32[6]
out y: f32[6]
forall i < 6, j < 6 where j <= i
  t[i] += x[i, j]
forall i < 6
  y[i] = t[5 - i]
""",
    "from one turn to the next": """in x: f32[6, 6]
inout h: f32[6]
loop s < 2
  forall i < 6, j < 6 where j <= i
    h[i] += x[i, j]
  forall i < 6
    h[i] = h[i]
""",
}


def test_a_triangle_in_many_pieces_before_its_reader() -> None:
    """More boxes than can be counted for each step of the reader, and steps than can be executed."""
    text = """kernel k(T, N)
  in B: f32[T, N]
  inout h: f32[N]
  loop t < T
    forall j < N
      u[j] = 0
    forall j < N, k < N where k <= j
      u[j] += B[t, k] * h[k]
    forall j < N
      h[j] = u[j] * 0.5
"""
    made = isam.compile(isam.parse(text), sizes={"T": 4, "N": 500}, cache=False)
    terms = np.random.default_rng(3).standard_normal((4, 500)).astype(np.float32)
    state = np.ones(500, np.float32)
    want = state.astype(np.float64)
    for row in terms:
        want = np.cumsum(row * want) * 0.5
    made(B=terms, h=state)
    assert np.allclose(state, want, rtol=1e-3, atol=1e-3 * np.abs(want).max())


class Pieces(Trees):
    """Triangles in blocks of rows: what is left of each in columns, and the small triangle at its end row by row."""

    def nest(self, i: int, loops: dict[str, Affine]) -> list[Node]:
        if not self.k.statements[i].domain.where:
            return super().nest(i, loops)
        choose, out = self.choose, list[Node]()
        sizes = choose.choice(([6], [2, 4], [4, 2], [2, 2, 2], [1, 5]))
        for first in (sum(sizes[:n]) for n in range(len(sizes))):
            rows = sizes[len(out)]
            w, q = self.fresh("i"), self.fresh("j")
            unit = choose.choice([n for n in (1, 2, 3) if rows % n == 0])
            here = {**loops, "i": V(w)}
            left = Loop(q, (at(0),), (at(V(w)),), 1, step(i, {**here, "j": V(q)}, {"i": unit, "j": 1}))
            ends = [step(i, {**here, "i": V(w) + n, "j": V(w)}, {"i": 1, "j": n + 1}) for n in range(unit)]
            if choose.random() < 0.3:
                choose.shuffle(ends)
            out.append(Loop(w, (at(first),), (at(first + rows),), unit, Seq((left, *ends))))
        if choose.random() < 0.3:
            choose.shuffle(out)
        return out


@pytest.mark.parametrize("what", TRIANGLES)
def test_pieces_of_triangles_against_every_instance(what: str) -> None:
    k, right, said_wrong = kernel(TRIANGLES[what]), 0, 0
    for seed in range(80):
        choose = random.Random(f"{what} {seed}")
        trees = Pieces(choose, k, [(0,), (1,)], {})
        tree = trees.of(k.body, 0, {})
        for _ in range(choose.choice((0, 1, 1, 2))):
            tree = trees.spoilt(tree)
        s = schedule(k, [(0,), (1,)], Seq(), tree)
        true, said = wrong(s, frozenset(), {}), {5 if o == 4 else o for o, _, _ in judged(s)}
        assert said == true or said > true == {1}, f"{what} {seed}"
        right += not true
        said_wrong += 5 in true
    assert right > 15
    assert said_wrong > 2


def _var(name: str, lo: Affine | int, hi: Affine | int, step_: int = 1, origin: Affine | None = None) -> Var:
    return Var(name, (Bound(Affine.lift(lo)),), (Bound(Affine.lift(hi)),), step_, origin)


def _whole(around: tuple[Var, ...], *boxes: tuple[tuple[Affine, Affine], ...]) -> Any:
    steps = Steps(schedule(kernel(TRIANGLES["read behind"]), [(0,), (1,)], Seq(), Seq()), frozenset(), 0)
    got = steps.whole([Family(b) for b in boxes], (WHOLE, WHOLE), Context(around))
    return None if got is None else got.box


def test_an_iteration_is_alone_in_its_interval() -> None:
    """And only there: what lies beyond may be another's."""
    v, w = V("v"), V("w")
    rows = _var("v", 0, 8, 4, Affine())
    assert _whole((), (WHOLE, WHOLE)) == (WHOLE, WHOLE)
    assert _whole((rows,), ((v, v + 4), WHOLE)) == ((v, v + 4), WHOLE)
    assert _whole((rows,), ((v, v + 2), WHOLE), ((v + 2, v + 4), WHOLE)) == ((v, v + 4), WHOLE)
    assert _whole((rows,), (WHOLE, (v + 1, v + 2))) == (WHOLE, (v, v + 4))
    assert _whole((rows,), ((v, v + 5), WHOLE)) is None
    assert _whole((rows,), ((v, v + 2), WHOLE), ((v - 1, v), WHOLE)) is None
    assert _whole((rows,), (WHOLE, WHOLE)) is None  # every iteration executes all of it
    assert _whole((_var("v", 0, 8, 4),), ((v, v + 4), WHOLE)) is None  # from where it counts is not known
    inner = _var("w", v, v + 3, 2, v)
    assert _whole((rows, inner), ((w, w + 2), WHOLE)) == ((w, w + 2), WHOLE)
    assert _whole((rows, inner), ((v, v + 4), (w, w + 2))) == ((v, v + 4), (w, w + 2))
    beyond = _var("w", v, v + 3, 3, v)  # its second interval is in that of the next block, too
    assert _whole((rows, beyond), ((w, w + 1), WHOLE)) is None
    early = _var("w", v - 1, v - 1, 2, v - 1)  # its interval begins in that of the block before
    assert _whole((rows, early), ((v, v + 1), WHOLE)) is None


def test_not_before_its_last_step_wherever_that_is() -> None:
    def some(n: int, lo: int, hi: int) -> Node:
        i, j = f"i{n}{lo}", f"j{n}{lo}"
        inner = Loop(j, (at(0),), (at(V(i) + 1),), 1, step(n, {"i": V(i), "j": V(j)}, {"i": 1, "j": 1}))
        return Loop(i, (at(lo),), (at(hi),), 1, inner)

    def rows(n: int, lo: int, hi: int) -> Node:
        return Seq((some(n, lo, hi - 1), some(n, hi - 1, hi)))

    k = kernel(TRIANGLES["read behind"])
    for call, right in (
        (Seq((rows(0, 0, 3), rows(0, 3, 6), rows(1, 0, 6))), True),
        (Seq((rows(0, 0, 3), rows(1, 0, 6), rows(0, 3, 6))), False),
        (Seq((rows(0, 0, 3), Seq((rows(0, 3, 6), rows(1, 0, 6))))), True),
        (Seq((rows(0, 3, 6), Seq((rows(1, 0, 6), rows(0, 0, 3))))), False),
    ):
        s = schedule(k, [(0,), (1,)], Seq(), call)
        assert (not wrong(s, frozenset(), {})) == (not judged(s)) == right


BLOCKS = {
    "flow": """in x: f32[2, 8]
temp t: f32[2, 8, 2]
out y: f32[2, 4]
forall u < 2, i < 8, j < 2 where j <= u
  t[u, i, j] = x[u, i]
forall u < 2, i < 4
  y[u, i] = t[u, i, 0]
""",
    "anti": """inout x: f32[2, 8]
out t: f32[2, 8, 2]
forall u < 2, i < 8, j < 2 where j <= u
  t[u, i, j] = x[u, i]
forall u < 2, i < 4
  x[u, i] = 1.0
""",
}


@pytest.mark.parametrize("what", BLOCKS)
@pytest.mark.parametrize("back", [False, True])
def test_the_interval_of_an_iteration_without_steps_is_not_its_own(what: str, back: bool) -> None:
    """The first iteration of the inner loop has no step: its interval is in the block before, which comes later where
    blocks go back and forth."""
    u, v, w, r, j = map(V, ("u", "v", "w", "r", "j"))
    tile = {"u": 1, "i": 2, "j": 1}
    some = step(0, {"u": u, "i": w, "j": 0}, tile)
    more = Loop("j", (at(1),), (at(u + 1), at(2)), 1, step(0, {"u": u, "i": w, "j": j}, tile))
    late = Loop("r", (at(v - 2), at(0)), (at(w - 2),), 1, step(1, {"u": u, "i": r}, {"u": 1, "i": 1}))
    inner = Loop("w", (at(v - 2),), (at(v + 4),), 2, Seq((some, more, late)), first=Seq())
    blocks = Loop("v", (at(0),), (at(8),), 4, inner, serpentine=Serpentine("u", 1) if back else None)
    rest = Loop("r", (at(0),), (at(2),), 1, step(1, {"u": u, "i": r}, {"u": 1, "i": 1}))
    call = Seq((Loop("u", (at(0),), (at(2),), 1, blocks), Loop("u", (at(0),), (at(2),), 1, rest)))
    s = schedule(kernel(BLOCKS[what]), [(0,), (1,)], Seq(), call)
    assert wrong(s, frozenset(), {}) == {o for o, _, _ in judged(s)} == ({5} if back else set())
