"""Repairs of sizes and layouts: arguments declared otherwise, so that the instruction fits without any rewriting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Axis, Buffer, Item, Kernel, Recurrence, Statement
from isam.ir.mapping import Mapping
from isam.ir.mismatch import Mismatch
from isam.ir.verify import verify
from isam.mapper.match import Matches, match
from isam.mapper.pricing import Pricing
from isam.mapper.repair.repair import Repair
from isam.transforms.edit import accesses
from isam.transforms.law import Site, Transform
from isam.transforms.structure.dimensions import PermuteDimensions, SplitDimension

LOOKED = 8  # mismatches that are acted on
MOST = 1 << 20  # a size is padded to at most so much


def reshaping(kernel: Kernel, instruction: Instruction, near: Sequence[Mismatch]) -> Iterator[Repair]:
    """Sizes padded to what a call takes, dimensions split or exchanged in an argument."""
    for m in near[:LOOKED]:
        yield from _padded(kernel, instruction, m)
        yield from _split(kernel, instruction, m)


def turning(kernel: Kernel, instruction: Instruction, mappings: Iterable[Mapping]) -> tuple[Repair, ...]:
    """For an instruction that fits: dimensions to exchange so that its operands need not be laid out anew. None when
    some mapping needs nothing."""
    pricing, found = Pricing(kernel), list[Repair]()
    for m in mappings:
        turned = _innermost(kernel, instruction, m, pricing)
        if turned is None:
            return ()
        found += turned
    return tuple(sorted(found, key=lambda r: r.size)[:1])


def _innermost(kernel: Kernel, instruction: Instruction, mapping: Mapping, pricing: Pricing) -> list[Repair] | None:
    """None: every operand lies as the instruction takes it."""
    changed, said = kernel, list[str]()
    for o in mapping.operands:
        breach = pricing.breach(instruction, o, pricing.tile(mapping)) if o.buffer else None
        if breach is None:
            continue
        dim, needed, _ = breach
        if needed != 1 or kernel.buffer(o.buffer).role == "temp":
            return []
        for d in range(dim, len(o.index) - 1):
            turned = _declared(changed, o.buffer, PermuteDimensions(), Site.of(buffer=o.buffer, dim=d))
            if turned is None:
                return []
            changed = turned
        said.append(f"declare {_shown(changed.buffer(o.buffer))}, with dimension {dim} of {o.buffer} innermost")
    if not said:
        return None
    then = match(changed, instruction, normalise=False)
    fits = next((t for t in then if t.axes == mapping.axes), None) if isinstance(then, Matches) else None
    if fits is None:
        return []
    now, tile = Pricing(changed), pricing.tile(fits)
    if any(o.buffer and now.breach(instruction, o, tile) for o in fits.operands):
        return []
    return [Repair("shape", " and ".join(said), len(said), str(fits), changed, instruction)]


def _padded(kernel: Kernel, instruction: Instruction, m: Mismatch) -> Iterator[Repair]:
    """The axis that a mismatch of extents names, grown to the next size that calls take without a rest."""
    axis, at = m.about("axis"), m.about("statement")
    if m.kind != "extent" or axis is None or at is None:
        return
    step = m.about("multiple") or dict(m.about("fixed") or ()).get(m.about("instruction_axis")) or m.about("limit")
    old = next((a.extent for a in kernel.statements[at].domain.axes if a.name == axis), None)
    if not step or old is None or not old.is_constant or not 0 < old.const < MOST:
        return
    new = -(-old.const // step) * step
    larger, touched = grown(kernel, axis, old.const, new)
    if new == old.const or verify(larger):
        return
    found = match(larger, instruction, normalise=False)
    if isinstance(found, Matches):
        where = f" ({', '.join(touched)})" if touched else ""
        said = f"pad {axis} from {old.const} to {new}{where}"
        yield Repair("shape", said, new / old.const - 1, str(found.first), larger, instruction)


def grown(kernel: Kernel, axis: str, old: int, new: int) -> tuple[Kernel, list[str]]:
    """The kernel with another extent of an axis, and of the dimensions that it runs over from end to end."""
    dims = {
        (a.buffer, d)
        for s in kernel.statements
        if axis in s.domain.names and s.domain.extent(axis) == Affine((), old)
        for a in accesses(s)
        for d, row in enumerate(a.index)
        if row == Affine.of(axis) and kernel.buffer(a.buffer).shape[d] == Affine((), old)
    }
    names = {
        n
        for s in kernel.statements
        for a in accesses(s)
        for d, row in enumerate(a.index)
        if (a.buffer, d) in dims and len(row.names) == 1
        for n in row.names
    }

    def statement(s: Statement) -> Statement:
        axes = tuple(
            Axis(a.name, Affine((), new)) if a.name in names and a.extent == Affine((), old) else a
            for a in s.domain.axes
        )
        return replace(s, domain=replace(s.domain, axes=axes))

    def item(it: Item) -> Item:
        return replace(it, body=tuple(map(item, it.body))) if isinstance(it, Recurrence) else statement(it)

    def buffer(b: Buffer) -> Buffer:
        return replace(b, shape=tuple(Affine((), new) if (b.name, d) in dims else n for d, n in enumerate(b.shape)))

    larger = replace(kernel, buffers=tuple(map(buffer, kernel.buffers)), body=tuple(map(item, kernel.body)))
    told = [f"dimension {d} of {b}" for b, d in sorted(dims) if kernel.buffer(b).role != "temp"]
    return larger, told


def _split(kernel: Kernel, instruction: Instruction, m: Mismatch) -> Iterator[Repair]:
    """The dimension that a mismatch names, declared as two."""
    buffer, row = m.about("buffer"), m.about("row")
    if m.kind not in ("extra-dependence", "coefficient") or buffer not in kernel.by_name or row is None:
        return
    if kernel.buffer(buffer).role == "temp" or row >= len(kernel.buffer(buffer).shape):
        return
    rows = [a.index[row] for s in kernel.statements for a in accesses(s) if a.buffer == buffer]
    for factor in sorted({c for r in rows for _, c in r.terms if c > 1}):
        law = SplitDimension((factor,))
        changed = _declared(kernel, buffer, law, Site.of(buffer=buffer, dim=row, factor=factor))
        found = match(changed, instruction, normalise=False) if changed is not None else None
        if changed is not None and isinstance(found, Matches):
            said = f"declare {_shown(changed.buffer(buffer))}"
            yield Repair("shape", said, 1.0, str(found.first), changed, instruction)


def _declared(kernel: Kernel, buffer: str, law: Transform, site: Site) -> Kernel | None:
    """The law applied to an argument in place, as if its caller passed it so; None where it does not hold."""
    free = _with_role(kernel, buffer, "temp")
    if site not in law.sites(free):
        return None
    return _with_role(law.apply(free, site).kernel, buffer, kernel.buffer(buffer).role)


def _with_role(kernel: Kernel, buffer: str, role: str) -> Kernel:
    buffers = tuple(replace(b, role=role) if b.name == buffer else b for b in kernel.buffers)
    return replace(kernel, buffers=buffers, template=None)


def _shown(b: Buffer) -> str:
    return f"{b.name}: {b.dtype}[{', '.join(map(str, b.shape))}]"

