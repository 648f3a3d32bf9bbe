"""Instructions that contradict themselves: an edit of ``MACHINE``, and where what is reported when it is loaded."""

from __future__ import annotations

MACHINE = """\
isam: 1
system: m
backend: llvm
facts:
  snippets:
    twice.f32: |
      a -> r
      %r = fadd $f32 %a, %a
    max.f32: |
      a, b -> r
      %c = fcmp ogt $f32 %a, %b
      %r = select $i1 %c, $f32 %a, $f32 %b
memories:
  ram: {kind: managed, capacity: 1 GiB, home: true, align: 64 B}
  v:   {kind: counted, cells: 16, cell: 32 B, lanes: 8}
units:
  core: {runs: ["*"], clock: 1 GHz}
moves:
  - {from: ram, to: v, by: load, issuer: core}
  - {from: v, to: ram, by: store, issuer: core}
instructions:
  load:
    body: |
      instruction load(J <= 8)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
    emission: {llvm: "%D = tile.load %S"}
  store:
    body: |
      instruction store(J <= 8)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
    emission: {llvm: "tile.store %S, %D"}
  fma:
    body: |
      instruction fma(J <= 8)
        in    A: f32[J]
        in    B: f32[J]
        inout C: f32[J]
        permits contract
        forall j < J
          C[j] += A[j] * B[j]
    homes: v
    emission:
      llvm: |
        %p = fmul $f32 %A, %B
        %C = fadd $f32 %C, %p
  grow:
    body: |
      instruction grow(J <= 8)
        in  A: f32[J]
        out D: f32[J]
        forall j < J
          D[j] = exp(A[j])
    homes: v
    ulp: 1 ulp
    emission:
      llvm: |
        %a = use twice.f32(%A)
        %D = each exp f32(%a)
  sum:
    body: |
      instruction sum(J <= 8)
        in    A: i32[J]
        inout D: i32
        forall j < J
          D[] += A[j]
    homes: v
    emission:
      llvm: |
        %m = select $i1 $mask(J), $i32 %A, $i32 zeroinitializer
        %s = call i32 @llvm.vector.reduce.add.v$Li32($i32 %m)
        %i = insertelement $i32 poison, i32 %s, i64 0
        %t = shufflevector $i32 %i, $i32 poison, <$L x i32> zeroinitializer
        %D = add $i32 %D, %t
  "gemv_{T}":
    for: {T: {f32: {E: float}, f64: {E: double}}}
    body: |
      instruction gemv_{T}(M, N)
        in    A: {T}[M, N]
        in    x: {T}[N]
        inout y: {T}[M]
        permits reassociate, contract
        forall i < M, j < N
          y[i] += A[i, j] * x[j]
    strides: {x: [free]}
    align: {A: 16 B}
    emission:
      llvm: |
        call void @blas:gemv(i32 $M, i32 $N, ptr %A, i32 $ld(A), ptr %x, i32 $inc(x), ptr %y, i64 $stride(A.0), {E} 1.0)
"""

# name: (old, new, every "line:column code", part of the first message, part of the first hint)
BROKEN: dict[str, tuple[str, str, list[str], str, str]] = {
    # ---- semantics that are not well-formed
    "index-out-of-range": (
        "C[j] += A[j] * B[j]",
        "C[j] += A[j + 1] * B[j]",
        ["46:19 V430"],
        "index j + 1 (dimension 0) of 'A' reaches the size J: it leaves 0 .. J - 1",
        "for example with J = 1, j = 0; restrict it with 'where', or "),
    "output-not-written": (
        "          D[j] = exp(A[j])",
        "          t[j] = exp(A[j])",
        ["56:13 V420"],
        "the output 'D' is never written",
        "assign it, or remove it"),
    "output-written-in-part": (
        "D[j] = exp(A[j])",
        "D[0] = exp(A[j])",
        ["58:11 V431"],
        "'D' is assigned once per 'j', which its index does not mention",
        "accumulate with += (or max=, min=, *=), or leave 'j' out of "),
    "read-before-written": (
        "D[j] = exp(A[j])",
        "D[j] = exp(D[j])",
        ["58:22 V422"],
        "'D' is read before it is written",
        "assign it first"),
    "input-written": (
        "C[j] += A[j] * B[j]",
        "A[j] = C[j] * B[j]",
        ["46:11 V403"],
        "'A' is declared 'in' and written here",
        "declare it 'inout', or write to a temporary instead of 'A'"),
    "types-differ": (
        "in    B: f32[J]",
        "in    B: f64[J]",
        ["46:26 V411"],
        "'B' is f64, another operand is f32",
        "cast it: f32(B[...])"),
    "function-of-integers": (
        "D[] += A[j]",
        "D[] += exp(A[j])",
        ["71:18 V413"],
        "'exp' needs a float, found i32",
        "cast the operand: exp(f32(...))"),
    "too-few-indices": (
        "y[i] += A[i, j] * x[j]",
        "y[i] += A[i] * x[j]",
        ["89:19 L204"],
        "'A' has 2 dimensions, indexed by 1",
        "expected A[M, N] to be indexed 2 times"),
    "a-type-that-is-none": (
        "in    x: {T}[N]",
        "in    x: {T}x[N]",
        ["85:18 L134"],
        "unknown dtype 'f32x'",
        "did you mean 'f32'?"),
    "accumulates-into-nothing": (
        "inout y: {T}[M]",
        "out   y: {T}[M]",
        ["89:11 V422"],
        "'y' is accumulated into before it is written",
        "initialise it first: y[i] = 0"),
    # ---- emission that does not fit the operands
    "name-that-is-no-operand": (
        "%p = fmul $f32 %A, %B",
        "%p = fmul $f32 %A, %X",
        ["50:28 emission-name"],
        "'%X' is no operand and has no value here yet",
        "values here: %A, %B, %C"),
    "name-used-too-early": (
        "%p = fmul $f32 %A, %B",
        "%p = fmul $f32 %q, %B",
        ["50:24 emission-name"],
        "'%q' is no operand and has no value here yet",
        "values here: %A, %B, %C"),
    "output-read": (
        "%D = each exp f32(%a)",
        "%D = each exp f32(%D)",
        ["64:27 emission-name"],
        "'%D' is written, and has no value here yet",
        "values here: %A, %a"),
    "operand-left-out": (
        "%p = fmul $f32 %A, %B",
        "%p = fmul $f32 %A, %A",
        ["50:9 emission-operand"],
        "'B' of 'fma' is never used by the template",
        "mention %B"),
    "result-left-out": (
        "%D = each exp f32(%a)",
        "%E = each exp f32(%a)",
        ["63:9 emission-operand"],
        "'D' of 'grow' is never given a value by the template",
        "mention %D"),
    "element-type": (
        "%p = fmul $f32 %A, %B",
        "%p = fmul $f64 %A, %B",
        ["50:24 emission-type", "50:28 emission-type", "51:28 emission-type"],
        "'%A' is <8 x float>, this line takes it as <8 x double>",
        "element type and lane count must be those of the value"),
    "vector-width": (
        "%p = fmul $f32 %A, %B",
        "%p = fmul <4 x float> %A, %B",
        ["50:31 emission-type", "50:35 emission-type", "51:28 emission-type"],
        "'%A' is <8 x float>, this line takes it as <4 x float>",
        "element type and lane count must be those of the value"),
    "scalar-for-a-vector": (
        "$i32 %A, $i32 zero",
        "i32 %A, $i32 zero",
        ["75:39 emission-type", "76:59 emission-type"],
        "'%A' is <8 x i32>, this line takes it as i32",
        "element type and lane count must be those of the value"),
    "result-of-another-type": (
        "%D = each exp f32(%a)",
        "%e = each exp f32(%a)\n        %D = fptosi $f32 %e to $i32",
        ["65:9 emission-type"],
        "the template gives 'D' <8 x i32>, it is <8 x float>",
        "a value in registers has one element of its dtype per lane"),
    "condition-that-is-none": (
        "%D = each exp f32(%a)",
        "%D = each exp f32(%a) where %A else %a",
        ["64:37 emission-type"],
        "'%A' is <8 x float>, this line takes it as <8 x i1>",
        "element type and lane count must be those of the value"),
    "result-of-another-width": (
        "poison, <$L x i32> zero",
        "poison, <4 x i32> zero",
        ["79:27 emission-type"],
        "'%t' is <4 x i32>, this line takes it as <8 x i32>",
        "element type and lane count must be those of the value"),
    "temporary-of-another-type": (
        "%C = fadd $f32 %C, %p",
        "%C = fadd $f32 %C, %p ; fine\n        %z = add $i32 %p, %p",
        ["52:23 emission-type", "52:27 emission-type"],
        "'%p' is <8 x float>, this line takes it as <8 x i32>",
        "element type and lane count must be those of the value"),
    "value-for-a-pointer": (
        "i32 $M, i32 $N, ptr %A",
        "i32 $M, i32 $N, $f32 %A",
        ["94:51 emission-type"],
        "'%A' is ptr, this line takes it as <8 x float>",
        "element type and lane count must be those of the value"),
    "size-that-is-none": (
        "$mask(J)",
        "$mask(K)",
        ["75:25 emission-name"],
        "'$K' is no type and no size of 'sum'",
        "sizes: J"),
    "word-that-is-none": (
        "i32 $M, i32 $N, ptr",
        "i32 $P, i32 $N, ptr",
        ["94:34 emission-name"],
        "'$P' is no type and no size of 'gemv_f32'",
        "sizes: M, N"),
    "stride-of-a-register": (
        "%p = fmul $f32 %A, %B",
        "%p = fmul $f32 %A, %B\n        %l = add i32 0, $ld(A)",
        ["51:25 emission-operand"],
        "'A' lies in registers: it has no strides",
        "strides are those of operands in addressed memory"),
    "stride-of-a-dimension-that-is-none": (
        "$stride(A.0)",
        "$stride(A.2)",
        ["94:99 emission-operand"],
        "'A' has 2 dimensions, none is 2",
        "dimensions count from 0"),
    "leading-dimension-of-nothing": (
        "$ld(A)",
        "$ld(B)",
        ["94:58 emission-name"],
        "'B' is no operand of 'gemv_f32'",
        "operands: A, x, y"),
    "snippet-that-is-none": (
        "use twice.f32(%A)",
        "use twize.f32(%A)",
        ["63:18 emission-name"],
        "there is no snippet 'twize.f32'",
        "did you mean 'twice.f32'?"),
    "snippet-with-too-few": (
        "use twice.f32(%A)",
        "use max.f32(%A)",
        ["63:18 emission-name"],
        "'max.f32' takes 2 values, found 1",
        "its first line names them"),
    "snippet-with-a-strange-name": (
        "%r = fadd $f32 %a, %a",
        "%r = fadd $f32 %a, %z",
        ["63:18 emission-name"],
        "the snippet 'twice.f32' uses '%z', which is no argument and has no value yet",
        "snippets stand in 'facts: snippets:'"),
    "snippet-without-its-result": (
        "%r = fadd $f32 %a, %a",
        "%s = fadd $f32 %a, %a",
        ["63:18 emission-name"],
        "the snippet 'twice.f32' never gives its result 'r' a value",
        "snippets stand in 'facts: snippets:'"),
    "snippet-without-a-head": (
        "      a -> r\n",
        "",
        ["62:18 emission-name"],
        "the snippet 'twice.f32' does not begin with its arguments and result: a, b -> r",
        "snippets stand in 'facts: snippets:'"),
    "snippet-that-uses-none": (
        "%r = fadd $f32 %a, %a",
        "%r = use three.f32(%a)",
        ["63:18 emission-name"],
        "the snippet 'twice.f32' uses a snippet 'three.f32' that is not there",
        "snippets stand in 'facts: snippets:'"),
    "no-template": (
        '    emission: {llvm: "tile.store %S, %D"}\n',
        "",
        ["30:3 emission-missing"],
        "'store' has no template for this back end",
        "add 'emission: {llvm: ...}'"),
    "back-end-that-is-none": (
        'emission: {llvm: "tile.store %S, %D"}',
        'emission: {lvm: "tile.store %S, %D"}',
        ["37:16 system-unknown-backend"],
        "there is no back end 'lvm'",
        "did you mean 'llvm'?"),
    "move-that-does-not-move": (
        '"%D = tile.load %S"',
        '"%D = tile.load %T"',
        ["29:38 emission-name"],
        "'%T' is no operand and has no value here yet",
        "values here: %S"),
    "verb-that-is-none": (
        '"tile.store %S, %D"',
        '"tile.stoore %S, %D"',
        ["37:23 emission-name"],
        "there is no verb 'tile.stoore'",
        "did you mean 'tile.store'?"),
    "verb-of-another-form": (
        '"%D = tile.load %S"',
        '"%D = tile.load(16, 64) %S"',
        ["29:23 emission-name"],
        "'tile.load' is not written like this",
        "write '%D = tile.load %S'"),
    "verb-that-makes-nothing": (
        '"%D = tile.load %S"',
        '"%D = tile.prefetch %S"',
        ["29:23 emission-name"],
        "'tile.prefetch' is not written like this",
        "write 'tile.prefetch %S'"),
    "no-lanes": (
        ", lanes: 8}",
        "}",
        ["15:3 emission-lanes"],
        "the registers 'v' of 'm' do not say how many elements they take",
        "write 'lanes: 16'"),
    "registers-of-two-kinds": (
        "units:\n",
        "  w: {kind: counted, cells: 16, cell: 32 B, lanes: 4}\nunits:\n",
        ["16:3 system-unreachable", "16:3 emission-lanes"],
        "no move leads from 'ram' to 'w' or back",
        "add a move: {from: ram, to: w, by: ..., issuer: ...}"),
    # ---- numerics that contradict the body
    "error-of-integers": (
        "    homes: v\n    emission:\n      llvm: |\n        %m",
        "    homes: v\n    ulp: 2 ulp\n    emission:\n      llvm: |\n        %m",
        ["73:10 system-numerics"],
        "'sum' computes with whole numbers: it has no error in ulp",
        "remove 'ulp'"),
    "error-of-what-is-exact": (
        "    homes: v\n    emission:\n      llvm: |\n        %p",
        "    homes: v\n    ulp: 2 ulp\n    emission:\n      llvm: |\n        %p",
        ["48:10 system-numerics"],
        "'fma' declares an error, but nothing in its body is approximated",
        "remove 'ulp'; permissions say how sums may be rounded"),
    "error-and-exact": (
        "        out D: f32[J]\n",
        "        out D: f32[J]\n        permits exact\n",
        ["61:10 system-numerics"],
        "'grow' declares an error of 1 ulp and permits 'exact'",
        "remove one of the two"),
    "error-of-a-move": (
        '    emission: {llvm: "tile.store',
        '    ulp: 1 ulp\n    emission: {llvm: "tile.store',
        ["37:10 system-numerics"],
        "'store' computes with whole numbers: it has no error in ulp",
        "remove 'ulp'"),
    "contract-without-a-sum": (
        "C[j] += A[j] * B[j]",
        "C[j] = A[j] * B[j]",
        ["44:9 system-numerics"],
        "'fma' permits 'contract', but no product goes into a sum",
        "leave 'contract' out"),
    "contract-without-a-product": (
        "C[j] += A[j] * B[j]",
        "C[j] += A[j] - B[j]",
        ["44:9 system-numerics"],
        "'fma' permits 'contract', but no product goes into a sum",
        "leave 'contract' out"),
    "reassociate-without-a-sum": (
        "permits contract\n",
        "permits contract, reassociate\n",
        ["44:9 system-numerics"],
        "'fma' permits 'reassociate', but nothing is summed up",
        "leave 'reassociate' out"),
    "error-without-a-unit": (
        "ulp: 1 ulp",
        "ulp: 1",
        ["60:10 system-unit"],
        "'1' has no unit (error)",
        "write '1 ulp' if that is meant; units: ulp"),
    # ---- contracts, and what the machine names
    "odd-alignment": (
        "align: {A: 16 B}",
        "align: {A: 24 B}",
        ["91:16 system-align"],
        "an alignment is a power of two, not 24 B",
        "write 16 B or 32 B"),
    "odd-alignment-of-a-memory": (
        "align: 64 B",
        "align: 48 B",
        ["14:60 system-align"],
        "an alignment is a power of two, not 48 B",
        "write 32 B or 64 B"),
    "alignment-below-the-element": (
        "align: {A: 16 B}",
        "align: {A: 0 B}",
        ["91:16 system-align"],
        "an alignment is a power of two, not 0 B",
        "leave it out"),
    "strides-of-another-rank": (
        "strides: {x: [free]}",
        "strides: {x: [free, 1]}",
        ["90:15 system-strides"],
        "'x' of 'gemv_f32' has 1 dimensions, the contract 2",
        "one stride per dimension: a number or free"),
    "packed-misspelt": (
        "strides: {x: [free]}",
        "strides: {x: paked}",
        ["90:18 system-kind"],
        "expected strides, found 'paked'",
        "for example {A: [free, 1]} or {A: packed}"),
    "operand-that-is-none": (
        "strides: {x: [free]}",
        "strides: {z: packed}",
        ["90:15 system-operand"],
        "'gemv_f32' has no operand 'z'",
        "operands: A, x, y"),
    "back-end-of-the-machine": (
        "backend: llvm",
        "backend: lvm",
        ["3:10 system-unknown-backend"],
        "there is no back end 'lvm'",
        "did you mean 'llvm'?"),
    "approach-of-the-machine": (
        "backend: llvm",
        "backend: llvm\napproach: greedi",
        ["4:11 system-unknown-approach"],
        "there is no Approach 'greedi'",
        "did you mean 'greedy'?"),
}  # fmt: skip
