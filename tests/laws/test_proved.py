"""Every law at sampled sites of the corpus is shown to keep the meaning by the judge of rewritings, which shares no
code with the laws; what it cannot decide is listed here, with the reason. ``python -m tests.laws.test_proved`` prints
the shares per law, with 0 those at every example of a law under all permissions."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

import pytest

from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof.equivalence import Equivalence, Verdict
from isam.transforms import ALL
from isam.transforms.law import Transform, dtypes_at, granted
from tests.corpus import CASES
from tests.laws.example_kernels import STEPS
from tests.laws.examples import HOLDS
from tests.laws.test_examples import sized

SITES = 4  # per law and case
HERE = 1  # of them, in every run of the tests
PART = "what the steps so far have written is the same, and what they have not is not"
CANCEL = "exp(a) * exp(-a) is not taken for 1: the first row's maximum is its only element"
UNDECIDED: dict[tuple[str, str], str] = {
    **{("round-up", case): PART for case in ("cumulative", "gru", "rnn")},
    ("exp-of-sum", "causal_attention"): CANCEL,
}
"""(law, case) and why; these stand on the oracle alone (``test_laws``)."""
LONG = {"strassen": "conv1d", "winograd-4-3": "padded_conv2d_temp", "winograd-2-3": "padded_conv2d_nhwc_temp"}
"""Laws whose proof takes seconds and is the same in every case, with the one where the tests ask for it."""
OFTEN = frozenset((
    "add-unit-axis", "commute", "fission", "fuse-dimensions", "identity-matrix", "peel", "peel-sum",
    "permute-dimensions", "pitch", "reverse-axis", "reverse-dimension", "reverse-sum", "round-up", "round-up-sum",
    "split-axis", "times-one", "widen",
))  # fmt: skip
"""Laws with a site in half of the cases or more: the tests ask for them in a third of all cases."""


def judged(name: str, sites: int = SITES, every: bool = True) -> list[tuple[str, str, Verdict, frozenset[str]]]:
    """(law, site, verdict, numerics that the law declares) at sampled sites of one case; of ``every`` law, or of those
    that the tests ask for in this case."""
    case = CASES[name]
    kernel = case.load().with_sizes(case.small[0])
    out = []
    for law in ALL:
        k = granting(kernel, law.needs)
        found = list(law.sites(k)) if every or asked(law.law, name) else []
        e = Equivalence()
        for site in random.Random(f"{law.law}/{k.name}").sample(found, min(sites, len(found))):
            out.append((law.law, str(site), e.judge(k, law.apply(k, site).kernel, sorted(law.needs)), law.needs))
    return out


def asked(law: str, name: str) -> bool:
    return LONG.get(law, name) == name and (law not in OFTEN or crc32(f"{law}/{name}".encode()) % 3 == 0)


def granting(kernel: Kernel, needs: frozenset[str]) -> Kernel:
    """The kernel with the permissions that a law needs."""
    permits = set(kernel.permits)
    if needs & {"reassociates", "rounding"}:
        permits = permits - {"exact"} | {"reassociate"}
    if "finite" in needs:
        permits |= {"finite"}
    return replace(kernel, permits=frozenset(permits))


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_law_is_proved_at_its_sites(name):
    for law, site, verdict, needs in judged(name, HERE, every=False):
        if (law, name) in UNDECIDED:
            continue
        assert verdict, f"{law} ({site}): {verdict}"
        assert set(verdict.numerics) <= needs | {"rounding"} if "reassociates" in needs else True


PERMITS = (("reassociate", "contract"), ("exact",), (), ("reassociate", "contract", "finite"))
NESTED = "what a loop in a loop adds up is not compared with one sum"
HARD = {("hoist", STEPS): NESTED}
"""(law, example) and why it is undecided."""


def examples(law: Transform, every: bool) -> Iterator[tuple[str, Verdict]]:
    """The verdicts on a law's examples, sizes given, under whatever permissions grant it: at ``every`` site and size
    under each of them, or at one site under two of them in turn."""
    for n, text in enumerate(t for t in HOLDS[law.law] if (law.law, t) not in HARD):
        for m, permits in enumerate(PERMITS):
            if not every and (n + m) % 2:
                continue
            for kernel in sized(parse_kernel(text))[: None if every else 1]:
                k = replace(kernel, permits=frozenset(permits))
                sites = [s for s in law.sites(k) if granted(k, law.needs, dtypes_at(k, s))]
                for s in sites if every else sites[n % 3 :][:1] or sites[:1]:
                    verdict = Equivalence().judge(k, law.apply(k, s).kernel, sorted(law.needs))
                    yield f"{law.law} ({s}), {', '.join(permits)}:\n{k}", verdict


@pytest.mark.parametrize("law", [t for t in ALL if t.law in HOLDS and t.law not in LONG], ids=lambda t: t.law)
def test_every_law_is_proved_at_its_examples(law):
    for said, verdict in examples(law, every=False):
        assert verdict, f"{said}\n{verdict}"


def main(sites: int) -> None:
    every, equal = Counter(), Counter()
    for law in ALL if not sites else ():
        for said, verdict in examples(law, every=True) if law.law in HOLDS else ():
            every[law.law] += 1
            equal[law.law] += bool(verdict)
            if not verdict:
                print(f"{said}\n{verdict}")
    for name in sorted(CASES) if sites else ():
        for law, site, verdict, _ in judged(name, sites):
            every[law] += 1
            equal[law] += bool(verdict)
            if not verdict:
                print(f"{name}: {law} ({site}): {verdict}")
    for law in sorted(every):
        print(f"{law:24} {equal[law]:4} of {every[law]:4} sites, {100 * equal[law] / every[law]:.0f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SITES)
