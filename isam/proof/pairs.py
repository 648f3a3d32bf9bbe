"""Pairs of an early and a late access that need a look: all of them where they are few, else those that lie within
ranges, of each late one in the order that leaves fewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.classes import dataclass

if TYPE_CHECKING:
    import numpy as np

FEW = 1 << 14  # pairs, which are all looked at
MANY = 1 << 20  # looked at together: a few arrays of so many numbers


@dataclass(frozen=True)
class Ranges:
    """Of each late access the early ones from ``first`` up to ``stop`` in an ``order``."""

    first: np.ndarray
    stop: np.ndarray
    order: np.ndarray

    def lengths(self) -> np.ndarray:
        return (self.stop - self.first).clip(0)

    def of(self, late: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of some late ones, ``MANY`` at a time or those of one."""
        import numpy as np

        lengths = self.lengths()[late]
        ends = lengths.cumsum()
        at, done = 0, 0
        while at < len(late):
            upto = max(at + 1, int(np.searchsorted(ends, done + MANY, "right")))
            some, many = late[at:upto], lengths[at:upto]
            begin = np.repeat(self.first[some] - (ends[at:upto] - many - done), many)
            yield self.order[begin + np.arange(int(many.sum()))], np.repeat(some, many)
            at, done = upto, int(ends[upto - 1])


def pairs(early: int, late: int, ranges: list[Ranges]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Which early and which late one, of so many: all that lie in every range, and others where they are few."""
    import numpy as np

    if early * late <= FEW:
        yield np.divmod(np.arange(early * late), late)
        return
    lengths = np.array([r.lengths() for r in ranges])
    fewest = lengths.argmin(0)
    for k, r in enumerate(ranges):
        yield from r.of((fewest == k).nonzero()[0])


__all__ = ["Ranges", "pairs"]
