"""How long files and functions are, as CONTRIBUTING.md says: what grows beyond it is divided, not the limit raised."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

FILES = {str(p): p.read_text("utf-8") for p in (Path(__file__).parents[2] / "isam").rglob("*.py")}


def test_files() -> None:
    lengths = {name: text.count("\n") for name, text in FILES.items()}
    assert len(lengths) > 300
    assert median(lengths.values()) < 150
    assert not {n: k for n, k in lengths.items() if k > 500}
    assert len({n: k for n, k in lengths.items() if k > 400}) <= 12


def test_functions() -> None:
    nodes = ((name, n) for name, text in FILES.items() for n in ast.walk(ast.parse(text)))
    lengths = {f"{name}:{n.lineno}": (n.end_lineno or 0) - n.lineno + 1 for name, n in nodes
               if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}  # fmt: skip
    assert len(lengths) > 3000
    assert not {n: k for n, k in lengths.items() if k > 50}
    assert len({n: k for n, k in lengths.items() if k > 40}) <= 20
