"""The instructions of a machine by name; those that are texts still are read when they are first asked for.

A machine has more than a thousand instructions and a kernel uses about ten. What rules out most of the others is known
without reading their bodies: the element types that they need.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from isam.ir.instruction import Instruction
from isam.ir.spacing import TOGETHER, Spacing

KINDS = 64  # of kernels for which the instructions of a machine are remembered


class Unread(Protocol):
    """An instruction that is a text still. ``types``, ``calls``: element types and operations that a kernel must have
    for it to fit; ``sets``: it may set configuration registers, and then it need not compute; ``needs``: features of a
    CPU without which it cannot run."""

    @property
    def types(self) -> frozenset[str]: ...

    @property
    def calls(self) -> frozenset[str]: ...

    @property
    def sets(self) -> bool: ...

    @property
    def needs(self) -> tuple[str, ...]: ...

    def read(self) -> Instruction:
        """The same value each time. Raises ``IsamError`` when the text is wrong."""
        ...


class Table(Mapping[str, Instruction]):
    """Instructions by name, in the order of their description. Counting and looking for names reads none. ``texts``: a
    digest of the texts that they come from, but for those ``added``."""

    def __init__(self, held: Mapping[str, Instruction | Unread], texts: str = "", added: frozenset[str] = frozenset()):
        self._held, self.texts, self.added = dict(held), texts, added

    @staticmethod
    def of(instructions: Mapping[str, Instruction]) -> Table:
        return instructions if isinstance(instructions, Table) else Table(instructions)

    def __getitem__(self, name: str) -> Instruction:
        found = self._held[name]
        if not isinstance(found, Instruction):
            found = self._held[name] = found.read()
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._held

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def only(self, names: Container[str]) -> Table:
        return Table({n: i for n, i in self._held.items() if n in names}, self.texts, self.added)

    def plus(self, *instructions: Instruction) -> Table:
        more = {i.name: i for i in instructions}
        return Table({**self._held, **more}, self.texts, self.added | more.keys())

    def seen(self) -> tuple[Instruction, ...]:
        """Those read so far: whatever anything refers to is among them."""
        return tuple(i for i in self._held.values() if isinstance(i, Instruction))

    def computes(self, name: str) -> bool:
        """Whether the instruction has a statement: one that only sets configuration registers has none."""
        found = self._held[name]
        return bool(self[name].body.body) if isinstance(found, Instruction) or found.sets else True

    @cached_property
    def needing(self) -> Mapping[str, tuple[str, ...]]:
        """Of instructions that some CPUs do not have, the features that they need. Reads none of them."""
        return {n: i.needs for n, i in self._held.items() if i.needs}

    def setters(self) -> tuple[str, ...]:
        """The instructions that set configuration registers."""
        return tuple(n for n, i in self._held.items() if i.sets and self[n].sets)

    def may_fit(self, name: str, dtypes: frozenset[str], operations: frozenset[str]) -> bool:
        """Whether a kernel of these element types and operations may use the instruction, as far as that is known
        without reading."""
        found = self._held[name]
        return isinstance(found, Instruction) or (found.types <= dtypes and found.calls <= operations)


class Some(Sequence[Instruction]):
    """Some of a table's instructions, in its order. ``fit``: those of them that were found for a kind of kernel;
    ``spacing``: what can be brought to them and from them though it does not lie together."""

    def __init__(self, table: Table, names: Sequence[str], spacing: Spacing = TOGETHER):
        self.table, self.names, self.spacing = table, tuple(names), spacing
        self.fit: dict[Hashable, tuple[Instruction, ...]] = {}
        self._fewer: dict[Hashable, Some] = {}  # see ``without`` and ``that_may_fit``

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return Some(self.table, self.names[at], self.spacing)
        return self.table[self.names[at]]

    def __len__(self) -> int:
        return len(self.names)

    def without(self, names: Collection[str]) -> Some:
        return self._some(frozenset(names), lambda: [n for n in self.names if n not in names]) if names else self

    def that_may_fit(self, dtypes: frozenset[str], operations: frozenset[str]) -> Some:
        """Without those that a kernel of these element types and operations cannot use, as far as that is known without
        reading."""
        fit = self.table.may_fit
        return self._some((dtypes, operations), lambda: [n for n in self.names if fit(n, dtypes, operations)])

    def _some(self, key: Hashable, names: Callable[[], list[str]]) -> Some:
        """Some of these, the same value each time."""
        if key not in self._fewer:
            if len(self._fewer) >= KINDS:
                self._fewer.clear()
            self._fewer[key] = Some(self.table, names(), self.spacing)
        return self._fewer[key]


def spacing_of(instructions: Sequence[Instruction]) -> Spacing:
    """What the machine of some instructions moves between home and registers."""
    return instructions.spacing if isinstance(instructions, Some) else TOGETHER
