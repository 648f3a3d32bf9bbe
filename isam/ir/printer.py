"""Kernels to text in three-operand form. Parsing the text gives an equal kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isam.diagnostics import Loc
from isam.ir.affine import Affine
from isam.ir.infer import temporaries
from isam.ir.kernel import (
    PERMITS_DEFAULT,
    Access,
    Buffer,
    Domain,
    Item,
    Kernel,
    Literal,
    Recurrence,
    Source,
    Statement,
    Sym,
)
from isam.ir.operators import ACCUMULATION, INFIX


def print_kernel(kernel: Kernel, keyword: str = "kernel") -> str:
    """The kernel as text, ending with a newline; ``keyword`` is ``kernel`` or ``instruction``."""
    head = [print_sym(s) for s in kernel.syms] + [f"{n}={v}" for n, v in kernel.params]
    lines = [f"{keyword} {kernel.name}({', '.join(head)})"]
    if kernel.permits != (PERMITS_DEFAULT if keyword == "kernel" else frozenset()):
        lines.append("  permits " + (", ".join(sorted(kernel.permits)) or "nothing"))
    lines.extend(_declarations(kernel))
    lines.extend(_body(kernel.body, "  ", kernel))
    return "\n".join(lines) + "\n"


def print_sym(s: Sym) -> str:
    """A size with its range, as in a kernel's head.

    >>> print_sym(Sym("M", 1, 16, 8))
    '1 <= M % 8 <= 16'
    """
    if s.whole is not None:
        return f"{s.name} = {s.whole[0]} // {s.whole[1]}"
    text = s.name + (f" % {s.multiple_of}" if s.multiple_of != 1 else "")
    if s.lo == s.hi:
        return f"{text} == {s.lo}"
    return (f"{s.lo} <= " if s.lo else "") + text + (f" <= {s.hi}" if s.hi is not None else "")


def _declarations(kernel: Kernel) -> list[str]:
    """The buffers; undeclared temporaries only where the parser would not find the same ones by itself."""
    if _found_again(kernel):
        shown = [(b, b.role) for b in kernel.buffers if b.declared]
    else:
        shown = [(b, b.role if b.declared else "auto") for b in kernel.buffers]
    width = max((len(role) for _, role in shown), default=0)
    return [f"  {role:<{width}} {b.name}: {b.dtype}{_shape(b)}" for b, role in shown]


def _shape(b: Buffer) -> str:
    return f"[{', '.join(map(str, b.shape))}]" if b.shape else ""


def _found_again(kernel: Kernel) -> bool:
    faults: list[str] = []

    def say(code: str, message: str, loc: Loc, hint: str) -> None:
        faults.append(code)

    declared = {b.name: b for b in kernel.buffers if b.declared}
    made = temporaries(kernel.body, declared, kernel.syms, {}, say)
    return not faults and (*declared.values(), *made) == kernel.buffers


def _body(body: Sequence[Item], indent: str, kernel: Kernel) -> Iterator[str]:
    for run in _runs(body):
        item = run[0]
        if isinstance(item, Recurrence):
            yield f"{indent}loop {item.axis.name} < {item.axis.extent}"
            yield from _body(item.body, indent + "  ", kernel)
            continue
        boxed = bool(item.domain.axes or item.domain.where)
        if boxed:
            yield f"{indent}{print_domain(item.domain)}"
        for s in run:
            if isinstance(s, Statement):
                yield f"{indent}{'  ' * boxed}{print_statement(s, kernel)}"


def _runs(body: Sequence[Item]) -> list[list[Item]]:
    """Items that stand under one ``forall``: neighbours over one domain, as long as each means the same whether it
    waits for those before it or not, so that nobody reads them as a loop that they are not."""
    out: list[list[Item]] = []
    for item in body:
        last = out[-1] if out else []
        together = isinstance(item, Statement) and all(
            isinstance(s, Statement) and s.domain == item.domain and _pointwise(s, item) for s in last
        )
        if last and together:
            last.append(item)
        else:
            out.append([item])
    return out


def _pointwise(before: Statement, after: Statement) -> bool:
    """Whether what one statement writes and the other touches is the same element at the same point, and no other
    point's."""
    for one, two in ((before, after), (after, before)):
        shared = one.accumulate and (one.reduces or any(len(r.terms) > 1 for r in one.dest.index))
        if any(a.buffer == one.dest.buffer and (a != one.dest or shared) for a in (two.dest, *two.reads)):
            return False
    return True


def print_domain(domain: Domain) -> str:
    """``forall i < M, j < N where j <= i``."""
    text = "forall " + ", ".join(f"{a.name} < {a.extent}" for a in domain.axes)
    if not domain.where:
        return text
    return text.rstrip() + " where " + ", ".join(map(print_condition, domain.where))


def print_condition(e: Affine) -> str:
    """``e >= 0`` with every term on the side where it is positive.

    >>> print_condition(Affine.of("i") - "j" - 1)
    'j + 1 <= i'
    """
    left = Affine(tuple((n, -c) for n, c in e.terms if c < 0), max(0, -e.const))
    right = Affine(tuple((n, c) for n, c in e.terms if c > 0), max(0, e.const))
    return f"{left} <= {right}"


def print_statement(s: Statement, kernel: Kernel | None = None) -> str:
    """One statement; ``kernel`` gives the dtype of a cast's destination (``cast`` without one)."""
    dest, args = str(s.dest), [print_source(x) for x in s.sources]
    if s.accumulate and s.op != "select":
        return f"{dest} {ACCUMULATION[s.op]} {args[0]}"
    return f"{dest} = {print_value(s, args, kernel)}"


def print_value(s: Statement, args: Sequence[str], kernel: Kernel | None = None) -> str:
    """What a statement computes of its sources, printed as ``args``; a sum, apart from what it is added to, is one."""
    if s.accumulate and s.op == "select":
        return f"select({', '.join(args)}, {s.dest})"
    if s.op == "copy":
        return args[0]
    if s.op in ("cast", "cast_sat"):
        target = kernel.buffer(s.dest.buffer).dtype if kernel and s.dest.buffer in kernel.by_name else "cast"
        return f"{'sat_' if s.op == 'cast_sat' else ''}{target}({args[0]})"
    if s.op in INFIX:
        return f"{args[0]} {INFIX[s.op]} {args[1]}"
    if s.op == "neg":
        return f"-{args[0]}" if isinstance(s.sources[0], Access) else f"-({args[0]})"
    return f"not {args[0]}" if s.op == "not" else f"{s.op}({', '.join(args)})"


def print_source(x: Source) -> str:
    return str(x) if isinstance(x, (Access, Literal)) else ""
