"""The dry run against a MachineState (SCH-1): units and places of a call are chosen, its operands brought there."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field, replace

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.schedule.tree import Issue, Operand, Place, Tile
from isam.scheduler.begun_together import part_of
from isam.scheduler.homes import Homes
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.move import sub_place
from isam.scheduler.nests import Call, Nest, Use
from isam.scheduler.placement import Placement, joint_placements
from isam.scheduler.residency import Residency
from isam.scheduler.routes import Routes
from isam.scheduler.scope import Scope
from isam.scheduler.spread import Spread
from isam.scheduler.state import STAGED, Copy, Key, MachineState, reading
from isam.scheduler.tiles import disjoint, mentions
from isam.system.graph import System

Located = tuple[Use, Tile, Key | None]  # an operand, what it covers, and its copy's name; None: it stays at home
WRITTEN = 0.25  # of what an operand costs that is read: one that is only written goes home once (guessed)
BROUGHT_HOME = 2  # the same for one that lies changed elsewhere, and has to go home and come back (guessed)
AHEAD = 16  # calls among which one that may start with another is looked for
Landed = tuple[Key | None, Tile, bool]  # where an output lands, and whether that copy was the only fresh one before


class DryRun:
    """Executes calls symbolically and records the steps: ``scope`` is where it stands, ``data`` what lies where."""

    def __init__(self, kernel: Kernel, system: System, trace: Trace, routes: Routes):
        self.kernel, self.system, self.trace = kernel, system, trace
        self.scope = Scope()
        self.homes = Homes(kernel, system)
        self.data = Residency(system, trace, self.scope, self.homes, routes)
        self.devices = self.data.devices
        self._placements: dict[str, list[Placement]] = {}
        self.spread: Spread | None = None  # of what stays near while the main nest of the present group sums up
        self._roomy: dict[object, list[Placement]] = {}  # those of them that hold such tiles
        self._meeting: dict[tuple[int, int], _Meeting] = {}

    def steps(self, calls: list[Call]) -> list[list[Call]]:
        """Which of these calls start together, as a step of a cluster: calls of one nest and one size, of which none
        writes what another touches, and that read the same where members share an operand. Where a neighbour is no such
        call (an edge is smaller), the next one that is comes forward, if nothing that it passes has to be first. Calls
        of other units are a step each."""
        out, left = [], list(calls)
        while left:
            step, at = [left.pop(0)], 0
            most = max(map(len, self.devices.streams(step[0][0].instruction.name)))
            while len(step) < most and at < min(len(left), AHEAD):
                call = left[at]
                if self._together(step, call) and self._apart(left[:at], call):
                    step.append(left.pop(at))
                else:
                    at += 1
            out.append(step)
        return out

    def _together(self, step: list[Call], call: Call) -> bool:
        """Whether it may start with these: of their nest and size, neither writes what the other touches, and what
        members share is the same of all."""
        nest, _, sizes, tiles = call
        alike = all(c[0] is nest and c[2] == sizes for c in step)
        return alike and all(step[0][3][i] == tiles[i] for i in _shared(nest)) and self._apart(step, call)

    def _apart(self, calls: list[Call], call: Call) -> bool:
        """Whether none of these writes what the call touches, nor the other way round."""
        nest, _, _, tiles = call
        for other, _, _, theirs in calls:
            key = id(nest.uses), id(other.uses)
            if key not in self._meeting:
                self._meeting[key] = _meeting(nest.uses, other.uses)
            for i, j in self._meeting[key].pairs:
                if not disjoint(tiles[i], theirs[j], {}):
                    return False
        return True

    def step(self, calls: list[Call]) -> None:
        """Calls that start together, on a member of a cluster each; one after the other where they do not fit."""
        try:
            self._issue(calls)
        except NoSchedule:
            if len(calls) == 1:
                raise
            for c in calls:
                self._issue([c])

    def _issue(self, calls: list[Call]) -> None:
        """Calls with all their operands in place."""
        located = [self._located(nest, tiles) for nest, _, _, tiles in calls]
        several = len(calls) > 1
        shared = _shared(calls[0][0]) if several else ()
        parted = any(_memory(one[i]) != _memory(located[0][i]) for i in shared for one in located)
        if parted or (several and self._expels(located) and not self._expels(located[:1])):
            for c in calls:  # one after the other: results stay where they are, what is shared is in one memory
                self._issue([c])
            return
        pinned = {k for one in located for _, _, k in one if k is not None}
        try:
            places = [self._read(one, pinned) for one in located]
        except NoSchedule as no:  # what the call holds already may lie in the middle of what room there is
            if not self.data.clear(no.reason.memory):
                raise
            places = [self._read(sorted(one, key=self._passed), pinned) for one in located]
        try:
            landed = self._written(located, places, self._held(located, pinned))
        except NoSchedule as no:  # so it may with results; several calls are tried one after the other first
            if len(calls) > 1 or not self.data.clear(no.reason.memory):
                raise
            places = [self._read(sorted(one, key=self._passed), pinned) for one in located]
            landed = self._written(located, places, self._held(located, pinned))
        units = self.devices.units(calls)
        each = enumerate(zip(calls, located, places, units, strict=True))
        for n, ((nest, point, sizes, _), one, there, unit) in each:
            mine = {u.name: Operand(u.name, t, there[u.name], u.dims) for u, t, _ in one}
            operands = tuple([mine[o.operand] for o in nest.mapping.operands])
            around = ((t, Affine.of(t)) for t in nest.mapping.loops)
            where = (*around, *_where(nest, point))
            name, taken = nest.instruction.name, tuple(sizes.items())
            self.scope.out.append(Issue(unit, name, taken, operands, nest.number, where, joined=n > 0))
        for key, tile, alone in landed:
            self.data.since.write(tile)
            # a dirty copy was the only one already
            for other in () if alone else self.data.state.meeting(tile, self.scope.ranges):
                if other != key:
                    self.data.state.drop(other)

    def _read(self, located: list[Located], pinned: set[Key]) -> dict[str, Place]:
        return {u.name: _part(self.data.read(u, t, k, pinned), t, k) for u, t, k in located if u.reads}

    def _held(self, located: list[list[Located]], pinned: set[Key]) -> set[Key]:
        """What calls read has to stay while room is made for their results, boxes that it lies in as well."""
        longer = set(self.data.block.wider.values())
        boxes = {k for k in pinned if k[2] == STAGED or k[1] in longer}
        return boxes | {k for one in located for u, _, k in one if u.reads and k is not None}

    def _passed(self, located: Located) -> int:
        """Of operands that are brought where there is little room, those first that come the longest way: what lies
        where they pass would leave them no room."""
        use, _, key = located
        return 0 if key is None else -len(self.data.fit.route(self.system.home, key[0], use.dtype) or ())

    def _written(self, located: list[list[Located]], places: list[dict[str, Place]], held: set[Key]) -> list[Landed]:
        """Room for all that the calls write; where there is not, nothing has changed: also what would be written over,
        and has made room for it, is there again."""
        if not any(self._overwrites(one, held) for one in located):
            return self._placed(located, places, held)
        data, out = self.data, self.scope.out
        with data.attempt() as since, self.scope.recording() as nodes:
            landed, state = self._placed(located, places, held), data.state
        data.state = state
        data.since.then(since, self.scope.ranges)
        out.extend(nodes)
        return landed

    def _overwrites(self, located: list[Located], held: set[Key]) -> bool:
        """Whether a call writes anew what has its only fresh copy elsewhere, where it need not stay."""
        copies, holding = self.data.state.copies, self.data.state.holding
        anew = ((t, key) for u, t, key in located if u.writes and not u.reads)
        return any(copies[k].dirty and k != key and k not in held for t, key in anew for k in holding(t))

    def _placed(self, located: list[list[Located]], places: list[dict[str, Place]], held: set[Key]) -> list[Landed]:
        """The same, but for what is written over."""
        step = _Step(self.data.state, set(held))
        try:
            return [w for one, there in zip(located, places, strict=True) for w in self._write(one, there, step)]
        except NoSchedule:
            step.undo()
            raise
        finally:
            step.close()

    def _write(self, located: list[Located], places: dict[str, Place], step: _Step) -> list[Landed]:
        """Makes room for what a call writes."""
        landed: list[Landed] = []
        for u, t, key in located:
            if u.writes:
                alone = key is not None and self.data.state.alone(key)
                place, copy = self.data.write(u, t, key, step.held)
                places[u.name] = _part(place, t, key)
                if key is not None and copy is not None:
                    step.put(key, copy)
                landed.append((key, t, alone))
        return landed

    def _located(self, nest: Nest, tiles: tuple[Tile, ...]) -> list[Located]:
        """A call's operands in the memories that they are to lie in."""
        sides = zip(nest.uses, tiles, self._memories(nest, tiles), strict=True)
        keys = ((u, t, self._key(u, t, m)) for u, t, m in sides)
        return [(u, t, None if k is None else part_of(self.data, nest, u, k)) for u, t, k in keys]

    def _key(self, use: Use, tile: Tile, memory: str) -> Key | None:
        if memory == self.homes.of(tile.buffer):
            return None
        return memory, tile, self.data.fit.form(memory, tile, use.dims, use.strides)

    def _memories(self, nest: Nest, tiles: tuple[Tile, ...]) -> tuple[str, ...]:
        """A legal joint placement of the operands (SCH-4, SYS-3)."""
        options = self._placements.get(nest.instruction.name)
        if options is None:
            options = joint_placements(nest, self.system)
            self._placements[nest.instruction.name] = options
        if not options:
            raise NoSchedule(
                Infeasible(
                    f"instruction {nest.instruction.name}",
                    "a joint placement of its operands",
                    "its homes, 'apart' groups and ports contradict each other",
                )
            )
        if len(options) > 1:
            key = (nest.instruction.name, *(t.shape for t in tiles))
            if key not in self._roomy:
                fit = [o for o in options if self.data.fit.roomy(zip(nest.uses, tiles, o.memories, strict=True))]
                self._roomy[key] = fit or options
            options = self._roomy[key]
        if len(options) == 1:
            return options[0].memories
        bids = [{m: self._bid(u, t, m) for m in {o.memories[n] for o in options}}
                for n, (u, t) in enumerate(zip(nest.uses, tiles, strict=True))]  # fmt: skip
        room: dict[tuple[str, int], bool] = {}
        costs = [self._price([bid[m] for bid, m in zip(bids, o.memories, strict=True)], room) for o in options]
        context = {"instruction": nest.instruction.name, "tiles": [str(t) for t in tiles]}
        return self.trace.choose(Choice("place", options, context, costs)).memories

    def _expels(self, located: list[list[Located]]) -> bool:
        """Whether some result would have to go home to make room in cells for operands of these calls."""
        state, wanted = self.data.state, {k: t for one in located for _, t, k in one if k is not None}
        free = {m: n for m in {k[0] for k in wanted} if (n := self.system.memories[m].cells) is not None}
        for key, tile in wanted.items():
            if (m := key[0]) in free:
                free[m] -= self.data.fit.units(m, tile) if key not in state.copies else 0
        for m in free:
            free[m] -= state.kept(m, wanted)
        return any(n < 0 for n in free.values())

    def _bid(self, use: Use, tile: Tile, memory: str) -> tuple[float, str, int]:
        """What it costs to have an operand in a memory, and how much of it that takes beyond what is taken now."""
        state = self.data.state
        if self._key(use, tile, memory) in state.copies:
            return 0.0, memory, 0
        price = (1 if use.reads else WRITTEN) + BROUGHT_HOME * any(state.copies[k].dirty for k in state.holding(tile))
        if self.spread is not None and tile.buffer in self.spread.homes:
            there = self.system.memories[memory]
            price += self.spread.price(tile.buffer, there, state.taken(memory) if there.cells else 0)
        return price, memory, 0 if memory == self.homes.of(tile.buffer) else self.data.fit.units(memory, tile)

    def _price(self, bids: list[tuple[float, str, int]], room: dict[tuple[str, int], bool]) -> float:
        """What a placement costs: tiles to be brought, others that would have to go for them, dirty ones above all.
        ``room``: whether a memory has room for so much, as far as that is known."""
        needed: dict[str, int] = {}
        for _, m, units in bids:
            if units:
                needed[m] = needed.get(m, 0) + units
        for key in needed.items():
            if key not in room:
                room[key] = self._has_room(*key)
        return sum([price for price, _, _ in bids]) + sum([not room[key] for key in needed.items()])

    def _has_room(self, memory: str, units: int) -> bool:
        there, state = self.system.memories[memory], self.data.state
        if there.cells is not None:
            return units <= there.cells - state.taken(memory)
        return state.find_room(there, units) is not None

    def release(self, tile: Tile, crowded: Collection[str]) -> None:
        """After its last use in a block: copies that no later iteration can use make room at once; in memories that do
        not hold all of the block's tiles, so do clean copies that a later iteration could have used."""
        for key in self.data.state.holding(tile):
            c = self.data.state.copies[key]
            inner = self.scope.names[-1] if self.scope.names else None
            passed = key[0] in crowded or inner is None or mentions(tile, inner)
            useless = self.data.lifetimes.spent(tile) if c.dirty else passed
            if c.stage is None and useless:
                self.data.state.drop(key)


def _memory(located: Located) -> str | None:
    """Where an operand is brought; None: nowhere."""
    return None if located[2] is None else located[2][0]


def _part(place: Place, tile: Tile, key: Key | None) -> Place:
    """Where a tile lies within the copy that it is to be in."""
    return place if key is None or key[1] == tile else sub_place(place, key[1], tile)


def _shared(nest: Nest) -> list[int]:
    """The operands that members of a cluster take from the same place, by number."""
    return [i for i, u in enumerate(nest.uses) if nest.instruction.contract(u.name).shared]


@dataclass(frozen=True)
class _Meeting:
    """Which operands of calls of two nests may be in each other's way: pairs of their numbers."""

    uses: tuple[Use, ...]
    others: tuple[Use, ...]
    pairs: list[tuple[int, int]]


def _meeting(uses: tuple[Use, ...], others: tuple[Use, ...]) -> _Meeting:
    both = ((i, j, u, w) for i, u in enumerate(uses) for j, w in enumerate(others))
    return _Meeting(uses, others, [(i, j) for i, j, u, w in both if (u.writes or w.writes) and u.buffer == w.buffer])


def _where(nest: Nest, point: dict[str, Affine]) -> Iterable[tuple[str, Affine]]:
    """A point in the kernel's axes."""
    if nest.moved:
        point = {a: nest.moved[a].substitute(point) if a in nest.moved else p for a, p in point.items()}
    return [(nest.own.get(a, a), p) for a, p in point.items()] if nest.own else point.items()


@dataclass(eq=False)
class _Step:
    """What calls of one step write, as far as there is room for it. ``held``: what must stay meanwhile; ``before``:
    what the state said of the tiles that have a place now; ``read``: what keeps its own place as well until the end."""

    state: MachineState
    held: set[Key]
    before: dict[Key, Copy | None] = field(default_factory=dict)
    read: list[Key] = field(default_factory=list)

    def put(self, key: Key, copy: Copy) -> None:
        """Takes a place: another output may ask for room. What is read elsewhere keeps its own until the step ends."""
        now = self.state.copies.get(key)
        old = self.before.setdefault(key, now)
        if old is not None and key in self.held and old.place != copy.place:
            self.state.put(reading(key), replace(old, dirty=False))
            self.held.add(reading(key))
            self.read.append(reading(key))
        if copy is not now:
            self.state.put(key, copy)
        self.held.add(key)

    def undo(self) -> None:
        """Nothing was written."""
        for key, old in self.before.items():
            if old is not None:
                self.state.put(key, old)
            elif key in self.state.copies:
                self.state.drop(key)

    def close(self) -> None:
        for key in self.read:
            if key in self.state.copies:
                self.state.drop(key)
