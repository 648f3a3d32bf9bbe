"""The two drawings in ``docs/drawings``: what the printer prints for a ragged product; ``python -m tests.drawings``
writes them anew."""

from __future__ import annotations

from pathlib import Path

from isam.approach.choice import Trace
from isam.approach.shipped.greedy import Greedy
from isam.ir.normal import normal_form
from isam.ir.text import parse_kernel
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.scheduler import schedule
from isam.system.load import load_system

FOLDER = Path(__file__).parent.parent / "docs" / "drawings"
SIZES = {"M": 1000, "N": 999, "K": 77}
TEXT = """kernel matmul(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def drawing(system: str) -> str:
    """The schedule of a 1000 x 999 x 77 product on a machine, as text."""
    trace = Trace(Greedy())
    machine = load_system(system)
    covered = cover(normal_form(parse_kernel(TEXT).with_sizes(SIZES)), Demand(machine.compute), trace)
    return str(schedule(covered, machine, trace)).rstrip() + "\n"


def main() -> None:
    for system in ("host-avx512", "toy"):
        (FOLDER / f"product_{system}.txt").write_text(drawing(system), encoding="utf-8")


if __name__ == "__main__":
    main()
