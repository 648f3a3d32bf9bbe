"""``python -m tests.erf_table``: the constants of ``hwdesc/cpu/erf_table.yaml``, from the error function itself.

32 polynomials of degree 4, one around each multiple of 1/8 (the first for what lies above 0 only), each fitted to the
relative error at Chebyshev's points; coefficients are rounded to f32 from the lowest on, and the others fitted anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

STEP = 1 / 8
COUNT = 32
DEGREE = 4


def polynomial(centre: float) -> NDArray[np.float32]:
    """Coefficients of erf(centre + h), lowest first."""
    low = 0 if centre == 0 else -STEP / 2
    h = (low + STEP / 2) / 2 + (STEP / 2 - low) / 2 * np.cos((np.arange(64) + 0.5) / 64 * np.pi)
    left = erf(centre + h)
    weight = 1 / left
    out = np.zeros(DEGREE + 1, np.float32)
    known = {0: 0.0, 1: 2 / np.sqrt(np.pi)} if centre == 0 else {}  # zero, and the slope that small numbers have
    for n in range(DEGREE + 1):
        powers = np.stack([h**k for k in range(n, DEGREE + 1)], 1)
        fitted = np.linalg.lstsq(powers * weight[:, None], left * weight, rcond=None)[0][0]
        out[n] = known.get(n, fitted)
        left = left - float(out[n]) * h**n
    return out


def table() -> NDArray[np.float32]:
    """A row per power, lowest first, a column per polynomial; the last one is 1, as is erf beyond."""
    last = np.eye(DEGREE + 1, dtype=np.float32)[0]
    return np.stack([polynomial(n * STEP) for n in range(COUNT - 1)] + [last], 1)


def main() -> None:
    for n, row in enumerate(table()):
        for half in (row[:16], row[16:]):
            print(n, ", ".join(str(c) for c in half))


if __name__ == "__main__":
    main()
