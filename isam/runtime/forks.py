"""Forks wait until nobody compiles or links, but no longer than :data:`PATIENCE`: a child has only the thread that
forked, so that what another thread had locked or half changed (Python's modules and cached properties, LLVM) would stay
so in it for ever. What frees code does not pass the gate, since that may happen anywhere; it holds llvmlite's lock for
a moment, and so does a fork."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

PATIENCE = 10.0  # seconds after which a fork waits no longer


class Gate:
    """Any number of threads are inside at once; a fork happens while none is, its own thread left out."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}  # how deep, by thread
        self._forks = 0  # how many threads want to fork
        self._llvm: Any = None  # llvmlite's lock, while a fork holds it

    @contextmanager
    def inside(self) -> Iterator[None]:
        """While this lasts, forks of other threads wait."""
        me = threading.get_ident()
        with self._changed:
            if me not in self._inside:
                self._changed.wait_for(lambda: not self._forks, PATIENCE)
            self._inside[me] = self._inside.get(me, 0) + 1
        try:
            yield
        finally:
            with self._changed:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                    self._changed.notify_all()

    def before(self) -> None:
        """Before a fork, which ``after`` follows."""
        self._changed.acquire()
        me, end = threading.get_ident(), monotonic() + PATIENCE
        self._forks += 1
        self._changed.wait_for(lambda: not self._inside.keys() - {me}, max(0.0, end - monotonic()))
        lock = _llvm()
        if lock is not None and lock.acquire(timeout=max(0.0, end - monotonic())):
            self._llvm = lock

    def _done(self) -> None:
        held, self._llvm = self._llvm, None
        if held is not None:
            held.release()

    def after(self) -> None:
        """In the parent."""
        self._done()
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()

    def child(self) -> None:
        """In the child: only this thread is there."""
        self._done()
        me = threading.get_ident()
        depth = self._inside.get(me)
        self._reset()
        if depth:
            self._inside[me] = depth


def _llvm() -> Any:
    """The lock around all that llvmlite does; None where it is not loaded, or keeps it elsewhere."""
    lib = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    return getattr(getattr(lib, "_lock", None), "_lock", None)


gate = Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=gate.before, after_in_parent=gate.after, after_in_child=gate.child)
