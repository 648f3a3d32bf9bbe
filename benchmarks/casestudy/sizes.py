"""Which products are measured: (M, N, K), row major."""

from __future__ import annotations

from benchmarks.shapes import DEEPBENCH

Size = tuple[int, int, int]

OWN: tuple[Size, ...] = (  # what the library's tilings are made for
    (4096, 4096, 4096), (3072, 3072, 2048), (1536, 3072, 2048), (2048, 1536, 4096), (1024, 1536, 4096),
    (768, 1024, 2048), (64, 3072, 4096), (1536, 128, 4096), (1, 6144, 4096), (32, 6144, 4096),
)  # fmt: skip
PRIMES: tuple[Size, ...] = (
    (7, 11, 13), (31, 37, 41), (97, 89, 83), (127, 131, 137), (257, 263, 269), (503, 509, 521), (1009, 1013, 509),
    (1511, 1499, 1489), (2039, 2053, 2063), (1, 997, 991),
)  # fmt: skip
OFF_BY_ONE: tuple[Size, ...] = (
    (33, 31, 33), (65, 63, 2048), (129, 127, 65), (255, 257, 256), (385, 129, 1), (513, 511, 513), (1023, 1023, 1023),
    (1025, 1025, 1025), (2049, 2047, 2049), (3073, 1023, 769),
)  # fmt: skip
THIN: tuple[Size, ...] = (
    (1, 4096, 4096), (4096, 1, 4096), (3, 5000, 3000), (5000, 7, 700), (17, 12345, 33),
)  # fmt: skip
DEEP: tuple[Size, ...] = (
    (16, 16, 20000), (32, 32, 65536), (64, 48, 30011), (100, 100, 10007), (300, 200, 50000),
)  # fmt: skip

SETS: dict[str, tuple[Size, ...]] = {
    "own": OWN, "deepbench": tuple((g.m, g.n, g.k) for g in DEEPBENCH), "primes": PRIMES, "off by one": OFF_BY_ONE,
    "thin": THIN, "deep": DEEP,
}  # fmt: skip
AWKWARD = ("primes", "off by one", "thin", "deep")
LARGE = 10**10  # operations from which on a product counts as large
