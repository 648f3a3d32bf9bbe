"""Judges the signature of a step: unit, instruction, sizes, shapes, strides, memories; everything but addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.proof.filled import moves
from isam.proof.geometry import BufferFacts, axis_extents, covers_box, linear, resolve, rows
from isam.proof.semantics import Pair, Semantics, same_number
from isam.schedule.tree import Issue, Operand, Schedule
from isam.system.graph import CACHED


class Signature(NamedTuple):
    """What a step's signature means. ``reads``/``writes``: operand names; ``extents``: per instruction axis."""

    instruction: Instruction | None
    extents: dict[str, int]
    semantics: Semantics
    reads: frozenset[str]
    writes: frozenset[str]
    faults: tuple[tuple[int, str, str], ...]


def ends(issue: Issue, ins: Instruction) -> tuple[Operand, Operand]:
    """Source and target of a move."""
    st = ins.body.statements[0]
    by = {o.name: o for o in issue.operands}
    return by[st.sources[0].buffer], by[st.dest.buffer]  # type: ignore[union-attr]


@dataclass(slots=True)
class Judge:
    """Judges signatures. ``semantics``: of a nest, see ``Legality``."""

    schedule: Schedule
    buffers: dict[str, BufferFacts]
    semantics: Callable[[int], Semantics]

    def judge(self, issue: Issue) -> Signature:
        s = self.schedule.system
        ins = s.instructions.get(issue.instruction)
        bad: list[tuple[int, str, str]] = []
        none = Semantics()
        if ins is None:
            return Signature(
                None,
                {},
                none,
                frozenset(),
                frozenset(),
                ((10, "instruction", f"the machine has no instruction '{issue.instruction}'"),),
            )
        unit = s.units.get(issue.unit)
        if unit is None or issue.instruction not in unit.runs:
            bad.append((10, "unit", f"the unit '{issue.unit}' does not run '{issue.instruction}'"))
        sizes = self._sizes(ins, issue, bad)
        names = [o.name for o in issue.operands]
        wanted = [b.name for b in ins.body.arguments]
        if sorted(names) != sorted(wanted):
            bad.append(
                (3, "operands", f"'{ins.name}' takes {', '.join(wanted)}; given {', '.join(names) or 'nothing'}")
            )
        if sizes is None or sorted(names) != sorted(wanted):
            return Signature(ins, {}, none, frozenset(), frozenset(), tuple(bad))
        for o in issue.operands:
            self._operand(ins, o, sizes, bad)
        self._apart(ins, issue, bad)
        self._ports(ins, issue, bad)
        reads = frozenset(b.name for b in ins.body.arguments if b.role in ("in", "const", "inout"))
        writes = frozenset(b.name for b in ins.body.arguments if b.role in ("out", "inout"))
        extents = axis_extents(ins, sizes, bad)
        sem = none
        if not bad:
            if issue.configures:
                if not ins.sets:
                    bad.append((3, "nest", f"'{ins.name}' sets no registers, and the step belongs to no nest"))
            else:
                sem = self._move(issue, ins, extents, bad) if issue.is_move else self._compute(issue, extents, bad)
        return Signature(ins, extents, sem, reads, writes, tuple(bad))

    def _sizes(self, ins: Instruction, issue: Issue, bad: list) -> dict[str, int] | None:
        sizes = dict(issue.sizes)
        if set(sizes) != {y.name for y in ins.syms}:
            bad.append((9, "sizes", f"'{ins.name}' has sizes {[y.name for y in ins.syms]}; given {sorted(sizes)}"))
            return None
        for y in ins.syms:
            v = sizes[y.name]
            if v < max(y.lo, 1) or (y.hi is not None and v > y.hi) or v % y.multiple_of:
                limit = f"{y.lo} <= {y.name} <= {y.hi}" if y.hi is not None else f"{y.name} >= {y.lo}"
                bad.append((9, "sizes", f"'{ins.name}' with {y.name} = {v}, but {limit}, multiple of {y.multiple_of}"))
        return sizes

    def _operand(self, ins: Instruction, o: Operand, sizes: dict[str, int], bad: list) -> None:
        b = self.buffers.get(o.tile.buffer)
        own = ins.operand(o.name)
        if b is None:
            bad.append((7, "buffer", f"no buffer '{o.tile.buffer}'"))
            return
        rank = len(b.shape)
        if not len(o.tile.start) == len(o.tile.shape) == len(o.tile.steps) == len(o.place.strides) == rank:
            bad.append((7, "rank", f"the tile of '{b.name}' or its strides have not {rank} dimensions"))
            return
        if own.dtype not in (ANY, b.dtype):
            bad.append((3, "dtype", f"'{ins.name}' takes {own.dtype} as {o.name}, '{b.name}' is {b.dtype}"))
        self._shape(ins, o, sizes, bad)
        self._place(ins, o, b, bad)
        if o.name in {a.name for a in ins.body.arguments if a.role in ("out", "inout")}:
            self._writable(o, b, bad)

    def _shape(self, ins: Instruction, o: Operand, sizes: dict[str, int], bad: list) -> None:
        """The tile has the operand's shape, dimension by dimension, at strides the contract allows."""
        own = ins.operand(o.name)
        real = [d for d in o.dims if d is not None]
        if (
            len(o.dims) != len(own.shape)
            or len(set(real)) != len(real)
            or any(not 0 <= d < len(o.tile.shape) for d in real)
        ):
            bad.append(
                (2, "dims", f"operand {o.name}: dimensions {o.dims} do not name those of '{o.tile.buffer}' once each")
            )
            return
        extents = [int(e.substitute(sizes)) for e in own.shape]
        if any(o.tile.shape[p] != 1 for p in range(len(o.tile.shape)) if p not in real):
            bad.append(
                (2, "shape", f"operand {o.name}: {o.tile} extends in a dimension that no operand dimension plays")
            )
        size = self.buffers[o.tile.buffer].bytes
        for i, (e, d, want) in enumerate(zip(extents, o.dims, ins.contract(o.name).strides, strict=True)):
            if e != (1 if d is None else o.tile.shape[d]):
                bad.append((2, "shape", f"operand {o.name} has {e} elements in dimension {i}, its tile is {o.tile}"))
            elif d is not None and e > 1 and want is not None and o.place.strides[d] * o.tile.steps[d] != want * size:
                got = o.place.strides[d] * o.tile.steps[d]
                bad.append(
                    (
                        9,
                        "stride",
                        f"operand {o.name} needs {want * size} bytes between elements of dimension {i},"
                        f" there are {got}",
                    )
                )
        if any(n < 1 for n in o.tile.shape) or any(k < 1 for k in o.tile.steps):
            bad.append((2, "shape", f"operand {o.name}: the tile {o.tile} has no elements or no step"))

    def _place(self, ins: Instruction, o: Operand, b: BufferFacts, bad: list) -> None:
        s = self.schedule.system
        p = o.place
        memory = s.memories.get(p.memory)
        if memory is None:
            bad.append((9, "memory", f"no memory '{p.memory}'"))
            return
        if memory.kind == CACHED:
            bad.append((9, "memory", f"operand {o.name}: '{p.memory}' is a cache, which holds nothing of its own"))
        allowed = ins.contract(o.name).homes
        if not allowed and not moves(ins):
            allowed = (s.home,)
        at = resolve(s, p.memory)
        if allowed and at not in {resolve(s, m) for m in allowed}:
            bad.append(
                (9, "home", f"operand {o.name} of '{ins.name}' may live in {', '.join(allowed)}, not in '{p.memory}'")
            )
        if (memory.cells is None) != (p.cell is None):
            bad.append(
                (9, "cell", f"operand {o.name}: '{p.memory}' {'has no' if memory.cells is None else 'has'} cells")
            )
        if memory.row:
            self._rows(o, memory.row, b.bytes, bad)
        slot = next((w for w in self.schedule.workspace if w.name == p.base), None)
        if p.base and slot is None and p.base not in self.buffers:
            bad.append((9, "base", f"operand {o.name}: nothing is called '{p.base}'"))
        elif slot is not None and resolve(s, slot.memory) != at:
            bad.append((9, "base", f"operand {o.name}: '{p.base}' lies in '{slot.memory}', not in '{p.memory}'"))
        elif slot is None and p.base:
            home = self.buffers[p.base].home
            if (
                b.role == "literal"
                or self.buffers[p.base].role == "temp"
                or home is None
                or at != resolve(s, home.memory)
            ):
                bad.append((9, "base", f"operand {o.name}: '{p.base}' is no place in '{p.memory}'"))
        elif not p.base and memory.home:
            bad.append((9, "base", f"operand {o.name}: a place in '{p.memory}' needs a base"))

    @staticmethod
    def _rows(o: Operand, row: int, size: int, bad: list) -> None:
        """In a memory with rows an operand's last dimension lies within one, along the others it goes whole rows."""
        for i, d in enumerate(o.dims):
            if d is None or d >= min(len(o.tile.shape), len(o.place.strides)) or o.tile.shape[d] <= 1:
                continue
            step = o.place.strides[d] * o.tile.steps[d]
            within = step > 0 and (o.tile.shape[d] - 1) * step + size <= row
            if not within if i == len(o.dims) - 1 else step % row:
                at = f"rows of {row} in '{o.place.memory}'"
                bad.append((9, "row", f"operand {o.name}: {step} bytes along dimension {i} do not suit {at}"))

    def _writable(self, o: Operand, b: BufferFacts, bad: list) -> None:
        base = self.buffers.get(o.place.base)
        if base is not None and base.role in ("in", "const", "literal"):
            bad.append((8, "read-only", f"'{base.name}' is {base.role}: nothing may be written there"))
        elif base is not None and base.name != b.name:
            bad.append((8, "foreign", f"'{b.name}' is written into the memory of '{base.name}'"))

    def _apart(self, ins: Instruction, issue: Issue, bad: list) -> None:
        memory = {o.name: resolve(self.schedule.system, o.place.memory) for o in issue.operands}
        for group in ins.apart:
            used = [memory[n] for n in group]
            if len(set(used)) < len(used):
                bad.append((9, "apart", f"operands {', '.join(group)} of '{ins.name}' must lie in different memories"))

    def _ports(self, ins: Instruction, issue: Issue, bad: list) -> None:
        """No memory serves more operands of one call than it has ports (SYS-3)."""
        s = self.schedule.system
        for name in dict.fromkeys(resolve(s, o.place.memory) for o in issue.operands):
            memory = s.memories.get(name)
            if memory is None:
                continue
            roles = [ins.operand(o.name).role for o in issue.operands if resolve(s, o.place.memory) == name]
            for does, limit, kinds in (
                ("reads", memory.ports.read, ("in", "const", "inout")),
                ("writes", memory.ports.write, ("out", "inout")),
            ):
                n = sum(r in kinds for r in roles)
                if limit is not None and n > limit:
                    text = f"'{ins.name}' {does} {n} operands in '{name}', which has ports for {limit}"
                    bad.append((9, "ports", text))

    # moves and computing steps --------------------------------------------------------------------------------------
    def _move(self, issue: Issue, ins: Instruction, extents: dict[str, int], bad: list) -> Semantics:
        s = self.schedule.system
        if not moves(ins):
            bad.append((10, "move", f"'{ins.name}' computes: it is no move, and the step belongs to no nest"))
            return Semantics()
        st = ins.body.statements[0]
        src, dst = ends(issue, ins)
        edge = (resolve(s, src.place.memory), resolve(s, dst.place.memory))
        if not any(
            (resolve(s, m.source), resolve(s, m.target), m.by, m.issuer) == (*edge, ins.name, issue.unit)
            for m in s.moves
        ):
            bad.append((10, "edge", f"'{issue.unit}' may not move from '{edge[0]}' to '{edge[1]}' by '{ins.name}'"))
        if src.tile.buffer != dst.tile.buffer:
            bad.append((2, "move", f"a move turns '{src.tile.buffer}' into '{dst.tile.buffer}'"))
            return Semantics()
        one, two = rows(src, st.sources[0].index, extents), rows(dst, st.dest.index, extents)  # type: ignore[union-attr]
        if one != two or not covers_box(st.dest.index, ins.operand(dst.name).shape, extents, issue):
            bad.append((2, "move", "a move must put every element of its tile in the place of the same element"))
        return Semantics()

    def _compute(self, issue: Issue, extents: dict[str, int], bad: list) -> Semantics:
        sch = self.schedule
        assert issue.nest is not None
        if not 0 <= issue.nest < len(sch.nests):
            bad.append((1, "nest", f"there is no nest {issue.nest}"))
            return Semantics()
        nest = sch.nests[issue.nest]
        mapping = sch.cover.mappings[nest.mapping]
        if mapping.instruction != sch.system.instructions[issue.instruction]:
            bad.append(
                (
                    3,
                    "instruction",
                    f"nest {issue.nest} is mapped to '{mapping.instruction.name}', not '{issue.instruction}'",
                )
            )
            return Semantics()
        if {n for n, _ in issue.point} != {n for n, _ in nest.axes}:
            bad.append(
                (
                    1,
                    "point",
                    f"the point names {[n for n, _ in issue.point]}, nest {issue.nest} has {[n for n, _ in nest.axes]}",
                )
            )
            return Semantics()
        sem = self.semantics(issue.nest)
        bad.extend(sem.faults)
        by = {o.name: o for o in issue.operands}
        axes = mapping.axis_map
        if len(set(axes.values())) != len(axes) or any(i not in axes for i in extents):
            bad.append((2, "axes", f"the axis map {axes} is not one axis for each of {sorted(extents)}"))
            return sem
        for p in sem.pairs:
            self._pair(p, by[p.operand], axes, extents, bad)
        for e in issue.operands:
            if not any(p.operand == e.name for p in sem.pairs):
                bad.append((2, "operand", f"operand {e.name} plays no access of the kernel"))
        return sem

    def _pair(self, p: Pair, o: Operand, axes: dict[str, str], extents: dict[str, int], bad: list) -> None:
        """Linear part of obligation 2: along every instruction axis both accesses move alike."""
        if p.kernel is None:
            b = self.buffers[o.tile.buffer]
            slot = next((w for w in self.schedule.workspace if w.name == b.name), None)
            if b.role != "literal" or slot is None or not same_number(slot.literal, p.literal):
                bad.append((2, "literal", f"operand {o.name} should be {p.literal}, it is '{b.name}'"))
            return
        if p.kernel.buffer != o.tile.buffer:
            bad.append((2, "buffer", f"operand {o.name} should be '{p.kernel.buffer}', it is '{o.tile.buffer}'"))
            return
        own, _ = linear(o, p.own.index)
        for i, n in extents.items():
            if n > 1 and [r.coefficient(i) for r in own] != [r.coefficient(axes[i]) for r in p.kernel.index]:
                bad.append((2, "access", f"operand {o.name} does not follow {p.kernel} along the axis {i} = {axes[i]}"))
        if p.writes and not covers_box(p.own.index, tuple(Affine((), 1) for _ in p.own.index), extents, None):
            bad.append((3, "write", f"'{o.name}' is written at {p.own}: not every element of the tile"))
