"""What the result of a compilation depends on, as one key: the same key, the same code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from isam.approach.choice import Approach
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.table import Table
from isam.once import once
from isam.registry import SHIPPED
from isam.runtime.environment import code_environment
from isam.system.graph import System

UNSEEN = ("instructions", "source", "backend", "backend_loc", "approach")  # fields of a machine that decide nothing
PLAIN = (bool, int, float, str, type(None))


def key_of(kernel: Kernel, system: System, sizes: Mapping[str, int], approach: Approach | None,
           options: Mapping[str, Any]) -> str | None:  # fmt: skip
    """The key; None where not all of it is known by its text: a machine that was changed after it was read, an
    Approach or a back end that is not shipped, options that are more than numbers and words, sources of ISAM that are
    not those that run, a kernel that prints itself as another one, which is not refused."""
    program = _program()
    shipped = system.approach in SHIPPED["isam.approaches"] and system.backend in SHIPPED["isam.backends"]
    if not system.digest or not shipped or program is None or kernel.faults:
        return None
    decides = _decides(approach)
    said = {n: list(v) if isinstance(v, tuple) else v for n, v in options.items()}
    known = all(isinstance(x, PLAIN) for v in said.values() for x in (v if isinstance(v, list) else (v,)))
    if decides is None or not known:
        return None
    parts = [program, system.name, system.digest, str(kernel), repr(kernel.params), dict(sizes), decides, said]
    return sha256(json.dumps([*parts, code_environment()], sort_keys=True).encode()).hexdigest()


def findings_key(kernel: Kernel, system: System, sizes: Mapping[str, int], approach: Approach,
                 required: Sequence[str]) -> str | None:  # fmt: skip
    """What it depends on which schedule is quickest on this CPU, as one key; None where the Approach is not shipped.
    Not on the version of ISAM: decisions that it does not know are refused by it. Nor on how many schedules are run:
    that stands beside what was found."""
    decides = _decides(approach)
    if decides is None:
        return None
    decides[1] = {n: v for n, v in decides[1].items() if n not in ("runs", "tries")}  # how many says what was found
    sized = kernel.with_sizes(sizes)  # the same, whether its sizes were put in before or not
    parts = [str(sized), repr(kernel.params), machine_of(system), decides, list(required), code_environment()]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@once
def machine_of(system: System) -> str:
    """A digest of all that a schedule may depend on: what is described, and the instructions by the texts they come
    from, so that none need be read for it; those that come from no text as they are."""
    from isam.schedule.values import Writer

    said, table = Writer().value, Table.of(system.instructions)
    parts = {f.name: said(getattr(system, f.name)) for f in fields(system) if f.name not in UNSEEN}
    read = [n for n in table if not table.texts or n in table.added]
    named = [_text(table.texts), *(_said(table[n]) if n in read else _text(n) for n in table)]
    return sha256(f"[{_text(parts)}, [{', '.join(named)}]]".encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@once
def _said(instruction: Instruction) -> str:
    """Machines that differ in little else share most of their instructions."""
    from isam.schedule.values import Writer

    return _text(Writer().value(instruction))


def _decides(approach: Approach | None) -> list[Any] | None:
    if approach is None:
        return []  # the one that the system's text names
    cls, own = type(approach), vars(approach)
    if not cls.__module__.startswith("isam.") or not all(isinstance(v, PLAIN) for v in own.values()):
        return None
    return [f"{cls.__module__}.{cls.__qualname__}", dict(own)]


@lru_cache(maxsize=1)
def _program() -> list[Any] | None:
    """The sources of ISAM: names, lengths and times of its files, and what it computes with; None where they cannot be
    told, or changed since ISAM was imported."""
    from importlib.metadata import version

    import numpy

    import isam

    root, found = Path(isam.__file__).parent, []
    try:
        for folder, _, names in os.walk(root):
            for name in names:
                if name.endswith((".py", ".ll")) and not name.startswith("."):
                    status = os.stat(os.path.join(folder, name))
                    found.append([os.path.relpath(os.path.join(folder, name), root), status.st_size,
                                  status.st_mtime_ns])  # fmt: skip
    except OSError:
        return None
    if not found or max(t for _, _, t in found) > isam.BEGAN * 1e9:
        return None
    return [isam.__version__, sys.version, numpy.__version__, version("islpy"), sorted(found)]
