"""Rewritings that keep a kernel's meaning: what no part of the compiler may depend on (MAP-3).

Each takes a kernel and a source of choices and returns a :class:`Variant`: the kernel, and how the names and the
dimensions of its arguments changed. ``variant.adapt(arrays)`` gives the same data to it, ``variant.restore(outputs)``
reads its results back. Renaming, reordering and transposition must leave the number of mappings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isam.ir.affine import Affine
from isam.ir.kernel import COMMUTATIVE, Access, Axis, Buffer, Domain, Item, Kernel, Recurrence, Source, Statement
from tests.random_kernels import Chooser

Names = dict[str, Affine | int]
MIRROR = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


@dataclass(frozen=True)
class Variant:
    """``names``: old argument name to new; ``dims``: old argument name to its dimensions in their new order."""

    kernel: Kernel
    names: dict[str, str] = field(default_factory=dict)
    dims: dict[str, tuple[int, ...]] = field(default_factory=dict)
    syms: dict[str, str] = field(default_factory=dict)

    def adapt(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return {self.names.get(n, n): np.transpose(a, self.dims[n]).copy() if n in self.dims else a
                for n, a in arrays.items()}  # fmt: skip

    def restore(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        old = {new: n for n, new in self.names.items()}
        out = {}
        for new, a in outputs.items():
            n = old.get(new, new)
            out[n] = np.transpose(a, np.argsort(self.dims[n])) if n in self.dims else a
        return out

    def sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {self.syms.get(n, n): v for n, v in sizes.items()}

    def then(self, mutator: Callable[[Kernel, Chooser], Variant], choose: Chooser) -> Variant:
        """This variant, rewritten further."""
        after = mutator(self.kernel, choose)
        names = {n: after.names.get(m, m) for n, m in self.names.items()} | {
            n: m for n, m in after.names.items() if n not in self.names.values() and n not in self.names
        }
        old = {m: n for n, m in self.names.items()}
        dims = dict(self.dims)
        for n, perm in after.dims.items():
            first = dims.get(old.get(n, n), tuple(range(len(perm))))
            dims[old.get(n, n)] = tuple(first[p] for p in perm)
        syms = {n: after.syms.get(m, m) for n, m in self.syms.items()} | {
            n: m for n, m in after.syms.items() if n not in self.syms.values() and n not in self.syms
        }
        return Variant(after.kernel, names, dims, syms)


def shuffled(items: list[Any], choose: Chooser) -> list[Any]:
    left, out = list(items), []
    while left:
        out.append(left.pop(choose.integer(0, len(left) - 1)))
    return out


def each(body: tuple[Item, ...], f: Callable[[Statement], Statement]) -> tuple[Item, ...]:
    return tuple(replace(it, body=each(it.body, f)) if isinstance(it, Recurrence) else f(it) for it in body)


def access(s: Source, f: Callable[[Access], Access]) -> Source:
    return f(s) if isinstance(s, Access) else s


def swap_operands(k: Kernel, choose: Chooser) -> Variant:
    """The two sources of some commutative operations exchanged; ``a < b`` becomes ``b > a``."""

    def swap(s: Statement) -> Statement:
        if len(s.sources) != 2 or s.op not in COMMUTATIVE | MIRROR.keys() or choose.integer(0, 1):
            return s
        return replace(s, op=MIRROR.get(s.op, s.op), sources=s.sources[::-1])

    return Variant(replace(k, body=each(k.body, swap), template=None))


def permute_axes(k: Kernel, choose: Chooser) -> Variant:
    """The axes of every domain in another order (another order of summation: not under ``permits exact``)."""

    def permute(s: Statement) -> Statement:
        axes = tuple(shuffled(list(s.domain.axes), choose))
        return replace(s, domain=Domain(axes, tuple(shuffled(list(s.domain.where), choose))))

    return Variant(replace(k, body=each(k.body, permute), template=None))


def transpose_buffers(k: Kernel, choose: Chooser) -> Variant:
    """The dimensions of every buffer in another order, arguments included."""
    perms = {b.name: tuple(shuffled(list(range(len(b.shape))), choose)) for b in k.buffers}

    def turn(a: Access) -> Access:
        return replace(a, index=tuple(a.index[p] for p in perms[a.buffer]))

    def statement(s: Statement) -> Statement:
        return replace(s, dest=turn(s.dest), sources=tuple(access(x, turn) for x in s.sources))

    buffers = tuple(replace(b, shape=tuple(b.shape[p] for p in perms[b.name])) for b in k.buffers)
    arguments = {b.name: perms[b.name] for b in k.arguments}
    return Variant(replace(k, buffers=buffers, body=each(k.body, statement), template=None), {}, arguments)


def reorder_statements(k: Kernel, choose: Chooser) -> Variant:
    """Statements in another order that keeps every dependence (two items that share a buffer one of them writes)."""
    return Variant(replace(k, body=_reordered(k.body, choose), template=None))


def _reordered(body: tuple[Item, ...], choose: Chooser) -> tuple[Item, ...]:
    items = [replace(it, body=_reordered(it.body, choose)) if isinstance(it, Recurrence) else it for it in body]
    touched = [_touched(it) for it in items]
    left, out = list(range(len(items))), []
    while left:
        ready = [n for n in left if not any(_clash(touched[m], touched[n]) for m in left if m < n)]
        n = ready[choose.integer(0, len(ready) - 1)]
        out.append(items[n])
        left.remove(n)
    return tuple(out)


def _touched(it: Item) -> tuple[set[str], set[str]]:
    inner = [_touched(i) for i in it.body] if isinstance(it, Recurrence) else [
        ({it.dest.buffer}, {a.buffer for a in it.reads})]  # fmt: skip
    return set().union(*(w for w, _ in inner)), set().union(*(r for _, r in inner))


def _clash(a: tuple[set[str], set[str]], b: tuple[set[str], set[str]]) -> bool:
    return bool(a[0] & (b[0] | b[1]) or a[1] & b[0])


def rename(k: Kernel, choose: Chooser) -> Variant:
    """New names for everything: sizes, buffers, axes (per statement), the kernel."""
    numbers = shuffled(list(range(len(k.buffers))), choose)
    names = {b.name: f"b{n}" for b, n in zip(k.buffers, numbers, strict=True)}
    order = shuffled(list(range(len(k.syms))), choose)
    syms = {s.name: f"S{n}" for s, n in zip(k.syms, order, strict=True)}
    first: dict[str, Affine | int] = {n: Affine.of(m) for n, m in syms.items()}

    def moved(b: Buffer) -> Buffer:
        return replace(b, name=names[b.name], shape=tuple(d.substitute(first) for d in b.shape))

    buffers = tuple(map(moved, k.buffers))
    body = _renamed(k.body, names, first, 0, choose)
    sizes = tuple(replace(s, name=syms[s.name]) for s in k.syms)
    made = replace(k, name="other", syms=sizes, buffers=buffers, body=body, template=None)
    return Variant(made, {b.name: names[b.name] for b in k.arguments}, {}, syms)


def _renamed(
    body: tuple[Item, ...], names: dict[str, str], outer: Names, depth: int, choose: Chooser
) -> tuple[Item, ...]:
    out: list[Item] = []
    for it in body:
        if isinstance(it, Recurrence):
            new = f"u{depth}"
            axis = Axis(new, it.axis.extent.substitute(outer))
            inside = {**outer, it.axis.name: Affine.of(new)}
            out.append(replace(it, axis=axis, body=_renamed(it.body, names, inside, depth + 1, choose)))
        else:
            out.append(_renamed_statement(it, names, outer, choose))
    return tuple(out)


def _renamed_statement(s: Statement, names: dict[str, str], outer: Names, choose: Chooser) -> Statement:
    fresh = [f"a{n}" for n in shuffled(list(range(len(s.domain.axes))), choose)]
    known = {**outer, **{a.name: Affine.of(n) for a, n in zip(s.domain.axes, fresh, strict=True)}}
    axes = tuple(Axis(n, a.extent.substitute(outer)) for a, n in zip(s.domain.axes, fresh, strict=True))

    def move(a: Access) -> Access:
        return Access(names[a.buffer], tuple(e.substitute(known) for e in a.index), a.loc)

    where = tuple(w.substitute(known) for w in s.domain.where)
    return replace(s, domain=Domain(axes, where), dest=move(s.dest), sources=tuple(access(x, move) for x in s.sources))


MUTATORS: dict[str, Callable[[Kernel, Chooser], Variant]] = {
    "swap operands": swap_operands, "permute axes": permute_axes, "transpose buffers": transpose_buffers,
    "reorder statements": reorder_statements, "rename": rename,
}  # fmt: skip


def anything(k: Kernel, choose: Chooser) -> Variant:
    """All of them, one after the other."""
    v = Variant(k)
    for m in MUTATORS.values():
        v = v.then(m, choose)
    return v
