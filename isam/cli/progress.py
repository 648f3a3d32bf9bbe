"""A sign of life on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Shows ``what`` on standard error while the block runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def counting(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a bar on standard error that shows how many are done, if that is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, console=Console(stderr=True), transient=True)
