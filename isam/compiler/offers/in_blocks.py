"""Sums for all steps of a recurrent loop, made for a block of steps at a time.

What is made for all steps before a loop goes to memory and comes back, where no cache holds it. Made for a block of
steps, just before these, it comes from a cache. But the other factor of the sum is read again for every block: so a
block has several hundred rows, and the time for both is weighed before anything is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.compiler.offers.subject import one
from isam.ir.kernel import Access, Kernel, Statement
from isam.system.graph import System
from isam.system.hierarchy import given, near_cache
from isam.transforms.statements.hoist import LoopAt, loops

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

ROWS = 256  # of a product that a block has at least


@one
def in_blocks(of: Subject) -> Steps:
    """Steps by which sums before a loop, also those that may leave it, are made block by block."""
    from isam.compiler.offers.hoisted import taken_out
    from isam.transforms.law import taken

    kernel, ahead = of.kernel, taken_out(of.kernel)
    for step in ahead:
        kernel = taken(step.transform, kernel, step.site).kernel
    for n, loop in enumerate(loops(kernel)):
        steps = _steps(list(_sums(kernel, loop)), loop.item.axis.extent.const, of.system)
        if steps and (way := _split(kernel, n, steps)):
            return (*ahead, *way)
    return ()


@lru_cache(maxsize=16)
def _split(kernel: Kernel, loop: int, steps: int) -> Steps:
    """Judged once for a kernel that is compiled for several machines, or again and again to be tuned. What the judge
    of rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.statements import Sink, SplitLoop

    way, sink = Way(kernel, 0), Sink()
    with way.attempt():
        way.take(SplitLoop((steps,)), Site.of(loop=loop, steps=steps))
        for site in [s for s in sink.sites(way.kernel) if s["loop"] == loop][:1]:
            way.take(sink, site)
            return way.steps
    return ()


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum before a loop: ``kept``: bytes of what it makes for all steps; ``again``: of the factor that is the same
    for all of them; ``rows``: of what one step takes, each with all of that factor."""

    kept: int
    again: int
    rows: int


def _steps(sums: list[_Sum], trip: int, system: System) -> int:
    """How many steps a block has; 0 where nothing is won."""
    kept, again = sum(s.kept for s in sums), sum(s.again for s in sums)
    rows = max((s.rows for s in sums), default=0)
    steps = next((n for n in range(2, trip) if trip % n == 0 and n * rows >= ROWS), 0)
    if not steps or kept <= near_cache(system):
        return 0
    blocks = trip // steps
    near = given(kept // blocks + again, system)
    through = 3 * kept  # brought, written, read
    return steps if through / near + (blocks - 1) * again / near < through / given(kept, system) else 0


def _sums(kernel: Kernel, loop: LoopAt) -> Iterator[_Sum]:
    """The sums into temporaries before a loop of which it reads, at each step, what lies there along a dimension."""
    if not loop.item.axis.extent.is_constant:
        return
    along = dict[str, int]()
    for x in (x for i in loop.inside for x in kernel.statements[i].reads if kernel.buffer(x.buffer).role == "temp"):
        found = (d for d, row in enumerate(x.index) if row.coefficient(loop.item.axis.name))
        along.setdefault(x.buffer, next(found, -1))
    for s in kernel.statements[: loop.start]:
        dim = along.get(s.dest.buffer, -1)
        names = s.dest.index[dim].names if dim >= 0 and s.accumulate and s.reduces else ()
        if len(names) == 1:
            yield _sum(kernel, s, names[0])


def _sum(kernel: Kernel, s: Statement, step: str) -> _Sum:
    going, rest = list[Access](), list[Access]()
    for x in _factors(kernel, s):
        (going if any(step in row.names for row in x.index) else rest).append(x)
    axes = {n for x in going for row in x.index for n in row.names} & set(s.domain.names) - {step, *s.reduces}
    rows = prod(e.const if (e := s.domain.extent(n)).is_constant else 1 for n in axes)
    again = sum(kernel.buffer(_original(kernel, x.buffer)).bytes or 0 for x in rest)
    return _Sum(kernel.buffer(s.dest.buffer).bytes or 0, again, rows)


def _factors(kernel: Kernel, s: Statement) -> list[Access]:
    """What a sum adds up, or where that is a product over the same points, what it multiplies."""
    found = [x for x in s.sources if isinstance(x, Access)]
    made = [kernel.statements[i] for x in found for i in kernel.writers.get(x.buffer, ())]
    products = [p for p in made if p.op == "mul" and p.domain == s.domain]
    return [x for p in products for x in p.sources if isinstance(x, Access)] or found


def _original(kernel: Kernel, name: str) -> str:
    """What a buffer is a copy of in another type."""
    made = [kernel.statements[i] for i in kernel.writers.get(name, ())]
    sources = [x.buffer for p in made if p.op in ("copy", "cast") for x in p.sources if isinstance(x, Access)]
    return _original(kernel, sources[0]) if len(made) == len(sources) == 1 else name
