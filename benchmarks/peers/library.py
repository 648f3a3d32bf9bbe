"""What a library that ISAM is compared with has to offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..shapes import Shape

Array = np.ndarray[Any, Any]
Given = dict[str, Array]  # the arguments of a shape's kernel by name
Call = Callable[[], Any]


def _itself(result: Any) -> Array:
    return result


@dataclass(frozen=True, slots=True)
class Form:
    """One way to compute it. ``call`` is what is timed. ``read`` makes of its result the array that the kernel of the
    shape would have returned; it is not timed. ``times``: how often one call computes it."""

    call: Call
    read: Callable[[Any], Array] = _itself
    times: int = 1

    def __call__(self) -> Array:
        return self.read(self.call())


@dataclass(frozen=True, slots=True)
class Library:
    """A peer. ``printed``: its name as its makers write it. ``version`` says which, on one thread, and raises
    ``ImportError`` where the library is absent; nothing is imported before. ``of``: every form that could be its
    fastest, by name, weights bound and data laid out beforehand; none where it has nothing with the result's type. A
    ``reference`` is printed beside peers and is none: Python cannot call it."""

    name: str
    printed: str
    version: Callable[[], str]
    of: Callable[[Shape, Given], dict[str, Form]]
    reference: bool = False
