"""Facts that are alike but for equal distances, as one fact about all of them: four moves side by side in a loop leave
what one move in a loop with a quarter of the step would.

Sound: a family says what its members say, no more and no less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.proof.boxes import Box
from isam.proof.context import Var
from isam.proof.state import Fact
from isam.schedule.tree import Bound

Widths = tuple[int, ...]


class Shape(NamedTuple):
    """A fact with its variables renamed by position, and the numbers in it taken out."""

    offset: Affine
    box: Box
    over: tuple[Var, ...]
    starts: tuple[int, ...]  # of every dimension
    base: int  # of the offset


def shape_of(f: Fact) -> Shape | None:
    """None for a fact that is not plain: with holes, in cells, with a side that is no number."""
    if f.holes or f.cells is not None or any(not (hi - lo).is_constant for lo, hi in f.box):
        return None
    names = {v.name: Affine.of(f"~{n}") for n, v in enumerate(f.over)}
    over = tuple(_renamed(v, f"~{n}", names) for n, v in enumerate(f.over))
    box = tuple((lo.substitute(names), hi.substitute(names)) for lo, hi in f.box)
    starts, offset = tuple(lo.const for lo, _ in box), f.offset.substitute(names)
    bare = tuple((lo - n, hi - n) for (lo, hi), n in zip(box, starts, strict=True))
    return Shape(offset - offset.const, bare, over, starts, offset.const)


def _renamed(v: Var, name: str, names: dict[str, Affine]) -> Var:
    origin = None if v.origin is None else v.origin.substitute(names)
    return replace(v, name=name, lo=_named(v.lo, names), hi=_named(v.hi, names), origin=origin)


def _named(bounds: tuple[Bound, ...], names: dict[str, Affine]) -> tuple[Bound, ...]:
    return tuple(Bound(b.expr.substitute(names), b.div) for b in bounds)


def progressions(facts: Iterable[Fact]) -> list[tuple[Fact, Shape]]:
    """Families of at least two facts: one of them, and the shape that all of them make. Where some are narrower than
    others (the last tile of a row), of all of them as much as the narrowest has, too."""
    shapes = [(s, f) for f in facts if (s := shape_of(f)) is not None]
    alike: dict[object, dict[Widths, list[tuple[Shape, Fact]]]] = {}
    for s, f in shapes:
        alike.setdefault(_kind(s, f), {}).setdefault(_widths(s), []).append((s, f))
    out = []
    for groups in alike.values():
        if len(groups) > 1:
            least = tuple(map(min, zip(*groups, strict=True)))
            groups[()] = [(_narrowed(s, least), f) for group in groups.values() for s, f in group]
        out += [made for group in groups.values() for made in _chains(group)]
    return out + _lengthened([*((f, s) for s, f in shapes if s.over), *out], shapes)


def _kind(s: Shape, f: Fact) -> object:
    """What facts of one family have in common."""
    return f.buffer, f.spot, f.strides, s.offset, tuple(lo for lo, _ in s.box), s.over


def _widths(s: Shape) -> Widths:
    return tuple(hi.const for _, hi in s.box)


def _lengthened(families: list[tuple[Fact, Shape]], single: list[tuple[Shape, Fact]]) -> list[tuple[Fact, Shape]]:
    """Families with one member more, which a fact says that is outside their loop (the tile before it, or the rest
    after it), as far as that goes."""
    there: dict[object, list[Shape]] = {}
    for s, f in single:
        there.setdefault((_kind(s, f), s.starts, s.base), []).append(s)
    out = []
    for f, s in families:
        for n, v in enumerate(s.over):
            last = _last(v)
            if last is None or v.origin is None:
                continue
            before, after = v.origin - v.step, last + v.step
            longer = (
                (before, replace(v, lo=(Bound(before),), hi=(Bound(last),), origin=before)),
                (after, replace(v, hi=(Bound(after),))),
            )
            for value, more in longer:
                one = _member(s, n, value)
                for other in there.get((_kind(one, f), one.starts, one.base), ()):
                    least = tuple(map(min, _widths(s), _widths(other)))
                    out.append((f, _narrowed(s._replace(over=(*s.over[:n], more, *s.over[n + 1 :])), least)))
    return out


def _member(s: Shape, n: int, value: Affine) -> Shape:
    """What a family says where its ``n``-th variable has a value, with the others renamed by position."""
    names = {f"~{n}": value, **{f"~{m}": Affine.of(f"~{m - 1}") for m in range(n + 1, len(s.over))}}
    names[f"~{n}"] = value.substitute({k: e for k, e in names.items() if k != f"~{n}"})
    rest = [v for m, v in enumerate(s.over) if m != n]
    over = tuple(_renamed(v, f"~{m}", names) for m, v in enumerate(rest))
    offset = s.offset.substitute(names)
    starts = tuple(lo.substitute(names) for lo, _ in s.box)
    box = tuple((lo - lo.const, lo - lo.const + w) for lo, w in zip(starts, _widths(s), strict=True))
    at = tuple(lo.const + m for lo, m in zip(starts, s.starts, strict=True))
    return Shape(offset - offset.const, box, over, at, s.base + offset.const)


def _narrowed(s: Shape, widths: Widths) -> Shape:
    return s._replace(box=tuple((lo, lo + n) for (lo, _), n in zip(s.box, widths, strict=True)))


def _chains(group: list[tuple[Shape, Fact]]) -> Iterator[tuple[Fact, Shape]]:
    """The families of facts that are alike but for where they are."""
    places: dict[tuple[int, ...], list[tuple[Shape, Fact]]] = {}
    for s, f in sorted(group, key=lambda g: (g[0].starts, g[0].base)):
        places.setdefault(s.starts, []).append((s, f))
    there = {(s.base, *s.starts) for s, _ in group}
    for here, after in pairwise(places.values()):
        for (s, f), (t, _) in product(here, after):
            count = _long(s, t, there)
            made = _family(s, t, count) if count else None
            if made is not None:
                yield f, made


def _long(one: Shape, two: Shape, there: set[tuple[int, ...]]) -> int:
    """Of how many facts the progression is that begins with these two; 0 where it begins before them, or where they are
    apart in more than one dimension. The same elements may lie in several places: which belong together is seen by
    their distances."""
    step = _step(one, two)
    at = (one.base, *one.starts)
    if sum(n != 0 for n in step[1:]) != 1 or tuple(n - m for n, m in zip(at, step, strict=True)) in there:
        return 0
    long = 0
    while at in there:
        at, long = tuple(n + m for n, m in zip(at, step, strict=True)), long + 1
    return long


def _step(one: Shape, two: Shape) -> tuple[int, ...]:
    return (two.base - one.base, *(b - a for a, b in zip(one.starts, two.starts, strict=True)))


def _family(one: Shape, two: Shape, count: int) -> Shape | None:
    """``count`` facts from the first on, each as far from the one before as the second from the first."""
    far, *moved = _step(one, two)
    d = next(i for i, n in enumerate(moved) if n)
    step = moved[d]
    if far % step:
        return None
    for n, v in enumerate(one.over):  # between the values of a loop's variable
        wide = _finer(v, step, count)
        if wide is not None and one.box[d][0].coefficient(v.name) == 1 and one.offset.coefficient(v.name) * step == far:
            return one._replace(over=(*one.over[:n], wide, *one.over[n + 1 :]))
    new = f"~{len(one.over)}"
    v = Var(new, (Bound(Affine()),), (Bound(Affine((), (count - 1) * step)),), step, Affine())
    lo, hi = one.box[d]
    box = (*one.box[:d], (lo + new, hi + new), *one.box[d + 1 :])
    return one._replace(offset=one.offset + Affine.of(new, far // step), box=box, over=(*one.over, v))


def _finer(v: Var, step: int, count: int) -> Var | None:
    """The variable with all values between its own, ``count`` for each; None where it does not begin at its origin or
    its last value is not known."""
    if v.step != step * count:
        return None
    last = _last(v)
    return None if last is None else replace(v, hi=(Bound(last + (count - 1) * step),), step=step)


def _last(v: Var) -> Affine | None:
    """The last value of a variable that begins at its origin; None where that is not known, or there is none."""
    if v.origin is None or v.lo != (Bound(v.origin),):
        return None
    ends = [(b.expr - v.origin).const // v.step for b in v.hi if b.div == 1 and (b.expr - v.origin).is_constant]
    if len(ends) < len(v.hi) or not ends or min(ends) < 0:
        return None
    return v.origin + min(ends) * v.step


def put_back(s: Shape) -> tuple[Affine, Box]:
    """Offset and box of a shape, with its numbers."""
    return s.offset + s.base, tuple((lo + n, hi + n) for (lo, hi), n in zip(s.box, s.starts, strict=True))
