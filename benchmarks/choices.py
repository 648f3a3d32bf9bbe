"""What it is worth that an Approach decides as it does.

    python -m benchmarks.choices serpentine|blocks|rows|steps|stream|upfront|pipeline|measured [--group NAME ...]
                                [--shape NAME ...] [--rounds N] [--seconds S]

``serpentine``: loops go back and forth where a cache keeps part of what they go through; else all go forth. ``blocks``:
sweeps over a block ask for the next one; else none does. ``rows``: loops that go through rows several times ask for the
next ones; else none does. ``steps``: what a recurrent loop reads is made for a block of
its steps at a time; else as the kernel is written. ``stream``: what would not be found again passes the nearest cache;
else all stays there. ``upfront``: tiles are brought before the calls of their block; else as they are wanted.
``measured``: schedules are run beside each other when the kernel is compiled, and another one than the one decided by
prediction is taken; else that one. Each
kernel of which something is decided so is compiled once more for an Approach that never decides so, and both are called
in turns. A ratio above 1 is what the decision is worth. One thread, CPU time; results are judged first. The other
kernels are named and not measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import isam
from isam.approach.choice import Approach, Choice
from isam.approach.shipped.greedy import Greedy
from isam.approach.shipped.measured import Measured
from isam.schedule.tree import Issue, Loop, Schedule, distinct

from .data import Judge, arrays_of
from .kernels import kernel_of
from .measure import Settings, Wrong, passed
from .shapes import GROUPS, Case, Convolution, Shape
from .timing import Call, Times, alternate, ratio


class Without(Greedy):
    """Greedy, but at one choice point, where ``when`` holds, it takes the first option: never the decision."""

    why = "without it"

    def __init__(self, point: str, when: Callable[[Choice], bool] = lambda _: True):
        self.point, self.when, self.name = point, when, f"without {point}"

    def decide(self, choice: Choice) -> Any:
        return choice.options[0] if choice.point == self.point and self.when(choice) else super().decide(choice)


def over_blocks(choice: Choice) -> bool:
    """Whether sweeps over a block are what would ask for the next one."""
    return choice.context["sweeps"] > 1


class Decision(NamedTuple):
    """``without``: an Approach that never decides so; ``seen``: whether a schedule shows that it was decided;
    ``groups``: of shapes, where it is expected; ``by``: who decides so."""

    without: Approach
    seen: Callable[[Schedule], bool]
    groups: tuple[str, ...]
    by: Approach = Greedy()


def turns(schedule: Schedule) -> bool:
    return any(isinstance(n, Loop) and n.serpentine is not None for n in distinct(schedule.call))


def asks(schedule: Schedule) -> bool:
    asked = (n.prefetch for n in distinct(schedule.call) if isinstance(n, Issue))
    return any(p is not None and not p.ahead.is_constant for p in asked)


def over_rows(choice: Choice) -> bool:
    """Whether the rows of the next iteration are what would be asked for."""
    return bool(choice.context["row"])


def asks_for_rows(schedule: Schedule) -> bool:
    asked = (d for d in schedule.trace.decisions if d.point == "prefetch" and d.context["row"])
    return any(d.chosen for d in asked)


def streams(schedule: Schedule) -> bool:
    others = set(schedule.system.streaming.values())
    return any(isinstance(n, Issue) and n.instruction in others for n in distinct(schedule.call))


def decided(point: str) -> Callable[[Schedule], bool]:
    """Whether the Approach took another option than the first at a point."""
    return lambda schedule: any(d.point == point and d.chosen for d in schedule.trace.decisions)


def ran(schedule: Schedule) -> bool:
    """Whether another schedule was taken than the one decided by prediction, as it was quicker when they were run."""
    return any(" that were run" in d.why for d in schedule.trace.decisions)  # of the first: "by prediction"


def in_blocks(schedule: Schedule) -> bool:
    return any(s.startswith("sink ") for s in schedule.cover.steps)


TILES = ("bf16", "int8", "resnet50-bf16", "blocks-bf16", "attention-bf16")
DECISIONS = {
    "serpentine": Decision(Without("serpentine"), turns, ("gru", "gru-bf16")),
    "blocks": Decision(Without("prefetch", over_blocks), asks,
                       ("deepbench", "resnet50", "blocks", "gru", "gru-bf16", "bf16", "int8")),
    "rows": Decision(Without("prefetch", over_rows), asks_for_rows, ("rows",)),
    "steps": Decision(Without("variant"), in_blocks, ("gru", "gru-bf16")),
    "stream": Decision(Without("stream"), streams, TILES),
    "upfront": Decision(Without("upfront"), decided("upfront"), TILES),
    "measured": Decision(Greedy(), ran, ("square", "deepbench", "resnet50", "depthwise", "rows"), Measured()),
    "pipeline": Decision(Without("pipeline"), decided("pipeline"), TILES),
}


def calls_of(shape: Shape, decision: Decision, on: str = "host") -> tuple[dict[str, Call], Judge] | None:
    """A call without and with the decision, and who judges results; None where nothing is decided so."""
    bound = not isinstance(shape, Case | Convolution)
    kernel, sizes = kernel_of(shape, bound)
    ways = (decision.without, decision.by)
    fns = [isam.compile(kernel, on=on, sizes=sizes, cache=False, approach=a) for a in ways]
    schedule = fns[1].job.schedule
    if schedule is None or not decision.seen(schedule):
        return None
    arrays = arrays_of(shape)
    judge = Judge.case(shape, arrays) if isinstance(shape, Case) else Judge.product(shape, *arrays.values())
    given, constants, out = passed(shape, arrays, bound)
    fast = (fn.bind(**constants) if constants else fn for fn in fns)
    out = {} if isinstance(shape, Convolution) else out
    return {w: Call(f, given, out) for w, f in zip(("without", "with"), fast, strict=True)}, judge


def row(shape: Shape, decision: Decision, settings: Settings) -> dict[str, Times] | None:
    """Times without and with the decision. Raises :class:`Wrong`."""
    found = calls_of(shape, decision, settings.on)
    if found is None:
        return None
    calls, judge = found
    for name, call in calls.items():
        if fault := judge.wrong(call()):
            raise Wrong(f"{shape.name}, {name}: {fault}")
    return alternate(calls, settings.rounds, settings.seconds)


def line(name: str, times: dict[str, Times]) -> str:
    best, median = ratio(times["with"], times["without"])
    return f"{name:32}" + "".join(f"{t.least * 1e6:18.1f}" for t in times.values()) + f"{best:9.2f} ({median:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns the exit code, 0."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("decision", choices=list(DECISIONS))
    p.add_argument("--group", action="append", choices=list(GROUPS), help="several times; those where it is expected")
    p.add_argument("--shape", action="append", help="only shapes whose name contains this; several times")
    p.add_argument("--rounds", type=int, default=5, help="turns that each of both gets")
    p.add_argument("--seconds", type=float, default=0.08, help="seconds per turn")
    a = p.parse_args(arguments)
    decision, still = DECISIONS[a.decision], list[str]()
    print(f"{'us':32}" + "".join(f"{w:>18}" for w in ("without", "with")))
    for shape in (s for g in a.group or decision.groups for s in GROUPS[g]):
        if a.shape and not any(s in shape.name for s in a.shape):
            continue
        times = row(shape, decision, Settings(a.rounds, a.seconds))
        if times is None:
            still.append(shape.name)
        else:
            print(line(shape.name, times), flush=True)
    print(f"nothing is decided so: {', '.join(still)}" if still else "decided so in all of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
