"""Whether arguments and workspace fit the memory that is home: asked before anything is planned and once more after."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.schedule.tree import Slot
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.system.graph import System

SHOWN = 4  # buffers named, largest first


def check_home(kernel: Kernel, system: System, slots: Iterable[Slot] = ()) -> None:
    """Raises ``NoSchedule`` when they do not. Arguments of run-time shape are left out; ``slots`` anywhere else too."""
    memory = system.memories[system.home]
    needs = [(b.name, prod(max(0, d.const) for d in b.shape) * size_of(b.dtype)) for b in kernel.arguments
             if all(d.is_constant for d in b.shape)]  # fmt: skip
    needs += [(s.name, -(-s.bytes // s.align) * s.align) for s in slots if s.memory == memory.name]
    total = sum(n for _, n in needs)
    if total <= memory.capacity:
        return
    largest = sorted(needs, key=lambda r: -r[1])
    terms = [f"{name}: {n} bytes" for name, n in largest[:SHOWN]]
    terms += [f"and {len(largest) - SHOWN} more"] if len(largest) > SHOWN else []
    what = f"{total} bytes for arguments" + (" and workspace" if slots else "")
    raise NoSchedule(Infeasible(f"memory '{memory.name}', the home,", what, f"it has {memory.capacity}", tuple(terms)))
