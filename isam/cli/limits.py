"""What a run may cost: refused before anything is made, with what would help."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from isam import registry
from isam.diagnostics import fail

if TYPE_CHECKING:
    from isam.artifact import Artifact
    from isam.ir.kernel import Kernel

STEPS = 1_000_000  # of a simulated call: about a minute
POINTS = 1_000_000_000  # that the judge of --check walks: some minutes
COPIES = {"in": 1, "const": 2, "inout": 3, "out": 1}  # at a time: as given, bound, as updated
WIDE = 16  # bytes per element of the judge: a value and its bound


def within_memory(kernel: Kernel, *, judged: bool = False) -> None:
    """Raises ``IsamError`` when this machine cannot hold the arguments of a kernel whose sizes are numbers; with
    ``judged``, also what its judge needs."""
    from isam.ir.dtype import numpy_dtype

    here = memory()
    count = {b.name: prod(max(0, d.evaluate({})) for d in b.shape) for b in kernel.buffers}
    needs = {b.name: count[b.name] * numpy_dtype(b.dtype).itemsize * COPIES[b.role] for b in kernel.arguments}
    _refuse(kernel, "the arguments need", needs, here, "smaller sizes (-D NAME=NUMBER)")
    if judged:
        wide = {n: WIDE * c for n, c in count.items()}
        _refuse(kernel, "the judge of --check needs", wide, here, "smaller sizes, or no --check")


def _refuse(kernel: Kernel, what: str, needs: Mapping[str, int], here: int, hint: str) -> None:
    total = sum(needs.values())
    if total > here:
        worst = max(needs, key=lambda n: needs[n])
        loc = kernel.buffer(worst).loc
        raise fail("cli-memory", f"{what} {_bytes(total)} at these sizes ({worst} alone {_bytes(needs[worst])}); this "
                   f"machine has {_bytes(here)}", loc, hint)  # fmt: skip


def memory() -> int:
    """Bytes of memory that this process may use: the machine's, or less where its control group says so."""
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 1 << 34
    try:
        group = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return here
    return min(here, int(group)) if group.isdigit() else here


def simulated_steps(
    called: Sequence[Artifact], kernel: Kernel, sizes: Mapping[str, int], most: int, hint: str
) -> int | None:
    """Steps of a call that runs these, one after the other, where a simulator runs them, else None. Raises
    ``IsamError`` when they are more than ``most``."""
    runners = registry.SHIPPED["isam.runners"]
    if not called or any(runners.get(a.backend) != runners["simulator"] for a in called):
        return None
    from isam.schedule.serial import from_json
    from isam.schedule.steps import steps

    count, each = 0, {id(a): a for a in called}
    for n, times in Counter(map(id, called)).items():
        schedule = from_json(each[n].parts["schedule.json"])
        count += times * sum(steps(tree, sizes, most) for tree in (schedule.bind, schedule.call))
        if count > most:
            raise fail("cli-limit", f"the simulator of {schedule.system.name} would take more than {most} steps",
                       kernel.loc, hint)  # fmt: skip
    return count


def judged_points(kernel: Kernel, most: int) -> int:
    """Points that the judge walks, of a kernel whose sizes are numbers. Raises ``IsamError`` beyond ``most``."""
    from isam.cli.data import visits

    count = sum(n for _, n in visits(kernel.body, {}))
    if count > most:
        raise fail("cli-limit", f"the judge of --check would walk {count} points, more than {most}", kernel.loc,
                   f"smaller sizes, or --limit {count}")  # fmt: skip
    return count


def _bytes(n: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if n >= size:
            return f"{n / size:.3g} {unit}" if n < 1000 * size else f"{n // size} {unit}"
    return f"{n} B"
