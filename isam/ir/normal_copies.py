"""Copies that need not be made: into a temporary (read the original), out of one (write the target at once)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import COMPARISONS, Access, Literal, Source, Statement
from isam.ir.lines import Lines
from isam.ir.normal_versions import footprint_key, inverse

NEEDS_DTYPE = COMPARISONS | {"cast", "cast_sat"}  # a literal operand alone would not say which dtype it has


def through(rows: tuple[Affine, ...], way: dict[str, tuple[int, Affine]], at: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """``rows`` (over the axes of a copy) at the element ``at`` of the copied buffer."""
    values = {axis: at[d] - offset for axis, (d, offset) in way.items()}
    return tuple(row.substitute(values) for row in rows)


def forward(lines: Lines) -> bool:
    """Reads the source of a copy in place of the temporary that it fills."""
    changed = False
    places = lines.touching()
    for at, s in list(lines.live()):
        if s.op == "copy" and not s.accumulate and lines.is_temp(s.dest.buffer) and lines.statements[at] is s:
            changed |= _forward(lines, at, s, places)
    return changed


def _forward(lines: Lines, at: int, copy: Statement, places: dict[str, list[int]]) -> bool:
    name, source = copy.dest.buffer, copy.sources[0]
    way = inverse(copy.dest.index, copy.domain.names)
    touching = [(p, s) for p in places.get(name, []) if (s := lines.statements[p]) is not None]
    if way is None or any(s.dest.buffer == name for p, s in touching if p != at):
        return False
    if isinstance(source, Access) and source.buffer == name:
        return False
    changed = False
    for p, s in touching:
        if p != at and (new := _reads_source(lines, at, copy, way, p, s, places)) is not None:
            lines.put(p, new)
            if isinstance(source, Access):
                _insert(places.setdefault(source.buffer, []), p)
            changed = True
    return changed


def _insert(places: list[int], p: int) -> None:
    if p not in places:
        places.append(p)
        places.sort()


def _reads_source(
    lines: Lines, at: int, copy: Statement, way: dict[str, tuple[int, Affine]], p: int, s: Statement,
    places: dict[str, list[int]],
) -> Statement | None:
    """The reader ``s`` with the copy's source in place of the copy; ``None`` where that would change its meaning."""
    path, mine = lines.paths[at], lines.paths[p]
    if p < at or mine[: len(path)] != path:
        return None
    source = copy.sources[0]
    name = copy.dest.buffer

    def swap(x: Source) -> Source:
        if not isinstance(x, Access) or x.buffer != name:
            return x
        if isinstance(source, Literal):
            return source
        return replace(source, index=through(source.index, way, x.index), loc=x.loc)

    new = replace(s, sources=tuple(map(swap, s.sources)))
    if isinstance(source, Literal):
        idle = all(isinstance(x, Literal) for x in new.sources)
        return None if (idle and s.op in NEEDS_DTYPE) or (s.op == "select" and new.sources[0] is source) else new
    if s.dest.buffer == source.buffer and any(
        isinstance(x, Access) and x.buffer == source.buffer and (x.index != s.dest.index or s.accumulate)
        for x in new.sources
    ):
        return None
    extra = mine[len(path) : len(path) + 1]
    for q in places.get(source.buffer, ()):
        w = lines.statements[q]
        written = w is not None and w.dest.buffer == source.buffer
        if written and q != p and (at < q < p or (extra and lines.paths[q][: len(path) + 1] == (*path, *extra))):
            return None
        if written and q == p and extra:
            return None
    return new


def backward(lines: Lines) -> bool:
    """Writes the target of a copy in place of a temporary that is only copied there."""
    changed = False
    places = lines.touching()
    for at in range(len(lines.statements)):
        s = lines.statements[at]
        if s is None or s.op != "copy" or s.accumulate:
            continue
        x = s.sources[0]
        if isinstance(x, Access) and lines.is_temp(x.buffer) and _backward(lines, at, s, x, places):
            changed, places = True, lines.touching()
    return changed


def _backward(lines: Lines, at: int, copy: Statement, x: Access, places: dict[str, list[int]]) -> bool:
    name, target = x.buffer, copy.dest
    mine = [(p, s) for p in places[name] if (s := lines.statements[p]) is not None]
    way = inverse(x.index, copy.domain.names)
    key = footprint_key(copy, x)
    writers = [(p, s) for p, s in mine if p != at]
    if way is None or key is None or target.buffer == name or not writers:
        return False
    if any(s.dest.buffer != name or p > at or lines.paths[p] != lines.paths[at] for p, s in writers):
        return False
    if writers[0][1].accumulate or any(a.buffer == name for a in writers[0][1].reads):
        return False
    if any(not s.accumulate and footprint_key(s, s.dest) != key for _, s in writers):
        return False
    written = [(p, _retarget(s, name, target, way)) for p, s in writers]
    between = [p for p in places.get(target.buffer, ()) if written[0][0] <= p < at]
    if between and not (len(written) == 1 and between == [written[0][0]] and _in_place(written[0][1])):
        return False
    for p, s in written:
        lines.put(p, s)
    lines.put(at, None)
    return True


def _in_place(s: Statement) -> bool:
    """Whether every point reads of the destination's buffer only the element that it writes."""
    return all(a.index == s.dest.index for a in s.sources if isinstance(a, Access) and a.buffer == s.dest.buffer)


def _retarget(s: Statement, name: str, target: Access, way: dict[str, tuple[int, Affine]]) -> Statement:
    def swap(a: Access) -> Access:
        return Access(target.buffer, through(target.index, way, a.index), a.loc) if a.buffer == name else a

    return s.accessing(swap)
