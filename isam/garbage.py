"""Python's search for unreachable values, made rare while many values are made that stay.

Reading a machine and compiling a kernel make hundreds of thousands of values and hardly any cycle among them; Python
looks through all of them again each time some hundred more are there, which takes a fifth of a first compilation. What
was made then counts as old: a young process does not look through it at the end either, which saves a twentieth.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

APART = 100_000  # new values between two looks
YOUNG = 10  # looks at what is neither new nor old; later, values that nobody reaches are found first


@contextmanager
def seldom() -> Iterator[None]:
    """Python looks for garbage once per :data:`APART` new values, or as seldom as it is set to already."""
    was = gc.get_threshold()
    raised = 0 < was[0] < APART
    if raised:
        gc.set_threshold(APART, *was[1:])
    try:
        yield
    finally:
        if raised:
            if gc.get_stats()[1]["collections"] < YOUNG and not gc.get_freeze_count():
                gc.freeze()  # these two take what is new to what is old, without a look at it
                gc.unfreeze()
            gc.set_threshold(*was)
