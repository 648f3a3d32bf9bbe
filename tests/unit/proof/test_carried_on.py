"""What every iteration leaves alike is there for all but the first; what a slot of one instance holds is there behind
loops that are dealt to others. Judged by facts and byte by byte."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof.tree import Tree
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Seq, Tile, distinct
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge, simulated
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_under_conditions import Conditional
from tests.unit.proof.trees import PITCH, SIDE, accepted, judged, schedule

T = Affine.of("t")


def at(memory: str, base: str = "", offset: int | Affine = 0, buffer: str = "C", row: Affine | None = None) -> Operand:
    """A buffer of 4 x 4, or a row of it, that begins somewhere."""
    rows, start = (SIDE, lit(0)) if row is None else (1, row)
    tile = Tile(buffer, (start, lit(0)), (rows, SIDE), (1, 1))
    where = lit(offset) if isinstance(offset, int) else offset
    return Operand("D", tile, Place(memory, base, where, (PITCH, 4)), (0, 1))


def step(source: Operand, target: Operand, compute: bool = False) -> Issue:
    return Issue("dma", "any", (("again", 0),), (replace(source, name="S"), target), 0 if compute else None)


def loop(var: str, *body: Node, trip: int = SIDE, deal: Deal | None = None, left: Affine | None = None) -> Loop:
    most = (Bound(lit(trip)),) if left is None else (Bound(lit(trip)), Bound(left))
    return Loop(var, (Bound(lit(0)),), most, 1, Seq(body), deal=deal)


LEFT, MADE = at("sp"), step(at("dram", "A", 0, "A"), at("sp"), compute=True)
READ = step(LEFT, at("dram", "C"))


def handed(left: Affine, *more: Issue) -> Loop:
    """An iteration reads, where ``left`` says so, what the one before has made."""
    return loop("t", loop("b", READ, trip=1, left=left), MADE, *more)


ROW = step(at("dram", "A", 0, "A", lit(0)), at("sp", "", 128, "C", lit(0)), compute=True)
OVER = step(at("dram", "B", 0, "B"), at("sp", "", 0, "B"))
FIRST = replace(handed(T), first=Seq((MADE,)))
LAST = replace(handed(T), first=Seq((MADE, OVER)))
B = Affine.of("b")
PUT_ROW = step(at("dram", "A", B * PITCH, "A", B), at("sp", "", 256, "A", B))
GOT = step(at("sp", "", 256, "A", lit(0)), at("sp", "", 320, "A", lit(0)))
ALIKE: dict[str, tuple[Node, bool]] = {
    "all but the first": (handed(T), True),
    "all but two": (handed(T - 1), True),
    "the first, too": (handed(lit(1)), False),
    "the first, too, by its line": (handed(T + 1), False),
    "the first alone": (handed(lit(1) - T), False),
    "a row is made anew elsewhere": (handed(T, step(LEFT, at("sp", "", 128)), ROW), False),
    "another tile lies there": (handed(T, OVER), False),
    "the first has a body of its own": (FIRST, True),
    "one iteration leaves its row": (loop("t", loop("b", PUT_ROW, trip=1, left=T + 1), GOT), True),
    "another iteration leaves its own": (loop("t", loop("b", PUT_ROW, trip=2, left=T + 1), GOT), False),
    "a part is carried out once": (loop("t", MADE, loop("b", READ, OVER, trip=1, left=T)), True),
    "a part is carried out twice": (loop("t", MADE, loop("b", READ, OVER, trip=2, left=T)), False),
    "the first has overwritten it": (replace(LAST, body=Seq((READ, MADE))), False),
    "the first has overwritten it, the next leaves it": (replace(LAST, body=handed(T - 1).body), True),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_iterations_leave_alike(name: str) -> None:
    node, right = ALIKE[name]
    for _, found, followed, holds in accepted(schedule(node), name):
        assert followed is holds is right, found


OWN = at("rb", "own", 0, "A")


def dealt(first: int, *body: Node, trip: int = 2, stride: int = 1) -> Loop:
    return loop("t", *body, trip=trip, deal=Deal("core", first, stride))


BROUGHT, TAKEN = step(at("dram", "A", 0, "A"), OWN), step(OWN, at("sp", "", 0, "A"))
PASSED = step(at("dram", "A", T * PITCH, "A", T), at("sp", "", T * PITCH + 256, "A", T))
PUT = step(at("dram", "A", T * PITCH + PITCH, "A", T + 1), at("rb", "own", 0, "A", T + 1))  # where row 0 lies
SLOTS: dict[str, tuple[Node, bool]] = {
    "a loop that reads the buffer": (dealt(0, PASSED), True),
    "others fill theirs": (dealt(1, PUT), True),
    "another fills its own": (dealt(3, PUT, trip=1), True),
    "the same one fills its own": (dealt(0, PUT), False),
    "the same one at last": (dealt(2, PUT, trip=2, stride=-2), False),
    "others in a loop around": (loop("v", dealt(1, PUT)), True),
}


@pytest.mark.parametrize("name", SLOTS)
def test_what_one_instance_keeps(name: str) -> None:
    node, right = SLOTS[name]
    for _, found, followed, holds in accepted(schedule(Seq((BROUGHT, node, TAKEN))), name):
        assert followed is holds is right, found


@pytest.mark.parametrize(("first", "right"), [(1, True), (0, False)])
def test_what_each_of_some_instances_keeps(first: int, right: bool) -> None:
    """Instances 0 and 2 bring, a loop inside is dealt to those beside them, or to them."""
    inner = loop("u", PUT, trip=1, deal=Deal("core", first))
    node = dealt(0, BROUGHT, inner, step(OWN, at("sp", "", T * 64, "A")), stride=2)
    for _, found, followed, holds in accepted(schedule(node), str(first)):
        assert followed is holds is right, found


class Carried(Conditional):
    """Loops that read, in some of their iterations, what the iteration before has made."""

    def node(self, known: list[Operand], names: tuple[str, ...], deep: int, deal: Deal | None) -> Node:
        n, choose = super().node(known, names, deep, deal), self.choose
        assert isinstance(n, Loop)
        v = Affine.of(n.var)
        body = Seq(tuple(self.step([choose.choice(made(n.body))], (n.var,)) for _ in range(choose.choice((1, 1, 2)))))
        left = choose.choice((v, v, v, v - 1, lit(2) - v, lit(1)))
        front = Loop(f"{n.var}.before", (Bound(lit(0)),), (Bound(lit(1)), Bound(left)), 1, body)
        return replace(n, body=Seq((front, n.body)))


def made(n: Node) -> list[Operand]:
    if isinstance(n, Issue):
        return [o for o in n.operands if o.name == "D"]
    return [o for c in (n.children if isinstance(n, Seq) else (n.body,)) for o in made(c)]


def test_what_is_accepted_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    every, without = 0, 0
    for seed in range(300):
        s = schedule(Carried(random.Random(seed)).tree())
        for cuts, _, followed, _ in accepted(s, f"tree {seed}"):
            every += followed
            if followed:
                with monkeypatch.context() as m:
                    m.setattr(Tree, "_history", lambda *_: [])
                    without += all(kind == "final" for _, kind, _ in judged(s, cuts))
    assert every > without > 100


TWO_SLOTS = """kernel two_slots()
  in    u: i32[7]
  inout A: i32[5, 7]
  inout q: i32[5]
  out   d: i32[7]
  loop t < 4
    forall j < 7
      d[j] = u[j] - A[3, j]
    forall i < 5, j < 7
      q[i] += A[i, j]
"""
BEFORE = """kernel before(T)
  in  x: i32[T, 8]
  out y: i32[T, 8]
  forall a < T, i < 8
    y[a, i] = 0
  loop t < T
    forall i < 8 where {}
      y[t, i] = u[i]
    forall i < 8{}
      u[i] = x[t, i] * x[t, i]
"""


ONCE = """kernel once()
  in    u: i32[4]
  in    v: i32[4]
  inout y: i32[1, 4]
  out   d: i32[4]
  loop t < 1
    forall j < 4
      y[t, j] *= v[j]
      d[j] = v[0] * u[3 - j]
"""
LINE = """kernel line()
  permits nothing
  inout A: i32[1, 1]
  loop t < 3
    forall r < 1, i < 1 where i <= t
      A[r, i] += A[r, i]
"""
ROWS = """kernel rows(T)
  inout y: i32[T, 8]
  in    e: i32
  loop t < T
    forall i < 8 where 1 <= t
      w[i] = y[t - 1, i] + e
    forall i < 8 where 1 <= t
      y[t, i] max= w[i]
"""


@pytest.mark.parametrize(
    "text",
    [
        TWO_SLOTS,
        ONCE,
        *(
            BEFORE.format(*c).replace("(T)", "()").replace("[T", "[6").replace("< T", "< 6")
            for c in [("t >= 1", ""), ("t >= 3", ""), ("t >= 1", " where t < 5"), ("t >= 1, t < 4", "")]
        ),
    ],
)
def test_kernels_are_proved(text: str) -> None:
    """Whose loops are dealt, so that no steps are executed in the place of a proof."""
    kernel = parse_kernel(text)
    job = compiled(kernel, {}, simulated("casestudy"), check=True)
    assert any(isinstance(n, Loop) and n.deal is not None for n in distinct(job.schedule.call))
    judge(kernel, {}, job)


LATER = BEFORE.format("t >= 1", "").replace("  forall a < T, i < 8\n    y[a, i] = 0\n", "").replace("out ", "inout ")


def test_the_one_iteration_at_a_line_leaves_what_it_made() -> None:
    with on_the_tree():
        compiled(parse_kernel(LINE), {}, simulated("casestudy"), check=True)


@pytest.mark.parametrize("on", ["host-avx2", "casestudy"])
@pytest.mark.parametrize("text", [LATER, ROWS])
def test_kernels_of_open_trips_are_proved(text: str, on: str) -> None:
    with on_the_tree():
        compiled(parse_kernel(text), {}, simulated(on), check=True)
