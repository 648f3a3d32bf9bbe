"""Calls of few elements in a narrow form: by the same template, on part of the lanes that a register has.

Registers keep values of all lanes: a call reads the first of them, and what it makes gets zeros behind it. Neither is
code to a CPU whose shorter vectors are the first lanes of its longer ones (Intel SDM vol. 1, 15.2: YMM and XMM are part
of ZMM registers, and what writes one clears the rest).

A scalar in all lanes is put into fewer of them anew, right behind where it was put into all: from a longer vector of
equal lanes LLVM makes the shorter one by a shuffle, and of two operands that are read for the last time it
overwrites the one made last (``TwoAddressInstructionPass::isProfitableToCommute``), which should be the sum: others are
then kept in registers that are not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from isam.codegen.llvm import tiles
from isam.codegen.llvm.irtext import Function, vector
from isam.ir.instruction import Instruction, Narrow
from isam.system.graph import Memory


def lanes_of_call(instruction: Instruction, sizes: Mapping[str, int], whole: int) -> int:
    """On how many lanes a call of these sizes is carried out."""
    form = instruction.cost.form(sizes)
    return whole if form is None else form.most


def fitted(fn: Function, value: str, dtype: str, have: int, want: int) -> str:
    """A value of ``have`` lanes as one of ``want``: the first of them, or all with zeros behind."""
    if have == want or not value.startswith("%"):  # a constant: all lanes are equal, however many
        return value
    if value in fn.scalars and want < have:
        scalar, spot = fn.scalars[value]
        return tiles.spread(fn, scalar, vector(dtype, want), want, spot)
    order, type_ = ", ".join(f"i32 {min(i, have)}" for i in range(want)), vector(dtype, have)
    return fn.op(f"shufflevector {type_} {value}, {type_} zeroinitializer, <{want} x i32> <{order}>")


def fault(i: Instruction, form: Narrow, registers: Iterable[Memory]) -> str:
    """Why an instruction cannot have a narrow form, or the empty string: it takes so many lanes of every register."""
    if any(m.lane or (m.lanes or 0) <= form.most for m in registers):
        return f"{form.most} lanes are no part of its registers"
    rows = {b.name: [str(n) for n in b.shape] for b in i.body.arguments}
    out = {s.dest.buffer for s in i.body.statements}
    return next((f"'{n}' is not as long as '{form.size}' says" for n, shape in rows.items()
                 if shape != [form.size] and (shape or n in out)), "")  # fmt: skip
