"""Winograd and Strassen (TR-1): exact as algebra, within a derived bound as arithmetic, chosen by a mismatch."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from isam.ir import oracle
from isam.ir.bounds import enclose, outside
from isam.ir.interp import run
from isam.ir.text import parse, parse_instruction
from isam.ir.verify import verify
from isam.mapper.search import reach
from isam.transforms.values.algorithms import ALGORITHMS, F23, F43, STRASSEN, is_exact
from isam.transforms.values.bilinear import Bilinear
from tests.laws.example_kernels import EVEN, FILTER, IMAGE

SQUARE = """kernel k()
  in  a: f32[4, 6]
  in  b: f32[6, 8]
  out y: f32[4, 8]
  forall i < 4, j < 8
    y[i, j] = 0
  forall i < 4, j < 8, k < 6
    y[i, j] += a[i, k] * b[k, j]
"""
FINITE = frozenset({"reassociate", "contract", "finite"})
DIVISION = frozenset({"division"})
BATCHED = """instruction batched(M, N, K)
  in    A: f32[{rank}, M, K]
  in    B: f32[{rank}, K, N]
  inout C: f32[{rank}, M, N]
  forall b < {rank}, i < M, j < N, k < K
    C[b, i, j] += A[b, i, k] * B[b, k, j]
"""


@pytest.mark.parametrize("al", ALGORITHMS, ids=lambda a: a.name)
def test_an_algorithm_is_its_bilinear_form_and_no_entry_may_change(al):
    assert is_exact(al)
    for name in ("a", "b", "c"):
        matrix = getattr(al, name)
        for r, row in enumerate(matrix):
            for c in range(len(row)):
                wrong = tuple(tuple(v + (r == i and c == j) * Fraction(1, 24) for j, v in enumerate(line))
                              for i, line in enumerate(matrix))  # fmt: skip
                assert not is_exact(replace(al, **{name: wrong})), (name, r, c)


def test_an_algorithm_may_have_its_fractions_behind_the_products():
    def times(matrix, n):
        return tuple(tuple(v * n for v in row) for row in matrix)

    al = replace(F23, a=times(F23.a, 2), c=times(F23.c, Fraction(1, 2)))
    kernel, law = parse(FILTER).with_sizes({"N": 1, "C": 2, "K": 3}), Bilinear(al)
    assert is_exact(al)
    assert oracle.equal(kernel, law.apply(kernel, law.sites(kernel)[0]).kernel, {}, 3, DIVISION)


def test_products_that_are_saved():
    direct = {al.name: prod(e for _, e in al.axes) for al in ALGORITHMS}
    assert {al.name: (al.rank, direct[al.name]) for al in ALGORITHMS} == {
        "winograd-2-3": (4, 6), "winograd-4-3": (6, 12), "strassen": (7, 8)}  # fmt: skip
    assert [al.amplification for al in ALGORITHMS] == [8, 48, 12]


def twice(al, kernel):
    """The algorithm along the second image axis, then along the first, of the products that are left."""
    law = Bilinear(al)
    (one,) = [s for s in law.sites(kernel) if s["axes"] == ("v", "s") and s["left"] == 0]
    kernel = law.apply(kernel, one).kernel
    (two,) = [s for s in law.sites(kernel) if s["axes"] == ("h", "r") and s["left"] == 0]
    return law.apply(kernel, two).kernel


@pytest.mark.parametrize(("al", "width", "share"), [(F23, 6, Fraction(16, 36)), (F43, 8, Fraction(36, 144))])
def test_in_two_dimensions_it_is_the_same_law_twice(al, width, share):
    text = IMAGE.replace("8]", f"{width + 2}]").replace("4, 6]", f"4, {width}]").replace("v < 6", f"v < {width}")
    kernel = parse(text).with_sizes({"C": 5, "K": 3})
    done = twice(al, kernel)
    assert not verify(done)
    assert oracle.equal(kernel, done, {}, 4, DIVISION)
    assert not oracle.equal(kernel, done, {}, 4), "fractions need the law of division"
    direct = prod(int(a.extent) for a in next(s for s in kernel.statements if s.op == "mul").domain.axes)
    sums = [s for s in done.statements if s.op == "mul" and s.dest.buffer.startswith("z")]
    (products,) = [prod(int(a.extent) for a in s.domain.axes) for s in sums
                   if not any(x.buffer[0] in "ABC" for x in s.sources)]  # fmt: skip
    assert Fraction(products, direct) == share


@pytest.mark.parametrize("al", [F23, F43], ids=lambda a: a.name)
def test_rounding_stays_within_the_derived_bound(al):
    """f32 against float64, element by element: N u |C| sum_c (|A| |x|) (|B| |w|), every quantity computed here."""
    n, c, k, tile = 2, 6, 3, al.axes[0][1]
    kernel = parse(FILTER).with_sizes({"N": n, "C": c, "K": k})
    law = Bilinear(al)
    done = law.apply(kernel, law.sites(kernel)[0]).kernel
    rng = np.random.default_rng(3)
    x, w, b = (rng.standard_normal(s) for s in ((n, c, 10), (k, c, 3), (k,)))
    data = {"x": x.astype("f4"), "w": w.astype("f4"), "b": b.astype("f4")}
    wide = {name: a.astype("f8") for name, a in data.items()}
    exact = sum(np.einsum("nch,kc->nkh", wide["x"][:, :, r : r + 8], wide["w"][:, :, r]) for r in range(3))
    exact = exact + wide["b"][None, :, None]
    a_, b_, c_ = (np.array([[abs(float(v)) for v in row] for row in m]) for m in (al.a, al.b, al.c))
    tiles = np.stack([abs(wide["x"])[:, :, t : t + tile + 2] for t in range(0, 8, tile)], axis=2)
    size = np.einsum("pm,me,nche,mr,kcr->nkhp", c_, a_, tiles, b_, abs(wide["w"])).reshape(n, k, 8)
    u = 2.0**-24
    steps = al.roundings(c)
    bound = steps * u / (1 - steps * u) * (size + abs(wide["b"])[None, :, None])
    error = abs(run(done, data)["y"] - exact)
    assert np.all(error <= bound)
    assert bound.max() <= 2000 * error.max(), "a bound that says something"
    assert outside(run(done, data), enclose(done, data)) is None
    value = enclose(done, data)["y"][0]
    assert np.all(abs(value - exact) <= 1e-13 * size), "the value enclosed is the exact one"


def test_a_wrong_entry_is_far_outside_the_bound():
    a = list(map(list, F43.a))
    a[0][2] += Fraction(1, 100)
    wrong = replace(F43, a=tuple(map(tuple, a)))
    assert not is_exact(wrong)
    kernel = parse(FILTER).with_sizes({"N": 2, "C": 3, "K": 2})
    law = Bilinear(wrong)
    assert not oracle.equal(kernel, law.apply(kernel, law.sites(kernel)[0]).kernel, {}, 4, DIVISION)


def test_strassen_is_exact_on_integers_that_wrap():
    kernel = parse(EVEN.format(dtype="i16")).with_sizes({"B": 3})
    law = Bilinear(STRASSEN)
    rng = np.random.default_rng(1)
    a = rng.integers(-(2**15), 2**15, (3, 4, 6)).astype("i2")
    b = rng.integers(-(2**15), 2**15, (6, 2)).astype("i2")
    want = run(kernel, {"a": a, "b": b})["y"]
    for site in law.sites(kernel):
        assert np.array_equal(want, run(law.apply(kernel, site).kernel, {"a": a, "b": b})["y"])


def test_strassen_of_strassen():
    kernel = parse(SQUARE.replace("6", "4"))
    law = Bilinear(STRASSEN)
    once = law.apply(kernel, law.sites(kernel)[0]).kernel
    inner = [s for s in law.sites(once) if once.statements[s["sum"]].dest.buffer.startswith("z")]
    done = law.apply(once, inner[0]).kernel
    assert oracle.equal(kernel, done, {}, 9)


@pytest.mark.parametrize(("text", "rank", "law"), [
    (FILTER, 4, "winograd-2-3"), (FILTER, 6, "winograd-4-3"), (SQUARE, 7, "strassen")])  # fmt: skip
def test_products_side_by_side_ask_for_the_algorithm_that_makes_as_many(text, rank, law):
    kernel = parse(text)
    kernel = replace(kernel.with_sizes({s.name: 4 for s in kernel.syms}), permits=FINITE)
    batched = parse_instruction(BATCHED.format(rank=rank))
    found = reach(kernel, batched)
    assert found.paths, found.near
    assert found.blind_expansions == 0
    steps = [[s.transform.law for s in p.steps] for p in found.paths]
    assert [law] in steps
    wary = reach(replace(kernel, permits=kernel.permits - {"finite"}), batched)
    assert [law] not in [[s.transform.law for s in p.steps] for p in wary.paths]


def test_no_algorithm_makes_five_products():
    kernel = parse(FILTER).with_sizes({"N": 4, "C": 4, "K": 4})
    found = reach(kernel, parse_instruction(BATCHED.format(rank=5)))
    assert not any(s.transform.law.startswith("winograd") for p in found.paths for s in p.steps)
