"""An instruction of a judged description: what its text says at a glance, and the rest when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from isam.ir.instruction import Instruction
from isam.system.bodies import NO_STATEMENT, ROLES, functions_in, types_in
from isam.system.families import Entry
from isam.system.faults import Faults
from isam.system.source import Mapping, Scalar, Sequence


class Described:
    """See :class:`isam.ir.table.Unread`. ``make`` reads the entry and reports to ``faults``."""

    def __init__(self, entry: Entry, make: Callable[[Entry], Instruction | None], faults: Faults):
        self.types = types_in(entry.head("body", ROLES))
        self.sets = isinstance(entry.given, Mapping) and entry.given.get("sets") is not None
        self._calls: frozenset[str] | None = None
        self._entry, self._make, self._faults = entry, make, faults

    @property
    def calls(self) -> frozenset[str]:
        if self._calls is None:
            self._calls = functions_in(self._entry.rest("body", NO_STATEMENT))
        return self._calls

    @property
    def needs(self) -> tuple[str, ...]:
        if not isinstance(self._entry.given, Mapping) or self._entry.given.get("needs") is None:
            return ()
        assert isinstance(self._entry.node, Mapping)  # filled in as it is written
        found = self._entry.node.get("needs")
        several = found.items if isinstance(found, Sequence) else (found,)
        return tuple(n.text for n in several if isinstance(n, Scalar))

    def read(self) -> Instruction:
        return self._made

    @cached_property
    def _made(self) -> Instruction:
        made = self._make(self._entry)
        self._faults.stop()
        if made is None:
            raise AssertionError("an instruction that cannot be read has faults")
        return made
