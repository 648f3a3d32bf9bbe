"""What domains that are no boxes have in common: a plan for one block of them is walked over many, in loops that may
have no iteration."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Loop, Seq
from isam.scheduler.nests import Nest
from isam.scheduler.state import Key
from isam.scheduler.trim import Env

if TYPE_CHECKING:
    from isam.scheduler.plan import Members
    from isam.scheduler.walk import Walk

BLOCKS = (64, 16)  # elements of a block along each axis, from the first cut to the last


@dataclass(frozen=True, slots=True)
class Clip:
    """Of a box only so much: of the ``n``-th element of it along ``axis`` those along ``other`` from one number to
    before another one, both from where the box begins."""

    axis: str
    other: str
    ranges: tuple[tuple[int, int], ...]

    def of(self, at: int, start: int, n: int) -> tuple[int, int]:
        """Where ``n`` elements from ``start`` on begin, and how many of them there are, for the element ``at``."""
        low, high = self.ranges[at]
        begin = max(start, low)
        return begin, max(0, min(start + n, high) - begin)


class BlockedDomain(Protocol):
    """A domain that is no box, in blocks."""

    def block(self, nest: Nest) -> Nest:
        """A nest over one block of it: what a plan is made for."""
        ...

    def walk(self, walk: Walk, env: Env, members: Members) -> None:
        """That plan over all of it."""
        ...


def of_block(nest: Nest, axes: Iterable[str], size: int = BLOCKS[0]) -> Nest:
    """The nest over one block along some axes."""
    least = {a: Affine((), min(size, nest.length(a))) for a in axes}
    others = {a: at for a, at in nest.origin.items() if a not in least}
    return replace(nest, extents={**nest.extents, **least}, origin=others, where=())


def takes_any(nest: Nest, axis: str) -> bool:
    """Whether calls take any number of elements of an axis, up to their most."""
    m = nest.mapped.get(axis)
    return m is None or (m.limit is not None and m.unit == 1)


class Blocks:
    """Walks a plan for one block over a domain. Nothing stays resident over a loop: it may have no iteration."""

    def __init__(self, walk: Walk, env: Env, members: Members):
        self.walk, self.env, self.members = walk, env, members
        self.loops = 0

    def loop(self, axis: str, lo: tuple[Bound, ...], hi: tuple[Bound, ...], step: int, start: Affine,
             values: tuple[int, int], body: Callable[[Affine], None], held: Collection[Key] = ()) -> None:  # fmt: skip
        """``body`` for each value of a new variable: ``start`` and every ``step`` from there, all within ``values``.
        ``held``: what is near before it, in every iteration, and behind it."""
        walk, scope = self.walk, self.walk.run.scope
        self.loops += 1
        var = f"{axis}.w{self.loops}"
        walk.empty(held)
        inside = walk.lives.within(axis, self.members)
        with inside, scope.recording() as nodes, scope.variable(var, start, step, values):
            body(Affine.of(var))
            walk.empty(held)
        scope.out.append(Loop(var, lo, hi, step, Seq(tuple(nodes)), axis=axis))

    def box(self, at: Env, small: bool, clip: Clip | None = None) -> None:
        """The plan where some axes are."""
        self.walk.box({**self.env, **at}, self.members, small, clip)
