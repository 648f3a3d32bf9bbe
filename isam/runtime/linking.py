"""Object code in this process: one JIT for all of it, made when the first code is linked."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_lock = threading.Lock()
_numbers = itertools.count()


@lru_cache(maxsize=1)
def initialised() -> Any:
    """LLVM, ready for this CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@lru_cache(maxsize=1)
def features() -> frozenset[str]:
    """What this CPU has, by LLVM's names (``avx2``, ``neon``); read from the CPU itself, unlike its name. Empty where
    LLVM cannot tell."""
    try:
        return frozenset(name for name, has in initialised().get_host_cpu_features().items() if has)
    except RuntimeError:
        return frozenset()


@lru_cache(maxsize=1)
def host() -> tuple[str, str, str]:
    """LLVM's version, this CPU's name and its features."""
    llvm = initialised()
    version = ".".join(map(str, llvm.llvm_version_info))
    return version, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def target_machine(level: int = 2) -> Any:
    """The target machine for this CPU. ``level``: effort of code generation (0 to 3)."""
    llvm = initialised()
    _, cpu, flags = host()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=cpu, features=flags, opt=level, reloc="pic", codemodel="small",
                                        jit=True)  # fmt: skip


@lru_cache(maxsize=1)
def _jit() -> Any:
    return initialised().create_lljit_compiler(target_machine())


def link(name: str, code: bytes, symbols: Mapping[str, int], wanted: Iterable[str]) -> Any:
    """The code linked: addresses by name; it lives as long as what is returned. ``symbols``: addresses of what it calls
    besides what the process exports. Raises ``RuntimeError`` when it cannot be linked."""
    builder = initialised().JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol, address in symbols.items():
        builder.import_symbol(symbol, address)
    for symbol in wanted:
        builder.export_symbol(symbol)
    with _lock:
        return builder.link(_jit(), f"{name}.{next(_numbers)}")


def to_object(text: str) -> bytes:
    """Object code of LLVM IR that comes with the runtime."""
    llvm = initialised()
    return target_machine(1).emit_object(llvm.parse_assembly(text))
