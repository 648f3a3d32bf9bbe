"""A schedule as JSON and back: exact, deterministic, with shared nodes kept shared.

Layout (schema ``isam.schedule.SCHEMA``): tables of affines, places, tiles, operands and nodes, each row referring to
earlier rows by number; then the system as a snapshot that loads again without its description (the instructions and
moves that this schedule uses, with everything else about the machine), the kernel, the cover, nests, slots and homes.
Equal rows are one row, so the bytes depend on values only, never on which objects happened to be one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from isam.diagnostics import NOWHERE, IsamError, Loc, fail
from isam.ir.affine import Affine
from isam.ir.mapping import Cover
from isam.once import once
from isam.schedule import SCHEMA
from isam.schedule.tree import (
    LINES,
    Bound,
    Deal,
    Issue,
    Loop,
    Node,
    Operand,
    Place,
    Prefetch,
    Schedule,
    Seq,
    Serpentine,
    Tile,
    Wait,
)
from isam.schedule.typed import typed
from isam.schedule.values import Reader, Writer, affine, read_affine
from isam.system.graph import System

COVER = ("original", "mappings", "steps", "back", "chain", "gap", "notes")


@once
def to_json(schedule: Schedule) -> str:
    """The schedule as one line of JSON. Made once: the proof hashes it and the artifact holds it."""
    tables = _Tables()
    system = used_system(schedule)
    bind, call = tables.node(schedule.bind), tables.node(schedule.call)
    plain, rest = Writer(), Writer(system.instructions)
    same = schedule.cover.kernel == schedule.kernel
    cover = {n: rest.value(getattr(schedule.cover, n)) for n in COVER}
    document = {
        "schema": SCHEMA,
        "kernel": plain.value(schedule.kernel),
        "system": written(system),
        "cover": {"kernel": None if same else plain.value(schedule.cover.kernel), **cover},
        "nests": rest.value(schedule.nests),
        "workspace": rest.value(schedule.workspace),
        "homes": rest.value(schedule.homes),
        "affines": tables.rows["affine"],
        "places": tables.rows["place"],
        "tiles": tables.rows["tile"],
        "operands": tables.rows["operand"],
        "nodes": tables.rows["node"],
        "bind": bind,
        "call": call,
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def from_json(text: str | bytes, file: str = "") -> Schedule:
    """The schedule that :func:`to_json` wrote; ``file`` names it in diagnostics. Raises ``IsamError`` when the text is
    anything else."""
    at = Loc(file) if file else NOWHERE
    try:
        document = json.loads(text)
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema != SCHEMA:
            raise fail("schedule-damaged", f"this is no schedule of schema {SCHEMA}, its schema is {schema!r}", at)
        return _schedule(document)
    except IsamError as e:
        raise IsamError(d if d.loc != NOWHERE else replace(d, loc=at) for d in e.diagnostics) from None
    except ValueError as e:
        raise fail("schedule-damaged", f"this is no schedule: {e}", at) from None
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError):
        what = "this is no schedule: a part of it is missing, or of another kind than such parts are"
        raise fail("schedule-damaged", what, at) from None


@once
def used_system(schedule: Schedule) -> System:
    """The schedule's machine with only those instructions, and moves by them, that the schedule names."""
    system = schedule.system
    used = {m.instruction.name for m in schedule.cover.mappings} | schedule.called()
    return replace(
        system,
        units={n: replace(u, runs=tuple(r for r in u.runs if r in used)) for n, u in system.units.items()},
        moves=tuple(m for m in system.moves if m.by in used),
        instructions={n: system.instructions[n] for n in system.instructions if n in used},
    )


@once
def written(system: System) -> Any:
    """A machine as JSON."""
    return Writer().value(system)


class _Tables:
    """Rows by value. ``seen`` remembers objects so that a shared one is looked at once."""

    def __init__(self) -> None:
        self.rows: dict[str, list[list[Any]]] = {k: [] for k in ("affine", "place", "tile", "operand", "node")}
        self.known: dict[str, dict[Any, int]] = {k: {} for k in self.rows}
        self.seen: dict[int, int] = {}

    def row(self, table: str, key: Any, row: list[Any]) -> int:
        known = self.known[table]
        at = known.get(key)
        if at is None:
            at = known[key] = len(known)
            self.rows[table].append(row)
        return at

    def affine(self, e: Affine) -> int:
        known = self.known["affine"]
        key = (e.terms, e.const)
        at = known.get(key)
        if at is None:
            at = known[key] = len(known)
            self.rows["affine"].append(affine(e))
        return at

    def place(self, p: Place) -> int:
        at = self.seen.get(id(p))
        if at is None:
            row = (p.memory, p.base, self.affine(p.offset), p.strides, p.cell)
            at = self.seen[id(p)] = self.row("place", row, list(row))
        return at

    def tile(self, t: Tile) -> int:
        at = self.seen.get(id(t))
        if at is None:
            row = (t.buffer, tuple([self.affine(s) for s in t.start]), t.shape, t.steps)
            at = self.seen[id(t)] = self.row("tile", row, list(row))
        return at

    def operand(self, o: Operand) -> int:
        at = self.seen.get(id(o))
        if at is None:
            row = (o.name, self.tile(o.tile), self.place(o.place), o.dims)
            at = self.seen[id(o)] = self.row("operand", row, list(row))
        return at

    def node(self, n: Node) -> int:
        at = self.seen.get(id(n))
        if at is not None:
            return at
        if isinstance(n, Issue):
            point = tuple([(name, self.affine(e)) for name, e in n.point])
            operands = tuple([self.operand(o) for o in n.operands])
            asked = () if (p := n.prefetch) is None else ((self.affine(p.ahead), *(p[1:] if p.lines > 1 else p[1:2])),)
            row: tuple[Any, ...] = ("issue", n.unit, n.instruction, n.sizes, operands, n.nest, point,
                                    tuple([(w.stream, w.lag, w.every) for w in n.after]), n.joined, *asked)
        elif isinstance(n, Seq):
            row = ("seq", *[self.node(c) for c in n.children])
        else:
            parts = [None if p is None else self.node(p) for p in (n.enter, n.first, n.body, n.last, n.exit)]
            row = ("loop", n.var, self.bounds(n.lo), self.bounds(n.hi), n.step, *parts, n.axis,
                   None if n.deal is None else (n.deal.group, n.deal.first, n.deal.stride),
                   *(() if n.serpentine is None else (tuple(n.serpentine),)))
        at = self.seen[id(n)] = self.row("node", row, list(row))
        return at

    def bounds(self, bounds: tuple[Bound, ...]) -> tuple[tuple[int, int], ...]:
        return tuple([(self.affine(b.expr), b.div) for b in bounds])


def _schedule(d: dict[str, Any]) -> Schedule:
    plain = Reader()
    kernel, system = plain.value(d["kernel"]), plain.value(d["system"])
    rest = Reader(system.instructions)
    nodes = _nodes(d)
    c = d["cover"]
    covered = kernel if c["kernel"] is None else plain.value(c["kernel"])
    cover = Cover(covered, **{n: rest.value(c[n]) for n in COVER})
    return typed(Schedule(
        kernel=kernel, system=system, cover=typed(cover), nests=rest.value(d["nests"]), bind=nodes[d["bind"]],
        call=nodes[d["call"]], workspace=rest.value(d["workspace"]), homes=rest.value(d["homes"]),
    ))  # fmt: skip


def _only(more: list[Any]) -> None:
    if len(more) > 1:
        raise ValueError(f"{len(more)} fields where there may be one")


def _prefetch(affines: list[Affine], ahead: int, memory: str, lines: int = 1, apart: int = 0) -> Prefetch:
    if not 1 <= lines <= LINES:
        raise ValueError(f"{lines} lines are asked for, of at most {LINES}")
    return typed(Prefetch(affines[ahead], memory, lines, apart))


def _nodes(d: dict[str, Any]) -> list[Node]:
    affines = [read_affine(r) for r in d["affines"]]
    places = [typed(Place(m, b, affines[o], tuple(s), c)) for m, b, o, s, c in d["places"]]
    tiles = [typed(Tile(b, tuple([affines[i] for i in s]), tuple(n), tuple(k))) for b, s, n, k in d["tiles"]]
    operands = [typed(Operand(n, tiles[t], places[p], tuple(dims))) for n, t, p, dims in d["operands"]]
    nodes: list[Node] = []
    for row in d["nodes"]:
        kind = row[0]
        if kind == "issue":
            _, unit, ins, sizes, ops, nest, point, after, joined, *prefetch = row
            _only(prefetch)
            nodes.append(Issue(unit, ins, tuple([(n, v) for n, v in sizes]), tuple([operands[o] for o in ops]), nest,
                               tuple([(n, affines[e]) for n, e in point]),
                               tuple([typed(Wait(*w)) for w in after]), joined,
                               *(_prefetch(affines, *asked) for asked in prefetch)))
        elif kind == "seq":
            nodes.append(Seq(tuple([nodes[i] for i in row[1:]])))
        elif kind == "loop":
            _, var, lo, hi, step, enter, first, body, last, exit_, axis, deal, *back = row
            _only(back)
            lower, upper = (tuple([Bound(affines[e], k) for e, k in b]) for b in (lo, hi))
            one, end = (None if i is None else nodes[i] for i in (first, last))
            dealt = None if deal is None else typed(Deal(*deal))
            nodes.append(Loop(var, lower, upper, step, nodes[body], nodes[enter], one, end, nodes[exit_], axis, dealt,
                              typed(Serpentine(*back[0])) if back else None))  # fmt: skip
        else:
            raise fail("schedule-damaged", f"unknown node '{kind}'")
        typed(nodes[-1])
    return nodes
