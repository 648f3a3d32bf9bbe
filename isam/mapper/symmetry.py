"""The symmetries of an instruction, found by matching it with itself, and the orbit of a mapping (MAP-5).

A symmetry renames operands, dimensions and axes so that body, dtypes, limits and operand contracts stay the same. The
factors of a dot product may be exchanged; those of a matrix product only where the operands' strides are free, because
the exchange transposes them.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2s

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.mapping import Mapping, OperandMap


def preserves_contract(instruction: Instruction, mapping: Mapping, extents: dict[str, Affine]) -> bool:
    """A mapping of the instruction's own body is a symmetry when limits, dtypes and contracts stay the same.

    ``extents``: of each axis of the instruction, by the name that ``mapping.axes`` gives it on both sides.
    """
    limits = {s.name: (s.lo, s.hi, s.multiple_of) for s in instruction.syms}
    for mine, other in mapping.axes:
        one, two = extents[mine], extents[other]
        if one.const != two.const or [(limits.get(n), c) for n, c in one.terms] != [
            (limits.get(n), c) for n, c in two.terms
        ]:
            return False
    for o in mapping.operands:
        a, b = instruction.contract(o.operand), instruction.contract(o.buffer)
        if (a.homes, a.align) != (b.homes, b.align) or a.strides != tuple(b.strides[d] for d in o.dims):
            return False
        if instruction.operand(o.operand).role != instruction.operand(o.buffer).role:
            return False
    moved = {o.operand: o.buffer for o in mapping.operands}
    groups = {frozenset(g) for g in instruction.apart}
    return groups == {frozenset(moved.get(n, n) for n in g) for g in groups}


def in_order(symmetry: Mapping) -> Mapping:
    """A symmetry with its operands and axes by name, as an orbit's key has them."""
    operands = tuple(sorted(symmetry.operands, key=lambda o: o.operand))
    return replace(symmetry, operands=operands, axes=tuple(sorted(symmetry.axes)))


def orbit_key(statements: tuple[int, ...], operands: tuple[OperandMap, ...], axes: tuple[tuple[str, str], ...],
              symmetries: tuple[Mapping, ...]) -> str:  # fmt: skip
    """The same string for all mappings that a symmetry turns into each other; of a mapping its ``statements``,
    ``operands`` and ``axes``. ``symmetries``: those of the instruction, :func:`in_order`."""
    parts = {o.operand: f"{o.buffer}|{o.literal}|{','.join(map(str, o.index))}" for o in operands}
    played = {o.operand: o for o in operands}
    names = dict(axes)
    forms = [_form(parts, played, names, s) for s in symmetries] or [_form(parts, played, names, None)]
    text = f"{sorted(statements)}{min(forms)}"
    return blake2s(text.encode(), digest_size=6).hexdigest()


def _form(parts: dict[str, str], played: dict[str, OperandMap], axes: dict[str, str], s: Mapping | None) -> str:
    if s is None:
        return repr([(n, parts[n], o.dims, o.steps) for n, o in sorted(played.items())]) + repr(sorted(axes.items()))
    rows = []
    for o in s.operands:
        image = played[o.buffer]
        dims, steps = tuple([image.dims[d] for d in o.dims]), tuple([image.steps[d] for d in o.dims])
        rows.append((o.operand, parts[o.buffer], dims, steps))
    return repr(rows) + repr([(c, axes[d]) for c, d in s.axes])
