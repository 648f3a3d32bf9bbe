"""The machine (SYS-1 to SYS-8): an immutable graph. What a schedule does to it is a separate value (MachineState)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Loc, fail
from isam.ir.dtype import size_of
from isam.ir.instruction import Instruction
from isam.ir.spacing import Spacing
from isam.ir.table import Some, Table
from isam.runtime.linking import Target
from isam.system.groups import Cluster, Link, Mesh, Ports, Register, Replica

ANY_NUMBER = Ports()
USUAL = "greedy"  # the Approach of a machine whose description names none
MANAGED, COUNTED, CACHED = "managed", "counted", "cached"
LOADS, ALL = "loads", "all"  # what registers do under masks
SEMANTICS_ONLY = "none"  # the back end of a description that says what instructions do, not how they are written


@dataclass(frozen=True, slots=True)
class Memory:
    """``managed``: explicit addresses (bytes, or ``cells`` cells of ``cell`` bytes). ``counted``: registers that the
    code generator allocates; only the number in use is checked. ``cached``: in front of ``of``, needs no moves; its
    capacity steers blocking, and the ``bandwidth`` at which it is read, in bytes per second (None: not known).

    ``capacity`` in bytes. ``home``: arguments live here. An operand in a cell memory occupies whole cells. ``lanes``:
    how many elements a register of a counted memory is for, whatever their type (None: as many as its bytes hold).
    ``masks``: what is done to some of the lanes under a mask, LOADS (of elements of four bytes and more that lie
    together) or ALL (loads, stores, gathers, scatters, of any elements); '' nothing.
    ``lane``: bytes of a lane that holds a group, as many elements of an operand's last dimension as fit (None: one).
    ``shares``: the counted memory whose registers these are, too: what plans put into both has to fit together.
    ``ports``: how many operands of one call it serves. ``row``: of bytes that are addressed by rows: an operand begins
    with a row, its last dimension lies within one, along the others it goes whole rows. ``align``: an access begins at
    a multiple of it.
    """

    name: str
    kind: str
    capacity: int
    align: int = 1
    cells: int | None = None
    cell: int | None = None
    home: bool = False
    of: str = ""
    lanes: int | None = None
    ports: Ports = ANY_NUMBER
    row: int | None = None
    lane: int | None = None
    shares: str = ""
    bandwidth: float | None = None
    masks: str = ""
    loc: Loc = field(default=NOWHERE, compare=False)

    @property
    def access(self) -> int:
        """Every access begins at a multiple of so many bytes; room may be given at multiples of more."""
        return max(1, self.align)

    def elements(self, dtype: str) -> int:
        """How many elements of a type a register is for; 0 where the description does not say."""
        return (self.lanes or 0) * (max(1, self.lane // size_of(dtype)) if self.lane else 1)

    @property
    def local(self) -> bool:
        """Whether what lies there is put at addresses, or into cells, of its own; home apart."""
        return self.kind == MANAGED and not self.home

    @property
    def scratchpad(self) -> bool:
        """Whether it is local, and its bytes are addressed."""
        return self.local and self.cells is None

    @property
    def fetched(self) -> bool:
        """Whether moves bring what lies there: it is neither home nor in front of it."""
        return self.kind != CACHED and not self.home

    @property
    def pool(self) -> str:
        """The memory whose room this one takes."""
        return self.shares or self.name

    @property
    def limit(self) -> int:
        """How much it holds: cells where it has them, else bytes."""
        return self.cells if self.cells is not None else self.capacity


@dataclass(frozen=True, slots=True)
class Unit:
    """Executes ``runs`` (instruction names), one call at a time; ``clock`` in Hz. Of its stream (SYS-8): ``driver``,
    who runs its loops (``host``; ``sequencer`` with so many loop ``counters``; ``expanded``: nobody, every call is
    spelled out), and ``hazards``, whether the hardware waits for operands (``resolved``) or tokens have to."""

    name: str
    runs: tuple[str, ...]
    clock: float
    driver: str = "host"
    counters: int | None = None
    hazards: str = "tokens"
    loc: Loc = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Move:
    """An edge of the graph: data may go from ``source`` to ``target`` by instruction ``by``, issued by ``issuer``.
    ``computes``: kernels may be mapped onto that instruction, too (``D[i, j] = S[j]`` brings a row, begins sums).
    ``streams``: what it brings does not stay in the nearest cache; it takes the place of another one along the edge
    with the same body, where the scheduler has decided so."""

    source: str
    target: str
    by: str
    issuer: str
    computes: bool = False
    streams: bool = False
    loc: Loc = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class System:
    """A machine. ``backend`` names the emitter of its code (``simulator``, ``llvm``, ``stream``, or ``none``: kernels
    can be mapped onto it, not compiled for it), ``approach`` the Approach whose opinions suit it. Of the ``facts``
    ``snippets...`` and ``stream`` are for back ends, the rest for Approaches and reports only. ``replicas``, ``links``,
    ``clusters``, ``state``, ``meshes``: what nodes have in common (see ``groups``)."""

    name: str
    memories: dict[str, Memory]
    units: dict[str, Unit]
    moves: tuple[Move, ...]
    instructions: Mapping[str, Instruction]
    backend: str = "simulator"
    approach: str = USUAL
    facts: dict[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()  # costs that the description does not state (SYS-7)
    source: str = ""  # where it was read from
    needs: tuple[str, ...] = ()  # CPU features without which it cannot run
    backend_loc: Loc = field(default=NOWHERE, compare=False)
    replicas: dict[str, Replica] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    clusters: dict[str, Cluster] = field(default_factory=dict)
    state: dict[str, Register] = field(default_factory=dict)
    meshes: dict[str, Mesh] = field(default_factory=dict)
    target: Target | None = None  # the CPU that code is made for, where it is not the one we run on

    @property
    def digest(self) -> str:
        """Of the texts it was read from; empty for a machine that was made or changed otherwise."""
        return self.__dict__.get("_digest", "")

    def demand_backend(self) -> None:
        """Raises ``IsamError`` when the description has semantics only."""
        if self.backend == SEMANTICS_ONLY:
            raise fail("system-no-backend", f"'{self.name}' says what its instructions do, not how they are written: "
                       "nothing can be scheduled or compiled for it", self.backend_loc,
                       "isam map and isam explain work on it; code takes a back end and templates")  # fmt: skip

    def functions(self) -> dict[str, Any]:
        """Python functions behind its instructions that anything refers to so far, by instruction name."""
        seen = Table.of(self.instructions).seen()
        return {i.name: i.emission["python"] for i in seen if callable(i.emission.get("python"))}

    @cached_property
    def home(self) -> str:
        return next(m.name for m in self.memories.values() if m.home)

    @cached_property
    def caches(self) -> tuple[Memory, ...]:
        """Those in front of home memory, nearest first: the smallest."""
        return tuple(sorted((m for m in self.memories.values() if m.kind == CACHED), key=lambda m: m.capacity))

    @cached_property
    def moves_by_edge(self) -> dict[tuple[str, str], tuple[Move, ...]]:
        """Those that data is brought by, in description order: what streams takes the place of one of them."""
        out: dict[tuple[str, str], tuple[Move, ...]] = {}
        for m in self.moves:
            if not m.streams:
                out[m.source, m.target] = (*out.get((m.source, m.target), ()), m)
        return out

    @cached_property
    def issued(self) -> frozenset[tuple[str, str, str, str]]:
        """Every move: from where, to where, by which instruction and which unit."""
        return frozenset((m.source, m.target, m.by, m.issuer) for m in self.moves)

    @cached_property
    def named(self) -> frozenset[str]:
        """Memories with cells that have names, where caches lie before main memory: a core starts what it is told to do
        in them in the order in which it is told, and looks only so far ahead."""
        cells = (m.name for m in self.memories.values() if m.kind == MANAGED and m.cells is not None)
        return frozenset(cells if self.caches else ())

    @cached_property
    def streaming(self) -> dict[str, str]:
        """By the name of an instruction that moves: the one that does the same and makes nothing stay in the nearest
        cache."""
        return {plain: m.by for m in self.moves if m.streams for plain in self.kept_by(m)}

    def kept_by(self, move: Move) -> list[str]:
        """Instructions along the edge of a move that streams that do the same."""
        along = (move, *self.moves_by_edge.get((move.source, move.target), ()))
        bodies = {m.by: replace(self.instructions[m.by].body, name="") for m in along if m.issuer == move.issuer}
        return [name for name, body in bodies.items() if name != move.by and body == bodies[move.by]]

    @cached_property
    def filled(self) -> frozenset[str]:
        """Memories, home aside, to which only moves lead from some other one that fill what is beside what they copy:
        what is there lies in boxes as they leave it."""
        able = [m.name for m in self.memories.values() if not m.home and m.kind != COUNTED]
        return frozenset(t for (_, t), moves in self.moves_by_edge.items()
                         if t in able and all(self.instructions[m.by].fill for m in moves))  # fmt: skip

    @cached_property
    def scratchpads(self) -> dict[str, Memory]:
        """Those where data lies at any address, in any order: neither by rows, nor as the moves leave it that fill."""
        return {n: m for n, m in self.memories.items() if m.scratchpad and not m.row and n not in self.filled}

    @cached_property
    def compute(self) -> Some:
        """Instructions that units expose for computing, in description order (others move or configure)."""
        table, used = Table.of(self.instructions), {m.by for m in self.moves} - {m.by for m in self.moves if m.computes}
        exposed = {r for u in self.units.values() for r in u.runs}
        names = [n for n in table if n in exposed and n not in used and table.computes(n)]
        spacing = Spacing(table, self._at_home, self.closed, lambda: self._loose, bool(self.caches))
        return Some(table, names, spacing)

    @cached_property
    def closed(self) -> frozenset[str]:
        """Memories that no move leads to: data is there only where instructions begin it."""
        open_ = {m.target for m in self.moves} | {m.name for m in self.memories.values() if m.kind == CACHED}
        return frozenset(self.memories.keys() - open_ - {self.home})

    @property
    def _loose(self) -> frozenset[str]:
        """Memories with places of their own for data, which moves do not fill."""
        return frozenset(n for n, m in self.memories.items() if m.local and n not in self.filled)

    @property
    def _at_home(self) -> list[tuple[str, bool, str]]:
        """Moves between registers and home: the registers, whether it leads home, the instruction."""
        out = [(m.source, True, m.by) for m in self.moves if m.target == self.home]
        out += [(m.target, False, m.by) for m in self.moves if m.source == self.home]
        return [o for o in out if self.memories[o[0]].kind == COUNTED]

    def clock_assumed(self, unit: str) -> bool:
        """Whether the description states no clock of a unit."""
        return any(a.startswith(f"{unit}: clock ") for a in self.assumed)

    def units_of(self, instruction: str) -> tuple[Unit, ...]:
        """Who executes it, in description order."""
        if instruction not in self._users:
            self._users[instruction] = tuple(u for u in self.units.values() if instruction in u.runs)
        return self._users[instruction]

    def clock_of(self, instruction: str) -> float:
        """Cycles in a second of the fastest unit that executes it."""
        return max(u.clock for u in self.units_of(instruction))

    @cached_property
    def _users(self) -> dict[str, tuple[Unit, ...]]:
        return {}  # by instruction, filled in as they are asked for: a unit runs more than a thousand

    def spread(self, instruction: str) -> tuple[int, int]:
        """How many streams call the instruction, and on how many units it runs, all replicas counted."""
        counts = {u.name: self.replicas[r].count if (r := self.replica_of(u.name)) else 1
                  for u in self.units_of(instruction)}  # fmt: skip
        streams = {self.stream_of(n): c for n, c in counts.items()}
        return sum(streams.values()), sum(counts.values())

    def replica_of(self, name: str) -> str | None:
        """The replica that a memory or a unit belongs to; None for what is there once."""
        return next((r.name for r in self.replicas.values() if name in r.memories or name in r.units), None)

    @property
    def threads(self) -> Replica | None:
        """The replica for whose instances threads stand."""
        return next((r for r in self.replicas.values() if r.threads), None)

    def threaded(self, count: int) -> System:
        """This machine with so many instances of what threads stand for. Raises ``IsamError`` where they stand for
        nothing."""
        of = self.threads
        if of is None:
            raise fail("system-threads", f"threads stand for nothing on '{self.name}'",
                       hint="describe cores as 'replicas:' with 'threads: true'")  # fmt: skip
        return replace(self, replicas={**self.replicas, of.name: replace(of, count=count)})

    def cluster_of(self, unit: str) -> str | None:
        """The cluster whose instruction stream the unit follows; None for one with a stream of its own."""
        return next((c.name for c in self.clusters.values() if unit in c.units), None)

    def stream_of(self, unit: str) -> str:
        """The stream that a unit's calls belong to: its cluster's, or its own."""
        return self.cluster_of(unit) or unit

    def streams(self, instruction: str) -> tuple[tuple[str, ...], ...]:
        """The units that run it: those of a cluster together, which may start calls of it at once, others alone."""
        out: dict[str, tuple[str, ...]] = {}
        for u in self.units_of(instruction):
            stream = self.cluster_of(u.name) or f"unit {u.name}"
            out[stream] = (*out.get(stream, ()), u.name)
        return tuple(out.values())

    def links_of(self, source: str, target: str) -> tuple[Link, ...]:
        """What a move along this edge shares with others."""
        return tuple(k for k in self.links.values() if (source, target) in k.edges)

    def crossings(self, source: str, target: str) -> tuple[tuple[Mesh, str, bool], ...]:
        """The meshes that a move along this edge crosses, each with the memory that is attached to it and whether
        something goes in, to an instance."""
        inward = self.replica_of(target), source, True
        outward = self.replica_of(source), target, False
        return tuple((m, memory, way) for m in self.meshes.values() for replica, memory, way in (inward, outward)
                     if m.replica == replica and memory in dict(m.ports))  # fmt: skip

    def homes(self, instruction: Instruction, operand: str) -> tuple[str, ...]:
        """Memories in which this operand may live, in order of preference."""
        return instruction.contract(operand).homes or (self.home,)

    def extended(self, *instructions: Instruction, unit: str | None = None) -> System:
        """This machine with further instructions (or registered functions) on ``unit`` (default: the first unit).
        Raises ``IsamError``: a name that is taken, a unit or memory that is not there."""
        from isam.diagnostics import did_you_mean, fail

        name = unit or next(iter(self.units))
        if name not in self.units:
            raise fail("system-unknown-unit", f"the system '{self.name}' has no unit '{name}'",
                       hint=did_you_mean(name, self.units) or f"units: {', '.join(self.units)}")  # fmt: skip
        table, assumed = Table.of(self.instructions), list(self.assumed)
        for given in instructions:
            i = self._priced(given, self.units[name].clock, assumed)
            if i.name in table:
                raise fail("system-duplicate", f"the system '{self.name}' already has an instruction '{i.name}'")
            self._check_homes(i)
            table = table.plus(i)
        new = [n for n in table if n not in self.instructions]
        u = replace(self.units[name], runs=(*new, *self.units[name].runs))
        return replace(self, instructions=table, units={**self.units, name: u}, assumed=tuple(assumed))

    def _priced(self, given: Any, clock: float, assumed: list[str]) -> Instruction:
        """An instruction, or that of a registered function; one whose calls were measured costs so many cycles where
        its calls are made by this CPU. ``assumed`` gets what nobody stated. Raises ``IsamError`` for anything else."""
        i: Instruction = getattr(given, "instruction", given)
        if not isinstance(i, Instruction):
            from isam.diagnostics import fail

            raise fail("instruction-function", f"{given!r:.80} is no instruction",
                       hint="give what isam.instruction(\"instruction ...\")(function) returns, or an instruction of "
                       "isam.parse_instruction")  # fmt: skip
        seconds: float | None = getattr(given, "seconds", None)
        if seconds is not None and self.backend == "llvm" and self.target is None:
            from isam.system.costs import in_cycles

            cycles = in_cycles(seconds, clock)
            assumed.append(f"{i.name}: issue, latency ({cycles:g} cycles, as measured when it was registered)")
            return replace(i, cost=replace(i.cost, issue=cycles, latency=cycles))
        if seconds is not None:
            assumed.append(f"{i.name}: issue, latency")
        return i

    def _check_homes(self, i: Instruction) -> None:
        from isam.diagnostics import did_you_mean, fail

        for o, c in i.operands.items():
            for h in c.homes:
                if h not in self.memories:
                    hint = did_you_mean(h, self.memories) or f"memories: {', '.join(self.memories)}"
                    what = f"'{o}' of '{i.name}' lives in '{h}', which '{self.name}' does not have"
                    raise fail("system-unknown-memory", what, i.loc, hint)

    def restricted(self, names: Iterable[str]) -> System:
        """This machine with only the compute instructions named (moves stay, and what sets registers)."""
        table = Table.of(self.instructions)
        keep = set(names) | {m.by for m in self.moves} | set(table.setters())
        units = {n: replace(u, runs=tuple(r for r in u.runs if r in keep)) for n, u in self.units.items()}
        return replace(self, units=units, instructions=table.only(keep))
