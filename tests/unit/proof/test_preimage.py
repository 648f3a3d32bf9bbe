"""Which elements a box of instances touches, and which instances touch a box of elements, against enumeration."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

import isam
from isam.ir.affine import Affine
from isam.ir.kernel import Access
from isam.ir.text import parse_kernel
from isam.proof.boxes import Box
from isam.proof.context import Context, Var
from isam.proof.preimage import before_boxes, never_meet, preimage, touched
from isam.schedule.tree import Bound
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge, simulated

NAMES = ("i", "j", "k")


def box(*sides: tuple[int, int]) -> Box:
    return tuple((Affine((), a), Affine((), b)) for a, b in sides)


def points(b: Box) -> set[tuple[int, ...]]:
    return set(product(*(range(lo.const, hi.const) for lo, hi in b)))


def element(access: Access, at: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(r.evaluate(dict(zip(NAMES, at, strict=True))) for r in access.index)


def sides(rng: random.Random) -> Box:
    return box(*((lo := rng.randint(0, 4), lo + rng.randint(1, 4)) for _ in NAMES))


@pytest.mark.parametrize("seed", range(60))
def test_no_element_and_no_instance_is_missing(seed: int) -> None:
    rng = random.Random(seed)
    rows = tuple(Affine.from_terms({n: rng.choice([-2, -1, 0, 0, 1, 1, 2, 3]) for n in NAMES}, rng.randint(-3, 3))
                 for _ in range(2))  # fmt: skip
    access, some, domain = Access("x", rows), sides(rng), box((0, 6), (0, 6), (0, 6))
    reached = touched(access, some, NAMES)
    elements = {element(access, p) for p in points(some)}
    assert elements <= points(reached)
    for d, (lo, hi) in enumerate(reached):
        assert {lo.const, hi.const - 1} <= {e[d] for e in elements}
    wanted = box(*((lo := rng.randint(-4, 6), lo + rng.randint(1, 6)) for _ in rows))
    found = preimage(access, wanted, NAMES, domain, Context())
    assert {p for p in points(domain) if element(access, p) in points(wanted)} <= points(found) <= points(domain)


def test_one_row_per_axis_says_exactly_which_instances() -> None:
    i, j = Affine.of("i"), Affine.of("j")
    domain = box((0, 9), (0, 9), (0, 9))
    for access, elements, exact in (
        (Access("x", (i, j + 2)), ((3, 5), (4, 7)), ((3, 5), (2, 5), (0, 9))),
        (Access("x", (i * 2, j * -1)), ((3, 8), (-6, -3)), ((2, 4), (4, 7), (0, 9))),
        (Access("x", (i * -3 + 1, j)), ((-14, -4), (0, 20)), ((2, 6), (0, 9), (0, 9))),
    ):
        assert preimage(access, box(*elements), NAMES, domain, Context()) == box(*exact)


def test_nothing_touches_what_lies_beside_a_constant_index() -> None:
    """The imaginary part is no real part: among the last indices of ``c[i, j, 0]`` there is no 1."""
    domain = box((0, 9), (0, 9), (0, 9))
    access = Access("c", (Affine.of("i"), Affine.of("j"), Affine((), 0)))
    for last, beside in (((1, 2), True), ((-3, 0), True), ((0, 1), False), ((-1, 2), False)):
        found = preimage(access, box((0, 4), (0, 4), last), NAMES, domain, Context())
        assert found == (box((0, 0), (0, 0), (0, 0)) if beside else box((0, 4), (0, 4), (0, 9)))


def test_parts_of_one_buffer_need_not_wait_for_each_other() -> None:
    text = """
kernel parts(M, N, K)
  in  x: f32[M, N, K]
  out c: f32[M, N, 2]
  forall i < M, j < N
    c[i, j, 0] = 0
    c[i, j, 1] = 0
  forall i < M, j < N, k < K
    c[i, j, 0] += x[i, j, k]
"""
    x = np.random.default_rng(0).integers(-9, 9, (8, 128, 128)).astype(np.float32)
    c = isam.compile(text, sizes={"M": 8, "N": 128, "K": 128}, cache=False)(x)
    assert (c[..., 0] == x.sum(2)).all()
    assert not c[..., 1].any()


def test_a_size_stands_for_itself() -> None:
    access = Access("x", (Affine.of("N", 1, -1) - "i", Affine.of("j")))
    assert touched(access, box((0, 3), (1, 2), (0, 1)), NAMES)[0] == (Affine.of("N", 1, -3), Affine.of("N"))


def test_instances_of_elements_whose_bounds_are_sizes() -> None:
    """Every second element from ``2*N`` to ``4*N``; columns that begin with a size."""
    zero, n = Affine.lift(0), Affine.of("N")
    access = Access("x", (Affine.of("i", 2), n + "j"))
    domain = ((zero, n * 4 + 9), *box((0, 9), (0, 9)))
    found = preimage(
        access, ((n * 2, n * 4 + 1), (n + 3, n + 5)), NAMES, domain, Context((Var("N", (Bound(zero),), ()),))
    )
    assert found == ((n, n * 2 + 1), *box((3, 5), (0, 9)))


@pytest.mark.parametrize("rows", [(0, 4), (0, 2), (3, 4)])
@pytest.mark.parametrize("columns", [(0, 3), (2, 3), (0, 1)])
@pytest.mark.parametrize("same", [False, True])
def test_what_comes_before(rows: tuple[int, int], columns: tuple[int, int], same: bool) -> None:
    """Where what is waited for never has a counter's value, nothing has it and another counter's, too."""
    base, own = box(rows, columns, (0, 2)), {"i": (2, 3), "j": (1, 2), "k": (0, 1)}
    at = {n: (Affine((), a), Affine((), b)) for n, (a, b) in own.items()}
    found = [points(b) for b in before_boxes(base, NAMES, ["i", "j"], at, same, Context())]
    before = {p for p in points(base) if p[:2] < (2, 1) or (same and p[:2] == (2, 1))}
    assert set().union(*found) == before


def test_nothing_of_later_rows_comes_before() -> None:
    """Which rows are later, the loop around says: an element that is overwritten was read in no earlier row."""
    k, row, n = Affine.of("k"), Affine.of("row"), Affine((), 9)
    ctx = Context((Var("k", (Bound(Affine()),), (Bound(n),)), Var("row", (Bound(k + 1),), (Bound(n),))))
    base = ((row, row + 1), *box((0, 9), (0, 9)))
    own = {"i": (k, k + 1), "j": (Affine(), n), "k": (Affine(), n)}
    (earlier,) = before_boxes(base, NAMES, ["i"], own, True, ctx)
    assert earlier[0] == (row, k)  # empty: rows begin behind k
    assert len(before_boxes(((k, k + 1), *base[1:]), NAMES, ["i"], own, True, ctx)) == 2


SHIFTED = """
kernel shifted(M, N, S)
  in    e: f32[S]
  inout y: f32[M + 1, N + 2]
  loop q < S
    loop j < N
      forall i < M
        y[i + 1, j + 1] {}
"""


@pytest.mark.parametrize("rest", ["max= y[i, j]", "max= y[i, j + 2]", "= y[i, j]"])
def test_other_columns_of_one_iteration_need_not_wait(rest: str) -> None:
    """Rows of one column are made from those of another, all at once; no mapping was found."""
    kernel, sizes = parse_kernel(SHIFTED.format(rest)), {"M": 9, "N": 3}
    with on_the_tree():
        job = compiled(kernel, sizes, simulated("host-avx2"), check=True)
    judge(kernel, sizes, job, run_time={"S": 2})


@pytest.mark.parametrize(("one", "other", "apart"), [
    ((2, 0, 0), (2, 0, 1), True), ((2, 0, 0), (2, 0, 2), False), ((4, 0, 3), (6, 0, 0), True),
    ((4, 0, 2), (6, 0, 0), False), ((1, 0, 0), (1, 0, 1), False), ((2, 1, 0), (2, 0, 1), False),
    ((2, 2, 0), (2, 0, 1), True), ((0, 0, 3), (0, 0, 3), False), ((0, 0, 3), (0, 0, 4), False),
    ((4, 0, -1), (4, 0, 3), False), ((4, 0, -1), (4, 0, 1), True), ((-3, 0, 1), (3, 0, 1), False),
    ((-3, 0, 1), (3, 0, 2), True),
])  # fmt: skip
def test_accesses_at_other_remainders_never_meet(one: tuple[int, ...], other: tuple[int, ...], apart: bool) -> None:
    """``a * i + b * N + c``, for equal and different values of ``i``."""
    rows = [Affine.from_terms([("i", a), ("N", b)]) + c for a, b, c in (one, other)]
    first, second = (Access("x", (Affine.of("k"), r)) for r in rows)
    assert never_meet(first, second) is apart
    values = [[[a * i + b * n + c for i in range(9)] for n in range(4)] for a, b, c in (one, other)]
    assert not (apart and any(set(x) & set(y) for x, y in zip(*values, strict=True)))
