"""What one instance does of loops that are dealt out, and where one such region ends and the next begins.

A region is a run of dealt loops that wait for nothing from each other: every instance does its iterations of all of
them, one after the other, and when all are done what comes after begins. So every wait of a schedule is kept: those for
other streams by the ends of regions, those within one by the order of its code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.diagnostics import InternalError
from isam.ir.affine import Affine
from isam.schedule.tree import Issue, Loop, Node, distinct, leaves

if TYPE_CHECKING:
    from isam.codegen.llvm.walk import Walk


class Share:
    """Emits dealt loops into the function of a region, for the instance ``%instance``."""

    def __init__(self, walk: Walk):
        self.walk, self.fn = walk, walk.fn

    def dealt(self, loop: Loop, around: Affine | None = None) -> None:
        """``around``: what the dealt loops around add to the instance."""
        deal, trip, walk, fn = loop.deal, loop.trip, self.walk, self.fn
        assert deal is not None
        if len(loop.lo) != 1 or loop.lo[0].div != 1 or trip is None:
            raise InternalError(f"loop '{loop.var}' is dealt out, but it is not known where it begins and ends")
        low = loop.lo[0].expr.substitute(walk.env)
        first = (around or Affine()) + deal.first
        parts = leaves(loop.body)
        inner = [c for c in parts if isinstance(c, Loop) and c.deal is not None]
        if inner and len(inner) != len(parts):
            raise InternalError(f"loop '{loop.var}' is dealt out, and so is a part of its body")
        if inner:
            for t in range(trip):
                walk.env[loop.var] = low + t * loop.step
                for c in inner:
                    self.dealt(c, first + t * deal.stride)
            del walk.env[loop.var]
            return
        walk.labels += 1
        tag = f"{walk.labels}"
        behind = fn.op(f"sub i64 %instance, {walk.addresses.value(first)}")
        t, mine = behind, fn.op(f"icmp ult i64 {behind}, {trip * deal.stride}")
        if deal.stride > 1:
            t = fn.op(f"udiv i64 {behind}, {deal.stride}")
            even = fn.op(f"icmp eq i64 {fn.op(f'urem i64 {behind}, {deal.stride}')}, 0")
            mine = fn.op(f"and i1 {mine}, {even}")
        fn.emit(f"br i1 {mine}, label %mine{tag}, label %other{tag}")
        fn.label(f"mine{tag}")
        walk.addresses.push(fn.buffer(), t)
        walk.env[loop.var] = low + Affine.of(t) * loop.step
        walk.in_place(loop.body)
        del walk.env[loop.var]
        walk.addresses.pop()
        walk.cells.clear()
        fn.emit(f"br label %other{tag}")
        fn.label(f"other{tag}")


def regions(nodes: tuple[Node, ...]) -> Iterator[Node | tuple[Loop, ...]]:
    """A sequence in parts: runs of dealt loops that wait for nothing in the same run, and all else as it is."""
    run: list[Loop] = []
    for n in nodes:
        dealt = isinstance(n, Loop) and n.deal is not None
        if run and (not dealt or _nearest(n) < len(run)):
            yield tuple(run)
            run = []
        if isinstance(n, Loop) and dealt:
            run.append(n)
        else:
            yield n
    if run:
        yield tuple(run)


def _nearest(loop: Node) -> int:
    """How many dealt loops before this one, counted back from it, none of its calls waits for."""
    lags = [w.lag for c in distinct(loop) if isinstance(c, Issue) for w in c.after if w.every]
    return min(lags, default=1 << 30)


