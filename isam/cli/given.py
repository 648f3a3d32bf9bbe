"""What the user gives on the command line: sources, kernels by name, sizes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.cli.answer import SUBJECT
from isam.diagnostics import Diagnostic, IsamError, Loc, closest, did_you_mean, fail

if TYPE_CHECKING:
    from isam.artifact import Artifact
    from isam.ir.kernel import Kernel
    from isam.ir.text import Module

LARGEST = 16 << 20  # bytes of a source
_SIZE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([+-]?\d+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Source:
    """A text, the name it has in diagnostics, and the name of the kernel asked for (empty: the only one)."""

    text: str
    file: str
    name: str = ""

    def module(self) -> Module:
        """Every kernel and instruction in it, at least one. Raises ``IsamError`` with all faults."""
        from isam.ir.text import parse_module

        SUBJECT.set(self.text)
        found = parse_module(self.text, self.file)
        if not found.kernels and not found.instructions:
            raise fail("cli-kernel", f"{self.file} has no kernel and no instruction", Loc(self.file, 1, 1),
                       "a kernel begins with 'kernel NAME(SIZES)'")  # fmt: skip
        return found


def source(spec: str) -> Source:
    """``FILE``, ``FILE:NAME``, ``-`` or ``-:NAME``. Raises ``IsamError`` when it cannot be read."""
    file, name = spec, ""
    if not os.path.exists(spec) and ":" in spec:
        file, _, name = spec.rpartition(":")
        if not name:
            raise fail("cli-kernel", f"'{spec}' names nothing behind the ':'", Loc(file), f"FILE:NAME, or {file}")
    if file == "-":
        content = sys.stdin.buffer.read(LARGEST + 1)
        return Source(_decoded(content, "<stdin>"), "<stdin>", name)
    try:
        with open(file, "rb") as f:
            content = f.read(LARGEST + 1)
    except (OSError, ValueError) as e:
        hint = _near(file)
        raise fail("cli-file", f"cannot read {file}: {getattr(e, 'strerror', None) or e}", hint=hint) from None
    return Source(_decoded(content, file), file, name)


def bodies(spec: str) -> tuple[list[tuple[str, Kernel]], list[Diagnostic], Source]:
    """What ``spec`` names, or all in the file: keyword and body of each, with the remarks on them. Raises
    ``IsamError``."""
    given = source(spec)
    module = given.module()
    found = [("kernel", k) for k in module.kernels] + [("instruction", i.body) for i in module.instructions]
    if not given.name:
        return found, list(module.remarks), given
    chosen = [(word, k) for word, k in found if k.name == given.name]
    if not chosen:
        names = [k.name for _, k in found]
        hint = did_you_mean(given.name, names) or f"it has: {', '.join(names) or 'nothing'}"
        raise fail("cli-kernel", f"{given.file} has no '{given.name}'", Loc(given.file), hint)
    return chosen, [d for _, k in chosen for d in _remarks(module, k)], given


def _remarks(module: Module, chosen: Kernel) -> list[Diagnostic]:
    """Those on one kernel or instruction of the file."""
    begins = [x.loc.line for x in (*module.kernels, *module.instructions)]
    ends = min((n for n in begins if n > chosen.loc.line), default=sys.maxsize)
    return [d for d in module.remarks if chosen.loc.line <= d.loc.line < ends]


def kernel(spec: str) -> tuple[Kernel, Source]:
    """The kernel that ``spec`` names. Raises ``IsamError``: no such file, faults in it, several kernels and no name."""
    from isam.ir.verify import require

    given = source(spec)
    module = given.module()
    kernels = {k.name: k for k in module.kernels}
    names = ", ".join(kernels)
    if given.name:
        if given.name not in kernels:
            hint = did_you_mean(given.name, kernels) or f"kernels: {names or 'none'}"
            raise fail("cli-kernel", f"{given.file} has no kernel '{given.name}'", Loc(given.file), hint)
    elif len(kernels) != 1:
        hint = f"name one: {spec}:{next(iter(kernels))}" if kernels else "a kernel begins with 'kernel NAME(...)'"
        raise fail("cli-kernel", f"{given.file} has {len(kernels)} kernels" + (f": {names}" if names else ""),
                   Loc(given.file), hint)  # fmt: skip
    chosen = kernels[given.name] if given.name else next(iter(kernels.values()))
    for d in _remarks(module, chosen):  # of the others `isam check` speaks
        sys.stderr.write(d.remark + "\n")
    SUBJECT.set(str(chosen))
    return require(chosen), given


def sizes(texts: Iterable[str] | None) -> dict[str, int]:
    """``["M=4", "N=5,K=6"]`` as numbers. Raises ``IsamError`` with every fault."""
    out: dict[str, int] = {}
    faults: list[Diagnostic] = []
    for text in (part for t in texts or () for part in t.split(",")):
        found = _SIZE.fullmatch(text)
        if not found:
            faults.append(Diagnostic("cli-size", f"-D {text}: not of the form NAME=NUMBER", hint="such as -D M=512"))
        elif len(found[2]) > 20:
            many = f"-D {found[1]}=...: a number of {len(found[2])} digits"
            faults.append(Diagnostic("cli-size", many, hint="20 at most; a size is a number of 64 bits"))
        elif found[1] in out:
            faults.append(Diagnostic("cli-size", f"-D {text}: '{found[1]}' is given twice"))
        else:
            out[found[1]] = int(found[2])
    if faults:
        raise IsamError(faults)
    return out


def sized(kernel: Kernel, numbers: dict[str, int], *, whole: bool = False) -> Kernel:
    """The kernel with these sizes and constants put in. ``whole``: no size may stay open. Raises ``IsamError``."""
    kernel, rest = with_numbers(kernel, numbers)
    if whole:
        need_sizes(kernel, rest)
    kernel = kernel.with_sizes(rest)
    SUBJECT.set(str(kernel))
    return kernel


def with_numbers(kernel: Kernel, numbers: dict[str, int]) -> tuple[Kernel, dict[str, int]]:
    """The kernel with these constants put in, and the sizes as they are: so a report of a fault may make them smaller.
    Raises ``IsamError``."""
    from isam.ir.sizes import with_constants

    kernel, rest = with_constants(kernel, numbers)
    SUBJECT.set(str(kernel))
    return kernel, rest


def need_sizes(kernel: Kernel, numbers: Iterable[str], free: Iterable[str] = ()) -> None:
    """Raises ``IsamError`` when a size is given by nobody; ``free``: sizes that may stay open."""
    missing = [s.name for s in kernel.given if s.name not in {*numbers, *free}]
    if missing:
        hint = " ".join(f"-D {n}=..." for n in missing)
        raise fail("cli-size", f"'{kernel.name}' needs the sizes {', '.join(missing)}", kernel.loc, hint)


def fixed_by(kernel: Kernel, artifact: Artifact) -> dict[str, int]:
    """The sizes of a kernel that its artifact is for: stated, or fixed by the shapes of its arguments."""
    from isam.ir.signature import arguments_of, sizes_of
    from isam.runtime.signature import Signature

    stated = {n: v for n, v in artifact.given if any(s.name == n for s in kernel.given)}
    shapes = {p.name: p.shape for p in Signature.of(artifact).parameters if p.shape is not None}
    free = {s.name for s in artifact.sizes} | stated.keys()
    rest = kernel.with_sizes(stated)
    open_ = [s for s in sizes_of(rest) if s.name not in free]
    found = Signature(kernel.name, arguments_of(rest), open_).infer(shapes)
    return {s.name: v for s in kernel.given if (v := (found | stated).get(s.name)) is not None}


def is_artifact(spec: str) -> bool:
    """Whether the file is a compiled kernel (a zip archive) and no text."""
    try:
        with open(spec, "rb") as f:
            return f.read(2) == b"PK"
    except (OSError, ValueError):
        return False


def _decoded(content: bytes, file: str) -> str:
    if len(content) > LARGEST:
        raise fail("cli-file", f"{file} is larger than {LARGEST >> 20} MiB: not a source text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        column = e.start - (content.rfind(b"\n", 0, e.start) + 1) + 1
        hint = f"a compiled kernel? isam run {file}" if content.startswith(b"PK") else ""
        raise fail("cli-file", "this is not UTF-8 text", Loc(file, line, column), hint) from None


def _near(file: str) -> str:
    """A hint naming a file beside it that is called alike; an ending that many have makes nothing alike."""
    wanted = Path(file)
    try:
        beside = [p for p in wanted.parent.iterdir() if p.name != wanted.name] if wanted.parent.is_dir() else []
    except (OSError, ValueError):
        return ""
    known = {p.stem: p.name for p in sorted(beside, key=lambda p: (p.suffix == wanted.suffix, p.name))}
    close = closest(wanted.stem, known)
    return f"did you mean '{known[close[0]]}'?" if close else ""
