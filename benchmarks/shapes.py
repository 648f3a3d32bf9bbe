"""What is measured, as data.

A matrix product is ``C[m, n] = A[m, k] B[k, n]``, row major. DeepBench's problems are column major: its (M, N, K) is
(m = N, n = M, k = K) here. Convolutions are those of ResNet-50 (version 1.5: the stride is on the 3x3) with one image
and with 28, channels last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Gemm:
    """A matrix product. ``kind``: f32; bf16, summed in f32; bytes in i32: u8 and i8 (``int8``, see ``data``), or both
    with a sign (``i8``)."""

    m: int
    n: int
    k: int
    kind: str = "f32"

    @property
    def name(self) -> str:
        return f"{self.m}x{self.n}x{self.k}" + (f" {self.kind}" if self.kind != "f32" else "")

    @property
    def work(self) -> str:
        """What kind of kernel it is."""
        return "product"

    @property
    def ragged(self) -> bool:
        """Whether a size is no multiple of 16 elements, a register of f32."""
        return any(x % 16 and x > 1 for x in (self.m, self.n, self.k))

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k

    @property
    def terms(self) -> int:
        return self.k


@dataclass(frozen=True, slots=True)
class Convolution:
    """A square convolution of ``batch`` images of ``size`` x ``size`` with ``channels``, to ``filters`` channels, in
    f32 or bf16; ``count``: how often the network has it. The padding keeps the size at stride 1."""

    channels: int
    size: int
    filters: int
    taps: int
    stride: int
    count: int = 1
    kind: str = "f32"
    batch: int = 1

    @property
    def work(self) -> str:
        return "convolution"

    @property
    def pad(self) -> int:
        return self.taps // 2

    @property
    def ragged(self) -> bool:
        """Whether its channels or filters are no multiple of 16 elements."""
        return bool(self.channels % 16 or self.filters % 16)

    @property
    def out(self) -> int:
        return (self.size + 2 * self.pad - self.taps) // self.stride + 1

    @property
    def name(self) -> str:
        kind = f" {self.kind}" if self.kind != "f32" else ""
        image = f"{self.batch}x" * (self.batch > 1) + f"{self.size}x{self.size}x{self.channels}"
        return f"{image} to {self.filters}, {self.taps}x{self.taps}/{self.stride}{kind}"

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.out * self.out * self.filters * self.terms

    @property
    def within(self) -> float:
        """The share of its products whose factor lies in the image: the others are with what pads it, zeros."""
        met = sum(0 <= self.stride * o + r - self.pad < self.size for o in range(self.out) for r in range(self.taps))
        return (met / (self.out * self.taps)) ** 2

    @property
    def terms(self) -> int:
        return self.taps * self.taps * self.channels


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of ``kernels.isam`` in f32 or bf16, from arguments and constants to ``Y``. ``flops``: the work of a
    call; of what is done to the rows of a matrix, its elements."""

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    flops: int
    kind: str = "f32"

    @property
    def work(self) -> str:
        return self.kernel

    @property
    def source(self) -> str:
        """The kernel's name in ``kernels.isam``."""
        return self.kernel if self.kind == "f32" else f"{self.kernel}_{self.kind}"

    @property
    def name(self) -> str:
        return f"{self.source} " + "x".join(str(n) for key, n in self.sizes if key not in ("R", "S"))


Shape = Gemm | Convolution | Case


def _rows(kernel: str, rows: int, columns: int) -> Case:
    return Case(kernel, (("M", rows), ("N", columns)), rows * columns)


def _case(kernel: str, flops: int, **sizes: int) -> Case:
    return Case(kernel, tuple(sizes.items()), flops)


def _depthwise(channels: int, size: int, stride: int) -> Case:
    out = size // stride
    sizes = {"H": out, "W": out, "C": channels, "R": 3, "S": 3, "stride": stride}
    return Case("depthwise", tuple(sizes.items()), 2 * 9 * out * out * channels)


def _block(channels: int, size: int, filters: int, stride: int) -> Case:
    out = size // stride
    sizes = {"H": out, "W": out, "C": channels, "K": filters, "R": 3, "S": 3, "stride": stride}
    return Case("block", tuple(sizes.items()), 2 * out * out * channels * (9 + filters))


def _attention(heads: int, rows: int, columns: int = 64) -> Case:
    sizes = {"H": heads, "M": rows, "N": rows, "D": columns, "V": columns}
    return Case("attention", tuple(sizes.items()), 4 * heads * rows * rows * columns)


def _gru(units: int, batch: int, steps: int = 128) -> Case:
    sizes = {"T": steps, "B": batch, "X": units, "H": units}
    return Case("gru", tuple(sizes.items()), 2 * steps * batch * 6 * units * units)


ROWS = tuple(_rows(k, m, n) for k in ("softmax", "layer_norm", "bias_gelu")
             for m, n in ((256, 1024), (4096, 768), (512, 4096), (128, 1000)))  # fmt: skip
LAYOUTS = (*(_rows("transpose", m, n) for m, n in ((256, 256), (1024, 1024), (1000, 777))),
           *(Case("channels_last", (("C", c), ("P", n * n)), c * n * n)
             for c, n in ((64, 112), (128, 56), (256, 28), (512, 14), (2048, 7))))  # fmt: skip
INTERLEAVED = (*(_case("complex_product", 6 * n, N=n) for n in (1024, 8192, 131072)),
               *(_case("brightness", 5 * n, N=n) for n in (8192, 131072)),
               *(_case("pooled", 3 * c * n * n, C=c, H=n, W=n) for c, n in ((64, 56), (256, 14))),
               *(_case("every_other", n, N=n) for n in (8192, 131072)))  # fmt: skip
TERMS = (
    *(_case("gates", 4 * m * n * n, M=m, N=n, K=n) for m, n in ((16, 256), (64, 256), (64, 1024), (256, 512))),
    *(_case("complex_matmul", 8 * m * n * n, M=m, N=n, K=n) for m, n in ((64, 64), (64, 256), (256, 256), (512, 512))),
    *(_case("scaled_product", 2 * n * n * n, M=n, N=n, K=n) for n in (64, 256, 512)),
)  # fmt: skip
SCANS = tuple(_rows(k, m, n) for k in ("running_sum", "recursive_filter")
              for m, n in ((256, 256), (256, 1024), (4096, 768), (128, 1000), (50, 333)))  # fmt: skip
ALGEBRA = (
    *(_case("lu", 2 * n**3 // 3, N=n) for n in (64, 200)), *(_case("cholesky", n**3 // 3, N=n) for n in (64, 200)),
    _case("substitution", 200 * 200, N=200), _case("substitutions", 200 * 200 * 64, N=200, M=64),
    *(_case("trmm", n * (n + 1) * n, M=n, N=n) for n in (64, 512)),
    *(_case("syrk", n * (n + 1) * n, M=n, K=n) for n in (64, 512)),
    _case("band", 2 * 17 * 4096, N=4096, H=8), _case("prefix_sum", 4096, N=4096),
    *(_case("viterbi", t * s * (2 * s + 1), T=t, N=s) for t, s in ((128, 48), (128, 200))),
    _case("histogram", 16384, N=16384, B=256),
)  # fmt: skip
DEPTHWISE = tuple(_depthwise(*row) for row in (  # those of MobileNet
    (32, 112, 1), (64, 112, 2), (128, 56, 1), (128, 56, 2), (256, 28, 1), (256, 28, 2), (512, 14, 1), (512, 14, 2),
    (1024, 7, 1),
))  # fmt: skip
BLOCKS = tuple(_block(*row) for row in (  # those of MobileNet
    (32, 112, 64, 1), (64, 112, 128, 2), (128, 56, 128, 1), (256, 28, 256, 1), (512, 14, 512, 1), (1024, 7, 1024, 1),
))  # fmt: skip
ATTENTION = tuple(_attention(*row) for row in ((12, 128), (12, 512), (16, 1024)))
GRU = tuple(_gru(h, b) for h in (512, 1024, 1536, 2048, 2816) for b in (1, 4, 32))
BLOCKS_BF16, ATTENTION_BF16, GRU_BF16 = (tuple(replace(c, kind="bf16") for c in cases)
                                         for cases in (BLOCKS, ATTENTION, GRU))  # fmt: skip

SQUARES = tuple(Gemm(n, n, n) for n in (16, 32, 64, 128, 256, 512, 1024, 2048))

DEEPBENCH = tuple(Gemm(n, m, k) for m, n, k in (
    (5124, 700, 2048), (35, 700, 2048), (5124, 1500, 2048), (7680, 1, 2560), (7680, 2, 2560), (7680, 4, 2560),
    (3072, 1, 1024), (3072, 1500, 1024), (1024, 700, 512), (512, 2, 512), (64, 1, 1216), (128, 1500, 1280),
    (176, 1500, 1408), (1760, 32, 1760), (2560, 64, 2560),
))  # fmt: skip

TINY = (*(Gemm(n, n, n) for n in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)), Gemm(3, 5, 7), Gemm(17, 33, 65),
        Gemm(49, 100, 37))  # fmt: skip
PACKED = (*((n, n, n) for n in (256, 512, 1024)),
          *((g.m, g.n, g.k) for g in DEEPBENCH if min(g.m, g.n, g.k) >= 512))  # fmt: skip
BF16 = tuple(Gemm(*s, "bf16") for s in PACKED)
INT8 = (*(Gemm(*s, "int8") for s in PACKED),
        *(Gemm(*s, "i8") for s in ((64, 512, 512), *((n, n, n) for n in (256, 1024)), (49, 1000, 333))))

RESNET50 = tuple(Convolution(*row) for row in (
    (3, 224, 64, 7, 2, 1),
    (64, 56, 64, 1, 1, 1), (64, 56, 64, 3, 1, 3), (64, 56, 256, 1, 1, 4), (256, 56, 64, 1, 1, 2),
    (256, 56, 128, 1, 1, 1), (128, 56, 128, 3, 2, 1), (128, 28, 512, 1, 1, 4), (256, 56, 512, 1, 2, 1),
    (512, 28, 128, 1, 1, 3), (128, 28, 128, 3, 1, 3),
    (512, 28, 256, 1, 1, 1), (256, 28, 256, 3, 2, 1), (256, 14, 1024, 1, 1, 6), (512, 28, 1024, 1, 2, 1),
    (1024, 14, 256, 1, 1, 5), (256, 14, 256, 3, 1, 5),
    (1024, 14, 512, 1, 1, 1), (512, 14, 512, 3, 2, 1), (512, 7, 2048, 1, 1, 3), (1024, 14, 2048, 1, 2, 1),
    (2048, 7, 512, 1, 1, 2), (512, 7, 512, 3, 1, 2),
))  # fmt: skip

RESNET50_BF16 = tuple(replace(c, kind="bf16") for c in RESNET50)
RESNET50_28 = tuple(replace(c, batch=28) for c in RESNET50)

BYTES = ("int8", "i8")  # kinds of products of bytes
LARGE = 100_000_000  # flops from which on a product counts as large: shorter ones are bound by memory and by calling

GROUPS: dict[str, tuple[Shape, ...]] = {
    "tiny": TINY, "square": SQUARES, "deepbench": DEEPBENCH, "bf16": BF16, "int8": INT8, "resnet50": RESNET50,
    "depthwise": DEPTHWISE, "rows": ROWS, "layouts": LAYOUTS, "interleaved": INTERLEAVED,
    "terms": TERMS, "scans": SCANS,
    "algebra": ALGEBRA,
    "blocks": BLOCKS, "attention": ATTENTION, "gru": GRU,
    "resnet50x28": RESNET50_28, "resnet50-bf16": RESNET50_BF16, "blocks-bf16": BLOCKS_BF16,
    "attention-bf16": ATTENTION_BF16, "gru-bf16": GRU_BF16,
}  # fmt: skip
