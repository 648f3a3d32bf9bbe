"""Memory that measurements go over: numbers at random, from the begin of a cache line on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isam.caches import LINE

AWAY, MOST = 64 << 20, 512 << 20  # bytes that few caches hold, and how much is taken at most
SPARE = 1 << 14  # bytes after the last, read as operands
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def beyond(caches: Path = CACHES) -> int:
    """Bytes that no cache of this CPU holds: twice the largest that the operating system tells of."""
    sizes = [_bytes(p.read_text(encoding="ascii").strip()) for p in caches.glob("index*/size")]
    return min(max([AWAY, *(2 * size for size in sizes)]), MOST)


def random_room(size: int) -> np.ndarray[Any, Any]:
    """Room of f32 for so many bytes and some more. It begins with a line: a register that lies across two of them takes
    twice as long to load."""
    once = np.random.default_rng(1).uniform(0.5, 1.5, AWAY // 4).astype(np.float32)
    room = np.resize(once, (size + SPARE + LINE) // 4)
    return room[-room.ctypes.data % LINE // 4 :]


def _bytes(text: str) -> int:
    """Of a size as Linux writes it (``32768K``); 0 where it is none."""
    number, unit = text[:-1], text[-1:]
    return int(number) * UNITS[unit] if number.isdigit() and unit in UNITS else 0
