"""What an instruction sums: its axes, the groups it takes along them, and how many points of the sum in a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from isam.classes import dataclass
from isam.ir.kernel import Statement
from isam.ir.span import Span


@dataclass(frozen=True, slots=True)
class SumForm:
    """The sum of an instruction. ``into``: the buffer of its body that is added to; ``parallel``: the axes that are not
    summed over, ``summed``: those that are; ``most``: per axis what a call takes at most, 1 where that has no limit;
    ``group``: neighbours along what is summed that every call takes, in all; ``across``: lanes that are summed into one
    number, 0 where it does not do that; ``issue``: cycles until the unit takes the next call, None: not stated."""

    into: str
    parallel: tuple[str, ...]
    summed: tuple[str, ...]
    most: Mapping[str, int]
    group: int
    across: int
    issue: float | None

    @staticmethod
    def of(s: Statement, spans: Mapping[str, Span], issue: float | None) -> SumForm:
        """Of the statement that sums."""
        most = {a: spans[a].most or 1 for a in s.domain.names}
        fixed = [spans[a].least for a in s.reduces if spans[a].least == spans[a].most]
        across = most[s.reduces[0]] if len(s.reduces) == 1 and not any(row.names for row in s.dest.index) else 0
        return SumForm(s.dest.buffer, tuple(a for a in s.domain.names if a not in s.reduces), tuple(s.reduces), most,
                       prod(fixed), across if across > 1 else 0, issue)  # fmt: skip

    @property
    def width(self) -> int:
        """The most that a call takes along one axis that is not summed over."""
        return max((self.most[a] for a in self.parallel), default=1)

    @property
    def depth(self) -> int:
        """The terms of one result that a call takes at most."""
        return prod(self.most[a] for a in self.summed)

    @property
    def points(self) -> int:
        """The points of the sum that a call takes at most."""
        return prod(self.most.values())

    @property
    def rate(self) -> float:
        """Points in a cycle of calls one right behind the other; 0 where it is not stated how long one takes. For
        instructions that compute alike, of which the one with fewer cycles is the better one."""
        return self.points / self.issue if self.issue else 0.0

    @property
    def work(self) -> float:
        """Points for the price of a call as the mapper counts it, one plus its cycles; none stated count as none. For
        those that differ in kind: that one takes half a cycle and the other two says little beside how much a call
        does, and calls that hardly take a cycle have operands that come and go."""
        return self.points / (1.0 + (self.issue or 0.0))
