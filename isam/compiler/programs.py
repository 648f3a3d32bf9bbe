"""Random programs made from a description alone: instructions of a machine, strung together, are kernels it must run.

A program's statements are bodies of instructions at random sizes, within their limits or beyond; an operand is what an
earlier one left, where dtype and shape allow it, or a new argument. All that a program does is done with arguments and
reaches a result, so that what any of its instructions does wrong is seen. What the compiler makes of it is executed by
the strict simulator in residues modulo a prime and must equal the oracle, without tolerance. Of a program that is wrong
as few statements are left as are still wrong together, and the calls that made what is wrong are named.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from math import inf

import numpy as np

from isam.classes import dataclass
from isam.compiler.alone import has_any, typed, types_of
from isam.compiler.smallest import Sizes, smallest
from isam.compiler.stages import new_job, plain_stages
from isam.diagnostics import InternalError, IsamError
from isam.ir.kernel import Buffer, Kernel, Statement
from isam.ir.text import print_kernel
from isam.ir.verify import verify
from isam.schedule.tree import Issue, Schedule, distinct
from isam.system.graph import System

MAX_ELEMENTS = 1 << 14  # of one operand, so that the simulator is done soon
MAX_POINTS = 1 << 17  # of one statement
TRIES = 200  # in a row without a program, after which there is taken to be none
RESULTS = ("out", "inout")  # roles of operands that are written
FREE = 24  # sizes without a limit stay below


@dataclass
class Use:
    """What programs made a machine do: calls by instruction, by edge (source, target, instruction) and by unit."""

    instructions: Counter[str] = field(default_factory=Counter)
    edges: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)

    def add(self, schedule: Schedule) -> None:
        for tree in (schedule.bind, schedule.call):
            for n in distinct(tree):
                if isinstance(n, Issue):
                    self.instructions[n.instruction] += 1
                    self.units[n.unit] += 1
                    if n.is_move:
                        role = {b.name: b.role for b in schedule.system.instructions[n.instruction].body.arguments}
                        ends = sorted(n.operands, key=lambda o: role[o.name] == "out")
                        self.edges[ends[0].place.memory, ends[-1].place.memory, n.instruction] += 1

    def unused(self, system: System) -> dict[str, list[str]]:
        """What of the machine no program has used."""
        edges = {f"{m.source} -> {m.target} by {m.by}": (m.source, m.target, m.by) for m in system.moves}
        return {
            "instructions": [i.name for i in system.compute if i.name not in self.instructions],
            "edges": [text for text, e in edges.items() if e not in self.edges],
            "units": [u for u in system.units if u not in self.units],
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """``verdict``: right, wrong, or no, with the reason, of which ``whole`` is all that was said; ``kernel``: the
    program, of one that is wrong the smallest part found that is."""

    kernel: Kernel
    verdict: str
    reason: str = ""
    whole: str = ""

    def __str__(self) -> str:
        """The program as a file that reads back in."""
        return print_kernel(self.kernel)


def programs(system: System, seed: int, use: Use, end: float = inf) -> Iterator[Outcome]:
    """Random programs on the machine, compiled and judged; over at ``end`` (of ``time.perf_counter``), and where many
    tries in a row (``TRIES``) make none. ``use`` gathers what schedules use."""
    machine = replace(system, backend="simulator")
    rng = random.Random(seed)
    misses = 0
    while misses < TRIES and time.perf_counter() <= end:
        kernel = program(machine, rng, rng.randint(1, 5))
        misses += 1
        if kernel is not None:
            misses = 0
            yield _judged(kernel, machine, rng.randrange(1 << 30), use)


def _judged(kernel: Kernel, machine: System, seed: int, use: Use) -> Outcome:
    """What becomes of the program, or of the smallest part of it that is wrong."""
    found = _tried(kernel, machine, seed, use)
    if found.verdict != "wrong":
        return found

    def shows(part: Kernel, _: Sizes) -> bool:
        return not verify(part) and _tried(part, machine, seed, Use()).verdict == "wrong"

    part, _ = smallest(kernel, {}, shows)
    return _tried(part, machine, seed, Use())


def _tried(kernel: Kernel, machine: System, seed: int, use: Use) -> Outcome:
    from isam.codegen.simulator import residues, simulate
    from isam.codegen.simulator.fault import SimulationFault
    from isam.ir import oracle

    arrays = oracle.inputs(kernel, {}, seed)
    job = new_job(kernel, machine, {}, None)
    try:
        plain_stages(job)
        assert job.schedule is not None
        use.add(job.schedule)
        got = simulate(job.schedule, arrays, residues(seed))
    except IsamError as e:
        return Outcome(kernel, "no", e.diagnostics[0].message.splitlines()[0], str(e))
    except SimulationFault as e:  # its text names the call
        return Outcome(kernel, "wrong", str(e))
    except InternalError as e:  # of the compiler
        return Outcome(kernel, "wrong", str(e).splitlines()[0])
    want = oracle.run_modular(kernel, arrays, {}, seed)
    for name, expected in want.items():
        wrong = np.argwhere(np.asarray(got[name] != expected))
        if len(wrong):
            at = ", ".join(map(str, wrong[0]))
            return Outcome(kernel, "wrong", f"{name}[{at}] differs from the oracle's; {_made(job.schedule, name)}")
    return Outcome(kernel, "right")


def _made(schedule: Schedule, name: str) -> str:
    """Which instructions make a buffer, and which move data."""
    made: dict[str, None] = {}
    moves: dict[str, None] = {}
    for n in (n for tree in (schedule.bind, schedule.call) for n in distinct(tree) if isinstance(n, Issue)):
        written = {b.name for b in schedule.system.instructions[n.instruction].body.arguments if b.role in RESULTS}
        if n.is_move:
            moves[n.instruction] = None
        elif any(o.name in written and o.tile.buffer == name for o in n.operands):
            made[n.instruction] = None
    return f"made by {', '.join(made) or 'no instruction'}, moved by {', '.join(moves) or 'none'}"


def program(system: System, rng: random.Random, length: int) -> Kernel | None:
    """A kernel of so many instructions' bodies; None when this throw of the dice makes none."""
    families = sorted({i.family or i.name for i in system.compute})
    if not families:
        return None
    made = _Program(rng)
    for _ in range(length):
        family = rng.choice(families)
        i = rng.choice([i for i in system.compute if (i.family or i.name) == family])
        made.add(typed(i.body, rng.choice(types_of(system))) if has_any(i.body) else i.body)
    kernel = made.kernel()
    return kernel if kernel.body and not verify(kernel) else None


class _Program:
    def __init__(self, rng: random.Random):
        self.rng = rng
        self.buffers: dict[str, Buffer] = {}
        self.body: list[Statement] = []
        self.told: set[str] = set()  # buffers that hold something of an argument, not literals alone

    def add(self, body: Kernel) -> None:
        """An instruction's body at some sizes, on operands that are there or new."""
        old = [b for b in self.buffers.values() if b.role in RESULTS]
        inputs = [a for a in body.arguments if a.role != "out"]
        sizes: dict[str, int] = {}
        played: dict[str, str] = {}
        if old and inputs:
            operand, buffer = self.rng.choice(inputs), self.rng.choice(old)
            tells = buffer.name in self.told or (operand.role == "inout" and len(inputs) > 1)  # a sum begins with 0
            if tells and operand.dtype == buffer.dtype and _same(operand, buffer, sizes):
                played[operand.name] = buffer.name
        for s in body.syms:
            if s.name not in sizes:
                top = s.hi if s.hi is not None else FREE
                top = self.rng.choice([top, top, min(top, 5), top + top // 2 + 1])
                sizes[s.name] = max(s.lo, 1, self.rng.randint(1, top) // s.multiple_of * s.multiple_of)
        whole = body.with_sizes(sizes)
        if _elements(whole) > MAX_ELEMENTS or _points(whole) > MAX_POINTS or whole.syms:
            return
        for b in whole.buffers:
            if b.name not in played:
                name = played[b.name] = f"b{len(self.buffers)}"
                self.buffers[name] = replace(b, name=name, declared=b.role != "temp")
                self.told |= {name} if b.role in ("in", "const", "inout") else set()
        for s in (it.renamed(played) for it in whole.statements):
            self.body.append(s)
            self.told |= {s.dest.buffer} if any(a.buffer in self.told for a in s.reads) else set()

    def kernel(self) -> Kernel:
        """All that was added; what something else is made of last may be a temporary."""
        last = {name: s for s in self.body for name in (s.dest.buffer, *(a.buffer for a in s.reads))}
        buffers = []
        for b in self.buffers.values():
            handed_on = b.role == "out" and last[b.name].dest.buffer != b.name
            inner = handed_on and self.rng.random() < 0.5
            buffers.append(replace(b, role="temp") if inner else replace(b, role="in") if b.role == "const" else b)
        return Kernel("program", (), tuple(buffers), tuple(self.body))


def _same(operand: Buffer, buffer: Buffer, sizes: dict[str, int]) -> bool:
    """Whether the operand can have the buffer's shape; ``sizes`` gets what that takes."""
    if len(operand.shape) != len(buffer.shape):
        return False
    for e, have in zip(operand.shape, buffer.shape, strict=True):
        if e.is_constant:
            if e.const != have.const:
                return False
        elif len(e.terms) == 1 and e.terms[0][1] == 1 and e.const == 0:
            if sizes.setdefault(e.names[0], have.const) != have.const:
                return False
        else:
            return False
    return True


def _elements(kernel: Kernel) -> int:
    out = 1
    for b in kernel.buffers:
        n = 1
        for e in b.shape:
            n *= max(1, e.const)
        out = max(out, n if b.role != "temp" else 1)
    return out


def _points(kernel: Kernel) -> int:
    out = 1
    for s in kernel.statements:
        n = 1
        for a in s.domain.axes:
            n *= max(1, a.extent.const)
        out = max(out, n)
    return out


