"""A schedule's trees as text: one command per step, loops as loops or spelled out.

``facts: {stream: {memories: {spad: {unit: 16, base: 0}}, end: [...]}}`` says how a memory is addressed (in units of so
many bytes, from a number on) and what stands at the end. What nobody runs loops for (a unit's ``driver: expanded``) is
spelled out, and so are loops around more loops than a unit's sequencer has counters for.

``.for v 8`` to ``.end``: eight times, v counting from 0.

An operand that a move without a command has brought is *fresh* at its first use: the command of that use brings it
along. Iterations of a loop that do not begin alike are written apart until they do.

What a call waits for (SCH-8) the hardware knows where its unit has ``hazards: resolved``; else ``facts: {stream: {wait:
...}}`` says how it is written, before the call's own command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import inf
from typing import Any

from isam.classes import dataclass
from isam.codegen.stream.template import Address, Value, filled, lines_of
from isam.codegen.stream.waiting import Waiting
from isam.diagnostics import IsamError, fail
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.fills import begin
from isam.schedule.steps import steps
from isam.schedule.tree import Issue, Loop, Node, Operand, Place, Schedule, Seq, children, distinct
from isam.system.graph import System

MOST = 2_000_000  # commands spelled out
PEELED = 4  # iterations written apart

Held = dict[tuple[str, str, int | None, Affine], tuple[Operand, bool]]  # a place: what was taken where, and if fresh


def stream(schedule: Schedule, expanded: bool | None = None) -> str:
    """The text. ``expanded``: without loops (default: as the units' driver says). Raises ``IsamError`` where that
    cannot be written."""
    s = schedule.system
    units = {n.unit for t in (schedule.bind, schedule.call) for n in distinct(t) if isinstance(n, Issue)}
    if expanded is None:
        expanded = any(s.units[u].driver == "expanded" for u in units)
    if open_ := [x.name for x in schedule.kernel.syms]:
        what = f"commands are written for known sizes: {', '.join(open_)} of '{schedule.kernel.name}' is open"
        raise fail("emission-open", what, schedule.kernel.loc, f"give {' and '.join(f'{n} = ...' for n in open_)}")
    if expanded and (n := steps(schedule.bind, {}, MOST) + steps(schedule.call, {}, MOST)) > MOST:
        raise _too_long(n)
    depths = _Depths(s)
    facts, waits = s.facts.get("stream", {}), Waiting(schedule)
    out = [f"# {schedule.kernel.name} on {s.name}"]
    for name, tree in (("bind", schedule.bind), ("call", schedule.call)):
        if tree != Seq():
            w = Writer(schedule, expanded, waits, depths)
            w.node(tree, {}, {}, 0)
            out += [f".{name}", *w.lines, *map(str, facts.get("end", []))]
    return "\n".join(out) + "\n"


def _too_long(count: int) -> IsamError:
    return fail("emission-long", f"{count} commands or more would have to be spelled out, {MOST} is the limit")


class _Depths:
    """How many counters loops need: one for each loop that is written as a loop, and stands in another one."""

    def __init__(self, system: System):
        self.system, self.known = system, dict[int, tuple[int, float]]()

    def counted(self, loop: Loop) -> bool:
        """Whether all units that have commands in a loop have a counter for it, beside those for the loops inside."""
        inside, most = self._inside(loop)
        return inside < most

    def _of(self, node: Node) -> tuple[int, float]:
        """How many counters a node needs, and how many the units in it have."""
        if isinstance(node, Issue):
            had = self.system.units[node.unit].counters
            return 0, inf if had is None else had
        if id(node) not in self.known:
            inside, most = self._inside(node)
            self.known[id(node)] = inside + (isinstance(node, Loop) and inside < most), most
        return self.known[id(node)]

    def _inside(self, node: Node) -> tuple[int, float]:
        parts = [self._of(c) for c in children(node)]
        return max((n for n, _ in parts), default=0), min((m for _, m in parts), default=inf)


@dataclass
class Writer:
    """Writes one tree."""

    schedule: Schedule
    expanded: bool
    waits: Waiting
    depths: _Depths
    lines: list[str] = field(default_factory=list)
    steady: dict[object, bool] = field(default_factory=dict)  # per loop and what is held before it

    def node(self, node: Node, scope: Mapping[str, Affine], held: Held, depth: int) -> None:
        """Appends a node's lines and changes ``held`` as it does. ``scope``: values of loop variables."""
        if isinstance(node, Loop):
            self._loop(node, scope, held, depth)
        elif isinstance(node, Issue):
            self._command([node], scope, held, depth)
        else:
            step: list[Issue] = []
            for c in (*node.children, None):
                if step and not (isinstance(c, Issue) and c.joined):
                    self._command(step, scope, held, depth)
                    step = []
                if isinstance(c, Issue):
                    step.append(c)
                elif c is not None:
                    self.node(c, scope, held, depth)

    # -- loops -------------------------------------------------------------------------------------------------------
    def _loop(self, loop: Loop, scope: Mapping[str, Affine], held: Held, depth: int) -> None:
        if loop.trip == 0:
            return
        if self.expanded or loop.trip is None or not self.depths.counted(loop):
            self._spelled(loop, scope, held, depth)
            return
        self.node(loop.enter, scope, held, depth)
        lo = loop.lo[0].expr.substitute(scope)
        at, end = 0, loop.trip - (loop.last is not None)
        if loop.first is not None:
            self.node(loop.first, {**scope, loop.var: lo}, held, depth)
            at = 1
        inside = self._counted(loop, scope, lo, at)
        for n in range(PEELED):
            if at >= end or self._steady(loop, inside, held, depth):
                break
            if n == PEELED - 1:
                what = f"iterations of {loop.var} never begin alike: what one brings another uses"
                raise fail("emission-operand", what)
            self.node(loop.body, {**scope, loop.var: lo + at * loop.step}, held, depth)
            at += 1
            inside = self._counted(loop, scope, lo, at)
        if at < end:
            self._line(depth, f".for {loop.var} {end - at}")
            self.node(loop.body, inside, held, depth + 1)
            self._line(depth, ".end")
        if loop.last is not None:
            self.node(loop.last, {**scope, loop.var: lo + end * loop.step}, held, depth)
        self.node(loop.exit, scope, held, depth)

    @staticmethod
    def _counted(loop: Loop, scope: Mapping[str, Affine], lo: Affine, at: int) -> dict[str, Affine]:
        """The scope of iterations from number ``at`` on: the variable counts them from 0."""
        return {**scope, loop.var: lo + at * loop.step + Affine.of(loop.var, loop.step)}

    def _steady(self, loop: Loop, scope: Mapping[str, Affine], held: Held, depth: int) -> bool:
        """Whether all iterations from here on are written alike."""
        key = (id(loop), frozenset(_shown(held).items()))
        if key not in self.steady:
            lines, after = self._tried(loop, scope, held, depth)
            self.steady[key] = _shown(after) == _shown(held) or (
                self._tried(loop, scope, after, depth)[0] == lines and not any(fresh for _, fresh in after.values())
            )
        return self.steady[key]

    def _tried(self, loop: Loop, scope: Mapping[str, Affine], held: Held, depth: int) -> tuple[list[str], Held]:
        """What an iteration would write, and leave."""
        after, writer = dict(held), Writer(self.schedule, False, self.waits, self.depths, steady=self.steady)
        writer.node(loop.body, scope, after, depth)
        return writer.lines, after

    def _spelled(self, loop: Loop, scope: Mapping[str, Affine], held: Held, depth: int) -> None:
        values = list(loop.values({n: v.const for n, v in scope.items()}))
        self.node(loop.enter, scope, held, depth) if values else None
        for n, v in enumerate(values):
            peeled = loop.first if n == 0 else loop.last if n == len(values) - 1 else None
            body = loop.body if peeled is None else peeled
            self.node(body, {**scope, loop.var: Affine((), v)}, held, depth)
        self.node(loop.exit, scope, held, depth) if values else None

    # -- commands ----------------------------------------------------------------------------------------------------
    def _command(self, step: list[Issue], scope: Mapping[str, Affine], held: Held, depth: int) -> None:
        issue, system = step[0], self.schedule.system
        ins = system.instructions[issue.instruction]
        if "stream" not in ins.emission:
            raise fail("emission-missing", f"'{ins.name}' has no template for streams", ins.loc)
        template: Any = ins.emission["stream"]
        cases, by = lines_of(template), {o.name: o for o in issue.operands}
        case, sizes = "always", {**dict(issue.sizes), "burst": len(step)}
        if "always" not in cases:
            key = _place(by[template["when"]], scope)
            source, fresh = held.get(key, (None, True))
            if source is None:
                what = f"nothing has brought operand {template['when']} of '{ins.name}'"
                raise fail("emission-operand", what, ins.loc)
            case, held[key] = "fresh" if fresh else "again", (source, False)
        if not cases[case] and issue.is_move:
            source, target = sorted(issue.operands, key=lambda o: ins.operand(o.name).role != "in")
            held[_place(target, scope)] = (_moved(source, scope), True)

        def lookup(word: str) -> Value:
            name, _, taken = word.partition(".")
            if name in sizes:
                return sizes[name]
            if name not in by or (taken and _place(by[name], scope) not in held):
                raise fail("emission-name", f"'{ins.name}' has no '{word}' to write", ins.loc)
            return self._address(held[_place(by[name], scope)][0] if taken else self._begun(issue, by[name], scope))

        for line in (*self.waits.lines(step), *(filled(line, lookup) for line in cases[case])):
            self._line(depth, line)

    def _begun(self, issue: Issue, o: Operand, scope: Mapping[str, Affine]) -> Operand:
        """An operand where it begins: of one that is filled around its tile, before that."""
        ins, size = self.schedule.system.instructions[issue.instruction], size_of(self.schedule.dtype(o.tile.buffer))
        at = o.place.offset + begin(ins, issue, o, size)
        return _moved(replace(o, place=replace(o.place, offset=at)), scope)

    def _address(self, o: Operand) -> Address:
        """Where an operand begins, in the units that its memory is addressed in."""
        p = o.place
        how = self.schedule.system.facts.get("stream", {}).get("memories", {}).get(p.memory, {})
        unit, base = (int(str(how.get(k, d)), 0) for k, d in (("unit", 1), ("base", 0)))
        at = p.offset + (p.cell or 0) * (self.schedule.system.memories[p.memory].cell or 1)
        if at.const % unit or any(c % unit for _, c in at.terms):
            raise fail("emission-increment", f"byte {at} of '{p.memory}' is no multiple of {unit}")
        whole = Affine(tuple((n, c // unit) for n, c in at.terms), at.const // unit)
        return Address(p.base, whole + base)

    def _line(self, depth: int, text: str) -> None:
        if len(self.lines) >= MOST:
            raise _too_long(MOST)
        self.lines.append("  " * (depth + 1) + text)


def _moved(o: Operand, scope: Mapping[str, Affine]) -> Operand:
    return replace(o, place=replace(o.place, offset=o.place.offset.substitute(scope)))


def _place(o: Operand, scope: Mapping[str, Affine]) -> tuple[str, str, int | None, Affine]:
    p = o.place
    return p.memory, p.base, p.cell, p.offset.substitute(scope)


def _shown(held: Held) -> dict[object, Place | None]:
    """What of it is written later: where fresh operands come from."""
    return {k: o.place if fresh else None for k, (o, fresh) in held.items()}
