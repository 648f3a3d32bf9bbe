"""Small trees of moves and computations, each for one thing that is to be forgotten, kept or refused, carried out too.

``S`` is read, ``D`` written, moved or computed; see ``trees``."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.proof.context import Context
from isam.proof.filled import BOX
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.tree import Tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Slot, Tile
from tests.unit.proof.handmade import loop, seq
from tests.unit.proof.handmade_machines import lit, matmul
from tests.unit.proof.test_facts import Bytes
from tests.unit.proof.trees import PITCH, SIDE, Steps, Trees, run, schedule
from tests.unit.proof.trees import at_home as whole_at_home
from tests.unit.proof.verdicts import on_record

V = Affine.of
Env = dict[str, int]
SLOTS = (Slot("own", "rb", 256), Slot("kept", "sp", 64, bound=True), Slot("lost", "sp", 64),
         Slot("one", "sp", 64, dtype="f32", literal=1.0))  # fmt: skip


def part(buffer: str, row: Affine | int = 0, rows: int = SIDE) -> Tile:
    return Tile(buffer, (lit(row), lit(0)), (rows, SIDE), (1, 1))


def home(t: Tile, base: str = "") -> Operand:
    return Operand("D", t, Place("dram", base or t.buffer, t.start[0] * PITCH, (PITCH, 4)), (0, 1))


def at(t: Tile, memory: str = "sp", offset: Affine | int = 0, base: str = "", cell: int | None = None) -> Operand:
    return Operand("D", t, Place(memory, base, lit(offset), (PITCH, 4), cell), (0, 1))


def step(source: Operand, target: Operand, compute: bool = False) -> Issue:
    return Issue("dma", "any", (), (replace(source, name="S"), target), 0 if compute else None)


def made(call: Node, bind: Node | None = None, sizes: bool = False) -> Schedule:
    """The constant is B; C is the output."""
    k = matmul(SIDE, SIDE, SIDE, const=True)
    k = replace(k, syms=(Sym("T", 0, 2), Sym("U", 0, 2))) if sizes else k
    s = schedule(call)
    return replace(s, kernel=k, cover=replace(s.cover, kernel=k, original=k), bind=bind or Seq(), workspace=SLOTS)


def judged(s: Schedule, cuts: bool = False) -> set[str]:
    lg: Any = Steps(Legality(s))
    out = Findings()
    Tree(s, lg, Isl(), out, cuts).check()
    return {v.kind for v in out.found}


def wrong(s: Schedule, env: Env) -> tuple[bool, bool]:
    """Whether some step reads what does not lie there; whether the output is at home."""
    memory, out = Bytes({}), list[Issue]()
    memory.write(whole_at_home("B"), False)
    run(s.bind, dict(env), 0, memory, out)
    kept = {w.name for w in s.workspace if w.bound or w.literal is not None} | {"B"}
    memory.at = {k: v for k, v in memory.at.items() if k[1] in kept}
    for b in "AC":
        memory.env = {}
        memory.write(whole_at_home(b), False)
    run(s.call, dict(env), 0, memory, out)
    memory.env = {}
    return bool(out), memory.holds(whole_at_home("C"))


def agreed(call: Node, right: bool, bind: Node | None = None) -> None:
    """What is followed is what happens: all is read where it lies, and the output is at home; or not."""
    s = made(call, bind)
    stale, there = wrong(s, {})
    assert (not stale and there) is right
    assert (judged(s) == set() or judged(s, cuts=True) == set()) is right


A, B, C = (part(b) for b in "ABC")
LOW = Place("sp", "", lit(0), (PITCH, 4))


# what is bound --------------------------------------------------------------------------------------------------------
def test_what_is_there_when_constants_are_bound_and_when_the_kernel_is_called() -> None:
    """Constants and what is kept of them; arguments come with the call, and what lies elsewhere is lost."""
    for base, right in (("kept", True), ("lost", False), ("", False)):
        agreed(step(at(B, base=base), at(B, offset=256)), right, step(home(B), at(B, base=base)))
        agreed(step(at(B, base=base), at(B, offset=256)), False)
    agreed(step(home(B), at(B)), True)
    agreed(step(home(A), at(A)), True)
    for t in (A, C):
        agreed(Seq(), False, step(home(t), at(t)))
    top, low = part("B", 0, 2), part("B", 2, 2)
    over = step(home(top), replace(home(top), place=home(low).place))  # rows 0 and 1 in the place of 2 and 3
    agreed(step(home(top), at(top)), True, over)
    agreed(step(home(low), at(low)), False, over)
    agreed(step(home(B), at(B)), False, over)
    for base in "AC":
        agreed(step(home(B, base), at(B)), False, step(home(B), home(B, base)))


def test_an_output_without_a_home_is_not_there() -> None:
    s = made(Seq())
    assert judged(replace(s, homes={n: p for n, p in s.homes.items() if n != "C"})) == {"final"}


def test_numbers_of_the_workspace_are_there() -> None:
    one = Operand("D", Tile("one", (), (), ()), Place("sp", "one", lit(0), ()), ())
    to = replace(one, place=Place("sp", "", lit(128), ()))
    for bind, call in ((step(one, to), Seq()), (Seq(), step(one, to)), (step(one, to), step(one, to))):
        assert judged(made(call, bind)) == set()
    assert judged(made(step(to, one), step(one, to))) == {"stale"}


# loops ----------------------------------------------------------------------------------------------------------------
def twice(body: Node, **parts: Node) -> Loop:
    return loop("x", 0, 2, 1, body, **parts)


def test_what_a_loop_overwrites_is_gone() -> None:
    """Of buffers that it names, and of others in places that it names; the rest stays."""
    bring, other = step(home(A), at(A)), step(home(B), at(B))
    for offset, right in ((0, False), (256, True), (60, False), (64, True)):
        again = step(home(B), at(B, offset=offset))
        agreed(seq(bring, twice(again), step(at(A), at(A, offset=512))), right)
    agreed(seq(bring, twice(other), twice(bring), twice(other), step(at(A), at(A, offset=512))), False)
    agreed(seq(bring, twice(other), twice(bring), twice(bring), step(at(A), at(A, offset=512))), True)
    agreed(loop("x", 0, 0, 1, step(at(A), at(A, offset=512)), enter=step(at(B), at(B, offset=512))), True)
    for cell, right in ((0, False), (1, True)):
        one = step(home(A), at(A, "ra", cell=0))
        agreed(seq(one, twice(step(home(B), at(B, "ra", cell=cell))), step(at(A, "ra", cell=0), at(A))), right)


def test_what_a_loop_overwrites_whose_end_is_another_s_begin() -> None:
    """From row 0 on and up to row 1, which is less than both write where the one ends behind row 1."""
    w, r = V("w"), V("r")
    over = step(home(part("A", r, 1)), at(part("A", r, 1), offset=r * PITCH))
    kept = step(home(part("B", w, 1)), at(part("B", w, 1), offset=w * PITCH))
    there = part("B", 1, 3)
    for line, right in ((lit(0), True), (lit(1), True), (w - 1, False), (lit(2), False)):
        both = (Loop("r", (Bound(lo),), (Bound(hi),), 1, over) for lo, hi in ((lit(0), line), (line, lit(1))))
        rows = Loop("w", (Bound(lit(1)),), (Bound(lit(SIDE)),), 1, seq(*both, kept))
        agreed(seq(rows, step(at(there, offset=PITCH), at(there, base="own", memory="rb"))), right)


def test_what_loops_of_two_bounds_have_left_is_renewed_piece_by_piece() -> None:
    """Elements in registers, and back where they were, or elsewhere, or not at all."""
    i, j = V("i"), V("j")
    mine = Tile("C", (i, j), (1, 1), (1, 1))
    there, own = at(mine, offset=i * PITCH + j * 4), at(mine, "ra", cell=0)
    other, shifted = at(mine, offset=i * PITCH + j * 4 + 256), at(mine, offset=j * PITCH + i * 4)
    source = step(at(Tile("A", (i, j), (1, 1), (1, 1)), "dram", i * PITCH + j * 4, "A"), own, True)

    def each(*steps: Issue) -> Node:
        inner = Loop("j", (Bound(lit(0)), Bound(i - 1)), (Bound(lit(SIDE)),), 1, seq(*steps))
        return Loop("i", (Bound(lit(0)),), (Bound(lit(SIDE)),), 1, inner)

    made, read = each(source, step(own, there)), each(step(there, own))
    last = seq(step(home(A), at(C, "ra", cell=1), True), step(at(C, "ra", cell=1), home(C)))
    agreed(seq(made, read, last), True)
    for back, right in (((step(own, there),), True), ((step(own, other),), False), ((step(own, shifted),), False),
                        ((), False), ((step(own, other), step(own, there)), True)):  # fmt: skip
        agreed(seq(made, each(step(there, own), source, *back), read, last), right)


def test_a_copy_that_a_loop_makes_is_stale_when_the_tile_is_computed_again() -> None:
    reg, copy = at(C, "ra", cell=0), at(C)
    start, again = step(home(A), reg, True), step(home(A), reg, True)
    for between in (twice(step(reg, copy)), step(reg, copy)):
        agreed(seq(start, again, between, step(copy, home(C))), True)
        agreed(seq(start, again, between, again, step(copy, home(C))), False)
        agreed(seq(start, again, between, again, step(reg, home(C))), True)
    agreed(seq(start, again, step(home(B), at(B, "ra", cell=0)), again, step(reg, home(C))), True)


def test_an_instance_finds_nothing_of_others_in_its_memories() -> None:
    """Nor is anything of it there afterwards."""
    bring, take = step(home(A), at(A, "ra", cell=0)), step(at(A, "ra", cell=0), at(A))
    dealt = replace(loop("d", 0, 2, 1, take), deal=Deal("core", 1, 1))
    agreed(seq(bring, take), True)
    agreed(seq(bring, dealt), False)
    agreed(replace(dealt, body=seq(bring, take)), True)
    agreed(seq(replace(dealt, body=bring), take), False)
    agreed(seq(replace(dealt, body=seq(bring, take)), replace(dealt, deal=Deal("core", 2, 1))), False)


def dealt(var: str, by: int, body: Node, first: int = 0, stride: int = 1, lo: int = 0, trip: int = 2) -> Loop:
    return replace(loop(var, lo, lo + by * trip, by, body), deal=Deal("core", first, stride))


def test_a_slot_holds_what_an_iteration_on_its_instance_has_left() -> None:
    """The same in all of them, or rows of its own; whichever way the loops count, in one loop or two."""
    own = at(A, "rb", base="own")
    bring, take = step(home(A), own), step(own, at(A))
    for by, first, stride, lo, right in ((1, 0, 1, 0, True), (4, 0, 1, 0, True), (1, 0, 1, 5, True),
                                         (1, 1, 1, 0, False), (4, 1, 1, 0, False), (1, 0, 2, 0, False)):  # fmt: skip
        agreed(seq(dealt("d", 4, bring), dealt("e", by, take, first, stride, lo)), right)
    agreed(seq(dealt("d", 1, bring), dealt("e", 1, take, lo=5)), True)
    agreed(seq(dealt("d", 1, bring), take), True)
    agreed(seq(bring, dealt("e", 1, take, 1, 0, trip=1)), False)
    agreed(seq(dealt("d", 1, bring, 1), take), False)
    agreed(seq(bring, dealt("e", 1, take, trip=1)), True)
    agreed(seq(bring, dealt("e", 1, take)), False)
    agreed(dealt("d", 1, seq(bring, take)), True)
    agreed(seq(dealt("d", 1, bring), dealt("f", 1, step(home(B), at(B, "rb", base="own"))), dealt("e", 1, take)), False)

    def row(var: str, by: int = 1) -> tuple[Operand, Operand, Operand]:
        t = part("A", V(var) * by if by > 0 else V(var) * by + 1, 1)
        return home(t), at(t, "rb", base="own"), at(t, offset=V(var) * PITCH)

    (a, b, _), (_, c, d), (_, e, f) = row("d"), row("e"), row("e", -1)
    agreed(seq(dealt("d", 1, step(a, b)), dealt("e", 1, step(c, d))), True)
    agreed(seq(dealt("d", 1, step(a, b)), dealt("e", 1, step(e, f))), False)
    agreed(seq(dealt("d", 1, step(a, b)), dealt("e", 1, step(e, f), 1, -1)), True)
    agreed(seq(dealt("d", 1, step(a, b)), dealt("e", 1, step(c, d), 1)), False)


def test_slots_of_many_instances() -> None:
    """Loops one in the other, other steps and strides: what is accepted is right; what is, on record."""
    own, said = at(A, "rb", base="own"), list[bool]()
    bring, take = step(home(A), own), step(own, at(A))

    def followed(*nodes: Node) -> None:
        s = made(seq(*nodes))
        accepted = judged(s) == set()
        assert not (accepted and wrong(s, {})[0])
        said.append(accepted)

    for one, two, by, lo, trip in product((0, 1), (1, 2), (1, 3), (0, 1), (1, 2)):
        if one + two * (trip - 1) < 4:
            followed(dealt("d", by, bring, one, two, lo, trip), dealt("e", 2, take))
            followed(dealt("d", 2, bring), dealt("e", by, take, one, two, lo, trip))
    for (one, two), by, first, trip in product(((2, 1), (1, 2)), (1, 2), (0, 1), (1, 2)):
        if first + one + two < 4 or trip == 1:
            put = dealt("d", 1, dealt("e", 1, bring, stride=1), stride=2)
            followed(put, dealt("f", by, dealt("g", 1, take, stride=two), first=first, stride=one, trip=trip))
            followed(
                dealt("d", by, dealt("e", 1, bring, stride=two), stride=one), dealt("f", 1, take, first, trip=trip)
            )
    rows = [part("A", V(x) * 2 + V(y), 1) for x, y in ("de", "fg", "gf")]
    put = dealt("d", 1, dealt("e", 1, step(home(rows[0]), at(rows[0], "rb", base="own")), stride=1), stride=2)
    for t, stride in product(rows[1:], (1, 2)):
        got = step(at(t, "rb", base="own"), at(t))
        followed(put, dealt("f", 1, dealt("g", 1, got, stride=3 - stride), stride=stride))
    assert len({*said}) == 2
    on_record("trees: slots", said)


# loops that may not run ----------------------------------------------------------------------------------------------
def sized(n: Node, choose: random.Random, names: list[str]) -> Node:
    """Some loops without peeled bodies run as often as a size says."""
    if isinstance(n, Seq):
        return Seq(tuple(sized(c, choose, names) for c in n.children))
    if not isinstance(n, Loop):
        return n
    parts = {p: sized(x, choose, names) for p in ("enter", "first", "body", "last", "exit") if (x := getattr(n, p))}
    if n.trip == 2 and n.deal is None and n.first is n.last is None and choose.random() < 0.7:
        parts["hi"] = (Bound(n.lo[0].expr + V(choose.choice(names), n.step)),)  # type: ignore[assignment]
    return replace(n, **parts)


@pytest.mark.parametrize("seed", range(3))
def test_loops_that_run_as_often_as_sizes_say(seed: int) -> None:
    """What is accepted holds for all sizes; how much is, on record."""
    said, accepted, refused = list[object](), 0, 0
    for n in range(20):
        choose = random.Random(f"{seed} {n}")
        s = made(sized(Trees(choose).tree(), choose, ["T", "U"]), sizes=True)
        ways = [wrong(s, {"T": t, "U": u}) for t, u in product(range(3), repeat=2)]
        for cuts in (False, True):
            found = judged(s, cuts)
            assert found - {"final"} or not any(stale for stale, _ in ways)
            assert found or all(there for _, there in ways)
            accepted, refused = accepted + (found <= {"final"}), refused + bool(found - {"final"})
            said.append(sorted(found))
    assert min(accepted, refused) > 3
    on_record(f"trees: sizes {seed}", said)


def test_what_a_loop_does_that_may_not_run() -> None:
    """It is not done for sure; what it leaves is there, though, where it is there without it."""
    bring, take = step(home(A), at(A)), step(at(A), at(A, offset=512))
    maybe = Loop("x", (Bound(lit(0)),), (Bound(V("T")),), 1, bring)
    row = step(home(part("A", V("x"), 1)), at(part("A", V("x"), 1), offset=V("x") * PITCH))
    for some, right in (
        ((maybe, take), False), ((bring, maybe, take), True), ((replace(maybe, body=Seq(), enter=bring), take), False),
        ((replace(maybe, body=Seq(), exit=bring), take), False), ((replace(maybe, body=seq(bring, take)),), True),
        ((replace(maybe, exit=take),), True), ((replace(maybe, body=row), Loop("y", maybe.lo, maybe.hi, 1, step(
            at(part("A", V("y"), 1), offset=V("y") * PITCH), at(part("A", V("y"), 1), offset=512)))), True),
        ((replace(maybe, body=row), Loop("y", maybe.lo, (Bound(V("U")),), 1, step(
            at(part("A", V("y"), 1), offset=V("y") * PITCH), at(part("A", V("y"), 1), offset=512)))), False),
    ):  # fmt: skip
        s = made(seq(*some), sizes=True)
        stale = any(wrong(s, {"T": t, "U": u})[0] for t, u in product(range(3), repeat=2))
        assert stale is not right
        assert (judged(s) - {"final"} == set()) is right


# one step -------------------------------------------------------------------------------------------------------------
def told_twice(choose: random.Random) -> Iterator[tuple[Operand, ...]]:
    """Two or three operands of a step, in the same places, near each other, or apart."""
    for _ in range(400):
        out = []
        for name in choose.choice((("D", "E"), ("D", "S"), ("D", "E", "S"), ("D", "D" + BOX))):
            shape = choose.choice(((2, 4), (1, 4), (2, 2)))
            t = Tile(choose.choice("AAB"), (lit(choose.choice((0, 1, 2))), lit(choose.choice((0, 2)))), shape, (1, 1))
            t = t if t.start[1].const + shape[1] <= 4 else t._replace(start=(t.start[0], lit(0)))
            by_rule = t.start[0] * PITCH + t.start[1] * 4
            cells = [Place("ra", "", lit(0), (pitch, 4), n) for pitch, n in ((16, 0), (64, 1), (16, 2))]
            bytes_ = [replace(LOW, offset=lit(0) + offset) for offset in (0, by_rule, 32)]
            places = [Place("dram", "A", by_rule, (PITCH, 4)), Place("sp", "", lit(0), (4, 16)), *cells, *bytes_]
            place = choose.choice(places)
            out.append(Operand(name, t, place, (0, 1)))
        yield tuple(out)


def bytes_of(o: Operand) -> dict[tuple[str, str, int], tuple[int, ...]]:
    """Its bytes, or those of its cells, with what lies there."""
    places = Bytes({}).places(o)
    if o.place.cell is None:
        return {(m, b, x + k): e for e, (m, b, x) in places for k in range(4)}
    return {(m, b, c * 64 + k): () for _, (m, b, x) in places for c in {x // 64, (x + 3) // 64} for k in range(64)}


def test_operands_in_cells_of_their_own() -> None:
    """Wherever in their cells they lie."""
    s = made(Seq())
    tree, out = Tree(s, Steps(Legality(s)), Isl(), Findings()), Findings()  # type: ignore[arg-type]
    cells = [replace(at(part("A", 0, 1), "ra", cell=n, offset=V(f"in {n}")), name=x) for n, x in ((0, "D"), (2, "E"))]
    for ops in (cells, cells[::-1]):
        for writes in ({"D"}, {"E"}):
            sig = SimpleNamespace(writes=writes, reads=set[str](), extents={}, semantics=SimpleNamespace(pairs=()))
            tree._alias(Issue("u", "i", (), tuple(ops)), [(o, tree.facts.target(o)) for o in ops], sig, Context(), out)
    assert not out.found


@pytest.mark.parametrize("seed", range(3))
def test_operands_of_one_step_that_meet(seed: int) -> None:
    """What is written may meet no other operand, but where one tile is read element by element before it is written, or
    one box is filled around what is copied; and no element is written twice. What else is refused is on record."""
    choose, said, pairs = random.Random(seed), list[list[str]](), [frozenset(("DS",)), frozenset[str]()]
    s = made(Seq())
    for ops in told_twice(choose):
        lg: Any = Steps(Legality(s))
        out, tree = Findings(), Tree(s, lg, Isl(), Findings())
        writes = {o.name for o in ops if o.name != "S"}
        same = choose.choice(pairs)
        sig = SimpleNamespace(writes=writes, reads={"S"})
        with pytest.MonkeyPatch.context() as m:
            m.setattr("isam.proof.tree.pointwise", lambda _, same=same: {tuple(p) for p in same})
            tree._alias(Issue("u", "i", (), ops), [(o, tree.facts.target(o)) for o in ops], sig, Context(), out)
        assert {(v.obligation, v.kind) for v in out.found} <= {(9, "alias")}
        for o, p in product(ops, repeat=2):
            if o is p or o.name not in writes:
                continue
            mine, theirs = bytes_of(o), bytes_of(p)
            meet = bool(mine.keys() & theirs.keys()) and BOX not in o.name + p.name
            alike = (o.tile, o.place) == (p.tile, p.place) and o.name + p.name in same
            text = f"operands {o.name} and {p.name} overlap"
            if meet and not alike:
                assert text in {v.message for v in out.found}
            if p.name in writes and o.tile.buffer == p.tile.buffer:
                common = {e for e, _ in Bytes({}).places(o)} & {e for e, _ in Bytes({}).places(p)}
                both = f"operands {o.name} and {p.name} are written with the same elements"
                assert (both in {v.message for v in out.found}) is bool(common)
        said.append(sorted(v.message for v in out.found))
    on_record(f"trees: one step {seed}", said)
