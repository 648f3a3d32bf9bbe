"""An instruction's body made ready for repeated calls of one size: what every statement reads and writes, as index
arrays computed once. The result equals :mod:`isam.ir.points` exactly: same order, same operations."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import fail
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel, Literal, Statement
from isam.ir.points import CHUNK, Arithmetic, Chunk, Memory, execute, operand_dtype, sizes_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class _Step:
    """A statement: literal arrays or ``(buffer, positions)`` per source, the positions written."""

    statement: Statement
    sources: tuple[Array | tuple[str, Array], ...]
    chunk: Chunk
    at: Array
    source_dtype: str
    target_dtype: str


class Body:
    """``shapes`` of the operands; ``needs``: per operand a flat mask of the elements that are read before they are
    written; ``writes``: of those written; ``masks``: both in the operand's shape, False and True for none and all.
    ``admitted``: what calls of it have been found to be allowed to do."""

    def __init__(
        self, instruction: Instruction, sizes: dict[str, int], dtypes: dict[str, str], arithmetic: Arithmetic
    ):
        kernel = instruction.body
        if len(kernel.statements) != len(kernel.body):
            raise fail("simulator-loop", f"the instruction '{instruction.name}' has a recurrent loop", instruction.loc)
        self.kernel: Kernel = kernel
        self.sizes, self.arithmetic = sizes, arithmetic
        self.dtypes = {b.name: dtypes.get(b.name, b.dtype) for b in kernel.buffers}
        self.shapes = {b.name: sizes_of(b, sizes) for b in kernel.buffers}
        self.temporaries = [b.name for b in kernel.buffers if b.role == "temp"]
        self.steps: list[_Step] | None = []
        for s in kernel.statements:
            extents = tuple(max(0, a.extent.evaluate(sizes)) for a in s.domain.axes)
            if prod(extents) > CHUNK:
                self.steps = None  # a large call: the walker takes it in chunks
                break
            if all(extents):
                self.steps.append(self._step(s, extents))
        self.needs, self.writes = self._effects()
        self.masks = {n: (self._mask(self.needs, n), self._mask(self.writes, n)) for n in self.needs}
        self.admitted: set[tuple[Any, ...]] = set()

    def _mask(self, masks: dict[str, Array], name: str) -> bool | Array:
        m = masks[name]
        return bool(m.all()) if m.all() or not m.any() else m.reshape(self.shapes[name])

    def _step(self, s: Statement, extents: tuple[int, ...]) -> _Step:
        names = s.domain.names
        chunk = Chunk(names, (0,) * len(names), extents, self.sizes)
        if s.domain.where:
            mask = np.ones((), bool)
            for w in s.domain.where:
                mask = mask & (chunk.row(w) >= 0)
            chunk = Chunk(names, chunk.starts, extents, self.sizes, np.broadcast_to(mask, extents).copy())
        kind = operand_dtype(s, self.dtypes)
        sources: list[Array | tuple[str, Array]] = []
        for k, source in enumerate(s.sources):
            if isinstance(source, Literal):
                sources.append(self.arithmetic.literal(source.value, "bool" if s.op == "select" and k == 0 else kind))
            else:
                sources.append((source.buffer, chunk.offsets(source, self.shapes[source.buffer])))
        at = chunk.flatten(chunk.offsets(s.dest, self.shapes[s.dest.buffer]))
        return _Step(s, tuple(sources), chunk, at, kind, self.dtypes[s.dest.buffer])

    def _effects(self) -> tuple[dict[str, Array], dict[str, Array]]:
        arguments = {b.name: b.role for b in self.kernel.arguments}
        sizes = {n: prod(self.shapes[n]) for n in arguments}
        if self.steps is None:
            needs = {n: np.full(sizes[n], r != "out") for n, r in arguments.items()}
            return needs, {n: np.full(sizes[n], r not in ("in", "const")) for n, r in arguments.items()}
        needs = {n: np.zeros(sizes[n], bool) for n in arguments}
        writes = {n: np.zeros(sizes[n], bool) for n in arguments}
        for step in self.steps:
            read = [s for s in step.sources if isinstance(s, tuple)]
            if step.statement.accumulate:
                read.append((step.statement.dest.buffer, step.at))
            for name, at in read:
                if name in needs:
                    needs[name][at] |= ~writes[name][at]
            if step.statement.dest.buffer in writes:
                writes[step.statement.dest.buffer][step.at] = True
        return needs, writes

    def run(self, arrays: dict[str, Array], storage: dict[str, np.dtype[Any]]) -> None:
        """Carries out the call on contiguous operand arrays, in place."""
        for t in self.temporaries:
            arrays[t] = np.zeros(self.shapes[t], storage[t])
        if self.steps is None:
            execute(self.kernel, Memory(arrays, self.dtypes), self.sizes, self.arithmetic)
            return
        flat = {n: a.reshape(-1) for n, a in arrays.items()}
        for step in self.steps:
            self._run(step, flat)

    def _run(self, step: _Step, flat: dict[str, Array]) -> None:
        s, chunk = step.statement, step.chunk
        args = tuple([flat[x[0]][x[1]] if isinstance(x, tuple) else x for x in step.sources])
        target = flat[s.dest.buffer]
        if not s.accumulate:
            target[step.at] = chunk.flatten(self.arithmetic.apply(s.op, args, step.source_dtype, step.target_dtype))
        elif s.op == "select":
            chosen = chunk.flatten(args[0]).astype(bool)
            target[step.at[chosen]] = chunk.flatten(args[1])[chosen]
        else:
            self.arithmetic.accumulate(s.op, target, step.at, chunk.flatten(args[0]), step.target_dtype)
