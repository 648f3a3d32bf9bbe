"""The sub-matrix rule for one operand (MAP-2): which rows of the kernel's access play the instruction's dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from isam.ir.affine import Affine
from isam.mapper.dataflow import Form

Rows = tuple[tuple[int, ...], tuple[int, ...]]
"""Per instruction dimension: the kernel's dimension that plays it, and the factor between the two."""
Base = tuple[tuple[tuple[tuple[int, int], ...], Affine], ...]
"""Per buffer dimension what is left of the row at fixed mapped axes: (region axis, coefficient) ..., and the rest."""


def choices(want: Form, have: Form, names: dict[int, int], strided: bool) -> Iterator[Rows]:
    """Every choice of rows ``(dims, steps)``, both per instruction dimension.

    ``names`` gives the chosen kernel columns the instruction's axis numbers. Every row that is not zero in the chosen
    columns must be chosen; a zero row of the instruction may take any row that is zero there. A step is the factor
    between the kernel's row and the instruction's: 1 unless ``strided``.
    """
    rows = [{names[a]: c for a, c in row if a in names} for row in have.rows]
    need = [dict(row) for row in want.rows]
    must = sum(1 for r in rows if r)
    if sum(1 for r in need if r) != must or len(need) > len(rows):
        return

    yield from _chosen(need, rows, strided, (), ())


def _chosen(need: list[dict[int, int]], rows: list[dict[int, int]], strided: bool, dims: tuple[int, ...],
            steps: tuple[int, ...]) -> Iterator[Rows]:  # fmt: skip
    """What begins with these. Not a function within the other: one that calls itself is a cycle, and what it sees stays
    until Python looks for garbage."""
    if len(dims) == len(need):
        yield dims, steps
        return
    for r, row in enumerate(rows):
        if r not in dims:
            step = step_between(need[len(dims)], row, strided)
            if step:
                yield from _chosen(need, rows, strided, (*dims, r), (*steps, step))


def step_between(need: dict[int, int], row: dict[int, int], strided: bool) -> int:
    """The factor from ``need`` to ``row``, or 0: they do not fit."""
    if need == row:
        return 1
    if not strided or need.keys() != row.keys():
        return 0
    factors = {(row[c] // n if row[c] % n == 0 else 0) for c, n in need.items()}
    return factors.pop() if len(factors) == 1 else 0


def base_of(
    own: tuple[Affine, ...], have: Form, dims: tuple[int, ...], steps: tuple[int, ...], classes: list[int],
    owner: dict[int, int],
) -> Base:  # fmt: skip
    """Where the operand begins: rows with the mapped axes at zero, less what the instruction adds itself (``own``)."""
    out = []
    for r, (row, rest) in enumerate(zip(have.rows, have.rests, strict=True)):
        if r in dims:
            d = dims.index(r)
            rest = rest - own[d] * steps[d]
        out.append((tuple(sorted([(classes[a], c) for a, c in row if classes[a] not in owner])), rest))
    return tuple(out)
