"""What can be tried of a machine with its description alone: every instruction, random programs, what they used."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from isam.compiler.programs import Use, programs
from isam.ir import oracle
from isam.ir.text import parse
from isam.system.load import load_system

MACHINES = ("casestudy", "dual", "gemmini", "pe_array", "systolic", "tiny", "toy", "toy_grid", "toy_pair",
            "tpu_v1_like")


@pytest.mark.parametrize("name", MACHINES)
def test_random_programs_of_its_own_instructions_run_right(name: str) -> None:
    use = Use()
    found = list(islice(programs(load_system(name), 11, use), 12))
    assert [o.reason for o in found if o.verdict == "wrong"] == []
    assert sum(o.verdict == "right" for o in found) >= (4 if name == "tpu_v1_like" else 9)
    assert all(o.reason for o in found if o.verdict == "no")
    assert use.instructions
    assert use.units


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
