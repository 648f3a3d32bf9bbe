"""What the axes of a statement are called is the author's business: whatever the names, calls that carry out several
statements are found and proved."""

from __future__ import annotations

import random
import re

import pytest

from isam.ir.kernel import Kernel
from isam.ir.text import parse
from tests.pipeline import compiled, simulated

CHAINS = {  # buffers, then statements: their axes with their extents, and what they do
    "two products": (
        "in A: f32[M, M]; in B: f32[M, M]; in D: f32[M, M]; out E: f32[M, M]; temp C: f32[M, M]",
        ("i j", "C[i, j] = 0"), ("i j k", "C[i, j] += A[i, k] * B[k, j]"),
        ("i j", "E[i, j] = 0"), ("i j k", "E[i, j] += C[i, k] * D[k, j]"),
    ),
    "three products": (
        "in A: f32[M, M]; in B: f32[M, M]; out E: f32[M, M]; temp C: f32[M, M]; temp D: f32[M, M]",
        ("i j", "C[i, j] = 0"), ("i j k", "C[i, j] += A[i, k] * B[k, j]"),
        ("i j", "D[i, j] = 0"), ("i j k", "D[i, j] += B[i, k] * C[k, j]"),
        ("i j", "E[i, j] = 0"), ("i j k", "E[i, j] += C[i, k] * D[k, j]"),
    ),
    "a square": (
        "in A: f32[M, M]; in B: f32[M, M]; out E: f32[M, M]; temp C: f32[M, M]",
        ("i j", "C[i, j] = 0"), ("i j k", "C[i, j] += A[i, k] * B[k, j]"),
        ("i j", "E[i, j] = 0"), ("i j k", "E[i, j] += C[i, k] * C[k, j]"),
    ),
    "a square with both its transposes": (
        "in A: f32[M, M]; out C: f32[M, M]; out E: f32[M, M]",
        ("i j", "C[i, j] = A[i, j]"), ("i j", "E[i, j] = 0"),
        ("i j k", "E[i, j] += C[i, k] * C[j, k]"), ("i j k", "E[i, j] += C[i, k] * C[k, j]"),
    ),
    "two vectors": (
        "in A: f32[M, M]; in B: f32[M, M]; in x: f32[M]; out E: f32[M]; temp C: f32[M]",
        ("i", "C[i] = 0"), ("i k", "C[i] += A[i, k] * x[k]"),
        ("i", "E[i] = 0"), ("i k", "E[i] += B[i, k] * C[k]"),
    ),
    "what it begins with is made": (
        "in A: f32[M, M]; in B: f32[M, M]; out E: f32[M, M]; temp C: f32[M, M]",
        ("i j", "C[i, j] = max(A[i, j], 0)"), ("i j", "E[i, j] = C[i, j]"), ("i j k", "E[i, j] += C[j, k] * B[k, i]"),
    ),
}  # fmt: skip


def renamed(name: str, seed: int) -> Kernel:
    """A chain with names drawn anew for each statement."""
    r = random.Random(f"{name} {seed}")
    buffers, *statements = CHAINS[name]
    lines = [f"  {b.strip()}" for b in buffers.split(";")]
    for axes, body in statements:
        to = dict(zip(axes.split(), r.sample("ijklpq", len(axes.split())), strict=True))
        lines += ["  forall " + ", ".join(f"{to[a]} < M" for a in axes.split())]
        lines += ["    " + re.sub(r"\b[ijk]\b", lambda m, to=to: to[m.group()], body)]
    return parse("kernel chain(M)\n  permits reassociate, contract\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("on", ["blas-generic", "toy", "host-generic"])
@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_proved_whatever_their_axes_are_called(name: str, on: str) -> None:
    """Calls of a library take products whole, beginnings included; the schedule is proved for each spelling."""
    counts = set[int]()
    for seed in range(8):
        job = compiled(renamed(name, seed), {"M": 200 if "blas" in on else 8}, simulated(on), check=True)
        assert job.cover is not None
        counts.add(len(job.cover.mappings))
        if "products" in name and "blas" in on:
            assert {m.instruction.name for m in job.cover.mappings} == {"sgemm_nn_new"}
    assert len(counts) == 1
