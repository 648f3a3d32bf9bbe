"""The drawings in the docs are what the printer prints today."""

from __future__ import annotations

import pytest

from tests.drawings import FOLDER, drawing


@pytest.mark.parametrize("system", ["host-avx512", "toy"])
def test_drawing_is_current(system):
    assert (FOLDER / f"product_{system}.txt").read_text(encoding="utf-8") == drawing(system)
