"""Set-up commands: what calls need of configuration registers is set where it is not held, as early as it holds for
everything that follows in a loop or a sequence (SYS-5).

A register belongs to the stream of the unit that needs it, and is set on that unit. What a whole loop needs of one
value is set before the loop; what changes inside is set inside, and what the end of an iteration leaves is what the
next one begins with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, children, distinct
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.system.graph import System

Value = str | int
Values = Mapping[str, Value]
Wants = dict[str, frozenset[Value]]  # per register, what a part of the tree needs


def with_registers(schedule: Schedule) -> Schedule:
    """The schedule with its set-up commands. Raises ``NoSchedule`` when a value cannot be set."""
    used = schedule.called()
    if not any(schedule.system.instructions[i].requires for i in used):
        return schedule
    reset = {r.name: r.reset for r in schedule.system.state.values() if r.reset is not None}
    bind, _ = Configure(schedule.system).whole(schedule.bind, reset)
    changed = {r for u in schedule.system.units.values() for i in u.runs for r in schedule.system.instructions[i].sets}
    left = {r: v for r, v in reset.items() if r not in changed}  # of others nobody knows what the call before has left
    call, _ = Configure(schedule.system).whole(schedule.call, left)
    return replace(schedule, bind=bind, call=call)


def needs(step: list[Issue], system: System) -> dict[str, Value]:
    """What the calls of one step need: words and numbers as they stand, strides and distances of their operands."""
    out: dict[str, Value] = {}
    for issue in step:
        for register, value in system.instructions[issue.instruction].requires.items():
            got = _measured(value, step) if isinstance(value, str) else value
            if got is not None:
                out[register] = got
    return out


def _measured(value: str, step: list[Issue]) -> Value | None:
    """None: any value will do."""
    kind, *rest = value.split()
    if not rest:
        return value
    o = next(o for o in step[0].operands if o.name == rest[0])
    if kind == "step":
        other = next((p for i in step[1:2] for p in i.operands if p.name == rest[0]), None)
        return None if other is None else (other.place.offset - o.place.offset).const
    d = o.dims[int(rest[1])]
    return None if d is None or o.tile.shape[d] <= 1 else o.place.strides[d] * o.tile.steps[d]


@dataclass
class Configure:
    """One walk over a tree. ``owner``: per register the unit that needs it."""

    system: System
    owner: dict[str, str] = field(default_factory=dict)
    known: dict[int, Wants] = field(default_factory=dict)
    made: dict[object, tuple[Node, dict[str, Value]]] = field(default_factory=dict)
    dealt: dict[int, bool] = field(default_factory=dict)

    def whole(self, node: Node, held: Values) -> tuple[Node, dict[str, Value]]:
        """A node behind what all of it needs, and what is held after it."""
        held, out = dict(held), []
        self._set(self._ahead(node), held, out)
        inside, after = self._part(node, held)
        return (Seq((*out, inside)) if out else inside), after

    def wants(self, node: Node) -> Wants:
        """What a node needs where it begins or later. An instance's registers are its own: what a dealt loop needs is
        set inside."""
        got = self.known.get(id(node))
        if got is None:
            inner = (node.enter, node.exit) if isinstance(node, Loop) and node.deal is not None else children(node)
            parts = [self._of(s) for s in steps(node)] if isinstance(node, Seq) else map(self.wants, inner)
            if isinstance(node, Issue):
                parts = [self._of([node])]
            got = {}
            for w in parts:
                for r, values in w.items():
                    got[r] = got.get(r, frozenset()) | values
            self.known[id(node)] = got
        return got

    def _ahead(self, node: Node) -> dict[str, Value]:
        """What is set before a node, of what it needs."""
        within = self._within(node)
        return self._values({r: v for r, v in self.wants(node).items() if r not in within})

    @staticmethod
    def _values(wants: Wants) -> dict[str, Value]:
        return {r: next(iter(v)) for r, v in wants.items() if len(v) == 1}

    def _within(self, node: Node) -> frozenset[str]:
        """Registers that are set inside a node: those that it needs with several values, and those that no command sets
        without one of these."""
        wants = self.wants(node)
        several = frozenset(r for r, values in wants.items() if len(values) > 1)
        with_them = (r for r in wants.keys() - several if several and self._only_with(r, several))
        return several | frozenset(with_them)

    def _only_with(self, register: str, others: frozenset[str]) -> bool:
        setters = [i.sets.keys() for i in self._setters(register)]
        return bool(setters) and not any(others.isdisjoint(s) for s in setters)

    def _deals(self, node: Node) -> bool:
        """Whether there is a dealt loop in a node: nobody knows what is held after one."""
        if id(node) not in self.dealt:
            mine = isinstance(node, Loop) and node.deal is not None
            self.dealt[id(node)] = mine or any(map(self._deals, children(node)))
        return self.dealt[id(node)]

    def _of(self, step: list[Node]) -> Wants:
        calls = [c for c in step if isinstance(c, Issue)]
        if not calls:
            return self.wants(step[0])
        found = needs(calls, self.system)
        self.owner.update(dict.fromkeys(found, calls[0].unit))
        return {r: frozenset((v,)) for r, v in found.items()}

    def _part(self, node: Node, held: Values) -> tuple[Node, dict[str, Value]]:
        """A node with set-up commands inside; shared nodes stay shared where they begin alike."""
        mine = self.wants(node)
        if all(held.get(r) == v for r, values in mine.items() for v in values) and not self._deals(node):
            return node, dict(held)
        key = (id(node), tuple(sorted((r, str(v)) for r, v in held.items())))
        if key not in self.made:
            self.made[key] = self._loop(node, held) if isinstance(node, Loop) else self._seq(node, held)
        new, after = self.made[key]
        return new, dict(after)

    def _seq(self, node: Node, held: Values) -> tuple[Node, dict[str, Value]]:
        out: list[Node] = []
        state = dict(held)
        alone: list[list[Node]] = [[node]]
        for step in steps(node) if isinstance(node, Seq) else alone:
            calls = isinstance(step[0], Issue)
            self._set(self._values(self._of(step)) if calls else self._ahead(step[0]), state, out)
            if calls:
                out += step
            else:
                new, state = self._part(step[0], state)
                out.append(new)
        return Seq(tuple(out)), state

    def _loop(self, loop: Loop, held: Values) -> tuple[Node, dict[str, Value]]:
        several = self._within(loop)
        enter, entry = self.whole(loop.enter, held)
        begin = {r: v for r, v in entry.items() if r not in several}
        if loop.deal is not None:  # an instance's registers are its own: nobody knows what they hold
            begin = {}
        parts, end = self._bodies(loop, begin)
        steady = {**begin, **{r: v for r, v in end.items() if r in several}}
        if loop.deal is None and steady != begin:
            extra: list[Node] = []
            ready, (again, after) = dict(entry), self._bodies(loop, steady)
            self._set({r: v for r, v in steady.items() if ready.get(r) != v}, ready, extra)
            pays = _commands_in(again) < _commands_in(parts)
            if pays and all(after.get(r) == v for r, v in steady.items()):
                parts, end, enter = again, after, Seq((enter, *extra))
        first, body, last = parts
        leave, after = self.whole(loop.exit, end if loop.deal is None else {})
        if not loop.trip:  # it may not run at all
            after = {r: v for r, v in after.items() if held.get(r) == v}
        return replace(loop, enter=enter, first=first, body=body, last=last, exit=leave), after

    def _bodies(self, loop: Loop, begin: Values) -> tuple[tuple[Node | None, Node, Node | None], dict[str, Value]]:
        """The bodies, each beginning alike, and what all of them leave."""
        made = {p: self.whole(n, begin) for p in ("first", "body", "last") if (n := getattr(loop, p)) is not None}
        ends = [after for _, after in made.values()]
        end = {r: v for r, v in ends[0].items() if all(e.get(r) == v for e in ends)}
        get = {p: made[p][0] if p in made else None for p in ("first", "body", "last")}
        assert get["body"] is not None
        return (get["first"], get["body"], get["last"]), end

    # -- commands ----------------------------------------------------------------------------------------------------
    def _set(self, wanted: Values, held: dict[str, Value], out: list[Node]) -> None:
        """Commands after which ``wanted`` is held besides what was."""
        while lacking := {r: v for r, v in wanted.items() if held.get(r) != v}:
            options = [o for r in lacking for o in self._commands(r, wanted, held)]
            best = max(options, key=lambda o: sum(o[1].get(r) == v for r, v in lacking.items()), default=None)
            if best is None:
                r, v = next(iter(lacking.items()))
                what = f"no command of '{self.owner[r]}' sets it and leaves what else is needed"
                raise NoSchedule(Infeasible(f"register '{r}'", f"the value {v}", what))
            out.append(best[0])
            held.update(best[1])

    def _commands(self, register: str, wanted: Values, held: Values) -> list[tuple[Issue, dict[str, Value]]]:
        """Commands of the register's unit that set it as wanted, what they leave too."""
        out = []
        for ins in self._setters(register):
            sizes = _sizes(ins, wanted, held)
            if sizes is not None:
                left = {r: sizes.get(v, v) if isinstance(v, str) else v for r, v in ins.sets.items()}
                out.append((Issue(self.owner[register], ins.name, tuple(sizes.items()), ()), left))
        return out

    def _setters(self, register: str) -> list[Instruction]:
        """The commands of the register's unit that set it."""
        run = (self.system.instructions[n] for n in self.system.units[self.owner[register]].runs)
        return [i for i in run if register in i.sets and not i.body.body]


def _commands_in(parts: tuple[Node | None, ...]) -> int:
    """Set-up commands in the bodies of a loop."""
    return sum(isinstance(n, Issue) and n.configures for p in parts if p is not None for n in distinct(p))


def steps(seq: Seq) -> list[list[Node]]:
    """The children, calls with those that are joined to them."""
    out: list[list[Node]] = []
    for c in seq.children:
        if isinstance(c, Issue) and c.joined and out:
            out[-1].append(c)
        else:
            out.append([c])
    return out


def _sizes(ins: Instruction, wanted: Values, held: Values) -> dict[str, int] | None:
    """Sizes with which the command leaves what is wanted; None where it cannot."""
    sizes: dict[str, int] = {}
    known = {s.name for s in ins.syms}
    for r, v in ins.sets.items():
        if v in known:
            value = wanted.get(r, held.get(r))
            if isinstance(value, int) and sizes.setdefault(str(v), value) != value:
                return None
        elif wanted.get(r, v) != v:
            return None
    for s in ins.syms:
        n = sizes.setdefault(s.name, -(-max(s.lo, 1) // s.multiple_of) * s.multiple_of)
        if n < max(s.lo, 1) or (s.hi is not None and n > s.hi) or n % s.multiple_of:
            return None
    return {s.name: sizes[s.name] for s in ins.syms}
