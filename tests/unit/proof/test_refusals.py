"""What is refused, or answered, on ways that no whole schedule takes soon: each with the words it is refused with."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Literal, Statement
from isam.proof import tree
from isam.proof.bounds import check_bounds
from isam.proof.boxes import box_of, span
from isam.proof.certificate import prove, system_hash
from isam.proof.context import Context
from isam.proof.facts import Facts
from isam.proof.flat import check_flat
from isam.proof.flat_table import lines
from isam.proof.geometry import axis_extents, covers_box, first, linear, rows
from isam.proof.induction import forget
from isam.proof.joined import _apart, check_joined, ranges
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.registers import judge
from isam.proof.semantics import Leaf, Op, _strip, effects_of, same_number
from isam.proof.sets import Isl
from isam.proof.state import State
from isam.proof.tree import check_tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Operand, Place, Schedule, Seq, Tile, distinct
from isam.system.groups import Cluster
from tests.unit.proof import test_registers
from tests.unit.proof.handmade import cell, loop, op, seq, tile, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import acc, dom, lit
from tests.unit.proof.test_points import MADE

V = Affine.of("v")


def said(out: Findings) -> list[tuple[int, str, str]]:
    return [(v.obligation, v.kind, v.message) for v in out.found]


# steps of clusters ----------------------------------------------------------------------------------------------------
def clustered() -> Schedule:
    """Two units of one cluster, and one apart; all take the matrices A of their products from one place."""
    s = tiny_matmul()
    y = s.system
    units = {**y.units, **{n: replace(y.units["mm"], name=n) for n in ("m2", "m3")}}
    mm = y.instructions["mm4"]
    shared = replace(mm, operands={**mm.operands, "A": replace(mm.operands["A"], shared=True)})
    two = {"c": Cluster("c", ("mm", "m2"))}
    return replace(s, system=replace(y, units=units, instructions={**y.instructions, "mm4": shared}, clusters=two))


def member(unit: str, row: int, number: int, name: str = "mm4", size: int = 4, a: int = 0) -> Issue:
    t = tile("C", [row, 0], [size, 4])
    if name != "mm4":
        return Issue(unit, name, (("M", size), ("N", 4)), (op("C", t, cell("ra", number, [size, 4])),), 0,
                     (("i", lit(row)), ("j", lit(0))))  # fmt: skip
    operands = (op("A", tile("A", [row, 0], [size, 4]), cell("rb", a, [4, 4])), op("B", tile("B", [0, 0], [4, 4]),
                cell("rb", 7, [4, 4])), op("C", t, cell("ra", number, [size, 4])))  # fmt: skip
    return Issue(unit, name, (("M", size), ("N", 4), ("K", 4)), operands, 1,
                 (("i", lit(row)), ("j", lit(0)), ("k", lit(0))))  # fmt: skip


def step(*calls: Issue) -> list[tuple[int, str, str]]:
    s = clustered()
    made = Seq(tuple(replace(c, joined=k > 0) for k, c in enumerate(calls)))
    out = Findings()
    check_joined(replace(s, call=made), Facts(Legality(s), Isl()), out)
    return said(out)


def test_steps_of_clusters() -> None:
    assert step(member("mm", 0, 0), member("m2", 4, 1)) == []
    assert step(member("mm", 0, 0), member("m3", 4, 1)) == [
        (10, "step", "'m3' and 'mm' are not members of one cluster")]  # fmt: skip
    assert step(member("m3", 0, 0), member("mm", 4, 1)) == [
        (10, "step", "'mm' and 'm3' are not members of one cluster")]  # fmt: skip
    assert step(member("mm", 0, 0), member("mm", 4, 1)) == [(10, "step", "'mm' has a call in this step already")]
    assert step(member("mm", 0, 0), member("m2", 4, 1), member("m2", 8, 2)) == [
        (10, "step", "'m2' has a call in this step already")]  # fmt: skip
    kinds = (10, "step", "one step holds mm4 and zero4 or two sizes of one")
    assert step(member("mm", 0, 0), member("m2", 4, 1, "zero4")) == [kinds]
    assert step(member("mm", 0, 0), member("m2", 4, 1, size=2)) == [
        (10, "step", "one step holds mm4 and mm4 or two sizes of one")]  # fmt: skip
    assert step(member("mm", 0, 0), member("m2", 4, 1, a=1)) == [
        (10, "step", "all members take operand A from the same place")]  # fmt: skip
    meet = "in one step, C = C[4:+4, 0:+4] may meet C[0:+4, 0:+4] of 'mm'"
    assert step(member("mm", 0, 0), member("m2", 4, 0)) == [(8, "step", meet)]
    both = member("mm", 0, 0, "zero4"), replace(member("m2", 4, 0, "zero4"), joined=True)
    found = check_tree(replace(clustered(), call=Seq(both)))
    assert (8, "step", meet) in [(v.obligation, v.kind, v.message) for v in found]
    into = member("m2", 4, 3)
    into = replace(into, operands=tuple(replace(o, place=replace(o.place, memory="rb", cell=7)) if o.name == "C" else o
                                        for o in into.operands))  # fmt: skip
    assert [k for *k, _ in step(member("mm", 0, 0), into)] == [[8, "step"]]
    after = member("m2", 4, 3)
    a, b, c = after.operands
    after = replace(after, operands=(a, replace(b, place=replace(b.place, memory="ra", cell=0)), c))
    assert step(member("mm", 0, 0), after) == [
        (8, "step", "in one step, B = B[0:+4, 0:+4] may meet C[0:+4, 0:+4] of 'mm'")]  # fmt: skip


def test_operands_of_several_cells() -> None:
    s = tiny_matmul()
    fs = Facts(Legality(s), Isl())

    def of(number: int, cells: int) -> Operand:
        return op("C", tile("C", [0, 0], [4 * cells, 4]), cell("ra", number, [4 * cells, 4]))

    for (a, m), (b, n) in product([(0, 1), (2, 2), (1, 3)], [(0, 1), (0, 2), (0, 3), (1, 1), (3, 1), (4, 1), (4, 2)]):
        apart = not set(range(a, a + m)) & set(range(b, b + n))
        assert _apart(fs, of(a, m), of(b, n), Context()) is apart
        assert _apart(fs, of(b, n), of(a, m), Context()) is apart
    other = replace(of(0, 1), place=replace(of(0, 1).place, memory="rb"))
    assert _apart(fs, of(0, 1), other, Context())
    rows = [op("C", tile("C", [i, 0], [2, 4]), replace(cell("ra", 0, [2, 4]), offset=lit(16 * i))) for i in (0, 2)]
    assert not _apart(fs, *rows, Context())  # in one cell, though in bytes of their own


def test_operands_at_home_are_told_apart_by_elements_or_bytes() -> None:
    """Also where their rows lie between each other; moving ones where they move alike."""
    s = tiny_matmul(8, 8, 8)
    fs, (M, N) = Facts(Legality(s), Isl()), map(Affine.of, "mn")

    def of(i: int | Affine, j: int | Affine, base: str = "C") -> Operand:
        t = tile("C", [i, j], [2, 4])
        return op("C", t, Place("dram" if base else "sp", base, t.start[0] * 32 + t.start[1] * 4, (32, 4)))

    for i, j in product(range(-1, 5), range(5)):
        apart = abs(i) >= 2 or j >= 4
        assert _apart(fs, of(0, 0), of(i, j), Context()) is apart
        assert _apart(fs, of(M, N), of(M + i, N + j), Context()) is apart
        behind = not (i < 2 and j < 4 and i > -2)
        assert _apart(fs, of(0, 0, ""), of(i, j, ""), Context()) is (behind and abs(32 * i + 4 * j) >= 32 + 16)
    assert not _apart(fs, of(M, 0), of(N + 8, 0), Context())
    for last, apart in ((6, True), (7, False)):  # rows m and m + 1 before row 8, by the bounds of m's loop
        inside = Seq()
        known = ranges(loop("m", 0, last + 1, 1, inside))[id(inside)]
        assert _apart(fs, of(M, 0), of(8, 0), known) is apart
        assert _apart(fs, of(8, 0, ""), of(M, 0, ""), known) is apart


def test_what_loops_say_of_their_variables() -> None:
    """Of several loops around one sequence, what all of them say; of several bounds, the closest (random machine
    106876)."""
    low = Bound(Affine.of("i", 1, 7)), Bound(lit(-3)), Bound(lit(5), 2)
    high = Bound(lit(30)), Bound(lit(21), 4), Bound(Affine.of("i"))
    inside, other = Seq(), Seq((Seq(),))
    inner = Loop("j", low, high, 1, inside)
    open_ = Loop("k", (Bound(Affine.of("i")),), (Bound(lit(3)),), 1, inner)
    both = Loop("k", (Bound(lit(-1)),), (Bound(lit(9)),), 1, inner)
    known = ranges(Seq((loop("i", 2, 8, 3, open_), loop("i", 0, 7, 1, both), loop("i", 0, 99, 1, other))))
    ends = {n: (known[id(inside)].lower(Affine.of(n)), known[id(inside)].lower(Affine.of(n, -1))) for n in "ijk"}
    assert ends == {"i": (0, -6), "j": (3, -4), "k": (None, -8)}
    assert known[id(other)].lower(Affine.of("i", -1)) == -98


@pytest.mark.parametrize(("high", "last"), [(4, 2), (5, 4), (6, 4), (3, 2), (1, 0)])
def test_a_variable_is_never_beyond_its_last_step(high: int, last: int) -> None:
    """Random machine 109320: tiles of two steps were taken to reach as far as if each began one element later; and
    another loop of the same name, around other calls, was believed to be around these."""
    inside = Seq()
    known = ranges(Seq((loop("j", 0, high, 2, inside), loop("j", 0, 9, 1, Seq()))))[id(inside)]
    assert (known.lower(Affine.of("j")), known.lower(Affine.of("j", -1))) == (0, -last)


def test_a_sequence_that_stands_in_two_loops_is_in_both() -> None:
    inside = Seq()
    known = ranges(Seq((loop("j", 2, 5, 1, inside), loop("j", 0, 3, 1, loop("k", 0, 2, 1, inside)))))[id(inside)]
    assert (known.lower(Affine.of("j")), known.lower(Affine.of("j", -1))) == (0, -4)
    assert known.lower(Affine.of("k")) is None


def test_what_members_of_a_cluster_write_at_home() -> None:
    """Tiles of one argument are told apart by their elements, other places by their bytes."""
    s = vec_matmul()
    y = replace(s.system, units={**s.system.units, "c2": replace(s.system.units["cpu"], name="c2")},
                clusters={"c": Cluster("c", ("cpu", "c2"))})  # fmt: skip

    def store(unit: str, i: int, j: int, number: int, base: str = "C", at: int = 0) -> Issue:
        t = tile("C", [i, j], [1, 4])
        home = Place("ram", base, lit(64 * i + 4 * j if base == "C" else at), (64, 4))
        return Issue(unit, "vmove", (("M", 1), ("N", 4)), (op("S", t, Place("v", "", lit(0), (16, 4), number)),
                                                          op("D", t, home)), joined=unit == "c2")  # fmt: skip

    def found(one: Issue, two: Issue) -> list[tuple[int, str]]:
        out, made = Findings(), replace(s, system=y, call=Seq((one, two)))
        check_joined(made, Facts(Legality(made), Isl()), out)
        return [(v.obligation, v.kind) for v in out.found]

    assert (
        found(store("cpu", 0, 0, 0), store("c2", 0, 4, 1)) == found(store("cpu", 0, 0, 0), store("c2", 1, 0, 1)) == []
    )
    assert found(store("cpu", 0, 0, 0), store("c2", 0, 3, 1)) == [(8, "step")]
    for at, said_ in ((16, []), (15, [(8, "step")]), (-16, []), (-15, [(8, "step")]), (0, [(8, "step")])):
        assert found(store("cpu", 0, 0, 0, "P", 64), store("c2", 0, 8, 1, "P", 64 + at)) == said_


# registers ------------------------------------------------------------------------------------------------------------
def test_a_register_that_cannot_hold_what_is_set() -> None:
    s = test_registers.good()
    y = s.system
    command = next(n for n in test_registers.commands(s) if n.sizes and any(
        isinstance(v, str) for v in y.instructions[n.instruction].sets.values()))  # fmt: skip
    r, name = next((r, v) for r, v in y.instructions[command.instruction].sets.items() if v in dict(command.sizes))
    value = dict(command.sizes)[name]  # type: ignore[index]

    def found(at: int, state: Any = y.state) -> list[tuple[int, str, str]]:
        out, held = Findings(), dict[str, Any]()
        new = replace(command, sizes=tuple((n, at if n == name else v) for n, v in command.sizes))
        judge([new], held, replace(y, state=state), out)
        assert held[r][0] == at
        return said(out)

    assert found(value) == []
    assert found(1 << 70) == [(10, "register", f"'{r}' cannot hold {1 << 70}")]
    assert found(value, {k: v for k, v in y.state.items() if k != r}) == [
        (10, "register", f"'{r}' cannot hold {value}")]  # fmt: skip


# semantics ------------------------------------------------------------------------------------------------------------
def test_effects_that_cannot_be_told() -> None:
    d = dom(i=4)

    def effects(*statements: Statement) -> Any:
        return effects_of(list(enumerate(statements)), dict.fromkeys(("x", "y", "t", "u"), "f32"), {"t", "u"})

    read = Statement(d, acc("y", "i"), "copy", (acc("t", "i"),))
    made = Statement(d, acc("t", "i"), "mul", (acc("x", "i"), Literal(2.0)))
    more = Statement(d, acc("t", "i"), "add", (acc("x", "i"),), True)
    assert effects(read) == "the temporary 't' is read before it is written"
    assert effects(more, read) == "the temporary 't' is accumulated before it is written"
    assert effects(replace(made, dest=acc("t", 0)), read) == (
        "the temporary 't' cannot be inlined: its values are summed or spread")  # fmt: skip
    assert effects(made, replace(more, domain=dom(i=4, k=3)), read) == (
        "the temporary 't' cannot be inlined: its values are summed or spread")  # fmt: skip
    (told,) = effects(made, more, read)
    leaf = Leaf(acc("x", "i"), 0, "f32")
    doubled = Op("mul", "f32", (leaf, Leaf(None, 0, "f32", 2.0)))
    assert told.expr == Op("copy", "f32", (Op("add", "f32", (doubled, Leaf(acc("x", "i"), 1, "f32"))),))
    assert _strip(told.expr) == told.expr.args[0]
    assert _strip(Op("copy", "f64", (doubled,))) == Op("copy", "f64", (doubled,))
    assert _strip(Op("copy", "f32", (leaf,))) == Op("copy", "f32", (leaf,))
    (turned,) = effects(replace(made, dest=acc("t", "j"), domain=dom(j=4), sources=(acc("x", "j"), Literal(2.0))), read)
    assert turned.expr.args[0].args[0].access == acc("x", "i")


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [(1, 1, True), (1, 1.0, True), (1, 2, False), (0.0, -0.0, False), (-0.0, -0.0, True), (None, None, False),
     (None, 1, False), (1, None, False), (float("nan"), float("nan"), True), (float("nan"), 1.0, False),
     (True, 1, True), (float("-inf"), float("inf"), False), (float("inf"), float("inf"), True)],
)  # fmt: skip
def test_numbers_that_are_the_same(a: Any, b: Any, same: bool) -> None:
    assert same_number(a, b) is same


# geometry -------------------------------------------------------------------------------------------------------------
def test_axes_of_an_instruction() -> None:
    """One extent per axis under the sizes of a call (an axis of another extent is another axis), and no condition."""
    ins = next(i for i in tiny_matmul().system.instructions.values() if i.name == "zero4")
    body = ins.body

    def extents(*statements: Statement) -> tuple[dict[str, int], list[tuple[int, str, str]]]:
        bad: list[tuple[int, str, str]] = []
        made = replace(ins, body=replace(body, body=statements))
        return axis_extents(made, {"M": 3, "N": 2}, bad), bad

    (s,) = body.statements
    assert extents(s) == ({"i": 3, "j": 2}, [])
    found, bad = extents(s, replace(s, domain=dom(i="N", j="N")))
    assert (sorted(found.values()), bad) == ([2, 2, 3], [])
    where = replace(s, domain=replace(s.domain, where=(Affine.of("i"),)))
    assert extents(where) == ({"i": 3, "j": 2}, [(3, "domain", "'zero4' has a condition on its domain")])


def test_the_element_that_an_operand_begins_with() -> None:
    t = Tile("A", (V, lit(5)), (4, 6), (2, 3))
    o = Operand("A", t, Place("sp", "", lit(0), (64, 4)), (1, 0))
    index = acc("A", Affine.of("i") + 2, Affine.of("j", 2) + Affine.of("k") + 1).index
    assert first(o, index) == (V + 2, lit(5 + 6))
    assert linear(o, index) == ([Affine.of("j", 4) + Affine.of("k", 2), Affine.of("i", 3)], (V + 2, lit(11)))
    assert rows(o, index, {"i": 4, "j": 1, "k": 2}) == [Affine.of("k", 2), Affine.of("i", 3)]
    narrow = replace(o, dims=(None, 0))
    assert first(narrow, index) == (V + 2, lit(5))
    assert linear(narrow, index)[0] == [Affine.of("j", 4) + Affine.of("k", 2), Affine()]


def test_which_indices_run_over_the_whole_operand() -> None:
    i, j = Affine.of("i"), Affine.of("j")
    one = Issue("mm", "any", (("M", 4), ("N", 1)), ())
    shape = (Affine.of("M"), Affine.of("N"))
    ones = {"i": 4, "j": 1, "k": 4}
    for index, right, sized in (
        ((i, j), True, True), ((i, lit(0)), True, True), ((j, i), True, False), ((i, i), False, False),
        ((i * 2, j), False, False), ((i + Affine.of("k"), j), False, False), ((i + 1, j), False, False),
        ((i + j, lit(0)), True, True), ((j, j), True, False), ((i, Affine.of("k")), True, False),
        ((i, lit(1)), False, False),
    ):  # fmt: skip
        assert covers_box(index, shape, ones, None) is right, index
        assert covers_box(index, shape, ones, one) is (right and sized), index


def test_an_operand_follows_the_kernel_where_it_has_more_than_one_element() -> None:
    """Along an axis of one element it does not matter how far it would go."""
    s = tiny_matmul()
    lg = Legality(s)
    n = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.nest == 1)
    sig, axes = lg.signature(n), {"i": "i", "j": "j", "k": "k"}
    p = next(p for p in sig.semantics.pairs if p.operand == "A" and p.kernel is not None)
    o = next(o for o in n.operands if o.name == "A")
    twice = replace(o, tile=o.tile._replace(steps=(2, 1)))
    for operand, extents, said_ in (
        (o, {"i": 4, "j": 4, "k": 4}, []), (twice, {"i": 1, "j": 4, "k": 4}, []),
        (twice, {"i": 2, "j": 4, "k": 4}, [(2, "access", "operand A does not follow A[i, k] along the axis i = i")]),
    ):  # fmt: skip
        bad: list[tuple[int, str, str]] = []
        lg.judge._pair(p, operand, axes, extents, bad)
        assert bad == said_
    bad = []
    lg.judge._pair(p, replace(o, tile=o.tile._replace(buffer="B")), axes, {"i": 1}, bad)
    assert bad == [(2, "buffer", "operand A should be 'A', it is 'B'")]
    written = next(p for p in sig.semantics.pairs if p.writes)
    part = replace(written, own=acc("C", Affine.of("i") + 1, "j"))
    text = "'C' is written at C[i + 1, j]: not every element of the tile"
    c = next(o for o in n.operands if o.name == "C")
    for pair, wrong in ((written, []), (part, [(3, "write", text)])):
        bad = []
        lg.judge._pair(pair, c, axes, {"i": 4, "j": 4, "k": 4}, bad)
        assert bad == wrong


# lists of numbers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(20))
def test_lists_cut_into_lines(seed: int) -> None:
    """Runs of one length in which both lists go on by equal steps, as long as they can be."""
    rng = random.Random(seed)
    n, by, on, count = rng.randint(2, 5), rng.choice((1, 2, 4)), rng.choice((1, 3)), rng.randint(1, 4)
    starts = [rng.randint(0, 50) * 7 for _ in range(count)]
    at = np.array([x + by * k for x in starts for k in range(n)])
    elem = np.array([10 * x + on * k for x in starts for k in range(n)])
    length, b, e = lines(at, elem)
    runs = [(at[i : i + length], elem[i : i + length]) for i in range(0, len(at), length)]
    assert len(at) % length == 0
    for p, q in runs:
        assert all(y - x == b for x, y in pairwise(p.tolist())) or length == 1
        assert all(y - x == e for x, y in pairwise(q.tolist())) or length == 1
    joined = any(y - x == by * n for x, y in pairwise(starts))
    assert joined or (length, b, e) == (n, by, on)
    assert lines(at[:1], elem[:1]) == (1, 1, 1)
    assert lines(np.array([0, 1, 2, 5, 6]), np.array([0, 1, 2, 5, 6])) == (1, 1, 1)
    assert lines(np.array([0, 1, 5, 7]), np.array([0, 1, 5, 6])) == (1, 1, 1)
    assert lines(np.array([0, 1, 5, 6]), np.array([0, 1, 5, 7])) == (1, 1, 1)
    assert lines(np.array([0, 2, 4]), np.array([5, 6, 7])) == (3, 2, 1)


# loops ----------------------------------------------------------------------------------------------------------------
def test_holes_are_widened_over_a_loop() -> None:
    """What an iteration makes stale, all may have: also where a tile with steps has left it."""
    s = tiny_matmul(32, 8, 8)
    fs, over = Facts(Legality(s), Isl()), span(loop("v", 0, 12, 4, seq()))
    bare = fs.make("A", ("sp", ""), None, lit(0), (16, 4), box_of((lit(0), lit(0)), (32, 8)))
    two = Operand("D", Tile("A", (V, lit(0)), (2, 2), (2, 1)), Place("sp", "", lit(0), (16, 4)), (0, 1))
    t = fs.target(two)
    plain = fs.hole(box_of((V + 1, lit(2)), (2, 4)))
    still = fs.hole(box_of((lit(3), lit(2)), (2, 4)))
    state = State()
    state.put(fs.with_holes(bare, frozenset((plain, still, t.hole))))
    (f,) = forget(state, "v", over, fs)
    assert {h.box for h in f.holes} == {box_of((lit(1), lit(2)), (10, 4)), still.box, box_of((lit(0), lit(0)), (11, 2))}
    assert not any(h.over for h in f.holes)
    unknown = span(Loop("v", (Bound(lit(0)),), (Bound(Affine.of("N")), Bound(lit(9))), 4, Seq()))
    assert list(forget(state, "v", unknown, fs)) == []
    state.put(fs.make("A", ("sp", ""), None, V, (16, 4), bare.box))
    assert len(list(forget(state, "v", over, fs))) == 1


@pytest.mark.parametrize("name", ["tiny", "tiny peeled", "vec", "recurrence"])
def test_a_loop_that_is_given_few_rounds(name: str) -> None:
    """Where the state does not close soon, only what has been there from the first is kept; what is right may be
    refused for that, with the reason."""
    s = MADE[name]()
    with pytest.MonkeyPatch.context() as m:
        m.setattr(tree, "ROUNDS", 2)
        assert check_tree(s) == []
        m.setattr(tree, "ROUNDS", 0)
        found = check_tree(s)
        assert {(v.obligation, v.kind) for v in found} >= {(11, "closed")}
        assert any(v.message.endswith("does not close: its end never equals its begin") for v in found)


def test_arguments_are_not_there_in_bind() -> None:
    s = vec_matmul(bound=True)
    out, lg = Findings(), Legality(s)
    n = next(n for n in distinct(s.call) if isinstance(n, Issue) and any(o.tile.buffer == "A" for o in n.operands))
    ctx = Context()
    check_bounds(n, lg, ctx, Isl(), "bind", out)
    assert (8, "bind", "'A' is not there when constants are bound") in said(out)
    again = Findings()
    check_bounds(n, lg, ctx, Isl(), "call", again)
    assert not any(v.kind == "bind" for v in again.found)


def test_a_certificate_is_for_one_machine() -> None:
    s = tiny_matmul()
    y = s.system
    other = replace(y, memories={**y.memories, "sp": replace(y.memories["sp"], capacity=8192)})
    assert system_hash(y) == system_hash(replace(y))
    assert system_hash(y) != system_hash(other)
    assert len(system_hash(y)) > 8
    hashes = [prove(replace(s, system=x)).data["system"] for x in (y, other)]
    assert hashes[0]["name"] == hashes[1]["name"] == "tiny"
    assert hashes[0]["hash"] != hashes[1]["hash"]


def test_what_bind_leaves_in_a_slot_that_is_not_kept() -> None:
    """Between bind and call only constants, numbers and what is bound keep what they hold."""
    s = vec_matmul(bound=True)
    assert check_tree(s) == check_flat(s) == []
    loose = replace(s, workspace=tuple(replace(w, bound=False) for w in s.workspace))
    for judge_ in (check_tree, check_flat):
        assert 8 in {v.obligation for v in judge_(loose)}


def test_a_home_of_another_rank() -> None:
    s = tiny_matmul()
    bad = replace(s, homes={**s.homes, "A": replace(s.homes["A"], strides=(16,))})
    for check in (check_tree, check_points):
        assert check(s) == []
        assert (2, "address") in {(v.obligation, v.kind) for v in check(bad)}
