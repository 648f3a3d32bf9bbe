"""Integer sets of the language: domains, footprints of accesses, dependences (IR-1, IR-3, IR-8, proof 1, 2, 5, 7)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Domain, Sym
from isam.ir.poly import Map, Set, affine_map, make, relation


def box(names: Sequence[str], extents: Sequence[Affine | int]) -> Set:
    """``0 <= name < extent`` for every dimension; an extent below zero gives the empty set, as zero does."""
    return make(names, ge=box_constraints(names, extents))


def box_constraints(names: Sequence[str], extents: Sequence[Affine | int]) -> list[Affine]:
    """``name >= 0`` and ``extent - name - 1 >= 0``, for every dimension."""
    out: list[Affine] = []
    for n, e in zip(names, extents, strict=True):
        out += [Affine.of(n), Affine.lift(e) - n - 1]
    return out


def context(syms: Iterable[Sym], ge: Iterable[Affine] = ()) -> Set:
    """What is known of the sizes: their ranges, divisibilities and further constraints. A set without dimensions."""
    bounds, eq, exists = list(ge), [], []
    for s in syms:
        bounds.append(Affine.of(s.name) - s.lo)
        if s.hi is not None:
            bounds.append(Affine.lift(s.hi) - s.name)
        if s.whole is not None:
            left = Affine.of(s.whole[0]) - Affine.of(s.name, s.whole[1])
            bounds += [left, s.whole[1] - 1 - left]
        if s.multiple_of != 1:
            exists.append(f"{s.name} / {s.multiple_of}")
            eq.append(Affine.of(s.name) - Affine.of(exists[-1], s.multiple_of))
    return make((), bounds, eq, exists)


def domain_set(domain: Domain, syms: Iterable[Sym] = (), outer: Sequence[tuple[str, Affine]] = ()) -> Set:
    """A statement's domain: its box cut by its ``where``, for the sizes that ``syms`` admit.

    ``outer``: counters of enclosing recurrent loops with their trips; they become the first dimensions.
    """
    names = (*(n for n, _ in outer), *domain.names)
    ge = box_constraints(names, [*(e for _, e in outer), *(a.extent for a in domain.axes)])
    s = make(names, ge=[*ge, *domain.where])
    syms = tuple(syms)
    return s.given(context(syms)) if syms else s


def access_map(access: Access, ins: Sequence[str]) -> Map:
    """From points over ``ins`` to elements of the access's buffer (dimensions named ``"0", "1", ...``)."""
    return affine_map(ins, access.index)


def shape_set(shape: Sequence[Affine]) -> Set:
    """The elements of a buffer: dimensions named ``"0", "1", ...``."""
    return box(tuple(map(str, range(len(shape)))), shape)


def footprint(domain: Set, access: Access) -> Set:
    """The elements that an access touches over a domain."""
    return access_map(access, domain.names).image(domain)


def dependence(first: Set, access: Access, second: Set, other: Access) -> Map:
    """Pairs (point of ``first``, point of ``second``) whose accesses touch the same element of one buffer."""
    if access.buffer != other.buffer:
        return relation(first.names, tuple(n + "'" for n in second.names), ge=[Affine((), -1)])
    one = access_map(access, first.names).on(first)
    two = access_map(other, second.names).on(second)
    return one.then(two.inverse())
