"""Whatever happens to a description, the answer is a machine or an ``IsamError`` with places: never a traceback."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from isam.diagnostics import IsamError
from isam.system.load import parse_system
from isam.system.source import lines_of
from tests.unit.system.broken import TINY

# toy with one member per family, so that a mutant is judged in milliseconds
TOY = (Path(__file__).parents[3] / "hwdesc" / "toy" / "toy.yaml").read_text(encoding="utf-8")
JUNK = [*"{}[]:,|'\"\t\n#%0", "  ", "- ", "&a ", "*a ", "!!int ", "-1", "1e9", "no", "null", "{T}", "{T", "for:", "é",
        "\u2028", "\x00", "\ud800", "instruction x()", "forall j < J", "+=", "9" * 50]  # fmt: skip


def mutate(text: str, r: random.Random) -> str:
    for _ in range(r.randint(1, 4)):
        at = r.randrange(len(text) + 1)
        kind = r.randrange(7)
        lines = text.split("\n")
        n = r.randrange(len(lines))
        if kind == 0:
            text = text[:at] + r.choice(JUNK) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + r.randint(1, 30) :]
        elif kind == 2:
            text = text[:at] + r.choice(string.printable) + text[at + 1 :]
        elif kind == 3:
            text = "\n".join(lines[:n] + lines[n + 1 :])
        elif kind == 4:
            text = "\n".join([*lines[:n], lines[r.randrange(len(lines))], *lines[n:]])
        elif kind == 5:
            lines[n] = " " * r.randint(0, 8) + lines[n].lstrip()
            text = "\n".join(lines)
        else:
            words = [w for w in lines[n].replace(",", " ").split() if w.isalnum()]
            other = [w for w in r.choice(lines).replace(",", " ").split() if w.isalnum()]
            if words and other:
                lines[n] = lines[n].replace(r.choice(words), r.choice(other), 1)
                text = "\n".join(lines)
    return text


def judge(text: str) -> bool:
    try:
        parse_system(text, "fuzz.yaml")
    except IsamError as e:
        found = e
    else:
        return True
    assert found.diagnostics
    rows = lines_of(text)
    for d in found.diagnostics:
        assert d.message
        assert d.loc.file == "fuzz.yaml", str(found)
        assert 1 <= d.loc.line <= len(rows) + 1, str(found)
        assert d.loc.column >= 1, str(found)
    return False


@pytest.mark.parametrize("seed", range(4))
def test_mutants_of_tiny(seed: int) -> None:
    r = random.Random(seed)
    answers = [judge(mutate(TINY, r)) for _ in range(250)]
    assert answers.count(False) > 100


def test_mutants_of_toy() -> None:
    r = random.Random(99)
    small = TOY
    for name in ("floats", "integers", "numbers", "types", "vectors"):
        head = f"  {name}:"
        row = next(line for line in TOY.split("\n") if line.startswith(head))
        few = {"floats": "[f32, bf16]", "integers": "[i32]"}.get(name, "[f32, i32]")
        small = small.replace(row, f"{head} {few}")
    assert judge(small)
    answers = [judge(mutate(small, r)) for _ in range(60)]
    assert answers.count(False) > 20


def test_noise() -> None:
    r = random.Random(5)
    for _ in range(300):
        judge("".join(r.choice(JUNK + list(string.printable)) for _ in range(r.randint(0, 200))))
