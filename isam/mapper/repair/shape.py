"""Repairs of sizes and layouts: arguments declared otherwise, so that the instruction fits without any rewriting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Item, Kernel, Recurrence, Source, Statement
from isam.ir.mapping import Mapping
from isam.ir.mismatch import Mismatch
from isam.ir.verify import verify
from isam.mapper.match import Matches, match
from isam.mapper.pricing import Pricing
from isam.mapper.repair.repair import LOOKED, Repair
from isam.transforms.edit import accesses
from isam.transforms.law import Site, Transform
from isam.transforms.structure.dimensions import PermuteDimensions, SplitDimension

MOST = 1 << 20  # a size is padded to at most so much
AXES = 4  # padded in one change
VANISHING = ("mul", "copy", "cast", "cast_sat", "neg", "add", "sub")  # of zeros, zero


def reshaping(kernel: Kernel, instruction: Instruction, near: Sequence[Mismatch]) -> Iterator[Repair]:
    """Sizes padded to what a call takes, dimensions split or exchanged in an argument."""
    seen: list[Kernel] = []
    for m in near[:LOOKED]:
        for r in (*_padded(kernel, instruction, m), *_split(kernel, instruction, m)):
            if r.kernel not in seen:
                seen.append(r.kernel)
                yield r


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
    """The axis that a mismatch of extents names, grown to the next size that calls take without a rest; where the
    instruction then lacks the same of another axis, that one too."""
    larger, said, size = kernel, list[str](), 0.0
    for _ in range(AXES):
        axis, at, new = m.about("axis"), m.about("statement"), m.about("padded")
        if m.kind != "extent" or axis is None or at is None or new is None:
            return
        old = next((a.extent for a in larger.statements[at].domain.axes if a.name == axis), None)
        if old is None or not old.is_constant or not 0 < old.const < new <= MOST:
            return
        after, touched, zeros = grown(larger, axis, old.const, new)
        if zeros is None or verify(after):
            return
        where = f" ({', '.join(touched)}{', zeros in what is new' if zeros else ''})" if touched else ""
        said.append(f"{axis} from {old.const} to {new}{where}")
        larger, size = after, size + new / old.const - 1
        found = match(larger, instruction, normalise=False)
        if isinstance(found, Matches):
            yield Repair("shape", f"pad {' and '.join(said)}", size, str(found.first), larger, instruction)
            return
        m = found


def grown(kernel: Kernel, axis: str, old: int, new: int) -> tuple[Kernel, list[str], bool | None]:
    """The kernel with another extent of an axis and of what it runs over from end to end; arguments that other rows
    then reach further into have as much more. The dimensions of arguments that grow; whether they are summed over, so
    that what is new must be zeros (None: zeros would not do either)."""
    dims = {
        (a.buffer, d)
        for s in kernel.statements
        if axis in s.domain.names and s.domain.extent(axis) == Affine((), old)
        for a in accesses(s)
        for d, row in enumerate(a.index)
        if row == Affine.of(axis) and kernel.buffer(a.buffer).shape[d] == Affine((), old)
    }
    names = {axis} | {
        n
        for s in kernel.statements
        for a in accesses(s)
        for d, row in enumerate(a.index)
        if (a.buffer, d) in dims and len(row.names) == 1
        for n in row.names
    }

    def longer(s: Statement) -> tuple[Axis, ...]:
        few, many = Affine((), old), Affine((), new)
        return tuple(Axis(a.name, many) if a.name in names and a.extent == few else a for a in s.domain.axes)

    more: dict[tuple[str, int], int] = {}
    summed, zeros = False, True
    for s in kernel.statements:
        longest = {a.name for a, b in zip(longer(s), s.domain.axes, strict=True) if a != b}
        for a in accesses(s):
            for d, row in enumerate(a.index):
                further = sum(max(row.coefficient(n), 0) for n in longest) * (new - old)
                more[a.buffer, d] = max(more.get((a.buffer, d), 0), further)
        if s.accumulate and longest & set(s.reduces):
            summed, zeros = True, zeros and s.op == "add" and _vanishes(kernel, s.sources[0], longest)

    def buffer(b: Buffer) -> Buffer:
        return replace(b, shape=tuple(n + more.get((b.name, d), 0) for d, n in enumerate(b.shape)))

    larger = replace(kernel, buffers=tuple(map(buffer, kernel.buffers)), body=_grown(kernel.body, longer))
    told = [f"dimension {d} of {b}" for (b, d), n in sorted(more.items()) if n and kernel.buffer(b).role != "temp"]
    return larger, told, None if summed and not zeros else summed


def _grown(body: tuple[Item, ...], longer: Callable[[Statement], tuple[Axis, ...]]) -> tuple[Item, ...]:
    """Statements over longer axes."""
    return tuple(replace(it, body=_grown(it.body, longer)) if isinstance(it, Recurrence)
                 else replace(it, domain=replace(it.domain, axes=longer(it))) for it in body)  # fmt: skip


def _vanishes(kernel: Kernel, x: Source, axes: set[str]) -> bool:
    """Whether a value is zero where the arguments' elements that a longer axis adds are."""
    if not isinstance(x, Access):
        return False
    if kernel.buffer(x.buffer).role != "temp":
        return any(set(row.names) & axes and len(row.names) == 1 for row in x.index)
    made = [s for s in kernel.statements if s.dest.buffer == x.buffer]
    if len(made) != 1 or made[0].accumulate or made[0].op not in VANISHING:
        return False
    parts = [_vanishes(kernel, y, axes) for y in made[0].sources]
    return any(parts) if made[0].op == "mul" else all(parts)


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

