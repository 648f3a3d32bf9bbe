"""Small kernels for laws: where each holds (``HOLDS``) and where its equation would be wrong or says nothing
(``REFUSED``: no site). Keys are laws; every law on values and statements has both."""

from __future__ import annotations

from tests.laws.example_kernels import (
    ADD,
    ALL_BUT_LAST,
    BORDERED,
    CARRIED,
    COPY,
    DEAD,
    DIAGONAL,
    EVEN,
    EXTREMUM,
    FACTOR_IN_LOOP,
    FILTER,
    FIXED,
    GAP,
    GATHERED,
    HALVES,
    HELD,
    HELD_BACK,
    HELD_IN_PLACE,
    IMAGE,
    IN_PLACE,
    KEPT_PLACES,
    KEPT_SUMS,
    LOOK_THEN_FILL,
    LOWER,
    NESTED,
    NUMBER,
    OUTPUT_READ,
    OVERWRITTEN_LATER,
    PADDED,
    PARTIAL_THEN_BIAS,
    PRODUCT,
    READ_AFTER,
    READ_TWICE,
    REVERSED,
    RNN,
    ROOM,
    SHARED,
    START_THEN,
    STEPS,
    SUM_TIMES,
    SUM_TIMES_LOOP,
    SUM_TIMES_SUM,
    TABLE,
    TERMS,
    TWINS,
    TWO_AT_ONCE,
    TWO_BACK,
    TWO_LOOPS,
    TWO_SUMS,
    masked,
)
from tests.laws.example_loops import LOOPS_HOLD, LOOPS_REFUSED
from tests.laws.example_values import (
    BYTES,
    CAST_BEFORE,
    CHOSEN,
    CONVERTED,
    EXPS,
    GUARDED,
    MIXED,
    PUSHED,
    RESIDUAL,
    SCALED,
    SHIFTED,
    SHORT,
    TWO_CASTS,
    UNARY,
    WIDER,
    floats,
    pairs,
    steps,
)

HOLDS: dict[str, tuple[str, ...]] = {
    "factor": (FACTOR_IN_LOOP,),
    "distribute": (
        SUM_TIMES, SUM_TIMES_SUM, SUM_TIMES_LOOP,
        SUM_TIMES.replace("out y: f32[M]", "out y: f32[M, 3]").replace(  # the sum's axis is called like another one
            "forall i < M\n    y[i] = ", "forall i < M, r < 3\n    y[i, r] = "),
        SUM_TIMES_SUM.replace("    u[i, k] = z", "    u[i, k] = 1\n    u[i, k] = z"),
        SUM_TIMES_SUM.replace("  out y: f32[M]", "  out y: f32[M]\n  out v: f32[M, K]") + "    v[i, k] = u[i, k]\n",
    ),
    "nest-sum": (TWO_SUMS.format(where=""), TWO_SUMS.format(where=" where r <= k"), PRODUCT),
    "nest-extremum": (EXTREMUM.format(dtype="f32", start="-inf"), EXTREMUM.format(dtype="i32", start="-7")),
    "join": (NESTED.format(where=""), NESTED.format(where=" where r <= k"), PARTIAL_THEN_BIAS),
    "dead": (DEAD,),
    "inline": (COPY, NUMBER),
    "duplicate": (SHARED, CARRIED, OUTPUT_READ),
    "unify": (TWINS, TWINS.replace("t[i] * s[i]", "t[i] * 3\n    y[i] = y[i] + s[i]")),
    "fission": (ADD, SUM_TIMES_SUM.replace("= z[i, k] * p[k]", "= z[i, k] + p[k]")),
    "winograd-2-3": (FILTER, IMAGE),
    "winograd-4-3": (FILTER, IMAGE),
    "strassen": (EVEN.format(dtype="f32"), EVEN.format(dtype="i16")),
    "hoist": (RNN, STEPS, LOWER, TWO_LOOPS),
    "parts": (RNN, STEPS, LOWER, TWO_LOOPS, CARRIED, STEPS.replace("(T, S, M)", "(T, M)").replace("S", "T")),
    **LOOPS_HOLD,
    "scalar-replacement": (
        HELD, HELD_BACK, TWO_BACK, TABLE, HELD.replace("y[t, i] *", "y[t, M - 1 - i] *"),
        HELD.replace("(T, M)", "(T, M >= 1)").replace("y[t, i]", "y[t, 0]"),
        HELD.replace("* x[t, i]", "* x[t, i]\n    forall i < M, k < M\n      y[t + 1, i] += y[t, k]"),
    ),
    **CONVERTED,
    "times-one": (TWO_SUMS.format(where=" where r <= k"), START_THEN, TWO_SUMS.format(where="").replace("f32", "i8")),
    "number-array": (NUMBER.replace("t[i] = 2", "t[i] = a[i] * 2"), MIXED, *pairs("max(a[i, j], 0) * b[j, i]")),
    "identity-matrix": (RESIDUAL,),
    "fold-neutral": (*pairs("(a[i, j] - 0) / 1 + b[j, i] * 1"), *floats("max(-inf, min(a[i, j], inf))")),
    "fold-chain": (*pairs("2 * a[i, j] * 3 * b[j, i] + 1 + 2"), *floats("a[i, j] * 2 * 0.5")),
    "cast-over-extrema": (
        WIDER.format(a="i8", y="i32"), WIDER.format(a="bf16", y="f32"), WIDER.format(a="u8", y="f16"),
        WIDER.format(a="i16", y="f32").replace("max(a[i], b[i])", "b[i]"),
    ),
    "cast-over-product": (
        SHORT.format(a="i8", m="i16", y="i32"), SHORT.format(a="u8", m="i32", y="f64"),
        SHORT.format(a="f16", m="f32", y="f64"), SHORT.format(a="i8", m="f32", y="f64"),
    ),
    "join-casts": (
        TWO_CASTS.format(a="i8", m="i16", y="i32"), TWO_CASTS.format(a="i8", m="i16", y="u8"),
        TWO_CASTS.format(a="f16", m="f32", y="bf16"), TWO_CASTS.format(a="u8", m="i16", y="i8"),
    ),
    "rebase": (
        BYTES.format(a="i8", b="u8"), BYTES.format(a="u8", b="i8").replace("in  b", "const b"),
        WIDER.format(a="i8", y="i16").replace("max(a[i], b[i])", "a[i] + b[i]"),
        WIDER.format(a="u8", y="i32").replace("in  a", "inout a").replace("    t[i]", "    a[i] = a[i] * 3\n    t[i]")
        .replace("y[i] = i32(t[i])", "y[i] = i32(a[i])"),
    ),
    "split-cast": (
        BYTES.format(a="i8", b="u8"), BYTES.format(a="u8", b="i8").replace("in  b", "const b"),
        WIDER.format(a="i8", y="i32").replace("max(a[i], b[i])", "a[i] + b[i]"),
        WIDER.format(a="u8", y="i32").replace("in  a", "inout a").replace("    t[i]", "    a[i] = a[i] * 3\n    t[i]")
        .replace("y[i] = i32(t[i])", "y[i] = i32(a[i])"),
        WIDER.format(a="f16", y="f64"), WIDER.format(a="i16", y="f64"),
        SHORT.format(a="i8", m="i32", y="i64").replace("i32(b[i])", "i32(a[i])"),
        *(SHORT.format(a="i8", m=m, y="i32").replace("t[i] = p[i] * q[i]", s).replace("i32(t[i])", "i32(a[i])")
          for m in ("i16", "i32", "u8") for s in ("t[i] = p[i] * q[i]", "p[i] = p[i] * q[i]\n    t[i] = p[i]")),
        *(CAST_BEFORE.format(a=a, at=at, where=w) for a, at, w in (
            ("M", "i", ""), ("M + 1", "i", ""), ("M", "M - 1 - i", ""), ("M", "i", " where i >= 1"))),
        steps("y[i] = i32(a[i])", "p[i] = i16(a[i])", "y[i] = y[i] + i32(p[i])", a="i8", y="i32"),
    ),
    "expand": (
        SHIFTED.format(more="+ 3", where=""), SHIFTED.format(more="- 3", where=" where k <= i"),
        SHIFTED.format(more="+ c[i]", where=" where k <= i"), SHIFTED.format(more="- c[i]", where=""),
        BYTES.format(a="i8", b="u8").replace("i32(a[i, k])", "(i32(a[i, k]) - 5)"),
        SHIFTED.format(more="+ 3", where="").replace("  out   y", "  out   v: i32[M, K]\n  out   y")
        + "  forall i < M, k < K\n    v[i, k] = t[i, k]\n",
    ),
    "sum-apart": (
        *(TERMS.format(value=f"a[i, k] {sign} {other}", where=w)
          for sign in "+-" for other in ("b[i, k]", "3") for w in ("", " where k <= i")),
        TERMS.format(value="a[i, k] - b[i, k]", where="").replace("  out y", "  out v: f32[M, K]\n  out y")
        + "  forall i < M, k < K\n    v[i, k] = t[i, k]\n",
        TERMS.format(value="a[i, k] - b[i, k]", where="").replace("f32", "i32"),
        *(TERMS.format(value=f"-(a[i, k] {sign} {other})", where=w)
          for sign in "+-" for other in ("b[i, k]", "3") for w in ("", " where k <= i")),
        *(TERMS.format(value=f"a[i, k] - b[{at}]", where=w)
          for at in ("i, 0", "0, k", "0, 0") for w in ("", " where k <= i")),
        TERMS.format(value="a[i, k] - b[i, 0]", where="").replace("k < K", "k < 0").replace("b: f32[M, K]",
                                                                                         "b: f32[M, 0]"),
    ),
    "negate-sum": (
        *(TERMS.format(value="-a[i, k]", where=w) for w in ("", " where k <= i")),
        TERMS.format(value="-a[i, k]", where="").replace("  out y", "  out v: f32[M, K]\n  out y")
        + "  forall i < M, k < K\n    v[i, k] = t[i, k]\n",
        TERMS.format(value="-a[i, k]", where="").replace("f32", "i32"),
    ),
    "widen": (*pairs("a[i, j] + b[j, i] * 3", "i8", "u8", "i16", "f16", "f32"),
        *pairs("a[i, j] / b[j, i]", "f16", "f32"), *pairs("a[i, j] * b[j, i]", "i16", "i32"),
        *pairs("max(a[i, j], -b[j, i])", "i8", "bf16")),
    "choice-to-extremum": tuple(
        CHOSEN.format(sign=s, yes=y) for s in (">", "<=", "<") for y in ("a[i], b[i]", "b[i], a[i]")
    ),
    "pull-scaling": (
        steps("t[i] = 3 * a[i]", "s[i] = 3 * b[i]", "y[i] = max(t[i], s[i])"),
        SCALED.format(by="* 2.5", op="max"), SCALED.format(by="* -3", op="min"), SCALED.format(by="+ 0.3", op="max"),
        SCALED.format(by="- 7", op="min").replace("f32", "f16"),
    ),
    "push-scaling": (PUSHED.format(by="* 0.3", op="max"),
        steps("t[i] = max(a[i], b[i])", "y[i] = -2 * t[i]"), PUSHED.format(by="* -3", op="max"),
        PUSHED.format(by="- 2", op="min")),
    "pull-monotone": (
        SCALED.format(by="", op="max").replace("= a[i] ", "= exp(a[i])").replace("= b[i] ", "= exp(b[i])"),
        SCALED.format(by="", op="min").replace("= a[i] ", "= tanh(a[i])").replace("= b[i] ", "= tanh(b[i])"),
    ),
    "push-monotone": (PUSHED.format(by="", op="max").replace("= t[i] ", "= sigmoid(t[i])"),
        PUSHED.format(by="", op="min").replace("= t[i] ", "= floor(t[i])")),
    "exp-of-sum": (EXPS.format(sign="+"), EXPS.format(sign="-").replace("f32", "f64")),
    "fold-zero-added": pairs("0 + a[i, j] + (b[j, i] + 0)"),
    "fold-zero-times": pairs("a[i, j] + 0 * b[j, i]"),
    "in-place": (IN_PLACE.format(more="", y="t[i, j] * s[i]"),
        IN_PLACE.format(more="", y="t[i, j] * t[i, j]").replace("y: f32[3, 4]", "y: f32[12]").replace(
            "y[i, j]", "y[4 * i + j]")),
    "speculate": (masked(), masked("i + j < 4, j > 0"), masked(op="=", first=" where j > i"), masked(op="max="),
        masked(value="h[i, j]", made=HALVES)),
    "fusion": (START_THEN, START_THEN.replace("i < M, j < N", "j < N, i < M")),
}

REFUSED: dict[str, tuple[str, ...]] = {
    "factor": (
        REVERSED,
        "kernel k(M)\n  in  a: f32[M, 3, 3]\n  in  p: f32[M]\n  out y: f32[M]\n  forall i < M\n    y[i] = 0\n"
        "  forall i < M, r < 3, s < 0\n    u[i, r, s] = a[i, r, s] * p[i]\n    y[i] += u[i, r, s]\n",
    ),
    "narrow": (GATHERED,),
    "in-place": (
        IN_PLACE.format(more="", y="t[i, j] * t[2 - i, j]"),  # another point has written there
        IN_PLACE.format(more="  forall i < 3\n    z[i] = t[i, 0]\n", y="t[i, j] * s[i]"),
    ),
    "speculate": (
        masked(read="3 - j"),  # others are read
        masked(to="i, i"),  # terms more
        masked("i <= j, j <= i", to="i, 0", op="="),  # one element from several points
        masked("2 * j < 4", value="a[i, 2 * j]"),  # out of range
        masked("j < 2", value="h[i, j]", made=GAP),  # nobody has written the third column
    ),
    "fold-numbers": (steps("y[i] = a[i]", "y[i] += 2", "y[i] *= 0"),),
    "trim": (ROOM,),
    "unfold-sum": (
        steps("c[i] = a[i] > b[i]", "y[2 * i] = select(c[i], a[i], b[i])").replace(
            "out y: f32[M]", "inout y: f32[2 * M]"),
    ),
    "pad": (PADDED.format(row="r", size=3, room=9, steps=4), PADDED.format(row="h + r - 1", size=9, room=6, steps=6)),
    "round-up-sum": (FIXED,),
    "unpad": (BORDERED.format(row="2 * i, j"), BORDERED.format(row="i + j, j"), BORDERED.format(row="i + 1, 2 * j"),
        BORDERED.format(row="i + 1, j + 1").replace("= x[i, j]", "= -x[i, j]"),
        READ_TWICE,
        BORDERED.replace("i < 4, j < 3", "i < 8, j < 5").format(row="i, j").replace("= x[i, j]", "= p[i, j]"),
    ),
    "distribute": (
        SUM_TIMES.replace("z[i] = 0", "z[i] = 1"),
        SUM_TIMES.replace("z[i] = 0", "z[i] = exp(0)"),
        SUM_TIMES.replace("z[i] = 0", "z[i, k] = 0").replace("forall i < M\n", "forall i < M, k < M\n")
        .replace("z[i] +=", "z[i, i] +=").replace("y[i] = z[i] *", "y[i, k] = z[i, k] *")  # the diagonal is summed
        .replace("y: f32[M]", "y: f32[M, M]"),
        SUM_TIMES.replace("z[i] += ", "z[i] *= "),
        SUM_TIMES.replace("z[i] * p", "z[i] + p"),
        SUM_TIMES.replace("z[i] * p[i]", "z[i] * z[i]"),
        SUM_TIMES.replace("  out y: f32[M]", "  out y: f32[M]\n  out v: f32[M]") + "    v[i] = z[i]\n",
        SUM_TIMES.replace("in  a", "inout a").replace("    y[i] = z", "    a[i, 0] = 2\n    y[i] = z").replace(
            "R)", "R >= 1)"),
        SUM_TIMES.replace("forall i < M, r < R", "forall r < R, i < 1").replace("(M, R)", "(M >= 1, R)"),
    ),
    "nest-sum": (
        "kernel k(M)\n  in  a: f32[M]\n  out y: f32[M]\n  forall i < M, k < 1, r < 1\n    y[i] = a[i] + a[i]\n",
        TWO_SUMS.format(where="").replace(", r < R", "").replace("k, r]", "k, 0]").replace("R)", "R >= 1)"),
        EXTREMUM.format(dtype="f32", start="-inf"),
    ),
    "nest-extremum": (TWO_SUMS.format(where=""),),
    "join": (
        NESTED.format(where="").replace("= 0", "= 1"), NESTED.format(where="").replace("= 0", "= 0 - y[i]"),
        NESTED.format(where="").replace("y[i] += p", "y[i] *= p"),
        NESTED.format(where="").replace("p[i, k] += a", "p[i, k] max= a"),
        NESTED.format(where="").replace("in    a", "inout a").replace("  forall i < M, k < K\n    y",
            "  forall i < M, k < K, r < R\n    a[i, k, r] = 2\n  forall i < M, k < K\n    y"),
        PARTIAL_THEN_BIAS.replace("y[i2] + p", "p[i2] + p"),
        NESTED.format(where="").replace("R)", "R >= 1)").replace(
            "K, r < R\n    p[i, k] += a[i, k, r]", "K\n    p[i, k] = a[i, k, 0] + a[i, k, 0]"),
        KEPT_SUMS,
        NESTED.format(where="").replace("(M, K,", "(M,").replace("K", "M").replace(  # the diagonal is summed
            "forall i < M, k < M, r < R\n    p[i, k] += a[i, k, r]", "forall i < M, r < R\n    p[i, i] += a[i, i, r]"),
    ),
    "hoist": (
        "kernel k(T, M)\n  in    x: f32[T, M]\n  inout y: f32[T + 1, M]\n  loop t < T\n    forall i < M\n"
        "      y[t + 1, i] = y[t, i] + x[t, i]\n",
        LOOK_THEN_FILL,
        GATHERED,
        READ_AFTER,
        DIAGONAL,
        RNN.replace("x[t, b, k] * w[k, j]", "h[b, j] * w[k, j]"),
        RNN.replace("    forall b < B, j < H\n      a[b, j] = 0\n", "").replace(
            "  loop t", "  forall b < B, j < H\n    a[b, j] = 0\n  loop t"),
        LOWER.replace("    forall i < M\n      a[i] = 1\n", "").replace(
            "  loop t", "  forall i < M\n    a[i] = 1\n  loop t"),
        LOWER.replace("x[t, i] * x[t, i]", "x[t, i] * h[i]"),
        LOWER.replace("      a[i] = 1", "      h[i] = h[i] + a[i]\n      a[i] = 1").replace(
            "  loop t", "  forall i < M\n    a[i] = 0\n  loop t"),
        STEPS.replace("out   y", "inout y").replace("y[t + 1, s", "y[0, 0").replace("(T, S, M)", "(T, S >= 1, M)")
        .replace("x[t + s, i] * 3", "h[i] * 3").replace("exp(x[t + s, i])", "h[i]"),
        STEPS.replace("out   y", "inout y").replace("exp(x[t + s, i])", "y[t, s, i]").replace(
            "x[t + s, i] * 3", "n[i] * 3"),
    ),
    "parts": (
        LOWER.replace("(T, M)", "(M)").replace("T", "9"), LOWER.replace("(T, M)", "(T, M, Q = T // 3)"),
        LOWER.replace("T", "T + 1").replace("(T + 1", "(T"),
    ),
    **LOOPS_REFUSED,
    "scalar-replacement": (
        HELD_IN_PLACE, RNN,
        HELD.replace("out y", "inout y").replace("= y[t, i] *", "= y[t + 1, i] *"),
        HELD.replace("out y", "inout y").replace("      y[t + 1, i]", "      y[0, i] = x[t, i]\n      y[t + 1, i]"),
        HELD.replace("out y", "inout y").replace("      y[t + 1, i]", "      y[t, i] = x[t, i]\n      y[t + 1, i]"),
        TWO_AT_ONCE, ALL_BUT_LAST,  # what the last step would leave is not there
    ),
    "times-one": (ADD.replace("a[i] + y[i]", "a[i] + a[i]"), EXTREMUM.format(dtype="f32", start="-inf"), PRODUCT),
    "number-array": (
        COPY, TWINS.replace(" * 2", " * a[i]"),
        steps("c[i] = a[i] > b[i]", "d[i] = c[i] and true", "y[i] = select(d[i], a[i], b[i])"),
    ),
    "identity-matrix": (
        GUARDED,
        EXTREMUM.format(dtype="f32", start="-inf"),
        RESIDUAL.replace("forall i < M, j < N\n    y[i, j] += b[j, i]",
            "forall i < M, j < N where j <= i\n    y[i, j] += b[j, i]").replace("y[i, j] = a[j, 2 * i]", "y[i, j] = 3"),
    ),
    "fold-neutral": (*pairs("a[i, j] / 2 + (0 - b[j, i]) / 3"), *floats("max(inf, a[i, j]) + min(a[i, j], -inf)")),
    "fold-zero-added": pairs("a[i, j] - 0 + (b[j, i] + 1)"),
    "fold-zero-times": (*pairs("a[i, j] * 1 + (b[j, i] + 0)"), steps("y[i] = a[i]", "y[i] *= 0")),
    "cast-over-extrema": (
        WIDER.format(a="i32", y="i8"), WIDER.format(a="i32", y="f32"), WIDER.format(a="i8", y="u8"),
        WIDER.format(a="bf16", y="f16"), WIDER.format(a="i8", y="i32").replace("max(a[i], b[i])", "a[i] + b[i]"),
        WIDER.format(a="i8", y="i32").replace("in  a", "inout a").replace("    y[i]", "    a[i] = 3\n    y[i]"),
    ),
    "cast-over-product": (
        SHORT.format(a="i8", m="i16", y="i32").replace("i16(b[i])", "i16(b[i]) + 1"),
        SHORT.format(a="i16", m="i16", y="i32").replace("i16(a[i])", "a[i]").replace("i16(b[i])", "b[i]"),
        SHORT.format(a="u8", m="i16", y="i32"), SHORT.format(a="bf16", m="f32", y="f64"),
        SHORT.format(a="i16", m="f32", y="f64"), SHORT.format(a="i8", m="i16", y="f32"),
    ),
    "join-casts": (
        TWO_CASTS.format(a="i32", m="i16", y="i32"), TWO_CASTS.format(a="f32", m="bf16", y="f32"),
        TWO_CASTS.format(a="i32", m="f32", y="f64"), TWO_CASTS.format(a="i8", m="u8", y="i32"),
        TWO_CASTS.format(a="u8", m="i8", y="i32"),
    ),
    "split-cast": (
        WIDER.format(a="i8", y="u8"), WIDER.format(a="i8", y="i16"), TWO_CASTS.format(a="i32", m="i8", y="i16"),
        WIDER.format(a="f16", y="i32"), WIDER.format(a="i64", y="f64"),
    ),
    "rebase": (
        WIDER.format(a="i8", y="f32"), WIDER.format(a="i16", y="i32"), TWO_CASTS.format(a="i8", m="u8", y="i8"),
    ),
    "sum-apart": (
        TERMS.format(value="a[i, k] * b[i, k]", where=""), TERMS.format(value="-a[i, k]", where=""),
        TERMS.format(value="a[i, k] + b[i, k]", where="").replace("+=", "max="),
        *(TERMS.format(value=value, where="").replace("in  b", "inout b").replace(
            "    y[i] +=", "    b[i, k] = b[i, k] * 2\n    y[i] +=")
          for value in ("a[i, k] + b[i, k]", "-(a[i, k] - b[i, k])")),
        TERMS.format(value="-(a[i, k] * b[i, k])", where=""),
        TERMS.format(value="a[i, k] - 3", where="").replace("f32", "u8"),
        TERMS.format(value="-(a[i, k] + -128)", where="").replace("f32", "i8"),
    ),
    "negate-sum": (
        TERMS.format(value="abs(a[i, k])", where=""), TERMS.format(value="a[i, k] - b[i, k]", where=""),
        TERMS.format(value="-a[i, k]", where="").replace("+=", "max="),
        TERMS.format(value="-a[i, k]", where=" where i > 0").replace("y[i] +=", "y[i - 1] +="),
        TERMS.format(value="-a[i, k]", where="").replace("y[i] += t[i, k]", "y[k] += t[i, k]").replace("k < K", "k < M")
        .replace("M, K]", "M, M]").replace("y[k]", "y[i]").replace("y[i] +=", "y[M - 1 - i] +="),
    ),
    "expand": (
        SHIFTED.format(more="+ 3", where="").replace("i16", "f16").replace("i32", "f32"),
        SHIFTED.format(more="* 3", where=""), SHIFTED.format(more="+ a[i, k]", where="").replace("i16", "i32"),
        SHIFTED.format(more="+ 3", where="").replace("t[i, k] * b[k, j]", "t[i, k] * t[i, k]"),
        SHIFTED.format(more="- c[i]", where=" where k <= i"),
        SHIFTED.format(more="+ 3", where="").replace(
            "  forall i < M, j < N, k < K\n    y", "  forall k < K, j < N\n    b[k, j] = 4\n"
            "  forall i < M, j < N, k < K\n    y"),
    ),
    "widen": (
        UNARY.format(dtype="f32", value="a[i, j] * 0.1"),
        *pairs("a[i, j] * b[j, i]", "i64", "f64"), *pairs("exp(a[i, j]) * exp(b[j, i])", "f64"),
    ),
    "choice-to-extremum": (
        CHOSEN.format(sign=">", yes="a[i], 0"), CHOSEN.format(sign="==", yes="a[i], b[i]"),
        CHOSEN.format(sign=">", yes="a[i], b[i]").replace("in  a", "inout a").replace(
            "    y[i]", "    a[i] = a[i] * 2\n    y[i]"),
    ),
    "pull-scaling": (
        SCALED.format(by="* 3", op="max").replace("f32", "i32"), SCALED.format(by="/ 3", op="max"),
        SCALED.format(by="* 3", op="max").replace("b[i] * 3", "b[i] * 4"), SCALED.format(by="* 0", op="max"),
        SCALED.format(by="* a[i]", op="max"),
        steps("y[i] = a[i]", "t[i] = a[i] * 2", "y[i] max= t[i]"),
    ),
    "push-scaling": (
        PUSHED.format(by="* 3", op="max").replace("f32", "i32"), PUSHED.format(by="* a[i]", op="max"),
        PUSHED.format(by="* 0", op="max"),
        PUSHED.format(by="* 0.3", op="max").replace("  in", "  permits exact\n  in", 1),
    ),
    "pull-monotone": (
        SCALED.format(by="", op="max").replace("= a[i] ", "= cos(a[i])").replace("= b[i] ", "= cos(b[i])"),
        SCALED.format(by="", op="max").replace("= a[i] ", "= exp(a[i])").replace("= b[i] ", "= tanh(b[i])")),
    "push-monotone": (PUSHED.format(by="", op="max").replace("= t[i] ", "= abs(t[i])"),),
    "exp-of-sum": (EXPS.format(sign="*"), EXPS.format(sign="+").replace("exp", "tanh")),
    "fold-chain": (*pairs("a[i, j] * 2 * b[j, i] + 3"), *floats("a[i, j] * 0.1 * 3"), *floats("a[i, j] / 2 / 3")),
    "winograd-2-3": (
        FILTER.replace("f32", "i32"),
        FILTER.replace("h + r]", "2 * h + r]").replace("C, 10]", "C, 17]"),
        FILTER.replace("h + r]", "h + 2 * r]").replace("C, 10]", "C, 12]"),
        FILTER.replace("w[k, c, r]", "w[k, r, r]").replace("K, C, 3", "K, 3, 3"),
        FILTER.replace("h < 8", "h < 7").replace("K, 8]", "K, 7]"),
        FILTER.replace("r < 3", "r < 2"),
        FILTER.replace("c, h + r] * w[k, c, r]", "c, h + r] * w[k, c, h - h]"),
        FILTER.replace("r < 3\n", "r < 3 where r <= h\n"),
    ),
    "winograd-4-3": (FILTER.replace("h < 8", "h < 6").replace("K, 8]", "K, 6]"), FILTER.replace("r]", "0]")),
    "strassen": (
        EVEN.format(dtype="f32").replace("6", "5"),
        EVEN.format(dtype="f32").replace("a[b0, i, k]", "a[b0, i, i]"),
        EVEN.format(dtype="f32").replace(" * b", " + b"),
        EVEN.format(dtype="f32").replace("(B)", "(B, K)").replace("6", "K"),
    ),
    "dead": (
        OVERWRITTEN_LATER, SHARED, CARRIED, ADD.replace("    y[i] = y", "    z[i] = z"),
        ADD.replace("forall i < M", "forall i < M where i <= i"),
    ),
    "inline": (
        COPY.replace("in  a", "inout a").replace("  forall i < M\n    y", "  forall i < M\n    a[i, i] = 2\n    y"),
        COPY.replace("= a[i, j]", "= -a[i, j]"),
        NUMBER.replace("    t[i] = 2", "    t[i] = 2\n    t[i] = t[i] + a[i]"),
        KEPT_PLACES,
    ),
    "duplicate": (TWINS.replace("t[i] * s[i]", "t[i] * 3"), ADD),
    "unify": (
        TWINS.replace("s[i] = a[i] * 2", "s[i] = a[i] * 3"),
        TWINS.replace("s[i] = a[i] * 2", "s[i] = t[i] * 2"),
        TWINS.replace("    s[i]", "    y[i] = 0\n    s[i]"),
        TWINS.replace("    y[i]", "    t[i] = t[i] + 1\n    s[i] = t[i] + 1\n    y[i]"),
    ),
    "fission": (ADD.replace("a[i] + y[i]", "a[i] - y[i]").replace("y[i] * a[i]", "exp(y[i])"),),
    "fusion": (
        "kernel k(M)\n  in    a: f32[M]\n  in    b: f32[M]\n  inout y: f32[M]\n  forall i < M\n    y[i] += b[i]\n"
        "    y[i] = a[i]\n",
        START_THEN.replace("  forall h < N", "  forall h < N, r < 3"),
        START_THEN.replace("h < N, v < M", "h < N, v < M where h <= v"),
        START_THEN.replace("in  a", "inout a").replace("  forall h", "  forall i < M\n    a[i] = 2\n  forall h"),
    ),
}  # fmt: skip
