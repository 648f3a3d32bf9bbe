"""Whether element types are all that stands in the way: the instruction would fit if its operands had other ones.

An instruction that converts an operand before it computes (``f32(A[i, k])``) has a statement more than a kernel that
has the type already, so that the two are never laid beside each other as a whole. It is tried without such statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations, islice

from isam.classes import dataclass
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Item, Kernel, Recurrence, Statement
from isam.ir.mapping import Mapping
from isam.ir.mismatch import Mismatch
from isam.mapper.match import Matches, match, match_untyped, normal
from isam.mapper.pricing import Pricing
from isam.mapper.report import place, subject
from isam.mapper.spelt import hidden, written
from isam.once import once
from isam.transforms.edit import at_rows, read_as, without_unused

MOST = 3  # operands that are taken as they are, not converted
LOOKED = 64  # mappings


@dataclass(frozen=True, slots=True)
class Retyped:
    """``mapping``: how ``instruction``, one that takes some operands as they are where the ``original`` converts them,
    would carry out statements of ``kernel`` if element types did not count. ``wrong``: those operands whose types
    differ, with what the original needs and the kernel has; ``converted``: to what it converts those it does."""

    kernel: Kernel
    original: Instruction
    instruction: Instruction
    mapping: Mapping
    wrong: dict[str, tuple[str, str]]
    converted: dict[str, str]

    def accepting(self) -> tuple[Instruction, Mapping] | None:
        """The instruction with the kernel's types, and how it is used; what it computes on the way has the type that an
        operand of its own type now has, or keeps it."""
        body = self.instruction.body
        have = {n: d for n, (_, d) in self.wrong.items()}
        became = {b.dtype: have[b.name] for b in body.buffers if b.name in have}
        for ways in (became, {}):
            buffers = tuple(
                replace(b, dtype=have.get(b.name, ways.get(b.dtype, b.dtype) if b.role == "temp" else b.dtype))
                for b in body.buffers
            )
            other = replace(self.instruction, body=replace(body, buffers=buffers))
            found = match(self.kernel, other, normalise=False, strided=True, region=self.mapping.statements)
            if isinstance(found, Matches):
                return other, found.first
        return None

    def like(self) -> Instruction | None:
        """The instruction with the kernel's types, under a name of its own."""
        other = self.accepting()
        if other is None:
            return None
        name = f"{other[0].name}_{next(have for _, have in self.wrong.values())}"
        return replace(other[0], name=name, body=replace(other[0].body, name=name))

    def mismatch(self) -> Mismatch:
        """The same as a report: the operands as the instruction's text has them."""
        body, (first, (need, have)) = normal(self.original.body), next(iter(self.wrong.items()))
        at, theirs = self._read(first), next(i for i, s in enumerate(body.statements) if _access(s, first) is not None)
        mine, other = self.kernel.statements[at], body.statements[theirs]
        operands = [self.mapping.operand(n) for n in self.wrong]
        accesses = [Access(o.buffer, o.index) for o in operands]
        makes = [f", which it makes {self.converted[n]}" if n in self.converted else "" for n in self.wrong]
        needs = [f"{n}: {d}{'' if len(set(makes)) == 1 else m}"
                 for (n, (d, _)), m in zip(self.wrong.items(), makes, strict=True)]  # fmt: skip
        roles = tuple((o.operand, o.buffer or str(o.literal)) for o in self.mapping.operands)
        return Mismatch(
            "dtype",
            ", ".join(f"{written(a, self.kernel)}: {d}"
                      for a, (_, d) in zip(accesses, self.wrong.values(), strict=True)),
            ", ".join(needs) + (makes[0] if len(set(makes)) == 1 else ""),
            place(_access(mine, operands[0].buffer) or mine, mine), place(_access(other, first) or other, other),
            self.original.name, _pairs(self.original), (*self._lines(body), *self._agreed(roles), *self.mapping.axes),
            subject(statement=at, instruction_statement=theirs, roles=roles, axes=self.mapping.axes, operand=first,
                    buffer=operands[0].buffer, need=need, have=have),
        )  # fmt: skip

    def _read(self, operand: str) -> int:
        """The statement of the mapping that touches what plays an operand."""
        buffer = self.mapping.operand(operand).buffer
        some = (i for i in self.mapping.statements if _access(self.kernel.statements[i], buffer) is not None)
        return next(some, self.mapping.statements[0])

    def _lines(self, body: Kernel) -> tuple[tuple[str, str], ...]:
        """Where both texts have the statements that name a result."""
        mine = [s.loc.line for i in self.mapping.statements
                if not hidden(self.kernel, (s := self.kernel.statements[i]).dest.buffer)]  # fmt: skip
        theirs = [s.loc.line for s in body.statements if not hidden(body, s.dest.buffer)]
        pairs = zip(theirs, mine, strict=False) if len(mine) == len(theirs) else ()
        return tuple((f"line {a}", f"line {b}") for a, b in pairs if a and b)

    def _agreed(self, roles: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((o, b) for o, b in roles if o not in self.wrong and not hidden(self.kernel, b))


def _access(s: Statement, buffer: str) -> Access | None:
    return next((a for a in (*s.reads, s.dest) if a.buffer == buffer), None)


def _pairs(instruction: Instruction) -> int:
    """How many pairs are agreed where all of an instruction is."""
    body = normal(instruction.body)
    axes = {a.name for s in body.statements for a in s.domain.axes}
    return len(body.statements) + len(body.buffers) + len(axes) + sum(len(b.shape) for b in body.buffers)


def retyped(
    kernel: Kernel, instruction: Instruction, *, strided: bool = False, region: Iterable[int] | None = None,
    statement: int | None = None,
) -> Retyped | None:  # fmt: skip
    """How an instruction that does not fit would, but for element types; None where more is in the way. ``kernel``: in
    normal form; ``region``, ``strided``: as for :func:`match`; ``statement``: one that has to be carried out."""
    some = None if region is None else tuple(region)
    for others in _taking(instruction):
        found: list[Retyped] = []
        for other, converted in others:
            for m in islice(match_untyped(kernel, other, strided=strided, region=some), LOOKED):
                wrong = {
                    o.operand: (need, have)
                    for o in m.operands
                    if o.buffer and (need := instruction.operand(o.operand).dtype) != ANY
                    and (have := kernel.buffer(o.buffer).dtype) != need and need not in _made_of(kernel, o.buffer)
                }  # fmt: skip
                if wrong and wrong.keys() >= converted.keys() and (statement is None or statement in m.statements):
                    found.append(Retyped(kernel, instruction, other, m, wrong, converted))
        if found:
            pricing = Pricing(kernel)
            return min(found, key=lambda r: (len(r.wrong), pricing.candidate(r.mapping).price))
    return None


def _made_of(kernel: Kernel, buffer: str) -> set[str]:
    """The types from which a buffer is converted."""
    made = (kernel.statements[i] for i in kernel.writers.get(buffer, ()))
    return {kernel.buffer(a.buffer).dtype for s in made if s.op == "cast" for a in s.reads}


def _taking(instruction: Instruction) -> Iterator[list[tuple[Instruction, dict[str, str]]]]:
    """The instruction; those that take one of the operands that it converts as it is then; those that take two; ..."""
    could = _converted(instruction)
    for n in range(min(MOST, len(could)) + 1):
        some: list[tuple[Instruction, dict[str, str]]] = []
        for names in combinations(could, n):
            body = instruction.body
            for name in names:
                body = _without(body, name, could[name])
            some.append((replace(instruction, body=body) if names else instruction, {x: could[x] for x in names}))
        yield some


@once
def _converted(instruction: Instruction) -> dict[str, str]:
    """The operands that are read by nothing but casts to one type, each to a temporary that nothing else writes."""
    body, found = instruction.body, dict[str, str]()
    for b in body.arguments:
        casts = [body.statements[i] for i in body.readers.get(b.name, ())]
        plain = b.role == "in" and all(s.op == "cast" and not s.accumulate and not s.domain.where for s in casts)
        made = {s.dest.buffer for s in casts}
        alone = all(len(body.writers[t]) == 1 and body.buffer(t).role == "temp" for t in made)
        to = {body.buffer(t).dtype for t in made}
        if plain and alone and len(to) == 1 and all(at_rows(s.dest) is not None for s in casts):
            found[b.name] = to.pop()
    return found


def _without(body: Kernel, operand: str, dtype: str) -> Kernel:
    """The body with an operand of the type that it was converted to."""
    made = {s.dest.buffer: s for s in body.statements if _reads(s, operand)}

    def direct(a: Access) -> Access:
        s = made.get(a.buffer)
        if s is None:
            return a
        (source,) = s.reads
        return replace(source.substitute(read_as(s.dest, a)), loc=a.loc)

    def walk(items: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(
            replace(it, body=walk(it.body)) if isinstance(it, Recurrence) else it.accessing(direct)
            for it in items
            if isinstance(it, Recurrence) or it.dest.buffer not in made
        )

    buffers = tuple(replace(b, dtype=dtype) if b.name == operand else b for b in body.buffers)
    return without_unused(replace(body, body=walk(body.body), buffers=buffers))


def _reads(s: Statement, buffer: str) -> bool:
    return any(a.buffer == buffer for a in s.reads)
