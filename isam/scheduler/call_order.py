"""In which order the calls of an innermost block of several nests are carried out.

Nest after nest, every call of one leaves a tile for the next one to wait for: of a sum of minima, all that is added up
comes before the first minimum. Where that is more than the memories next to the units hold, nests may go in step, as in
loops that they share down to a call: only as much waits as must, but what each nest reads by itself (constants) is
wanted all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from isam.ir.kernel import FAR
from isam.schedule.tree import Tile
from isam.scheduler.nests import Call
from isam.scheduler.tiles import disjoint

Key = tuple[str, Tile]
Room = Callable[[str, Tile], int]
SHARE = 1 / 10  # moves that are worth it, per cycle of calls: those of one nest side by side hide each other's latency


def ordered(nests: Sequence[list[Call]], ranges: Mapping[str, tuple[int, int]], limits: Mapping[str, int],
            room: Room) -> list[Call]:  # fmt: skip
    """The calls of a block. ``nests``: those of each nest, in an order that is kept; ``limits``: what memories hold
    next to the units; ``room``: what a tile takes of one. In step where enough fewer tiles come and go then."""
    one_by_one = [c for calls in nests for c in calls]
    if sum(map(bool, nests)) < 2:
        return one_by_one
    moves, crowded = _moves(one_by_one, limits, room)
    if not crowded:
        return one_by_one
    in_step = _in_step(nests, ranges)
    saved = moves - _moves(in_step, limits, room)[0]
    cycles = sum(nest.instruction.cost.cycles(sizes) for nest, _, sizes, _ in one_by_one)
    return in_step if saved > SHARE * cycles else one_by_one


def _moves(calls: Sequence[Call], limits: Mapping[str, int], room: Room) -> tuple[int, bool]:
    """How many tiles are brought to these memories, and sent away to be brought again, where those give way that are
    used last (Belady); and whether any that is used again has to."""
    uses: dict[Key, list[int]] = {}  # the next one last
    for at, call in reversed([*enumerate(calls)]):
        for key in _used(call, limits):
            uses.setdefault(key, []).append(at)
    there: dict[Key, bool] = {}  # whether it was written there
    free, known = dict(limits), set[Key]()
    moves, crowded = 0, False
    for call in calls:
        used = _used(call, limits)
        for key in used:
            uses[key].pop()
        for key in [k for k in used if k not in there]:
            others = sorted((k for k in there if k[0] == key[0] and k not in used), key=lambda k: uses[k][-1:] or [FAR])
            while free[key[0]] < room(*key) and others:
                gone = others.pop()
                free[gone[0]] += room(*gone)
                moves += there.pop(gone) and bool(uses[gone])
                crowded |= bool(uses[gone])
            moves += used[key][0] or key in known
            free[key[0]] -= room(*key)
            there[key] = False
        for key, (_, writes) in used.items():
            there[key] |= writes
        known.update(used)
    return moves, crowded


def _used(call: Call, limits: Mapping[str, int]) -> dict[Key, tuple[bool, bool]]:
    """The tiles of a call, each with whether it is read and whether it is written."""
    out: dict[Key, tuple[bool, bool]] = {}
    for u, t in zip(call[0].uses, call[3], strict=True):
        if u.homes[0] in limits:
            reads, writes = out.get((u.homes[0], t), (False, False))
            out[u.homes[0], t] = reads or u.reads, writes or u.writes
    return out


def _in_step(nests: Sequence[list[Call]], ranges: Mapping[str, tuple[int, int]]) -> list[Call]:
    """All nests side by side, each as far as the others, and no call before those that it may not pass."""
    needs = [[_needed(calls, before, ranges) for before in nests[:n]] for n, calls in enumerate(nests)]
    done = [0] * len(nests)
    out: list[Call] = []

    def until(n: int, count: int) -> None:
        while done[n] < count:
            for m, needed in enumerate(needs[n]):
                until(m, needed[done[n]])
            out.append(nests[n][done[n]])
            done[n] += 1

    longest = max(map(len, nests))
    for k in range(1, longest + 1):
        for n, calls in enumerate(nests):
            until(n, k * len(calls) // longest)
    return out


def _needed(calls: Sequence[Call], before: Sequence[Call], ranges: Mapping[str, tuple[int, int]]) -> list[int]:
    """How many calls of a nest have to be over before each of one behind it: up to the last that writes what this one
    touches, or touches what it writes."""
    if not calls or not before:
        return [0] * len(calls)
    pairs = [(i, j) for i, u in enumerate(before[0][0].uses) for j, v in enumerate(calls[0][0].uses)
             if u.buffer == v.buffer and (u.writes or v.writes)]  # fmt: skip
    return [next((k for k in range(len(before), 0, -1)
                  if any(not disjoint(before[k - 1][3][i], c[3][j], ranges) for i, j in pairs)), 0) if pairs else 0
            for c in calls]  # fmt: skip
