"""Facts about the machine that results are read with: no names of hosts, no paths."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

TELLING = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni", "avx512bf16", "amx-tile",
           "sve", "sme", "v")  # fmt: skip


def facts() -> dict[str, Any]:
    """What the CPU can do, its caches, how many there are, the interpreter, the load."""
    from isam.codegen.llvm.machine import features

    have = set(features())
    return {
        "cpu": _model(),
        "cpus": os.cpu_count(),
        "features": [f for f in TELLING if f in have],
        "caches": _caches(),
        "python": platform.python_version(),
        "load": load(),
    }


def roofs(on: str) -> dict[str, Any]:
    """What bounds a core, measured: ``rates``, operations per second by the type of the first factor, and ``reads``,
    bytes per second by the nearest memory that holds them. Empty where code for that machine does not run here."""
    from isam.diagnostics import IsamError
    from isam.system.load import load_system
    from isam.tune.roofs import roofs as measured

    try:
        found = measured(load_system(on))
    except IsamError:
        return {}
    return {"clock": found.clock, "rates": found.rates, "reads": found.reads}


def load() -> float:
    """Processes that ran in the last minute, on average."""
    return round(os.getloadavg()[0], 2)


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    got = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    number = f", family {got['cpu family']} model {got['model']}" if "cpu family" in got and "model" in got else ""
    return got.get("model name", platform.machine()) + number


def _caches() -> dict[str, str]:
    """Per level (L1d, L2, L3) the size of one cache."""
    out: dict[str, str] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind = (index / "level").read_text().strip(), (index / "type").read_text().strip()
            if kind != "Instruction":
                out[f"L{level}" + ("d" if kind == "Data" else "")] = (index / "size").read_text().strip()
        except OSError:
            continue
    return out
