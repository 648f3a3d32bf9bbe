"""Whether an instruction's operands can lie anywhere all at once (SYS-3): homes, groups apart and ports together."""

from __future__ import annotations

from collections.abc import Mapping

from isam.ir.instruction import Instruction
from isam.system.graph import System

Homes = Mapping[str, tuple[str, ...]]


def contradiction(system: System, i: Instruction, homes: Homes) -> str:
    """Why no memory can be found for every operand, in terms of as few operands as show it; empty: it can."""
    ported = {m.name for m in system.memories.values() if m.ports.read is not None or m.ports.write is not None}
    if len(i.apart) < 2 and not any(ported.intersection(h) for h in homes.values()):
        return ""
    operands = list(homes)
    if _placeable(system, i, homes, operands):
        return ""
    for o in list(operands):
        fewer = [x for x in operands if x != o]
        if not _placeable(system, i, homes, fewer):
            operands = fewer
    return _told(system, i, homes, operands, ported)


def _placeable(system: System, i: Instruction, homes: Homes, operands: list[str]) -> bool:
    """Whether some joint placement exists: the operand with fewest homes first, back at every contradiction."""
    role = {a.name: a.role for a in i.body.arguments}
    order = sorted(operands, key=lambda o: len(homes[o]))
    at: dict[str, str] = {}

    def admitted(operand: str, memory: str) -> bool:
        if any(operand in g and any(at.get(x) == memory for x in g if x != operand) for g in i.apart):
            return False
        there = [role[operand], *(role[o] for o, m in at.items() if m == memory)]
        return system.memories[memory].ports.admit(there)

    def place(n: int) -> bool:
        if n == len(order):
            return True
        for m in homes[order[n]]:
            if m in system.memories and admitted(order[n], m):
                at[order[n]] = m
                if place(n + 1):
                    return True
                del at[order[n]]
        return False

    return place(0)


def _told(system: System, i: Instruction, homes: Homes, operands: list[str], ported: set[str]) -> str:
    parts = [f"{o} in {' or '.join(homes[o])}" for o in operands]
    rules = [f"{', '.join(g)} apart" for g in i.apart if len(set(g) & set(operands)) > 1]
    for m in dict.fromkeys(h for o in operands for h in homes[o] if h in ported):
        p = system.memories[m].ports
        counts = [f"{n} {does}" for n, does in ((p.read, "read"), (p.write, "written")) if n is not None]
        rules.append(f"of one call's operands '{m}' has at most {', '.join(counts)}")
    return f"{', '.join(parts)}; but {'; '.join(rules)}"
