"""Arrays of functions by enumeration: equal arguments are one element, whatever array or place they come from."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

from isam.ir.relation import Rel, TooMuch
from isam.proof.numbering import KNOWN, Numbering
from isam.proof.value import ONE, Value
from tests.unit.proof.pointwise import LINE, Point, Poly, nothing, pairs, points, polys, region, relation

GRID = [(i, j) for i in range(2) for j in range(2)]
MAX = "max f32"


def form(n: Numbering, x: Poly) -> Any:
    """A polynomial by what its arrays hold."""
    return frozenset((frozenset(_times(n, m).items()), w) for m, w in nothing(x).items())


def _times(n: Numbering, m: Any) -> dict[Any, int]:
    out: dict[Any, int] = {}
    for f in m:
        held = element(n, *f)
        out[held] = out.get(held, 0) + 1
    return out


def element(n: Numbering, array: int, at: Point) -> Any:
    """What an element holds: a function of what its arguments are, in either order where that is the same."""
    a = n.arrays[array]
    if not a.args:
        return a.label, at
    args = [form(n, polys(n.ring, n.ring.on(x, region([at], len(at))))[at]) for x in a.args]
    return a.label, frozenset(args) if a.label == "swap" else tuple(args)


def numbered(rng: random.Random, n: Numbering, over: list[Point], modulus: int, sums: bool = True) -> Value:
    """A sum of elements, of products of two, or a number; few different ones. ``sums``: of elements of one array."""
    terms: dict[tuple[int, ...], list[tuple[Fraction, Rel]]] = {}
    for _ in range(rng.choice([1, 1, 2])):
        key = rng.choice([(0,), (0,), (0,), (1,), (0, 0), (2,), ()])
        if key in terms and not sums:
            continue
        some = [p for p in over if rng.random() < 0.8]
        rank = sum(n.ranks[k] for k in key)
        at = [(p, tuple(rng.randint(0, 1) for _ in range(rank))) for p in some]
        terms.setdefault(key, []).append((Fraction(rng.choice([1, 1, 1, 2, -1, 0])), relation(at, len(over[0]), rank)))
    return n.ring.value(region(over, len(over[0])), terms, modulus)


def fresh(support: bool = True) -> Numbering:
    n = Numbering(support)
    for name, rank in (("x", 1), ("z", 1), ("c", 0)):
        n.leaf(name, rank)
    return n


@pytest.mark.parametrize("seed", range(16))
def test_functions_of_equal_arguments_are_one_element(seed: int) -> None:
    rng, n = random.Random(seed), fresh(seed % 2 == 0)
    modulus = 256 if seed % 4 == 3 else 0
    where: dict[Any, tuple[int, Point]] = {}
    for _ in range(6):
        over = rng.choice([LINE, GRID, LINE[1:], GRID[:3]])
        label, count = rng.choice([("one", 1), ("two", 2), ("swap", 2)])
        args = tuple(numbered(rng, n, over, modulus) for _ in range(count))
        made = n.function(label, args, region(over, len(over[0])), modulus, label == "swap")
        assert points(made.over) == over
        assert made.modulus == modulus
        inner = [polys(n.ring, a) for a in args]
        for p, x in polys(n.ring, made).items():
            (((array, at),), w), *more = x.items()
            assert (w, more, n.arrays[array].label) == (1, [], label)
            held = [form(n, a[p]) for a in inner]
            assert element(n, array, at) == (label, frozenset(held) if label == "swap" else tuple(held))
            if all(nothing(a[p]) for a in inner):  # of zeros it is not always seen
                assert where.setdefault(element(n, array, at), (array, at)) == (array, at)
        assert n.function(label, args, region(over, len(over[0])), modulus, label == "swap") is made


def test_one_label_with_another_modulus_is_made_anew() -> None:
    n = fresh()
    a = n.ring.read(0, region(LINE, 1).identity())
    assert n.function("one", (a,), a.over, 8).modulus == 8
    assert n.function("one", (a,), a.over, 16).modulus == 16


def test_equal_names_of_one_rank_are_one_array() -> None:
    n = fresh()
    assert n.leaf("x", 1) == n.leaf("x", 1) == 0
    assert len({n.leaf("x", 1), n.leaf("x", 2), n.leaf("y", 1)}) == 3
    assert n.ranks == [1, 1, 0, 2, 1]
    assert [a.rank for a in n.arrays] == n.ranks


def test_so_many_different_arrays_of_one_function() -> None:
    n, over = fresh(), region([()], 0)
    for k in range(KNOWN + 1):
        n.function("one", (n.ring.constant(Fraction(k), over),), over)
    with pytest.raises(TooMuch, match="too many different arrays of 'one'"):
        n.function("one", (n.ring.constant(Fraction(-1), over),), over)
    n.function("another", (n.ring.constant(Fraction(-1), over),), over)


# elements -------------------------------------------------------------------------------------------------------------
def told(n: Numbering, found: dict[int, Rel]) -> dict[Point, list[tuple[int, Point]]]:
    out: dict[Point, list[tuple[int, Point]]] = {}
    for array, r in found.items():
        for p, at in pairs(r):
            out.setdefault(p, []).append((array, at))
    return out


def itself(n: Numbering, array: int, at: Point) -> Any:
    """What an element is as a polynomial: of a number or of what is only named, that."""
    label = n.arrays[array].label
    if label.startswith("number "):
        value = Fraction(label.split()[1])
        return form(n, {(): value} if value else {})
    if label.startswith("value "):
        return element(n, array, at)[1][0]
    return form(n, {((array, at),): ONE})


@pytest.mark.parametrize("seed", range(16))
def test_values_as_single_elements(seed: int) -> None:
    rng, n = random.Random(seed), fresh(seed % 2 == 0)
    modulus = 256 if seed % 4 > 1 else 0
    for _ in range(5):
        over = rng.choice([LINE, GRID])
        a = numbered(rng, n, over, modulus, sums=False)
        inner = polys(n.ring, a)
        found = told(n, n.elements(a, "f32"))
        assert sorted(found) == over
        for p, x in inner.items():
            ((array, at),) = found[p]
            assert itself(n, array, at) == form(n, x)
            named = n.arrays[array].label
            if len(x) == 1 and all(w == 1 and len(m) == 1 for m, w in x.items()):
                assert ((array, at),) in x
            elif len(x) == 1 and () in x:
                assert named == f"number {x[()]} f32"
            elif not x and (modulus or not n.support):
                assert named == "number 0 f32"
            else:
                assert named == "value f32"


def test_one_array_for_what_is_written_in_two_ways() -> None:
    """At one point a constant, a name or a zero, at another what says the same."""
    n, (here, there) = fresh(support=False), (region([p], 1) for p in LINE[:2])
    both = here | there
    x = n.ring.read(0, both.identity())
    double, none = n.ring.scale(x, Fraction(2)), n.ring.scale(x, Fraction(0))
    three = n.ring.constant(Fraction(3), both)
    leaf = n.ring.read(n.number(Fraction(3), "f32"), both.to_nothing())
    zero = n.ring.constant(Fraction(0), both)
    name = n.named(double, "f32")
    for a, b, label in ((three, leaf, "number 3 f32"), (name, double, "value f32"), (none, zero, "number 0 f32")):
        for one, two in ((a, b), (b, a)):
            found = n.elements(n.ring.joined(n.ring.on(one, here), n.ring.on(two, there)), "f32")
            ((array, r),) = found.items()
            assert n.arrays[array].label == label
            assert [p for p, _ in pairs(r)] == LINE[:2]


def test_a_sum_of_products_is_no_element() -> None:
    n, over = fresh(), region(LINE[:2], 1)
    first, second = (relation([(p, (k, k)) for p in LINE[:2]], 1, 2) for k in range(2))
    a = n.ring.value(over, {(0, 1): [(ONE, first), (Fraction(2), second)]})
    assert [n.arrays[k].label for k in n.elements(a, "f32")] == ["value f32"]


def test_every_zero_is_one_argument() -> None:
    """Of which nothing is left, or the constant."""
    for first in range(2):
        n = fresh(support=False)
        x = n.ring.read(0, region(LINE, 1).identity())
        zeros = [n.ring.scale(x, Fraction(0)), n.ring.constant(Fraction(0), x.over)]
        assert [len(z.terms) for z in zeros] == [0, 1]
        made = [n.function("one", (zeros[k],), x.over) for k in (first, 1 - first)]
        assert n.ring.equal(*made)
        assert len(n.made["one"]) == 1


def test_what_is_named_is_a_function_of_the_value() -> None:
    n = fresh()
    a = n.ring.scale(n.ring.read(0, region(LINE, 1).identity(), 256), Fraction(2))
    made = n.named(a, "u8")
    assert made.modulus == 256
    assert [n.arrays[k].label for key in made.terms for k in key] == ["value u8"]
    assert polys(n.ring, n.arrays[next(iter(made.terms))[0]].args[0]) == polys(n.ring, a)


# extremes -------------------------------------------------------------------------------------------------------------
def members(n: Numbering, least: int, found: list[tuple[int, Point]]) -> Any:
    """The set of which this is the greatest: of what is one already, its members."""
    out = set()
    for array, at in found:
        if n.arrays[array].label == MAX:
            inner = polys(n.ring, n.ring.on(n.arrays[array].args[0], region([at], len(at))))[at]
            out |= {itself(n, *f) for (f,) in inner}
        else:
            out.add(itself(n, array, at))
    neutral = itself(n, least, ())
    return frozenset(out - {neutral} if len(out) > 1 else out)


@pytest.mark.parametrize("seed", range(16))
def test_the_greatest_of_several(seed: int) -> None:
    rng, n = random.Random(seed), fresh(seed % 2 == 0)
    least = n.leaf("-inf f32", 0)
    modulus = 256 if seed % 4 == 3 else 0
    known: list[Value] = []
    where: dict[Any, Any] = {}
    for _ in range(6):
        branches = []
        for _ in range(rng.choice([1, 2, 2])):
            if known and rng.random() < 0.5:
                a = rng.choice(known)
                path = relation([(p, rng.choice(LINE)) for p in LINE], 1, 1)
                branches.append(n.elements(n.ring.through(path, a), "f32"))
            elif rng.random() < 0.3:
                branches.append({least: region(LINE, 1).to_nothing()})
            else:
                branches.append(n.elements(numbered(rng, n, LINE, modulus), "f32"))
        if rng.random() < 0.5:  # several elements of one array at one point
            at = sorted({(p, (rng.randint(0, 1),)) for p in LINE for _ in range(2)})
            branches.append({0: relation(at, 1, 1)})
        made = n.extremum(MAX, least, region(LINE, 1), branches, modulus)
        assert made.modulus == modulus
        each = [told(n, b) for b in branches]
        for p, x in polys(n.ring, made).items():
            expected = members(n, least, [e for b in each for e in b[p]])
            if len(expected) == 1:
                alone = [f for m in x for f in m if len(x) == 1 and n.arrays[f[0]].label.startswith("number ")]
                assert (itself(n, *alone[0]) if alone else form(n, x)) == next(iter(expected))
                continue
            (((array, at),), w), *more = x.items()
            assert (w, more, n.arrays[array].label) == (1, [], MAX)
            assert members(n, least, [(array, at)]) == expected
            assert where.setdefault(expected, (array, at)) == (array, at)
        known.append(made)
