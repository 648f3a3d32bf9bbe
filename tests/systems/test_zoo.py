"""Other machines' instructions: bodies are verified and map onto themselves; with semantics only nothing compiles."""

from __future__ import annotations

import pytest

import isam
from isam.diagnostics import IsamError
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.text import parse
from isam.mapper import match
from isam.system.check import check
from isam.system.load import load_system

ZOO = ("arm_neon", "arm_sme", "arrays", "gemmini", "nvidia_mma", "riscv_v", "tpu_like", "units", "x86_amx")
SEMANTICS = tuple(z for z in ZOO if z != "gemmini")  # which has a simulator
MATMUL = """kernel matmul(M, N, K)
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def typed(system: str) -> list[Instruction]:
    return [i for i in described(system) if all(b.dtype != ANY for b in i.body.buffers)]


def described(system: str) -> list[Instruction]:
    """Instructions that move or compute; others only configure."""
    return [i for i in load_system(system).instructions.values() if i.body.body]


@pytest.mark.parametrize("system", ZOO)
def test_every_body_is_well_formed(system: str) -> None:
    assert check(load_system(system), bodies=True) == []


@pytest.mark.parametrize("system", ZOO)
def test_every_body_maps_onto_itself_as_it_stands(system: str) -> None:
    for i in typed(system):
        found = match(i.body, i)
        assert found, f"{i.name}: {found}"
        assert any(all(a == b for a, b in m.axes) and not m.outer for m in found), i.name
        assert found.complete


@pytest.mark.parametrize("system", SEMANTICS)
def test_nothing_is_compiled_and_the_refusal_says_where(system: str) -> None:
    machine = load_system(system)
    one = next(i for i in machine.compute if not i.is_move)
    sizes = {s.name: s.hi or 4 for s in one.syms}
    with pytest.raises(IsamError) as e:
        isam.compile(one.body, on=machine, sizes=sizes)
    d = e.value.diagnostics[0]
    assert d.code == "system-no-backend"
    assert d.loc.file.endswith(f"{system}.yaml")
    assert d.loc.line == 5


def test_a_kernel_is_mapped_without_a_back_end() -> None:
    system = load_system("units").restricted(["gemm_nn"])
    assert [m.instruction.name for m in match(parse(MATMUL), system.instructions["gemm_nn"])] == ["gemm_nn"] * 2
