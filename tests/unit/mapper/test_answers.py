"""The matcher answers what is on record (``answers.txt``): mappings in order, pairs tried, contradictions met."""

from __future__ import annotations

import pytest

from tests.unit.mapper.answers import instructions, line, recorded


@pytest.mark.parametrize("name", instructions())
def test_what_is_on_record(name: str) -> None:
    said = f"'python -m tests.unit.mapper.answers {name}' prints what is behind it; without a name it records"
    assert line(instructions()[name]) == recorded().get(name), said


def test_there_is_a_line_per_instruction() -> None:
    assert list(recorded()) == list(instructions())
