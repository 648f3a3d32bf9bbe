"""What becomes of numbers on which an instruction is repeated: repeated products leave the range of normal floats.

A CPU takes a hundred cycles for a product with a denormal, and may take less for a root of 1 than for one of another
number: such times say nothing of the numbers that a kernel computes with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.ir.dtype import size_of

Numbers = np.ndarray[Any, Any]
ROOM = 1 << 16  # bytes for what is left
ALIGNED = 64
ALIKE = 1e-3  # of numbers: so near to each other are none that were drawn
FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
WHOLE = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True, slots=True)
class Left:
    """A vector that the code stores when it is done: at this place, so many of this type."""

    at: int
    dtype: str
    count: int

    @property
    def end(self) -> int:
        """Where the next one may lie."""
        return self.at - -self.count * size_of(self.dtype) // ALIGNED * ALIGNED

    def read(self, room: Numbers) -> Numbers:
        """Its elements, those of bf16 as the f32 that they are the first half of."""
        part = room.view(np.uint8)[self.at : self.at + self.count * size_of(self.dtype)]
        if self.dtype == "bf16":
            return (part.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return part.view(FLOATS.get(self.dtype) or WHOLE[size_of(self.dtype)]).copy()


def abnormal(values: Numbers) -> bool:
    """Whether there are denormals, infinities or NaN among the numbers."""
    if values.dtype.kind != "f":
        return False
    size = np.abs(values)
    return not bool(np.all(np.isfinite(size) & ((size == 0) | (size >= np.finfo(values.dtype).tiny))))


def drifted(values: Numbers, summed: bool = False) -> bool:
    """Whether numbers that were drawn at random have become others than are drawn: all are zero; or floats, of which
    some are not normal, or all but zeros (lanes beside a sum) one and the same. ``summed``: they are sums, which may be
    so: one sum in all lanes, or sums so large that nothing is added any more."""
    if abnormal(values) or not values.any():
        return True
    if summed or values.dtype.kind != "f":
        return False
    size = np.abs(values[values != 0].astype(np.float64))
    return size.size > 1 and bool(size.max() - size.min() <= ALIKE * size.max())
