"""From instructions that suffice to whether a machine can hold and move what they need: a cover is no schedule yet."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from isam.system.graph import SEMANTICS_ONLY

if TYPE_CHECKING:
    from isam.ir.kernel import Kernel
    from isam.system.graph import System


def missing(k: Kernel) -> list[str]:
    """The sizes that have to be given before there can be a schedule."""
    from isam.compiler.function import run_time

    free = run_time(k)
    return [s.name for s in k.given if s.name not in free]


def onward(k: Kernel, system: System, spec: str, on: str, define: Sequence[str] | None,
           options: Sequence[str] = ()) -> str:  # fmt: skip
    """The line below a cover of ``k``: what it does not say, and the command that does. ``spec``, ``on``, ``define``:
    as they were given; ``options``: others that both verbs take."""
    if system.backend == SEMANTICS_ONLY:
        return f"no schedule: '{system.name}' has no back end, nothing is scheduled on it"
    words = ["isam", "schedule", spec, "--on", on, *options]
    for d in define or ():
        words += ["-D", d]
    left = ",".join(f"{n}=..." for n in missing(k))
    command = shlex.join(words) + (f" -D {left}" if left else "")
    return f"no schedule yet; whether the machine holds and moves what this needs: {command}"
