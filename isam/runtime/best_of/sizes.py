"""What size the problem of a call is: the key under which a selector keeps what it knows of such calls."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

Array = np.ndarray  # a name is found sooner than an attribute
PLAIN = (str, int, bool, type(None), np.dtype)  # values that stand for themselves; floats are data


def problem_size(*args: Any, **named: Any) -> Hashable:
    """Shapes and element types of arrays, values of what can be compared, kinds of the rest: what decides by default
    whether two calls are of one size. Arguments by name follow in the order of their names."""
    size = size_of(args)
    for name in sorted(named):
        size += name, size_of((named[name],))
    return size


def size_of(args: tuple[Any, ...]) -> tuple[Hashable, ...]:
    """The problem size of a call without arguments by name. It is most of what a decided call costs: the tuple
    of arguments is handed on as it is, which is quicker than ``*args``, and of a few arrays a tuple is made quicker
    than a list."""
    size: tuple[Hashable, ...] = ()
    for a in args:
        if type(a) is Array:
            size += a.shape, a.dtype
        else:
            size += (_other(a),)
    return size


def _other(a: Any) -> Hashable:
    """What stands in a size for what is not exactly a NumPy array."""
    if isinstance(a, PLAIN):
        return a
    if hasattr(a, "shape") and not isinstance(a, type):
        return tuple(a.shape), str(getattr(a, "dtype", ""))
    return f"<{type(a).__qualname__}>"
