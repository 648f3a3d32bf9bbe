"""Alignment as the scheduler keeps to it: an address in a memory suits every operand that may lie there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from math import lcm

from isam.classes import dataclass
from isam.system.graph import Memory, System


@dataclass(frozen=True)
class Stricter(Memory):
    """A memory in which room is given at multiples of ``align``, and accesses begin at multiples of ``everyone``."""

    everyone: int = 1

    @property
    def access(self) -> int:
        return self.everyone


def _stricter(m: Memory, align: int) -> Memory:
    own = {f.name: getattr(m, f.name) for f in fields(m)}
    return Stricter(**{**own, "align": align}, everyone=m.access)


def aligned(system: System, used: Iterable[str]) -> System:
    """The machine with memories as strictly aligned as the strictest operand that may lie in them demands, of the
    instructions ``used`` or of a move: room is given to a tile before it is known who else will touch it. Within a box
    an operand that asks for less (``Memory.access``) may begin between. What home demands depends on where arguments
    lie."""
    wanted = {n: max(1, m.align) for n, m in system.memories.items()}

    def want(memory: str, align: int) -> None:
        if memory in wanted:
            wanted[memory] = lcm(wanted[memory], max(1, align))

    for i in (system.instructions[n] for n in {**dict.fromkeys(used), **{m.by: None for m in system.moves}}):
        for name, c in i.operands.items():
            for memory in c.homes if c.align > 1 else ():
                want(memory, c.align)
            for m in (m for m in system.moves if c.align > 1 and m.by == i.name):
                want(m.source if i.operand(name).role in ("in", "const") else m.target, c.align)
    own = {n: m for n, m in system.memories.items() if m.scratchpad}
    stricter = {n: _stricter(m, wanted[n]) for n, m in own.items() if wanted[n] != m.access}
    return replace(system, memories={**system.memories, **stricter}) if stricter else system
