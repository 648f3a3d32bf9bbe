"""The smallest change with which an instruction would fit: offered only after the matcher has agreed to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from isam.ir.hashing import structural_hash
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.mapper.match import Matches, match, match_untyped, near_misses
from isam.transforms import ALL
from isam.transforms.law import Site, Transform, dtypes_at, granted

STATES = 60  # kernels looked at
DEPTH = 4  # transforms in a row
NEAR = 6  # near misses whose answers are tried, per kernel
IDLE = frozenset({"commute", "remove-unit-axis", "permute-dimensions"})  # the matcher sees through these


@dataclass(frozen=True, slots=True)
class Remedy:
    """``change``: what to do, in words; ``steps``: laws applied one after the other (none: another sort of change)."""

    change: str
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.change


def remedies(kernel: Kernel, instruction: Instruction) -> tuple[Remedy, ...]:
    """Changes after which ``instruction`` fits ``kernel`` (in normal form), each of them checked."""
    out = [*_strides(kernel, instruction), *_types(kernel, instruction)]
    path = _path(kernel, instruction)
    if path is not None:
        steps = tuple(f"{t.law} ({s})" for t, s in path)
        out.append(Remedy("rewrite the kernel (the search does so itself): " + ", then ".join(steps), steps))
    return tuple(out)


def _strides(kernel: Kernel, instruction: Instruction) -> Iterator[Remedy]:
    found = match(kernel, instruction, strided=True, normalise=False)
    if isinstance(found, Matches):
        rows = [f"{o.buffer} with step {s}" for o in found.first.operands for s in o.steps if s != 1]
        yield Remedy(f"operands that may be strided: {', '.join(rows)}")


def _types(kernel: Kernel, instruction: Instruction) -> Iterator[Remedy]:
    found = match_untyped(kernel, instruction)
    if found is None:
        return
    wrong = [
        f"{o.buffer} is {kernel.buffer(o.buffer).dtype}, {o.operand} takes {instruction.operand(o.operand).dtype}"
        for o in found.operands
        if o.buffer and kernel.buffer(o.buffer).dtype != instruction.operand(o.operand).dtype
    ]
    if wrong:
        yield Remedy(f"the same element types: {'; '.join(wrong)}")


def _path(kernel: Kernel, instruction: Instruction) -> list[tuple[Transform, Site]] | None:
    """The shortest chain of laws, each asked for by a mismatch, after which the instruction fits."""
    seen = {structural_hash(kernel)}
    level: list[tuple[Kernel, list[tuple[Transform, Site]]]] = [(kernel, [])]
    for _ in range(DEPTH):
        after: list[tuple[Kernel, list[tuple[Transform, Site]]]] = []
        for k, path in level:
            for t, site in _answers(k, instruction):
                made = t.apply(k, site).kernel
                key = structural_hash(made)
                if key in seen:
                    continue
                seen.add(key)
                if match(made, instruction, normalise=False):
                    return [*path, (t, site)]
                after.append((made, [*path, (t, site)]))
                if len(seen) > STATES:
                    return None
        level = after
    return None


def _answers(kernel: Kernel, instruction: Instruction) -> Iterator[tuple[Transform, Site]]:
    best = match(kernel, instruction, normalise=False)
    near = [] if isinstance(best, Matches) else [best, *near_misses(kernel, instruction, normalise=False)]
    done: set[tuple[str, Site]] = set()
    for m in near[:NEAR]:
        m = _limited(m, instruction)
        for t in ALL:
            if t.law in IDLE or not t.answers(m):
                continue
            for site in t.sites_for(kernel, m):
                if (t.law, site) not in done and granted(kernel, t.needs, dtypes_at(kernel, site)):
                    done.add((t.law, site))
                    yield t, site


def _limited(m: Mismatch, instruction: Instruction) -> Mismatch:
    """Adds what one call takes along the axis that the mismatch names (for splits)."""
    axis = m.about("instruction_axis")
    extents = {a.name: a.extent for s in instruction.body.statements for a in s.domain.axes}
    if axis not in extents or not extents[axis].terms:
        return m
    limit = next((s.hi for s in instruction.syms if s.name == extents[axis].terms[0][0]), None)
    return m if limit is None else replace(m, subject=(*m.subject, ("limit", limit)))
