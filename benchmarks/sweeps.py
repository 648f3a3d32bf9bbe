"""What it is worth that loops go back and forth where a cache keeps part of what they go through.

    python -m benchmarks.sweeps [--group NAME ...] [--shape NAME ...] [--rounds N] [--seconds S]

Each kernel with such a loop is compiled once more for an Approach that has all loops go forth, and both are called in
turns. A ratio above 1 is what the turning is worth. One thread, CPU time; results are judged first. Kernels without
such a loop are named and not measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import isam
from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.schedule.tree import Loop, Schedule, distinct

from .data import Judge, arrays_of
from .kernels import kernel_of
from .measure import Settings, Wrong, passed
from .shapes import GROUPS, Case, Convolution, Shape
from .timing import Call, Times, alternate, ratio

WAYS = ("forth", "back and forth")


class Forth(Greedy):
    """Greedy, but no loop goes backwards."""

    name = "forth"
    why = "one way"

    def order(self, choice: Choice) -> Any:
        return choice.options[0]


def turning(schedule: Schedule) -> bool:
    return any(isinstance(n, Loop) and n.serpentine is not None for n in distinct(schedule.call))


def calls_of(shape: Shape, on: str = "host") -> tuple[dict[str, Call], Judge] | None:
    """A call per way, by its name, and who judges results; None where no loop turns."""
    bound = not isinstance(shape, Case | Convolution)
    kernel, sizes = kernel_of(shape, bound)
    fns = [isam.compile(kernel, on=on, sizes=sizes, cache=False, approach=a) for a in (Forth(), Greedy())]
    schedule = fns[1].job.schedule
    if schedule is None or not turning(schedule):
        return None
    arrays = arrays_of(shape)
    judge = Judge.case(shape, arrays) if isinstance(shape, Case) else Judge.product(shape, *arrays.values())
    given, constants, out = passed(shape, arrays, bound)
    fast = (fn.bind(**constants) if constants else fn for fn in fns)
    out = {} if isinstance(shape, Convolution) else out
    return {w: Call(f, given, out) for w, f in zip(WAYS, fast, strict=True)}, judge


def row(shape: Shape, settings: Settings) -> dict[str, Times] | None:
    """Times by way. Raises :class:`Wrong`."""
    found = calls_of(shape, settings.on)
    if found is None:
        return None
    calls, judge = found
    for name, call in calls.items():
        if fault := judge.wrong(call()):
            raise Wrong(f"{shape.name}, {name}: {fault}")
    return alternate(calls, settings.rounds, settings.seconds)


def line(name: str, times: dict[str, Times]) -> str:
    best, median = ratio(times[WAYS[1]], times[WAYS[0]])
    return f"{name:32}" + "".join(f"{times[w].least * 1e6:18.1f}" for w in WAYS) + f"{best:9.2f} ({median:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns the exit code, 0."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--group", action="append", choices=list(GROUPS), help="several times (gru, gru-bf16)")
    p.add_argument("--shape", action="append", help="only shapes whose name contains this; several times")
    p.add_argument("--rounds", type=int, default=5, help="turns that each way gets")
    p.add_argument("--seconds", type=float, default=0.08, help="seconds per turn")
    a = p.parse_args(arguments)
    print(f"{'us':32}" + "".join(f"{w:>18}" for w in WAYS))
    still = []
    for shape in (s for g in a.group or ("gru", "gru-bf16") for s in GROUPS[g]):
        if a.shape and not any(s in shape.name for s in a.shape):
            continue
        times = row(shape, Settings(a.rounds, a.seconds))
        if times is None:
            still.append(shape.name)
        else:
            print(line(shape.name, times), flush=True)
    print(f"no loop turns: {', '.join(still)}" if still else "all have loops that turn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
