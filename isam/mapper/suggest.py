"""The smallest instruction that would carry out a statement: offered in reports only after the matcher has agreed."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement, Sym

AXES, SIZES = ("i", "j"), ("M", "N")


def would_do(kernel: Kernel, statement: int) -> tuple[Instruction, ...]:
    """Instructions for one statement (for a constant also one that takes it from a scalar), each checked."""
    from isam.mapper import match

    s = kernel.statements[statement]
    drafts = [draft(kernel, s, scalar=False)]
    if any(isinstance(x, Literal) for x in s.sources):
        drafts.append(draft(kernel, s, scalar=True))
    return tuple(d for d in drafts if match(kernel, d, region=(statement,)))


def draft(kernel: Kernel, s: Statement, *, scalar: bool) -> Instruction:
    """The statement as an instruction over at most two of its axes. ``scalar``: literals become scalar operands. It
    sums nothing up and multiplies nothing into a sum, so that it has no rounding for a kernel to permit."""
    axes = _separable(s)
    rename = dict(zip(axes, AXES, strict=False))
    size = dict(zip(axes, SIZES, strict=False))
    buffers: list[Buffer] = []

    def operand(a: Access, name: str, role: str) -> Access:
        used = [next((x for x in axes if row.coefficient(x)), None) for row in a.index]
        dims = [x for x in used if x is not None]
        shape = tuple(Affine.of(size[x]) for x in dims)
        buffers.append(Buffer(name, shape, kernel.buffer(a.buffer).dtype, role))
        return Access(name, tuple(Affine.of(rename[x]) for x in dims))

    sources: list[Source] = []
    for n, x in enumerate(s.sources):
        name = ("A", "B", "S")[n]
        if isinstance(x, Access):
            sources.append(operand(x, name, "in"))
        elif scalar:
            buffers.append(Buffer(name, (), kernel.buffer(s.dest.buffer).dtype, "in"))
            sources.append(Access(name, ()))
        else:
            sources.append(x)
    dest = operand(s.dest, "D", "inout" if s.accumulate else "out")
    domain = Domain(tuple(Axis(rename[x], Affine.of(size[x])) for x in axes))
    body = Statement(domain, dest, s.op, tuple(sources), s.accumulate)
    name = ("fill" if s.op == "copy" and not any(isinstance(x, Access) for x in s.sources) else s.op) + "_" + (
        kernel.buffer(s.dest.buffer).dtype
    )
    syms = tuple(Sym(size[x]) for x in axes)
    return Instruction(name, Kernel(name, syms, tuple(buffers), (body,), frozenset()))


def _separable(s: Statement) -> tuple[str, ...]:
    """Up to two innermost axes that stand alone, with coefficient 1, in their row of every access (MAP-2)."""
    accesses = [a for a in (s.dest, *s.sources) if isinstance(a, Access)]
    guarded = {n for w in s.domain.where for n in w.names}
    chosen: list[str] = []
    for axis in reversed(s.domain.names):
        if len(chosen) == len(AXES) or axis in guarded:
            continue
        trial = [*chosen, axis]
        rows = [[row.coefficient(x) for x in trial] for a in accesses for row in a.index]
        single = all(sum(map(bool, row)) <= 1 and set(row) <= {0, 1} for row in rows)
        once = all(sum(bool(row.coefficient(axis)) for row in a.index) <= 1 for a in accesses)
        if single and once and s.dest.index and any(r.coefficient(axis) for r in s.dest.index):
            chosen = trial
    return tuple(reversed(chosen))
