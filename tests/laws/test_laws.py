"""Every law, on every kernel of the corpus, at sites up to a number: the meaning is the same, exactly (TR-0).

``python -m tests.laws.test_laws`` tries more sites than the tests do."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from isam.ir import oracle
from isam.ir.affine import Affine
from isam.ir.dtype import numpy_dtype
from isam.ir.hashing import structural_hash
from isam.ir.interp import run
from isam.ir.kernel import Buffer, Kernel
from isam.ir.text import parse, parse_file, print_kernel
from isam.ir.verify import verify
from isam.transforms import ALL, Transform
from isam.transforms.law import NUMERICS
from tests.corpus import CASES
from tests.laws.examples import HOLDS
from tests.laws.judges import same

SITES, AGAIN = 8, 3  # per law and case, which ones is drawn from a fixed seed; and at further sizes
HERE, AGAIN_HERE, PRINTED = 2, 1, 1  # of them, in every run of the tests

OF_FUNCTIONS = {"sigmoid-by-tanh": "sigmoid", "sigmoid-by-exp": "sigmoid", "rsqrt-by-sqrt": "rsqrt"}
MODELS = sorted({t.model for t in ALL}, key=sorted)  # what the oracle is granted: most laws need nothing
OWN = {k.name: k for k in parse_file(Path(__file__).with_name("structure.isam").read_text(), "structure.isam").kernels}
"""Kernels made for laws; their sizes are tried at these values, zero and one included."""
VALUES = (3, 0, 1)
NAMES = sorted({**CASES, **OWN})


def open_kernel(name: str) -> tuple[Kernel, tuple[dict[str, int], ...]]:
    """A kernel with its sizes left open, and the sizes to try it at."""
    if name in CASES:
        return CASES[name].load(), CASES[name].small[:3]
    return OWN[name], tuple({s.name: max(v, s.lo) for s in OWN[name].syms} for v in VALUES)


@cache
def kernels(name: str) -> tuple[Kernel, ...]:
    kernel, small = open_kernel(name)
    return tuple(kernel.with_sizes(sizes) for sizes in small)


def sample(law: Transform, kernel: Kernel):
    sites = list(law.sites(kernel))
    assert len(set(sites)) == len(sites)
    return random.Random(f"{law.law}/{kernel.name}").sample(sites, min(SITES, len(sites)))


def keeps_the_meaning(name: str, sites: int, again: int) -> None:
    for n, kernel in enumerate(kernels(name)):
        before = {model: oracle.evaluate(kernel, {}, 7, model) for model in MODELS}
        for law in ALL:
            for site in sample(law, kernel)[: again if n else sites]:
                done = law.apply(kernel, site)
                if law.judge == "residues":
                    after = oracle.evaluate(done.kernel, {}, 7, law.model)
                    kept = agree(before[law.model], after)
                else:
                    kept = same(law, kernel, done.kernel)
                assert kept, f"{law.law} at {site}:\n{print_kernel(kernel)}\n{print_kernel(done.kernel)}"
                assert given(done.kernel) == given(kernel)


def agree(was: Mapping[str, np.ndarray], now: Mapping[str, np.ndarray]) -> bool:
    """Element by element: a caller gives memory, which a kernel may see with dimensions of one (ADR 22)."""
    return was.keys() == now.keys() and all(np.array_equal(was[n].ravel(), now[n].ravel()) for n in was)


def given(kernel: Kernel) -> list[Buffer]:
    """What a caller gives, without dimensions of one."""
    ones = Affine((), 1)
    return [replace(b, shape=tuple(d for d in b.shape if d != ones)) for b in kernel.buffers if b.role != "temp"]


def print_and_know_their_way_back(name: str, sites: int) -> None:
    kernel = kernels(name)[0]
    for law in ALL:
        for site in sample(law, kernel)[:sites]:
            done = law.apply(kernel, site)
            assert len(done.back.statements) == len(done.kernel.statements)
            old = range(len(kernel.statements))
            carried = {s for of in done.back.statements for s in of}
            assert carried == set(old) - ({site["statement"]} if law.law == "dead" else set())
            assert not verify(done.kernel), f"{law.law} at {site}:\n{print_kernel(done.kernel)}"
            text = print_kernel(done.kernel)
            again = parse(text)
            alike = structural_hash(again) == structural_hash(done.kernel)
            assert alike or oracle.equal(again, done.kernel, {}, 3), text  # -(1) is read as -1


def hold_for_sizes_left_open(name: str, sites: int) -> None:
    """A site of the kernel for all sizes is right for each of them, zero and one included."""
    kernel, small = open_kernel(name)
    before = {(model, n): oracle.evaluate(kernel, x, 5, model) for model in MODELS for n, x in enumerate(small)}
    for law in ALL:
        for site in sample(law, kernel)[:sites] if law.judge == "residues" else ():
            done = law.apply(kernel, site).kernel
            assert not verify(done), f"{law.law} at {site}:\n{done}\n" + "\n".join(map(str, verify(done)))
            for n, values in enumerate(small):
                was, now = before[law.model, n], oracle.evaluate(done, values, 5, law.model)
                assert agree(was, now), f"{law.law} at {site}, {values}:\n{print_kernel(kernel)}\n{print_kernel(done)}"


@pytest.mark.parametrize("name", NAMES)
def test_every_law_keeps_the_meaning(name):
    keeps_the_meaning(name, HERE, AGAIN_HERE)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_kernels_that_print_and_know_their_way_back(name):
    print_and_know_their_way_back(name, PRINTED)


@pytest.mark.parametrize("name", NAMES)
def test_laws_hold_for_sizes_that_are_left_open(name):
    hold_for_sizes_left_open(name, AGAIN_HERE)


@pytest.mark.parametrize("law", [t for t in ALL if t.law in OF_FUNCTIONS], ids=lambda t: t.law)
def test_laws_of_functions_hold_over_the_reals(law):
    """Errors of a few roundings of each intermediate value; the bound is for values of size one."""
    op = OF_FUNCTIONS[law.law]
    kernel = parse(f"kernel k(N)\n  in x: f64[N]\n  out y: f64[N]\n  forall i < N\n    y[i] = {op}(x[i])\n")
    rng = np.random.default_rng(11)
    x = rng.uniform(1e-3, 30.0, 4000) * (rng.choice([-1.0, 1.0], 4000) if op == "sigmoid" else 1.0)
    kernel = kernel.with_sizes({"N": 4000})
    (site,) = law.sites(kernel)
    want, got = (run(k, {"x": x.astype(numpy_dtype("f64"))})["y"] for k in (kernel, law.apply(kernel, site).kernel))
    scale = np.maximum(np.abs(want), 1.0) if law.law == "sigmoid-by-tanh" else np.abs(want)
    assert np.all(np.abs(got - want) <= 8 * np.finfo(np.float64).eps * scale * np.maximum(1.0, np.abs(x)))


def test_every_law_says_what_it_is_and_what_it_needs():
    names = [t.law for t in ALL]
    assert len(set(names)) == len(names)
    for t in ALL:
        assert "=>" in t.equation
        assert t.needs <= set(NUMERICS)
        assert t.judge in ("residues", "interpreter", "float bound")
        assert t.model <= oracle.LAWS
        assert not t.inverse or t.inverse in names
        assert t.__doc__


def test_the_corpus_exercises_every_law():
    used = {t.law for name in NAMES for k in kernels(name) for t in ALL if t.sites(k)}
    apart = {"neg-by-mul", "fold-numbers", *HOLDS}
    assert {t.law for t in ALL} - used <= apart, "laws without a site in the corpus have examples"


def test_minus_is_a_product_with_minus_one():
    kernel = parse("kernel k()\n  in x: i32[5]\n  out y: i32[5]\n  forall i < 5\n    y[i] = -x[i]\n")
    law = next(t for t in ALL if t.law == "neg-by-mul")
    (site,) = law.sites(kernel)
    done = law.apply(kernel, site).kernel
    assert oracle.equal(kernel, done, {}, 2)
    x = np.array([-(2**31), -1, 0, 1, 2**31 - 1], dtype=np.int32)
    assert np.array_equal(run(kernel, {"x": x})["y"], run(done, {"x": x})["y"])


def test_the_docs_list_every_law_that_uses_a_property_of_numbers_or_functions():
    page = (Path(__file__).parents[2] / "docs" / "judges.md").read_text(encoding="utf-8")
    for t in ALL:
        assert (f"`{t.law}`" in page) == (t.judge != "residues" or bool(t.model)), t.law


if __name__ == "__main__":
    for each in NAMES:
        keeps_the_meaning(each, SITES, AGAIN)
        print_and_know_their_way_back(each, AGAIN)
        hold_for_sizes_left_open(each, AGAIN)
    print(f"{len(ALL)} laws, {len(NAMES)} kernels: the meaning is kept")
