"""How much of an axis one call of an instruction takes: the one place that knows (IR-6, MAP-6)."""

from __future__ import annotations

from collections.abc import Sequence

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Sym


@dataclass(frozen=True, slots=True)
class Span:
    """A call takes ``least``, ``least + step``, ... up to ``most`` elements of the axis (None: any number of steps).

    ``sym``: the size that says how many, ``each`` elements for one of it and ``more`` besides; None where the extent is
    a number (or more than one size makes it up).

    >>> eights = Span(0, 20, 8)
    >>> [n for n in range(30) if eights.admits(n)], eights.cut(40), eights.cut(20), eights.padded(20)
    ([0, 8, 16], 16, None, 24)
    >>> exactly = Span(8, 8)
    >>> exactly.cut(24), exactly.cut(20), str(exactly)
    (8, None, 'exactly 8')
    """

    least: int
    most: int | None
    step: int = 1
    sym: str | None = None
    each: int = 1
    more: int = 0

    @property
    def free(self) -> bool:
        """Whether a call may take any number of elements up to the most, down to a single one."""
        return self.least <= 1 and self.step == 1 and self.most != 0

    def admits(self, n: int) -> bool:
        """Whether one call may take ``n`` elements."""
        return self.least <= n and (self.most is None or n <= self.most) and (n - self.least) % self.step == 0

    def nearest(self, n: int) -> int | None:
        """The most that one call takes of ``n`` elements; None: it takes more than that."""
        most = n if self.most is None else min(n, self.most)
        return most - (most - self.least) % self.step if most >= self.least else None

    def cuts(self, n: int, block: int) -> bool:
        """Whether calls of ``block`` elements each and one of what is left carry out ``n`` of them."""
        return n <= 0 or (n <= block and self.admits(n)) or (
            self.admits(block) and block > 0 and (n % block == 0 or self.admits(n % block)))  # fmt: skip

    def cut(self, n: int) -> int | None:
        """The most elements per call with which :meth:`cuts` carries out ``n``; None: no calls do."""
        if n <= 0 or self.admits(n):
            return n
        if self.least % self.step == 0 and n % self.step:
            return None
        block = self.nearest(n) or 0
        while block >= max(1, self.least):
            if self.cuts(n, block):
                return block
            block -= self.step
        return None

    def padded(self, n: int) -> int | None:
        """The least number of elements from ``n`` on that calls carry out; None: none was found."""
        return next((m for m in range(n, n + 2 * max(self.least, self.step, 1)) if self.cut(m) is not None), None)

    def size(self, n: int) -> int:
        """The value of ``sym`` for ``n`` elements."""
        return (n - self.more) // self.each

    def __str__(self) -> str:
        if self.least == self.most:
            return f"exactly {self.most}"
        parts = [f"a multiple of {self.step}"] if self.step > 1 and self.least % self.step == 0 else []
        parts += [f"at least {self.least}"] if self.least > max(1, self.step) else []
        parts += [f"at most {self.most}"] if self.most is not None else []
        return " and ".join(parts) or "any number"


def span_of(extent: Affine, sizes: Sequence[Sym]) -> Span:
    """How much of an axis of this extent a call takes, given the instruction's sizes."""
    known = {s.name: s for s in sizes}
    if not extent.terms:
        return Span(extent.const, extent.const)
    least, most = extent.const, extent.const
    ends: list[int | None] = []
    for name, c in extent.terms:
        s = known[name]
        low = -(-s.lo // s.multiple_of) * s.multiple_of
        high = None if s.hi is None else s.hi // s.multiple_of * s.multiple_of
        least += c * low if c > 0 else 0
        ends.append(None if c < 0 or high is None else c * high)
    top = None if None in ends else most + sum(e for e in ends if e is not None)
    (name, c), *others = extent.terms
    if others or c < 0:
        return Span(0, top)
    step = c * known[name].multiple_of
    return Span(least if least >= 0 else least % step, top, step, name, c, extent.const)
