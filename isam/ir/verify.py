"""Looks a kernel over once and says everything that is wrong with it (IR-8).

Order: structure (names, roles, ranks, operations), dtypes, then points (ranges, injectivity, written before read).
Points are only examined in statements whose structure is sound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError, Loc
from isam.ir.affine import Affine
from isam.ir.infer import located
from isam.ir.kernel import BINARY, PERMITS, REDUCTIONS, ROLES, UNARY, Access, Axis, Kernel, Recurrence, Statement
from isam.ir.verify_types import check_types

OPERATIONS: dict[str, int] = {op: n for n, ops in ((1, UNARY), (2, BINARY)) for op in ops}
ACCUMULATIONS: dict[str, int] = {"select": 2} | dict.fromkeys(REDUCTIONS, 1)


@dataclass
class Findings:
    """The faults found so far, and the statements whose structure is broken."""

    kernel: Kernel
    found: list[Diagnostic] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)  # positions in text order

    def add(self, code: str, message: str, loc: Loc, hint: str) -> None:
        self.found.append(Diagnostic(code, message, loc, hint))


def verify(kernel: Kernel) -> list[Diagnostic]:
    """Every fault of the kernel, in text order; an empty list means that it is well formed for all admitted sizes.

    Cost: microseconds per statement for boxes; integer sets only where a ``where`` or an uneven shape needs them.
    """
    f = Findings(kernel)
    _names(f)
    placed = list(located(kernel.body))
    for at, (s, outer) in enumerate(placed):
        before = len(f.found)
        _structure(f, s, outer)
        if len(f.found) > before:
            f.broken.add(at)
    if not any(d.code == "V401" for d in f.found):
        check_types(kernel, f.add)
        from isam.ir.verify_points import check_points

        check_points(f)
        told = {(d.code, d.loc) for d in kernel.faults}  # of these, parts may have shown some
        f.found = [*(d for d in f.found if (d.code, d.loc) not in told), *kernel.faults]
    return sorted(f.found, key=lambda d: (d.loc.line, d.loc.column))


def require(kernel: Kernel) -> Kernel:
    """The kernel itself. Raises ``IsamError`` with every fault unless it is well formed."""
    if found := verify(kernel):
        raise IsamError(found)
    return kernel


def _names(f: Findings) -> None:
    k = f.kernel
    seen: set[str] = set()
    for name in [s.name for s in k.syms] + [n for n, _ in k.params]:
        if name in seen:
            f.add("V401", f"the size '{name}' stands in the head twice", k.loc, "remove one of them")
        seen.add(name)
    for b in k.buffers:
        if b.name in seen:
            f.add("V401", f"the name '{b.name}' is used twice", b.loc, "choose another name for the buffer")
        seen.add(b.name)
        if b.role not in ROLES:
            f.add("V401", f"'{b.role}' is no role", b.loc, "roles: " + ", ".join(ROLES))
        _known(f, b.shape, (s.name for s in k.syms), f"the shape of '{b.name}'", b.loc)
    if k.permits - PERMITS:
        f.add("V401", f"nobody can permit {', '.join(sorted(k.permits - PERMITS))}", k.loc,
              "known: " + ", ".join(sorted(PERMITS)))
    written = {s.dest.buffer for s in k.statements}
    for b in k.buffers:
        if b.role == "out" and b.name not in written:
            f.add("V420", f"the output '{b.name}' is never written", b.loc, "assign it, or remove it")
    _loops(f, k.body, ())


def _loops(f: Findings, body: tuple[Statement | Recurrence, ...], outer: tuple[Axis, ...]) -> None:
    syms = {s.name for s in f.kernel.syms}
    for item in body:
        if isinstance(item, Recurrence):
            if item.axis.name in {a.name for a in outer} | syms:
                f.add("V401", f"the name '{item.axis.name}' is used twice", item.loc,
                      "choose another name for the loop")
            _known(f, (item.axis.extent,), syms, "the trip of a loop", item.loc)
            _loops(f, item.body, (*outer, item.axis))


def _known(f: Findings, rows: Iterable[Affine], names: Iterable[str], what: str, loc: Loc) -> None:
    names = set(names)
    for row in rows:
        for n in row.names:
            if n not in names:
                f.add("V401", f"unknown name '{n}' in {what}", loc, "known: " + (", ".join(sorted(names)) or "nothing"))


def _structure(f: Findings, s: Statement, outer: tuple[Axis, ...]) -> None:
    syms = {x.name for x in f.kernel.syms}
    around = {a.name for a in outer}
    own = set(s.domain.names)
    if len(own) < len(s.domain.names) or own & (around | syms):
        f.add("V401", "an axis of this statement has a name that is already in use", s.loc, "rename the axis")
    _known(f, (a.extent for a in s.domain.axes), syms, "the bound of an axis", s.loc)
    _known(f, s.domain.where, syms | around | own, "a condition", s.loc)
    _operation(f, s)
    for a in (s.dest, *(x for x in s.sources if isinstance(x, Access))):
        b = f.kernel.by_name.get(a.buffer)
        if b is None:
            f.add("V401", f"unknown buffer '{a.buffer}'", a.loc, "known: " + ", ".join(f.kernel.by_name))
        elif len(b.shape) != len(a.index):
            f.add("V402", f"'{a.buffer}' has {len(b.shape)} dimensions, found {len(a.index)} indices", a.loc,
                  f"expected {len(b.shape)} indices")
        _known(f, a.index, syms | around | own, "an index", a.loc)
    b = f.kernel.by_name.get(s.dest.buffer)
    if b is not None and b.role in ("in", "const"):
        f.add("V403", f"'{b.name}' is declared '{b.role}' and written here", s.dest.loc,
              f"declare it 'inout', or write to a temporary instead of '{b.name}'")


def _operation(f: Findings, s: Statement) -> None:
    if s.accumulate:
        want = ACCUMULATIONS.get(s.op)
        if want is None:
            f.add("V404", f"'{s.op}' cannot accumulate: it is not commutative and associative", s.loc,
                  "accumulate with +=, *=, max= or min=")
    else:
        want = OPERATIONS.get(s.op)
        if want is None:
            f.add("V404", f"there is no operation '{s.op}'", s.loc, "known: " + ", ".join(OPERATIONS))
    if want is not None and want != len(s.sources):
        f.add("V404", f"'{s.op}' takes {want} operands, found {len(s.sources)}", s.loc, f"expected {want}")
