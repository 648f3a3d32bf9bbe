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


Reach = tuple[float, float, str]


def reach(checks: list[Check], seen: set[int]) -> list[Reach | None]:
    """Per check the CPU seconds it takes on the sources as they are, those that the first of all takes more, and which
    of the watched statements it reaches (their numbers as bits, in hexadecimal); None for one that fails, or takes
    long. The checks are those of one function: in one child, because what they share is made by the first of them, and
    then there for the others; so it is when they face a mutant. What that reaches counts as reached by all."""

    def timed(check: Check) -> tuple[float, set[int]] | None:
        seen.clear()
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, LONG)
        try:
            check()
        except BaseException:
            return None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return time.process_time() - start, set(seen)

    def work() -> list[Reach | None]:
        signal.signal(signal.SIGVTALRM, _too_long)
        first = timed(checks[0])
        found, more, shared = [first], 0.0, set[int]()
        if len(checks) > 1 and first is not None and (again := timed(checks[0])) is not None:
            found, more, shared = [again], max(0.0, first[0] - again[0]), first[1] - again[1]
        found += [timed(c) for c in checks[1:]]
        return [f and (f[0], more, f"{sum(1 << n for n in f[1] | shared):x}") for f in found]

    return apart(work, (LONG + 1) * (len(checks) + 1)) or [None] * len(checks)


def _too_long(*_: object) -> None:
    raise TimeoutError


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
