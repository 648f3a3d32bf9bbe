"""A compiled kernel as a file: it runs where the compiler is not, and its certificate is checked again."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import isam
from isam.cli import main

softmax = (Path(__file__).parent / "softmax.isam").read_text()
x = np.random.default_rng(6).standard_normal((5, 33), dtype=np.float32)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "softmax.isamc"
    isam.compile(softmax, on="host", sizes={"M": 5, "N": 33}).save(path)
    y = isam.load(path)(x)
    print("rows sum to one:", bool(abs(y.sum(1) - 1).max() < 1e-5))
    print("verified:", main(["verify", str(path)]) == 0, file=sys.stderr)
