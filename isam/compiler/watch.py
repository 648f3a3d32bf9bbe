"""Who is told how far something that takes seconds has come."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Watch = Callable[[str, int, int], None]  # is told what is done, how much of it is, and of how much at most
WATCH: ContextVar[Watch | None] = ContextVar("isam_watch", default=None)


def told(what: str, done: int, most: int) -> None:
    """Tells whoever watches."""
    watch = WATCH.get()
    if watch is not None:
        watch(what, done, most)
