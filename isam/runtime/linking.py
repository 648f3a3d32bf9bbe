"""Object code in this process: one JIT for all of it, made when the first code is linked."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

_lock = threading.Lock()
_numbers = itertools.count()
VSCALE = "vscale-"  # begins the name of a feature: scalable registers are just so many times as long as the shortest


class Target(NamedTuple):
    """A CPU that code is made for, by LLVM's names. ``features``: what it has besides, its architecture among them."""

    triple: str
    cpu: str
    features: frozenset[str]

    @property
    def flags(self) -> str:
        """The features that LLVM knows of."""
        known = sorted(f for f in self.features if f != architecture(self.triple) and not f.startswith(VSCALE))
        return ",".join(f"+{f}" for f in known)


@lru_cache(maxsize=1)
def initialised() -> Any:
    """LLVM, ready for this CPU."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@lru_cache(maxsize=1)
def features() -> frozenset[str]:
    """What this CPU has, by LLVM's names (``avx2``, ``neon``), and its architecture (``x86_64``, ``aarch64``); read
    from the CPU itself, unlike its name. Nothing else where LLVM cannot tell."""
    own = architecture(initialised().get_process_triple())
    try:
        named = frozenset(name for name, has in initialised().get_host_cpu_features().items() if has)
    except RuntimeError:
        named = frozenset()
    if "amx-tile" in named and not _granted():
        named = frozenset(n for n in named if not n.startswith("amx-"))
    times = _vscale() if "sve" in named else 0
    return named | {own, *([f"{VSCALE}{times}"] if times else [])}


def architecture(triple: str) -> str:
    """What a triple begins with, by one name for each."""
    name = triple.split("-")[0]
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


def vscale(needs: Iterable[str]) -> int:
    """How many times as long as the shortest that there are scalable registers have to be; 0 where any length does."""
    return next((int(n) for f in needs if f.startswith(VSCALE) and (n := f[len(VSCALE) :]).isdecimal()), 0)


def _granted() -> bool:
    """Whether this process may use the tiles of AMX: Linux grants a process their state when asked for it
    (Documentation/arch/x86/xstate.rst)."""
    if not sys.platform.startswith("linux"):
        return False
    arch_prctl, request, tile_data = 158, 0x1023, 18  # ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
    return ctypes.CDLL(None).syscall(arch_prctl, request, tile_data) == 0


def _vscale() -> int:
    """LLVM's vscale in a process on an Arm with SVE, whose shortest registers have 16 bytes; 0 where nobody tells."""
    if not sys.platform.startswith("linux"):
        return 0
    get_length, length = 51, 0xFFFF  # PR_SVE_GET_VL of prctl(2); bytes, in the low bits of what it returns
    return max(0, ctypes.CDLL(None).prctl(get_length, 0, 0, 0, 0)) % (length + 1) // 16


@lru_cache(maxsize=1)
def host() -> tuple[str, str, str]:
    """LLVM's version, this CPU's name and its features."""
    llvm = initialised()
    version = ".".join(map(str, llvm.llvm_version_info))
    return version, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def target_machine(level: int = 2, other: Target | None = None) -> Any:
    """The target machine for this CPU, or for another one. ``level``: effort of code generation (0 to 3). Raises
    ``RuntimeError`` where LLVM makes no code for the other one."""
    llvm = initialised()
    if other is not None:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        return llvm.Target.from_triple(other.triple).create_target_machine(
            cpu=other.cpu, features=other.flags, opt=level, reloc="pic", codemodel="small")  # fmt: skip
    _, cpu, flags = host()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=cpu, features=flags, opt=level, reloc="pic", codemodel="small",
                                        jit=True)  # fmt: skip


@lru_cache(maxsize=1)
def _jit() -> Any:
    """JITLink lays all sections of an object side by side. RuntimeDyld asks for each on its own: in a process with
    gigabytes of memory they may lie farther apart than an instruction reaches, and LLVM ends the process."""
    return initialised().create_lljit_compiler(target_machine(), use_jit_link=sys.platform != "win32")


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


def to_object(text: str, level: int = 1) -> bytes:
    """Object code of LLVM IR that comes with the runtime."""
    llvm = initialised()
    return target_machine(level).emit_object(llvm.parse_assembly(text))
