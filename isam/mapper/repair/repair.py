"""One change, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel

CURRENCIES = ("program", "shape", "hardware")
SHOWN = 2  # changes kept per currency
LOOKED = 8  # mismatches that are acted on


@dataclass(frozen=True, slots=True)
class Repair:
    """``change``: what to do, in words; ``size``: how much that is, comparable within a currency; ``then``: how the
    instruction is used after it; ``steps``: laws applied one after the other, for the currency *program*; ``kernel``,
    ``instruction``: both as they are after the change."""

    currency: str
    change: str
    size: float
    then: str
    kernel: Kernel = field(repr=False)
    instruction: Instruction = field(repr=False)
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.change


def smallest(found: Iterable[Repair]) -> tuple[Repair, ...]:
    """The least changes of each currency."""
    out: list[Repair] = []
    for currency in CURRENCIES:
        mine = sorted((r for r in found if r.currency == currency), key=lambda r: r.size)
        out += {r.change: r for r in mine[:SHOWN]}.values()
    return tuple(out)
