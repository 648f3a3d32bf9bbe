"""Random well-formed kernels, for hypothesis (:func:`kernels`) and for long campaigns (:func:`random_kernel`).

One grammar, two sources of choices. A kernel is a few *blocks*: an element-wise statement, a reduction with its
initialisation, a multiply-accumulate (also from narrow dtypes, also of three factors), a padded or triangular one, a
chain on what is there, an assignment to part of a zeroed buffer, a recurrent loop. Inputs are as large as the accesses
that read them need, so every access is in range for all sizes; results are read only where they were written.
Kernels pass ``verify``; sizes include 0, 1 and primes. What nobody reads becomes an output.

A failing case prints as text ready to become a test: ``show(kernel, sizes)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Item, Kernel, Recurrence, Statement, Sym
from isam.ir.text import print_kernel
from tests.random_blocks import Blocks, Chooser, Options, Seeded

__all__ = ["Builder", "Chooser", "Options", "Seeded", "kernels", "random_kernel", "show"]

DEFAULT = Options()


class Builder(Blocks):
    """Draws blocks until there are enough, then settles roles and sizes."""

    def kernel(self) -> tuple[Kernel, dict[str, int]]:
        names = ["M", "N", "K", "P"][: self.choose.integer(1, 4)]
        self.extents = [*(Affine.of(n) for n in names), Affine((), self.choose.integer(1, 4)), Affine.of(names[0]) + 1]
        for _ in range(self.choose.integer(1, self.options.most_blocks)):
            getattr(self, self.pick(self.options.blocks))()
        if self.options.loops and self.chance(10):
            self.loop()
            names.append("T")
        read = {a.buffer for s in _statements(self.body) for a in s.sources if isinstance(a, Access)}
        for n, b in self.buffers.items():
            if n not in self.fixed and n not in self.implicit:
                role = "temp" if n in read and self.chance(80) else "out"
                self.buffers[n] = replace(b, role=role)
        declared = [b for b in self.buffers.values() if b.name not in self.implicit]
        written = [s.dest.buffer for s in _statements(self.body)]
        hidden = [self.buffers[n] for n in sorted(self.implicit, key=written.index)]
        shapes = tuple(replace(b, shape=tuple(_cut(d) for d in b.shape)) for b in (*declared, *hidden))
        k = Kernel("random", tuple(Sym(n) for n in names), shapes, tuple(self.body))
        if not any(b.role in ("out", "inout") for b in k.buffers):
            return self._opened(k), self.sizes(names, k)
        return k, self.sizes(names, k)

    def _opened(self, k: Kernel) -> Kernel:
        last = k.statements[-1].dest.buffer
        return replace(k, buffers=tuple(replace(b, role="out") if b.name == last else b for b in k.buffers))

    def sizes(self, names: list[str], k: Kernel) -> dict[str, int]:
        """Sizes drawn one by one, lowered until every statement has few points."""
        sizes = {n: self.pick(self.options.sizes) for n in names}
        while largest(k, sizes) > self.options.points and any(sizes.values()):
            most = max(sizes, key=lambda n: sizes[n])
            sizes[most] = sizes[most] * 2 // 3
        return sizes


def _cut(d: Affine) -> Affine:
    return Affine() if d.is_constant and d.const < 0 else d


def _statements(body: Sequence[Item]) -> list[Statement]:
    return [s for it in body for s in (_statements(it.body) if isinstance(it, Recurrence) else [it])]


def largest(k: Kernel, sizes: Mapping[str, int]) -> int:
    """Points of the largest statement and elements of the largest buffer."""
    points = [prod(max(0, a.extent.evaluate(sizes)) for a in s.domain.axes) for s in k.statements]
    return max([*points, *(prod(max(0, d.evaluate(sizes)) for d in b.shape) for b in k.buffers)])


def random_kernel(seed: int, options: Options = DEFAULT) -> tuple[Kernel, dict[str, int]]:
    """A kernel and sizes for it; the same for the same seed."""
    return Builder(Seeded(seed), options).kernel()


def kernels(options: Options = DEFAULT) -> Any:
    """The hypothesis strategy of the same kernels: ``(kernel, sizes)``."""
    from hypothesis import strategies as st

    @st.composite
    def build(draw: Any) -> tuple[Kernel, dict[str, int]]:
        class Drawn:
            def integer(self, lo: int, hi: int) -> int:
                return draw(st.integers(lo, hi))

        return Builder(Drawn(), options).kernel()

    return build()


def show(k: Kernel, sizes: Mapping[str, int]) -> str:
    """The kernel as a file, with the sizes it failed at: ready for ``tests/text``."""
    return f"# sizes: {' '.join(f'{n}={v}' for n, v in sizes.items())}\n{print_kernel(k)}"
