"""Commands run in this process: what they print and the exit code they give."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from isam.cli import main

MATMUL = """kernel matmul(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
TWO = """
kernel add(N)
  in  x: i32[N]
  in  y: i32[N]
  out z: i32[N]
  forall i < N
    z[i] = x[i] + y[i]

kernel scale(N, by=2)
  const w: f32[N]
  inout y: f32[N]
  forall i < N
    y[i] = by * y[i]
  forall i < N
    y[i] += w[i]
"""
DIAGONAL = """kernel diagonal(T)
  in  x: f32[T, T]
  out s: f32[]
  s[] = 0
  forall t < T, u < T where u == t
    s[] += x[t, u]
"""
SMALL = ("-D", "M=5", "-D", "N=18,K=3")  # of MATMUL


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self, verb: str) -> dict[str, Any]:
        """The document, whose schema and keys are those that the verb declares."""
        from isam.cli.pages import forms

        d = json.loads(self.out)
        form = forms()[verb]
        assert d["schema"] == form.schema
        if d["verdict"] in ("yes", "no") and "diagnostics" not in d:
            assert set(d) == {"schema", "verdict", *form.keys}
        return d


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def ran(*args: object, stdin: str | bytes = "") -> Ran:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        capsys.readouterr()
        code = main([str(a) for a in args])
        got = capsys.readouterr()
        assert "Traceback" not in got.err
        return Ran(code, got.out, got.err)

    return ran


@pytest.fixture
def matmul(tmp_path):
    path = tmp_path / "matmul.isam"
    path.write_text(MATMUL)
    return path


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.isam"
    path.write_text(TWO)
    return path
