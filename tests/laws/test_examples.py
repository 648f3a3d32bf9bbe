"""Every law on values and statements: where it holds it keeps the meaning and gives a well-formed kernel, where its
equation would be wrong it has no site, and its inverse undoes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.hashing import structural_hash
from isam.ir.interp import run
from isam.ir.kernel import Kernel, Literal
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.ir.verify import verify
from isam.transforms import ALL, statements, values
from isam.transforms.law import NoSite, Site, Transform
from tests.laws.examples import HOLDS, REFUSED
from tests.laws.judges import random_numbers, same

LAWS = {t.law: t for t in ALL}
MINE = (*values.LAWS, *statements.LAWS)
PAIRS = [(law, text) for law, texts in HOLDS.items() for text in texts]


def numbers(kernel: Kernel) -> list[dict[str, int]]:
    """Sizes of its own: small and different, all ones, and each of them zero where it may be."""
    names = [s.name for s in kernel.syms]
    small = dict(zip(names, (9, 3, 2, 5), strict=False))
    return [small, dict.fromkeys(names, 1), *({**small, s.name: 0} for s in kernel.syms if not s.lo)]


def sized(kernel: Kernel) -> list[Kernel]:
    return [kernel.with_sizes(r) for r in numbers(kernel)]


def rewritten(law: Transform, kernel: Kernel) -> Iterator[tuple[Site, Kernel, Kernel]]:
    """The kernel at sizes of its own, before and after the law at each site there; of a law on open sizes, after the
    law before the sizes were given."""
    for row in numbers(kernel):
        small = kernel.with_sizes(row)
        for site in law.sites(small):
            yield site, small, law.apply(small, site).kernel
        for site in () if law.sites(small) else law.sites(kernel):
            yield site, small, law.apply(kernel, site).kernel.with_sizes(row)


@pytest.mark.parametrize(("name", "text"), PAIRS, ids=[f"{law}-{n}" for n, (law, _) in enumerate(PAIRS)])
def test_where_a_law_holds_it_keeps_the_meaning(name, text):
    law, kernel = LAWS[name], parse(text)
    assert law.sites(kernel)
    for site in law.sites(kernel):
        done = law.apply(kernel, site)
        assert not verify(done.kernel), f"{site}:\n{done.kernel}\n" + "\n".join(map(str, verify(done.kernel)))
        assert done.kernel.arguments == kernel.arguments
        assert len(done.back.statements) == len(done.kernel.statements)
    for site, small, after in rewritten(law, kernel):
        assert same(law, small, after), f"{site}:\n{small}\n{after}"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_where_its_equation_is_wrong_a_law_has_no_site(name):
    for text in REFUSED[name]:
        kernel = parse(text)
        assert not verify(kernel), text
        assert not LAWS[name].sites(kernel), text


def test_every_law_has_an_example_and_a_refusal():
    assert {t.law for t in MINE} - (set(HOLDS) & set(REFUSED)) == {"fold-numbers"}, "it has tests of its own below"


@pytest.mark.parametrize(("dtype", "value", "made"), [
    ("f32", "a[i] * 0.5 * 3", 1.5), ("i8", "a[i] * 5 * 25", 125), ("f32", "a[i] + 2 + 3", 5),
    ("f32", "a[i] * 0.1 * 3", None), ("i8", "a[i] * 5 * 26", None), ("f16", "a[i] * 2048 * 3.5", 7168),
    ("f16", "a[i] + 2048 + 1", None),
])  # fmt: skip
def test_numbers_are_folded_where_the_machine_computes_them_exactly(dtype, value, made):
    """The parser folds what stands in one expression; grouping the other way brings numbers together."""
    text = f"kernel k()\n  in a: {dtype}[5]\n  out y: {dtype}[5]\n  forall i < 5\n    y[i] = {value}\n"
    kernel, regroup, fold = parse(text), LAWS["reassociate"], LAWS["fold-numbers"]
    assert not fold.sites(kernel)
    grouped = regroup.apply(kernel, regroup.sites(kernel)[0]).kernel
    sites = fold.sites(grouped)
    assert bool(sites) is (made is not None)
    for site in sites:
        done = fold.apply(grouped, site).kernel
        assert done.statements[site["statement"]].sources[0].value == made
        assert same(fold, grouped, done)
        assert not verify(done)


def whole(op: str, given: tuple[float, ...], dtype: str) -> bool:
    """Are the numbers, and what the machine makes of them, numbers of an integer type?"""
    limits = np.iinfo(numpy_dtype(dtype))
    rings = {"add": sum(given), "sub": given[0] - given[-1], "mul": given[0] * given[-1], "neg": -given[0]}
    every = (*given, rings.get(op, 0.5))
    return all(isinstance(x, int) and limits.min <= x <= limits.max for x in every)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "u8", "i32", "bool"])
def test_what_is_computed_of_numbers_is_what_the_machine_computes(dtype):
    law, made = LAWS["fold-numbers"], 0
    text = f"kernel k()\n  in a: {dtype}[2]\n  out y: {dtype}[2]\n  forall i < 2\n    y[i] = a[i]\n"
    for op, count in (("add", 2), ("sub", 2), ("mul", 2), ("neg", 1), ("max", 2), ("div", 2), ("abs", 1)):
        for given in product((0, 1, 2, 5, 200, -3, 0.5, -0.0), repeat=count):
            kernel = parse(text)
            s = replace(kernel.statements[0], op=op, sources=tuple(map(Literal, given)))
            kernel = replace(kernel, body=(s,), template=None)
            if DTYPES[dtype].kind in "iu":
                assert bool(law.sites(kernel)) == whole(op, given, dtype), (op, given)
            for site in law.sites(kernel):
                made += 1
                after = law.apply(kernel, site).kernel
                assert same(law, kernel, after), (op, given)
                (number,), (by_machine, *_) = after.statements[0].sources, run(kernel, random_numbers(kernel, 5))["y"]
                assert np.signbit(np.asarray(number.value, by_machine.dtype)) == np.signbit(by_machine), (op, given)
                assert op in ("add", "sub", "mul", "neg")
    assert (made > 20) == (dtype != "bool")


@pytest.mark.parametrize("name", sorted(n for n in HOLDS if LAWS[n].inverse))
def test_the_inverse_undoes_a_law(name):
    """There and back is the kernel itself, up to names, at some site of some example."""
    law = LAWS[name]
    inverse = LAWS[law.inverse]
    for kernel in map(parse, HOLDS[name]):
        for done in (law.apply(kernel, site).kernel for site in law.sites(kernel)):
            for back in (inverse.apply(done, s).kernel for s in inverse.sites(done)):
                if structural_hash(normal_form(back)) == structural_hash(normal_form(kernel)):
                    return
    raise AssertionError(f"{law.inverse} never undoes {name}")


CAREFUL = ("cast-over-extrema", "cast-over-product", "choice-to-extremum", "dead", "exp-of-sum", "fold-chain",
           "fold-neutral", "fold-zero-added", "fold-zero-times", "join", "join-casts", "pull-monotone", "pull-scaling",
           "push-monotone", "push-scaling")  # fmt: skip


@pytest.mark.parametrize("name", CAREFUL)
def test_laws_of_few_statements_refuse_all_others(name):
    """At statements that are no site of its own a law raises, or it is right there too."""
    law, refused = LAWS[name], 0
    keys = [k for k, _ in law.sites(parse(HOLDS[name][0]))[0].at]
    for text in (*HOLDS[name], *REFUSED[name]):
        kernel = sized(parse(text))[0]
        for at in product(range(len(kernel.statements)), repeat=len(keys)):
            site = Site.of(**dict(zip(keys, at, strict=True)))
            try:
                after = law.apply(kernel, site).kernel
            except NoSite:
                refused += 1
                assert site not in law.sites(kernel)
            else:
                assert not verify(after)
                assert same(law, kernel, after), f"{site}:\n{kernel}\n{after}"
    assert refused > 5
