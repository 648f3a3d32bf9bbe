"""What a search may be for: every statement covered by instructions, or one instruction used somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.ir.mismatch import Mismatch
from isam.mapper.as_it_stands import Selection, selection
from isam.mapper.demand import Demand
from isam.mapper.filters import MIRROR
from isam.mapper.laws import Laws
from isam.mapper.match import BUDGET, normal, probe
from isam.mapper.pricing import Pricing
from isam.mapper.recalled import follow
from isam.mapper.space import Look, Rank, State, Step
from isam.mapper.uncovered import Uncovered
from isam.mapper.waste import wasted
from isam.transforms.law import Correspondence, Transform, dtypes_at, granted

PATIENCE = 4.0  # steps that a contradiction at once is behind one at the last pair


def with_limits(m: Mismatch, instruction: Instruction | None) -> Mismatch:
    """Adds what one call takes at most along the instruction axis that a mismatch names (``limit``, for splits), and
    the axes of which it takes exactly one number (``fixed``)."""
    if instruction is None:
        return m
    named = instruction.spans.get(m.about("instruction_axis") or "")
    facts: list[tuple[str, object]] = [("fixed", instruction.fixed)] if instruction.fixed else []
    facts += [("limit", named.most)] if named is not None and named.most is not None else []
    return replace(m, subject=(*m.subject, *facts)) if facts else m


@dataclass(frozen=True)
class Covered:
    """Every statement of ``kernel``, the user's, or of one equal to it is carried out as it is demanded."""

    kernel: Kernel
    demand: Demand
    laws: Laws

    shortest = False

    @property
    def saves(self) -> bool:
        return self.demand.saves

    @property
    def instructions(self) -> Sequence[Instruction]:
        return self.demand.instructions

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        return {i.name: i for i in self.instructions}

    def look(self, kernel: Kernel, back: Correspondence) -> Look[Selection | Uncovered]:
        shown = kernel is self.kernel  # only the report about the user's own kernel will be read
        if not shown:
            follow(kernel, self.kernel)
        found = selection(kernel, self.demand, remedies=shown)
        if isinstance(found, Selection):
            asks = tuple(self._limited(wasted(found, self.instructions)))
            return Look(found, True, found.price, asks=asks, grows=False)
        distance = len(found.gaps) + len(found.unmet)
        return Look(found, False, distance=distance, asks=tuple(self._limited(found.mismatches)),
                    hopeless=self._hopeless(kernel, found))  # fmt: skip

    def _limited(self, mismatches: Sequence[Mismatch]) -> list[Mismatch]:
        return [with_limits(m, self._by_name.get(m.instruction)) for m in mismatches]

    def _hopeless(self, kernel: Kernel, found: Uncovered) -> bool:
        """Some statement's operation is in no instruction, and no law turns it into operations that are."""
        absent = (next(m for m in g.mismatches if m.about("missing")) for g in found.gaps if g.missing)
        return any(not self._helped(kernel, m) for m in absent)

    def _helped(self, kernel: Kernel, m: Mismatch) -> bool:
        """Some law answers the report, or may take the statement away when it is asked about another."""
        op = kernel.statements[m.about("statement")].op
        if any(op in t.removes for t in self.laws):
            return True
        return any(self._helps(t, kernel, m) for t in self.laws.answering(m.kind))

    def _helps(self, t: Transform, kernel: Kernel, m: Mismatch) -> bool:
        """Has the law something to say about the statement, and if it replaces its operation, by such as can be had?"""
        if not any(granted(kernel, t.needs, dtypes_at(kernel, site)) for site in t.sites_for(kernel, m)):
            return False
        return not t.replaces or all(op in self._had for op in t.makes)

    @cached_property
    def _had(self) -> frozenset[str]:
        """Operations that some instruction has, or that a law replaces by such operations."""
        had = {op for i in self.instructions for op, _, _ in i.signature} | {"copy"}
        rows = [t for t in self.laws if t.replaces]
        before = -1
        while len(had) > before:
            before = len(had)
            had |= {t.replaces for t in rows if t.makes <= had}
        return frozenset(had)

    def rank(self, state: State[Selection | Uncovered], step: Step) -> Rank:
        return state.look.distance, len(state.steps)


@dataclass(frozen=True)
class Used:
    """``instruction`` carries out at least one statement: the user's ``statement`` if given, one that writes the user's
    ``buffer`` if given. ``pairs``: the matcher's budget on ``kernel``, the user's; ``later``: on each made from it."""

    instruction: Instruction
    statement: int | None = None
    buffer: str | None = None
    strided: bool = False
    pairs: int = BUDGET
    laws: Sequence[Transform] = ()
    kernel: Kernel | None = None
    later: int = BUDGET

    shortest = True
    saves = False

    @cached_property
    def _operations(self) -> frozenset[str]:
        return frozenset(MIRROR.get(op, op) for op, _, _ in self.instruction.signature)

    @cached_property
    def _pairs(self) -> int:
        """How many pairs a complete mapping agrees on; 1 where there is nothing to agree on."""
        body = normal(self.instruction.body)
        axes = {a.name for s in body.statements for a in s.domain.axes}
        pairs = len(body.statements) + len(body.buffers) + len(axes) + sum(len(b.shape) for b in body.arguments)
        return max(1, pairs)

    def look(self, kernel: Kernel, back: Correspondence) -> Look[tuple[Mapped, ...]]:
        if not self.instruction.takes <= kernel.permits:
            return Look((), False, distance=1.0, asks=(ungranted(kernel, self.instruction),), hopeless=True)
        pairs = self.pairs if kernel is self.kernel else min(self.pairs, self.later)
        found = probe(kernel, self.instruction, strided=self.strided, budget=pairs)
        hits = tuple(m for m in found if self.hit(kernel, back, m))
        if hits:
            price = min(Pricing(kernel).candidate(m).price for m in hits)
            return Look(hits, True, price, whole=found.complete, pairs=found.pairs)
        asks = tuple(with_limits(m, self.instruction) for m in found.near)
        distance = min(map(self._distance, asks), default=1.0)
        reach = self._within_reach(frozenset(s.op for s in kernel.statements))
        hopeless = not (self._operations and self._operations <= reach)
        return Look((), False, distance=distance, asks=asks, hopeless=hopeless, whole=found.complete, pairs=found.pairs)

    @cached_property
    def _known(self) -> dict[frozenset[str], frozenset[str]]:
        return {}

    def _within_reach(self, operations: frozenset[str]) -> frozenset[str]:
        """Most kernels of a search have the same operations."""
        if operations not in self._known:
            self._known[operations] = within_reach(operations, self.laws)
        return self._known[operations]

    def _distance(self, m: Mismatch) -> float:
        """Which part of all pairs was not agreed on."""
        return 1.0 - min(1.0, m.depth / self._pairs)

    def hit(self, kernel: Kernel, back: Correspondence, m: Mapped) -> bool:
        """Does the mapping do what was asked for?"""
        mine = {old for i in m.statements for old in back.statements[i]}
        written = {kernel.statements[i].dest.buffer for i in m.statements}
        right = self.statement is None or self.statement in mine
        return right and (self.buffer is None or bool(written & set(back.new_buffers(self.buffer))))

    def rank(self, state: State[tuple[Mapped, ...]], step: Step) -> Rank:
        """Steps on the path so far, and how early the contradiction came that this one answers."""
        asked = step.because if isinstance(step.because, Mismatch) else None
        return (len(state.steps) + PATIENCE * (1.0 if asked is None else self._distance(asked)),)


def within_reach(operations: frozenset[str], laws: Sequence[Transform]) -> frozenset[str]:
    """The operations and those that the laws could make of them (of ``a > b`` and ``b < a`` one)."""
    out = set(operations)
    before = -1
    while len(out) > before:
        before = len(out)
        for t in laws:
            if t.replaces in ("", *out) and t.wants <= out:
                out |= t.makes
    return frozenset(MIRROR.get(op, op) for op in out)


def ungranted(kernel: Kernel, instruction: Instruction) -> Mismatch:
    """The instruction takes liberties with numbers that the kernel's user does not grant."""
    missing = " and ".join(sorted(instruction.takes - kernel.permits))
    have = f"'permits {', '.join(sorted(kernel.permits)) or 'exact'}'"
    need = f"a kernel that permits {missing}"
    return Mismatch("operation", have, need, kernel.loc, instruction.loc, instruction.name)
