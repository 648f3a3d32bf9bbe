"""What laws ask about rows, domains and groups of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Statement
from isam.ir.ranges import lower, nonnegative, upper
from isam.transforms.edit import accesses, axis_of, fresh, names_in, readers, together, writers


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


def product_of(kernel: Kernel, n: int) -> int | None:
    """The product that the sum ``n`` adds, over the very same axes and conditions, used nowhere else."""
    s = kernel.statements[n]
    u = s.sources[0]
    if not (s.accumulate and s.op == "add" and isinstance(u, Access)):
        return None
    made = writers(kernel, u.buffer)
    if kernel.buffer(u.buffer).role != "temp" or len(made) != 1 or readers(kernel, u.buffer) != (n,) or made[0] > n:
        return None
    p = kernel.statements[made[0]]
    plain = p.op == "mul" and p.dest == u and p.domain == s.domain
    names = sorted(map(axis_of, u.index))
    return made[0] if plain and names == sorted(s.domain.names) and together(kernel, made[0], n) else None


def moved(s: Statement, buffer: str, dim: int, row: Affine) -> Statement:
    """The statement with another row in that dimension of every access of the buffer."""

    def one(x: Access) -> Access:
        return replace(x, index=(*x.index[:dim], row, *x.index[dim + 1 :])) if x.buffer == buffer else x

    return s.accessing(one)


def resized(b: Buffer, dim: int, size: Affine) -> Buffer:
    """The buffer with another size in one dimension."""
    return replace(b, shape=(*b.shape[:dim], size, *b.shape[dim + 1 :]))


def filled(kernel: Kernel, b: Buffer) -> Statement:
    """Zero in every element of a buffer."""
    taken = names_in(kernel)
    axes: list[Axis] = []
    for size in b.shape:
        axes.append(Axis(fresh(taken, f"d{len(axes)}"), size))
        taken.add(axes[-1].name)
    dest = Access(b.name, tuple(Affine.of(a.name) for a in axes), b.loc)
    return Statement(Domain(tuple(axes)), dest, "copy", (Literal(0),), False, b.loc)
