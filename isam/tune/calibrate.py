"""What instructions of this CPU take: each carried out alone, many times over, as its template says (SYS-7).

An instruction between registers is repeated on random operands that nothing before it has made, which gives the cycles
until the unit takes the next one; then each call on the result of the last, which gives the latency. Where numbers do
not remain what they were (products of products are denormal or infinite before long), each call takes the first ones
again: sums as they were at first, and in a chain operands whose bits wait for the last result, less what this waiting
takes by itself. A move between memory and registers is repeated over as much memory as each cache holds, and over more
than any. Cycles are those of the CPU's clock, told by a chain of additions, one cycle each.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.codegen.llvm.irtext import ELEMENT, Function, Module, vector
from isam.codegen.llvm.lanes import lane_of, snippets_of, vector_of
from isam.codegen.llvm.template import Setting, expand
from isam.codegen.llvm.tiles import Addressed
from isam.diagnostics import fail
from isam.ir.dtype import ANY, size_of
from isam.ir.instruction import Instruction, Narrow
from isam.ir.kernel import Buffer
from isam.runtime.external import Externals
from isam.runtime.linking import features, initialised, link, target_machine
from isam.system.features import demand, lacking
from isam.system.graph import COUNTED, System
from isam.tune.drift import ROOM, Left, Numbers, drifted
from isam.tune.memory import beyond, random_room
from isam.tune.repeated import REPEATED, Loop, function, left

COPIES = 8  # of an instruction in one iteration, each on operands of its own
SUMS = 12  # registers that sums are in meanwhile: two units of six cycles are kept busy, and 16 registers are enough
SECONDS = 2e-4  # of one measurement at least
TIMES = 5  # the quickest counts: nothing makes code quicker than it is
WORDS = {"double": "i64", "float": "i32", "half": "i16", "bfloat": "i16"}  # as many bits
SHORTEST = 16  # bytes of a register of vectors
LARGE, BELOW = ("i32", "i64"), (1 << 15) - 1  # whole numbers of more than f16 has; those that it has
DRAWN = {"f16": (0x03FF, 0x3C00), "bf16": (0x007F, 0x3F80), "bool": (1, 0)}  # bits drawn, bits set: 1 to 2; 0 or 1


@dataclass(frozen=True, slots=True)
class Measured:
    """Cycles of an instruction, and what the description says; None: not stated, or not to be told (a result that is
    no operand of the next call has no chain). ``narrow``: the forms that the description states, as measured."""

    name: str
    issue: float
    latency: float | None
    stated_issue: float | None
    stated_latency: float | None
    narrow: tuple[Narrow, ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """Bytes per cycle of a move over ``size`` bytes, again and again; ``memory``: the nearest that holds them."""

    name: str
    memory: str
    size: int
    rate: float


@dataclass(frozen=True, slots=True)
class Timed:
    """Cycles of a call, and the numbers that the last calls left."""

    cycles: float
    left: tuple[Numbers, ...]


class Calibration:
    """Measures one machine whose code runs here; of ``times`` turns the quickest counts. Raises :class:`IsamError`
    where this CPU lacks what it needs."""

    def __init__(self, system: System, times: int = TIMES):
        if system.backend != "llvm":
            raise fail("calibrate-backend", f"'{system.name}' has no code that runs here", hint="calibrate 'host'")
        demand(system)
        self.times = times
        self.system, self.vector, self.lane = system, vector_of(system), lane_of(system)
        self.known: dict[str, Timed] = {}  # by code: many instructions are the same to a CPU
        self.snippets = snippets_of(system)
        self.part = 64 if "avx512f" in features() else 32 if "avx" in features() else 16  # bytes of a register
        self.register = "v" if "avx512f" in features() else "x"  # what assembly calls those of vectors
        self.away = beyond()
        self.room = random_room(self.away)
        self.out = np.zeros(ROOM, np.uint8)

    @cached_property
    def clock(self) -> float:
        """Cycles per second: of additions, each of which waits for the one before. What is added is in a register: of a
        number in the code CPUs since Golden Cove add several in a cycle, where they rename registers."""
        module = Module()
        fn = function(module)
        step = fn.op('call i64 asm sideeffect "", "=r,0"(i64 1)')
        loop = Loop(fn, "i64", ["0"])
        x = loop.carried[0]
        for _ in range(64):
            x = fn.op(f'call i64 asm sideeffect "", "=r,0"(i64 {fn.op(f"add i64 {x}, {step}")})')
        (x,) = loop.end([x])
        fn.do(f'call void asm sideeffect "", "r"(i64 {x})')
        return 64 / self._seconds(module, [])[0]

    def instructions(self) -> list[Instruction]:
        """Those between registers, each in its widest form."""
        out = [i for i in self.system.compute if not any(h.kind != COUNTED for h in self._memories(i))]
        return [i for i in out if i.body.arguments and all(b.dtype != ANY for b in i.body.arguments)]

    def runnable(self) -> list[Instruction]:
        """Those of them that this CPU has."""
        return [i for i in self.instructions() if not lacking(i.needs)]

    def measure(self, i: Instruction) -> Measured:
        """Cycles of one instruction."""
        latency = None
        reads = [b for b in i.body.arguments if b.role in ("in", "const", "inout")]
        (out, *more) = [b for b in i.body.arguments if b.role in ("out", "inout")]
        fed = [b for b in reads if b.role == "inout" or (self._type(i, b) == self._type(i, out))]
        if fed and not more:
            latency = self._latency(i, fed[0], out)
        forms = tuple(replace(f, issue=self._part(f.most).issue(i)) for f in i.cost.narrow)
        return Measured(i.name, self.issue(i), latency, i.cost.issue, i.cost.latency, forms)

    def issue(self, i: Instruction) -> float:
        """Cycles until the unit takes the next call."""
        copies = self._copies(i)
        return self._timed(lambda m, fresh: self._apart(m, i, copies, fresh), copies, True)[0]

    def _latency(self, i: Instruction, fed: Buffer, out: Buffer) -> float:
        summed = fed.role == "inout"
        cycles, fresh = self._timed(lambda m, fresh: self._chain(m, i, fed, out, fresh), COPIES, summed)
        return max(0.0, cycles - self._waiting(out.dtype, self._type(i, out))) if fresh else cycles

    def _waiting(self, dtype: str, type_: str) -> float:
        """Cycles by which each link of a chain is longer where operands only wait for the last result: of products, by
        twos and halves in turn, which remain what they were."""
        linked, plain = (self._cycles(lambda m, fresh=fresh: self._returning(m, dtype, type_, fresh), COPIES).cycles
                         for fresh in (True, False))  # fmt: skip
        return max(0.0, linked - plain)

    def _part(self, lanes: int) -> Calibration:
        """The machine as if its registers had so many lanes: what narrow forms are carried out on."""
        part = copy(self)
        part.vector = replace(self.vector, count=lanes)
        memories = {n: replace(m, lanes=m.lanes and lanes) for n, m in self.system.memories.items()}
        part.system = replace(self.system, memories=memories)
        return part

    def streams(self) -> Iterator[Stream]:
        """Whole registers from and to memory, over each cache and beyond."""
        caches = sorted((m for m in self.system.memories.values() if m.kind == "cached"), key=lambda m: m.limit)
        sizes = [(m.name, m.limit // 2) for m in caches] + [(self.system.home, self.away)]
        for move in ("load", "store"):
            if move not in self.system.instructions:
                continue
            for name, size in sizes:
                once = self.part * COPIES
                took = self._cycles(lambda m, move=move, size=size: self._over(m, move, size), 1, size // once)
                yield Stream(move, name, size, once / took.cycles)

    # -- code --------------------------------------------------------------------------------------------------------
    def _memories(self, i: Instruction) -> list[Any]:
        homes = (h for b in i.body.arguments for h in i.contract(b.name).homes[:1])
        return [self.system.memories[h] for h in homes]

    def _type(self, i: Instruction, b: Buffer) -> str:
        memory = self.system.memories[i.contract(b.name).homes[0]]
        return vector(b.dtype, memory.elements(b.dtype))

    def _copies(self, i: Instruction) -> int:
        """How many at once: enough that none waits for its own sum, as few as leave the sums in registers."""
        sums = (self.system.memories[i.contract(b.name).homes[0]].elements(b.dtype) * size_of(b.dtype)
                for b in i.body.arguments if b.role == "inout")  # fmt: skip
        return max(1, SUMS // -(-taken // self.part)) if (taken := sum(sums)) else COPIES

    def _setting(self, i: Instruction) -> Setting:
        sizes = {s.name: s.hi or 1 for s in i.syms}
        return Setting(self.vector, self.snippets, sizes, {}, self.lane)

    def _given(self, fn: Function, i: Instruction, b: Buffer, number: int) -> str:
        """An operand of random numbers."""
        type_ = self._type(i, b)
        if b.dtype not in ("f32", "f64"):
            bits = fn.op(f"load {type_}, ptr {fn.gep('%in', 64 * number)}, align 4")
            if b.dtype in LARGE and any(x.dtype == "f16" for x in i.body.arguments):
                return fn.op(f"and {type_} {bits}, splat ({ELEMENT[b.dtype]} {BELOW})")
            if b.dtype not in DRAWN:
                return bits
            mask, base = (f"splat ({ELEMENT[b.dtype]} {n})" for n in DRAWN[b.dtype])
            return fn.op(f"or {type_} {fn.op(f'and {type_} {bits}, {mask}')}, {base}")
        values = fn.op(f"load <{type_[1:].split()[0]} x float>, ptr {fn.gep('%in', 64 * number)}, align 4")
        return values if b.dtype == "f32" else fn.op(f"fpext {type_.replace('double', 'float')} {values} to {type_}")

    def _opaque(self, fn: Function, type_: str, value: str, back: bool) -> str:
        """The value as if from somewhere (``back``), or used by somebody: nothing is known of it, nothing is done."""
        count, element = type_[1:-1].split(" x ")
        width = {"double": 8, "float": 4, "half": 2, "bfloat": 2}.get(element) or int(element[1:]) // 8
        size, parts = int(count) * width, []
        whole = fn.op(f"bitcast {type_} {value} to <{size} x i8>")
        if size < SHORTEST:
            order = ", ".join(f"i32 {min(k, size)}" for k in range(SHORTEST))
            long = fn.op(f"shufflevector <{size} x i8> {whole}, <{size} x i8> zeroinitializer, "
                         f"<{SHORTEST} x i32> <{order}>")  # fmt: skip
            made = self._opaque(fn, f"<{SHORTEST} x i8>", long, back)
            first = ", ".join(f"i32 {k}" for k in range(size))
            if not back:
                return ""
            short = fn.op(f"shufflevector <{SHORTEST} x i8> {made}, <{SHORTEST} x i8> poison, <{size} x i32> <{first}>")
            return fn.op(f"bitcast <{size} x i8> {short} to {type_}")
        step = min(self.part, size)
        for at in range(0, size, step):
            order = ", ".join(f"i32 {k}" for k in range(at, at + step))
            piece = fn.op(f"shufflevector <{size} x i8> {whole}, <{size} x i8> poison, <{step} x i32> <{order}>")
            if back:
                how = f'asm sideeffect "", "={self.register},0"'
                parts.append(fn.op(f"call <{step} x i8> {how}(<{step} x i8> {piece})"))
            else:
                fn.emit(f'call void asm sideeffect "", "{self.register}"(<{step} x i8> {piece})')
        while len(parts) > 1:
            both = ", ".join(f"i32 {k}" for k in range(2 * step))
            parts = [fn.op(f"shufflevector <{step} x i8> {a}, <{step} x i8> {b}, <{2 * step} x i32> <{both}>")
                     for a, b in zip(parts[::2], parts[1::2], strict=True)]  # fmt: skip
            step *= 2
        return fn.op(f"bitcast <{size} x i8> {parts[0]} to {type_}") if back else ""

    def _call(self, fn: Function, i: Instruction, values: dict[str, str]) -> dict[str, str]:
        return expand(fn, str(i.emission["llvm"]), values, self._setting(i))

    def _apart(self, module: Module, i: Instruction, copies: int, fresh: bool) -> list[Left]:
        """Copies that wait for nothing but their own accumulators; ``fresh``: for nothing, they are as they were given.
        What they read is opaque to LLVM from one to the next, in the same register: a copy of it would take a turn of
        its own."""
        fn = function(module)
        reads = [b for b in i.body.arguments if b.role in ("in", "const") or (fresh and b.role == "inout")]
        sums = [b for b in i.body.arguments if b.role == "inout" and not fresh]
        outs = [b for b in i.body.arguments if b.role == "out" or (fresh and b.role == "inout")]
        given = {b.name: self._given(fn, i, b, n) for n, b in enumerate([*reads, *sums])}
        kept = [b for _ in range(copies) for b in sums]
        carried = [*kept, *reads]
        loop = Loop(fn, [self._type(i, b) for b in carried], [given[b.name] for b in carried])
        read = {b.name: x for b, x in zip(reads, loop.carried[len(kept) :], strict=True)}
        after: list[str] = []
        made: dict[str, str] = {}
        for k in range(copies):
            read = {b.name: self._opaque(fn, self._type(i, b), read[b.name], True) for b in reads}
            made = self._call(fn, i, read | {b.name: loop.carried[k * len(sums) + n] for n, b in enumerate(sums)})
            after += [made[b.name] for b in sums]
            for b in outs:
                self._opaque(fn, self._type(i, b), made[b.name], False)
        for type_, x in zip(loop.types[: len(kept)], loop.end([*after, *read.values()]), strict=False):
            self._opaque(fn, type_, x, False)
        return left(fn, [(b.dtype, self._type(i, b), made[b.name]) for b in (*sums, *outs)])

    def _chain(self, module: Module, i: Instruction, fed: Buffer, out: Buffer, fresh: bool) -> list[Left]:
        """Each call on the result of the last; ``fresh``: on what was given, which waits for it. Results are opaque to
        LLVM, which else knows that a number negated twice is itself."""
        fn = function(module)
        reads = [b for b in i.body.arguments if b.role in ("in", "const", "inout")]
        given = {b.name: self._given(fn, i, b, n) for n, b in enumerate(reads)}
        type_ = self._type(i, out)
        wait = self._wait(fn, type_, given[fed.name]) if fresh else None
        loop = Loop(fn, [type_], [given[fed.name]])
        x, made = loop.carried[0], ""
        for _ in range(COPIES):
            made = self._call(fn, i, {**given, fed.name: x})[out.name]
            x = self._opaque(fn, type_, made, True)
            x = wait(x) if wait else x
        loop.end([x])
        self._opaque(fn, type_, x, False)
        return left(fn, [(out.dtype, type_, made)])

    def _returning(self, module: Module, dtype: str, type_: str, fresh: bool) -> list[Left]:
        """A chain of the shortest calls of which numbers remain normal: products by twos and halves in turn; of what
        no CPU computes with as it is (halves, whole numbers) sums of bits. ``fresh``: as that of instructions."""
        fn = function(module)
        given = fn.op(f"load {type_}, ptr %in, align 4")
        op, turns = ("fmul", ("2.0", "0.5")) if dtype in ("f32", "f64") else ("add", ("1", "-1"))
        element = type_[1:-1].split(" x ")[1]
        by = [self._opaque(fn, type_, f"splat ({element} {turn})", True) for turn in turns]
        wait = self._wait(fn, type_, given) if fresh else None
        loop = Loop(fn, [type_], [given])
        x = loop.carried[0]
        for k in range(COPIES):
            x = self._opaque(fn, type_, fn.op(f"{op} {type_} {x}, {by[k % 2]}"), True)
            x = wait(x) if wait else x
        loop.end([x])
        self._opaque(fn, type_, x, False)
        return []

    def _wait(self, fn: Function, type_: str, given: str) -> Callable[[str], str]:
        """A function from a value to ``given``, which is there only when the value is: its bits under a mask of zeros
        that nobody knows, and those of ``given``."""
        count, element = type_[1:-1].split(" x ")
        bits = f"<{count} x {WORDS.get(element, element)}>"
        none = self._opaque(fn, bits, "zeroinitializer", True)
        first = fn.op(f"bitcast {type_} {given} to {bits}")

        def wait(value: str) -> str:
            masked = fn.op(f"and {bits} {fn.op(f'bitcast {type_} {value} to {bits}')}, {none}")
            return fn.op(f"bitcast {bits} {fn.op(f'or {bits} {masked}, {first}')} to {type_}")

        return wait

    def _over(self, module: Module, move: str, size: int) -> list[Left]:
        """One pass of a move over memory, register by register."""
        fn = function(module)
        dtype, i = "f32", self.system.instructions[move]
        operands = {b.role in ("out", "inout"): b for b in i.body.arguments}
        type_, width = vector(dtype, self.vector.count), self.vector.count * size_of(dtype)
        value = fn.op(f"load {type_}, ptr %in, align 4")
        loop = Loop(fn, ["i64"], ["0"])
        at = loop.carried[0]
        for k in range(self.part * COPIES // width):
            pointer = fn.gep(fn.gep("%in", at), k * width)
            far = {operands[move == "store"].name: Addressed(pointer, dtype, (self.vector.count,), (size_of(dtype),))}
            near = operands[move != "store"].name
            setting = Setting(self.vector, self.snippets, {s.name: self.vector.count for s in i.syms}, far)
            names = {n: t.pointer for n, t in far.items()} | ({near: value} if move == "store" else {})
            made = expand(fn, str(i.emission["llvm"]), names, setting)
            if move == "load":
                self._opaque(fn, type_, made[near], False)
        following = fn.op(f"add i64 {at}, {self.part * COPIES}")
        more = fn.op(f"icmp ult i64 {following}, {size}")
        loop.end([fn.op(f"select i1 {more}, i64 {following}, i64 0")])
        return []

    # -- time --------------------------------------------------------------------------------------------------------
    def _timed(self, write: Callable[[Module, bool], list[Left]], calls: int, summed: bool) -> tuple[float, bool]:
        """Cycles of a call, and whether each takes fresh numbers: where they do not remain what they were. ``summed``:
        they are sums, of which the size may be any."""
        going_on = self._cycles(lambda m: write(m, False), calls)
        if not any(drifted(x, summed) for x in going_on.left):
            return going_on.cycles, False
        return self._cycles(lambda m: write(m, True), calls).cycles, True

    def _cycles(self, write: Callable[[Module], list[Left]], calls: int, least: int = 1) -> Timed:
        module = Module()
        kept = write(module)
        text = str(module)
        if text not in self.known:
            seconds, left = self._seconds(module, kept, least)
            self.known[text] = Timed(seconds * self.clock / calls, left)
        return self.known[text]

    def _seconds(self, module: Module, kept: list[Left], least: int = 1) -> tuple[float, tuple[Numbers, ...]]:
        """Of one iteration, where it is quickest; and what the longest run left."""
        llvm = initialised()
        made = target_machine().emit_object(llvm.parse_assembly(str(module)))
        symbols = {c: Externals({}).address(s) for c, s in module.externals.items()}
        library = link("calibrate", made, symbols, [REPEATED])
        code = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(library[REPEATED])
        at, to, n = self.room.ctypes.data, self.out.ctypes.data, max(64, least)
        while True:
            took = _took(code, at, n, to)
            if took > SECONDS:
                break
            n *= 4
        quickest = min(took, *(_took(code, at, n, to) for _ in range(self.times))) / n
        return quickest, tuple(x.read(self.out) for x in kept)


def _took(call: Callable[[int, int, int], None], at: int, n: int, to: int) -> float:
    start = time.perf_counter()
    call(at, n, to)
    return time.perf_counter() - start
