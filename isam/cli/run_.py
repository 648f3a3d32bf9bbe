"""``isam run``: a kernel or an artifact on random or given data, timed and, with --check, judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from isam.cli import given
from isam.cli.answer import SUBJECT, Answer, answering
from isam.cli.data import largest, operations, pairs, random_arrays, read_arrays, write_arrays
from isam.cli.options import Approach, AsJson, On, Replay, Sizes
from isam.cli.timing import Times, repeated, shown
from isam.diagnostics import fail

if TYPE_CHECKING:
    from isam.ir.kernel import Kernel

WHAT = Annotated[str, typer.Argument(metavar="KERNEL|ARTIFACT", help="FILE.isam[:NAME], -, or a compiled artifact.")]
CHECK = Annotated[bool, typer.Option("--check", help="Compare every element with the reference, within bounds.")]
REPEAT = Annotated[int, typer.Option("--repeat", metavar="N", help="Calls that are timed.")]
SEED = Annotated[int, typer.Option("--seed", help="Of the random data.")]
INPUT = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--input", metavar="NAME=FILE.npy", help="An argument from a file; may be repeated."),
]
OUTPUT = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--output", metavar="NAME=FILE.npy", help="Write a result to a file; may be repeated."),
]


@answering(
    "run", kernel="its name", system="the system's name", sizes="name to number", seconds="best and median of a call",
    operations="arithmetic operations of a call (a where counts its whole box)", outputs="dtype and shape of results",
    check="null, or whether it was right, and the fault",
)  # fmt: skip
def run(
    what: WHAT, on: On = "host", define: Sizes = None, check: CHECK = False, repeat: REPEAT = 1, seed: SEED = 0,
    inputs: INPUT = None, outputs: OUTPUT = None, approach: Approach = "", replay: Replay = None,
    as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Runs a kernel on a machine (const arguments bound once) and says how long a call takes.

    With --check: exit code 3 when an element lies outside the bound that holds for every order of summation.
    """
    if not 1 <= repeat <= 1_000_000 or seed < 0:
        raise fail("cli-number", "--repeat is from 1 to 1000000, --seed is not negative")
    numbers = given.sizes(define)
    if given.is_artifact(what):
        k, entry, system = _artifact(what, numbers)
    else:
        k, entry, system = _kernel(what, on, numbers, approach, replay)
    targets = pairs(outputs, [b.name for b in k.arguments if b.role in ("out", "inout")])
    arrays = random_arrays(k, {}, seed) | read_arrays(inputs, k)
    results, times = _timed(k, entry, arrays, 0 if repeat == 1 and simulated(entry) else repeat)
    write_arrays(targets, results)
    fault = _fault(k, arrays, results) if check else None
    work = operations(k, {})
    data = {
        "kernel": k.name, "system": system, "sizes": numbers, "operations": work,
        "seconds": {"best": times.best, "median": times.median, "calls": len(times.samples)},
        "outputs": {n: {"dtype": str(a.dtype), "shape": list(a.shape)} for n, a in results.items()},
        "check": {"right": fault is None, "fault": fault} if check else None,
    }  # fmt: skip
    if fault:
        from isam.diagnostics import InternalError

        raise InternalError(f"{k.name} on {system} computes something else: {fault}\n{k}")
    return Answer(_text(k, system, work, times, results, check), data)


def _text(k: Kernel, system: str, work: int, times: Times, results: dict[str, Any], check: bool) -> str:
    calls = f" (best of {len(times.samples)}, median {shown(times.median)})" if len(times.samples) > 1 else ""
    rate = f", {work / times.best / 1e9:.3g} Gop/s" if work else ""
    lines = [f"{k.name} on {system}: {shown(times.best)} per call{calls}{rate}"]
    lines += [f"  {n}: {a.dtype}{list(a.shape)}" for n, a in results.items()]
    return "\n".join(lines + (["  right: every element within its bound"] if check else []))


def _kernel(spec: str, on: str, numbers: dict[str, int], approach: str, replay: Path | None) -> tuple[Kernel, Any, str]:
    from isam import compile

    k, _ = given.kernel(spec)
    k = given.sized(k, numbers, whole=True)
    made = compile(k, on=on, approach=approach or None, replay=replay)
    return k, made, made.system.name


def _artifact(path: str, numbers: dict[str, int]) -> tuple[Kernel, Any, str]:
    from isam.artifact import load_artifact
    from isam.ir.text import parse_kernel
    from isam.runtime.entry import Entry

    a = load_artifact(path)
    k = parse_kernel(a.text("kernel.isam"), path)
    SUBJECT.set(str(k))
    k = given.sized(k, given.fixed_by(k, a) | numbers, whole=True)
    return k, Entry(a), str(a.provenance.get("system", a.backend))


def _timed(k: Kernel, entry: Any, arrays: dict[str, Any], repeat: int) -> tuple[dict[str, Any], Times]:
    """Results of a call on fresh data, and times of ``repeat`` further calls (0: the time of that call); ``inout``
    arrays are copied for each use."""
    outs = [b.name for b in k.arguments if b.role == "out"]
    updated = [b.name for b in k.arguments if b.role == "inout"]
    constants = {b.name: arrays[b.name] for b in k.arguments if b.role == "const"}
    ready: Callable[..., Any] = entry.bind(**constants) if constants else entry
    rest = {n: a for n, a in arrays.items() if n not in constants}
    mine = rest | {n: rest[n].copy() for n in updated}
    start = time.perf_counter()
    made = ready(**mine)
    first = Times((time.perf_counter() - start,))
    results = dict(zip(outs, made if len(outs) > 1 else [made], strict=True)) if outs else {}
    results |= {n: mine[n] for n in updated}
    if not repeat:
        return results, first
    again = rest | {n: rest[n].copy() for n in updated}
    order = [again[b.name] for b in k.arguments if b.name in again]
    return results, repeated(lambda: ready(*order), repeat)


def simulated(entry: Any) -> bool:
    """Whether a simulator runs it: slow, and the same every time."""
    return entry.artifact.backend == "simulator"


def _fault(k: Kernel, arrays: dict[str, Any], results: dict[str, Any]) -> str | None:
    from isam.cli.progress import busy
    from isam.ir.bounds import enclose, outside

    with busy(f"judging {largest(k, {})} points"):
        return outside(results, enclose(k, arrays))
