"""Random kernels through the whole compiler: ``python -m tests.campaign --on toy --on host --count 10000``.

Every kernel is compiled for every system, run on random data and judged by bounds derived per element
(:mod:`isam.ir.bounds`; integers exactly). A wrong answer or a traceback is a failure, printed as text ready for
``tests/text``; a refusal that says what is missing is counted apart. Seeds are numbers: ``--start 4711 --count 1``
repeats one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import isam
from isam.compiler import Refused
from isam.ir.bounds import enclose, outside
from isam.ir.kernel import Kernel
from tests.corpus import random_arrays
from tests.random_kernels import random_kernel, show


@dataclass
class Tally:
    """What became of the kernels so far."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return ", ".join(f"{n} {what}" for what, n in sorted(self.counts.items()))


def judge(k: Kernel, sizes: dict[str, int], on: str, seed: int, *, check: bool = True) -> str | None:
    """``None`` when the compiled kernel answers within its bounds, else what is wrong. Raises ``Refused``."""
    arrays = random_arrays(k, sizes, seed)
    given = {n: a.copy() for n, a in arrays.items()}
    made = isam.compile(k, on=on, sizes=sizes, check=check)(**given)
    outs = [b.name for b in k.arguments if b.role == "out"]
    results = made if isinstance(made, tuple) else (made,)
    got = dict(zip(outs, results, strict=False)) | {b.name: given[b.name] for b in k.arguments if b.role == "inout"}
    for b in k.arguments:
        if b.role in ("in", "const") and given[b.name].tobytes() != arrays[b.name].tobytes():
            return f"the input {b.name} was modified"
    return outside(got, enclose(k, arrays, sizes))


def campaign(systems: Sequence[str], seeds: range, tally: Tally | None = None, *, check: bool = True) -> Tally:
    """Every seed on every system."""
    tally = tally or Tally()
    for seed in seeds:
        k, sizes = random_kernel(seed)
        for on in systems:
            try:
                fault = judge(k, sizes, on, seed, check=check)
            except Refused as e:
                tally.counts[f"refused by {on}"] += 1
                tally.refusals[str(e).splitlines()[0]] += 1
                continue
            except Exception as e:
                fault = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"
            tally.counts[f"{'failed' if fault else 'right'} on {on}"] += 1
            if fault:
                tally.failures.append(f"# seed {seed} on {on}: {fault}\n{show(k, sizes)}")
    return tally


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--on", action="append", default=[])
    p.add_argument("--count", type=int, default=10_000)
    p.add_argument("--start", type=int, default=0)
    p.add_argument("--seconds", type=float, default=float("inf"))
    p.add_argument("--no-check", action="store_true", help="without the proof")
    options = p.parse_args()
    tally, begin, done = Tally(), time.perf_counter(), 0
    for seed in range(options.start, options.start + options.count):
        before = len(tally.failures)
        campaign(options.on or ["toy", "host"], range(seed, seed + 1), tally, check=not options.no_check)
        done += 1
        for text in tally.failures[before:]:
            print(text, flush=True)
        if time.perf_counter() - begin > options.seconds:
            break
        if done % 100 == 0:
            print(f"{done} kernels, {time.perf_counter() - begin:.0f} s: {tally}", file=sys.stderr)
    print(f"{done} kernels in {time.perf_counter() - begin:.0f} s: {tally}")
    for text, n in tally.refusals.most_common(10):
        print(f"  {n} x {text}")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
