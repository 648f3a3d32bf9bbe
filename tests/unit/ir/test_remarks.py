"""A ``where`` that no step satisfies is remarked on, at the condition that leaves nothing; what may be meant is not."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from isam.cli.app import app
from isam.diagnostics import IsamError
from isam.ir.text import parse_file

TEXT = "kernel k({head})\n  in x: f32[T]\n  inout y: f32[T]\n  forall i < T, j < T where {where}\n    y[i] += x[j]\n"
WHERE = TEXT.index("{where}") - TEXT.rindex("\n", 0, TEXT.index("{where}"))


def told(where: str, head: str = "T") -> list[str]:
    found = parse_file(TEXT.format(head=head, where=where)).remarks
    assert all(d.code == "L241" and d.loc.line == 4 and d.loc.column >= WHERE and d.hint for d in found)
    return [d.message.partition(": ")[2] for d in found]


@pytest.mark.parametrize(("where", "head", "what"), [
    ("i > 5, i < 3", "T", "'i <= 2' contradicts '6 <= i'"),
    ("T > 5, j < 4, T < 3", "T", "'T <= 2' contradicts '6 <= T'"),
    ("i < j, j < i", "T", "'j + 1 <= i' contradicts 'i + 1 <= j'"),
    ("i < j, j < 5, i >= 4", "T", "'4 <= i' contradicts the conditions before it"),
    ("2 * i == 7", "T", "'2*i == 7' holds nowhere in the block"),
    ("i >= 8", "T <= 8", "'8 <= i' holds nowhere in the block"),
    ("i == T - 4, i == 3", "T % 8", "'i == 3' contradicts 'i + 4 == T'"),
])  # fmt: skip
def test_what_no_step_satisfies(where: str, head: str, what: str):
    assert told(where, head) == [what]


@pytest.mark.parametrize(("where", "head"), [
    ("i > 5, i < 7", "T"), ("i >= 8", "T <= 9"), ("2 * i == 6", "T"), ("i == T - 4, i == 4", "T % 8"),
    ("i < p", "T, p=0"), ("j <= i", "T == 0"),
])  # fmt: skip
def test_what_some_step_satisfies_or_a_constant_decides(where: str, head: str):
    assert told(where, head) == []


def test_a_loop_around_counts():
    text = TEXT.format(head="T", where="t > T").replace("  forall", "  loop t < T\n    forall")
    text = text.replace("    y[", "      y[")
    (d,) = parse_file(text).remarks
    assert d.message.endswith("'T + 1 <= t' holds nowhere in the block")


def test_the_command_line_says_so_and_refuses_nothing(tmp_path):
    file = tmp_path / "k.isam"
    file.write_text(TEXT.format(head="T", where="i > 5, i < 3"))
    done = CliRunner().invoke(app, ["check", str(file), "--json"])
    assert done.exit_code == 0
    (row,) = json.loads(done.stdout)["files"]
    assert [(r["code"], r["line"]) for r in row["remarks"]] == [("L241", 4)]
    assert "remark[L241]: no step satisfies this 'where'" in done.stderr


def test_no_size_is_a_multiple_in_the_range():
    with pytest.raises(IsamError, match="no size lies in 9 <= T % 8 <= 15"):
        parse_file(TEXT.format(head="9 <= T % 8 <= 15", where="i < j"))


def test_what_nothing_uses():
    text = """kernel k(M, N, Z, by=2)
  in  a: f32[M]
  const b: f32[N]
  temp t: f32[M]
  out c: f32[M]
  forall i < M
    c[i] = a[i]
  forall i < M
    u[i] = a[i]
  forall i < M
    u[i] += a[i]
"""
    assert [(d.code, d.message.split("'")[1], d.loc.line, d.loc.column) for d in parse_file(text).remarks] == [
        ("L242", "Z", 1, 16), ("L243", "b", 3, 9), ("L243", "t", 4, 8), ("L244", "u", 9, 5),
    ]  # fmt: skip


def test_whatever_mentions_it_uses_it():
    """In a bound, a condition, an index, a shape, another size, a loop; a sum that nobody wrote down is a result."""
    text = """kernel k(T, U, V, W, X, Q = T // 8)
  in a: f32[2 * X]
  inout b: f32
  out c: f32[4]
  loop t < Q
    forall i < 4, j < U where j < V
      d[i, j] = a[i]
    forall i < 4
      c[i] = d[i, W]
"""
    assert [d.message for d in parse_file(text).remarks] == ["no statement reads or writes the buffer 'b'"]
    assert parse_file(text.replace("d[i, W]", "d[i, W] + b")).remarks == []


def test_what_is_printed_is_not_remarked_on():
    """Though its constants have been put in and its sizes may be."""
    text = TEXT.format(head="T, p=3", where="i < p")
    assert parse_file(str(parse_file(text).kernels[0].with_params(p=2))).remarks == []


def test_an_instruction_with_a_recurrent_loop_is_remarked_on():
    """No kernel is carried out by it; in a kernel the same loop is what loops are for."""
    text = "{}(N, T)\n  in x: f32[T, N]\n  inout s: f32[N]\n  loop t < T\n    forall i < N\n      s[i] += x[t, i]\n"
    (said,) = parse_file(text.format("instruction sums")).remarks
    assert (said.code, said.loc.line, said.loc.column) == ("L245", 4, 3)
    assert "'sums' has a recurrent loop over t" in said.message
    assert parse_file(text.format("kernel sums")).remarks == []
