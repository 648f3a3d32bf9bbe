"""The problem: ``C[M, N] = A[M, K] B[K, N]``, bf16 in, sums and result in f32, and instructions for it."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Mapping, OperandMap
from isam.ir.normal import normal_form
from isam.ir.text import parse_kernel
from isam.schedule.tree import Nest, Place
from isam.system.graph import System

BYTES = {"A": 2, "B": 2, "C": 4}  # of an element
OVER = {"A": ("i", "k"), "B": ("k", "j"), "C": ("i", "j")}
NEW, ADD = 0, 1  # nests: the product that overwrites, the product that adds

PRODUCT = parse_kernel("""kernel product(M, N, K)
  in  A: bf16[M, K]
  in  B: bf16[K, N]
  out C: f32[M, N]
  permits reassociate, contract
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += f32(A[i, k]) * f32(B[k, j])
""")


def product(m: int, n: int, k: int) -> Kernel:
    """The kernel at one size."""
    return normal_form(PRODUCT.with_sizes({"M": m, "N": n, "K": k}))


def cover(kernel: Kernel, system: System) -> tuple[Cover, tuple[Nest, ...]]:
    """Both products of the matrix units as instructions for the kernel: the first step of a sum overwrites."""
    operands = tuple(
        OperandMap(b, b, tuple(Affine.of(x) for x in axes), (0, 1), (1, 1)) for b, axes in OVER.items()
    )  # fmt: skip
    axes, every = tuple((a, a) for a in "ijk"), range(len(kernel.statements))
    temps = tuple((b.name, b.name) for b in kernel.buffers if b.role == "temp")
    mappings = tuple(
        Mapping(system.instructions[name], tuple(which), operands, axes, (), temps=temps,
                statement_map=tuple(enumerate(which)))
        for name, which in (("mma_new_bf16", every), ("mma_bf16", every[1:]))
    )  # fmt: skip
    (m, k), (_, n) = (kernel.buffer(b).shape for b in "AB")
    extents = (("i", m), ("j", n), ("k", k))
    return Cover(kernel, kernel, mappings), (Nest(NEW, extents), Nest(ADD, extents))


def homes(kernel: Kernel, system: System) -> dict[str, Place]:
    """Where the arguments lie in main memory: row by row."""
    return {b: Place(system.home, b, Affine(), (size * kernel.buffer(b).shape[1].const, size))
            for b, size in BYTES.items()}  # fmt: skip
