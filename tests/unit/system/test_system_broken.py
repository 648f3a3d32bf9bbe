"""SYS-6: every fault at file:line:column, with what was expected and a hint, all at once and without cascades."""

from __future__ import annotations

import pytest

from isam.diagnostics import IsamError
from isam.system.load import parse_system
from tests.unit.system.broken import BROKEN, TINY


@pytest.mark.parametrize("name", BROKEN)
def test_reported_where_it_is(name: str) -> None:
    old, new, places, message, hint = BROKEN[name]
    assert old in TINY
    with pytest.raises(IsamError) as e:
        parse_system(TINY.replace(old, new, 1), "machine.yaml")
    found = e.value.diagnostics
    assert [f"{d.loc.line}:{d.loc.column} {d.code}" for d in found] == places
    assert all(d.loc.file == "machine.yaml" and d.hint and d.message for d in found)
    assert message in found[0].message
    assert hint in found[0].hint


def test_the_source_line_and_a_caret_are_shown() -> None:
    with pytest.raises(IsamError) as e:
        parse_system(TINY.replace("cells: 8, cell: 64 B}\n  rb", "cells: 8, cell: 64}\n  rb"), "m.yaml")
    first, line, caret, hint = str(e.value).split("\n")
    assert first == "m.yaml:6:41: error[system-unit]: '64' has no unit (bytes)"
    assert line == "      ra:   {kind: managed, cells: 8, cell: 64}"
    assert caret.index("^") - 4 == 40 == line.index("64}") - 4
    assert hint.startswith("  hint: write '64 B'")


def test_all_faults_at_once_in_source_order() -> None:
    text = TINY
    edits = ["no-unit", "no-flag", "kind", "unknown-issuer", "unit-case", "body-name-unknown", "cost-field"]
    expected: list[str] = []
    for n in edits:
        old, new, places, _, _ = BROKEN[n]
        text = text.replace(old, new, 1)
        expected += places
    with pytest.raises(IsamError) as e:
        parse_system(text, "m.yaml")
    found = [f"{d.loc.line}:{d.loc.column} {d.code}" for d in e.value.diagnostics]
    assert sorted(found) == sorted(expected)
    assert found == sorted(found, key=lambda f: tuple(map(int, f.split()[0].split(":"))))


def test_a_fault_in_a_family_is_reported_once_where_it_was_written() -> None:
    text = TINY + "\n".join([
        "  v_{op}_{T}:",
        "    for: {T: [bf16, f32], op: {add: {e: 'A[j] + B[j]'}, mul: {e: 'A[j] * B[j]'}}}",
        "    body: |",
        "      instruction v_{op}_{T}(J <= 16)",
        "        in  A: {T}[J]",
        "        in  B: {T}[J]  oops",
        "        out D: {T}[J]",
        "        forall j < J",
        "          D[j] = {e}",
    ])  # fmt: skip
    with pytest.raises(IsamError) as e:
        parse_system(text.replace("runs: [mm4]", "runs: [mm4, 'v_*']"), "m.yaml")
    places = [(d.loc.line, d.loc.column) for d in e.value.diagnostics]
    rows = text.split("\n")
    line = next(n for n, row in enumerate(rows, 1) if "oops" in row)
    assert (line, rows[line - 1].index("oops") + 1) in places  # of the file, though bf16 is longer than {T}
    assert len(places) == len(set(places)) <= 2


def test_faults_of_included_files_name_them(tmp_path) -> None:
    from isam.system.load import load_system

    part = tmp_path / "part.yaml"
    part.write_text("isam: 1\nmemories:\n  l1: {kind: cached, capacity: 1 KiB, of: dram, sise: 3}\n")
    main = tmp_path / "m.yaml"
    main.write_text(TINY.replace("system: tiny", "system: m\ninclude: [part.yaml]").replace("align: 16 B", "align: 16"))
    with pytest.raises(IsamError) as e:
        load_system(str(main))
    assert [(d.loc.file, d.loc.line, d.code) for d in e.value.diagnostics] == [
        (str(main), 6, "system-unit"), (str(part), 3, "system-unknown-key")]  # fmt: skip


def test_braces_that_name_no_parameter_are_reported_once_with_the_one_that_was_meant() -> None:
    family = "\n".join([
        "  v_{op}_{T}:",
        "    for: {T: [bf16, f32], op: {add: {e: 'A[j] + B[j]'}, mul: {e: 'A[j] * B[j]'}, max: {e: 'A[j]'}}}",
        "    body: |",
        "      instruction v_{op}_{T}(J <= 16)",
        "        in  A: {T}[J]",
        "        in  B: {T}[J]",
        "        out D: {T}[J]",
        "        forall j < J",
        "          D[j] = {ee}",
        "",
    ])  # fmt: skip
    first = TINY.count("\n") + 2
    with pytest.raises(IsamError) as e:
        parse_system(TINY + family, "m.yaml")
    places = [(d.code, d.loc.line - first, d.loc.column, d.message, d.hint) for d in e.value.diagnostics]
    assert places == [("system-family", 7, 18, "no parameter 'ee'", "did you mean 'e'?")]
    with pytest.raises(IsamError) as e:
        parse_system(TINY.replace("instruction copy(", "instruction copy{X}("), "m.yaml")
    assert [(d.code, d.message) for d in e.value.diagnostics] == [("system-family", "no parameter 'X'")]


def test_a_name_that_no_system_has_suggests_one_and_a_file_beside(tmp_path, monkeypatch) -> None:
    from isam.system.load import load_system

    monkeypatch.chdir(tmp_path)
    for name, hint in (("hosst", "did you mean 'host'?; a path ends in .yaml"), ("vega", "known here")):
        with pytest.raises(IsamError) as e:
            load_system(name)
        assert hint in e.value.diagnostics[0].hint
        assert str(e.value).startswith(f"error[system-unknown]: no system is called '{name}'")  # and in no file
    (tmp_path / "vega.yaml").write_text(TINY)
    with pytest.raises(IsamError) as e:
        load_system("vega")
    assert e.value.diagnostics[0].hint == "the file vega.yaml is here: with its ending, 'vega.yaml', it is a path"
    assert load_system("vega.yaml").name == "tiny"


def test_a_way_that_is_missing_is_told_once() -> None:
    """However many operands live there."""
    other = """  zero:
    body: |
      instruction zero(M <= 4)
        out D: f32[M]
        forall i < M
          D[i] = 0
    homes: [ra]
"""
    text = TINY.replace("to: [ra, rb], by: copy, issuer: dma, both_ways: true", "to: [ra, rb], by: copy, issuer: dma")
    with pytest.raises(IsamError) as e:
        parse_system(text.replace("runs: [mm4]", "runs: [mm4, zero]") + other, "m.yaml")
    assert [d.loc.line for d in e.value.diagnostics] == [23, 23]


def test_a_move_that_computes_has_one_fault_of_its_own() -> None:
    with pytest.raises(IsamError) as e:
        parse_system(TINY.replace("D[i, j] = S[i, j]", "D[i, j] = S[i, j] + 1"), "m.yaml")
    found = [d.code for d in e.value.diagnostics if d.code != "system-not-a-move"]
    assert found == ["V413"]


def test_a_file_that_is_not_there_suggests_one_beside_it(tmp_path) -> None:
    from isam.system.load import load_system

    (tmp_path / "own.yaml").write_text(TINY)
    for name, hint in (("own.yml", "did you mean 'own.yaml'?"), ("zebra.yml", "check the path")):
        with pytest.raises(IsamError) as e:
            load_system(str(tmp_path / name))
        assert [(d.code, d.hint) for d in e.value.diagnostics] == [("system-file", hint)]


def test_a_move_along_an_axis_that_indexes_nothing_is_none() -> None:
    """It was taken for one, and then carried nothing."""
    plain, more = (f"forall {z}i < M, j < N\n          D[i, j] = S" for z in ("", "z < 1, "))
    one = TINY.replace(plain, more)
    with pytest.raises(IsamError) as e:
        parse_system(one, "m.yaml")
    said = {d.message for d in e.value.diagnostics if d.code == "system-not-a-move"}
    assert said == {"'copy' goes along 'z', which indexes nothing: it cannot carry out a move"}


@pytest.mark.parametrize(("old", "new", "at", "hint"), [
    ("memories:", "memories", "3:1", "check indentation, colons, quotes and brackets near here"),
    ("body: |", "body:", "18:16", "a text of several lines begins with 'body: |'"),
])  # fmt: skip
def test_what_is_no_yaml_says_where_to_look(old, new, at, hint) -> None:
    with pytest.raises(IsamError) as e:
        parse_system(TINY.replace(old, new, 1), "m.yaml")
    assert [(f"{d.loc.line}:{d.loc.column}", d.hint) for d in e.value.diagnostics] == [(at, hint)]
