"""Runs cells: one kernel of the suite, one instruction, the search for a chain of laws after which it fits (TR-2)."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from isam.garbage import seldom
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.mapper.search import DEFAULT, Budget, Reached, reach
from tests.suite.columns import COLUMNS, typed, types_of
from tests.suite.expected import Expected

LAWS = tuple(t.law for t in DEFAULT)
"""Every law shipped that the matcher does not see through anyway."""

BUDGET = Budget(states=32, work=2000, blind=0, depth=4)
GUESSES = 16  # blind steps, where the directed search went to its end and found nothing
PAIRS = 2000  # tried by the matcher per kernel
NAMED = ("sepconv", "separable", "conv", "matmul", "gru")
"""Beginnings and ends of the names of kernels that the paper speaks of."""


@dataclass(frozen=True)
class Cell:
    """What came out. ``chains``: the laws of the shortest chains, cheapest first; ``expansions``: kernels looked at
    after the first; ``seconds``: CPU time; ``ended``: the budget that ended the search, '' when nothing was left. All
    this without blind steps; ``blind``: how many were taken afterwards, where nothing was found; ``guessed``: the laws
    of the chain that they led to."""

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
    guessed: tuple[str, ...] = ()

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


def named(kernel: str) -> bool:
    """Is it one of the kernels that the paper speaks of?"""
    return any(kernel.startswith(n) or n in kernel for n in NAMED)


def pair(kernel: str, column: str) -> tuple[Kernel, Instruction]:
    """The kernel in the element types of the column's instruction, and the instruction."""
    instruction = COLUMNS[column].load()
    k = typed(kernel, *types_of(instruction)) or typed(kernel, "f32", "f32")
    assert k is not None
    return k, instruction


def searched(k: Kernel, instruction: Instruction, blind: int = 0) -> Reached:
    return reach(k, instruction, budget=replace(BUDGET, blind=blind), pairs=PAIRS)


def run(kernel: str, column: str) -> Cell:
    """One cell. Blind steps are tried on kernels that the paper does not speak of."""
    k, instruction = pair(kernel, column)
    with seldom():
        start = time.process_time()
        found = searched(k, instruction)
        cell = _cell(kernel, column, found, time.process_time() - start)
    return cell if named(kernel) else guessed(cell)


def guessed(cell: Cell) -> Cell:
    """The cell with what blind steps make of it, where directed ones went to their end in vain."""
    if cell.kind != "impossible" or cell.ended:
        return cell
    found = searched(*pair(cell.kernel, cell.column), GUESSES)
    chain = tuple(s.transform.law for s in found.paths[0].steps) if found else ()
    return replace(cell, blind=found.blind_expansions, guessed=chain)


def _cell(kernel: str, column: str, found: Reached, seconds: float) -> Cell:
    facts = {"expansions": found.states - 1, "seconds": seconds, "ended": found.ended}
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
    """Cells of these kernels. What is loaded beforehand is not searched for garbage while they are timed."""
    columns = tuple(columns)
    for c in columns:
        COLUMNS[c].load()
    gc.collect()
    gc.freeze()
    return [run(k, c) for k in kernels for c in columns]
