"""The case study's machine: its public facts follow from the description, and its kernels run on one cluster."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.schedule.tree import Issue, distinct
from isam.system.check import check
from isam.system.load import load_system
from tests.corpus import CASES
from tests.pipeline import compiled, judge

MACHINE = load_system("casestudy")
PRODUCT = """kernel product(M, N, K)
  in  A: {T}[M, K]
  in  B: {T}[{sB}]
  in  b: {W}[N]
  out C: {W}[M, N]
  forall i < M, j < N
    t[i, j] = 0
  forall i < M, j < N, k < K
    t[i, j] += {W}(A[i, k]) * {W}(B[{xB}])
  forall i < M, j < N
    C[i, j] = max(t[i, j] + b[j], 0)
"""


def product(types: tuple[str, str] = ("bf16", "f32"), transposed: bool = False) -> Kernel:
    b = ("N, K", "j, k") if transposed else ("K, N", "k, j")
    return parse(PRODUCT.format(T=types[0], W=types[1], sB=b[0], xB=b[1]))


def test_the_public_facts_follow() -> None:
    cluster = MACHINE.replicas["cluster"]
    matrix = [MACHINE.units[u] for u in MACHINE.clusters["pair"].units]
    assert {MACHINE.replica_of(u.name) for u in matrix} == {"cluster"}
    mma = MACHINE.instructions["mma_bf16"]
    operations = 2 * 32**3
    assert {s.hi for s in mma.syms} == {32}
    assert mma.cost.issue is not None
    peak = cluster.count * sum(u.clock * operations / mma.cost.issue for u in matrix)
    assert peak == pytest.approx(108.1e12, rel=1e-3)
    assert cluster.count * MACHINE.memories["sp"].capacity == 60 << 20
    assert MACHINE.memories["hbm"].capacity == 32 << 30
    assert MACHINE.links["hbm"].bandwidth == 1228.8e9
    assert check(MACHINE, bodies=True) == []
    assert MACHINE.assumed == ()


def test_every_node_but_main_memory_is_one_of_a_cluster_s() -> None:
    assert {n for n in (*MACHINE.memories, *MACHINE.units) if MACHINE.replica_of(n) is None} == {"hbm"}


@pytest.mark.parametrize(("kernel", "sizes"), [
    (product(), {"M": 70, "N": 96, "K": 64}),
    (product(), {"M": 1, "N": 33, "K": 31}),
    (product(transposed=True), {"M": 40, "N": 35, "K": 50}),
    (product(("i8", "i32")), {"M": 65, "N": 40, "K": 70}),
], ids=["tiles", "ragged", "transposed", "bytes"])  # fmt: skip
def test_products_with_bias_and_relu(kernel: Kernel, sizes: dict[str, int]) -> None:
    job = compiled(kernel, sizes, MACHINE, check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    steps = [n for n in distinct(job.schedule.call) if isinstance(n, Issue)]
    products = [n for n in steps if n.instruction.startswith("mma")]
    assert products
    for n in products:
        assert len({o.place.memory for o in n.operands}) == 3
    for n in steps:
        role = {b.name: b.role for b in MACHINE.instructions[n.instruction].body.arguments}
        read = [o.place.memory for o in n.operands if role[o.name] != "out" and o.place.memory not in ("hbm", "sp")]
        assert len(read) == len(set(read))


GRU = """kernel gru(T, B, X, H)
  in    x: bf16[T, B, X]
  const w: bf16[3, X, H]
  const u: bf16[3, H, H]
  const b: f32[3, H]
  inout h: f32[B, H]
  out   ys: f32[T, B, H]
  loop t < T
    forall i < B, j < H
      g[i, j] = bf16(h[i, j])
    forall i < B, j < H
      r[i, j] = b[0, j]
      z[i, j] = b[1, j]
      n[i, j] = b[2, j]
      m[i, j] = 0
    forall i < B, j < H, k < X
      r[i, j] += f32(x[t, i, k]) * f32(w[0, k, j])
    forall i < B, j < H, k < X
      z[i, j] += f32(x[t, i, k]) * f32(w[1, k, j])
    forall i < B, j < H, k < X
      n[i, j] += f32(x[t, i, k]) * f32(w[2, k, j])
    forall i < B, j < H, k < H
      r[i, j] += f32(g[i, k]) * f32(u[0, k, j])
    forall i < B, j < H, k < H
      z[i, j] += f32(g[i, k]) * f32(u[1, k, j])
    forall i < B, j < H, k < H
      m[i, j] += f32(g[i, k]) * f32(u[2, k, j])
    forall i < B, j < H
      a[i, j] = tanh(n[i, j] + sigmoid(r[i, j]) * m[i, j])
      h[i, j] = a[i, j] + sigmoid(z[i, j]) * (h[i, j] - a[i, j])
      ys[t, i, j] = h[i, j]
"""


@pytest.mark.parametrize("trip", [1, 3])
def test_a_gru_in_f32_with_products_in_bf16(trip: int) -> None:
    sizes = {"T": trip, "B": 5, "X": 40, "H": 64}
    kernel = parse(GRU)
    job = compiled(kernel, sizes, MACHINE, check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    used = {n.instruction for n in distinct(job.schedule.call) if isinstance(n, Issue)}
    assert {"mma_bf16", "v_sigmoid", "v_tanh"} <= used  # five rows: vector by vector is cheaper than by tiles


@pytest.mark.parametrize("name", ["softmax", "rnn", "gru_step", "lstm_step", "layer_norm", "gelu_tanh", "attention",
                                  "requantised_matmul", "conv2d_bf16", "matmul_i8"])  # fmt: skip
def test_kernels_of_networks(name: str) -> None:
    case = CASES[name]
    judge(case.load(), case.small[0], compiled(case.load(), case.small[0], MACHINE, check=True), seed=3)
