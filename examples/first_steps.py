"""A kernel in, a callable out: what was decided, and constants bound once."""

from pathlib import Path

import numpy as np

import isam

kernel = isam.parse((Path(__file__).parent / "matmul.isam").read_text())
fn = isam.compile(kernel, on="host", sizes={"M": 40, "N": 50, "K": 60})

rng = np.random.default_rng(0)
A = rng.standard_normal((40, 60), dtype=np.float32)
B = rng.standard_normal((60, 50), dtype=np.float32)
C = fn(A, B)
print("largest difference to NumPy below 1e-4:", bool(abs(C - A @ B).max() < 1e-4))

out = np.empty((40, 50), np.float32)
print("written in place:", fn(A, B, C=out) is out)

print(fn.mapping.mappings[-1])
print(str(fn.certificate).splitlines()[0])
