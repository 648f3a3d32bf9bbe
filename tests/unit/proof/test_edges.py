"""Single boundaries: documents that differ in one place, boxes one side of which moves, steps of one element."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import ONCE, Family, chosen, lifted, span
from isam.proof.certificate import _differences
from isam.proof.context import Context, Var
from isam.proof.digits import never_meet
from isam.proof.facts import Facts
from isam.proof.flat_units import Multiples
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.tree import Tree
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Seq, distinct
from isam.system.graph import Memory
from tests.unit.proof.handmade import loop, seq, tile, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_prover import inside
from tests.unit.proof.test_witness import exactly

V = Affine.of("v")


# documents ------------------------------------------------------------------------------------------------------------
def document(rng: random.Random, deep: int) -> Any:
    kind = rng.random()
    if not deep or kind < 0.4:
        return rng.choice([0, 1, True, False, None, "ab", "a", "", 1.0, 2, "abc"])
    if kind < 0.7:
        return [document(rng, deep - 1) for _ in range(rng.randint(0, 3))]
    return {k: document(rng, deep - 1) for k in rng.sample("xyz", rng.randint(0, 3))}


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a) if isinstance(a, dict) else a == b


@pytest.mark.parametrize("seed", range(40))
def test_documents_that_differ_in_one_place(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        one = document(rng, 3)
        assert _differences(copy.deepcopy(one), one, "") == []
        two = document(rng, 3) if rng.random() < 0.5 else copy.deepcopy(one)
        if isinstance(two, dict) and two:
            two[rng.choice(list(two))] = document(rng, 1)
        assert bool(_differences(two, one, "")) is not same(two, one), (one, two)


def test_documents_of_other_kinds() -> None:
    def told(given: Any, expected: Any, path: str = "/p") -> list[str]:
        return [v.message for v in _differences(given, expected, path)]

    assert told(["a", "b"], "ab") == ["/p says ['a', 'b'], the schedule gives 'ab'"]
    assert told("ab", ["a", "b"]) == ["/p says 'ab', the schedule gives ['a', 'b']"]
    assert told([1, 2], [1, 3]) == ["/p/1 says 2, the schedule gives 3"]
    assert told([1], [1, 1]) == ["/p says [1], the schedule gives [1, 1]"]
    assert told({"a": 1, "c": 2}, {"a": 2, "b": 2}) == [
        "/p/b is missing", "/p/c does not belong there", "/p/a says 1, the schedule gives 2"]  # fmt: skip
    assert told(1, True) == ["/p says 1, the schedule gives True"]
    assert told("x", "y", "/seal") == ["/seal says 'x', the schedule gives 'y'"]


# boxes ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("side", [(V, lit(9)), (lit(0), V + 1), (V, V + 2), (V * -1 + 8, lit(9)), (lit(0), V * -1 + 9)])
def test_boxes_one_side_of_which_moves(side: tuple[Affine, Affine], step: int) -> None:
    for other, (lo, hi) in product(((lit(0), lit(2)), side), ((0, 7), (2, 5), (3, 4))):
        n = loop("v", lo, hi, step, seq())
        f = Family((side, other))
        g, sure = lifted(f, span(n), "~")
        each = [inside(f, {"v": v}) for v in range(lo, hi, step)]
        assert inside(g, {}) == set().union(*each)
        assert sure != ONCE or sum(map(len, each)) == len(set().union(*each))


def test_multiples_of_divided_bounds() -> None:
    """A bound that is a multiple of its divisor is that part of it, any other one is a multiple of nothing."""
    i = Affine.of("i")
    parts = [Loop(name, (Bound(i + add, div),), (Bound(lit(99)),), step, Seq())
             for name, add, div, step in (("a", 0, 8, 12), ("b", 0, 4, 12), ("c", 0, 3, 12), ("d", 0, 16, 12),
                                          ("e", 4, 4, 12), ("f", 8, 8, 6), ("g", 0, 3, 10),
                                          ("h", 0, 0, 12))]  # fmt: skip
    outer = Loop("i", (Bound(lit(32)),), (Bound(lit(100)),), 16, Seq(tuple(parts)))
    of = Multiples(replace(tiny_matmul(), call=outer), {})
    assert [of(Affine.of(n)) for n in "abcdefgh"] == [2, 4, 1, 1, 1, 1, 1, 1]


# steps ----------------------------------------------------------------------------------------------------------------
def test_bytes_between_elements_matter_where_there_are_two() -> None:
    s = vec_matmul()
    lg = Legality(s)
    n = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "fma")
    ins = s.system.instructions["fma"]
    at, o = next((i, o) for i, o in enumerate(n.operands) if any(k is not None for k in ins.contract(o.name).strides))
    assert n.operands[at] is o
    need = "bytes between elements of dimension"
    for count, by, right in ((4, 4, True), (4, 8, False), (2, 8, False), (1, 8, True), (1, 4, True)):
        bad: list[tuple[int, str, str]] = []
        changed = replace(o, tile=o.tile._replace(shape=(1, count)), place=replace(o.place, strides=(32, by)))
        lg.judge._shape(ins, changed, {"N": count}, bad)
        assert [k for _, k, _ in bad] == ([] if right else ["stride"])
        assert all(need in text for *_, text in bad)


def test_one_place_twice() -> None:
    """The same tile in the same place is one where it is used element by element, with any other stride it is two."""
    s = vec_matmul()
    lg, out = Legality(s), Findings()
    walk = Tree(s, lg, Isl(), out)
    n = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.instruction == "fma")
    a, b, c = n.operands
    fs = Facts(lg, Isl())
    t = tile("C", [0, 0], [2, 4])
    place = replace(c.place, memory="ram", base="P", cell=None, offset=lit(0), strides=(64, 4))

    def found(by: tuple[int, int]) -> list[str]:
        told, sig = Findings(), lg.signature(n)
        b2, c2 = (replace(o, tile=t, place=replace(place, strides=k)) for o, k in ((b, by), (c, (64, 4))))
        kept.extend((b2, c2))
        walk._alias(n, [(b2, fs.target(b2)), (c2, fs.target(c2))], sig, Context(), told)
        return [v.message for v in told.found]

    kept: list[Any] = [a]
    assert found((64, 4)) == []
    assert found((32, 4)) == ["operands C and B overlap"]


# layouts --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(12))
def test_layouts_that_are_said_never_to_meet(seed: int) -> None:
    """Variables that begin some steps after their origin, around the layouts and in them."""
    rng, yes = random.Random(seed), 0
    for _ in range(40):
        step, skip = rng.choice((1, 2, 3, 4)), rng.randint(0, 3)
        t = Var("t", (Bound(lit(step * skip)),), (Bound(lit(step * skip + rng.randint(0, 7))),), step, lit(0))
        w = Var("w", (Bound(lit(2 * step)),), (Bound(lit(step * rng.randint(2, 4))),), step, lit(0))
        strides = rng.choice(((64, 4), (32, 8), (4, 64), (16, 4)))
        sides = tuple((lit(0), lit(rng.randint(1, 3))) for _ in strides)
        by = rng.choice((4, 8, 16, 32, 64))
        one = sides, Affine.of("t", by, rng.randrange(0, 64, 4)), strides, ()
        two = sides, Affine.of("w", by, rng.randrange(0, 64, 4)), strides, (w,)
        two = two if rng.random() < 0.5 else (sides, lit(rng.randrange(0, 400, 4)), strides, ())
        met, ctx = exactly(one, two, (4, 4), False, (t,)), Context((t,))
        if never_meet(one, two, (4, 4), ctx):
            yes += 1
            assert not met
    assert yes > 3


@pytest.mark.parametrize("origin", [None, lit(0), lit(1)])
@pytest.mark.parametrize("step", [1, 2])
def test_values_of_variables_that_may_have_no_origin(step: int, origin: Affine | None) -> None:
    """With a step of one any whole number will do, with another only those that are known to be steps apart."""
    at = Var("t", (Bound(lit(2)),), (Bound(lit(6)),), 2, lit(0))
    own = Var("v", (Bound(lit(0)),), (Bound(lit(9)),), step, origin)
    found = chosen((own,), ((V, V + 2),), ((Affine.of("t"), Affine.of("t") + 1),), Context((at,)))
    if step == 1 or origin == lit(0):
        assert found == {"v": Affine.of("t")}
    else:
        assert found == (None if origin is None else {"v": Affine.of("t") - 1})


def test_nothing_lies_in_a_cache() -> None:
    """A cache holds what the memory behind it holds, and nothing of its own."""
    s = tiny_matmul()
    cache = Memory("l1", "cached", 4096, of="sp")
    y = replace(s.system, memories={**s.system.memories, "l1": cache})
    lg = Legality(replace(s, system=y))
    n = next(n for n in distinct(s.call) if isinstance(n, Issue) and n.operands[-1].place.memory == "sp")
    assert lg.step(n, out := Findings())
    moved = [replace(o, place=replace(o.place, memory="l1")) if o.place.memory == "sp" else o for o in n.operands]
    there = replace(n, operands=tuple(moved))
    assert not lg.step(there, out)
    assert [(v.obligation, v.kind) for v in out.found] == [(9, "memory")]


@pytest.mark.parametrize(("least", "most", "multiple"), [(0, 4, 1), (2, 4, 1), (1, None, 1), (0, 8, 4), (3, None, 2)])
def test_sizes_of_a_call(least: int, most: int | None, multiple: int) -> None:
    """At least one, within the limits of the instruction, and a multiple of what it asks for."""
    s = tiny_matmul()
    lg = Legality(s)
    zero = s.system.instructions["zero4"]
    m, n = zero.body.syms
    ins = replace(zero, body=replace(zero.body, syms=(replace(m, lo=least, hi=most, multiple_of=multiple), n)))
    step = next(x for x in distinct(s.call) if isinstance(x, Issue) and x.instruction == "zero4")
    for v in range(-1, 14):
        bad: list[tuple[int, str, str]] = []
        got = lg.judge._sizes(ins, replace(step, sizes=(("M", v), ("N", 4))), bad)
        assert got == {"M": v, "N": 4}
        right = v >= max(least, 1) and (most is None or v <= most) and v % multiple == 0
        limit = f"{least} <= M <= {most}" if most is not None else f"M >= {least}"
        text = f"'zero4' with M = {v}, but {limit}, multiple of {multiple}"
        assert bad == ([] if right else [(9, "sizes", text)])
