"""What a machine moves between home memory and registers though it does not lie together: elements so many apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from isam.ir.instruction import Instruction


class Spacing:
    """The moves of a machine between its home memory and others that take elements of one dimension an exact number of
    elements apart, and what a call of each costs. ``moves``: the memory at the other end, whether it leads from there
    home, the instruction. ``closed``: memories that no move leads to, where instructions begin data; ``loose``: those
    in which what is brought may lie with gaps between; ``cached``: whether what lies in a line with what was taken is
    near for a while."""

    def __init__(self, instructions: Mapping[str, Instruction], moves: Iterable[tuple[str, bool, str]] = (),
                 closed: frozenset[str] = frozenset(), loose: Callable[[], frozenset[str]] = frozenset,
                 cached: bool = False):  # fmt: skip
        self._instructions, self._moves, self._loose = instructions, tuple(moves), loose
        self.closed, self.cached = closed, cached

    @cached_property
    def loose(self) -> frozenset[str]:
        """Asked of the machine when somebody wants to know: the texts of its moves are read for it."""
        return self._loose()

    @cached_property
    def _cycles(self) -> dict[tuple[str, bool, int], float]:
        out: dict[tuple[str, bool, int], float] = {}
        for memory, home, name in self._moves:
            i = self._instructions[name]
            copy = i.copied
            ends = None if copy is None else (copy.dest, *copy.reads)
            if ends is None or any(len(e.index) != 1 for e in ends):
                continue
            there, here = (i.contract(e.buffer).strides[0] for e in (ends if home else ends[::-1]))
            if there is not None and there > 1 and here == 1:
                out.setdefault((memory, home, there), i.cost.interval)
        return out

    def cycles(self, memories: Iterable[str], step: int, writes: bool) -> float | None:
        """Of the quickest call that takes elements ``step`` apart to one of some memories, or ``writes`` them home from
        there; None where none does."""
        return min((c for m in memories if (c := self._cycles.get((m, writes, step))) is not None), default=None)


TOGETHER = Spacing({})
