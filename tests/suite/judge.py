"""``python -m tests.suite.judge [--every N]``: what the table calls mapped is carried out, and must be right.

In every cell mapped as written or after steps: each step of each chain keeps the meaning, by the judge of its law (the
exact oracle modulo a prime, the interpreter bit by bit, or float64 with a derived bound); and the first and the last
mapping at the end of the chain, carried out as calls in random blocks and order modulo a prime, leave the same numbers
as the kernel. Prints a figure and what is wrong; exits with 1 if anything is.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from math import prod

from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping
from isam.mapper.match import normal
from isam.mapper.search import Path, Reached
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.laws.judges import same
from tests.suite.cells import GUESSES, Cell, pair, searched
from tests.suite.table import load

POINTS = 4096  # of a statement
Found = Path[tuple[Mapping, ...]]


def wrong_steps(kernel: Kernel, path: Found, counts: Counter[str]) -> Iterator[str]:
    for s in path.steps:
        after = s.transform.apply(kernel, s.site).kernel
        counts["steps"] += 1
        if not same(s.transform, kernel, after):
            yield f"{s} changes the meaning"
        kernel = after
    if kernel != path.kernel:
        yield f"{path.label()} does not lead to the kernel found"


def wrong_mappings(path: Found, counts: Counter[str]) -> Iterator[str]:
    for m in path.found[:: max(1, len(path.found) - 1)]:
        names = {(a.name, a.extent) for s in m.instruction.body.statements for a in s.domain.axes}
        if len(names) > len({n for n, _ in names}) or {n for n, _ in names} != m.axis_map.keys():
            counts["mappings left out: an axis of the instruction has two names, or a name two axes"] += 1
            continue
        if max(prod(int(a.extent) for a in s.domain.axes) for s in path.kernel.statements) > POINTS:
            counts["mappings left out: too many points"] += 1
            continue
        seed = zlib.crc32(str(m).encode())
        want = run_kernel(path.kernel, initial(path.kernel, seed))
        got = run_mapped(path.kernel, m, initial(path.kernel, seed), seed)
        counts["mappings carried out"] += 1
        if visible(path.kernel, m, got) != visible(path.kernel, m, want):
            yield f"wrong after {path.label()}: {m}"


def wrong(cell: Cell, counts: Counter[str]) -> list[str]:
    """What is wrong with a cell that the table calls mapped, blindly or not."""
    kernel, instruction = pair(cell.kernel, cell.column)
    found: Reached = searched(kernel, instruction, GUESSES if cell.guessed else 0)
    counts["cells"] += 1
    if not found:
        return ["the search finds nothing now"]
    assert normal(kernel) == found.kernel
    out: list[str] = []
    for path in found.paths:
        counts["chains"] += bool(path.steps)
        out += [*wrong_steps(found.kernel, path, counts), *wrong_mappings(path, counts)]
    return out


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.suite.judge", description=__doc__)
    p.add_argument("--every", type=int, default=1, help="one cell of so many")
    o = p.parse_args()
    counts: Counter[str] = Counter()
    bad = 0
    cells = [c for c in load()[0] if c.kind != "impossible" or c.guessed]
    for n, c in enumerate(cells[:: o.every]):
        for text in wrong(c, counts):
            bad += 1
            print(f"{c.kernel} on {c.column}: {text}")
        if not n % 100:
            print(f"{n} of {len(cells)}", file=sys.stderr, flush=True)
    for name, n in counts.items():
        print(f"{n:>8}  {name}")
    print(f"{bad:>8}  wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
