"""Registers of two dimensions to and from addressed memory: so many rows of so many bytes. An operand that fills one is
loaded and stored where it lies; a smaller one goes through a copy on the stack, in which zeros follow it. Where what is
below its rows does not matter, one of whole rows is loaded where it lies, too."""

from __future__ import annotations

from typing import NamedTuple

from isam.codegen.llvm.irtext import Function, mask
from isam.codegen.llvm.tiles import Addressed
from isam.diagnostics import fail
from isam.ir.dtype import size_of


class Rows(NamedTuple):
    """A register: rows, and bytes of a row."""

    rows: int
    bytes: int


def source(fn: Function, at: Addressed, register: Rows) -> tuple[str, str]:
    """Pointer to the first of all rows of the register, and bytes from one to the next."""
    count, length = _extent(at, register)
    if (count, length) == register:
        return at.pointer, str(at.steps[0])
    return _copied(fn, at, count, length, register)


def top(fn: Function, at: Addressed, register: Rows) -> tuple[str, str]:
    """The same where below the operand's rows the register may hold anything: whatever lies there is loaded, if that is
    a part of the same buffer."""
    count, length = _extent(at, register)
    step = at.steps[0] if count > 1 else 0  # one row again and again
    if length < register.bytes or at.inside is None or step < 0:
        return source(fn, at, register)
    if count == register.rows or step == 0:
        return at.pointer, str(step)
    base, size = at.inside
    behind = fn.gep(at.pointer, (register.rows - 1) * step + register.bytes)
    fits = fn.op(f"icmp ule ptr {behind}, {fn.gep(base, size)}")
    begin, tag = fn.block, fn.fresh()[1:]
    fn.emit(f"br i1 {fits}, label %rows{tag}, label %few{tag}")
    fn.label(f"few{tag}")
    room, apart = _copied(fn, at, count, length, register)
    fn.emit(f"br label %rows{tag}")
    fn.label(f"rows{tag}")
    pointer = fn.op(f"phi ptr [ {at.pointer}, %{begin} ], [ {room}, %few{tag} ]")
    return pointer, fn.op(f"phi i64 [ {step}, %{begin} ], [ {apart}, %few{tag} ]")


def _copied(fn: Function, at: Addressed, count: int, length: int, register: Rows) -> tuple[str, str]:
    """The rows on the stack, zeros behind them."""
    room = fn.room(register.rows * register.bytes)
    row = f"<{register.bytes} x i8>"
    for n in range(register.rows):
        value = "zeroinitializer" if n >= count else _row(fn, at, n, length, row, register)
        fn.emit(f"store {row} {value}, ptr {fn.gep(room, n * register.bytes)}, align 64")
    return room, str(register.bytes)


def target(fn: Function, at: Addressed, register: Rows) -> tuple[str, str]:
    """Pointer to where all rows of the register may be stored, and bytes from one to the next."""
    if _extent(at, register) == register:
        return at.pointer, str(at.steps[0])
    return fn.room(register.rows * register.bytes), str(register.bytes)


def put(fn: Function, room: str, at: Addressed, register: Rows) -> None:
    """What was stored at :func:`target` is copied to the operand, where it is not that."""
    count, length = _extent(at, register)
    if (count, length) == register:
        return
    row, some = f"<{register.bytes} x i8>", f"<{register.bytes} x i1> {mask(length, register.bytes)}"
    for n in range(count):
        value = fn.op(f"load {row}, ptr {fn.gep(room, n * register.bytes)}, align 64")
        where = f"ptr align 1 {fn.gep(at.pointer, n * at.steps[0])}"
        fn.do(f"call void @llvm.masked.store.v{register.bytes}i8.p0({row} {value}, {where}, {some})")


def _row(fn: Function, at: Addressed, n: int, length: int, row: str, register: Rows) -> str:
    pointer = fn.gep(at.pointer, n * at.steps[0])
    return fn.op(f"call {row} @llvm.masked.load.v{register.bytes}i8.p0(ptr align 1 {pointer}, "
                 f"<{register.bytes} x i1> {mask(length, register.bytes)}, {row} zeroinitializer)")  # fmt: skip


def _extent(at: Addressed, register: Rows) -> Rows:
    """Rows of the operand, and the bytes of one."""
    size = size_of(at.dtype)
    length = size
    for n, step in zip(reversed(at.shape[1:]), reversed(at.steps[1:]), strict=True):
        if n > 1 and step != length:
            raise fail("emission-rows", f"a row of {list(at.shape)} of {at.dtype} does not lie in one piece")
        length *= n
    if at.literal is not None or not at.shape or at.shape[0] > register.rows or length > register.bytes:
        raise fail("emission-rows", f"{list(at.shape)} of {at.dtype} does not fit {register.rows} rows of "
                   f"{register.bytes} B")  # fmt: skip
    return Rows(at.shape[0], length)
