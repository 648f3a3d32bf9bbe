"""Small edits that ask about conditions of laws: beside those of :mod:`tests.edits`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from isam.ir.affine import Affine
from isam.ir.kernel import REDUCTIONS, Access, Axis, Buffer, Domain, Item, Kernel, Literal, Recurrence, Statement
from tests.edits import EDITS, Edit, pick, put, reads, with_source
from tests.random_kernels import Chooser

NUMBERS = (0, 1, 2, -1, 3, 0.5, float("inf"), float("-inf"))
TYPES = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "u8")


def with_buffer(k: Kernel, name: str, **new: Any) -> Kernel:
    return replace(k, buffers=tuple(replace(b, **new) if b.name == name else b for b in k.buffers), template=None)


def role(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """A buffer has another role."""
    b: Any = pick(choose, k.buffers)
    others = {"temp": ("out", "inout"), "out": ("inout", "temp"), "inout": ("out", "temp"), "in": ("inout", "const")}
    new: Any = pick(choose, others.get(b.role, ()))
    return new and with_buffer(k, b.name, role=new, declared=True)


def dtype(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """All buffers of one type have another one."""
    old, new = k.buffer(s.dest.buffer).dtype, TYPES[choose.integer(0, len(TYPES) - 1)]
    return replace(k, buffers=tuple(replace(b, dtype=new) if b.dtype == old else b for b in k.buffers), template=None)


def one_dtype(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    b: Any = pick(choose, k.buffers)
    return with_buffer(k, b.name, dtype=TYPES[choose.integer(0, len(TYPES) - 1)])


def permits(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    p: Any = pick(choose, ({"exact"}, {"finite", "reassociate"}, {"reassociate"}, {"finite"}))
    return replace(k, permits=frozenset(p), template=None)


def number(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """A number is another one, or stands where an array was."""
    i = choose.integer(0, len(s.sources) - 1)
    return put(k, n, [with_source(s, i, Literal(NUMBERS[choose.integer(0, len(NUMBERS) - 1)]))])


def between(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """Before the statement something it touches, or another one does, is written."""
    names = [b.name for b in k.buffers if b.role != "const"]
    b = k.buffer(names[choose.integer(0, len(names) - 1)])
    axes = tuple(Axis(f"q{d}", size) for d, size in enumerate(b.shape))
    dest = Access(b.name, tuple(Affine.of(a.name) for a in axes))
    other = [x.name for x in k.buffers if x.shape == b.shape and x.dtype == b.dtype and x.name != b.name]
    source: Any = pick(choose, [Literal(2), *(Access(x, dest.index) for x in other)])
    return put(with_buffer(k, b.name, role="inout") if b.role == "in" else k, n,
               [Statement(Domain(axes), dest, "copy", (source,)), s])  # fmt: skip


def reader(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """After the statement somebody else reads what it wrote."""
    b = k.buffer(s.dest.buffer)
    axes = tuple(Axis(f"q{d}", size) for d, size in enumerate(b.shape))
    index = tuple(Affine.of(a.name) for a in axes)
    seen = Buffer("seen", b.shape, b.dtype, "out")
    more = Statement(Domain(axes), Access("seen", index), "copy", (Access(b.name, index),))
    k = replace(k, buffers=(*k.buffers, seen))
    return replace(k, body=(*k.body, more), template=None) if choose.integer(0, 1) else put(k, n, [s, more])


def looped(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """Some neighbouring items are done twice over."""
    if any(isinstance(it, Recurrence) for it in k.body):
        return None
    i = choose.integer(0, len(k.body) - 1)
    j = choose.integer(i + 1, len(k.body))
    loop: Item = Recurrence(Axis("steps", Affine((), 2)), k.body[i:j])
    return replace(k, body=(*k.body[:i], loop, *k.body[j:]), template=None)


def narrowed(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """A condition more."""
    a: Any = pick(choose, s.domain.axes)
    b: Any = pick(choose, s.domain.axes)
    if a is None:
        return None
    row: Any = pick(choose, (Affine.of(a.name) - 1, a.extent - 2 - a.name, Affine.of(a.name) - b.name))
    return put(k, n, [replace(s, domain=replace(s.domain, where=(*s.domain.where, row)))])


def accumulated(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """``y = a`` becomes ``y += a``, and ``y += a`` becomes ``y = y + a``."""
    if s.accumulate and len(s.sources) == 1 and s.op in REDUCTIONS:
        return put(k, n, [replace(s, sources=(s.dest, *s.sources), accumulate=False)])
    op: Any = pick(choose, REDUCTIONS)
    return put(k, n, [replace(s, op=op, accumulate=True)]) if s.op == "copy" else None


def itself(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """What is written is read too, or one array twice."""
    found = reads(s)
    new: Any = pick(choose, [s.dest, *(x for _, x in found)])
    return put(k, n, [with_source(s, choose.integer(0, len(s.sources) - 1), new)])


def shorter(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """An axis has one step."""
    a: Any = pick(choose, s.domain.axes)
    axes = tuple(replace(x, extent=Affine((), 1)) if x == a else x for x in s.domain.axes)
    return put(k, n, [replace(s, domain=replace(s.domain, axes=axes))])


def order(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """Axes change places."""
    return put(k, n, [replace(s, domain=replace(s.domain, axes=s.domain.axes[::-1]))])


def longer(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """A buffer has room for one more."""
    b: Any = pick(choose, [b for b in k.buffers if b.shape])
    if b is None:
        return None
    d = choose.integer(0, len(b.shape) - 1)
    return with_buffer(k, b.name, shape=(*b.shape[:d], b.shape[d] + 1, *b.shape[d + 1 :]), declared=True)


def together(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """An axis is summed up, or a sum has one axis less to its result: a row of the destination is one number."""
    if not s.dest.index:
        return None
    d = choose.integer(0, len(s.dest.index) - 1)
    index = (*s.dest.index[:d], Affine(), *s.dest.index[d + 1 :])
    return put(k, n, [replace(s, dest=replace(s.dest, index=index))])


def another_row(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """In one access a row runs in steps, further in, or along another axis too, and there is room for that."""
    found = [(i, x, d) for i, x in [(-1, s.dest), *reads(s)] for d, row in enumerate(x.index) if row.names]
    if not found or not s.domain.axes:
        return None
    i, x, d = found[choose.integer(0, len(found) - 1)]
    b, row, size = k.buffer(x.buffer), x.index[d], k.buffer(x.buffer).shape[d]
    other: Any = pick(choose, s.domain.axes)
    ways = ((row * 2, size * 2), (row + 1, size + 1), (row + other.name, size + other.extent))
    new, room = ways[choose.integer(0, 2)]
    k = with_buffer(k, b.name, shape=(*b.shape[:d], room, *b.shape[d + 1 :]), declared=True)
    x = replace(x, index=(*x.index[:d], new, *x.index[d + 1 :]))
    return put(k, n, [replace(s, dest=x) if i < 0 else with_source(s, i, x)])


MORE: tuple[Edit, ...] = (accumulated, another_row, between, dtype, itself, longer, looped, narrowed, number, one_dtype,
                          order, permits, reader, role, shorter, together)  # fmt: skip
ALL_EDITS = (*EDITS, *MORE)


def edited(k: Kernel, choose: Chooser) -> Kernel | None:
    if not k.statements:
        return None
    n = choose.integer(0, len(k.statements) - 1)
    return ALL_EDITS[choose.integer(0, len(ALL_EDITS) - 1)](k, n, k.statements[n], choose)
