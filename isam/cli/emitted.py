"""Whether an artifact is what its schedule gives: its code, made once more, and all that it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isam.artifact import Artifact, Row
    from isam.schedule.tree import Schedule

BESIDE = {"kernel.isam", "schedule.json", "certificate.json", "trace.json"}  # parts that are no code
SAID = ("name", "backend", "arguments", "sizes", "entry", "bind", "workspace", "bound", "needs", "externals", "points",
        "provenance")  # fmt: skip


def compared(a: Artifact, schedule: Schedule) -> tuple[str, list[str]]:
    """``same``, ``other`` or ``not compared``, and what is otherwise in the artifact than the schedule gives, or why
    its code cannot be made here."""
    from isam import registry
    from isam.diagnostics import IsamError

    if other := _another(a):
        return "not compared", [f"the code is not compared: {other} (--no-code judges the schedule alone)"]
    try:
        again = registry.load("isam.backends", a.backend)(schedule)
    except IsamError as e:
        return "not compared", [f"the code is not compared: {e.diagnostics[0].message} (--no-code judges the schedule)"]
    found = [f"the artifact says {_differs(n, getattr(a, n), getattr(again, n))}" for n in SAID
             if getattr(a, n) != getattr(again, n)]  # fmt: skip
    found += [f"the artifact has the part {n}, which the schedule does not give" for n in sorted(a.parts)
              if n not in again.parts and n not in BESIDE]  # fmt: skip
    found += [f"the part {n} is missing" for n in sorted(again.parts) if n not in a.parts]
    if any(a.parts[n] != code for n, code in again.parts.items() if n in a.parts and n not in BESIDE):
        found.append("the code is not what the schedule gives")
    return "other" if found else "same", found


def unlike(a: Artifact, schedule: Schedule) -> list[str]:
    """What an artifact says of its call that is otherwise in the schedule, whoever makes its code."""
    from isam.ir.signature import arguments_of, sizes_of

    wanted = {"backend": schedule.system.backend, "arguments": arguments_of(schedule.cover.original),
              "sizes": sizes_of(schedule.kernel)}  # fmt: skip
    return [f"the artifact says {_differs(n, getattr(a, n), w)}" for n, w in wanted.items() if getattr(a, n) != w]


def _another(a: Artifact) -> str:
    """Which other version made the code; '' where it is this one."""
    import isam
    from isam.codegen.llvm.machine import version

    here = {"isam": isam.__version__, "llvm": version() if a.backend == "llvm" else None}
    said = [f"{n} {a.provenance.get(n)}, here is {v}" for n, v in here.items() if a.provenance.get(n) != v]
    return f"it was made by {' and '.join(said)}" if said else ""


def _differs(name: str, found: object, wanted: object) -> str:
    return f"{name} {_short(found)}, the schedule gives {_short(wanted)}"


def _extent(row: Row) -> str:
    const, terms = row
    return " + ".join([*(f"{c} {n}" for n, c in terms), *([str(const)] if const or not terms else [])])


def _short(value: object) -> str:
    from isam.artifact import Argument

    if isinstance(value, tuple) and all(isinstance(v, Argument) for v in value):
        value = ", ".join(f"{v.role} {v.name}: {v.dtype}[{', '.join(map(_extent, v.shape))}]" for v in value)
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
