"""Statements as their author wrote them: values that the three-operand form names, and nobody else, are written out."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Kernel, Source, Statement
from isam.ir.operators import ACCUMULATION, INFIX
from isam.ir.printer import print_source, print_statement, print_value
from isam.once import once

LONGEST = 100  # characters; of longer values the inner ones are left out
DEEPEST = 6


def hidden(kernel: Kernel, buffer: object) -> bool:
    """Whether the buffer is a value that the text does not name: what is written to it stands where it is computed."""
    return buffer in _hidden(kernel)


@once
def _hidden(kernel: Kernel) -> frozenset[str]:
    temps = {b.name for b in kernel.buffers if b.role == "temp" and not b.declared}
    named = {s.dest.buffer for s in kernel.statements if s.dest.loc != s.loc or not s.loc.line}
    return frozenset(temps - named)


def spelt(s: Statement, kernel: Kernel) -> str:
    """``y[i] += i32(a[i]) * i32(b[i])`` of ``y[i] += t3[i]``; of a statement that makes such a value, the value."""
    if not any(hidden(kernel, a.buffer) for a in (s.dest, *s.reads)):
        return print_statement(s, kernel)
    for depth in range(DEEPEST, -1, -1):
        args = [_value(x, kernel, depth) for x in s.sources]
        text = args[0] if s.accumulate and s.op in ACCUMULATION else print_value(s, _grouped(s, args), kernel)
        if not hidden(kernel, s.dest.buffer):
            text = f"{s.dest} {ACCUMULATION.get(s.op, '=') if s.accumulate else '='} {text}"
        if len(text) <= LONGEST:
            return text
    return print_statement(s, kernel)


def written(x: Source, kernel: Kernel) -> str:
    """The value of an access; its buffer's name where the text names it."""
    if not isinstance(x, Access) or not hidden(kernel, x.buffer):
        return x.buffer if isinstance(x, Access) else print_source(x)
    told = (_value(x, kernel, depth) for depth in range(DEEPEST, 0, -1))
    return next((t for t in told if len(t) <= LONGEST and t != "..."), x.buffer)


def _grouped(s: Statement, args: list[str]) -> list[str]:
    """Arguments that are operations themselves, in parentheses where this one is an operator."""
    if s.op not in INFIX and s.op not in ("neg", "not"):
        return args
    return [f"({a})" if " " in a.replace(", ", "") and not _closed(a) else a for a in args]


def _closed(text: str) -> bool:
    """Whether a text is one call or one element: all that is in it lies within its brackets."""
    depth, inside = 0, text.find("(") if "(" in text else text.find("[")
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if depth == 0 and i >= inside and c in ")]" and i < len(text) - 1:
            return False
    return inside > 0 and text[-1] in ")]" and " " not in text[:inside]


def _value(x: Source, kernel: Kernel, depth: int) -> str:
    if not isinstance(x, Access) or not hidden(kernel, x.buffer):
        return print_source(x)
    made = [s for s in kernel.statements if s.dest.buffer == x.buffer]
    if depth == 0 or len(made) != 1 or made[0].accumulate:
        return "..."
    (s,), by = made, dict[str, Affine]()
    for row, at in zip(s.dest.index, x.index, strict=True):
        if len(row.terms) != 1 or row != Affine.of(row.terms[0][0]):
            return "..."
        by[row.terms[0][0]] = at
    sources = (Access(a.buffer, tuple(r.substitute(by) for r in a.index)) if isinstance(a, Access) else a
               for a in s.sources)  # fmt: skip
    return print_value(s, _grouped(s, [_value(a, kernel, depth - 1) for a in sources]), kernel)
