"""Random kernels as native code: ``python -m tests.campaign_native FIRST LAST [--on DESCRIPTION ...]``.

``--proof``: with the proof. ``--threads N``: on so many cores, wherever a loop can be dealt to them, however short.
``--oldest``: for the first x86-64, whatever this CPU has (with ``--on host-generic``). ``--elsewhere``: code from
descriptions for other CPUs, too, made for this one (`tests.elsewhere`).

Every case (`tests.native_cases`) is compiled for each description that this CPU can run and called with all buffers
between pages that nobody may touch, flush with the end, then with the begin. Integers and what permits no rounding of
its own must be the interpreter's bit for bit, everything else lies within bounds derived per element.

Cases run in child processes, some dozens in each: one that crashes or hangs is told by its number, and the next goes
on. Prints every finding with the kernel and a summary per description; exits with 1 if there was any.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import select
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from unittest import mock

from isam.codegen.llvm import machine
from isam.compiler import Refused
from isam.scheduler.plans import shared_home
from isam.system.features import lacking
from isam.system.load import load_system
from tests.elsewhere import elsewhere
from tests.native import first_x86_64
from tests.native_cases import case, fault
from tests.on_the_tree import on_the_tree
from tests.random_kernels import show

DESCRIPTIONS = ("host-generic", "host-avx2", "host-avx512", "blas")
TOGETHER = 40  # cases in a process
BUDGET = 60.0  # seconds for a case

Outcome = tuple[int, str, str]  # the case, what came of it (right, no, wrong, crashed, slow), how


def one(seed: int, on: str, check: bool = False, threads: int = 1) -> tuple[str, str]:
    """What comes of a case in this process."""
    c = case(seed)
    try:
        with mock.patch.object(shared_home, "MEETING", -1e12):  # no loop is too short for threads
            told = fault(c, on, check, threads)
    except Refused as no:
        return ("no", "") if no.diagnostics[0].message else ("wrong", "refused without a word")
    except Exception as e:  # whatever it is, it is a finding
        told = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"
    return ("right", "") if told is None else ("wrong", told)


def outcomes(first: int, last: int, on: str, check: bool = False, run=one, budget: float = BUDGET) -> Iterator[Outcome]:
    """What comes of all cases, each in a process that may die of it."""
    while first < last:
        stop = min(last, first + TOGETHER)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _work(range(first, stop), on, check, run, writer)
        os.close(writer)
        for seed, kind, how in _heard(reader, range(first, stop), budget):
            yield seed, kind, how
            first = seed + 1
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if first < stop:  # it ended, or was ended, in the middle of a case
            yield first, *_end(status, budget)
            first += 1


def _end(status: int, budget: float) -> tuple[str, str]:
    """What a case did to its process."""
    if os.WIFEXITED(status):
        return "crashed", f"exit code {os.WEXITSTATUS(status)}"
    if os.WTERMSIG(status) == signal.SIGKILL:
        return "slow", f"no answer within {budget:.0f} s"
    return "crashed", f"signal {signal.Signals(os.WTERMSIG(status)).name}"


def _work(seeds: range, on: str, check: bool, run, writer: int) -> None:
    """In the child: a line per case."""
    faulthandler.disable()  # the parent tells
    try:
        for seed in seeds:
            kind, how = run(seed, on, check)
            os.write(writer, f"{seed}\t{kind}\t{how[:1000]!r}\n".encode())
        signal.pause()  # until the parent has read it all and ends it
    finally:
        os._exit(1)


def _heard(reader: int, seeds: range, budget: float) -> Iterator[Outcome]:
    """The child's lines, until all cases are through or nothing comes any more."""
    left, text, end = len(seeds), b"", time.monotonic() + budget
    while left and select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
        more = os.read(reader, 1 << 16)
        if not more:
            return
        *lines, text = (text + more).split(b"\n")
        for line in lines:
            seed, kind, how = line.decode().split("\t", 2)
            left, end = left - 1, time.monotonic() + budget
            yield int(seed), kind, how[1:-1]


def runnable(names: list[str]) -> list[str]:
    """Those of the descriptions that this CPU can run; says which it cannot."""
    out = []
    for name in names:
        if lacks := lacking(load_system(name).needs):
            print(f"{name}: left out, this CPU lacks {', '.join(lacks)}")
        else:
            out.append(name)
    return out


def main() -> int:
    with ExitStack() as stack:
        stack.enter_context(on_the_tree())
        return _main(stack)


def _main(stack: ExitStack) -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--on", nargs="+", default=list(DESCRIPTIONS))
    p.add_argument("--proof", action="store_true")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--oldest", action="store_true")
    p.add_argument("--elsewhere", action="store_true")
    o = p.parse_args()
    if o.oldest:
        old = first_x86_64()
        machine._machine = lambda: old
    warnings.simplefilter("ignore")
    wrong = 0
    run = partial(one, threads=o.threads)
    if o.elsewhere:
        stack.enter_context(elsewhere())
    for on in o.on if o.elsewhere else runnable(o.on):
        start, counts = time.perf_counter(), Counter()
        run(o.first, on)  # children start with what every compilation loads
        for seed, kind, how in outcomes(o.first, o.last, on, o.proof, run):
            counts[kind] += 1
            if kind not in ("right", "no"):
                c = case(seed)
                print(f"# case {seed} on {on}, {c.kind}, given {c.given}: {kind}, {how}")
                print(show(c.kernel, c.sizes), flush=True)
            if (seed + 1 - o.first) % 500 == 0:
                print(f"{on} {o.first} to {seed + 1}: {dict(counts)}", file=sys.stderr, flush=True)
        wrong += sum(n for kind, n in counts.items() if kind not in ("right", "no"))
        print(f"native on {on}, {o.first} to {o.last}: {dict(counts)}, {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
