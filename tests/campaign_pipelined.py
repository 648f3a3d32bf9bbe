"""Random blocks by tiles, taken up while the next one is summed: ``python -m tests.campaign_pipelined FIRST LAST``.

A case is a product of bf16 or a convolution of random sizes whose sums are rounded, clipped or shifted
(`tests.unit.scheduler.test_pipelining`), scheduled for `sapphire-rapids` with all loops woven that can be. It must be
proved as it is, give what the oracle gives in the simulator, and, where this CPU has tiles or with functions in their
place (`tests.elsewhere`), give what the interpreter gives as code between guard pages. Prints every finding and a
summary; exits with 1 if anything was wrong.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from unittest import mock

import isam
from isam.codegen.llvm.machine import features
from tests.elsewhere import elsewhere
from tests.native_cases import Case, fault
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge, simulated
from tests.seeds import judged
from tests.unit.scheduler.test_pipelining import Told, random_case


def one(seed: int) -> tuple[str, str]:
    """What comes of a case: woven, plain (nothing could be woven) or wrong."""
    kernel, sizes = random_case(seed)
    told = Told(1)
    try:
        job = compiled(kernel, sizes, simulated("sapphire-rapids"), told, check=True)
        judge(kernel, sizes, job)
        if job.unproved:
            return "wrong", f"not proved: {job.unproved}"
        here = nullcontext() if "amx-tile" in features() else elsewhere()
        with here, mock.patch.object(isam, "compile", partial(isam.compile, approach=Told(1))):
            wrong = fault(Case(seed, kernel, sizes, "moderate", False, True), "host-amx")
    except Exception as e:  # whatever it is, it is a finding
        return "wrong", f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"
    return ("wrong", wrong) if wrong else ("woven" if told.asked else "plain", "")


def shown(seed: int, kind: str, how: str) -> str:
    """Findings with their kernel."""
    kernel, sizes = random_case(seed)
    return f"{seed}: {how}\n{sizes}\n{kernel}" if kind == "wrong" else ""


def main() -> int:
    count = judged(__doc__, one, shown)
    print(f"{sum(count.values())} kernels: {count['woven']} woven, {count['plain']} plain, {count['wrong']} wrong")
    return 1 if count["wrong"] else 0


if __name__ == "__main__":
    with on_the_tree():
        sys.exit(main())
