"""LLVM IR as text: functions with fresh names, constant displacements, buffers of lines that may grow later.

The text is built directly: the builder API of llvmlite ends as text that is parsed again, ten times slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from isam.classes import dataclass

Lines = list  # of str | Lines: a block of text whose inner buffers may still grow

# element type in a vector register / in memory; bool and 16-bit floats are carried as their bits
ELEMENT = {"f64": "double", "f32": "float", "f16": "i16", "bf16": "i16", "i64": "i64", "i32": "i32", "i16": "i16",
           "i8": "i8", "u8": "i8", "bool": "i8", "i1": "i1"}  # fmt: skip
SUFFIX = {"double": "f64", "float": "f32", "i64": "i64", "i32": "i32", "i16": "i16", "i8": "i8"}

SELDOM = "!prof !0"  # behind a branch: it is hardly ever taken


def vector(dtype: str, lanes: int) -> str:
    """The LLVM type of a value of ``dtype`` in a vector register."""
    return f"<{lanes} x {ELEMENT[dtype]}>"


def mask(valid: int, lanes: int) -> str:
    """The constant ``<lanes x i1>`` whose first ``valid`` lanes are set (its value, without the type)."""
    return "<" + ", ".join(f"i1 {int(i < valid)}" for i in range(lanes)) + ">"


def flat(lines: Lines) -> Iterator[str]:
    for x in lines:
        if isinstance(x, str):
            yield x
        else:
            yield from flat(x)


@dataclass
class Module:
    """Functions, private constants and the declarations that their calls need. ``vscale``: how many times as long
    as the shortest scalable registers are (0: nothing is said of it); LLVM puts vectors of fixed length there then."""

    vscale: int = 0
    functions: list[Function] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)  # initialiser -> name
    declared: dict[str, str] = field(default_factory=dict)  # callee -> declaration
    externals: dict[str, str] = field(default_factory=dict)  # callee -> symbolic name for the loader

    def constant(self, text: str) -> str:
        """A private constant ``type value``, shared by equal ones. Returns its name."""
        if text not in self.constants:
            self.constants[text] = f"@c{len(self.constants)}"
        return self.constants[text]

    def declare_calls(self, line: str) -> None:
        """Notes the declaration of a function called in ``line`` (a function of this module is dropped at the end)."""
        m = _CALL.search(line)
        if m and m["name"] not in self.declared:
            types = [_type_of(a) for a in _split(line[m.end():])]
            self.declared[m["name"]] = f"declare {m['ret']} {m['name']}({', '.join(types)})"

    def __str__(self) -> str:
        own = {f"@{f.name}" for f in self.functions}
        parts = [f"{n} = private unnamed_addr constant {t}" for t, n in self.constants.items()]
        parts += [d for n, d in sorted(self.declared.items()) if n not in own]
        parts += [f.text() for f in self.functions]
        if any(SELDOM in p for p in parts):
            parts.append(f"{SELDOM[-2:]} = !{{!\"branch_weights\", i32 1, i32 2000}}")
        return "\n".join(parts) + "\n"


_CALL = re.compile(r"call (?P<ret>void|<[^>]*>|\{[^}]*\}|\w+) (?P<name>@[\w.]+)\(")


def _split(text: str) -> list[str]:
    """The arguments before the closing parenthesis, split at top-level commas."""
    depth, out, at = 0, [], 0
    for i, ch in enumerate(text):
        if ch in "(<[{":
            depth += 1
        elif ch in ")>]}":
            depth -= 1
            if depth < 0:
                out.append(text[at:i])
                break
        elif ch == "," and depth == 0:
            out.append(text[at:i])
            at = i + 1
    return [a.strip() for a in out if a.strip()]


def _type_of(argument: str) -> str:
    return argument[: argument.index(">") + 1] if argument.startswith("<") else argument.split()[0]


class Function:
    """One function under construction. ``block`` is the label of the current basic block, ``out`` the buffer in use,
    ``scalars`` what was put into all lanes of vectors, by their names, and the place behind that."""

    def __init__(self, module: Module, name: str, args: list[str], linkage: str = "internal", attrs: str = "nounwind"):
        self.module, self.name = module, name
        length = f" vscale_range({module.vscale},{module.vscale})" if module.vscale else ""
        self.head = f"define {linkage} void @{name}({', '.join(args)}) {attrs}{length} {{"
        self.count, self.block = 0, "entry"
        self.out: Lines = []
        self.lines = self.out
        self.entry = self.buffer()
        self.rooms: dict[int, str] = {}
        self.scalars: dict[str, tuple[str, Lines]] = {}
        module.functions.append(self)

    def fresh(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def emit(self, line: str, into: Lines | None = None) -> None:
        (self.out if into is None else into).append("  " + line)

    def op(self, text: str, into: Lines | None = None) -> str:
        """A new value ``%tN = text``."""
        name = self.fresh()
        self.emit(f"{name} = {text}", into)
        if text.startswith("call"):
            self.module.declare_calls(text)
        return name

    def do(self, text: str) -> None:
        """A line without a value."""
        self.emit(text)
        if text.startswith("call"):
            self.module.declare_calls(text)

    def gep(self, pointer: str, offset: int | str, into: Lines | None = None) -> str:
        """``pointer`` plus bytes: a number (an immediate displacement) or a value."""
        return pointer if offset == 0 else self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}", into)

    def room(self, size: int) -> str:
        """Bytes on the stack for what is used up at once, at a multiple of 64; the same for all who ask for as many."""
        if size not in self.rooms:
            self.rooms[size] = self.op(f"alloca [{size} x i8], align 64", self.entry)
        return self.rooms[size]

    def buffer(self) -> Lines:
        """A buffer of lines at this place, to be filled later."""
        b: Lines = []
        self.out.append(b)
        return b

    def label(self, name: str) -> None:
        self.out.append(f"{name}:")
        self.block = name

    def text(self) -> str:
        return "\n".join([self.head, "entry:", *flat(self.lines), "  ret void", "}"])
