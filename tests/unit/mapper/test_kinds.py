"""For every kind of mismatch the smallest example, its message, and a repair that works (tests/text/mismatches.txt)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from isam.ir import oracle
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mismatch import KINDS, Mismatch
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import Matches, match
from isam.mapper.match import BUDGET
from isam.mapper.search import reach

FILE = Path(__file__).parents[2] / "text" / "mismatches.txt"


@dataclass(frozen=True)
class Example:
    kernel: Kernel
    instruction: Instruction
    message: tuple[str, ...]
    repair: str
    by: str

    def match(self, **options: object) -> Matches | Mismatch:
        return match(self.kernel, self.instruction, **options)


def _read() -> dict[str, Example]:
    found = {}
    for block in re.split(r"(?m)^== ", FILE.read_text(encoding="utf-8"))[1:]:
        kind, _, rest = block.partition("\n")
        parts = re.split(r"(?m)^-- ", rest)
        kernel, instruction = re.split(r"(?m)^(?=instruction )", parts[0])
        said = next(p for p in parts if p.startswith("message"))
        repair, _, by = next(p for p in parts if p.startswith("repair")).partition("\n")
        message = tuple(said.strip().splitlines()[1:])
        found[kind.strip()] = Example(parse_kernel(kernel), parse_instruction(instruction), message,
                                      repair.removeprefix("repair").strip(), by.strip() + "\n")  # fmt: skip
    return found


EXAMPLES = _read()


def options(kind: str) -> dict[str, int]:
    return {"budget": 3} if kind == "budget" else {}


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_report_says_what_stands_in_the_way(kind: str):
    example = EXAMPLES[kind]
    no = example.match(**options(kind))
    assert isinstance(no, Mismatch), str(no)
    assert no.kind == kind, str(no)
    for line in example.message:
        assert line in str(no)
    assert no.kernel_loc.line > 0
    assert no.instruction_loc.line > 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_repair_works_when_it_is_applied(kind: str):
    example = EXAMPLES[kind]
    repaired(example, kind)


def repaired(e: Example, kind: str) -> None:
    if e.repair == "laws":
        found = reach(e.kernel, e.instruction)
        path = next(p for p in found.paths if [s.transform.law for s in p.steps] == e.by.split())
        assert match(path.kernel, e.instruction, normalise=False)
        assert found.blind_expansions == 0
        assert oracle.equal(e.kernel, path.kernel, sizes(e.kernel), 5)
    elif e.repair == "kernel":
        other = parse_kernel(e.by)
        assert oracle.equal(e.kernel, other, sizes(e.kernel), 5)
        assert match(other, e.instruction)
    elif e.repair == "other kernel":
        assert match(parse_kernel(e.by), e.instruction)
    elif e.repair == "instruction":
        assert match(e.kernel, parse_instruction(e.by))
    else:
        assert e.match(**{"strided": {"strided": True}, "budget": {"budget": BUDGET}}[e.repair]), kind


def sizes(kernel: Kernel) -> dict[str, int]:
    return {s.name: 3 + n for n, s in enumerate(kernel.syms)}
