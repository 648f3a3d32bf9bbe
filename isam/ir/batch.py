"""Whether a size counts a batch: rows of arguments that are computed each by itself, so that some of them, one behind
the other, may be a call of their own, with the same results."""

from __future__ import annotations

from collections.abc import Iterator

from isam.diagnostics import Diagnostic, Loc
from isam.ir.affine import Affine
from isam.ir.kernel import Buffer, Kernel, Statement, recurrences


def rows_of(kernel: Kernel, size: str) -> frozenset[str]:
    """The arguments that have rows of a batch of this size."""
    return frozenset(b.name for b in kernel.arguments if _dimension(b, size) is not None)


def not_a_batch(kernel: Kernel, size: str) -> list[Diagnostic]:
    """Why a size does not count a batch; nothing where it does.

    It does where every buffer whose shape depends on it has it as one dimension, an argument as its first; where every
    statement over such buffers has one axis of that extent, which counts that dimension in each access and nothing
    else; and where no argument without rows is written. Then what a statement writes for a row comes from that row and
    from what has none, by induction over the statements.
    """
    return [Diagnostic("range-batch", what, loc, hint) for what, loc, hint in _faults(kernel, size)]


def _dimension(buffer: Buffer, size: str) -> int | None:
    """The dimension of a buffer that a size is in."""
    return next((d for d, e in enumerate(buffer.shape) if size in e.names), None)


def _faults(kernel: Kernel, size: str) -> Iterator[tuple[str, Loc, str]]:
    counted = Affine.of(size)
    for s in kernel.follow:
        if s.whole is not None and s.whole[0] == size:
            yield f"the size {s.name} follows from {size}", kernel.loc, ""
    for r in recurrences(kernel.body):
        if size in r.axis.extent.names:
            yield f"the steps of 'loop {r.axis.name}' follow each other, {size} of them", r.loc, "give another size"
    for b in kernel.buffers:
        at = [d for d, e in enumerate(b.shape) if size in e.names]
        if at and (len(at) > 1 or b.shape[at[0]] != counted):
            shape = ", ".join(map(str, b.shape))
            yield f"'{b.name}' has the shape [{shape}], which has more to do with {size} than so many rows", b.loc, ""
        elif at and b.role != "temp" and at[0] != 0:
            yield (f"rows of '{b.name}' do not lie together: {size} is its dimension {at[0]}, counted from 0", b.loc,
                   f"declare it as {b.dtype}[{size}, ...]")  # fmt: skip
        elif not at and b.role in ("out", "inout"):
            yield f"'{b.name}' is written and has no {size} rows: each call would write all of it", b.loc, ""
    steps = frozenset(r.axis.name for r in recurrences(kernel.body) if size in r.axis.extent.names)
    for s in kernel.statements:
        yield from ((what, s.loc, "") for what in dict.fromkeys(_mixes(kernel, s, size, steps)))


def _mixes(kernel: Kernel, s: Statement, size: str, steps: frozenset[str]) -> Iterator[str]:
    """What a statement does with a row but compute it from itself; ``steps``: variables of recurrent loops over as many
    steps, of each of which a row may be, as is said of the loop."""
    axes = [a for a in s.domain.axes if size in a.extent.names]
    if len(axes) > 1 or any(a.extent != Affine.of(size) for a in axes):
        said = ", ".join(f"{a.name} < {a.extent}" for a in axes)
        yield f"'forall {said}' is no walk over {size} rows"
        return
    row = axes[0].name if axes else ""
    if any(n in (row, size) for w in s.domain.where for n in w.names):
        yield f"a condition depends on the row, or on {size}"
    for access in (s.dest, *s.reads):
        at = _dimension(kernel.buffer(access.buffer), size)
        if at is not None and row and access.index[at] != Affine.of(row):
            yield f"{access} is no row of the batch alone"
        if at is not None and not row and steps.isdisjoint(access.index[at].names):
            yield f"{access} is the same row for all"
        if any(n in (row, size) for d, e in enumerate(access.index) if d != at for n in e.names):
            yield f"{access} depends on which row it is"
    if row and _dimension(kernel.buffer(s.dest.buffer), size) is None:
        yield f"{s.dest} brings rows together"
