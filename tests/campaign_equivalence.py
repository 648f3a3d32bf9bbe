"""Mutants of rewritten kernels against the checker of rewritings: ``python -m tests.campaign_equivalence 10000``.

A kernel of the corpus is rewritten by a law, or left alone, and edited once or twice. The oracle says whether that
changed what it computes; the checker must not call equal what the oracle tells apart, nor what is no kernel at all.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

from isam.diagnostics import IsamError
from isam.ir import oracle
from isam.ir.kernel import Kernel
from isam.ir.text import print_kernel
from isam.ir.verify import verify
from isam.proof.equivalence import Equivalence
from isam.transforms import ALL
from tests.corpus import CASES
from tests.edits import edited
from tests.random_kernels import Seeded

REALS = {"sigmoid-by-tanh", "sigmoid-by-exp", "rsqrt-by-sqrt"}  # the oracle's functions do not have these properties
LAWS = tuple(law for law in ALL if law.judge == "residues" and law.law not in REALS)
DIVISION = frozenset({"division"})


def mutant(seed: int) -> tuple[Kernel, Kernel] | None:
    """A kernel, and what a law and an edit or two made of it."""
    choose = Seeded(seed)
    names = sorted(CASES)
    case = CASES[names[choose.integer(0, len(names) - 1)]]
    k = case.load().with_sizes(case.small[choose.integer(0, min(1, len(case.small) - 1))])
    if choose.integer(0, 1):
        k = replace(k, permits=k.permits | {"finite"})
    new = k
    if choose.integer(0, 2):
        law = LAWS[choose.integer(0, len(LAWS) - 1)]
        sites = law.sites(k)
        if sites:
            new = law.apply(k, sites[choose.integer(0, len(sites) - 1)]).kernel
    for _ in range(1 + choose.integer(0, 3) // 3):
        new = edited(new, choose) or new
    return None if new is k else (k, new)


def judged(k: Kernel, new: Kernel) -> str:
    """``refused`` or ``accepted`` where the checker is right, ``undecided`` where it refused an equal kernel, else
    ``wrong``."""
    verdict = Equivalence().judge(k, new, ("reassociates",))
    if verify(new):
        return "wrong" if verdict else "refused"
    try:
        same = all(oracle.equal(k, new, {}, seed, DIVISION) for seed in (1, 2, 3))
    except IsamError:
        same = False
    if verdict:
        return "accepted" if same else "wrong"
    return "undecided" if same else "refused"


def main(count: int, first: int = 0) -> int:
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        pair = mutant(seed)
        if pair is None:
            continue
        answer = judged(*pair)
        found[answer] += 1
        if answer == "wrong" or (answer == "undecided" and "-v" in sys.argv):
            print(f"seed {seed}: {answer}\n{print_kernel(pair[0])}\n{print_kernel(pair[1])}")
    print(", ".join(f"{n} {word}" for word, n in sorted(found.items())))
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(*(int(a) for a in sys.argv[1:] if a != "-v")))
