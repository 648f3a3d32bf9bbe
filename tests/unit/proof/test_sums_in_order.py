"""Sums of floats whose terms have an order, and statements that are no points or several: by the interpreter."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from isam.ir.interp import run
from isam.ir.kernel import Literal
from isam.ir.text import parse_kernel
from isam.proof.equivalence import Equivalence, equivalent
from isam.proof.execution import Execution, operand_dtype
from isam.proof.operations import Licence, Operations

HEAD = "kernel k({})\n  permits exact\n  in w: f32[{n}, {m}]\n  inout y: f32[{n}]\n  inout z: f32[5]\n"
HEAD += "  inout u: f32[3, 2]\n  in x: f32[2 * {n}]\n  {}\n"
SUMS = [  # and those that add the same in one order: of one number
    (0, "forall i < 2, k < 4\n    y[i] += w[i, k]"),
    (0, "forall k < 4, i < 2\n    y[i] += w[i, k]"),
    (0, "forall i < 2, k < 2, l < 2\n    y[i] += w[i, 2 * k + l]"),
    (0, "forall k < 2, i < 2, l < 2\n    y[i] += w[i, 2 * k + l]"),
    (1, "forall i < 2, l < 2, k < 2\n    y[i] += w[i, 2 * k + l]"),
    (1, "forall l < 2, k < 2, i < 2\n    y[i] += w[i, l + 2 * k]"),
    (2, "forall i < 2, k < 4\n    y[i] += w[i, 3 - k]"),
    (3, "forall i < 1, k < 4\n    y[i] += w[i, k]"),
    (3, "forall k < 4\n    y[0] += w[0, k]"),
    (4, "forall i < 2, j < 3\n    z[i + j] += w[i, j]"),
    (4, "forall i < 2, j < 3\n    z[j + i] += w[i, j]"),
    (5, "forall j < 3, i < 2\n    z[i + j] += w[i, j]"),
    (6, "forall k < 4\n    y[0] *= w[0, k]"),
    (7, "forall i < 2, k < 4 where k >= 4\n    y[i] += w[i, k]"),
    (7, "forall i < 2, k < 4 where k >= 5\n    y[i] = w[i, k]"),
    (8, "forall i < 2, k < 4 where k >= 1\n    y[i] += w[i, k]"),
    (0, "forall i < 2, k < 4, j < 1\n    y[i] += w[i, k + j]"),
    (0, "forall i < 2, k < 2, j < 1, l < 2\n    y[i] += w[i, 2 * k + l + j]"),
    (9, "forall i < 2, j < 2, k < 2\n    z[i + j] += w[i, 2 * j + k]"),
    (10, "forall j < 2, i < 2, k < 2\n    z[i + j] += w[i, 2 * j + k]"),
    (11, "forall i < 2\n    y[i] += w[i, 0]"),
    (12, "forall i < 2, j < 2, k < 2, l < 2\n    u[i + j, l] += w[i, 2 * j + k]"),
    (13, "forall j < 2, i < 2, k < 2, l < 2\n    u[i + j, l] += w[i, 2 * j + k]"),
    (11, "forall i < 2\n    y[i] = y[i] + w[i, 0]"),
]  # fmt: skip
SIZED = [
    (0, "forall k < N, l < M\n    y[0] += w[k, l]"),
    (1, "forall l < M, k < N\n    y[0] += w[k, l]"),
    (2, "forall k < N, l < 2\n    y[0] += w[k, l]"),
    (2, "forall k < N, l < 2\n    y[0] += w[k, l]"),
    (3, "forall l < 2, k < N\n    y[0] += w[k, l]"),
    (4, "forall k < N\n    y[0] += w[k, 0]"),
    (5, "forall k < N, l < M\n    y[0] += w[N - 1 - k, l]"),
    (6, "forall k < 2 * N\n    y[0] += x[k]"),
    (6, "forall k < N, l < 2\n    y[0] += x[2 * k + l]"),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "sums"), [("", SUMS), ("N >= 2, M >= 2", SIZED)], ids=["numbers", "sizes"])
def test_sums_in_one_order_are_the_same(sizes: str, sums: list[tuple[int, str]]) -> None:
    rng, judge = np.random.default_rng(5), Equivalence()
    n, m = ("N", "M") if sizes else ("2", "4")
    kernels = [parse_kernel(HEAD.format(sizes, text, n=n, m=m)) for _, text in sums]
    results: list[list[bytes]] = [[] for _ in sums]
    for shape in ((2, 4),) * 6 if not sizes else ((3, 2), (2, 4), (3, 4)) * 2:
        scale = 10.0 ** rng.integers(-3, 4, shape)
        given = {"w": (rng.standard_normal(shape) * scale).astype(np.float32),
                 "y": rng.standard_normal(shape[0]).astype(np.float32),
                 "x": rng.standard_normal(2 * shape[0]).astype(np.float32),
                 "u": rng.standard_normal((3, 2)).astype(np.float32),
                 "z": rng.standard_normal(5).astype(np.float32)}  # fmt: skip
        for k, out in zip(kernels, results, strict=True):
            made = run(k, {name: x.copy() for name, x in given.items()},
                       dict(zip("NM", shape, strict=True)) if sizes else {})
            out += [made["y"].tobytes(), made["z"].tobytes(), made["u"].tobytes()]
    for a, b in product(range(len(sums)), repeat=2):
        assert bool(judge.judge(kernels[a], kernels[b])) is (sums[a][0] == sums[b][0]), (a, b)
        assert (results[a] == results[b]) is (sums[a][0] == sums[b][0]), (a, b)


def test_a_statement_without_points_changes_nothing() -> None:
    text = HEAD.format("", "forall i < 2\n    y[i] = w[i, 0]{}", n=2, m=4)
    k = parse_kernel(text.format(""))
    for more in ("y[i] += w[i, k]", "y[i] = w[i, k]", "z[i] = w[i, k]"):
        assert equivalent(k, parse_kernel(text.format(f"\n  forall i < 2, k < 4 where k >= 4\n    {more}")))


TWICE = "kernel k()\n  in x: f32[2, 2]\n  in b: bool[2]\n  inout y: f32[2]\n  forall i < 2, k < 2\n    y[i] = {}\n"


@pytest.mark.parametrize(("value", "why"), [
    ("x[i, k]", "an assignment reaches an element more than once"),
    ("select(b[k], x[i, k], y[i])", "a conditional assignment reaches an element more than once"),
])  # fmt: skip
def test_an_element_that_is_reached_twice_is_not_followed(value: str, why: str) -> None:
    """Whoever asks: a kernel is none then."""
    k = parse_kernel(TWICE.format(value))
    e = Execution(Operations(Licence()), k.syms)
    memory = e.start(k)
    e.run(k.body, memory, k)
    assert list(e.notes.values()) == [why]
    assert not equivalent(k, k)


def test_what_an_operation_works_on() -> None:
    """The type of its sources; of numbers alone, one that holds them."""
    lines = ("y[i] = f32(x[i])", "c[i] = x[i] < 3.0", "c[i] = 1 < 2", "c[i] = 1 < 2.5", "c[i] = 1.5 < 2", "y[i] = 3")
    k = parse_kernel("kernel k()\n  in x: f16[2]\n  out y: f32[2]\n  out c: bool[2]\n  forall i < 2\n"
                     + "".join(f"    {x}\n" for x in lines))  # fmt: skip
    assert [operand_dtype(s, k) for s in k.statements] == ["f16", "f16", "i64", "f64", "f64", "f32"]
    casts = [replace(k.statements[0], op=op, sources=(Literal(x),)) for op in ("cast", "cast_sat") for x in (3, 2.5)]
    assert [operand_dtype(s, k) for s in casts] == ["i64", "f64"] * 2
