"""At which sizes a mapping holds, where a kernel leaves some open and calls cannot carry out every value (MAP-6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isam.classes import dataclass
from isam.ir.affine import Affine


@dataclass(frozen=True, slots=True)
class Condition:
    """``expr``, a number of steps (so one below zero counts as zero), is one of ``some``, or lies from ``least`` to
    ``most`` and leaves one of ``rests`` on division by ``step``.

    >>> eights = Condition(Affine.of("T"), step=8)
    >>> str(eights), eights.holds({"T": 16}), eights.holds({"T": 13})
    ('T % 8 == 0', True, False)
    >>> str(Condition(Affine.of("T") - 3, 4, 9, some=(0,))), str(Condition(Affine.of("T"), step=8, rests=(0, 4, 5, 6)))
    ('T - 3 <= 0 or 4 <= T - 3 <= 9', 'T % 8 in {0, 4..6}')
    """

    expr: Affine
    least: int = 0
    most: int | None = None
    step: int = 1
    rests: tuple[int, ...] = (0,)
    some: tuple[int, ...] = ()

    def admits(self, n: int) -> bool:
        """Whether it holds where ``expr`` is ``n``."""
        n = max(n, 0)
        inside = self.least <= n and (self.most is None or n <= self.most)
        return n in self.some or (inside and n % self.step in self.rests)

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return self.admits(self.expr.evaluate(sizes))

    def __str__(self) -> str:
        x = str(self.expr)
        negative = self.expr.const < 0 or any(c < 0 for _, c in self.expr.terms)
        ways = [f"{x} <= 0"] if negative and self.admits(0) else []
        few = tuple(n for n in self.some if n or not ways)
        ways += [f"{x} {_among(few)}"] if few else []
        if self.least == self.most and self.least % self.step in self.rests:
            told = self.least in self.some or (self.least == 0 and negative)
            return " or ".join(ways if told else [*ways, f"{x} == {self.least}"])
        parts = []
        if len(self.rests) < self.step:
            parts.append(f"{f'({x})' if self.expr.const or len(self.expr.terms) > 1 else x} % {self.step} "
                         f"{_among(self.rests)}")  # fmt: skip
        if self.least > 0:
            parts.append(f"{self.least} <= {x} <= {self.most}" if self.most is not None else f"{x} >= {self.least}")
        elif self.most is not None:
            parts.append(f"{x} <= {self.most}")
        return " or ".join([*ways, " and ".join(parts)])


def _among(numbers: Sequence[int]) -> str:
    """``== 8``; where there are several, ``in {0, 4..6}``, or ``in {0, 8..32 by 4}``."""
    if len(numbers) == 1:
        return f"== {numbers[0]}"
    told, at = [], 0
    while at < len(numbers):
        by = numbers[at + 1] - numbers[at] if at + 1 < len(numbers) else 1
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] - numbers[end] == by:
            end += 1
        if end - at < (2 if by == 1 else 3):
            end = at
        told.append(str(numbers[at]) if end == at else f"{numbers[at]}..{numbers[end]}{f' by {by}' if by > 1 else ''}")
        at = end + 1
    return f"in {{{', '.join(told)}}}"
