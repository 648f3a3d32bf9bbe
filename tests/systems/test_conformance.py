"""What can be tried of a machine with its description alone: every instruction, random programs, what they used."""

from __future__ import annotations

import random
from dataclasses import replace
from importlib.resources import files
from itertools import islice

import numpy as np
import pytest

from isam.codegen import simulator
from isam.codegen.simulator import call
from isam.codegen.simulator.body import Body
from isam.codegen.simulator.fault import SimulationFault
from isam.compiler.programs import Use, program, programs
from isam.ir import oracle
from isam.ir.instruction import Instruction
from isam.ir.text import parse
from isam.system.load import load_system, parse_system

MACHINES = ("casestudy", "dual", "gemmini", "pe_array", "systolic", "tiny", "toy", "toy_grid", "toy_pair",
            "tpu_v1_like")


@pytest.mark.parametrize("name", MACHINES)
def test_random_programs_of_its_own_instructions_run_right(name: str) -> None:
    use = Use()
    found = list(islice(programs(load_system(name), 11, use), 12))
    assert [o.reason for o in found if o.verdict == "wrong"] == []
    assert sum(o.verdict == "right" for o in found) >= (2 if name == "tpu_v1_like" else 9)
    assert all(o.reason for o in found if o.verdict == "no")
    assert use.instructions
    assert use.units


@pytest.mark.parametrize("name", MACHINES)
def test_all_that_a_program_does_reaches_a_result(name: str) -> None:
    """What one body keeps to itself is no operand of the next, and no program is without a result."""
    machine, dice = load_system(name), random.Random(7)
    for _ in range(100):
        kernel = program(machine, dice, dice.randint(1, 5))
        wanted = {b.name for b in kernel.buffers if b.role in ("out", "inout")} if kernel else set()
        for s in reversed(kernel.statements if kernel else ()):
            assert s.dest.buffer in wanted, str(kernel)
            wanted |= {a.buffer for a in s.reads}


def test_programs_are_the_same_again_and_read_back_in() -> None:
    toy = load_system("toy")
    one, two = (list(islice(programs(toy, 5, Use()), 5)) for _ in range(2))
    assert [str(o) for o in one] == [str(o) for o in two]
    assert [str(o) for o in islice(programs(toy, 6, Use()), 5)] != [str(o) for o in one]
    for o in one:
        assert parse(str(o)) == o.kernel
    assert any(len(o.kernel.statements) > 2 for o in one)


def test_programs_end_when_the_time_is_over() -> None:
    assert list(programs(load_system("toy"), 5, Use(), end=0.0)) == []


def test_what_was_not_used_is_told() -> None:
    machine, use = load_system("casestudy"), Use()
    everything = use.unused(machine)
    assert len(everything["instructions"]) == len(machine.compute)
    assert everything["units"] == list(machine.units)
    list(islice(programs(machine, 3, use), 3))
    after = use.unused(machine)
    assert set(after["units"]) < set(everything["units"])
    assert "hbm -> sp by box" in everything["edges"]
    assert "hbm -> sp by box" not in after["edges"]


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = oracle.run_modular

    def off_by_one(*args: object) -> dict[str, np.ndarray]:
        return {n: a + 1 for n, a in right(*args).items()}  # type: ignore[arg-type]

    monkeypatch.setattr(oracle, "run_modular", off_by_one)
    (o,) = islice(programs(load_system("toy"), 1, Use()), 1)
    assert o.verdict == "wrong"
    assert "differs" in o.reason


def test_an_instruction_that_is_wrong_is_seen_wherever_it_stands_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Off(Body):
        """One that takes the lesser where its description says the greater."""

        def __init__(self, instruction: Instruction, *rest) -> None:
            if instruction.name == "relu4":
                body = tuple(replace(s, op="min") for s in instruction.body.statements)
                instruction = replace(instruction, body=replace(instruction.body, body=body))
            super().__init__(instruction, *rest)

    machine = parse_system(files("isam.cli").joinpath("templates/system.yaml").read_text(), "mine.yaml")
    right = list(islice(programs(machine, 3, Use()), 25))
    assert {o.verdict for o in right} == {"right"}
    monkeypatch.setattr(call, "Body", Off)
    wrong = [o.verdict == "wrong" for o in islice(programs(machine, 3, Use()), 25)]
    assert wrong == [any(s.op == "max" for s in o.kernel.statements) for o in right]
    assert 5 < sum(wrong) < 25
    for o in (o for o in islice(programs(machine, 3, Use()), 25) if o.verdict == "wrong"):
        assert [s.op for s in o.kernel.statements] == ["max"], "nothing else is left of it"
        assert "] differs from the oracle's; made by relu4, moved by copy" in o.reason


def test_of_a_step_that_a_machine_cannot_do_the_call_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SimulationFault("stale", "operand S is stale", 3, "copy(M=4, N=4) on dma", {"i": 4})

    monkeypatch.setattr(simulator, "simulate", refuse)
    (o,) = islice(programs(load_system("toy"), 1, Use()), 1)
    assert o.verdict == "wrong"
    assert o.reason == "simulator[stale]: operand S is stale\n  at step 3 (i = 4): copy(M=4, N=4) on dma"
