"""When the calls of a stream were finished, as far back as anyone may wait for: long repetitions take no room."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field
from typing import NamedTuple

from isam.classes import dataclass

PAST = -1  # stands for every moment too early to matter
SPELLED = 64  # calls of a repeated iteration that are spelled out once more at the end

State = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Again:
    """``times`` repetitions of what ``items`` were, ``size`` calls each, every one ``shift`` later than the last."""

    items: tuple[Item, ...]
    size: int
    shift: int
    times: int


Item = tuple[int, ...] | Again  # moments, or repetitions; moments never go back


class Saved(NamedTuple):
    """The state of a stream put aside."""

    free: int
    top: int
    total: int
    tail: tuple[int, ...]
    older: tuple[Item, ...]

    def later(self, by: int, total: int) -> Saved:
        """The state so many ticks later, with so many calls."""
        older = tuple([_shifted(i, by) for i in self.older]) if self.older else ()
        return Saved(self.free + by, self.top + by, total, tuple([t + by for t in self.tail]), older)


@dataclass(eq=False)
class Lane:
    """A stream: when it may start its next call (``free``), when all its calls so far are finished (``top``), when all
    calls up to each of the last were (``tail``, before it ``older``), how many calls there were (``total``). ``keep``:
    so many are remembered."""

    name: str
    keep: int
    free: int = 0
    top: int = 0
    total: int = 0
    tail: list[int] = field(default_factory=list)
    older: list[Item] = field(default_factory=list)

    def back(self, lag: int) -> int:
        """When all calls but the last ``lag`` were finished; ``PAST`` where there are no more or they are forgotten."""
        if lag < len(self.tail):
            return self.tail[~lag]
        return _back(self.older, lag - len(self.tail))

    def trim(self) -> None:
        if len(self.tail) >= self.keep:
            self.older.clear()
        del self.tail[: -self.keep]

    def repeat(self, size: int, shift: int, times: int) -> None:
        """As many more iterations like the last, of ``size`` calls, each ``shift`` later."""
        later = shift * times
        if size:
            self.free += later
            self.top += later
            self.total += size * times
        if size >= self.keep:
            self.tail, self.older = [t + later for t in self.tail], [_shifted(i, later) for i in self.older]
        elif size:
            items = self._last(size)
            if self.tail:
                self.older.append(tuple(self.tail))
            self.tail = []
            rest = times
            if size <= SPELLED and len(items) == 1 and isinstance(items[0], tuple):
                rest -= 1
                self.tail = [t + later for t in items[0]]
            if rest:
                self.older.append(Again(items, size, shift, rest))
            self._forget()

    def _forget(self) -> None:
        """Leaves out what lies further back than anyone asks for."""
        left = self.keep - len(self.tail)
        for n in range(len(self.older) - 1, -1, -1):
            if left <= 0:
                del self.older[: n + 1]
                return
            left -= _size(self.older[n])

    def _last(self, size: int) -> tuple[Item, ...]:
        """The last ``size`` calls."""
        if size <= len(self.tail):
            return (tuple(self.tail[-size:]),)
        out: list[Item] = [tuple(self.tail)] if self.tail else []
        left = size - len(self.tail)
        for item in reversed(self.older):
            if left <= 0:
                break
            if isinstance(item, tuple) and len(item) > left:
                item = item[-left:]
            out.append(item)
            left -= _size(item)
        return tuple(reversed(out))

    def since(self, at: int) -> State:
        """What is remembered of moments after ``at``, relative to it."""
        return since(self, self.keep, at)

    def saved(self) -> Saved:
        return Saved(self.free, self.top, self.total, tuple(self.tail), tuple(self.older))

    def later(self, by: int, total: int) -> Saved:
        """What is remembered, so many ticks later, with so many calls."""
        tail = tuple(self.tail[-self.keep :])
        older = tuple(self.older) if len(tail) < self.keep else ()
        return Saved(self.free, self.top, total, tail, older).later(by, total)

    def load(self, state: Saved) -> None:
        self.free, self.top, self.total = state.free, state.top, state.total
        self.tail, self.older = list(state.tail), list(state.older)


def since(lane: Lane | Saved, keep: int, at: int) -> State:
    """What a stream must remember of the time after ``at``, relative to it, when its last ``keep`` calls may be asked
    about."""
    free = lane.free - at if lane.free > at else PAST
    if len(lane.tail) >= keep:  # nobody asks for what lies before it
        late = tuple([t - at for t in lane.tail[-keep:] if t > at])
        return (free, late) if late else (free,)
    out: list[object] = []
    _since([*lane.older, tuple(lane.tail)], 0, at, out, keep)
    return (free, *_settled(out))


def _size(item: Item) -> int:
    return len(item) if isinstance(item, tuple) else item.size * item.times


def _back(items: list[Item] | tuple[Item, ...], lag: int) -> int:
    for item in reversed(items):
        size = _size(item)
        if lag < size:
            if isinstance(item, tuple):
                return item[~lag]
            ago, lag = divmod(lag, item.size)
            return _back(item.items, lag) + (item.times - ago) * item.shift
        lag -= size
    return PAST


def _shifted(item: Item, by: int) -> Item:
    if isinstance(item, tuple):
        return tuple([t + by for t in item])
    return Again(tuple(_shifted(i, by) for i in item.items), item.size, item.shift, item.times)


def _first(item: Item) -> int:
    return item[0] if isinstance(item, tuple) else _first(item.items[0]) + item.shift


def _since(items: list[Item] | tuple[Item, ...], offset: int, at: int, out: list[object], most: int) -> int:
    """Adds what is later than ``at``, the last first; how many of ``most`` calls are left to look at, 0: no more."""
    for item in reversed(items):
        if isinstance(item, tuple):
            begin = max(bisect_right(item, at - offset), len(item) - most)  # what nobody asks for does not count
            late = [t + offset - at for t in item[begin:]]
            if out and isinstance(out[-1], list):
                out[-1] = late + out[-1]
            elif late:
                out.append(late)
            most -= len(item)
            if begin or most <= 0:
                return 0
            continue
        first = _first(item.items[0]) + offset
        begin = 0 if first > at else item.times if not item.shift else (at - first) // item.shift
        whole = max(0, item.times - max(0, begin))  # repetitions that are later than that as a whole
        if whole:
            last: list[object] = []
            _since(item.items, offset + item.times * item.shift, at, last, item.size)
            out.append((_settled(last), item.shift, whole))
        most -= item.size * whole
        if most <= 0:
            return 0
        if whole < item.times:
            _since(item.items, offset + (item.times - whole) * item.shift, at, out, most)
            return 0
    return most


def _settled(out: list[object]) -> tuple[object, ...]:
    return tuple(tuple(o) if isinstance(o, list) else o for o in out)
