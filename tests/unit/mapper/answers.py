"""What the matcher answers, on record: ``python -m tests.unit.mapper.answers`` writes ``answers.txt`` anew, with the
names of instructions it prints every answer of theirs.

That a mapping is right and none is missing is tested elsewhere. Another order of mappings, another orbit or name,
another report, or a search that tries more pairs than it did would still be right, and nothing else sees it. Per
instruction: how many mappings it has in the kernels of the tests, how many contradictions were met and how many pairs
tried, each with a hash of all that they say.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping
from isam.ir.text import parse_instruction
from isam.mapper.match import Matches, match, normal, probe
from tests.suite import SUITE
from tests.unit.mapper import test_guards, test_kinds, test_refused
from tests.unit.mapper.catalogue import KERNELS, instruction, instruction_names, kernel, named

FILE = Path(__file__).with_name("answers.txt")
TEXTS = (test_guards.SCALED, test_guards.TURNED, test_guards.LAST, test_guards.TRIANGLE)
MORE = (  # chains in place, temporaries read in two ways, an axis in one statement only, numbers, one name for two axes
    "instruction chain(N)\n  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = exp(A[i])\n"
    "  forall i < N\n    D[i] = D[i] * D[i]\n  forall i < N\n    D[i] = max(D[i], 0)\n",
    "instruction ends(N)\n  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    t[i] = exp(A[i])\n"
    "  forall i < N\n    D[i] = t[i] * t[N - 1 - i]\n",
    "instruction centred(M, N)\n  in A: f32[M, N]\n  out D: f32[M, N]\n  forall i < M\n    s[i] = 0\n"
    "  forall i < M, j < N\n    s[i] += A[i, j]\n  forall i < M, j < N\n    D[i, j] = A[i, j] - s[i]\n",
    "instruction diagonal(N)\n  in A: f32[N, N]\n  out D: f32[N]\n  forall i < N\n    D[i] = 2 * A[i, i]\n",
    "instruction few(M <= 2, N % 3)\n  in A: f32[M, N]\n  inout D: f32[M]\n  forall i < M, j < N\n"
    "    D[i] += A[i, j]\n",
    "instruction four()\n  in A: f32[4]\n  in b: f32[]\n  out D: f32[4]\n  forall i < 4\n    D[i] = A[i] * b[]\n",
)  # fmt: skip
MASKS = ("where j <= i", "where i + j <= 4", "where j <= 2", "where 1 <= i", "where i <= j", "where j <= i, i + j <= 4")
PLAIN = (
    "k(N)\n in x: f32[N]\n out y: f32[N]\n out z: f32[N]\n forall i < N\n  y[i] = exp(x[i])\n forall i < N\n"
    "  z[i] = exp(y[i])\n forall i < N\n  y[i] = y[i] * y[i]\n forall i < N\n  z[i] = z[i] * z[i]\n forall i < N\n"
    "  y[i] = max(y[i], 0)\n forall i < N\n  z[i] = max(z[i], 0)",
    "k(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = exp(x[i])\n forall i < N\n  y[i] = y[i] + 1\n"
    " forall i < N\n  y[i] = y[i] * y[i]\n forall i < N\n  y[i] = max(y[i], 0)",
    "k(N)\n in x: f32[N]\n out y: f32[N]\n forall p < N\n  t[p] = exp(x[p])\n forall q < N\n"
    "  y[q] = t[q] * t[N - 1 - q]",
    "k(N)\n in x: f32[N]\n out y: f32[N]\n forall p < N\n  t[p] = exp(x[p])\n forall q < N\n"
    "  y[q] = t[N - 1 - q] * t[q]",
    "k(B, M, N)\n in x: f32[B, M, N]\n out y: f32[B, M, N]\n forall b < B, i < M\n  s[b, i] = 0\n"
    " forall b < B, p < M, q < N\n  s[b, p] += x[b, p, q]\n forall b < B, i < M, j < N\n"
    "  y[b, i, j] = x[b, i, j] - s[b, i]",
    "k(N)\n in x: f32[N, N]\n out y: f32[N]\n out z: f32[N]\n forall i < N\n  y[i] = 2 * x[i, i]\n  z[i] = x[i, 0] * 2",
    "k()\n in x: f32[5, 7]\n inout y: f32[5]\n out z: f32[5, 4]\n out w: f32[4]\n in c: f32[5]\n"
    " forall i < 5, j < 7\n  y[i] += x[i, j]\n forall i < 5, j < 4\n  z[i, j] = x[i, j] * c[i]\n"
    " forall j < 4\n  w[j] = x[0, j + 3] * 3",
)  # fmt: skip
BUDGET = 3000


@cache
def instructions() -> dict[str, Instruction]:
    found = [*map(instruction, instruction_names()), *map(parse_instruction, (*TEXTS, *MORE))]
    return {i.name: i for i in (*found, *(e.instruction for e in test_kinds.EXAMPLES.values()))}


@cache
def kernels() -> tuple[Kernel, ...]:
    own = [*map(named, KERNELS), *(kernel(text) for text, *_ in test_refused.REFUSED.values())]
    own += [*(e.kernel for e in test_kinds.EXAMPLES.values()), *map(kernel, PLAIN)]
    own += [test_guards.masked(value, mask) for value in ("A[i, j] * A[i, 0]", "A[i, j] * A[j, i]") for mask in MASKS]
    return (*own, *map(normal, own), *(normal(c.load()) for c in list(SUITE.values())[::6]))


def answers(i: Instruction) -> Iterator[tuple[str, int, list[str], list[str]]]:
    """Per kernel and way to search: its name, the pairs tried, mappings, contradictions."""
    for k in kernels():
        for strided in (False, True):
            found = probe(k, i, strided=strided, budget=BUDGET)
            yield k.name, found.pairs if found.complete else -1, [told(m) for m in found], [
                f"{r} {r.depth} {r.partial} {r.subject}" for r in found.near]  # fmt: skip
        for swap in (False, True):
            got = match(k, i, swap=swap, region=range(1, len(k.statements)), budget=BUDGET)
            mapped = isinstance(got, Matches)
            yield k.name, 0, [told(m) for m in got] if mapped else [], [] if mapped else [f"{got} {got.subject}"]


def told(m: Mapping) -> str:
    return " ".join(f"{f}={getattr(m, f)!r}" for f in m.__dataclass_fields__ if f != "instruction")


def digest(lines: list[str]) -> str:
    return f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"


def line(i: Instruction) -> str:
    rows = list(answers(i))
    tried = [p for _, p, _, _ in rows]
    pairs = hashlib.sha256(str(tried).encode()).hexdigest()[:8]
    return (f"{i.name}: mappings {digest([m for _, _, ms, _ in rows for m in ms])}, "
            f"reports {digest([r for *_, rs in rows for r in rs])}, pairs {sum(tried)} {pairs}")  # fmt: skip


def recorded() -> dict[str, str]:
    return {x.split(":")[0]: x for x in FILE.read_text(encoding="utf-8").splitlines()}


def main() -> None:
    for name in sys.argv[1:]:
        for k, pairs, mappings, reports in answers(instructions()[name]):
            print(f"{k}: {pairs} pairs", *mappings, *reports, sep="\n  ")
    if not sys.argv[1:]:
        FILE.write_text("".join(f"{line(i)}\n" for i in instructions().values()), encoding="utf-8")


if __name__ == "__main__":
    main()
