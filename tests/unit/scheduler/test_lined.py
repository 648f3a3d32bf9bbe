"""Rows that are brought to tiles: copied to whole lines, unless they lie so, and those of one step of a recurrence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Node, leaves
from tests.pipeline import compiled, judge, simulated
from tests.unit.scheduler.test_pipelining import PRODUCT, Told, kernel

ROUNDED = kernel(PRODUCT)
LAYERS = parse_kernel("""
kernel f(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, K]
  const D: bf16[K, N]
  out   C: f32[M, N]
  temp  S: f32[M, K]
  temp  H: bf16[M, K]
  permits contract, reassociate, flush
  forall i < M, j < K
    S[i, j] = 0
  forall i < M, j < K, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < K
    H[i, j] = bf16(max(S[i, j], 0))
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += f32(H[i, k]) * f32(D[k, j])
""")


@pytest.mark.parametrize(("terms", "copied"), [(64, False), (96, False), (80, True)])
def test_rows_of_a_temporary_are_copied_unless_they_are_whole_lines(terms: int, copied: bool) -> None:
    sizes = {"M": 64, "N": 512, "K": terms}
    job = compiled(LAYERS, sizes, simulated("sapphire-rapids"), None, check=True)
    assert job.schedule is not None
    slots = {s.name for s in job.schedule.workspace}
    assert any(n.startswith("H.") for n in slots) is copied
    judge(LAYERS, sizes, job)


def test_rows_of_a_step_are_those_of_the_step() -> None:
    """A product by tiles whose rows the recurrent loop counts: its axis has no block."""
    k = parse_kernel("""
kernel f(T, M, N, K)
  in    A: bf16[T, M, K]
  const B: bf16[K, N]
  out   h: bf16[T, M, N]
  temp  S: f32[M, N]
  permits contract, reassociate, flush
  loop t < T
    forall i < M, j < N
      S[i, j] = 0
    forall i < M, j < N, k < K
      S[i, j] += f32(A[t, i, k]) * f32(B[k, j])
    forall i < M, j < N
      h[t, i, j] = bf16(S[i, j])
""")
    sizes = {"T": 3, "M": 32, "N": 64, "K": 64}
    job = compiled(k, sizes, simulated("sapphire-rapids"), Told(1), check=True)
    assert not job.unproved
    judge(k, sizes, job)


def calls(node: Node, around: tuple[Loop, ...] = ()) -> Iterator[tuple[Issue, tuple[Loop, ...]]]:
    """Every call of a tree, with the loops around it."""
    if isinstance(node, Issue):
        yield node, around
    elif isinstance(node, Loop):
        for part in (node.enter, node.exit):
            yield from calls(part, around)
        for part in (node.body, *(n for n in (node.first, node.last) if n is not None)):
            yield from calls(part, (*around, node))
    else:
        for part in leaves(node):
            yield from calls(part, around)


@pytest.mark.parametrize(("columns", "terms", "by_step"), [(512, 128, True), (192, 128, False), (512, 80, True)])
def test_rows_are_copied_step_by_step_while_the_first_columns_are_worked_on(
    columns: int, terms: int, by_step: bool
) -> None:
    """The copy of a step goes on beside the tiles of the steps before, where rows are read by columns enough."""
    sizes = {"M": 64, "N": columns, "K": terms}
    job = compiled(ROUNDED, sizes, simulated("sapphire-rapids"), None, check=True)
    assert job.schedule is not None
    assert not job.unproved
    moves = [(c.operands[-1].place.base, loops) for c, loops in calls(job.schedule.call) if c.is_move]
    to_copy = [loops for base, loops in moves if base.startswith("A.")]
    steps = [any(loop.axis == "k_o" for loop in loops) for loops in to_copy]
    assert any(steps) is by_step  # of what is left over there may be one step
    assert bool(to_copy) is (columns == 512)
    for loops in to_copy if by_step else ():
        assert not any(loop.axis == "j" for loop in loops)  # other columns find it there
    judge(ROUNDED, sizes, job)


@pytest.mark.parametrize("sizes", [(32, 1024, 1024), (33, 1000, 1056)])
def test_sums_between_two_nests_have_room_for_the_innermost_of_blocks_in_blocks(sizes: tuple[int, int, int]) -> None:
    """Columns are cut for a cache and for tiles: what is rounded after each tile needs room for one."""
    known = dict(zip("MNK", sizes, strict=True))
    job = compiled(ROUNDED, known, simulated("sapphire-rapids"))
    assert job.schedule is not None
    assert not job.unproved
    products = [loops for c, loops in calls(job.schedule.call) if c.instruction == "tile_dot2_bf16"]
    assert {"j0", "j1"} <= {loop.var for loops in products for loop in loops}
    assert next(s.bytes for s in job.schedule.workspace if s.name == "S") == 32 * 32 * 4
    judge(ROUNDED, known, job)


def test_rows_of_blocks_under_a_condition_are_not_copied_step_by_step() -> None:
    """Blocks below a diagonal go one by one: a plan that fills copies on its way would be none for them."""
    k = parse_kernel("""
kernel f(P, M, N, K)
  in    A: bf16[P, M, K]
  const B: bf16[P, K, N]
  out   C: f32[P, M, N]
  permits contract, reassociate, flush
  forall p < P, i < M, j < N
    C[p, i, j] = 0
  forall p < P, q < P, i < M, j < N, k < K where q <= p
    C[p, i, j] += f32(A[q, i, k]) * f32(B[q, k, j])
""")
    sizes = {"P": 3, "M": 32, "N": 512, "K": 64}
    job = compiled(k, sizes, simulated("sapphire-rapids"))
    assert any("block of 2 i x 2 j" in d.label for d in job.trace.decisions if d.point == "tile")
    judge(k, sizes, job)
