"""Bringing near memories to a wanted state: what a kept loop begins with, and ends in (SCH-10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from isam.scheduler.hops import End
from isam.scheduler.move import sub_place
from isam.scheduler.residency import Residency
from isam.scheduler.sources import source_of
from isam.scheduler.state import Copy, Key


def conform(data: Residency, target: Mapping[Key, Copy], *, fetch: bool) -> set[Key]:
    """Brings the present state to ``target``: what is not in it goes home, what is missing is fetched or reported."""
    lost = set[Key]()
    leave(data, target)
    for key, c in target.items():
        if key in data.state.copies:
            continue
        if not fetch:
            lost.add(key)
            continue
        _fetch(data, key, c)
        leave(data, target)
    return lost


def leave(data: Residency, target: Mapping[Key, Copy]) -> None:
    """Sends home what is not in ``target``, and what made room for that and stayed in another memory."""
    state = data.state

    def other(key: Key) -> bool:
        return not _wanted(state.copies[key], target.get(key))

    for key in state.until_none(state.of_any, other):
        if state.copies[key].dirty:
            data.flush(key, leaving=other)
        if other(key):
            state.drop(key)


def _fetch(data: Residency, key: Key, c: Copy) -> None:
    """Loads a carried tile into the very place where the body keeps it."""
    memory, tile, form = key
    data.settle(tile, key)
    source = source_of(data, tile, memory, form)
    data.carry(tile, source, End(memory, lambda t: sub_place(c.place, tile, t), form, alone=True), {key})
    data.state.put(key, replace(c, dirty=False))
    data.since.fetch(key, data.scope.ranges)


def _wanted(copy: Copy, want: Copy | None) -> bool:
    """Whether a copy is one that is to be there, and is no fresher than that."""
    return want is not None and want.place == copy.place and (want.dirty or not copy.dirty)
