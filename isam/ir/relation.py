"""Relations between integer points by position, for reasoning about values: composition, products, fibres.

Where :mod:`isam.ir.poly` speaks of named dimensions, these speak of the first, the second, ... Names that are no
dimension are parameters, as there. A :class:`Region` is a set of points; a :class:`Rel` relates points to points. All
questions are answered for every value of the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import islpy as isl

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.poly import Map, Set, affine_map, make
from isam.ir.poly_text import encode

_IN, _OUT, _PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param
T = TypeVar("T")
WORK = 2_000_000  # elementary steps of the library that one bounded question may take
MANY = 64  # pieces; of more it is not looked which pairs join


class TooMuch(Exception):
    """A bounded question was not answered within its budget."""


def bounded(question: Callable[[], T], work: int = WORK) -> T:
    """``question()``, ended by :class:`TooMuch` when it takes the library too many steps."""
    ctx = isl.DEFAULT_CONTEXT
    if ctx.get_max_operations():
        return question()
    ctx.reset_operations()
    ctx.set_max_operations(work)
    try:
        return question()
    except isl.Error as e:
        raise TooMuch(str(e)) from None
    finally:
        ctx.set_max_operations(0)
        ctx.reset_operations()


def _tidied(raw: Any) -> Any:
    """In fewer pieces, where it has few enough to compare all pairs of them: a matter of size, not of truth."""
    pieces = raw.n_basic_set() if isinstance(raw, isl.Set) else raw.n_basic_map()
    return raw.coalesce() if pieces <= MANY else raw


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Points of one space."""

    raw: isl.Set

    @staticmethod
    def of(points: Set) -> Region:
        return Region(points.raw)

    @staticmethod
    def point() -> Region:
        """The one point without coordinates."""
        return Region(isl.Set("{ [] }"))

    @property
    def rank(self) -> int:
        return self.raw.dim(isl.dim_type.set)

    def is_empty(self) -> bool:
        return self.raw.is_empty()

    def __and__(self, other: Region) -> Region:
        return Region(self.raw.intersect(other.raw))

    def __or__(self, other: Region) -> Region:
        return Region(_tidied(self.raw.union(other.raw)))

    def __sub__(self, other: Region) -> Region:
        return Region(self.raw.subtract(other.raw))

    def inside(self, other: Region) -> bool:
        return self.raw.plain_is_equal(other.raw) or self.raw.is_subset(other.raw)

    def apart(self, other: Region) -> bool:
        return self.raw.is_disjoint(other.raw)

    def none(self) -> Region:
        """No point of the same space."""
        return Region(isl.Set.empty(self.raw.get_space()))

    def to_nothing(self) -> Rel:
        """Every point related to the one point without coordinates."""
        return Rel(isl.Map.from_domain(self.raw))

    def times(self, other: Region) -> Rel:
        """Every point related to every point of the other region."""
        return Rel(isl.Map.from_domain_and_range(self.raw, other.raw))

    def identity(self) -> Rel:
        return Rel(self.raw.identity())

    def parted(self, first: int) -> Rel:
        """The first coordinates of every point related to the others."""
        whole = isl.Map.from_domain(self.raw)
        return Rel(_nameless(whole.move_dims(_OUT, 0, _IN, first, self.rank - first)))

    def sample(self) -> str:
        return str(self.raw.lexmin() if self.raw.is_bounded() else self.raw.sample())


@dataclass(frozen=True, slots=True, eq=False)
class Rel:
    """Pairs of points."""

    raw: isl.Map

    @staticmethod
    def of(m: Map) -> Rel:
        return Rel(m.raw)

    @staticmethod
    def affine(ins: Sequence[str], rows: Sequence[Affine], over: Region) -> Rel:
        """The function with these rows, for the points of ``over`` (dimensions called ``ins``)."""
        return Rel(affine_map(tuple(ins), tuple(rows)).raw.intersect_domain(over.raw))

    @property
    def outs(self) -> int:
        return self.raw.dim(_OUT)

    @property
    def ins(self) -> int:
        return self.raw.dim(_IN)

    # questions ----------------------------------------------------------------------------------------------------
    def is_empty(self) -> bool:
        return self.raw.is_empty()

    def same(self, other: Rel) -> bool:
        return self.raw.plain_is_equal(other.raw) or self.raw.is_equal(other.raw)

    def inside(self, other: Rel) -> bool:
        return self.raw.is_subset(other.raw)

    def apart(self, other: Rel) -> bool:
        return self.raw.is_disjoint(other.raw)

    def is_function(self) -> bool:
        return self.raw.is_single_valued()

    def is_injective(self) -> bool:
        return self.raw.is_injective()

    def pieces(self) -> int:
        """How many convex pieces it is represented with: a measure of its size."""
        return self.raw.n_basic_map()

    def convex(self) -> list[Rel]:
        """Disjoint convex pieces."""
        return [Rel(isl.Map.from_basic_map(b)) for b in self.raw.make_disjoint().get_basic_maps()]

    # algebra ------------------------------------------------------------------------------------------------------
    def __or__(self, other: Rel) -> Rel:
        return Rel(_tidied(self.raw.union(other.raw)))

    def __and__(self, other: Rel) -> Rel:
        return Rel(self.raw.intersect(other.raw))

    def __sub__(self, other: Rel) -> Rel:
        return Rel(self.raw.subtract(other.raw))

    def inverse(self) -> Rel:
        return Rel(self.raw.reverse())

    def then(self, after: Rel) -> Rel:
        return Rel(self.raw.apply_range(after.raw))

    def beside(self, other: Rel) -> Rel:
        """x -> (y, z) for x -> y here and x -> z in ``other``."""
        return Rel(self.raw.flat_range_product(other.raw))

    def aside(self, other: Rel) -> Rel:
        """(x, u) -> (y, v) for x -> y here and u -> v in ``other``."""
        return Rel(self.raw.flat_product(other.raw))

    def on(self, points: Region) -> Rel:
        return Rel(self.raw.intersect_domain(points.raw))

    def off(self, points: Region) -> Rel:
        return Rel(self.raw.subtract_domain(points.raw))

    def given(self, params: Set) -> Rel:
        """For these values of parameters only."""
        return Rel(self.raw.intersect_params(params.raw.params()))

    def put(self, name: str, value: Affine) -> Rel:
        """With a parameter replaced, by what may mention it."""
        at = self.raw.find_dim_by_name(_PARAM, encode(name))
        if at < 0:
            return self
        old = f"{name} replaced"
        row = Affine.of(old) - value
        here = self.raw.set_dim_name(_PARAM, at, encode(old)).intersect_params(make((), eq=[row]).raw.params())
        return Rel(here.project_out(_PARAM, here.find_dim_by_name(_PARAM, encode(old)), 1))

    def domain(self) -> Region:
        return Region(self.raw.domain())

    def graph(self) -> Region:
        """The pairs as points: inputs first."""
        return Region(self.raw.wrap().flatten())

    def range(self) -> Region:
        return Region(self.raw.range())

    def none(self) -> Rel:
        return Rel(isl.Map.empty(self.raw.get_space()))

    def least(self) -> Rel:
        """The lexicographically least output of every input."""
        return Rel(self.raw.lexmin())

    def greatest(self) -> Rel:
        return Rel(self.raw.lexmax())

    def tidy(self) -> Rel:
        return Rel(_tidied(self.raw))

    def where_equal(self, one: int, two: int) -> Rel:
        """The pairs with the same value in two coordinates of the output."""
        return Rel(self.raw.equate(_OUT, one, _OUT, two))

    def picked(self, order: Sequence[int]) -> Rel:
        """Only these coordinates of the output, in this order."""
        if list(order) == list(range(self.outs)):
            return self
        names = tuple(f"o{k}" for k in range(self.outs))
        rows = [Affine.of(names[k]) for k in order]
        return Rel(self.raw.apply_range(affine_map(names, rows).raw))

    def lifted(self, count: int) -> Rel:
        """The last ``count`` outputs made inputs, behind those there are: (x, z) -> y for x -> (y, z)."""
        n, m = self.ins, self.outs
        return Rel(_nameless(self.raw.move_dims(_IN, n, _OUT, m - count, count)))

    def spread(self) -> tuple[Sequence[int] | None, Rel] | None:
        """For outputs of one coordinate that form an interval for every input: the values that the interval's length
        has (None where they depend on parameters) and the length as a function of the input; None where it is no
        interval."""
        low, high = self.raw.lexmin(), self.raw.lexmax()
        back = affine_map(("o",), [Affine.of("o") - 1]).raw
        if not self.raw.subtract(low).apply_range(back).is_subset(self.raw):
            return None
        further = affine_map(("o",), [Affine.of("o") + 1]).raw
        length = low.neg().sum(high).apply_range(further)
        found = length.range()
        values = None
        if not found.is_empty():
            lo, hi = found.dim_min_val(0), found.dim_max_val(0)
            if lo.is_int() and hi.is_int():
                values = tuple(range(lo.to_python(), hi.to_python() + 1))
        return values, Rel(length)

    def reaching(self, value: int) -> Region:
        """The inputs with that output, of one coordinate."""
        return Region(self.raw.fix_val(_OUT, 0, isl.Val(value)).domain())

    def __str__(self) -> str:
        return str(self.raw)


def _nameless(raw: Any) -> Any:
    """Without the tuple structure that moving dimensions leaves."""
    for kind in (_IN, _OUT):
        if raw.has_tuple_id(kind):
            raw = raw.reset_tuple_id(kind)
    return raw
