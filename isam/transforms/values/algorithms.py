"""Bilinear algorithms: fewer products for small convolutions and matrix products, each a table that is checked.

An algorithm says: over the axes ``axes`` the sum ``y[Y] += x[X] * w[W]`` (indices affine in the axes) may be computed
as ``rank`` products, ``y = C ((A x) * (B w))`` with matrices of rationals. It is that sum exactly when, for every
element of x, w and y, ``sum over m of C[y][m] A[m][x] B[m][w]`` is the number of points of the axes at which the three
meet; :func:`is_exact` counts in rational arithmetic, so a wrong entry cannot hide behind a tolerance.

Sources: F(m, r) is Winograd's minimal filtering algorithm with the matrices of Lavin and Gray, "Fast Algorithms for
Convolutional Neural Networks" (2016), points 0, 1, -1, infinity and 0, 1, -1, 2, -2, infinity; the product of 2 x 2
blocks with seven multiplications is Strassen, "Gaussian Elimination is not Optimal" (1969).

Rounding (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, chapter 23, after Bini and Lotti, 1980;
for Winograd also Barabasz, Anderson, Soodhalter and Gregg, ACM TOMS 2020): with unit roundoff ``u`` every element obeys
``|computed - exact| <= N u / (1 - N u) * |C| sum over channels of (|A| |x|) (|B| |w|)``; ``N`` counts the roundings
on the way of one term (:meth:`Algorithm.roundings`) and the sums may be made in any order. ``amplification`` is by how
much that exceeds the largest product ``|x| |w|`` for one channel: it grows fast with the tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import lcm, prod

from isam.classes import dataclass
from isam.ir.affine import Affine

Index = tuple[Affine, ...]
Matrix = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Algorithm:
    """``axes``: (name, extent); ``x``, ``w``, ``y``: indices over them; ``a``, ``b``: one row per product, one column
    per element of x and w in row-major order; ``c``: one row per element of y, one column per product."""

    name: str
    axes: tuple[tuple[str, int], ...]
    x: Index
    w: Index
    y: Index
    a: Matrix
    b: Matrix
    c: Matrix

    @property
    def rank(self) -> int:
        """How many products it makes."""
        return len(self.a)

    def box(self, index: Index) -> tuple[int, ...]:
        """The shape of what an index reaches."""
        ranges = {n: (0, e - 1) for n, e in self.axes}
        return tuple(row.bounds(ranges)[1] + 1 for row in index)

    def points(self) -> Iterator[dict[str, int]]:
        for values in product(*(range(e) for _, e in self.axes)):
            yield dict(zip((n for n, _ in self.axes), values, strict=True))

    def roundings(self, terms: int) -> int:
        """Roundings on the way of one term, when ``terms`` products are summed into each of the ``rank`` sums."""
        inner = prod(self.box(self.x)) + prod(self.box(self.w))  # additions of the two transforms, products included
        scaled = sum(scale(m) != 1 for m in (self.a, self.b, self.c))
        return inner + 2 + scaled + 1 + terms + self.rank + 2

    @property
    def amplification(self) -> Fraction:
        """How large the sum of absolute values may become, for x and w of size one and a single channel."""
        sizes = [sum(map(abs, p)) * sum(map(abs, q)) for p, q in zip(self.a, self.b, strict=True)]
        return max(sum((abs(c) * s for c, s in zip(row, sizes, strict=True)), Fraction(0)) for row in self.c)


def scale(matrix: Matrix) -> int:
    """The least number that makes every entry whole."""
    return lcm(*(v.denominator for row in matrix for v in row))


def is_exact(al: Algorithm) -> bool:
    """Is the algorithm the bilinear form it claims to be? Rational arithmetic, every entry."""
    meets: dict[tuple[int, int, int], int] = {}
    for point in al.points():
        key = tuple(_flat(i, al.box(i), point) for i in (al.x, al.w, al.y))
        meets[key] = meets.get(key, 0) + 1  # pyright: ignore
    return all(
        sum((c * p[i] * q[j] for c, p, q in zip(row, al.a, al.b, strict=True)), Fraction(0)) == meets.get((i, j, k), 0)
        for k, row in enumerate(al.c)
        for i in range(prod(al.box(al.x)))
        for j in range(prod(al.box(al.w)))
    )


def _flat(index: Index, shape: tuple[int, ...], point: dict[str, int]) -> int:
    at = 0
    for row, size in zip(index, shape, strict=True):
        at = at * size + row.evaluate(point)
    return at


def _matrix(text: str) -> Matrix:
    return tuple(tuple(Fraction(v) for v in line.split()) for line in text.strip().splitlines())


def _filter(m: int, r: int, a: str, b: str, c: str) -> Algorithm:
    """F(m, r): m outputs of a filter with r taps."""
    p, q = Affine.of("p"), Affine.of("r")
    axes = (("p", m), ("r", r))
    return Algorithm(f"winograd-{m}-{r}", axes, (p + q,), (q,), (p,), _matrix(a), _matrix(b), _matrix(c))


F23 = _filter(2, 3, """
 1  0 -1  0
 0  1  1  0
 0 -1  1  0
 0  1  0 -1""", """
 1    0   0
 1/2  1/2 1/2
 1/2 -1/2 1/2
 0    0   1""", """
 1 1  1  0
 0 1 -1 -1""")  # fmt: skip

F43 = _filter(4, 3, """
 4  0 -5  0 1 0
 0 -4 -4  1 1 0
 0  4 -4 -1 1 0
 0 -2 -1  2 1 0
 0  2 -1 -2 1 0
 0  4  0 -5 0 1""", """
  1/4   0     0
 -1/6  -1/6  -1/6
 -1/6   1/6  -1/6
  1/24  1/12  1/6
  1/24 -1/12  1/6
  0     0     1""", """
 1 1  1 1  1 0
 0 1 -1 2 -2 0
 0 1  1 4  4 0
 0 1 -1 8 -8 1""")  # fmt: skip

STRASSEN = Algorithm(
    "strassen", (("i", 2), ("j", 2), ("k", 2)),
    (Affine.of("i"), Affine.of("k")), (Affine.of("k"), Affine.of("j")), (Affine.of("i"), Affine.of("j")),
    _matrix("""
  1 0 0  1
  0 0 1  1
  1 0 0  0
  0 0 0  1
  1 1 0  0
 -1 0 1  0
  0 1 0 -1"""), _matrix("""
  1 0 0  1
  1 0 0  0
  0 1 0 -1
 -1 0 1  0
  0 0 0  1
  1 1 0  0
  0 0 1  1"""), _matrix("""
  1  0 0 1 -1 0 1
  0  0 1 0  1 0 0
  0  1 0 1  0 0 0
  1 -1 1 0  0 1 0"""))  # fmt: skip

ALGORITHMS = (F23, F43, STRASSEN)
