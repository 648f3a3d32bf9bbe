"""A "no" with its reasons (MAP-8): what stands where, in the user's own names, and facts that transforms can act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isam.diagnostics import NOWHERE, Loc
from isam.ir.kernel import Access, Literal, Statement
from isam.ir.mismatch import Mismatch

_SUMS = {"add": "sums", "mul": "multiplies up", "max": "takes the maximum", "min": "takes the minimum",
         "select": "selects in place"}  # fmt: skip
_DOES = {"add": "adds", "sub": "subtracts", "mul": "multiplies", "div": "divides", "copy": "copies", "cast": "casts",
         "neg": "negates"}  # fmt: skip


def verb(op: str, accumulates: bool) -> str:
    """What an operation does, as a verb: an accumulating add *sums*, a plain one *adds*."""
    if accumulates:
        return _SUMS.get(op, f"accumulates with {op}")
    return _DOES.get(op, f"does {op}")


def place(thing: Access | Literal | Statement, within: Statement) -> Loc:
    """Where ``thing`` stands; where that is unknown, where its statement stands."""
    return thing.loc if thing.loc != NOWHERE else within.loc


class Reporter:
    """Keeps the deepest mismatch; with ``collect`` all of them, each once; ``silent``: none."""

    __slots__ = ("all", "best", "collect", "limit", "silent")

    def __init__(self, collect: bool = False, limit: int = 200, silent: bool = False):
        self.best: Mismatch | None = None
        self.collect = collect
        self.silent = silent
        self.limit = limit
        self.all: list[Mismatch] = []

    def no(self, depth: int, build: Callable[[], Mismatch]) -> None:
        """Reports a contradiction after ``depth`` agreed pairs; ``build`` is called only when it will be kept."""
        if self.silent:
            return
        deeper = self.best is None or depth > self.best.depth
        if not deeper and not (self.collect and len(self.all) < self.limit):
            return
        found = build()
        if deeper:
            self.best = found
        if self.collect and not any(same(found, m) for m in self.all):
            self.all.append(found)


class Among(Reporter):
    """Keeps the deepest mismatch in which one ``statement`` of the kernel has a part: it is ``taken``, or the one where
    the contradiction is."""

    __slots__ = ("statement", "taken")

    def __init__(self, statement: int):
        super().__init__()
        self.statement = statement
        self.taken: set[int] = set()

    def no(self, depth: int, build: Callable[[], Mismatch]) -> None:
        if self.best is None or depth > self.best.depth:
            found = build()
            if self.statement in self.taken or found.about("statement") == self.statement:
                self.best = found


def same(a: Mismatch, b: Mismatch) -> bool:
    """Whether two reports say the same of the same places."""
    return (a.kind, a.have, a.need, a.kernel_loc, a.instruction_loc) == (
        b.kind, b.have, b.need, b.kernel_loc, b.instruction_loc)  # fmt: skip


def subject(**facts: Any) -> tuple[tuple[str, Any], ...]:
    """The machine-usable facts, those that are None left out."""
    return tuple((k, v) for k, v in facts.items() if v is not None)
