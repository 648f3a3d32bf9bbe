"""Small machines for one test each: memories around `dram`, a unit that computes, and one that copies between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from textwrap import indent

from isam.system.graph import System
from isam.system.load import parse_system

PRODUCT = """
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
ZERO = """
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = 0
"""
ZERO_ROW = """
  out D: f32[J]
  forall j < J
    D[j] = 0
"""
CLIP = """
  in  A: f32[M, N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = max(A[i, j], 0)
"""
SAME = """
  in  S: any[M, N]
  out D: any[M, N]
  forall i < M, j < N
    D[i, j] = S[i, j]
"""
SAME_ROW = """
  in  S: any[N]
  out D: any[N]
  forall i < N
    D[i] = S[i]
"""
FREE = "strides: {S: [free, free], D: [free, free]}"  # of a copy whose elements may lie apart


def instruction(head: str, body: str, *fields: str) -> str:
    """An entry under `instructions`: ``head`` is its name and sizes, ``fields`` are lines like `homes: [sp]`."""
    name, text = head.split("(")[0], indent(body.lstrip("\n"), " " * 6)
    return f"  {name}:\n    body: |\n      instruction {head}\n{text}" + "".join(f"    {f}\n" for f in fields)


COPY = instruction("copy(M, N)", SAME, "cost: {setup: 10 cycles, bandwidth: 16 B/cycle}")


def small(name: str, memories: Mapping[str, str], moves: Sequence[str], *instructions: str, copy: str = COPY,
          clock: str = "1 GHz") -> System:  # fmt: skip
    """A machine with the home memory `dram`, ``memories`` with what its description says of each (managed, unless that
    states a kind), and ``moves`` by ``copy``: `a -> b`, or `a <-> b` for both ways. The unit `dma` copies, `pe` carries
    out all ``instructions``. Raises ``IsamError``, as loading does."""
    runs = ", ".join(i.split(":")[0].strip() for i in instructions)
    lines = [
        "isam: 1",
        f"system: {name}",
        "memories:",
        "  dram: {kind: managed, capacity: 1 GiB, home: true}",
        *(f"  {n}: {{{m if 'kind:' in m else f'kind: managed, {m}'}}}" for n, m in memories.items()),
        "units:",
        f"  pe: {{runs: [{runs}], clock: {clock}}}",
        f"  dma: {{runs: [copy], clock: {clock}}}",
        "moves:",
        *map(_move, moves),
        "instructions:",
    ]
    return parse_system("\n".join(lines) + "\n" + "".join(instructions) + copy, f"{name}.yaml")


def _move(way: str) -> str:
    source, arrow, target = way.split(" ", 2)
    both = ", both_ways: true" if arrow == "<->" else ""
    return f"  - {{from: {source}, to: {target}, by: copy, issuer: dma{both}}}"


def deaf(machine: System, names: Iterable[str] | None = None) -> System:
    """The machine, none of whose caches can be asked for anything by these instructions (all)."""
    asking = machine.instructions if names is None else {n: machine.instructions[n] for n in names}
    without = {n: replace(i, cost=replace(i.cost, prefetch=None)) for n, i in asking.items()}
    return replace(machine, instructions={**machine.instructions, **without})
