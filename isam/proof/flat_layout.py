"""The flat checker's memory: every byte group of every memory in one array of tokens.

A token says which part of which element lies there; a parallel array says at which version. Bytes and elements are
those groups of them that no step cuts (see :mod:`isam.proof.flat_units`): "element" means such a group here.
"""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from isam.classes import dataclass
from isam.proof.flat_units import Units
from isam.proof.geometry import resolve
from isam.proof.legal import Legality
from isam.proof.violation import Findings
from isam.schedule.tree import Place, Schedule

LIMIT = 1 << 26  # tokens in all memories together; elements of all buffers


class Pattern(NamedTuple):
    """A box of elements relative to its first one. Of every token: the element, the address, the token itself; the
    lowest and the highest address; each element once."""

    elem: np.ndarray
    addr: np.ndarray
    token: np.ndarray
    span: tuple[int, int]
    unique: np.ndarray


@dataclass(slots=True)
class Region:
    origin: int  # first token
    bytes: int
    group: int  # bytes of a token
    parts: int  # tokens of the largest element; a token is that many times the element plus the part
    cell: int = 0  # bytes of a cell, 0: none

    @property
    def tokens(self) -> slice:
        return slice(self.origin, self.origin + self.bytes // self.group)


@dataclass(slots=True)
class Space:
    """Tokens of all memories, versions of all elements."""

    legality: Legality
    shapes: dict[str, tuple[int, ...]]
    units: Units
    regions: dict[tuple[str, str], Region] = field(default_factory=dict)
    origin: dict[str, int] = field(default_factory=dict)
    token: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    version: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    current: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    patterns: dict[tuple[Any, ...], Pattern] = field(default_factory=dict)

    def build(self, tops: dict[tuple[str, str], int]) -> None:
        """``tops``: for memories with explicit addresses, the highest byte that any step may touch."""
        s = self.legality.schedule
        for b, shape in self.shapes.items():
            self.shapes[b] = (*shape[:-1], shape[-1] // self.units.wide[b]) if shape else ()
        at = 0
        for b in self.legality.buffers.values():
            self.origin[b.name] = at
            at += prod(self.shapes[b.name])
        if at > LIMIT:
            raise MemoryError(f"the flat check would need the versions of {at} elements, more than {LIMIT}")
        self.current = np.zeros(at, np.int32)
        n = 0
        for key, size, cell in self._sizes(s, tops):
            self.regions[key] = Region(n, size, *self.units.group.get(key, (size or 1, 1)), cell)
            n += size // self.regions[key].group
        if n > LIMIT:
            raise MemoryError(f"the flat check would need {n} tokens, more than {LIMIT}")
        self.token = np.full(n, -1, np.int64)
        self.version = np.zeros(n, np.int32)

    def bytes(self, buffer: str) -> int:
        """Of an element."""
        return self.legality.buffers[buffer].bytes * self.units.wide[buffer]

    def unflat(self, buffer: str, at: int) -> tuple[int, ...]:
        """The index of the first of the buffer's own elements in an element."""
        shape = self.shapes[buffer]
        *rest, last = [int(x) for x in np.unravel_index(at, shape)] if shape else [0]
        return (*rest, last * self.units.wide[buffer]) if shape else ()

    def _sizes(self, s: Schedule, tops: dict[tuple[str, str], int]) -> list[tuple[tuple[str, str], int, int]]:
        out: dict[tuple[str, str], tuple[int, int]] = {}
        for slot in s.workspace:
            out[resolve(s.system, slot.memory), slot.name] = (slot.bytes, 0)
        for b in self.legality.buffers.values():
            if b.home is not None and b.home.base == b.name and b.role != "literal":
                out[resolve(s.system, b.home.memory), b.name] = (prod(self.shapes[b.name]) * self.bytes(b.name), 0)
        for m in s.system.memories.values():
            if (m.name, "") not in self.units.group:
                continue  # no step that may be legal reaches it
            if m.cells is not None and m.cell is not None:
                out[m.name, ""] = (m.cells * m.cell, m.cell)
            elif (m.name, "") in tops:
                group, _ = self.units.group[m.name, ""]
                top = -(-max(0, tops[m.name, ""]) // group) * group
                left = max(0, m.capacity - self.legality.reserved(m.name))  # slots that do not fit are refused
                out[m.name, ""] = (min(left, top), 0)
        return [(k, n, c) for k, (n, c) in out.items()]

    def region(self, place: Place) -> Region | None:
        return self.regions.get((resolve(self.legality.schedule.system, place.memory), place.base))

    def put_home(self, buffer: str, out: Findings) -> None:
        """The whole buffer lies at its home, current."""
        b = self.legality.buffers[buffer]
        at = self.home_tokens(buffer)
        if at is None:
            out.add(9, "home", f"the buffer '{b.name}' has no place at home")
            return
        addresses, tokens, elems = at
        self.token[addresses] = tokens
        self.version[addresses] = self.current[elems]

    def home_tokens(self, buffer: str) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """(addresses, tokens, elements) of a whole buffer at its home."""
        b = self.legality.buffers[buffer]
        r = self.region(b.home) if b.home is not None else None
        if b.home is None or r is None or not b.home.offset.is_constant:
            return None
        shape = self.shapes[buffer]
        e, a, t, *_ = self.pattern(buffer, shape, (1,) * len(shape), b.home.strides, r)
        a = a + b.home.offset.const // r.group
        if a.size and (int(a.min()) < 0 or int(a.max()) >= r.bytes // r.group):
            return None
        return r.origin + a, self.origin[buffer] * r.parts + t, self.origin[buffer] + e

    def pattern(
        self, buffer: str, shape: tuple[int, ...], steps: tuple[int, ...], byte: tuple[int, ...], region: Region
    ) -> Pattern:
        """A box of a buffer with ``byte`` bytes from one of the buffer's own elements to the next. Equal ones are the
        same object."""
        wide = (*(1 for _ in shape[:-1]), self.units.wide[buffer])
        rows = tuple(zip(shape, natural(self.shapes[buffer]), steps, byte, wide, strict=bool(shape)))
        key = rows, self.bytes(buffer), region.group, region.parts
        if key not in self.patterns:
            self.patterns[key] = self._pattern(*key)
        return self.patterns[key]

    def _pattern(self, rows: tuple[tuple[int, ...], ...], size: int, group: int, parts: int) -> Pattern:
        shape = tuple(n for n, *_ in rows)
        e = np.zeros((1,) * len(shape), np.int64)
        a = np.zeros((1,) * len(shape), np.int64)
        grids = np.ogrid[tuple(slice(0, n) for n in shape)]
        for g, (_, k, n, m, w) in zip(grids, rows, strict=True):
            e, a = e + g * k * n, a + g * (m * n * w // group)
        e, a = (np.broadcast_to(x, shape).reshape(-1, 1) for x in (e, a))
        q = np.arange(size // group, dtype=np.int64)
        addr = (a + q).ravel()
        span = (int(addr.min()), int(addr.max())) if addr.size else (0, 0)
        return Pattern(np.repeat(e.ravel(), q.size), addr, (e * parts + q).ravel(), span, e.ravel())


def natural(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a C-contiguous array."""
    out: list[int] = []
    step = 1
    for n in reversed(shape):
        out.append(step)
        step *= max(1, n)
    return tuple(reversed(out))
