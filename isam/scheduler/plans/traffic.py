"""What a nest reads, how often and how fast."""

from __future__ import annotations

from collections.abc import Collection
from math import ceil, prod

from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plans.register import axes_of
from isam.system.graph import System

WORTH_PACKING = 4  # times an operand is read, from which on laying it out anew pays


def needed(main: Nest, width: dict[str, int], system: System) -> float:
    """Bytes per second that a register block reads of what its rows share."""
    calls = prod(-(-width[a] // main.unit(a)) for a in main.axes if a not in main.reduced)
    return reads(main, width, vector_axes(main)[-1:]) * call_rate(main, system) / calls


def vector_axes(main: Nest) -> list[str]:
    """Axes that vectors, or tiles, lie along; the last is the inner one."""
    return [a for a in main.axes if a in main.mapped and a not in main.reduced]


def call_rate(main: Nest, system: System) -> float:
    """Calls of a nest's instruction in a second, each of them of full size."""
    return system.clock_of(main.instruction.name) / main.cycles


def reads(main: Nest, width: dict[str, int], along: Collection[str]) -> int:
    """Bytes of what lies along some axes that a register block reads for one step of its sums."""
    step = {a: width.get(a, main.unit(a)) for a in main.axes}
    held = (u for u in main.uses if u.reads and not u.writes and set(along) & axes_of(u))
    return sum(prod(step.get(a, 1) for a in axes_of(u)) * size_of(u.dtype) for u in held)


def brought(main: Nest) -> list[Use]:
    """Operands that a nest only reads, literals apart."""
    return [u for u in main.uses if u.reads and not u.writes and u.index and not is_literal(u.buffer)]


def boxes_held(main: Nest, along: str, width: dict[str, int], common: Collection[str]) -> int:
    """How many boxes of what is read along an axis are held side by side: all that the loops inside one that reads them
    again go through. Axes of a register block of one row are outside the others, and those inside that not all nests of
    the group have in ``common``."""
    loops = (a for a in main.axes if a not in main.reduced and a != along)
    loops = sorted(loops, key=lambda a: (a not in common, a in main.mapped, width[a] > 1))
    most = 1
    for mine in (axes_of(u) for u in main.uses if u.reads and not u.writes and along in axes_of(u)):
        again = next((n for n, a in enumerate(loops) if a not in mine and main.length(a) > width[a]), len(loops))
        held = prod(main.length(a) if n > again else width[a] for n, a in enumerate(loops) if a in mine)
        most = max(most, held)
    return most


def volume(nest: Nest, use: Use, still: Collection[str] = ()) -> int:
    """Elements of a buffer that the nest touches, while the axes ``still`` stand still; those that steps along the last
    dimension leave out are brought with the others."""
    moving = nest.extents.keys() - set(still)
    terms = [[(abs(c), nest.length(a)) for a, c in r.terms if a in moving] for r in use.index]
    spans = [1 + sum(c * (n - 1) for c, n in t) for t in terms]
    return prod(min(s, prod(n for _, n in t)) for s, t in zip(spans[:-1], terms, strict=False)) * prod(spans[-1:])


def outside(main: Nest, use: Use, width: dict[str, int]) -> int:
    """How often blocks that the operand has no part in make it be read again."""
    mine = axes_of(use)
    others = (a for a in main.axes if a not in mine and a not in main.reduced)
    return prod(ceil(main.length(a) / max(1, width.get(a, 1))) for a in others)
