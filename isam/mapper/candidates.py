"""Which instructions could carry out which statements (SEL-1): mappings that can be scheduled, one per orbit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from isam.classes import dataclass
from isam.ir.dataflow import Order, levels, mask_of
from isam.ir.dtype import DTYPES, size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.ir.mismatch import Mismatch
from isam.mapper.alike import in_one_part, kinds, moved
from isam.mapper.dataflow import Node, flow_of
from isam.mapper.exchange import exchangeable
from isam.mapper.filters import present
from isam.mapper.pricing import PricedMapping, Pricing
from isam.mapper.recalled import Found, found_at, sole

PER_INSTRUCTION = 64  # mappings looked at per instruction and region


@dataclass(frozen=True, slots=True)
class Gathered:
    """``candidates``, cheapest first; ``refused``: reports of mappings that fit but whose operands could not be laid
    out, one per buffer; ``cut``: some enumeration was ended by its budget."""

    candidates: tuple[PricedMapping, ...]
    refused: tuple[Mismatch, ...]
    cut: bool


def _unreachable(mapping: Mapped, pricing: Pricing) -> Mismatch | None:
    """Why an operand cannot be had as the instruction needs it (MAP-7): never backwards in memory; what is brought to
    another memory lies there at byte strides per buffer element, so the step must divide an element's size where there
    may be no gaps: in registers, and where its stride is not free; what is used in place may have gaps where its stride
    is free, and is written only as it lies."""
    kernel, written = pricing.kernel, {pricing.kernel.statements[i].dest.buffer for i in mapping.statements}
    for o in mapping.operands:
        if not o.buffer:
            continue
        contract, size = mapping.instruction.contract(o.operand), size_of(kernel.buffer(o.buffer).dtype)
        dense = contract.homes and not pricing.spacing.loose.issuperset(contract.homes)
        for dim, step, needed in zip(o.dims, o.steps, contract.strides, strict=False):
            exact = needed is not None
            gaps = (dense or exact) and size % step != 0 if contract.homes else exact
            if step != 1 and (step < 1 or gaps):
                return _layout(mapping, o.operand, dim, ("step", step, 1), turn=False)
        if o.buffer in written and not contract.homes:
            breach = pricing.breach(mapping.instruction, o, pricing.tile(mapping))
            if breach is not None:
                dim, needed, there = breach
                return _layout(mapping, o.operand, dim, ("stride", there, needed), turn=True)
    return None


def _layout(mapping: Mapped, operand: str, dim: int, what: tuple[str, int, int], *, turn: bool) -> Mismatch:
    """``what``: what is measured, how much there is, how much is needed. ``turn``: exchanging dimensions would help."""
    buffer = mapping.operand(operand).buffer
    measure, have, need = what
    facts = {"statement": mapping.statements[-1], "buffer": buffer, "operand": operand, "row": dim, "layout": turn,
             "have": have, "need": need}  # fmt: skip
    return Mismatch(
        "coefficient",
        f"a {measure} of {have}{' elements' * turn} along dimension {dim} of {buffer}",
        f"a {measure} of {need} there in {operand}",
        instruction_loc=mapping.instruction.loc,
        instruction=mapping.instruction.name,
        depth=len(mapping.axes) + len(mapping.operands) + len(mapping.statements),
        partial=mapping.axes,
        subject=tuple(facts.items()),
    )


def _ordered(mapping: Mapped, kernel: Kernel) -> bool:
    """Where the kernel does not permit to reassociate: reduced axes that a call runs over are the last ones of the
    statement, so that accumulations keep their lexicographic order."""
    if "reassociate" in kernel.permits:
        return True
    inside = set(mapping.axis_map.values())
    renames = {i: dict(names) for i, names in mapping.renames}
    for i in mapping.statements:
        s = kernel.statements[i]
        if s.accumulate and DTYPES[kernel.buffer(s.dest.buffer).dtype].kind == "f":
            names = renames.get(i, {})
            mine = [names.get(a, a) in inside for a in s.reduces]
            if mine != sorted(mine):
                return False
    return True


def gather(kernel: Kernel, instructions: Sequence[Instruction], order: Order, pricing: Pricing) -> Gathered:
    """Every schedulable candidate, one per orbit (the cheapest)."""
    several, rest = kinds(kernel)
    search = _Gathering(kernel, order, pricing)
    for instruction in present(instructions, kernel):
        if not several or not in_one_part(instruction):
            search.match(instruction, None)
            continue
        if rest:
            search.match(instruction, rest)
        for kind in several:
            found, refused = search.match(instruction, kind.first)
            for to, names in kind.others:
                search.add([_moved(c, to, names) for c in found])
                for m in refused:
                    search.refuse(moved(m, to, names))
    candidates = sorted(search.best.values(), key=lambda c: (c.price, len(c.mapping.conditions)))
    return Gathered(tuple(candidates), tuple(search.refused.values()), search.cut)


def _moved(c: PricedMapping, to: dict[int, int], names: dict[str, str]) -> PricedMapping:
    mapping = moved(c.mapping, to, names)
    return PricedMapping(mapping, mask_of(mapping.statements), c.calls, c.bytes)


@dataclass
class _Gathering:
    """Collects the candidates of a kernel."""

    kernel: Kernel
    order: Order
    pricing: Pricing
    best: dict[tuple[str, str, int], PricedMapping] = field(default_factory=dict)
    refused: dict[tuple[str, object], Mismatch] = field(default_factory=dict)
    at: dict[int, dict[int, Found]] = field(default_factory=dict)  # see ``found_at``
    cut: bool = False

    def match(self, instruction: Instruction, region: Sequence[int] | None) -> tuple[list[PricedMapping], list[Mapped]]:
        """Adds what the instruction can carry out in the region (None: anywhere). Returns that, and the mappings whose
        operands could not be laid out."""
        key = sole(instruction) if region is None else None
        if key is None:
            out, refused = self._look(instruction, region)
            self.add(out)
            return out, refused
        for node in dict.fromkeys(n for n, _ in flow_of(self.kernel).by_key.get(key, ())):
            self.add(self._recall(instruction, node).candidates)
        return [], []

    def _recall(self, instruction: Instruction, node: Node) -> Found:
        """What an instruction of one statement can do with a statement."""
        if node.index not in self.at:
            self.at[node.index] = found_at(self.kernel, node, self.pricing)
        known, number = self.at[node.index], id(instruction)
        if number not in known:
            before, self.cut = self.cut, False
            out, refused = self._look(instruction, (node.index,))
            known[number] = Found(instruction, node.index, tuple(out), tuple(refused), self.cut)
            self.cut = self.cut or before
            return known[number]
        found = known[number].moved(self.kernel, node.index)
        for m in found.refused:
            self.refuse(m)
        self.cut = self.cut or found.cut
        return found

    def _look(self, instruction: Instruction, region: Sequence[int] | None) -> tuple[list[PricedMapping], list[Mapped]]:
        """What the instruction can do there. Sources that may be exchanged without a difference are tried in one order,
        which finds one mapping of each orbit; in both where more than the candidates counts: which operands cannot be
        laid out, and that some mappings are not looked at."""
        one_order = exchangeable(instruction)
        out, refused, most = self._enumerated(instruction, region, swap=not one_order)
        if one_order and (refused or 2 * most > PER_INSTRUCTION):
            out, refused, most = self._enumerated(instruction, region, swap=True)
        self.cut = self.cut or most > PER_INSTRUCTION
        for mapping in refused:
            self.refuse(mapping)
        return out, refused

    def _enumerated(self, instruction: Instruction, region: Sequence[int] | None, *,
                    swap: bool) -> tuple[list[PricedMapping], list[Mapped], int]:  # fmt: skip
        """Also how many mappings there are of the same statements at most, more than are looked at where the search was
        ended."""
        from isam.mapper import match

        found = match(self.kernel, instruction, strided=True, swap=swap, normalise=False, region=region, why=False)
        out: list[PricedMapping] = []
        refused: list[Mapped] = []
        count: dict[int, int] = {}
        for mapping in found if not isinstance(found, Mismatch) else ():
            mask = mask_of(mapping.statements)
            count[mask] = count.get(mask, 0) + 1
            if count[mask] > PER_INSTRUCTION:
                continue
            if not any(mask & ~level.own == 0 for level in levels(self.kernel)) or not self.order.is_convex(mask):
                continue
            if not _ordered(mapping, self.kernel):
                continue
            if _unreachable(mapping, self.pricing) is not None:
                refused.append(mapping)
            else:
                out.append(self.pricing.candidate(mapping))
        most = max(count.values(), default=0)
        return out, refused, most if getattr(found, "complete", True) else max(most, PER_INSTRUCTION + 1)

    def refuse(self, mapping: Mapped) -> None:
        """Notes why its operands cannot be laid out."""
        no = _unreachable(mapping, self.pricing)
        if no is not None:
            self.refused.setdefault((no.instruction, no.about("buffer")), no)

    def add(self, found: Sequence[PricedMapping]) -> None:
        for c in found:
            key = (c.mapping.instruction.name, c.mapping.orbit or str(c.mapping), c.mask)
            if key not in self.best or c.price < self.best[key].price:
                self.best[key] = c
