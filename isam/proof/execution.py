"""A kernel executed on values: what every buffer holds after every statement, for all inputs and sizes (IR-4).

One :class:`Execution` carries out several kernels. What one kernel computed is remembered, and values found equal to
earlier ones of the same buffer become those: of a rewritten kernel only what differs is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import COMPARISONS, Access, Buffer, Item, Kernel, Literal, Recurrence, Source, Statement, Sym
from isam.ir.poly import make
from isam.ir.poly_domain import context, domain_set, shape_set
from isam.ir.relation import Region, Rel, TooMuch, bounded
from isam.proof.casts import modulus_of
from isam.proof.inside import digits
from isam.proof.operations import Operations
from isam.proof.value import Value

Memory = dict[str, Value]
RECENT = 6  # earlier values of a buffer that a new one is compared with


@dataclass(slots=True)
class Execution:
    """``around``: what is known of sizes and loop counters at this place. ``notes``: statements whose value stayed
    opaque, and why."""

    operations: Operations
    syms: tuple[Sym, ...]
    notes: dict[str, str] = field(default_factory=dict)
    _done: dict[tuple[object, ...], Value] = field(default_factory=dict)
    _seen: dict[tuple[object, ...], list[Value]] = field(default_factory=dict)
    _shapes: dict[tuple[Affine, ...], Region] = field(default_factory=dict)

    # memory -------------------------------------------------------------------------------------------------------
    def start(self, kernel: Kernel) -> Memory:
        """What the buffers hold before the first statement: arguments are arrays of their own, and so is what a
        temporary of one name and shape happens to hold."""
        return {b.name: self.unknown(f"{'unwritten' if b.role == 'temp' else 'given'} {b.name}", b)
                for b in kernel.buffers}  # fmt: skip

    def unknown(self, label: str, b: Buffer) -> Value:
        """A buffer with contents of which nothing is known but their name."""
        shape = self.shape(b.shape)
        key = (label, b.shape, b.dtype)
        if key not in self._done:
            text = f"{label} {b.dtype}[{', '.join(map(str, b.shape))}]"
            n = self.operations.numbers.leaf(text, len(b.shape))
            if b.dtype == "bool":
                self.operations.numbers.ring.logical.add(n)
            self._done[key] = self.operations.numbers.ring.read(n, shape.identity(), modulus_of(b.dtype))
        return self._done[key]

    def shape(self, shape: tuple[Affine, ...]) -> Region:
        if shape not in self._shapes:
            self._shapes[shape] = Region.of(shape_set(shape).given(context(self.syms)))
        return self._shapes[shape]

    # statements ---------------------------------------------------------------------------------------------------
    def run(self, items: Sequence[Item], memory: Memory, kernel: Kernel, loops: tuple[Recurrence, ...] = ()) -> None:
        """Statements in order; there is no recurrent loop among them."""
        for s in items:
            assert isinstance(s, Statement)
            memory[s.dest.buffer] = self.statement(s, memory, kernel, loops)

    def statement(self, s: Statement, memory: Memory, kernel: Kernel, loops: tuple[Recurrence, ...]) -> Value:
        """What the destination's buffer holds after the statement."""
        names = dict.fromkeys((s.dest.buffer, *(a.buffer for a in s.reads)))
        around = tuple((r.axis.name, r.axis.extent) for r in loops)
        key = (s, around, *((n, memory[n].serial, kernel.buffer(n).dtype) for n in names))
        if key not in self._done:
            b = kernel.buffer(s.dest.buffer)
            try:
                new = bounded(lambda: self._known(b, self._statement(s, memory, kernel, around)))
            except TooMuch as e:
                self.notes[str(s.dest)] = str(e)
                new = self.unknown(f"opaque {len(self._done)}", b)
            self._done[key] = new
        return self._done[key]

    def _known(self, b: Buffer, new: Value) -> Value:
        """An earlier value of a buffer of this name and shape, where it is the same."""
        seen = self._seen.setdefault((b.name, b.shape, b.dtype), [])
        for old in seen[-RECENT:]:
            if old.terms.keys() == new.terms.keys() and self.operations.numbers.ring.equal(old, new):
                return old
        seen.append(new)
        return new

    def _statement(self, s: Statement, memory: Memory, kernel: Kernel, around: tuple[tuple[str, Affine], ...]) -> Value:
        o, ring = self.operations, self.operations.numbers.ring
        over = self.points(s, around)
        names, old, dtype = s.domain.names, memory[s.dest.buffer], kernel.buffer(s.dest.buffer).dtype
        if over.is_empty():
            return old
        dest = Rel.affine(names, s.dest.index, over)
        source = operand_dtype(s, kernel)
        args = tuple(self._read(x, k, s, over, memory, source) for k, x in enumerate(s.sources))
        written = dest.range()
        whole = old.over.inside(written)
        alone = told_apart(s) or dest.is_injective()
        if s.accumulate and not (alone and s.op == "select"):
            if s.op == "select":
                raise TooMuch("a conditional assignment reaches an element more than once")
            order = () if alone else self._order(s, over, dtype)
            made = self._accumulated(s, old if whole else ring.on(old, written), dest, args[0], dtype, order, alone)
        else:
            if not alone:
                raise TooMuch("an assignment reaches an element more than once")
            if s.accumulate:
                args = (*args, ring.through(dest, old))
            made = ring.placed(dest, o.apply(s.op, args, source, dtype, over))
        return made if whole else ring.joined(ring.off(old, written), made)

    def _accumulated(
        self, s: Statement, old: Value, dest: Rel, new: Value, dtype: str, order: tuple[Rel, ...], alone: bool
    ) -> Value:
        o, ring = self.operations, self.operations.numbers.ring
        if not alone:
            return o.accumulate(s.op, old, dest, new, dtype, order)
        return ring.placed(dest, o.apply(s.op, (ring.through(dest, old), new), dtype, dtype, new.over))

    def points(self, s: Statement, around: tuple[tuple[str, Affine], ...]) -> Region:
        """Where a statement is carried out, in loops around it."""
        points = domain_set(s.domain, self.syms)
        if around:
            ge = [e for n, extent in around for e in (Affine.of(n), extent - n - 1)]
            points = points.given(make((), ge))
        return Region.of(points)

    def _read(self, x: Source, k: int, s: Statement, over: Region, memory: Memory, dtype: str) -> Value:
        if isinstance(x, Literal):
            kind = "bool" if s.op == "select" and k == 0 else dtype
            return self.operations.literal(x.value, kind, over)
        value = memory[x.buffer]
        path = Rel.affine(s.domain.names, x.index, over)
        return self.operations.numbers.ring.through(path, value)

    def _order(self, s: Statement, over: Region, dtype: str) -> tuple[Rel, ...]:
        """When a point's turn is among those that reach its element: its summed axes as one number where their extents
        allow it, so that a split axis counts as the whole one. Where orders make no difference, nothing."""
        if self.operations.licence.free:
            return ()
        if DTYPES[dtype].kind != "f":
            return ()
        rows = [r for r in s.dest.index if len(r.terms) > 1]
        mixed = not all(digits(r, s.domain) for r in rows)  # an element does not say where on other axes points are
        axes = [a for a in s.domain.axes if mixed or a.name in s.reduces]
        total, stride = Affine(), 1
        for a in reversed(axes):
            total = total + Affine.of(a.name, stride)
            if not a.extent.is_constant:
                if a is not axes[0]:
                    return tuple(Rel.affine(s.domain.names, [Affine.of(x.name)], over) for x in axes)
                break
            stride *= max(1, a.extent.const)
        return (Rel.affine(s.domain.names, [total], over),)


def told_apart(s: Statement) -> bool:
    """Whether every axis stands alone in some index of the destination: then each point has an element of its own."""
    own = set(s.domain.names)
    alone = (own.intersection(row.names) for row in s.dest.index)
    return own == {n for names in alone if len(names) == 1 for n in names}


def operand_dtype(s: Statement, kernel: Kernel) -> str:
    """The dtype the operation works on: of its sources, or of the destination where those are literals."""
    sources = s.sources[1:] if s.op == "select" else s.sources
    named = [kernel.buffer(x.buffer).dtype for x in sources if isinstance(x, Access)]
    if named:
        return named[0]
    if s.op in COMPARISONS or s.op in ("cast", "cast_sat"):
        return "f64" if any(isinstance(x, Literal) and isinstance(x.value, float) for x in sources) else "i64"
    return kernel.buffer(s.dest.buffer).dtype


def written_in(items: Sequence[Item]) -> set[str]:
    """Every buffer that some statement writes, loops included."""
    out: set[str] = set()
    for it in items:
        out |= written_in(it.body) if isinstance(it, Recurrence) else {it.dest.buffer}
    return out


def shared_buffers(a: Kernel, b: Kernel) -> Mapping[str, Buffer]:
    """Buffers that both kernels have, alike."""
    return {n: x for n, x in a.by_name.items() if n in b.by_name and b.by_name[n] == x}
