"""How users speak of instructions: by name (``sgemm_nt``), family (``gemm``) or values (``gemm[T=f32, V=nt]``)."""

from __future__ import annotations

import re

from isam.diagnostics import Loc, did_you_mean, fail
from isam.ir.instruction import Instruction
from isam.system.graph import System

_WITH_VALUES = re.compile(r"([^\[\]]{1,200})\[([^\[\]]{0,400})\]")


def named(system: System, text: str) -> list[Instruction]:
    """The instruction of this name; or the members of this family, those with the values given. Raises ``IsamError``
    when there is none."""
    if not isinstance(text, str):
        raise fail("instruction-unknown", f"an instruction is named by a text, not {type(text).__name__}",
                   hint=f"isam system show {system.name} lists them")  # fmt: skip
    if text in system.instructions:
        return [system.instructions[text]]
    m = _WITH_VALUES.fullmatch(text)
    family, values = (m[1], _values(m[2])) if m else (text, {})
    kin = [i for i in system.instructions.values() if i.family and i.family == family]
    found = [i for i in kin if values.items() <= dict(i.values).items()]
    if text and not found and not m:  # a part of the name, up to an underscore
        found = [i for n, i in system.instructions.items() if n.startswith(f"{text}_")]
    if not found:
        raise fail("instruction-unknown", f"the system '{system.name}' has no instruction '{text[:80]}'",
                   hint=_hint(system, family, kin if m else []))  # fmt: skip
    return found


def families(system: System) -> list[list[Instruction]]:
    """Instructions by the description that they are instances of, in its order."""
    out: dict[tuple[Loc, str], list[Instruction]] = {}
    for i in system.instructions.values():
        out.setdefault((i.loc, "" if i.values else i.name), []).append(i)
    return list(out.values())


def _values(text: str) -> dict[str, str]:
    pairs = (p.partition("=") for p in text.split(",") if p.strip())
    return {n.strip(): v.strip() for n, _, v in pairs}


def _hint(system: System, family: str, kin: list[Instruction]) -> str:
    if kin:
        return f"'{family}' has " + "; ".join(f"{n}: {' '.join(v)}" for n, v in parameters(kin).items())
    known = dict.fromkeys([*system.instructions, *(i.family for i in system.instructions.values() if i.family)])
    return did_you_mean(family, known) or f"isam system show {system.name} lists them"


def parameters(members: list[Instruction]) -> dict[str, list[str]]:
    """The parameters that tell members apart, and the values they take."""
    out: dict[str, list[str]] = {}
    for i in members:
        for n, v in i.values:
            if v not in out.setdefault(n, []):
                out[n].append(v)
    return out
