"""Results that leave registers together go home in one piece, where a memory on the way has room for all of them and
every move from there costs a set-up (SCH-9)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from math import ceil, prod
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Place, Tile
from isam.scheduler.beside import leave_beside
from isam.scheduler.edges import SOONER, apart_and_joined, gathers, quickest
from isam.scheduler.hops import End
from isam.scheduler.joining import wanted_together
from isam.scheduler.laid_out import layout_of
from isam.scheduler.move import sub_place
from isam.scheduler.state import PASSING, STAGED, Copy, Key
from isam.scheduler.transfer import Transfer

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency


def leave_together(data: Residency, key: Key, pinned: Collection[Key], leaving: Callable[[Key], bool] | None) -> bool:
    """Sends a dirty copy home together with those that fill a box with it and are ``leaving``, too, or, where it makes
    room, to which nobody will add; whether that was done."""
    memory, tile, form = key
    home, dtype = data.homes.of(tile.buffer), data.homes.dtype(tile.buffer)
    path = data.fit.route(memory, home, dtype) or ()
    if form in (STAGED, PASSING) or (leaving is None and not data.lifetimes.finished(tile)):
        return False

    def along(k: Key) -> bool:
        alike = k[2] == form and k[1].shape == tile.shape and data.state.copies[k].dirty
        alike = alike and (k[0] == memory or (data.fit.route(k[0], home, dtype) or ())[1:] == path[1:])
        goes = data.lifetimes.finished(k[1]) if leaving is None else leaving(k)
        return k == key or (alike and goes and k not in pinned and data.wanted_home(k[1]))

    keys = [k for k in data.state.of(tile.buffer) if along(k)]
    if len(keys) > 1 and leave_beside(data, key, keys, pinned):
        return True
    # on a longer way each would need room there, too
    return len(keys) > 1 and len(path) == 3 and _joined(data, keys, path, pinned)


def _joined(data: Residency, keys: Sequence[Key], path: tuple[str, ...], pinned: Collection[Key]) -> bool:
    """The same for such copies, where they lie as one piece there and that is wanted; ``path``: of one of them, the
    others begin elsewhere on the same way."""
    (_, first, form), system, dtype = keys[0], data.system, data.homes.dtype(keys[0][1].buffer)
    there, box = system.memories[path[1]], box_of([k[1] for k in keys])
    if box is None or not gathers(system, there) or data.shared(there.name):
        return False
    near, far = (quickest(system, a, b, dtype) for a, b in pairwise(path))
    size = prod(first.shape) * size_of(dtype)
    layout, units = layout_of(box.shape, size_of(dtype), range(len(box.shape)), align=there.align)
    at = data.state.find_room(there, units)
    if near is None or far is None or at is None:
        return False
    new: Key = (there.name, box, PASSING)
    held, place = {new, *keys, *pinned}, Place(there.name, "", Affine((), at), layout.coefficients)
    inside = End(there.name, lambda t: sub_place(place, box, t))
    onwards = Transfer(data, box, path[1:], inside, End(path[2], data.home), held)
    here = [Transfer(data, k[1], (k[0], path[1]), End(k[0], _within(data, k), form), inside, held) for k in keys]
    if not onwards.possible() or not all(t.whole() for t in here) or not _lies(data, box, place, keys):
        return False
    moves = prod(ceil(n / m) for n, m in zip(box.shape, onwards.part, strict=True))
    took, every = apart_and_joined(near, far, len(keys), size, moves), len(keys) * size
    if not wanted_together(data, first.buffer, path, len(keys), every, took, SOONER):
        return False
    data.state.put(new, Copy(place, False, units))
    data.state.next[there.name] = at + units
    for key, transfer in zip(keys, here, strict=True):
        transfer.run()
        data.state.mark(key, False)
    onwards.run()
    data.state.drop(new)
    return True


def _within(data: Residency, key: Key) -> Callable[[Tile], Place]:
    own, tile = data.state.copies[key].place, key[1]
    return lambda t: sub_place(own, tile, t)


def _lies(data: Residency, box: Tile, place: Place, keys: Sequence[Key]) -> bool:
    """Whether every tile begins where an access may, and lies at home as its part of the box does."""
    home = data.home(box)
    tiles = [k[1] for k in keys]
    return all(data.aligned(sub_place(place, box, t)) and sub_place(home, box, t) == data.home(t) for t in tiles)


def box_of(tiles: Sequence[Tile]) -> Tile | None:
    """The box that tiles of one shape fill, each element once; None where they do not."""
    first, sides = tiles[0], list[set[int]]()
    for d, begin in enumerate(first.start):
        away = [t.start[d] - begin for t in tiles]
        if any(not a.is_constant for a in away) or any(t.steps[d] != 1 for t in tiles):
            return None
        sides.append({a.const for a in away})
    shape = []
    for n, at in zip(first.shape, sides, strict=True):
        if at != set(range(min(at), max(at) + 1, n)):
            return None
        shape.append(max(at) - min(at) + n)
    if prod(map(len, sides)) != len(tiles) or len(set(tiles)) != len(tiles):
        return None
    start = tuple(b + min(at) for b, at in zip(first.start, sides, strict=True))
    return Tile(first.buffer, start, tuple(shape), first.steps)
