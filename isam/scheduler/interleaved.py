"""Nests that have nothing to do with each other but lines of memory: of the same lines each takes, or writes, elements
that lie between those of the other (real and imaginary parts). In loops of their own they would bring every line twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from isam.caches import LINE
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Use
from isam.scheduler.shared_loops import Nests, depends, rename


def beside(group: Nests, other: Nests, kernel: Kernel) -> Nests | None:
    """The second group's nests with axes named as those of the first, where both have the same loops and share lines;
    else None."""
    first = group[0].extents
    even = all(n.extents.keys() == nests[0].extents.keys() for nests in (group, other) for n in nests)
    if not even or len(first) != len(other[0].extents) or any(depends(group, n) for n in other):
        return None
    for names in _pairs(group, other, kernel):
        theirs = {names.get(b): n for b, n in other[0].extents.items()}
        if len(names) == len(first) and theirs == first:  # else they go along a loop around both
            return tuple(rename(n, names) for n in other)
    return None


def shared_lines(group: Nests, other: Nests, kernel: Kernel) -> frozenset[str]:
    """Buffers of which nests with the same axes touch parts of the same lines."""
    return frozenset(u.buffer for u, v in _uses(group, other) if _between(u, v, kernel)
                     and _terms(u, kernel)[0] == _terms(v, kernel)[0])  # fmt: skip


def _pairs(group: Nests, other: Nests, kernel: Kernel) -> Iterator[dict[str, str]]:
    """For axes of the second those of the first, as accesses to the same lines have them."""
    for u, v in _uses(group, other):
        if _between(u, v, kernel):
            ours, theirs = (sorted(_terms(x, kernel)[0].items(), key=lambda t: t[1]) for x in (u, v))
            names = {b: a for (a, _), (b, _) in zip(ours, theirs, strict=True)}
            if len(names) == len(ours):
                yield names


def _uses(group: Nests, other: Nests) -> Iterator[tuple[Use, Use]]:
    mine = [u for n in group for u in n.uses if not is_literal(u.buffer)]
    yield from ((u, v) for n in other for v in n.uses for u in mine if u.buffer == v.buffer)


def _between(u: Use, v: Use, kernel: Kernel) -> bool:
    """Whether two accesses that run alike through a buffer, with gaps, have elements less than a gap from each other,
    several in a line."""
    (ours, at), (theirs, there) = _terms(u, kernel), _terms(v, kernel)
    steps = sorted(ours.values())
    if not steps or steps != sorted(theirs.values()):
        return False
    return abs(at - there) < steps[0] and steps[0] > 1 and 2 * steps[0] * size_of(u.dtype) <= LINE


def _terms(u: Use, kernel: Kernel) -> tuple[dict[str, int], int]:
    """Where an access goes in a buffer that lies in one piece: elements per step of each axis, and from where; nothing
    where sizes are open."""
    total, step = Affine(), 1
    for row, size in zip(reversed(u.index), reversed(kernel.buffer(u.buffer).shape), strict=True):
        total = total + row * step
        if not size.is_constant:
            return {}, 0
        step *= size.const
    return dict(total.terms), total.const
