"""What pages name is there: tests by their paths and modules; how long the checker of certificates is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "isam").rglob("*.md"),
                *(ROOT / "hwdesc").rglob("*.md")])  # fmt: skip
PATH = re.compile(r"\btests/[\w./*-]*[\w*]")
MODULE = re.compile(r"-m (tests(?:\.\w+)+)")


def paths(text: str) -> set[str]:
    return set(PATH.findall(text)) | {m.replace(".", "/") for m in MODULE.findall(text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = paths(page.read_text("utf-8"))
    there = {p for p in named if any(ROOT.glob(p)) or any(ROOT.glob(f"{p}.py"))}
    assert named == there


def test_pages_name_many_tests() -> None:
    assert len(set().union(*(paths(p.read_text("utf-8")) for p in PAGES))) > 150


def test_the_checker_of_certificates_is_as_long_as_is_said() -> None:
    text = " ".join((ROOT / "docs" / "proof.md").read_text("utf-8").split())
    found = re.search(r"`isam/proof/checker\.py`, about (\d+) lines, on top of what judges kernels by value "
                      r"\(([^()]*): ([\d,]+) lines\)", text)  # fmt: skip
    assert found
    modules = re.findall(r"`([\w/.]+)`", found[2])
    assert len(modules) > 5
    files = [ROOT / m if "/" in m else ROOT / "isam" / "proof" / f"{m}.py" for m in modules]
    lengths = [f.read_text("utf-8").count("\n") for f in files]
    checker = (ROOT / "isam" / "proof" / "checker.py").read_text("utf-8").count("\n")
    assert checker == pytest.approx(int(found[1]), rel=0.05)
    assert sum(lengths) == pytest.approx(int(found[3].replace(",", "")), rel=0.03)
