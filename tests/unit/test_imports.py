"""A compilation imports what it uses: a fresh process does not pay for what this kernel did not ask for."""

from __future__ import annotations

import subprocess
import sys

from isam.mapper.laws import SHIPPED, Laws
from isam.transforms import ALL


def imported(code: str) -> set[str]:
    """ISAM's modules in a fresh process that has run ``code``."""
    code = f"import sys, isam\n{code}\nprint(*(m for m in sys.modules if m.startswith('isam')))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def laws_in(modules: set[str]) -> set[str]:
    """Those of them that hold laws."""
    return modules & {type(t).__module__ for t in ALL}


def test_a_product_that_fits_as_it_stands_imports_no_law_and_no_explanation():
    have = imported("isam.compile(isam.einsum('mk,kn->mn'), on='toy', sizes=dict(M=8, N=8, K=8))")
    assert "isam.proof.certificate" in have
    assert not laws_in(have)
    assert not {m for m in have if m.startswith(("isam.mapper.repair", "isam.mapper.explanation"))}
    assert "isam.proof.equivalence" not in have  # who judges rewritings


def test_a_kernel_that_has_to_be_rewritten_imports_the_laws():
    gemv = "isam.einsum('mk,k->m').with_sizes({'M': 8, 'K': 8})"
    product = "isam.load_system('toy').instructions['mm4_f32']"
    have = imported(f"from isam.mapper.search import reach\nassert reach({gemv}, {product}).paths[0].steps")
    assert laws_in(have)


def test_laws_are_read_once_and_only_when_one_is_asked_for():
    asked: list[int] = []

    def read():
        asked.append(1)
        return ALL

    laws = Laws(read).tried
    blind = laws.guessed
    assert not asked
    assert [t.law for t in laws.answering("extent")] == [t.law for t in ALL if "extent" in t.kinds]
    assert laws.answering("nothing of the kind") == ()
    never = [t.law for t in ALL if t not in list(laws)]
    assert never == ["remove-unit-axis", "in-place", "speculate", "commute"]
    assert [t.law for t in laws if t not in list(blind)] == ["permute-dimensions"]
    assert asked == [1]
    assert Laws.of(laws) is laws
    assert list(SHIPPED) == list(Laws.of(ALL)) == list(ALL)


def test_a_selector_does_not_load_llvm():
    """Nor does the name of this CPU, under which it keeps what it decided."""
    have = imported("isam.best_of({'a': len}, keep='nowhere')('abc')\nassert 'llvmlite' not in sys.modules")
    assert "isam.runtime.environment" in have
    assert "isam.runtime.linking" not in have


def test_a_product_reads_the_instructions_that_may_fit_and_no_judge():
    made = "fn = isam.compile(isam.einsum('mk,kn->mn'), on='host-generic', sizes=dict(M=8, N=8, K=8))"
    have = imported(f"{made}\nassert 10 < len(fn.system.instructions.seen()) * 8 < len(fn.system.instructions)")
    assert "isam.codegen.llvm.lower" in have
    assert "isam.codegen.llvm.judge" not in have


def test_a_product_of_whole_tiles_asks_isl_nothing():
    """Its import costs more than the whole proof of a small product."""
    made = "isam.compile(isam.einsum('mk,kn->mn'), on='host-generic', sizes=dict(M=512, N=512, K=512))"
    assert "isam.ir.poly" not in imported(made)
