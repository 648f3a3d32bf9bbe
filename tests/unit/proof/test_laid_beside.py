"""What lays instructions beside statements, by enumeration: expressions, temporaries, moves; certificates, too."""

from __future__ import annotations

import json
import math
import random
import time
from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from types import SimpleNamespace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Literal, Statement, Sym
from isam.proof import certificate
from isam.proof.certificate import executed, prove, seal, verify
from isam.proof.chain import check_chain
from isam.proof.semantics import (
    Effect,
    Expr,
    Leaf,
    Op,
    Pair,
    _assign,
    _in_time,
    _strip,
    _unify,
    effects_of,
    same_number,
)
from isam.proof.signature import Judge
from isam.proof.violation import Violation
from isam.schedule.tree import Issue, distinct
from tests.unit.proof.handmade import tiny_matmul, vec_matmul
from tests.unit.proof.test_flat_shapes import finder

V = Affine.of
COMMUTE, MIRROR = ("add", "mul", "max", "eq"), {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


# expressions ----------------------------------------------------------------------------------------------------------
def tree(choose: random.Random, names: str, depth: int) -> Any:
    """As nested tuples; a text is a leaf, a number a literal."""
    if not depth or choose.random() < 0.25:
        return choose.choice([*names, *names, 0.0, -0.0, 2.0])
    op = choose.choice(["add", "sub", "mul", "lt", "gt", "le", "ge", "eq", "neg", "select"])
    many = {"neg": 1, "select": 3}.get(op, 2)
    return op, *(tree(choose, names, depth - 1) for _ in range(many))


def expr(t: Any, dtype: str = "f32") -> Expr:
    if isinstance(t, str):
        return Leaf(Access(t, ()), 0, dtype)
    if isinstance(t, float):
        return Leaf(None, 0, dtype, t)
    return Op(t[0], dtype, tuple(expr(a, dtype) for a in t[1:]))


def spelled(t: Any) -> set[str]:
    """Every way to write it: the two sides of what commutes, or is mirrored, in either order."""
    if not isinstance(t, tuple):
        return {repr(t)}
    out = set()
    for parts in product(*map(spelled, t[1:])):
        out.add(f"{t[0]}({', '.join(parts)})")
        if t[0] in COMMUTE:
            out.add(f"{t[0]}({parts[1]}, {parts[0]})")
        if t[0] in MIRROR:
            out.add(f"{MIRROR[t[0]]}({parts[1]}, {parts[0]})")
    return out


def changed(choose: random.Random, t: Any) -> Any:
    """One thing in it: another operation, order, number or name, an argument more or less."""
    if not isinstance(t, tuple):
        return choose.choice(["x", "y", 0.0, -0.0, 2.0, ("neg", t)])
    how = choose.randrange(6)
    if how == 0:
        return choose.choice(["sub", "add", "lt", "gt", "le", "eq"]), *t[1:]
    if how == 1 and len(t) > 2:
        return t[0], *t[:0:-1]
    if how == 2 and t[0] in MIRROR:
        return MIRROR[t[0]], *t[:0:-1]
    if how == 3:
        return choose.choice((t[:-1], (*t, t[-1]))) if len(t) > 2 else t
    at = choose.randrange(1, len(t))
    return *t[:at], changed(choose, t[at]), *t[at + 1 :]


@pytest.mark.parametrize("seed", range(4))
def test_expressions_that_are_the_same_but_for_the_order_of_arguments(seed: int) -> None:
    choose, said = random.Random(seed), Counter[bool]()
    operands = [SimpleNamespace(operand=a, buffer=b, index=(), dims=(), steps=(), literal=None)
                for a, b in (("A", "x"), ("B", "y"))]
    operands += [SimpleNamespace(operand="C", buffer="", index=(), dims=(), steps=(), literal=2.0)]
    m: Any = SimpleNamespace(operands=operands, axes=(), stands={o.operand: () for o in operands})
    means = {"A": "x", "B": "y", "C": 2.0}

    def played(t: Any) -> Any:
        return (t[0], *map(played, t[1:])) if isinstance(t, tuple) else means.get(t, t) if isinstance(t, str) else t

    for _ in range(300):
        own = tree(choose, "ABC", 3)
        theirs = played(own)
        for _ in range(choose.choice((0, 1, 1, 2))):
            theirs = changed(choose, theirs)
        want = as_it_stands(theirs) in spelled(played(own))
        got = bool(list(_unify(expr(own), expr(theirs), m)))
        assert got is want, (own, theirs)
        assert not isinstance(own, tuple) or not list(_unify(expr(own), expr(theirs, "i32"), m))
        said[got] += 1
    assert min(said.values()) > 60


def as_it_stands(t: Any) -> str:
    return f"{t[0]}({', '.join(map(as_it_stands, t[1:]))})" if isinstance(t, tuple) else repr(t)


# temporaries ----------------------------------------------------------------------------------------------------------
ROWS = {"i": V("i"), "j": V("j"), "i + 1": V("i") + 1, "2 * i": V("i", 2), "i + j": V("i") + "j", "0": Affine()}


@pytest.mark.parametrize("accumulate", [False, True])
def test_temporaries_are_taken_out_where_their_index_is_distinct_axes(accumulate: bool) -> None:
    """What is added to one has to be added once."""
    domain = Domain(tuple(Axis(n, Affine((), 4)) for n in "ij"))
    dtypes = dict.fromkeys("txy", "f32")
    for rows in (*product(ROWS, repeat=2), *((r,) for r in ROWS)):
        t = Access("t", tuple(ROWS[r] for r in rows))
        whole = tuple(V(n) for n in "ij")
        x, y = (Access(n, whole) for n in "xy")
        last = Access("t", tuple(V(n) for n in "ji"[: len(rows)]))
        statements = [Statement(domain, t, "copy", (x,))]
        if accumulate:
            statements.append(Statement(domain, t, "add", (y,), True))
        made = effects_of([*enumerate([*statements, Statement(domain, y, "copy", (last,))])], dtypes, {"t"})
        names = [n for row in t.index for n in row.names]
        once = len(set(names)) == len(names) == len(rows) and "i + 1" not in rows and "0" not in rows
        if not once or (accumulate and len(rows) < 2):
            assert made == "the temporary 't' cannot be inlined: its values are summed or spread"
            continue
        if "2 * i" in rows:
            assert made == f"the temporary 't' is read at {last}, and written at {t}"
            continue
        assert not isinstance(made, str)
        (effect,) = made
        back = dict(zip(rows, last.index, strict=True))
        read = Leaf(Access("x", tuple(back.get(n, V(n)) for n in "ij")), 0, "f32")
        want: Expr = Op("copy", "f32", (read,))
        if accumulate:
            want = Op("add", "f32", (want, replace(read, access=Access("y", read.access.index), statement=1)))  # type: ignore[union-attr]
        assert effect.expr == Op("copy", "f32", (want,))


def test_what_is_in_a_temporary_before_it_is_written_is_not_known() -> None:
    domain = Domain((Axis("i", Affine((), 4)),))
    t, x = (Access(n, (V("i"),)) for n in "tx")
    reads, adds = Statement(domain, x, "copy", (t,)), Statement(domain, t, "add", (Literal(1.0),), True)
    for s, text in ((reads, "read"), (adds, "accumulated")):
        made = effects_of([(0, s)], dict.fromkeys("tx", "f32"), {"t"})
        assert made == f"the temporary 't' is {text} before it is written"


# moves and commands ---------------------------------------------------------------------------------------------------
def test_a_move_moves_all_of_its_tile() -> None:
    """Every element: not a row, a column, a diagonal or one element of it."""
    s = tiny_matmul()
    copy = s.system.instructions["copy"]
    st = copy.body.statements[0]
    names = st.domain.names
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "copy")
    whole = tuple(map(V, names))
    for index in product((*whole, Affine()), repeat=2):
        src, dst = (Access(a.buffer, index) for a in (st.sources[0], st.dest))  # type: ignore[union-attr]
        body = replace(copy.body, body=(replace(st, dest=dst, sources=(src,)),))
        system = replace(s.system, instructions={**s.system.instructions, "copy": replace(copy, body=body)})
        lg = finder(s, {}).legality
        found = Judge(replace(s, system=system), lg.buffers, lg.semantics).judge(issue).faults
        right = sorted(map(str, index)) == sorted(map(str, whole))
        assert bool(found) is not right


def test_a_step_of_nothing_is_refused() -> None:
    """It names no operands and sets no registers."""
    s = tiny_matmul()
    copy = s.system.instructions["copy"]
    idle = replace(copy, name="idle", body=replace(copy.body, buffers=(), body=()), operands={})
    units = {n: replace(u, runs=(*u.runs, "idle")) for n, u in s.system.units.items()}
    lg = finder(s, {}).legality
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "copy")
    for sets in ((), ("r",)):
        ins = {**s.system.instructions, "idle": replace(idle, sets=dict.fromkeys(sets, "1"))}  # type: ignore[arg-type]
        judge = Judge(replace(s, system=replace(s.system, units=units, instructions=ins)), lg.buffers, lg.semantics)
        found = judge.judge(replace(issue, instruction="idle", operands=(), nest=None)).faults
        text = "'idle' sets no registers, and the step belongs to no nest"
        assert found == (() if sets else ((3, "nest", text),))


def test_tiles_have_elements_even_where_the_operand_has_none() -> None:
    s = tiny_matmul()
    copy = s.system.instructions["copy"]
    m = copy.syms[0].name
    buffers = tuple(replace(b, shape=(V(m) - 4, *b.shape[1:])) for b in copy.body.buffers)
    ins = {**s.system.instructions, "copy": replace(copy, body=replace(copy.body, buffers=buffers))}
    lg = finder(s, {}).legality
    judge = Judge(replace(s, system=replace(s.system, instructions=ins)), lg.buffers, lg.semantics)
    issue = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "copy")
    for rows in (4, 5, 6):
        tiles = [o.tile._replace(shape=(rows - 4, *o.tile.shape[1:])) for o in issue.operands]
        sizes = tuple((n, rows if n == m else v) for n, v in issue.sizes)
        operands = tuple(replace(o, tile=t) for o, t in zip(issue.operands, tiles, strict=True))
        found = [text for _, kind, text in judge.judge(replace(issue, sizes=sizes, operands=operands)).faults
                 if kind == "shape"]  # fmt: skip
        want = [f"operand {o.name}: the tile {o.tile} has no elements or no step" for o in operands]
        assert found == (want if rows == 4 else [])


# certificates ---------------------------------------------------------------------------------------------------------
def test_sizes_with_which_a_schedule_is_executed() -> None:
    """The third multiple above the least size, or the most; nothing is said where that takes too long."""
    s = tiny_matmul()
    given: list[Any] = []
    for lo, by, most in product((0, 1, 4, 5, 8), (1, 3, 4), (None, 6, 40)):
        if most is not None and most < lo:
            continue
        k = replace(s.cover.kernel, syms=(Sym("T", lo, most, by), Sym("S", 1)))
        above = range(lo // by * by, 60, by)[3]
        with pytest.MonkeyPatch.context() as m:
            m.setattr("isam.proof.flat.check_flat", lambda _, trips, steps: given.append((dict(trips), steps)) or [])
            assert executed(replace(s, cover=replace(s.cover, kernel=k))) == ()
        assert given[-1] == ({"T": above if most is None else min(above, most), "S": 4}, certificate.STEPS)


@pytest.mark.parametrize("kind", ["budget", "sizes", "stale"])
def test_what_was_not_executed_says_nothing(kind: str) -> None:
    found = [Violation(8, "absent", "one"), Violation(0, kind, "other")]
    with pytest.MonkeyPatch.context() as m:
        m.setattr("isam.proof.flat.check_flat", lambda *_: found)
        assert executed(tiny_matmul()) == (tuple(found) if kind == "stale" else None)


def test_points_that_are_too_many_are_not_executed() -> None:
    s = tiny_matmul(8, 8, 8)
    boxes = [[int(e.const) for _, e in n.axes] for n in s.nests]
    total = sum(b[0] * b[1] * (b[2] if len(b) > 2 else 1) for b in boxes)
    for limit, done in ((total, True), (total - 1, False)):
        with pytest.MonkeyPatch.context() as m:
            m.setattr(certificate, "POINTS", limit)
            assert executed(s) == (() if done else None)


def test_a_certificate_holds_in_any_order_of_its_entries() -> None:
    s, start = vec_matmul(4, 8, 10), time.perf_counter()
    c = prove(s)
    assert c.spent is not None
    assert 0 < c.spent[0] <= time.perf_counter() - start + 1e-6
    assert seal({"a": 1, "b": {"c": 2, "d": 3}}) == seal({"b": {"d": 3, "c": 2}, "a": 1})
    for turned in (dict(reversed(c.data.items())), dict(sorted(c.data.items()))):
        assert verify(json.dumps(turned), s) == []


def test_a_broken_chain_is_told() -> None:
    """By whom the steps are named, and where the chain ends: obligation 3, in the certificate too."""
    s = tiny_matmul()
    k = s.cover.kernel
    other = replace(k, name="other")
    for cover in (replace(s.cover, original=other), replace(s.cover, steps=("split (a)",))):
        _, bad = check_chain(cover)
        assert [(v.obligation, v.kind) for v in bad] == [(3, "rewriting")]
        _, found = certificate.examine(replace(s, cover=cover))
        assert bad[0] in found
    assert check_chain(s.cover) == ([], [])


# effects and numbers --------------------------------------------------------------------------------------------------
def test_numbers_are_the_same_with_their_signs() -> None:
    """A negative zero is another number than zero, NaN is NaN, and nothing is no number."""
    nan, some = float("nan"), (0.0, -0.0, 0, 1, 1.0, -1, 2.5, float("inf"), float("-inf"), float("nan"), True, None)
    for a, b in product(some, (*some, nan)):
        if a is None or b is None:
            want = False
        elif a != a or b != b:
            want = a != a and b != b
        else:
            want = a == b and math.copysign(1, a) == math.copysign(1, b)
        assert same_number(a, b) is want, (a, b)


def test_reads_on_either_side_of_writes() -> None:
    """What the kernel reads before it writes the instruction reads before, what after after; from another operand it
    reads what was there before the call. Writes are not reads."""
    for reads, of, one, at, there, here in product((False, True), range(3), range(-3, 3), range(3), "AB", "xy"):
        write = Pair("A", Access("A"), Access("x"), of, True, None, 1)
        other = Pair(there, Access(there), Access(here), one, not reads, None, at)
        if not reads and one < 0:
            continue
        in_kernel = (one if one >= 0 else -1 - one) <= of
        in_instruction = there != "A" or at <= 1
        want = not reads or here != "x" or in_kernel == in_instruction
        for some in ((write, other), (other, write)):
            assert _in_time(some) is want
    literal = Pair("B", Access("B"), None, 5, False, 1.0, 9)
    assert _in_time((Pair("A", Access("A"), Access("x"), 0, True), literal))


def test_writes_of_one_buffer_stay_in_order() -> None:
    """Effects are laid on effects in every order in which those on one buffer follow each other."""
    operands = [SimpleNamespace(operand=a, buffer=b, index=(), dims=(), steps=(), literal=None)
                for a, b in ("Dy", "Ev", "Ax")]  # fmt: skip
    m: Any = SimpleNamespace(operands=operands, axes=(), axis_map={}, stands={o.operand: () for o in operands})

    def effects(what: tuple[tuple[str, str], ...], name: str) -> list[Effect]:
        return [Effect(i, Access(b), Op(op, "f32", (Leaf(Access(name), i, "f32"),)), False, ())
                for i, (b, op) in enumerate(what)]  # fmt: skip

    kinds = [*product("DE", ("neg", "exp"))]
    means, met = {"D": "y", "E": "v"}, Counter[bool]()
    for own in (*((k,) for k in kinds), *product(kinds, repeat=2), *product(kinds, repeat=3)):
        for theirs in {*permutations(own), own[:-1], (*own, own[0])}:
            kernel = tuple((means[b], op) for b, op in theirs)
            found = list(_assign(effects(own, "A"), effects(kernel, "x"), m, ()))
            each = [[op for b, op in own if b == n] == [op for b, op in theirs if b == n] for n in "DE"]
            want = len(own) == len(theirs) and all(each)
            assert bool(found) is want, (own, theirs)
            met[want] += 1
    assert min(met.values()) > 40


def test_rows_of_dimensions_that_are_none() -> None:
    """They are refused elsewhere; here nothing is said of them."""
    s = tiny_matmul()
    o = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "copy").operands[1]
    for dims in ((0, 2), (2, 1), (3, 2), (None, 2)):
        bad: list[Any] = []
        Judge._rows(replace(o, dims=dims, place=replace(o.place, strides=(64, 4))), 64, 4, bad)
        assert not bad


def test_a_copy_of_the_same_type_is_its_argument() -> None:
    x = expr("x")
    add = Op("add", "f32", (x, x))

    def copy(e: Expr, dtype: str = "f32") -> Op:
        return Op("copy", dtype, (e,))

    for old, new in ((add, add), (copy(add), add), (copy(copy(copy(add))), add), (copy(x), copy(x)), (x, x),
                     (copy(add, "f64"), copy(add, "f64")), (copy(copy(add), "f64"), copy(add, "f64")),
                     (Op("neg", "f32", (add,)), Op("neg", "f32", (add,))), (Op("one", "f32", ()), Op("one", "f32", ())),
                     (Op("mul", "f32", (copy(add), x)), Op("mul", "f32", (add, x))),
                     (Op("mul", "f32", (x, copy(add))), Op("mul", "f32", (x, add))),
                     (copy(copy(x)), copy(x))):  # fmt: skip
        assert _strip(old) == new
