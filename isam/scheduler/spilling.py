"""Values that give way to others stay in the nearest memory on their way home that has room, and are read back there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from isam.scheduler.hops import End
from isam.scheduler.infeasible import NoSchedule
from isam.scheduler.move import sub_place
from isam.scheduler.state import Key
from isam.scheduler.transfer import Transfer
from isam.system.graph import MANAGED

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency


def spill(data: Residency, key: Key, pinned: Collection[Key]) -> bool:
    """Brings a dirty copy to the nearest memory on its way home that has room as it is; False where none has, or where
    nobody is known to read the value again: then it may as well go home."""
    memory, tile, _ = key
    buffer = data.homes.kernel.buffer(tile.buffer)
    if data.lifetimes.dead(tile) or not (buffer.role == "temp" or data.block.next_use(tile) is not None):
        return False
    path = data.fit.route(memory, data.homes.of(tile.buffer), buffer.dtype) or ()
    return any(_left(data, key, path[: n + 1], pinned) for n in range(1, len(path) - 1))


def _left(data: Residency, key: Key, path: tuple[str, ...], pinned: Collection[Key]) -> bool:
    """Brings a dirty copy to the end of a path, if there is room for it now."""
    (memory, tile, form), there = key, data.system.memories[path[-1]]
    at = data.state.find_room(there, data.fit.units(there.name, tile))
    promised = {k[0] for k in pinned if k not in data.state.copies}  # where something is about to lie
    if at is None or there.kind != MANAGED or there.name in data.system.filled or there.name in promised:
        return False
    if data.shared(there.name):
        return False
    own, place, new = data.state.copies[key].place, data.fit.placed(there.name, tile, at), (there.name, tile, None)
    source = End(memory, lambda t: sub_place(own, tile, t), form)
    target = End(there.name, lambda t: sub_place(place, tile, t), alone=True)
    transfer = Transfer(data, tile, path, source, target, {key, new, *pinned})
    if not transfer.whole():
        return False
    data.state.put(new, data.fit.copy(there.name, tile, place, True))  # what makes room on the way leaves it alone
    data.state.next[there.name] = at + data.fit.units(there.name, tile)
    try:
        transfer.run()
    except NoSchedule:  # no room on the way: nothing got there
        data.state.drop(new)
        return False
    return True


def stays(data: Residency, old: Key, key: Key) -> bool:
    """Whether a dirty copy lies in a memory through which its tile comes from home to where it is wanted."""
    memory, tile, _ = key
    return old[0] in (data.fit.route(data.homes.of(tile.buffer), memory, data.homes.dtype(tile.buffer)) or ())[1:-1]


def take_over(data: Residency, key: Key) -> None:
    """What is about to change is the dirty copy from now on, instead of the one that it was read back from."""
    state = data.state
    for other in state.holding(key[1]):
        if other != key and state.copies[other].dirty and key in state.copies:
            state.mark(key, True)
            state.drop(other)
