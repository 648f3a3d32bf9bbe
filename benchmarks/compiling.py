"""How long compiling takes from nothing: a new process per sample, everything imported and loaded on the way.

CPU seconds of the process, as everywhere here; ``wall``: the same for all of it on the wall.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from .shapes import RESNET50, SQUARES, Convolution, Gemm

SAMPLES: tuple[Gemm | Convolution, ...] = (
    *(g for g in SQUARES if g.m in (512, 1024)), Gemm(1000, 999, 77), Gemm(700, 5124, 2048), RESNET50[0], RESNET50[2],
    RESNET50[3], RESNET50[18],
)  # fmt: skip

WARM = {"of f32": 0.15, "of f32, ragged": 0.25, "of bf16 or bytes": 0.5}  # seconds asked for in a warm process


def compiled_as(shape: Gemm | Convolution) -> str:
    """Which of ``WARM`` is for it: by its elements, and by whether registers divide its sizes."""
    if shape.kind != "f32":
        return "of bf16 or bytes"
    return "of f32, ragged" if shape.ragged else "of f32"


CHILD = """
import time
begin = time.monotonic()
time.perf_counter = time.process_time
start = time.perf_counter()
import isam
imported = time.perf_counter()
import json, sys
from {package}.kernels import sources
kernel = sources()[sys.argv[1]]
sizes = json.loads(sys.argv[2])
parsed = time.perf_counter()
isam.load_system(sys.argv[3])
loaded = time.perf_counter()
fn = isam.compile(kernel, on=sys.argv[3], sizes=sizes, cache=False)
done = time.perf_counter()
wall = time.monotonic()
again = isam.compile(kernel, on=sys.argv[3], sizes=sizes, cache=False)
second = time.perf_counter()
import os, tempfile
with tempfile.TemporaryDirectory() as folder:
    isam.compile(kernel, on=sys.argv[3], sizes=sizes, cache=folder)
    put = time.perf_counter()
    kept = isam.compile(kernel, on=sys.argv[3], sizes=sizes, cache=folder)
    got = time.perf_counter()
    assert kept.artifact.parts == isam.compile(kernel, on=sys.argv[3], sizes=sizes, cache=folder).artifact.parts
    fn.save(saved := os.path.join(folder, "saved"))
    begun = time.perf_counter()
    isam.load(saved)
    ready = time.perf_counter()
print(json.dumps({{"import": imported - start, "parse": parsed - imported, "load the machine": loaded - parsed,
                  "compile": done - loaded, **fn.job.seconds,
                  "again": second - done, "mapping again": again.job.seconds["cover"],
                  "kept": got - put, "load": ready - begun, "wall": wall - begin}}))
"""


@cache
def installed() -> dict[str, str]:
    """The environment of processes that keep Python's bytecode, as an installation does: the first one makes it."""
    folder = tempfile.mkdtemp(prefix="isam-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}


def cold(shape: Gemm | Convolution, on: str, repeats: int) -> dict[str, Any]:
    """Seconds per step in a fresh process: the best of ``repeats`` and the medians. ``again``: a second compilation in
    the same process, nothing cached; ``kept``: one whose code was kept on disk; ``load``: of a saved artifact.

    Python's own cache of bytecode is there, as after any installation: one run more fills it.
    """
    from .kernels import kernel_of

    kernel, sizes = kernel_of(shape)
    code = CHILD.format(package=__package__)
    root = str(Path(__file__).resolve().parents[len((__package__ or "").split("."))])
    runs = []
    for _ in range(repeats + 1):
        command = [sys.executable, "-c", code, kernel.name, json.dumps(sizes), on]
        got = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, env=installed())
        runs.append(json.loads(got.stdout))
    del runs[0]
    return {"name": shape.name, "best": {k: min(r[k] for r in runs) for k in runs[0]},
            "median": {k: statistics.median(r[k] for r in runs) for k in runs[0]}}  # fmt: skip
