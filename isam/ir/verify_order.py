"""Temporaries and outputs are written before they are read, element by element, recurrent loops included (IR-8)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.ir.infer import located
from isam.ir.kernel import Access, Axis, Domain, Item, Recurrence, Statement
from isam.ir.ranges import nonnegative
from isam.ir.verify_points import covers

if TYPE_CHECKING:
    from isam.ir.poly import Set
    from isam.ir.verify import Findings

Written = dict[str, "list[Set]"]  # per buffer: elements certainly written, by sizes and loop counters


def check_written(f: Findings) -> None:
    """Reports reads of elements that nothing wrote, and outputs that are not written entirely."""
    walk = _Walk(f)
    walk.body(f.kernel.body, (), {}, set())
    parts: dict[str, list[tuple[Statement, tuple[Axis, ...]]]] = {}
    full: set[str] = set()
    for s, outer in located(f.kernel.body):
        if covers(s, f.kernel) and all(nonnegative(a.extent - 1, f.kernel.syms) for a in outer):
            full.add(s.dest.buffer)
        else:
            parts.setdefault(s.dest.buffer, []).append((s, outer))
    if any(d.code in ("V430", "V431") for d in f.found):
        return
    for b in f.kernel.buffers:
        if b.role == "out" and b.name in parts and b.name not in full and b.name not in walk.reported:
            _complete(f, walk, b.name, [walk.elements(s, outer, ()) for s, outer in parts[b.name]])


def _complete(f: Findings, walk: _Walk, name: str, parts: list[Set]) -> None:
    from isam.ir.poly_domain import shape_set

    b = f.kernel.buffer(name)
    missing = _without(shape_set(b.shape).given(walk.context), parts)
    if not missing.is_empty():
        f.add("V421", f"not every element of the output '{name}' is written: {name}{_element(missing, len(b.shape))}",
              b.loc, "initialise it first, or declare it 'inout'")


class _Walk:
    """Follows the text, carrying what has certainly been written."""

    def __init__(self, f: Findings):
        self.f = f
        self.watched = {b.name for b in f.kernel.buffers if b.role in ("temp", "out")}
        self.reported: set[str] = set()

    @cached_property
    def context(self) -> Set:
        """The sizes that the head admits."""
        from isam.ir.poly_domain import context

        return context(self.f.kernel.syms)

    def body(self, body: Iterable[Item], outer: tuple[Axis, ...], before: Written, full: set[str]) -> None:
        """Visits a straight line of items; ``before`` and ``full`` are updated to what holds after it."""
        seen: set[tuple[Access, Domain]] = set()
        for item in body:
            if isinstance(item, Recurrence):
                self._loop(item, outer, before, full)
                continue
            for a in item.reads:
                if a.buffer in self.watched - full and (a, item.domain) not in seen:
                    self._read(a, item, outer, before)
            name = item.dest.buffer
            if name not in self.watched or name in full or item.accumulate:
                continue  # an accumulation writes only what was there before
            if covers(item, self.f.kernel):
                full.add(name)
            else:
                seen.add((item.dest, item.domain))
                before.setdefault(name, []).append(self.elements(item, outer, outer))

    def _loop(self, loop: Recurrence, outer: tuple[Axis, ...], before: Written, full: set[str]) -> None:
        inside = {n: list(parts) for n, parts in before.items()}
        around = (*outer, loop.axis)
        inner = [(s, o) for s, o in located(loop.body, around) if s.dest.buffer in self.watched - full]
        for s, o in inner:  # what earlier iterations wrote
            inside.setdefault(s.dest.buffer, []).append(self.elements(s, o, outer, earlier=loop.axis))
        self.body(loop.body, around, inside, set(full))
        for s, o in inner:
            before.setdefault(s.dest.buffer, []).append(self.elements(s, o, outer))

    def elements(self, s: Statement, outer: tuple[Axis, ...], fixed: tuple[Axis, ...],
                 earlier: Axis | None = None) -> Set:
        """What a statement writes while the counters ``fixed`` stay as they are (``earlier``: at smaller counters)."""
        from isam.ir.poly_domain import access_map, domain_set

        held = {a.name for a in fixed}
        rename = {earlier.name: Affine.of(earlier.name + "'")} if earlier else {}
        counters = [(f"{a.name}'" if earlier and a.name == earlier.name else a.name, a.extent) for a in outer]
        free = [c for c in counters if c[0] not in held]
        domain = Domain(s.domain.axes, tuple(w.substitute(rename) for w in s.domain.where))
        points = domain_set(domain, self.f.kernel.syms, free)
        points = points.where([e for a in fixed for e in (Affine.of(a.name), a.extent - a.name - 1)])
        if earlier:
            points = points.where([Affine.of(earlier.name) - f"{earlier.name}'" - 1])
        index = tuple(row.substitute(rename) for row in s.dest.index)
        return access_map(Access(s.dest.buffer, index), points.names).image(points)

    def _read(self, a: Access, s: Statement, outer: tuple[Axis, ...], before: Written) -> None:
        if a.buffer in self.reported:
            return
        parts = before.get(a.buffer, [])
        if parts:
            from isam.ir.poly_domain import access_map, domain_set, shape_set

            points = domain_set(s.domain, self.f.kernel.syms)
            points = points.where([e for x in outer for e in (Affine.of(x.name), x.extent - x.name - 1)])
            missing = _without(access_map(a, points.names).image(points), parts)
            if any(d.code == "V430" and d.loc == a.loc for d in self.f.found):  # told already
                missing = missing & shape_set(self.f.kernel.buffer(a.buffer).shape)
            if missing.is_empty():
                return
            where = _element(missing, len(a.index))
        else:
            where = ""
        self.reported.add(a.buffer)
        verb = "accumulated into" if s.accumulate and a is s.dest else "read"
        hint = f"initialise it first: {s.dest} = {START.get(s.op, '0')}" if verb != "read" else "assign it first"
        self.f.add("V422", f"'{a.buffer}{where}' is {verb} before it is written", a.loc, hint)


START = {"add": "0", "mul": "1", "max": "-inf", "min": "inf"}


def _without(elements: Set, parts: Iterable[Set]) -> Set:
    for part in parts:
        elements = elements - part
    return elements


def _element(missing: Set, rank: int) -> str:
    point = missing.point() or {}
    sizes = ", ".join(f"{n} = {v}" for n, v in point.items() if not n.isdigit())
    index = ", ".join(str(point.get(str(d), "?")) for d in range(rank))
    return f"[{index}]" + (f" (with {sizes})" if sizes else "")
