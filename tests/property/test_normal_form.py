"""The normal form over random kernels: it keeps values, and it undoes every respelling (IR-2, IR-9)."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from isam.ir import interp, oracle
from isam.ir.affine import Affine
from isam.ir.dtype import numpy_dtype
from isam.ir.hashing import structural_hash
from isam.ir.kernel import REDUCTIONS, Access, Buffer, Item, Kernel, Recurrence, Statement
from isam.ir.normal import normal_form, one_to_one
from isam.ir.text import parse, print_kernel
from isam.ir.verify import verify
from tests.random_kernels import random_kernel, show


class Respell:
    """Writes the same kernel with idle copies, in-place accumulations and detours."""

    def __init__(self, k: Kernel, rng: random.Random):
        self.k, self.rng = k, rng
        self.extra: list[Buffer] = []

    def kernel(self) -> Kernel:
        body = self.body(self.k.body)
        return replace(self.k, body=body, buffers=(*self.k.buffers, *self.extra))

    def body(self, body: tuple[Item, ...]) -> tuple[Item, ...]:
        out: list[Item] = []
        for item in body:
            if isinstance(item, Recurrence):
                out.append(replace(item, body=self.body(item.body)))
            else:
                out.extend(self.statement(item))
        return tuple(out)

    def temp(self, like: str, s: Statement) -> Access:
        """A fresh temporary with one dimension per axis, in some order, shifted here and there."""
        axes = list(s.domain.axes)
        self.rng.shuffle(axes)
        shift = [self.rng.choice([0, 0, 2]) for _ in axes]
        name = f"extra{len(self.extra)}"
        shape = tuple(a.extent + c for a, c in zip(axes, shift, strict=True))
        self.extra.append(Buffer(name, shape, self.k.buffer(like).dtype, "temp", self.rng.random() < 0.5))
        return Access(name, tuple(Affine.of(a.name) + c for a, c in zip(axes, shift, strict=True)))

    def statement(self, s: Statement) -> list[Statement]:
        before: list[Statement] = []
        if self.rng.random() < 0.4:
            n = self.rng.randrange(len(s.sources))
            x = s.sources[n]
            if isinstance(x, Access):
                t = self.temp(x.buffer, s)
                before.append(Statement(s.domain, t, "copy", (x,)))
                s = replace(s, sources=tuple(t if m == n else y for m, y in enumerate(s.sources)))
        own = any(isinstance(x, Access) and x.buffer == s.dest.buffer for x in s.sources)
        if not s.accumulate and not own and one_to_one(s) and s.op in REDUCTIONS and self.rng.random() < 0.4:
            if self.k.buffer(s.dest.buffer).role == "temp":
                first = replace(s, op="copy", sources=s.sources[:1])
                return [*before, first, replace(s, sources=s.sources[1:], accumulate=True)]
            t = self.temp(s.dest.buffer, s)
            first = Statement(s.domain, t, "copy", s.sources[:1])
            second = Statement(s.domain, t, s.op, s.sources[1:], accumulate=True)
            return [*before, first, second, Statement(s.domain, s.dest, "copy", (t,))]
        if not s.accumulate and not own and one_to_one(s) and self.rng.random() < 0.3:
            t = self.temp(s.dest.buffer, s)
            return [*before, replace(s, dest=t), Statement(s.domain, s.dest, "copy", (t,))]
        return [*before, s]


def same_values(one: Kernel, two: Kernel, sizes: dict[str, int], seed: int) -> None:
    a, b = oracle.evaluate(one, sizes, seed), oracle.evaluate(two, sizes, seed)
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=show(one, sizes) + print_kernel(two))


@pytest.mark.parametrize("seed", range(120))
def test_values_stay_and_respellings_vanish(seed):
    k, sizes = random_kernel(seed)
    assert verify(k) == [], show(k, sizes)
    n = normal_form(k)
    assert verify(n) == [], print_kernel(n)
    assert normal_form(n) is n
    assert parse(print_kernel(n)) == n
    same_values(k, n, sizes, seed)
    for attempt in range(2):
        other = Respell(k, random.Random(f"{seed} {attempt}")).kernel()
        assert verify(other) == [], print_kernel(other)
        same_values(k, other, sizes, seed)
        m = normal_form(other)
        assert verify(m) == [], print_kernel(m)
        same_values(k, m, sizes, seed)
        assert structural_hash(m) == structural_hash(n), f"{print_kernel(other)}\n{print_kernel(m)}\n{print_kernel(n)}"


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_floats_stay_bit_by_bit(seed):
    k, sizes = random_kernel(seed)
    rng = np.random.default_rng(seed)
    arrays = {}
    for b in k.arguments:
        if b.role != "out":
            shape = tuple(max(0, d.evaluate(sizes)) for d in b.shape)
            arrays[b.name] = (rng.normal(size=shape) * 3).astype(numpy_dtype(b.dtype))
    a, b = interp.run(k, arrays, sizes), interp.run(normal_form(k), arrays, sizes)
    for name in a:
        assert a[name].tobytes() == b[name].tobytes(), show(k, sizes)
