"""Instruction texts inside YAML: parsed by the language's own parser, every place mapped back into the YAML file.

A family's members often differ in their element types alone. Such texts are parsed once, in a canonical spelling
(``f32``, ``f64``, ... in order of appearance within each kind of type), and the types put back: what the parser does
depends on a type's kind, not on its width, unless a number stands in the text (numbers adapt to their type), and then
the text is parsed as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError, Loc
from isam.ir.dtype import DTYPES
from isam.ir.instruction import Instruction
from isam.ir.kernel import BINARY, UNARY, Access, Buffer, Item, Kernel, Literal, Recurrence, Source, Statement
from isam.system.families import HOLE, column_before
from isam.system.faults import Faults, nearest
from isam.system.source import Scalar

Relocate = Callable[[Loc], Loc]
_TYPE = re.compile(rf"\b(?:sat_)?({'|'.join(DTYPES)})\b")
_HEAD = re.compile(r"(\s*instruction\s+)([A-Za-z_]\w*)")
ROLES = ("in", "const", "inout", "out")
NO_STATEMENT = ("instruction", *ROLES, "temp", "forall", "where", "permits", "loop")  # other lines' words
_DECLARED = re.compile(rf"\s*({'|'.join(ROLES)})\s+\w+\s*:\s*(\w+)\s*(?:\[\s*\]|(\[.*))?\s*")
_CALL = re.compile(rf"\b(?:({'|'.join((*UNARY, *BINARY))})\s*\(|(max|min)=)")
_ASIDE = re.compile(r"#.*|\[[^\]]*\]")
_NUMBER = re.compile(r"\n.*=.*(?<![\w.])\d")
_KIND = {name: d.kind for name, d in DTYPES.items()}
_BY_KIND = {"f": ("f32", "f64", "bf16", "f16"), "i": ("i32", "i64", "i16", "i8"), "u": ("u8",), "b": ("bool",)}


def parse_body(body: Scalar, name: Scalar, faults: Faults, *, judged: bool = False) -> Instruction | None:
    """The instruction in a literal block, or None when the text is wrong (every fault of it is reported). ``judged``:
    the verifier has seen it."""
    to_file = _relocation(body)
    spelling = _canonical(body.text)
    try:
        if spelling is not None:
            found, own = _parsed(spelling.text).body, spelling.name
            to: Relocate = spelling.origin(to_file)
        else:
            from isam.ir.text import parse_instruction

            found, to = parse_instruction(body.text).body, to_file
            own = found.name
    except IsamError:
        return _reported(body, to_file, faults)
    if own != name.text:
        faults.add("system-name", f"the text describes '{own}', the entry is called '{name.text}'", to(found.loc),
                   f"call both '{name.text}'")  # fmt: skip
        return None
    types = spelling.types if spelling is not None else {}
    made = respelt(found, own, types, to)
    if not judged and not _sound(spelling.text if spelling is not None else body.text):
        from isam.ir.verify import verify

        for d in verify(made):
            faults.take(d)
    return Instruction(own, made, loc=name.loc)


@lru_cache(maxsize=1024)
def types_in(head: str) -> frozenset[str]:
    """Element types that every kernel must have for an instruction with these declarations to fit: those of arrays,
    which a number cannot play, and of what is written. What does not look like a declaration is left out."""
    found = (_DECLARED.fullmatch(line) for line in head.split("\n"))
    return frozenset(m[2] for m in found if m and m[2] in DTYPES and (m[3] or m[1] in ("out", "inout")))


def functions_in(statements: str) -> frozenset[str]:
    """Operations that statements name (``exp(A[i])``, ``C[i] max= x``): a kernel without them cannot use the
    instruction, since no law of the normal form takes one away. A choice is none of them: of a number it is no
    operation."""
    return frozenset(m[1] or m[2] for m in _CALL.finditer(_ASIDE.sub("", statements)))


@lru_cache(maxsize=4096)
def _sound(text: str) -> bool:
    """Whether the language's verifier finds nothing (IR-8): what it finds depends on kinds of types, not on widths."""
    from isam.ir.verify import verify

    return not verify(_parsed(text).body)


def _reported(body: Scalar, to_file: Relocate, faults: Faults) -> None:
    from isam.ir.text import parse_instruction

    try:
        parse_instruction(body.text)
    except IsamError as e:
        lines = _unfilled(body, to_file, faults)
        for d in e.diagnostics:
            if d.loc.line not in lines:
                faults.take(Diagnostic(d.code, d.message, to_file(d.loc), d.hint))


def _unfilled(body: Scalar, to_file: Relocate, faults: Faults) -> set[int]:
    """Reports the braces that name no parameter, and gives their lines: what else is wrong there follows from them."""
    lines: set[int] = set()
    for n, line in enumerate(body.text.split("\n"), 1):
        for m in HOLE.finditer(line.partition("#")[0]):
            names = dict(body.env)
            hint = nearest(m[1], names, "" if names else "parameters are named by the 'for:' of a family")
            faults.add("system-family", f"no parameter '{m[1]}'", to_file(Loc("", n, m.start() + 1)), hint)
            lines.add(n)
    return lines


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Instruction:
    from isam.ir.text import parse_instruction

    return parse_instruction(text)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """``text`` in canonical types; ``types`` leads back; ``shifts``: per line, (column, how far what follows moved)."""

    text: str
    name: str
    types: dict[str, str]
    shifts: dict[int, list[tuple[int, int]]]

    def origin(self, to_file: Relocate) -> Relocate:
        def back(loc: Loc) -> Loc:
            moved = 0
            if loc.line in self.shifts:
                for column, by in self.shifts[loc.line]:
                    if loc.column >= column:
                        moved = by
            return to_file(Loc(loc.file, loc.line, loc.column - moved) if moved else loc)

        return back


def _canonical(text: str) -> _Spelling | None:
    """The canonical spelling; None for texts with numbers in a statement and for what does not look like an
    instruction."""
    head = _HEAD.match(text)
    if head is None or _NUMBER.search(text, head.end()):
        return None
    types: dict[str, str] = {}
    used = dict.fromkeys("fiub", 0)
    shifts: dict[int, list[tuple[int, int]]] = {}
    lines: list[str] = []
    top = text.count("\n", 0, head.start(2)) + 1
    for n, line in enumerate(text.split("\n"), 1):
        parts: list[str] = []
        at = moved = 0
        if n == top:
            begin = head.start(2) - (text.rfind("\n", 0, head.start(2)) + 1)
            parts, at = [line[:begin], "x"], begin + len(head[2])
            moved = 1 - len(head[2])
            shifts[n] = [(begin + 2, moved)]
        for start, end in _types(line):
            if start < at:  # a part of the name
                continue
            given = line[start:end]
            if given not in types:
                kind = _KIND[given]
                types[given] = _BY_KIND[kind][used[kind]]
                used[kind] += 1
            new = types[given]
            parts += (line[at:start], new)
            at = end
            if len(new) != len(given):
                moved += len(new) - len(given)
                shifts.setdefault(n, []).append((at + moved + 1, moved))
        parts.append(line[at:])
        lines.append("".join(parts))
    return _Spelling("\n".join(lines), head[2], {new: given for given, new in types.items()}, shifts)


@lru_cache(maxsize=4096)
def _types(line: str) -> tuple[tuple[int, int], ...]:
    """Where element types stand in a line; the lines of a family are much alike."""
    return tuple(m.span(1) for m in _TYPE.finditer(line))


@lru_cache(maxsize=1024)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.split("\n"))


def permission(body: Scalar) -> Loc:
    """Where the text says what it permits; the text itself when it does not."""
    for number, line in enumerate(body.text.split("\n"), 1):
        if line.lstrip().startswith("permits"):
            return place_in(body, number, len(line) - len(line.lstrip()) + 1)
    return body.loc


def place_in(text: Scalar, line: int, column: int) -> Loc:
    """The place in the file of a line and column (from 1) of a text; of the text itself when they are 0."""
    if not line:
        return text.loc
    if text.block:
        return _relocation(text)(Loc(text.loc.file, line, column))
    before = column_before(text.template or text.text, dict(text.env), column)
    return Loc(text.loc.file, text.loc.line, text.loc.column + text.quoted + before - 1)


def _relocation(body: Scalar) -> Relocate:
    template, env = _lines(body.template or body.text), dict(body.env)
    file, first, shift = body.loc.file, body.first - 1, body.block - 1

    def to_file(loc: Loc) -> Loc:
        if not loc.line:
            return Loc(file, first + 1, shift + 1)
        line = min(loc.line, len(template))
        column = column_before(template[line - 1], env, loc.column) if env else loc.column
        return Loc(file, first + line, shift + column)

    return to_file


def respelt(kernel: Kernel, name: str, types: dict[str, str], to: Relocate) -> Kernel:
    """The kernel under another name, with other types and with every location replaced by ``to`` of it."""
    buffers = tuple(Buffer(b.name, b.shape, types.get(b.dtype, b.dtype), b.role, b.declared, to(b.loc))
                    for b in kernel.buffers)  # fmt: skip
    body = tuple([_item(i, to) for i in kernel.body])
    return Kernel(name, kernel.syms, buffers, body, kernel.permits, kernel.params, to(kernel.loc),
                  None if types else kernel.template,
                  tuple(replace(d, loc=to(d.loc)) for d in kernel.faults))  # fmt: skip


def _item(i: Item, to: Relocate) -> Item:
    if isinstance(i, Recurrence):
        return Recurrence(i.axis, tuple([_item(x, to) for x in i.body]), to(i.loc))
    sources = tuple([_source(s, to) for s in i.sources])
    return Statement(i.domain, _access(i.dest, to), i.op, sources, i.accumulate, to(i.loc))


def _source(s: Source, to: Relocate) -> Source:
    return _access(s, to) if isinstance(s, Access) else Literal(s.value, to(s.loc))


def _access(a: Access, to: Relocate) -> Access:
    return Access(a.buffer, a.index, to(a.loc))
