"""Why an instruction does not fit, or how it does: the deepest mismatch with carets into both sources, near misses."""

from __future__ import annotations

import json
from dataclasses import field
from pathlib import Path
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import Loc
from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping
from isam.ir.mismatch import Mismatch
from isam.ir.printer import print_statement as show
from isam.mapper.goals import ungranted
from isam.mapper.match import Matches, match, normal
from isam.mapper.nearest import nearest
from isam.mapper.repair import CURRENCIES, Repair, repairs
from isam.mapper.repair.shape import turning

SCHEMA = "isam.explanation/2"
SHOWN = 8  # mappings printed
TOLD = ("currency", "change", "size", "then", "steps")  # of a repair, in JSON
NONE = "no change of program, shape or hardware was found that would do alone"


@dataclass(frozen=True)
class Explanation:
    """Truthy when the instruction fits. ``sources``: the texts of the kernel and of the instruction, for the carets
    (empty: files on disk are read, else statements are printed anew).

    ``near``: every contradiction met, deepest first; the first is the reason given. ``repairs``: changes after which
    the instruction fits (or, where it fits, after which its operands lie as it takes them), each tried.
    """

    kernel: Kernel
    instruction: Instruction
    mappings: tuple[Mapping, ...]
    near: tuple[Mismatch, ...]
    repairs: tuple[Repair, ...] = ()
    sources: tuple[str, str] = field(default=("", ""), compare=False)

    def __bool__(self) -> bool:
        return bool(self.mappings)

    @property
    def depth(self) -> int:
        """How far the search came: of several explanations the deepest says most."""
        return self.near[0].depth if self.near else 0

    @property
    def reason(self) -> Mismatch | None:
        """The deepest mismatch; None when the instruction fits."""
        return None if self.mappings else self.near[0]

    @property
    def what(self) -> str:
        """What the instruction carries out, where it fits."""
        most, whole = max((len(m.statements) for m in self.mappings), default=0), len(normal(self.kernel).statements)
        return self.kernel.name if most == whole else f"{most} of {whole} statements of {self.kernel.name}"

    def __str__(self) -> str:
        name = self.instruction.name
        if self.mappings:
            lines = [f"{name} carries out {self.what} in {len(self.mappings)} way(s):"]
            lines += [f"  {m}" for m in self.mappings[:SHOWN]]
            more = len(self.mappings) - SHOWN
            lines += [f"  and {more} more"] if more > 0 else []
            return "\n".join([*lines, *self._repairs("some operand is laid out anew for it; none would be with:")])
        lines = [f"{name} does not fit {self.kernel.name}:"]
        for n, m in enumerate(self.near[:1]):
            lines += self._full(m, n)
        lines += self._repairs("it would fit with:") or [f"  {NONE}"]
        others = self._groups()
        if others:
            lines.append("  other near misses:")
            lines += [f"    [{kind}] {text}" + (f" (and {n - 1} like it)" if n > 1 else "") for kind, text, n in others]
        return "\n".join(lines)

    def _repairs(self, title: str) -> list[str]:
        lines: list[str] = []
        for c in CURRENCIES:
            for r in [r for r in self.repairs if r.currency == c]:
                lines += [f"    {c}: {r.change}", f"      then {r.then}"]
        return [f"  {title}", *lines] if lines else []

    def _full(self, m: Mismatch, n: int) -> list[str]:
        lines = [f"  [{m.kind}] the kernel has {m.have}"]
        lines += self._quote(0, m.kernel_loc, self.kernel, m.about("statement"), m.about("buffer"))
        lines.append(f"  the instruction needs {m.need}")
        lines += self._quote(1, m.instruction_loc, normal(self.instruction.body), m.about("instruction_statement"),
                             m.about("operand"))  # fmt: skip
        if m.partial:
            lines.append(f"  agreed before that ({m.depth}): " + ", ".join(f"{a} = {b}" for a, b in m.partial))
        return lines

    def _quote(self, side: int, loc: Loc, body: Kernel, statement: int | None, buffer: str | None) -> list[str]:
        """The line that ``loc`` points to with a caret; where the text is not at hand, the statement printed anew."""
        line = _line(loc, self.sources[side])
        if line is not None:
            return [f"    {loc}", f"      {line}", "      " + " " * (loc.column - 1) + "^"]
        if statement is None or statement >= len(body.statements):
            return [f"    {loc}"]
        text = show(body.statements[statement])
        at = max(0, text.find(f"{buffer}[")) if buffer else 0
        return [f"    {loc}", f"      {text}", "      " + " " * at + "^"]

    def _groups(self) -> list[tuple[str, str, int]]:
        groups: dict[tuple[str, Any, Any], list[Mismatch]] = {}
        for m in self.near[1:]:
            groups.setdefault((m.kind, m.about("statement"), m.about("instruction_axis")), []).append(m)
        return [(k[0], f"{ms[0].have}; needs {ms[0].need}", len(ms)) for k, ms in groups.items()]

    def to_json(self) -> str:
        """A JSON document; its schema is versioned."""
        return json.dumps(
            {
                "schema": SCHEMA, "kernel": self.kernel.name, "instruction": self.instruction.name,
                "fits": bool(self.mappings), "mappings": [str(m) for m in self.mappings],
                "near": [_plain(m) for m in self.near],
                "repairs": [{n: getattr(r, n) for n in TOLD} for r in self.repairs],
            },
            indent=1,
        )  # fmt: skip


def explain(
    kernel: Kernel, instruction: Instruction, *, strided: bool = False, sources: tuple[str, str] = ("", "")
) -> Explanation:
    """Lays ``instruction`` beside ``kernel`` and keeps everything that was met on the way (MAP-8)."""
    found = match(kernel, instruction, strided=strided)
    if isinstance(found, Matches) and not instruction.takes <= kernel.permits:
        ways = (ungranted(found.kernel, instruction),)
        return Explanation(found.kernel, instruction, (), ways, repairs(found.kernel, instruction, ways), sources)
    if isinstance(found, Matches):
        mappings = tuple(found)
        turned = turning(found.kernel, instruction, mappings)
        return Explanation(found.kernel, instruction, mappings, (), turned, sources)
    same, ways = normal(kernel), tuple(nearest(kernel, instruction, strided=strided))
    return Explanation(same, instruction, (), ways, repairs(same, instruction, ways), sources)


def _line(loc: Loc, text: str) -> str | None:
    if not loc.line:
        return None
    if not text:
        path = Path(loc.file)
        if loc.file.startswith("<") or not path.is_file():
            return None
        text = path.read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    return lines[loc.line - 1].expandtabs(1) if loc.line <= len(lines) else None


def _plain(m: Mismatch) -> dict[str, Any]:
    return {
        "kind": m.kind, "have": m.have, "need": m.need, "kernel": str(m.kernel_loc),
        "instruction": str(m.instruction_loc), "depth": m.depth, "partial": [list(p) for p in m.partial],
        "subject": {k: _json(v) for k, v in m.subject},
    }  # fmt: skip


def _json(value: Any) -> Any:
    if isinstance(value, tuple) and not isinstance(value, Affine):
        return [_json(v) for v in value]
    return value if value is None or isinstance(value, int | str) else str(value)
