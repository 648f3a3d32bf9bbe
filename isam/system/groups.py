"""What nodes of a machine have besides themselves: ports, replicas, meshes, shared links, one instruction stream,
registers."""

from __future__ import annotations

from dataclasses import field

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Loc


@dataclass(frozen=True, slots=True)
class Ports:
    """How many operands of ONE call may be read from a memory and how many written to it (SYS-3); None: any number.
    An operand that is updated (``inout``) takes one of each."""

    read: int | None = None
    write: int | None = None

    def admit(self, roles: list[str]) -> bool:
        """Whether one call may have operands of these roles in the memory."""
        reads = sum(r in ("in", "const", "inout") for r in roles)
        writes = sum(r in ("out", "inout") for r in roles)
        return (self.read is None or reads <= self.read) and (self.write is None or writes <= self.write)


@dataclass(frozen=True, slots=True)
class Replica:
    """``count`` equal copies of these memories and units; the rest of the machine is there once and shared. A move
    within a replica stays within one instance. ``threads``: threads of a process stand for them, as many as whoever
    compiles says."""

    name: str
    count: int
    memories: tuple[str, ...]
    units: tuple[str, ...]
    threads: bool = False
    loc: Loc = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Mesh:
    """The instances of a ``replica`` on a grid of ``shape`` places (rings where it ``wrap``s): between neighbours a
    channel each way of ``bandwidth`` bytes per second, through which something takes ``hop`` seconds. ``ports``: per
    shared memory the places beside which it is attached, each by a channel in and one out. Moves between it and an
    instance go along the routes of :mod:`isam.system.mesh`."""

    name: str
    replica: str
    shape: tuple[int, ...]
    bandwidth: float
    ports: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    hop: float = 0.0
    wrap: bool = False
    loc: Loc = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Link:
    """What the moves along ``edges`` have to share, of all instances together: ``bandwidth`` in bytes per second."""

    name: str
    bandwidth: float
    edges: tuple[tuple[str, str], ...]
    loc: Loc = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Cluster:
    """Units with one instruction stream (SYS-4): at each step those that are not idle execute the same instruction with
    the same sizes."""

    name: str
    units: tuple[str, ...]
    loc: Loc = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Register:
    """A configuration register (SYS-5): one of ``values``, or a number of ``bits``. ``reset``: what it holds at the
    start; None: nobody knows."""

    name: str
    values: tuple[str, ...] = ()
    bits: int | None = None
    reset: str | int | None = None
    loc: Loc = field(default=NOWHERE, compare=False)

    def holds(self, value: str | int) -> bool:
        """Whether the register can have this value."""
        if self.bits is None:
            return value in self.values
        return isinstance(value, int) and 0 <= value < 1 << self.bits
