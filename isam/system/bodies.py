"""Instruction texts inside YAML: parsed by the language's own parser, every place mapped back into the YAML file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from isam.diagnostics import Diagnostic, IsamError, Loc
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Item, Kernel, Recurrence, Source, Statement
from isam.system.families import column_before
from isam.system.faults import Faults
from isam.system.source import Scalar

Relocate = Callable[[Loc], Loc]


def parse_body(body: Scalar, name: Scalar, faults: Faults) -> Instruction | None:
    """The instruction in a literal block, or None when the text is wrong (every fault of it is reported)."""
    from isam.ir.text import parse_instruction

    to_file = _relocation(body)
    try:
        found = parse_instruction(body.text)
    except IsamError as e:
        for d in e.diagnostics:
            faults.take(Diagnostic(d.code, d.message, to_file(d.loc), d.hint))
        return None
    if found.name != name.text:
        faults.add("system-name", f"the text describes '{found.name}', the entry is called '{name.text}'",
                   to_file(found.body.loc),
                   f"call both '{name.text}'")  # fmt: skip
        return None
    return replace(found, body=relocated(found.body, to_file), loc=name.loc)


def _relocation(body: Scalar) -> Relocate:
    template = (body.template or body.text).split("\n")
    env = dict(body.env)

    def to_file(loc: Loc) -> Loc:
        if not loc.line:
            return Loc(body.loc.file, body.first, body.block)
        line = min(loc.line, len(template))
        column = column_before(template[line - 1], env, loc.column) if env else loc.column
        return Loc(body.loc.file, body.first + line - 1, body.block - 1 + column)

    return to_file


def relocated(kernel: Kernel, to: Relocate) -> Kernel:
    """The kernel with every location replaced by ``to`` of it."""

    def source(s: Source) -> Source:
        return replace(s, loc=to(s.loc))

    def item(i: Item) -> Item:
        if isinstance(i, Recurrence):
            return replace(i, loc=to(i.loc), body=tuple(map(item, i.body)))
        dest = source(i.dest)
        assert isinstance(i, Statement)
        assert isinstance(dest, Access)
        return replace(i, loc=to(i.loc), dest=dest, sources=tuple(map(source, i.sources)))

    buffers = tuple(replace(b, loc=to(b.loc)) for b in kernel.buffers)
    return replace(kernel, loc=to(kernel.loc), buffers=buffers, body=tuple(map(item, kernel.body)))
