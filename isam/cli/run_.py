"""``isam run``: a kernel or an artifact on random or given data, timed and, with --check, judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from isam.cli import given
from isam.cli.answer import SUBJECT, Answer, answering
from isam.cli.data import Work, pairs, read_arrays, work_of, write_arrays
from isam.cli.limits import POINTS, STEPS, judged_points, simulated_steps, within_memory
from isam.cli.options import Approach, AsJson, Replay, Require, Sizes, Threads
from isam.cli.places import apart
from isam.cli.progress import schedules
from isam.diagnostics import Diagnostic, IsamError, Loc, fail
from isam.tune.timing import Times, repeated, shown

if TYPE_CHECKING:
    from isam.artifact import Artifact
    from isam.ir.kernel import Kernel
    from isam.runtime.entry import Entry
    from isam.runtime.ranged import RangedFunction

WHAT = Annotated[str, typer.Argument(metavar="KERNEL|ARTIFACT", help="FILE.isam[:NAME], -, or a compiled artifact.")]
ON = Annotated[
    str,
    typer.Option("--on", metavar="SYSTEM", help="Of a kernel: a shipped system or the path of a YAML description "
                 "(default host)."),
]  # fmt: skip
CHECK = Annotated[bool, typer.Option("--check", help="Compare every element with the reference, within bounds.")]
REPEAT = Annotated[int, typer.Option("--repeat", metavar="N", help="Calls that are timed.")]
SEED = Annotated[int, typer.Option("--seed", help="Of the random data.")]
LIMIT = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--limit", metavar="N", help=f"Most steps of a simulated call (default {STEPS}) and most points that "
                 f"--check judges (default {POINTS})."),
]  # fmt: skip
INPUT = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--input", metavar="NAME=FILE.npy", help="An argument from a file; may be repeated. NumPy's files "
                 "have no name for bf16: its elements are two bytes (|V2) there, written and taken so."),
]
OUTPUT = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--output", metavar="NAME=FILE.npy", help="Write a result to a file; may be repeated."),
]


@answering(
    "run", kernel="its name", system="the system's name", sizes="name to number",
    seconds="best and median of a call; on a simulator, the simulator's", simulated="null, or the steps of a call",
    operations="arithmetic operations of a call", exact="false where a condition admits too many points to count: "
    "operations are of all points of the loops", outputs="dtype and shape of results",
    check="null, or whether it was right, and the fault",
)  # fmt: skip
def run(
    what: WHAT, on: ON = "", define: Sizes = None, check: CHECK = False, repeat: REPEAT = 1, seed: SEED = 0,
    limit: LIMIT = None, inputs: INPUT = None, outputs: OUTPUT = None, approach: Approach = "", replay: Replay = None,
    require: Require = None, threads: Threads = None, as_json: AsJson = False,
) -> Answer:  # fmt: skip
    """Runs a kernel on a machine (const arguments bound once) and says how long a call takes.

    With --check: exit code 3 when an element lies outside the bound that holds for every order of summation. A machine
    that is simulated has no time: what a call takes is then the simulator's.
    """
    if not 1 <= repeat <= 1_000_000 or seed < 0 or (limit is not None and limit < 1):
        raise fail("cli-number", "--repeat is from 1 to 1000000, --seed is not negative, --limit is above 0")
    apart(_paths(outputs), [what, replay, *_paths(inputs)], on, approach)
    numbers = given.sizes(define)
    if given.is_artifact(what):
        _compiles({"--on": on, "--approach": approach, "--replay": replay, "--require": require, "--threads": threads})
        k, entry, system = _artifact(what, numbers)
        within_memory(k, judged=check)
    else:
        k = given.sized(given.kernel(what)[0], numbers, whole=True)
        within_memory(k, judged=check)
        entry = _compiled(k, on or "host", approach, replay, require, threads)
        system = entry.system.name
    points = judged_points(k, limit or POINTS) if check else 0
    steps = simulated_steps(_called(entry, numbers), k, numbers, limit or STEPS, "smaller sizes, or --limit N")
    targets = pairs(outputs, [b.name for b in k.arguments if b.role in ("out", "inout")])
    from isam.ir.data import random_arrays

    given_arrays = read_arrays(inputs, k)
    arrays = random_arrays(k, {}, seed, given_arrays) | given_arrays
    results, times = _timed(k, entry, arrays, 0 if repeat == 1 and steps is not None else repeat)
    write_arrays(targets, results)
    fault = _fault(k, arrays, results, points) if check else None
    work = work_of(k, {})
    data = {
        "kernel": k.name, "system": system, "sizes": numbers, **work._asdict(), "simulated": steps,
        "seconds": {"best": times.best, "median": times.median, "calls": len(times.samples)},
        "outputs": {n: {"dtype": str(a.dtype), "shape": list(a.shape)} for n, a in results.items()},
        "check": {"right": fault is None, "fault": fault} if check else None,
    }  # fmt: skip
    if fault:
        raise _wrong(k, entry, system, fault)
    head = _timing(work, times) if steps is None else _simulation(steps, times)
    lines = [f"{k.name} on {system}{head}", *(f"  {n}: {a.dtype}{list(a.shape)}" for n, a in results.items())]
    return Answer("\n".join(lines + (["  right: every element within its bound"] if check else [])), data)


def _paths(given_: list[str] | None) -> list[str]:
    """The files of ``NAME=FILE`` texts; what is of another form is refused later."""
    return [text.partition("=")[2] for text in given_ or ()]


def _compiles(options: Mapping[str, Any]) -> None:
    """Refuses what only a compilation can heed. Raises ``IsamError``."""
    if refused := [option for option, value in options.items() if value]:
        raise IsamError(Diagnostic("cli-option", f"{option} is for kernels: an artifact is compiled",
                                   hint=f"isam compile {option}") for option in refused)  # fmt: skip


def _wrong(k: Kernel, entry: Any, system: str, fault: str) -> Exception:
    """Whose fault a wrong result is: that of an instruction which is wrong alone, or ours."""
    from isam.compiler.alone import culprits, theirs
    from isam.diagnostics import InternalError

    found = culprits(entry.system, entry.schedule, run=True) if hasattr(entry, "schedule") else []
    if theirs(found):
        return IsamError(found)
    said = "".join(f"\n{d}" for d in found)
    said += "" if hasattr(entry, "schedule") else "\nisam verify says whether the artifact is what was compiled"
    return InternalError(f"{k.name} on {system} computes something else: {fault}{said}\n{k}")


def _timing(work: Work, times: Times) -> str:
    rate = f", {work.operations / times.best / 1e9:.3g} Gop/s" if work.operations else ""
    rate += "" if work.exact or not rate else " of all points of the loops"
    return f": {shown(times.best)} per call{_calls(times)}{rate}"


def _simulation(steps: int, times: Times) -> str:
    took = f"{shown(times.best)}{_calls(times)}, which is no machine's time"
    return f", simulated: {steps} steps per call; the simulator took {took}"


def _calls(times: Times) -> str:
    return f" (best of {len(times.samples)}, median {shown(times.median)})" if len(times.samples) > 1 else ""


def _compiled(k: Kernel, on: str, approach: str, replay: Path | None, require: list[str] | None,
              threads: int | None) -> Any:  # fmt: skip
    from isam import compile

    with schedules():
        return compile(k, on=on, approach=approach or None, replay=replay, require=require or (), threads=threads)


def _artifact(path: str, numbers: dict[str, int]) -> tuple[Kernel, Entry | RangedFunction, str]:
    from isam.artifact import load_artifact
    from isam.ir.text import parse_kernel
    from isam.runtime.entry import entry_of

    a = load_artifact(path)
    k = parse_kernel(a.text("kernel.isam"), path)
    SUBJECT.set(str(k))
    fixed = given.fixed_by(k, a)
    if other := [n for n, v in numbers.items() if fixed.get(n, v) != v]:
        raise IsamError(Diagnostic("cli-size", f"the artifact is compiled for {n} = {fixed[n]}", Loc(path, 1, 1),
                                   hint=f"isam compile -D {n}={numbers[n]}") for n in other)  # fmt: skip
    k = given.sized(k, fixed | numbers, whole=True)
    return k, entry_of(a, Loc(path)), str(a.provenance.get("system", a.backend))


def _called(entry: Any, numbers: Mapping[str, int]) -> list[Artifact]:
    """What a call runs: of a range, the variants that make up the size. Raises ``IsamError`` where none do."""
    from isam.runtime.ranged import RangedFunction

    if isinstance(entry, RangedFunction):
        return [entry.variants[rows].artifact for rows in entry.parts(numbers[entry.batch.size])]
    return [entry.artifact]


def _timed(k: Kernel, entry: Any, arrays: dict[str, Any], repeat: int) -> tuple[dict[str, Any], Times]:
    """Results of a call on fresh data, and times of ``repeat`` further calls (0: the time of that call); ``inout``
    arrays are copied for each use."""
    outs = [b.name for b in k.arguments if b.role == "out"]
    updated = [b.name for b in k.arguments if b.role == "inout"]
    constants = {b.name: arrays[b.name] for b in k.arguments if b.role == "const"}
    ready: Callable[..., Any] = entry.bind(**constants) if constants else entry
    rest = {n: a for n, a in arrays.items() if n not in constants}
    mine = rest | {n: rest[n].copy() for n in updated}
    into = _shown(k, entry)
    start = time.perf_counter()
    made = ready(**mine, **{n: a.copy() for n, a in into.items()})
    first = Times((time.perf_counter() - start,))
    results = dict(zip(outs, made if len(outs) > 1 else [made], strict=True)) if outs else {}
    results |= {n: mine[n] for n in updated}
    if not repeat:
        return results, first
    again = rest | {n: rest[n].copy() for n in updated}
    order = [again[b.name] for b in k.arguments if b.name in again]
    return results, repeated(lambda: ready(*order, **into), repeat)


def _shown(k: Kernel, entry: Any) -> dict[str, Any]:
    """The outputs, made beforehand where only their shapes say what a size is that the code left open."""
    from isam.ir.signature import solved
    from isam.runtime.aligned import empty

    s = entry.signature
    follow = solved(frozenset(n for n, _ in terms) for p in s.positional for _, terms in p.rows)
    if all(size.name in follow for size in s.sizes):
        return {}
    return {p.name: empty(tuple(d.const for d in k.buffer(p.name).shape), p.dtype) for p in s.outputs}


def _fault(k: Kernel, arrays: dict[str, Any], results: dict[str, Any], points: int) -> str | None:
    from isam.cli.progress import busy
    from isam.ir.bounds import enclose, outside

    with busy(f"judging {points} points"):
        return outside(results, enclose(k, arrays))
