"""What in a description is legal and still looks wrong: remarks, never refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from isam.diagnostics import Diagnostic
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Buffer, Recurrence, Statement
from isam.ir.normal import normal_form
from isam.system.check import reached
from isam.system.graph import System
from isam.system.joint import least_bytes, room, taken

_HEAD = re.compile(r"instruction \w+")
Place = tuple[str, str]  # a memory and the dtype of what lies there
Ways = dict[Place, set[Place]]


def remarks(system: System) -> list[Diagnostic]:
    """Remarks in source order, one per family and kind: the members of a family look wrong alike."""
    looks = (_room, _moved, _carried, _homes, _beginnings, _in_place, _loops, _idle, _unmanned, _lanes, _stuck, _twins,
             _links, _registers, _repeating, _aligned, _rows)  # fmt: skip
    found = [d for look in looks for d in look(system)]
    once = {(d.code, d.loc, d.message if not d.loc.line else ""): d for d in reversed(found)}
    return sorted(once.values(), key=lambda d: (d.loc.file, d.loc.line, d.loc.column))


def _room(system: System) -> Iterator[Diagnostic]:
    """Operands that no home can hold at the instruction's own limits, alone or all that have to live there."""
    for i in system.instructions.values():
        there: dict[str, list[tuple[Buffer, int]]] = {}  # memory: what has to live there, with its bytes
        for a in i.body.arguments:
            if a.dtype == ANY or (elements := _most(i, a)) is None:
                continue
            size, homes = elements * size_of(a.dtype), [system.memories[h] for h in system.homes(i, a.name)]
            if all(taken(m, size) > m.limit for m in homes):
                where = ", ".join(m.name for m in homes)
                what = f"'{a.name}' of '{i.name}' has up to {size} B and fits into none of its homes ({where})"
                yield Diagnostic("remark-room", what, i.loc, "calls are made smaller; state the limit that holds")
            elif len(homes) == 1:
                there.setdefault(homes[0].name, []).append((a, size))
        for m, some in ((system.memories[n], some) for n, some in there.items()):
            if sum(taken(m, size) for _, size in some) > m.limit:
                names = ", ".join(f"'{a.name}'" for a, _ in some)
                what = f"{names} of '{i.name}' have up to {sum(s for _, s in some)} B and all live in '{m.name}'"
                smallest = sum(taken(m, least_bytes(i, a)) for a, _ in some)
                hint = f"the smallest call takes {room(m, smallest)}, less only where it reads one operand twice"
                hint = hint if smallest > m.limit else "calls are made smaller; state the limits that hold"
                yield Diagnostic("remark-room", f"{what}, which has {room(m, m.limit)}", i.loc, hint)


def _most(i: Instruction, a: Buffer) -> int | None:
    """The most elements that an operand of a call has; None: as many as one likes."""
    top = {s.name: s.hi for s in i.syms}
    names = {n for e in a.shape for n in e.names}
    if any(top.get(n) is None for n in names):
        return None
    limits = {n: top[n] or 0 for n in names}
    return prod(max(0, e.evaluate(limits)) for e in a.shape)


def _moved(system: System) -> Iterator[Diagnostic]:
    """Operands of which one call has fewer elements than every move to their homes, or from there, takes."""
    least = {n: _least(system.instructions[n]) for n in {m.by for m in system.moves}}
    for i in system.compute:
        for a in i.body.arguments:
            homes, elements = system.homes(i, a.name), _most(i, a)
            if elements is None or system.home in homes:
                continue
            for way in ("to",) * (a.role != "out") + ("from",) * (a.role in ("out", "inout")):
                by = {m.by for m in system.moves if (m.target if way == "to" else m.source) in homes}
                if by and all(least[n] > elements for n in by):
                    few = ", ".join(f"'{n}' at least {least[n]}" for n in sorted(by))
                    where = " or ".join(map(repr, homes))
                    what = f"'{a.name}' of '{i.name}' has at most {elements} elements, and no move {way} {where} takes "
                    yield Diagnostic("remark-move", f"{what}so few: {few}", i.loc,
                                     "describe a move that takes fewer, or an instruction that takes more")  # fmt: skip
                    break


def _least(move: Instruction) -> int:
    """The fewest elements that a move takes, at least one along each axis."""
    axes = move.copied.domain.axes if move.copied is not None else ()
    spans = [move.span(a.name) for a in axes]
    return prod(s.least if s.least > 0 else s.step for s in spans)


def _carried(system: System) -> Iterator[Diagnostic]:
    """Operands of a dtype that no moves bring to their homes, or home from there, though moves lead there."""
    dtypes = {a.dtype for i in system.compute for a in i.body.arguments} - {ANY}
    ahead, behind = _ways(system, dtypes)
    starts = {(system.home, t) for t in dtypes}
    begun = {p for i in system.compute if all(a.role == "out" for a in i.body.arguments)
             for a in i.body.arguments for p in _places(system, i, a, dtypes)}  # fmt: skip
    out, back = reached(starts | begun, ahead), reached(starts, behind)
    for i in system.compute:
        for a in i.body.arguments:
            places, where = _places(system, i, a, dtypes), " or ".join(map(repr, system.homes(i, a.name)))
            if a.role != "out" and not places & out:
                what = f"'{a.name}' of '{i.name}' is read in {where}, and no moves bring {a.dtype} there"
            elif a.role in ("out", "inout") and not places & back:
                what = f"'{a.name}' of '{i.name}' is written in {where}, and no moves bring {a.dtype} from there home"
            else:
                continue
            yield Diagnostic("remark-dtype", what, i.loc, "describe a move of that dtype, or of any: S: any[N]")


def _places(system: System, i: Instruction, a: Buffer, dtypes: set[str]) -> set[Place]:
    return {(h, t) for h in system.homes(i, a.name) for t in (dtypes if a.dtype == ANY else {a.dtype})}


def _ways(system: System, dtypes: set[str]) -> tuple[Ways, Ways]:
    """Where data of a dtype gets by one move, through a cache, or as a result of which dtype; and the way back."""
    ends = [((m.source, m.target), system.instructions[m.by].body.arguments[0].dtype) for m in system.moves]
    ends += [(way, ANY) for m in system.memories.values() if m.of for way in ((m.of, m.name), (m.name, m.of))]
    pairs = {((a, t), (b, t)) for (a, b), moved in ends for t in (dtypes if moved == ANY else {moved})}
    for i in system.compute:
        read, written = (
            {p for a in i.body.arguments if a.role in roles for p in _places(system, i, a, dtypes)}
            for roles in (("in", "const", "inout"), ("out", "inout"))
        )
        pairs |= {(a, b) for a in read for b in written}
    ahead, behind = Ways(), Ways()
    for a, b in pairs:
        ahead.setdefault(a, set()).add(b)
        behind.setdefault(b, set()).add(a)
    return ahead, behind


def _homes(system: System) -> Iterator[Diagnostic]:
    """Operands for which no home is stated, of instructions that state one for others: they live in main memory."""
    for i in system.compute:
        unsaid = [a.name for a in i.body.arguments if not i.contract(a.name).homes]
        if 0 < len(unsaid) < len(i.body.arguments):
            names = ", ".join(f"'{n}'" for n in unsaid)
            what = f"no home is stated for {names} of '{i.name}': main memory, '{system.home}', is taken"
            yield Diagnostic("remark-home", what, i.loc, f"write [{system.home}] there if that is meant")


def _beginnings(system: System) -> Iterator[Diagnostic]:
    """Sums that nothing can begin: no instruction writes the dtype without reading it."""
    begun = {a.dtype for i in system.compute for a in i.body.arguments if a.role == "out"}
    for i in system.compute:
        sums = {s.dest.buffer for s in i.body.statements if s.accumulate}
        for a in i.body.arguments:
            if a.role == "inout" and a.name in sums and a.dtype not in begun:
                yield Diagnostic("remark-begin",
                                 f"'{i.name}' adds to '{a.name}', but no instruction writes a first {a.dtype}", i.loc,
                                 "describe one that fills with zeros, or that overwrites")  # fmt: skip


def _in_place(system: System) -> Iterator[Diagnostic]:
    """Instructions that replace what they read, where nothing does the same from one operand to another: a kernel's
    temporary is a new one wherever it is assigned anew, so that they fit only what the caller sees."""
    found: dict[tuple[str, str], list[tuple[Instruction, str | None]]] = {}
    for i in system.compute:
        body = normal_form(i.body)
        if len(body.body) == 1 and isinstance(s := body.body[0], Statement) and not s.accumulate:
            own = s.dest.buffer if s.dest in s.sources else None
            found.setdefault((s.op, body.buffer(s.dest.buffer).dtype), []).append((i, own))
    for (op, dtype), alike in found.items():
        for i, own in alike if all(own for _, own in alike) else ():
            what = f"'{i.name}' does '{op}' in place, and nothing does it on {dtype} from one operand to another"
            yield Diagnostic("remark-in-place", what, i.loc,
                             f"it fits no temporary: read another operand than '{own}', both may be one buffer")


def _loops(system: System) -> Iterator[Diagnostic]:
    """Instructions with a recurrent loop, which no kernel is mapped onto."""
    for i in system.compute:
        loop = next((x for x in i.body.body if isinstance(x, Recurrence)), None)
        if loop is not None:
            what = f"'{i.name}' has a recurrent loop over {loop.axis.name}: no kernel is carried out by it"
            yield Diagnostic("remark-loop", what, i.loc, "an instruction is one step: describe that of one iteration")


def _idle(system: System) -> Iterator[Diagnostic]:
    """Memories in which nobody works and through which nothing passes."""
    worked = {h for i in system.compute for a in i.body.arguments for h in system.homes(i, a.name)}
    leaves, enters = {m.source for m in system.moves}, {m.target for m in system.moves}
    caches = {m.of for m in system.memories.values()}
    for m in system.memories.values():
        if not (m.home or m.name in worked or m.name in caches or m.of or (m.name in leaves and m.name in enters)):
            yield Diagnostic("remark-idle", f"no instruction works in '{m.name}', and nothing passes through it", m.loc,
                             "give some operand a home there, or a move onwards")  # fmt: skip


def _unmanned(system: System) -> Iterator[Diagnostic]:
    """Units that run nothing."""
    for u in system.units.values():
        if not u.runs:
            yield Diagnostic("remark-unit", f"the unit '{u.name}' runs no instruction", u.loc,
                             "name some in its 'runs', or leave it out")  # fmt: skip


def _lanes(system: System) -> Iterator[Diagnostic]:
    """Registers whose lanes do not fit them, of the smallest elements that live there."""
    least: dict[str, str] = {}
    for i in system.compute:
        for a in i.body.arguments:
            for h in system.homes(i, a.name) if a.dtype != ANY else ():
                least[h] = min(least.get(h, a.dtype), a.dtype, key=size_of)
    for m in system.memories.values():
        if m.lanes and m.cell and m.name in least and m.lanes * size_of(least[m.name]) > m.cell:
            what = f"{m.lanes} lanes of {least[m.name]} do not fit a register of '{m.name}', which has {m.cell} B"
            yield Diagnostic("remark-lanes", what, m.loc, f"it holds {m.cell // size_of(least[m.name])} of them")


def _stuck(system: System) -> Iterator[Diagnostic]:
    """Memories that moves fill and none empties, though results live there."""
    onwards: dict[str, set[str]] = {}
    for m in system.moves:
        onwards.setdefault(m.source, set()).add(m.target)
    written = {h: f"'{a.name}' of '{i.name}'" for i in system.compute for a in i.body.arguments if a.role != "in"
               and a.role != "const" for h in system.homes(i, a.name)}  # fmt: skip
    for m in system.memories.values():
        reached, left = {m.name}, [m.name]
        while left:
            left = [t for s in left for t in onwards.get(s, ()) if t not in reached]
            reached.update(left)
        filled = any(move.target == m.name for move in system.moves)
        if filled and m.name in written and system.home not in reached:
            what = f"{written[m.name]} lives in '{m.name}', from where no moves lead to '{system.home}'"
            yield Diagnostic("remark-stuck", what, m.loc,
                             "what does not stay there until an instruction takes it has no schedule: state a move "
                             "back, or both_ways")  # fmt: skip


def _twins(system: System) -> Iterator[Diagnostic]:
    """Instructions that differ in nothing but their names: only the first is ever taken."""
    first: dict[tuple[object, ...], Instruction] = {}
    for i in system.compute:
        who = tuple(u.name for u in system.units_of(i.name))
        operands = tuple((a.name, str(i.contract(a.name))) for a in i.body.arguments)
        rest = (operands, i.apart, str(i.cost), i.needs, str(i.requires))
        key = (_HEAD.sub("", str(i), count=1), who, *rest)
        other = first.setdefault(key, i)
        if other is not i:
            yield Diagnostic("remark-twin", f"'{i.name}' is '{other.name}' once more", i.loc, "leave one of them out")


def _repeating(system: System) -> Iterator[Diagnostic]:
    """Moves that leave more than they take, where no instruction that computes does."""
    names = {i.name for i in system.compute}
    if any(i.repeats for i in system.compute):
        return
    for i in (system.instructions[n] for n in dict.fromkeys(m.by for m in system.moves) if n not in names):
        if i.repeats:
            yield Diagnostic("remark-repeat", f"'{i.name}' repeats what it takes, and no kernel may be mapped onto it",
                             i.loc, "say 'computes: true' of its move, and 'homes' of its operands")  # fmt: skip


def _aligned(system: System) -> Iterator[Diagnostic]:
    """Moves that take less from a memory than lies between the places at which it may be read: of what lies there in
    rows they reach one tile in several, and the others come from home one by one."""
    largest = max((size_of(a.dtype) for i in system.compute for a in i.body.arguments if a.dtype != ANY), default=1)
    for m in system.moves:
        i, memory = system.instructions[m.by], system.memories[m.source]
        a = next((a for a in i.body.arguments if a.role in ("in", "const")), None)
        elements = _most(i, a) if a is not None else None
        if a is None or elements is None or memory.home:
            continue
        most = elements * (largest if a.dtype == ANY else size_of(a.dtype))
        if most < memory.align:
            what = f"'{i.name}' takes up to {most} B from '{m.source}', which is read at multiples of {memory.align} B"
            yield Diagnostic("remark-align", f"{what}: what lies between them is brought anew, tile by tile", i.loc,
                             f"state the memory's alignment as every move wants it, and at operands that want more "
                             f"'align: {{{a.name}: {memory.align} B}}'")  # fmt: skip


def _links(system: System) -> Iterator[Diagnostic]:
    """Links wider than everything that passes them."""
    for k in system.links.values():
        most = 0.0
        for m in system.moves:
            rate = system.instructions[m.by].cost.bandwidth
            if (m.source, m.target) in k.edges:
                if rate is None:
                    return
                group = system.replica_of(m.issuer)
                count = system.replicas[group].count if group else 1
                most += rate * system.units[m.issuer].clock * count
        if 0 < most <= k.bandwidth:
            what = f"all its moves together take {most / 1e9:g} of {k.bandwidth / 1e9:g} GB/s"
            yield Diagnostic("remark-link", f"the link '{k.name}' is never short: {what}", k.loc,
                             "leave it out, or state the bandwidth that holds")  # fmt: skip


def _registers(system: System) -> Iterator[Diagnostic]:
    """Registers that nobody looks at."""
    read = {r for i in system.instructions.values() for r in i.requires}
    for r in system.state.values():
        if r.name not in read:
            yield Diagnostic("remark-register", f"no instruction requires anything of the register '{r.name}'", r.loc,
                             "leave it out, or say which instructions depend on it")  # fmt: skip




def _rows(system: System) -> Iterator[Diagnostic]:
    """Rows that have to lie an exact distance apart in a memory where what is brought lies without gaps: those of calls
    that take fewer elements do not."""
    for i in system.compute:
        for a in i.body.arguments:
            homes = [system.memories[h] for h in system.homes(i, a.name)]
            need = (i.contract(a.name).strides or (None,))[:-1]
            packed = all(m.local and not m.row and m.name not in system.filled for m in homes)
            apart = next((n for n in reversed(need) if n), None)
            if a.dtype == ANY or apart is None or not packed:
                continue
            within, least = a.shape[len(need)], {s.name: max(1, s.lo or 1) for s in i.syms}
            if within.evaluate({n: least[n] for n in within.names}) >= apart:
                continue
            where, size = " or ".join(repr(m.name) for m in homes), apart * size_of(a.dtype)
            what = f"rows of '{a.name}' of '{i.name}' have to lie {apart} elements apart, and may be shorter: "
            rows = f"capacity: ..., row: {size} B, align: {size} B"
            hint = f"leave the stride free, and let the memory have rows ('{rows}'), or describe moves that fill it"
            yield Diagnostic("remark-rows", f"{what}such rows lie closer in {where}: a call has one of them at most",
                             i.loc, hint)  # fmt: skip
