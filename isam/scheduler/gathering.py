"""Results of a block that meet in a memory on their way home: it is their home while they are computed, whoever
computes which part, and all of them go on from there in one piece (SCH-9).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Place, Slot, Tile
from isam.scheduler.dry import DryRun
from isam.scheduler.hops import End
from isam.scheduler.laid_out import layout_of, room_of
from isam.scheduler.move import sub_place
from isam.scheduler.nests import hull
from isam.scheduler.plan import Gathered, Members, Plan
from isam.scheduler.transfer import Transfer
from isam.scheduler.trim import Env


class Gathering:
    """Carries out what a plan says of results that meet on their way home."""

    def __init__(self, run: DryRun, plan: Plan):
        self.run, self.plan = run, plan
        self.taken: dict[str, int] = {}  # of the room for results, by those that we are in
        self.turn = 0  # which of the blocks that take turns we are in
        self.shifted = False  # what is gathered where we are lies in the place for that turn

    @contextmanager
    def within(self, depth: int, env: Env, members: Members) -> Iterator[None]:
        """In a block of the loops above ``depth``, the results that are gathered there."""
        with ExitStack() as stack:
            for g in self.plan.gathered:
                if g.depth == depth:
                    stack.enter_context(self._gathered(g, env, members))
            yield

    @contextmanager
    def turned(self, turn: int) -> Iterator[None]:
        """In one of the blocks that an iteration holds."""
        before, self.turn = self.turn, turn
        try:
            yield
        finally:
            self.turn = before

    @contextmanager
    def _gathered(self, what: Gathered, env: Env, members: Members) -> Iterator[None]:
        run, data, homes = self.run, self.run.data, self.run.homes
        uses = (u for i in members for u in self.plan.group.nests[i].uses if u.buffer == what.buffer)
        box = hull(what.buffer, [u.index for u in uses], env)
        if box is None or what.buffer in data.unread:  # then it stays where it is computed
            yield
            return
        memory, size = run.system.memories[what.memory], size_of(homes.dtype(what.buffer))
        layout, total = layout_of(box.shape, size, range(len(box.shape)), align=memory.align)
        name, begin = f"{memory.name}.results", self.taken.get(memory.name, 0)
        before, shifted = begin, self.shifted
        begin += 0 if shifted else self.turn * what.second
        self.shifted = shifted or bool(what.second)
        end, known = begin + room_of(total, memory.align), homes.slots.get(name)
        homes.slots[name] = Slot(name, memory.name, max(end, known.bytes if known else 1), max(1, memory.align))
        place = Place(memory.name, name, Affine((), begin), layout.coefficients)
        outside, dtype = homes.of(what.buffer), homes.dtype(what.buffer)
        there = End(memory.name, lambda t: sub_place(place, box, t))
        dirty = data.state.until_none(lambda: data.state.of(what.buffer), lambda k: data.state.copies[k].dirty)
        for key in dirty:  # what lies beside the box has its home elsewhere
            data.flush(key)
        if what.begun:
            self._carry(box, End(outside, data.home), there, dtype)
        self.taken[memory.name] = end
        with homes.gathering(box, place):
            yield
            for key in data.state.of(what.buffer):
                if key in data.state.copies and what.goes:
                    data.evict(key, leaving=lambda k: k[1].buffer == what.buffer)
                elif key in data.state.copies:
                    data.state.drop(key)
        self.taken[memory.name], self.shifted = before, shifted
        if what.goes:
            self._carry(box, there, End(outside, data.home), dtype)

    def _carry(self, box: Tile, source: End, target: End, dtype: str) -> None:
        path = self.run.data.fit.route(source.memory, target.memory, dtype)
        assert path is not None, "plans gather where moves lead from home and back"
        Transfer(self.run.data, box, path, source, target, set()).run()
