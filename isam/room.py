"""Room for the frames of all calls below one, taken once.

CPython (3.11 and later) keeps the frames of calls in pieces of 16 KiB and returns a piece to the system as soon as the
last call in it ends. Where a loop happens to run at the end of a piece, every call in it asks the system for a piece
and gives it back: a compilation that begins forty to eighty calls deep, as in notebooks and tests, took longer
for that. A frame that says it needs much gets a larger piece; what is called from there finds room behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

SLOTS = 1 << 15  # of 8 bytes: a little more than 256 KiB, so that a piece has 512 of them, half of it for other frames


def roomy(function: Callable[P, R]) -> Callable[P, R]:
    """The function, called where the frames of some thousand calls below it have room. No memory is touched for that
    before they need it."""

    def inside(*args: P.args, **named: P.kwargs) -> R:
        return function(*args, **named)

    inside.__code__ = inside.__code__.replace(co_stacksize=SLOTS)
    return wraps(function)(inside)
