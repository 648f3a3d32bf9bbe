"""In which numbers a simulation computes: the machine's own, or any other arithmetic of :mod:`isam.ir.points`.

With residues modulo a prime (the oracle's arithmetic) a schedule is judged exactly: no tolerance, any order of sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.ir.dtype import numpy_dtype
from isam.ir.points import Arithmetic


@dataclass(frozen=True, slots=True)
class Values:
    """An arithmetic and how its values are stored. ``wide``: every element is a 64-bit number at the address of its
    first byte, whatever its dtype; the machine's own numbers (``wide`` False) lie in their own bytes."""

    arithmetic: Arithmetic
    wide: bool = False

    @property
    def scale(self) -> int:
        """Bytes of storage per simulated byte."""
        return 8 if self.wide else 1

    def storage(self, dtype: str) -> np.dtype[Any]:
        return np.dtype(np.int64) if self.wide else numpy_dtype(dtype)

    def literal(self, value: float | int | bool | None, dtype: str) -> np.ndarray[Any, Any]:
        assert value is not None
        return self.arithmetic.literal(value, dtype)


def residues(seed: int = 0) -> Values:
    """The oracle's numbers: residues modulo 2^31 - 1, functions as random maps drawn from ``seed``."""
    from isam.ir.residues import Residues

    return Values(Residues(seed), wide=True)


def numbers() -> Values:
    """The machine's own numbers: what the interpreter computes in."""
    from isam.ir.arithmetic import Numbers

    return Values(Numbers())
