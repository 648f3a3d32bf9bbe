"""How many elements a vector register takes, under which masks, and how large groups in its lanes are."""

from __future__ import annotations

from isam.codegen.llvm.vectors import Lanes
from isam.diagnostics import fail
from isam.system.graph import COUNTED, System


def lanes_of(system: System) -> int:
    """Elements of a vector register. Raises ``IsamError`` where the description does not say."""
    registers = [m for m in system.memories.values() if m.kind == COUNTED]
    for m in registers:
        if not m.lanes:
            what = f"the registers '{m.name}' of '{system.name}' do not say how many elements they take"
            raise fail("emission-lanes", what, m.loc, "write 'lanes: 16'")
        if m.lanes != registers[0].lanes:
            what = f"'{m.name}' and '{registers[0].name}' of '{system.name}' take different numbers of elements"
            raise fail("emission-lanes", what, m.loc, "one kind of vector register can be emitted")
    return registers[0].lanes or 1 if registers else 1


def vector_of(system: System) -> Lanes:
    """A vector register as code has it. Raises ``IsamError`` where the description does not say, or says several."""
    registers, lanes = [m for m in system.memories.values() if m.kind == COUNTED], lanes_of(system)
    for m in registers:
        if m.masks != registers[0].masks:
            what = f"'{m.name}' and '{registers[0].name}' of '{system.name}' have different masks"
            raise fail("emission-lanes", what, m.loc, "write the same 'masks' at both")
    return Lanes(lanes, registers[0].masks if registers else "")


def lane_of(system: System) -> int:
    """Bytes of a lane that holds a group; 0 where no register does. Raises ``IsamError`` for several sizes."""
    grouped = [m for m in system.memories.values() if m.kind == COUNTED and m.lane]
    for m in grouped:
        if m.lane != grouped[0].lane:
            what = f"lanes of '{m.name}' and '{grouped[0].name}' of '{system.name}' have different sizes"
            raise fail("emission-lanes", what, m.loc, "one size of groups can be emitted")
    return grouped[0].lane or 0 if grouped else 0


def snippets_of(system: System) -> dict[str, str]:
    """The pieces of code that templates share, by name."""
    tables = (t for key, t in system.facts.items() if key.startswith("snippets") and isinstance(t, dict))
    return {str(k): str(v) for t in tables for k, v in t.items()}
