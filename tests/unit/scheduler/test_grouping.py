"""Which nests share loops: what stands aside, what goes along, and that nothing comes before what it needs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.kernels import sources
from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Refused
from isam.compiler.stages import new_job, run_stages
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.schedule.tree import Tile
from isam.scheduler.grouping import Grouping
from isam.scheduler.homes import Fold, Homes
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.plan import Group
from isam.scheduler.shared_loops import shareable
from tests.corpus import CASES
from tests.pipeline import compiled, judge, simulated
from tests.random_kernels import random_kernel
from tests.unit.test_partial import SOFTMAX


class Drawn(Greedy):
    """Fuses by the toss of a coin."""

    def __init__(self, seed: int, percent: int = 50):
        self.random, self.percent = random.Random(seed), percent

    def fuse(self, choice: Choice) -> Any:
        return self.random.randrange(100) < self.percent


def grouped(kernel: Any, sizes: dict[str, int], on: str, approach: Any) -> tuple[list[Any], list[list[Any]]]:
    """All nests in the order of their statements, and the groups."""
    job = run_stages(new_job(kernel, simulated(on), sizes, approach, check=False), "cover")
    assert job.cover is not None
    nests = sorted(nests_of(job.cover, simulated(on)), key=lambda n: n.number)
    exact = "reassociate" not in job.cover.kernel.permits
    made = Grouping(job.cover.kernel, nests, simulated(on), Trace(approach), exact).groups(nests)
    return nests, [list(g.nests) for g in made]


def names(groups: list[list[Any]]) -> list[list[str]]:
    return [[n.instruction.name for n in g] for g in groups]


@pytest.mark.parametrize("percent", [30, 60, 100])
@pytest.mark.parametrize("seed", range(25))
def test_every_nest_is_there_once_and_after_what_it_depends_on(seed, percent):
    kernel, sizes = random_kernel(seed)
    nests, groups = grouped(kernel, sizes, "toy", Drawn(seed, percent))
    order = [n.number for g in groups for n in g]
    assert sorted(order) == [n.number for n in nests]
    for k, q in enumerate(nests):
        for p in nests[:k]:
            if shareable(p, q) is not None:
                assert order.index(p.number) < order.index(q.number), (p.instruction.name, q.instruction.name)


class Cheapest(Greedy):
    """Takes each mapping on its own."""

    mapping = Greedy._cheapest


def test_first_values_of_other_lanes_go_before_and_everything_else_shares_the_rows():
    nests, groups = grouped(parse_kernel(SOFTMAX), {"M": 32, "N": 65}, "host-generic", Cheapest())
    assert [len(g) for g in groups] == [1, 1, len(nests) - 2]
    assert names(groups)[:2] == [["copy_s_f32"], ["copy_s_f32"]]
    assert groups[2][0].number < groups[1][0].number, "the second one was written after what it goes before"


def test_first_values_of_what_is_summed_row_by_row_are_mapped_row_by_row():
    """So everything shares the rows; a first value goes before the loop over columns that the sum shares, not in it."""
    _, groups = grouped(parse_kernel(SOFTMAX), {"M": 32, "N": 65}, "host-generic", Greedy())
    assert len(groups) == 1
    assert all("i" in n.extents and not (n.instruction.name.startswith("copy") and n.mapped) for n in groups[0])
    at = {n.instruction.name: k for k, n in enumerate(groups[0])}
    exp, total = groups[0][at["exp_v_f32"]], groups[0][at["sum_add_f32"]]
    assert exp.axes == total.axes, "the loop over columns goes on from one to the other"


ATTENTION = """kernel attention(M, N, D)
  in  Q: f32[M, D]
  in  K: f32[N, D]
  in  X: f32[N, D]
  out Y: f32[M, D]
  forall i < M, j < N
    p[i, j] = 0
  forall i < M, j < N, d < D
    p[i, j] += Q[i, d] * K[j, d]
  forall i < M, v < D
    Y[i, v] = 0
  forall i < M, v < D, j < N
    Y[i, v] += p[i, j] * X[j, v]
"""


@pytest.mark.parametrize(("rows", "together"), [(64, False), (512, True), (1024, True), (2048, False)])
def test_what_is_made_of_lanes_and_read_element_by_element_stays_near(rows, together):
    """512 x 512 numbers in between leave half of a cache: then the second product has loops of its own inside those
    over the rows, and what lies between is a block of rows; not where K and X alone take all of the cache."""
    sizes = {"M": rows, "N": rows, "D": 64}
    _, groups = grouped(parse_kernel(ATTENTION), sizes, "host-avx512", Greedy())
    assert len(groups) == (1 if together else 2)
    job = compiled(parse_kernel(ATTENTION), sizes, simulated("host-avx512"))
    assert job.schedule is not None
    size = next(s.bytes for s in job.schedule.workspace if s.name == "p")
    assert (size < 4 * rows * rows) == together


LAYER_NORM = """kernel layer_norm(M, N)
  in  X: f32[M, N]
  out Y: f32[M, N]
  permits reassociate, contract
  forall i < M
    m[i] = 0
  forall i < M, j < N
    m[i] += X[i, j]
  forall i < M, j < N
    c[i, j] = X[i, j] - m[i] * 0.001
  forall i < M
    v[i] = 0
  forall i < M, j < N
    v[i] += c[i, j] * c[i, j]
  forall i < M, j < N
    Y[i, j] = c[i, j] * rsqrt(v[i] * 0.001)
"""


@pytest.mark.parametrize(("rows", "kept"), [(64, 0), (1024, 8), (4096, 0)])
def test_temporaries_that_no_cache_holds_become_tiles(rows, kept):
    """Of 64 rows they are made again. 1024 x 768 numbers take three times as much as the last cache: what is computed
    for eight rows at a time shares loops with what goes row by row. Of 4096 rows, which no cache holds, they are made
    again, too."""
    job = compiled(parse_kernel(LAYER_NORM), {"M": rows, "N": 768}, simulated("host-avx512"))
    assert job.schedule is not None
    size = sum(s.bytes for s in job.schedule.workspace if s.name == "c")
    assert size == kept * 768 * 4


def test_rows_of_a_tile_that_would_share_few_sets_of_a_cache_lie_apart():
    """Sixteen rows of 2 KiB take a line more each; eight, as many as a set has room for, do not, nor do rows of other
    lengths, nor where there is no cache."""

    def strides(rows, length, on="host-avx512"):
        homes = Homes(parse_kernel(LAYER_NORM).with_sizes({"M": 64, "N": length}), simulated(on))
        start = (Affine.of("i0"), Affine())
        return homes.place(Tile("c", start, (1, 1), (1, 1)), Fold(((0, Affine.of("i0"), rows),))).strides

    assert strides(16, 512) == (2048 + 64, 4)
    assert strides(8, 512) == (2048, 4)
    assert strides(16, 500) == (2000, 4)
    assert strides(16, 512, "toy") == (2048, 4)


def test_a_sum_takes_its_first_value_along():
    """A product of what was scaled before: the first value of the sum stands between them."""
    _, groups = grouped(CASES["scaled_matmul"].load(), CASES["scaled_matmul"].small[0], "toy", Greedy())
    fills = [g for g in names(groups) if any("fill" in n or "zero" in n for n in g)]
    assert any(len(g) > 1 for g in fills)


def test_a_convolution_keeps_its_own_loops_beside_the_padding():
    """Only the batch could be shared with the padding, every loop with the first value."""
    case = CASES["padded_conv2d_nhwc_temp"]
    _, groups = grouped(case.load(), case.small[0], "toy", Greedy())
    assert names(groups)[-1] == ["m_fill_f32", "mm4_f32"]


def test_the_approach_is_told_that_it_goes_past_others():
    seen: list[bool] = []

    class Asked(Greedy):
        def fuse(self, choice: Choice) -> Any:
            seen.append(choice.context["past"])
            return super().fuse(choice)

    grouped(parse_kernel(SOFTMAX), {"M": 32, "N": 65}, "host-generic", Asked())
    assert True in seen
    assert False in seen


def test_one_who_never_fuses_gets_every_nest_alone_in_the_order_of_the_statements():
    nests, groups = grouped(parse_kernel(SOFTMAX), {"M": 32, "N": 65}, "host-generic", Drawn(0, 0))
    assert [[n.number for n in g] for g in groups] == [[n.number] for n in nests]


def chains(seed: int) -> tuple[Any, dict[str, int]]:
    """Many small statements on squares, several of them independent, with shifts, diagonals and rows."""
    r = random.Random(seed)
    names = [f"t{k}" for k in range(r.randint(2, 4))]
    lines = [f"  forall i < N, j < N\n    {t}[i, j] = A[i, j] * B[i, j]" for t in names]
    for _ in range(r.randint(4, 8)):
        into = r.choice(names)
        shifted, few = r.random() < 0.4, ", j < N"
        at = ["i, j", "i, j", "i + 1, j" if shifted else "j, i", "i, 0" if shifted else "i, i"]
        read = [x for x in ("A", "B", *names) if x != into]
        terms = [f"{r.choice(read)}[{r.choice(at)}]" for _ in range(2)]
        sign = r.choice(("=", "=", "+=", "max="))
        ends = "N - 1" if shifted else "N"
        lines.append(f"  forall i < {ends}{few}\n    {into}[i, j] {sign} {r.choice((' + ', ' * ')).join(terms)}")
    outs = [f"  forall i < N, j < N\n    Y{t}[i, j] = {t}[i, j] + {r.choice(names)}[i, i]" for t in names]
    head = ["kernel chains(N)", "  in A: f32[N, N]", "  in B: f32[N, N]", *(f"  out Y{t}: f32[N, N]" for t in names),
            *(f"  temp {t}: f32[N, N]" for t in names)]  # fmt: skip
    head += ["  permits reassociate, contract"] if r.random() < 0.6 else []
    return parse_kernel("\n".join([*head, *lines, *outs]) + "\n"), {"N": r.choice((8, 17))}


PAST = {
    "what is taken along is read by what is not": """kernel k(N)
  in  A: f32[N]
  in  B: f32[N]
  out Y: f32[N]
  out Q: f32[N]
  forall i < N
    T[i] = A[i] + A[i]
  forall i < N
    S[i] = B[i] + B[i]
  forall i < N
    Q[i] = B[i] * A[i]
  forall i < N - 1
    Q[i] = S[i + 1] * S[i + 1]
  forall i < N
    Y[i] = T[i] + S[i]
""",
    "a diagonal of what is taken along": """kernel k(N, M=16)
  in  A: f32[N, M]
  in  B: f32[N, N, M]
  out Y: f32[N, M]
  forall i < N, v < M
    T[i, v] = A[i, v] + A[i, v]
  forall i < N, j < N, v < M
    P[i, j, v] = B[i, j, v] + B[i, j, v]
  forall k < N, v < M
    Y[k, v] = T[k, v] + P[k, k, v]
""",
    "two that depend on each other": """kernel k(N)
  in  A: f32[N]
  in  B: f32[N]
  out Y: f32[N]
  inout S: f32[N + 1]
  forall i < N
    Y[i] = A[i] + A[i]
  forall i < N
    S[i] = B[i] + B[i]
  forall i < N
    R[i] = S[i + 1] * S[i + 1]
  forall i < N
    Y[i] += R[i] * S[i]
""",
    "rows and columns: each of the two lacks a loop of the other": """kernel k(N, M=16)
  in  A: f32[M]
  in  B: f32[N]
  out Y: f32[M, N]
  permits exact
  forall i < M, j < N
    Y[i, j] = 1
  forall j < N
    U[j] = B[j] + B[j]
  forall i < M
    V[i] = A[i] + A[i]
  forall i < M, j < N
    Y[i, j] += U[j] * V[i]
""",
}
PAST["one row and columns"] = PAST["rows and columns: each of the two lacks a loop of the other"].replace("M=16", "M=1")


@pytest.mark.parametrize("on", ["toy", "host-generic"])
@pytest.mark.parametrize("text", PAST.values(), ids=PAST.keys())
@pytest.mark.parametrize("approach", [Greedy(), Drawn(0, 100)], ids=["greedy", "always"])
def test_what_goes_past_others_is_right_and_proved(text, on, approach):
    for n in (8, 65):
        kernel = parse_kernel(text)
        judge(kernel, {"N": n}, compiled(kernel, {"N": n}, simulated(on), approach, check=True))


@pytest.mark.parametrize(("seed", "on"), list(enumerate(["toy", "host-generic"] * 5)))
def test_chains_with_shifts_and_diagonals_are_right_and_proved(seed, on):
    """By the toss of a coin loops are shared over diagonals whose order is right, but which the proof cannot show."""
    kernel, sizes = chains(seed)
    judge(kernel, sizes, compiled(kernel, sizes, simulated(on), check=True), seed)
    judge(kernel, sizes, compiled(kernel, sizes, simulated(on), Drawn(seed, 70)), seed)


@pytest.mark.parametrize("on", ["toy", "host-generic", "tests/machines/crowd.yaml"])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_fused_by_the_toss_of_a_coin_is_right_and_proved(seed, on):
    kernel, sizes = random_kernel(1000 + seed)
    try:
        job = compiled(kernel, sizes, simulated(on), Drawn(seed, 80), check=True)
    except Refused:
        pytest.skip("the machine cannot")
    judge(kernel, sizes, job, seed)


class Seen(Greedy):
    """Keeps the groups that were planned."""

    def __init__(self):
        self.groups = list[Group]()

    def tile(self, choice: Choice) -> Any:
        self.groups.append(choice.context["_group"])
        return super().tile(choice)


@pytest.mark.parametrize(("steps", "sums"), [(62, True), (56, True), (40, False)])
def test_a_sum_with_hardly_less_work_than_what_goes_through_elements_is_planned_for(steps, sums):
    """Of rows of 1000 elements 63 calls take all, and 62 those in lanes that are summed apart from the rest."""
    approach = Seen()
    compiled(sources()["softmax"], {"M": 128, "N": 1000}, simulated("host-avx512"), approach)
    def in_lanes(g: Group) -> bool:
        return any(e.const == 62 for n in g.nests if n.reduced for e in n.extents.values())

    group = next(filter(in_lanes, approach.groups))
    assert not max(group.nests, key=lambda n: n.work()).reduced

    def shorter(n: Nest) -> Nest:
        return replace(n, extents={a: Affine((), steps) if e.const == 62 else e for a, e in n.extents.items()})

    nests = tuple(shorter(n) if n.reduced else n for n in group.nests)
    assert bool(replace(group, nests=nests).main.reduced) is sums


ROWS = """kernel rows(M, N)
  in  X: f32[M, N]
  in  G: f32[M, N]
  in  m: f32[M]
  out D: f32[M, N]
  forall i < M
    p[i] = 0
    q[i] = 0
  forall i < M, j < N
    p[i] += G[i, j]
    q[i] += G[i, j] * X[i, j]
  forall i < M, j < N
    D[i, j] = G[i, j] - p[i] - (X[i, j] - m[i]) * q[i]
"""
LATER = """kernel later(M, N)
  in  X: f32[M, N]
  in  m: f32[M]
  out D: f32[M, N]
  forall i < M
    v[i] = 0
  forall i < M, j < N
    v[i] += X[i, j]
  forall i < M
    r[i] = rsqrt(v[i])
  forall i < M, j < N
    D[i, j] = (X[i, j] - m[i]) * r[i]
"""


def test_a_chain_that_goes_aside_comes_into_the_loops_of_who_reads_its_end():
    """The difference of G and p stands in the loops of p's sum, where the product with q, three nests, comes too."""
    _, groups = grouped(parse_kernel(ROWS), {"M": 32, "N": 64}, "host-avx512", Greedy())
    last = next(g for g in groups if any(u.buffer == "D" for n in g for u in n.uses))
    assert {"mul_vs_f32", "sub_vs_f32", "sub_vv_f32"} <= {n.instruction.name for n in last}
    kept = {u.buffer for g in groups for n in g for u in n.uses if g is not last and u.writes}
    assert not any(len(u.index) > 1 for n in last for u in n.uses if u.buffer in kept)


def test_what_is_read_after_groups_behind_is_made_there():
    """What is made of X beside its sum would be kept while roots are taken, rows in lanes; X is there anyway."""
    _, groups = grouped(parse_kernel(LATER), {"M": 32, "N": 64}, "host-avx512", Greedy())
    assert [n.instruction.name for n in groups[-1]] == ["sub_vs_f32", "mul_vs_f32"]


ASIDE = """kernel aside(R, C)
  in X: i64[R, C]
  in Y: i64[R, C]
  temp t1: i64[R, 3, C]
  out O: i64[R, C]
  forall i < R, j < C
    t1[i, 2, j] = Y[i, j]
    t1[i, 0, j] = t1[i, 2, j]
    t2[i, j] = t1[i, 2, j]
  forall i < R, j < C
    t5[i, j] = Y[i, j] - X[i, j]
  forall i < R
    t8[i] = 0
  forall i < R, j < C
    t8[i] += t5[i, j]
  forall i < R, j < C
    O[i, j] = t2[i, j] + t5[i, j] + t8[i]
"""
AROUND = """kernel around(R, Z)
  in m: i32[R]
  in b: i32[R]
  in e: i32[Z]
  inout S: i32[R]
  out y: i32[R]
  forall i < R
    t[i] = m[i] * 2
  loop z < Z
    forall i < R
      S[i] += e[z]
  forall i < R
    y[i] = b[i]
  forall i < R
    y[i] += t[i]
"""


def test_what_stands_aside_of_something_taken_along_goes_before_the_group_too():
    """A group that needs the differences stayed aside of where they had gone: the next nest put it before that."""
    kernel, sizes = parse_kernel(ASIDE), {"R": 3, "C": 3}
    judge(kernel, sizes, compiled(kernel, sizes, simulated("host-avx2"), check=True))


def test_a_nest_whose_statements_stand_around_a_loop_comes_after_what_it_needs():
    """The product before the loop and the sum behind it are one instruction, which has to find what y began with."""
    kernel, sizes = parse_kernel(AROUND), {"R": 16, "Z": 3}
    judge(kernel, sizes, compiled(kernel, sizes, simulated("host-avx512"), check=True))


SCALED = """kernel scaled(M, N, K)
  in  a: f32[M, K]
  in  b: f32[K, N]
  in  s: f32
  inout y: f32[M, N]
  forall i < M, j < N, k < K
    y[i, j] += s[] * a[i, k] * b[k, j]
"""


@pytest.mark.parametrize("columns", [256, 64, 16])
def test_a_factor_is_made_ahead_of_its_product(columns: int) -> None:
    """In the product's loops vectors along the sum would be as short as its blocks, and each element taken from them
    waited for: twice the time. (Its products, 64 MB of them, take no room: each is added up where it is made.)"""
    kernel, sizes = parse_kernel(SCALED), {"M": 256, "N": columns, "K": 256}
    _, groups = grouped(kernel, sizes, "host-avx512", Greedy())
    assert not any({"mul_vs_f32", "fma_sv_f32"} <= {n.instruction.name for n in g} for g in groups)
    small = {"M": 48, "N": columns, "K": 64}
    judge(kernel, small, compiled(kernel, small, simulated("host-avx512")), 3)
