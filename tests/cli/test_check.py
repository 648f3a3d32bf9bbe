"""``check`` and ``print``: what is in a file, what is wrong with it, and the file as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import DIAGONAL

CORPUS = Path(__file__).parents[1] / "corpus"


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


def test_check_looks_at_what_is_named(cli, tmp_path):
    """Faults and remarks on the others count where the whole file is asked for."""
    file = tmp_path / "f.isam"
    unused = "  in x: f32[N]\n  in z: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i]\n"
    wrong = "kernel wrong(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i + 1]\n"
    file.write_text(f"kernel first(N)\n{unused}{wrong}instruction second(N)\n{unused}")
    assert cli("check", file).code == 2
    assert cli("check", f"{file}:wrong").code == 2
    for name, line in (("first", 3), ("second", 14)):
        d = cli("check", f"{file}:{name}", "--json").json("check")
        (given,) = d["files"]
        assert [i["name"] for i in given["items"]] == [name]
        assert [r["line"] for r in given["remarks"]] == [line]
    ran = cli("check", f"{file}:frist")
    assert ran.code == 2
    assert "has no 'frist'" in ran.err
    assert "did you mean 'first'?" in ran.err


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


def test_only_names_that_are_alike_are_suggested(cli, tmp_path):
    (tmp_path / "pool.isam").write_text(DIAGONAL)
    (tmp_path / "pool.yaml").write_text("")
    assert "hint" not in cli("check", tmp_path / "nofile.isam").err
    assert "did you mean 'pool.isam'?" in cli("check", tmp_path / "poll.isam").err
    assert "did you mean 'pool.yaml'?" in cli("check", tmp_path / "poll.yaml").err
