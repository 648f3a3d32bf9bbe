"""The simulated machine's memories: real bytes, and per byte a stamp that says which version of which element it holds.

A *stamp* is a number given once, when an instruction writes an element: it names buffer, element and version together.
``Truth`` holds the current stamp of every element of a buffer; a byte is fresh when its stamp is the current one.
Stamp 0: never written.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isam.codegen.simulator.fault import SimulationFault
from isam.codegen.simulator.values import Values
from isam.ir.dtype import size_of
from isam.schedule.tree import Schedule, Slot

MODELLED = 1 << 28  # bytes of one memory without named bases that are simulated
ELEMENTS = 1 << 27  # elements of one buffer that are tracked


class Bank:
    """A run of bytes. ``scale``: bytes of storage per simulated byte (1, or 8 where values are 64-bit residues).
    ``end``: no byte from there on was ever asked for."""

    __slots__ = ("data", "end", "literal", "name", "size", "stamps")

    def __init__(self, name: str, size: int, scale: int, literal: bool = False):
        self.name, self.size, self.literal = name, size, literal
        self.data = np.zeros(size * scale, np.uint8)
        self.stamps = np.zeros(size, np.int64)
        self.end = 0

    def forget(self) -> None:
        self.stamps[: self.end] = 0


class Truth:
    """The current stamp of each element of a buffer."""

    __slots__ = ("shape", "stamps", "strides")

    def __init__(self, name: str, shape: tuple[int, ...]):
        self.shape = shape
        if int(np.prod(shape, dtype=object)) > ELEMENTS:
            raise SimulationFault("capacity", f"the buffer {name} of shape {list(shape)} is too large to simulate")
        self.stamps = np.zeros(shape, np.int64)
        self.strides = tuple(s // 8 for s in np.zeros(shape, np.int64).strides)


class Machine:
    """Banks and truths of one schedule. ``clock``: the next stamp. ``apart``: streams run apart, so that a newer
    version of an element may be made in one place before an older one is read in another: none is current then."""

    def __init__(self, schedule: Schedule, values: Values):
        self.schedule, self.values, self.clock, self.apart = schedule, values, 1, False
        self.slots: dict[str, Slot] = {s.name: s for s in schedule.workspace}
        self.dtypes: dict[str, str] = {b.name: b.dtype for b in schedule.kernel.buffers}
        self.shapes = {b.name: b.shape for b in schedule.kernel.buffers}
        for s in schedule.workspace:
            if s.literal is not None:
                self.dtypes[s.name], self.shapes[s.name] = s.dtype, ()
        self.banks: dict[tuple[str, str], Bank] = {}
        self.truths: dict[str, Truth] = {}
        self._capacity()
        for s in schedule.workspace:
            if s.literal is not None:
                self._literal(s)

    def _capacity(self) -> None:
        for m in self.schedule.system.memories.values():
            used = sum(-(-s.bytes // s.align) * s.align for s in self._slots_in(m.name))
            if used > m.capacity:
                raise SimulationFault("capacity", f"workspace of {used} B in {m.name}, which holds {m.capacity} B")

    def _slots_in(self, memory: str) -> list[Slot]:
        return [s for s in self.slots.values() if s.memory == memory]

    def _literal(self, slot: Slot) -> None:
        bank, truth = self.bank(slot.memory, slot.name), self.truth(slot.name)
        bank.end = bank.size
        value = self.values.literal(slot.literal, slot.dtype)
        storage = self.values.storage(slot.dtype)
        np.ndarray((), storage, bank.data)[...] = value
        bank.stamps[: size_of(slot.dtype)] = truth.stamps[...] = self.stamp(1)[0]

    def stamp(self, count: int) -> np.ndarray:
        first = self.clock
        self.clock += count
        return np.arange(first, self.clock, dtype=np.int64)

    def truth(self, buffer: str) -> Truth:
        t = self.truths.get(buffer)
        if t is None:
            if buffer not in self.shapes:
                raise SimulationFault("name", f"the kernel has no buffer '{buffer}'")
            t = self.truths[buffer] = Truth(buffer, tuple(int(d) for d in self.shapes[buffer]))
        return t

    def bank(self, memory: str, base: str) -> Bank:
        bank = self.banks.get((memory, base))
        if bank is None:
            bank = self.banks[memory, base] = self._make(memory, base)
        return bank

    def _make(self, memory: str, base: str) -> Bank:
        node = self.schedule.system.memories.get(memory)
        if node is None:
            raise SimulationFault("name", f"the system has no memory '{memory}'")
        scale = self.values.scale
        if not base:
            size = node.capacity - sum(-(-s.bytes // s.align) * s.align for s in self._slots_in(memory))
            size = (node.cells or 0) * (node.cell or 0) if node.cells is not None else size
            return Bank(memory, min(size, MODELLED), scale)
        slot = self.slots.get(base)
        if slot is not None:
            if slot.memory != memory:
                raise SimulationFault("placement", f"the slot '{base}' lies in {slot.memory}, not in {memory}")
            return Bank(base, slot.bytes, scale, literal=slot.literal is not None)
        if not node.home or base not in self.dtypes or self.schedule.kernel.buffer(base).role == "temp":
            raise SimulationFault("name", f"'{base}' is neither an argument nor a slot of the workspace in {memory}")
        count = int(np.prod([int(d) for d in self.shapes[base]], dtype=object))
        return Bank(base, count * size_of(self.dtypes[base]), scale)

    def load(self, name: str, array: np.ndarray) -> None:
        """An argument's elements at home, fresh."""
        bank, truth = self.bank(self.schedule.system.home, name), self.truth(name)
        bank.end = bank.size
        seen = array if self._given(name, truth) != array.shape else np.reshape(array, truth.shape)
        self._elements(name, bank, truth)[...] = seen
        truth.stamps[...] = self.stamp(truth.stamps.size).reshape(truth.shape)
        bank.stamps[:] = np.repeat(truth.stamps.ravel(), size_of(self.dtypes[name]))

    def read(self, name: str) -> np.ndarray:
        """An argument's elements at home, copied, in the shape that a caller gives."""
        bank, truth = self.bank(self.schedule.system.home, name), self.truth(name)
        return np.array(self._elements(name, bank, truth), order="C").reshape(self._given(name, truth))

    def _given(self, name: str, truth: Truth) -> tuple[int, ...]:
        """The shape in which a caller gives an argument that the schedule sees in another (ADR 22)."""
        shape = self.schedule.cover.original.buffer(name).shape
        return tuple(d.const for d in shape) if all(d.is_constant for d in shape) else truth.shape

    def _elements(self, name: str, bank: Bank, truth: Truth) -> np.ndarray:
        """An argument's values at home: one per element, at its first byte."""
        apart = size_of(self.dtypes[name]) * self.values.scale
        strides = tuple(s * apart for s in truth.strides)
        return np.ndarray(truth.shape, self.values.storage(self.dtypes[name]), bank.data, strides=strides)

    def forget(self, keep: Iterable[str]) -> None:
        """Everything but literals and the named bases loses its contents, all buffers but those their versions."""
        kept = set(keep)
        for (_, base), bank in self.banks.items():
            if base not in kept and not bank.literal:
                bank.forget()
        for name, truth in self.truths.items():
            if name not in kept and not (name in self.slots and self.slots[name].literal is not None):
                truth.stamps[...] = 0

    def check_home(self, name: str) -> None:
        """Every element of an output that was ever written is current at home (SCH-9)."""
        if self.apart:
            return
        bank, truth = self.bank(self.schedule.system.home, name), self.truth(name)
        size = size_of(self.dtypes[name])
        there = bank.stamps.reshape(*truth.shape, size)
        bad = np.argwhere((there != truth.stamps[..., None]).any(-1))
        if len(bad):
            raise SimulationFault("final", f"{name}{bad[0].tolist()} at home is not its last version ({len(bad)} such)")


