"""``system`` and its verbs: machines listed, shown, made and tested."""

from __future__ import annotations

import json
import re

import isam
from tests.cli.conftest import SMALL


def test_system_verbs(cli, tmp_path):
    d = cli("system", "list", "--json").json("system list")
    assert {"tiny", "toy", "host", "blas"} <= {s["name"] for s in d["systems"]}
    assert "m_fill" in cli("system", "show", "toy").out
    assert cli("system", "show", "toy", "--mermaid").out.startswith("flowchart")
    assert cli("system", "show", "tiny", "--json").json("system show")["memories"]["sp"]["capacity"] == 16384
    schema = cli("system", "schema")
    assert json.loads(schema.out)["$schema"]
    mine = tmp_path / "mine.yaml"
    assert cli("system", "new", "mine", "-o", mine).code == 0
    assert cli("system", "new", "mine", "-o", mine).code == 2  # never overwrites
    assert cli("system", "check", mine, "tiny").code == 0
    tested = cli("system", "test", mine, "--json").json("system test")
    assert tested["right"] == ["mm4", "fill4", "relu4"]
    assert (tested["wrong"], tested["refused"], tested["left"]) == ({}, {}, [])


def test_why_random_programs_are_refused(cli, tmp_path):
    """Reasons that differ in operands alone are told once; the document has each program with all that was said."""
    mine = tmp_path / "small.yaml"
    assert cli("system", "new", "mine", "-o", mine).code == 0
    mine.write_text(mine.read_text().replace("cells: 8", "cells: 1"))
    said = cli("system", "test", mine, "--seconds", 30)
    assert re.search(r"\n20 random programs: .* [1-9]\d* refused with a reason, 0 wrong\n  [1-9]", said.out)
    found = cli("system", "test", mine, "--seconds", 30, "--json").json("system test")["programs"]["refused"]
    told = [int(n) for n in re.findall(r"^  (\d+) refused", said.out, re.MULTILINE)]
    assert sum(told) == len(found) > len(told)
    for r in found:
        assert isam.parse(r["program"]).name == "program"
        assert r["reason"].startswith(("error", str(mine)))


def test_system_test_finds_a_template_that_lies(cli, tmp_path):
    """An instruction whose emission computes something else is named, with the fault."""
    mine = tmp_path / "liar.yaml"
    mine.write_text(LIAR)
    ran = cli("system", "test", mine, "-i", "lie", "--json")
    assert ran.code == 1, ran.out
    d = ran.json("system test")
    assert list(d["wrong"]) == ["lie"]
    mine.write_text(LIAR.replace("fsub", "flub"))
    assert "LLVM refuses" in cli("system", "test", mine, "-i", "lie", "--json").json("system test")["wrong"]["lie"]


LIAR = """isam: 1
system: liar
extends: host-generic
instructions:
  lie:
    body: |
      instruction lie()
        in  A: f64[]
        in  B: f64[]
        out D: f64[]
        permits exact
        D[] = A[] + B[]
    homes: v
    cost: {issue: 0.1 cycles, latency: 1 cycle}
    emission:
      llvm: |
        %D = fsub $f64 %A, %B
"""


def test_a_new_system_runs_a_product(cli, matmul, tmp_path):
    mine = tmp_path / "mine.yaml"
    cli("system", "new", "mine", "-o", mine)
    assert cli("run", matmul, "--on", mine, *SMALL, "--check").code == 0


def test_a_machine_is_drawn_once(cli):
    ran = cli("system", "show", "tiny", "--svg", "--mermaid")
    assert (ran.code, ran.out) == (2, "")
    assert "cli-option" in ran.err


def test_a_file_of_kernels_and_a_description_are_told_apart(cli, matmul, tmp_path):
    ran = cli("map", matmul, "--on", matmul)
    assert ran.code == 2
    assert "is a file of kernels, not a system" in ran.err
    (tmp_path / "k.yaml").write_text("kernel k(N)\n  in x: f32[N]\n")
    assert "hint: a file of kernels ends in .isam: `isam check`" in cli("system", "check", tmp_path / "k.yaml").err
    (tmp_path / "own.yaml").write_text(cli("system", "new", "own").out)
    for verb in ("check", "map"):
        assert cli(verb, tmp_path / "own.yaml").err.count("error") == 1


def test_a_machine_shows_rows_and_which_operand_lives_where(cli):
    text = cli("system", "show", "gemmini").out
    assert re.search(r"\n  spad +managed +256 KiB +16 B +rows of 16 B\n", text)
    assert "A D: spad, W: pe, C: acc;" in text
    assert "copy" in cli("system", "show", "toy").out
    assert cli("system", "show", "gemmini", "--json").json("system show")["memories"]["acc"]["row"] == 64
