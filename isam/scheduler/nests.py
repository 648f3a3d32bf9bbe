"""The pieces of a cover as the scheduler sees them: an instruction, its operands' accesses, its axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from functools import cached_property

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel
from isam.ir.mapping import Cover, Mapping, OperandMap
from isam.ir.span import Span
from isam.schedule.literals import literal_name
from isam.schedule.tree import Tile
from isam.scheduler.trim import Env
from isam.system.graph import COUNTED, System

LONG = 16  # cycles of a call


@dataclass(frozen=True)
class Use:
    """An operand of a nest. ``index``: buffer rows over nest axes. ``extents``: the operand's shape over the
    instruction's size symbols. ``strides``: the contract, per operand dimension, in elements (None: free)."""

    name: str
    buffer: str
    index: tuple[Affine, ...]
    dims: tuple[int, ...]
    steps: tuple[int, ...]
    extents: tuple[Affine, ...]
    reads: bool
    writes: bool
    homes: tuple[str, ...]
    strides: tuple[int | None, ...]
    align: int
    dtype: str


@dataclass(frozen=True, slots=True)
class MappedAxis:
    """A kernel axis that plays an instruction axis: calls of ``limit`` elements (None: of all of it) and one of what is
    left, each as the ``span`` admits."""

    span: Span
    limit: int | None

    @property
    def unit(self) -> int:
        """Blocks are multiples of this, so that every call in them is admitted."""
        s = self.span
        if s.least <= s.step and s.least % s.step == 0:
            return s.step
        return 1 if s.free or self.limit is None else self.limit


@dataclass(frozen=True)
class Nest:
    """One mapping of the cover with all axes of its domain; ``extents`` are numbers except for run-time trips."""

    number: int
    mapping: Mapping
    instruction: Instruction
    extents: dict[str, Affine]
    mapped: dict[str, MappedAxis]
    uses: tuple[Use, ...]
    where: tuple[Affine, ...] = ()
    within: tuple[Affine, ...] = ()  # conditions that the bounds of loops keep, each on two axes that go one by one
    origin: dict[str, int] = field(
        default_factory=dict
    )  # first value of an axis when the nest is a piece of its domain
    own: dict[str, str] = field(default_factory=dict)  # axis name in a group -> the kernel's, where they differ
    moved: dict[str, Affine] = field(default_factory=dict)  # kernel axes whose values others count, box after box

    @cached_property
    def axes(self) -> tuple[str, ...]:
        return tuple(self.extents)

    def __str__(self) -> str:
        """As ``1 mm4_f32 A=A[i, k] B=B[k, j] C=C[i, j]; i < 64/4, j < 48/4, sum k < 96/4``: lengths, and what one call
        takes of them."""
        operands = " ".join(f"{u.name}={u.buffer}" + f"[{', '.join(map(str, u.index))}]" * bool(u.index)
                            for u in self.uses)  # fmt: skip
        axes = (f"{'sum ' * (a in self.reduced)}{a} < {e}" + f"/{self.unit(a)}" * (a in self.mapped)
                for a, e in self.extents.items())  # fmt: skip
        return f"{self.number} {self.instruction.name} {operands}; {', '.join(axes)}"

    def length(self, axis: str) -> int:
        known = self._lengths.get(axis)  # asked for hundreds of thousands of times in some compilations
        if known is None:
            known = self._lengths[axis] = max(0, int(self.extents[axis]))
        return known

    def unit(self, axis: str) -> int:
        """Elements of an axis that one call takes."""
        known = self._units.get(axis)
        if known is None:
            m = self.mapped.get(axis)
            known = 1 if m is None else min(m.limit or self.length(axis), max(1, self.length(axis)))
            self._units[axis] = known
        return known

    @cached_property
    def _lengths(self) -> dict[str, int]:
        return {}

    @cached_property
    def _units(self) -> dict[str, int]:
        return {}

    @cached_property
    def beside(self) -> dict[int, tuple[Nest, dict[str, frozenset[str]] | None]]:
        """Of nests after it, which loops they may share with it, as far as that was asked; by their numbers."""
        return {}

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        """Axes that no written operand mentions."""
        used = {n for u in self.uses if u.writes for row in u.index for n in row.names}
        return tuple(a for a in self.axes if a not in used)

    @cached_property
    def one_by_one(self) -> frozenset[str]:
        """Axes of which blocks have one element: bounds of one's loop depend on where the other's is."""
        return frozenset(n for w in self.within for n in w.names)

    @cached_property
    def uncut(self) -> frozenset[str]:
        """Axes of which one call takes all: blocks have all of them, too."""
        return frozenset(k for i, k in self.mapping.axes if i in self.mapping.whole)

    def calls(self) -> int:
        """Dynamic calls, with tiles as large as the instruction admits."""
        return self._calls

    @cached_property
    def _calls(self) -> int:
        total = 1
        for a in self.axes:
            m = self.mapped.get(a)
            n = self.length(a)
            total *= n if m is None else 1 if m.limit is None else -(-n // m.limit)
        return total

    def work(self) -> float:
        """Calls; of a sum those that keep its unit so long that much else fits beside them count as their cycles."""
        if not self.reduced:
            return self.calls()
        return self.calls() * (self.cycles if self.cycles >= LONG else 1.0)

    @cached_property
    def cycles(self) -> float:
        """Of a call of full size."""
        lengths = {i: self.unit(k) for i, k in self.mapping.axes if k in self.extents}
        return self.instruction.cost.cycles(self.instruction.sizes_of(lengths))


Call = tuple[Nest, dict[str, Affine], dict[str, int], tuple[Tile, ...]]  # nest, point, sizes, a tile per operand


def nests_of(cover: Cover, system: System) -> tuple[Nest, ...]:
    """The cover's mappings as nests, in the cover's order."""
    return tuple(nest_of(i, m, cover.kernel, system) for i, m in enumerate(cover.mappings))


def nest_of(number: int, mapping: Mapping, kernel: Kernel, system: System) -> Nest:
    ins = mapping.instruction
    domains = [_renamed(kernel.statements[s].domain, dict(mapping.renames).get(s, ())) for s in mapping.statements]
    names = set(mapping.outer) | set(mapping.axis_map.values())
    extents: dict[str, Affine] = {}
    where: list[Affine] = []
    for d in domains:
        for a in d.axes:
            if a.name in names and a.name not in extents:
                extents[a.name] = a.extent
        where.extend(w for w in d.where if w not in where)
    inverse = {k: i for i, k in mapping.axis_map.items()}
    order = [a.name for d in reversed(domains) for a in d.axes]
    extents = {a: extents[a] for a in dict.fromkeys(order) if a in extents}
    mapped = {k: _mapped(ins.span(i), i in mapping.whole, e) for k, e in extents.items() if (i := inverse.get(k))}
    turn = _in_turn(ins)
    ordered = sorted(mapping.operands, key=lambda o: turn.index(o.operand))
    uses = tuple(_use(ins, o, mapping, kernel, system) for o in ordered)
    return Nest(number, mapping, ins, extents, mapped, uses, tuple(where))


def _renamed(domain: Domain, names: tuple[tuple[str, str], ...]) -> Domain:
    """The domain in the axis names that the mapping uses."""
    to = {a: Affine.of(b) for a, b in names}
    axes = tuple(Axis(dict(names).get(a.name, a.name), a.extent) for a in domain.axes)
    return Domain(axes, tuple(w.substitute(to) for w in domain.where))


def _mapped(span: Span, whole: bool, extent: Affine) -> MappedAxis:
    """What one call takes of the axis; all of it, where the mapping says that it may not be cut."""
    if whole and span.sym is not None:
        return MappedAxis(span, None)
    return MappedAxis(span, span.most if span.free or not extent.is_constant else span.cut(extent.const))


def _in_turn(ins: Instruction) -> list[str]:
    """Operands in the order in which the body reads them, then those that it writes: what is made ready first shall not
    depend on the order in which they are declared."""
    written = dict.fromkeys(s.dest.buffer for s in ins.body.statements)
    read = dict.fromkeys(a.buffer for s in ins.body.statements for a in s.sources if isinstance(a, Access))
    return [*(b for b in read if b not in written), *written, *(b.name for b in ins.body.arguments)]


def _use(ins: Instruction, o: OperandMap, mapping: Mapping, kernel: Kernel, system: System) -> Use:
    operand = ins.operand(o.operand)
    contract = ins.contract(o.operand)
    if o.buffer:
        buffer, dtype = o.buffer, kernel.buffer(o.buffer).dtype
    else:
        dtype = operand.dtype
        if dtype == ANY:
            dest = kernel.statements[mapping.statements[-1]].dest
            dtype = kernel.buffer(dest.buffer).dtype
        assert o.literal is not None
        buffer = literal_name(dtype, o.literal)
    return Use(
        o.operand,
        buffer,
        o.index if o.buffer else (),
        o.dims,
        o.steps,
        operand.shape,
        operand.role in ("in", "const", "inout"),
        operand.role in ("out", "inout"),
        _homes(ins, operand, dtype, system),
        contract.strides,
        contract.align,
        dtype,
    )


def _homes(ins: Instruction, operand: Buffer, dtype: str, system: System) -> tuple[str, ...]:
    """The memories that an operand may be in, best first. Registers hold what is brought as its dimensions are: those
    to which no move brings anything of as many come last, for what is made there."""
    homes = system.homes(ins, operand.name)
    if len(homes) == 1 or operand.role == "out":
        return homes
    rank, counted = len(operand.shape), [h for h in homes if system.memories[h].kind == COUNTED]
    late = [h for h in counted if not _brings(system, h, rank, dtype)]
    return (*(h for h in homes if h not in late), *late)


def _brings(system: System, memory: str, rank: int, dtype: str) -> bool:
    """Whether some move brings elements of a type to a memory with so many dimensions, or does more than bring them."""
    for m in system.moves:
        if m.target == memory:
            ins = system.instructions[m.by]
            if ins.copied is None or (len(ins.copied.dest.index) == rank
                                      and ins.operand(ins.copied.dest.buffer).dtype in (ANY, dtype)):  # fmt: skip
                return True
    return False


def sizes_of(nest: Nest, length: dict[str, int]) -> dict[str, int]:
    """The values of the instruction's size symbols for a call of these lengths."""
    return {m.span.sym: m.span.size(length[a]) for a, m in nest.mapped.items() if m.span.sym is not None}


def tile_of(use: Use, point: dict[str, Affine], sizes: dict[str, int]) -> Tile:
    """The box of the buffer that an operand covers at a point."""
    shape, steps = [1] * len(use.index), [1] * len(use.index)
    for d, step, extent in zip(use.dims, use.steps, use.extents, strict=True):
        shape[d] = extent.evaluate(sizes) if extent.terms else extent.const
        steps[d] = step
    return Tile(use.buffer, tuple([r.substitute(point) for r in use.index]), tuple(shape), tuple(steps))


def hull(buffer: str, accesses: Iterable[tuple[Affine, ...]], env: Env) -> Tile | None:
    """The smallest box of a buffer that holds what all of some accesses touch within the blocks of ``env``; None where
    there are none, or where how far they lie apart is not fixed."""
    found: list[tuple[Affine, int]] | None = None
    for index in accesses:
        rows = [row_range(r, env) for r in index]
        if found is None:
            found = rows
            continue
        merged = []
        for (s, n), (t, m) in zip(found, rows, strict=True):
            diff = t - s
            if not diff.is_constant:
                return None
            low = min(0, diff.const)
            merged.append((s + low, max(n, diff.const + m) - low))
        found = merged
    if found is None:
        return None
    return Tile(buffer, tuple(s for s, _ in found), tuple(n for _, n in found), (1,) * len(found))


def row_range(row: Affine, env: Env) -> tuple[Affine, int]:
    """First index and number of indices that a buffer row takes within the blocks of ``env``."""
    start, n = Affine((), row.const), 1
    for a, c in row.terms:
        if a not in env:
            start = start + Affine.of(a, c)
            continue
        offset, length, _ = env[a]
        start = start + offset * c
        if c < 0:
            start = start + c * (length - 1)
        n += abs(c) * (length - 1)
    return start, n
