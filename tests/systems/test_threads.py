"""Kernels on several cores: right, proved, and on as many cores as they may."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np
import pytest

import isam
from benchmarks.kernels import sources
from isam.codegen.llvm import to_ir
from isam.compiler.function import Function
from isam.compiler.stages import new_job, run_stages
from isam.diagnostics import IsamError
from isam.proof.races import check_races
from isam.schedule.steps import steps
from isam.schedule.tree import Issue, Loop, Node, Seq, distinct
from isam.scheduler.plans import shared_home
from isam.scheduler.plans.dealing import dealings
from tests import campaign_native
from tests.native_cases import case
from tests.unit.test_partial import SOFTMAX

PRODUCT = sources()["product_bound"]


def dealt(fn) -> list[Loop]:
    return [n for n in distinct(fn.schedule.call) if isinstance(n, Loop) and n.deal is not None]


@cache
def made(m: int, n: int, k: int, threads: int) -> Function:
    return isam.compile(PRODUCT, sizes={"M": m, "N": n, "K": k}, threads=threads, cache=False)


def product(m: int, n: int, k: int, threads: int, bound: bool = False) -> list[Loop]:
    """Compiled and called; the dealt loops."""
    rng = np.random.default_rng(m + n + k + threads)
    a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    fn = made(m, n, k, threads)
    got = fn.bind(B=b)(a) if bound else fn(a, b)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, rtol=1e-4)
    return dealt(fn)


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(256, 256, 256), (100, 300, 70), (1, 2000, 500), (333, 35, 200), (37, 1000, 9)]
)
def test_products_of_all_shapes(m: int, n: int, k: int, bound: bool) -> None:
    loops = product(m, n, k, 2, bound)
    assert loops
    assert sum(n.trip or 0 for n in loops) == 2


@pytest.mark.parametrize("threads", [3, 4, 6, 9])
def test_uneven_parts_run_side_by_side(threads: int) -> None:
    a, b = (np.random.default_rng(n).random((k, 131), np.float32) for n, k in ((1, 170), (2, 131)))
    fn = isam.compile(PRODUCT, sizes={"M": 170, "N": 131, "K": 131}, threads=threads, cache=False)
    np.testing.assert_allclose(fn(a, b), a.astype(np.float64) @ b, rtol=1e-4)
    loops = dealt(fn)
    assert len({n.step for n in loops}) > 1
    assert sorted(n.deal.first + n.deal.stride * t for n in loops for t in range(n.trip)) == list(range(threads))
    assert to_ir(fn.schedule)[0].count("call void @isam.fork") == 1  # loops beside each other are one region


@pytest.mark.parametrize("threads", [4, 6, 9])
def test_parts_of_two_axes(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_home, "MEETING", -1e12)
    monkeypatch.setattr(shared_home, "dealings", lambda *a: [d for d in dealings(*a) if len(d) == 2])
    rng = np.random.default_rng(threads)
    a, b = rng.random((170, 3), np.float32), rng.random((3, 150), np.float32)
    fn = isam.compile(PRODUCT, sizes={"M": 170, "N": 150, "K": 3}, threads=threads, cache=False)
    np.testing.assert_allclose(fn(a, b), a.astype(np.float64) @ b, rtol=1e-4)
    assert any(n.deal.stride > 1 for n in dealt(fn))
    assert check_races(fn.schedule, {}, 1) == []


@pytest.mark.parametrize(("m", "n", "k", "threads"), [(40, 704, 7, 5), (17, 700, 32, 3), (40, 700, 7, 3)])
def test_parts_that_lay_panels_out_for_themselves(m: int, n: int, k: int, threads: int) -> None:
    """The last part is shorter than others, and no multiple of a panel."""
    rng = np.random.default_rng(n)
    a, b = rng.random((m, k), np.float32), rng.random((n, k), np.float32)
    product = isam.einsum("mk,nk->mn", sizes={"M": m, "N": n, "K": k})
    fn = isam.compile(product, on="host", threads=threads, cache=False)
    np.testing.assert_allclose(fn(a, b), a.astype(np.float64) @ b.T, rtol=1e-4)


WIDER = """kernel k(M, N, K)
  permits reassociate, contract
  in    A: f32[M, K]
  const B: f32[K, 2 * N + 3]
  out   C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j + 3]
"""


@pytest.mark.parametrize(("m", "n", "k", "threads"), [(1, 1000, 256, 2), (6, 700, 64, 3), (2, 2003, 64, 4)])
def test_parts_read_some_of_the_panels(m: int, n: int, k: int, threads: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random((m, k), np.float32), rng.random((k, 2 * n + 3), np.float32)
    fn = isam.compile(isam.parse(WIDER), sizes={"M": m, "N": n, "K": k}, threads=threads, cache=False, check=True)
    np.testing.assert_allclose(fn.bind(B=b)(a), a.astype(np.float64) @ b[:, 3 : n + 3], rtol=1e-4)


@pytest.mark.parametrize(("m", "n", "k"), [(2, 700, 64), (3, 1000, 128), (8, 331, 70), (1, 1300, 64), (6, 5124, 64)])
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_take_panels_whole(m: int, n: int, k: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are laid out in panels as wide as a register block, for all cores at once."""
    monkeypatch.setattr(shared_home, "MEETING", -1e12)
    monkeypatch.setattr(shared_home, "dealings", lambda *a: [d for d in dealings(*a) if [x for x, *_ in d] == ["j"]])
    rng = np.random.default_rng(n)
    a, b = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    fn = isam.compile(PRODUCT, sizes={"M": m, "N": n, "K": k}, threads=threads, cache=False, check=True)
    np.testing.assert_allclose(fn.bind(B=b)(a), a.astype(np.float64) @ b, rtol=1e-4)
    assert sum(loop.trip or 0 for loop in dealt(fn)) == threads


BATCHED = """kernel batched(B, M, N, K)
  permits contract, reassociate
  in  A: f32[B, M, K]
  in  W: f32[B, K, N]
  out C: f32[B, M, N]
  forall b < B, i < M, j < N
    C[b, i, j] = 0
  forall b < B, i < M, j < N, k < K
    C[b, i, j] += A[b, i, k] * W[b, k, j]
"""


def test_what_is_laid_out_anew_lies_with_each_core() -> None:
    fn = isam.compile(BATCHED, sizes={"B": 8, "M": 256, "N": 256, "K": 256}, threads=2, cache=False)
    own = [s for s in fn.schedule.workspace if s.memory == "own"]
    assert own
    assert fn.artifact.workspace >= 2 * sum(s.bytes for s in own)


def test_what_is_too_short_stays_on_one_core() -> None:
    assert product(8, 16, 4, 2) == []


def test_one_thread_is_what_no_thread_was_asked_for() -> None:
    sizes = {"M": 256, "N": 256, "K": 64}
    one, two = (isam.compile(PRODUCT, sizes=sizes, threads=t, cache=False) for t in (1, None))
    assert str(one.schedule) == str(two.schedule)
    assert not dealt(one)


def test_rows_of_a_softmax_are_dealt() -> None:
    x = np.random.default_rng(1).standard_normal((300, 1000), np.float32)
    fn = isam.compile(SOFTMAX, sizes={"M": 300, "N": 1000}, threads=2, cache=False)
    e = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(fn(x), e / e.sum(1, keepdims=True), rtol=1e-5)
    assert dealt(fn)


@pytest.mark.parametrize("threads", [2, 5])
def test_random_kernels_between_guard_pages(threads: int) -> None:
    found = {s: campaign_native.one(s, "host", check=True, threads=threads) for s in range(6)}
    assert {s: how for s, (kind, how) in found.items() if kind == "wrong"} == {}


TURNED = """kernel turned(N)
  in  x: f32[N, N]
  out y: f32[N, N]
  out z: f32[N, N]
  forall i < N, j < N
    y[i, j] = x[i, j] * 2
  forall i < N, j < N
    z[i, j] = y[j, i] + 1
"""


def without_waits(node: Node) -> Node:
    if isinstance(node, Issue):
        return replace(node, after=())
    if isinstance(node, Seq):
        return Seq(tuple(map(without_waits, node.children)))
    return replace(node, body=without_waits(node.body), enter=without_waits(node.enter), exit=without_waits(node.exit))


def test_cores_wait_for_what_others_have_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a matrix are written side by side, then its columns are read: a barrier lies between."""
    monkeypatch.setattr(shared_home, "MEETING", -1e12)
    fn = isam.compile(TURNED, sizes={"N": 64}, threads=2, cache=False)
    x = np.random.default_rng(5).random((64, 64), np.float32)
    for _ in range(100):
        np.testing.assert_array_equal(fn(x)[1], 2 * x.T + 1)
    assert len(dealt(fn)) >= 2
    assert check_races(fn.schedule) == []
    assert check_races(replace(fn.schedule, call=without_waits(fn.schedule.call)))
    assert to_ir(fn.schedule)[0].count("call void @isam.fork") == 2


@pytest.mark.parametrize("threads", [2, 3, 6])
def test_waits_of_random_kernels_are_enough(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_home, "MEETING", -1e12)
    system, judged = isam.load_system("host"), 0
    for seed in range(8):
        c = case(seed)
        kernel = c.kernel.with_sizes({s.name: c.sizes[s.name] for s in c.kernel.syms})
        job = run_stages(new_job(kernel, system, {}, None, threads=threads, check=False), "schedule")
        if steps(job.schedule.call, {}, 3000) <= 3000:
            assert check_races(job.schedule, {}, 1) == []
            judged += 1
    assert judged >= 6


def test_a_saved_artifact_has_its_threads(tmp_path) -> None:
    fn = isam.compile(PRODUCT, sizes={"M": 200, "N": 200, "K": 200}, threads=2, cache=False)
    fn.save(tmp_path / "p.isam")
    a = np.random.default_rng(3).random((200, 200), np.float32)
    np.testing.assert_array_equal(isam.load(tmp_path / "p.isam")(a, a), fn(a, a))
    assert any(name.startswith("isam:fork/") for _, name in fn.artifact.externals)


def test_machines_without_cores_refuse_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"M": 8, "N": 8, "K": 8}
    with pytest.raises(IsamError, match="threads stand for nothing on 'toy'"):
        isam.compile(PRODUCT, on="toy", sizes=sizes, threads=2)
    monkeypatch.setenv("ISAM_THREADS", "2")
    isam.compile(PRODUCT, on="toy", sizes=sizes)
    fn = isam.compile(PRODUCT, sizes={"M": 256, "N": 256, "K": 64}, cache=False)
    with mock.patch.object(shared_home, "MEETING", 0.0):
        assert dealt(fn)
