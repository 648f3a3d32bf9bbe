"""What an interrupt (Ctrl-C) does: it ends the command, without a traceback and without half an answer."""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from typing import Any

INTERRUPTED = 130  # the exit code, as shells have it for a process that the signal ended
AGAIN = 0.005  # seconds after which one that could not be raised comes again


def told() -> None:
    """Says so."""
    sys.stderr.write("interrupted\n")
    sys.stderr.flush()


@contextmanager
def unlost() -> Iterator[None]:
    """While this lasts, an interrupt that comes while an object is finalised, where nothing can be raised, comes again
    afterwards, instead of being printed and forgotten."""
    before, waiting = sys.unraisablehook, list[Timer]()

    def again(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            return before(unraisable)
        while True:
            waiting.append(Timer(AGAIN, _thread.interrupt_main))  # raised here it would be lost as well
            try:
                return waiting[-1].start()
            except KeyboardInterrupt:  # so late did its thread begin: once more
                pass

    sys.unraisablehook = again
    try:
        yield
    finally:
        sys.unraisablehook = before
        late = [t for t in waiting if t.is_alive()]
        for t in late:
            t.cancel()
    if late:
        raise KeyboardInterrupt


@contextmanager
def held() -> Iterator[None]:
    """While this lasts, one interrupt waits: what is written is written whole. A second one is not kept waiting, since
    the reader may have stopped reading."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    waiting: list[int] = []

    def wait(number: int, frame: Any) -> None:
        if waiting:
            signal.default_int_handler(number, frame)
        waiting.append(number)

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if waiting:
        raise KeyboardInterrupt
