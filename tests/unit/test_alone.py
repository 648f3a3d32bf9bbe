"""Whose fault it is when code is refused or wrong: instructions are tried alone, and the one that fails is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

import isam
from isam.compiler.alone import culprits, fault_alone, theirs
from isam.diagnostics import InternalError, IsamError, Loc
from isam.ir.table import Table
from isam.system.graph import System
from isam.system.load import load_system, parse_system

SYSTEM = """isam: 1
system: mine
extends: host-generic
instructions:
  vmadd:
    body: |
      instruction vmadd(J <= 4)
        in    A: f32[J]
        in    B: f32[J]
        inout C: f32[J]
        forall j < J
          C[j] += A[j] * B[j]
    homes: [v]
    cost: {issue: 0.2 cycle, latency: 4 cycles}
    emission: {llvm: "%p = fmul $f32 %A, %B\\n%C = fadd $f32 %p, %C"}
"""
KERNEL = ("kernel k(N)\n  in    a: f32[N]\n  in    b: f32[N]\n  inout c: f32[N]\n  forall i < N\n"
          "    c[i] += a[i] * b[i]\n")  # fmt: skip
OPCODE, SEMANTICS = ("fmul", "fmull"), ("fadd", "fsub")


def mine(wrong: tuple[str, str] = ("", "")) -> System:
    return parse_system(SYSTEM.replace(*wrong) if wrong[0] else SYSTEM, "mine.yaml")


def with_template(system: System, name: str, old: str, new: str, file: str) -> System:
    """The machine with one template changed, as if it stood in ``file``."""
    i = system.instructions[name]
    i = replace(i, emission={"llvm": i.emission["llvm"].replace(old, new)}, loc=Loc(file, 7, 3) if file else i.loc)
    kept = {n: system.instructions[n] for n in system.instructions} | {name: i}
    return replace(system, instructions=Table(kept))


def test_a_template_that_llvm_refuses_is_named_where_it_stands():
    with pytest.raises(IsamError) as no:
        isam.compile(KERNEL, on=mine(OPCODE), sizes={"N": 23}, require="vmadd")
    (d,) = no.value.diagnostics
    assert (d.code, d.loc) == ("emission-refused", Loc("mine.yaml", 5, 3))
    assert "'vmadd'" in d.message
    assert "expected instruction opcode: %" in d.message
    assert "isam system test FILE -i vmadd" in d.hint


def test_a_template_that_computes_something_else_is_named_and_others_are_not():
    fn = isam.compile(KERNEL, on=mine(SEMANTICS), sizes={"N": 23}, require="vmadd")
    (d,) = culprits(fn.system, fn.schedule, run=True)
    assert (d.code, d.loc) == ("emission-value", Loc("mine.yaml", 5, 3))
    assert "'vmadd' computes something else than its body says: C[0] is " in d.message
    assert theirs([d])
    assert not culprits(fn.system, fn.schedule, run=False)  # there is code for it
    right = isam.compile(KERNEL, on=mine(), sizes={"N": 23}, require="vmadd")
    assert not culprits(right.system, right.schedule, run=True)
    assert fault_alone(right.system, right.system.instructions["vmadd"]) is None


def test_a_move_that_all_others_need_is_blamed_instead_of_them():
    system = with_template(mine(), "store", "tile.store", "tile.stoore", "moves.yaml")
    with pytest.raises(IsamError) as no:
        isam.compile(KERNEL, on=system, sizes={"N": 8})
    assert [d.loc.file for d in no.value.diagnostics] == ["moves.yaml"]
    assert "all that is moved by 'store' is wrong" in no.value.diagnostics[0].message


def test_what_ships_is_ours_and_still_named():
    system = with_template(load_system("host-generic"), "store", "tile.store", "tile.stoore", "")
    with pytest.raises(InternalError, match=r"moves.yaml:\d+:\d+: error\[emission-refused\]: all that is moved by 's"):
        isam.compile(KERNEL, on=system, sizes={"N": 8})


def test_the_command_says_that_the_description_is_wrong(tmp_path, monkeypatch, capsys):
    from isam.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.isam").write_text(KERNEL)
    for wrong, code in ((OPCODE, "emission-refused"), (SEMANTICS, "emission-value")):
        (tmp_path / "mine.yaml").write_text(SYSTEM.replace(*wrong))
        assert main(["run", "k.isam", "--on", "mine.yaml", "-D", "N=23", "--check", "--require", "vmadd"]) == 2
        assert capsys.readouterr().err.startswith(f"mine.yaml:5:3: error[{code}]: ")
