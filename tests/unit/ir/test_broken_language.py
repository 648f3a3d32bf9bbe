"""Broken kernels: every fault with its exact place, what was expected and a hint; never anything but an IsamError."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from isam.diagnostics import Diagnostic, IsamError, all_codes
from isam.ir.text import Module, parse, parse_file
from isam.ir.verify import verify

TEXTS = Path(__file__).parents[2] / "text"
SURFACE = (TEXTS / "surface.isam").read_text()


def cases() -> list[tuple[str, list[str]]]:
    out = []
    for block in (TEXTS / "broken_language.txt").read_text().split("=====\n")[1:]:
        lines = block.rstrip("\n").split("\n")
        out.append(("\n".join(x for x in lines if not x.startswith(">> ")),
                    [x[3:] for x in lines if x.startswith(">> ")]))
    return out


def faults(text: str) -> list[Diagnostic]:
    try:
        return [d for k in parse_file(text, "broken.isam").kernels for d in verify(k)]
    except IsamError as e:
        return list(e.diagnostics)


@pytest.mark.parametrize(("text", "expected"), cases())
def test_each_fault_is_located_and_explained(text, expected):
    found = faults(text)
    assert [f"{d.loc.line}:{d.loc.column} {d.code} {d.message} || {d.hint}" for d in found] == expected
    assert all(d.loc.file == "broken.isam" and d.hint for d in found)
    assert all(d.code in all_codes() for d in found)


def test_there_are_many():
    assert len(cases()) >= 90
    assert len({line.split()[1] for _, lines in cases() for line in lines}) >= 45


def test_the_caret_points_at_the_fault():
    with pytest.raises(IsamError) as e:
        parse("kernel k(M)\n  out y: f32[M]\n  forall i < M\n    y[i] = z[i]\n", "a.isam")
    assert str(e.value).split("\n")[:3] == [
        "a.isam:4:12: error[L203]: unknown buffer 'z'", "        y[i] = z[i]", "               ^"]


WORDS = ["(", ")", "[", "]", "forall", "loop", "<", "<=", "==", "where", "permits", "+", "-", "*", "/", "select", "f32",
         "sat_i8", "%", "//", "**", "\n", "  ", "\t", "1e999", "9" * 30, "inf", "nan", "true", "not", "and", "or",
         "temp", "auto", "kernel", "x", "i", "max=", "=", "é", "\x00", "0", "\u2028", "'", "#"]


def mutant(rng: random.Random, tokens: list[str]) -> str:
    start = rng.choice([0, 0, 0, rng.randrange(len(tokens))])
    words = tokens[start : start + rng.choice([60, 200, 800])]
    for _ in range(rng.choice([1, 1, 2, 5, 20])):
        k, r = rng.randrange(len(words) + 1), rng.random()
        if r < 0.35:
            words[k : k + 1] = []
        elif r < 0.7:
            words.insert(k, rng.choice(WORDS))
        elif r < 0.9:
            words[k : k + 1] = [rng.choice(tokens)]
        else:
            words[k : k + rng.randrange(10)] = []
    return "".join(words)


def attempt(text: str) -> tuple[Module | None, tuple[Diagnostic, ...]]:
    try:
        return parse_file(text, "f"), ()
    except IsamError as e:
        return None, e.diagnostics


@pytest.mark.parametrize("seed", range(4))
def test_mutants_parse_or_are_refused(seed):
    rng = random.Random(seed)
    tokens = re.findall(r"\s+|\w+|[^\w\s]", SURFACE)
    parsed = 0
    for _ in range(150):
        text = mutant(rng, tokens)
        module, found = attempt(text)
        assert all(d.loc.line > 0 and d.hint and d.code in all_codes() for d in found), text
        if module is None:
            continue
        parsed += 1
        assert parse_file(str(module)) == module, text
        for k in module.kernels:
            assert all(d.hint for d in verify(k))
    assert parsed > 5


@pytest.mark.parametrize("text", [
    "", "\n", "#", "\x00", "kernel", "(" * 100_000, "kernel k()\n" + "  " * 50_000, "[" * 5000 + "]" * 5000,
    "kernel k(M)\n  inout x: f32[M]\n  forall i < M\n    x[i] = " + "-" * 5000 + "1",
    "kernel k(M)\n  inout x: f32[M]\n  forall i < M\n    x[i] = " + "not " * 5000 + "1",
    "kernel k(M)\n  inout x: f32[M]\n  forall i < M\n    x[i] = " + "x[i] + " * 5000 + "1",
    "kernel k(M)\n  inout x: f32[" + "M + " * 5000 + "1]\n",
    "kernel k(M)\n" + "".join("  " * (n + 1) + f"loop t{n} < M\n" for n in range(200)),
    "kernel k(M)\n  inout x: f32[M]\n  forall i < M where " + "i < " * 3000 + "M\n    x[i] = 0\n",
    "kernel k(" + "M" * 100_000 + ")\n",
    "kernel k(M)\n" + "  in x: f32[M]\n" * 25_000,
    "x" * 3_000_000,
], ids=range(17))
def test_hostile_texts_end_quickly(text):
    module, found = attempt(text)
    assert (module is None) == bool(found)
    assert len(found) <= 200


@pytest.mark.parametrize("given", [b"kernel k()", bytearray(b"x"), None, 3])
def test_what_is_no_text_is_told_so(given):
    with pytest.raises(IsamError, match="a text is needed, not"):
        parse(given)
