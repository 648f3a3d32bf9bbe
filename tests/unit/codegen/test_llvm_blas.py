"""Every routine of ``blas``: leading dimensions, transposed operands, overwriting and accumulating, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isam.codegen.llvm import generate
from isam.diagnostics import IsamError
from isam.ir import interp
from isam.ir.affine import Affine
from isam.ir.dtype import numpy_dtype, size_of
from isam.ir.mapping import Cover
from isam.schedule.tree import Issue, Operand, Place, Schedule, Seq, Tile
from isam.system.load import load_system
from tests.native import run

BLAS = load_system("blas")
ROUTINES = [i.name for i in BLAS.compute if i.name[1:5] in ("gemm", "gemv", "ger", "axpy", "dot", "dot_")]


def window(name: str, sizes: dict[str, int], gap: int) -> tuple[Schedule, dict[str, tuple[slice, ...]]]:
    """A call on the inner part of larger arrays: ``gap`` elements around it in every dimension."""
    instruction = BLAS.instructions[name]
    body = instruction.body.with_sizes(sizes)
    operands, buffers, inside = [], [], {}
    for b in body.arguments:
        size, shape = size_of(b.dtype), tuple(d.const for d in b.shape)
        big = tuple(n + 2 * gap for n in shape)
        strides = tuple(size * int(np.prod(big[d + 1 :])) for d in range(len(big)))
        offset = sum(gap * s for s in strides)
        rank = len(shape)
        tile = Tile(b.name, (Affine((), gap),) * rank, shape, (1,) * rank)
        place = Place("ram", b.name, Affine((), offset), strides)
        operands.append(Operand(b.name, tile, place, tuple(range(rank))))
        role = "inout" if b.role == "out" else b.role
        buffers.append(replace(b, role=role, shape=tuple(Affine((), n) for n in big)))
        inside[b.name] = tuple(slice(gap, gap + n) for n in shape)
    kernel = replace(body, buffers=tuple(buffers), body=(), syms=())
    issue = Issue("core", name, tuple(sizes.items()), tuple(operands), 0)
    return Schedule(kernel, BLAS, Cover(kernel, kernel, ()), (), Seq(), Seq((issue,)), ()), inside


@pytest.mark.parametrize("gap", [0, 3])
@pytest.mark.parametrize("name", ROUTINES)
def test_routine_on_a_window_of_larger_arrays(name: str, gap: int) -> None:
    instruction = BLAS.instructions[name]
    rng = np.random.default_rng(len(name) + gap)
    for m, n, k in ((5, 7, 3), (1, 1, 1), (1, 6, 2), (6, 1, 2)):
        sizes = {s.name: {"M": m, "N": n, "K": k}[s.name] for s in instruction.syms}
        schedule, inside = window(name, sizes, gap)
        arrays = {b.name: rng.integers(-9, 9, tuple(d.const for d in b.shape)).astype(numpy_dtype(b.dtype))
                  for b in schedule.kernel.buffers}  # fmt: skip
        parts = {o: np.ascontiguousarray(a[inside[o]]).reshape(a[inside[o]].shape) for o, a in arrays.items()}
        formal = instruction.body.with_sizes(sizes)
        want = interp.run(formal, {o: a for o, a in parts.items() if formal.buffer(o).role != "out"})["C"]
        got = run(schedule, arrays)
        expected = arrays["C"].copy()
        expected[inside["C"]] = want
        assert np.array_equal(got["C"], expected), (name, sizes)


def test_there_is_an_overwriting_and_an_accumulating_form_of_each() -> None:
    assert len(ROUTINES) == 2 * (4 * 2 + 2 * 2 + 1 + 1 + 2)
    assert BLAS.instructions["sgemm_nn"].body.buffer("C").role == "inout"
    assert BLAS.instructions["sgemm_nn_new"].body.buffer("C").role == "out"


def test_everything_of_the_host_is_there_too() -> None:
    host = load_system("host")
    assert set(host.instructions) < set(BLAS.instructions)


def test_rows_that_overlap_are_refused_before_blas_sees_them() -> None:
    schedule, _ = window("sgemm_nn", {"M": 4, "N": 4, "K": 4}, 0)
    issue = schedule.call.children[0]  # type: ignore[union-attr]
    a = issue.operands[0]
    bad = replace(issue, operands=(replace(a, place=replace(a.place, strides=(8, 4))), *issue.operands[1:]))
    with pytest.raises(IsamError, match="8 bytes apart do not hold 4 elements"):
        generate(replace(schedule, call=Seq((bad,))))
