"""What a measurement on this computer depends on besides what is measured: the CPU, and what computes on it.

What is kept of measurements is kept under one of these, and says nothing under another. There are two, as two sorts of
code are measured. Code that ISAM compiles depends on LLVM, which makes it for the CPU that LLVM sees. Functions that a
selector is given may be anything and need no LLVM, which takes 50 ms to load: for them the operating system is asked.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path


def code_environment() -> tuple[str, str, str]:
    """What compiled code, and how long it takes, depends on: LLVM's version, the CPU's name and its features."""
    from isam.runtime.linking import host

    return host()


@lru_cache(maxsize=1)
def call_environment() -> str:
    """What it depends on how long functions of any kind take, as a digest: this CPU by name and features, and the
    versions of NumPy and ISAM. LLVM is not loaded."""
    import numpy

    from isam import __version__

    lines: list[str] = []
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        lines = sorted({line for line in text.splitlines() if line.startswith(("model name", "flags", "Features"))})
    parts = [platform.machine(), platform.processor(), *lines, f"numpy {numpy.__version__}", f"isam {__version__}"]
    return sha256("\n".join(parts).encode()).hexdigest()[:16]
