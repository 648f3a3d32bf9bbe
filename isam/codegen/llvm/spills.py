"""Vectors that LLVM saves to the stack and loads again inside innermost loops, as its assembly says."""

from __future__ import annotations

import re

from isam.classes import dataclass

FRAME = {"x86_64": (b"\x48\x83\xec", b"\x48\x81\xec")}  # sub rsp by a byte, by four: more than the 128 bytes below it
LABEL = re.compile(r"(\S+):")
INSIDE = re.compile(r"in Loop: Header=(\w+)")
INNERMOST = "This Inner Loop Header"
SAVED = re.compile(r"(1[6-9]|[2-9]\d|\d{3,}|[Uu]nknown)-byte (Folded )?(Spill|Reload)")  # less: an address
INSTRUCTION = re.compile(r"\t[a-z]")


@dataclass(frozen=True, slots=True)
class Spills:
    """Of the innermost loop that has most of them: how many instructions save a vector or load a saved one, and how
    many it has in all."""

    saved: int
    instructions: int

    @property
    def share(self) -> float:
        return self.saved / self.instructions

    def __str__(self) -> str:
        return f"{self.saved} of {self.instructions} instructions of an innermost loop save vectors or load saved ones"


def may_spill(code: bytes, architecture: str) -> bool:
    """Whether more than 128 bytes of vectors may be saved: where a function's frame tells, only if there is one."""
    return any(f in code for f in FRAME.get(architecture, (b"",)))


def spills(assembly: str) -> Spills | None:
    """What LLVM's comments say in assembly printed with them; None where no innermost loop saves a vector."""
    saved: dict[str, int] = {}
    count: dict[str, int] = {}
    innermost, block, loop = set[str](), "", ""
    for line in assembly.splitlines():
        if label := LABEL.match(line):
            block, loop = label[1].lstrip(".L"), ""
        if INNERMOST in line:
            innermost.add(block)
            loop = block
        elif inside := INSIDE.search(line):
            loop = inside[1]
        if loop in innermost and INSTRUCTION.match(line):
            count[loop] = count.get(loop, 0) + 1
            saved[loop] = saved.get(loop, 0) + bool(SAVED.search(line))
    worst = max(saved, key=lambda n: saved[n], default="")
    return Spills(saved[worst], count[worst]) if saved.get(worst) else None
