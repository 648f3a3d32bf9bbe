"""Generated pages are what the command writes now; every verb, every code and every public name is described."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import isam
from isam.approach.choice import POINTS, Trace
from isam.artifact import Artifact
from isam.cli.maps import READING, modules
from isam.cli.pages import END, HEAD, PAGES, TABLES, filled
from isam.compiler import BoundFunction, Function
from isam.compiler.stages import NAMES
from isam.ir.kernel import Kernel
from isam.runtime.entry import Entry
from isam.schedule.tree import Schedule
from isam.system.graph import System
from isam.transforms import ALL as LAWS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m isam.cli.pages docs"


@pytest.mark.parametrize("name", TABLES)
def test_table_within_a_page_is_up_to_date(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == filled(text, *(table() for table in TABLES[name])), "run: python -m isam.cli.pages docs"


def test_options_that_are_spelled_two_ways_say_which_holds() -> None:
    page = PAGES["cli.md"]()
    assert "`--code / --no-code`: " in page
    assert "byte by byte. (default `--code`)" in page
    assert "* `--seed VALUE`: Of the random data. (default `0`)\n" in page
    assert "* `--rounds VALUE`: Turns that each contender gets (default 5, quick 3).\n" in page


def test_a_page_without_marks_is_not_filled() -> None:
    with pytest.raises(ValueError, match="generated"):
        filled("# A page\n", "| a table |\n")
    page = filled(f"a\n{HEAD}\n{END}b\n{HEAD}\nold\n{END}c\n", "| 1 |\n", "| 2 |\n")
    assert page == f"a\n{HEAD}\n| 1 |\n\n{END}b\n{HEAD}\n| 2 |\n\n{END}c\n"
    with pytest.raises(ValueError, match="generated"):
        filled(page, "| 1 |\n")


@pytest.mark.parametrize("package", READING)
def test_every_module_of_a_large_package_is_on_its_map_once(package: str) -> None:
    listed = [name for _, names in READING[package] for name in names.split()]
    assert sorted(listed) == sorted(modules(package)), f"isam/cli/maps.py: the parts of '{package}'"


def test_every_large_package_has_a_map() -> None:
    top = DOCS.parent / "isam"
    large = {p.name for p in top.iterdir() if p.is_dir() and len(list(p.rglob("*.py"))) > 30}
    assert not [p for p in large if not (top / p / "README.md").is_file()]


def test_every_file_of_the_mapper_is_on_its_map() -> None:
    page = (DOCS.parent / "isam" / "mapper" / "README.md").read_text(encoding="utf-8")
    top = {name.partition("/")[0] + "/" if "/" in name else f"{name}.py" for name in modules("mapper")}
    for name in sorted(top):
        assert page.count(f"`{name}`") == 1, name


def test_every_law_is_in_the_table_of_laws() -> None:
    """In the part of the page that says in which folder, by the file that holds it."""
    page = (DOCS.parent / "isam" / "transforms" / "README.md").read_text(encoding="utf-8")
    structure = page.partition("(`structure/`)")[2]
    for law in LAWS:
        name = type(law).__module__.removeprefix("isam.transforms.").replace(".", "/") + ".py"
        folder, _, file = name.rpartition("/")
        assert f"| `{file}` |" in structure if folder == "structure" else f"| `{name}` |" in page, law.law


def test_the_places_that_contributors_are_sent_to_exist() -> None:
    """Files and folders, and in Python files the names in capitals that are mentioned of them."""
    page = (DOCS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = re.findall(r"`((?:isam|tests|docs|benchmarks|hwdesc)/[\w./-]*)`", page)
    assert len(places) > 40
    assert not [p for p in places if not (DOCS.parent / p).exists()]
    modules = re.findall(r"`python -m ((?:isam|tests)\.[\w.]+)", page)
    assert not [m for m in modules if not (DOCS.parent / m.replace(".", "/")).with_suffix(".py").is_file()]
    code = "".join((DOCS.parent / p).read_text(encoding="utf-8") for p in set(places) if p.endswith(".py"))
    names = set(re.findall(r"`(_?[A-Z]{3,}(?:_[A-Z]+)*)`", page)) - {"LAWS"}  # those stand in packages
    assert not [n for n in names if not re.search(rf"^(?:\w+, )*{n}\b", code, re.MULTILINE)]


def test_the_modules_that_pages_name_exist() -> None:
    top = DOCS.parent
    known = {p.relative_to(top).as_posix() for f in ("isam", "tests", "benchmarks", "examples")
             for p in (top / f).rglob("*.py")}  # fmt: skip
    pages = [*top.glob("*.md"), *DOCS.rglob("*.md"), *(top / "isam").rglob("*.md")]
    named = {(p.name, m) for p in pages for m in re.findall(r"`([\w/]+\.py)`", p.read_text(encoding="utf-8"))}
    assert len(named) > 100
    assert not {(p, m) for p, m in named if not any(f"/{k}".endswith(f"/{m}") for k in known)}


def test_every_part_of_the_design_belongs_to_a_stage() -> None:
    page = (DOCS / "design.md").read_text(encoding="utf-8").partition("| stage | part |")[2].partition("\n\n")[0]
    stages = [row.split("|")[1].strip() for row in page.splitlines()[2:]]
    assert list(dict.fromkeys(stages)) == ["before all", *NAMES, "after all"]


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
