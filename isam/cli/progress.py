"""A sign of life on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

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


@contextmanager
def schedules() -> Iterator[None]:
    """While the block compiles and the Approach has several schedules made, or run: a bar on standard error that shows
    how many are, of how many at most, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from isam.compiler.watch import WATCH

    with ExitStack() as stack:
        bars: list[Progress] = []
        tasks: dict[str, TaskID] = {}

        def watch(what: str, done: int, most: int) -> None:
            if not bars:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

                columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
                bars.append(stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True)))
            if what not in tasks:
                tasks[what] = bars[0].add_task(what, total=most)
            bars[0].update(tasks[what], completed=done, total=most)

        stack.callback(WATCH.reset, WATCH.set(watch))
        yield


def counting(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a bar on standard error that shows how many are done, if that is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, console=Console(stderr=True), transient=True)
