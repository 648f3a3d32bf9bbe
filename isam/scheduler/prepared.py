"""What constants alone determine: temporaries that are made once, when constants are bound, and kept from then on."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from isam.approach.choice import Choice, Trace
from isam.ir.dataflow import determined
from isam.ir.kernel import Kernel
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plans.pack import counted


def prepared(kernel: Kernel, nests: Sequence[Nest], trace: Trace) -> frozenset[str]:
    """Temporaries that are made before every call: the nests that make them touch nothing else but constants and others
    of them, and the Approach wants it. ``nests``: in the kernel's order."""
    able = determined(kernel)
    if not able:
        return able
    fixed, out = {b.name for b in kernel.buffers if b.role == "const"}, set[str]()
    left: dict[str, tuple[list[Nest], set[str]]] = {}  # by their makers, and what those read
    for name in dict.fromkeys(u.buffer for n in nests for u in n.uses if u.writes and u.buffer in able):
        makers = [n for n in nests if any(u.writes and u.buffer == name for u in n.uses)]
        read = {u.buffer for n in makers for u in n.uses if not is_literal(u.buffer)} - {name}
        if all(e.is_constant for n in makers for e in n.extents.values()):
            left[name] = makers, read
    while (name := next((n for n, (_, read) in left.items() if read <= fixed | out), None)) is not None:
        makers, read = left.pop(name)
        context = {
            "buffer": name,
            "nests": [n.number for n in makers],
            "bytes": kernel.buffer(name).bytes or 0,
            "of": sum(kernel.buffer(b).bytes or 0 for b in read),
        }
        if trace.choose(Choice("bind", (False, True), context)):
            out.add(name)
    return frozenset(out)


def made_whole(kernel: Kernel, nests: Sequence[Nest], names: frozenset[str]) -> frozenset[str]:
    """Those of the temporaries of which some nest writes every element: they may be laid out anew as a whole."""
    shapes = {n: [d.const for d in kernel.buffer(n).shape] for n in names}
    return frozenset(u.buffer for n in nests for u in n.uses if u.writes and u.buffer in names
                     and not n.where and not n.origin and _fills(n, u, shapes[u.buffer]))  # fmt: skip


def _fills(nest: Nest, use: Use, shape: Sequence[int]) -> bool:
    """Whether each dimension is counted from its first element to its last, by axes of its own."""
    axes = [counted(nest, row) for row in use.index]
    every = [a for some in axes for a in some]
    reached = [prod(nest.length(a) for a in some) for some in axes]
    return reached == list(shape) and len(set(every)) == len(every) and not any(row.const for row in use.index)
