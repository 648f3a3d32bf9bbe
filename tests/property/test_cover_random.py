"""Covers of random kernels: every statement exactly once, in an order that keeps the meaning, at a price that no
single-statement cover undercuts; transforms on random kernels keep the meaning."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.ir.kernel import Item, Kernel, Recurrence
from isam.ir.normal import normal_form
from isam.mapper.as_it_stands import selection
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.system.load import load_system
from isam.transforms import ALL
from tests.as_it_stands import cover_as_it_stands
from tests.random_kernels import random_kernel, show

SEEDS = range(30)

@cache
def machine():
    return load_system("toy").compute


def concrete(seed: int) -> Kernel:
    kernel, sizes = random_kernel(seed)
    return normal_form(kernel.with_sizes(sizes))


def in_order(kernel: Kernel, mappings) -> Kernel:
    """The kernel with its statements in the order of the mappings, loops where their first statement stands."""
    place = {s: n for n, s in enumerate(i for m in mappings for i in m.statements)}
    at = 0

    def walk(body: tuple[Item, ...]) -> tuple[tuple[Item, ...], int]:
        nonlocal at
        found: list[tuple[int, Item]] = []
        for it in body:
            if isinstance(it, Recurrence):
                inner, first = walk(it.body)
                found.append((first, replace(it, body=inner)))
            else:
                found.append((place[at], it))
                at += 1
        found.sort(key=lambda f: f[0])
        return tuple(it for _, it in found), min((f[0] for f in found), default=0)

    return replace(kernel, body=walk(kernel.body)[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cover_has_every_statement_once_in_an_order_that_keeps_the_meaning(seed):
    kernel = concrete(seed)
    c = cover_as_it_stands(kernel, Demand(machine()))
    assert c, f"{c}\n{show(kernel, {})}"
    numbers = [i for m in c.mappings for i in m.statements]
    assert sorted(numbers) == list(range(len(kernel.statements)))
    assert oracle.equal(kernel, in_order(kernel, c.mappings), {}, seed), show(kernel, {})


@pytest.mark.parametrize("seed", SEEDS)
def test_the_search_never_changes_the_meaning_and_never_pays_more(seed):
    kernel = concrete(seed)
    c = cover(kernel, Demand(machine()), Trace(Approach()))
    assert c
    assert oracle.equal(kernel, c.kernel, {}, seed), show(kernel, {})
    plain = selection(kernel, Demand(machine()))
    assert c.notes["calls"] <= plain.price[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_laws_keep_the_meaning_of_random_kernels(seed):
    kernel = concrete(seed)
    for law in ALL:
        if law.judge != "residues":
            continue
        sites = law.sites(kernel)
        for site in random.Random(seed).sample(sites, min(3, len(sites))):
            done = law.apply(kernel, site)
            assert oracle.equal(kernel, done.kernel, {}, seed, law.model), f"{law.law} at {site}\n{show(kernel, {})}"
