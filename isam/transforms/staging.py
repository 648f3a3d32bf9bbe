"""Another shape for a buffer: a temporary changes in place, an argument keeps its shape and is copied into or out of a
temporary, so that a kernel's signature never changes; or it is seen in another shape with the same elements one after
the other (a *view*), which callers, who give memory, do not notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Statement
from isam.transforms.edit import Part, fresh, is_full_box, names_in, splice, writers
from isam.transforms.law import Correspondence, NoSite, Rewrite

Index = tuple[Affine, ...]


def stageable(kernel: Kernel, buffer: str) -> bool:
    """Can the buffer be replaced by a temporary? An output only when some statement writes all of it."""
    b = kernel.buffer(buffer)
    return b.role != "out" or any(is_full_box(kernel, kernel.statements[i]) for i in writers(kernel, buffer))


def reshaped(
    kernel: Kernel,
    buffer: str,
    shape: Sequence[Affine],
    remap: Callable[[Index], Index],
    copied: Statement,
    meaning: str,
    view: bool = False,
) -> Rewrite:
    """``kernel`` with every access ``buffer[i]`` turned into ``new[remap(i)]``.

    ``copied``: the statement ``<new> = <buffer>`` over all elements, with '' for the new buffer's name. ``view``: of an
    argument whose elements keep their order, of known sizes unless only dimensions of one come or go: it is not copied.
    """
    old = kernel.buffer(buffer)
    if view and not viewable(old, shape):
        raise NoSite(f"'{buffer}' cannot be seen in another shape")
    temp = old.role == "temp" or view
    name = buffer if temp else fresh(names_in(kernel), f"{buffer}_t")

    def one(x: Access) -> Access:
        return Access(name, remap(x.index), x.loc) if x.buffer == buffer else x

    new = Buffer(name, tuple(shape), old.dtype, old.role if view else "temp", declared=True, loc=old.loc)
    buffers = [new if b.name == buffer and temp else b for b in kernel.buffers]
    parts = {i: ((s.accessing(one), (i,)),) for i, s in enumerate(kernel.statements)}
    if temp:
        made, origin = splice(kernel, parts, buffers=buffers)
        return Rewrite(made, Correspondence(origin, meanings=((name, meaning),)))
    into = replace(copied, dest=replace(copied.dest, buffer=name))
    source = into.sources[0]
    assert isinstance(source, Access)
    back = replace(into, dest=source, sources=(into.dest,))
    first: list[Part] = [(into, ())] if old.role != "out" else []
    last: list[Part] = [(back, ())] if old.role in ("out", "inout") else []
    made, origin = splice(kernel, parts, buffers=[*buffers, new], first=first, last=last)
    relation = ((buffer, (buffer, name)),)
    return Rewrite(made, Correspondence(origin, buffers=relation, meanings=((name, meaning),)))


def viewable(buffer: Buffer, shape: Sequence[Affine] = ()) -> bool:
    """Can an argument be seen in another shape: in ``shape``, or in any where its sizes are known?"""
    same = all(d.is_constant for d in buffer.shape) or _without_ones(shape) == _without_ones(buffer.shape)
    return buffer.role != "temp" and same


def _without_ones(shape: Sequence[Affine]) -> list[Affine]:
    return [d for d in shape if d != Affine((), 1)]


def box_copy(kernel: Kernel, buffer: str, dest: Callable[[Index], Index]) -> Statement:
    """``new[dest(i)] = buffer[i]`` over the buffer's own dimensions, with fresh axis names."""
    b = kernel.buffer(buffer)
    taken = names_in(kernel)
    axes: list[Axis] = []
    for size in b.shape:
        name = fresh(taken, f"d{len(axes)}")
        taken.add(name)
        axes.append(Axis(name, size))
    index = tuple(Affine.of(a.name) for a in axes)
    source = Access(buffer, index, b.loc)
    return Statement(Domain(tuple(axes)), Access("", dest(index), b.loc), "copy", (source,), False, b.loc)
