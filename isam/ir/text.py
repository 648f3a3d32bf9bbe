"""The language as text: what other parts call. Grammar and meaning: ``docs/language.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, Loc, fail
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.lexer import Report, tokenize
from isam.ir.lower import Lowering
from isam.ir.printer import print_kernel
from isam.ir.remarks import Where, looping, remarks
from isam.ir.syntax import Definition
from isam.ir.tabs import laid_out
from isam.ir.unused import unused

__all__ = ["Module", "parse", "parse_file", "parse_instruction", "parse_kernel", "parse_module", "print_instruction",
           "print_kernel"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module:
    """What a file holds, in text order of each sort."""

    kernels: tuple[Kernel, ...]
    instructions: tuple[Instruction, ...]
    wheres: tuple[Where, ...] = field(default=(), compare=False, repr=False)
    written: tuple[Definition, ...] = field(default=(), compare=False, repr=False)  # as they stand in the text

    @property
    def remarks(self) -> list[Diagnostic]:
        """What is legal and still looks wrong, in text order."""
        found = [*remarks(self.wheres), *looping(self.written), *unused(self.written)]
        return sorted(found, key=lambda d: (d.loc.line, d.loc.column))

    def __str__(self) -> str:
        return "\n".join([*map(print_kernel, self.kernels), *map(print_instruction, self.instructions)])


def parse_file(source: str | Path, file: str = "<string>") -> Module:
    """Every kernel and instruction in a file: its path, its name (``matmul.isam``) or its text, which ``file`` names in
    diagnostics. Raises ``IsamError`` with every fault found."""
    if isinstance(source, str) and _is_name(source):
        source = Path(source.strip())
    return parse_module(*_read(source, file))


def parse_module(text: str, file: str = "<string>") -> Module:
    """Every kernel and instruction in ``text``. Raises ``IsamError`` with every fault found: those of the text and,
    where there are any, those of meaning in what is well written (else :func:`isam.ir.verify.verify` finds them)."""
    lines, report = tokenize(_text(text, file), file)
    found, report = laid_out(lines, report)
    names: dict[str, Loc] = {}
    kernels: list[Kernel] = []
    instructions: list[Instruction] = []
    for d in found:
        if d.name in names:
            report.add("L201", f"the name '{d.name}' is used twice in this file", d.loc,
                       f"first in line {names[d.name].line}")
        names.setdefault(d.name, d.loc)
        kernel = lowered(d, report)
        if d.keyword == "kernel":
            kernels.append(kernel)
        else:
            instructions.append(Instruction(d.name, kernel, loc=d.loc))
    if report.found:
        _look_over(found, [*kernels, *(i.body for i in instructions)], report)
    report.check()
    return Module(tuple(kernels), tuple(instructions), tuple(report.wheres), tuple(found))


def _is_name(text: str) -> bool:
    return text.strip().endswith(".isam") and len(text.split()) == 1


def _read(source: str | Path, file: str) -> tuple[str, str]:
    """A text and its name; of a path, what the file holds."""
    if not isinstance(source, Path):
        return source, file
    try:
        return source.read_text(encoding="utf-8"), str(source)
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "it is no UTF-8 text"
        raise fail("L143", f"cannot read {source}: {why}", Loc(str(source)), "the path of a file of kernels") from None


def _text(text: object, file: str) -> str:
    if not isinstance(text, str):
        hint = "decode it: text.decode()" if isinstance(text, bytes | bytearray) else "isam.parse takes a text"
        raise fail("L142", f"a text is needed, not {type(text).__name__}", Loc(file, 1, 1), hint)
    if _is_name(text):
        raise fail("L142", f"'{text.strip()}' is the name of a file, not a text", Loc(file, 1, 1),
                   f"give its path: pathlib.Path({text.strip()!r})")
    return text


def _look_over(found: list[Definition], bodies: list[Kernel], report: Report) -> None:
    """Adds the faults of meaning of every definition that has no fault of its text: all are told at once (IR-8)."""
    from isam.ir.verify import verify

    starts = sorted(d.loc.line for d in found)
    broken = {max((s for s in starts if s <= f.loc.line), default=0) for f in report.found}
    for body in bodies:
        if body.loc.line not in broken:
            for f in verify(body):
                report.add(f.code, f.message, f.loc, f.hint)


def lowered(d: Definition, report: Report) -> Kernel:
    lowering = Lowering(d, report)
    made = lowering.kernel()
    return replace(made, template=partial(_again, d, report, lowering.mentioned)) if made.params else made


def _again(d: Definition, report: Report, mentioned: set[str], values: Mapping[str, int]) -> Kernel:
    """The kernel of a text with other compile-time constants."""
    known = {s.name: s.default for s in d.syms if s.default is not None}
    again = Report(report.file, report.lines)
    for name, value in values.items():
        if name not in known:
            raise fail("L205", f"'{d.name}' has no compile-time constant '{name}'", d.loc,
                       f"known: {', '.join(known)}")
        if value != known[name] and name not in mentioned:
            raise fail("L206", f"the constant '{name}' was put in as {known[name]} before this text was printed",
                       d.loc,
                       "start from the kernel as it was written")
    made = Lowering(d, again, values).kernel()
    again.check()
    return replace(made, template=partial(_again, d, report, mentioned))


def parse(text: str | Path, file: str = "<string>") -> Kernel | Instruction:
    """The one kernel or instruction in ``text``, or in the file of a path.

    >>> k = parse("kernel twice(N)\\n  in x: f32[N]\\n  out y: f32[N]\\n  forall i < N\\n    y[i] = 2 * x[i]")
    >>> print(k.statements[0].op, k.buffer("y").role)
    mul out
    """
    text, file = _read(text, file)
    m = parse_module(text, file)
    found: list[Kernel | Instruction] = [*m.kernels, *m.instructions]
    if len(found) != 1:
        raise fail("L140", f"expected one kernel or instruction, found {len(found)}", Loc(file, 1, 1),
                   "use parse_file for several" if found else "a kernel begins with 'kernel NAME(SIZES)'")
    return found[0]


def parse_kernel(text: str, file: str = "<string>") -> Kernel:
    """The one kernel in ``text``."""
    found = parse(text, file)
    if isinstance(found, Instruction):
        raise fail("L141", f"expected a kernel, found the instruction '{found.name}'", found.loc, "begin with 'kernel'")
    return found


def parse_instruction(text: str, file: str = "<string>") -> Instruction:
    """The one instruction in ``text``."""
    found = parse(text, file)
    if isinstance(found, Kernel):
        raise fail("L141", f"expected an instruction, found the kernel '{found.name}'", found.loc,
                   "begin with 'instruction'")
    return found


def print_instruction(instruction: Instruction) -> str:
    """The instruction's body as text; operand contracts and costs are the machine description's."""
    return print_kernel(instruction.body, "instruction")
