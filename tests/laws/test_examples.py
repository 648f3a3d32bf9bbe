"""Every law on values and statements: where it holds it keeps the meaning and gives a well-formed kernel, where its
equation would be wrong it has no site, and its inverse undoes it."""

from __future__ import annotations

import pytest

from isam.ir.hashing import structural_hash
from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.ir.verify import verify
from isam.transforms import ALL, statements, values
from tests.laws.examples import HOLDS, REFUSED
from tests.laws.judges import same

LAWS = {t.law: t for t in ALL}
MINE = (*values.LAWS, *statements.LAWS)
PAIRS = [(law, text) for law, texts in HOLDS.items() for text in texts]


def sized(kernel: Kernel) -> list[Kernel]:
    """The kernel at sizes of its own: small and different, all ones, and each of them zero where it may be."""
    names = [s.name for s in kernel.syms]
    small = dict(zip(names, (4, 3, 2, 5), strict=False))
    rows = [small, dict.fromkeys(names, 1), *({**small, s.name: 0} for s in kernel.syms if not s.lo)]
    return [kernel.with_sizes(r) for r in rows]


@pytest.mark.parametrize(("name", "text"), PAIRS, ids=[f"{law}-{n}" for n, (law, _) in enumerate(PAIRS)])
def test_where_a_law_holds_it_keeps_the_meaning(name, text):
    law, kernel = LAWS[name], parse(text)
    assert law.sites(kernel)
    for site in law.sites(kernel):
        done = law.apply(kernel, site)
        assert not verify(done.kernel), f"{site}:\n{done.kernel}\n" + "\n".join(map(str, verify(done.kernel)))
        assert done.kernel.arguments == kernel.arguments
        assert len(done.back.statements) == len(done.kernel.statements)
    for small in sized(kernel):
        for site in law.sites(small):
            after = law.apply(small, site).kernel
            assert same(law, small, after), f"{site}:\n{small}\n{after}"


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_where_its_equation_is_wrong_a_law_has_no_site(name):
    for text in REFUSED[name]:
        kernel = parse(text)
        assert not verify(kernel), text
        assert not LAWS[name].sites(kernel), text


def test_every_law_has_an_example_and_a_refusal():
    assert {t.law for t in MINE} <= set(HOLDS) & set(REFUSED)


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
