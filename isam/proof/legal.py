"""What can be judged of a step without knowing the state: obligations 2, 3, 9 and 10, and 7 for shapes.

A step is judged in two parts. Its *signature* (unit, instruction, sizes, shapes, strides, memories: everything but
addresses) is judged once, however many steps share it. What differs per step (starts, offsets, points) is affine and
must agree identically with the kernel's accesses.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial

from isam.classes import dataclass
from isam.ir.affine import ZERO, Affine
from isam.ir.kernel import Axis
from isam.proof.context import Context, Var
from isam.proof.geometry import BufferFacts, first, recurrent_axes, resolve
from isam.proof.scope import everywhere
from isam.proof.semantics import Semantics, compare
from isam.proof.signature import Judge, Signature, ends
from isam.proof.violation import Findings, Violation
from isam.schedule.tree import Issue, Operand, Place, Schedule, Slot


@dataclass(slots=True)
class Legality:
    """Judges steps of one schedule; remembers signatures."""

    schedule: Schedule
    buffers: dict[str, BufferFacts] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    kept: dict[str, Slot] = field(default_factory=dict)  # those that are not written when the kernel is called
    outer: list[tuple[Axis, ...]] = field(default_factory=list)
    contexts: dict[tuple[Var, ...], Context] = field(default_factory=dict)  # equal contexts are one object
    bounded: dict[tuple[int, Context, str], list[Violation]] = field(default_factory=dict)  # see ``bounds``
    formed: list[Violation] | None = None  # see ``points.check_form``
    streams: dict[str, str] = field(init=False)  # of units and clusters: the replica that has them, or ''
    _everywhere: Context | None = None
    _reserved: dict[str, int] = field(default_factory=dict)
    _written: dict[str, frozenset[str]] = field(default_factory=dict)
    _signatures: dict[tuple, Signature] = field(default_factory=dict)
    judge: Judge = field(init=False)
    _of: dict[int, tuple[Issue, Signature]] = field(default_factory=dict)
    _steps: dict[int, tuple[Issue, list[Violation], bool]] = field(default_factory=dict)
    _semantics: dict[int, Semantics] = field(default_factory=dict)

    def __post_init__(self) -> None:
        s = self.schedule
        k = s.cover.kernel
        self.judge = Judge(s, self.buffers, partial(_semantics, s, self._semantics))
        for b in k.buffers:
            self.buffers[b.name] = BufferFacts(b.name, b.shape, b.dtype, b.role, s.homes.get(b.name))
        for slot in s.workspace:
            self.slots[slot.name] = slot.bytes
            if slot.bound or slot.literal is not None:
                self.kept[slot.name] = slot
            if slot.literal is not None:
                place = s.homes.get(slot.name) or Place(slot.memory, slot.name, Affine(), ())
                self.buffers[slot.name] = BufferFacts(slot.name, (), slot.dtype, "literal", place)
        self.outer = recurrent_axes(k)
        self.streams = {s.system.stream_of(u): s.system.replica_of(u) or "" for u in s.system.units}

    def context(self, vars_: tuple[Var, ...]) -> Context:
        """The one context object with these variables."""
        got = self.contexts.get(vars_)
        if got is None:
            got = self.contexts[vars_] = Context(vars_)
        return got

    @property
    def everywhere(self) -> Context:
        """What is known wherever a step is; of loops in the right form, so worked out when first asked."""
        if self._everywhere is None:
            self._everywhere = self.context(everywhere(self.schedule))
        return self._everywhere

    def written(self, instruction: str) -> frozenset[str]:
        """The operands that an instruction writes, whoever calls it how."""
        got = self._written.get(instruction)
        if got is None:
            body = self.schedule.system.instructions[instruction].body
            got = self._written[instruction] = frozenset(b.name for b in body.arguments if b.role in ("out", "inout"))
        return got

    def one_address(self, base: str) -> bool:
        """Whether every element of a base has one address only: in an argument's own memory (see :meth:`step`)."""
        b = self.buffers.get(base)
        return b is not None and b.home is not None and b.home.base == b.name

    def reserved(self, memory: str) -> int:
        """Bytes of slots at the end of a memory with explicit addresses."""
        known = self._reserved.get(memory)
        if known is None:
            s = self.schedule
            mine = [w for w in s.workspace if resolve(s.system, w.memory) == memory]
            known = self._reserved[memory] = sum(-(-w.bytes // w.align) * w.align for w in mine)
        return known

    # signatures ---------------------------------------------------------------------------------------------------
    def signature(self, issue: Issue) -> Signature:
        known = self._of.get(id(issue))
        if known is None or known[0] is not issue:
            known = self._of[id(issue)] = (issue, self._signature(issue))
        return known[1]

    def _signature(self, issue: Issue) -> Signature:
        key = (
            issue.unit,
            issue.instruction,
            issue.sizes,
            issue.nest,
            tuple(n for n, _ in issue.point),
            tuple(
                (
                    o.name,
                    o.tile.buffer,
                    len(o.tile.start),
                    o.tile.shape,
                    o.tile.steps,
                    o.place.memory,
                    o.place.base,
                    o.place.strides,
                    o.place.cell is None,
                    o.dims,
                )
                for o in issue.operands
            ),
        )
        got = self._signatures.get(key)
        if got is None:
            got = self._signatures[key] = self.judge.judge(issue)
        return got

    def semantics(self, nest: int) -> Semantics:
        """What the instruction of a nest's mapping does in terms of the kernel."""
        return _semantics(self.schedule, self._semantics, nest)

    # per step -------------------------------------------------------------------------------------------------------
    def step(self, issue: Issue, out: Findings) -> bool:
        """Judges one step without its state: obligations 2, 3, 9 and 10. False when it cannot be followed further."""
        known = self._steps.get(id(issue))
        if known is None or known[0] is not issue:
            found = Findings()
            ok = self._step(issue, self.signature(issue), found)
            known = self._steps[id(issue)] = (issue, found.found, ok)
        out.extend(known[1])
        return known[2]

    def _step(self, issue: Issue, sig: Signature, out: Findings) -> bool:
        for obligation, kind, text in sig.faults:
            out.add(obligation, kind, text, issue)
        for w in issue.after:  # whether they suffice: ``races``
            if w.lag < 0 or w.stream not in self.streams or (w.every and not self.streams[w.stream]):
                out.add(10, "wait", f"there is no such wait: '{w.stream}', lag {w.lag}, every {w.every}", issue)
                return False
        if sig.faults:
            return False
        assert sig.instruction is not None  # else it has faults
        by = {o.name: o for o in issue.operands}
        if issue.is_move:
            src, dst = ends(issue, sig.instruction)
            st = sig.instruction.body.statements[0]
            a, b = first(src, st.sources[0].index), first(dst, st.dest.index)  # type: ignore[union-attr]
            if a != b:
                out.add(2, "move", f"a move carries {src.tile} to a place said to hold {dst.tile}", issue)
                return False
        point = dict(issue.point)
        for p in sig.semantics.pairs:
            if p.kernel is not None:
                o = by[p.operand]
                want = tuple(r.substitute(point) for r in p.kernel.index)
                if first(o, p.own.index) != want:
                    at = f"{p.kernel.buffer}[{', '.join(map(str, want))}]"
                    text = f"operand {o.name} is {o.tile}; at this point the kernel accesses {at}"
                    out.add(2, "address", text, issue)
                    return False
        at_home = [self._home_layout(o, issue, out) for o in issue.operands]
        return all(at_home)

    def _home_layout(self, o: Operand, issue: Issue, out: Findings) -> bool:
        """In an argument's own memory an element has one address only."""
        if not self.one_address(o.place.base):
            return True
        base = self.buffers[o.place.base]
        assert base.home is not None
        home, rank = base.home.strides, len(o.tile.shape)
        ok = base.name == o.tile.buffer and len(home) == len(o.place.strides) == rank and all(
            n == 1 or a == b for n, a, b in zip(o.tile.shape, o.place.strides, home, strict=True))  # fmt: skip
        if ok:
            ok = ZERO.plus(base.home.strides, o.tile.start) == o.place.offset
        if not ok:
            out.add(2, "address", f"{o.tile} does not lie at {o.place.base}+({o.place.offset})", issue)
        return ok

    def own_bytes(self, o: Operand) -> bool:
        """Whether every element of a tile has bytes of its own: each stride is beyond all that smaller ones reach."""
        sides = zip(o.place.strides, o.tile.steps, o.tile.shape, strict=True)
        reach = self.buffers[o.tile.buffer].bytes
        for far, n in sorted((abs(k * m), n) for k, m, n in sides if n > 1):
            if far < reach:
                return False
            reach += far * (n - 1)
        return True


def _semantics(schedule: Schedule, known: dict[int, Semantics], nest: int) -> Semantics:
    m = schedule.nests[nest].mapping
    if m not in known:
        known[m] = compare(schedule.cover.mappings[m], schedule.cover.kernel)
    return known[m]
