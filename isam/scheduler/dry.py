"""The dry run against a MachineState (SCH-1): units and places of a call are chosen, its operands brought there."""

from __future__ import annotations

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.schedule.tree import Issue, Operand, Tile
from isam.scheduler import move as mv
from isam.scheduler.homes import Homes
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.nests import Nest, Use
from isam.scheduler.placement import Placement, joint_placements
from isam.scheduler.residency import Residency
from isam.scheduler.scope import Scope
from isam.scheduler.state import Key, disjoint, mentions
from isam.system.graph import System


class DryRun:
    """Executes calls symbolically and records the steps: ``scope`` is where it stands, ``data`` what lies where."""

    def __init__(self, kernel: Kernel, system: System, trace: Trace):
        self.kernel, self.system, self.trace = kernel, system, trace
        self.scope = Scope()
        self.homes = Homes(kernel, system)
        self.data = Residency(system, trace, self.scope, self.homes)
        self._runners: dict[str, tuple[str, ...]] = {}
        self._placements: dict[str, list[Placement]] = {}
        self._roomy: dict[object, list[Placement]] = {}  # those of them that hold such tiles

    def call(self, nest: Nest, point: dict[str, Affine], sizes: dict[str, int], tiles: tuple[Tile, ...]) -> None:
        """One instruction call with all its operands in place."""
        bound = list(zip(nest.uses, tiles, self._memories(nest, tiles), strict=True))
        keys = [self._key(*o) for o in bound]
        pinned = {k for k in keys if k is not None}
        try:
            places = {u.name: self.data.read(u, t, m, pinned)[0] for u, t, m in bound if u.reads}
        except NoSchedule as no:  # what the call holds already may lie in the middle of what room there is
            if not self.data.clear(no.reason.memory):
                raise
            places = {u.name: self.data.read(u, t, m, pinned)[0] for u, t, m in bound if u.reads}
        held = {k for k, (u, _, _) in zip(keys, bound, strict=True) if k is not None and u.reads}
        landed: list[tuple[Key | None, Tile, bool]] = []
        for u, t, m in bound:
            if u.writes:
                known = self.data.state.copies.get(self._key(u, t, m) or ("", t, None))
                places[u.name], key, copy = self.data.write(u, t, m, held)
                if key is not None and copy is not None:
                    self.data.state.put(key, copy)  # taken: another output may ask for room
                landed.append((key, t, known is not None and known.dirty))
                held |= {key} if key is not None else set()
        operands = tuple(Operand(u.name, t, places[u.name], u.dims) for u, t, _ in bound)
        around = ((t, Affine.of(t)) for t in nest.mapping.loops)
        where = (*around, *((nest.own.get(a, a), p) for a, p in point.items()))
        name = nest.instruction.name
        self.scope.out.append(Issue(self._unit(nest), name, tuple(sizes.items()), operands, nest.number, where))
        for key, tile, alone in landed:
            self.data.since.write(tile)
            for other in () if alone else self.data.state.of(tile.buffer):  # a dirty copy was the only one already
                if other != key and not disjoint(other[1], tile, self.scope.ranges):
                    self.data.state.drop(other)

    def _key(self, use: Use, tile: Tile, memory: str) -> Key | None:
        return None if memory == self.system.home else (memory, tile, mv.form_of(self.system, memory, tile, use.dims))

    def _unit(self, nest: Nest) -> str:
        name = nest.instruction.name
        names = self._runners.get(name)
        if names is None:
            names = self._runners[name] = tuple(u.name for u in self.system.units_of(name))
        if len(names) == 1:
            return names[0]
        return self.trace.choose(Choice("device", list(names), {"instruction": name}))

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
                fit = [o for o in options if self.data.roomy(zip(o.memories, tiles, strict=True))]
                self._roomy[key] = fit or options
            options = self._roomy[key]
        if len(options) == 1:
            return options[0].memories
        costs = []
        for option in options:
            missing = 0.0
            for u, t, m in zip(nest.uses, tiles, option.memories, strict=True):
                if self._key(u, t, m) not in self.data.state.copies:
                    missing += 1 if u.reads else 0.25
                    there = self.system.memories[m]
                    if not there.home and self.data.state.find_room(there, self.data.units(m, t)) is None:
                        missing += 1  # something else would have to go
                    if any(k[1] == t and self.data.state.copies[k].dirty for k in self.data.state.of(t.buffer)):
                        missing += 2
            costs.append(missing)
        context = {"instruction": nest.instruction.name, "tiles": [str(t) for t in tiles]}
        return self.trace.choose(Choice("place", options, context, costs)).memories

    def release(self, tile: Tile, crowded: bool) -> None:
        """After its last use in a block: copies that no later iteration can use make room at once; where the block's
        tiles do not all fit, so do clean copies that a later iteration could have used."""
        for key in self.data.state.of(tile.buffer):
            if key[1] != tile:
                continue
            c = self.data.state.copies[key]
            inner = self.scope.names[-1] if self.scope.names else None
            useless = self.data.lifetimes.spent(tile) if c.dirty else crowded or inner is None or mentions(tile, inner)
            if c.stage is None and useless:
                self.data.state.drop(key)
