"""``isam range``: a kernel for a range of batch sizes, and what that loses beside code for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Annotated, Optional

import typer

from isam.cli import given
from isam.cli.answer import Answer, answering
from isam.cli.options import Approach, AsJson, Kernel, On, Require, Sizes, Threads
from isam.cli.places import apart
from isam.cli.progress import schedules
from isam.diagnostics import fail
from isam.tune.timing import shown

RANGE = Annotated[str, typer.Argument(metavar="SIZE=LEAST:MOST", help="The size that counts the batch, and its range.")]
LIKELY = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--likely", metavar="NUMBER=WEIGHT", help="How often a size is met, beside a weight of 1 that all "
                 "others share; may be repeated."),
]  # fmt: skip
VARIANTS = Annotated[int, typer.Option("--variants", metavar="N", min=1, help="How many are compiled at most.")]
OUT = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("-o", "--output", metavar="OUT", help="Write all variants as one artifact."),
]
AT = Annotated[str, typer.Option("--at", metavar="N,N,...", help="Sizes that are measured; default: some of all.")]
MEASURED = 12  # sizes, unless others are named
FORM = re.compile(r"([A-Za-z_]\w*)=(\d{1,18}):(\d{1,18})")
WEIGHED = re.compile(r"(\d{1,18})=(\d+(?:\.\d+)?)")


@answering(
    "range", kernel="its name", system="its name", size="the one that counts the batch", limits="the least, the most",
    variants="rows of each that is compiled",
    regrets="per size that was measured: rows, the variants that make them up, seconds of a call, seconds of code "
    "compiled for just that size, the best of each, their ratio, and why it was not measured, or an empty text",
    mean="the geometric mean of the ratios, null where nothing was measured", worst="the largest of them, or null",
    output="the file written, or null",
)  # fmt: skip
def range_(
    kernel: Kernel, of: RANGE, on: On = "host", define: Sizes = None, likely: LIKELY = None, variants: VARIANTS = 8,
    at: AT = "", output: OUT = None, approach: Approach = "", require: Require = None, threads: Threads = None,
    as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Compiles a kernel for every batch size of a range, as `isam.compile_range` does, and measures what that loses.

    A few variants are compiled, and every size is made of calls of them. Per size: the variants, the time of a call,
    the time of code that is compiled for just that size, and their ratio (regret). Data is random, results are judged.
    """
    from isam.artifact import as_place
    from isam.compiler import as_approach, threads_on
    from isam.compiler.measured import may_run
    from isam.compiler.ranged import ranged
    from isam.compiler.regret import Regret, regrets, spread
    from isam.runtime.cache import default
    from isam.system.load import load_system

    if output is not None:
        as_place(output)
    apart([output], [kernel], on, approach)
    k, _ = given.kernel(kernel)
    k, sizes = given.with_numbers(k, given.sizes(define))
    system, by = load_system(on), as_approach(approach or None)
    size, lo, hi = _limits(of)
    options = {"require": tuple(require or ()), "threads": threads_on(system, threads)}
    with schedules():
        fn = ranged(k, system, size, (lo, hi), sizes, _weights(likely or []), variants, by, default(), **options)
        if output is not None:
            fn.save(output)
        step = next(s.multiple_of for s in k.given if s.name == size)
        named = _numbers(at, lo, hi, step) or spread(lo, hi, step, MEASURED)
        rows = list(regrets(fn, k, system, sizes, named, by, default(), **options)) if may_run(system) else [
            Regret(m, fn.parts(m), left=f"no code for '{system.name}' runs on this CPU") for m in named]  # fmt: skip
    ratios = [r.ratio for r in rows if not r.left]
    mean = geometric_mean(ratios) if ratios else None
    data = {
        "kernel": k.name, "system": system.name, "size": size, "limits": [lo, hi], "variants": list(fn.variants),
        "regrets": [{"rows": r.rows, "parts": list(r.parts), "seconds": r.seconds, "own": r.own, "ratio": r.ratio,
                     "left": r.left} for r in rows],
        "mean": mean, "worst": max(ratios, default=None), "output": str(output) if output is not None else None,
    }  # fmt: skip
    head = f"{k.name} on {system.name} for {lo} <= {size} <= {hi}: variants of {_listed(fn.variants)}"
    lines = [f"  {'rows':>8} {'time':>9} {'own code':>9} {'regret':>7}  made of"]
    for r in rows:
        times = f"{shown(r.seconds):>9} {shown(r.own):>9} {r.ratio:7.2f}" if not r.left else f"{'':27}"
        lines.append(f"  {r.rows:8} {times}  {_counted(r.parts)}{f': {r.left}' if r.left else ''}")
    said = [f"mean regret {mean:.3g}, the largest {max(ratios):.3g}"] if mean else []
    said += [f"wrote {output}: {output.stat().st_size} bytes"] if output is not None else []
    return Answer("\n".join([head, *lines, *said]), data)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _counted(parts: Sequence[int]) -> str:
    """``5 x 96 + 32``."""
    counts = [(parts.count(p), p) for p in dict.fromkeys(parts)]
    return " + ".join(f"{n} x {p}" if n > 1 else str(p) for n, p in counts) or "nothing"


def _limits(text: str) -> tuple[str, int, int]:
    found = FORM.fullmatch(text)
    if not found:
        raise fail("cli-range", f"'{text}' is not of the form SIZE=LEAST:MOST", hint="such as M=1:512")
    return found[1], int(found[2]), int(found[3])


def _weights(texts: Sequence[str]) -> dict[int, float]:
    out: dict[int, float] = {}
    for text in texts:
        found = WEIGHED.fullmatch(text)
        if not found:
            raise fail("cli-range", f"--likely {text}: not of the form NUMBER=WEIGHT", hint="such as --likely 1=9")
        out[int(found[1])] = float(found[2])
    return out


def _numbers(text: str, lo: int, hi: int, step: int) -> list[int]:
    """The sizes named, each of the range."""
    parts = [t.strip() for t in text.split(",") if t.strip()]
    wrong = [t for t in parts if not t.isdecimal() or not lo <= int(t) <= hi or int(t) % step]
    if wrong:
        admitted = f"between {lo} and {hi}" + (f", a multiple of {step}" if step > 1 else "")
        raise fail("cli-range", f"--at {wrong[0]}: no size {admitted}", hint="such as --at 1,7,100")
    return [int(t) for t in parts]
