"""What becomes of a block's sum, between the steps of the next one's: where it is, that each step and each piece is
there once and in its order, and that nothing else is touched."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from typing import Any

import pytest

from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import CHAINED, STEPS, Greedy
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, children, distinct, leaves
from isam.scheduler.pipelining import _cut, _part, _Pipelining, with_pipelining
from isam.system.load import load_system
from tests.pipeline import compiled, judge, simulated

HEAD = """
kernel f({sizes})
  in    A: bf16[{a}]
  const B: bf16[{b}]
  const q: f32[N]
  out   C: {out}[{c}]
  temp  S: f32[{c}]
  permits contract, reassociate, flush
"""
PRODUCT = (
    HEAD.replace("{sizes}", "M, N, K").replace("{a}", "M, K").replace("{b}", "K, N").replace("{c}", "M, N")
    + """
  forall i < M, j < N
    S[i, j] = 0
  forall i < M, j < N, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < N
    C[i, j] = {what}
"""
)
CONVOLUTION = HEAD.replace("{sizes}", "H, W, N, K, R").replace("{a}", "H + R - 1, W + R - 1, K").replace(
    "{b}", "R, R, K, N").replace("{c}", "H, W, N") + """
  forall h < H, v < W, j < N
    S[h, v, j] = 0
  forall h < H, v < W, j < N, r < R, s < R, k < K
    S[h, v, j] += f32(A[h + r, v + s, k]) * f32(B[r, s, k, j])
  forall h < H, v < W, j < N
    C[h, v, j] = {what}
"""  # fmt: skip
ROUNDED, CLIPPED, SHIFTED = "bf16({S})", "bf16(min(max({S} + q[j], 0), 6))", "max({S} + q[j], 0)"


def kernel(text: str, what: str = ROUNDED) -> Kernel:
    place = "S[i, j]" if "i < M" in text else "S[h, v, j]"
    out = "bf16" if what.startswith("bf16") else "f32"
    return parse_kernel(text.replace("{out}", out).replace("{what}", what.replace("{S}", place)))


class Told(Greedy):
    """Greedy, which weaves as it is told, and keeps what it was asked."""

    def __init__(self, said: int | None = None):
        self.said, self.asked = said, list[Choice]()

    def pipeline(self, choice: Choice) -> Any:
        self.asked.append(choice)
        return super().pipeline(choice) if self.said is None else choice.options[self.said]


def made(k: Kernel, sizes: dict[str, int], approach: Greedy | None = None) -> Schedule:
    """On a machine with tiles, with its proof."""
    s = compiled(k, sizes, simulated("sapphire-rapids"), approach, check=True).schedule
    assert s is not None
    return s


@cache
def square() -> tuple[Schedule, tuple[Choice, ...]]:
    told = Told()
    return made(kernel(PRODUCT), {"M": 96, "N": 512, "K": 256}, told), tuple(told.asked)


def instructions(node: Node) -> set[str]:
    return {n.instruction for n in distinct(node) if isinstance(n, Issue)}


def woven(schedule: Schedule) -> list[Loop]:
    """Innermost loops over steps or groups of them that have pieces between."""
    found = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
    return [n for n in found if {"tile_dot2_bf16", "round_v_f32_bf16"} <= instructions(n.body)
            and "tile_zero_f32" not in instructions(n.body)]  # fmt: skip


# -- where ------------------------------------------------------------------------------------------------------------
def test_a_block_is_rounded_between_the_steps_of_the_next() -> None:
    schedule, _ = square()
    assert woven(schedule)
    loop = next(n for n in distinct(schedule.call) if isinstance(n, Loop) and n.first is not None)
    assert "round_v_f32_bf16" not in instructions(loop.first or Seq()), "nothing before the first"
    rounds = [n for n in distinct(loop.body) if isinstance(n, Issue) and n.instruction == "round_v_f32_bf16"]
    rows = [o.tile.start[-1] for n in rounds for o in n.operands]
    assert rows
    assert {(r.coefficient(loop.var), r.const < 0) for r in rows} <= {(1, True), (1, False)}
    assert min(r.const for r in rows) == -loop.step, "of the block before"
    assert [*instructions(Seq(tuple(leaves(loop.body)[-1:])))] == ["tilestore_f32"], "put down when all steps are done"


def test_as_it_was_unless_the_approach_wants_it() -> None:
    told = Told(0)
    assert not woven(made(kernel(PRODUCT), {"M": 96, "N": 512, "K": 256}, told))
    assert {c.context["blocks"] for c in told.asked} == {1}, "loops around are not asked about"


def test_greedy_weaves_what_counts() -> None:
    def says(**context: int) -> Any:
        usual = {"loop": "j", "iterations": 4, "blocks": 1, "steps": 8, "pieces": 8}
        return Greedy().pipeline(Choice("pipeline", ("no", "yes"), usual | context))

    assert says() == "yes"
    assert [says(steps=STEPS * 8 + n) for n in (0, 1)] == ["yes", "no"]
    assert [says(steps=0, pieces=0, blocks=n) for n in (CHAINED - 1, CHAINED)] == ["yes", "no"]


def test_machines_without_names_for_cells_are_not_asked() -> None:
    told = Told(1)
    compiled(kernel(PRODUCT), {"M": 32, "N": 64, "K": 32}, simulated("host-avx512"), told)
    assert not told.asked


def test_machines_whose_units_run_by_themselves_are_not_asked() -> None:
    schedule, _ = square()
    told = Told(1)
    call = next(n for n in distinct(schedule.call) if isinstance(n, Issue))
    two = replace(schedule, call=Seq((schedule.call, replace(call, unit="another"))))
    assert with_pipelining(two, Trace(told)) is two
    assert not told.asked


def test_it_survives_being_written_and_read() -> None:
    schedule, _ = square()
    assert len(woven(from_json(to_json(schedule)))) == len(woven(schedule))


# -- what it computes -------------------------------------------------------------------------------------------------
SMALL = [
    (PRODUCT, ROUNDED, {"M": 32, "N": 96, "K": 64}),
    (PRODUCT, CLIPPED, {"M": 33, "N": 80, "K": 96}),
    (PRODUCT, SHIFTED, {"M": 28, "N": 64, "K": 160}),
    (PRODUCT, ROUNDED, {"M": 64, "N": 64, "K": 64}),
    (PRODUCT, CLIPPED, {"M": 70, "N": 100, "K": 90}),
    (CONVOLUTION, ROUNDED, {"H": 4, "W": 16, "N": 64, "K": 32, "R": 3}),
    (CONVOLUTION, CLIPPED, {"H": 3, "W": 24, "N": 64, "K": 32, "R": 2}),
    (CONVOLUTION, ROUNDED, {"H": 4, "W": 14, "N": 32, "K": 64, "R": 3}),
    (CONVOLUTION, SHIFTED, {"H": 2, "W": 40, "N": 64, "K": 32, "R": 3}),
]


@pytest.mark.parametrize(("text", "what", "sizes"), SMALL)
def test_every_judge_holds_it_right(text: str, what: str, sizes: dict[str, int]) -> None:
    k, told = kernel(text, what), Told(1)
    job = compiled(k, sizes, simulated("sapphire-rapids"), told, check=True)
    assert not job.unproved
    judge(k, sizes, job)


def random_case(seed: int) -> tuple[Kernel, dict[str, int]]:
    rng = random.Random(seed)
    what = rng.choice([ROUNDED, CLIPPED, SHIFTED])
    if rng.random() < 0.5:
        wide = rng.choice([64, 80, 96, 128])
        return kernel(PRODUCT, what), {"M": rng.randint(20, 90), "N": wide, "K": rng.randint(40, 200)}
    sizes = {"H": rng.randint(2, 6), "W": rng.randint(7, 36), "N": rng.choice([32, 64]), "R": rng.randint(1, 3)}
    return kernel(CONVOLUTION, what), sizes | {"K": rng.choice([24, 32, 48, 64])}


@pytest.mark.parametrize("seed", range(8))
def test_random_blocks(seed: int) -> None:
    k, sizes = random_case(seed)
    job = compiled(k, sizes, simulated("sapphire-rapids"), Told(1), check=True)
    assert not job.unproved
    judge(k, sizes, job)


def test_the_cases_are_worth_their_name() -> None:
    asked: list[Choice] = []
    for text, what, sizes in SMALL:
        told = Told(1)
        made(kernel(text, what), sizes, told)
        asked += told.asked
    blocks = [c.context for c in asked if c.context["steps"]]
    assert len(blocks) >= len(SMALL)
    assert any(c["steps"] % c["pieces"] and c["pieces"] % c["steps"] for c in blocks), "what does not come out even"
    assert any(c["blocks"] > 1 for c in (c.context for c in asked)), "loops around"


LAYERS = parse_kernel("""
kernel f(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, N]
  const D: bf16[N, N]
  out   C: bf16[M, N]
  temp  S: f32[M, N]
  temp  H: bf16[M, N]
  temp  T: f32[M, N]
  permits contract, reassociate, flush
  forall i < M, j < N
    S[i, j] = 0
  forall i < M, j < N, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < N
    H[i, j] = bf16(max(S[i, j], 0))
  forall i < M, j < N
    T[i, j] = 0
  forall i < M, j < N, k < N
    T[i, j] += f32(H[i, k]) * f32(D[k, j])
  forall i < M, j < N
    C[i, j] = bf16(T[i, j])
""")


@pytest.mark.parametrize("threads", [1, 2])
def test_layers_are_proved_for_any_number_of_threads(threads: int) -> None:
    told = Told(1)
    system = replace(load_system("sapphire-rapids").threaded(threads), backend="simulator")
    sizes = {"M": 256, "N": 128, "K": 64}
    job = compiled(LAYERS, sizes, system, told, check=True)
    assert not job.unproved
    assert job.schedule is not None
    dealt = any(isinstance(n, Loop) and n.deal is not None for n in distinct(job.schedule.call))
    assert dealt is (threads > 1)
    assert any(c.context["blocks"] > 1 for c in told.asked) is not dealt
    judge(LAYERS, sizes, job)


PAIRS = [("exp(S[i, j])", "min(S[i, j] + p[j], 1.5)"), ("max(S[i, j] + p[j], 0)", "exp(S[i, j])")]


def test_rows_that_a_loop_begins_with_come_after_pieces() -> None:
    """What a first product leaves, a second one has in tiles before its loop: found by a stranger."""
    k = parse_kernel("""
kernel f(T, M, P, R, K)
  in    A: bf16[M, K]
  const B: bf16[K, 32 + P]
  const D: bf16[R, 32, P]
  inout C: bf16[M, P]
  temp  S: f32[M, 32 + P]
  temp  X: bf16[M, 32 + P]
  temp  U: f32[M, P]
  permits contract, reassociate, flush
  loop t < T
    forall i < M, j < 32 + P
      S[i, j] = 0
    forall i < M, j < 32 + P, k < K
      S[i, j] += f32(A[i, k]) * f32(B[k, j])
    forall i < M, j < 32 + P
      X[i, j] = bf16(S[i, j])
    forall i < M, j < P
      U[i, j] = 0
    forall i < M, j < P, r < R, k < 32
      U[i, j] += f32(X[i, k + P]) * f32(D[r, k, j])
    forall i < M, j < P
      C[i, j] = bf16(U[i, j])
""")
    sizes = {"T": 3, "M": 32, "P": 64, "R": 4, "K": 64}
    told = Told(1)
    job = compiled(k, sizes, simulated("sapphire-rapids"), told, check=True)
    assert told.asked
    assert not job.unproved
    judge(k, sizes, job)


@pytest.mark.parametrize("what", PAIRS)
@pytest.mark.parametrize("rows", [70, 64])
def test_what_a_loop_over_pieces_begins_with_goes_with_them(what: tuple[str, str], rows: int) -> None:
    """Factors that its calls find in registers are those of its block, not of the next one."""
    k = parse_kernel(f"""
kernel f(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, N]
  const p: f32[N]
  out   C: f32[M, N]
  out   D: f32[M, N]
  temp  S: f32[M, N]
  permits contract, reassociate, flush
  forall i < M, j < N
    S[i, j] = 0
  forall i < M, j < N, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < N
    C[i, j] = {what[0]}
  forall i < M, j < N
    D[i, j] = {what[1]}
""")
    sizes, told = {"M": rows, "N": 64, "K": 64}, Told(1)
    job = compiled(k, sizes, simulated("sapphire-rapids"), told, check=True)
    assert not job.unproved
    judge(k, sizes, job)


# -- how it is cut ----------------------------------------------------------------------------------------------------
TRIPS = ([2], [5], [9], [32], [2, 2], [3, 3], [3, 3, 2], [7, 2], [2, 9])


@pytest.mark.parametrize(("trips", "pieces"), [*product(TRIPS, (2, 3, 7, 8, 16))])
def test_no_more_pieces_in_a_row_than_need_be(trips: list[int], pieces: int) -> None:
    depth, groups = _cut(trips, pieces)
    assert 1 <= depth <= len(trips)
    assert 1 <= groups <= trips[0]
    places = groups * prod(trips[1:depth])
    assert places <= pieces
    row = pieces // places + pieces % places
    assert all(pieces // n + pieces % n >= row for d in range(1, len(trips) + 1)
               for g in range(1, trips[0] + 1) if (n := g * prod(trips[1:d])) <= pieces)  # fmt: skip


def called(schedule: Schedule, name: str, var: str) -> Issue:
    """A call that stands at a value of a variable."""
    call = next(n for n in distinct(schedule.call) if isinstance(n, Issue) and n.nest is not None)
    return replace(call, instruction=name, operands=(), point=((var, Affine.of(var)),))


def run(node: Node, scope: dict[str, int]) -> Iterator[tuple[str, tuple[int, ...]]]:
    if isinstance(node, Issue):
        yield node.instruction, tuple(e.evaluate(scope) for _, e in node.point)
    elif isinstance(node, Loop):
        for v in node.values(scope):
            yield from run(node.body, {**scope, node.var: v})
    else:
        for c in children(node):
            yield from run(c, scope)


def counted(var: str, lo: Affine, trip: int, step: int, body: Node) -> Loop:
    return Loop(var, (Bound(lo),), (Bound(lo + step * trip),), step, body)


@pytest.mark.parametrize("seed", range(60))
def test_every_step_and_every_piece_once_and_in_order(seed: int) -> None:
    schedule, _ = square()
    rng = random.Random(seed)
    trips = [rng.randint(2, 6) for _ in range(rng.randint(1, 3))]
    axes = [f"a{n}" for n in range(len(trips))]
    point = tuple((a, Affine.of(a)) for a in axes)
    node: Node = replace(called(schedule, "step", "a0"), point=point)
    steps: list[Loop] = []
    for a, n in reversed([*zip(axes, trips, strict=True)]):
        node = counted(a, Affine.of("o") if rng.random() < 0.3 else Affine((), rng.randint(0, 5)), n,
                       rng.choice([1, 1, 1, 4]), node)  # fmt: skip
        steps.insert(0, node)
    pieces = counted("p", Affine.of("o"), rng.randint(2, 17), rng.choice([1, 4]), called(schedule, "piece", "p"))
    scope = {"o": 10 * seed}
    plain = [*run(Seq((steps[0], pieces)), scope)]
    between = [*_Pipelining(schedule, Trace(Greedy()))._between(steps, (pieces,))]
    out = [*run(Seq(tuple(between)), scope)]
    for kind in ("step", "piece"):
        assert [x for x in out if x[0] == kind] == [x for x in plain if x[0] == kind]
    first = next(n for n, x in enumerate(out) if x[0] == "piece")
    assert 0 < first < max(n for n, x in enumerate(out) if x[0] == "step") + 1, "behind a step"


@pytest.mark.parametrize("seed", range(10))
def test_a_part_of_a_loop_is_its_iterations(seed: int) -> None:
    rng = random.Random(seed)
    loop = counted("p", Affine.of("o", 2), rng.randint(2, 9), rng.choice([1, 3]), called(square()[0], "piece", "p"))
    n = loop.trip or 0
    size = rng.randint(1, n)
    at = rng.randint(0, n - size)
    assert [*run(_part(loop, Affine((), at), size), {"o": 7})] == [*run(loop, {"o": 7})][at : at + size]
