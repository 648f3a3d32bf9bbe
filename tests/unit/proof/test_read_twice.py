"""An operand that the instruction reads in two places which do not move alike: one tile holds both, wherever the
mapping's index begins; every part of the compiler and both judges say the same of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.mapping import Mapping
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import Matches, match
from isam.proof.semantics import compare
from tests.machines.small import SAME, instruction, small
from tests.pipeline import compiled, judge

HEADS = {"window": "two(N <= 8, 2 <= K <= 4)", "pairs": "two(N <= 8)"}
BODIES = {
    "window": "  in  A: f32[N + K]\n  out D: f32[N, K]\n  forall i < N, j < K\n    D[i, j] = A[i + j] + A[i]\n",
    "pairs": "  in  A: f32[N]\n  out D: f32[N, N]\n  forall i < N, j < N\n    D[i, j] = A[i] - A[j]\n",
}


def written(kind: str) -> str:
    return f"instruction {HEADS[kind]}\n{BODIES[kind]}"


def kernel(kind: str, body: str = ""):
    head = "k(N, K)" if kind == "window" else "k(N)"
    return parse_kernel(f"kernel {head}\n{body or BODIES[kind]}")


CASES = [("window", (8, 4)), ("window", (20, 3)), ("window", (1, 2)), ("pairs", (8,)), ("pairs", (3,))]


@pytest.mark.parametrize(("kind", "shape"), CASES)
def test_what_is_mapped_is_carried_out(kind: str, shape: tuple[int, ...]) -> None:
    sizes = dict(zip("NK", shape, strict=False))
    cost = "cost: {issue: 8 cycles, latency: 20 cycles}"
    system = small(
        "twice",
        {"acts": "cells: 16, cell: 256 B"},
        ["dram <-> acts"],
        instruction(HEADS[kind], BODIES[kind], "homes: [acts]", cost),
        copy=instruction("copy(M, N)", SAME, "cost: {issue: 2 cycles, latency: 20 cycles, bandwidth: 32 B/cycle}"),
        clock="500 MHz",
    )
    k = kernel(kind)
    job = compiled(k, sizes, system, check=True)
    judge(k, sizes, job)


def mapped(kind: str, sizes: dict[str, int]) -> tuple[Mapping, object]:
    k = kernel(kind).with_sizes(sizes)
    found = match(k, parse_instruction(written(kind)))
    assert isinstance(found, Matches), str(found)
    return found.first, k


@pytest.mark.parametrize("row", ["i + j", "i"])
def test_the_index_may_stand_for_either_access(row: str) -> None:
    m, k = mapped("window", {"N": 8, "K": 4})
    a = m.operand("A")
    assert compare(replaced(m, row), k).faults == ()  # type: ignore[arg-type]
    assert str(a.index[0]) == "i + j", "the one with the most axes"


@pytest.mark.parametrize("row", ["j", "i + j + 1", "i + 1", "2 * i", "0"])
def test_no_other_index_is_taken(row: str) -> None:
    m, k = mapped("window", {"N": 8, "K": 4})
    assert [f[:2] for f in compare(replaced(m, row), k).faults] == [(3, "operation")]  # type: ignore[arg-type]


@pytest.mark.parametrize("other", ["A[i + j] + A[j]", "A[i + j] + A[i + 1]", "A[i + j] + A[i + j]", "A[i] + A[i]"])
def test_both_accesses_begin_at_the_same_element(other: str) -> None:
    """Each of them alone is played by an index; no one index plays both."""
    m, _ = mapped("window", {"N": 8, "K": 4})
    k = kernel("window", BODIES["window"].replace("A[i + j] + A[i]", other)).with_sizes({"N": 8, "K": 4})
    for row in ("i + j", "i", "j"):
        assert [f[:2] for f in compare(replaced(m, row), k).faults] == [(3, "operation")]
    assert not isinstance(match(k, parse_instruction(written("window"))), Matches)


def replaced(m: Mapping, row: str) -> Mapping:
    terms = [(x.split("*")[-1].strip(), 2 if "*" in x else 1) for x in row.split(" + ") if not x.isdigit()]
    const = sum(int(x) for x in row.split(" + ") if x.isdigit())
    index = (Affine.from_terms(terms) + const,)
    return replace(m, operands=tuple(replace(o, index=index) if o.operand == "A" else o for o in m.operands))
