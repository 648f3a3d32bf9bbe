"""Whether a machine makes sense (SYS-6): names that exist, memories that data can reach, operands with a legal home,
joint placements that are possible, instructions that somebody runs. All faults at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

from isam import registry
from isam.diagnostics import NOWHERE, Diagnostic, IsamError, Loc
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction, idle_axes
from isam.ir.kernel import FAR, Buffer, recurrences
from isam.system.check_groups import check_groups
from isam.system.emission import check_emission, later_members
from isam.system.families import Entry
from isam.system.faults import Faults, nearest
from isam.system.graph import CACHED, COUNTED, SEMANTICS_ONLY, Memory, Move, System
from isam.system.joint import contradiction
from isam.system.source import Mapping as Fields

MOVING = ("a move is one plain copy of an operand to another, D[i, j] = S[i, j], or a box set to a number, "
          "D[i, j] = 0 for all of D, and then such a copy into it")  # fmt: skip

Marks = dict[tuple[Hashable, ...], Loc]
Declared = Mapping[str, frozenset[str]]


def check(system: System, bodies: bool = False) -> list[Diagnostic]:
    """Every fault of a machine, however it was made. ``bodies``: also what the language's verifier says of instructions
    (IR-8: accesses in range, outputs written once, temporaries written before they are read; about 5 ms for each shape
    of text)."""
    faults = Faults()
    check_system(system, faults)
    check_emission(system, faults, lambda name, *_: getattr(system.instructions.get(name), "loc", NOWHERE))
    if bodies:
        _verify(system, faults)
    return faults.found


def _verify(system: System, faults: Faults) -> None:
    """Bodies that differ in names and element types alone are judged once."""
    import re

    from isam.ir.dtype import DTYPES
    from isam.ir.verify import verify

    types = re.compile(rf"\b({'|'.join(DTYPES)})\b")
    seen: set[str] = set()
    for i in system.instructions.values():
        shape = types.sub("?", str(i.body).partition("(")[2])
        if shape not in seen:
            seen.add(shape)
            for d in verify(i.body):
                faults.take(d)


def demand(system: System) -> System:
    """The machine itself. Raises ``IsamError`` with every fault it has."""
    found = check(system)
    if found:
        raise IsamError(found)
    return system


def check_system(system: System, faults: Faults, marks: Marks | None = None, declared: Declared | None = None,
                 broken: frozenset[str] = frozenset(), lost: frozenset[str] = frozenset()) -> None:  # fmt: skip
    """Adds every fault. ``marks``: places of single references; ``declared``: names that exist although their entries
    are faulty; ``broken``: sections with faulty entries, about whose completeness nothing can be said; ``lost``: those
    of which even names may be missing."""
    _Check(system, faults, marks or {}, declared or {}, broken, lost).run()


class _Check:
    def __init__(self, system: System, faults: Faults, marks: Marks, declared: Declared, broken: frozenset[str],
                 lost: frozenset[str]):  # fmt: skip
        self.s, self.faults, self.marks, self.broken, self.lost = system, faults, marks, broken, lost
        self.names = {
            "memory": list(dict.fromkeys([*system.memories, *sorted(declared.get("memories", ()))])),
            "unit": list(dict.fromkeys([*system.units, *sorted(declared.get("units", ()))])),
            "instruction": list(dict.fromkeys([*system.instructions, *sorted(declared.get("instructions", ()))])),
        }
        self.sets = {kind: frozenset(names) for kind, names in self.names.items()}
        self.lacking: set[str] = set()  # ways for data that were found to be missing
        self.sound = not broken & {"memories", "moves"}  # reachability can be judged
        self.guessing = False  # somebody runs an instruction that does not exist
        self.moving = {m.by for m in system.moves}
        self.away: set[str] = set()  # memories reported as unreachable
        self.source = Loc(system.source, 1, 1) if system.source else NOWHERE

    def at(self, *key: Hashable, otherwise: Loc = NOWHERE) -> Loc:
        return self.marks.get(key, otherwise)

    def known(self, kind: str, name: str, loc: Loc) -> bool:
        if name in self.sets[kind]:
            return True
        if {"memory": "memories", "unit": "units", "instruction": "instructions"}[kind] not in self.lost:
            hint = nearest(name, self.names[kind])
            self.faults.add(f"system-unknown-{kind}", f"there is no {kind} '{name[:60]}'", loc, hint)
        self.sound = False
        return False

    def run(self) -> None:
        self.plugged("backend", self.s.backend, "back end", (SEMANTICS_ONLY,))
        self.plugged("approach", self.s.approach, "Approach")
        self.home()
        for u in self.s.units.values():
            for name in u.runs:
                if not self.known("instruction", name, self.at("unit", u.name, name, otherwise=u.loc)):
                    self.guessing = True
        for m in self.s.moves:
            self.move(m)
        self.runners()
        if not self.broken - {"instructions"}:
            check_groups(self.s, self.faults, self.marks, "instructions" not in self.broken)
        if self.sound:
            self.out, self.back = self.reach()
            self.reachable()
        later = later_members(self.s)
        for i in self.s.instructions.values():
            self.faults.member = i.name in later
            self.operands(i)
        self.faults.member = False

    def plugged(self, key: str, name: str, what: str, also: tuple[str, ...] = ()) -> None:
        """Whether somebody registered what the description names."""
        group = {"backend": "isam.backends", "approach": "isam.approaches"}[key]
        if name in registry.SHIPPED[group] or name in also:
            return
        known = (*registry.names(group), *also)
        if name not in known:
            self.faults.add(f"system-unknown-{key}", f"there is no {what} '{name[:60]}'",
                            self.at(key, otherwise=self.source), nearest(name, known))  # fmt: skip

    def home(self) -> None:
        homes = [m for m in self.s.memories.values() if m.home]
        for m in homes[1:]:
            self.faults.add("system-home",
                            f"'{m.name}' is a second home memory; '{homes[0].name}' is one already", m.loc,
                            "arguments live in exactly one memory")  # fmt: skip
        if not homes and "memories" not in self.broken:
            first = next(iter(self.s.memories.values()), None)
            self.faults.add("system-home", "no memory is home: arguments have no place to live",
                            first.loc if first else self.source,
                            f"add 'home: true' to one of: {', '.join(self.s.memories)}" if first
                            else "add 'memories:'")  # fmt: skip
        if len(homes) != 1:
            self.sound = False
        for m in homes[:1]:
            if m.kind == COUNTED:
                self.faults.add("system-home", f"registers ('{m.name}' is counted) cannot be home", m.loc,
                                "home is managed or cached")  # fmt: skip
        for m in self.s.memories.values():
            if m.of and self.known("memory", m.of, self.at("memory", m.name, "of", otherwise=m.loc)):
                self.chain(m.name)
            self._lanes(m)
            if not m.capacity:
                self.faults.add("system-memory", f"the memory '{m.name}' holds nothing", m.loc,
                                "give it a capacity above zero")  # fmt: skip
            elif m.cells is None and m.align > m.capacity:
                what = f"the memory '{m.name}' has {m.capacity} B, less than its alignment of {m.align} B"
                at = self.at("memory", m.name, "align", otherwise=m.loc)
                self.faults.add("system-memory", what, at, "an alignment is at most the capacity")
            self.speed(m.bandwidth, m.name, self.at("memory", m.name, "bandwidth", otherwise=m.loc), "16 GB/s")

    def speed(self, bandwidth: float | None, name: str, at: Loc, example: str) -> None:
        if bandwidth == 0:
            what = f"nothing moves at the bandwidth of '{name}'"
            self.faults.add("system-unit", what, at, f"for example '{example}'")

    def _lanes(self, m: Memory) -> None:
        """Lanes that hold groups, and registers that two memories share."""
        fits = m.kind == COUNTED and bool(m.lanes) and (m.lanes or 0) * (m.lane or 0) <= (m.cell or 0)
        if m.lane is not None and (not fits or m.lane < 1 or m.lane & (m.lane - 1)):
            self.faults.add("system-memory", f"the lanes of '{m.name}' cannot have {m.lane} B", m.loc,
                            "'lane' is of a counted memory with 'lanes', which fit its cells together")  # fmt: skip
        other = self.s.memories.get(m.shares)
        if m.masks and not (m.kind == COUNTED and m.lanes):
            self.faults.add("system-memory", f"'{m.name}' has no lanes that masks could choose among",
                            self.at("memory", m.name, "masks", otherwise=m.loc),
                            "'masks' is of a counted memory with 'lanes'")  # fmt: skip
        elif other is not None and other.masks != m.masks:
            what = f"the registers of '{m.name}' and '{m.shares}' are the same, and have different masks"
            self.faults.add("system-memory", what, self.at("memory", m.name, "masks", otherwise=m.loc),
                            f"write 'masks: {other.masks or m.masks}' at both")  # fmt: skip
        at = self.at("memory", m.name, "shares", otherwise=m.loc)
        if m.shares and self.known("memory", m.shares, at):
            other = self.s.memories[m.shares]
            if {m.kind, other.kind} != {COUNTED} or other.shares or (m.cells, m.cell) != (other.cells, other.cell):
                self.faults.add("system-memory", f"'{m.name}' cannot share the registers of '{m.shares}'", at,
                                "both are counted, with as many cells of one size, the other has its own")  # fmt: skip

    def chain(self, name: str) -> None:
        seen = [name]
        while (name := self.s.memories[name].of) in self.s.memories:
            if name in seen:
                self.sound = False
                if name != min(seen):
                    return
                self.faults.add("system-memory",
                                f"'{seen[0]}' stands in front of itself ({' of '.join([*seen, name])})",
                                self.s.memories[seen[0]].loc,
                                "a cache stands in front of a managed memory")  # fmt: skip
                return
            seen.append(name)

    def move(self, m: Any) -> None:
        def at(key: str) -> Loc:
            return self.at("move", m, key, otherwise=m.loc)

        ends = [self.known("memory", n, at(n)) for n in (m.source, m.target)]
        if all(ends) and m.source == m.target:
            self.faults.add("system-move", f"this moves from '{m.source}' to itself", at(m.target), "name two memories")
            self.sound = False
        by = self.known("instruction", m.by, at("by"))
        unit = self.known("unit", m.issuer, at("issuer"))
        i = self.s.instructions.get(m.by)
        moves = i is None or i.is_move  # else that is what is wrong, whoever issues it
        if by and unit and moves and m.issuer in self.s.units and m.by not in self.s.units[m.issuer].runs:
            self.faults.add("system-issuer", f"the unit '{m.issuer}' issues '{m.by}' but does not run it", at("issuer"),
                            self._who_runs(m.by))  # fmt: skip
        if i is not None and not i.is_move:
            idle = [n for s in i.body.statements for n in idle_axes(s)]
            does = f"goes along '{idle[0]}', which indexes nothing" if idle else "computes"
            self.faults.add("system-not-a-move", f"'{m.by}' {does}: it cannot carry out a move", at("by"), MOVING)
            return
        if i is not None and m.computes:
            self._placed(i, at("by"))
        if by and m.streams and not self.s.kept_by(m):
            message = f"nothing else from '{m.source}' to '{m.target}' does what '{m.by}' does"
            hint = f"what streams takes the place of another move by '{m.issuer}' with the same body"
            self.faults.add("system-move", message, at("by"), hint)
        if i is not None and i.fill is not None:
            self._fills(m, i, at)

    def _placed(self, i: Instruction, loc: Loc) -> None:
        """A move that computes: as a call of a kernel it takes its operands where they live."""
        unsaid = [a.name for a in i.body.arguments if not i.contract(a.name).homes]
        if unsaid:
            self.faults.add("system-move", f"'{i.name}' computes, and does not say where '{unsaid[0]}' lives", loc,
                            "add homes to the instruction: {S: [dram], D: [acc]}")  # fmt: skip

    def _fills(self, m: Any, i: Instruction, at: Any) -> None:
        """A move that fills: nothing of a caller's lies in its box, and its sizes are those of what it copies."""
        assert i.fill is not None
        home = self.s.memories.get(m.target)
        if home is not None and home.home:
            what = f"'{m.by}' fills beside what it copies: in '{m.target}' that is the caller's"
            self.faults.add("system-move", what, at("to"), "arguments live there: store by a move that copies alone")
        known = {n for e in i.fill.part for n in e.names}
        if any(s.name not in known for s in i.syms):
            self.faults.add("system-move", f"nothing says how large the box is that '{m.by}' fills", at("by"),
                            "its sizes are those of what it copies; a box has a fixed one or goes with them")

    def _who_runs(self, name: str) -> str:
        who = [u.name for u in self.s.units_of(name)]
        return f"'{who[0]}' runs it" if who else "add it to the unit's 'runs'"

    def runners(self) -> None:
        if "units" in self.broken or self.guessing:
            return
        exposed = {r for u in self.s.units.values() for r in u.runs}
        for i in self.s.instructions.values():
            if i.name not in exposed:
                self.faults.add("system-unused", f"no unit runs '{i.name}'", i.loc,
                                "add it to the 'runs' of a unit, or remove it")  # fmt: skip

    def reach(self) -> tuple[set[str], set[str]]:
        """Memories that data can get to, from home or because instructions begin it there, and memories from which
        data can get home."""
        ahead: dict[str, set[str]] = {}
        behind: dict[str, set[str]] = {}
        edges = [(m.source, m.target) for m in self.s.moves]
        edges += [e for m in self.s.memories.values() if m.kind == CACHED for e in ((m.of, m.name), (m.name, m.of))]
        edges += [e for i in self.s.compute for e in self.through(i)]
        for a, b in edges:
            ahead.setdefault(a, set()).add(b)
            behind.setdefault(b, set()).add(a)
        return reached({self.s.home, *self.begun()}, ahead), reached({self.s.home}, behind)

    def begun(self) -> set[str]:
        """Memories in which an instruction begins data without reading any: sums may go on there."""
        fills = (i for i in self.s.compute if all(a.role == "out" for a in i.body.arguments))
        return {h for i in fills for c in i.operands.values() for h in c.homes if h in self.s.memories}

    def through(self, i: Instruction) -> set[tuple[str, str]]:
        """Results are data too: from the only home of an operand read to the only home of one that is overwritten."""
        places = [(a.role, i.operands[a.name].homes) for a in i.body.arguments if a.name in i.operands]
        read = {h[0] for role, h in places if role in ("in", "const") and len(h) == 1}
        written = {h[0] for role, h in places if role == "out" and len(h) == 1}
        return {(a, b) for a in read for b in written if a != b}

    def reachable(self) -> None:
        for m in self.s.memories.values():
            if m.name not in self.out and m.name not in self.back:
                self.away.add(m.name)
                self.faults.add("system-unreachable",
                                f"no move leads from '{self.s.home}' to '{m.name}' or back", m.loc,
                                f"add a move: {{from: {self.s.home}, to: {m.name}, by: ..., issuer: ...}}")  # fmt: skip

    def operands(self, i: Instruction) -> None:
        self.speed(i.cost.bandwidth, i.name, self.at("bandwidth", i.name, otherwise=i.loc), "16 B/cycle")
        self.sizes(i)
        legal: dict[str, tuple[str, ...]] = {}
        names = {a.name for a in i.body.arguments}
        for o in i.operands:
            if o not in names:
                self.faults.add("system-operand", f"'{i.name}' has no operand '{o}'", i.loc, nearest(o, names))
        for a in i.body.arguments:
            c = i.operands.get(a.name)
            homes = c.homes if c else ()
            places = {h: self.at("home", i.name, a.name, h, otherwise=i.loc) for h in homes}
            known = [h for h in homes if self.known("memory", h, places[h])]
            if homes and len(known) < len(homes):
                continue
            legal[a.name] = homes or ((self.s.home,) if self.sound else ())
            if self.sound:
                self.placed(i, a.name, a.role, homes)
            if c and c.strides and len(c.strides) != len(a.shape):
                self.faults.add("system-strides",
                            f"'{a.name}' of '{i.name}' has {len(a.shape)} dimensions, the contract {len(c.strides)}",
                                self.at("strides", i.name, a.name,
                                        otherwise=i.loc), "one stride per dimension: a number or free")  # fmt: skip
            for h in known:
                self._grouped(i, a, self.s.memories.get(h), places[h])
        before = len(self.faults.found)
        for n, group in enumerate(i.apart):
            self.apart(i, group, legal, self.at("apart", i.name, n, otherwise=i.loc))
        if len(self.faults.found) == before and all(legal.get(a.name) for a in i.body.arguments):
            self.together(i, legal)

    def sizes(self, i: Instruction) -> None:
        """What a call takes of the axes says how large its sizes are."""
        statements = i.body.statements
        told = {n for s in statements for a in s.domain.axes for n in a.extent.names}
        told |= {n for r in recurrences(i.body.body) for n in r.axis.extent.names}
        told |= {s.whole[0] for s in i.syms if s.whole} | {s.name for s in i.syms if s.whole or s.lo == s.hi}
        for s in i.syms if statements else ():
            if s.name not in told:
                self.faults.add("system-size", f"no loop of '{i.name}' goes as far as its size '{s.name}' says", i.loc,
                                "take it out of the head, or loop over it: nothing else says how large it is in a call")

    def _grouped(self, i: Instruction, a: Buffer, m: Memory | None, at: Loc) -> None:
        """An operand in lanes that hold groups: its last dimension fits one."""
        if m is None or not m.lane or a.dtype == ANY:
            return
        last = a.shape[-1] if a.shape else None
        most = last.const if last is not None else 0
        for name, k in last.terms if last is not None else ():
            top = next((s.hi for s in i.syms if s.name == name), None)
            most += k * (FAR if top is None else top)
        if len(a.shape) not in (1, 2) or most * size_of(a.dtype) > m.lane:
            what = f"'{a.name}' of '{i.name}' does not fit lanes of {m.lane} B in '{m.name}'"
            self.faults.add("system-operand", what, at,
                            "its last dimension is a group: as many elements as one lane holds; before it the lanes")

    def together(self, i: Instruction, legal: dict[str, tuple[str, ...]]) -> None:
        """All groups and ports at once (SYS-3)."""
        judged = i.name not in self.moving and "memories" not in self.broken
        if judged and (why := contradiction(self.s, i, legal)):
            self.faults.add("system-placement", f"'{i.name}' can never be placed: {why}",
                            self.at("apart", i.name, 0, otherwise=i.loc), "give one of them another home")  # fmt: skip

    def placed(self, i: Instruction, operand: str, role: str, homes: tuple[str, ...]) -> None:
        """An operand read must be somewhere data can get to, one written somewhere it can get home from."""
        if i.name in self.moving:  # the edges of a move say where its operands are
            return
        for h in homes:
            gets_there = h in self.out or role == "out"
            gets_back = h in self.back or role in ("in", "const")
            if not (gets_there and gets_back) and h not in self.away:
                what = "read" if not gets_there else "written"
                way = f"from '{self.s.home}' to '{h}'" if not gets_there else f"from '{h}' to '{self.s.home}'"
                if way in self.lacking:  # one fault, however many operands live there
                    continue
                self.lacking.add(way)
                self.faults.add("system-no-home",
                                f"'{operand}' of '{i.name}' is {what} in '{h}', but no moves lead {way}",
                                self.at("home", i.name, operand, h,
                                        otherwise=i.loc), "add the move, or another home")  # fmt: skip

    def apart(self, i: Instruction, group: tuple[str, ...], legal: dict[str, tuple[str, ...]], loc: Loc) -> None:
        if len(set(group)) < len(group):
            self.faults.add("system-apart", f"an operand of '{i.name}' cannot be apart from itself", loc,
                            "name each operand once")  # fmt: skip
        elif all(legal.get(o) for o in group) and not _distinct([legal[o] for o in group]):
            homes = "; ".join(f"{o}: {', '.join(legal[o])}" for o in group)
            self.faults.add("system-apart",
                            f"{', '.join(group)} of '{i.name}' cannot lie apart with these homes ({homes})", loc,
                            f"{len(group)} operands need {len(group)} different memories")  # fmt: skip


T = TypeVar("T", bound=Hashable)


def reached(start: set[T], edges: dict[T, set[T]]) -> set[T]:
    """What the edges lead to from any of ``start``, which is there itself."""
    seen, todo = set(start), list(start)
    while todo:
        for n in edges.get(todo.pop(), ()):
            if n not in seen:
                seen.add(n)
                todo.append(n)
    return seen


def _distinct(choices: list[tuple[str, ...]]) -> bool:
    """Whether each can have one of its choices, all different (augmenting paths)."""
    owner: dict[str, int] = {}

    def place(n: int, tried: set[str]) -> bool:
        for c in choices[n]:
            if c not in tried:
                tried.add(c)
                if c not in owner or place(owner[c], tried):
                    owner[c] = n
                    return True
        return False

    return all(place(n, set()) for n in range(len(choices)))


def stated_costs(entry: Entry) -> frozenset[str]:
    """The fields of ``cost:`` that an entry gives."""
    cost = entry.given.get("cost") if isinstance(entry.given, Fields) else None
    return frozenset(k.text for k, _ in cost.items) if isinstance(cost, Fields) else frozenset()


def assumed_costs(stated: Mapping[str, frozenset[str]], moves: Iterable[Move]) -> tuple[str, ...]:
    """What the description does not state about costs (SYS-7), as ``instruction: field``. ``stated``: what it does."""
    by = {m.by for m in moves}
    out: list[str] = []
    for name, has in stated.items():
        lacks = [f for f in (("setup", "bandwidth") if name in by else ("issue", "latency")) if f not in has]
        if lacks:
            out.append(f"{name}: {', '.join(lacks)}")
    return tuple(out)
