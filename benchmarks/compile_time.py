"""Where the time of a compilation goes, per stage: in a fresh process (cold) and again in the same one (warm).

    python -m benchmarks.compile_time [--group NAME]... [--shape PART]... [--on SYSTEM] [--repeats N] [--json]

CPU time of the process, the least of ``--repeats`` processes; Python's bytecode is there, as after any installation
(one process more makes it), and nothing else is kept on disk. ``begin`` is the interpreter
before its first line, ``numpy`` its import (whoever has arrays has paid for it already), ``parse`` reads the kernels of
this folder (and imports the language), ``load`` the description of the machine; ``all`` is the whole process up to the
finished function, and ``alone`` what of it comes after ``import isam``: everything from the kernel's text and the
machine's description to native code. The limit of a cold compilation is that of ``alone``; what comes before it is
Python, NumPy and the import, which has a limit of its own. Exit code: 0, or 1 when a limit is passed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .compiling import SAMPLES, WARM, compiled_as, installed
from .shapes import GROUPS as SHAPES
from .shapes import Case, Convolution, Gemm

SCHEMA = "isam.compile-time/2"
GROUPS: dict[str, list[Gemm | Convolution]] = {"samples": list(SAMPLES)} | {
    name: whole for name, group in SHAPES.items() if (whole := [s for s in group if not isinstance(s, Case)])
}  # fmt: skip
STEPS = ("begin", "numpy", "import", "parse", "load", "verify", "specialise", "normal form", "cover", "schedule",
         "prove", "emit")  # fmt: skip
COLUMNS = (*STEPS, "alone", "all")
LIMITS = {"cold alone": 0.5, "cover warm": 0.02, "import": 0.35}  # seconds of CPU; those of "warm" are by shape
AFTER = 2  # compilations after the first

CHILD = f"""
import time
time.perf_counter = time.process_time  # stages are timed by it
now = time.process_time
marks = [0.0, now()]
import numpy
marks.append(now())
import isam
marks.append(now())
import json, sys
from {__package__}.kernels import sources
kernel, sizes, on = sources()[sys.argv[1]], json.loads(sys.argv[2]), sys.argv[3]
marks.append(now())
isam.load_system(on)
marks.append(now())
runs = []
for n in range({1 + AFTER}):
    start = now()
    fn = isam.compile(kernel, on=on, sizes=sizes, cache=False)
    done = now()
    alone, all_ = (done - marks[3], done) if n == 0 else (done - start, done - start)
    runs.append({{**fn.job.seconds, "alone": alone, "all": all_}})
steps = dict(zip(("begin", "numpy", "import", "parse", "load"), (b - a for a, b in zip(marks, marks[1:]))))
print(json.dumps({{"cold": {{**steps, **runs[0]}}, "warm": {{k: min(r[k] for r in runs[1:]) for k in runs[0]}}}}))
"""


def sample(shape: Gemm | Convolution, on: str = "host") -> dict[str, dict[str, float]]:
    """CPU seconds per step of one fresh process: ``cold`` and ``warm``."""
    from .kernels import kernel_of

    kernel, sizes = kernel_of(shape)
    root = Path(__file__).resolve().parents[len((__package__ or "").split("."))]
    command = [sys.executable, "-c", CHILD, kernel.name, json.dumps(sizes), on]
    got = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, env=installed())
    if got.returncode:
        raise RuntimeError(f"compiling {shape.name} failed:\n{got.stderr[-2000:]}")
    return json.loads(got.stdout)


def least(runs: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Step by step the least of several processes; ``alone`` and ``all`` the least of the sums, so they
    may exceed theirs."""
    return {kind: {k: min(r[kind][k] for r in runs) for k in runs[0][kind]} for kind in runs[0]}


def measured(shapes: Sequence[Gemm | Convolution], on: str, repeats: int) -> list[dict[str, Any]]:
    rows = []
    if shapes:
        sample(shapes[0], on)  # makes the bytecode
    for shape in shapes:
        asked = {**LIMITS, "warm": WARM[compiled_as(shape)]}
        rows.append({"name": shape.name, "asked": asked, **least([sample(shape, on) for _ in range(repeats)])})
        print(line(rows[-1]["name"], rows[-1]["cold"]), file=sys.stderr, flush=True)
    return rows


def passed(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The limits that a row passes, each in words."""
    out = []
    for r in rows:
        have = {"cold alone": r["cold"]["alone"], "warm": r["warm"]["all"], "cover warm": r["warm"]["cover"],
                "import": r["cold"]["import"]}  # fmt: skip
        out += [f"{r['name']}: {k} {1e3 * have[k]:.0f} ms, limit {1e3 * v:.0f}" for k, v in r["asked"].items()
                if have[k] > v]  # fmt: skip
    return out


def line(name: str, steps: dict[str, float]) -> str:
    return f"{name:30}" + "".join(f"{1e3 * steps.get(s, 0.0):12.0f}" for s in COLUMNS)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Both tables, in milliseconds of CPU."""
    head = f"{'ms of CPU':30}" + "".join(f"{s:>12}" for s in COLUMNS)
    out = []
    for kind in ("cold", "warm"):
        out += [f"{kind}", head, *(line(r["name"], r[kind]) for r in rows), ""]
    return "\n".join(out)


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m benchmarks.compile_time", description=__doc__)
    p.add_argument("--group", action="append", choices=list(GROUPS), help="only these; several times (samples)")
    p.add_argument("--shape", action="append", help="only shapes whose name contains this; several times")
    p.add_argument("--on", default="host", help="the machine to compile for")
    p.add_argument("--repeats", type=int, default=3, help="fresh processes per shape (3)")
    p.add_argument("--json", action="store_true", help="print the results as JSON")
    a = p.parse_args(arguments)
    groups = a.group or (list(GROUPS) if a.shape else ["samples"])
    shapes = dict.fromkeys(s for g in groups for s in GROUPS[g] if not a.shape or any(x in s.name for x in a.shape))
    rows = measured(list(shapes), a.on, a.repeats)
    over = passed(rows)
    if a.json:
        print(json.dumps({"schema": SCHEMA, "on": a.on, "repeats": a.repeats, "rows": rows,
                          "over": over}, indent=1))  # fmt: skip
    else:
        print(table(rows))
        print("\n".join(["over the limits:", *over] if over else ["every limit kept"]))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
