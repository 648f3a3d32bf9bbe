"""Kernels for a range of batch sizes: right for every size, whatever arrays they are given, and refused where rows are
not a batch."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import isam
from isam.artifact import Artifact
from isam.compiler import Refused
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


@pytest.fixture(params=[1e9, 0.0], ids=["native", "in parts"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
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
    native = [rows in fn._native for rows in range(1, 41) if len(fn.parts(rows)) > 1]
    assert all(native) if way else not any(native)
    assert all(rows in fn._native for rows in fn.variants), "which one variant takes needs nobody else"


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


def test_limits_of_the_kernel_are_kept() -> None:
    """Also where no variant of one row is admitted; rows that are updated in place cannot be made of five and more."""
    five = str(PRODUCT).replace("(M, N, K)", "(5 <= M, N, K)")
    fn = isam.compile_range(five, "M", 5, 12, sizes=SIZES, variants=2, cache=False)
    assert min(fn.variants) == 5
    for rows in range(5, 13):
        judge(PRODUCT, {**SIZES, "M": rows}, lambda given: fn(*given.values()))
    one = str(PRODUCT).replace("(M, N, K)", "(M == 4, N, K)")
    assert list(isam.compile_range(one, "M", 4, 4, sizes=SIZES, cache=False).variants) == [4]
    with pytest.raises(IsamError, match="updated in place, and M is 5 at least"):
        isam.compile_range(str(UPDATED).replace("(M, N)", "(5 <= M, N)"), "M", 5, 12, sizes={"N": 4}, cache=False)
    assert min(isam.compile_range(PRODUCT, "M", 9, 12, sizes=SIZES, variants=2, cache=False).variants) == 9


def test_numbers_of_numpy_are_numbers() -> None:
    n = np.int64
    likely = {n(3): np.float32(5)}
    fn = isam.compile_range(PRODUCT, "M", n(1), n(12), sizes=SIZES, likely=likely, variants=n(2), cache=False)
    assert fn.parts(3) == (3,)


def test_packing_is_done_by_every_call_that_needs_it(way: float) -> None:
    text = str(CASES["matmul"].load()).replace("in  B", "const B")
    fn = isam.compile_range(text, "M", 1, 40, sizes={"N": 256, "K": 192}, variants=3, cache=False)
    assert any(fn.variants[n].artifact.bind for rows in (23, 39) if len(fn.parts(rows)) > 1 for n in fn.parts(rows))
    r = np.random.default_rng(4)
    for _ in range(2):
        for rows in (1, 23, 39):
            a, b = (np.round(r.normal(size=s) * 3).astype(np.float32) for s in ((rows, 192), (192, 256)))
            np.testing.assert_array_equal(fn(a, b), a @ b)
            bound = fn.bind(B=b)
            assert bound is not fn
            for _ in range(2):
                np.testing.assert_array_equal(bound(a), a @ b)


def test_constants_may_be_bound_one_after_the_other(product: RangedFunction) -> None:
    given = arrays(23)
    constants = [b.name for b in PRODUCT.arguments if b.role == "const"]
    assert len(constants) == 2
    fn = fresh(product)
    exact = fn(*given.values())
    first, second = ({n: given.pop(n)} for n in constants)
    np.testing.assert_array_equal(fn.bind(**first).bind(**second)(*given.values()), exact)


def test_constants_with_rows_are_not_bound() -> None:
    kernel = "kernel f(M, N)\n  const x: f32[M, N]\n  out y: f32[M, N]\n  forall i < M, j < N\n    y[i, j] = x[i, j]\n"
    fn = isam.compile_range(kernel, "M", 1, 9, sizes={"N": 4}, variants=2, cache=False)
    with pytest.raises(IsamError, match="'x' has M rows, which differ"):
        fn.bind(x=np.ones((3, 4), np.float32))


def test_a_number_of_steps_stays_open() -> None:
    kernel = parse_kernel("""kernel walk(M, T)
  inout h: f32[M, 4]
  out   y: f32[M, 4]
  in    x: f32[4]
  in    z: f32[T, 4]
  loop t < T
    forall i < M, j < 4
      h[i, j] = h[i, j] * x[j] + z[t, j]
  forall i < M, j < 4
    y[i, j] = h[i, j] * 2
""")
    fn = isam.compile_range(kernel, "M", 1, 9, sizes={}, variants=2, cache=False)
    for _ in range(2):
        for rows, steps in ((7, 3), (9, 2), (7, 5)):
            judge(kernel, {"M": rows, "T": steps}, lambda given: fn(*given.values()))


def test_functions_of_the_user_are_called_for_every_part() -> None:
    """By Python alone, as they are more than addresses; what one raises goes through, and nothing is done twice."""
    calls, stop = list[int](), [1 << 30]

    @isam.instruction("instruction doubled(N)\n  inout y: f32[N]\n  forall i < N\n    y[i] = 2 * y[i]")
    def doubled(y: Any) -> None:
        calls.append(len(y))
        if len(calls) > stop[0]:
            raise IsamError([])
        np.multiply(y, 2, out=y)

    machine = load_system("host").extended(doubled)
    kernel = "kernel f(M)\n  inout y: f32[M]\n  forall i < M\n    y[i] = 2 * y[i]\n"
    fn = isam.compile_range(kernel, "M", 1, 9, on=machine, sizes={}, variants=2, require="doubled", cache=False)
    parts = max((fn.parts(rows) for rows in range(1, 10)), key=len)
    assert len(parts) > 1
    y = np.ones(sum(parts), np.float32)
    for _ in range(2):
        fn(y)
    assert (y == 4).all()
    calls.clear()
    stop[0] = 0
    with pytest.raises(IsamError):
        fn(y)
    assert len(calls) == 1
    assert (y == 4).all()


def test_rows_that_outputs_alone_show_are_asked_for_every_time() -> None:
    kernel = "kernel f(M, N)\n  in c: f32[N]\n  out C: f32[M, N]\n  forall i < M, j < N\n    C[i, j] = c[j] * 2\n"
    fn = isam.compile_range(kernel, "M", 1, 12, sizes={"N": 4}, variants=3, cache=False)
    c = np.arange(4, dtype=np.float32)
    for rows in (11, 5, 11):
        with pytest.raises(IsamError, match="the size M follows from no argument"):
            fn(c)
        assert (fn(c, C=np.zeros((rows, 4), np.float32)) == c * 2).all()


@pytest.mark.parametrize("known", [False, True])
def test_an_output_that_lies_on_itself_is_refused(way: float, known: bool) -> None:
    kernel = "kernel f(M, N)\n  in x: f32[M, N]\n  out y: f32[M, N]\n  forall i < M, j < N\n    y[i, j] = x[i, j] + 1\n"
    fn = isam.compile_range(kernel, "M", 1, 8, sizes={"N": 2}, likely={4: 100.0, 1: 50.0}, variants=2, cache=False)
    x = np.ones((8, 2), np.float32)
    if known:
        fn(x)
    out = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (8, 2), (4, 20))
    with pytest.raises(IsamError, match="share memory"):
        fn(x, y=out)


def test_one_of_two_outputs_may_be_given(way: float) -> None:
    fn = isam.compile_range(TWO, "M", 1, 23, sizes={"N": 3}, variants=2, cache=False)
    x, d = np.ones((19, 3), np.float32), np.zeros((19, 3), np.float32)
    for _ in range(2):
        s, same = fn(x, d=d)
        assert same is d
        assert (s == 3).all()
        assert (d == -2).all()
        s, same = fn(x, d=d, s=np.zeros(19, np.float32))  # in whatever order they are given
        assert same is d
        d[...] = 0


FIRST = """
import threading, sys
import numpy as np, isam
fn = isam.compile_range("kernel f(M, N)\\n  in x: f32[M, N]\\n  out y: f32[M, N]\\n  forall i < M, j < N\\n    "
                        "y[i, j] = x[i, j] + 1\\n", "M", 1, 40, sizes={"N": 40}, variants=2, cache=False)
gate, wrong = threading.Barrier(6), []
def work(n):
    x = np.zeros((n, 40), np.float32)
    gate.wait()
    for _ in range(200):
        if not (fn(x) == 1).all():
            wrong.append(n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(31, 37)]
for t in threads:
    t.start()
for t in threads:
    t.join()
sys.exit(len(wrong))
"""


def test_the_first_calls_of_a_process_may_come_from_several_threads() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_while_constants_are_bound(product: RangedFunction) -> None:
    """Else the lock would stay taken in the child for ever."""
    fn, given = fresh(product), arrays(1)
    constants = {b.name: given.pop(b.name) for b in PRODUCT.arguments if b.role == "const"}
    bound = fn.bind(**constants)
    one, begun = bound.variants[1], threading.Event()

    def slow(**named: Any) -> Any:
        begun.set()
        time.sleep(0.3)
        return type(one).bind(one, **named)

    bound.variants[1] = SimpleNamespace(bind=slow)
    thread = threading.Thread(target=lambda: bound(*given.values()))
    thread.start()
    begun.wait(30)
    child = os.fork()
    if not child:
        os._exit(0 if bound._lock.acquire(timeout=5) else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


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
        ({first: given[first][0]}, "must have 2 dimensions, not 1"),
        ({first: given[first].tolist()}, "not list"),
        ({first: np.zeros((41, 9), np.float32)}, "1 <= M <= 40|must have shape"),
        ({first: np.zeros((0, 9), np.float32)}, "1 <= M <= 40|must have shape"),
        ({first: given[first].astype(ml_dtypes.bfloat16)}, "must be float32"),
    ]:
        with pytest.raises(IsamError, match=says):
            fn(*{**given, **bad}.values(), C=out)
        assert (out == 7).all()
    shared = np.broadcast_to(np.float32(1), (23, 20))
    longer = np.zeros((24, 20), np.float32)
    for wrong, says in [(out[:-1], "must have shape"), (longer, "must have shape"), (None, "not NoneType"),
                        (out.astype(np.float64), "must be float32"), (shared, "read-only|share memory")]:  # fmt: skip
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
    alive = weakref.ref(fn._spans)
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
    for other in ({"likely": {7: 3.0}}, {"variants": 2}, {"most": 19}):
        with pytest.raises(TypeError):  # these are asked for
            isam.compile_range(PRODUCT, **{"size": "M", "least": 1, "most": 20, "sizes": SIZES, "variants": 3,
                                           "cache": tmp_path, **other})  # fmt: skip
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
    ({"most": 1 << 17}, "is no range of 1 to 65536 rows"),
    ({"least": 1.5}, "two whole numbers"),
    ({"likely": [3]}, "two whole numbers"),
    ({"likely": {3: "often"}}, "two whole numbers"),
    ({"variants": None}, "two whole numbers"),
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


KEPT = ("[]", "[[0, 1.0], [1, 1.0]]", "[[1, -1.0]]", "[[2, 1.0]]", "[[1, 1.0], [99, 1.0]]", "7", "x")


@pytest.mark.parametrize("times", KEPT)
def test_what_is_kept_and_no_choice_counts_as_absent(
    tmp_path: Any, times: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Artifact.text
    monkeypatch.setattr(Artifact, "text", lambda self, part: times if part == choice.VARIANTS else real(self, part))
    first = isam.compile_range(PRODUCT, "M", 1, 20, sizes=SIZES, variants=2, cache=tmp_path)
    again = isam.compile_range(PRODUCT, "M", 1, 20, sizes=SIZES, variants=2, cache=tmp_path)
    assert list(again.variants) == list(first.variants)


def test_sizes_without_a_schedule_are_no_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    real = choice.scheduled

    def refusing(job: Any) -> None:
        if job.sizes["M"] in (4, 8) or (job.sizes["M"] == 1 and first):
            raise Refused("infeasible", job.original, "no room")
        real(job)

    first = False
    monkeypatch.setattr(choice, "scheduled", refusing)
    fn = isam.compile_range(PRODUCT, "M", 1, 8, sizes=SIZES, variants=8, cache=False)
    assert 1 in fn.variants
    assert not {4, 8} & set(fn.variants)
    first = True
    with pytest.raises(Refused):
        isam.compile_range(PRODUCT, "M", 1, 8, sizes=SIZES, cache=False)


def test_another_rank_is_told_before_any_size(product: RangedFunction) -> None:
    arrays = list(random_arrays(PRODUCT, {**SIZES, "M": 3}, 1).values())
    with pytest.raises(IsamError) as e:
        product(arrays[0][0], *arrays[1:])
    assert [d.code for d in e.value.diagnostics] == ["call-shape"]


@pytest.mark.parametrize("rows", ["3", None, 2.0])
def test_rows_are_a_whole_number(product: RangedFunction, rows: Any) -> None:
    for asked in (product.parts, product.spans):
        with pytest.raises(IsamError, match=r"range-limits.*whole number"):
            asked(rows)
    assert product.parts(np.int64(3)) == product.parts(3)


@pytest.mark.parametrize("weight", [float("inf"), float("nan"), -1.0, 0.0, 1e13])
def test_weights_of_sizes_are_numbers_above_nothing(weight: float) -> None:
    with pytest.raises(IsamError, match="range-limits"):
        isam.compile_range(PRODUCT, "M", 1, 8, sizes=SIZES, likely={3: weight}, cache=False)


def test_it_says_what_it_is_and_is_not_pickled(product: RangedFunction) -> None:
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
