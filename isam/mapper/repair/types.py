"""Repairs of element types in the program: arrays declared as an instruction takes them, which converts them itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Kernel, Statement
from isam.ir.verify import verify
from isam.mapper.match import Matches, match
from isam.mapper.repair.repair import Repair
from isam.mapper.retyped import Retyped, retyped
from isam.mapper.spelt import hidden
from isam.transforms.edit import Part, fresh, names_in, splice


def casting(kernel: Kernel, instruction: Instruction) -> Iterator[Repair]:
    """Where the instruction makes of an operand the type that the kernel has: arguments that are only read declared as
    it takes them and converted where they are read, everything else rounded there."""
    found = retyped(kernel, instruction)
    if found is None or any(found.converted.get(n) != have for n, (_, have) in found.wrong.items()):
        return
    changed, declares, reads = kernel, dict[str, None](), dict[str, None]()
    buffers = {found.mapping.operand(n).buffer: need for n, (need, _) in found.wrong.items()}
    for buffer, need in buffers.items():
        declared = kernel.buffer(buffer).role in ("in", "const")
        changed = _cast(changed, buffer, need, declared, found)
        have, name = kernel.buffer(buffer).dtype, "that value" if hidden(kernel, buffer) else buffer
        if declared:
            declares[f"{name}: {need}"] = None
        reads[f"{have}({name})" if declared else f"{have}({need}({name}))"] = None
    if verify(changed):
        return
    then = match(changed, instruction, normalise=False)
    if isinstance(then, Matches):
        said = f"declare {', '.join(declares)} and " if declares else ""
        said += f"read {', '.join(reads)}"
        yield Repair("program", said, len(buffers), str(then.first), changed, instruction)


def _cast(kernel: Kernel, buffer: str, need: str, declared: bool, found: Retyped) -> Kernel:
    """Reads of a buffer through a conversion; where it is ``declared`` otherwise all of them, else those that the
    instruction carries out."""
    have, number = kernel.buffer(buffer).dtype, {id(s): i for i, s in enumerate(kernel.statements)}
    buffers, parts = list(kernel.buffers), dict[int, list[Part]]()
    at = {id(s) for s in (found.kernel.statements[i] for i in found.mapping.statements)}
    if declared:
        buffers = [replace(b, dtype=need) if b.name == buffer else b for b in buffers]
    for s in kernel.statements:
        mine = [x for x in s.sources if isinstance(x, Access) and x.buffer == buffer]
        if not mine or not (declared or id(s) in at):
            continue
        before: list[Statement] = []
        changed: dict[Access, Access] = {}
        for x in dict.fromkeys(mine):
            taken: Access = x
            for dtype in (have,) if declared else (need, have):
                name = fresh(names_in(kernel) | {b.name for b in buffers}, "t")
                made, temp = _made(s, taken, name, dtype)
                before.append(made)
                buffers.append(temp)
                taken = made.dest
            changed[x] = taken
        sources = tuple(changed.get(x, x) if isinstance(x, Access) else x for x in s.sources)
        parts[number[id(s)]] = [(m, ()) for m in before] + [(replace(s, sources=sources), ())]
    return splice(kernel, parts, buffers=buffers)[0]


def _made(s: Statement, x: Access, name: str, dtype: str) -> tuple[Statement, Buffer]:
    """A conversion of what a statement reads, over the axes that its index uses (all of them under a ``where``)."""
    used = {n for row in x.index for n in row.names}
    axes: tuple[Axis, ...] = tuple(a for a in s.domain.axes if s.domain.where or a.name in used)
    dest = Access(name, tuple(Affine.of(a.name) for a in axes), s.loc)
    statement = Statement(replace(s.domain, axes=axes), dest, "cast", (x,), loc=s.loc)
    return statement, Buffer(name, tuple(a.extent for a in axes), dtype, "temp", declared=False)
