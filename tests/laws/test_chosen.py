"""Laws are chosen because a mismatch asks for them (TR-2): the kernel as written cannot be carried out, the search gets
there without a blind step, and the result is what it was (oracle or machine numbers)."""

from __future__ import annotations

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir.normal import normal_form
from isam.ir.text import parse, parse_instruction
from isam.mapper.demand import Demand
from isam.mapper.search import find, reach
from isam.transforms import ALL
from tests.as_it_stands import cover_as_it_stands
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
GEMM = instruction("gemm(M, N, K)", "in    A: f32[M, K]", "in    B: f32[K, N]", "inout C: f32[M, N]",
                   "forall i < M, j < N, k < K", "  C[i, j] += A[i, k] * B[k, j]")  # fmt: skip
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

SUMMED = kernel("in  a: f32[6, 16]", "out y: f32[6]", "forall i < 6", "  y[i] = 0", "forall i < 6, k < 16",
                "  y[i] += a[i, k]")  # fmt: skip
RESIDUAL = kernel("in    x: f32[6, 8]", "inout y: f32[6, 8]", "forall i < 6, j < 8", "  y[i, j] += x[i, j]",
                  permits="reassociate, contract, finite")  # fmt: skip
THRICE = kernel("in  a: f32[6]", "in  b: f32[6]", "out y: f32[6]", "forall i < 6", "  y[i] = (a[i] + b[i]) * 2 * 0.5")

def unary(name: str, value: str, of: str = "f32", to: str = ""):
    return instruction(f"{name}(N)", f"in  A: {of}[N]", f"out D: {to or of}[N]", "forall i < N", f"  D[i] = {value}")


def binary(name: str, value: str, dtype: str = "f32"):
    return instruction(f"{name}(N)", f"in  A: {dtype}[N]", f"in  B: {dtype}[N]", f"out D: {dtype}[N]", "forall i < N",
                       f"  D[i] = {value}")  # fmt: skip


def lines(*body: str, a: str = "f32", y: str = "f32", permits: str = "reassociate, contract, finite"):
    """A kernel as written, not brought into normal form."""
    head = ["kernel k()", f"  in  a: {a}[6]", f"  in  b: {a}[6]", f"  out y: {y}[6]", f"  permits {permits}"]
    return parse("\n".join([*head, "  forall i < 6", *(f"    {x}" for x in body)]) + "\n")


def two_products(sign: str):
    """A sum whose terms are sums or differences of two products."""
    return kernel("in  a: f32[6, 8]", "in  c: f32[6, 8]", "in  x: f32[8]", "in  z: f32[8]", "out y: f32[6]",
                  "forall i < 6", "  y[i] = 0", "forall i < 6, k < 8",
                  f"  y[i] += a[i, k] * x[k] {sign} c[i, k] * z[k]")  # fmt: skip


NEG, EXP, SQUARE = unary("neg", "-A[i]"), unary("exp", "exp(A[i])"), unary("square", "A[i] * A[i]")
MAX, MIN = binary("max", "max(A[i], B[i])"), binary("min", "min(A[i], B[i])")
WIDEN8 = unary("widen8", "i32(A[i])", "i8", "i32")
MAX_TWICE = binary("maxtwice", "max(A[i], B[i]) * 2")
MAX_EXP = binary("maxexp", "max(exp(A[i]), exp(B[i]))")
EXP_MAX = binary("expmax", "exp(max(A[i], B[i]))")

CHOSEN = {
    "fusion": (lines("y[i] = a[i]", "y[i] = y[i] + b[i]"), [ADD]),
    "fusion of an accumulation": (lines("y[i] = a[i]", "y[i] += b[i]"), [ADD]),
    "inline": (lines("t[i] = a[i] * 1", "y[i] = t[i] + b[i]"), [ADD]),
    "dead": (lines("t[i] = exp(a[i])", "y[i] = a[i] + b[i]"), [ADD]),
    "unify": (lines("t[i] = -a[i]", "s[i] = -a[i]", "y[i] = t[i] * s[i]"), [NEG, SQUARE]),
    "cast-over-extrema": (lines("t[i] = max(a[i], b[i])", "y[i] = i32(t[i])", a="i8", y="i32"),
                          [WIDEN8, binary("max32", "max(A[i], B[i])", "i32")]),
    "cast-over-product": (lines("p[i] = i16(a[i])", "q[i] = i16(b[i])", "t[i] = p[i] * q[i]", "y[i] = i32(t[i])",
                                a="i8", y="i32"), [WIDEN8, binary("mul32", "A[i] * B[i]", "i32")]),
    "join-casts": (lines("t[i] = i16(a[i])", "y[i] = i32(t[i])", a="i8", y="i32"), [WIDEN8]),
    "widen": (lines("y[i] = a[i] + b[i]", a="i8", y="i8"),
              [WIDEN8, binary("add32", "A[i] + B[i]", "i32"), unary("narrow8", "i8(A[i])", "i32", "i8")]),
    "choice-to-extremum": (lines("c[i] = a[i] > b[i]", "y[i] = select(c[i], a[i], b[i])"), [MAX]),
    "pull-scaling": (lines("t[i] = a[i] * 2", "s[i] = b[i] * 2", "y[i] = max(t[i], s[i])"), [MAX_TWICE]),
    "push-scaling": (lines("t[i] = max(a[i], b[i])", "y[i] = -t[i]"), [NEG, MIN]),
    "pull-monotone": (lines("t[i] = exp(a[i])", "s[i] = exp(b[i])", "y[i] = max(t[i], s[i])"), [EXP_MAX]),
    "push-monotone": (lines("t[i] = max(a[i], b[i])", "y[i] = exp(t[i])"), [MAX_EXP]),
    "exp-of-sum": (lines("t[i] = a[i] + b[i]", "y[i] = exp(t[i])"), [EXP, MUL]),
    "times-one": (SUMMED, [COPY, GEMV]),
    "number-array": (SUMMED, [COPY, GEMV]),
    "identity-matrix": (RESIDUAL, [COPY, GEMM]),
    "fold-neutral": (THRICE, [COPY, ADD]),
    "fold-chain": (THRICE, [COPY, ADD]),
    "nest-sum": (TOTAL, [COPY, VADD, HSUM]),
    "nest-sum of products": (INNER, [COPY, VFMA, HSUM]),
    "nest-extremum": (LARGEST, [COPY, VMAX, HMAX]),
    "distribute": (MEAN, [COPY, SCALED]),
    "sum-apart": (two_products("+"), [COPY, GEMV]),
    "sum-apart of a difference": (two_products("-"), [COPY, GEMV, NEG, ADD]),
    "negate-sum": (two_products("-"), [COPY, GEMV, NEG, ADD]),
    "fission": (BIASED, [COPY, GEMV]),
    "join": (BIASED, [COPY, GEMV]),
    "duplicate": (SHARED, [COPY, MUL, MUL_RELU]),
}  # fmt: skip


STEPPED = kernel("in    x: f32[5, 8]", "const w: f32[8, 6]", "inout h: f32[6]", "loop t < 5", "  forall j < 6",
                 "    a[j] = 0", "  forall j < 6, k < 8", "    a[j] += x[t, k] * w[k, j]", "  forall j < 6",
                 "    h[j] = tanh(h[j] + a[j])")  # fmt: skip

REACHED = {
    "hoist": (STEPPED, GEMM),
}


@pytest.mark.parametrize("name", sorted(REACHED))
def test_a_law_makes_an_instruction_usable(name):
    given, wanted = REACHED[name]
    found = reach(given, wanted)
    assert not found.direct
    assert found.blind_expansions == 0
    path = next(p for p in found.paths if name in [s.transform.law for s in p.steps])
    assert same(LAWS[name], given, path.kernel)


@pytest.mark.parametrize("name", sorted(CHOSEN))
def test_a_law_is_chosen_because_of_a_mismatch(name):
    given, instructions = CHOSEN[name]
    law = LAWS[name.split(" ")[0]]
    assert not cover_as_it_stands(given, Demand(instructions))
    found = find(given, Demand(instructions), Trace(Approach()))
    assert found.paths, found.uncovered
    assert found.blind_expansions == 0
    path = next(p for p in found.paths if law in [_named(s.transform.law) for s in p.steps])
    assert all(s.because is not None for s in path.steps)
    assert same(law, given, path.kernel)


def _named(name: str):
    return LAWS[name]
