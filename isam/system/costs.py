"""The cost of a registered function: as stated, or as measured when it was tried (SYS-7)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median
from typing import Any

from isam.diagnostics import Diagnostic, Loc, fail
from isam.ir.instruction import Cost, Instruction
from isam.ir.kernel import Kernel
from isam.system.faults import nearest
from isam.system.trials import Placed, Trial, operands, size_of_trial, trials
from isam.system.units import QuantityError, parse_quantity

EXAMPLE = '''{"issue": "1000 cycles", "latency": "1200 cycles", "per": {"N": "0.5 cycles"}}'''
STATED = ("issue", "latency", "per")
CALLS = 9  # whose median counts
SECONDS = 0.2  # of them all, the first three aside


def stated(cost: object, body: Kernel, at: Loc, faults: list[Diagnostic]) -> Cost:
    """The cost that was given: a :class:`Cost`, or a mapping as in a description; of nothing, one that states nothing.
    ``at``: where it stands; ``faults`` gets what is wrong."""
    wrong = _Wrong(at, faults)
    if cost is None or cost == Cost():
        return Cost()
    made = cost if isinstance(cost, Cost) else _from_mapping(cost, wrong)
    numbers = [n for n in (made.issue, made.latency, made.setup, made.bandwidth, *(c for _, c in made.per))
               if n is not None]  # fmt: skip
    for n in numbers:
        if isinstance(n, bool) or not isinstance(n, int | float) or not math.isfinite(n) or n < 0:
            wrong(f"{n!r} is no number of cycles", "cycles are finite numbers of at least 0")
    sizes = [s.name for s in body.syms]
    for size, _ in made.per:
        if size not in sizes:
            wrong(f"'{body.name}' has no size '{size}'", nearest(str(size), sizes))
    return made


class _Wrong:
    """Notes faults of a cost, all at one place."""

    def __init__(self, at: Loc, faults: list[Diagnostic]):
        self.at, self.faults = at, faults

    def __call__(self, message: str, hint: str) -> None:
        self.faults.append(Diagnostic("instruction-cost", message, self.at, hint))


def _from_mapping(cost: object, wrong: _Wrong) -> Cost:
    if not isinstance(cost, Mapping):
        wrong(f"a cost is no {type(cost).__name__}", f"for example cost={EXAMPLE}")
        return Cost()
    for key in cost:
        if key not in STATED:
            wrong(f"a cost has no '{key}'", nearest(str(key), STATED))
    per = cost.get("per", {})
    if not isinstance(per, Mapping):
        wrong(f"'per' is no {type(per).__name__}", f"for example cost={EXAMPLE}")
        per = {}
    issue, latency = (_cycles(cost[k], wrong) if k in cost else None for k in ("issue", "latency"))
    return Cost(issue, latency, per=tuple((str(n), _cycles(v, wrong)) for n, v in per.items()))


def _cycles(value: object, wrong: _Wrong) -> float:
    if not isinstance(value, str):
        wrong(f"{value!r} has no unit", f"write '{value} cycles', or give isam.ir.instruction.Cost")
        return 0.0
    try:
        return float(parse_quantity(value, "cycles"))
    except QuantityError as e:
        wrong(str(e), e.hint)
        return 0.0


def measured(instruction: Instruction, call: Callable[..., Any], seed: int, *, alone: bool) -> float:
    """Seconds of a call with the integers that emitted code passes, at the largest sizes that were tried. ``alone``:
    less what a call takes at the smallest, which is what a C function takes to be called from here."""
    tried = sorted(trials(instruction, seed), key=lambda t: size_of_trial(instruction, t))
    most = _seconds(instruction, call, tried[-1])
    return max(0.0, most - _seconds(instruction, call, tried[0])) if alone else most


def _seconds(instruction: Instruction, call: Callable[..., Any], trial: Trial) -> float:
    import numpy as np

    placed = operands(instruction, replace(trial, layout="contiguous", shared=False))
    values, taken, end = integers(instruction, dict(trial.sizes), placed), list[float](), time.perf_counter() + SECONDS
    with np.errstate(all="ignore"):
        while len(taken) < 3 or (len(taken) < CALLS and time.perf_counter() < end):
            start = time.perf_counter()
            try:
                call(*values)
            except Exception as e:
                said = f"'{instruction.name}' raises {type(e).__name__}: {str(e)[:200]} (while its calls are measured)"
                raise fail("instruction-raises", said, instruction.loc, "it is called again and again") from e
            taken.append(time.perf_counter() - start)
    return median(taken)


def integers(instruction: Instruction, sizes: Mapping[str, int], placed: Mapping[str, Placed]) -> list[int]:
    """What emitted code passes: see :func:`isam.system.register.parameters`."""
    out = [sizes[s.name] for s in instruction.syms]
    for a in instruction.body.arguments:
        view = placed[a.name].view
        out += [view.__array_interface__["data"][0], *(s // view.itemsize for s in view.strides)]
    return out


def in_cycles(seconds: float, clock: float) -> float:
    """Cycles as a power of two, at least one: so that another measurement mostly says the same."""
    return float(2 ** max(0, round(math.log2(max(1.0, seconds * clock)))))
