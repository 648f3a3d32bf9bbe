"""What plans say that a move takes is what the finished schedule says."""

from itertools import product
from pathlib import Path

import pytest

from isam import load_system
from isam.scheduler.edges import EdgeCost, keeps, quickest
from isam.system.graph import System

MACHINES = ("casestudy", "dual", "gemmini", "host-avx512", "pe_array", "tpu_v1_like", "toy", "toy_pair")
STATED = """
isam: 1
system: one
memories:
  home: {kind: managed, capacity: 1 MiB, home: true}
  near: {kind: managed, capacity: 4 KiB}
units:
  dma: {runs: [copy], clock: 2 GHz}
moves:
  - {from: home, to: near, by: copy, issuer: dma}
instructions:
  copy:
    body: |
      instruction copy(N)
        in  S: any[N]
        out D: any[N]
        forall i < N
          D[i] = S[i]
    cost: {COST}
"""


def edge(system: System, source: str, target: str) -> EdgeCost:
    found = quickest(system, source, target, "i8")
    assert found is not None
    return found


@pytest.mark.parametrize("name", MACHINES)
def test_a_move_of_a_machine(name: str) -> None:
    """What the move along an edge that plans take keeps its issuer for, where no link takes a time of its own."""
    system, looked = load_system(name), 0
    for m, dtype in product(system.moves, ("f32", "i8")):
        if (e := quickest(system, m.source, m.target, dtype)) is None or system.links_of(m.source, m.target):
            continue
        for size in (1, 64, 4096):
            same = [keeps(system, n, size) for n in system.moves
                    if (n.source, n.target, n.issuer) == (m.source, m.target, e.issuer)]  # fmt: skip
            assert any(e.seconds(1, size, 1) == pytest.approx(s) for s in same), (m, size)
            looked += 1
    assert looked


@pytest.mark.parametrize(
    ("cost", "cycles"),
    [
        ("issue: 3 cycles", (3, 3)),
        ("setup: 10 cycles, bandwidth: 16 B/cycle", (11, 74)),
        ("issue: 20 cycles, bandwidth: 16 B/cycle", (20, 64)),
        ("issue: 20 cycles, setup: 10 cycles, bandwidth: 16 B/cycle", (20, 74)),
        ("bandwidth: 16 B/cycle", (1, 64)),
        ("latency: 9 cycles", (1, 1)),
    ],
)
def test_issue_and_set_up(cost: str, cycles: tuple[int, int], tmp_path: Path) -> None:
    """A call keeps its unit for its issue interval, or for set-up and bytes if that is longer: 16 bytes, and 1024."""
    path = tmp_path / "one.yaml"
    path.write_text(STATED.replace("COST", cost))
    e = edge(load_system(path), "home", "near")
    assert [round(e.seconds(1, n, 1) * 2e9) for n in (16, 1024)] == list(cycles)
    assert e.seconds(7, 7 * 1024, 1) == pytest.approx(7 * e.seconds(1, 1024, 1)), "calls of one size, one by one"
