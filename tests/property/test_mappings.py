"""What matching must not depend on, and what every mapping must do, on the corpus and on random kernels."""

from __future__ import annotations

import random

import pytest

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel, Recurrence
from isam.ir.mapping import Mapping
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
    for seed in range(40 * block, 40 * block + 40):
        kernel, sizes = random_kernel(seed)
        variant = anything(kernel, Seeded(seed))
        before = counts(kernel)
        assert counts(variant.kernel) == before, show(kernel, sizes) + show(variant.kernel, variant.sizes(sizes))
        seen += sum(before)
    assert seen > 50


@pytest.mark.parametrize("block", range(3))
def test_blocks_of_calls_give_what_random_kernels_give(block: int):
    tried = 0
    for seed in range(10_000 + 8 * block, 10_000 + 8 * block + 8):
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


def unambiguous(kernel: Kernel, mapping: Mapping) -> bool:
    """Every axis of the instruction goes by one name: what :mod:`tests.blocks` needs."""
    axes = {(a.name, a.extent) for s in kernel.statements for a in s.domain.axes}
    return len(axes) == len({n for n, _ in axes}) and {n for n, _ in axes} == mapping.axis_map.keys()


@pytest.mark.parametrize("block", range(2))
def test_a_random_kernel_as_an_instruction_fits_itself_however_it_is_written(block: int):
    fits = carried = 0
    for seed in range(45 * block, 45 * block + 45):
        kernel, sizes = random_kernel(seed)
        kernel = normal_form(kernel)
        if not kernel.body or any(isinstance(it, Recurrence) for it in kernel.body):
            continue
        i = Instruction("itself", kernel)
        variant = anything(kernel, Seeded(seed)).kernel
        for k in (kernel, variant):
            found = match(k, i, normalise=False, budget=20_000)
            assert isinstance(found, Matches), show(k, sizes) + str(found)
            assert found.first.outer == ()
            fits += 1
        small = kernel.with_sizes(sizes)
        found = match(small, Instruction("itself", small), normalise=False, budget=20_000)
        if isinstance(found, Matches) and unambiguous(small, found.first):
            want = run_kernel(small, initial(small, seed))
            m = found.first
            got = run_mapped(small, m, initial(small, seed), seed)
            assert visible(small, m, got) == visible(small, m, want), show(kernel, sizes) + str(m)
            carried += 1
    assert fits > 60
    assert carried > 10
