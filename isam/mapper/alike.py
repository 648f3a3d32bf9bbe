"""Parts of a kernel that are the same but for the names of their buffers: what fits one of them fits all.

A *part* is a set of statements that share no buffer with others that anyone writes. Programs of hundreds of statements
consist of the same few parts again and again; the matcher looks at one of each kind.
"""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.dataflow import bits, levels
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, Source
from isam.ir.mapping import Mapping, OperandMap
from isam.mapper.dataflow import pattern_of
from isam.mapper.match import normal, symmetries_of
from isam.mapper.symmetry import orbit_key
from isam.once import once

MANY = 4  # parts of one kind: fewer are matched one by one

Part = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """Parts that are the same but for names: the first, and per other part its statements and buffers by those of the
    first."""

    first: Part
    others: tuple[tuple[dict[int, int], dict[str, str]], ...]


def parts(kernel: Kernel) -> list[Part]:
    """The statements, divided where nothing that is written is shared; in order of their first statements."""
    written = {s.dest.buffer for s in kernel.statements}
    root = list(range(len(kernel.statements)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = i = root[root[i]]
        return i

    last: dict[str, int] = {}
    for i, s in enumerate(kernel.statements):
        for name in {a.buffer for a in (s.dest, *s.reads)} & written:
            a, b = find(last.setdefault(name, i)), find(i)
            root[max(a, b)] = min(a, b)
    out: dict[int, list[int]] = {}
    for i in range(len(root)):
        out.setdefault(find(i), []).append(i)
    return [tuple(p) for p in out.values()]


def kinds(kernel: Kernel) -> tuple[list[Kind], Part]:
    """Kinds of which there are many parts, and the statements of all other parts."""
    level = {i: n for n, x in enumerate(levels(kernel)) for i in bits(x.own)}
    seen: dict[object, list[tuple[Part, list[str]]]] = {}
    for part in parts(kernel):
        names: list[str] = []
        seen.setdefault(_form(kernel, part, level, names), []).append((part, names))
    out: list[Kind] = []
    rest: list[int] = []
    for (first, names), *more in seen.values():
        if len(more) < MANY - 1:
            rest += [i for part, _ in ((first, names), *more) for i in part]
            continue
        pairs = [(dict(zip(first, p, strict=True)), dict(zip(names, n, strict=True))) for p, n in more]
        out.append(Kind(first, tuple(pairs)))
    return out, tuple(sorted(rest))


def _form(kernel: Kernel, part: Part, level: dict[int, int], names: list[str]) -> object:
    """The statements with buffers by number; their names are put into ``names``."""
    number: dict[str, int] = {}

    def plain(x: Source) -> object:
        if not isinstance(x, Access):
            return type(x.value), x.value
        if x.buffer not in number:
            number[x.buffer] = len(names)
            names.append(x.buffer)
        return number[x.buffer], x.index

    statements = []
    for i in part:
        s = kernel.statements[i]
        statements.append((level[i], s.domain, s.op, s.accumulate, plain(s.dest), tuple(map(plain, s.sources))))
    buffers = (kernel.buffer(n) for n in names)
    return tuple(statements), tuple((b.shape, b.dtype, b.role, b.declared) for b in buffers)


@once
def in_one_part(instruction: Instruction) -> bool:
    """Whether everything that the instruction carries out lies in one part of any kernel."""
    return len(parts(normal(instruction.body))) == 1


def moved(m: Mapping, to: dict[int, int], names: dict[str, str]) -> Mapping:
    """A mapping of one part as that of another."""
    statements = tuple([to[i] for i in m.statements])
    operands = tuple([OperandMap(o.operand, names.get(o.buffer, ""), o.index, o.dims, o.steps, o.literal)
                      for o in m.operands])  # fmt: skip
    pattern = pattern_of(m.instruction, normal(m.instruction.body))
    return Mapping(
        instruction=m.instruction,
        statements=statements,
        operands=operands,
        axes=m.axes,
        outer=m.outer,
        tails=m.tails,
        orbit=orbit_key(statements, operands, m.axes, symmetries_of(pattern)),
        statement_map=tuple([(own, to[i]) for own, i in m.statement_map]),
        guards=m.guards,
        whole=m.whole,
        loops=m.loops,
        renames=tuple([(to[i], changed) for i, changed in m.renames]),
        temps=tuple([(own, names[t]) for own, t in m.temps]),
        conditions=m.conditions,
    )
