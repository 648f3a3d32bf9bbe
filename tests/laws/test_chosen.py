"""Laws are chosen because a mismatch asks for them (TR-2): the kernel as written cannot be carried out, the search gets
there without a blind step, and the result is what it was (oracle or machine numbers)."""

from __future__ import annotations

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir.normal import normal_form
from isam.ir.text import parse, parse_instruction
from isam.mapper.cover import cover
from isam.mapper.search import find
from isam.transforms import ALL
from tests.laws.judges import same

LAWS = {t.law: t for t in ALL}


def instruction(head: str, *lines: str):
    """``name: A f32 4, B f32 4 -> C f32 4`` and the body's lines."""
    return parse_instruction("\n".join([f"instruction {head}", *(f"  {x}" for x in lines)]) + "\n")


COPY = instruction("copy()", "in  S: f32", "out D: f32", "D = S")
VADD = instruction("vadd()", "in    S: f32[4]", "inout D: f32[4]", "forall l < 4", "  D[l] += S[l]")
HSUM = instruction("hsum()", "in  S: f32[4]", "out D: f32", "D = 0", "forall l < 4", "  D += S[l]")
VMAX = instruction("vmax()", "in    S: f32[4]", "inout D: f32[4]", "forall l < 4", "  D[l] max= S[l]")
HMAX = instruction("hmax()", "in  S: f32[4]", "out D: f32", "D = -inf", "forall l < 4", "  D[] max= S[l]")
VFMA = instruction("vfma()", "in    A: f32[4]", "in    B: f32[4]", "inout C: f32[4]", "forall l < 4",
                   "  C[l] += A[l] * B[l]")  # fmt: skip
GEMV = instruction("gemv(M, K)", "in    A: f32[M, K]", "in    B: f32[K]", "inout C: f32[M]", "forall i < M, k < K",
                   "  C[i] += A[i, k] * B[k]")  # fmt: skip
DOT = instruction("dot(K)", "in    A: f32[K]", "in    B: f32[K]", "inout C: f32", "forall k < K",
                  "  C += A[k] * B[k]")  # fmt: skip
SCALED = instruction("scaled(K)", "in    A: f32[K]", "in    B: f32", "inout C: f32", "forall k < K",
                     "  C += A[k] * B")  # fmt: skip
SUMS = instruction("sums(K)", "in    A: f32[K]", "inout C: f32", "forall k < K", "  C += A[k]")
ADD = instruction("add(N)", "in  A: f32[N]", "in  B: f32[N]", "out D: f32[N]", "forall i < N", "  D[i] = A[i] + B[i]")
MUL = instruction("mul(N)", "in  A: f32[N]", "in  B: f32[N]", "out D: f32[N]", "forall i < N", "  D[i] = A[i] * B[i]")
ACC = instruction("acc(N)", "in    A: f32[N]", "inout D: f32[N]", "forall i < N", "  D[i] += A[i] * 1")
MUL_RELU = instruction("mulrelu(N)", "in  A: f32[N]", "in  B: f32[N]", "out C: f32[N]", "forall l < N",
                       "  t[l] = A[l] * B[l]", "  C[l] = max(t[l], 0)")  # fmt: skip


def kernel(*lines: str, permits: str = ""):
    text = "\n".join(["kernel k()", *(f"  {x}" for x in lines)]) + "\n"
    return normal_form(parse(text + (f"  permits {permits}\n" if permits else "")))


TOTAL = kernel("in  a: f32[16]", "out y: f32", "y = 0", "forall k < 16", "  y += a[k]")
LARGEST = kernel("in  a: f32[16]", "out y: f32", "y = -inf", "forall k < 16", "  y[] max= a[k]")
INNER = kernel("in  a: f32[16]", "in  b: f32[16]", "out y: f32", "y = 0", "forall k < 16", "  y += a[k] * b[k]")
MEAN = kernel("in  a: f32[6, 8]", "in  p: f32[6]", "out y: f32[6]", "forall i < 6", "  z[i] = 0",
              "forall i < 6, k < 8", "  z[i] += a[i, k]", "forall i < 6", "  y[i] = z[i] * p[i]")  # fmt: skip
BIASED = kernel("in  a: f32[6, 8]", "in  x: f32[8]", "in  b: f32[6]", "out y: f32[6]", "forall i < 6", "  z[i] = 0",
                "forall i < 6, k < 8", "  z[i] += a[i, k] * x[k]", "forall i < 6", "  y[i] = b[i] + z[i]")  # fmt: skip
SHARED = kernel("in  a: f32[8]", "in  b: f32[8]", "out y: f32[8]", "out z: f32[8]", "forall i < 8",
                "  t[i] = a[i] * b[i]", "  y[i] = max(t[i], 0)", "  z[i] = t[i]")  # fmt: skip

CHOSEN = {
    "nest-sum": (TOTAL, [COPY, VADD, HSUM]),
    "nest-sum of products": (INNER, [COPY, VFMA, HSUM]),
    "nest-extremum": (LARGEST, [COPY, VMAX, HMAX]),
    "distribute": (MEAN, [COPY, SCALED]),
    "fission": (BIASED, [COPY, GEMV]),
    "join": (BIASED, [COPY, GEMV]),
    "duplicate": (SHARED, [COPY, MUL, MUL_RELU]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CHOSEN))
def test_a_law_is_chosen_because_of_a_mismatch(name):
    given, instructions = CHOSEN[name]
    law = LAWS[name.split(" ")[0]]
    assert not cover(given, instructions, Trace(Approach()), search=False)
    found = find(given, instructions, Trace(Approach()))
    assert found.paths, found.uncovered
    assert found.blind_expansions == 0
    path = next(p for p in found.paths if law in [_named(s.transform.law) for s in p.steps])
    assert all(s.because is not None for s in path.steps)
    assert same(law, given, path.kernel)


def _named(name: str):
    return LAWS[name]
