"""Instructions tried alone: whose fault it is when a kernel's code is refused, or computes something else.

A description's templates are text that only its back end understands. When LLVM refuses the code of a kernel that was
proved, or a result is wrong, each instruction that was called is tried alone: its body is a kernel that must use it.
Where one fails alone, its description is wrong, and where it stands is said; where none does, ISAM is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

from isam.classes import dataclass
from isam.compiler.job import Job
from isam.compiler.stages import new_job, plain_stages
from isam.diagnostics import Diagnostic, InternalError, IsamError
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.schedule.tree import Schedule
from isam.system.bodies import respelt
from isam.system.find import shipped
from isam.system.graph import System

TYPES = ("f32", "f64", "bf16", "i8")  # that operands of any type are tried as, beside those of the machine
MAX_POINTS = 1 << 18  # of a statement of an instruction that is tried
OTHERS = 8  # instructions that were not called and are tried to clear the moves that were


def fault_alone(system: System, instruction: Instruction) -> str | None:
    """What is wrong with an instruction that is called alone; ``None`` when it is right at all sizes tried. Raises
    ``IsamError`` where the machine cannot be made to run it alone."""
    return _tried(system, instruction).fault or None


def culprits(system: System, schedule: Schedule, run: bool) -> list[Diagnostic]:
    """What is wrong with instructions that a schedule calls, each tried alone; empty where all are right. ``run``: what
    they compute counts, not only whether there is code for them."""
    called = schedule.called()
    compute = [i for i in system.compute if i.name in called]
    trials = list(_trials(system, compute, run))
    cleared = {n for t in trials if not t.fault for n in t.called}
    failed = [t for t in trials if t.fault]
    all_failed = [*failed]
    if any(t.called - cleared - {t.name} for t in failed):  # a move may be wrong: do others do with the same ones?
        for t in islice(_trials(system, _unlike(system, called), run), OTHERS):
            all_failed += [t] if t.fault else []
            cleared |= set() if t.fault else t.called
    wrong = {t.name: t for t in failed if t.called - cleared == {t.name}}
    if not wrong and failed:  # what all that fail have in common
        common = frozenset.intersection(*(t.called for t in all_failed)) - cleared
        wrong = dict.fromkeys(sorted(common), failed[0]) if common else {t.name: t for t in failed}
    return [_diagnostic(system.instructions[n], t) for n, t in wrong.items()]


def _unlike(system: System, called: frozenset[str]) -> list[Instruction]:
    """Instructions that were not called and take operands of unlike ranks, those of few operands first."""
    ranks = {tuple((a.role, len(a.shape)) for a in i.body.arguments): i for i in reversed(system.compute)
             if i.name not in called}  # fmt: skip
    return [ranks[r] for r in sorted(ranks, key=lambda r: (len(r), r))]


def theirs(found: list[Diagnostic]) -> bool:
    """Whether a description that did not come with ISAM is at fault."""
    return any(not _ships(d.loc.file) for d in found)


def _ships(file: str) -> bool:
    return any(Path(file).resolve().is_relative_to(root) for root in shipped())


@dataclass(frozen=True, slots=True)
class Trial:
    """An instruction tried alone. ``called``: all that its schedule called, moves included; ``refused``: whether the
    fault is that there is no code for it."""

    name: str
    called: frozenset[str]
    fault: str
    refused: bool = False


def _diagnostic(i: Instruction, t: Trial) -> Diagnostic:
    hint = f"'isam system test FILE -i {i.name}' tries it alone; FILE: the description that is compiled for"
    if i.name != t.name:
        what = f"all that is moved by '{i.name}' is wrong, '{t.name}' among others: {t.fault}"
        return Diagnostic("emission-refused" if t.refused else "emission-value", what, i.loc,
                          f"'isam system test FILE -i {t.name}' tries them together")  # fmt: skip
    if t.refused:
        return Diagnostic("emission-refused", f"no code can be made of the template of '{i.name}': {t.fault}", i.loc,
                          hint)  # fmt: skip
    return Diagnostic("emission-value", f"the template of '{i.name}' computes something else than its body says: "
                      f"{t.fault}", i.loc, hint)  # fmt: skip


def _trials(system: System, some: Iterable[Instruction], run: bool) -> Iterator[Trial]:
    for i in some:
        with suppress(IsamError):  # it cannot be had alone
            yield _tried(system, i, run)


def types_of(system: System) -> tuple[str, ...]:
    """What operands of any type are tried as: the types of the machine's other operands first."""
    own = [b.dtype for i in system.instructions.values() for b in i.body.arguments if b.dtype != ANY]
    return tuple(dict.fromkeys([*own, *TYPES]))


def typed(body: Kernel, dtype: str) -> Kernel:
    """An instruction's body as a kernel may have it: operands of any type, which are of one at a time, are of this."""
    return respelt(body, body.name, {ANY: dtype}, lambda loc: loc) if has_any(body) else body


def has_any(body: Kernel) -> bool:
    """Whether operands may be of any type."""
    return any(b.dtype == ANY for b in body.buffers)


def _tried(system: System, instruction: Instruction, run: bool = True) -> Trial:
    """Raises ``IsamError`` where it cannot be had alone, of an operand of any type: whatever the type."""
    if not has_any(instruction.body):
        return _tried_as(system, instruction, instruction.body, run)
    done, refused = [], []
    for dtype in types_of(system):
        try:
            done.append(_tried_as(system, instruction, typed(instruction.body, dtype), run))
        except IsamError as e:  # what brings or holds the operands need not do so with all types
            refused.append(e)
            continue
        if done[-1].fault:
            return replace(done[-1], fault=f"as {dtype}: {done[-1].fault}")
    if not done:
        raise refused[0]
    return replace(done[0], called=frozenset[str]().union(*(t.called for t in done)))


def _tried_as(system: System, instruction: Instruction, body: Kernel, run: bool) -> Trial:
    called: set[str] = set()
    for sizes in _sizes(instruction):
        job = new_job(body.with_sizes(sizes), system, {}, None, require=(instruction.name,))
        try:
            plain_stages(job)
        except InternalError as e:
            called |= job.schedule.called() if job.schedule is not None else {instruction.name}
            return Trial(instruction.name, frozenset(called), str(e).splitlines()[0], True)
        assert job.schedule is not None
        called |= job.schedule.called()
        if run and (fault := _computed(job, instruction, len(sizes))):
            return Trial(instruction.name, frozenset(called), f"{fault} at {_shown(sizes)}")
    return Trial(instruction.name, frozenset(called), "")


def _shown(sizes: dict[str, int]) -> str:
    return ", ".join(f"{n} = {v}" for n, v in sizes.items()) or "its one size"


def _computed(job: Job, instruction: Instruction, seed: int) -> str | None:
    """What is wrong with a result on random data."""
    from isam.ir.bounds import enclose, outside
    from isam.ir.data import random_arrays
    from isam.runtime.entry import Entry

    k = job.original
    assert job.artifact is not None
    arrays = random_arrays(k, {}, seed)
    given = {n: a.copy() for n, a in arrays.items()}
    made = Entry(job.artifact, job.system.functions())(**given)
    outs = [b.name for b in k.arguments if b.role == "out"]
    results = made if isinstance(made, tuple) else (made,)
    got = dict(zip(outs, results, strict=False)) | {b.name: given[b.name] for b in k.arguments if b.role == "inout"}
    return outside(got, enclose(k, arrays, ulp=max(4.0, 2 * instruction.ulp)))


def _sizes(instruction: Instruction) -> list[dict[str, int]]:
    """The limits, one step below them, and the least sizes; each once."""
    out: list[dict[str, int]] = []
    for pick in (lambda lo, hi, m: hi, lambda lo, hi, m: hi - m, lambda lo, hi, m: -(-max(lo, 1) // m) * m):
        sizes: dict[str, Any] = {}
        for s in instruction.syms:
            hi = s.hi if s.hi is not None else 24 * s.multiple_of
            hi -= hi % s.multiple_of
            sizes[s.name] = max(s.lo, pick(s.lo, hi, s.multiple_of))
        _cut(instruction, sizes)
        if sizes not in out:
            out.append(sizes)
    return out


def _cut(instruction: Instruction, sizes: dict[str, int]) -> None:
    """Halves the largest size until the domain has points that are soon gone through."""
    domains = [s.domain.axes for s in instruction.body.statements]
    while max((prod(max(0, a.extent.evaluate(sizes)) for a in axes) for axes in domains), default=0) > MAX_POINTS:
        able = [s for s in instruction.syms if sizes[s.name] // 2 >= max(s.lo, s.multiple_of)]
        if not able:
            return
        most = max(able, key=lambda s: sizes[s.name])
        sizes[most.name] = sizes[most.name] // 2 // most.multiple_of * most.multiple_of
