"""Whether the emission of a description is for a back end that exists and fits its operands.

What a template means only its back end knows: the judges are registered beside the back ends (group ``isam.templates``)
and are not imported before a description has templates for them.
"""

from __future__ import annotations

from collections.abc import Callable

from isam import registry
from isam.diagnostics import IsamError, Loc
from isam.system.faults import Faults, nearest
from isam.system.graph import System

ALSO = ("c", "python")  # what registered functions bring along
Place = Callable[[str, str, int, int], Loc]  # instruction, back end, line and column of the template


def check_emission(system: System, faults: Faults, place: Place) -> None:
    """Adds every fault."""
    later = later_members(system)
    used = dict.fromkeys(b for i in system.instructions.values() for b in i.emission)
    strange = [b for b in used if not _known(b)]
    for i in system.instructions.values() if strange else ():
        faults.member = i.name in later
        for backend in (b for b in strange if b in i.emission):
            faults.add("system-unknown-backend", f"there is no back end '{backend[:60]}'",
                       place(i.name, backend, 0, 0), nearest(backend, registry.names("isam.backends")))  # fmt: skip
    judged = registry.SHIPPED["isam.templates"]
    for backend in dict.fromkeys([*used, system.backend]) if not strange else ():
        if backend not in judged:
            continue
        try:
            for f in registry.load("isam.templates", backend)(system):
                faults.member = f.instruction in later
                faults.add(f.code, f.message, place(f.instruction, backend, f.line, f.column), f.hint)
        except IsamError as e:
            for d in e.diagnostics:
                faults.take(d)
    faults.member = False


def later_members(system: System) -> frozenset[str]:
    """Members of families that are not their first: they fail alike."""
    seen: set[Loc] = set()
    return frozenset(i.name for i in system.instructions.values() if i.loc in seen or seen.add(i.loc))


def _known(backend: str) -> bool:
    shipped = registry.SHIPPED["isam.backends"]
    return backend in shipped or backend in ALSO or backend in registry.names("isam.backends")
