"""Every diagnostic's code is explained, once."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

from isam.diagnostics import CODE_TABLES, all_codes, explain_code
from isam.ir.mismatch import KINDS
from isam.proof.kinds import KINDS as FOUND
from isam.proof.violation import OBLIGATIONS

ROOT = Path(__file__).parents[2] / "isam"
CODE = re.compile(r"[A-Z]\d{3}|[a-z]+(-[a-z0-9]+)+|infeasible|uncovered")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Calls and tuples of a file."""
    return [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, (ast.Call, ast.Tuple))]


@cache
def codes_in_use() -> dict[str, str]:
    out: dict[str, str] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                word = getattr(node.func, "id", getattr(node.func, "attr", ""))
                text = node.args[0].value
                if word == "_fault" and path.parent.name == "runtime":
                    text = f"call-{text}"
                asked = word in ("fail", "Diagnostic", "fault", "say", "add", "wrong", "Refused", "_fault")
                if asked and isinstance(text, str) and CODE.fullmatch(text):
                    out[text] = f"{path.relative_to(ROOT)}:{node.lineno}"
    return out


def reasons_in_use() -> set[str]:
    out: set[str] = set()
    for path in sorted((ROOT / "mapper").rglob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
                "Mismatch", "_mismatch",
            ):  # fmt: skip
                first = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "kind")]
                out |= {n.value for n in first if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return out


def test_every_reason_in_use_is_explained():
    used = reasons_in_use()
    assert used <= set(KINDS), f"add to isam.ir.mismatch.KINDS: {used - set(KINDS)}"
    assert len(used) > 8
    for kind, reason in KINDS.items():
        assert reason.meaning.endswith("."), kind
        assert reason.helps.endswith("."), kind
    assert not set(KINDS) & set(all_codes())


def test_every_code_in_use_is_explained():
    known = all_codes()
    missing = {c: where for c, where in codes_in_use().items() if c not in known}
    assert not missing, f"add to a table of CODE_TABLES: {missing}"
    assert len(codes_in_use()) > 100


def test_tables_do_not_overlap_and_explain():
    tables = [import_module(m).CODES for m in CODE_TABLES]
    assert sum(map(len, tables)) == len(all_codes())
    for code, text in all_codes().items():
        assert CODE.fullmatch(code), code
        assert text.endswith("."), code
        assert explain_code(code) == text
    assert explain_code("L999") is None


def found_in_use() -> set[tuple[int, str]]:
    """Obligation and word wherever the checkers write both side by side."""
    out = {(4, "order"), (5, "order"), (4, "budget"), (5, "budget"), (9, "base"), (8, "base")}  # one of two
    for path in sorted((ROOT / "proof").rglob("*.py")):
        for node in nodes(path):
            parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
            pairs = pairwise(p.value if isinstance(p, ast.Constant) else None for p in parts)
            out |= {(n, word) for n, word in pairs if type(n) is int and n in OBLIGATIONS
                    and isinstance(word, str) and re.fullmatch(r"[a-z][a-z-]+", word)}  # fmt: skip
    return out


def test_every_word_for_what_a_checker_finds_is_explained_with_its_obligations() -> None:
    assert found_in_use() == {(n, word) for word, kind in FOUND.items() for n in kind.obligations}
    assert all(k.meaning.endswith(".") for k in FOUND.values())
