"""LLVM IR text to object bytes for this CPU."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from isam.diagnostics import InternalError, fail
from isam.runtime.linking import features, host, initialised, target_machine


def version() -> str:
    return host()[0]


@lru_cache(maxsize=1)
def _machine() -> Any:
    return target_machine()


def check_features(needs: Iterable[str], what: str) -> None:
    """Raises ``IsamError`` when this CPU lacks one of ``needs``: LLVM would end the process instead."""
    lacks = [n for n in needs if n not in features()]
    if lacks:
        raise fail("codegen-features", f"this CPU lacks {', '.join(lacks)}, which {what} needs",
                   hint="compile on='host' takes the variant that this CPU can run")  # fmt: skip


def compile_object(text: str, assembly: bool = False) -> tuple[bytes, str]:
    """Object file and, on request, assembly. Raises ``InternalError`` when LLVM refuses the text."""
    llvm = initialised()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as e:
        raise InternalError(f"LLVM refuses the code: {e}") from e
    machine = _machine()
    machine.set_asm_verbosity(True)
    return machine.emit_object(module), machine.emit_assembly(module) if assembly else ""
