"""How long mapping takes (MAP-11): every kernel of the corpus on a machine, and large programs of one form.

    python benchmarks/mapper_time.py [SYSTEM]

Prints milliseconds per kernel for all mappings of all instructions, and seconds for programs of 500 statements. The
first figure includes preparing the instructions, the second does not.
"""

from __future__ import annotations

import random
import sys
import time

from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.mapper import Matches, match
from isam.system.load import load_system
from tests.corpus import CASES


def everything(kernel: Kernel, instructions) -> tuple[float, int]:
    """Seconds and mappings of all instructions that share an operation with the kernel."""
    operations = {s.op for s in kernel.statements} | {"copy"}
    start, found = time.perf_counter(), 0
    for i in instructions:
        if {s.op for s in i.body.statements} <= operations:
            answer = match(kernel, i)
            found += len(answer) if isinstance(answer, Matches) else 0
    return time.perf_counter() - start, found


def program(statements: int, seed: int) -> Kernel:
    """Sums of products and element-wise statements over shared arrays, in random order."""
    rng = random.Random(seed)
    lines = ["kernel big(M, N, K)"]
    lines += [f"  in a{n}: f32[M, K]\n  in b{n}: f32[K, N]" for n in range(12)] + ["  inout c: f32[M, N]"]
    while statements > 0:
        if rng.random() < 0.7:
            a, b = rng.randrange(12), rng.randrange(12)
            lines.append(f"  forall i < M, j < N, k < K\n    c[i, j] += a{a}[i, k] * b{b}[k, j]")
            statements -= 2
        else:
            lines.append("  forall i < M, j < N\n    c[i, j] = max(c[i, j], 0)")
            statements -= 1
    return parse("\n".join(lines) + "\n")


def main(system: str) -> None:
    instructions = list(load_system(system).instructions.values())
    print(f"{len(instructions)} instructions of {system}")
    print(f"{'kernel':40} statements  mappings  first ms  again ms")
    for name, case in CASES.items():
        kernel = normal_form(case.load())
        first, found = everything(kernel, instructions)
        again, _ = everything(kernel, instructions)
        print(f"{name:40} {len(kernel.statements):10} {found:9} {1e3 * first:9.1f} {1e3 * again:9.1f}")
    for seed in range(3):
        kernel = normal_form(program(500, seed))
        seconds, found = everything(kernel, instructions)
        print(f"random program {seed}: {len(kernel.statements)} statements, {found} mappings, {seconds:.2f} s")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "host")
