"""Loads and calls the code of hand-built schedules in tests: buffers end at a page nobody may touch."""

from __future__ import annotations

import ctypes
import mmap
from functools import lru_cache

import numpy as np

from isam.codegen.llvm import Code, generate
from isam.codegen.llvm.machine import target_machine
from isam.once import once
from isam.runtime.external import Externals
from isam.runtime.linking import initialised
from isam.schedule.tree import Schedule

PAGE = mmap.PAGESIZE
PATTERN = 0xA5


@lru_cache(maxsize=1)
def _jit():
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(target_machine())


_loaded: list[object] = []


def load(code: Code) -> dict[str, object]:
    import llvmlite.binding as llvm

    builder = llvm.JITLibraryBuilder().add_object_img(code.object).add_current_process()
    for name, symbol in code.symbols.items():
        builder.import_symbol(name, Externals({}).address(symbol))
    for e in code.entries:
        builder.export_symbol(e)
    library = builder.link(_jit(), f"test{len(_loaded)}")
    _loaded.append(library)
    p = ctypes.c_void_p
    return {e: ctypes.CFUNCTYPE(None, p, p, p)(library[e]) for e in code.entries}


def first_x86_64():
    """What makes code for the first CPUs of that name (nothing beyond SSE2), whatever this one has; None elsewhere."""
    llvm = initialised()
    triple = llvm.get_process_triple()
    if not triple.startswith("x86_64"):
        return None
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu="x86-64", features="", opt=2, reloc="pic", codemodel="small", jit=True)  # fmt: skip


class Guarded:
    """An array whose last byte is the last byte before an inaccessible page (or whose first is the first after one).

    ``align``: the array begins at a multiple of that many bytes, as near to the page as it can. The other bytes of its
    pages hold a pattern: ``intact`` tells whether nobody wrote there. ``still``: nobody may write into the array.
    """

    def __init__(self, array: np.ndarray, at_end: bool = True, align: int = 1, still: bool = False):
        n = array.nbytes
        pages = -(-max(n, 1) // PAGE)
        self.map = mmap.mmap(-1, (pages + 2) * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.begin = (pages + 1) * PAGE - -(-n // align) * align if at_end else PAGE
        self.room = np.ndarray((pages * PAGE,), np.uint8, self.map, PAGE)
        self.room[...] = PATTERN
        self.array = np.ndarray(array.shape, array.dtype, self.map, self.begin)
        self.array[...] = array
        for first, count, rights in ((0, 1, 0), (pages + 1, 1, 0), *([(1, pages, mmap.PROT_READ)] if still else [])):
            assert _libc().mprotect(ctypes.c_void_p(start + first * PAGE), count * PAGE, rights) == 0

    @property
    def intact(self) -> bool:
        """Whether the bytes before and after the array, up to the pages that nobody may touch, are as they were."""
        first = self.begin - PAGE
        around = (self.room[:first], self.room[first + self.array.nbytes :])
        return all(bool((part == PATTERN).all()) for part in around)


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


@once
def made(schedule: Schedule) -> tuple[Code, dict[str, object]]:
    """The code of a schedule and its functions: made once, as several calls try the same one."""
    code = generate(schedule)
    return code, load(code)


def run(schedule: Schedule, arrays: dict[str, np.ndarray], sizes: dict[str, int] | None = None, at_end: bool = True,
        code: Code | None = None) -> dict[str, np.ndarray]:  # fmt: skip
    """``bind`` and ``call`` on guarded copies of ``arrays`` (outputs included). Returns all arrays afterwards."""
    code, entries = made(schedule) if code is None else (code, load(code))
    held = {n: Guarded(np.array(a, order="C"), at_end) for n, a in arrays.items()}
    names = [b.name for b in schedule.kernel.arguments]
    pointers = (ctypes.c_void_p * max(1, len(names)))(*[held[n].array.ctypes.data for n in names])
    workspace = np.full(code.workspace + 64, 0xA5, np.uint8)
    base = workspace.ctypes.data + (-workspace.ctypes.data) % 64
    symbols = (ctypes.c_int64 * max(1, len(code.sizes)))(*[(sizes or {})[s] for s in code.sizes])
    for e in code.entries:
        entries[e](pointers, base, symbols)
    return {n: g.array.copy() for n, g in held.items()}
