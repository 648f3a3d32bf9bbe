"""The threads of this process that kernels share their work with (``pool.ll``): made when the first kernel of several
instances is called, as many as the largest of them has use for and this process may use CPUs, asleep between calls.

After a fork the child has none until it calls such a kernel itself. Where the system has no futex (Linux has), every
call does its instances one after the other.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
from pathlib import Path

from isam.runtime.forks import gate
from isam.runtime.linking import link, to_object

MOST = 255  # threads besides the caller
SPIN = 3000  # looks for work before a thread sleeps: 30 to 100 microseconds
PATIENCE = 100_000  # looks for the end of a call when the process ends
FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}  # number of the system call
PAUSE = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": 'call void asm sideeffect "yield", ""()'}
DECLARED = {"x86_64": "declare void @llvm.x86.sse2.pause()"}
STATE, WANTED = 256 + 8 * MOST, 200  # bytes of the state, and where it says how many threads are wanted


class Pool:
    """Addresses of ``fork`` and ``serial``, both ``void (void (ptr words, i64 instance) *, ptr words, i64 count)``."""

    def __init__(self) -> None:
        machine = platform.machine()
        self.threaded = sys.platform == "linux" and sys.byteorder == "little" and machine in FUTEX
        text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
        given = {"@MOST": MOST, "@SPIN": SPIN, "@PATIENCE": PATIENCE, "@FUTEX": FUTEX.get(machine, 0),
                 "@PAUSES": DECLARED.get(machine, ""), "@PAUSE": PAUSE.get(machine, "")}  # fmt: skip
        for name, value in given.items():
            text = text.replace(name, str(value))
        self._linked = link("pool", to_object(text), {}, ("fork", "serial", "stop", "state"))
        self.serial: int = self._linked["serial"]
        self.fork: int = self._linked["fork"] if self.threaded else self.serial
        self._state: int = self._linked["state"]
        self._wanted = ctypes.c_int32.from_address(self._state + WANTED)
        if self.threaded:
            atexit.register(ctypes.CFUNCTYPE(None)(self._linked["stop"]))

    def want(self, instances: int) -> None:
        """Kernels of so many instances are to be called."""
        self._wanted.value = max(self._wanted.value, min(instances, cpus(), MOST + 1) - 1)

    @property
    def threads(self) -> int:
        """How many threads a call may use, its own among them."""
        return 1 + self._wanted.value

    def child(self) -> None:
        """After a fork: no thread is there, whoever was in a call is not either."""
        wanted = self._wanted.value
        ctypes.memset(self._state, 0, STATE)
        self._wanted.value = wanted


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_made: list[Pool] = []
_lock = threading.Lock()


def pool() -> Pool:
    """The one pool of this process: code that was linked against it keeps its address."""
    with gate.inside(), _lock:
        if not _made:
            _made.append(Pool())
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_made[0].child)
        return _made[0]


def fork_address(instances: int, guarded: bool) -> int:
    """Who runs regions of so many instances; ``guarded``: whoever calls them wants to hear of exceptions."""
    threads = pool()
    threads.want(instances)
    return threads.serial if guarded else threads.fork
