"""Values to and from addressed memory: whole vectors, the first lanes of one, elements apart from each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import copysign

from isam.classes import dataclass
from isam.codegen.llvm.irtext import ELEMENT, SELDOM, SUFFIX, Function, Lines, mask, vector
from isam.codegen.llvm.vectors import Lanes, put_apart, put_row, row, spaced, together
from isam.diagnostics import fail
from isam.ir.affine import Affine
from isam.ir.dtype import size_of


@dataclass(frozen=True, slots=True)
class Addressed:
    """An operand in addressed memory: ``shape`` and byte ``steps`` per operand dimension, first element at ``pointer``.

    ``literal``: the operand is a constant scalar and needs no memory. ``inside``: what it is a part of, a pointer and
    bytes, where that is known. ``beside``: so many bytes before the first element and behind the last are of the same
    buffer, too.
    """

    pointer: str
    dtype: str
    shape: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    literal: float | int | bool | None = None
    inside: tuple[str, int] | None = None
    beside: tuple[int, int] = (0, 0)

    @property
    def count(self) -> int:
        return self.shape[-1] if self.shape else 1

    @property
    def step(self) -> int:
        return self.steps[-1] if self.shape and self.shape[-1] > 1 else size_of(self.dtype)

    def stride(self, d: int) -> int:
        """Elements between neighbours along dimension ``d``; 0 where there is one."""
        return self.steps[d] // size_of(self.dtype) if self.shape[d] > 1 else 0

    @property
    def leading(self) -> int:
        """Elements between rows of a matrix operand."""
        size, columns = size_of(self.dtype), self.shape[1]
        if self.shape[0] == 1:
            return max(1, columns)
        if self.steps[0] % size or self.steps[0] < columns * size:
            raise fail("emission-leading", f"rows {self.steps[0]} bytes apart do not hold {columns} elements of {size}")
        return self.steps[0] // size

    @property
    def increment(self) -> int:
        """Elements between neighbours of a vector operand."""
        if self.step % size_of(self.dtype) or not self.step:
            raise fail("emission-increment", f"elements {self.step} bytes apart are no multiple of their size apart")
        return self.step // size_of(self.dtype)


def whole_steps(offset: Affine, step: int, size: int, whole: int) -> tuple[int, int]:
    """In a buffer of ``whole`` bytes, cut into pieces of ``step`` bytes: how many of a piece lie before an element of
    ``size`` bytes at ``offset``, and how many behind it; none where that depends on loops or the pieces do not fit."""
    if step < size or whole % step or any(c % step for _, c in offset.terms):
        return 0, 0
    before = offset.const % step
    return (before, step - size - before) if before % size == 0 and before + size <= step else (0, 0)


def constant(dtype: str, value: float | int | bool) -> str:
    """The LLVM constant (without type) of a scalar literal, rounded to ``dtype`` as the interpreter does."""
    return _constant(dtype, value, copysign(1, value))


@lru_cache(1 << 10, typed=True)  # calls say the same few; -0.0 equals 0.0
def _constant(dtype: str, value: float | int | bool, _sign: float) -> str:
    import numpy as np

    from isam.ir.arithmetic import Numbers
    from isam.ir.dtype import numpy_dtype

    with np.errstate(all="ignore"):
        x = Numbers().literal(value, dtype).astype(numpy_dtype(dtype))
    if dtype in ("f64", "f32"):  # LLVM writes floats as the bits of a double
        return f"0x{int(np.asarray(x, np.float64).view(np.uint64)):016X}"
    return str(int(x.view(np.uint16)) if dtype in ("bf16", "f16") else int(x))


def prefetch(fn: Function, pointer: str, cache: int) -> None:
    """Asks a cache, 0 being the nearest, for what lies at an address; one that is no one's does no harm (LLVM,
    ``llvm.prefetch``)."""
    fn.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {max(1, 3 - cache)}, i32 1)")


def _scalar(fn: Function, at: Addressed, offset: int = 0) -> str:
    if at.literal is not None:
        return constant(at.dtype, at.literal)
    e = ELEMENT[at.dtype]
    return fn.op(f"load {e}, ptr {fn.gep(at.pointer, offset)}, align {size_of(at.dtype)}")


def splat(fn: Function, at: Addressed, lanes: int) -> str:
    """The scalar in every lane."""
    if at.literal is not None:
        x = constant(at.dtype, at.literal)
        return "zeroinitializer" if not x.strip("0x") else f"splat ({ELEMENT[at.dtype]} {x})"
    return spread(fn, _scalar(fn, at), vector(at.dtype, lanes), lanes)


def spread(fn: Function, scalar: str, type_: str, lanes: int, into: Lines | None = None) -> str:
    """The scalar in all lanes, there or ``into`` an earlier place."""
    element = type_.split(" x ")[1][:-1]
    one = fn.op(f"insertelement {type_} poison, {element} {scalar}, i64 0", into)
    out = fn.op(f"shufflevector {type_} {one}, {type_} poison, <{lanes} x i32> zeroinitializer", into)
    if into is None:
        fn.scalars[out] = scalar, fn.buffer()
    return out


def load(fn: Function, at: Addressed, of: Lanes) -> str:
    """The first ``at.count`` lanes from memory, the others zero."""
    n, lanes, size, e, v = at.count, of.count, size_of(at.dtype), ELEMENT[at.dtype], vector(at.dtype, of.count)
    _check(at, lanes)
    if at.literal is not None or (at.step == 0 and n == lanes):
        return splat(fn, at, lanes)
    if (some := spaced(e, size, n, at.step, of, at.beside)) is not None:
        return together(fn, at.pointer, some)
    if gathers(at, of):
        return fn.op(f"call {v} @llvm.masked.gather.v{lanes}{SUFFIX[e]}.v{lanes}p0({spots(fn, at, lanes)}, "
                     f"<{lanes} x i1> {mask(n, lanes)}, {v} zeroinitializer)")  # fmt: skip
    if at.step != size or n == 1:
        value = "zeroinitializer"
        for i in range(n):
            value = fn.op(f"insertelement {v} {value}, {e} {_scalar(fn, at, i * at.step)}, i64 {i}")
        return value
    return row(fn, at.pointer, e, n, of, size)


def gathers(at: Addressed, of: Lanes) -> bool:
    """Whether elements apart from each other go in one gather or scatter: one line of code instead of ``count``, which
    is what keeps large transposed blocks cheap to compile. Where masks are not for all they are taken one by one."""
    return of.any and at.count > 2 and at.step != size_of(at.dtype) and size_of(at.dtype) >= 4


def spots(fn: Function, at: Addressed, lanes: int) -> str:
    """The addresses of the elements along the only dimension, typed, with their alignment."""
    offsets = ", ".join(f"i64 {i * at.step if i < at.count else 0}" for i in range(lanes))
    pointers = fn.op(f"getelementptr i8, ptr {at.pointer}, <{lanes} x i64> <{offsets}>")
    return f"<{lanes} x ptr> align {size_of(at.dtype)} {pointers}"


def store(fn: Function, value: str, at: Addressed, of: Lanes) -> None:
    """The first ``at.count`` lanes to memory."""
    n, lanes, size, e, v = at.count, of.count, size_of(at.dtype), ELEMENT[at.dtype], vector(at.dtype, of.count)
    _check(at, lanes)
    if of.any and (some := spaced(e, size, n, at.step, of)) is not None:
        put_apart(fn, value, at.pointer, some)
    elif gathers(at, of):
        fn.do(f"call void @llvm.masked.scatter.v{lanes}{SUFFIX[e]}.v{lanes}p0({v} {value}, {spots(fn, at, lanes)}, "
              f"<{lanes} x i1> {mask(n, lanes)})")  # fmt: skip
    elif at.step != size or n == 1:  # LLVM 22 stores 32 bits for a single truncated 16-bit lane under a mask
        for i in range(n):
            x = fn.op(f"extractelement {v} {value}, i64 {i}")
            fn.emit(f"store {e} {x}, ptr {fn.gep(at.pointer, i * at.step)}, align {size}")
    else:
        put_row(fn, value, at.pointer, e, n, of, size)


def shifted(fn: Function, value: str, dtype: str, lanes: int, by: int, spread_it: bool) -> str:
    """Lane ``by`` and those after it moved to the front, or that lane alone in all lanes."""
    v = vector(dtype, lanes)
    order = ", ".join(f"i32 {by if spread_it else min(i + by, lanes - 1)}" for i in range(lanes))
    return fn.op(f"shufflevector {v} {value}, {v} poison, <{lanes} x i32> <{order}>")


def each(fn: Function, callee: str, dtype: str, args: list[str], lanes: int, count: int | None) -> str:
    """A C function of scalars called for each of the first ``count`` lanes (None: once, for a value in all lanes)."""
    e, v = ELEMENT[dtype], vector(dtype, lanes)
    out = "zeroinitializer"
    for i in range(1 if count is None else count):
        xs = [fn.op(f"extractelement {v} {a}, i64 {i}") for a in args]
        y = fn.op(f"call {e} {callee}({', '.join(f'{e} {x}' for x in xs)})")
        if count is None:
            return spread(fn, y, v, lanes)
        out = fn.op(f"insertelement {v} {out}, {e} {y}, i64 {i}")
    return out


def where(fn: Function, some: str, type_: str, made: Callable[[], str], other: str, lanes: int) -> str:
    """What ``made`` emits, of ``type_``, in the lanes where ``some`` holds, and ``other`` in the rest. Where it holds
    in none, as is taken to be nearly always so, what was made is not carried out."""
    any_ = fn.op(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {some})")
    tag, before = fn.fresh()[1:], fn.block
    fn.emit(f"br i1 {any_}, label %any.{tag}, label %rest.{tag}, {SELDOM}")
    fn.label(f"any.{tag}")
    value = fn.op(f"select <{lanes} x i1> {some}, {type_} {made()}, {type_} {other}")
    leaving = fn.block
    fn.emit(f"br label %rest.{tag}")
    fn.label(f"rest.{tag}")
    return fn.op(f"phi {type_} [ {other}, %{before} ], [ {value}, %{leaving} ]")


def store_lane0(fn: Function, value: str, at: Addressed, lanes: int) -> None:
    e = ELEMENT[at.dtype]
    x = fn.op(f"extractelement {vector(at.dtype, lanes)} {value}, i64 0")
    fn.emit(f"store {e} {x}, ptr {at.pointer}, align {size_of(at.dtype)}")


def _check(at: Addressed, lanes: int) -> None:
    if not 1 <= at.count <= lanes:
        raise fail("emission-lanes", f"a tile of {at.count} elements does not fit {lanes} lanes")
