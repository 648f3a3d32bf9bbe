"""Every instruction of the zoo computes what its manual says: bodies under the interpreter against NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import tests.systems.zoo_layers  # noqa: F401  (registers its references)
from isam.ir.dtype import ANY, DTYPES, numpy_dtype
from isam.ir.instruction import Instruction
from isam.ir.interp import run
from isam.ir.kernel import Buffer
from isam.system.load import load_system
from tests.systems.test_zoo import ZOO, described
from tests.systems.zoo_references import REFERENCES

# instructions with functions, tried on real data: how many roundings an element of the result goes through, beside the
# length of its row; everything else is tried on whole numbers and compared with ==
INEXACT = {("arrays", "function"): 4, ("units", "gemm_bias_gelu"): 12, ("units", "softmax_row"): 12,
           ("units", "gelu"): 12, ("units", "layernorm_row"): 24, ("units", "rmsnorm_row"): 16,
           ("units", "swish"): 12}  # fmt: skip
POINTS = 20_000


def kind(system: str, i: Instruction) -> tuple[str, str]:
    return system, i.family or i.name


def sizes(i: Instruction, r: np.random.Generator) -> Iterator[dict[str, int]]:
    """The least, the limits where the domain is not too large, and some in between."""
    least = {s.name: -(-max(s.lo, 1) // s.multiple_of) * s.multiple_of for s in i.syms}
    yield least
    for top in (9, 6, 4, 3):
        most = {s.name: min(s.hi if s.hi is not None else top, max(least[s.name], top)) for s in i.syms}
        most = {s.name: max(least[s.name], most[s.name] // s.multiple_of * s.multiple_of) for s in i.syms}
        if points(i, most) <= POINTS:
            break
    yield most
    steps = {s.name: (most[s.name] - least[s.name]) // s.multiple_of for s in i.syms}
    yield {s.name: least[s.name] + int(r.integers(0, steps[s.name] + 1)) * s.multiple_of for s in i.syms}
    limits = {s.name: s.hi for s in i.syms if s.hi is not None}
    if limits and len(limits) == len(i.syms) and points(i, limits) <= POINTS:
        yield limits


def points(i: Instruction, known: dict[str, int]) -> int:
    return sum(math.prod(int(a.extent) for a in s.domain.axes) for s in i.body.with_sizes(known).statements)


def data(b: Buffer, known: dict[str, int], real: bool, r: np.random.Generator) -> np.ndarray:
    shape = tuple(max(0, e.evaluate(known)) for e in b.shape)
    dtype = numpy_dtype("f32" if b.dtype == ANY else b.dtype)
    d = DTYPES["f32" if b.dtype == ANY else b.dtype]
    if d.kind == "b":
        return r.integers(0, 2, shape).astype(bool)
    if d.kind == "f":
        if real:
            return r.uniform(0.25, 2.0, shape).astype(dtype)
        most = 2 if d.bits == 16 else 8
        return r.integers(-most, most + 1, shape).astype(dtype)
    limits = np.iinfo(dtype)
    if b.role in ("in", "const") and d.bits >= 32:
        limits = np.iinfo(np.int32) if d.bits == 64 else limits
    return r.integers(limits.min, limits.max, shape, dtype=np.int64, endpoint=True).astype(dtype)


def test_every_family_has_a_reference_and_every_reference_a_family() -> None:
    have = {kind(s, i) for s in ZOO for i in described(s)}
    assert have == REFERENCES.keys()
    assert len(have) >= 40


@pytest.mark.parametrize("system", ZOO)
def test_bodies_compute_what_the_manual_says(system: str) -> None:
    r = np.random.default_rng(5)
    for i in described(system):
        which = kind(system, i)
        for known in sizes(i, r):
            values = {**dict(i.values), "family": which[1], **{n: str(v) for n, v in known.items()}}
            given = {b.name: data(b, known, which in INEXACT, r) for b in i.body.arguments}
            if values.get("op") == "prod":  # whole powers of two: their products are exact
                given = {n: np.exp2(np.rint(a % 3) - 1) * np.sign(a + 0.5) for n, a in given.items()}
                given = {n: a.astype(np.float32) for n, a in given.items()}
            if "n" in given and not given["n"].ndim:
                given["n"] = np.float32(1) / np.float32(max(1, known["N"]))
            got = run(i.body, given, known)
            with np.errstate(all="ignore"):
                want = REFERENCES[which](values, {n: a.copy() for n, a in given.items()})
            assert want.keys() == got.keys(), i.name
            for name in want:
                wrong = differs(got[name], want[name], INEXACT.get(which), known)
                assert not wrong, f"{i.title} at {known}: {name}: {wrong}"


def differs(got: np.ndarray, want: np.ndarray, roundings: int | None, known: dict[str, int]) -> str:
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    a, b = got.astype(np.float64), want.astype(np.float64)
    good = (a == b) | (np.isnan(a) & np.isnan(b))
    if roundings is not None:  # each rounding moves by half an ulp of a value that is at most twice the largest result
        steps = roundings + max(known.values(), default=1)
        good |= np.abs(a - b) <= steps * 2.0**-23 * np.maximum(1.0, np.abs(b).max(initial=0.0))
    at = np.argwhere(~good)
    return "" if good.all() else f"{a[tuple(at[0])]} at {at[0]}, expected {b[tuple(at[0])]}"


def test_a_wrong_reference_or_body_would_be_seen() -> None:
    """The judge judges: bodies whose index or sign is changed disagree with their references."""
    from dataclasses import replace

    from isam.ir.text import parse_instruction

    def mutant(system: str, name: str, old: str, new: str) -> bool:
        i = load_system(system).instructions[name]
        text = str(i)
        assert old in text
        worse = replace(i, body=parse_instruction(text.replace(old, new, 1)).body)
        r = np.random.default_rng(1)
        which = kind(system, i)
        known = list(sizes(i, r))[1]
        given = {b.name: data(b, known, False, r) for b in i.body.arguments}
        got = run(worse.body, given, known)
        want = REFERENCES[which]({**dict(i.values), "family": which[1]}, given)
        return any(differs(got[n], want[n], None, known) for n in want)

    assert mutant("x86_amx", "tdpbssd", "A[i, 4*k + q]", "A[i, k + q]")
    assert mutant("arm_sme", "fmops_f32", "-A", "A") or mutant("arm_sme", "fmops_f32", "neg", "copy")
    assert mutant("arm_neon", "smmla", "B[j, k]", "B[j, 7 - k]")
    assert mutant("units", "conv2d_s2", "2*h + r", "2*h")
    assert mutant("gemmini", "compute_n_bias", "D[i, j]", "D[i, 0]")
