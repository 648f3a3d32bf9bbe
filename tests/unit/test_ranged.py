"""Kernels for a range of batch sizes: right for every size, whatever arrays they are given, and refused where rows are
not a batch."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.compiler import ranged as choice
from isam.compiler.regret import regrets, spread
from isam.diagnostics import InternalError, IsamError
from isam.ir import interp
from isam.ir.bounds import enclose, outside
from isam.ir.data import random_arrays
from isam.ir.text import parse_kernel
from isam.runtime import ranged as runtime
from isam.runtime.ranged import RangedFunction
from isam.system.load import load_system
from isam.tune import measure
from isam.tune.measure import Measurement, Run
from tests.corpus import CASES

PRODUCT = CASES["bias_relu_matmul"].load()
SIZES = {"N": 20, "K": 9}
UPDATED = parse_kernel("""kernel updated(M, N)
  in    x: f32[M, N]
  inout y: f32[M, N]
  forall i < M, j < N
    y[i, j] = y[i, j] * 2 + x[i, j]
""")
TWO = parse_kernel("""kernel two(M, N)
  in  x: f32[M, N]
  out s: f32[M]
  out d: f32[M, N]
  permits reassociate
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += x[i, j]
  forall i < M, j < N
    d[i, j] = x[i, j] - s[i]
""")


@pytest.fixture(scope="module")
def product() -> RangedFunction:
    return isam.compile_range(PRODUCT, "M", 1, 40, sizes=SIZES, cache=False)


@pytest.fixture(params=[runtime.QUIET, 0], ids=["native", "in parts"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Calls of variants one after the other are made by native code, or by Python, as those are that take long."""
    monkeypatch.setattr(runtime, "QUIET", request.param)
    return request.param


def fresh(fn: RangedFunction) -> RangedFunction:
    """The same variants, nothing known of any call."""
    return RangedFunction(fn.signature, fn.batch, fn.variants)


def judge(kernel: Any, sizes: dict[str, int], call: Callable[[dict[str, Any]], Any], seed: int = 3) -> None:
    arrays = random_arrays(kernel, sizes, seed)
    mine = {n: a.copy() for n, a in arrays.items()}
    made = call(mine)
    outs = [b.name for b in kernel.arguments if b.role == "out"]
    results = dict(zip(outs, made if len(outs) > 1 else [made], strict=True)) if outs else {}
    results |= {b.name: mine[b.name] for b in kernel.arguments if b.role == "inout"}
    assert outside(results, enclose(kernel, arrays, sizes)) is None


# -- results -----------------------------------------------------------------------------------------------------------
def test_every_size_is_right_and_again(product: RangedFunction, way: int) -> None:
    fn = fresh(product)
    for _ in range(2):  # the second time as it is known
        for rows in range(1, 41):
            judge(PRODUCT, {**SIZES, "M": rows}, lambda given: fn(*given.values()))
    assert any(len(fn.parts(rows)) > 1 for rows in range(1, 41))
    native = [c.native is not None for rows, c in fn._known.items() if len(fn.parts(rows)) > 1]
    assert all(native) if way else not any(native)


def test_constants_that_are_bound_are_packed_once(product: RangedFunction, way: int) -> None:
    fn = fresh(product)
    arrays = random_arrays(PRODUCT, {**SIZES, "M": 40}, 5)
    constants = {b.name: arrays[b.name] for b in PRODUCT.arguments if b.role == "const"}
    bound = fn.bind(**constants)
    given = {n: a for n, a in arrays.items() if n not in constants}
    for rows in (1, 7, 40, 7):
        some = {n: a[:rows] if n in fn.batch.rows else a for n, a in given.items()}
        exact = enclose(PRODUCT, {**constants, **some}, {**SIZES, "M": rows})
        assert outside({"C": bound(*some.values())}, exact) is None
    for a in constants.values():
        a[...] = 0  # what was bound stays
    assert outside({"C": bound(*some.values())}, exact) is None
    assert "bound" in repr(bound)
    with pytest.raises(IsamError, match="is bound already"):
        bound.bind(**constants)


@pytest.mark.parametrize("kernel", [UPDATED, TWO], ids=["updated in place", "two outputs"])
def test_what_is_updated_is_updated_once_and_outputs_come_in_order(
    kernel: Any, way: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "_priced", lambda kernel, system, known, size, rows, *_: {m: 1 + m / 99 for m in rows})
    fn = isam.compile_range(kernel, "M", 0, 23, sizes={"N": 17}, variants=3, cache=False)
    for _ in range(2):
        for rows in range(24):
            judge(kernel, {"N": 17, "M": rows}, lambda given: fn(*given.values()))
    spans = [fn.spans(rows) for rows in range(24)]
    twice = any(a[1] > b[0] for some in spans for a, b in pairwise(some))
    assert twice == (kernel is TWO)


CORPUS = ("softmax", "layer_norm", "attention", "matmul_bf16", "matmul_i8", "conv2d_nhwc", "gru_step")


@pytest.mark.parametrize("name", CORPUS)
def test_kernels_of_the_corpus(name: str) -> None:
    kernel = CASES[name].load()
    size = {"conv2d_nhwc": "N", "gru_step": "B"}.get(name, "M")
    sizes = {s.name: {"R": 3, "S": 3}.get(s.name, 5) for s in kernel.given if s.name != size}
    fn = isam.compile_range(kernel, size, 1, 9, sizes=sizes, variants=3, cache=False)
    for rows in (1, 5, 9):
        judge(kernel, {**sizes, size: rows}, lambda given: fn(*given.values()))


def test_simulated_machines_have_ranges_too() -> None:
    kernel = CASES["matmul"].load()
    fn = isam.compile_range(kernel, "M", 1, 6, on="toy", sizes={"N": 4, "K": 3}, variants=2, cache=False)
    for rows in (1, 4, 6):
        judge(kernel, {"M": rows, "N": 4, "K": 3}, lambda given: fn(*given.values()))


def test_sizes_that_are_multiples() -> None:
    text = str(PRODUCT).replace("(M, N, K)", "(M % 4, N, K)")
    fn = isam.compile_range(text, "M", 4, 40, sizes=SIZES, variants=2, cache=False)
    assert all(rows % 4 == 0 for rows in fn.variants)
    judge(PRODUCT, {**SIZES, "M": 36}, lambda given: fn(*given.values()))
    with pytest.raises(IsamError, match="a multiple of 4"):
        fn(*random_arrays(PRODUCT, {**SIZES, "M": 38}, 1).values())


def test_two_threads() -> None:
    fn = isam.compile_range(PRODUCT, "M", 1, 40, sizes=SIZES, threads=2, variants=3, cache=False)
    for rows in (1, 33, 40):
        judge(PRODUCT, {**SIZES, "M": rows}, lambda given: fn(*given.values()))


# -- arguments ---------------------------------------------------------------------------------------------------------
def arrays(rows: int, seed: int = 1) -> dict[str, Any]:
    return random_arrays(PRODUCT, {**SIZES, "M": rows}, seed)


@pytest.mark.parametrize("known", [False, True])
def test_results_go_where_they_are_asked(product: RangedFunction, way: int, known: bool) -> None:
    fn, given = fresh(product), arrays(23)
    exact = fn(*given.values())
    other = fn if known else fresh(product)
    out = np.full((23, 20), np.nan, np.float32)
    assert other(*given.values(), C=out) is out
    np.testing.assert_array_equal(out, exact)
    apart = np.full((23, 40), np.nan, np.float32)
    assert other(*given.values(), C=apart[:, ::2]) is not None
    np.testing.assert_array_equal(apart[:, ::2], exact)
    assert np.isnan(apart[:, 1::2]).all()
    by_name = other(**given)
    np.testing.assert_array_equal(by_name, exact)
    first = next(iter(given))
    strided = {**given, first: np.asfortranarray(given[first])}
    np.testing.assert_array_equal(other(*strided.values()), exact)
    reverse = {**given, first: given[first][::-1].copy()[::-1]}
    np.testing.assert_array_equal(other(*reverse.values()), exact)


@pytest.mark.parametrize("known", [False, True])
def test_what_is_written_may_lie_where_something_is_read(way: int, known: bool) -> None:
    """Row by row the same as if all was read before anything is written."""
    kernel = parse_kernel("kernel f(M, N)\n  in x: f32[M, N]\n  out y: f32[M, N]\n"
                          "  forall i < M, j < N\n    y[i, j] = x[i, j] + 1\n")  # fmt: skip
    fn = isam.compile_range(kernel, "M", 1, 30, sizes={"N": 4}, variants=2, cache=False)
    room = np.random.default_rng(2).normal(size=(24, 4)).astype(np.float32)
    if known:
        fn(room[1:].copy())
    want = room[:-1] + 1
    fn(room[:-1], y=room[1:])
    np.testing.assert_array_equal(room[1:], want)


@pytest.mark.parametrize("known", [False, True])
def test_mistakes_are_told_before_anything_is_written(product: RangedFunction, way: int, known: bool) -> None:
    fn, given = fresh(product), arrays(23)
    if known:
        fn(*given.values())
    first, *_ = given
    out = np.full((23, 20), 7, np.float32)
    for bad, says in [
        ({first: given[first].astype(np.float64)}, "must be float32, not float64"),
        ({first: given[first][:, :-1]}, "must have shape"),
        ({first: given[first][0]}, "must have shape"),
        ({first: given[first].tolist()}, "not list"),
        ({first: np.zeros((41, 9), np.float32)}, "1 <= M <= 40|must have shape"),
        ({first: np.zeros((0, 9), np.float32)}, "1 <= M <= 40|must have shape"),
        ({first: given[first].astype(ml_dtypes.bfloat16)}, "must be float32"),
    ]:
        with pytest.raises(IsamError, match=says):
            fn(*{**given, **bad}.values(), C=out)
        assert (out == 7).all()
    shared = np.broadcast_to(np.float32(1), (23, 20))
    for wrong, says in [(out[:-1], "must have shape"), (out.astype(np.float64), "must be float32"),
                        (None, "not NoneType"), (shared, "read-only|share memory")]:  # fmt: skip
        with pytest.raises(IsamError, match=says):
            fn(*given.values(), C=wrong)
    with pytest.raises(IsamError, match="missing"):
        fn(given[first])
    with pytest.raises(IsamError, match="has no argument"):
        fn(*given.values(), D=out)
    with pytest.raises(IsamError, match="missing"):
        fn()


def test_two_outputs_that_overlap_are_refused(way: int) -> None:
    fn = isam.compile_range(TWO, "M", 1, 23, sizes={"N": 1}, variants=2, cache=False)
    x, room = np.ones((19, 1), np.float32), np.zeros(19, np.float32)
    for _ in range(2):
        fn(x)
        with pytest.raises(IsamError, match="both written and overlap"):
            fn(x, s=room, d=room[:, None])


def test_many_threads_at_once(product: RangedFunction, way: int) -> None:
    fn = fresh(product)
    given = {rows: arrays(rows, rows) for rows in range(1, 41)}
    exact = {rows: enclose(PRODUCT, a, {**SIZES, "M": rows}) for rows, a in given.items()}
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for rows in np.random.default_rng(seed).integers(1, 41, 200).tolist():
            said = outside({"C": fn(*given[rows].values())}, exact[rows])
            if said:
                wrong.append(said)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_nothing_is_kept_alive() -> None:
    fn = isam.compile_range(PRODUCT, "M", 1, 12, sizes=SIZES, variants=2, cache=False)
    fn(*arrays(11).values())
    alive = weakref.ref(fn.parts.__self__.spans)
    del fn
    gc.collect()
    assert alive() is None


# -- what is compiled --------------------------------------------------------------------------------------------------
def test_what_is_likely_has_variants_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_priced", lambda kernel, system, known, size, rows, *_: {m: 1 + m / 10 for m in rows})
    fn = isam.compile_range(PRODUCT, "M", 1, 40, sizes=SIZES, likely={29: 50.0}, variants=2, cache=False)
    assert list(fn.variants) == [1, 29]
    assert fn.parts(29) == (29,)
    with pytest.raises(IsamError, match="41 rows are not admitted"):
        fn.parts(41)


def test_variants_are_found_again_in_the_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = isam.compile_range(PRODUCT, "M", 1, 20, sizes=SIZES, variants=3, cache=tmp_path)
    monkeypatch.setattr(choice, "_priced", None)  # nobody asks what they take
    again = isam.compile_range(PRODUCT, "M", 1, 20, sizes=SIZES, variants=3, cache=tmp_path)
    assert list(again.variants) == list(first.variants)
    assert [again.spans(n) for n in range(1, 21)] == [first.spans(n) for n in range(1, 21)]
    monkeypatch.undo()
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    assert list(isam.compile_range(PRODUCT, "M", 1, 20, sizes=SIZES, variants=3, cache=tmp_path).variants) == list(
        first.variants
    )


@pytest.mark.parametrize(("given", "says"), [
    ({"size": "K"}, "K"),
    ({"size": "Q"}, "no size 'Q'"),
    ({"least": 9, "most": 8}, "9 <= M <= 8 is no range"),
    ({"least": -1}, "M = -1 is not admitted"),
    ({"most": 0, "least": 0}, "is no range"),
    ({"most": 1 << 40}, "is no range"),
    ({"sizes": {"N": 20}}, "the sizes K of"),
    ({"sizes": {**SIZES, "M": 3}}, "a number, 3, and a range"),
    ({"likely": {99: 1.0}}, "likely sizes are between 1 and 40"),
    ({"likely": {3: 0.0}}, "weights above 0"),
    ({"variants": 0}, "0 variants"),
    ({"require": "nothing_such"}, "nothing_such"),
])  # fmt: skip
def test_mistakes_of_who_compiles(given: dict[str, Any], says: str) -> None:
    asked = {"size": "M", "least": 1, "most": 40, "sizes": SIZES, "cache": False, **given}
    if given.get("size") == "K":
        asked["sizes"] = {"M": 5, "N": 20}
    with pytest.raises(IsamError, match=says):
        isam.compile_range(PRODUCT, **asked)


def test_what_is_saved_is_one_size(product: RangedFunction, tmp_path: Any) -> None:
    with pytest.raises(IsamError, match="an artifact holds one"):
        product.save(tmp_path / "a.isamc")
    assert not list(tmp_path.iterdir())
    assert "for 1 <= M <= 40" in repr(product)
    with pytest.raises(IsamError, match="is not pickled"):
        product.__reduce_ex__(2)


def test_regrets_are_measured_and_judged(product: RangedFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    system = load_system("host")
    rows = list(regrets(product, PRODUCT, system, SIZES, [1, 23], seconds=0.02))
    assert [r.rows for r in rows] == [1, 23]
    assert all(r.ratio == r.seconds / r.own > 0 for r in rows)
    assert rows[1].parts == product.parts(23)
    monkeypatch.setattr(measure, "run_beside", lambda *_, **__: "one call takes 30 s")
    (left,) = regrets(product, PRODUCT, system, SIZES, [2])
    assert (left.left, left.ratio) == ("one call takes 30 s", 0.0)
    wrong = Measurement((Run(1.0, 1.0), Run(unfit="C[0, 0]")), 0.0)
    monkeypatch.setattr(measure, "run_beside", lambda *_, **__: wrong)
    with pytest.raises(InternalError, match="computes something else"):
        list(regrets(product, PRODUCT, system, SIZES, [2]))


def test_sizes_that_are_measured_are_spread() -> None:
    assert spread(1, 512, 1, 4) == [1, 8, 64, 512]
    assert spread(0, 3, 1, 12) == [1, 2, 3]
    assert spread(8, 8, 8, 12) == [8]
    assert spread(8, 64, 8, 3) == [8, 24, 64]


def test_the_interpreter_agrees(product: RangedFunction) -> None:
    given = {n: np.round(a * 2) for n, a in arrays(23).items()}
    np.testing.assert_array_equal(product(*given.values()), interp.run(PRODUCT, given)["C"])
