"""What a law promises that nobody asks for: a kernel that can be carried out as it stands gets fewer multiplications,
and its results another error, whose bound is known beforehand."""

from __future__ import annotations

from fractions import Fraction

from isam.classes import dataclass

UNIT = {"f64": -53, "f32": -24, "f16": -11, "bf16": -8}  # the unit roundoff is two to this power


@dataclass(frozen=True, slots=True)
class Saving:
    """Multiplications of a sum before and after, those of transforms included. It is the reason of a step."""

    before: int
    after: int

    @property
    def pays(self) -> bool:
        return self.after < self.before

    @property
    def ratio(self) -> float:
        return self.after / self.before

    def __str__(self) -> str:
        return f"it may pay: {self.before} multiplications become {self.after}"


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """Of a sum of ``terms`` products: every element is within :attr:`factor`, times the largest values of both factors,
    of the exact sum. ``roundings``: on the way of one term; ``amplification``: how large the sum of absolute values on
    the way becomes for one term and factors up to one. ``dtype`` ``''``: integers, which make no error."""

    amplification: Fraction
    roundings: int
    terms: int
    dtype: str

    def within(self, inner: ErrorBound) -> ErrorBound:
        """An algorithm whose products are computed by another algorithm."""
        return ErrorBound(self.amplification * inner.amplification, self.roundings + inner.roundings, inner.terms,
                          self.dtype)  # fmt: skip

    @property
    def factor(self) -> float:
        if self.dtype not in UNIT:
            return 0.0
        n = self.roundings * 2.0 ** UNIT[self.dtype]
        return float(self.amplification) * self.terms * (n / (1 - n) if n < 1 else float("inf"))

    def __str__(self) -> str:
        size = f"{self.roundings} roundings, amplified {self.amplification} times, {self.terms} terms"
        return f"within {self.factor:.3g} times the largest of both factors ({size})"
