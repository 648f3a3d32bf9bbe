"""ISAM maps tensor kernels onto the instructions of a machine, schedules them, proves the result and runs it.

>>> import isam
>>> kernel = isam.parse('''
... kernel axpy(N)
...   in    x: f32[N]
...   inout y: f32[N]
...   forall i < N
...     y[i] += x[i]
... ''')
>>> kernel.name
'axpy'

Everything is imported when it is first used.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
BEGAN = time.time()  # what was changed on disk since is not what runs here

if TYPE_CHECKING:
    from isam.approach.choice import Approach
    from isam.compiler import compile, compile_range, explain
    from isam.diagnostics import InternalError, IsamError
    from isam.frontend.einsum import einsum
    from isam.frontend.python import kernel
    from isam.ir.text import parse, parse_file, parse_instruction
    from isam.runtime.aligned import empty
    from isam.runtime.best_of import best_of
    from isam.runtime.entry import load
    from isam.system.load import load_system
    from isam.system.register import instruction

_WHERE = {
    "Approach": "isam.approach.choice",
    "InternalError": "isam.diagnostics",
    "IsamError": "isam.diagnostics",
    "best_of": "isam.runtime.best_of",
    "compile": "isam.compiler",
    "compile_range": "isam.compiler",
    "einsum": "isam.frontend.einsum",
    "empty": "isam.runtime.aligned",
    "explain": "isam.compiler",
    "instruction": "isam.system.register",
    "kernel": "isam.frontend.python",
    "load": "isam.runtime.entry",
    "load_system": "isam.system.load",
    "parse": "isam.ir.text",
    "parse_file": "isam.ir.text",
    "parse_instruction": "isam.ir.text",
}

__all__ = ["Approach", "InternalError", "IsamError", "best_of", "compile", "compile_range", "einsum", "empty",
           "explain", "instruction", "kernel", "load", "load_system", "parse", "parse_file",
           "parse_instruction"]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _WHERE:
        from isam.runtime.forks import gate

        with gate.inside():  # a child could never import what another thread was importing when it was forked
            found = getattr(import_module(_WHERE[name]), name)
        globals()[name] = found
        return found
    if name in ("mapper", "frontend", "system", "schedule", "proof", "ir"):
        return import_module(f"isam.{name}")
    raise AttributeError(f"module 'isam' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
