"""Loops over a size as the loops that a size worked out from it stands for: so many whole parts, and what is left.

A size ``Q = T // n`` says that ``T`` is ``n * Q`` and less than ``n`` more: steps 0 to ``T`` are those of ``Q`` parts
of ``n`` steps each and then the others, in the same order. A loop of a known number of steps is one over blocks of
``n`` of them where ``n`` divides that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import is_

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Item, Kernel, Recurrence, Sym, put, recurrences

Names = tuple[str, str, str]  # of the counters of parts, of steps in a part, and of steps left over


def parted(kernel: Kernel, like: Kernel) -> Kernel:
    """The kernel with the sizes that ``like`` works out besides, every loop over what they come from in parts. Counters
    have the names that they have there."""
    kernel = in_blocks(kernel, like)
    for size in like.syms[len(kernel.syms) :]:
        if size.whole is not None and size == Sym.times(size.name, _size(kernel, size.whole[0]), size.whole[1]):
            names = _named(like, size)
            body = tuple(part for it in kernel.body for part in _parts(it, size, names))
            kernel = replace(kernel, syms=(*kernel.syms, size), body=body, template=None)
    return kernel


def in_blocks(kernel: Kernel, like: Kernel) -> Kernel:
    """The kernel, every loop of a known number of steps over blocks of them where ``like`` has such a loop."""
    body = _blocks(kernel.body, like.body)
    return kernel if body is kernel.body else replace(kernel, body=body, template=None)


def _blocks(body: tuple[Item, ...], like: tuple[Item, ...]) -> tuple[Item, ...]:
    """Items in which a loop of so many steps is one over blocks of them where that at the same place in ``like`` is."""
    others = [it for it in like if isinstance(it, Recurrence)]
    if len(others) != sum(isinstance(it, Recurrence) for it in body):
        return body
    left = iter(others)
    new = tuple(_block(it, next(left)) if isinstance(it, Recurrence) else it for it in body)
    return body if all(map(is_, body, new)) else new


def _block(loop: Recurrence, like: Recurrence) -> Recurrence:
    inner = [it for it in like.body if isinstance(it, Recurrence)]
    trip, blocks = loop.axis.extent, like.axis.extent
    if len(inner) == 1 and trip != blocks and trip.is_constant and blocks.is_constant:
        steps = inner[0].axis.extent
        if steps.is_constant and min(steps.const, blocks.const) >= 0 and steps.const * blocks.const == trip.const:
            at = Affine.of(like.axis.name, steps.const) + Affine.of(inner[0].axis.name)
            body = put(_blocks(loop.body, inner[0].body), {loop.axis.name: at})
            return replace(loop, axis=like.axis, body=(Recurrence(inner[0].axis, body),))
    body = _blocks(loop.body, like.body)
    return loop if body is loop.body else replace(loop, body=body)


def _size(kernel: Kernel, name: str) -> Sym:
    return next((s for s in kernel.given if s.name == name), Sym(name, -1))


def _named(like: Kernel, size: Sym) -> Iterator[Names]:
    """What a kernel calls the counters of its loops in parts, in order."""
    assert size.whole is not None
    of, n = size.whole
    loops = list(recurrences(like.body))
    whole = [r for r in loops if r.axis.extent == Affine.of(size.name)]
    rest = [r for r in loops if r.axis.extent == Affine.of(of) - Affine.of(size.name, n)]
    for part, left in zip(whole, rest, strict=False):
        steps = [r for r in part.body if isinstance(r, Recurrence) and r.axis.extent == Affine((), n)]
        if len(steps) == 1:
            yield part.axis.name, steps[0].axis.name, left.axis.name


def _parts(it: Item, size: Sym, names: Iterator[Names]) -> tuple[Item, ...]:
    assert size.whole is not None
    of, n = size.whole
    if not isinstance(it, Recurrence):
        return (it,)
    body = tuple(part for inner in it.body for part in _parts(inner, size, names))
    called = next(names, None) if it.axis.extent == Affine.of(of) else None
    if called is None:
        return (replace(it, body=body),)
    part, step, left = called
    at, begin = it.axis.name, Affine.of(size.name, n)
    inner = Recurrence(Axis(step, Affine((), n)), put(body, {at: Affine.of(part, n) + Affine.of(step)}))
    rest = Recurrence(Axis(left, Affine.of(of) - begin), put(body, {at: begin + Affine.of(left)}))
    return Recurrence(Axis(part, Affine.of(size.name)), (inner,)), rest
