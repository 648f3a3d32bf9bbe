"""How far behind a call the nearest earlier one is that it must wait for: per stream, a number of calls.

Nothing is executed and no history is kept: from a point in the tree one looks back, over what stands before it in its
sequence, over earlier iterations of the loops around it, over what stands before those. What is passed counts with all
its calls; a finished loop that touches nothing in question is one look and one sum, however often it runs. One that
does is looked into from its end: its last ``CLOSE`` iterations as they are, those before them as one.

Numbers are lower bounds: of a loop whose trip is not known no call is counted, and of all the times that a point is
reached the least distance holds.
"""

from __future__ import annotations

from dataclasses import field

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.byte_ranges import ByteRange
from isam.schedule.tree import Issue, Loop, Node, Seq
from isam.scheduler.tiles import Ranges
from isam.scheduler.waits.footprints import Footprint, clash, first_value, values_of
from isam.scheduler.waits.look import Calls, Frame, Lags, Look, Met, View
from isam.scheduler.waits.within import NOBODY, Within

CLOSE = 2  # iterations looked at one by one


@dataclass
class Lookback:
    """What accesses meet, looking back from a point in a tree: steps before it in its sequence, then, loop by loop,
    those of the iterations before and what stands before the loop."""

    within: Within
    trees: tuple[Node, ...]
    _possible: dict[object, frozenset[Met]] = field(default_factory=dict)
    _views: dict[object, View] = field(default_factory=dict)
    _last: tuple[Footprint, ByteRange] = NOBODY, (0, 0)

    @property
    def groups(self) -> dict[str, str]:
        """The replicated group of a stream."""
        return self.within.groups

    # -- from a point upwards ----------------------------------------------------------------------------------------
    def before(self, frame: Frame, mine: Footprint, ranges: Ranges, dealt: tuple[Loop, ...] = ()) -> Lags:
        """What an access meets, looking back from a point."""
        key = (mine, dealt and tuple(map(id, dealt)))
        got = frame.known.get(key)
        if got is None:
            if frame.node is None or frame.parent is None:
                got = {}
            elif isinstance(frame.node, Seq):
                got = self.in_row(frame, frame.node, mine, self.view(ranges, dealt))
            else:
                got = self._in_loop(frame, frame.node, mine, self.view(ranges, dealt))
            frame.known[key] = got
        return got

    def view(self, ranges: Ranges, dealt: tuple[Loop, ...]) -> View:
        key = (id(ranges), dealt and tuple(map(id, dealt)))
        got = self._views.get(key)
        if got is None:
            got = self._views[key] = View({}, ranges, dealt)
        return got

    def _look(self, mine: Footprint, passed: Calls | None = None) -> Look:
        if self._last[0] is not mine:
            self._last = mine, self.within.span(mine)
        return Look(mine, self._last[1], passed={} if passed is None else passed)

    def in_row(self, frame: Frame, seq: Seq, mine: Footprint, view: View) -> Lags:
        """What an access meets that looks back from the begin of a child of a sequence."""
        look = self._look(mine)
        self._over_row(seq, look, view, frame.index)
        assert frame.parent is not None
        if not frame.parent.begins and not self._all_met(mine, look.found, view):
            look.move(self.within.row(seq, view.dealt).before[frame.index])
            look.find(self.before(frame.parent, mine, view.ranges, view.dealt or ()))
        return look.found

    def _in_loop(self, frame: Frame, loop: Loop, mine: Footprint, view: View) -> Lags:
        """``first`` and ``enter`` stand before the first iteration, earlier iterations before the others."""
        assert frame.parent is not None
        up = frame.parent
        if loop.deal is not None:  # no iteration depends on another
            return self.before(up, mine, view.ranges, (loop, *(view.dealt or ())))
        least, most = values_of(loop, up.ranges)
        exact, peeled = first_value(loop) is not None, (loop.first is not None) + (loop.last is not None)
        middle = None if loop.trip is None or not exact else loop.trip - peeled
        look = self._look(mine)
        if frame.part == "exit":
            look = self._from_end(loop, mine, view)
        elif frame.part == "first":
            look.mine = mine.over(loop.var, least, least if exact else most)
        elif frame.part == "last":
            look.mine = mine.over(loop.var, most if middle is not None else least, most)
            self._iterations(loop, look, view, most - loop.step, self._second(loop, least), middle)
            self._opening(loop, look, view, least if exact else most)
        elif frame.part == "body":
            return self._in_body(loop, mine, view, up, (least, most), middle)
        if frame.part != "enter":
            self._over(loop.enter, look, view)
        look.find(self.before(up, look.mine, view.ranges, view.dealt or ()))
        return look.found

    def _in_body(self, loop: Loop, mine: Footprint, view: View, up: Frame, values: tuple[Affine, Affine],
                 middle: int | None) -> Lags:  # fmt: skip
        """Of the first iteration, of one that has others before it, of one that looks past those: the smallest lags."""
        least, most = values
        start, exact = self._second(loop, least), first_value(loop) is not None
        looks = [self._look(mine.over(loop.var, start, start if exact else most))]
        found: Lags = {}
        close: Lags = {}  # met in the iteration before: nothing that is farther away is waited for
        if middle is None or middle > 1:
            near = self._look(mine)
            before = Affine.of(loop.var, 1, -loop.step)
            self._iterations(loop, near, view, before, start, None if middle is None else middle - 1, inside=True)
            found.update(near.found)
            once = self.within.calls(loop.body, view.dealt)
            close = {met: n for met, n in found.items() if n < once.get(met, 0)}
            if not self._all_met(mine, close, view):
                looks.append(self._look(mine.over(loop.var, start, most), dict(once)))
        for look in looks:
            self._opening(loop, look, view, least)
            self._over(loop.enter, look, view)
            if not self._all_met(look.mine, look.found, view):
                look.find(self.before(up, look.mine, view.ranges, view.dealt or ()))
            for met, n in look.found.items():
                if look is looks[0] or met not in close:
                    found[met] = min(n, found.get(met, n))
        return found

    def _all_met(self, mine: Footprint, found: Lags, view: View) -> bool:
        """Whether everybody was met that there is to meet: farther back nothing new can be found."""
        key = (mine.where, mine.low, mine.high, mine.writes, mine.columns, view.dealt == ())
        possible = self._possible.get(key)
        if possible is None:
            prints = (f for tree in self.trees for f in self.within.met_by(tree, mine))
            some = [f for f in prints if clash(f, mine, self.within.ranges)]
            owner = self.within.owned.get(mine.where[0])
            alone = owner is not None and all(self.groups.get(f.stream) == owner for f in some)  # nobody else's calls
            nested = any(map(self.within.nested, self.trees))
            possible = self.within.may_meet(some, alone or view.dealt == (), not alone, nested)
            self._possible[key] = possible
        return possible <= found.keys()

    def _later(self, view: View, loop: Loop, iterations: int) -> View:
        """As seen from an iteration that has so many others before it."""
        return view.later(loop.var, loop.step * (iterations + (loop.first is not None)))

    @staticmethod
    def _second(loop: Loop, least: Affine) -> Affine:
        """The value with which ``body`` begins."""
        return least + loop.step if loop.first is not None else least

    def _opening(self, loop: Loop, look: Look, view: View, least: Affine) -> None:
        if loop.first is not None:
            self._over(loop.first, look, view.within(loop.var, least))

    # -- back over a node --------------------------------------------------------------------------------------------
    def _over(self, node: Node, look: Look, view: View) -> None:
        """Back over all of a node."""
        if not isinstance(node, Loop) or self._meets(node, look, view):
            self._through(node, look, view)
        look.move(self.within.calls(node, view.dealt))

    def _through(self, node: Node, look: Look, view: View) -> None:
        """What an access meets in a node; its calls are not added to those passed."""
        if isinstance(node, Issue):
            for f in self.within.prints.of(node):
                if f.where == look.mine.where and clash(view.seen(f), look.mine, view.ranges):
                    look.find({Met(f.stream): 0} if view.dealt == () else self._met(f, view))
        elif isinstance(node, Seq):
            self._over_row(node, look, view, len(node.children))
        elif node.deal is not None:
            self._over_dealt(node, look, view)
        else:
            found = self._from_end(node, look.mine, view, look.found).found
            # one that may not run: then what stands before it counts, and that is not closer than its end
            look.find(found if node.trip else dict.fromkeys(found, 0))

    def _over_row(self, seq: Seq, look: Look, view: View, end: int) -> None:
        """Back over the children before ``end``; what is passed is not added up."""
        if not end:
            return
        row, mine, found = self.within.row(seq, view.dealt), look.mine, look.found
        touched = row.meeting(mine)
        if touched is None:
            return
        most = touched.streams
        if found and most <= found.keys():
            return

        def reach(low: Affine, high: Affine) -> ByteRange:
            return view.reach(low, high, mine)

        def meets(one: Footprint) -> bool:  # it was found by its bytes
            return not (mine.columns and one.columns) or clash(view.seen(one), mine, view.ranges)

        here, before = row.before[end], row.before
        for i, child, one, met, _ in touched.near(look.span, end, reach, meets, found):
            if one is not None:
                if met not in found:
                    found[met] = here.get(met, 0) - before[i + 1].get(met, 0) + look.passed.get(met, 0)
            elif self._meets(child, look, view):
                part = Look(mine, look.span, found.copy())
                self._through(child, part, view)
                behind = before[i + 1]
                new = [(m, n) for m, n in part.found.items() if m not in found]
                look.find({m: n + here.get(m, 0) - behind.get(m, 0) for m, n in new})
            else:
                continue
            if most <= found.keys():
                return

    def _from_end(self, loop: Loop, mine: Footprint, view: View, found: Lags | None = None) -> Look:
        """Back over a finished loop, after what was ``found`` behind it; None: over all but its ``exit``."""
        look, leave, most = self._look(mine), found is not None, None
        if found is not None:
            look.found.update(found)
            most = self.within.streams(loop, mine, view.dealt)
            self._over(loop.exit, look, view)
        first, trip = first_value(loop), loop.trip
        if first is None or trip is None:
            for part in (loop.last, loop.body, loop.first):
                if part is not None:
                    self._lump(part, look, view, loop.var, values_of(loop, view.ranges))
        else:
            newest = first + (trip - 1) * loop.step
            if loop.last is not None:
                self._over(loop.last, look, view.within(loop.var, newest))
                newest = newest - loop.step
            peeled = (loop.first is not None) + (loop.last is not None)
            oldest = first + loop.step if loop.first is not None else first
            self._iterations(loop, look, view, newest, oldest, trip - peeled, most=most)
            if loop.first is not None:
                self._over(loop.first, look, view.within(loop.var, first))
        if leave:
            self._over(loop.enter, look, view)
        return look

    def _iterations(
        self, loop: Loop, look: Look, view: View, newest: Affine, oldest: Affine, count: int | None,
        inside: bool = False, most: frozenset[Met] | None = None,
    ) -> None:  # fmt: skip
        """Back over ``count`` iterations of the body (None: any number, of which none is counted); ``inside``: from
        another one. ``most``: whom to find before one looks no farther."""
        near = CLOSE if count is None else min(CLOSE, count)
        for k in range(near):
            seen = self._later(view, loop, k + 1) if inside else view
            self._over(loop.body, look, seen.within(loop.var, newest - k * loop.step))
            if most is not None and most <= look.found.keys():
                return
        if count is None or count > near:
            view = self._later(view, loop, near + 1) if inside else view
            self._lump(loop.body, look, view, loop.var, (oldest, newest - near * loop.step))
            look.move(self.within.calls(loop.body, view.dealt), 0 if count is None else count - near)

    def _lump(self, node: Node, look: Look, view: View, var: str, between: tuple[Affine, Affine]) -> None:
        """What a node does for some values of a variable, taken as one: its calls are not counted."""
        own = view.dealt == () and not self.within.deals(node)
        for f in view.lumped(self.within.met_by(node, look.mine), var, between):
            if clash(f, look.mine, view.ranges):
                look.find({Met(f.stream): 0} if own else self._met(f, view))

    def _met(self, f: Footprint, view: View) -> Lags:
        """Who may have made an access inside a dealt loop that is not the looker's own."""
        if f.stream not in self.groups:
            return {Met(f.stream): 0}
        here = {Met(f.stream): 0} if view.dealt is None or view.dealt else {}
        mine = self.within.owned.get(f.where[0]) == self.groups[f.stream]
        return here if here and mine else {**here, Met(f.stream, True): 0}

    def _over_dealt(self, loop: Loop, look: Look, view: View) -> None:
        """A dealt loop: what the looker's own instance did in it is known where the same iteration ran there."""
        if not self.within.alike(view.dealt, loop):
            others = not self.within.instances(loop, loop) & self.within.ours(view.dealt, loop)
            self._lump_dealt(loop, look, view.elsewhere(), others)
            return
        part = Look(look.mine, look.span)
        self._over(loop.body, part, view.alike(loop))
        look.find({met: n for met, n in part.found.items() if met.stream in self.groups})
        self._lump_dealt(loop, look, view, True)
        shared = {m: 0 for m in part.found if m.stream not in self.groups}
        look.find(shared)

    def _lump_dealt(self, loop: Loop, look: Look, view: View, others: bool) -> None:
        """A dealt loop as one; ``others``: its iterations surely ran on other instances than the looker's."""
        assert loop.deal is not None
        group, owner = loop.deal.group, self.within.owned.get(look.mine.where[0])
        for f in view.dealt_lump(self.within.met_by(loop.body, look.mine), loop, self.within.alike(view.dealt, loop)):
            theirs = others and self.groups.get(f.stream) == group
            if theirs and owner == group:  # of their own memories
                continue
            if clash(f, look.mine, view.ranges):
                met = self._met(f, view)
                look.find({m: n for m, n in met.items() if m.every} if theirs else met)

    def _meets(self, node: Node, look: Look, view: View) -> bool:
        """Whether a node may touch what the looker does, other than by who was met already."""
        if look.found and self.within.streams(node, look.mine, view.dealt) <= look.found.keys():
            return False
        others = bool(self.groups) and (view.dealt != () or self.within.deals(node))  # calls of other instances
        for f in self.within.met_by(node, look.mine):
            if (others or Met(f.stream) not in look.found) and clash(view.seen(f), look.mine, view.ranges):
                return True
        return False
