"""Runs cells: one kernel of the suite, one instruction, the search for a chain of laws after which it fits (TR-2)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from isam.mapper.search import Budget, Reached, reach
from isam.transforms import ALL
from tests.suite.columns import COLUMNS, typed, types_of
from tests.suite.expected import Expected

LAWS = ("factor", "narrow", "reassociate", "split-axis", "add-unit-axis", "split-dimension", "permute-dimensions")
"""The laws of the table: those that existed when the expectations were written. Others have tests of their own."""

TRANSFORMS = tuple(t for t in ALL if t.law in LAWS)
BUDGET = Budget(states=32, work=2000, blind=0, depth=4)
PAIRS = 2000  # tried by the matcher per kernel


@dataclass(frozen=True)
class Cell:
    """What came out. ``chains``: the laws of the shortest chains, cheapest first; ``expansions``: kernels looked at
    after the first; ``seconds``: CPU time; ``ended``: the budget that ended the search, '' when nothing was left."""

    kernel: str
    column: str
    kind: str
    count: int = 0
    chains: tuple[tuple[str, ...], ...] = ()
    mismatch: str = ""
    report: str = ""
    expansions: int = 0
    blind: int = 0
    seconds: float = 0.0
    ended: str = ""

    def as_expected(self, want: Expected) -> bool:
        if self.kind != want.kind:
            return False
        if want.kind == "mapped":
            return want.count is None or want.count == self.count
        if want.kind == "needs":
            return any(frozenset(c) == want.laws for c in self.chains)
        return self.mismatch == want.mismatch

    def __str__(self) -> str:
        if self.kind == "mapped":
            return f"mapped {self.count}"
        if self.kind == "needs":
            return "needs " + " or ".join(" + ".join(c) for c in self.chains)
        return f"impossible {self.mismatch}: {self.report}" + (f" (ended: {self.ended})" if self.ended else "")


def run(kernel: str, column: str, budget: Budget = BUDGET) -> Cell:
    """One cell."""
    instruction = COLUMNS[column].load()
    narrow, wide = types_of(instruction)
    k = typed(kernel, narrow, wide) or typed(kernel, "f32", "f32")
    assert k is not None
    start = time.process_time()
    found = reach(k, instruction, budget=budget, pairs=PAIRS, transforms=TRANSFORMS)
    return _cell(kernel, column, found, time.process_time() - start)


def _cell(kernel: str, column: str, found: Reached, seconds: float) -> Cell:
    facts = {"expansions": found.states - 1, "blind": found.blind_expansions, "seconds": seconds, "ended": found.ended}
    if found.direct:
        pairs = {(tuple((o.operand, o.buffer, o.index, o.literal) for o in m.operands), m.axes, m.statement_map)
                 for m in found.direct}  # fmt: skip
        return Cell(kernel, column, "mapped", len(pairs), **facts)
    if found.paths:
        chains = dict.fromkeys(tuple(s.transform.law for s in p.steps) for p in found.paths)
        return Cell(kernel, column, "needs", chains=tuple(chains), **facts)
    deepest = found.near[0]
    report = f"{deepest.have}; needs {deepest.need}"
    return Cell(kernel, column, "impossible", mismatch=deepest.kind, report=report, **facts)


def run_all(kernels: Iterable[str], columns: Iterable[str] = tuple(COLUMNS)) -> list[Cell]:
    columns = tuple(columns)
    return [run(k, c) for k in kernels for c in columns]
