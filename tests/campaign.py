"""Random kernels through every stage: ``python -m tests.campaign SYSTEM FIRST LAST [--native]``.

Each kernel is compiled and proved for the system, its schedule simulated strictly in residues and compared with the
oracle, exactly. ``--native``: the code is run as well, on integers and floats, and compared with the simulator
computing in the machine's numbers. Prints every failure as a text file ready for ``tests/text`` and a summary; exits
with 1 if there was any.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

import numpy as np

from isam.codegen.simulator import Simulation
from isam.compiler import Refused
from isam.ir.dtype import numpy_dtype
from isam.ir.kernel import Recurrence
from isam.runtime.entry import Entry
from isam.system.load import load_system
from tests.pipeline import compiled, judge
from tests.random_kernels import random_kernel, show


def one(seed: int, system: str, native: bool, check: bool) -> str:
    """'' when everything agrees, 'no' when the machine cannot, else what is wrong."""
    kernel, sizes = random_kernel(seed)
    machine = load_system(system)
    try:
        job = compiled(kernel, sizes, machine if native else replace(machine, backend="simulator"), check=check)
        judge(kernel, sizes, job, seed)
        if native:
            same_numbers(job, seed)
    except Refused:
        return "no"
    except Exception as e:  # whatever it is, it is a finding
        return f"# seed {seed} on {system}: {type(e).__name__}: {str(e).splitlines()[0]}\n{show(kernel, sizes)}"
    return ""


def same_numbers(job, seed: int) -> None:
    """The native code against the simulator in the machine's numbers: integers exactly, floats to a few ulp of the
    largest value (multiplication and addition may be contracted)."""
    rng = np.random.default_rng(seed)
    kernel = job.schedule.kernel
    loops = any(isinstance(i, Recurrence) for i in kernel.body)
    arrays = {}
    for b in kernel.arguments:
        if b.role != "out":
            d = numpy_dtype(b.dtype)
            shape = [int(n) for n in b.shape]
            scale = 0.125 if d.kind not in "iub" and loops else 1  # a recurrence must not be chaotic
            numbers = rng.integers(0, 2, shape) if b.dtype == "bool" else rng.integers(-3, 4, shape) * scale
            arrays[b.name] = np.asarray(numbers).astype(d)
    sim = Simulation(job.schedule)
    sim.bind({b.name: arrays[b.name] for b in kernel.arguments if b.role == "const"})
    want = sim.call({b.name: arrays[b.name] for b in kernel.arguments if b.role in ("in", "inout")})
    mine = {n: a.copy() for n, a in arrays.items()}
    got = Entry(job.artifact)(**mine)
    outs = [b.name for b in kernel.arguments if b.role == "out"]
    named = {**mine, **dict(zip(outs, got if len(outs) > 1 else [got], strict=False))}
    for name, w in want.items():
        g = named[name]
        if w.dtype.kind in "iub":
            np.testing.assert_array_equal(g, w, err_msg=name)
        else:
            scale = np.nanmax(np.abs(w[np.isfinite(w)].astype(np.float64)), initial=1.0)
            bits = {8: 52, 4: 23, 2: 7}[w.dtype.itemsize]
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=2.0 ** (6 - bits),
                                       atol=scale * 2.0 ** (6 - bits), err_msg=name)  # fmt: skip


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("system")
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    p.add_argument("--native", action="store_true")
    p.add_argument("--no-proof", action="store_true")
    o = p.parse_args()
    start, counts = time.perf_counter(), {"agree": 0, "no": 0, "wrong": 0}
    for seed in range(o.first, o.last):
        found = one(seed, o.system, o.native, not o.no_proof)
        counts["no" if found == "no" else "wrong" if found else "agree"] += 1
        if found not in ("", "no"):
            print(found, flush=True)
        if (seed + 1 - o.first) % 500 == 0:
            print(f"{o.system} {o.first} to {seed + 1}: {counts}", file=sys.stderr, flush=True)
    print(f"{o.system} {o.first} to {o.last}: {counts}, {time.perf_counter() - start:.0f} s")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
