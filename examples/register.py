"""A Python function as an instruction: its declared semantics is checked against it before it may be used."""

import numpy as np

import isam


@isam.instruction("""
instruction dgemv(M, N)
  in  A: f64[M, N]
  in  x: f64[N]
  out y: f64[M]
  forall i < M
    y[i] = 0
  forall i < M, j < N
    y[i] += A[i, j] * x[j]
""")
def dgemv(A, x, y):
    y[...] = A @ x


print("trials passed:", dgemv.trials > 10)

kernel = isam.parse("""
kernel batched(B, M, N)
  in  A: f64[B, M, N]
  in  x: f64[B, N]
  out y: f64[B, M]
  forall b < B, i < M
    y[b, i] = 0
  forall b < B, i < M, j < N
    y[b, i] += A[b, i, j] * x[b, j]
""")
fn = isam.compile(kernel, on=isam.load_system("host").extended(dgemv), require="dgemv")
rng = np.random.default_rng(3)
A, x = rng.standard_normal((4, 30, 20)), rng.standard_normal((4, 20))
print("right:", np.allclose(fn(A, x), np.einsum("bij,bj->bi", A, x), rtol=0, atol=1e-12))
print(fn.mapping.mappings[0])

try:

    @isam.instruction("instruction twice(N)\n  in x: f64[N]\n  out y: f64[N]\n  forall i < N\n    y[i] = 2 * x[i]")
    def twice(x, y):
        y[...] = x + 2
except isam.IsamError as refused:
    print("refused:", str(refused).splitlines()[0])
