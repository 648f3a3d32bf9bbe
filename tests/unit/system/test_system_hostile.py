"""SYS-6: hostile files are refused in milliseconds."""

from __future__ import annotations

import os
import random
from types import SimpleNamespace

import pytest

from isam.diagnostics import IsamError
from isam.system.load import load_system, parse_system
from isam.system.source import LIBRARY_DEPTH, _Reader
from tests.clock import quickest
from tests.unit.system.broken import TINY

LIMIT = 0.2  # seconds
BOMB = "isam: 1\nsystem: x\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
FAMILY = "isam: 1\nsystem: x\ninstructions:\n  a{T}:\n    for: {%s}\n    body: |\n      instruction a()\n"
HOSTILE = {
    "brackets": ("[" * 100_000, "system-depth"),
    "closed brackets": ("x: " + "[" * 100_000 + "]" * 100_000, "system-depth"),
    "braces": ("{a: " * 100_000, "system-depth"),
    "dashes": ("- " * 100_000, "system-depth"),
    "questions": ("? " * 100_000, "system-depth"),
    "indentation": ("\n".join(" " * n + "a:" for n in range(1000)), "system-depth"),
    "aliases": (BOMB, "system-alias"),
    "merge": ("a: &a {b: 1}\nc:\n  <<: *a\n", "system-alias"),
    "huge scalar": ("isam: 1\nsystem: '" + "x" * 50_000_000 + "'", "system-too-large"),
    "long scalar": ("isam: 1\nsystem: '" + "x" * 1_000_000 + "'", "system-scalar"),
    "many values": ("x: [" + "1, " * 300_000 + "]", "system-nodes"),
    "many keys": ("\n".join(f"k{i}: {i}" for i in range(60_000)), "system-nodes"),
    "long key": ("k" * 100_000 + ": 1", "system-scalar"),
    "cells": (TINY.replace("cells: 8,", "cells: 1000000000000,", 1), "system-count"),
    "exponent": (TINY.replace("16 KiB", "1e999 KiB", 1), "system-unit"),
    "digits": (TINY.replace("16 KiB", "9" * 60_000 + " KiB", 1), "system-unit"),
    "digits then a letter": (TINY.replace("cells: 8,", "cells: " + "9" * 60 + "x,", 1), "system-count"),
    "clock": (TINY.replace("1 GHz", "1e300 GHz", 1), "system-unit"),
    "object": ("!!python/object/apply:os.system ['true']", "system-tag"),
    "documents": ("a: 1\n---\n" * 10_000, "system-documents"),
    "control character": ("isam: 1\nsystem: \x07", "system-yaml"),
    "nul": ("isam: 1\nsystem: \x00", "system-yaml"),
    "members": (FAMILY % ", ".join(f"p{n}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" for n in range(12)), "system-family"),
    "growing values": (FAMILY % ("T: {x: {" + ", ".join(
        f"p{n}: '{f'{{p{n + 1}}}' * 500}'" for n in range(20)) + ", p20: y}}"), "system-family"),
    "misspelt": ("isam: 1\n" + "\n".join(f"{'k' * 50}{i}: 1" for i in range(5000)), "system-unknown-key"),
    "wildcards": (TINY.replace("runs: [mm4]", "runs: ['" + "*a" * 45 + "']"), "system-unknown-instruction"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_refused_at_once(name: str) -> None:
    text, code = HOSTILE[name]
    parse_system(TINY)  # imports are not what is timed
    told: list[IsamError] = []

    def refused() -> None:
        with pytest.raises(IsamError) as e:
            parse_system(text, "hostile.yaml")
        told.append(e.value)

    assert quickest(refused, LIMIT) < LIMIT
    assert code in [d.code for d in told[-1].diagnostics]
    assert len(str(told[-1])) < 200_000
    assert all(d.loc.line > 0 and d.hint for d in told[-1].diagnostics)


def test_large_files_are_not_even_read(tmp_path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as f:
        f.truncate(10**10)  # sparse

    def refused() -> None:
        with pytest.raises(IsamError, match="10000000000 bytes"):
            load_system(str(path))

    assert quickest(refused, LIMIT) < LIMIT


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_only_regular_files_are_opened(tmp_path, make) -> None:
    path = tmp_path / "odd.yaml"
    make(path)
    with pytest.raises(IsamError, match="not a file"):
        load_system(str(path))


def test_bytes_that_are_no_text(tmp_path) -> None:
    path = tmp_path / "m.yaml"
    path.write_bytes(b"isam: 1\nsystem: \xff\xfe\n")
    with pytest.raises(IsamError) as e:
        load_system(str(path))
    assert str(e.value.diagnostics[0].loc) == f"{path}:2:9"
    path.write_bytes(bytes(random.Random(7).randbytes(4096)))
    with pytest.raises(IsamError):
        load_system(str(path))


NAMES = ["", "nosuch", "/nosuch/x.yaml", "to\0y", "to\0y.yaml", "x" * 10_000, "*", "../toy", "."]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_no_system(name: str) -> None:
    with pytest.raises(IsamError) as e:
        load_system(name)
    assert all(d.hint for d in e.value.diagnostics)


def test_circles_of_files(tmp_path) -> None:
    (tmp_path / "a.yaml").write_text("isam: 1\nsystem: a\nextends: b\n")
    (tmp_path / "b.yaml").write_text("isam: 1\nsystem: b\nextends: a\n")
    (tmp_path / "c.yaml").write_text("isam: 1\nsystem: c\ninclude: [c.yaml]\n")
    (tmp_path / "d.yaml").write_text("isam: 1\nsystem: d\nselect: [{system: e}]\n")
    (tmp_path / "e.yaml").write_text("isam: 1\nsystem: e\nselect: [{system: d}]\n")
    for name in "acd":
        with pytest.raises(IsamError) as e:
            load_system(str(tmp_path / f"{name}.yaml"))
        assert "system-cycle" in [d.code for d in e.value.diagnostics]


def test_many_files(tmp_path) -> None:
    for n in range(100):
        (tmp_path / f"p{n}.yaml").write_text(f"isam: 1\ninclude: [p{n + 1}.yaml]\n")
    (tmp_path / "m.yaml").write_text("isam: 1\nsystem: m\ninclude: [p0.yaml]\n")
    with pytest.raises(IsamError) as e:
        load_system(str(tmp_path / "m.yaml"))
    assert "system-files" in [d.code for d in e.value.diagnostics]


def test_a_limit_that_the_library_meets_first_is_depth_too() -> None:
    """libyaml reads ahead for what may be a key; from some version on it stops at 1000 levels, before any event."""
    mark = SimpleNamespace(line=0, column=3)
    for problem, code in ((LIBRARY_DEPTH, "system-depth"), ("did not find expected node content", "system-yaml")):
        error = SimpleNamespace(problem=problem, problem_mark=mark)
        found = _Reader("hostile.yaml", "[[[[").syntax(error)
        assert (found.code, found.loc.column) == (code, 4)
