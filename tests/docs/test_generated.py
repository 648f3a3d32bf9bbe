"""Generated pages are what the command writes now; every verb, every code and every public name is described."""

from __future__ import annotations

from pathlib import Path

import pytest

import isam
from isam.cli.pages import PAGES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m isam.cli.pages docs"


def test_every_public_name_is_described() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    for name in isam.__all__:
        assert f"isam.{name}" in page, name
        assert (getattr(isam, name).__doc__ or "").strip(), name


def test_every_choice_point_is_described() -> None:
    from isam.approach.choice import POINTS

    page = (DOCS / "approaches.md").read_text(encoding="utf-8")
    for point in POINTS:
        assert f"`{point}`" in page, point


def test_every_obligation_is_described() -> None:
    from isam.proof.violation import OBLIGATIONS

    page = (DOCS / "proof.md").read_text(encoding="utf-8")
    for number, statement in OBLIGATIONS.items():
        assert number == 0 or f"| {number} | {statement} |" in page, number
