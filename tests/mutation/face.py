"""One mutant against the tests of its part, in a process of its own that ends by a limit of CPU time."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.mutation.checks import Check
from tests.mutation.edits import Mutant
from tests.mutation.live import put

MEMORY = 4 << 30
LONG = 3  # seconds of one check


def apart(work: Callable[[], Any], seconds: int) -> Any:
    """What ``work`` returns in a child process; None where it ended by a limit or a signal. JSON-able values only."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            told = json.dumps(work()).encode()
        except BaseException as e:
            told = json.dumps(f"raised {type(e).__name__}").encode()
        with os.fdopen(writing, "wb") as f:
            f.write(told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as f:
        told = f.read()
    os.waitpid(child, 0)
    return json.loads(told) if told else None


def reach(check: Check, seen: set[int]) -> tuple[float, str] | None:
    """The CPU seconds a check takes on the sources as they are, and which of the watched statements it reaches (their
    numbers as bits, in hexadecimal). In a child: what it computes must not be kept for others. None for a check that
    fails, or takes long."""

    def work() -> tuple[float, str]:
        start = time.process_time()
        check()
        return time.process_time() - start, f"{sum(1 << n for n in seen):x}"

    told = apart(work, LONG)
    return told if isinstance(told, list) else None


def faced(mutant: Mutant, checks: list[Check], seconds: int) -> str:
    """What killed the mutant; '' where nothing did."""

    def work() -> str:
        try:
            put(mutant)
        except SyntaxError:
            return "no program"
        for c in checks:
            try:
                c()
            except KeyboardInterrupt:
                raise
            except BaseException as e:
                return f"{c.name}: {type(e).__name__}"
        return ""

    told = apart(work, seconds)
    return "a limit of time or memory" if told is None else told


def gently(nice: int) -> None:
    """Low priority; and an interrupt ends the command, not a mutant."""
    os.nice(max(0, nice - os.nice(0)))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))
