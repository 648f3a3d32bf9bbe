"""Carries out a mapping block by block, modulo a prime: the mapper's judge. Knows only the language and `Mapping`.

The kernel runs statement by statement; the mapping's region runs as calls of the instruction: every outer point, every
tile of the mapped axes (sizes random, an axis in ``whole`` in one piece, an axis in a guard point by point), in random
order. A call gathers its operands, runs the instruction's body on them and scatters what it wrote. Temporaries of the
region are poisoned.
"""

from __future__ import annotations

import random
from itertools import product

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Kernel, Literal, Recurrence, Statement
from isam.ir.mapping import Mapping

P = 2**31 - 1
Memory = dict[str, dict[tuple[int, ...], int]]
Forms = dict[tuple, tuple[dict[str, dict], dict[str, set]]]  # per sizes of a call: elements touched, elements written

BINARY = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": max, "min": min,
    "div": lambda a, b: a * pow(b, P - 2, P), "lt": lambda a, b: int(a < b), "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b), "ge": lambda a, b: int(a >= b), "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b), "pow": lambda a, b: a * a * 5 + b * 3 + a * b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b,
}  # fmt: skip


def _number(value: float | int | bool) -> int:
    if value in (float("inf"), float("-inf")):
        return P - 1 if value > 0 else 0
    return hash(value) % P if value != int(value) else int(value) % P


def _apply(op: str, args: list[int]) -> int:
    if op in BINARY:
        return BINARY[op](*args) % P
    if op == "select":
        return args[1] if args[0] else args[2]
    if op in ("copy", "cast", "cast_sat"):
        return args[0]
    salt = sum(map(ord, op))
    return (args[0] ** 3 * 7 + args[0] * salt + salt * salt) % P  # a function: some polynomial of its own


def run_statement(s: Statement, memory: Memory, extents: dict[str, int], outside: dict[str, int]) -> None:
    """One statement over its domain; every source is read before anything is written."""
    names = s.domain.names
    written: list[tuple[tuple[int, ...], int, bool]] = []
    for point in product(*(range(max(0, extents[n])) for n in names)):
        at = {**outside, **dict(zip(names, point, strict=True))}
        if any(w.evaluate(at) < 0 for w in s.domain.where):
            continue
        args = [
            _number(x.value) if isinstance(x, Literal) else memory[x.buffer][tuple(i.evaluate(at) for i in x.index)]
            for x in s.sources
        ]
        to = tuple(i.evaluate(at) for i in s.dest.index)
        if s.accumulate and s.op == "select":
            if args[0]:
                written.append((to, args[1], False))
        else:
            written.append((to, args[0] if s.accumulate else _apply(s.op, args), s.accumulate))
    memory.setdefault(s.dest.buffer, {})
    for to, value, accumulate in written:
        memory[s.dest.buffer][to] = _apply(s.op, [memory[s.dest.buffer][to], value]) if accumulate else value


def initial(kernel: Kernel, seed: int) -> Memory:
    """Random contents for everything the caller passes; ``kernel`` has numbers for sizes."""
    rng = random.Random(seed)
    return {
        b.name: {i: rng.randrange(1, P) for i in product(*(range(max(0, int(d))) for d in b.shape))}
        for b in kernel.buffers
        if b.role != "temp"
    }


def run_kernel(kernel: Kernel, memory: Memory) -> Memory:
    """The kernel as the language defines it."""
    return _run(kernel.body, memory, {}, lambda s, at: run_statement(s, memory, _sizes(s, at), at))


def _sizes(s: Statement, at: dict[str, int]) -> dict[str, int]:
    return {a.name: a.extent.evaluate(at) for a in s.domain.axes}


def _run(body, memory: Memory, at: dict[str, int], step) -> Memory:
    for it in body:
        if isinstance(it, Recurrence):
            for t in range(it.axis.extent.evaluate(at)):
                _run(it.body, memory, {**at, it.axis.name: t}, step)
        else:
            step(it, at)
    return memory


def run_mapped(kernel: Kernel, mapping: Mapping, memory: Memory, seed: int) -> Memory:
    """The kernel with the mapping's region carried out by calls of its instruction."""
    rng = random.Random(seed)
    statements = kernel.statements
    region = [statements[i] for i in mapping.statements]
    order = _contracted(statements, mapping.statements)
    body = _reordered(kernel.body, order, statements)

    def step(s: Statement, at: dict[str, int]) -> None:
        if not any(s is r for r in region):
            run_statement(s, memory, _sizes(s, at), at)
        elif s is region[0]:
            _call_all(kernel, mapping, memory, at, rng)

    _run(body, memory, {}, step)
    for _, t in mapping.temps:
        memory.pop(t, None)
    return memory


def _contracted(statements: tuple[Statement, ...], region: tuple[int, ...]) -> list[int]:
    """An order in which the region stands together: what depends on it comes after."""
    first, last = region[0], region[-1]
    wrote, read = {statements[first].dest.buffer}, {a.buffer for a in statements[first].reads}
    after: list[int] = []
    before: list[int] = []
    for i in range(first, last + 1):
        s = statements[i]
        reads = {a.buffer for a in s.reads}
        tainted = bool(reads & wrote) or s.dest.buffer in wrote | read
        if i in region or tainted:
            wrote.add(s.dest.buffer)
            read |= reads
        if i not in region:
            (after if tainted else before).append(i)
    return [*range(first), *before, *region, *after, *range(last + 1, len(statements))]


def _reordered(body, order: list[int], statements):
    """The body in that order of statements; a recurrent loop stands where the first of its own does."""
    at = {id(statements[i]): n for n, i in enumerate(order)}

    def place(it) -> int:
        return min(map(place, it.body), default=0) if isinstance(it, Recurrence) else at[id(it)]

    return tuple(
        Recurrence(it.axis, _reordered(it.body, order, statements)) if isinstance(it, Recurrence) else it
        for it in sorted(body, key=place)
    )


def _call_all(kernel: Kernel, mapping: Mapping, memory: Memory, at: dict[str, int], rng: random.Random) -> None:
    statements = [kernel.statements[i] for i in mapping.statements]
    renames = {i: dict(pairs) for i, pairs in mapping.renames}
    extents: dict[str, int] = {}
    where: list[Affine] = []
    for i, s in zip(mapping.statements, statements, strict=True):
        names = renames.get(i, {})
        for a in s.domain.axes:
            extents[names.get(a.name, a.name)] = max(0, a.extent.evaluate(at))
        where += [w.substitute({n: Affine.of(m) for n, m in names.items()}) for w in s.domain.where]
    played = mapping.axis_map
    whole = {played[a] for a in mapping.whole}
    guarded = {n for g in mapping.guards for n in g.names} - whole
    cuts = []
    for axis, k in mapping.axes:
        size = extents[k] if axis in mapping.whole else 1 if k in guarded else rng.randint(1, 3)
        cuts.append([(lo, min(size, extents[k] - lo)) for lo in range(0, extents[k], max(1, size))])
    calls = list(product(product(*(range(extents[n]) for n in mapping.outer)), product(*cuts)))
    rng.shuffle(calls)
    forms: Forms = {}
    asked = [w for w in where if not any(n in whole for n in w.names)]
    for point, tile in calls:
        here = {**at, **dict(zip(mapping.outer, point, strict=True))}
        here.update((played[a], lo) for (a, _), (lo, _) in zip(mapping.axes, tile, strict=True))
        sizes = {a: n for (a, _), (_, n) in zip(mapping.axes, tile, strict=True)}
        if all(w.evaluate(here) >= 0 for w in asked) and _trimmed(mapping, here, sizes):
            _call(mapping, memory, here, sizes, rng, forms)


def _trimmed(mapping: Mapping, here: dict[str, int], sizes: dict[str, int]) -> bool:
    """Leaves of each whole axis the first steps, those that the guards leave. False: nothing is left."""
    for axis in mapping.whole:
        k = mapping.axis_map[axis]
        tied = [g for g in mapping.guards if k in g.names]
        left = [v for v in range(sizes[axis]) if all(g.evaluate({**here, k: v}) >= 0 for g in tied)] if tied else None
        if left is None:
            continue
        if not left:
            return False
        assert left == list(range(len(left))), f"no box that begins with the first step: {mapping}"
        sizes[axis] = len(left)
    return True


def _call(
    mapping: Mapping, memory: Memory, at: dict[str, int], sizes: dict[str, int], rng: random.Random, forms: Forms
) -> None:
    body = mapping.instruction.body
    local: Memory = {}
    key = tuple(sizes.items())
    if key not in forms:
        written = {s.dest.buffer for s in body.statements}
        forms[key] = _elements(body, sizes), {n: _written(body, n, sizes) for n in written}
    used, written = forms[key]
    places: dict[str, dict[tuple[int, ...], tuple[int, ...]]] = {}
    for o in mapping.operands:
        if o.literal is not None:
            local[o.operand] = {(): _number(o.literal)}
            continue
        base = [i.evaluate(at) for i in o.index]
        local[o.operand] = {}
        places[o.operand] = {}
        for e in used.get(o.operand, ()):
            to = list(base)
            for d, (r, step) in enumerate(zip(o.dims, o.steps, strict=True)):
                to[r] += step * e[d]
            held = memory.get(o.buffer, {}).get(tuple(to))
            local[o.operand][e] = rng.randrange(P) if body.buffer(o.operand).role == "out" or held is None else held
            places[o.operand][e] = tuple(to)
    for s in body.statements:
        run_statement(s, local, {n: sizes[n] for n in s.domain.names}, {})
    for o in mapping.operands:
        for e in written.get(o.operand, ()):
            memory.setdefault(o.buffer, {})[places[o.operand][e]] = local[o.operand][e]


def _elements(body: Kernel, sizes: dict[str, int]) -> dict[str, dict]:
    out: dict[str, dict] = {}
    for s in body.statements:
        for a in (s.dest, *(x for x in s.sources if isinstance(x, Access))):
            for e in _touched(s, a, sizes):
                out.setdefault(a.buffer, {})[e] = None
    return out


def _written(body: Kernel, operand: str, sizes: dict[str, int]) -> set:
    return {e for s in body.statements if s.dest.buffer == operand for e in _touched(s, s.dest, sizes)}


def _touched(s: Statement, a: Access, sizes: dict[str, int]):
    for point in product(*(range(sizes[n]) for n in s.domain.names)):
        at = dict(zip(s.domain.names, point, strict=True))
        if all(w.evaluate(at) >= 0 for w in s.domain.where):
            yield tuple(i.evaluate(at) for i in a.index)


def visible(kernel: Kernel, mapping: Mapping, memory: Memory) -> Memory:
    """What must be equal: everything but the temporaries of the region."""
    hidden = {t for _, t in mapping.temps}
    return {n: v for n, v in memory.items() if v and n not in hidden}
