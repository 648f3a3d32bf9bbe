"""The oracle: equal to exact integers where those exist, blind to what it says it is blind to, and to nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from isam.diagnostics import IsamError
from isam.ir import oracle
from isam.ir.interp import run
from isam.ir.kernel import Access, Item, Kernel, Literal, Recurrence, Statement
from isam.ir.residues import PRIME, Residues, loses_nothing
from isam.ir.text import parse
from tests.corpus import CASES, random_arrays

RING = ("matmul_i32", "reductions_i32", "matmul_i8", "matmul_u8i8")


def kernel(text: str) -> Kernel:
    k = parse(text)
    assert isinstance(k, Kernel)
    return k


def pointwise(expression: str, *, more: str = "") -> Kernel:
    return kernel(f"kernel k(N)\n  in a: f32[N]\n  in b: f32[N]\n  in c: f32[N]\n  out y: f32[N]\n"
                  f"  forall i < N\n{more}    y[i] = {expression}\n")  # fmt: skip


def same(one: str, two: str, laws: frozenset[str] = frozenset()) -> bool:
    return all(oracle.equal(pointwise(one), pointwise(two), {"N": 40}, s, laws) for s in range(3))


@pytest.mark.parametrize("name", RING)
def test_agrees_with_the_interpreter_on_whole_numbers(name):
    case = CASES[name]
    k = case.load()
    for seed, sizes in enumerate(case.sizes[:4]):
        arrays = random_arrays(k, sizes, seed)
        arrays = {n: np.clip(a, -2, 2).astype(a.dtype) for n, a in arrays.items()}  # products stay small
        want = run(k, arrays, sizes)
        data = {n: a.astype(np.int64) for n, a in arrays.items()}
        got = oracle.run_modular(k, data, sizes, seed, frozenset({"casts"}))
        for n, w in want.items():
            if n != "hi":  # the oracle's order is not that of the integers
                np.testing.assert_array_equal(got[n], w.astype(np.int64) % PRIME)


@pytest.mark.parametrize("name", ["matmul", "conv2d/stride=2", "sepconv", "triangular", "correlate_reversed"])
def test_agrees_with_big_integers_on_ring_kernels(name):
    """Interpreting the same statements over Python's integers, one point at a time."""
    case = CASES[name]
    k, sizes = case.load(), case.sizes[0]
    if name.startswith("conv2d"):
        k = replace(k, body=k.body[:-1])  # without the relu
    data = oracle.inputs(k, sizes, 5)
    env = {b.name: np.zeros([max(0, d.evaluate(sizes)) for d in b.shape], object) for b in k.buffers}
    env.update({n: a.astype(object) for n, a in data.items()})

    def value(s, at):
        return s.value if isinstance(s, Literal) else env[s.buffer][tuple(e.evaluate(at) for e in s.index)]

    for s in k.statements:
        for p in itertools.product(*(range(a.extent.evaluate(sizes)) for a in s.domain.axes)):
            at = {**sizes, **dict(zip(s.domain.names, p, strict=True))}
            if any(w.evaluate(at) < 0 for w in s.domain.where):
                continue
            args = [value(s.dest, at)] * s.accumulate + [value(x, at) for x in s.sources]
            made = {"copy": lambda x: x, "add": lambda x, y: x + y, "mul": lambda x, y: x * y}[s.op](*args)
            env[s.dest.buffer][tuple(e.evaluate(at) for e in s.dest.index)] = made
    for n, got in oracle.run_modular(k, data, sizes, 5).items():
        np.testing.assert_array_equal(got, (env[n] % PRIME).astype(np.int64))


@pytest.mark.parametrize(("one", "two"), [
    ("a[i] * (b[i] + c[i])", "a[i] * b[i] + c[i] * a[i]"), ("a[i] - b[i]", "a[i] + (-b[i])"),
    ("a[i] * 0.5 + 0.5 * a[i]", "a[i]"), ("a[i] * 0", "0"), ("a[i] + 0", "a[i]"), ("3 * a[i]", "a[i] + a[i] + a[i]"),
    ("max(a[i], max(b[i], c[i]))", "max(max(c[i], a[i]), b[i])"), ("max(a[i], a[i])", "a[i]"),
    ("max(a[i], -inf)", "a[i]"), ("min(inf, a[i])", "a[i]"), ("max(a[i], min(a[i], b[i]))", "a[i]"),
    ("select(a[i] < b[i], b[i], a[i])", "max(a[i], b[i])"), ("abs(a[i])", "max(a[i], -a[i])"), ("-(-inf)", "inf"),
    ("select(not (a[i] < b[i]), c[i], b[i])", "select(a[i] >= b[i], c[i], b[i])"), ("exp(a[i])", "exp(a[i] + 0)"),
    ("select((a[i] < b[i]) and (b[i] < c[i]) and (c[i] < a[i]), a[i], b[i])", "b[i]"),
    ("f32(f64(a[i]) + 1)", "f32(1 + f64(a[i]))"),
])  # fmt: skip
def test_laws_it_has(one, two):
    assert same(one, two)


@pytest.mark.parametrize(("one", "two"), [
    ("max(a[i], 0)", "a[i]"), ("min(a[i], 0)", "a[i]"), ("max(a[i], b[i])", "a[i]"), ("max(a[i], 0)", "0"),
    ("exp(a[i] + b[i])", "exp(a[i]) * exp(b[i])"), ("a[i] / b[i]", "a[i] * (1 / b[i])"), ("a[i] / b[i]", "b[i] / a[i]"),
    ("max(a[i] + c[i], b[i] + c[i])", "max(a[i], b[i]) + c[i]"), ("tanh(a[i])", "sigmoid(a[i])"),
    ("sqrt(a[i]) * sqrt(a[i])", "a[i]"),
    ("f32(f64(a[i]) * f64(b[i]))", "a[i] * b[i]"), ("f32(bf16(a[i]))", "a[i]"),
    ("f32(bf16(a[i]))", "f32(f16(a[i]))"),
    ("a[i] + 0.5", "a[i] + 0.25"), ("a[i] + 1e-30", "a[i]"), ("inf", "-inf"),
    ("select(a[i] < b[i], a[i], b[i])", "max(a[i], b[i])"), ("floor(a[i])", "a[i]"),
    ("pow(a[i], b[i])", "pow(b[i], a[i])"),
    ("a[i] * 4294967296", "a[i]"), ("abs(a[i])", "a[i]"), ("abs(a[i])", "-a[i]"),
])  # fmt: skip
def test_laws_it_has_not(one, two):
    assert not same(one, two)


def test_laws_that_can_be_granted():
    assert same("a[i] / b[i]", "a[i] * (1 / b[i])", frozenset({"division"}))
    assert same("f32(f64(a[i]) * f64(b[i]))", "a[i] * b[i]", frozenset({"casts"})) is False  # f64 to f32 rounds
    widened = kernel("kernel k(N)\n  in a: i8[N]\n  in b: i8[N]\n  out y: i32[N]\n  forall i < N\n"
                     "    y[i] = i32(a[i]) * i32(b[i])\n")  # fmt: skip
    moved = kernel("kernel k(N)\n  in a: i8[N]\n  in b: i8[N]\n  out y: i32[N]\n  forall i < N\n"
                   "    y[i] = i32(a[i] * b[i])\n")  # fmt: skip
    assert not oracle.equal(widened, moved, {"N": 20}, 1)
    assert oracle.equal(widened, moved, {"N": 20}, 1, frozenset({"casts"}))


def test_which_casts_lose_nothing():
    gain = {("i8", "i32"), ("u8", "i16"), ("bf16", "f32"), ("f16", "f32"), ("i8", "bf16"), ("i32", "f64"),
            ("bool", "i8"), ("i16", "f32"), ("f32", "f64"), ("u8", "f16"), ("any", "f32")}  # fmt: skip
    lose = {("i8", "u8"), ("u8", "i8"), ("i32", "f32"), ("bf16", "f16"), ("f16", "bf16"), ("f32", "i32"),
            ("i64", "f64"), ("f32", "bool"), ("i16", "bf16"), ("f64", "f32")}  # fmt: skip
    assert all(loses_nothing(*p) for p in gain)
    assert not any(loses_nothing(*p) for p in lose)


def test_the_order_is_total_and_products_of_repeats_are_right():
    r = Residues(3)
    x = np.append(np.random.default_rng(0).integers(0, PRIME, 100), [r.least, PRIME - r.least, 0, 1])
    assert np.array_equal(r._unrank(r._rank(x)), x)
    flat, at = np.array([2, 3, 5]), np.array([0, 2, 0, 0, 2])
    r.accumulate("mul", flat, at, np.array([7, 11, 13, 17, PRIME - 1]), "f32")
    assert flat.tolist() == [2 * 7 * 13 * 17, 3, -55 % PRIME]


def test_inputs_depend_on_name_and_seed_only():
    a = oracle.inputs(CASES["matmul"].load(), {"M": 3, "N": 4, "K": 5}, 7)
    b = oracle.inputs(CASES["matmul_bt"].load(), {"M": 3, "N": 4, "K": 5}, 7)
    assert np.array_equal(a["A"], b["A"])
    assert not np.array_equal(a["A"].ravel()[:15], a["B"].ravel()[:15])
    assert not np.array_equal(a["A"], oracle.inputs(CASES["matmul"].load(), {"M": 3, "N": 4, "K": 5}, 8)["A"])
    assert len(np.unique(a["A"])) == 15
    assert not oracle.equal(CASES["matmul_at"].load(), CASES["matmul_bt"].load(), {"M": 3, "N": 3, "K": 3}, 1)


def test_missing_and_misshaped_arrays_are_refused():
    k, sizes = CASES["matmul"].load(), {"M": 2, "N": 2, "K": 3}
    with pytest.raises(IsamError, match=r"A.*needs"):
        oracle.run_modular(k, {"A": np.zeros((2, 2)), "B": np.zeros((3, 2))}, sizes)
    with pytest.raises(IsamError, match="no array for 'B'"):
        oracle.run_modular(k, {"A": np.zeros((2, 3))}, sizes)


# mutants ----------------------------------------------------------------------------------------------------------
def rebuilt(k: Kernel, at: int, s: Statement) -> Kernel:
    count = itertools.count()

    def item(it: Item) -> Item:
        if isinstance(it, Recurrence):
            return replace(it, body=tuple(map(item, it.body)))
        return s if next(count) == at else it

    return replace(k, body=tuple(map(item, k.body)))


OTHER = {
    "add": "mul", "mul": "add", "max": "min", "min": "max", "sub": "add", "copy": "neg", "exp": "log", "div": "mul",
    "tanh": "sigmoid", "sigmoid": "tanh", "erf": "tanh", "rsqrt": "sqrt", "sqrt": "exp", "lt": "ge", "abs": "neg",
}  # fmt: skip


def mutants(k: Kernel):
    """One row of a source perturbed (off by one, an axis dropped), or one operation exchanged."""
    for at, s in enumerate(k.statements):
        if s.op in OTHER and not (s.op == "copy" and isinstance(s.sources[0], Literal)):  # 0 is -0
            yield f"statement {at}: {s.op} to {OTHER[s.op]}", rebuilt(k, at, replace(s, op=OTHER[s.op]))
        for n, source in enumerate(s.sources):
            for what, new in perturbed(source):
                sources = (*s.sources[:n], new, *s.sources[n + 1 :])
                yield f"statement {at}: {source} {what}", rebuilt(k, at, replace(s, sources=sources))


def perturbed(source):
    if not isinstance(source, Access):
        return
    for d, row in enumerate(source.index):
        dropped = [(f"without {x}", row - row.coefficient(x) * row.of(x)) for x in row.names]
        for what, new in (("+ 1", row + 1), *dropped):
            yield f"row {d} {what}", replace(source, index=(*source.index[:d], new, *source.index[d + 1 :]))


def wide(k: Kernel, sizes: dict[str, int]) -> Kernel:
    """The same kernel with one more element on both sides of every buffer, so that wrong indices stay inside."""
    grown = tuple(replace(b, shape=tuple(d + 3 for d in b.shape)) for b in k.buffers)

    def moved(a):
        return replace(a, index=tuple(e + 1 for e in a.index)) if isinstance(a, Access) else a

    def item(it: Item) -> Item:
        if isinstance(it, Recurrence):
            return replace(it, body=tuple(map(item, it.body)))
        dest = moved(it.dest)
        assert isinstance(dest, Access)
        return replace(it, dest=dest, sources=tuple(map(moved, it.sources)))

    return replace(k, buffers=grown, body=tuple(map(item, k.body)))


# Mutants that mean the same, and what the oracle cannot see.
BLIND = (
    "sepconv: statement 2: t[h + 1, v + 1, k + 1, c + 1, q + 1, r + 1, s + 1] row 2 without k",  # t is the same there
    "masks: statement 1: ",  # x == 0: random residues are never equal
    "masks: statement 2: ",
    "masks: statement 3: t3",
)


def noticed(good: Callable[[int], dict[str, Any]], bad: Kernel, sizes: dict[str, int]) -> bool:
    """Some of a few seeds is enough: a maximum may not mind one element. ``good``: results of the kernel by seed."""
    try:
        return any(differ(good(seed), oracle.evaluate(bad, sizes, seed)) for seed in range(6))
    except IsamError:
        return True


def differ(one: dict[str, Any], two: dict[str, Any]) -> bool:
    return one.keys() != two.keys() or any(not np.array_equal(one[n], two[n]) for n in one)


@pytest.mark.parametrize("name", [n for n in CASES if "dilation" not in n])
def test_every_mutant_is_noticed(name):
    case = CASES[name]
    most = 2 if len(case.sizes[0]) > 7 else 3
    sizes = {n: min(v, most) for n, v in case.sizes[0].items()}
    k = wide(case.load(), sizes)
    assert oracle.equal(k, k, sizes, 5)
    good = cache(lambda seed: oracle.evaluate(k, sizes, seed))  # once for all mutants
    for what, bad in mutants(k):
        assert f"{name}: {what}".startswith(BLIND) or noticed(good, bad, sizes), what


def test_a_scalar_that_is_updated_in_place():
    k = parse("kernel k(N)\n  in x: f32[N]\n  inout s: f32\n  inout b: bool\n  forall i < N\n    s[] += x[i]\n")
    given = oracle.inputs(k, {"N": 5}, seed=2)
    got = oracle.run_modular(k, given, {"N": 5}, seed=2)
    assert int(got["s"]) == (int(given["s"]) + int(given["x"].sum())) % oracle.PRIME
