"""One random pair, judged: what the mapper says is carried out, what it denies is looked for by brute force."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace

from isam.ir import oracle
from isam.ir.apart import axes_apart
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel, Recurrence
from isam.ir.mapping import Mapping
from isam.ir.mismatch import Mismatch
from isam.ir.normal import normal_form
from isam.ir.text import print_instruction, print_kernel
from isam.mapper.match import Matches, count, match, near_misses
from isam.mapper.search import Budget, reach
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.brute_force import brute_count
from tests.pairs.instructions import drawn, invented, piece
from tests.pairs.kernels import grown
from tests.random_kernels import Options, random_kernel

KERNELS = Options(most_blocks=3, points=90)
NEAR = Budget(states=10, work=150, blind=0, depth=3)
PAIRS = 5_000  # tried by the matcher on one kernel
LAWS = frozenset({"division", "casts"})
CALLED_OFF = ("domain", "aliasing", "escapes", "budget")  # a fit of the matrices that the order of things forbids


@dataclass(frozen=True)
class Pair:
    """``kernel`` has numbers for sizes. ``origin`` says how the two came about."""

    kernel: Kernel
    instruction: Instruction
    origin: str

    def __str__(self) -> str:
        return f"# {self.origin}\n{print_kernel(self.kernel)}{print_instruction(self.instruction)}"


@dataclass
class Findings:
    """What a pair showed: ``counts`` for the figure, ``wrong`` for the reader."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def pair(seed: int) -> Pair:
    """The pair of this number: half of the instructions are a machine's, half of the kernels grow around them."""
    rng = random.Random(seed)
    origin = rng.choice(("drawn", "drawn", "drawn", "invented", "piece"))
    kernel, sizes = random_kernel(rng.randrange(1 << 30), KERNELS)
    kernel = kernel.with_sizes(sizes)
    if origin == "piece":
        made = piece(normal_form(kernel), rng)
        if made is not None:
            return Pair(kernel, made, origin)
    instruction = drawn(rng) if origin == "drawn" else invented(rng)
    around = grown(instruction, rng) if rng.random() < 0.8 else None
    return Pair(around or kernel, instruction, f"{origin}, {'grown' if around else 'apart'}")


def judged(seed: int) -> Findings:
    """Everything about the pair of this number."""
    p, f = pair(seed), Findings()
    rng = random.Random(~seed)
    kernel = normal_form(p.kernel)
    found = match(kernel, p.instruction, strided=rng.random() < 0.3, budget=PAIRS, normalise=False)
    f.counts["pairs"] += 1
    f.counts[f"of {p.origin}"] += 1
    if isinstance(found, Matches):
        f.counts["mapped"] += 1
        some = [m for m, _ in zip(found, range(12), strict=False)]
        for m in rng.sample(some, min(2, len(some))):
            carried_out(p, kernel, m, f)
    else:
        f.counts[f"no: {found.kind}"] += 1
        if rng.random() < 0.5:
            after_steps(p, kernel, f)
    if small(p):
        counted(p, kernel, found, f)
    return f


def carried_out(p: Pair, kernel: Kernel, m: Mapping, f: Findings) -> None:
    """The mapping as calls of the instruction, in random blocks and order, against the kernel."""
    names = {(a.name, a.extent) for s in m.instruction.body.statements for a in s.domain.axes}
    one_name = len(names) == len({n for n, _ in names}) and {n for n, _ in names} == m.axis_map.keys()
    if not one_name or turned(m.instruction.body):
        f.counts["left: an axis of the instruction has two names, or a name two axes"] += 1
        return
    seed = zlib.crc32(str(m).encode())
    want = run_kernel(kernel, initial(kernel, seed))
    got = run_mapped(kernel, m, initial(kernel, seed), seed)
    f.counts["carried out"] += 1
    if visible(kernel, m, got) != visible(kernel, m, want):
        f.wrong.append(f"{p}# wrong: {m}\n# in\n{print_kernel(kernel)}")


def turned(body: Kernel) -> bool:
    """Some temporary that the normal form has not is written and read in two ways: names there are other axes here."""
    kept = {b.name for b in normal_form(body).buffers}
    ways: dict[str, set[tuple[object, ...]]] = {}
    for s in body.statements:
        for a in (s.dest, *s.reads):
            ways.setdefault(a.buffer, set()).add(a.index)
    return any(len(w) > 1 and name not in kept for name, w in ways.items())


def after_steps(p: Pair, kernel: Kernel, f: Findings) -> None:
    """Kernels that the search rewrote for the instruction: equal to the kernel, and the mapping right in them."""
    r = reach(kernel, p.instruction, budget=NEAR, pairs=PAIRS)
    f.counts["searched"] += 1
    if r:
        f.counts["mapped after steps"] += 1
    for path in r.paths[:2]:
        if all(s.transform.judge == "residues" for s in path.steps):
            f.counts["rewritten"] += 1
            if not oracle.equal(r.kernel, path.kernel, {}, 1, laws=LAWS):
                f.wrong.append(f"{p}# wrong: {path.label()}\n{print_kernel(path.kernel)}")
        for m in path.found[:1]:
            carried_out(p, path.kernel, m, f)


def small(p: Pair) -> bool:
    """Brute force takes no time, and its reading of names is that of the kernel: an axis of two statements that share
    a buffer has one name."""
    k, body = p.kernel, p.instruction.body
    every = (*k.statements, *body.statements)
    if any(isinstance(it, Recurrence) for it in (*k.body, *body.body)) or any(s.domain.where for s in every):
        return False
    if len(k.statements) > 6 or len(body.statements) > 3 or max(len(s.domain.names) for s in every) > 5:
        return False
    if any(a.extent.is_constant and a.extent.const < 2 for s in every for a in s.domain.axes):
        return False  # an axis of one value: left out by the normal form, an axis like any other here
    if any(r.const for s in body.statements for a in (s.dest, *s.reads) for r in a.index):
        return False  # two choices of rows may begin elsewhere: one fit here, two there
    if any(not joined(n, body) for n in {n for s in body.statements for n in s.domain.names}):
        return False
    begun = [(s.dest.buffer, s in body.statements) for s in every if not s.accumulate]
    if len(begun) > len(set(begun)):
        return False
    written = {s.dest.buffer for s in every}
    seen: dict[str, set[tuple[object, ...]]] = {}
    for s in every:
        for a in (s.dest, *s.reads):
            if a.buffer in written:
                seen.setdefault(a.buffer, set()).add(a.index)
    hidden = {b.name for b in (*k.buffers, *body.buffers) if b.role == "temp"}
    rows = [r for n in hidden & seen.keys() for way in seen[n] for r in way]
    plain = all(len(r.terms) == 1 and r.terms[0][1] == 1 and not r.const for r in rows)
    return plain and all(len(ways) == 1 for ways in seen.values())


def joined(axis: str, body: Kernel) -> bool:
    """The statements with this axis hang together by buffers that one of them writes and that the axis walks: it is
    one axis, whatever it is called."""
    mine = [s for s in body.statements if axis in s.domain.names]
    walked = [{a.buffer for a in (s.dest, *s.reads) if any(axis in r.names for r in a.index)} for s in mine]
    written = {s.dest.buffer for s in mine}
    reached = {0}
    for _ in mine:
        reached |= {j for j in range(len(mine)) for i in reached if walked[i] & walked[j] & written}
    return len(reached) == len(mine)


def counted(p: Pair, kernel: Kernel, found: Matches | Mismatch, f: Findings) -> None:
    """The number of fits of the matrices (MAP-10) by brute force; and a "no" although they fit has a reason that the
    matrices do not show: a dtype, a limit, an order of things. ``kernel``: the normal form; ``found`` is of it."""
    mine, theirs = count(p.kernel, p.instruction), brute_count(axes_apart(p.kernel), p.instruction)
    f.counts["counted"] += 1
    f.counts["counted, none"] += not theirs
    if mine < theirs and forbidden(p):
        f.counts["counted, some forbidden by an order of things"] += 1
    elif mine != theirs:
        f.wrong.append(f"{p}# counted {mine}, by brute force {theirs}")
    if theirs and isinstance(found, Mismatch) and p.kernel == kernel:
        f.counts["counted, fits but for a dtype, a limit, an order of things"] += 1
        if not (found.kind in CALLED_OFF or differ(p) or limited(p)):
            f.wrong.append(f"{p}# fits, and is denied: {found}")


def forbidden(p: Pair) -> bool:
    """Some fit of the matrices is forbidden by an order of things, whatever the element types: counts ignore these."""
    kernel, body = (replace(k, buffers=tuple(replace(b, dtype="f32") for b in k.buffers))
                    for k in (p.kernel, p.instruction.body))  # fmt: skip
    near = near_misses(kernel, replace(p.instruction, body=body), normalise=False)
    return any(m.kind in CALLED_OFF for m in near)


def differ(p: Pair) -> bool:
    """Some dtype, number or permission is not on both sides."""
    k, body = p.kernel, p.instruction.body
    dtypes = {b.dtype for b in body.buffers} - {ANY}
    return len(dtypes | {b.dtype for b in k.buffers}) > 1 or not p.instruction.takes <= k.permits


def limited(p: Pair) -> bool:
    """One call takes less than the largest axis, or exactly so much as some axis has not."""
    every = {int(a.extent) for s in p.kernel.statements for a in s.domain.axes}
    own = [a.extent for s in p.instruction.body.statements for a in s.domain.axes]
    return any(e.is_constant and every - {e.const} for e in own) or any(
        s.hi is not None and s.hi < max(every, default=0) for s in p.instruction.syms)  # fmt: skip
