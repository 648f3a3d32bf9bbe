"""Generated pages are what the command writes now; every verb, every code and every public name is described."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import isam
from isam.approach.choice import POINTS, Trace
from isam.artifact import Artifact
from isam.cli.pages import PAGES
from isam.compiler import BoundFunction, Function
from isam.ir.kernel import Kernel
from isam.runtime.entry import Entry
from isam.schedule.tree import Schedule
from isam.system.graph import System

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m isam.cli.pages docs"


def test_every_public_name_is_described() -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    for name in isam.__all__:
        assert f"isam.{name}" in page, name
        assert (getattr(isam, name).__doc__ or "").strip(), name


def test_what_users_hold_describes_itself() -> None:
    """Every module, and every public method of the classes that users get into their hands."""
    for path in sorted((DOCS.parent / "isam").rglob("*.py")):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path
    held = (isam.Approach, isam.IsamError, Function, BoundFunction, Entry, Artifact, Kernel, System, Trace, Schedule)
    for c in held:
        missing = [n for n, m in vars(c).items() if not n.startswith("_") and callable(m) and not m.__doc__]
        assert c.__doc__, c
        assert set(missing) <= set(POINTS), (c, missing)


def test_every_choice_point_is_described() -> None:
    page = (DOCS / "approaches.md").read_text(encoding="utf-8")
    for point in POINTS:
        assert f"`{point}`" in page, point


def test_every_obligation_is_described() -> None:
    from isam.proof.violation import OBLIGATIONS

    page = (DOCS / "proof.md").read_text(encoding="utf-8")
    for number, statement in OBLIGATIONS.items():
        assert number == 0 or f"| {number} | {statement} |" in page, number
