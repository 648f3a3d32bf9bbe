"""Whatever is given: a diagnostic and an exit code, never a traceback; nothing half-written."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest

HOSTILE_YAML = "isam: 1\nsystem: x\nmemories: " + "[" * 100_000
ONE = "M=1,N=1,K=1"


@pytest.mark.parametrize("args", [
    ("frobnicate",), ("check",), ("map",), ("run", "F", "--repeat"), ("run", "F", "--repeat", "x"), ("--nope",),
    ("compile", "F"), ("system",), ("system", "frob"), ("code", "a", "b"),
])  # fmt: skip
def test_wrong_usage_is_2(cli, args):
    ran = cli(*args)
    assert ran.code == 2
    assert ran.err + ran.out
    document = json.loads(cli(*args, "--json").out)
    verb = args[0] if args[0] in ("check", "map", "run", "compile", "code") else "usage"
    assert (document["schema"], document["verdict"]) == (f"isam.{verb}/1", "input")
    (d,) = document["diagnostics"]
    assert d["code"] == "cli-usage"
    assert d["hint"]


@pytest.mark.parametrize(("args", "code"), [
    (("check", "missing.isam"), "cli-file"),
    (("map", "."), "cli-file"),
    (("map", "\0"), "cli-file"),
    (("map", "F:nothing"), "cli-kernel"),
    (("map", "T"), "cli-kernel"),
    *(((verb, name), "cli-kernel") for verb in ("print", "check", "map") for name in ("T:nothing", "T:")),
    (("map", "F", "--on", "tyo"), "system-unknown"),
    (("map", "F", "--on", "toy", "-D", "M"), "cli-size"),
    (("map", "F", "--on", "toy", "-D", "M=1.5"), "cli-size"),
    (("map", "F", "--on", "toy", "-D", "M=1_0"), "cli-size"),
    (("map", "F", "--on", "toy", "-D", "M=\N{ARABIC-INDIC DIGIT THREE}"), "cli-size"),
    (("map", "F", "--on", "toy", "-D", "M=1", "-D", "M=2"), "cli-size"),
    (("map", "F", "--on", "toy", "-D", "Q=1"), "size-unknown"),
    (("map", "F", "--on", "toy", "-D", "M=-1"), "size-range"),
    (("map", "F", "--on", "toy", "-D", "M=" + "9" * 5000), "cli-size"),
    (("map", "F", "--on", "toy", "-D", "M=" + "9" * 21), "cli-size"),
    (("map", "F", "--on", "toy", "-i", "mm5"), "instruction-unknown"),
    (("map", "F", "--on", "toy", "--require", "mm5"), "instruction-unknown"),
    (("map", "F", "--on", "toy", "--approach", "gredy"), "registry-unknown"),
    (("map", "F", "--on", "toy", "-i", "mm4_f32", "--approach", "greedy"), "cli-option"),
    (("map", "F", "--on", "toy", "-i", "mm4_f32", "--require", "nope"), "cli-option"),
    (("map", "F", "--on", "toy", "-i", "mm4_f32", "--decisions"), "cli-option"),
    (("map", "F", "--on", "toy", "--strided"), "cli-option"),
    (("map", "F", "--on", "toy", "-i", ""), "instruction-unknown"),
    (("explain", "F", "--on", "toy", "--strided"), "cli-option"),
    (("explain", "F", "--on", "toy", "-i", ""), "instruction-unknown"),
    (("schedule", "F", "--on", "toy"), "cli-size"),
    (("schedule", "F", "--on", "toy", "-D", ONE, "--replay", "missing"), "trace-read"),
    (("schedule", "F", "--on", "toy", "-D", ONE, "--replay", "F"), "trace-read"),
    (("schedule", "F", "--on", "toy", "-D", ONE, "--trace", "no/such/folder"), "cli-file"),
    (("compile", "F", "--on", "toy", "-D", ONE, "-o", "no/such/folder"), "artifact-write"),
    *((("compile", "F", "--on", "toy", "-D", ONE, "-o", out), "artifact-write") for out in (".", "./", "", "/", "..")),
    (("range", "F", "M=1:2", "--on", "toy", "-D", "N=1,K=1", "-o", "."), "artifact-write"),
    (("run", "F", "-D", ONE, "--repeat", "0"), "cli-number"),
    (("run", "F", "-D", ONE, "--input", "A"), "cli-array"),
    (("run", "F", "-D", ONE, "--input", "Q=x.npy"), "cli-array"),
    (("run", "F", "-D", ONE, "--input", "A=F"), "cli-array"),
    (("run", "F", "-D", ONE, "--output", "A=x.npy"), "cli-array"),
    (("verify", "F"), "artifact-damaged"),
    (("verify", "missing"), "artifact-read"),
    (("system", "check", "missing.yaml"), None),
    (("system", "new", "no name"), "cli-usage"),
    (("system", "test", "toy", "-i", "mm5"), "instruction-unknown"),
    (("code", "V9999"), "cli-code"),
    (("run", "F", "-D", ONE, "--limit", "-1"), "cli-number"),
    (("run", "F", "--on", "toy", "-D", ONE, "--limit", "0"), "cli-number"),
    (("run", "F", "-D", ONE, "--check", "--limit", "0"), "cli-number"),
    (("run", "F", "-D", ONE, "--require", "mm5"), "instruction-unknown"),
    (("run", "F", "--on", "toy", "-D", "M=33,N=33,K=33", "--limit", "100"), "cli-limit"),
    (("run", "F", "-D", "M=99,N=99,K=99", "--check", "--limit", "100"), "cli-limit"),
    (("run", "F", "-D", "M=99,N=999999,K=999999"), "cli-memory"),
    (("run", "F", "-D", "M=9999,N=9999,K=9999", "--check"), "cli-memory"),
    (("check", "E"), "cli-kernel"),
    (("print", "E"), "cli-kernel"),
    (("demo", "--size", "0"), "cli-number"),
    (("demo", "--size", "56", "--on", "toy"), "cli-limit"),
    (("bench", "--only", "everything"), "cli-group"),
    (("bench", "--rounds", "-1"), "cli-number"),
    (("bench", "--plots", "F"), "cli-file"),
    (("bench", "--save", "no/such/folder"), "cli-file"),
    (("verify", "C"), "artifact-part"),
    (("bench", "--on", "nothing"), "system-unknown"),
])  # fmt: skip
def test_wrong_input_is_2_and_says_why(cli, matmul, two, args, code):
    empty = matmul.parent / "empty.isam"
    empty.write_text("# nothing\n")
    certificates = matmul.parent / "c.json"
    certificates.write_text('{"certificates": 3}')
    files = {"F": str(matmul), "E": str(empty), "C": str(certificates), "T": str(two), "F:nothing": f"{matmul}:nothing",
             "T:nothing": f"{two}:nothing", "T:": f"{two}:", "A=F": f"A={matmul}"}  # fmt: skip
    args = [files.get(a, a) for a in args]
    ran = cli(*args)
    assert ran.code == 2, (ran.out, ran.err)
    assert ran.out == ""
    assert "error[" in ran.err
    document = json.loads(cli(*args, "--json").out)
    assert document["verdict"] == "input"
    assert code is None or code in [d["code"] for d in document["diagnostics"]]


@pytest.mark.parametrize(("args", "hint"), [
    (("verify", "F"), "isam compile"),
    (("schedule", "F", "--on", "toy", "-D", ONE, "--replay", "F"), "--trace"),
    (("schedule", "F", "--on", "toy", "-D", ONE, "--approach", "replay:F"), "--trace"),
])  # fmt: skip
def test_a_file_of_another_kind_is_named_and_says_what_writes_one(cli, matmul, args, hint):
    ran = cli(*(a.replace("F", str(matmul)) for a in args))
    assert ran.code == 2
    assert matmul.name in ran.err
    assert hint in ran.err.partition("hint: ")[2]


@pytest.mark.parametrize("text", [
    "", "\n\n", "kernel", "kernel k(", "kernel k()\n  forall", "\x00", "é" * 10, "kernel k()\n" + "  " * 5000 + "x",
    "(" * 100_000, "kernel k(N)\n  in x: q9[N]\n",
])  # fmt: skip
def test_broken_text_from_standard_input(cli, text):
    for verb in ("map", "explain", "schedule", "run"):
        ran = cli(verb, "-", "--on", "tiny", stdin=text)
        assert ran.code == 2
        assert "error[" in ran.err


def test_bytes_that_are_no_text(cli, tmp_path):
    ran = cli("check", "-", stdin=b"kernel k()\n  # \xff\xfe")
    assert ran.code == 2
    assert "<stdin>:2:5" in ran.err
    np.save(tmp_path / "a.npy", np.zeros(3))
    assert cli("run", tmp_path / "a.npy").code == 2


def test_hostile_descriptions(cli, matmul, tmp_path):
    bad = tmp_path / "bad.yaml"
    for text in (HOSTILE_YAML, "", "isam: 1", "- a\n- b", "isam: 1\nsystem: x\nmemories: {a: {kind: magic}}\n"):
        bad.write_text(text)
        for args in (["system", "check", bad], ["map", matmul, "--on", bad], ["system", "show", bad]):
            ran = cli(*args)
            assert ran.code == 2
            assert f"{bad}" in ran.err


def test_damaged_artifacts(cli, matmul, tmp_path):
    out = tmp_path / "a"
    assert cli("compile", matmul, "--on", "toy", "-D", "M=4,N=4,K=4", "-o", out).code == 0
    whole = out.read_bytes()
    rng = np.random.default_rng(0)
    for n in range(24):
        at = int(rng.integers(4, len(whole) - 4))
        out.write_bytes(whole[:at] if n % 3 == 0 else whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :])
        assert cli("verify", out).code in (1, 2)
        assert cli("run", out).code == 2


def test_our_own_faults_are_3_and_print_the_kernel(cli, matmul, monkeypatch):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("isam.mapper.cover.cover", broken)
    ran = cli("map", matmul, "--on", "toy")
    assert ran.code == 3
    assert "planted" in ran.err
    assert "kernel matmul" in ran.err
    assert json.loads(cli("map", matmul, "--on", "toy", "--json").out)["verdict"] == "internal"


def test_sizes_beyond_any_memory_are_answered_at_once(cli, matmul):
    huge = ("-D", "M=1000000000,N=1000000000,K=1000000000")
    for on in ("toy", "host"):
        ran = cli("schedule", matmul, "--on", on, *huge)
        assert ran.code == 1
        assert "the home, needs 12000000000000000000 bytes" in ran.err
        start = time.process_time()
        ran = cli("run", matmul, "--on", on, *huge)
        assert ran.code == 2
        assert f"{matmul}:2:7: error[cli-memory]: the arguments need 11175870895 GiB" in ran.err
        assert "hint: smaller sizes" in ran.err
        assert time.process_time() - start < 0.25
    assert cli("map", matmul, "--on", "toy", *huge).code == 0


def test_a_trillion_steps_are_refused_before_the_first(cli, tmp_path):
    """The schedule is small, its execution is not: counted, not begun."""
    path = tmp_path / "long.isam"
    path.write_text("kernel long(N, R)\n  in  x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = 0\n"
                    "  forall i < N, a < R, b < R\n    y[i] += x[i]\n")  # fmt: skip
    ran = cli("run", path, "--on", "toy", "-D", "N=4,R=1000000")
    assert ran.code == 2, ran.out
    assert f"{path}:1:1: error[cli-limit]: the simulator of toy would take more than 1000000 steps" in ran.err
    assert "--limit" in ran.err


def test_arrays_of_another_shape_are_not_read(cli, matmul, tmp_path):
    """A header that promises 200 GB is believed by nobody."""
    path = tmp_path / "A.npy"
    np.save(path, np.zeros((3, 3), np.float32))
    ran = cli("run", matmul, "-D", "M=2,N=2,K=2", "--input", f"A={path}")
    assert ran.code == 2
    assert f"{matmul}:2:7: error[cli-array]: 'A' needs the shape (2, 2), but {path} has (3, 3)" in ran.err
    path.write_bytes(path.read_bytes().replace(b"(3, 3), }", b"(223606, 223606), }").replace(b" " * 14 + b"\n", b"\n"))
    assert cli("run", matmul, "-D", "M=2,N=2,K=2", "--input", f"A={path}").code == 2


@pytest.mark.parametrize("holds", ["text", "nothing", "part", "archive", "header", "objects"])
def test_files_that_hold_no_array_are_told_in_our_own_words(cli, matmul, tmp_path, holds):
    """At the option, and without NumPy's advice, which is about programs that call it."""
    path, whole = tmp_path / "A.npy", tmp_path / "whole.npy"
    np.save(whole, np.zeros((2, 2), np.float32))
    np.save(path, np.array([[None, 1], [2, 3]], object))
    data = whole.read_bytes()
    wrong = {"text": b"1 2 3", "nothing": b"", "part": data[:-3], "archive": b"PK\003\004 no archive",
             "header": data.replace(b"(2, 2)", b"(2, (2")}  # fmt: skip
    if holds in wrong:
        path.write_bytes(wrong[holds])
    ran = cli("run", matmul, "-D", "M=2,N=2,K=2", "--input", f"A={path}")
    said = f"--input A={path}: error[cli-array]: cannot read {path}: it holds no array of numbers, or not all of it"
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said + "\n  hint: numpy.save")
    assert "pickle" not in ran.err


def test_a_wrong_result_is_3(cli, matmul, monkeypatch):
    monkeypatch.setattr("isam.ir.bounds.outside", lambda got, enclosed: "planted fault")
    ran = cli("run", matmul, "--on", "toy", "-D", "M=2,N=2,K=2", "--check")
    assert ran.code == 3
    assert "planted fault" in ran.err


def test_the_console_script_and_a_closed_pipe():
    """In processes of their own: the exit code reaches the shell, and `| head` is no error."""
    code = "import sys; from isam.cli import main; sys.exit(main())"
    p = subprocess.run([sys.executable, "-c", code, "check", "nothing"], capture_output=True, text=True, check=False)
    assert p.returncode == 2
    assert "Traceback" not in p.stderr
    p = subprocess.run([sys.executable, "-c", code, "print", b"\xff.isam", "--json"], capture_output=True, check=False,
                       env={"LC_ALL": "C", "PYTHONUTF8": "0", "PATH": ""})  # fmt: skip
    assert p.returncode == 2
    assert b"Traceback" not in p.stderr
    assert json.loads(p.stdout)["diagnostics"][0]["code"] == "cli-file"
    quoted = f"'{sys.executable}' -c '{code}' system show toy --json | head -c 10"
    p = subprocess.run(["bash", "-c", f"set -o pipefail; {quoted}"], capture_output=True, text=True, check=False)
    assert p.stderr == ""


def test_a_byte_order_mark_is_no_fault(cli, matmul, tmp_path):
    marked = tmp_path / "marked.isam"
    marked.write_bytes(b"\xef\xbb\xbf" + matmul.read_bytes())
    assert cli("check", str(marked)).code == 0
