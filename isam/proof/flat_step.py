"""One step of the flat checker: what it reads and writes as arrays of tokens, compiled once per tree node."""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.aliasing import pointwise
from isam.proof.filled import in_its_box
from isam.proof.flat_layout import Pattern, natural
from isam.proof.geometry import is_float, resolve
from isam.proof.signature import Signature
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children

if TYPE_CHECKING:
    from isam.proof.flat import Replay
    from isam.system.graph import System


@dataclass(slots=True)
class Access:
    """An operand as arrays relative to the tile's first element. ``row``: where its numbers are in the vector: of the
    first element, of its byte, the tile's start; what those come to is in the next three."""

    operand: Operand
    row: int
    first: int  # the number of the buffer's first element
    by: tuple[int, ...]  # elements from one index of a dimension to the next
    cell: int  # bytes of a cell
    wide: int  # the buffer's own elements in an element
    group: int  # bytes of a token
    parts: int  # see ``Region``
    pattern: Pattern
    region: tuple[int, int, int]  # origin, groups, groups per cell
    limits: list[int]
    align: int
    reads: bool
    readers: tuple[int, ...]  # kernel statements that read it
    writes: bool


@dataclass(slots=True)
class Effect:
    """A kernel statement carried out by the step: how many instances write each element, and which points they are."""

    statement: int
    accesses: int
    accumulate: bool
    times: int
    outer: tuple[int, ...]  # rows of the recurrent counters
    axes: tuple[tuple[int, int], ...]  # (row, extent) of the statement's axes, recurrent ones first
    extents: tuple[int, ...]
    cells: tuple[int, ...]  # points along each axis that are counted together
    ordered: (
        tuple[tuple[int, int, int], ...] | None
    )  # (row, extent in the call, extent) of reduction axes when order matters


@dataclass(slots=True)
class Shape:
    """What steps of one signature have in common: everything but what they compute of the loop variables. ``fault``:
    what is wrong with all of them, whatever the state."""

    accesses: list[Access] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    pointwise: frozenset[tuple[str, str]] = frozenset()
    fault: tuple[int, str, str] | None = None

    def forms(self, issue: Issue) -> list[Affine]:
        """What a step computes of the loop variables; rows of operands and effects count these."""
        out: list[Affine] = []
        for o, a in zip(issue.operands, self.accesses, strict=True):
            flat = Affine((), a.first)
            for s, k in zip(o.tile.start, a.by, strict=True):
                flat = flat + s * k
            out += [flat, o.place.offset + (o.place.cell or 0) * a.cell, *o.tile.start]
        return out + [at for _, at in issue.point]


@dataclass(slots=True)
class Step:
    issue: Issue
    forms: list[Affine]
    shape: Shape

    # execution ----------------------------------------------------------------------------------------------------
    def run(self, replay: Replay, env: dict[str, int]) -> None:
        values = [f.evaluate(env) for f in self.forms]
        located = []
        for a in self.shape.accesses:
            (base, rest), at = divmod(values[a.row], a.wide), values[a.row + 1]
            if not self._inside(a, values, replay):
                return
            g = at // a.group
            origin, groups, _ = a.region
            if rest or at % a.group or g + a.pattern.span[0] < 0 or g + a.pattern.span[1] >= groups:
                replay.out.add(
                    7, "address", f"operand {a.operand.name}: byte {at} is outside its memory or slot", self.issue
                )
                return
            if a.align > 1 and at % a.align:
                replay.out.add(
                    9, "align", f"operand {a.operand.name}: byte {at} is no multiple of {a.align}", self.issue
                )
            located.append((a, base, origin + g))
        for one in located:
            if one[0].reads and not self._read(replay, one, values):
                return
        self._overlap(replay, located)
        self._effects(replay, values, located)
        for a, base, at in located:
            if a.writes:
                self._write(replay, a, base, at)

    def _inside(self, a: Access, values: list[int], replay: Replay) -> bool:
        row = a.row + 2
        for d, last in enumerate(a.limits):
            if not 0 <= values[row + d] <= last:
                replay.out.add(
                    7,
                    "bounds",
                    f"operand {a.operand.name}: dimension {d} starts at {values[row + d]} and leaves"
                    f" '{a.operand.tile.buffer}'",
                    self.issue,
                )
                return False
        return True

    def _read(self, replay: Replay, located: tuple[Access, int, int], values: list[int]) -> bool:
        a, base, at = located
        sp = replay.space
        where = a.pattern.addr + at
        elem = a.pattern.elem + base
        wrong = sp.token[where] != a.pattern.token + base * a.parts
        name = a.operand.tile.buffer
        if wrong.any():
            el = int(elem[wrong][0]) - sp.origin[name]
            text = f"operand {a.operand.name}: element {replay.space.unflat(name, el)} of '{name}' does not lie there"
            replay.out.add(8, "absent", text, self.issue)
            return False
        stale = sp.version[where] != sp.current[elem]
        if stale.any():
            el = int(elem[stale][0]) - sp.origin[name]
            text = f"operand {a.operand.name}: element {replay.space.unflat(name, el)} of '{name}' is out of date there"
            replay.out.add(8, "stale", text, self.issue)
            return False
        in_order = [self._in_order(replay, a, base, s, values) for s in a.readers]
        return all(in_order)

    def _in_order(self, replay: Replay, a: Access, base: int, statement: int, values: list[int]) -> bool:
        name = a.operand.tile.buffer
        want = replay.prescribed.before.get((statement, self._time(statement, values)), {}).get(name)
        if want is None:
            return True
        sp = replay.space
        elem = a.pattern.unique + base
        wrong = sp.current[elem] != want[elem - sp.origin[name]]
        if wrong.any():
            el = int(elem[wrong][0])
            text = f"statement {statement} reads '{name}'{replay.space.unflat(name, el - sp.origin[name])} after"
            text += f" {int(sp.current[el])} writes; the kernel says {int(want[el - sp.origin[name]])}"
            replay.out.add(5, "order", text, self.issue)
            return False
        return True

    def _time(self, statement: int, values: list[int]) -> tuple[int, ...]:
        e = next((e for e in self.shape.effects if e.statement == statement), None)
        effects = self.shape.effects
        rows = e.outer if e is not None else effects[0].outer if effects else ()
        return tuple(values[r] for r in rows)

    def _overlap(self, replay: Replay, located: list) -> None:
        """What a step writes may not overlap another operand, unless it is the same tile used element by element."""
        for a, base, at in located:
            if not a.writes:
                continue
            for b, other, there in located:
                p, q = a.pattern, b.pattern
                if b is not a and b.writes and np.intersect1d(p.elem + base, q.elem + other).size:
                    text = f"operands {a.operand.name} and {b.operand.name} are written with the same elements"
                    replay.out.add(9, "alias", text, self.issue)
                if b is a or in_its_box(a.operand.name, b.operand.name):
                    continue
                if at + p.span[1] < there + q.span[0] or there + q.span[1] < at + p.span[0]:
                    continue
                if not np.intersect1d(p.addr + at, q.addr + there).size:
                    continue
                same = (base, at) == (other, there) and np.array_equal(p.addr, q.addr)
                if not (same and (a.operand.name, b.operand.name) in self.shape.pointwise):
                    text = f"operands {a.operand.name} and {b.operand.name} overlap"
                    replay.out.add(9, "alias", text, self.issue)

    def _effects(self, replay: Replay, values: list[int], located: list) -> None:
        sp = replay.space
        for e in self.shape.effects:
            box = []
            for (row, n), full, c in zip(e.axes, e.extents, e.cells, strict=True):
                if values[row] < 0 or values[row] + n > full:
                    replay.out.add(1, "domain", f"statement {e.statement} is executed outside its domain", self.issue)
                    return
                box.append(slice(values[row] // c, (values[row] + n) // c))
            a, base, _ = located[e.accesses]
            name = a.operand.tile.buffer
            elem = a.pattern.unique + base
            local = elem - sp.origin[name]
            key = (e.statement, tuple(values[r] for r in e.outer))
            now, first = sp.current[elem], replay.prescribed.before[key][name][local]
            left = now + e.times - first - replay.prescribed.adds[key][local] if e.accumulate else now - first
            wrong = (now < first) | (left > 0)
            if wrong.any():
                el = int(elem[wrong][0])
                text = f"statement {e.statement} writes '{name}'{replay.space.unflat(name, el - sp.origin[name])} after"
                text += f" {int(sp.current[el])} writes; the kernel says {int(first[wrong][0])}"
                replay.out.add(4 if e.accumulate else 5, "order", text, self.issue)
            if e.ordered is not None:
                self._lexicographic(replay, e, values, elem)
            done = replay.done[e.statement]
            done[tuple(box)] += done[tuple(box)] < 255
            sp.current[elem] = now + e.times

    def _lexicographic(self, replay: Replay, e: Effect, values: list[int], elem: np.ndarray) -> None:
        """Without leave to reassociate, an element's terms are added in lexicographic order."""
        assert e.ordered is not None
        first = last = 0
        for row, n, full in e.ordered:
            first, last = first * full + values[row], last * full + values[row] + n - 1
        seen = replay.ranks.setdefault(e.statement, np.full(replay.space.current.size, -1, np.int64))
        if (seen[elem] >= first).any() or last - first + 1 != prod(n for _, n, _ in e.ordered):
            replay.out.add(3, "reassociate", f"statement {e.statement} adds terms out of order", self.issue)
        seen[elem] = last

    def _write(self, replay: Replay, a: Access, base: int, at: int) -> None:
        sp = replay.space
        origin, _, cell = a.region
        if cell:
            lo, hi = (at + a.pattern.span[0] - origin) // cell, (at + a.pattern.span[1] - origin) // cell + 1
            sp.token[origin + lo * cell : origin + hi * cell] = -1
        where = a.pattern.addr + at
        sp.token[where] = a.pattern.token + base * a.parts
        sp.version[where] = sp.current[a.pattern.elem + base]


def compile_step(issue: Issue, replay: Replay, out: Findings) -> Step | None:
    """The step as arrays; ``None`` (with the violations noted) when it is illegal whatever the state."""
    if not replay.legality.step(issue, out):
        return None
    sig = replay.legality.signature(issue)
    shape = replay.shapes.get(id(sig))  # equal signatures are one object
    if shape is None:
        shape = replay.shapes[id(sig)] = _shape(issue, sig, replay)
    if shape.fault is not None:
        out.add(*shape.fault, issue)
        return None
    return Step(issue, shape.forms(issue), shape)


def _shape(issue: Issue, sig: Signature, replay: Replay) -> Shape:
    accesses: list[Access] = []
    row = 0
    for o in issue.operands:
        b = replay.legality.buffers[o.tile.buffer]
        if replay.phase == "bind" and b.role in ("in", "out", "inout"):
            return Shape(fault=(8, "bind", f"'{b.name}' is not there when constants are bound"))
        access = _access(o, sig, replay, row)
        bad = _protected(o, sig, replay)
        if bad or access is None:
            return Shape(fault=(9 if not bad else 8, "base", bad or f"operand {o.name}: no such place"))
        accesses.append(access)
        row += 2 + len(o.tile.start)
    rows = {n: row + i for i, (n, _) in enumerate(issue.point)}
    effects = [] if issue.nest is None else _effects(issue, sig, replay, rows)
    return Shape(accesses, effects, pointwise(sig))


def _protected(o: Operand, sig: Signature, replay: Replay) -> str:
    """Bound workspace is filled by ``bind`` and only read by ``call``. (Numbers are read-only, see ``Legality``.)"""
    slot = replay.legality.kept.get(o.place.base) if o.name in sig.writes else None
    if slot is not None and replay.phase == "call":
        return f"operand {o.name} writes the slot '{slot.name}', which is kept from bind on"
    return ""


def _access(o: Operand, sig: Signature, replay: Replay, row: int) -> Access | None:
    sp = replay.space
    lg = replay.legality
    b = lg.buffers[o.tile.buffer]
    shape = replay.prescribed.shapes.get(b.name, ())
    region = sp.region(o.place)
    if region is None or sig.instruction is None:
        return None
    steps, wide, group = o.tile.steps, sp.units.wide[b.name], region.group
    box = (*o.tile.shape[:-1], o.tile.shape[-1] // wide) if shape else ()
    pattern = sp.pattern(b.name, box, steps, o.place.strides, region)
    limits = [n - 1 - (m - 1) * k for n, m, k in zip(shape, o.tile.shape, steps, strict=True)]
    memory = replay.schedule.system.memories[resolve(replay.schedule.system, o.place.memory)]
    align = sig.instruction.contract(o.name).align
    if not memory.home and memory.cells is None:
        align = max(align, memory.align)
    readers = tuple(
        sorted({p.statement for p in sig.semantics.pairs if p.operand == o.name and not p.writes and p.statement >= 0})
    )
    place = (region.origin, region.bytes // group, region.cell // group)
    return Access(
        o,
        row,
        sp.origin[b.name] * wide,
        natural(shape),
        region.cell,
        wide,
        group,
        region.parts,
        pattern,
        place,
        limits,
        align,
        o.name in sig.reads,
        readers,
        o.name in sig.writes,
    )


def _effects(issue: Issue, sig: Signature, replay: Replay, rows: dict[str, int]) -> list[Effect]:
    assert issue.nest is not None
    sp = replay.space
    mapping = replay.schedule.cover.mappings[replay.schedule.nests[issue.nest].mapping]
    played = {k: sig.extents[i] for i, k in mapping.axes}
    at = {o.name: i for i, o in enumerate(issue.operands)}
    exact = "reassociate" not in replay.kernel.permits
    out = []
    for operand, i, accumulate in sig.semantics.effects:
        s = replay.kernel.statements[i]
        outer = tuple(a.name for a in replay.legality.outer[i])
        names = (*outer, *s.domain.names)
        extents, cells = replay.extents[i], sp.units.cells[i]
        axes = tuple((rows[n], played.get(n, 1)) for n in names)
        times = prod(played.get(n, 1) for n in s.reduces)
        ordered = None
        if accumulate and exact and s.reduces and is_float(replay.legality.buffers[s.dest.buffer].dtype):
            full = dict(zip(names, extents, strict=True))
            ordered = tuple((rows[n], played.get(n, 1), full[n]) for n in (*outer, *s.reduces))
        counters = tuple(rows[n] for n in outer)
        out.append(Effect(i, at[operand], accumulate, times, counters, axes, extents, cells, ordered))
    return out


def highest_addresses(schedule: Schedule, sizes: dict[str, int]) -> dict[tuple[str, str], int]:
    """For memories with explicit addresses, one byte past the highest that any step may touch."""
    tops: dict[tuple[str, str], int] = {}
    whole = {n: (v, v) for n, v in sizes.items()}
    for tree in (schedule.bind, schedule.call):
        _highest(tree, whole, schedule.system, tops)
    return tops


def _highest(node: Node, ranges: dict[str, tuple[int, int]], system: System,
             tops: dict[tuple[str, str], int]) -> None:  # fmt: skip
    if isinstance(node, Issue):
        for o in node.operands:
            if not o.place.base and o.place.cell is None and all(n in ranges for n in o.place.offset.names):
                top = o.place.offset.bounds(ranges)[1] + 16
                top += sum(
                    max(0, k * n * m) for k, n, m in zip(o.place.strides, o.tile.shape, o.tile.steps, strict=False)
                )
                key = (resolve(system, o.place.memory), "")
                tops[key] = max(tops.get(key, 0), top)
    elif isinstance(node, Loop):
        try:
            lo = max(b.expr.bounds(ranges)[0] // b.div for b in node.lo)
            hi = min(b.expr.bounds(ranges)[1] // b.div for b in node.hi)
        except KeyError:
            lo, hi = 0, 1
        inner = {**ranges, node.var: (lo, max(lo, hi - 1))}
        for c in children(node):
            _highest(c, ranges if c is node.enter or c is node.exit else inner, system, tops)
    else:
        for c in node.children:
            _highest(c, ranges, system, tops)
