"""What laws ask about rows, domains and groups of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Kernel, Statement
from isam.ir.ranges import lower, nonnegative, upper
from isam.transforms.edit import accesses


def axis_of(row: Affine) -> str:
    """The name that the row consists of, or '' when it is anything else."""
    return row.terms[0][0] if not row.const and len(row.terms) == 1 and row.terms[0][1] == 1 else ""


def users(kernel: Kernel, buffer: str) -> tuple[int, ...]:
    """Statements that read or write the buffer."""
    return tuple(sorted({*kernel.readers.get(buffer, ()), *kernel.writers.get(buffer, ())}))


def inside(kernel: Kernel, group: Iterable[int]) -> tuple[str, ...]:
    """Temporaries that pass between statements of the group and that nothing else uses."""
    members = set(group)
    names = dict.fromkeys(a.buffer for i in sorted(members) for a in accesses(kernel.statements[i]))
    return tuple(
        n for n in names if kernel.buffer(n).role == "temp" and len(users(kernel, n)) > 1
        and members.issuperset(users(kernel, n))
    )  # fmt: skip


def used_axes(a: Access, s: Statement) -> tuple[Axis, ...]:
    """The statement's axes that an access mentions, in the order in which its rows name them."""
    names = dict.fromkeys(n for row in a.index for n in s.domain.names if row.coefficient(n))
    by_name = {x.name: x for x in s.domain.axes}
    return tuple(by_name[n] for n in names)


def uncertain(kernel: Kernel, a: Access, axes: Sequence[Axis]) -> tuple[Affine, ...]:
    """Conditions that keep the access in range over the box of ``axes``, those that certainly hold left out."""
    out: list[Affine] = []
    for row, size in zip(a.index, kernel.buffer(a.buffer).shape, strict=True):
        if not nonnegative(lower(row, axes), kernel.syms, axes):
            out.append(row)
        if not nonnegative(size - 1 - upper(row, axes), kernel.syms, axes):
            out.append(size - 1 - row)
    return tuple(dict.fromkeys(out))
