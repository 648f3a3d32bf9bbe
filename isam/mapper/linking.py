"""Which axes of two statements are the same axis: the buffer that joins them says so, row by row.

Names mean nothing here. Two accesses of one buffer touch the same element exactly when all their rows agree, so
the axes correspond wherever the rows can be made equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from isam.ir.affine import Affine

Row = tuple[tuple[tuple[int, int], ...], Affine]  # (class or axis, coefficient) ..., and the rest


def unify(
    known: list[Row], local: list[Row], classes: list[Affine], extents: dict[int, Affine], fixed: list[int]
) -> Iterator[list[int]]:
    """Every way to give the axes in ``local`` the classes in ``known`` so that all rows become equal.

    ``fixed[axis]`` is a class or -1; ``classes`` and ``extents`` are the extents, which must be equal too. Rows with
    one axis come first: they decide.
    """
    if any(k[1] != h[1] or len(k[0]) != len(h[0]) for k, h in zip(known, local, strict=True)):
        return
    pairs = sorted(zip(known, local, strict=True), key=lambda p: len(p[0][0]))

    yield from _row(pairs, 0, list(fixed), classes, extents)


def _row(pairs: list[tuple[Row, Row]], at: int, now: list[int], classes: list[Affine],
         extents: dict[int, Affine]) -> Iterator[list[int]]:  # fmt: skip
    """Every way from a row on."""
    if at == len(pairs):
        yield now
        return
    want = dict(pairs[at][0][0])
    open_axes: list[tuple[int, int]] = []
    for a, c in pairs[at][1][0]:
        if now[a] < 0:
            open_axes.append((a, c))
        elif want.pop(now[a], None) != c:
            return
    if len(open_axes) != len(want):
        return
    for filled in _terms(open_axes, want, now, classes, extents) if want else (now,):
        yield from _row(pairs, at + 1, filled, classes, extents)


def _terms(axes: list[tuple[int, int]], want: dict[int, int], now: list[int], classes: list[Affine],
           extents: dict[int, Affine]) -> Iterator[list[int]]:  # fmt: skip
    """Every way to give the open axes of a row its classes."""
    (a, c), rest = axes[0], axes[1:]
    for k, d in want.items():
        if c == d and k not in now and classes[k] == extents[a]:
            after = list(now)
            after[a] = k
            if rest:
                yield from _terms(rest, {x: y for x, y in want.items() if x != k}, after, classes, extents)
            else:
                yield after
