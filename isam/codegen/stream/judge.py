"""What is wrong with a description's templates for streams, said when it is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from isam.codegen.stream.template import fields, lines_of
from isam.ir.instruction import Instruction
from isam.system.graph import System


class TemplateFault(NamedTuple):
    """A fault of an instruction's template; ``line`` 0: of all of it."""

    instruction: str
    code: str
    message: str
    hint: str
    line: int = 0
    column: int = 0


def judge(system: System) -> Iterator[TemplateFault]:
    """Every fault: units run what cannot be written, fields that mean nothing."""
    for u in system.units.values() if system.backend == "stream" else ():
        for name in u.runs:
            if "stream" not in system.instructions[name].emission:
                hint = "write 'emission: {stream: ...}', with an empty text where it is no command"
                yield TemplateFault(name, "emission-missing", f"'{name}' has no template for streams", hint)
    for i in system.instructions.values():
        if "stream" in i.emission:
            yield from _of(i)


def _of(i: Instruction) -> Iterator[TemplateFault]:
    template = i.emission["stream"]
    operands = {a.name for a in i.body.arguments}
    cases = {"when", "fresh", "again"}
    if isinstance(template, dict) and (template.keys() != cases or template["when"] not in operands):
        yield TemplateFault(i.name, "emission-operand", f"'{i.name}': of two cases, 'when' names the operand",
                            "write 'when: W', 'fresh:' and 'again:'")  # fmt: skip
        return
    known = operands | {s.name for s in i.syms} | {"burst"}
    for lines in lines_of(template).values():
        for word in (w for line in lines for w in fields(line)):
            name, dot, what = word.partition(".")
            if name not in known or (dot and (what != "from" or name not in operands)):
                yield TemplateFault(i.name, "emission-name", f"'{i.name}' has no '{word}' to write",
                                    f"operands, sizes, burst: {', '.join(sorted(known))}")  # fmt: skip
