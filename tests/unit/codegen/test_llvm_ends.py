"""Rows that fill no vector: the ends of axes that vectors do not divide. Where nothing between vectors and elements is
loaded and stored in one go under a mask, they are vectors of powers of two."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import isam
from isam.codegen.llvm import to_ir
from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.lanes import vector_of
from isam.codegen.llvm.vectors import Lanes, put_row, row, spaced
from isam.ir.dtype import numpy_dtype
from isam.system.features import lacking
from isam.system.graph import ALL, LOADS, System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.elsewhere import elsewhere
from tests.native_corpus import fault
from tests.pipeline import compiled

EIGHT = Lanes(8, LOADS)  # AVX
PART = """kernel part(M, N)
  in    x: {0}[M, N + 5]
  in    z: {0}[M, N + 5]
  inout y: {0}[M, N + 5]
  forall i < M, j < N
    y[i, j] = x[i, j] + z[i, j]
"""


def emitted(element: str, count: int, lanes: Lanes, align: int) -> tuple[str, str]:
    fn, to = Function(Module(), "f", ["ptr %p"]), Function(Module(), "f", ["ptr %p", f"{lanes.type(element)} %x"])
    row(fn, "%p", element, count, lanes, align)
    put_row(to, "%x", "%p", element, count, lanes, align)
    return fn.text(), to.text()


def lanes_of(text: str, what: str) -> list[int]:
    return [int(n) for n in re.findall(rf"{what} <(\d+) x", text)]


@pytest.mark.parametrize(("count", "parts"), [(1, [1]), (2, [2]), (3, [2, 1]), (4, [4]), (6, [4, 2]), (7, [4, 2, 1])])
def test_ends_are_stored_in_vectors_of_powers_of_two(count: int, parts: list[int]) -> None:
    for element in ("i8", "i16", "float", "double"):
        stored = emitted(element, count, EIGHT, 1)[1]
        assert lanes_of(stored, "store") == parts
        assert "masked" not in stored


def test_they_are_loaded_so_where_masks_are_of_no_use() -> None:
    """AVX loads words of four and eight bytes under masks, and none that are shorter."""
    assert lanes_of(emitted("i8", 7, EIGHT, 1)[0], "load") == [4, 2, 1]
    assert lanes_of(emitted("float", 4, EIGHT, 4)[0], "load") == [4]
    assert "masked.load" in emitted("float", 7, EIGHT, 4)[0]
    assert all("masked" in text for text in emitted("i8", 7, Lanes(16, ALL), 1))


@pytest.mark.parametrize("count", [4, 8, 16, 32])
def test_masks_are_where_the_description_says_so(count: int) -> None:
    """Not where there are as many lanes as AVX-512 has for words."""
    for element in ("i8", "float", "double"):
        assert not any("masked" in text for text in emitted(element, 3, Lanes(count), 1))
        assert all("masked" in text for text in emitted(element, 3, Lanes(count, ALL), 1))
        at = spaced(element, 4, 2, 8, Lanes(count, ALL)), spaced(element, 4, 2, 8, Lanes(count))
        assert at[0] is not None
        assert at[1] is None, "what is shorter than a vector is loaded under a mask"


def machine(name: str, masks: str) -> System:
    """A machine whose registers are loaded and stored under these masks."""
    system = load_system(name)
    memories = {n: replace(m, masks=masks if m.lanes else "") for n, m in system.memories.items()}
    return replace(system, memories=memories)


ENDS = [("matmul", {"M": 5, "N": 7, "K": 3}), ("gru_step", {"B": 3, "X": 5, "H": 7}),
        ("transpose", {"M": 7, "N": 21}), ("interleave", {"N": 23})]  # fmt: skip


@pytest.mark.parametrize(("name", "sizes"), ENDS)
def test_a_machine_of_sixteen_lanes_without_masks(name: str, sizes: dict[str, int]) -> None:
    """A row of AVX-512 without masks, as a CPU of another kind has: none is in its code, which computes the same."""
    bare, masked = (code(name, sizes, machine("host-avx512", masks)) for masks in ("", ALL))
    assert "llvm.masked" not in bare
    assert "<16 x float>" in bare
    assert verbs(masked) & {"store", "scatter"}


@pytest.mark.parametrize(("name", "sizes"), ENDS[:3])  # the last is element by element there
def test_a_machine_of_eight_lanes_with_masks(name: str, sizes: dict[str, int]) -> None:
    """AVX-512 has its masks for vectors of 32 bytes, too."""
    bare, some, masked = (code(name, sizes, machine("host-avx2", masks)) for masks in ("", LOADS, ALL))
    assert "llvm.masked" not in bare
    assert verbs(some) <= {"load"}
    assert verbs(masked) & {"store", "scatter"}


@pytest.mark.parametrize("name", ["host-avx512", "host-avx2"])
@pytest.mark.parametrize("masks", ["", ALL])
@pytest.mark.parametrize(("kernel", "sizes"), ENDS)
def test_they_compute_the_same(name: str, masks: str, kernel: str, sizes: dict[str, int]) -> None:
    system = machine(name, masks)
    if lacking(system.needs):
        pytest.skip(f"needs {name}")
    case = CASES[kernel]
    assert fault(case, sizes, system) is None


def verbs(text: str) -> set[str]:
    """What code does under masks."""
    return set(re.findall(r"llvm\.masked\.(\w+)", text))


def code(name: str, sizes: dict[str, int], system: System) -> str:
    with elsewhere():
        job = compiled(CASES[name].load(), sizes, system)
    assert job.schedule is not None
    return to_ir(job.schedule)[0]


def test_registers_are_under_the_same_masks() -> None:
    system = machine("host-avx512", ALL)
    other = replace(system, memories={**system.memories, "g": replace(system.memories["g"], masks="")})
    assert vector_of(system) == Lanes(16, ALL)
    with pytest.raises(isam.IsamError, match="different masks"):
        vector_of(other)


def test_parts_lie_as_far_apart_as_their_elements_are_long() -> None:
    """Also where they are aligned to less than an element, as groups of bytes are."""
    for text in emitted("i32", 6, EIGHT, 1):
        assert "align 1" in text or "masked" in text
    assert "i64 16" in emitted("i32", 6, EIGHT, 1)[1]
    assert "i64 8" in emitted("i16", 6, EIGHT, 1)[0]


@pytest.mark.parametrize("dtype", ["u8", "i16", "f16", "f32", "f64", "i64"])
@pytest.mark.parametrize("n", [1, 3, 6, 7, 13])
def test_nothing_beside_them_is_written(dtype: str, n: int) -> None:
    fn = isam.compile(PART.format(dtype), sizes={"M": 5, "N": n})
    x, z, y = np.random.default_rng(n).integers(0, 99, (3, 5, n + 5)).astype(numpy_dtype(dtype))
    want = y.copy()
    want[:, :n] = x[:, :n] + z[:, :n]
    fn(x, z, y)
    assert np.array_equal(y, want)
