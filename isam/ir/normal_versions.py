"""Versions: a temporary that is assigned anew in full is a new temporary from there on."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Statement
from isam.ir.lines import Lines

Key = tuple[tuple[Affine, ...], tuple[Affine, ...], frozenset[Affine]]


def footprint_key(s: Statement, a: Access) -> Key | None:
    """Equal keys mean that the accesses cover the same elements. ``None``: not every axis occurs in the index.

    The axes are numbered as they appear in the index, so that the order of a ``forall`` does not matter.
    """
    own = set(s.domain.names)
    number: dict[str, Affine] = {}
    for row in a.index:
        mine = [n for n in row.names if n in own and n not in number]
        if len(mine) > 1:
            return None  # which comes first would depend on names
        for n in mine:
            number[n] = Affine.of(f"#{len(number)}")
    if len(number) < len(own):
        return None
    extents = tuple(s.domain.extent(n) for n in number)
    where = frozenset(w.substitute(number) for w in s.domain.where)
    return tuple(row.substitute(number) for row in a.index), extents, where


def inverse(index: tuple[Affine, ...], own: tuple[str, ...]) -> dict[str, tuple[int, Affine]] | None:
    """For each axis the dimension it runs along and the offset there; ``None`` unless it is one axis per dimension."""
    out: dict[str, tuple[int, Affine]] = {}
    for d, row in enumerate(index):
        mine = [n for n in row.names if n in own]
        if len(mine) > 1 or (mine and (row.coefficient(mine[0]) != 1 or mine[0] in out)):
            return None
        if mine:
            out[mine[0]] = (d, row - Affine.of(mine[0]))
    return out if len(out) == len(own) else None


def straighten(lines: Lines) -> bool:
    """Lays a temporary out as the axes of its first statement stand, without offsets or unused room."""
    changed = False
    for name, places in lines.touching().items():
        if lines.is_temp(name):
            changed |= _straighten(lines, name, places)
    return changed


def _straighten(lines: Lines, name: str, places: list[int]) -> bool:
    statements = [(at, s) for at in places if (s := lines.statements[at]) is not None]
    plain = [s for _, s in statements if s.dest.buffer == name and not s.accumulate]
    if not plain or (key := footprint_key(plain[0], plain[0].dest)) is None:
        return False
    first, buffer = plain[0], lines.buffers[name]
    way = inverse(first.dest.index, first.domain.names)
    sizes = {s.name for s in lines.kernel_in.syms}
    if way is None or len(way) != len(buffer.shape) or any(footprint_key(s, s.dest) != key for s in plain):
        return False
    if any(n not in sizes for _, offset in way.values() for n in offset.names):
        return False
    moves = [way[a] for a in first.domain.names]
    shape = tuple(a.extent for a in first.domain.axes)
    if buffer.shape == shape and all(d == k and offset == Affine() for k, (d, offset) in enumerate(moves)):
        return False

    def swap(a: Access) -> Access:
        return replace(a, index=tuple(a.index[d] - offset for d, offset in moves)) if a.buffer == name else a

    lines.buffers[name] = replace(buffer, shape=shape)
    for at, s in statements:
        lines.put(at, s.accessing(swap))
    return True


def split_versions(lines: Lines) -> bool:
    """Gives new names to later versions of temporaries, where every plain assignment writes the same elements."""
    changed = False
    for name, places in lines.touching().items():
        if lines.is_temp(name):
            changed |= _split(lines, name, places)
    return changed


def _split(lines: Lines, name: str, places: list[int]) -> bool:
    if len({lines.paths[at] for at in places}) > 1:
        return False
    statements = [(at, s) for at in places if (s := lines.statements[at]) is not None]
    plain = [(at, s) for at, s in statements if s.dest.buffer == name and not s.accumulate]
    first = statements[0][1]
    if len(plain) < 2 or plain[0][1] is not first or any(a.buffer == name for a in first.reads):
        return False
    key = footprint_key(first, first.dest)
    if key is None or any(footprint_key(s, s.dest) != key for _, s in plain):
        return False
    starts = {at for at, _ in plain[1:]}
    now = name
    for at, s in statements:
        if at in starts:
            before, now = now, lines.version(name)
            lines.put(at, replace(s.renamed({name: before}), dest=replace(s.dest, buffer=now)))
        else:
            lines.put(at, s.renamed({name: now}))
    return True
