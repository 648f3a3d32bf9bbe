"""What matching must not depend on, and what every mapping must do, on the corpus and on random kernels."""

from __future__ import annotations

import random

import pytest

from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.mapper import Matches, match
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.corpus import CASES
from tests.mutators import MUTATORS, anything
from tests.random_kernels import Seeded, random_kernel, show
from tests.unit.mapper.catalogue import instruction, instruction_names

INSTRUCTIONS = [instruction(n) for n in instruction_names()]


def counts(kernel: Kernel) -> list[int]:
    return [len(m) if isinstance(m := match(kernel, i), Matches) else 0 for i in INSTRUCTIONS]


@pytest.mark.parametrize("part", range(3))
def test_the_corpus_keeps_its_number_of_mappings(part: int):
    rng = random.Random(part)
    seen = 0
    for n, case in enumerate(list(CASES.values())[part::3]):
        kernel = case.load()
        before = counts(kernel)
        for mutator in (anything, list(MUTATORS.values())[n % len(MUTATORS)]):
            variant = mutator(kernel, Seeded(rng.randrange(10**6)))
            assert counts(variant.kernel) == before, f"{kernel}\n{variant.kernel}"
        seen += sum(before)
    assert seen > 300


@pytest.mark.parametrize("block", range(2))
def test_random_kernels_keep_their_number_of_mappings(block: int):
    seen = 0
    for seed in range(60 * block, 60 * block + 60):
        kernel, sizes = random_kernel(seed)
        variant = anything(kernel, Seeded(seed))
        before = counts(kernel)
        assert counts(variant.kernel) == before, show(kernel, sizes) + show(variant.kernel, variant.sizes(sizes))
        seen += sum(before)
    assert seen > 50


@pytest.mark.parametrize("block", range(3))
def test_blocks_of_calls_give_what_random_kernels_give(block: int):
    tried = 0
    for seed in range(10_000 + 12 * block, 10_000 + 12 * block + 12):
        typed, sizes = random_kernel(seed)
        kernel = normal_form(typed.with_sizes(sizes))
        memory = initial(kernel, seed)
        want = run_kernel(kernel, initial(kernel, seed))
        for i in INSTRUCTIONS:
            for n, mapping in enumerate(match(kernel, i, normalise=False) or ()):
                if n == 4:
                    break
                got = run_mapped(kernel, mapping, {k: dict(v) for k, v in memory.items()}, seed + n)
                case = show(typed, sizes) + str(mapping)
                assert visible(kernel, mapping, got) == visible(kernel, mapping, want), case
                tried += 1
    assert tried > 20
