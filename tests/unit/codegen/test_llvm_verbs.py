"""The table of verbs says what the documentation says of them."""

from __future__ import annotations

import re
from pathlib import Path

from isam.codegen.llvm.reading import read
from isam.codegen.llvm.verbs import VERBS, said

PAGE = (Path(__file__).parents[3] / "docs/llvm.md").read_text()
DOCUMENTED = [form for row in re.findall(r"^\|(.*?)\|", PAGE, re.MULTILINE)
              for form in re.findall(r"`([^`]*tile\.[^`]*)`", row)]  # fmt: skip


def test_each_verb_is_documented_once_and_no_other():
    names = re.findall(r"tile\.(\w+)", " ".join(DOCUMENTED))
    assert sorted(names) == sorted(VERBS)


def test_the_forms_of_the_documentation_are_those_that_are_read():
    for form in DOCUMENTED:
        line = said(re.sub(r"^%p = ", "", form))
        assert line is not None, form
        assert len(line.args) == 1 + line.verb.stores, form
        assert form.startswith("%p = ") <= line.verb.points, form


def test_a_size_stands_where_registers_have_rows():
    assert said("tile.rows %S") is None
    assert said("tile.load(16, 64) %S") is None
    assert said("tile.stoore %S, %D") is None
    assert said("%S") is None


def test_the_form_that_a_hint_gives_is_read_as_that_verb():
    for verb in VERBS.values():
        (line,) = read(verb.form, 8)
        assert line.verb is verb
