"""Put a bilinear algorithm with fewer products in the place of a sum of products: Winograd, Strassen (TR-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from itertools import permutations, product
from math import prod

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    Part,
    buffer_of,
    fresh,
    names_in,
    readable_whole,
    splice,
    written_between,
)
from isam.transforms.factor import product_of, renaming
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.saving import ErrorBound, Saving
from isam.transforms.values.algorithms import ALGORITHMS, F23, Algorithm, Index, Matrix, scale

Values = Mapping[str, Affine | int]


@dataclass(frozen=True)
class Bilinear(Transform):
    """The axes of the algorithm are played by axes of the sum, cut into tiles where they are longer; its matrices
    become temporaries, its transforms sums of products with them. Applied along one image axis and then along the other
    it is the algorithm in two dimensions. Inexact: other roundings, within the bound of ``algorithms.py``; finite,
    because of infinite values it takes differences."""

    algorithm: Algorithm = F23

    equation = "y[Y] += x[X] * w[W]  =>  y = C ((A x) * (B w))   (sum_m C[Y,m] A[m,X] B[m,W] is that form, checked)"
    needs = frozenset({"reassociates", "rounding", "finite"})  # an infinity meets the zeros of the matrices
    kinds = frozenset({"axis-missing"})
    grows = True
    wants = frozenset({"mul", "add"})
    model = frozenset({"division"})
    makes = frozenset({"add", "copy", "div"})
    pays = True

    @property
    def law(self) -> str:  # type: ignore[override]
        return self.algorithm.name

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, product=m, left=k, axes=axes)
            for n in range(len(kernel.statements))
            for m in product_of(kernel, n)
            for k in (0, 1)
            for axes in _candidates(kernel.statements[n], self.algorithm)
            if _tiles(kernel, n, m, k, axes, self.algorithm) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, m = site["sum"], site["product"]
        tiles = _tiles(kernel, n, m, site["left"], site["axes"], self.algorithm) if m in product_of(kernel, n) else None
        if tiles is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        return _Draft(kernel, n, m, tiles, self.algorithm).rewrite()

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction makes as many products side by side as the algorithm, on an axis that the kernel lacks."""
        at = mismatch.about("statement")
        sizes = {size for _, size in mismatch.about("fixed") or ()}
        if not self.answers(mismatch) or self.algorithm.rank not in sizes:
            return ()
        return tuple(s for s in self.sites(kernel) if at in (s["sum"], s["product"]))

    def saves(self, kernel: Kernel, site: Site) -> Saving:
        """Every element of a transform is a dense sum of products with a matrix."""
        al, n = self.algorithm, site["sum"]
        t = _tiles(kernel, n, site["product"], site["left"], site["axes"], al)
        assert t is not None, "a site"
        kept = {m for row in t.y.access.index for m in row.names}
        after = al.rank * prod(a.extent.const for a in t.axes)  # products, then the three transforms
        for o, index in ((t.x, al.x), (t.w, al.w)):
            shape = kernel.buffer(o.access.buffer).shape
            rows = prod(size.const for d, size in enumerate(shape) if d not in o.dims)
            moving = {m for d in o.dims for m in o.access.index[d].names} - set(t.tile.values())
            tiles = rows * prod(a.extent.const for a in t.axes if a.name in moving)
            after += al.rank * tiles * prod(al.box(index))
        after += al.rank * prod(a.extent.const for a in t.axes if a.name in kept) * prod(al.box(al.y))
        return Saving(prod(a.extent.const for a in kernel.statements[n].domain.axes), after)

    def error(self, kernel: Kernel, site: Site) -> ErrorBound:
        """See ``algorithms.py``."""
        al, total = self.algorithm, kernel.statements[site["sum"]]
        sizes = dict(zip(site["axes"], (size for _, size in al.axes), strict=True))
        summed = {n: total.domain.extent(n).const for n in total.reduces}
        terms = prod(e // sizes.get(n, 1) for n, e in summed.items())
        dtype = kernel.buffer(total.dest.buffer).dtype
        return ErrorBound(al.amplification, al.roundings(terms), terms, dtype)


BILINEAR = tuple(Bilinear(a) for a in ALGORITHMS)


def _candidates(total: Statement, al: Algorithm) -> list[tuple[str, ...]]:
    """Axes of the sum that could play those of the algorithm: whole tiles, summed away where the algorithm's are."""
    kept = {n for row in al.y for n in row.names}
    open_axes = set(total.reduces)
    options: list[list[str]] = []
    for name, size in al.axes:
        fits = [a.name for a in total.domain.axes if (a.name in open_axes) != (name in kept) and _cuts(a.extent, size)]
        options.append(fits)
    return [axes for axes in product(*options) if len(set(axes)) == len(axes)]


def _cuts(extent: Affine, size: int) -> bool:
    return extent.is_constant and extent.const > 0 and extent.const % size == 0


@dataclass(frozen=True, slots=True)
class _Operand:
    """An access of the sum: ``dims``: the dimension that plays each row of the algorithm's index."""

    access: Access
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Tiles:
    """All in the sum's names after its axes were cut. ``tile``: the algorithm's axes there; ``axes``: the others."""

    x: _Operand
    w: _Operand
    y: _Operand
    tile: dict[str, str]
    axes: tuple[Axis, ...]
    meanings: tuple[tuple[str, str], ...]


def _tiles(kernel: Kernel, n: int, m: int, k: int, axes: Sequence[str], al: Algorithm) -> _Tiles | None:
    total, made = kernel.statements[n], kernel.statements[m]
    names = renaming(made, total)
    if names is None or total.domain.where or made.domain.where:
        return None
    if not _computes(kernel, total, al) or {buffer_of(x) for x in made.sources} & written_between(kernel, m, n):
        return None
    values, tile, outer, meanings = _cut(kernel, total, axes, al)
    found: list[_Operand] = []
    for access, index in ((made.sources[k], al.x), (made.sources[1 - k], al.w), (total.dest, al.y)):
        renamed = access if access is total.dest else access.substitute(names)
        dims = _rows(renamed.substitute(values), index, tile)
        if dims is None or (access is not total.dest and not readable_whole(kernel, buffer_of(access), m)):
            return None
        moved = renamed.substitute(values)
        assert isinstance(moved, Access)
        found.append(_Operand(moved, dims))
    return _Tiles(found[0], found[1], found[2], tile, outer, meanings)


def _computes(kernel: Kernel, total: Statement, al: Algorithm) -> bool:
    """Integers have no fractions, and unsigned ones no numbers below zero, which every algorithm has."""
    whole = all(scale(matrix) == 1 for matrix in (al.a, al.b, al.c))
    kind = DTYPES[kernel.buffer(total.dest.buffer).dtype].kind
    return kind == "f" or (whole and kind == "i")


def _cut(
    kernel: Kernel, total: Statement, axes: Sequence[str], al: Algorithm
) -> tuple[dict[str, Affine], dict[str, str], tuple[Axis, ...], tuple[tuple[str, str], ...]]:
    """Axes longer than a tile are cut: what they become, the algorithm's axes, all others, meanings."""
    taken, values, tile = names_in(kernel), {}, {}
    rest: dict[str, Axis] = {a.name: a for a in total.domain.axes}
    meanings: list[tuple[str, str]] = []
    for (name, size), axis in zip(al.axes, axes, strict=True):
        extent = rest.pop(axis).extent.const
        if extent == size:
            tile[name] = axis
            continue
        outer, inner = fresh(taken, f"{axis}_o"), fresh(taken, f"{axis}_i")
        tile[name], rest[axis] = inner, Axis(outer, Affine((), extent // size))
        values[axis] = Affine.of(outer, size) + inner
        meanings += [(outer, f"{axis} // {size}"), (inner, f"{axis} % {size}")]
    return values, tile, tuple(rest.values()), tuple(meanings)


def _rows(access: Source, index: Index, tile: Mapping[str, str]) -> tuple[int, ...] | None:
    """The dimension that plays each row of an algorithm's index: the same coefficients of tile axes, and no dimension
    besides that depends on any (MAP-2)."""
    if not isinstance(access, Access):
        return None
    inside = set(tile.values())
    mine = [{n: c for n, c in row.terms if n in inside} for row in access.index]
    wanted = [{tile[n]: c for n, c in row.terms} for row in index]
    busy = [d for d, row in enumerate(mine) if row]
    for dims in permutations(busy, len(wanted)):
        if len(busy) == len(wanted) and all(mine[d] == w for d, w in zip(dims, wanted, strict=True)):
            return dims
    return None


@dataclass
class _Draft:
    """Collects the statements: matrices, transforms, products, the way back into ``y``."""

    kernel: Kernel
    n: int
    m: int
    t: _Tiles
    al: Algorithm
    taken: set[str] = field(default_factory=set)
    made: list[Statement] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    named: list[tuple[str, str]] = field(default_factory=list)

    def rewrite(self) -> Rewrite:
        self.taken = names_in(self.kernel) | {a.name for a in self.t.axes} | set(self.t.tile.values())
        self.named = list(self.t.meanings)
        point = self.axis("m", self.al.rank)
        x = self.transformed(self.t.x, self.al.x, self.al.a, point)
        w = self.transformed(self.t.w, self.al.w, self.al.b, point)
        sums = self.products(x, w, point)
        split = len(self.made)
        self.back(sums, point)
        both = (self.m, self.n)
        parts: dict[int, tuple[Part, ...]] = {
            self.m: tuple((s, both) for s in self.made[:split]),
            self.n: tuple((s, both) for s in self.made[split:]),
        }
        new, origin = splice(self.kernel, parts, buffers=(*self.kernel.buffers, *self.buffers))
        gone = ((self.kernel.statements[self.m].dest.buffer, ()),)
        return Rewrite(new, Correspondence(origin, buffers=gone, meanings=tuple(sorted(self.named))))

    # small things -------------------------------------------------------------------------------------------------
    def axis(self, base: str, extent: Affine | int) -> Axis:
        name = fresh(self.taken, base)
        self.taken.add(name)
        return Axis(name, Affine.lift(extent))

    def temp(self, base: str, axes: Sequence[Axis], meaning: str) -> Access:
        """A new temporary indexed by these axes."""
        name = fresh(self.taken, base)
        self.taken.add(name)
        dtype = self.kernel.buffer(self.t.y.access.buffer).dtype
        self.buffers.append(Buffer(name, tuple(a.extent for a in axes), dtype, "temp", declared=True))
        self.named.append((name, meaning))
        return Access(name, tuple(Affine.of(a.name) for a in axes), self.t.y.access.loc)

    def put(self, axes: Sequence[Axis], dest: Access, op: str, *sources: Source, into: bool = False) -> None:
        self.made.append(Statement(Domain(tuple(axes)), dest, op, sources, into, dest.loc))

    def summed(self, axes: Sequence[Axis], dest: Access, first: Source, second: Source) -> None:
        """``dest += first * second`` over the axes."""
        term = self.temp(f"{dest.buffer}_u", axes, f"terms of {dest.buffer}")
        self.put(axes, term, "mul", first, second)
        self.put(axes, dest, "add", term, into=True)

    def matrix(self, base: str, matrix: Matrix, axes: Sequence[Axis], columns: Sequence[int]) -> Access:
        """A temporary that holds a matrix of whole numbers; its columns as many dimensions as ``columns`` says."""
        at = self.temp(base, axes, f"a matrix of {self.al.name}")
        self.put(axes, at, "copy", Literal(0))
        whole = scale(matrix)
        for row, values in enumerate(matrix):
            for column, value in enumerate(values):
                if value:
                    index = (row, *_unflat(column, columns)) if base != "C" else (*_unflat(row, columns), column)
                    place = replace(at, index=tuple(Affine((), i) for i in index))
                    self.put((), place, "copy", Literal(int(value * whole)))
        return at

    def divided(self, axes: Sequence[Axis], at: Access, matrix: Matrix) -> None:
        """The matrix was written in whole numbers; here what it was too large by is made good."""
        if scale(matrix) != 1:
            self.put(axes, at, "div", at, Literal(scale(matrix)))

    # parts --------------------------------------------------------------------------------------------------------
    def transformed(self, o: _Operand, index: Index, matrix: Matrix, point: Axis) -> Access:
        """``A x``: the dimensions that play the index turn into ``m`` and the axes that move the tile, the others stay.
        Returns the transformed access as the products read it."""
        shape, box = self.kernel.buffer(o.access.buffer).shape, self.al.box(index)
        inside = set(self.t.tile.values())
        base = {d: Affine.from_terms([p for p in row.terms if p[0] not in inside], row.const)
                for d, row in enumerate(o.access.index)}  # fmt: skip
        movers = {n for d in o.dims for n in base[d].names}
        moving = [a for a in self.t.axes if a.name in movers]
        whole = {d: self.axis(f"d{d}", size) for d, size in enumerate(shape) if d not in o.dims}
        element = [self.axis("e", size) for size in box]
        row = [Affine.of(whole[d].name) if d in whole else base[d] for d in range(len(shape))]
        for d, e in zip(o.dims, element, strict=True):
            row[d] = row[d] + e.name
        letter = "A" if matrix is self.al.a else "B"
        factor = self.matrix(letter, matrix, (point, *element), box)
        axes = (point, *whole.values(), *moving)
        into = self.temp(f"{o.access.buffer}_{letter}", axes, f"{o.access.buffer} transformed by {self.al.name}")
        self.put(axes, into, "copy", Literal(0))
        self.summed((*axes, *element), into, factor, replace(o.access, index=tuple(row)))
        self.divided(axes, into, matrix)
        read = (Affine.of(point.name), *(o.access.index[d] for d in whole), *(Affine.of(a.name) for a in moving))
        return replace(into, index=read)

    def products(self, x: Access, w: Access, point: Axis) -> Access:
        """The products, summed over what the algorithm does not sum itself."""
        inside = set(self.t.tile.values())
        kept = {n for row in self.t.y.access.index for n in row.names} - inside
        axes = (point, *(a for a in self.t.axes if a.name in kept))
        into = self.temp("z", axes, f"products of {self.al.name}")
        self.put(axes, into, "copy", Literal(0))
        self.summed((*axes, *(a for a in self.t.axes if a.name not in kept)), into, x, w)
        self.divided(axes, into, self.al.c)
        return into

    def back(self, sums: Access, point: Axis) -> None:
        """``y += C z``: the tile of ``y`` in the axes of the algorithm."""
        box = self.al.box(self.al.y)
        names = [self.t.tile[row.names[0]] for row in self.al.y]
        tile = [Axis(n, Affine((), size)) for n, size in zip(names, box, strict=True)]
        factor = self.matrix("C", self.al.c, (*tile, point), box)
        others = [a for a in self.t.axes if a.name in {n for row in sums.index for n in row.names}]
        self.summed((*others, *tile, point), self.t.y.access, factor, sums)


def _unflat(at: int, shape: Sequence[int]) -> tuple[int, ...]:
    out: list[int] = []
    for size in reversed(shape):
        out.append(at % size)
        at //= size
    return tuple(reversed(out))
