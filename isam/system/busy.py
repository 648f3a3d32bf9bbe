"""How much of a machine works when blocks of work are shared out to its units, in rounds."""

from __future__ import annotations

WORTH = 0.9  # of the share of units that work: what reaches less of it leaves units idle


def rounds(blocks: int, units: int) -> int:
    """How often all units are called for so many blocks.

    >>> rounds(70, 48)
    2
    """
    return -(-blocks // units)


def idle(blocks: int, others: int, units: int) -> bool:
    """Whether ``blocks`` leave units without work that ``others``, another number of blocks, would occupy.

    >>> idle(70, 1680, 48), idle(188, 376, 48)
    (True, False)
    """
    return _share(blocks, units) < WORTH * _share(others, units)


def _share(blocks: int, units: int) -> float:
    return blocks / units / max(1, rounds(blocks, units))
