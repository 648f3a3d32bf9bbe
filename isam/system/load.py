"""YAML to :class:`System`: every fault at once, each with file:line:column, a code and a hint (SYS-6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from isam.diagnostics import NOWHERE, Loc, fail
from isam.garbage import seldom
from isam.ir.instruction import Cost, Instruction, Narrow
from isam.ir.table import Table, Unread
from isam.runtime.linking import Target, architecture
from isam.system.bodies import parse_body, permission, place_in
from isam.system.check import Marks, assumed_costs, check_system, stated_costs
from isam.system.draft import Draft, Reader
from isam.system.emission import check_emission
from isam.system.families import Entry, spoken
from isam.system.faults import Faults, nearest
from isam.system.features import lacking
from isam.system.fields import Values, read_fields
from isam.system.files import sibling, texts_of
from isam.system.find import find_system
from isam.system.graph import CACHED, MANAGED, USUAL, Memory, Move, System, Unit
from isam.system.groups import Register
from isam.system.judged import digest, is_judged
from isam.system.numerics import contradictions
from isam.system.operands import Operands
from isam.system.read_groups import Groups, measures, read_ports
from isam.system.schema import COST, INSTRUCTION, MEMORY, MOVE, UNIT
from isam.system.source import Mapping, Node, Scalar
from isam.system.units import Rate
from isam.system.unread import Described

CLOCK = 1e9  # Hz, assumed where a unit does not state it


def load_system(name: str | Path | System, features: Iterable[str] | None = None, *, whole: bool = False) -> System:
    """A machine by name (``toy``) or by the path of its YAML file; a ``System`` is returned as it is.

    ``features``: the CPU features that a ``select:`` looks at (default: this CPU's). Loaded once per content. What is
    on record as judged (`judged.py`) is taken at its word and its instructions are read when they are asked for;
    ``whole``: it is judged again. Raises: ``IsamError`` with every fault of every file involved.
    """
    if isinstance(name, System):
        return name
    if not isinstance(name, str | Path):
        raise fail("system-unknown", f"a system is named by a text or a path, not {type(name).__name__}")
    path = name if isinstance(name, Path) else find_system(name)
    with seldom():
        return _load(path, None if features is None else frozenset(features), (), whole)


def parse_system(text: str, file: str = "<string>") -> System:
    """A machine from a YAML text; included files are looked for beside ``file``."""
    faults = Faults()
    draft = Reader(faults, {str(Path(file)): text}).read(Path(file))
    if draft is None or draft.variants:
        faults.stop()
        raise fail("system-select", "a system that selects another is loaded from a file", Loc(file, 1, 1),
                   "use load_system")  # fmt: skip
    return _built(draft, faults)


def _load(path: Path, features: frozenset[str] | None, trail: tuple[str, ...], whole: bool) -> System:
    known = tuple(texts_of(path).items())
    judged = not whole and is_judged(text for _, text in known)
    draft, _ = _drafted(str(path), known, judged)
    if draft.variants:
        return _selected(draft, path, features, trail, whole)
    return _system(str(path), known, judged)


@lru_cache(maxsize=64)
def _drafted(path: str, files: tuple[tuple[str, str], ...], judged: bool) -> tuple[Draft, Faults]:
    """The draft of ``path``; ``files``: the texts of all files it is made of."""
    faults = Faults()
    draft = Reader(faults, dict(files), judged=judged).read(Path(path))
    if draft is None or draft.variants:
        faults.stop()
    if draft is None:
        raise AssertionError("a file that cannot be read has faults")
    return draft, faults


@lru_cache(maxsize=64)
def _system(path: str, files: tuple[tuple[str, str], ...], judged: bool) -> System:
    draft, faults = _drafted(path, files, judged)
    system = _unread(draft, faults.copy()) if judged else _built(draft, faults.copy())
    read = digest(text for _, text in files)
    system.__dict__["_digest"] = read  # no field: what is made from it differs from it
    if isinstance(system.instructions, Table):
        system.instructions.texts = read
    return system


def _selected(draft: Draft, path: Path, features: frozenset[str] | None, trail: tuple[str, ...], whole: bool) -> System:
    own: Scalar = draft.top["system"]
    if own.text in trail:
        raise fail("system-cycle", f"'{own.text}' selects itself", own.loc, "break the circle")
    missing: list[str] = []
    for v in draft.variants:
        lacks = lacking((w.text for w in v.get("needs", ())), features)
        if not lacks:
            return _load(sibling(path, v["system"]), features, (*trail, own.text), whole)
        missing.append(f"{v['system'].text} needs {', '.join(lacks)}")
    raise fail("system-features", f"no variant of '{own.text}' runs on this CPU: {'; '.join(missing)}", own.loc,
               "add a variant without 'needs'")  # fmt: skip


def _built(draft: Draft, faults: Faults) -> System:
    build = _Build(draft, faults)
    system = build.system()
    broken, lost = frozenset(build.broken | draft.lost), frozenset(draft.lost)
    check_system(system, faults, build.marks, build.declared, broken, lost)
    if not broken:
        check_emission(system, faults, build.place)
    faults.stop()
    stated = {n: frozenset(f for f in COST if getattr(i.cost, f) is not None) for n, i in system.instructions.items()}
    return replace(system, assumed=(*system.assumed, *assumed_costs(stated, system.moves)))


def _unread(draft: Draft, faults: Faults) -> System:
    """The machine of a description on record as judged: its instructions are texts until they are asked for."""
    build = _Build(draft, faults, judged=True)
    system = build.system()
    faults.stop()
    costs = {n: stated_costs(e) for n, e in draft.entries["instructions"].items()}
    return replace(system, assumed=(*system.assumed, *assumed_costs(costs, system.moves)))


def _target(given: Values | None) -> Target | None:
    """The CPU that code is made for; its architecture is one of its features."""
    if not given or "triple" not in given:
        return None
    triple = given["triple"].text
    cpu = given["cpu"].text if "cpu" in given else "generic"
    return Target(triple, cpu, frozenset({architecture(triple), *(w.text for w in given.get("features", ()))}))


class _Build:
    """Entries to values. ``declared``: all names given, broken entries included; ``broken``: sections with faults."""

    def __init__(self, draft: Draft, faults: Faults, *, judged: bool = False):
        self.draft, self.faults, self.judged = draft, faults, judged
        self.marks: Marks = {}
        self.declared = {s: frozenset(e) for s, e in draft.entries.items()}
        self.broken: set[str] = set()
        self.assumed: list[str] = []
        self.groups = Groups(faults, self.marks)
        self.templates: dict[tuple[str, str], tuple[Scalar, Scalar | None]] = {}  # key and text of each emission

    def system(self) -> System:
        memories = self._section("memories", self._memory)
        self.state: dict[str, Register] = self._section("state", self.groups.register)
        described = {} if self.judged else self._section("instructions", self.instruction)
        self.units: dict[str, Unit] = self._section("units", self._unit)
        instructions = self._unread() if self.judged else {n: self._per_cycle(i) for n, i in described.items()}
        before = len(self.faults.found)
        moves = tuple(m for e in self.draft.moves for m in self._move(e))
        if len(self.faults.found) > before:
            self.broken.add("moves")
        self.faults.member = False
        top = self.draft.top
        name = top["system"].text if "system" in top else "?"
        for key in ("backend", "approach"):
            if key in top:
                self.marks[key,] = top[key].loc
        return System(name, memories, self.units, moves, instructions,
                      backend=top["backend"].text if "backend" in top else "simulator",
                      approach=top["approach"].text if "approach" in top else USUAL,
                      facts=self._facts(top), assumed=tuple(self.assumed), source=self.draft.file,
                      needs=tuple(w.text for w in top.get("needs", ())), target=_target(top.get("target")),
                      backend_loc=self.marks.get(("backend",), NOWHERE),
                      replicas=self._section("replicas", self.groups.replica),
                      meshes=self._section("meshes", self.groups.mesh),
                      links=self._section("links", self.groups.link),
                      clusters=self._section("clusters", self.groups.cluster), state=self.state)  # fmt: skip

    def _per_cycle(self, i: Instruction) -> Instruction:
        """A bandwidth in bytes per second becomes one per cycle of the units that run the instruction."""
        if not isinstance(i.cost.bandwidth, Rate):
            return i
        clocks = {u.clock for u in self.units.values() if i.name in u.runs} or {CLOCK}
        if len(clocks) > 1:
            what = f"'{i.name}' runs at different clocks: its bandwidth per cycle is not one number"
            self.faults.add("system-unit", what, self.marks.get(("bandwidth", i.name), i.loc),
                            "state bytes per cycle")  # fmt: skip
        return replace(i, cost=replace(i.cost, bandwidth=i.cost.bandwidth / (max(clocks) or CLOCK)))

    def _facts(self, top: Values) -> dict[str, Any]:
        facts = top.get("facts") or {}
        if not isinstance(facts, dict):
            self.faults.add("system-kind", "expected facts by name", Loc(self.draft.file, 1, 1),
                            "write 'facts: {NAME: VALUE}'")  # fmt: skip
            return {}
        return facts

    def _section(self, section: str, make: Any) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for e in self.draft.entries[section].values():
            before = len(self.faults.found)
            self.faults.member = e.member > 0
            made = make(e)
            if len(self.faults.found) > before or made is None:
                self.broken.add(section)
            if made is not None:
                out[e.name] = made
        self.faults.member = False
        return out

    def _unread(self) -> Table:
        entries = self.draft.entries["instructions"]
        held: dict[str, Unread] = {n: Described(e, self.finished, self.faults) for n, e in entries.items()}
        return Table(held)

    def finished(self, e: Entry) -> Instruction | None:
        """The instruction by itself, when units are known."""
        made = self.instruction(e)
        return made and self._per_cycle(made)

    def _memory(self, e: Entry) -> Memory | None:
        v = read_fields(e.node, MEMORY, f"the memory '{e.name}'", self.faults, e.key.loc)
        if "kind" not in v:
            return None
        cells, cell, capacity = v.get("cells"), v.get("cell"), v.get("capacity")
        by_cells = "cells" in v or "cell" in v
        if by_cells == ("capacity" in v) or (by_cells and (cells is None or cell is None)):
            faulty = {k.text for k, _ in e.node.items} - set(v) if isinstance(e.node, Mapping) else set()
            if not faulty & {"cells", "cell", "capacity"} and faulty <= MEMORY.keys():  # else it is reported already
                self._sizes(e)
            return None
        if "shares" in v:
            self.marks["memory", e.name, "shares"] = v["shares"].loc
        self.marks["memory", e.name, "of"] = v["of"].loc if "of" in v else e.key.loc
        for key in ("align", "bandwidth", "masks"):
            if isinstance(e.node, Mapping) and (stated := e.node.get(key)) is not None:
                self.marks["memory", e.name, key] = stated.loc
        kind = v["kind"].text
        row = v.get("row")
        if row is not None and (row < 1 or by_cells or kind != MANAGED or (v.get("align") or 1) % row):
            hint = "rows are of a managed memory with a capacity, whose 'align' is a multiple of them"
            self.faults.add("system-memory", f"the memory '{e.name}' cannot have rows of {row} B", e.key.loc, hint)
        if (kind == CACHED) != ("of" in v):
            self.faults.add("system-memory", f"the memory '{e.name}' is {kind}: " + (
                "it must say what it stands in front of" if kind == CACHED
                else "only a cached one stands in front of another"),
                e.key.loc, "write 'of: MEMORY'" if kind == CACHED else "remove 'of'")  # fmt: skip
        return Memory(e.name, kind, capacity if capacity is not None else (cells or 0) * (cell or 0),
                      v.get("align") or 1,
                      cells, cell, v.get("home", False), v["of"].text if "of" in v else "", v.get("lanes"),
                      read_ports(v.get("ports", {}), e.key.loc, self.faults), row, v.get("lane"),
                      v["shares"].text if "shares" in v else "", v.get("bandwidth"),
                      v["masks"].text if "masks" in v else "", e.key.loc)  # fmt: skip

    def _sizes(self, e: Entry) -> None:
        """Tells that a memory says its size in no way, in half of one, or in two, which may be in two files."""
        stated = [e.node.get(n) for n in ("capacity", "cells")] if isinstance(e.node, Mapping) else []
        both = [str(v.loc) for v in stated if v is not None]
        what = "needs either a capacity or cells of a size", "write 'capacity: 16 KiB', or 'cells: 8, cell: 64 B'"
        if len(both) == 2:
            what = (f"has two sizes: a capacity at {both[0]}, cells at {both[1]}",
                    "leave one out; what a system extends cannot be taken back")  # fmt: skip
        self.faults.add("system-memory", f"the memory '{e.name}' {what[0]}", e.key.loc, what[1])

    def _unit(self, e: Entry) -> Unit | None:
        v = read_fields(e.node, UNIT, f"the unit '{e.name}'", self.faults, e.key.loc)
        if "clock" not in v:
            self.assumed.append(f"{e.name}: clock {CLOCK / 1e9:g} GHz")
        elif not v["clock"]:
            self.faults.add("system-unit", f"the clock of '{e.name}' stands still", e.key.loc, "for example '1 GHz'")
        driver = v["driver"].text if "driver" in v else "host"
        if ("counters" in v) != (driver == "sequencer"):
            self.faults.add("system-unit-loops", f"the loops of '{e.name}' are run by {driver}: " + (
                "it has no counters" if "counters" in v else "how many counters has it?"), e.key.loc,
                "write 'driver: sequencer, counters: 4'")  # fmt: skip
        runs: dict[str, None] = {}
        for w in v.get("runs", ()):
            for name in self._named(w):
                self.marks["unit", e.name, name] = w.loc
                runs[name] = None
        return Unit(e.name, tuple(runs), v.get("clock", CLOCK), driver, v.get("counters"),
                    v["hazards"].text if "hazards" in v else "tokens", e.key.loc)  # fmt: skip

    def _named(self, w: Scalar) -> list[str]:
        """The instructions that a name, a pattern or a family's key stands for."""
        have = self.draft.entries["instructions"]
        if w.text in have:
            return [w.text]
        if "{" in w.text:
            found = [n for n, e in have.items() if e.family == w.text]
        elif any(c in w.text for c in "*?") and len(w.text) <= 100:
            found = [n for n in have if fnmatchcase(n, w.text)]
        else:
            return [w.text]
        if not found and "instructions" not in self.draft.lost:
            self.faults.add("system-unknown-instruction", f"no instruction is called like '{w.text[:60]}'", w.loc,
                            nearest(w.text, {e.family or n: None for n, e in have.items()}))  # fmt: skip
        return found

    def _move(self, e: Entry) -> list[Move]:
        self.faults.member = e.member > 0
        v = read_fields(e.node, MOVE, "a move", self.faults, e.key.loc)
        if not all(k in v for k in ("from", "to", "by", "issuer")):
            return []
        out: list[Move] = []
        for by in v["by"]:
            for source in v["from"]:
                for target in v["to"]:
                    ways = [(source, target), (target, source)] if v.get("both_ways") else [(source, target)]
                    for name in self._named(by):
                        for a, b in ways:
                            m = Move(a.text, b.text, name, v["issuer"].text, bool(v.get("computes")),
                                     bool(v.get("streams")), e.key.loc)
                            self.marks["move", m, a.text] = a.loc
                            self.marks["move", m, b.text] = b.loc
                            self.marks["move", m, "by"] = by.loc
                            self.marks["move", m, "issuer"] = v["issuer"].loc
                            if m not in out:
                                out.append(m)
        return out

    def instruction(self, e: Entry) -> Instruction | None:
        v = read_fields(e.node, INSTRUCTION, f"the instruction '{e.name}'", self.faults, e.key.loc)
        if "body" not in v:
            return None
        before = len(self.faults.found)
        found = parse_body(v["body"], Scalar(e.name, e.key.loc), self.faults, judged=self.judged)
        if found is None:
            return None
        sound = len(self.faults.found) == before
        given = e.node.get("cost") if isinstance(e.node, Mapping) else None
        if isinstance(given, Mapping) and (stated := given.get("bandwidth")) is not None:
            self.marks["bandwidth", e.name] = stated.loc
        operands = Operands(e.name, {a.name: a for a in found.body.arguments}, self.faults, self.marks)
        made = Instruction(e.name, found.body, operands.contracts(v, e.key.loc), operands.apart(v),
                           self._cost(v.get("cost", {}), found, given),
                           self._emission(v, e), tuple(w.text for w in v.get("needs", ())), v.get("ulp", 0.0),
                           e.key.loc, v["family"].text if "family" in v else spoken(e.family), e.values,
                           self._settings(v, "requires", found), self._settings(v, "sets", found),
                           operands.burst(v, e.key.loc))  # fmt: skip
        for what, message, hint in contradictions(made) if sound else ():
            stated = e.node.get("ulp") if isinstance(e.node, Mapping) else None
            at = stated.loc if what == "ulp" and stated is not None else permission(v["body"])
            self.faults.add("system-numerics", message, at, hint)
        return made

    def _cost(self, given: Values, i: Instruction, node: Node | None) -> Cost:
        per: dict[Scalar, float] = given.get("per", {})
        narrow: dict[Scalar, dict[int, float]] = given.get("narrow", {})
        sizes = [s.name for s in i.syms]
        for size in (*per, *narrow):
            if size.text not in sizes:
                self.faults.add("system-operand", f"'{i.name}' has no size '{size.text[:40]}'", size.loc,
                                nearest(size.text, sizes))  # fmt: skip
        for size, some in narrow.items():
            if 0 in some:
                self.faults.add("system-count", f"a form of '{i.name}' takes no element", size.loc, "at least 1")
        asks = node.get("prefetch") if isinstance(node, Mapping) else None
        if asks is not None and not i.is_move:
            self.faults.add("system-move", f"'{i.name}' moves nothing that a cache could be asked for", asks.loc,
                            "'prefetch' is of moves, whose template says 'tile.prefetch'")  # fmt: skip
        forms = [Narrow(size.text, n, cycles) for size, some in narrow.items() for n, cycles in some.items() if n]
        return Cost(**{**given, "per": tuple((size.text, cycles) for size, cycles in per.items()),
                       "narrow": tuple(sorted(forms, key=lambda f: f.most))})  # fmt: skip

    def _settings(self, v: Values, key: str, i: Instruction) -> dict[str, str | int]:
        given: dict[Scalar, Scalar] = v.get(key, {})
        for r in given:
            self.marks[key, i.name, r.text] = r.loc
        sizes = tuple(s.name for s in i.syms)
        more = measures(i) if key == "requires" else frozenset[str]()
        return self.groups.settings(given, self.state, sizes, self.declared["state"], more) if given else {}

    def place(self, instruction: str, backend: str, line: int, column: int) -> Loc:
        """Where a template, or its line, stands; else its instruction, or the name of the back end."""
        key, text = self.templates.get((instruction, backend), (None, None))
        if text is not None and line:
            return place_in(text, line, column)
        if key is not None:
            return key.loc
        entry = self.draft.entries["instructions"].get(instruction)
        return entry.key.loc if entry else self.marks.get(("backend",), Loc(self.draft.file, 1, 1))

    def _emission(self, v: Values, e: Entry) -> dict[str, Any]:
        emission = v.get("emission") or {}
        if not isinstance(emission, dict):
            self.faults.add("system-kind", "expected templates by back end", e.key.loc, "write 'emission: {llvm: ...}'")
            return {}
        given = e.node.get("emission") if isinstance(e.node, Mapping) else None
        for key, text in given.items if isinstance(given, Mapping) else ():
            self.templates[e.name, key.text] = key, text if isinstance(text, Scalar) else None
        return emission
