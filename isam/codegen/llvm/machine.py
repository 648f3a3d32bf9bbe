"""LLVM IR text to object bytes, for this CPU or for the one that a description names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from isam.codegen.llvm.spills import may_spill
from isam.diagnostics import InternalError, fail
from isam.runtime.linking import Target, architecture, features, host, initialised, target_machine


def version() -> str:
    return host()[0]


@lru_cache(maxsize=8)
def _machine(target: Target | None = None) -> Any:
    try:
        return target_machine(other=target)
    except RuntimeError as e:
        assert target is not None
        raise fail("codegen-target", f"LLVM makes no code for '{target.triple}': {e}",
                   hint="a triple like aarch64-unknown-linux-gnu") from None  # fmt: skip


def check_features(needs: Iterable[str], what: str, target: Target | None = None) -> None:
    """Raises ``IsamError`` when the CPU lacks one of ``needs``: LLVM would end the process instead."""
    have = features() if target is None else target.features
    lacks = [n for n in needs if n not in have]
    if lacks and target is not None:
        raise fail("codegen-features", f"the target's features do not say {', '.join(lacks)}, which {what} needs",
                   hint="name what the CPU has under 'target: {features: [...]}'")  # fmt: skip
    if lacks:
        raise fail("codegen-features", f"this CPU lacks {', '.join(lacks)}, which {what} needs",
                   hint="compile on='host' takes the variant that this CPU can run; code for another CPU takes a "
                        "'target:' in the description")  # fmt: skip


def compile_object(text: str, assembly: bool = False, target: Target | None = None) -> tuple[bytes, str]:
    """Object file and, on request or where it may save vectors to the stack, assembly. Raises ``InternalError`` when
    LLVM refuses the text."""
    llvm = initialised()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as e:
        raise InternalError(f"LLVM refuses the code: {_refusal(str(e))}") from e
    machine = _machine() if target is None else _machine(target)
    machine.set_asm_verbosity(True)
    code = machine.emit_object(module)
    listed = assembly or may_spill(code, architecture(machine.triple))
    return code, machine.emit_assembly(module) if listed else ""


def _refusal(said: str) -> str:
    """What LLVM says about a line of its text, in one line: ``expected instruction opcode: %t8 = fmull ...``."""
    found = re.search(r"error: (.*)\n(.*)", said)
    return f"{found[1]}: {found[2].strip()}" if found else said.strip()
