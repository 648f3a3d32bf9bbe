"""The examples run and say that they are right."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from isam.ir.text import parse_file
from isam.ir.verify import verify

FOLDER = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.py")))
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    out = capsys.readouterr().out
    assert out
    assert "False" not in out


@pytest.mark.parametrize("name", sorted(p.name for p in FOLDER.glob("*.isam")))
def test_kernels(name: str) -> None:
    for k in parse_file((FOLDER / name).read_text(), name).kernels:
        assert verify(k) == []
