"""isl behind named dimensions, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Sym
from isam.ir.poly import affine_map, make, relation
from isam.ir.poly_domain import access_map, box, context, dependence, domain_set, footprint, shape_set
from tests.clock import quickest

A = Affine.of


def brute(names, ge, lo=-6, hi=9):
    return sorted(
        p for p in itertools.product(range(lo, hi), repeat=len(names))
        if all(g.evaluate(dict(zip(names, p, strict=True))) >= 0 for g in ge)
    )  # fmt: skip


def some_set(rng, names):
    ge = [A(n) + 5 for n in names] + [8 - A(n) for n in names]
    for _ in range(int(rng.integers(0, 3))):
        ge.append(Affine.from_terms({n: int(rng.integers(-2, 3)) for n in names}, int(rng.integers(-3, 6))))
    return ge, make(names, ge)


@pytest.mark.parametrize("seed", range(25))
def test_algebra_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    names = ("i", "j", "k")[: int(rng.integers(1, 4))]
    (g, s), (h, t) = some_set(rng, names), some_set(rng, names)
    p, q = set(brute(names, g)), set(brute(names, h))
    assert s.points() == sorted(p)
    assert s.count() == len(p)
    assert (s | t).count() == len(p | q)
    assert (s & t).points() == sorted(p & q)
    assert (s - t).points() == sorted(p - q)
    assert s.is_empty() == (not p)
    assert s.is_subset(t) == (p <= q)
    assert s.is_equal(t) == (p == q)
    assert s.is_disjoint(t) == (not p & q)
    assert s.point() == (dict(zip(names, min(p), strict=True)) if p else None)
    boxes = (s | t).boxes(2000)
    assert boxes is not None
    listed = [x for b in boxes for x in itertools.product(*(range(lo, hi + 1) for lo, hi in b))]
    assert sorted(listed) == sorted(p | q)  # disjoint and complete


def test_names_align_whatever_the_order():
    s = make(("i", "j"), [A("i"), 3 - A("i"), A("j"), 1 - A("j")])
    t = make(("j", "i"), [A("i"), 3 - A("i"), A("j"), 1 - A("j")])
    assert s.is_equal(t)
    assert not s.is_equal(s.rename(i="j", j="i"))
    with pytest.raises(ValueError, match="different dimensions"):
        s.is_equal(make(("i", "q")))
    with pytest.raises(TypeError):
        bool(s)


@pytest.mark.parametrize("name", ["and", "exists", "mod", "max", "N'", "a_b", "é", "infty", "d0", "e0", "not"])
def test_any_name_may_be_a_size(name):
    s = box(("min", "or"), [A(name), A(name) + 1]).given(context([Sym(name, 3, None, 4)]))
    assert s.point() == {name: 4, "min": 0, "or": 0}
    assert s.param_names == (name,)
    assert s.fix(**{name: 4}).count() == 20
    assert s.fix(**{name: 5}).is_empty()


def conv_same():
    axes = {"n": A("N"), "h": A("H"), "v": A("W"), "r": 3, "s": 3, "c": A("C")}
    h, v = A("h") + "r" - 1, A("v") + "s" - 1
    where = (h, A("H") - h - 1, v, A("W") - v - 1)
    d = Domain(tuple(Axis(n, Affine.lift(e)) for n, e in axes.items()), where)
    return d, Access("x", (A("n"), h, v, A("c")))


def test_padding_stays_inside_and_is_nine_boxes():
    d, x = conv_same()
    s = domain_set(d, [Sym(n) for n in "NHWC"])
    inside = shape_set([A("N"), A("H"), A("W"), A("C")])
    assert footprint(s, x).is_subset(inside)
    free = domain_set(Domain(d.axes), [Sym(n) for n in "NHWC"])
    bad = (footprint(free, x) - inside).point()
    assert bad is not None
    assert bad["1"] == -1 or bad["2"] == -1
    c = s.fix(N=2, H=14, W=15, C=4)
    assert c.count() == 2 * 4 * (14 * 3 - 2) * (15 * 3 - 2)
    boxes = c.boxes()
    assert boxes is not None
    assert len(boxes) == 9
    assert sum(int(np.prod([hi - lo + 1 for lo, hi in b])) for b in boxes) == c.count()


def test_bounds_are_affine_or_absent():
    s = box(("i", "j"), [A("N"), A("N") + 3]).given(context([Sym("N", 1)]))
    assert s.bounds("j") == (Affine(), A("N") + 2)
    tri = s.where(ge=[A("i") - "j"])
    assert tri.bounds("i") == tri.bounds("j") == (Affine(), A("N") - 1)
    assert s.where(ge=[A("M") - "i"]).bounds("i") is None  # a minimum is not affine
    assert make(("i",), [A("i")]).bounds("i") is None
    assert make(("i",), [Affine((), -1)]).bounds("i") is None
    fixed = make(("i",), [A("i"), 99 - A("i")]).where(eq=[A("i") - A("q", 2)])
    assert fixed.bounds("i") == (A("q", 2), A("q", 2))


def test_injectivity_and_dependences():
    d, x = conv_same()
    s = domain_set(d, [Sym(n, 3) for n in "NHWC"])
    assert not access_map(x, s.names).on(s).is_injective()
    y = Access("x", (A("n"), A("h"), A("v"), A("c")))
    cut = s.where(eq=[A("r"), A("s")])
    assert access_map(y, s.names).on(cut).is_injective()
    assert dependence(cut, y, cut, y).distances().fix().is_subset(make(s.names, eq=[A(n) for n in s.names]))
    assert dependence(cut, y, cut, Access("other", y.index)).is_empty()
    p = (dependence(s, x, s, x) - affine_map(s.names, [A(n) for n in s.names], s.names)).point()
    assert p is not None
    assert p["h"] + p["r"] == p["h'"] + p["r'"]
    assert tuple(p[n] for n in s.names) != tuple(p[n + "'"] for n in s.names)


def test_maps_compose_invert_and_compare():
    f = affine_map(("i",), [2 * A("i") + 1, A("N") - "i"], ("a", "b"))
    g = affine_map(("a", "b"), [A("a") + 2 * A("b")], ("z",))
    assert f.then(g).is_equal(affine_map(("i",), [2 * A("N") + 1], ("z",)))
    assert f.is_injective()
    assert not f.then(g).is_injective()
    assert f.inverse().is_single_valued()
    evens = make(("i",), [A("i"), 9 - A("i")], [A("i") - A("e", 2)], exists=["e"])
    assert [p[0] for p in f.fix(N=7).image(evens).points()] == [1, 5, 9, 13, 17]
    assert f.preimage(make(("a", "b"), eq=[A("a") - 5])).points() == [(2,)]
    step = relation(("t",), ("u",), eq=[A("u") - "t" - 1])
    assert step.distances().points() == [(1,)]
    assert f.given(make((), [A("N") - 4])).fix(N=3).is_empty()


def test_counters_become_dimensions():
    d = Domain((Axis("j", A("M")),), (A("t") - "j",))
    s = domain_set(d, [Sym("M")], outer=[("t", A("T"))])
    assert s.names == ("t", "j")
    inner = box(("j",), [A("M")]).where(ge=[A("t") - "j", A("t"), A("T") - "t" - 1]).as_dims(("t",))
    assert s.is_equal(inner.given(context([Sym("M")])))
    assert s.fix(T=4, M=2).count() == 1 + 2 + 2 + 2


def test_counting_needs_sizes_and_is_fast():
    with pytest.raises(ValueError, match="fix them"):
        box(("i",), [A("N")]).count()
    def large():
        return make(("i", "j"), [A("i"), 999999 - A("i"), A("j"), 999999 - A("j")]).count()

    assert large() == 10**12
    assert box(("i", "j"), [0, 5]).count() == 0
    assert quickest(large, 0.25) < 0.25


def test_simple_questions_take_under_a_millisecond():
    d, x = conv_same()
    syms = [Sym(n) for n in "NHWC"]
    inside = shape_set([A("N"), A("H"), A("W"), A("C")])

    def twenty():
        assert all(footprint(domain_set(d, syms), x).is_subset(inside) for _ in range(20))

    assert quickest(twenty, 20e-3) < 20e-3
