"""Sizes, buffers and results that nothing uses, as remarks: legal, and most often another name was meant.

Compile-time constants are left out: in a printed kernel they have been put in, and its head still names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isam.diagnostics import Diagnostic
from isam.ir.syntax import Assign, Block, Call, Definition, Expr, Forall, Loop, Name, Ref

RESULTS = ("out", "inout")


def unused(found: Iterable[Definition]) -> list[Diagnostic]:
    """What in each definition no other part of it mentions, in text order."""
    said = [d for definition in found for d in _definition(definition)]
    return sorted(said, key=lambda d: (d.loc.line, d.loc.column))


def _definition(d: Definition) -> Iterator[Diagnostic]:
    statements = list(_statements(d.body))
    read = {n for a in statements for e in (a.value, *a.dest.index) for n in _names(e)}
    bounds = {n for b in d.buffers for e in b.shape for n in _names(e)} | set(_bounds(d.body))
    bounds |= {s.whole[0] for s in d.syms if s.whole is not None}
    for s in d.syms:
        if s.default is None and s.name not in bounds | read:
            yield Diagnostic("L242", f"nothing depends on the size '{s.name}'", s.loc,
                             f"remove it from the head of '{d.name}'")  # fmt: skip
    written = {a.dest.name: a.dest for a in reversed(statements)}
    for b in d.buffers:
        if b.name not in read and b.name not in written:
            asked = "" if b.role in ("temp", "auto") else ": whoever calls this has to pass it"
            yield Diagnostic("L243", f"no statement reads or writes the buffer '{b.name}'", b.loc, f"remove it{asked}")
    results = {b.name for b in d.buffers if b.role in RESULTS}
    for name, dest in written.items():
        if name not in read and name not in results:
            yield Diagnostic("L244", f"the temporary '{name}' is written and never read", dest.loc,
                             "remove what writes it, or declare it 'out' if it is a result")  # fmt: skip


def _statements(body: tuple[Block, ...]) -> Iterator[Assign]:
    for block in body:
        yield from _statements(block.body) if isinstance(block, Loop) else block.body


def _bounds(body: tuple[Block, ...]) -> Iterator[str]:
    """The names in the bounds and conditions of all blocks."""
    for block in body:
        for axis in block.axes if isinstance(block, Forall) else (block.axis,):
            yield from _names(axis.extent)
        if isinstance(block, Loop):
            yield from _bounds(block.body)
        else:
            for c in block.where:
                yield from (*_names(c.left), *_names(c.right))


def _names(e: Expr) -> Iterator[str]:
    """Every name in an expression, buffers, sizes and axes alike."""
    waiting: list[Expr] = [e]
    while waiting:
        e = waiting.pop()
        if isinstance(e, (Name, Ref)):
            yield e.name
        if isinstance(e, (Ref, Call)):
            waiting += e.index if isinstance(e, Ref) else e.args
