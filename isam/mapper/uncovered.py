"""The honest "no" of selection: which statements nothing carries out, why not, and what would do (SEL-3, MAP-8)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace

from isam.classes import dataclass
from isam.diagnostics import Loc
from isam.ir.dataflow import bits, levels, mask_of
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.printer import print_domain, print_statement
from isam.mapper.filters import one_per_structure
from isam.mapper.match import about
from isam.mapper.nearest import ranked
from isam.mapper.retyped import retyped
from isam.mapper.spelt import hidden, spelt
from isam.mapper.suggest import would_do
from isam.once import once

SHOWN = 3  # mismatches printed per statement


@dataclass(frozen=True, slots=True)
class Gap:
    """One statement that no instruction carries out. ``missing``: no instruction has its operation at all.
    ``mismatches``: the deepest report per instruction, deepest first. ``remedies``: instructions that would do, each
    checked by the matcher."""

    statement: int
    missing: bool
    mismatches: tuple[Mismatch, ...]
    remedies: tuple[Instruction, ...] = ()


@dataclass(frozen=True)
class Uncovered:
    """Falsy. ``unmet``: required instructions that could not be used, with the reason. ``nearest``: steps of rewriting
    after which fewer statements are left, and what is left then. ``undecided``: steps that were not taken because they
    were not shown to keep the meaning, with what was not shown."""

    kernel: Kernel
    gaps: tuple[Gap, ...]
    unmet: tuple[tuple[str, Mismatch | None], ...] = ()
    notes: dict[str, object] = field(default_factory=dict, compare=False)
    nearest: tuple[tuple[str, ...], Uncovered] | None = None
    undecided: tuple[str, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return False

    @property
    def lacks(self) -> tuple[int, int]:
        """How many statements are left that compute something, and how many in all."""
        left = [self.kernel.statements[g.statement] for g in self.gaps]
        return sum(not (s.op == "copy" and s.reads) for s in left), len(left)

    @property
    def mismatches(self) -> tuple[Mismatch, ...]:
        """Every report, those of one statement together."""
        return tuple(m for g in self.gaps for m in g.mismatches) + tuple(m for _, m in self.unmet if m is not None)

    def __str__(self) -> str:
        lines = [f"the kernel '{self.kernel.name}' cannot be carried out by the instructions offered"]
        for g in self.gaps:
            lines.extend(_gap_lines(self.kernel, g))
        for name, why in self.unmet:
            lines.append(f"  the instruction '{name}' was required but cannot be used here")
            if why is not None:
                lines.append(_indent(str(why), 4))
        if self.nearest is not None:
            steps, left = self.nearest
            lines.append(f"  rewritten by {' then '.join(steps)}, this alone is left:")
            told = (x for g in left.gaps for x in _gap_lines(left.kernel, replace(g, mismatches=())))
            lines += [_indent(x, 2) for x in told]
        lines += [f"  a step not taken, as it was not shown to keep the meaning: {step}" for step in self.undecided]
        return "\n".join(lines)


def _gap_lines(kernel: Kernel, g: Gap) -> list[str]:
    s = kernel.statements[g.statement]
    lines = [f"  {_place(s.loc)}{spelt(s, kernel)}   ({domain_text(s)})"]
    told = [m for m in g.mismatches if m.instruction]
    if g.missing:
        lines.append(f"    no instruction offered can {describe(kernel, s)}")
    for m in told[:SHOWN]:
        lines.append(f"    {m.instruction}: [{m.kind}] needs {m.need}; the kernel has {m.have}")
        if m.kernel_loc.line:
            lines.append(f"      kernel {m.kernel_loc}, instruction {m.instruction_loc}")
    if len(told) > SHOWN:
        lines.append(f"    and {len(told) - SHOWN} more instructions that do not fit")
    for i, r in enumerate(g.remedies):
        lines.append("    an instruction like this would do:" if i == 0 else "    or this one:")
        lines.append(_indent(_printed(r), 6))
    return lines


def _printed(instruction: Instruction) -> str:
    """Its text, values without a name where they are used."""
    from isam.ir.text import print_kernel

    body = instruction.body
    text = print_kernel(body, keyword="instruction").rstrip()
    for s in body.statements if any(hidden(body, b.name) for b in body.buffers) else ():
        line = f"\n    {print_statement(s, body)}"
        text = text.replace(line, "" if hidden(body, s.dest.buffer) else f"\n    {spelt(s, body)}", 1)
    return re.sub(r"\n  forall [^\n]*(?=\n  forall |$)", "", text)


def _indent(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def _place(loc: Loc) -> str:
    return f"{loc}: " if loc.line else ""


def describe(kernel: Kernel, s: Statement) -> str:
    """The statement's operation in words."""
    dtype = kernel.buffer(s.dest.buffer).dtype
    if s.op == "copy" and isinstance(s.sources[0], Literal):
        return f"write a constant to {dtype} ('{spelt(s, kernel)}')"
    given = next((kernel.buffer(a.buffer).dtype for a in s.sources if isinstance(a, Access)), dtype)
    if not s.accumulate and given != dtype:
        dtype = f"{given} giving {dtype}"
    verb = f"accumulate with '{s.op}'" if s.accumulate else f"do '{s.op}'"
    return f"{verb} on {dtype} ('{spelt(s, kernel)}')"


def domain_text(s: Statement) -> str:
    """``forall i < 4, j < 3 where i <= j`` of a statement, for reports."""
    return print_domain(s.domain) if s.domain.axes else "once"


def window(kernel: Kernel, statement: int, size: int) -> tuple[int, ...]:
    """The statement and those within ``size`` - 1 steps of dataflow from it, in the same straight-line list: what an
    instruction of ``size`` statements that carries it out could consist of."""
    own = next((level.own for level in levels(kernel) if level.own >> statement & 1), 0)
    named = _named(kernel)
    region, edge = 1 << statement, {statement}
    for _ in range(size - 1):
        written = {named[e][0] for e in edge}
        read = {b for e in edge for b in named[e][1]}
        near = {i for i in bits(own & ~region)
                if named[i][0] in written or named[i][0] in read or not written.isdisjoint(named[i][1])}  # fmt: skip
        region |= mask_of(near)
        edge = near
    return bits(region)


@once
def _named(kernel: Kernel) -> tuple[tuple[str, frozenset[str]], ...]:
    """The buffer that each statement writes, and those that it reads."""
    return tuple((s.dest.buffer, frozenset(a.buffer for a in s.reads)) for s in kernel.statements)


def reports(
    kernel: Kernel,
    instructions: Sequence[Instruction],
    statements: Sequence[int],
    unmet: Sequence[str] = (),
    refused: Sequence[Mismatch] = (),
    *,
    remedies: bool = True,
) -> Uncovered:
    """Asks the matcher, for each statement, why each instruction that has its operation does not fit.

    ``refused``: reports of mappings that fit but whose operands could not be laid out. ``remedies``: look for
    instructions that would do.
    """
    from isam.mapper import match

    by_name = {i.name: i for i in instructions}
    gaps = tuple(_gap(kernel, instructions, s, refused, remedies) for s in statements)
    demanded: list[tuple[str, Mismatch | None]] = []
    for name in unmet:
        found = match(kernel, by_name[name], strided=True, normalise=False) if name in by_name else None
        layout = next((m for m in refused if m.instruction == name), None)
        demanded.append((name, found if isinstance(found, Mismatch) else layout))
    return Uncovered(kernel, gaps, tuple(demanded))


def told(report: Uncovered, instructions: Sequence[Instruction]) -> Uncovered:
    """A report as its reader wants it, where transforms want it as it is: per instruction the reason that it does not
    carry out the statement in question, not what it met further on; where it would but for element types, they come
    first, with an instruction of those types."""
    return replace(report, gaps=tuple(_told(report.kernel, g, instructions) for g in report.gaps))


def _told(kernel: Kernel, gap: Gap, instructions: Sequence[Instruction]) -> Gap:
    by_name = {i.name: i for i in instructions}
    here: list[Mismatch] = []
    elsewhere: list[Mismatch] = []
    remedies: list[Instruction] = []
    for m in gap.mismatches:
        if m.instruction not in by_name:
            continue
        instruction = by_name[m.instruction]
        region = window(kernel, gap.statement, len(instruction.body.statements))
        types = retyped(kernel, instruction, strided=True, region=region, statement=gap.statement)
        if types is not None:
            here.append(types.mismatch())
            remedies += [named for named in (types.like(),) if named is not None and types.converted]
        elif m.about("statement") == gap.statement:
            here.append(m)
        else:
            found = about(kernel, instruction, gap.statement, region)
            (elsewhere if found is None else here).append(m if found is None else found)
    first = [m for m in gap.mismatches if m.instruction not in by_name]
    found = (*first, *_distinct(ranked(here or elsewhere)))
    return replace(gap, mismatches=found, remedies=tuple(remedies[:1]) or gap.remedies)


def _gap(
    kernel: Kernel, instructions: Sequence[Instruction], statement: int, refused: Sequence[Mismatch], remedies: bool
) -> Gap:
    from isam.mapper import match

    s = kernel.statements[statement]
    dtype = kernel.buffer(s.dest.buffer).dtype
    alike = [i for i in instructions if any(o == s.op for o, _, _ in i.signature)]
    relevant = [i for i in alike if any(o == s.op and d in (dtype, ANY) for o, _, d in i.signature)]
    missing = not relevant
    found = [m for m in refused if m.about("statement") == statement]
    regions: dict[int, tuple[int, ...]] = {}
    for i in one_per_structure(relevant or alike, kernel):
        size = len(i.body.statements)
        if size not in regions:
            regions[size] = window(kernel, statement, size)
        answer = match(kernel, i, strided=True, region=regions[size])
        if isinstance(answer, Mismatch):
            found.append(answer if answer.about("statement") is not None else _untried(answer, i, kernel, statement))
    found = ranked(found)
    if missing:
        found.insert(0, _missing(kernel, statement))
    return Gap(statement, missing, _distinct(found), would_do(kernel, statement) if remedies else ())


def _untried(answer: Mismatch, instruction: Instruction, kernel: Kernel, statement: int) -> Mismatch:
    """Nothing around the statement could be laid beside the instruction at all: what both do, for the transforms."""
    s = kernel.statements[statement]
    does = tuple(dict.fromkeys((x.op, x.accumulate) for x in instruction.body.statements))
    facts = (("have", (s.op, s.accumulate)), ("statement", statement), ("does", does))
    return replace(answer, subject=(*answer.subject, *facts))


def _missing(kernel: Kernel, statement: int) -> Mismatch:
    """No instruction has the operation: a report without an instruction, for the transforms."""
    s = kernel.statements[statement]
    have = (("have", (s.op, s.accumulate)), ("missing", True), ("statement", statement))
    need = "an operation that some instruction has"
    return Mismatch("operation", describe(kernel, s), need, s.loc, subject=have)


def _distinct(found: Sequence[Mismatch]) -> tuple[Mismatch, ...]:
    """One report per instruction and reason: families over dtypes and widths say the same thing many times."""
    seen: dict[tuple[object, ...], Mismatch] = {}
    for m in found:
        seen.setdefault((m.kind, m.have, m.need, m.kernel_loc), m)
    return tuple(seen.values())


