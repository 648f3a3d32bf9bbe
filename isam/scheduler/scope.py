"""Where the dry run stands: the loop variables in scope and the list that steps are recorded in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from isam.ir.affine import Affine
from isam.schedule.tree import Node
from isam.scheduler.places import Var
from isam.scheduler.tiles import Ranges


class Scope:
    """``out``: where steps go; ``variables``, ``ranges``: the open loops' variables; ``names``: outermost first."""

    def __init__(self) -> None:
        self.out: list[Node] = []
        self.variables: dict[str, Var] = {}
        self.ranges = Ranges()
        self.names: list[str] = []

    @contextmanager
    def recording(self) -> Iterator[list[Node]]:
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def variable(self, name: str, lo: Affine, step: int, bounds: tuple[int, int]) -> Iterator[None]:
        width = self.ranges.enter(name, lo, bounds)
        self.variables[name] = Var(lo, step, width)
        self.names.append(name)
        try:
            yield
        finally:
            self.names.pop()
            del self.variables[name]
            self.ranges.leave(name)
