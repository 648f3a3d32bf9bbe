"""Other ways in: einsum with affine indices, and a Python function that is read, not run."""

import numpy as np

import isam
from isam.frontend.python import forall

conv = isam.einsum("n(h+r)(v+s)c,rsck->nhvk")
x = np.random.default_rng(1).standard_normal((1, 9, 9, 8), dtype=np.float32)
w = np.random.default_rng(2).standard_normal((3, 3, 8, 16), dtype=np.float32)
y = isam.compile(conv, on="host")(x, w)
print("einsum:", y.shape)


@isam.kernel
def blend(a: "in f32[N]", b: "in f32[N]", out: "out f32[N]", *, N):
    for i in forall(N):
        out[i] = 0.25 * a[i] + 0.75 * b[i]


p, q = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
print("python:", isam.compile(blend, on="host")(p, q))
