"""What bounds a machine whatever runs on it: operations per second by what is multiplied, bytes per second by where
they come from. The roofs of a roofline picture, measured."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.system.graph import System
from isam.tune.calibrate import Calibration, Measured, Stream

TURNS = 20  # of each measurement: nothing may be quicker than a roof, however busy the machine is
FREE = ("copy", "cast", "cast_sat", "select", "neg")  # no arithmetic, or a sign that a product takes along


@dataclass(frozen=True, slots=True)
class Roofs:
    """Of one core. ``rates``: operations per second, by the type of the first factor, of the quickest instruction that
    multiplies and adds up. ``reads``: bytes per second of whole registers, by the nearest memory that holds what is
    gone over, the nearest first; the last is the one behind all caches. ``clock``: cycles per second meanwhile."""

    clock: float
    rates: dict[str, float]
    reads: dict[str, float]


def roofs(system: System) -> Roofs:
    """Measures them, in about a second. Raises :class:`IsamError` where code for the machine does not run here."""
    c = Calibration(system, TURNS)
    able = c.runnable()
    return Roofs(c.clock, rates(c, (c.measure(i) for i in multiplying(c) if i in able)), reads(c, c.streams()))


def multiplying(c: Calibration) -> list[Instruction]:
    """Instructions between registers that add products up."""
    return [i for i in c.instructions() if _multiplies(i)]


def multiplied(system: System) -> set[str]:
    """Types of first factors that a machine has instructions for which add products up."""
    return {_factor(i) for i in system.compute if _multiplies(i)}


def rates(c: Calibration, found: Iterable[Measured]) -> dict[str, float]:
    """Operations per second by type, of what was measured. A type is left out if the machine has instructions for it
    whose operands lie elsewhere than in registers: those are quicker, and not measured."""
    quickest: dict[str, float] = {}
    for m in found:
        i = c.system.instructions[m.name]
        if _multiplies(i):
            rate = _operations(i) / m.issue * c.clock
            quickest[_factor(i)] = max(rate, quickest.get(_factor(i), 0.0))
    between = {i.name for i in c.instructions()}
    elsewhere = {_factor(i) for i in c.system.compute if i.name not in between and _multiplies(i)}
    return {dtype: rate for dtype, rate in quickest.items() if dtype not in elsewhere}


def reads(c: Calibration, streams: Iterable[Stream]) -> dict[str, float]:
    """Bytes per second of loads, by memory."""
    return {x.memory: x.rate * c.clock for x in streams if x.name == "load"}


def _multiplies(i: Instruction) -> bool:
    factors = [b for b in i.body.arguments if b.role == "in"]
    sums = [b for b in i.body.arguments if b.role == "inout"]
    return len(factors) == 2 and len(sums) == 1 and any(s.op == "mul" for s in i.body.statements)


def _factor(i: Instruction) -> str:
    return next(b.dtype for b in i.body.arguments if b.role == "in")


def _operations(i: Instruction) -> int:
    """Of one call in its widest form, a product and its sum being two."""
    widest = {s.name: s.hi or 1 for s in i.syms}
    return sum(prod(a.extent.evaluate(widest) for a in s.domain.axes)
               for s in i.body.statements if s.accumulate or s.op not in FREE)  # fmt: skip
