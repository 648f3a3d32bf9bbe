"""``isam doctor``: whether this installation works, and what it stands on."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from typing import Any

from isam.cli.answer import Answer, answering
from isam.cli.options import AsJson

NEEDED = ("numpy", "islpy", "pyyaml", "llvmlite", "pydantic", "ml_dtypes", "platformdirs", "threadpoolctl", "scipy",
          "typer", "rich")  # fmt: skip
PROBE = """kernel probe(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


@answering("doctor", checks="name, whether it is well, what was found", python="version", isam="version",
           cpu="features that matter to the shipped systems")  # fmt: skip
def doctor(as_json: AsJson = False) -> Answer:
    """Looks the installation over: versions, CPU features, systems, and one small kernel on the toy and on this CPU.

    Exit code 1 when something is not well.
    """
    import isam

    checks = [_tried(name, f) for name, f in (
        ("python", _python), ("packages", _packages), ("back end", _back_end), ("systems", _systems),
        ("toy", lambda: _probe("toy")), ("host", lambda: _probe("host")), ("threads", _threads),
    )]  # fmt: skip
    lines = [f"isam {isam.__version__}"]
    lines += [f"{'ok ' if c['well'] else 'BAD'} {c['name']:9} {c['found']}" for c in checks]
    data = {"checks": checks, "python": platform.python_version(), "isam": isam.__version__, "cpu": _features()}
    return Answer("\n".join(lines), data, yes=all(c["well"] for c in checks))


def _tried(name: str, look: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"name": name, "well": True, "found": look()}
    except Exception as e:
        return {"name": name, "well": False, "found": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"}


def _python() -> str:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _packages() -> str:
    from importlib.metadata import version

    return ", ".join(f"{n} {version(n)}" for n in NEEDED)


def _back_end() -> str:
    from isam.codegen.llvm.machine import version

    return f"LLVM {version()}; {', '.join(_features()) or 'no vector features known'}"


def _features() -> list[str]:
    """Those of the CPU's features that a shipped system asks for."""
    from isam.system.features import host_features
    from isam.system.find import list_systems

    asked = " ".join(p.read_text(encoding="utf-8", errors="replace") for p in list_systems().values())
    return sorted(f for f in host_features() if f in asked)


def _systems() -> str:
    from isam.system.find import list_systems, roots

    names = sorted(list_systems())
    if not names:
        raise RuntimeError(f"no descriptions in {', '.join(map(str, roots())) or 'any folder'}")
    return ", ".join(names)


def _probe(on: str) -> str:
    """Compiles a ragged product, runs it on random data and compares within derived bounds."""
    import isam
    from isam.ir.bounds import enclose, outside
    from isam.ir.data import random_arrays
    from isam.ir.text import parse_kernel

    k = parse_kernel(PROBE).with_sizes({"M": 9, "N": 19, "K": 5})
    arrays = random_arrays(k, {}, seed=1)
    made = isam.compile(k, on=on, cache=False)
    fault = outside({"C": made(**arrays)}, enclose(k, arrays))
    if fault:
        raise RuntimeError(fault)
    return f"a 9x19x5 product on {made.system.name}: proved, run, right"


def _threads() -> str:
    text = os.environ.get("ISAM_THREADS", "1")
    if not text.isdigit() or int(text) < 1:
        raise RuntimeError(f"ISAM_THREADS={text} is no number of threads")
    return f"{text} (ISAM_THREADS), {os.cpu_count()} processors"
