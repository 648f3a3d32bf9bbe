"""Ranges, injectivity and initialisation, for all admitted sizes (IR-8): box arithmetic first, integer sets after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, Loc
from isam.ir.affine import Affine
from isam.ir.infer import located
from isam.ir.kernel import REDUCTIONS, Access, Axis, Kernel, Statement, Sym
from isam.ir.ranges import lower, nonnegative, upper

if TYPE_CHECKING:
    from isam.ir.poly import Set
    from isam.ir.verify import Findings

Add = Callable[[str, str, Loc, str], None]

OWN_ORDER = ("the order inside a statement is free: write another buffer, or put the axis in a 'loop'; "
             "if the old values are meant, read them into a temporary by a statement of its own")  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A statement with the recurrent loops around it, the shapes of what it accesses, in order, and the sizes."""

    s: Statement
    outer: tuple[Axis, ...]
    shapes: tuple[tuple[Affine, ...], ...]
    syms: tuple[Sym, ...]

    @property
    def accesses(self) -> list[Access]:
        """The destination, then what is read."""
        return [self.s.dest, *(x for x in self.s.sources if isinstance(x, Access))]

    def points(self) -> Set:
        """The statement's points; the counters of the loops around it are the first dimensions."""
        from isam.ir.poly_domain import domain_set

        return domain_set(self.s.domain, self.syms, tuple((a.name, a.extent) for a in self.outer))


def check_points(f: Findings) -> None:
    """Examines every statement whose structure is sound."""
    k = f.kernel
    for at, (s, outer) in enumerate(located(k.body)):
        if at not in f.broken:
            shapes = (k.by_name[x.buffer].shape for x in (s.dest, *s.sources) if isinstance(x, Access))
            place = Place(s, outer, tuple(shapes), k.syms)
            if not _sound(place):
                _examine(place, f.add)
    if not f.broken:
        from isam.ir.verify_order import check_written

        check_written(f)


@lru_cache(maxsize=1024)
def _sound(p: Place) -> bool:
    """Whether nothing is wrong there: chains of kernels differ in few of their statements."""
    found: list[str] = []
    _examine(p, lambda code, *_: found.append(code))
    return not found


def _examine(p: Place, add: Add) -> None:
    for a, shape in zip(p.accesses, p.shapes, strict=True):
        _range(p, a, shape, add)
    _injective(p, add)
    _own_order(p, add)


def _range(p: Place, a: Access, shape: Sequence[Affine], add: Add) -> None:
    """Every index of the access lies in its dimension."""
    axes, syms = (*p.outer, *p.s.domain.axes), p.syms
    for d, (row, dim) in enumerate(zip(a.index, shape, strict=True)):
        low, high = lower(row, axes), dim - 1 - upper(row, axes)
        if nonnegative(low, syms, axes) and nonnegative(high, syms, axes):
            continue
        for outside, what in ((-row - 1, "falls below 0"), (row - dim, f"reaches the size {dim}")):
            bad = p.points().where([outside])
            if not bad.is_empty():
                add("V430", f"index {row} (dimension {d}) of '{a.buffer}' {what}: it leaves 0 .. {dim - 1}", a.loc,
                    f"for example with {_example(bad, axes, syms)}; restrict it with 'where', or change the shape")
                break


def _example(bad: Set, axes: Sequence[Axis], syms: Sequence[Sym]) -> str:
    point = bad.point() or {}
    order = [s.name for s in syms] + [a.name for a in axes]
    return ", ".join(f"{n} = {point[n]}" for n in order if n in point) or "any sizes"


def _injective(p: Place, add: Add) -> None:
    """A plain assignment (and a select) writes each element at most once."""
    s = p.s
    if s.accumulate and s.op in REDUCTIONS:
        return
    own = set(s.domain.names)
    mentioned = [own & set(row.names) for row in s.dest.index]
    if own <= {n for names in mentioned if len(names) == 1 for n in names}:
        return  # each axis has a dimension to itself
    missing = [n for n in s.reduces if not _single(s.domain.extent(n))]
    if missing and not s.domain.where:
        n = missing[0]
        add("V431", f"'{s.dest.buffer}' is assigned once per '{n}', which its index does not mention", s.dest.loc,
            f"accumulate with += (or max=, min=, *=), or leave '{n}' out of the forall")
        return
    from isam.ir.poly_domain import access_map

    points = p.points()
    tagged = Access(s.dest.buffer, (*(Affine.of(a.name) for a in p.outer), *s.dest.index))
    if not access_map(tagged, points.names).on(points).is_injective():
        add("V431", f"two points of this statement assign the same element of '{s.dest.buffer}'", s.dest.loc,
            "accumulate with += (or max=, min=, *=), or index it so that each point has its own element")


def _single(extent: Affine) -> bool:
    return extent.is_constant and extent.const <= 1


def _own_order(p: Place, add: Add) -> None:
    """Inside a statement the order is free (IR-4): no point may read what another one writes."""
    s = p.s
    for a in s.sources:
        if not isinstance(a, Access) or a.buffer != s.dest.buffer:
            continue
        from isam.ir.normal import one_to_one

        if a.index == s.dest.index and (one_to_one(s) or not s.accumulate):
            continue
        from isam.ir.poly import affine_map
        from isam.ir.poly_domain import access_map

        points = p.points()
        outer = tuple(Affine.of(x.name) for x in p.outer)
        one = access_map(Access("", (*outer, *s.dest.index)), points.names).on(points)
        two = access_map(Access("", (*outer, *a.index)), points.names).on(points)
        same = affine_map(points.names, [Affine.of(n) for n in points.names], points.names)
        if not (one.then(two.inverse()) - same).is_empty():
            add("V433", f"this statement reads {a} while another of its points writes it", a.loc, OWN_ORDER)


def as_written(s: Statement, outer: tuple[Axis, ...], syms: tuple[Sym, ...]) -> list[Diagnostic]:
    """What a statement as it was written, with all that its right side reads as its sources, reads of what other points
    of it write: parts that it is broken into read some of that before anything is written, and do not show it."""
    found: list[Diagnostic] = []
    _own_order(Place(s, outer, (), syms), lambda *told: found.append(Diagnostic(*told)))
    return found


def covers(s: Statement, kernel: Kernel) -> bool:
    """Whether a plain assignment plainly writes its whole buffer: one axis per dimension, over its full extent."""
    shape = kernel.buffer(s.dest.buffer).shape
    if s.accumulate or s.domain.where or len(s.domain.axes) != len(shape):
        return False
    if len({row.terms for row in s.dest.index}) != len(shape):
        return False
    return all(
        row.const == 0 and len(row.terms) == 1 and row.terms[0][1] == 1 and row.terms[0][0] in s.domain.names
        and s.domain.extent(row.terms[0][0]) == dim
        for row, dim in zip(s.dest.index, shape, strict=True)
    )
