"""The generator makes well-formed kernels, the mutators keep their meaning, and both are worth their name."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from isam.ir import oracle
from isam.ir.interp import run
from isam.ir.kernel import Kernel, Recurrence
from isam.ir.text import parse, print_kernel
from isam.ir.verify import verify
from tests.corpus import CASES, random_arrays
from tests.mutators import MUTATORS, anything
from tests.random_kernels import Seeded, kernels, random_kernel, show

QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@given(kernels())
@QUICK
def test_well_formed_and_printable(case):
    k, sizes = case
    assert verify(k) == [], show(k, sizes)
    again = parse(print_kernel(k))
    assert again == k, show(k, sizes)
    assert oracle.equal(k, again, sizes, 1)


@pytest.mark.parametrize("block", range(4))
def test_a_thousand_from_seeds(block):
    for seed in range(250 * block, 250 * block + 250):
        k, sizes = random_kernel(seed)
        assert verify(k) == [], show(k, sizes)
        assert parse(print_kernel(k)) == k, show(k, sizes)
        got = run(k, random_arrays(k, sizes, seed), sizes)
        assert got, show(k, sizes)
        for n, a in got.items():
            marker = np.zeros(0) if k.buffer(n).dtype[0] != "i" else np.flatnonzero(a == 0x5A5A5A5A)
            assert len(marker) == 0, show(k, sizes)  # nothing unwritten gets out


def test_the_grammar_is_used():
    seen: Counter[str] = Counter()
    for seed in range(300):
        k, sizes = random_kernel(seed)
        seen.update({s.op for s in k.statements})
        seen.update({b.dtype for b in k.buffers})
        seen.update({b.role for b in k.buffers})
        seen["where"] += any(s.domain.where for s in k.statements)
        seen["loop"] += any(isinstance(i, Recurrence) for i in k.body)
        seen["zero"] += 0 in sizes.values()
        rows = [r for s in k.statements for a in s.reads for r in a.index]
        seen["stride"] += any(abs(c) > 1 for r in rows for _, c in r.terms)
        seen["reversal"] += any(c < 0 for r in rows for _, c in r.terms)
        seen["window"] += any(len(r.terms) > 1 for r in rows)
        seen["several"] += len(k.statements) > 4
    wanted = ["add", "mul", "max", "min", "select", "lt", "cast", "exp", "div", "copy", "i8", "bf16", "f64", "i32"]
    wanted += ["bool", "inout", "temp", "const", "where", "loop", "zero", "stride", "reversal", "window", "several"]
    assert all(seen[w] >= 5 for w in wanted), {w: seen[w] for w in wanted if seen[w] < 5}


def check(k: Kernel, sizes: dict[str, int], mutate, seed: int) -> None:
    v = mutate(k, Seeded(seed))
    assert verify(v.kernel) == [], show(v.kernel, v.sizes(sizes))
    data = oracle.inputs(k, sizes, seed)
    want = oracle.run_modular(k, data, sizes, seed)
    got = v.restore(oracle.run_modular(v.kernel, v.adapt(data), v.sizes(sizes), seed))
    assert want.keys() == got.keys()
    for n in want:
        assert np.array_equal(want[n], got[n]), show(k, sizes) + "\n" + show(v.kernel, v.sizes(sizes))


@pytest.mark.parametrize("name", [*MUTATORS, "all"])
def test_mutators_keep_the_meaning_of_random_kernels(name):
    for seed in range(120):
        check(*random_kernel(seed), MUTATORS.get(name, anything), seed)


@pytest.mark.parametrize("name", [n for n in CASES if "dilation" not in n])
def test_mutators_keep_the_meaning_of_the_corpus(name):
    for seed in range(3):
        check(CASES[name].load(), CASES[name].sizes[0], anything, seed)


def test_mutators_change_something():
    k = CASES["conv2d"].load()
    for name, mutate in MUTATORS.items():
        assert any(mutate(k, Seeded(s)).kernel != k for s in range(5)), name


def test_a_wrong_rewriting_is_noticed():
    """Reordering without regard to dependences: the oracle tells."""
    k = CASES["softmax"].load()
    bad = list(k.body)
    random.Random(1).shuffle(bad)
    wrong = Kernel(k.name, k.syms, k.buffers, tuple(bad))
    assert not oracle.equal(k, wrong, {"M": 5, "N": 7}, 1)
