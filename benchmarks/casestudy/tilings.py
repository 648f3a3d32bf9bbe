"""The library's three tilings and how it cuts a problem: the best of the three is taken (:func:`best`).

Sizes are padded to whole blocks and chunks, as libraries of vendors do; the kernel computes on the padded sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from isam.cost.timeline import Timeline, timeline
from isam.schedule.tree import Schedule
from isam.system.graph import System

from .library import SETS, Part, T, Tiling, written

TILINGS = (Tiling("square", 8, 4), Tiling("small", 2, 2), Tiling("thin", 1, 2))
CLUSTERS = 24
LINK = 1228.8 / 1.1  # bytes per cycle of all clusters together
EDGE = 128  # bytes per cycle of one
SETUP = 64  # cycles before a box starts
LATENCY = 64  # cycles to the result of a product, which the next one on the same tile needs
BOX = 64 << 10  # bytes of B brought at a time, at most
ROOM = 2560 << 10  # of a scratchpad


def parts(tiling: Tiling, m: int, n: int, k: int) -> Iterator[Part]:
    """Every way to deal out the blocks of a problem."""
    pieces = ceil(k / (SETS * SETS * T))  # of the shortest length there is: two steps at each of two places
    most = BOX // (tiling.cols * T * 2)
    longest = max(d for d in range(1, pieces + 1) if pieces % d == 0 and d * SETS * T <= most)
    chunks, length = SETS * pieces // longest, longest * SETS * T
    for down in range(1, CLUSTERS + 1):
        panels = ceil(m / (tiling.rows * T * down))
        blocks = ceil(n / (tiling.cols * T * (CLUSTERS // down)))
        used = ceil(m / (tiling.rows * T * panels)), ceil(n / (tiling.cols * T * blocks))
        kept, streamed = (Part(tiling, *used, panels, blocks, chunks, length, kept) for kept in (True, False))
        yield kept if kept.room <= ROOM and blocks > 1 else streamed


def cycles(p: Part) -> float:
    """What a part takes by the machine's facts: products, or bytes through a cluster's part of the link."""
    t, k = p.tiling, p.chunks * p.length
    blocks = p.panels * p.blocks
    rate = min(EDGE, LINK / (p.down * p.across))
    a = t.rows * T * k * 2 * (p.panels if p.kept else blocks)
    b, c = t.cols * T * k * 2 * blocks, t.rows * t.cols * T * T * 4 * blocks
    loads = p.chunks * (blocks + (p.panels if p.kept else blocks))
    begin = (t.rows + t.cols) * T * p.length * 2 / rate
    return max(blocks * k // T * max(T * t.steps, LATENCY), (a + b + c) / rate, (a + b) / rate + SETUP * loads) + begin


def choose(tiling: Tiling, m: int, n: int, k: int) -> Part:
    """The quickest way of one tiling."""
    return min(parts(tiling, m, n, k), key=cycles)


def best(m: int, n: int, k: int, system: System) -> tuple[Part, Schedule, Timeline]:
    """The quickest of the three tilings in time."""
    made = [(p, written(p, system)) for p in (choose(t, m, n, k) for t in TILINGS)]
    return min(((p, s, timeline(s)) for p, s in made), key=lambda e: e[2].ticks)
