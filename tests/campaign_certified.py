"""``python -m tests.campaign_certified [SYSTEM...] [--every N]``: the checker accepts what the mapper finds.

Every kernel of the corpus (or each ``N``-th), with its sizes open and with sizes given, and every instruction of the
systems: two of their mappings are judged. Prints what is refused, and the figures; exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.mapper import match
from isam.proof.checker import judged_mappings
from isam.system.load import load_system
from tests.corpus import CASES

SYSTEMS = ("toy", "casestudy", "systolic", "arrays", "nvidia_mma", "riscv_v", "arm_sme", "gemmini", "tpu_like", "units")
GIVEN = 16  # every size that admits it


def kernels(every: int) -> Iterator[Kernel]:
    for name in list(CASES)[::every]:
        k = CASES[name].load()
        yield normal_form(k)
        some = {s.name: max(s.lo, min(max(GIVEN, s.multiple_of), s.hi or GIVEN)) for s in k.given}
        if some and all(n % s.multiple_of == 0 for s, n in zip(k.given, some.values(), strict=True)):
            yield normal_form(k.with_sizes(some))


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.campaign_certified", description=__doc__)
    p.add_argument("systems", nargs="*", default=SYSTEMS)
    p.add_argument("--every", type=int, default=1)
    o = p.parse_args()
    judged = conditional = refused = 0
    for system in o.systems:
        for k in kernels(o.every):
            for i in load_system(system).compute:
                found = list(match(k, i) or ()) if i.takes <= k.permits else []
                for m in found[:: max(1, len(found) // 2)][:2]:
                    judged, conditional = judged + 1, conditional + bool(m.conditions)
                    for why in judged_mappings(k, (m,))[1]:
                        refused += 1
                        print(f"{k.name} on {system}: {m}\n  {why}", flush=True)
        print(f"{system}: {judged} mappings judged so far, {conditional} under conditions", file=sys.stderr, flush=True)
    print(f"{judged} mappings judged, {conditional} of them under conditions on open sizes, {refused} refused")
    return 1 if refused else 0


if __name__ == "__main__":
    raise SystemExit(main())
