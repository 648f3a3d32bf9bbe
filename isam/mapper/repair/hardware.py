"""Repairs of the instruction: what it would have to accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction, OperandContract
from isam.ir.kernel import Access, Item, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.verify import verify
from isam.mapper.match import Matches, match
from isam.mapper.repair.repair import LOOKED, Repair
from isam.mapper.retyped import retyped
from isam.mapper.spelt import hidden, written


def accepting(kernel: Kernel, instruction: Instruction, near: Sequence[Mismatch]) -> Iterator[Repair]:
    """Operands with gaps, or where no gaps will do with another coefficient, other element types, larger or ragged
    sizes, adding up instead of overwriting. ``near``: what stands in the way."""
    yield from list(_strides(kernel, instruction)) or _coefficients(kernel, instruction, near)
    yield from _types(kernel, instruction)
    yield from _sizes(kernel, instruction)
    yield from _adding(kernel, instruction)


def _strides(kernel: Kernel, instruction: Instruction) -> Iterator[Repair]:
    found = match(kernel, instruction, strided=True, normalise=False)
    if isinstance(found, Matches):
        rows = [f"{o.operand} (here {o.buffer}) with step {s}" for o in found.first.operands for s in o.steps if s != 1]
        yield Repair("hardware", f"accept a strided operand: {', '.join(rows)}", len(rows), str(found.first), kernel,
                     replace(instruction, operands=_free(instruction)))  # fmt: skip


def _coefficients(kernel: Kernel, instruction: Instruction, near: Sequence[Mismatch]) -> Iterator[Repair]:
    """One coefficient in the index of an operand as the kernel has it: in a row of several axes, or of one where the
    instruction itself leaves gaps, which are no distance between elements."""
    facts = ("operand", "buffer", "instruction_axis", "need", "have")
    for operand, buffer, axis, need, have in dict.fromkeys(
        tuple(m.about(f) for f in facts) for m in near[:LOOKED] if m.kind == "coefficient"
    ):
        if operand not in instruction.body.by_name or axis is None or need is None or have is None:
            continue
        other, changed = _stepping(instruction.body, operand, axis, need, have)
        then = replace(instruction, body=other)
        found = match(kernel, then, normalise=False) if changed and not verify(other) else None
        if isinstance(found, Matches):
            said = f"accept {changed[0][1]} (here {buffer}) instead of {changed[0][0]}"
            yield Repair("hardware", said, 1, str(found.first), kernel, then)


def _stepping(body: Kernel, operand: str, axis: str, need: int,
              have: int) -> tuple[Kernel, list[tuple[Access, Access]]]:  # fmt: skip
    """The body with another coefficient of an axis in the operand's index, the operand as much longer or shorter; and
    what was accessed with what is instead."""
    longer: dict[int, Affine] = {}
    changed: list[tuple[Access, Access]] = []

    def stepped(x: Access, extent: Affine) -> Access:
        rows = [d for d, row in enumerate(x.index) if x.buffer == operand and row.coefficient(axis) == need]
        if not rows:
            return x
        longer.update(dict.fromkeys(rows, (extent if have > need else extent - 1) * (have - need)))
        more = Affine.of(axis, have - need)
        changed.append((x, replace(x, index=tuple(r + more if d in rows else r for d, r in enumerate(x.index)))))
        return changed[-1][1]

    def item(it: Item) -> Item:
        if not isinstance(it, Statement) or axis not in it.domain.names:
            return it
        extent = it.domain.extent(axis)
        sources = tuple(stepped(x, extent) if isinstance(x, Access) else x for x in it.sources)
        return replace(it, dest=stepped(it.dest, extent), sources=sources)

    items = tuple(map(item, body.body))
    buffers = tuple(replace(b, shape=tuple(n + longer.get(d, 0) for d, n in enumerate(b.shape)))
                    if b.name == operand else b for b in body.buffers)  # fmt: skip
    return replace(body, body=items, buffers=buffers, template=None), changed


def _types(kernel: Kernel, instruction: Instruction) -> Iterator[Repair]:
    found = retyped(kernel, instruction)
    if found is not None and (other := found.accepting()) is not None:
        here = {o.operand: f" (here {written(Access(o.buffer, o.index), kernel)})" if hidden(kernel, o.buffer) else ""
                for o in found.mapping.operands}  # fmt: skip
        said = "; ".join(f"{n}{here[n]} of {have} instead of {had}" for n, (had, have) in found.wrong.items())
        yield Repair("hardware", f"accept other element types: {said}", len(found.wrong), str(other[1]), kernel,
                     other[0])  # fmt: skip


def _free(instruction: Instruction) -> dict[str, OperandContract]:
    """The operands with every stride free."""
    return {
        b.name: replace(instruction.contract(b.name), strides=(None,) * len(b.shape))
        for b in instruction.body.arguments
    }


def _sizes(kernel: Kernel, instruction: Instruction) -> Iterator[Repair]:
    """The fewest limits that have to go."""
    bounded = [s for s in instruction.syms if s.hi is not None or s.multiple_of > 1 or s.lo > 0]
    for some in [*((s,) for s in bounded), tuple(bounded)]:
        names = {s.name for s in some}
        syms = tuple(replace(s, lo=0, hi=None, multiple_of=1) if s.name in names else s for s in instruction.syms)
        larger = replace(instruction, body=replace(instruction.body, syms=syms))
        found = match(kernel, larger, normalise=False)
        if some and isinstance(found, Matches):
            said = ", ".join(f"{s.name} (now {_limit(s.lo, s.hi, s.multiple_of)})" for s in some)
            yield Repair("hardware", f"accept any {said} in one call", len(some), str(found.first), kernel, larger)
            return


def _limit(low: int, high: int | None, step: int) -> str:
    if low > 0 and low == high:
        return f"exactly {low}"
    parts = [f"at most {high}"] if high is not None else []
    return " and ".join([*parts, f"a multiple of {step}"] if step > 1 else parts) or f"at least {low}"


def _adding(kernel: Kernel, instruction: Instruction) -> Iterator[Repair]:
    """An instruction that starts a sum itself, where the kernel has started it already."""
    body = instruction.body
    for at, s in enumerate(body.body):
        b = body.buffer(s.dest.buffer) if isinstance(s, Statement) else None
        if b is None or b.role != "out" or not _starts(body, at):
            continue
        buffers = tuple(replace(x, role="inout") if x.name == b.name else x for x in body.buffers)
        rest = (*body.body[:at], *body.body[at + 1 :])
        adding = replace(instruction, body=replace(body, body=rest, buffers=buffers))
        found = match(kernel, adding, normalise=False)
        if isinstance(found, Matches):
            yield Repair("hardware", f"add to {b.name} instead of overwriting it", 1, str(found.first), kernel, adding)


def _starts(body: Kernel, at: int) -> bool:
    """Whether an item of a body writes a constant that later statements accumulate into."""
    s = body.body[at]
    if not isinstance(s, Statement) or s.op != "copy" or not isinstance(s.sources[0], Literal):
        return False
    later = [t for t in body.body[at + 1 :] if isinstance(t, Statement) and t.dest.buffer == s.dest.buffer]
    return any(t.accumulate for t in later)
