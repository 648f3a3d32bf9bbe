"""From instructions that suffice to whether a machine can hold and move what they need: a cover is no schedule yet."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

SHOWN = 4  # instructions named

if TYPE_CHECKING:
    from isam.ir.kernel import Kernel
    from isam.system.graph import System


def onward(k: Kernel, system: System, spec: str, on: str, define: Sequence[str] | None,
           options: Sequence[str] = (), others: tuple[int, Sequence[str]] = (0, ())) -> str:  # fmt: skip
    """The line below a cover of ``k``: what it does not say, and the command that does. ``spec``, ``on``, ``define``:
    as they were given; ``options``: others that both verbs take; ``others``: how many covers there are whose schedules
    are compared with its own, and the instructions that it has not."""
    from isam.compiler.feasible import not_asked
    from isam.ir.sizes import unsized
    from isam.system.graph import SEMANTICS_ONLY

    left = unsized(k)
    if system.backend == SEMANTICS_ONLY:
        return not_asked(system, left)
    return f"no schedule yet; {_beside(*others)}{asked_by(left, spec, on, define, options)}"


def _beside(count: int, names: Sequence[str]) -> str:
    """That a schedule of another cover may be the one taken."""
    if not count:
        return ""
    some = f" by {', '.join(names[:SHOWN])}{', ...' if len(names) > SHOWN else ''}" if names else ""
    others = f"{count + 1} covers, the other{'s' * (count > 1)}{some}"
    return f"shown is the first of {others}: which schedule is quickest, and "


def asked_by(left: Sequence[str], spec: str, on: str, define: Sequence[str] | None,
             options: Sequence[str] = ()) -> str:  # fmt: skip
    """The command that asks for a schedule; ``left``: the sizes that are open."""
    words = ["isam", "schedule", spec, "--on", on, *options]
    for d in define or ():
        words += ["-D", d]
    open_ = ",".join(f"{n}=..." for n in left)
    command = shlex.join(words) + (f" -D {open_}" if open_ else "")
    return f"whether the machine holds and moves what this needs: {command}"
