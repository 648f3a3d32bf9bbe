"""Integer sets and maps by named dimensions: the only file that knows islpy.

A :class:`Set` is a set of integer points whose dimensions carry names (axes of a domain, dimensions of a buffer). Any
other name met in an affine expression is a *parameter*: a size, or the counter of an enclosing loop. A statement about
a set (``is_empty``, ``is_subset``) is a statement for **all** values of the parameters that its constraints admit, so
restrict them first (``given(poly_domain.context(syms))``). A :class:`Map` relates two such spaces.

>>> box = make(("i", "j"), ge=[Affine.of("i"), Affine.of("M") - "i" - 1, Affine.of("j"), Affine.of("i") - "j"])
>>> box.fix(M=3).count()
6
>>> box.project(("j",)).bounds("j")
(Affine('0'), Affine('M - 1'))

Cost: building a set takes about 0.1 ms, a question about it microseconds. Dimensions are aligned by name. islpy
objects are not picklable and one context is shared, under CPython's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import islpy as isl

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.poly_text import constraints, decode, encode, params_text, term

_PARAM, _SET = isl.dim_type.param, isl.dim_type.set
Names = tuple[str, ...]
Rows = tuple[Affine, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Set:
    """Integer points over ``names``; ``raw`` is the isl object (for this package's own use: treat as opaque)."""

    names: tuple[str, ...]
    raw: isl.Set

    # questions: for all admitted parameter values -----------------------------------------------------------------
    def is_empty(self) -> bool:
        return self.raw.is_empty()

    def is_subset(self, other: Set) -> bool:
        return self.raw.is_subset(other.align(self.names).raw)

    def is_equal(self, other: Set) -> bool:
        return self.raw.is_equal(other.align(self.names).raw)

    def is_disjoint(self, other: Set) -> bool:
        return self.raw.is_disjoint(other.align(self.names).raw)

    def __bool__(self) -> bool:
        raise TypeError("a Set has no truth value: ask is_empty()")

    # algebra ------------------------------------------------------------------------------------------------------
    def __or__(self, other: Set) -> Set:
        return Set(self.names, self.raw.union(other.align(self.names).raw))

    def __and__(self, other: Set) -> Set:
        return Set(self.names, self.raw.intersect(other.align(self.names).raw))

    def __sub__(self, other: Set) -> Set:
        return Set(self.names, self.raw.subtract(other.align(self.names).raw))

    def align(self, names: Sequence[str]) -> Set:
        """The same set with its dimensions in the order of ``names``. Raises ``ValueError`` if the names differ."""
        names = tuple(names)
        if names == self.names:
            return self
        if sorted(names) != sorted(self.names):
            raise ValueError(f"sets over different dimensions: {self.names} and {names}")
        return self.project(names)

    def project(self, keep: Sequence[str]) -> Set:
        """The shadow on the dimensions ``keep``, in that order (parameters stay)."""
        rows = [Affine.of(n) for n in keep]
        return affine_map(self.names, rows, tuple(keep)).image(self)

    def rename(self, **new: str) -> Set:
        return Set(tuple(new.get(n, n) for n in self.names), self.raw)

    def as_dims(self, params: Sequence[str]) -> Set:
        """The same points with the parameters ``params`` made dimensions, in front (loop counters of a domain)."""
        raw = self.raw
        for k, n in enumerate(params):
            at = raw.find_dim_by_name(_PARAM, encode(n))
            if at < 0:
                raw = raw.insert_dims(_SET, k, 1)
            else:
                raw = raw.move_dims(_SET, k, _PARAM, at, 1).reset_tuple_id()
        return Set((*params, *self.names), raw)

    def given(self, about_params: Set) -> Set:
        """Restricted to parameter values that ``about_params`` (a set without dimensions) admits."""
        return Set(self.names, self.raw.intersect_params(about_params.raw.params()))

    def fix(self, **values: int) -> Set:
        """Parameters or dimensions held at a value (a held dimension stays a dimension)."""
        eq = [Affine.of(n) - v for n, v in values.items()]
        return self & make(self.names, eq=eq)

    def where(self, ge: Iterable[Affine] = (), eq: Iterable[Affine] = ()) -> Set:
        """Cut by further affine constraints over dimensions and parameters."""
        return self & make(self.names, ge=ge, eq=eq)

    def params(self) -> Set:
        """The parameter values for which there is a point: a set without dimensions."""
        return Set((), isl.Set.from_params(self.raw.params()))

    # points -------------------------------------------------------------------------------------------------------
    @property
    def param_names(self) -> tuple[str, ...]:
        return tuple(decode(n) for n in self.raw.get_var_names(_PARAM))

    def point(self) -> dict[str, int] | None:
        """One point, parameters included: the lexicographically least where there is one (sizes first), or ``None``.

        The counterexample to show a user: ``(written - inside).point()``.
        """
        if self.raw.is_empty():
            return None
        params = self.param_names
        flat = self.as_dims(params)
        try:
            p = flat.raw.lexmin().sample_point()
        except isl.Error:  # unbounded below
            p = flat.raw.sample_point()
        try:
            return {n: p.get_coordinate_val(_SET, k).to_python() for k, n in enumerate(flat.names)}
        except TypeError:  # no value: the library has reached its limit of operations just here
            raise isl.Error("a point is not told within the operations that are admitted") from None

    def lexmin(self) -> Set:
        """The first point, in lexicographic order of the dimensions, for each value of the parameters."""
        return Set(self.names, self.raw.lexmin())

    def lexmax(self) -> Set:
        return Set(self.names, self.raw.lexmax())

    def count(self) -> int:
        """How many points a bounded set without parameters has. Raises ``ValueError`` where that is not a number."""
        raw = self._concrete()
        if raw is None:
            raise ValueError("the number of points depends on sizes: fix them first")
        return sum(_count_basic(p) for p in _basic(raw.make_disjoint()))

    def _concrete(self) -> isl.Set | None:
        """Without parameters, if they have one value at most or none matters."""
        n = self.raw.dim(_PARAM)
        open_ = self.raw.involves_dims(_PARAM, 0, n) and not self.raw.is_empty()
        if open_ and not self.params().as_dims(self.param_names).raw.is_singleton():
            return None
        return self.raw.project_out(_PARAM, 0, n) if n else self.raw

    def points(self) -> list[tuple[int, ...]]:
        """Every point of a bounded set, sorted. For small sets. Raises ``ValueError`` if they depend on a size."""
        raw = self._concrete()
        if raw is None:
            raise ValueError("the points depend on sizes: fix them first")
        found: list[tuple[int, ...]] = []
        n = len(self.names)

        def take(p: Any) -> None:
            found.append(tuple(p.get_coordinate_val(_SET, k).to_python() for k in range(n)))

        raw.foreach_point(take)
        return sorted(found)

    # boxes --------------------------------------------------------------------------------------------------------
    def bounds(self, name: str) -> tuple[Affine, Affine] | None:
        """Least and largest value of a dimension, inclusive, where both are affine in the parameters.

        ``None``: the set is empty, unbounded, or a bound needs a case distinction or a division.
        """
        if self.raw.is_empty():
            return None
        k = self.names.index(name)
        if not (self.raw.dim_has_lower_bound(_SET, k) and self.raw.dim_has_upper_bound(_SET, k)):
            return None
        admitted = self.raw.params()
        lo = _single_affine(self.raw.dim_min(k), admitted)
        hi = _single_affine(self.raw.dim_max(k), admitted)
        return None if lo is None or hi is None else (lo, hi)

    def boxes(self, limit: int = 64) -> tuple[tuple[tuple[int, int], ...], ...] | None:
        """A concrete set as disjoint boxes, each a tuple of inclusive (low, high) per dimension, in sorted order.

        Limits: ``None`` when more than ``limit`` boxes were needed (a large triangle), or when a size is not fixed. A
        padded convolution's domain gives one box per combination of clipped filter positions.
        """
        raw = self._concrete()
        if raw is None:
            return None
        if raw.is_empty():
            return ()
        from isam.ir.poly_boxes import split

        found = split(Set(self.names, raw), limit)
        return None if found is None else tuple(sorted(found))

    def interval(self, name: str) -> tuple[int, int] | None:
        """Least and largest value of a dimension of a set without parameters; ``None`` if it has none."""
        k = self.names.index(name)
        lo, hi = self.raw.dim_min_val(k), self.raw.dim_max_val(k)
        return (lo.to_python(), hi.to_python()) if lo.is_int() and hi.is_int() else None

    def slice(self, name: str, value: int) -> Set:
        """The points whose dimension ``name`` is ``value``, without that dimension."""
        k = self.names.index(name)
        cut = self.raw.fix_val(_SET, k, isl.Val(value)).project_out(_SET, k, 1)
        return Set(self.names[:k] + self.names[k + 1 :], cut)

    def __str__(self) -> str:
        return f"{list(self.names)}: {self.raw}"


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """A relation between points over ``ins`` and points over ``outs``."""

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    raw: isl.Map

    def image(self, points: Set) -> Set:
        """Everything that a point of ``points`` is related to."""
        return Set(self.outs, points.align(self.ins).raw.apply(self.raw))

    def preimage(self, points: Set) -> Set:
        return self.inverse().image(points)

    def inverse(self) -> Map:
        return Map(self.outs, self.ins, self.raw.reverse())

    def then(self, after: Map) -> Map:
        """First this relation, then ``after`` (whose inputs are this one's outputs, by position)."""
        return Map(self.ins, after.outs, self.raw.apply_range(after.raw))

    def domain(self) -> Set:
        return Set(self.ins, self.raw.domain())

    def range(self) -> Set:
        return Set(self.outs, self.raw.range())

    def on(self, points: Set) -> Map:
        """Restricted to inputs in ``points``."""
        return Map(self.ins, self.outs, self.raw.intersect_domain(points.align(self.ins).raw))

    def onto(self, points: Set) -> Map:
        """Restricted to outputs in ``points``."""
        return Map(self.ins, self.outs, self.raw.intersect_range(points.align(self.outs).raw))

    def given(self, about_params: Set) -> Map:
        return Map(self.ins, self.outs, self.raw.intersect_params(about_params.raw.params()))

    def fix(self, **values: int) -> Map:
        """Parameters held at a value."""
        return self.given(make((), eq=[Affine.of(n) - v for n, v in values.items()]))

    def __and__(self, other: Map) -> Map:
        return Map(self.ins, self.outs, self.raw.intersect(other.raw))

    def __or__(self, other: Map) -> Map:
        return Map(self.ins, self.outs, self.raw.union(other.raw))

    def __sub__(self, other: Map) -> Map:
        return Map(self.ins, self.outs, self.raw.subtract(other.raw))

    def __bool__(self) -> bool:
        raise TypeError("a Map has no truth value: ask is_empty()")

    def is_empty(self) -> bool:
        return self.raw.is_empty()

    def is_subset(self, other: Map) -> bool:
        return self.raw.is_subset(other.raw)

    def is_equal(self, other: Map) -> bool:
        return self.raw.is_equal(other.raw)

    def is_injective(self) -> bool:
        """No two inputs share an output (for every admitted value of the parameters)."""
        return self.raw.is_injective()

    def is_single_valued(self) -> bool:
        return self.raw.is_single_valued()

    def distances(self) -> Set:
        """The differences output minus input (dimension counts must agree): dependence distances."""
        return Set(self.ins, self.raw.deltas())

    def pairs(self, suffix: str = "'") -> Set:
        """The relation as a set of pairs; output names that clash with input names get ``suffix``."""
        outs = tuple(n + suffix if n in self.ins else n for n in self.outs)
        return Set((*self.ins, *outs), self.raw.wrap().flatten())

    def point(self, suffix: str = "'") -> dict[str, int] | None:
        """One related pair with the parameters, or ``None``: see :meth:`Set.point`."""
        return self.pairs(suffix).point()

    def __str__(self) -> str:
        return f"{list(self.ins)} -> {list(self.outs)}: {self.raw}"


# building ---------------------------------------------------------------------------------------------------------
def make(names: Sequence[str], ge: Iterable[Affine] = (), eq: Iterable[Affine] = (), exists: Sequence[str] = ()) -> Set:
    """The points over ``names`` where every ``ge`` is >= 0 and every ``eq`` is 0, for some integers ``exists``."""
    return _make(tuple(names), tuple(ge), tuple(eq), tuple(exists))


@lru_cache(maxsize=8192)
def _make(names: Names, ge: Rows, eq: Rows, exists: Names) -> Set:
    dims = {n: f"d{k}" for k, n in enumerate(names)}
    params = params_text((*ge, *eq), dims | dict.fromkeys(exists, ""))
    return Set(names, isl.Set(f"{params}{{ [{', '.join(dims.values())}]{constraints(ge, eq, exists, dims)} }}"))


def relation(ins: Sequence[str], outs: Sequence[str], ge: Iterable[Affine] = (), eq: Iterable[Affine] = (),
             exists: Sequence[str] = ()) -> Map:  # fmt: skip
    """The relation cut out by affine constraints over inputs, outputs (all names different) and parameters."""
    return _relation(tuple(ins), tuple(outs), tuple(ge), tuple(eq), tuple(exists))


@lru_cache(maxsize=8192)
def _relation(ins: Names, outs: Names, ge: Rows, eq: Rows, exists: Names) -> Map:
    if set(ins) & set(outs):
        raise ValueError(f"inputs and outputs share names: {sorted(set(ins) & set(outs))}")
    dims = {n: f"d{k}" for k, n in enumerate(ins + outs)}
    left, right = (", ".join(dims[n] for n in side) for side in (ins, outs))
    params = params_text((*ge, *eq), dims | dict.fromkeys(exists, ""))
    return Map(ins, outs, isl.Map(f"{params}{{ [{left}] -> [{right}]{constraints(ge, eq, exists, dims)} }}"))


def affine_map(ins: Sequence[str], rows: Sequence[Affine], outs: Sequence[str] | None = None) -> Map:
    """The function whose k-th output is ``rows[k]``; outputs are named ``"0", "1", ...`` unless said otherwise."""
    return _affine_map(tuple(ins), tuple(rows), tuple(outs) if outs is not None else tuple(map(str, range(len(rows)))))


@lru_cache(maxsize=8192)
def _affine_map(ins: Names, rows: Rows, outs: Names) -> Map:
    dims = {n: f"d{k}" for k, n in enumerate(ins)}
    right = ", ".join(term(r, dims) for r in rows)
    return Map(ins, outs, isl.Map(f"{params_text(rows, dims)}{{ [{', '.join(dims.values())}] -> [{right}] }}"))


def from_bounds(names: Sequence[str], bounds: Sequence[tuple[Affine | int, Affine | int]]) -> Set:
    """The box with inclusive bounds per dimension."""
    ge: list[Affine] = []
    for n, (lo, hi) in zip(names, bounds, strict=True):
        ge += [Affine.of(n) - lo, Affine.lift(hi) - n]
    return make(names, ge=ge)


# isl's representation ---------------------------------------------------------------------------------------------
def _basic(raw: isl.Set) -> list[isl.BasicSet]:
    return list(raw.get_basic_sets())


def _count_basic(piece: isl.BasicSet) -> int:
    """Counts the box factor of a piece by multiplication and only the rest point by point."""
    raw = isl.Set.from_basic_set(piece)
    if raw.is_empty():
        return 0
    total = 1
    for k in reversed(range(raw.dim(_SET))):
        lo, hi = raw.dim_min_val(k), raw.dim_max_val(k)
        if not (lo.is_int() and hi.is_int()):
            raise ValueError("an unbounded set has no number of points")
        free = raw.drop_constraints_involving_dims(_SET, k, 1).lower_bound_val(_SET, k, lo).upper_bound_val(_SET, k, hi)
        if free.is_equal(raw):
            total *= hi.to_python() - lo.to_python() + 1
            raw = raw.project_out(_SET, k, 1)
    return total * raw.count_val().to_python()


def _single_affine(value: isl.PwAff, admitted: isl.Set) -> Affine | None:
    pieces = value.gist_params(admitted).coalesce().get_pieces()
    aff = pieces[0][1] if len(pieces) == 1 else None
    if aff is None or aff.dim(isl.dim_type.div) or not aff.get_denominator_val().is_one():
        return None
    terms = {decode(aff.get_dim_name(_PARAM, k)): aff.get_coefficient_val(_PARAM, k).to_python()
             for k in range(aff.dim(_PARAM))}  # fmt: skip
    return Affine.from_terms(terms, aff.get_constant_val().to_python())
