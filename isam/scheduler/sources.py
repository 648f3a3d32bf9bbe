"""Where an operand is fetched from: a copy of its tile, a box around it, or home (SCH-4, SCH-5). What lies alike is
decided on once: the next tile of the buffer on its way to the same memory comes from there as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.approach.choice import Choice
from isam.classes import dataclass
from isam.schedule.tree import Tile
from isam.scheduler.hops import End
from isam.scheduler.move import sub_place
from isam.scheduler.places import offsets, within
from isam.scheduler.state import Form

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency

COPY, HOME = "a copy", "its home"


@dataclass(frozen=True)
class Source:
    """An option at ``source``: tiles of ``buffer`` come from ``end.memory``, where they lie as ``kind`` says: a copy of
    the tile, a box around it, or all of the buffer at home."""

    buffer: str
    end: End
    kind: str

    def label(self) -> str:
        return f"{self.buffer} from {self.kind} in {self.end.memory}"


def source_of(data: Residency, tile: Tile, memory: str, form: Form) -> End:
    """The fresh copy to read from; where it fills registers, if there is one from which moves can."""
    options, dtype = [*_near(data, tile, memory, form)], data.homes.dtype(tile.buffer)
    home = data.homes.of(tile.buffer)
    if not options or data.fit.route(home, memory, dtype):
        options.append(Source(tile.buffer, End(home, data.home), HOME))
    if len(options) > 1:
        options = [o for o in options if data.fills(tile, o.end, memory, form)] or options
    told: dict[str, Source] = {}
    for o in options:  # of those that nobody can tell apart the first
        told.setdefault(o.label(), o)
    if len(told) == 1:
        return options[0].end
    key = (memory, *told)
    if key not in data.sources:
        hops = [len(data.fit.route(o.end.memory, memory, dtype) or ()) for o in told.values()]
        context = {"buffer": tile.buffer, "tile": str(tile), "to": memory}
        data.sources[key] = data.trace.choose(Choice("source", tuple(told.values()), context, hops)).label()
    return told[data.sources[key]].end


def _near(data: Residency, tile: Tile, memory: str, form: Form) -> Iterator[Source]:
    """Fresh copies in other memories, boxes around them last."""
    state, scope, dtype = data.state, data.scope, data.homes.dtype(tile.buffer)
    for key in state.holding(tile):
        if key[0] != memory and state.copies[key].stage is None and data.leads(key[0], memory, dtype):
            place = state.copies[key].place
            yield Source(tile.buffer, End(key[0], lambda t, p=place: sub_place(p, tile, t), key[2]), COPY)
    for key in state.stages_around(tile, scope.ranges):
        copy = state.copies[key]
        place = within(key[1], copy, tile, scope.variables)
        if key[0] == data.system.home and None in offsets(key[1], copy, tile, scope.variables):
            continue  # an index that runs within a block of a panel: what lies there is not shown
        if place is not None and data.leads(key[0], memory, dtype) and data.begins(place, tile, memory, form):
            what = f"panel {copy.place.base}" if copy.place.base else f"a box of {' x '.join(map(str, key[1].shape))}"
            end = End(key[0], lambda t, k=key, c=copy, p=place: p if t is tile else within(k[1], c, t, scope.variables))
            yield Source(tile.buffer, end, what)
