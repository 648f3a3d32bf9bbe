"""Random kernels through every stage: ``python -m tests.campaign SYSTEM FIRST LAST [--native] [--exact]``.

Each kernel is compiled and proved for the system, its schedule simulated strictly in residues and compared with the
oracle, exactly. ``--native``: the code is run as well and judged by bounds derived per element, integers exactly.
``--exact``: the kernels permit nothing, so that sums keep their order.
Prints every failure as a text file ready for ``tests/text`` and a summary; exits with 1 if there was any.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

import numpy as np

from isam.compiler import Refused
from isam.compiler.job import Job
from isam.ir.bounds import enclose, outside
from isam.ir.dtype import numpy_dtype
from isam.ir.kernel import Kernel
from isam.runtime.entry import Entry
from isam.system.load import load_system
from tests.on_the_tree import on_the_tree
from tests.pipeline import compiled, judge
from tests.random_kernels import random_kernel, show


def one(seed: int, system: str, native: bool, check: bool, exact: bool = False) -> str:
    """'' when everything agrees, 'no' when the machine cannot, else what is wrong."""
    kernel, sizes = random_kernel(seed)
    if exact:
        kernel = replace(kernel, permits=frozenset())
    machine = load_system(system)
    try:
        job = compiled(kernel, sizes, machine if native else replace(machine, backend="simulator"), check=check)
        judge(kernel, sizes, job, seed)
        if native:
            right_numbers(kernel, sizes, job, seed)
    except Refused:
        return "no"
    except Exception as e:  # whatever it is, it is a finding
        return f"# seed {seed} on {system}: {type(e).__name__}: {str(e).splitlines()[0]}\n{show(kernel, sizes)}"
    return ""


def right_numbers(kernel: Kernel, sizes: dict[str, int], job: Job, seed: int) -> None:
    """The native code against bounds derived per element from the kernel as it was written; integers exactly."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for b in kernel.with_sizes(sizes).arguments:
        if b.role != "out":
            d = numpy_dtype(b.dtype)
            shape = [int(n) for n in b.shape]
            scale = 0.125 if d.kind not in "iub" else 1  # a recurrence must not be chaotic
            numbers = rng.integers(0, 2, shape) if b.dtype == "bool" else rng.integers(-3, 4, shape) * scale
            arrays[b.name] = np.asarray(numbers).astype(d)
    mine = {n: a.copy() for n, a in arrays.items()}
    got = Entry(job.artifact)(**mine)
    outs = [b.name for b in kernel.arguments if b.role == "out"]
    named = {b.name: mine[b.name] for b in kernel.arguments if b.role == "inout"}
    named |= dict(zip(outs, got if len(outs) > 1 else [got], strict=False))
    fault = outside(named, enclose(kernel, arrays, sizes))
    if fault is not None:
        raise AssertionError(fault)
    for name, given in arrays.items():
        if name not in named and given.tobytes() != mine[name].tobytes():
            raise AssertionError(f"the input {name} was modified")


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("system")
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--native", action="store_true")
    p.add_argument("--no-proof", action="store_true")
    p.add_argument("--exact", action="store_true")
    o = p.parse_args()
    start, counts = time.perf_counter(), {"agree": 0, "no": 0, "wrong": 0}
    for seed in range(o.first, o.last):
        found = one(seed, o.system, o.native, not o.no_proof, o.exact)
        counts["no" if found == "no" else "wrong" if found else "agree"] += 1
        if found not in ("", "no"):
            print(found, flush=True)
        if (seed + 1 - o.first) % 500 == 0:
            print(f"{o.system} {o.first} to {seed + 1}: {counts}", file=sys.stderr, flush=True)
    print(f"{o.system} {o.first} to {o.last}: {counts}, {time.perf_counter() - start:.0f} s")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    with on_the_tree():
        sys.exit(main())
