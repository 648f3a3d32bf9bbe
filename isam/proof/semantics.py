"""Obligation 3 (and 6): does an instruction compute what the kernel's statements say, and what is read and written?

Both sides are brought to *effects*: a statement that writes something visible, with the temporaries of the region
inlined as expressions. The instruction's effects must be the kernel's, up to commutativity, with operands played by
accesses. Nothing the mapper says is believed except which access plays which operand; that is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import product

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import COMMUTATIVE, REDUCTIONS, Access, Domain, Kernel, Literal, Statement
from isam.ir.mapping import Mapping, OperandMap
from isam.proof.inside import Expr, Inside, Leaf, Op, numbering

MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}  # a < b is b > a


@dataclass(frozen=True, slots=True)
class Effect:
    """A visible write: ``dest = expr``, or ``dest = op(dest, *args)`` when ``accumulate``."""

    statement: int
    dest: Access
    expr: Op
    accumulate: bool
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The instruction's ``own`` access to ``operand`` plays the kernel's access ``kernel`` (``None``: a literal).
    ``statement`` (see :class:`Leaf`) makes it in the kernel, ``own_at`` in the instruction."""

    operand: str
    own: Access
    kernel: Access | None
    statement: int  # the kernel statement that makes the access
    writes: bool
    literal: float | int | bool | None = None
    own_at: int = 0


@dataclass(frozen=True)
class Semantics:
    """What a mapping's instruction does in terms of the kernel, or why it does not (``faults``).

    ``effects``: (operand, kernel statement, accumulates) in order. ``contracted``: kernel statements whose result never
    leaves the instruction.
    """

    pairs: tuple[Pair, ...] = ()
    effects: tuple[tuple[str, int, bool], ...] = ()
    contracted: tuple[int, ...] = ()
    faults: tuple[tuple[int, str, str], ...] = field(default=())


def effects_of(statements: list[tuple[int, Statement]], dtypes: dict[str, str], inner: set[str]) -> list[Effect] | str:
    """The visible writes in order, with the buffers ``inner`` inlined; or what prevents it."""
    env: dict[str, Inside] = {}
    out: list[Effect] = []
    for at, s in statements:
        dtype = dtypes[s.dest.buffer]
        args: list[Expr] = []
        for src in s.sources:
            got = _source(src, at, s.domain, dtype, dtypes, env, inner)
            if isinstance(got, str):
                return got
            args.append(got)
        if s.dest.buffer not in inner:
            out.append(Effect(at, s.dest, Op(s.op, dtype, tuple(args)), s.accumulate, s.domain.names))
            continue
        names = numbering(s.dest, s.domain)
        if names is None or (s.accumulate and names != set(s.domain.names)):
            return f"the temporary '{s.dest.buffer}' cannot be inlined: its values are summed or spread"
        if s.accumulate:
            if s.dest.buffer not in env:
                return f"the temporary '{s.dest.buffer}' is accumulated before it is written"
            had = env[s.dest.buffer].read(s.dest, s.domain)
            if isinstance(had, str):
                return had
            args = [had, *args]
        env[s.dest.buffer] = Inside(s.dest, s.domain, Op(s.op, dtype, tuple(args)))
    return out


def _source(src: object, at: int, domain: Domain, dtype: str, dtypes: dict[str, str], env: dict[str, Inside],
            inner: set[str]) -> Expr | str:  # fmt: skip
    if isinstance(src, Literal):
        return Leaf(None, at, dtype, src.value)
    assert isinstance(src, Access)
    if src.buffer not in inner:
        return Leaf(src, at, dtypes[src.buffer])
    if src.buffer not in env:
        return f"the temporary '{src.buffer}' is read before it is written"
    return env[src.buffer].read(src, domain)


def _strip(expr: Expr) -> Expr:
    """A copy of the same type is its argument."""
    if isinstance(expr, Op):
        args = tuple(_strip(a) for a in expr.args)
        inner = args[0] if args else None
        if expr.op == "copy" and isinstance(inner, Op) and inner.dtype == expr.dtype:
            return inner
        return Op(expr.op, expr.dtype, args)
    return expr


def compare(mapping: Mapping, kernel: Kernel) -> Semantics:
    """Lays the instruction beside the statements it is said to carry out."""
    ins = mapping.instruction
    played = {o.buffer for o in mapping.operands if o.buffer}
    mine = set(mapping.statements)
    temps = {kernel.statements[i].dest.buffer for i in mine}
    inner = {b for b in temps if b not in played and kernel.buffer(b).role == "temp"}
    faults = [
        (6, "escapes", f"the temporary '{b}' lives inside '{ins.name}' but statement {i} uses it outside")
        for i, s in enumerate(kernel.statements)
        if i not in mine
        for b in sorted(inner & {s.dest.buffer, *(a.buffer for a in s.reads)})
    ]
    if missing := ins.takes - kernel.permits:
        names = ", ".join(sorted(missing))
        faults.append((3, "numerics", f"'{ins.name}' takes numerics that the kernel does not permit: {names}"))
    theirs = effects_of(
        [(i, kernel.statements[i]) for i in sorted(mine)], {b.name: b.dtype for b in kernel.buffers}, inner
    )
    own = instruction_effects(ins)
    for side, what in ((own, f"the instruction '{ins.name}'"), (theirs, "the kernel")):
        if isinstance(side, str):
            return Semantics(faults=(*faults, (3, "operation", f"{what}: {side}")))
    assert not isinstance(own, str)
    assert not isinstance(theirs, str)
    found = next((f for m in _played(mapping) for f in _assign(own, theirs, m, ())), None)
    if found is None:
        text = f"'{ins.name}' does not do what statements {sorted(mine)} of the kernel say"
        return Semantics(faults=(*faults, (3, "operation", text)))
    if not _in_time(found[1]):
        text = f"'{ins.name}' reads before it writes what the kernel reads after, or the other way round"
        faults.append((3, "operation", text))
    contracted = tuple(i for i in sorted(mine) if kernel.statements[i].dest.buffer in inner)
    done = tuple((_operand(e.dest), k.statement, k.accumulate) for e, k in found[0])
    return Semantics(found[1], done, contracted, tuple(faults))


def _in_time(pairs: tuple[Pair, ...]) -> bool:
    """Whether every read is on the same side of each write to its buffer in instruction and kernel. What lies in
    another operand is what was there before the call."""
    for r, w in product(pairs, pairs):
        if r.kernel and w.kernel and r.kernel.buffer == w.kernel.buffer and w.writes and not r.writes:
            before = (r.statement if r.statement >= 0 else ~r.statement) <= w.statement
            if before != (r.operand != w.operand or r.own_at <= w.own_at):
                return False
    return True


def instruction_effects(ins: Instruction) -> list[Effect] | str:
    body = ins.body
    inner = {b.name for b in body.buffers if b.role == "temp"}
    return effects_of(list(enumerate(body.statements)), {b.name: b.dtype for b in body.buffers}, inner)


Rows = tuple[Affine, ...]


@dataclass(frozen=True)
class Played:
    """A mapping, and of each operand the access that its index stands for, without what is added to axes there."""

    operands: tuple[OperandMap, ...]
    axis_map: dict[str, str]
    stands: dict[str, Rows]


def _played(m: Mapping) -> Iterator[Played]:
    """An operand's index may stand for any of the instruction's accesses to it, for the same one wherever it is met."""
    every: dict[str, dict[Rows, None]] = {o.operand: {} for o in m.operands}
    for a in (a for s in m.instruction.body.statements for a in (s.dest, *s.reads) if a.buffer in every):
        every[a.buffer][tuple(r - r.const for r in a.index)] = None
    for chosen in product(*(rows or [()] for rows in every.values())):
        yield Played(m.operands, m.axis_map, dict(zip(every, chosen, strict=True)))


def _operand(a: Access) -> str:
    return a.buffer


Found = tuple[tuple[tuple[Effect, Effect], ...], tuple[Pair, ...]]


def _assign(own: list[Effect], theirs: list[Effect], m: Played, done: tuple) -> Iterator[Found]:
    """Every way to lay effects on effects, those on one buffer in order."""
    if not own:
        if not theirs:
            yield (), ()
        return
    e, rest = own[0], own[1:]
    for at, k in enumerate(theirs):
        if any(t.dest.buffer == k.dest.buffer for t in theirs[:at]):
            continue  # an earlier write to that buffer comes first
        for pairs in _effect(e, k, m):
            for more, others in _assign(rest, theirs[:at] + theirs[at + 1 :], m, done):
                yield ((e, k), *more), (*pairs, *others)


def _effect(e: Effect, k: Effect, m: Played) -> Iterator[tuple[Pair, ...]]:
    if k.accumulate and not e.accumulate and k.expr.op != "select":
        k = spelled_out(k)
    if e.accumulate and not k.accumulate:
        k = folded(k) or k
    if e.accumulate != k.accumulate:
        return
    head = _leaf(Leaf(e.dest, e.statement, e.expr.dtype), Leaf(k.dest, k.statement, k.expr.dtype), m, writes=True)
    axes = m.axis_map
    if head is None or any(axes.get(a) not in k.axes for a in e.axes):
        return
    one, two = _strip(e.expr), _strip(k.expr)
    assert isinstance(one, Op)
    assert isinstance(two, Op)
    for pairs in _unify(one, two, m):
        yield (head, *pairs)


def spelled_out(k: Effect) -> Effect:
    """``d += x`` as ``d = d + x``: one instance at a time, which an instruction without a reduction carries out."""
    own = Leaf(k.dest, ~k.statement, k.expr.dtype)
    return Effect(k.statement, k.dest, Op(k.expr.op, k.expr.dtype, (own, *k.expr.args)), False, k.axes)


def folded(k: Effect) -> Effect | None:
    """``d = op(d, x)`` as ``d op= x``."""
    if k.expr.op not in REDUCTIONS:
        return None
    for mine, other in (k.expr.args, k.expr.args[::-1]):
        if isinstance(mine, Leaf) and mine.access == k.dest:
            return Effect(k.statement, k.dest, Op(k.expr.op, k.expr.dtype, (other,)), True, k.axes)
    return None


def _unify(a: Expr, b: Expr, m: Played) -> Iterator[tuple[Pair, ...]]:
    if isinstance(a, Leaf):
        if isinstance(b, Leaf):
            p = _leaf(a, b, m, writes=False)
            if p is not None:
                yield (p,) if p.operand else ()
        return
    if isinstance(b, Leaf) or len(a.args) != len(b.args) or not _same_type(a.dtype, b.dtype):
        return
    orders = [b.args] if a.op == b.op else []
    if len(b.args) == 2 and (b.op == MIRRORED.get(a.op) or (a.op == b.op and a.op in COMMUTATIVE)):
        orders.append((b.args[1], b.args[0]))
    for args in orders:
        yield from _all(a.args, args, m)


def _all(xs: tuple[Expr, ...], ys: tuple[Expr, ...], m: Played) -> Iterator[tuple[Pair, ...]]:
    if not xs:
        yield ()
        return
    for first in _unify(xs[0], ys[0], m):
        for rest in _all(xs[1:], ys[1:], m):
            yield (*first, *rest)


def _same_type(a: str, b: str) -> bool:
    return a == b or ANY in (a, b)


def _leaf(a: Leaf, b: Leaf, m: Played, writes: bool) -> Pair | None:
    """The instruction's read ``a`` against the kernel's ``b``."""
    if a.access is None:
        same = b.access is None and same_number(a.literal, b.literal)
        return Pair("", Access(""), None, b.statement, False) if same else None
    om = next((o for o in m.operands if o.operand == a.access.buffer), None)
    if om is None:
        return None
    if b.access is None:  # a number takes the operand's type, which is that of its slot
        if om.buffer or not same_number(om.literal, b.literal) or a.access.index:
            return None
        return Pair(om.operand, a.access, None, b.statement, False, b.literal)
    if not _same_type(a.dtype, b.dtype) or om.buffer != b.access.buffer or not _plays(om, a.access, b.access, m):
        return None
    return Pair(om.operand, a.access, b.access, b.statement, writes, None, a.statement)


def same_number(a: object, b: object) -> bool:
    if a is None:
        return False
    signs = str(a).startswith("-") == str(b).startswith("-")  # a negative zero is another number
    return (a == b and signs) or (a != a and b != b)


def _plays(om: OperandMap, own: Access, kernel: Access, m: Played) -> bool:
    """Whether the kernel's access is the one that the operand is said to be played by, with what the instruction's
    access differs by from the one that the index stands for. That steps put it there, and move it along every axis, is
    judged per issue."""
    at = list(om.index)
    for row, first, d, step in zip(own.index, m.stands[om.operand], om.dims, om.steps, strict=False):
        if 0 <= d < len(at):
            apart = row - first
            if any(n not in m.axis_map for n in apart.names):
                return False
            at[d] = at[d] + apart.substitute({n: Affine.of(m.axis_map[n]) for n in apart.names}) * step
    return tuple(at) == kernel.index
