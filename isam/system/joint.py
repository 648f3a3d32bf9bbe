"""Whether an instruction's operands can lie anywhere all at once (SYS-3): homes, groups apart, ports and the room that
the smallest call takes together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Buffer
from isam.system.graph import Memory, System

Homes = Mapping[str, tuple[str, ...]]


def contradiction(system: System, i: Instruction, homes: Homes) -> str:
    """Why no memory can be found for every operand, in terms of as few operands as show it; empty: it can."""
    ported = {m.name for m in system.memories.values() if m.ports.read is not None or m.ports.write is not None}
    operands, used = list(homes), {h for some in homes.values() for h in some if h in system.memories}
    if not all(system.memories[m].capacity for m in used):
        return ""  # one that holds nothing is refused itself
    tight = {m for m in used if demand(i, system.memories[m], operands) > system.memories[m].limit}
    if len(i.apart) < 2 and not ported & used and not tight:
        return ""
    if _placeable(system, i, homes, operands):
        return ""
    for o in list(operands):
        fewer = [x for x in operands if x != o]
        if not _placeable(system, i, homes, fewer):
            operands = fewer
    return _told(system, i, homes, operands, ported, tight)


def least_bytes(i: Instruction, a: Buffer) -> int:
    """The bytes of an operand in the smallest call with anything to do."""
    sizes = {s.name: s.lo if s.whole else -(-max(1, s.lo) // s.multiple_of) * s.multiple_of for s in i.syms}
    return prod(max(1, e.evaluate(sizes)) for e in a.shape) * (1 if a.dtype == ANY else size_of(a.dtype))


def taken(m: Memory, size: int) -> int:
    """What so many bytes take of a memory: whole cells where it has some."""
    return size if m.cell is None else -(-size // m.cell)


def demand(i: Instruction, m: Memory, operands: Iterable[str]) -> int:
    """The least that these operands of one call take of a memory: what is read may be one and the same, what is only
    written is not."""
    some = [(a.role == "out", taken(m, least_bytes(i, a))) for a in i.body.arguments if a.name in operands]
    return max((n for out, n in some if not out), default=0) + sum(n for out, n in some if out)


def _placeable(system: System, i: Instruction, homes: Homes, operands: list[str]) -> bool:
    """Whether some joint placement exists: the operand with fewest homes first, back at every contradiction."""
    role = {a.name: a.role for a in i.body.arguments}
    order = sorted(operands, key=lambda o: len(homes[o]))
    at: dict[str, str] = {}

    def admitted(operand: str, memory: str) -> bool:
        if any(operand in g and any(at.get(x) == memory for x in g if x != operand) for g in i.apart):
            return False
        there, m = [operand, *(o for o, m in at.items() if m == memory)], system.memories[memory]
        return m.ports.admit([role[o] for o in there]) and demand(i, m, there) <= m.limit

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


def _told(system: System, i: Instruction, homes: Homes, operands: list[str], ported: set[str], tight: set[str]) -> str:
    parts = [f"{o} in {' or '.join(homes[o])}" for o in operands]
    rules = [f"{', '.join(g)} apart" for g in i.apart if len(set(g) & set(operands)) > 1]
    role = {a.name: a.role for a in i.body.arguments}
    for m in dict.fromkeys(h for o in operands for h in homes[o] if h in ported):
        p = system.memories[m].ports
        if p.admit([role[o] for o in operands if m in homes[o]]):
            continue
        counts = [f"{n} {does}" for n, does in ((p.read, "read"), (p.write, "written")) if n is not None]
        rules.append(f"of one call's operands '{m}' has at most {', '.join(counts)}")
    for m in (system.memories[h] for h in dict.fromkeys(h for o in operands for h in homes[o] if h in tight)):
        there = [o for o in operands if m.name in homes[o]]
        if (n := demand(i, m, there)) > m.limit:
            rules.append(f"of '{m.name}', which has {room(m, m.limit)}, the smallest call takes {room(m, n)} for them")
    return f"{', '.join(parts)}; but {'; '.join(rules)}"


def room(m: Memory, n: int) -> str:
    """So much of a memory, in words."""
    return f"{n} B" if m.cell is None else f"{n} cell{'s' if n != 1 else ''}"
