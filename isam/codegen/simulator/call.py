"""One call made ready: its checks that do not depend on where the loops stand, its operands as views of memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from isam.codegen.simulator.body import Body
from isam.codegen.simulator.fault import SimulationFault
from isam.codegen.simulator.memory import Bank, Machine, Truth
from isam.ir.affine import Affine
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction
from isam.schedule.fills import strides_in
from isam.schedule.tree import Issue, Operand
from isam.system.graph import COUNTED, System

Scope = dict[str, int]
Array = np.ndarray[Any, Any]
Bodies = dict[tuple[Any, ...], Body]
INT64 = np.dtype(np.int64)


class BoundOperand:
    """An operand of a call: finds, checks and views its bytes, their stamps and the buffer's versions."""

    def __init__(self, machine: Machine, o: Operand, instruction: Instruction, shape: tuple[int, ...],
                 part: tuple[int, ...] | None = None):  # fmt: skip
        """``part``: of one that the call fills, as many elements of it as the tile has."""
        self.name, self.operand, self.shape = o.name, o, shape
        self.part, self.ahead, self.inner = part or shape, 0, tuple[slice, ...]()
        self.dtype = machine.dtypes[o.tile.buffer]
        self.size = size_of(self.dtype)
        self.bank: Bank = machine.bank(o.place.memory, o.place.base)
        self.truth: Truth = machine.truth(o.tile.buffer)
        self.apart = machine.apart
        self.storage, self.scale = machine.values.storage(self.dtype), machine.values.scale
        memory = machine.schedule.system.memories[o.place.memory]
        cell = o.place.cell
        if (memory.cells is not None) != (cell is not None):
            have = "no cells" if cell is not None else "cells, none is named"
            raise SimulationFault("placement", f"operand {o.name}: {memory.name} has {have}")
        self.origin = 0 if cell is None else cell * (memory.cell or 0)
        steps = o.tile.steps
        self.strides = tuple(0 if d is None else o.place.strides[d] * steps[d] for d in o.dims)
        if instruction.fill is not None and part is not None:
            found = strides_in(instruction, o, self.size)
            if found is None or any(n > 1 and s != k for n, s, k in zip(part, self.strides, found, strict=True)):
                what = f"operand {o.name} does not lie as {instruction.name} fills: {self.strides} B, not {found}"
                raise SimulationFault("contract", what)
            self.strides = found
            self.ahead = sum(a * s for a, s in zip(instruction.fill.at, found, strict=True))
            self.inner = tuple(slice(a, a + n) for a, n in zip(instruction.fill.at, part, strict=True))
        self.moves = tuple(0 if d is None else self.truth.strides[d] * steps[d] for d in o.dims)
        self.register = memory.cell if memory.kind == COUNTED and cell is not None else None
        addressed = memory.kind != COUNTED and not (o.place.base and memory.home)
        self.align = self._alignment(instruction, memory.align if addressed else 1)
        self.check_contract(instruction)
        if memory.row:
            self.check_rows(memory.row)
        self._views()

    def _views(self) -> None:
        """What of the views does not depend on where the loops stand."""
        k, ends = self.scale, [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        self.below, self.above = sum(min(0, e) for e in ends), sum(max(0, e) for e in ends) + self.size
        self.held = sum(ends) + self.size - self.ahead  # of a register, bytes that are written
        self.of_data = tuple([s * k for s in self.strides])
        self.of_stamps = ((*self.shape, self.size), (*[s * 8 for s in self.strides], 8))
        self.of_version = tuple([m * 8 for m in self.moves])
        tile = self.operand.tile
        self.fixed = not self.operand.place.offset.terms, not any(s.terms for s in tile.start)
        self.first, self.starts = 0, tuple([(d, s, (n - 1) * step) for d, (s, n, step) in enumerate(
            zip(tile.start, tile.shape, tile.steps, strict=True))])  # fmt: skip
        self._place: tuple[Array, Array] | None = None
        self._version: Array | None = None

    def _alignment(self, instruction: Instruction, memory: int) -> int:
        return max(instruction.contract(self.name).align, memory if self.operand.place.cell is None else 1)

    def check_contract(self, instruction: Instruction) -> None:
        """Strides that the instruction takes: in elements, between neighbours along each operand dimension."""
        for d, (need, n, have) in enumerate(
            zip(instruction.contract(self.name).strides, self.shape, self.strides, strict=True)
        ):
            if need is not None and n > 1 and have != need * self.size:
                raise SimulationFault("contract", f"operand {self.name} has a stride of {have} B along dimension {d}, "
                                      f"{instruction.name} needs {need * self.size} B")  # fmt: skip

    def check_rows(self, row: int) -> None:
        """In a memory addressed by rows: one row per element of all dimensions but the last."""
        *outer, inner = [(n, s) for n, s in zip(self.shape, self.strides, strict=True)] or [(1, 0)]
        whole = all(n <= 1 or s % row == 0 for n, s in outer)
        if not whole or (inner[0] > 1 and not 0 <= (inner[0] - 1) * inner[1] <= row - self.size):
            what = f"operand {self.name} does not lie row by row: strides of {self.strides} B in rows of {row} B"
            raise SimulationFault("contract", what)

    def place(self, scope: Scope) -> tuple[Array, Array]:
        """Views of values and stamps, the latter with a last dimension over an element's bytes."""
        if self._place is not None and self.fixed[0]:
            return self._place
        bank, at = self.bank, _value(self.operand.place.offset, scope) + self.origin - self.ahead
        lo, hi = at + self.below, at + self.above
        if lo < self.origin or hi > bank.size:
            limit = f"{bank.name or self.operand.place.memory} has bytes {self.origin} to {bank.size}"
            raise SimulationFault("outside", f"operand {self.name} spans bytes {lo} to {hi}; {limit}")
        if at % self.align:
            raise SimulationFault("misaligned", f"operand {self.name} at byte {at}, not a multiple of {self.align}")
        if hi > bank.end:
            bank.end = hi
        data = np.ndarray(self.shape, self.storage, bank.data, at * self.scale, self.of_data)
        self._place = (data, np.ndarray(self.of_stamps[0], INT64, bank.stamps, at * 8, self.of_stamps[1]))
        return self._place

    def take_register(self, scope: Scope) -> None:
        """Registers are written whole: nothing else that lay in them is left. Raises when a write begins within one."""
        if self.register is None:
            return
        within = _value(self.operand.place.offset, scope)
        if within:
            raise SimulationFault("placement", f"operand {self.name} is written {within} B into a register: those are "
                                  "written from their first byte")  # fmt: skip
        end = self.origin + -(-self.held // self.register) * self.register
        self.bank.stamps[self.origin : end] = 0

    def version(self, scope: Scope) -> Array:
        """The current stamps of the tile's elements."""
        if self._version is not None and self.fixed[1]:
            return self._version
        at, shape, strides = self.first, self.truth.shape, self.truth.strides
        for d, s, length in self.starts:
            first = _value(s, scope)
            if first < 0 or first + length >= shape[d]:
                what = f"operand {self.name}: {self.operand.tile.buffer} has {shape[d]} elements in dimension {d}"
                raise SimulationFault("tile", f"{what}, the tile covers {first} to {first + length}")
            at += first * strides[d]
        if self._version is None:  # those that stay where they are have been looked at
            self.first += sum(s.const * strides[d] for d, s, _ in self.starts if not s.terms)
            self.starts = tuple([x for x in self.starts if x[1].terms])
        self._version = np.ndarray(self.part, INT64, self.truth.stamps, at * 8, self.of_version)
        return self._version

    def check_fresh(self, stamps: Array, version: Array, needed: Array | None, moved: bool) -> None:
        """Every needed element is current in all its bytes. ``needed``: a mask of the operand's shape, None: all.
        ``moved``: it is only taken elsewhere, with it what has no version yet: nobody may read that there."""
        if (needed is None and not self.apart and np.count_nonzero(version) == version.size
                and stamps.tobytes() == version.repeat(self.size).tobytes()):  # fmt: skip
            return  # as almost always: few operations, for most arrays are tiny
        good = (stamps != 0).all(-1) if self.apart else (stamps == version[..., None]).all(-1) & (version != 0)
        if needed is not None:
            good |= ~needed
        if moved:
            good |= version == 0
        if good.all():
            return
        bad = tuple(np.argwhere(~good)[0])
        index = [0] * len(self.operand.tile.start)
        for d, position in zip(self.operand.dims, bad, strict=True):
            if d is not None:
                index[d] = int(position) * self.operand.tile.steps[d]
        what = f"operand {self.name}: element +{index} of {self.operand.tile.buffer} in {self.operand.place.memory}"
        if not stamps[bad].any() or not version[bad]:
            raise SimulationFault("unwritten", f"{what} was never written" + ("" if version[bad] else " anywhere"))
        raise SimulationFault("stale", f"{what} is not its current version")


class Call:
    """An issue made ready to run."""

    def __init__(self, machine: Machine, issue: Issue, bodies: Bodies):
        self.machine, self.issue = machine, issue
        system = machine.schedule.system
        self.instruction = check_unit(system, issue)
        sizes = check_sizes(self.instruction, issue)
        operands = {o.name: o for o in issue.operands}
        declared = [b.name for b in self.instruction.body.arguments]
        if sorted(operands) != sorted(declared) or len(operands) != len(issue.operands):
            raise SimulationFault("shape", f"{issue.instruction} takes {declared}, the call has {list(operands)}")
        for o in issue.operands:
            check_names(machine, o)
        dtypes = {n: machine.dtypes[o.tile.buffer] for n, o in operands.items()}
        key = (issue.instruction, issue.sizes, tuple(sorted(dtypes.items())))
        placed = (issue.unit, issue.is_move, *((o.name, o.place.memory) for o in issue.operands))
        body = bodies.get(key)
        if body is None or placed not in body.admitted:
            check_places(system, self.instruction, issue)
            check_dtypes(self.instruction, dtypes)
            body = body or Body(self.instruction, sizes, dtypes, machine.values.arithmetic)
            body.admitted.add(placed)
            bodies[key] = body
        self.body = body
        parts = filled_part(self.instruction, issue, sizes)
        for o in issue.operands:
            check_shape(o, parts.get(o.name, body.shapes[o.name]))
        self.bound = [BoundOperand(machine, o, self.instruction, body.shapes[o.name], parts.get(o.name))
                      for o in issue.operands]  # fmt: skip
        self.masks = body.masks
        self.storage = {n: machine.values.storage(body.dtypes[n]) for n in body.temporaries}
        self.moved = 0
        self.edge: tuple[str, str] | None = None
        self.target: BoundOperand | None = None  # of a move
        if issue.is_move:
            self._check_move()

    def _check_move(self) -> None:
        read = [b for b in self.bound if self.body.needs[b.name].any()]
        write = [b for b in self.bound if self.body.writes[b.name].any()]
        if len(read) > 1 or len(write) > 1 or len(self.bound) != 2:
            raise SimulationFault("edge", f"{self.issue.instruction} is no move")
        source = next(b for b in self.bound if self.instruction.operand(b.name).role == "in")
        target = next(b for b in self.bound if b is not source)
        s, t = source.operand, target.operand
        if (s.tile.buffer, s.tile.start, s.tile.shape, s.tile.steps) != (
            t.tile.buffer, t.tile.start, t.tile.shape, t.tile.steps):  # fmt: skip
            raise SimulationFault("tile", f"a move changes the tile: {s.tile} to {t.tile}")
        self._check_order(source, target)
        self.target = target
        self.edge = (s.place.memory, t.place.memory)
        self.moved = int(np.prod(s.tile.shape)) * source.size

    def _check_order(self, source: BoundOperand, target: BoundOperand) -> None:
        """The instruction puts each element of the tile where the target's dimensions say that it lies."""
        layout = tuple([(b.moves, b.part, b.ahead) for b in (source, target)])
        if layout in self.body.admitted:
            return

        def numbered(b: BoundOperand) -> Array:
            total = np.zeros((), np.int64)
            for d, (n, m) in enumerate(zip(b.part, b.moves, strict=True)):
                total = total + (np.arange(n) * m).reshape([-1 if k == d else 1 for k in range(len(b.part))])
            return np.array(np.broadcast_to(total, b.part))

        arrays = {source.name: numbered(source), target.name: np.full(target.shape, -1, np.int64)}
        self.body.run(arrays, {})
        written = self.body.writes[target.name].reshape(target.shape)
        if target.part != target.shape or target.ahead:
            arrays[target.name], written = arrays[target.name][target.inner], written[target.inner]
        if (arrays[target.name] != numbered(target))[written].any():
            raise SimulationFault("tile", f"{self.instruction.name} puts elements of {source.operand.tile} elsewhere "
                                  f"than the target's dimensions {target.operand.dims} say")  # fmt: skip
        self.body.admitted.add(layout)

    def __call__(self, scope: Scope) -> None:
        arrays: dict[str, Array] = {}
        views: list[tuple[BoundOperand, Array, Array, Array, bool | Array]] = []
        versions: list[Array] = []  # of a move: the target's elements get the source's stamps, by tile
        for b in self.bound:
            data, stamps = b.place(scope)
            version = b.version(scope)
            needs, writes = self.masks[b.name]
            if needs is not False:
                b.check_fresh(stamps, version, None if needs is True else needs, self.target is not None)
            arrays[b.name] = data.copy()
            if writes is not False:
                views.append((b, data, stamps, version, writes))
            if b is self.target:
                versions.append(version.copy())
        self.body.run(arrays, self.storage)
        for b, data, stamps, version, writes in views:
            if b.register is not None:
                b.take_register(scope)
            if b.part != b.shape or b.ahead:  # what is filled is nobody's
                data[...], stamps[...] = arrays[b.name], 0
                stamps[b.inner] = versions[0][..., None]
            elif writes is True:
                fresh = versions[0] if versions else self.machine.stamp(version.size).reshape(b.shape)
                data[...], stamps[...] = arrays[b.name], fresh[..., None]
                if not versions:
                    version[...] = fresh
            else:
                self._write_some(b, data, stamps, version, writes, arrays[b.name], versions)

    def _write_some(self, b: BoundOperand, data: Array, stamps: Array, version: Array, mask: Any, result: Array,
                    versions: list[Array]) -> None:  # fmt: skip
        fresh = versions[0][mask] if versions else self.machine.stamp(int(mask.sum()))
        data[mask], stamps[mask] = result[mask], fresh[:, None]
        if not versions:
            version[mask] = fresh


def _value(e: Affine, scope: Scope) -> int:
    try:
        return e.evaluate(scope)
    except KeyError as missing:
        raise SimulationFault("name", f"'{missing.args[0]}' has no value here (in {e})") from None


def check_unit(system: System, issue: Issue) -> Instruction:
    unit, ins = system.units.get(issue.unit), system.instructions.get(issue.instruction)
    if unit is None or ins is None:
        raise SimulationFault("name", f"the system has no {'unit' if unit is None else 'instruction'} of this name")
    issuers = {m.by for m in system.moves if m.issuer == issue.unit} if issue.is_move else set()
    if issue.instruction not in unit.runs and issue.instruction not in issuers:
        raise SimulationFault("unit", f"{issue.unit} does not run {issue.instruction}")
    return ins


def check_sizes(ins: Instruction, issue: Issue) -> dict[str, int]:
    sizes = dict(issue.sizes)
    if set(sizes) != {s.name for s in ins.syms}:
        raise SimulationFault("size", f"{ins.name} has the sizes {[s.name for s in ins.syms]}, the call {list(sizes)}")
    for s in ins.syms:
        v = sizes[s.name]
        if v < max(s.lo, 0) or (s.hi is not None and v > s.hi) or v % s.multiple_of:
            limits = f"{s.lo} to {s.hi}" + (f", a multiple of {s.multiple_of}" if s.multiple_of > 1 else "")
            raise SimulationFault("size", f"{s.name} = {v} is not admitted by {ins.name}: {limits}")
    return sizes


def check_names(machine: Machine, o: Operand) -> None:
    if o.tile.buffer not in machine.dtypes:
        raise SimulationFault("name", f"operand {o.name}: the kernel has no buffer '{o.tile.buffer}'")
    if o.place.memory not in machine.schedule.system.memories:
        raise SimulationFault("name", f"operand {o.name}: the system has no memory '{o.place.memory}'")
    rank = len(machine.shapes[o.tile.buffer])
    if not rank == len(o.tile.start) == len(o.tile.shape) == len(o.tile.steps) == len(o.place.strides):
        what = f"operand {o.name}: tile and place need the {rank} dimensions of {o.tile.buffer}"
        raise SimulationFault("shape", what)


def check_places(system: System, ins: Instruction, issue: Issue) -> None:
    where = {o.name: o.place.memory for o in issue.operands}
    if issue.is_move:
        source = next(o.place.memory for o in issue.operands if ins.operand(o.name).role == "in")
        target = next(o.place.memory for o in issue.operands if ins.operand(o.name).role != "in")
        if (source, target, ins.name, issue.unit) not in system.issued:
            raise SimulationFault("edge", f"no move from {source} to {target} by {ins.name}, issued by {issue.unit}")
    else:
        for name, memory in where.items():
            if memory not in system.homes(ins, name):
                raise SimulationFault("placement", f"operand {name} in {memory}; {ins.name} takes it in "
                                      f"{', '.join(system.homes(ins, name))}")  # fmt: skip
    roles = {n: ins.operand(n).role for n in where}
    for memory in dict.fromkeys(where.values()):
        if not system.memories[memory].ports.admit([r for n, r in roles.items() if where[n] == memory]):
            raise SimulationFault("placement", f"{ins.name} has more operands in {memory} than that has ports for")
    for group in ins.apart:
        mine = [where[n] for n in group]
        if len(set(mine)) < len(mine):
            raise SimulationFault("apart", f"operands {', '.join(group)} must lie in different memories, not {mine}")


def check_dtypes(ins: Instruction, dtypes: dict[str, str]) -> None:
    for name, have in dtypes.items():
        need = ins.operand(name).dtype
        if need not in (ANY, have):
            raise SimulationFault("dtype", f"operand {name} of {ins.name} is {need}, the buffer is {have}")
    loose = {have for name, have in dtypes.items() if ins.operand(name).dtype == ANY}
    if len(loose) > 1:
        raise SimulationFault("dtype", f"{ins.name} moves one element type, not {sorted(loose)}")


def filled_part(ins: Instruction, issue: Issue, sizes: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """Of the operand that a move fills, the elements along each dimension that its tile has."""
    fill = ins.fill if issue.is_move else None
    return {} if fill is None else {fill.operand: tuple(n.evaluate(sizes) for n in fill.part)}


def check_shape(o: Operand, shape: tuple[int, ...]) -> None:
    if len(o.dims) != len(shape):
        raise SimulationFault("shape", f"operand {o.name} has {len(shape)} dimensions, {len(o.dims)} are bound")
    played = [d for d in o.dims if d is not None]
    if len(set(played)) < len(played) or any(not 0 <= d < len(o.tile.shape) for d in played):
        raise SimulationFault("shape", f"operand {o.name}: bad dimensions {o.dims}")
    for d, n in zip(o.dims, shape, strict=True):
        have = 1 if d is None else o.tile.shape[d]
        if have != n:
            raise SimulationFault("shape", f"operand {o.name} has extent {n}, the tile {o.tile} has {have}")
    if any(n != 1 for d, n in enumerate(o.tile.shape) if d not in played):
        raise SimulationFault("shape", f"operand {o.name}: the tile {o.tile} has more dimensions than the operand")


