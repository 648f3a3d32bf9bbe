"""What the mapper returns (MAP-1) and what selection makes of it (SEL-1)."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import field
from typing import Any

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel


@dataclass(frozen=True)
class OperandMap:
    """One instruction operand played by a kernel access.

    ``operand``: its name in the instruction; ``buffer``: the kernel buffer ('' for a literal, see ``literal``).
    ``index``: the kernel access (one affine row per buffer dimension, over kernel axes), without what the instruction
    adds to its axes there: ``x[i]`` where ``A[a + 1]`` is ``x[i + 1]``.
    ``dims``: for each operand dimension the buffer dimension that plays it.
    ``steps``: for each operand dimension the coefficient of the axis in the chosen row (1 unless strided rows were
    admitted): the memory stride needed is ``steps[d] * layout stride of dims[d]`` (MAP-7).
    """

    operand: str
    buffer: str
    index: tuple[Affine, ...]
    dims: tuple[int, ...]
    steps: tuple[int, ...]
    literal: float | int | bool | None = None


@dataclass(frozen=True)
class Mapping:
    """An instruction carrying out ``statements`` of a kernel (indices into ``kernel.statements``).

    ``axes``: instruction axis -> kernel axis (injective). ``outer``: kernel axes left, in domain order; the block is
    one instruction call at a fixed point of them. ``tails``: instruction axis -> what the last call takes where the
    others take more (never a number that the instruction does not admit). ``orbit``: mappings that differ by a symmetry
    of the instruction share it. ``statement_map``: instruction statement index -> kernel statement index.

    ``guards``: conditions of the kernel's ``where`` (each >=
    0) that involve a mapped axis: the caller peels, splits or masks so that each call sees a full box. ``whole``:
    instruction axes that one call must take in one piece (a reduction that the instruction itself starts or
    finishes). ``loops``: the enclosing recurrent axes, always outer. ``temps``: instruction temporary -> kernel
    temporary, contracted by the call. All axis names are those of one statement; ``renames`` gives for every other
    statement whose axes are named differently (its axis, the name here). ``conditions``: on sizes that the kernel
    leaves open; the mapping holds at those that satisfy all of them.
    """

    instruction: Instruction
    statements: tuple[int, ...]
    operands: tuple[OperandMap, ...]
    axes: tuple[tuple[str, str], ...]
    outer: tuple[str, ...]
    tails: tuple[tuple[str, int], ...] = ()
    orbit: str = ""
    statement_map: tuple[tuple[int, int], ...] = ()
    guards: tuple[Affine, ...] = ()
    whole: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    renames: tuple[tuple[int, tuple[tuple[str, str], ...]], ...] = ()
    temps: tuple[tuple[str, str], ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def axis_map(self) -> dict[str, str]:
        return dict(self.axes)

    def operand(self, name: str) -> OperandMap:
        return next(o for o in self.operands if o.operand == name)

    def __str__(self) -> str:
        roles = ", ".join(f"{o.operand} = {o.buffer or o.literal}" for o in self.operands)
        axes = ", ".join(f"{i} = {k}" for i, k in self.axes)
        held = [f"({c})" if " or " in str(c) and len(self.conditions) > 1 else str(c) for c in self.conditions]
        where = f"; only where {' and '.join(held)}" if held else ""
        return f"{self.instruction.name}: {roles}; {axes}; outer {', '.join(self.outer) or 'none'}{where}"


@dataclass(frozen=True)
class Rewriting:
    """One step of the chain from the user's kernel to the one that is carried out: the ``law`` applied at ``site``, the
    numerics it says it ``needs``, and the ``kernel`` after it."""

    law: str
    site: str
    needs: tuple[str, ...]
    kernel: Kernel


@dataclass(frozen=True)
class Cover:
    """Every statement of ``kernel`` carried out by exactly one of ``mappings`` (SEL-1), in dataflow order.

    ``kernel`` is the rewritten kernel; ``original`` the user's; ``steps`` the transforms applied between the two (their
    printed form), ``chain`` the same with the kernel after each, and ``back`` the correspondences that lead from the
    rewritten names to the user's. ``ahead``: how many of the steps were taken before the search; ``errors``: how far
    results may be from exact ones, of inexact steps; ``notes``: figures for reports, by name.
    """

    kernel: Kernel
    original: Kernel
    mappings: tuple[Mapping, ...]
    steps: tuple[str, ...] = ()
    back: tuple[Any, ...] = ()
    chain: tuple[Rewriting, ...] = ()
    gap: float | None = None  # None: proved best for the rule in force
    ahead: int = 0
    errors: tuple[str, ...] = ()
    notes: MappingABC[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.original.name}: {len(self.mappings)} instructions"]
        lines += [f"  rewritten by {step}" for step in self.steps]
        lines += [f"  statements {', '.join(map(str, m.statements))}: {m}" for m in self.mappings]
        return "\n".join(lines)
