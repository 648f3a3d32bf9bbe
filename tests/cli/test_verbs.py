"""Every verb: what it prints, its exit code, its JSON document."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import isam
from isam.schedule import SCHEMA

CORPUS = Path(__file__).parents[1] / "corpus"
SMALL = ("-D", "M=5", "-D", "N=18,K=3")


def test_version_and_help(cli):
    ran = cli("--version")
    assert (ran.code, ran.out) == (0, f"isam {isam.__version__}\n")
    ran = cli("--help")
    assert ran.code == 0
    for verb in ("check", "print", "map", "explain", "schedule", "compile", "run", "verify", "bench", "demo", "system"):
        assert f"\n  {verb} " in ran.out
        assert cli(verb, "--help").code == 0


def test_check_says_what_is_in_a_file(cli, matmul, two):
    ran = cli("check", matmul, two)
    assert ran.code == 0
    assert f"{two}: kernel scale(N): 2 statements\n" in ran.out
    d = cli("check", matmul, "--json").json("check")
    assert d["files"][0]["items"] == [
        {"keyword": "kernel", "name": "matmul", "sizes": ["M", "N", "K"], "written": 2, "statements": 3}
    ]
    assert f"{matmul}: kernel matmul(M, N, K): 2 statements, 3 in three-operand form\n" in ran.out


def test_check_counts_the_statements_that_were_written(cli, tmp_path):
    """Broken over lines, with a select and sums of sums, in loops: what is counted is what stands before an = sign."""
    import re

    text = """kernel k(N, T)
  in x: f32[N]
  inout y: f32[N]
  forall i < N
    u[i] = (x[i] * x[i]
            + y[i] * y[i] * 2)
    y[i] += (x[i] - 1)
  loop t < T
    forall i < N
      y[i] = select(y[i] > 0, exp(y[i] + u[i]), -y[i])
"""
    for n, source in enumerate([text, *(p.read_text() for p in sorted(CORPUS.glob("*.isam")))]):
        file = tmp_path / f"{n}.isam"
        file.write_text(source)
        items = cli("check", file, "--json").json("check")["files"][0]["items"]
        code = re.sub("#.*", "", source)
        assignments = re.findall(r"^ +\w+\[[^=<>]*\] *(?:[-+*/]|max|min|and|or)?=(?!=)", code, re.MULTILINE)
        assert sum(i["written"] for i in items) == len(assignments), source
        assert all(i["written"] <= i["statements"] for i in items)


def test_check_reports_all_faults_of_all_files(cli, tmp_path):
    for n, text in enumerate(["kernel a(N)\n  in x: f32[N]\n  forall i < N\n    y[i] = x[i + 1]\n", "kernel ("]):
        (tmp_path / f"{n}.isam").write_text(text)
    ran = cli("check", tmp_path / "0.isam", tmp_path / "1.isam")
    assert ran.code == 2
    assert ran.out == ""
    assert f"{tmp_path}/0.isam:4:" in ran.err
    assert f"{tmp_path}/1.isam:1:" in ran.err
    assert "^" in ran.err


def test_print_reads_back_in(cli, two):
    first = cli("print", two)
    again = cli("print", "-", stdin=first.out)
    assert first.code == again.code == 0
    assert first.out == again.out
    one = cli("print", f"{two}:scale", "-D", "by=3", "--hash")
    assert one.out.startswith("# ")
    assert "3 * y[i]" in one.out
    assert "kernel add" not in one.out
    d = cli("print", f"{two}:add", "--normal", "--json").json("print")
    assert [i["name"] for i in d["items"]] == ["add"]


def test_map_names_instructions(cli, matmul):
    d = cli("map", matmul, "--on", "toy", "--json").json("map")
    assert [m["instruction"] for m in d["mappings"]] == ["m_fill_f32", "mm4_f32"]
    assert d["mappings"][1]["operands"] == {"A": "A", "B": "B", "C": "C"}
    ran = cli("map", matmul, "--on", "toy", "-i", "mm4_f32")
    assert ran.code == 0
    assert "2 mappings onto mm4_f32" in ran.out
    required = cli("map", matmul, "--on", "toy", "--require", "v_exp_f32")
    assert required.code == 1


def test_mappings_are_certified(cli, matmul, tmp_path):
    for more, count in (((), 1), (("--instruction", "s_mac_f32"), None)):
        ran = cli("map", matmul, "--on", "toy", *SMALL, *more, "--certify", "--json")
        assert ran.code == 0
        d = ran.json("map")
        assert len(d["certificates"]) == (count or len(d["mappings"]))
        out = tmp_path / "map.json"
        out.write_text(ran.out)
        assert cli("verify", out).code == 0
        out.write_text(ran.out.replace('"proved"', '"assumed"', 1))
        ran = cli("verify", out)
        assert ran.code == 1
        assert "the obligations are not the seven, proved" in ran.out
    assert "proved: obligations 1 to 7, 1 certificate\n" in cli("map", matmul, "--on", "toy", *SMALL, "--certify").out
    (tmp_path / "none.json").write_text("[]")
    assert cli("verify", tmp_path / "none.json").code == 2


def test_map_and_explain_say_no(cli, matmul):
    for verb in ("map", "explain"):
        ran = cli(verb, matmul, "--on", "tiny")
        assert ran.code == 1
        assert "no instruction offered can write a constant to f32" in ran.out
        assert cli(verb, matmul, "--on", "tiny", "--json").json(verb)["verdict"] == "no"
    ran = cli("explain", matmul, "--on", "toy", "-i", "v_exp_f32")
    assert ran.code == 1
    assert f"{matmul}:" in ran.out
    assert "^" in ran.out


def test_explain_says_yes(cli, matmul):
    d = cli("explain", matmul, "--on", "toy", "-i", "mm4_f32", "--json").json("explain")
    assert d["fits"]
    assert len(d["mappings"]) == 2
    assert cli("explain", matmul, "--on", "toy").code == 0
    assert cli("explain", matmul, "--on", "toy", *SMALL, "--json").json("explain")["scheduled"] is True


def test_a_cover_is_told_from_a_schedule(cli, matmul):
    """Where the instructions suffice and the memories do not: map names the command that says so, explain says it."""
    large = ("-D", "M=1000000,N=1000000", "-D", "K=1000000")
    ran = cli("map", matmul, "--on", "toy", *large)
    assert ran.code == 0
    assert f"isam schedule {matmul} --on toy -D M=1000000,N=1000000 -D K=1000000\n" in ran.out
    assert "isam schedule" not in cli("map", matmul, "--on", "toy", "-i", "mm4_f32").out
    assert cli("schedule", matmul, "--on", "toy", *large).code == 1
    ran = cli("explain", matmul, "--on", "toy", *large)
    assert ran.code == 1
    assert "\nno schedule: memory 'dram', the home, needs 12000000000000 bytes for arguments" in ran.out
    d = cli("explain", matmul, "--on", "toy", *large, "--json").json("explain")
    assert (d["verdict"], d["fits"], d["scheduled"], len(d["mappings"])) == ("no", True, False, 2)
    ran = cli("explain", matmul, "--on", "toy", "-D", "M=4")
    assert f"isam schedule {matmul} --on toy -D M=4 -D N=...,K=...\n" in ran.out
    assert cli("explain", matmul, "--on", "toy", "-D", "M=4", "--json").json("explain")["scheduled"] is None
    add = "kernel add(N)\n  inout x: f32[N]\n  in y: f32[N]\n  forall i < N\n    x[i] += y[i]\n"
    assert "'arm_neon' has no back end" in cli("map", "-", "--on", "arm_neon", stdin=add).out


def test_schedule_trace_replay(cli, matmul, tmp_path):
    trace = tmp_path / "t.json"
    first = cli("schedule", matmul, "--on", "toy", *SMALL, "--trace", trace, "--decisions")
    assert first.code == 0
    assert first.out.startswith("schedule of matmul on toy")
    assert json.loads(trace.read_text())["schema"] == "isam.trace/2"
    a = cli("schedule", matmul, "--on", "toy", *SMALL, "--json").json("schedule")
    b = cli("schedule", matmul, "--on", "toy", *SMALL, "--replay", trace, "--json").json("schedule")
    assert a["schedule"] == b["schedule"]
    assert a["proved"] == list(range(1, 12))
    other = cli("schedule", matmul, "--on", "toy", "-D", "M=500,N=18,K=30", "--replay", trace)
    assert other.code in (0, 2)
    full = cli("schedule", matmul, "--on", "toy", *SMALL, "--full", "--approach", "first-fit")
    assert full.code == 0


def test_compile_verify_run(cli, matmul, tmp_path):
    out = tmp_path / "matmul.isamc"
    made = cli("compile", matmul, *SMALL, "-o", out, "--json").json("compile")
    assert made["bytes"] == out.stat().st_size
    assert {"object.o", "certificate.json", "schedule.json", "trace.json", "kernel.isam"} <= set(made["parts"])
    d = cli("verify", out, "--json").json("verify")
    assert d["holds"]
    assert d["code"] == "same"
    assert len(d["obligations"]) == 11
    ran = cli("run", out, "--check", "--repeat", 3)
    assert ran.code == 0
    assert "right: every element within its bound" in ran.out


def test_verify_accepts_what_python_saved(cli, matmul, tmp_path):
    isam.compile(matmul.read_text(), on="toy", sizes={"M": 5, "N": 6, "K": 7}).save(tmp_path / "a")
    assert cli("verify", tmp_path / "a").code == 0
    assert cli("run", tmp_path / "a", "--check").code == 0


def test_verify_refuses_forgeries(cli, matmul, tmp_path):
    from dataclasses import replace

    from isam.artifact import load_artifact

    out, other = tmp_path / "a", tmp_path / "other"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    assert cli("compile", matmul, "-D", "M=5,N=18,K=4", "-o", other).code == 0
    a, b = load_artifact(out), load_artifact(other)
    forged = {
        "code": {"object.o": b.parts["object.o"]},
        "certificate": {"certificate.json": a.parts["certificate.json"].replace(b'"proved"', b'"Proved"', 1)},
        "schedule": {"schedule.json": b.parts["schedule.json"]},
        "kernel": {"kernel.isam": a.parts["kernel.isam"].replace(b"= 0", b"= 1")},
    }
    for name, parts in forged.items():
        replace(a, parts={**a.parts, **parts}).save(out)
        ran = cli("verify", out, "--json")
        assert ran.code == 1, name
        assert not ran.json("verify")["holds"], name
        assert cli("verify", out).out.startswith(f"{out}: refused"), name


@pytest.mark.parametrize(("part", "text", "said"), [
    ("schedule.json", b"[]", "this is no schedule of schema isam.schedule-tree/"),
    ("schedule.json", b'{"schema": "%s"}' % SCHEMA.encode(), "this is no schedule: a part of it is missing"),
    ("schedule.json", b"{", "this is no schedule: Expecting property name"),
    ("trace.json", b"[1", "this is no trace: Expecting"),
    ("trace.json", b"[1]", "this is no trace of schema isam.trace/2, its schema is None"),
    ("trace.json", b'{"schema": "isam.trace/2", "approach": "greedy"}', "this is no trace: 'decisions' is missing"),
    ("trace.json", b"\xff", "the part 'trace.json' of the artifact of 'matmul' is no text"),
    ("kernel.isam", b"kernel", "expected kernel NAME(SIZES)"),
])  # fmt: skip
def test_verify_names_the_part_that_is_damaged(cli, matmul, tmp_path, part, text, said):
    """Also where the manifest has the hashes of what is there."""
    from dataclasses import replace

    from isam.artifact import load_artifact

    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    a = load_artifact(out)
    replace(a, parts={**a.parts, part: text}).save(out)
    ran = cli("verify", out)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert part in ran.err
    assert "object has no attribute" not in ran.err


def test_run_takes_and_writes_arrays(cli, two, tmp_path):
    x, y = np.arange(7, dtype=np.int32), np.array([5, -3, 8, 1, 2, 9, -7], np.int32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    ran = cli("run", f"{two}:add", "--on", "toy", "-D", "N=7", "--input", f"x={tmp_path}/x.npy", "--input",
              f"y={tmp_path}/y.npy", "--output", f"z={tmp_path}/z.npy", "--json")  # fmt: skip
    d = ran.json("run")
    assert d["outputs"] == {"z": {"dtype": "int32", "shape": [7]}}
    assert d["operations"] == 7
    assert d["check"] is None
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), x + y)
    ran = cli("run", f"{two}:scale", "-D", "N=33", "-D", "by=5", "--check", "--repeat", 2)
    assert ran.code == 0, ran.err


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


def test_code_and_doctor(cli):
    assert cli("code", "V401").out.startswith("V401: ")
    assert cli("code", "error[V401]").code == 0
    assert cli("code", "axis-missing").out.startswith("axis-missing: The instruction has an axis")
    assert cli("code", "[escapes]").code == 0
    assert cli("code", "stale").out.startswith("stale: Of a proof, obligation 8: An operand is not known")
    assert cli("code", "[domain]").out.count("domain") == 2
    assert len(cli("code", "--json").json("code")["codes"]) > 100
    ran = cli("doctor", "--json")
    assert ran.code == 0, ran.out
    assert all(c["well"] for c in ran.json("doctor")["checks"])


def test_run_demands_an_instruction(cli, matmul, tmp_path):
    sizes = ("--on", "host-generic", *SMALL, "--json")
    assert cli("run", matmul, *sizes, "--require", "fma_sv_f32").code == 0
    assert cli("run", matmul, *sizes, "--require", "acc_max_s_f32").code == 1
    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    every = {"--require": "fma_sv_f32", "--approach": "greedy", "--replay": out, "--threads": 2}
    ran = cli("run", out, *(word for option in every.items() for word in option))
    assert ran.code == 2  # it is compiled already
    assert all(f"{option} is for kernels" in ran.err for option in every)
    assert cli("run", out).code == 0


def test_sizes_that_cannot_be_meant_are_answered_with_those_that_can(cli, matmul, tmp_path):
    other = cli("run", matmul, "-D", "m=5", "-D", "N=18,K=3")
    assert (other.code, "has no size 'm'" in other.err, "did you mean 'M'?" in other.err) == (2, True, True)
    out = tmp_path / "a"
    assert cli("compile", matmul, *SMALL, "-o", out).code == 0
    assert cli("run", out, "-D", "M=5").code == 0
    ran = cli("run", out, "-D", "M=6", "-D", "N=17")
    assert ran.code == 2
    assert "the artifact is compiled for M = 5\n  hint: isam compile -D M=6" in ran.err
    assert "the artifact is compiled for N = 18" in ran.err
    assert f"hint: a compiled kernel? isam run {out}" in cli("schedule", out).err


def test_run_takes_threads_as_schedule_does(cli, tmp_path):
    """Code is made for that many; an artifact is made already."""
    from unittest.mock import patch

    file = tmp_path / "scale.isam"
    file.write_text("kernel scale(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i] * 2\n")
    with patch("isam.compile", wraps=isam.compile) as seen:
        ran = cli("run", file, "--on", "host-generic", "-D", "N=100", "--threads", 2, "--check")
    assert ran.code == 0, ran.out
    assert seen.call_args.kwargs["threads"] == 2
    assert cli("compile", file, "--on", "toy", "-D", "N=8", "-o", tmp_path / "a").code == 0
    assert "--threads is for kernels" in cli("run", tmp_path / "a", "--threads", 2).err


def test_an_artifact_is_run_on_what_it_was_compiled_for(cli, tmp_path):
    isam.compile(isam.einsum("n->n"), on="toy", sizes={"N": 3}).save(tmp_path / "a")
    ran = cli("run", tmp_path / "a", "--on", "host")
    assert ran.code == 2
    assert "cli-option" in ran.err
    assert "--on is for kernels" in ran.err


def test_bench_takes_no_file_and_no_simulator(cli, matmul):
    ran = cli("bench", matmul)
    assert ran.code == 2
    assert f"hint: isam run {matmul} --repeat" in ran.err
    assert "hint: did you mean 'tiny'?\n" in cli("bench", "--only", "tinny").err
    assert "hint: isam bench --only tiny\n" in cli("bench", "tiny").err
    ran = cli("bench", "--on", "toy", "--only", "tiny")
    assert ran.code == 2
    assert "bench-backend" in ran.err
    assert "isam schedule FILE --on toy --time" in ran.err
    assert "FILE" not in cli("bench", "--help").out.split("\n")[0]


def test_bench_of_no_shape_is_refused(cli):
    ran = cli("bench", "--only", "tiny", "--shape", "running_sum")
    assert (ran.code, ran.out) == (2, "")
    assert "no shape of these groups has 'running_sum' in its name\n  hint: there are some in: scans\n" in ran.err
    assert "hint: such as 1x1x1" in cli("bench", "--only", "tiny", "--shape", "nowhere").err


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


def test_only_names_that_are_alike_are_suggested(cli, tmp_path):
    (tmp_path / "pool.isam").write_text(DIAGONAL)
    (tmp_path / "pool.yaml").write_text("")
    assert "hint" not in cli("check", tmp_path / "nofile.isam").err
    assert "did you mean 'pool.isam'?" in cli("check", tmp_path / "poll.isam").err
    assert "did you mean 'pool.yaml'?" in cli("check", tmp_path / "poll.yaml").err


def test_constants_may_be_given_where_sizes_are(cli, two):
    assert "sizes: N; constants: by" in cli("run", f"{two}:scale", "-D", "N=3,Z=5").err
    assert "did you mean 'by'?" in cli("run", f"{two}:scale", "-D", "N=3,bye=5").err
    assert "hint: sizes: N\n" in cli("run", f"{two}:add", "-D", "N=3,Z=5").err


def test_a_code_says_what_to_do(cli):
    assert "where 0 <= i - 1" in cli("code", "V430").out


DIAGONAL = """kernel diagonal(T)
  in  x: f32[T, T]
  out s: f32[]
  s[] = 0
  forall t < T, u < T where u == t
    s[] += x[t, u]
"""


def test_operations_are_those_that_conditions_admit(cli, tmp_path):
    from unittest.mock import patch

    file = tmp_path / "d.isam"
    file.write_text(DIAGONAL)
    d = cli("run", file, "--on", "host-generic", "-D", "T=30", "--json").json("run")
    assert (d["operations"], d["exact"]) == (30, True)
    with patch("isam.ir.counting.MOST", 3):
        d = cli("run", file, "--on", "host-generic", "-D", "T=30", "--json").json("run")
        assert (d["operations"], d["exact"]) == (900, False)
        assert "Gop/s of all points of the loops" in cli("run", file, "--on", "host-generic", "-D", "T=30").out


def test_a_simulator_has_steps_and_no_speed(cli, matmul, tmp_path):
    from isam.codegen.simulator.run import Simulation
    from isam.schedule.serial import from_json

    for spec, more in ((matmul, ("--on", "toy", *SMALL)), (tmp_path / "a", ())):
        ran = cli("run", spec, *more, "--repeat", 2)
        assert "simulated: " in ran.out
        assert "the simulator took" in ran.out
        assert "op/s" not in ran.out
        d = cli("run", spec, *more, "--json").json("run")
        fn = isam.compile(matmul.read_text(), on="toy", sizes={"M": 5, "N": 18, "K": 3})
        fn.save(tmp_path / "a")
        simulation = Simulation(from_json(fn.artifact.parts["schedule.json"]))
        simulation.call({"A": np.ones((5, 3), np.float32), "B": np.ones((3, 18), np.float32)})
        assert d["simulated"] == simulation.figures.steps
    assert cli("run", matmul, "--on", "host-generic", *SMALL, "--json").json("run")["simulated"] is None


def test_demo(cli):
    d = cli("demo", "--size", 14, "--seconds", 0.01, "--json").json("demo")
    assert d["obligations"] == 11
    assert 0 < d["check"]["share"] <= 1
    assert d["operations"] == 14 * 14 * 64 * (2 * 9 * 64 + 1)
    text = cli("demo", "--size", 5, "--seconds", 0.01)
    assert text.code == 0
    assert "times as fast as NumPy" in text.out


def test_demo_measures_numpy_at_its_best_whatever_the_environment(cli, monkeypatch):
    """A variable that holds NumPy's library back reaches this process, and not the one that measures."""
    free = cli("demo", "--size", 4, "--seconds", 0.01, "--json").json("demo")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    held = cli("demo", "--size", 4, "--seconds", 0.01, "--json").json("demo")
    assert held["numpy"]["library"] == free["numpy"]["library"]
    assert "Prescott" not in held["numpy"]["library"]


def test_the_ways_of_the_demo_all_compute_the_layer():
    from isam.cli.contest import arrays, ways
    from isam.ir.bounds import enclose, outside
    from isam.ir.text import parse_kernel

    sizes = {"H": 5, "W": 4, "C": 3, "K": 2}
    text = (resources.files("isam.cli") / "templates" / "conv.isam").read_text()
    data = arrays(sizes)
    want = enclose(parse_kernel(text).with_sizes(sizes), data)
    for name, way in ways(data).items():
        assert outside({"y": way()}, want) is None, name
    data["x"][2, 1, 0] += 1
    assert outside({"y": ways(data)["nine matmuls"]()}, want) is not None


def test_demo_on_a_simulator_has_no_times(cli):
    d = cli("demo", "--size", 2, "--on", "toy", "--json").json("demo")
    assert d["simulated"] > 0
    assert (d["isam"], d["numpy"], d["speed"]) == (None, None, None)
    assert "NumPy" not in cli("demo", "--size", 2, "--on", "toy").out


def test_bench_writes_its_figures(cli, tmp_path):
    out = tmp_path / "figures.json"
    ran = cli("bench", "--only", "square", "--shape", "16x16x16", "--rounds", 1, "--seconds", 0.005, "--save", out,
              "--plots", tmp_path / "drawn", "--json")  # fmt: skip
    assert ran.code in (0, 1), ran.err
    d = ran.json("bench")
    assert sorted(p.name for p in (tmp_path / "drawn").iterdir()) == ["figures-ratios.svg", "figures-roofline.svg"]
    assert d["roofs"]["rates"]["f32"] > 0 < d["roofs"]["reads"]["ram"]
    assert json.loads(out.read_text())["schema"] == "isam.bench/2"
    assert [r["name"] for r in d["square"]] == ["16x16x16"]
    assert "numpy" in d["square"][0]["against"]
    assert d["resnet50"] is None


def test_bench_draws_only_where_it_can(tmp_path):
    from isam.cli.bench import _drawn
    from isam.diagnostics import IsamError

    (tmp_path / "file").write_text("")
    with pytest.raises(IsamError, match="cannot write into"):
        _drawn({"square": []}, tmp_path / "file", "figures")
    assert _drawn({"square": []}, tmp_path, "figures")[0] == f"wrote {tmp_path / 'figures-ratios.svg'}"


def test_an_approach_of_a_file_decides_wherever_one_may_be_named(cli, matmul, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("import isam\n\nclass Mine(isam.Approach):\n    name, why = 'mine', 'as I like'\n\n"
                    "    def mapping(self, choice):\n        return choice.options[0]\n")
    given = (matmul, "--on", "toy", "-D", "M=4,N=4,K=4", "--approach")
    for verb, more in (("schedule", ["--decisions"]), ("compile", ["-o", tmp_path / "a"]), ("run", []),
                       ("map", ["--decisions"])):  # fmt: skip
        args = given[:3] + given[5:] if verb == "map" else given
        ran = cli(verb, *args, f"{mine}:Mine", *more)
        assert ran.code == 0
        assert verb == "run" or "as I like" in ran.out or "decisions by 'mine'" in ran.out
        ran = cli(verb, *args, f"{mine}:Nobody", *more)
        assert ran.code == 2
        assert "Approaches there: Mine" in ran.err


def test_run_uses_what_is_kept_and_others_compile_anew(cli, matmul, tmp_path, monkeypatch):
    from isam.compiler import function

    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    made, given = [], (matmul, "--on", "toy", "-D", "M=4,N=4,K=4")
    monkeypatch.setattr(function, "run_stages", lambda *a, _f=function.run_stages, **k: made.append(1) or _f(*a, **k))
    for verb, more in (("map", []), ("schedule", []), ("compile", ["-o", tmp_path / "a"])):
        assert cli(verb, *(given[:3] if verb == "map" else given), *more).code == 0
    assert cli("cache", "--json").json("cache")["entries"] == 0
    for _ in range(2):
        assert cli("run", *given).code == 0
    assert cli("cache", "--json").json("cache")["entries"] == 1
    assert len(made) == 1


@pytest.mark.parametrize(("terminal", "approach", "shown"), [(True, "beam", True), (True, "greedy", False),
                                                             (False, "beam", False)])  # fmt: skip
def test_how_many_schedules_are_made_is_shown_on_a_terminal(monkeypatch, matmul, tmp_path, terminal, approach, shown):
    import io

    from isam.cli.app import run
    from isam.compiler.alternatives import WATCH

    sizes = ["-D", "M=9,N=13,K=21", "--approach", approach]
    for args in (["schedule"], ["compile", "-o", str(tmp_path / "a")], ["run"]):
        told = io.StringIO()
        monkeypatch.setattr(told, "isatty", lambda: terminal)
        monkeypatch.setattr("sys.stdout", io.StringIO())
        monkeypatch.setattr("sys.stderr", told)
        assert run([args[0], str(matmul), "--on", "toy", *args[1:], *sizes]) == 0
        assert ("schedules made and timed" in told.getvalue()) == shown
        assert bool(told.getvalue()) == shown
        assert WATCH.get() is None


def test_cache(cli, tmp_path, monkeypatch):
    import isam

    assert cli("cache").out.startswith("nothing is kept")
    assert cli("cache", "--json").json("cache")["folder"] is None
    monkeypatch.setenv("ISAM_CACHE", str(tmp_path / "kept"))
    isam.compile(isam.einsum("n->n"), sizes={"N": 8})
    shown = cli("cache", "--json").json("cache")
    assert shown["entries"] == 1
    assert shown["bytes"] > 1000
    assert "1 kernels" in cli("cache").out
    assert cli("cache", "--clear", "--json").json("cache")["cleared"] == 1
    assert cli("cache", "--json").json("cache")["entries"] == 0


def test_of_a_file_of_several_kernels_those_are_remarked_on_that_are_meant(cli, tmp_path):
    one = "kernel {0}(N)\n  in x: f32[N]\n  in q: f32\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i]\n"
    (tmp_path / "two.isam").write_text(one.format("one") + "\n" + one.format("two").replace("  in q: f32\n", ""))
    ran = {name: cli("map", f"{tmp_path}/two.isam:{name}", "--on", "toy") for name in ("one", "two")}
    assert [r.code for r in ran.values()] == [0, 0]
    assert "L243" in ran["one"].err
    assert ran["two"].err == ""
    assert "L243" in cli("check", f"{tmp_path}/two.isam").err
