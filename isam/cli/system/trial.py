"""``isam system test``: every instruction of a machine against what its description says it does."""

from __future__ import annotations

import time
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isam.cli.answer import Answer, answering
from isam.cli.data import random_arrays
from isam.cli.options import AsJson
from isam.diagnostics import InternalError, IsamError

if TYPE_CHECKING:
    from isam.ir.instruction import Instruction
    from isam.system.graph import System

SYSTEM = Annotated[str, typer.Argument(metavar="SYSTEM", help="A shipped system or the path of a YAML description.")]
ONLY = Annotated[str, typer.Option("--instruction", "-i", help="Only these, or this family; * and ? match several.")]
SECONDS = Annotated[float, typer.Option("--seconds", help="Stop after this long and say what was left.")]


@answering(
    "system test", system="its name", right="instructions that did what their bodies say", wrong="name to fault",
    refused="name to why the machine could not be made to run it alone", left="not reached within --seconds",
)  # fmt: skip
def trial(system: SYSTEM, instruction: ONLY = "*", seconds: SECONDS = 60.0, as_json: AsJson = False) -> Answer:
    """Compiles every compute instruction's body as a kernel that must use it, runs it on random data and compares.

    Sizes: the limits of the instruction, one less, and 1. Exit code 1 when an instruction computes something else.
    """
    from isam.system.load import load_system
    from isam.system.names import named

    s = load_system(system)
    s.demand_backend()
    chosen = [i for i in s.compute if fnmatch(i.name, instruction)] or named(s, instruction)
    right, left = [], []
    wrong: dict[str, str] = {}
    refused: dict[str, str] = {}
    end = time.perf_counter() + seconds
    for i in chosen:
        if time.perf_counter() > end:
            left.append(i.name)
            continue
        try:
            fault = _fault(s, i)
        except IsamError as e:
            refused[i.name] = str(e).splitlines()[0]
            continue
        except InternalError as e:  # here it is the description that is wrong: text that its emitter cannot take
            fault = str(e).splitlines()[0]
        if fault:
            wrong[i.name] = fault
        else:
            right.append(i.name)
    lines = [f"{s.name}: {len(right)} of {len(chosen)} instructions do what their bodies say"]
    lines += [f"  wrong: {n}: {why}" for n, why in wrong.items()]
    lines += [f"  not run alone: {n}: {why}" for n, why in refused.items()]
    lines += [f"  {len(left)} not reached in {seconds:g} s (--seconds)"] if left else []
    data = {"system": s.name, "right": right, "wrong": wrong, "refused": refused, "left": left}
    return Answer("\n".join(lines), data, yes=not wrong)


def _fault(system: System, instruction: Instruction) -> str | None:
    """``None`` when the instruction is right at all sizes tried."""
    import isam
    from isam.ir.bounds import enclose, outside

    for sizes in _sizes(instruction):
        k = instruction.body.with_sizes(sizes)
        arrays = random_arrays(k, {}, seed=len(sizes))
        given = {n: a.copy() for n, a in arrays.items()}
        made = isam.compile(k, on=system, require=instruction.name)(**given)
        outs = [b.name for b in k.arguments if b.role == "out"]
        results = made if isinstance(made, tuple) else (made,)
        got = dict(zip(outs, results, strict=False)) | {b.name: given[b.name] for b in k.arguments if b.role == "inout"}
        fault = outside(got, enclose(k, arrays, ulp=max(4.0, 2 * instruction.ulp)))
        if fault:
            return f"{fault} at {sizes or 'its one size'}"
    return None


def _sizes(instruction: Instruction) -> list[dict[str, int]]:
    """The limits, one step below them, and the least sizes; each once."""
    out: list[dict[str, int]] = []
    for pick in (lambda lo, hi, m: hi, lambda lo, hi, m: hi - m, lambda lo, hi, m: -(-max(lo, 1) // m) * m):
        sizes: dict[str, Any] = {}
        for s in instruction.syms:
            hi = s.hi if s.hi is not None else 24 * s.multiple_of
            hi -= hi % s.multiple_of
            sizes[s.name] = max(s.lo, pick(s.lo, hi, s.multiple_of))
        if sizes not in out:
            out.append(sizes)
    return out
