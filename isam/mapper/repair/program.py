"""Repairs that rewrite the kernel: the search finds them itself, unless its user has to grant something first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from isam.ir.instruction import Instruction
from isam.ir.kernel import GRANTED, Kernel
from isam.mapper.repair.repair import Repair
from isam.mapper.search import Reached, reach


def rewriting(kernel: Kernel, instruction: Instruction) -> Iterator[Repair]:
    """The shortest chain of laws after which the instruction fits; where the kernel's permissions forbid all of them,
    the fewest further permissions with which there is one."""
    found = reach(kernel, instruction)
    if found and found.paths[0].steps:
        yield _repair(found, "rewrite the kernel (the search does so itself): ", 0)
    missing = [p for p in GRANTED if p not in kernel.permits]
    if found or not missing:
        return
    for n in range(1, len(missing) + 1):
        for some in combinations(missing, n):
            granting = replace(kernel, permits=(kernel.permits - {"exact"}) | set(some))
            found = reach(granting, instruction)
            if found:
                yield _repair(found, f"permit {', '.join(some)}" + ("; then " if found.paths[0].steps else ""), n)
                return


def _repair(found: Reached, before: str, grants: int) -> Repair:
    path = found.paths[0]
    steps = tuple(map(str, path.steps))
    return Repair("program", before + ", then ".join(steps), len(steps) + grants, str(path.found[0]),
                  path.kernel, found.instruction, steps)  # fmt: skip
