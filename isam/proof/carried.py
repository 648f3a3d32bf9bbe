"""The kernel that instructions carry out: their bodies in the place of the statements they are mapped to.

Nothing is looked up in the kernel but what the mapping names: operands at the accesses that it gives, steps, axes,
outer axes, conditions. If the mapping is right, this is the same kernel as before (`isam.proof.equivalence` says
whether), and obligations 1 to 7 of the mapping hold: a point left out or done twice, another address, another
operation, a sum not begun, a statement in the wrong order, a temporary that is still needed or a tile out of its buffer
would make it another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.ir.kernel import (
    REDUCTIONS,
    Access,
    Axis,
    Buffer,
    Domain,
    Item,
    Kernel,
    Literal,
    Recurrence,
    Source,
    Statement,
)
from isam.ir.mapping import Mapping as Mapped
from isam.ir.mapping import OperandMap


class Unfit(Exception):
    """The mapping does not say enough, or nonsense: why."""


def carried(kernel: Kernel, mappings: Sequence[Mapped]) -> Kernel:
    """The kernel with the mappings' statements replaced. Mappings of all its statements come in the order given; where
    some statements are left as they are, in an order that keeps all dependences. Raises :class:`Unfit`."""
    named = [i for m in mappings for i in m.statements]
    if len(set(named)) != len(named) or not set(named) <= set(range(len(kernel.statements))):
        raise Unfit("a statement is carried out twice, or is none of the kernel's")
    parts = [Part(kernel, m, n) for n, m in enumerate(mappings)]
    statements = None if len(named) == len(kernel.statements) else kernel.statements
    body = _level(kernel.body, 0, parts, {i: n for n, m in enumerate(mappings) for i in m.statements}, statements)
    temps = tuple(b for p in parts for b in p.temps)
    used = {a.buffer for p in parts for s in p.statements for a in (s.dest, *s.reads)}
    used |= {a.buffer for i, s in enumerate(kernel.statements) if i not in named for a in (s.dest, *s.reads)}
    kept = tuple(b for b in kernel.buffers if b.role != "temp" or b.name in used)
    return replace(kernel, body=body, buffers=(*kept, *temps), template=None)


def _level(
    items: Sequence[Item], at: int, parts: list[Part], of: Mapping[int, int], statements: Sequence[Statement] | None
) -> tuple[Item, ...]:
    """One straight list of items, whose first statement is number ``at``, unit by unit: mappings, loops, statements
    left alone. ``of``: which mapping a statement is in. ``statements``: all of the kernel's, in whose order those
    come that touch the same; None when all are mapped: then mappings come in their own, a loop where its first is."""
    units: list[tuple[Sequence[int], tuple[Item, ...]]] = []  # statements, and what is put there
    own: set[int] = set()
    for it in items:
        size = sum(1 for _ in _inside(it))
        if isinstance(it, Recurrence):
            units.append((range(at, at + size), (replace(it, body=_level(it.body, at, parts, of, statements)),)))
        elif at in of:
            own.add(at)
        else:
            units.append(((at,), (it,)))
        at += size
    for p in parts:
        if own & set(p.mapping.statements):
            if not own >= set(p.mapping.statements):
                raise Unfit(f"'{p.mapping.instruction.name}' is mapped across a recurrent loop")
            units.append((p.mapping.statements, p.statements))
    if statements is None:
        return tuple(it for _, made in sorted(units, key=lambda u: min(of[i] for i in u[0])) for it in made)
    return tuple(it for n in in_order([some for some, _ in units], statements) for it in units[n][1])


def in_order(units: Sequence[Sequence[int]], statements: Sequence[Statement]) -> tuple[int, ...]:
    """Units of statements such that whoever writes what another one touches comes before or after it as it does in the
    kernel; of those that may come next the one that begins first. Raises :class:`Unfit` where they wait for each
    other."""
    of = {i: n for n, some in enumerate(units) for i in some}
    touch, write = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set)  # units, per buffer
    behind: list[set[int]] = [set() for _ in units]
    for i in sorted(of):
        s, unit = statements[i], of[i]
        behind[unit] |= touch[s.dest.buffer].union(*(write[a.buffer] for a in s.reads))
        write[s.dest.buffer].add(unit)
        for a in (s.dest, *s.reads):
            touch[a.buffer].add(unit)
    left, out = sorted(range(len(units)), key=lambda n: min(units[n], default=-1)), list[int]()
    while left:
        unit = next((n for n in left if behind[n] <= {n, *out}), None)
        if unit is None:
            raise Unfit("no order of the calls keeps the dependences")
        out.append(unit)
        left.remove(unit)
    return tuple(out)


def _inside(it: Item) -> Iterator[Statement]:
    if isinstance(it, Recurrence):
        for inner in it.body:
            yield from _inside(inner)
    else:
        yield it


@dataclass
class Part:
    """The statements of one mapping, in the kernel's names. ``number`` keeps the names of temporaries apart."""

    kernel: Kernel
    mapping: Mapped
    number: int

    def __post_init__(self) -> None:
        m = self.mapping
        self.body = m.instruction.body
        self.axes = dict(m.axes)
        if len(set(self.axes.values())) != len(self.axes) or set(self.axes.values()) & set(m.outer):
            raise Unfit(f"'{m.instruction.name}': the axis map {self.axes} is not one to one")
        self.extents, self.where = self._domain()
        self.operands = {o.operand: o for o in m.operands}
        self.sizes = self._sizes()
        self.temps = tuple(self._temp(b) for b in self.body.buffers if b.role == "temp")
        self.statements = tuple(self._statement(s) for s in self.body.statements)

    def _domain(self) -> tuple[dict[str, Affine], tuple[Affine, ...]]:
        """Extents of the kernel's axes and the conditions on them, in the names of the mapping."""
        extents: dict[str, Affine] = {}
        where: dict[Affine, None] = {}
        for i in self.mapping.statements:
            names = dict(next((n for j, n in self.mapping.renames if j == i), ()))
            s = self.kernel.statements[i]
            for a in s.domain.axes:
                extents.setdefault(names.get(a.name, a.name), a.extent)
            by = {old: Affine.of(new) for old, new in names.items()}
            where.update(dict.fromkeys(w.substitute(by) for w in s.domain.where))
        if missing := [n for n in (*self.axes.values(), *self.mapping.outer) if n not in extents]:
            raise Unfit(f"'{self.mapping.instruction.name}': the kernel has no axis {missing[0]} there")
        return extents, tuple(where)

    def _sizes(self) -> dict[str, Affine]:
        """The instruction's sizes, from the axes that they bound."""
        out: dict[str, Affine] = {}
        for s in self.body.statements:
            for a in s.domain.axes:
                if a.name not in self.axes:
                    raise Unfit(f"'{self.mapping.instruction.name}': nothing plays its axis {a.name}")
                if len(a.extent.terms) == 1 and a.extent.terms[0][1] == 1 and not a.extent.const:
                    out.setdefault(a.extent.names[0], self.extents[self.axes[a.name]])
        return out

    def _outer(self) -> tuple[Axis, ...]:
        return tuple(Axis(n, self.extents[n]) for n in self.mapping.outer)

    def _temp(self, b: Buffer) -> Buffer:
        """A temporary of the instruction, one for every call."""
        shape = []
        for d in range(len(b.shape)):
            tops = {self._top(s, s.dest.index[d]) for s in self.body.statements if s.dest.buffer == b.name}
            shape.append(tops.pop() if len(tops) == 1 else b.shape[d].substitute(self.sizes))
        outer = tuple(a.extent for a in self._outer())
        dtype = b.dtype
        if dtype == ANY:
            dtype = next(self.kernel.buffer(o.buffer).dtype for o in self.mapping.operands if o.buffer)
        return Buffer(self._name(b.name), (*outer, *shape), dtype, "temp", declared=True)

    def _top(self, s: Statement, row: Affine) -> Affine:
        """One more than the largest value of an index with positive coefficients."""
        ends = {a.name: self.extents[self.axes[a.name]] - 1 for a in s.domain.axes}
        return row.substitute({**ends, **self.sizes}) + 1

    def _name(self, temp: str) -> str:
        return f"{temp}__{self.number}"

    # statements ---------------------------------------------------------------------------------------------------
    def _statement(self, s: Statement) -> Statement:
        inner = tuple(Axis(self.axes[a.name], self.extents[self.axes[a.name]]) for a in s.domain.axes)
        by = self.renaming(s)
        domain = Domain((*self._outer(), *inner), (*(w.substitute(by) for w in s.domain.where), *self.where))
        dest = self._source(s.dest, by)
        if not isinstance(dest, Access):
            raise Unfit(f"'{self.mapping.instruction.name}' writes a number")
        sources = tuple(self._source(x, by) for x in s.sources)
        if not s.accumulate and s.op in REDUCTIONS and sources.count(dest) == 1 and self._repeats(dest):
            other = tuple(x for x in sources if x != dest)
            return replace(s, domain=domain, dest=dest, sources=other, accumulate=True)
        return replace(s, domain=domain, dest=dest, sources=sources)

    def _repeats(self, dest: Access) -> bool:
        """Whether several calls write one element: ``d = d + x``, call after call, is ``d += x``."""
        return any(not any(r.coefficient(a.name) for r in dest.index) for a in self._outer())

    def renaming(self, s: Statement) -> Mapping[str, Affine]:
        """What the names in a statement of the instruction are in the kernel."""
        return {**self.sizes, **{a.name: Affine.of(self.axes[a.name]) for a in s.domain.axes}}

    def _source(self, x: Source, by: Mapping[str, Affine]) -> Source:
        if isinstance(x, Literal):
            return x
        rows = tuple(r.substitute(by) for r in x.index)
        if self.body.buffer(x.buffer).role == "temp":
            return Access(self._name(x.buffer), (*(Affine.of(a.name) for a in self._outer()), *rows))
        o = self.operands.get(x.buffer)
        if o is None:
            raise Unfit(f"'{self.mapping.instruction.name}': nothing plays its operand {x.buffer}")
        if not o.buffer:
            if o.literal is None:
                raise Unfit(f"operand {x.buffer} is neither a buffer nor a number")
            return Literal(o.literal)
        return Access(o.buffer, self._element(o, rows))

    def _element(self, o: OperandMap, rows: tuple[Affine, ...]) -> tuple[Affine, ...]:
        """The element of the kernel's buffer that an element of an operand is. What the instruction adds to its axes
        comes on top of the mapping's index."""
        mine = set(self.axes.values())
        if len(o.dims) != len(rows) or len(o.steps) != len(rows):
            raise Unfit(f"operand {o.operand} has {len(rows)} dimensions, the mapping speaks of {len(o.dims)}")
        out = [Affine(tuple((n, c) for n, c in r.terms if n not in mine), r.const) for r in o.index]
        for row, d, step in zip(rows, o.dims, o.steps, strict=True):
            if d < 0:
                continue
            if d >= len(out):
                raise Unfit(f"'{o.buffer}' has no dimension {d}")
            out[d] = out[d] + row * step
        return tuple(out)
