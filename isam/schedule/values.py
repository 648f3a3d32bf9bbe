"""Values of the core types as JSON and back: tuples are lists, everything else that JSON lacks is a one-key object.

Locations are left out (they are no part of equality, and paths have no place in an artifact). A value of a type that is
not a core type (a transform's own record in ``Cover.back``) becomes an :class:`Opaque`: its printed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import Loc, fail
from isam.ir import instruction, kernel, mapping
from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.runtime.linking import Target
from isam.schedule import tree
from isam.schedule.typed import typed
from isam.system import graph, groups

_KERNEL = (kernel.Sym, kernel.Axis, kernel.Domain, kernel.Buffer, kernel.Access, kernel.Literal, kernel.Statement,
           kernel.Recurrence, kernel.Kernel)  # fmt: skip
_REST = (instruction.OperandContract, instruction.Cost, instruction.Narrow, instruction.Burst, instruction.Instruction,
         graph.Memory, graph.Unit, graph.Move, graph.System, groups.Ports, groups.Replica, groups.Mesh, groups.Link,
         groups.Cluster, groups.Register, Target, Condition, mapping.OperandMap, mapping.Mapping, mapping.Rewriting,
         mapping.Cover, tree.Place, tree.Slot, tree.Nest)  # fmt: skip
CLASSES: dict[str, type] = {c.__name__: c for c in _KERNEL + _REST}
_SKIPPED = {(c, n) for c in CLASSES.values() for n in ("loc", "template")}
_SKIPPED |= {(kernel.Kernel, "faults")}  # none: it was verified
_SKIPPED |= {(graph.System, "source"), (graph.System, "backend_loc"), (instruction.Instruction, "family"),
             (instruction.Instruction, "values")}  # origin
_LAST: dict[type, str] = {  # few have it: left out if there is none
    kernel.Sym: "whole", mapping.Mapping: "conditions", instruction.Cost: "narrow"}  # fmt: skip
_NAMES: dict[type, tuple[str, ...]] = {
    c: c._fields if c is Target else tuple(f.name for f in fields(c) if (c, f.name) not in _SKIPPED)
    for c in CLASSES.values()
}


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of a type this file does not know, as it printed itself."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


_PLAIN = frozenset((type(None), bool, int, str))  # JSON has them


class Writer:
    """Turns values into JSON. ``instructions``: those that may be referred to by name."""

    def __init__(self, instructions: Mapping[str, instruction.Instruction] | None = None):
        self.instructions = instructions or {}
        self._known: dict[int, tuple[Any, Any]] = {}  # by the numbers of records, which they keep

    def value(self, v: Any) -> Any:
        kind = type(v)
        if kind in _PLAIN:
            return v
        if kind is tuple:
            return [self.value(x) for x in v]
        if kind in _NAMES:
            known = self._known.get(id(v))
            if known is None:
                known = self._known[id(v)] = v, self.record(v)
            return known[1]
        if isinstance(v, (int, str)):
            return v
        if isinstance(v, float):
            return v if math.isfinite(v) else {"float": repr(v)}
        if isinstance(v, Affine):
            return {"A": affine(v)}
        if isinstance(v, Loc):
            return {"opaque": ["Loc", ""]}
        if isinstance(v, tuple):
            return [self.value(x) for x in v]
        if isinstance(v, list):
            return {"list": [self.value(x) for x in v]}
        if isinstance(v, Mapping):
            return {"dict": [[self.value(k), self.value(x)] for k, x in v.items()]}
        if isinstance(v, (frozenset, set)):
            return {"set": sorted((self.value(x) for x in v), key=str)}
        return self.record(v)

    def record(self, v: Any) -> Any:
        if isinstance(v, instruction.Instruction) and self.instructions.get(v.name) == v:
            return {"instruction": v.name}
        names = _NAMES.get(type(v))
        if names is not None and names[-1] == _LAST.get(type(v)) and getattr(v, names[-1]) in (None, ()):
            names = names[:-1]
        if names is not None:
            return {type(v).__name__: [self.value(getattr(v, n)) for n in names]}
        if isinstance(v, Opaque):
            return {"opaque": [v.kind, v.text]}
        return {"opaque": [type(v).__name__, str(v)]}


class Reader:
    """Turns JSON into values. Raises ``IsamError`` at what no :class:`Writer` wrote."""

    def __init__(self, instructions: Mapping[str, instruction.Instruction] | None = None):
        self.instructions = instructions or {}
        self.special = {
            "float": float,
            "A": read_affine,
            "list": lambda b: [self.value(x) for x in b],
            "dict": lambda b: {self.value(k): self.value(x) for k, x in b},
            "set": lambda b: frozenset(self.value(x) for x in b),
            "instruction": lambda b: self.instructions[b],
            "opaque": lambda b: Opaque(str(b[0]), str(b[1])),
        }

    def value(self, j: Any) -> Any:
        if isinstance(j, list):
            return tuple([self.value(x) for x in j])
        if not isinstance(j, dict):
            return j
        ((tag, body),) = j.items()
        known = self.special.get(tag)
        if known is not None:
            return known(body)
        cls = CLASSES.get(tag)
        if cls is None:
            raise fail("schedule-damaged", f"unknown value '{tag}'")
        names = _NAMES[cls]
        if names[-1:] == (_LAST.get(cls),) and len(names) == len(body) + 1:
            names = names[:-1]
        if len(names) != len(body):
            raise fail("schedule-damaged", f"a {tag} has {len(names)} fields, not {len(body)}")
        return typed(cls(**{n: self.value(x) for n, x in zip(names, body, strict=True)}))


def affine(e: Affine) -> list[int | str]:
    """``[const, name, coefficient, name, coefficient, ...]``."""
    out: list[int | str] = [e.const]
    for n, c in e.terms:
        out += (n, c)
    return out


def read_affine(row: list[Any]) -> Affine:
    return typed(Affine(tuple(zip(row[1::2], row[2::2], strict=True)), row[0]))
