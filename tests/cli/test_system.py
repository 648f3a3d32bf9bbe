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


ALONE = """isam: 1
system: alone
memories:
  dram: {{kind: managed, capacity: 1 GiB, home: true}}
units:
  u: {{runs: [dup], clock: 1 GHz}}
instructions:
  dup:
    body: |
      instruction dup({size})
        in  S: {dtype}[N]
        out D: {dtype}[N]
        forall i < N
          D[i] = S[i]
    homes: [dram]
    cost: {{issue: 1 cycle, latency: 1 cycle}}
"""


def test_an_instruction_of_any_type_is_tried_as_several(cli, tmp_path):
    mine = tmp_path / "any.yaml"
    mine.write_text(ALONE.format(size="N", dtype="any"))
    d = cli("system", "test", mine, "--json").json("system test")
    assert (d["right"], d["wrong"], d["refused"]) == (["dup"], {}, {})
    assert (d["programs"]["right"], d["unused"]["instructions"]) == (20, [])


def test_an_instruction_of_any_type_is_right_where_its_operands_can_be_had(cli, tmp_path):
    """Of a machine that moves one type only, the others say nothing against it."""
    mine = tmp_path / "mine.yaml"
    assert cli("system", "new", "mine", "-o", mine).code == 0
    text = mine.read_text().replace("runs: [mm4,", "runs: [dup, mm4,").replace("any[", "f32[")
    dup = ALONE.format(size="N <= 4", dtype="any").partition("instructions:\n")[2]
    mine.write_text(text + dup.replace("homes: [dram]", "homes: [ra, rb]"))
    d = cli("system", "test", mine, "-i", "dup", "--json").json("system test")
    assert (d["right"], d["wrong"], d["refused"]) == (["dup"], {}, {})


def test_numbers_that_mean_nothing_are_refused(cli):
    for option, number in (("--programs", "-1"), ("--seconds", "-1"), ("--seconds", "nan")):
        ran = cli("system", "test", "tiny", option, number)
        assert ran.code == 2
        assert "cli-number" in ran.err


def test_no_programs_are_looked_for_without_end(cli, tmp_path):
    """Operands of this one are too large for a random program."""
    mine = tmp_path / "large.yaml"
    mine.write_text(ALONE.format(size="N == 65536", dtype="f32"))
    ran = cli("system", "test", mine)
    assert ran.code == 0
    assert "1 of 1 instructions do what their bodies say\n  no more programs: its instructions made no" in ran.out
    d = cli("system", "test", mine, "--json").json("system test")
    assert d["programs"] == {"right": 0, "refused": [], "wrong": [], "given_up": d["programs"]["given_up"]}
    assert "200 tries" in d["programs"]["given_up"]


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


def test_a_new_system_may_be_in_a_file_of_any_ending_and_have_a_dot_in_its_name(cli, tmp_path, monkeypatch):
    """What is printed to go on with works: a file that is there is one, unless a system has that name."""
    monkeypatch.chdir(tmp_path)
    assert "isam system check mine.txt" in cli("system", "new", "mine", "-o", "mine.txt").out
    assert cli("system", "check", "mine.txt").code == 0
    (tmp_path / "toy").write_text("nothing")
    assert cli("system", "check", "toy").code == 0
    (tmp_path / "a.b.yaml").write_text(cli("system", "new", "a.b").out)
    assert cli("system", "check", tmp_path / "a.b.yaml").code == 0
    assert cli("system", "new", "mine.yaml").code == 2


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
