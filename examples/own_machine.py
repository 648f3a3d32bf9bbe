"""A machine of one's own: described in YAML, mapped to, simulated strictly."""

from pathlib import Path

import numpy as np

import isam

kernel = isam.parse("""
kernel layer(M, N, K)
  in    x: f32[M, K]
  const w: f32[K, N]
  out   y: f32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[k, j]
  forall i < M, j < N
    y[i, j] = max(y[i, j], 0)
""")
fn = isam.compile(kernel, on=Path(__file__).parent / "own_machine.yaml", sizes={"M": 6, "N": 20, "K": 19})
for mapping in fn.mapping.mappings:
    print(mapping)
rng = np.random.default_rng(5)
x, w = rng.standard_normal((6, 19), dtype=np.float32), rng.standard_normal((19, 20), dtype=np.float32)
print("right:", bool(abs(fn(x, w) - np.maximum(x @ w, 0)).max() < 1e-4))
