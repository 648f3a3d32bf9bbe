"""Element types. A dtype is its name everywhere outside this file; here are its facts."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from isam.classes import dataclass

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: ``kind`` is 'f' (float), 'i' (signed), 'u' (unsigned) or 'b' (bool); ``bits`` its storage."""

    name: str
    kind: str
    bits: int

    @property
    def bytes(self) -> int:
        return self.bits // 8

    def __str__(self) -> str:
        return self.name


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("f64", "f", 64), DType("f32", "f", 32), DType("f16", "f", 16), DType("bf16", "f", 16),
        DType("i64", "i", 64), DType("i32", "i", 32), DType("i16", "i", 16), DType("i8", "i", 8),
        DType("u8", "u", 8), DType("bool", "b", 8),
    )
}  # fmt: skip
_BYTES = {name: d.bytes for name, d in DTYPES.items()}
ANY = "any"  # an instruction operand of any element type (a move)


@cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype that stores elements of type ``name`` (bf16 through ml_dtypes)."""
    import numpy as np

    if name == "bf16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    short = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u8": "u1"}
    return np.dtype(short.get(name, "?"))


def dtype_name(given: object) -> str | None:
    """The name of an element type that is given by it, or as a NumPy dtype or scalar type; None: the language has none
    such."""
    if isinstance(given, str):
        return given if given in DTYPES else None
    import numpy as np

    if isinstance(given, np.dtype) or (isinstance(given, type) and issubclass(given, np.generic)):
        return next((n for n in DTYPES if numpy_dtype(n) == np.dtype(given)), None)
    return None


def size_of(name: str) -> int:
    """Bytes of one element."""
    return _BYTES[name]


def cast_to(want: str, have: str, buffer: str, index: object) -> str:
    """What to do with an element of one dtype where another one is wanted.

    >>> cast_to("f32", "i32", "s", ()), cast_to("any", "f32", "s", ())
    ('cast it: f32(s)', "declare both 'any', or both of one dtype")
    """
    if ANY in (want, have):
        return f"declare both '{ANY}', or both of one dtype"
    return f"cast it: {want}({buffer}{'[...]' if index else ''})"
