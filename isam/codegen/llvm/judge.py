"""Whether the templates of a description fit its instructions, before anything is compiled for it.

A template is read line by line with the types of its values: an operand in registers is a vector of as many lanes as
the machine has, one in addressed memory a pointer. Refused: names that are no operand and have no value yet, operands
that are never used or never written, values taken as another type than they have, snippets and sizes that do not
exist. What cannot be typed by looking at one line is left to LLVM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from isam.codegen.llvm.irtext import ELEMENT, vector
from isam.codegen.llvm.lanes import lanes_of, snippets_of
from isam.codegen.llvm.narrow import fault
from isam.codegen.llvm.reading import Line, read
from isam.codegen.llvm.verbs import ELEMENTS, GROUPS, VERBS, Verb
from isam.diagnostics import did_you_mean
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Buffer
from isam.system.graph import COUNTED, Memory, System

POINTER, UNKNOWN = "ptr", ""


class Finding(NamedTuple):
    """A fault of the template of ``instruction`` at a line and column of it, both from 1 (0: of the whole)."""

    instruction: str
    line: int
    column: int
    code: str
    message: str
    hint: str


def judge(system: System) -> Iterator[Finding]:
    """Every fault of the templates of a machine. Raises ``IsamError`` when its registers cannot be emitted."""
    machine = Machine(system, lanes_of(system))
    for i in system.instructions.values():
        template = i.emission.get("llvm")
        if isinstance(template, str):
            yield from _Judge(machine, i).judge(template) or _narrow(system, machine, i, template)
        elif template is not None or system.backend == "llvm":
            yield Finding(i.name, 0, 0, "emission-missing", f"'{i.name}' has no template for this back end",
                          "add 'emission: {llvm: ...}'")  # fmt: skip


def _narrow(system: System, machine: Machine, i: Instruction, template: str) -> Iterator[Finding]:
    """What is wrong with its narrow forms: the same template on fewer lanes."""
    for form in i.cost.narrow:
        homes = (m for b in i.body.arguments for m in machine.homes(i, b) if m.kind == COUNTED)
        if wrong := fault(i, form, homes):
            yield Finding(i.name, 0, 0, "emission-lanes", f"'{i.name}' has no form for {form.most} elements: {wrong}",
                          "leave it out of 'narrow'")  # fmt: skip
        else:
            yield from _Judge(Machine(system, form.most), i).judge(template)


class Machine:
    """What templates may refer to: lane count, the pieces of code they share (``texts``), where operands lie."""

    def __init__(self, system: System, lanes: int):
        self.lanes = lanes
        self.texts = snippets_of(system)
        self.names = frozenset(self.texts)
        self.memories = system.memories
        self.home = (system.home,)
        self.edges: dict[str, tuple[set[str], set[str]]] = {}
        for m in system.moves:
            sources, targets = self.edges.setdefault(m.by, (set(), set()))
            sources.add(m.source)
            targets.add(m.target)

    def homes(self, instruction: Instruction, operand: Buffer) -> list[Memory]:
        """Where the operand may lie."""
        contract = instruction.operands.get(operand.name)
        homes: Iterable[str] = contract.homes if contract else ()
        if not homes and instruction.name in self.edges:
            homes = self.edges[instruction.name][operand.role not in ("in", "const")]
        return [self.memories[h] for h in homes or self.home if h in self.memories]

    def in_registers(self, instruction: Instruction, operand: Buffer) -> bool | None:
        """Whether the operand is a value (True) or in addressed memory (False); None where its homes are of both
        kinds."""
        kinds = {m.kind == COUNTED for m in self.homes(instruction, operand)}
        return kinds.pop() if len(kinds) == 1 else None

    def elements(self, memory: Memory, dtype: str) -> int:
        """How many elements a register is for: in a narrow form, of some lanes."""
        return memory.elements(dtype) * self.lanes // memory.lanes if memory.lanes else 0

    def result(self, name: str, types: tuple[str, ...]) -> str:
        """The type of a snippet's result, given those of its arguments."""
        return _snippet_result(self.texts[name], types, self.lanes)

    def arity(self, name: str) -> int:
        return len(self.texts[name].strip().partition("->")[0].split(","))


@lru_cache(maxsize=1024)
def _snippet_result(text: str, types: tuple[str, ...], lanes: int) -> str:
    """Follows the lines of a snippet that need no other snippet."""
    head, _, body = text.strip().partition("\n")
    formal, _, result = head.partition("->")
    values = dict(zip((f.strip() for f in formal.split(",")), types, strict=False))
    for line in read(body, lanes):
        if line.to:
            values[line.to] = values.get(line.copied, UNKNOWN) if line.copied else line.type
    return values.get(result.strip(), UNKNOWN)


@lru_cache(maxsize=1024)
def _snippet_fault(text: str, known: frozenset[str]) -> str:
    """What is wrong inside a snippet, or the empty string. ``known``: the snippets there are."""
    head, _, body = text.strip().partition("\n")
    formal, arrow, result = head.partition("->")
    if not arrow:
        return "does not begin with its arguments and result: a, b -> r"
    values = {f.strip() for f in formal.split(",")}
    for line in read(body, 0):
        strange = next((n for n, _, _ in line.values if n not in values), "")
        if strange:
            return f"uses '%{strange}', which is no argument and has no value yet"
        if line.snippet[0] and line.snippet[0] not in known:
            return f"uses a snippet '{line.snippet[0]}' that is not there"
        values.add(line.to)
    return "" if result.strip() in values else f"never gives its result '{result.strip()}' a value"


class _Judge:
    """One template. ``values``: the types of the names that have a value; ``used``: operands mentioned so far."""

    def __init__(self, machine: Machine, instruction: Instruction):
        self.i, self.machine, self.arguments = instruction, machine, instruction.body.arguments
        self.found: list[Finding] = []
        self.used: set[str] = set()
        self.strange = False  # there is a name that nothing has
        self.inside = {a.name: machine.in_registers(instruction, a) for a in self.arguments}
        self.types = {a.name: self._type(a.name, a.dtype) for a in self.arguments}
        self.values = {a.name: self.types[a.name] for a in self.arguments
                       if a.role != "out" or not self.inside[a.name]}  # fmt: skip

    def _type(self, name: str, dtype: str) -> str:
        if self.inside[name] is None or (self.inside[name] and (dtype == ANY or not self.machine.lanes)):
            return UNKNOWN
        if not self.inside[name]:
            return UNKNOWN if any(m.cells for m in self.machine.homes(self.i, self.i.operand(name))) else POINTER
        counts = {self.machine.elements(m, dtype) for m in self.machine.homes(self.i, self.i.operand(name))}
        return vector(dtype, counts.pop()) if len(counts) == 1 else UNKNOWN

    def judge(self, template: str) -> list[Finding]:
        lines = read(template, self.machine.lanes)
        written: set[str] = set()
        for line in lines:
            self._line(line)
            if line.to:
                self.values[line.to] = self._made(line)
                written.add(line.to)
                if line.verb is not None and line.verb.points:
                    self.values[f"{line.to}.step"] = "i64"
        for a in self.arguments:
            if self.strange:  # what is missing is probably misspelt
                break
            if a.role in ("in", "const", "inout") and a.name not in self.used:
                self._operand(a.name, "is never used by the template")
            elif a.role != "in" and self.inside[a.name] and a.name not in written:
                self._operand(a.name, "is never given a value by the template")
            elif a.role == "out" and not self.inside[a.name] and a.name not in self.used | written:
                self._operand(a.name, "is never written by the template")
            elif a.name in written and self.inside[a.name]:
                self._result(a.name, next(n for n in reversed(lines) if n.to == a.name))
        return self.found

    def _fault(self, line: int, column: int, code: str, message: str, hint: str) -> None:
        self.found.append(Finding(self.i.name, line, column, code, message, hint))

    def _operand(self, name: str, what: str) -> None:
        self._fault(1, 1, "emission-operand", f"'{name}' of '{self.i.name}' {what}", f"mention %{name}")

    def _result(self, name: str, line: Line) -> None:
        have, want = self.values[name], self.types[name]
        if have and want and have != want:
            self._fault(line.number, line.column, "emission-type", f"the template gives '{name}' {have}, it is {want}",
                        "a value in registers has one element of its dtype per lane")  # fmt: skip

    def _line(self, line: Line) -> None:
        for name, type_, column in line.values:
            if not self._known(name, line.number, column):
                continue
            have = self.values[name]
            if type_ and have and have != type_:
                self._fault(line.number, column, "emission-type", f"'%{name}' is {have}, this line takes it as {type_}",
                            "element type and lane count must be those of the value")  # fmt: skip
        sizes = [s.name for s in self.i.syms] if line.sizes else []
        for word, column in line.sizes:
            if word not in sizes:
                self._fault(line.number, column, "emission-name",
                            f"'${word}' is no type and no size of '{self.i.name}'",
                            did_you_mean(word, [*sizes, *ELEMENT])
                            or f"sizes: {', '.join(sizes) or 'none'}")  # fmt: skip
        for operand, dimension, column in line.layouts:
            self._layout(operand, dimension, line.number, column)
        if line.snippet[0]:
            self._snippet(line)
        if line.how.startswith("tile."):
            self._tile(line)

    def _tile(self, line: Line) -> None:
        known = VERBS.get(line.how.removeprefix("tile."))
        if known is None:
            names = [f"tile.{v}" for v in VERBS]
            self._fault(line.number, line.column, "emission-name", f"there is no verb '{line.how}'",
                        did_you_mean(line.how, names) or f"verbs: {', '.join(names)}")  # fmt: skip
        elif line.verb is None:
            self._fault(line.number, line.column, "emission-name", f"'{line.how}' is not written like this",
                        f"write '{known.form}'")  # fmt: skip
        elif known.holds in (ELEMENTS, GROUPS):
            self._moved(line, known)

    def _moved(self, line: Line, verb: Verb) -> None:
        """Between memory and registers: as groups where these hold groups, else one element per lane."""
        held = {GROUPS if m.lane else ELEMENTS for a in self.arguments if self.inside[a.name]
                for m in self.machine.homes(self.i, a)}  # fmt: skip
        if len(held) == 1 and verb.holds not in held:
            *most, last = (v.name for v in VERBS.values() if v.holds in held)
            self._fault(line.number, line.column, "emission-lanes",
                        f"'tile.{verb.name}' is not for registers of '{self.i.name}': a lane holds {held.pop()}",
                        f"use tile.{', '.join(most)} or {last}")  # fmt: skip

    def _known(self, name: str, number: int, column: int) -> bool:
        self.used.add(name)
        if name in self.values:
            return True
        late = name in self.types
        self.strange = self.strange or not late
        self._fault(number, column, "emission-name", f"'%{name}' " + (
            "is written, and has no value here yet" if late else "is no operand and has no value here yet"),
            did_you_mean(name, self.values) or "values here: " + ", ".join(f"%{v}" for v in self.values))  # fmt: skip
        return False

    def _layout(self, operand: str, dimension: int | None, number: int, column: int) -> None:
        self.used.add(operand)
        if operand not in self.types:
            self._fault(number, column, "emission-name", f"'{operand}' is no operand of '{self.i.name}'",
                        did_you_mean(operand, self.types) or f"operands: {', '.join(self.types)}")  # fmt: skip
        elif self.inside[operand]:
            self._fault(number, column, "emission-operand", f"'{operand}' lies in registers: it has no strides",
                        "strides are those of operands in addressed memory")  # fmt: skip
        elif dimension is not None and dimension >= (rank := len(self.i.operand(operand).shape)):
            self._fault(number, column, "emission-operand", f"'{operand}' has {rank} dimensions, none is {dimension}",
                        "dimensions count from 0")  # fmt: skip

    def _snippet(self, line: Line) -> None:
        name, column = line.snippet
        if name not in self.machine.texts:
            self._fault(line.number, column, "emission-name", f"there is no snippet '{name}'",
                        did_you_mean(name, self.machine.texts) or "snippets stand in 'facts: snippets:'")  # fmt: skip
            return
        wrong = _snippet_fault(self.machine.texts[name], self.machine.names)
        if wrong:
            self._fault(line.number, column, "emission-name", f"the snippet '{name}' {wrong}",
                        "snippets stand in 'facts: snippets:'")  # fmt: skip
            return
        want = 1 if line.how == "tree" else self.machine.arity(name)
        if len(line.values) != want:
            self._fault(line.number, column, "emission-name", f"'{name}' takes {want} values, found {len(line.values)}",
                        "its first line names them")  # fmt: skip

    def _made(self, line: Line) -> str:
        """The type of the value that a line makes."""
        if line.copied:
            return self.values.get(line.copied, UNKNOWN)
        if line.snippet[0] in self.machine.texts:
            types = tuple(self.values.get(n, UNKNOWN) for n, _, _ in line.values)
            return self.machine.result(line.snippet[0], types * 2 if line.how == "tree" else types)
        if line.verb is not None and line.verb.holds == ELEMENTS and not line.verb.stores:
            dtype = next((a.dtype for a in self.arguments if line.values[:1] and a.name == line.values[0][0]), ANY)
            return vector(dtype, self.machine.lanes) if dtype != ANY and self.machine.lanes else UNKNOWN
        return line.type
